//! Fuzzing on the stable toolchain, inside `cargo test`.
//!
//! Four targets, each a file in `tests`:
//!
//! | target | inputs | what must hold |
//! |---|---|---|
//! | `nodes` | any bytes as a node; rows of operations on two nodes | a node that was accepted never makes the codec panic; two nodes are two ordered maps |
//! | `images` | disks with an index (closed, left open, cut in the middle of everything), damaged | without new checksums: right data or a typed error; with them: no panic, no endless loop, bounded memory |
//! | `chips` | chips under every translation layer, damaged | the same |
//! | `histories` | batches, checkpoints, rollbacks, cuts, under every durability | what comes back is what an ordered map says |
//!
//! Inputs come from `proptest`, which makes a failing one small. They follow from a seed and a
//! number of rounds, never from the time:
//!
//! ```text
//! cargo test -p flashtree-fuzz                                  one round of each, as in CI
//! FLASHTREE_FUZZ_ROUNDS=200 cargo test -p flashtree-fuzz        a long run: rounds 0 to 199
//! FLASHTREE_FUZZ_SEED=17 cargo test -p flashtree-fuzz images    round 17 of one target
//! ```
//!
//! A failure prints the last form. A round that does not end is reported, too: see [`runner`].
//!
//! What every tree and every translation layer of the registries has in common is fuzzed: a new one
//! needs no line here.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzzer fails by panicking")]

pub mod cell;
pub mod chip;
pub mod damage;
pub mod disk;
pub mod history;
pub mod image;
mod made;
pub mod memory;
pub mod outcome;
pub mod play;
pub mod reach;
pub mod reading;
pub mod runner;
pub mod structure;
pub mod targets;

/// Operations of a device after which a use of it counts as endless.
pub const OPERATIONS_MOST: u64 = 400_000;
