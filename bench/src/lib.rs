//! flashtree beside other embedded stores: the same work, in the same memory. `bench/run` runs it.

pub mod engine;
mod engines;
pub mod machine;
pub mod measure;
pub mod probe;
pub mod system;
pub mod tables;
pub mod workload;

/// What comes of a step, or why it failed.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
