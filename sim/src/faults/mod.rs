//! Faults of a chip, each decided by one seed.
//!
//! A [`FaultPlan`] says what shall go wrong; the [`Injector`](injector::Injector) decides for each
//! operation whether it does; [`condition`] keeps what a fault did to the medium, which outlives
//! the plan; a [`FaultLog`] counts what happened.

pub(crate) mod condition;
pub(crate) mod injector;
mod log;
mod plan;
pub(crate) mod schedule;
pub(crate) mod torn;

pub use log::{FaultKind, FaultLog};
pub use plan::{Cut, Failure, FaultPlan, Flips, Growth, TornErase, TornProgram, WeakPage, WearOut};
