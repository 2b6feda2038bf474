//! Ordered indexes for flash: one folder a tree, behind one interface.
//!
//! [`registry::TREES`] lists them. Each is made by its [`registry::Entry`] on a
//! [`device::Medium`], and from then on is an [`Index`]. The author of a tree writes a [`Tree`];
//! [`Durable`] makes an index of it.
//!
//! Invariant: no tree knows of another, and nothing here knows what a workload is.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod b_plus;
mod behind;
mod bounds;
mod durable;
mod error;
mod footprint;
mod ipl;
pub mod la_tree;
mod list;
pub mod mu;
pub mod parameters;
mod path_copying;
mod random_keys;
pub mod registry;
mod root_record;
mod traits;
mod use_order;

pub use durable::Durable;
pub use error::{Error, Result};
pub use path_copying::UPDATES_WAITING;
pub use traits::{
    Behind, Cursor, Direction, GENERATIONS_RECLAIMED, INNER_NODES, Index, KeyRange, KeyValue,
    LEAVES, Lookup, NODES_EMPTIED, NODES_MERGED, NODES_SPLIT, Statistics, Tree, Value, read_piece,
};

pub use store::{
    CheckpointId, Durability, EntryShape, LongValue, Memory, NamedCheckpoint, RecoveryStatistics,
    Update, Wear, Width,
};

/// Refuses a key of `found` bytes where nodes take at most `limit`.
fn key_size(found: usize, limit: usize) -> Result<()> {
    if found > limit {
        return Err(Error::KeyTooLong { found: found as u64, limit: limit as u64 });
    }
    Ok(())
}

/// Refuses a key and value that have `found` bytes together where nodes take at most `limit`.
fn entry_size(found: usize, limit: usize) -> Result<()> {
    if found > limit {
        return Err(Error::EntryTooLong { found: found as u64, limit: limit as u64 });
    }
    Ok(())
}
