//! The laboratory: real and generated workloads, run on exact models of flash devices, measured.

#![forbid(unsafe_code)]

mod candidate;
mod compare;
mod error;
mod expected;
mod in_file;
pub mod input;
mod model;
mod outcome;
mod plan;
mod recorder;
mod run;
mod stopwatch;
#[cfg(test)]
mod tests;
mod workload;

pub use compare::compare;
pub use error::{Error, InputFault, Misfit, Result, Thing};
pub use index::Durability;
pub use outcome::{Clock, Comparison, Latency, LeftOut, Measured, MemoryUse, Row, Verified};
pub use plan::{DEFAULT_CHIP, MemoryLimit, Phase, Plan, Unwatched, Verify, Watcher};
pub use workload::{
    Operation, Operations, Preload, WORKLOADS, Workload, WorkloadEntry, WorkloadOptions,
    WorkloadParameter,
};
