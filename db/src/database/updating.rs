//! Changing a database.

use index::{Durability, Lookup, Update};

use crate::inside::Core;
use crate::keyspace::{Scope, under};
use crate::lock::Guard;
use crate::options::MemoryLimit;
use crate::{Batch, Database, Error, Result};

/// Changing.
impl<'d> Database<'d> {
    /// Inserts or replaces `key`.
    ///
    /// A power cut takes what the durability says: under `every` nothing that returned, under
    /// `batch` what came behind the last [`sync`](Database::sync) from some point on, under
    /// `checkpoint` all behind the last one, under `none` everything unless it was closed.
    ///
    /// # Errors
    /// Key or value is too long or of a wrong length, there is no room (nothing changed), or the
    /// device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.put("apple", vec![0; 1 << 20])?;
    /// assert_eq!(fruit.value_length("apple")?, Some(1 << 20));
    /// # Ok(()) }
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let put = Update::Put { key: key.as_ref(), value: value.as_ref() };
        self.update(&[put])
    }

    /// Deletes `key`, if it is present. It lasts as a [`put`](Database::put) does.
    ///
    /// # Errors
    /// The key is too long or of a wrong length, there is no room even for a delete (nothing
    /// changed), or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.delete("apple")?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let delete = Update::Delete { key: key.as_ref() };
        self.update(&[delete])
    }

    /// Makes all changes of `batch`, or none; of those of one key the last counts. A power cut
    /// never leaves half of them; it takes all where it would take a [`put`](Database::put).
    ///
    /// # Errors
    /// As [`put`](Database::put), or the batch is too long for the journal.
    ///
    /// ```
    /// # use flashtree::{Batch, Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.write_batch(Batch::new().put("apple", "red").put("pear", "green"))?;
    /// assert!(fruit.contains("pear")?);
    /// # Ok(()) }
    /// ```
    pub fn write_batch(&self, batch: &Batch) -> Result<()> {
        self.update(&batch.updates())
    }

    /// Makes every change that returned durable. With durability none, only closing does that.
    ///
    /// # Errors
    /// The durability is none, or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.sync()?;
    /// # Ok(()) }
    /// ```
    pub fn sync(&self) -> Result<()> {
        Ok(self.changing()?.index.sync()?)
    }

    fn update(&self, updates: &[Update<'_>]) -> Result<()> {
        self.update_in(&self.unnamed(), updates)
    }

    /// Makes changes in a keyspace.
    pub(crate) fn update_in(&self, scope: &Scope, updates: &[Update<'_>]) -> Result<()> {
        let _turn = self.turn()?;
        self.update_core(&mut *self.prepared(updates)?, scope, updates)
    }

    /// The index, once what `updates` would find due is done. In the writer's turn: between two
    /// steps others may read.
    pub(crate) fn prepared(&self, updates: &[Update<'_>]) -> Result<Guard<'_, Core<'d>>> {
        let mut core = self.core.lock()?;
        let meanwhile = &mut |index: &mut dyn Lookup| {
            if self.together.answer(index) {
                self.core.wake();
            }
        };
        loop {
            match core.index.prepare(updates, meanwhile) {
                Ok(true) => {}
                Ok(false) => return Ok(core),
                Err(error) => return Err(self.refused(&core, error)),
            }
            drop(core);
            core = self.core.lock()?;
        }
    }

    /// Makes changes in a keyspace, in the writer's turn.
    pub(crate) fn update_core(
        &self,
        core: &mut Core<'_>,
        scope: &Scope,
        updates: &[Update<'_>],
    ) -> Result<()> {
        scope.check()?;
        let updated = match (scope.prefix(), updates) {
            ([], _) => core.update(updates),
            (_, [update]) => core.update_one(scope, update)?,
            _ => {
                let keys: Vec<Vec<u8>> =
                    updates.iter().map(|update| [scope.prefix(), update.key()].concat()).collect();
                let updates =
                    keys.iter().zip(updates).map(|(key, update)| under(scope, key, update));
                core.update(&updates.collect::<Result<Vec<_>>>()?)
            }
        };
        updated.map_err(|error| self.refused(core, scope.without(error)))?;
        if self.about.label.keyspaces {
            // What is refused is done later; what fails is told by the next update.
            let _ = core.catalog().map(drop).and_then(|()| self.free_step(core));
        }
        Ok(())
    }

    /// Makes what returned durable, if that can be had and is not so already.
    pub(crate) fn sync_core(&self, core: &mut Core<'_>) -> Result<()> {
        match core.index.recovery().durability {
            Durability::None | Durability::Every => Ok(()),
            Durability::Checkpoint | Durability::Batch => Ok(core.index.sync()?),
        }
    }

    /// What the refusal of updates means for who owns the database.
    pub(crate) fn refused(&self, core: &Core<'_>, error: index::Error) -> Error {
        match (error, self.about.memory) {
            (
                index::Error::Store(store::Error::LittleTables { have, need }),
                MemoryLimit::Total(total),
            ) => {
                // Tables get half of what is added to all memory.
                let more = need.saturating_sub(have).saturating_mul(2);
                Error::LittleTables { have: total, need: total.saturating_add(more) }
            }
            (error, _) => self.kept(core, error),
        }
    }

    /// Says which checkpoints there is no room beside, if any are kept.
    pub(super) fn kept(&self, core: &Core<'_>, error: index::Error) -> Error {
        let names = core.index.checkpoints().iter().map(|kept| kept.name.clone());
        let bytes = match &error {
            index::Error::Store(store::Error::Kept { kept }) => Some(*kept),
            // Names need room even where they keep nothing yet.
            index::Error::Store(store::Error::Full { .. }) if names.len() > 0 => {
                Some(core.index.recovery().kept_bytes)
            }
            _ => None,
        };
        let Some(bytes) = bytes else {
            return error.into();
        };
        let pages = bytes / u64::from(self.about.page_bytes.max(1));
        Error::Kept { names: names.collect(), pages, bytes }
    }
}
