//! An embedded, ordered key-value database for flash: keys and values are bytes, in the order of
//! the keys; what is acknowledged survives a power cut; memory stays inside a budget.
//!
//! ```
//! use flashtree::{Database, OpenOptions, Options};
//!
//! # fn main() -> flashtree::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("fruit.db");
//! let fruit = Database::create(&path, &Options::new())?;
//! fruit.put("apple", "red")?;
//! fruit.put("banana", "yellow")?;
//! fruit.sync()?; // From here on both survive a power cut.
//! for entry in fruit.range("a".."c")? {
//!     let (key, value) = entry?;
//!     println!("{}: {}", key.escape_ascii(), value.escape_ascii());
//! }
//! fruit.close()?;
//! let fruit = Database::open(&path, &OpenOptions::new())?;
//! assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
//! # Ok(()) }
//! ```
//!
//! # What it stands on
//! A database is usually in a [file](Database::create), which may imitate a
//! [chip](Options::chip); it can stand on [any device](Database::create_on) that has the trait
//! [`Nand`] or [`Sectors`] as well. Under it is one of the trees of [`index`], by its name;
//! [`copy_to`](Database::copy_to) converts it to another.
//!
//! # What lasts
//! [`Durability`] says what survives a power cut; the default, batch, is all that came before the
//! last [`sync`](Database::sync), and beyond that a beginning of the rest. A [`Batch`] is never
//! half there. A [transaction](Database::write) reads what it writes, is never half there either,
//! and is durable when it returns. A [snapshot](Database::snapshot) stays while others write. A
//! [named checkpoint](Database::checkpoint) can be gone back to. Dropping a database closes it.
//!
//! What is damaged is never taken for data: every page has a checksum, and what can't be read is an
//! [`Error`] that says where. [`check`](Database::check) verifies every page. After a device failed
//! in the middle of an update, nothing more is taken until the database is opened again, and then
//! all is there that was acknowledged under its durability.
//!
//! # Limits
//! - One handle at a time has a database open for writing; the file is locked. Several may read it
//!   while nobody writes, see [`open_read_only`](Database::open_read_only).
//! - Calls of several threads take turns; a `get` does not wait for a merge of `flat-tree`. One
//!   [`Transaction`] is open at a time. A [`Snapshot`] is over when too much was changed since.
//! - A page has 128 bytes to 32 KiB, and a key at most a quarter of one, less some bytes: with the
//!   usual 4 KiB, 1005 bytes.
//! - A value has less than 4 GiB. A batch that is longer than the journal
//!   ([`Options::journal_bytes`]) lasts by a checkpoint; on raw flash it is refused, long values
//!   not counted.
//! - A value is put out of the caller's memory and read into it, by [pieces](Database::get_into)
//!   of any size; beside that, everything stays inside the [budget](Options::memory_total).
//! - How far a file can grow is chosen when it is made: [`Options::capacity`]. It is as long as its
//!   data, with room for what comes while it is open.
//! - At most 64 checkpoints are kept by name, in little memory fewer. While one is kept, what pages
//!   held at each checkpoint since takes room, and the check does not look at it: going back
//!   verifies all of it before anything is changed.
//! - It needs Unix. Until version 1.0 each release reads the format of its own files only, and
//!   refuses others with an error that names both versions.

#![forbid(unsafe_code)]

mod ahead;
mod backend;
mod batch;
mod choice;
mod cursor;
mod database;
mod driver;
pub mod encoding;
mod error;
mod files;
mod health;
mod inside;
mod keyspace;
mod label;
mod lock;
mod long_values;
mod options;
mod range;
mod read_only;
mod readable;
mod snapshot;
mod statistics;
mod sufficing;
mod sync;
#[cfg(test)]
mod threads_tests;
mod together;
mod transaction;
mod turns;
mod view;

pub use batch::Batch;
pub use cursor::Cursor;
pub use database::{Compaction, Database};
pub use error::{Error, Result};
pub use health::Health;
pub use keyspace::{Keyspace, TransactionKeyspace};
pub use options::{MEMORY_TOTAL, OpenOptions, Options};
pub use range::{Entries, Entry, KeyBounds, Range};
pub use readable::Readable;
pub use snapshot::{Snapshot, SnapshotKeyspace};
pub use statistics::{FileSizes, Stats};
pub use transaction::Transaction;

pub use device::{Geometry, Medium, Nand, SectorGeometry, Sectors};
pub use index::{
    CheckpointId, Direction, Durability, EntryShape, KeyRange, Memory, RecoveryStatistics, Resume,
    Savepoint, Value, Width,
};
