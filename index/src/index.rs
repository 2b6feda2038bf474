//! [`Index`]: what users call.

use store::{CheckpointId, RecoveryStatistics, Savepoint, Update, Wear};

use crate::Result;
use crate::read::{Cursor, Meanwhile, Read};

/// What users call: an ordered index with batches and durability.
pub trait Index: Read {
    /// Makes all changes of `batch`, or none if it is refused.
    ///
    /// # Errors
    /// The batch was refused (nothing changed), or the device failed.
    fn update(&mut self, batch: &[Update<'_>]) -> Result<()>;

    /// Does a step of the work that `batch` would find due, where that can be done before, and lets
    /// others look up `meanwhile`. False if none is left. Nothing that is read changes, and what is
    /// not done comes with the [`update`](Index::update).
    ///
    /// # Errors
    /// An earlier update failed midway, or the device failed.
    fn prepare(&mut self, batch: &[Update<'_>], meanwhile: Meanwhile<'_, '_>) -> Result<bool> {
        let _ = (batch, meanwhile);
        Ok(false)
    }

    /// Fills an empty index with `sorted` entries, each node to `fill_percent`. Returns the number
    /// of entries.
    ///
    /// # Errors
    /// The index is not empty, the entries are not in order, or the device failed.
    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64>;

    /// Makes every update that returned durable: see [`Durability`](store::Durability).
    ///
    /// # Errors
    /// The device failed.
    fn sync(&mut self) -> Result<()>;

    /// Makes a checkpoint: the state that an opening comes back to. With a `name` it is kept until
    /// it is forgotten.
    ///
    /// # Errors
    /// The name is taken or impossible, there is no room, or the device failed.
    fn checkpoint(&mut self, name: Option<&str>) -> Result<CheckpointId>;

    /// The checkpoints that are kept, oldest first.
    fn checkpoints(&self) -> &[Savepoint];

    /// Goes back to the checkpoint called `name`. All later changes and checkpoints are lost.
    /// Checkpoints that were forgotten stay forgotten.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    fn roll_back(&mut self, name: &str) -> Result<()>;

    /// Forgets the checkpoint called `name`.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    fn forget(&mut self, name: &str) -> Result<()>;

    /// What the device holds for recovery.
    fn recovery(&self) -> RecoveryStatistics;

    /// How worn the chip is, for an index on raw flash.
    fn wear(&self) -> Option<Wear> {
        None
    }

    /// The most bytes that a key and its value have together in a node: see
    /// [`Tree::entry_bytes_most`](crate::Tree::entry_bytes_most).
    fn entry_bytes_most(&self) -> usize;

    /// The most bytes that a key may have: see
    /// [`Tree::key_bytes_most`](crate::Tree::key_bytes_most).
    fn key_bytes_most(&self) -> usize;

    /// Writes back everything that is only in memory, and marks the index as closed until the next
    /// update.
    ///
    /// # Errors
    /// The device failed.
    fn close(&mut self) -> Result<()>;
}
