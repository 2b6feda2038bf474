//! What trees stand on: the page file with its cache and memory budget, and the node codec.
//!
//! - A [`PageFile`] is a growing set of pages over [`device::Sectors`], each found by its
//!   [`LogicalPage`], read and written through a cache of bounded size, each with a checksum.
//! - A [`PageLog`] is pages of raw flash, programmed one after the other and found by address.
//! - [`Frames`] are what both kinds of pages are held in: found by key, given up in [`lru`] order.
//! - Sorted runs of a [`runs::Space`], over either, are written once and read in units.
//! - A [`node::Codec`] keeps a sorted run of entries in such a page.
//!
//! Invariant: nothing here knows what a tree is; a tree's layout is bytes to the page file, and
//! its root record is bytes to the superblock.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bytes;
mod cache;
mod canary;
mod checksum;
mod error;
mod frames;
mod journal_record;
pub mod lru;
mod memory;
pub mod node;
mod page_file;
mod page_kind;
mod page_log;
mod recovery;
mod reservation;
pub mod runs;
mod shape;
mod update;

#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use error::{Error, Result};
pub use frames::Frames;
pub use memory::{Memory, check_memory};
pub use page_file::{
    FRAMES_LEAST, LongWriter, PageCheck, PageFile, PageFileDescription, PageFileOptions,
    sectors_most,
};
pub use page_log::{PageKind, PageLog, PageLogDescription, PageLogOptions, TREE_KINDS, Tag, Wear};
pub use recovery::{CheckpointId, Durability, Recovery, RecoveryStatistics, Replayed, Savepoint};
pub use reservation::{Demand, Growth, LEVELS_MOST, Reservation};
pub use shape::{EntryShape, Width};
pub use update::{OverflowValue, Update};

use core::fmt;

/// A page of a page file: the address that trees use, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalPage(pub u32);

impl fmt::Display for LogicalPage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "logical page {}", self.0)
    }
}
