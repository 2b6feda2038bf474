//! Simulated devices: a NAND chip that enforces every rule of its kind, and disks, flash and
//! hard; each charges what an operation would cost on the real one and fails as real ones do, from
//! a seed.
//!
//! Invariant: an operation that a rule forbids changes nothing, costs nothing and is not booked;
//! an operation that happens is booked once, under the cause that its caller passed.

#![forbid(unsafe_code)]

mod block;
mod disk;
mod faults;
mod nand;

pub use disk::{DiskFaultPlan, HardDisk, SimulatedDisk, Trimmed, Unflushed};
pub use faults::{
    Cut, Failure, FaultKind, FaultLog, FaultPlan, Flips, Growth, TornErase, TornProgram, WeakPage,
    WearOut,
};
pub use nand::SimulatedNand;
