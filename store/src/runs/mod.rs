//! Sorted runs: entries in the order of their keys, written once, read in units, given back whole.
//!
//! A [`Run`] is units of one size, one behind the other in extents of a [`Space`], and a footer. A
//! [`RunWriter`] writes it in large requests; a [`Merge`] makes it of other runs, a step at a time;
//! a [`UnitReader`] answers lookups, a [`RunCursor`] and [`Merged`] go through entries both ways.
//! Updates wait in a [`Memtable`]. A [`Manifest`] says which runs there are, and changes by deltas
//! in the journal; a tree reserves room in its [`Space`] before it promises anything.
//!
//! # Invariants
//! - Nothing of a run is ever overwritten: its room is free again only when no manifest that an
//!   opening may come to names it.
//! - A unit is found by run and number, and its checksum covers both: what stands elsewhere fails.
//! - No run is written in a replay: its room might be that of a run whose delta is still to come.

mod buffer;
mod cursor;
mod entry;
mod fences;
mod manifest;
mod memtable;
mod merge;
mod merged;
mod reader;
mod run;
mod space;
mod unit;
mod window;
mod writer;

pub use cursor::{CursorOptions, RunCursor};
pub use entry::{Entry, Kind, Kinds};
pub use fences::Fences;
pub use manifest::{DELTA_HEAD_BYTES, Delta, Manifest};
pub use memtable::{Memtable, MemtableCursor, Which};
pub use merge::{Hooks, Merge, MergeCounts, MergeOptions, Verdict};
pub use merged::{Merged, Source, Way};
pub use reader::UnitReader;
pub use run::{Run, RunId};
pub use space::{Extent, FileSpace, LogSpace, PageRequest, Reserved, Space};
pub use unit::{Builder as UnitBuilder, GapBuilder, GapShape, Seed as UnitSeed, Unit, UnitShape};
pub use writer::{Lead, NoHooks, RunWriter, UnitHooks, WriterOptions};
