//! The laboratory: real and generated workloads, run on exact models of flash devices, measured.

#![forbid(unsafe_code)]

mod outcome;
mod plan;

pub use outcome::{Comparison, Latency, LeftOut, Measured, MemoryUse, Row, Verified};
pub use plan::{Durability, MemoryLimit, Phase, Plan, Unwatched, Verify, Watcher};
