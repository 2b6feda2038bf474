//! What the trees promise that copy their paths, beside what every tree does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../tests/heap/chip.rs"]
mod chip;
#[path = "../../../tests/heap/mod.rs"]
mod heap;
#[path = "../../../tests/raw_flash_cuts/mod.rs"]
mod raw_flash_cuts;

mod faults;
mod full;
mod memory;
mod operation_buffer;
mod speed;
mod suite;
mod waiting_updates;
