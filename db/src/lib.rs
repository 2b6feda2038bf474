//! An embedded, ordered key-value database for flash: keys and values are bytes, in the order of
//! the keys; what is acknowledged survives a power cut; memory stays inside a budget.
//!
//! ```
//! use flashtree::{Batch, Database, OpenOptions, Options};
//!
//! # fn main() -> flashtree::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("fruit.db");
//! let mut fruit = Database::create(&path, &Options::new())?;
//! fruit.put("apple", "red")?;
//! fruit.put("banana", "yellow")?;
//! fruit.write(Batch::new().put("cherry", "red").delete("apple"))?;
//! fruit.sync()?; // From here on it survives a power cut.
//!
//! assert_eq!(fruit.get("banana")?.as_deref(), Some(&b"yellow"[..]));
//! for entry in fruit.range("a".."c")? {
//!     let (key, value) = entry?;
//!     println!("{}: {}", key.escape_ascii(), value.escape_ascii());
//! }
//! fruit.close()?;
//!
//! let mut fruit = Database::open(&path, &OpenOptions::new())?;
//! assert!(!fruit.contains("apple")?);
//! # Ok(()) }
//! ```
//!
//! # What it stands on
//! A database is usually in a [file](Database::create), which may imitate a
//! [chip](Options::chip); it can stand on [any device](Database::create_on) that has the trait
//! [`Nand`] or [`Sectors`] as well. Under it is one of the trees of [`index`], by its name.
//!
//! # What lasts
//! [`Durability`] says what survives a power cut; the default, batch, is all that came before the
//! last [`sync`](Database::sync), and beyond that a beginning of the rest. A [`Batch`] is never
//! half there. A [named checkpoint](Database::checkpoint) can be gone back to.
//!
//! # What it does not have
//! One handle at a time has a database open for writing, and there are no transactions that read:
//! a batch is decided before it is written.

#![forbid(unsafe_code)]

mod batch;
mod copying;
mod database;
pub mod encoding;
mod error;
mod files;
mod ground;
mod health;
mod label;
mod options;
mod range;
mod read_only;
mod spec;
mod stand_in;
mod statistics;

pub use batch::Batch;
pub use copying::Compaction;
pub use database::Database;
pub use error::{Error, Result};
pub use health::Health;
pub use options::{MEMORY_TOTAL, OpenOptions, Options};
pub use range::{Entries, Entry, Range};
pub use statistics::{FileSizes, Stats};

pub use device::{Geometry, Medium, Nand, SectorGeometry, Sectors};
pub use index::{
    CheckpointId, Direction, Durability, EntryShape, KeyRange, Memory, NamedCheckpoint,
    RecoveryStatistics, Value, Width,
};
