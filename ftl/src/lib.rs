//! Translation layers: a disk of sectors, rewritten in place, out of raw NAND.
//!
//! A translation layer implements [`device::Sectors`] over any [`device::Nand`]. Each is one
//! folder or file here and one line in [`FTLS`].
//!
//! Invariant: a layer trusts nothing that a power cut may have torn. What the contract of
//! [`device::Nand`] leaves open after a cut is checked, or avoided, when a disk is opened.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod block_map;
mod blocks;
mod bytes;
mod checksum;
mod erase;
mod fast;
mod hybrid;
mod options;
mod page_map;
mod policies;
mod reading;
mod registry;
mod spare;
mod statistics;
mod wear;

pub use block_map::BlockMap;
pub use fast::Fast;
pub use options::{BadOption, Options, Parameter};
pub use page_map::{Dac, PageMap};
pub use policies::{Levelling, Victim};
pub use registry::{Entry, FTLS, Layer, Open, find};
pub use statistics::{Erases, Statistics};
