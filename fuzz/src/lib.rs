//! Fuzzing on the stable toolchain, inside `cargo test`.
//!
//! - `tests/nodes.rs`: any bytes as a node, real ones and damaged ones, and rows of operations on
//!   two nodes. What was accepted never makes the codec panic; two nodes are two ordered maps.
//! - `tests/disks.rs`: disks with an index (closed, left open, cut in the middle of everything),
//!   damaged in their superblocks, journals, undo logs, nodes, or lists and long values. They give
//!   right data or a typed error.
//! - `tests/separators.rs`: disks whose nodes lead astray, kind by kind. Each walk ends.
//! - `tests/chips.rs`: chips with a database over every translation layer, damaged: the same.
//! - `tests/raw_flash.rs`: chips with a database under every tree on raw flash, damaged: the same.
//! - `tests/files.rs`: plain files and imitated chips with a database, damaged: the same.
//! - `tests/histories.rs`: batches, checkpoints, rollbacks and cuts, under every durability. What
//!   comes back is what an ordered map says.
//!
//! Whatever is done, nothing panics, no opening takes more memory than its budget (by a counting
//! allocator, so that no number from a device sizes an allocation unseen), and none uses a device
//! more than [`OPERATIONS_MOST`] times. What is left of a damaged index is read, changed and read
//! again.
//!
//! # Behind the checksum
//! A flipped bit is caught by a checksum, and the code behind that sees nothing of it. So damage
//! knows the format ([`structure`], [`chip`]: read from FORMAT.md, not shared with the code): it
//! changes numbers where they stand, makes up whole pages, journals and groups of the undo log, and
//! repairs every checksum that covers them, in two cases of three. What comes of such a case is
//! counted as *vouched for*: checksums say that it is right. What the cases reach is counted, too
//! ([`reach`]), and each target fails that misses an error it must see ([`expected`]).
//!
//! # What damage may do
//! - On a disk: nothing but an error, or what stood there since the last checkpoint. If a cut left
//!   a single superblock that tells of the last checkpoint, and damage destroys that, the one
//!   before comes back. If both copies of a header of the undo log are destroyed, what it tells of
//!   is not put back: that looks like a group that a cut had torn.
//! - On a chip: the same, as long as the metadata of the translation layer is whole. Where it is
//!   destroyed and no other page tells it, or the last page of a block is, a layer may take a
//!   sector for what it was earlier, as after a cut; that is counted as *older*.
//!
//! - On raw flash: an error, or a state that the database was in. Where what is newest is
//!   destroyed, that looks like a power cut; that is counted as *older*.
//!
//! # Running
//! Inputs follow from a seed and a number of rounds, never from the time:
//!
//! ```text
//! cargo test -p flashtree-fuzz                                      one round of each, as in CI
//! FLASHTREE_FUZZ_ROUNDS=200 cargo test -p flashtree-fuzz            rounds 0 to 199 of each
//! FLASHTREE_FUZZ_SECONDS=600 cargo test -p flashtree-fuzz journals  ten minutes of one
//! FLASHTREE_FUZZ_SEED=17 cargo test -p flashtree-fuzz journals      round 17 of one
//! ```
//!
//! A failure prints the last form, with the smallest input that was found. So does an input that
//! does not end: see [`runner`].
//!
//! # Why proptest
//! Three ways were tried on the stable toolchain.
//! - **bolero** runs inside `cargo test`, too, but with its default engine inputs are drawn at
//!   random: five bytes to be guessed were not found in two million inputs. Its guided engines need
//!   a program of their own and another toolchain. It would add 40 crates to what proptest does.
//! - **libfuzzer-sys** is guided by coverage even on stable, with the compiler's flags for
//!   instrumentation, and found the five bytes at once. It needs a C++ compiler, one program a
//!   target, a build of everything with these flags, and a corpus that must be kept; and its
//!   mutations of bytes break the checksums here, so that the same structured inputs would have to
//!   be made of them.
//! - **proptest** makes structured inputs, makes failing ones small, follows from a seed, and needs
//!   Rust alone.
//!
//! Here the hard part is no row of magic bytes but a checksum, which damage that knows the format
//! passes and coverage does not; and whether the cases reach what they should is asserted by name.
//! So it is proptest.
//!
//! What every tree and every translation layer of the registries has in common is fuzzed: a new one
//! needs no line here.

#![allow(clippy::expect_used, clippy::panic, reason = "a fuzzer fails by panicking")]

pub mod cell;
pub mod chip;
pub mod damage;
pub mod disk;
pub mod expected;
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
