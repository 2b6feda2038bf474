//! [`Tree`]: what the author of a tree writes.

use alloc::vec::Vec;

use store::Update;

use crate::Result;
use crate::read::{Cursor, Meanwhile, Read};

/// What the author of a tree writes. There is no journal in it and no durability:
/// [`Durable`](crate::Durable) adds both.
pub trait Tree: Read {
    /// Refuses a batch that can't be made, before anything is changed: because of the length of a
    /// key or value, or because the device may have too little room for it.
    ///
    /// # Errors
    /// The reason.
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()>;

    /// Makes one admitted change completely.
    ///
    /// # Errors
    /// The device failed, or a page is damaged.
    fn apply(&mut self, update: &Update<'_>) -> Result<()>;

    /// Repeats a change that the tree made by itself and recorded as a delta: see
    /// [`Recovery::delta`](store::Recovery::delta).
    ///
    /// # Errors
    /// The delta is not one of this tree, or as [`apply`](Tree::apply).
    fn apply_delta(&mut self, delta: &[u8]) -> Result<()> {
        let _ = delta;
        let what = "its journal holds a change that its tree never makes";
        Err(store::Error::NotAnIndex { is_ours: true, what }.into())
    }

    /// Bytes of the longest delta that the tree records.
    fn delta_bytes_most(&self) -> usize {
        0
    }

    /// Makes one admitted change, or a step towards it; returns true once it is made. A checkpoint
    /// may fall between two steps, if [`wants_room`](Tree::wants_room) asks for one.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.apply(update).map(|()| true)
    }

    /// True if updates wait in memory that no root record carries.
    fn has_waiting(&self) -> bool {
        false
    }

    /// True if those that wait are to be written before an update comes that takes no steps, and so
    /// must not have to wait for room.
    fn wants_flush(&self) -> bool {
        false
    }

    /// Writes some of the updates that wait. It is called until none is left, before a checkpoint
    /// that empties the journal.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// True if the next step may find too little room without a checkpoint or a
    /// [`reclaim`](Tree::reclaim). It is asked before each step where there is a journal.
    fn wants_room(&self) -> bool {
        false
    }

    /// Moves live data, so that the next checkpoint makes room.
    ///
    /// # Errors
    /// Nothing can be gained, or as [`apply`](Tree::apply).
    fn reclaim(&mut self) -> Result<()> {
        Ok(())
    }

    /// True if there is to be a checkpoint before `batch`: it would not wait in memory beside what
    /// waits, and a checkpoint in its midst would leave the journal as it is.
    fn wants_checkpoint(&self, batch: &[Update<'_>]) -> bool {
        let _ = batch;
        false
    }

    /// Pages that what was let in may still allocate behind a checkpoint, if the file may get
    /// shorter there while it is in use, but for these.
    fn pages_promised(&self) -> Option<u64> {
        None
    }

    /// Called after a checkpoint that holds everything. A replay would begin with the tree as it is
    /// now.
    fn rebase(&mut self) {}

    /// A checkpoint was made, between two batches or inside one: what only the one before it needed
    /// is free.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn checkpointed(&mut self) -> Result<()> {
        Ok(())
    }

    /// The checkpoint of a closing was just made, and names all that is in use: room may be given
    /// back to the system that only what comes would need.
    ///
    /// # Errors
    /// The device failed.
    fn closed(&mut self) -> Result<()> {
        Ok(())
    }

    /// True if the next checkpoint frees pages that were given up while room was made for an
    /// update.
    fn waits_for_checkpoint(&self) -> bool {
        false
    }

    /// True if the last [`apply`](Tree::apply) failed in the middle of its changes.
    fn is_poisoned(&self) -> bool;

    /// Fills the empty tree with `sorted` entries, each node to `fill_percent`. Returns the number
    /// of entries.
    ///
    /// # Errors
    /// The tree is not empty, the entries are not in order, or as [`apply`](Tree::apply).
    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64>;

    /// True if there is work that would come inside `batch`, and can be done before.
    fn is_due_before(&self, batch: &[Update<'_>]) -> bool {
        let _ = batch;
        false
    }

    /// Does a step of the work that [is due before](Tree::is_due_before) `batch`, and lets others
    /// look up `meanwhile`. False if there is no room for it.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn prepare(&mut self, batch: &[Update<'_>], meanwhile: Meanwhile<'_, '_>) -> Result<bool> {
        let _ = (batch, meanwhile);
        Ok(false)
    }

    /// True if no work is pending that [`drain`](Tree::drain) would do.
    fn is_drained(&self) -> bool {
        true
    }

    /// True if a [`load`](Tree::load), and a checkpoint with a name, come only once it is drained.
    fn drains_first(&self) -> bool {
        false
    }

    /// True if pending work is to be done before `batch` comes, with a checkpoint behind it: once
    /// that is in the journal, it may come to no such work.
    fn drains_before(&self, batch: &[Update<'_>]) -> bool {
        let _ = batch;
        false
    }

    /// Does pending work as far as there is room for the images of the pages it changes, so that
    /// pages reserved for the worst case become free. Returns true if any was done.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn drain(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Writes back everything that is only in memory. Returns the root record, from which the tree
    /// can be opened.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn root_record(&mut self) -> Result<Vec<u8>>;

    /// Becomes the tree that `root` describes, a root record of this tree. Everything that is only
    /// in memory is lost.
    ///
    /// # Errors
    /// The record is damaged.
    fn restore(&mut self, root: &[u8]) -> Result<()>;

    /// Refuses another named checkpoint, before it is made, if it would keep so much that it could
    /// not be forgotten again. Changes nothing.
    ///
    /// # Errors
    /// There is no room.
    fn admit_savepoint(&mut self) -> Result<()> {
        Ok(())
    }

    /// Protects what named checkpoints reach from reclamation. It is called after opening, and
    /// after a checkpoint was made or forgotten. Where the medium protects it, there is nothing to
    /// do.
    ///
    /// # Errors
    /// As [`apply`](Tree::apply).
    fn pin_savepoints(&mut self) -> Result<()> {
        Ok(())
    }

    /// The most bytes that a key and its value may have together in a node. Longer values stand
    /// outside of it.
    fn entry_bytes_most(&self) -> usize;

    /// The most bytes that a key may have, where that is far less than an entry may have. The index
    /// may take a few less.
    fn key_bytes_most(&self) -> usize {
        self.entry_bytes_most()
    }

    /// Pages that `batch` may change in the worst case, new ones included.
    fn pages_changed(&self, batch: &[Update<'_>]) -> u32;

    /// True if a checkpoint may be made between two updates of a batch or of a replay. Whatever was
    /// admitted keeps its room then.
    fn checkpoints_within(&self) -> bool {
        false
    }

    /// The recovery mechanism below the tree.
    fn recovery(&self) -> &dyn store::Recovery;

    /// The recovery mechanism below the tree, mutably.
    fn recovery_mut(&mut self) -> &mut dyn store::Recovery;
}
