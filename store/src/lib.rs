//! What trees stand on: the page file with its cache and memory budget, and the node codec.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod memory;
mod recovery;
mod shape;
mod update;

pub use error::{Error, Result};
pub use memory::Memory;
pub use recovery::Recovery;
pub use shape::{EntryShape, Width};
pub use update::Update;

use core::fmt;

/// A page of a page file: the address that trees use, counted in nodes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalPage(pub u32);

impl fmt::Display for LogicalPage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "logical page {}", self.0)
    }
}
