//! Reading, which trees and indexes share: ranges, cursors, values, figures.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;

use device::Meter;
use store::Memory;

use crate::Result;

/// The name of the figure that counts nodes split since the index was opened.
pub const NODES_SPLIT: &str = "nodes split";

/// The name of the figure that counts the updates that wait in memory.
pub const UPDATES_WAITING: &str = "updates waiting";

/// The name of the figure that counts nodes merged with a neighbour since the index was opened.
pub const NODES_MERGED: &str = "nodes merged";

/// The name of the figure that counts nodes freed since the index was opened because they were
/// empty.
pub const NODES_EMPTIED: &str = "nodes emptied";

/// The name of the figure that counts how often a whole generation of pages was reclaimed since the
/// index was opened.
pub const GENERATIONS_RECLAIMED: &str = "generations reclaimed";

/// The figure that tells how many merges of runs were broken off since the index was opened.
pub const MERGES_BROKEN_OFF: &str = "merges broken off";

/// The name of the figure that counts leaves.
pub const LEAVES: &str = "leaves";

/// The name of the figure that counts inner nodes.
pub const INNER_NODES: &str = "inner nodes";

/// Which way a range is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key to the highest.
    #[default]
    Ascending,
    /// From the highest key to the lowest.
    Descending,
}

/// A range of keys and the direction in which to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'k> {
    /// The lower bound.
    pub from: Bound<&'k [u8]>,
    /// The upper bound.
    pub to: Bound<&'k [u8]>,
    /// Which way.
    pub direction: Direction,
}

impl KeyRange<'_> {
    /// All keys, ascending.
    pub const ALL: KeyRange<'static> =
        KeyRange { from: Bound::Unbounded, to: Bound::Unbounded, direction: Direction::Ascending };

    /// The same range in the other direction.
    #[must_use]
    pub const fn reversed(mut self) -> Self {
        self.direction = match self.direction {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        };
        self
    }
}

/// The value of the entry at which a cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'c> {
    /// The whole value.
    Inline(&'c [u8]),
    /// The length of a value that is too long to be returned whole. [`Cursor::read_value`] reads it
    /// in pieces.
    Long(u32),
}

impl<'c> Value<'c> {
    /// The value's length in bytes.
    #[must_use]
    pub const fn len(&self) -> u32 {
        match self {
            Value::Inline(bytes) => bytes.len() as u32,
            Value::Long(bytes) => *bytes,
        }
    }

    /// True if the value has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole value, unless it is a long one.
    #[must_use]
    pub const fn whole(&self) -> Option<&'c [u8]> {
        match self {
            Value::Inline(bytes) => Some(bytes),
            Value::Long(_) => None,
        }
    }
}

/// What looks up keys.
pub trait Lookup {
    /// As [`Read::get`].
    ///
    /// # Errors
    /// As [`Read::get`].
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>>;

    /// As [`Read::prefetch`].
    ///
    /// # Errors
    /// As [`Read::prefetch`].
    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()>;
}

impl<R: Read + ?Sized> Lookup for &mut R {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        (**self).get(key, offset, into)
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        (**self).prefetch(keys)
    }
}

/// Who looks up keys while an index works on something else.
pub type Meanwhile<'m, 'c> = &'m mut (dyn FnMut(&mut dyn Lookup) + 'c);

/// Copies the piece of `value` from byte `offset` on into `into`, as far as both reach; returns
/// the whole length of the value, as [`Cursor::read_value`] and [`Read::get`] do.
pub fn read_piece(value: &[u8], offset: u32, into: &mut [u8]) -> u32 {
    if let Some(wanted) = value.get(offset as usize..) {
        let length = wanted.len().min(into.len());
        into[..length].copy_from_slice(&wanted[..length]);
    }
    value.len() as u32
}

/// An entry: its key and its value.
pub type KeyValue<'c> = (&'c [u8], Value<'c>);

/// Entries in the order of a range.
pub trait Cursor {
    /// The next entry, or `None` after the last one. After the end or an error it stays `None`.
    ///
    /// # Errors
    /// The device failed, or a page that was read is damaged.
    fn next(&mut self) -> Result<Option<KeyValue<'_>>>;

    /// Reads the value of the entry that [`next`](Cursor::next) returned last, of whichever kind
    /// it is, from byte `offset` on into `into`, as far as both reach; returns the whole length of
    /// the value.
    ///
    /// # Errors
    /// There is no such entry: `next` was not called yet, or it returned none. The device failed,
    /// or a page that was read is damaged.
    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32>;
}

/// Reads a piece of the value at which `sorted` stands, which should have `bytes` bytes.
///
/// # Errors
/// It has another length, or the device failed.
pub fn read_piece_of(
    sorted: &mut dyn Cursor,
    bytes: u32,
    offset: u32,
    into: &mut [u8],
) -> Result<()> {
    let found = sorted.read_value(offset, into)?;
    if found == bytes {
        return Ok(());
    }
    let (bytes, limit) = (u64::from(found), u64::from(bytes));
    Err(store::Error::LongValuePieces { bytes, limit }.into())
}

/// The state of an index, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes on the longest path from the root to a leaf; 0 if there is no tree.
    pub height: u32,
    /// Pages of the medium that hold live data. A node of several pages counts all of them; nodes
    /// that share a page count it once.
    pub live_pages: u64,
    /// Bytes of memory in use, by purpose.
    pub memory: Memory,
    /// The most that cache, buffers and tables took together so far, in bytes.
    pub memory_peak: u64,
}

/// Where reading can continue after a damaged page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// At this key, the lowest that a later page may hold.
    From(Vec<u8>),
    /// Nowhere: there is no later page.
    End,
    /// The tree does not know.
    Unknown,
}

/// Reading, which trees and indexes share.
pub trait Read: Send {
    /// Reads the value of `key` from byte `offset` on into `into`, as far as both reach; returns
    /// the whole length of the value, or `None` if the key is absent.
    ///
    /// # Errors
    /// The key can't be in this index, the device failed, or a page is damaged.
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>>;

    /// Reads what the next lookups of `keys` will read, as much of it at once as has room in the
    /// cache. It is a hint: what can't be read is left to the lookups.
    ///
    /// # Errors
    /// A changed page had to leave the cache, and its write failed.
    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        let _ = keys;
        Ok(())
    }

    /// The entries of `range`, in its direction.
    ///
    /// # Errors
    /// As [`get`](Read::get).
    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>>;

    /// Verifies every invariant of the index, and reports each violation to `finding`.
    ///
    /// # Errors
    /// The device failed. Damage is a finding, not an error.
    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()>;

    /// Where reading can continue after the page that holds `key` or would hold it. If that page
    /// can't be reached, it is where reading continues after the damaged page on the way to it.
    /// `None` stands for the lowest key. Damage is no error. Where nothing is damaged, an index may
    /// answer that it does not know.
    ///
    /// # Errors
    /// The key can't be in this index, or the device failed.
    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        let _ = key;
        Ok(Resume::Unknown)
    }

    /// The state of the index, in numbers.
    fn statistics(&self) -> Statistics;

    /// Reports figures of this kind of index by name: what its paper measures beside times.
    /// [`NODES_SPLIT`] and [`NODES_MERGED`] are among them where pages do not show it,
    /// [`NODES_EMPTIED`] and [`GENERATIONS_RECLAIMED`] where they apply.
    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let _ = tell;
    }

    /// The meter of the device below, if it has one.
    fn meter(&self) -> Option<&Meter>;
}
