//! The interface of ordered indexes for flash; it names no tree.
//!
//! The author of a tree writes a [`Tree`]; [`Durable`] makes an [`Index`] of it, which users call.
//! An [`TreeDescriptor`] tells what there is to know about a tree without making one.
//!
//! Invariant: nothing here knows a tree, nor what a workload is.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bounds;
mod describe;
mod descriptor;
mod durable;
mod error;
mod footprint;
#[allow(clippy::module_inception, reason = "the crate is named after its interface")]
mod index;
mod model;
mod options;
pub mod parameters;
pub mod random_keys;
mod read;
pub mod root_record;
mod tree;

pub use describe::{Description, describe, describe_chip};
pub use descriptor::{DeletePolicy, Open, TreeDescriptor};
pub use durable::Durable;
pub use error::{Error, Result};
pub use footprint::{Footprint, MediumShape, entries_of_a_block, raw_flash};
pub use index::Index;
pub use model::{Prediction, Profile};
pub use options::Options;
pub use read::{
    Cursor, Direction, GENERATIONS_RECLAIMED, INNER_NODES, KeyRange, KeyValue, LEAVES, Lookup,
    MERGES_BROKEN_OFF, Meanwhile, NODES_EMPTIED, NODES_MERGED, NODES_SPLIT, Read, Resume,
    Statistics, UPDATES_WAITING, Value, read_piece, read_piece_of,
};
pub use tree::Tree;

pub use store::{
    CheckpointId, Durability, EntryShape, Memory, OverflowValue, RecoveryStatistics, Savepoint,
    Update, Wear, Width,
};
