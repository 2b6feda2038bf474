//! The test suites that every layer and every tree passes.
//!
//! One suite a trait: whatever implements it is handed to the suite, which plays random histories
//! from a seed and compares every answer with a plain model. A failure prints the seed and the
//! command that plays it again. This crate is for tests only.

#![allow(clippy::expect_used, clippy::panic, reason = "a suite fails by panicking")]

mod cores;
pub mod nand;
pub mod power_cuts;
mod ram_disk;
mod sample;
mod sector_model;
pub mod sectors;
pub mod torture;
pub mod tree;

pub use cores::on_all_cores;
pub use ram_disk::RamDisk;
pub use sample::{sample, share};
