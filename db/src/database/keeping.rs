//! Named checkpoints.

use index::{CheckpointId, Savepoint};

use crate::{Database, Result};

/// Named checkpoints.
impl Database<'_> {
    /// Keeps the present state under `name`, 1 to 64 bytes, so that
    /// [`rollback`](Database::rollback) can go back to it. While it is kept, changes take more
    /// room.
    ///
    /// # Errors
    /// The name is taken or impossible, the durability is none, there is no room, or the device
    /// failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.checkpoint("harvest")?;
    /// fruit.delete("apple")?;
    /// fruit.rollback("harvest")?;
    /// assert!(fruit.contains("apple")?);
    /// fruit.forget("harvest")?;
    /// # Ok(()) }
    /// ```
    pub fn checkpoint(&self, name: &str) -> Result<CheckpointId> {
        let mut core = self.changing()?;
        let made = core.index.checkpoint(Some(name));
        made.map_err(|error| self.kept(&core, error))
    }

    /// The checkpoints that are kept, oldest first.
    ///
    /// # Errors
    /// A thread panicked while it had the database.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.checkpoint("harvest")?;
    /// assert_eq!(fruit.checkpoints()?[0].name, "harvest");
    /// # Ok(()) }
    /// ```
    pub fn checkpoints(&self) -> Result<Vec<Savepoint>> {
        Ok(self.core.lock()?.index.checkpoints().to_vec())
    }

    /// Goes back to the state that was kept under `name`. Everything that came after it is lost,
    /// later checkpoints included, and handles of keyspaces have to be asked for again. `name`
    /// stays. Checkpoints that were forgotten stay forgotten.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.checkpoint("empty")?;
    /// fruit.put("apple", "red")?;
    /// fruit.rollback("empty")?;
    /// assert_eq!(fruit.count()?, 0);
    /// # Ok(()) }
    /// ```
    pub fn rollback(&self, name: &str) -> Result<()> {
        let _turn = self.turn()?;
        let mut core = self.core.lock()?;
        // Even if it fails in the middle, what is known of keyspaces, and what snapshots have, may
        // not be so any more.
        core.forget_catalog();
        core.snapshots.end_all();
        Ok(core.index.roll_back(name)?)
    }

    /// Forgets the checkpoint called `name`.
    ///
    /// # Errors
    /// There is no such checkpoint, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.checkpoint("empty")?;
    /// fruit.forget("empty")?;
    /// assert!(fruit.checkpoints()?.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn forget(&self, name: &str) -> Result<()> {
        Ok(self.changing()?.index.forget(name)?)
    }
}
