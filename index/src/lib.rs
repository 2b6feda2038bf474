//! Ordered indexes for flash: one folder a tree, behind one interface.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
pub mod parameters;
pub mod registry;
mod traits;

pub use error::{Error, Result};
pub use traits::{Cursor, Direction, Index, KeyRange, KeyValue, Lookup, Statistics, Tree};

pub use store::{EntryShape, Memory, Update, Width};
