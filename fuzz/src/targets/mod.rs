//! What is fuzzed.

pub mod chips;
pub mod databases;
pub mod disks;
pub mod files;
pub mod raw;
