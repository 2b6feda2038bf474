//! Reading, which trees and indexes share: ranges, cursors, values, figures.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;

use device::Meter;
use store::Memory;

use crate::Result;

/// The figure of an index that tells how many nodes it split since it was opened.
pub const NODES_SPLIT: &str = "nodes split";

/// The figure of an index in whose memory updates wait: how many do at the moment.
pub const UPDATES_WAITING: &str = "updates waiting";

/// The figure of an index that tells how many nodes it merged with a neighbour since it was opened.
pub const NODES_MERGED: &str = "nodes merged";

/// The figure of an index whose nodes go when nothing is left in them: how many went since it was
/// opened.
pub const NODES_EMPTIED: &str = "nodes emptied";

/// The figure of an index that reclaims its pages by generations, all of them at once: how often
/// it did since it was opened.
pub const GENERATIONS_RECLAIMED: &str = "generations reclaimed";

/// The figures of an index that tell how many leaves it has at the moment, and how many nodes above
/// them.
pub const LEAVES: &str = "leaves";

/// See [`LEAVES`].
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

    /// The same keys, the other way round.
    #[must_use]
    pub const fn reversed(mut self) -> Self {
        self.direction = match self.direction {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        };
        self
    }
}

/// The value of an entry that a cursor came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'c> {
    /// All its bytes.
    Inline(&'c [u8]),
    /// A value of so many bytes, too long to be handed out at once: [`Cursor::read_value`] reads
    /// it in pieces.
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

    /// All its bytes, unless it is a long one.
    #[must_use]
    pub const fn whole(&self) -> Option<&'c [u8]> {
        match self {
            Value::Inline(bytes) => Some(bytes),
            Value::Long(_) => None,
        }
    }
}

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

/// Entries one after the other.
pub trait Cursor {
    /// The next entry, or `None` after the last; then and after an error always `None`.
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

/// How an index stands at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes on a longest way from the root to a leaf; 0 where there is no tree.
    pub height: u32,
    /// Pages of the medium that hold live data (a node of several pages counts them all; nodes
    /// that share a page count it once).
    pub live_pages: u64,
    /// Bytes of memory in use, by purpose.
    pub memory: Memory,
    /// The most that cache, buffers and tables took together so far, in bytes.
    pub memory_peak: u64,
}

/// Where reading can go on behind a key whose page is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// At this key, the lowest that may stand in a later page.
    From(Vec<u8>),
    /// Nowhere: no later page can be reached.
    End,
    /// The tree can't tell.
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

    /// The entries of `range`, in its direction.
    ///
    /// # Errors
    /// As [`get`](Read::get).
    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>>;

    /// Verifies every invariant of the index, and tells each violation to `finding`.
    ///
    /// # Errors
    /// The device failed. Damage is a finding, not an error.
    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()>;

    /// Where reading goes on behind the page where `key` is or belongs, or, if that can't be
    /// reached, behind the damaged page on the way to it; `None` stands for the lowest key. So
    /// what is around damage can be saved. What is damaged is no error.
    ///
    /// # Errors
    /// The key can't be in this index, or the device failed.
    fn behind(&mut self, key: Option<&[u8]>) -> Result<Behind> {
        let _ = key;
        Ok(Behind::Unknown)
    }

    /// How the index stands.
    fn statistics(&self) -> Statistics;

    /// Tells figures of the index's own, by name: what its paper measures beside times. Where pages
    /// do not show it, [`NODES_SPLIT`] and [`NODES_MERGED`] are among them; and where they apply,
    /// [`NODES_EMPTIED`] and [`GENERATIONS_RECLAIMED`].
    fn figures(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let _ = tell;
    }

    /// The books of the device below, if it keeps any.
    fn meter(&self) -> Option<&Meter>;
}
