//! [`Tree`]: what the author of a tree writes.

use alloc::vec::Vec;

use store::Update;

use crate::Result;
use crate::read::{Cursor, Read};

/// What the author of a tree writes. There is no journal in it and no durability:
/// [`Durable`](crate::Durable) adds both.
pub trait Tree: Read {
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

    /// A checkpoint was made, between two batches or inside one: what only the one before it needed
    /// is free.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn checkpointed(&mut self) -> Result<()> {
        Ok(())
    }

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
    fn admit_savepoint(&mut self) -> Result<()> {
        Ok(())
    }

    /// Protects from reclamation what the named checkpoints reach: called after an opening, after
    /// one was made, and after one was forgotten. Where the medium keeps the way back by itself,
    /// there is nothing to do.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn pin_savepoints(&mut self) -> Result<()> {
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
