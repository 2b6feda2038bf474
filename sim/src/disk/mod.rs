//! Simulated disks.

mod drive;
mod faulty;
mod hard;
mod plan;
mod simulated;
mod store;
mod timing;
mod unflushed;

pub use hard::HardDisk;
pub use plan::{DiskFaultPlan, Trimmed, Unflushed};
pub use simulated::SimulatedDisk;
