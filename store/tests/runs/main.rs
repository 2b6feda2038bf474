//! Sorted runs hold what was written to them, on every medium and in units of every size, and tell
//! damage.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod damage;
mod lookups;
mod media;
mod memtable;
