//! The traits: [`Tree`] is what the author of a tree writes, [`Index`] is what users call.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;

use device::Meter;
use store::{CheckpointId, Memory, NamedCheckpoint, RecoveryStatistics, Update, Wear};

use crate::Result;

/// The figure of an index that tells how many nodes it split since it was opened.
pub const NODES_SPLIT: &str = "nodes split";

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
    Whole(&'c [u8]),
    /// A value of so many bytes, too long to be handed out at once: [`Cursor::read_value`] reads
    /// it in pieces.
    Long(u32),
}

impl<'c> Value<'c> {
    /// The value's length in bytes.
    #[must_use]
    pub const fn len(&self) -> u32 {
        match self {
            Value::Whole(bytes) => bytes.len() as u32,
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
            Value::Whole(bytes) => Some(bytes),
            Value::Long(_) => None,
        }
    }
}

/// Copies the piece of `value` from byte `offset` on into `into`, as far as both reach; returns
/// the whole length of the value, as [`Cursor::read_value`] and [`Lookup::get`] do.
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
pub(crate) fn read_piece_of(
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
pub trait Lookup: Send {
    /// Reads the value of `key` from byte `offset` on into `into`, as far as both reach; returns
    /// the whole length of the value, or `None` if the key is absent.
    ///
    /// # Errors
    /// The key can't be in this index, the device failed, or a page is damaged.
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>>;

    /// The entries of `range`, in its direction.
    ///
    /// # Errors
    /// As [`get`](Lookup::get).
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

/// What the author of a tree writes. There is no journal in it and no durability:
/// [`Durable`](crate::Durable) adds both.
pub trait Tree: Lookup {
    /// Refuses the updates of `batch` that can't be taken, before anything is changed: keys or
    /// values of a wrong length, and a device without room for the worst case.
    ///
    /// # Errors
    /// What would go wrong.
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()>;

    /// Makes one admitted change, which waits for nothing then.
    ///
    /// # Errors
    /// The device failed, or a page is damaged.
    fn apply(&mut self, update: &Update<'_>) -> Result<()>;

    /// Makes a change again that the tree made by itself, and recorded as a delta: see
    /// [`Recovery::delta`](store::Recovery::delta).
    ///
    /// # Errors
    /// It is none of this tree's, or as [`apply`](Tree::apply).
    fn apply_delta(&mut self, delta: &[u8]) -> Result<()> {
        let _ = delta;
        let what = "its journal holds a change that its tree never makes";
        Err(store::Error::NotAnIndex { is_ours: true, what }.into())
    }

    /// Bytes of the longest delta that the tree records.
    fn delta_bytes_most(&self) -> usize {
        0
    }

    /// Makes one admitted change, or a step towards it; true if it is made. Between two steps a
    /// checkpoint may fall, if [`wants_room`](Tree::wants_room) asks for one.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.apply(update).map(|()| true)
    }

    /// True if something waits in memory only that no root record carries.
    fn has_waiting(&self) -> bool {
        false
    }

    /// Writes some of what waits so. Called until nothing does, before a checkpoint after which the
    /// journal begins anew.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// True if the next step may find too little room, unless a checkpoint is made or
    /// [`reclaim`](Tree::reclaim) makes some: asked before each step where there is a journal.
    fn wants_room(&self) -> bool {
        false
    }

    /// Moves what lives, so that the next checkpoint makes room.
    ///
    /// # Errors
    /// Nothing can be gained, or as [`apply`](Tree::apply).
    fn reclaim(&mut self) -> Result<()> {
        Ok(())
    }

    /// A checkpoint was made that holds everything: a replay begins with the tree as it is.
    fn rebase(&mut self) {}

    /// True if the next checkpoint gives room back that making room for an update left behind.
    fn waits_for_checkpoint(&self) -> bool {
        false
    }

    /// True if the last [`apply`](Tree::apply) was made, or failed before it changed anything.
    fn is_whole(&self) -> bool;

    /// Fills the empty tree with `sorted` entries, nodes to `fill_percent` of their room; returns
    /// how many there were.
    ///
    /// # Errors
    /// The tree is not empty, the entries are not in order, or as [`apply`](Tree::apply).
    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64>;

    /// Does owed work on about `pages` pages; returns whether more is owed.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn maintain(&mut self, pages: u32) -> Result<bool>;

    /// True if nothing is pending that [`drain`](Tree::drain) would settle.
    fn is_settled(&self) -> bool {
        true
    }

    /// Settles what is pending, as far as the way back to the last checkpoint has room: so pages
    /// that were held for the worst case get free. Returns whether anything could be settled.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn drain(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Writes back all that is only in memory, and returns the root record from which the tree
    /// can be opened.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn settle(&mut self) -> Result<Vec<u8>>;

    /// Becomes the tree that `root`, a root record of this tree, describes; all that is only in
    /// memory is gone.
    ///
    /// # Errors
    /// The record is damaged.
    fn restore(&mut self, root: &[u8]) -> Result<()>;

    /// Refuses one more named checkpoint, with nothing changed, if what it would keep left no room
    /// to forget it again; called before one is made.
    ///
    /// # Errors
    /// There is no room.
    fn admit_named(&mut self) -> Result<()> {
        Ok(())
    }

    /// Protects from reclamation what the named checkpoints reach: called after an opening, after
    /// one was made, and after one was forgotten. Where the medium keeps the way back by itself,
    /// there is nothing to do.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn keep_named(&mut self) -> Result<()> {
        Ok(())
    }

    /// The most bytes that a key and its value have together in a node; longer values stand
    /// outside of it.
    fn entry_bytes_most(&self) -> usize;

    /// Pages that `batch` may change in the worst case, new ones included.
    fn pages_changed(&self, batch: &[Update<'_>]) -> u32;

    /// True if [`settle`](Tree::settle) may come between any two updates of a batch, or of a
    /// replay: what was admitted has room whenever checkpoints are made.
    fn settles_within(&self) -> bool {
        false
    }

    /// The recovery mechanism that the tree stands on.
    fn recovery(&self) -> &dyn store::Recovery;

    /// The recovery mechanism that the tree stands on, to be used.
    fn recovery_mut(&mut self) -> &mut dyn store::Recovery;
}

/// What users call: an ordered index with batches and durability.
pub trait Index: Lookup {
    /// Makes all changes of `batch`, or none if it is refused.
    ///
    /// # Errors
    /// The batch was refused (nothing changed), or the device failed.
    fn update(&mut self, batch: &[Update<'_>]) -> Result<()>;

    /// Fills the empty index with `sorted` entries, nodes to `fill_percent` of their room; returns
    /// how many there were.
    ///
    /// # Errors
    /// The index is not empty, the entries are not in order, or the device failed.
    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64>;

    /// Makes every update that returned durable: see [`Durability`](store::Durability).
    ///
    /// # Errors
    /// The device failed.
    fn sync(&mut self) -> Result<()>;

    /// Makes the present state the one to come back to; with a `name`, it is kept until it is
    /// forgotten.
    ///
    /// # Errors
    /// The name is taken or impossible, there is no room, or the device failed.
    fn checkpoint(&mut self, name: Option<&str>) -> Result<CheckpointId>;

    /// The checkpoints that are kept, oldest first.
    fn checkpoints(&self) -> &[NamedCheckpoint];

    /// Goes back to the checkpoint called `name`; all that came after it is gone, later
    /// checkpoints included. On sectors the list of checkpoints comes back, too: what was forgotten
    /// since is kept again. On raw flash what was forgotten is gone.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    fn roll_back(&mut self, name: &str) -> Result<()>;

    /// Keeps the checkpoint called `name` no longer.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    fn forget(&mut self, name: &str) -> Result<()>;

    /// What stands on the device for recovery.
    fn recovery(&self) -> RecoveryStatistics;

    /// How worn the chip is, for an index on raw flash.
    fn wear(&self) -> Option<Wear> {
        None
    }

    /// The most bytes that a key and its value have together in a node: see
    /// [`Tree::entry_bytes_most`].
    fn entry_bytes_most(&self) -> usize;

    /// Writes back all that is only in memory and leaves the device closed: it can be opened
    /// again, until the next update.
    ///
    /// # Errors
    /// The device failed.
    fn close(&mut self) -> Result<()>;
}
