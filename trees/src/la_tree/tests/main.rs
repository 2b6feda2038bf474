//! What the lazy-adaptive tree promises beside what every tree does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../../../tests/heap/chip.rs"]
mod chip;
#[path = "../../../tests/heap/mod.rs"]
mod heap;
#[path = "../../../tests/raw_flash_cuts/mod.rs"]
mod raw_flash_cuts;

mod damage;
mod fill;
mod full;
mod full_named;
mod full_named_disk;
mod full_replays;
mod memories;
mod memory;
mod ranges_in_pieces;
mod reclamation;
mod refill;
mod replay_of_long_values;
mod spill;
mod suite;
mod way_back;
