//! Changing a database.

use index::Update;

use crate::options::MemoryLimit;
use crate::{Batch, Database, Error, Result};

/// Changing.
impl Database<'_> {
    /// Inserts or replaces `key`.
    ///
    /// # Errors
    /// Key or value is too long or of a wrong length, there is no room (nothing changed), or the
    /// device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.put("apple", vec![0; 1 << 20])?;
    /// assert_eq!(fruit.value_length("apple")?, Some(1 << 20));
    /// # Ok(()) }
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let put = Update::Put { key: key.as_ref(), value: value.as_ref() };
        self.update(&[put])
    }

    /// Deletes `key`, if it is present.
    ///
    /// # Errors
    /// The key is too long or of a wrong length, there is no room even for a delete (nothing
    /// changed), or the device failed.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.delete("apple")?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let delete = Update::Delete { key: key.as_ref() };
        self.update(&[delete])
    }

    /// Makes all changes of `batch` in their order, or none. A power cut never leaves half of them.
    ///
    /// # Errors
    /// As [`put`](Database::put), or the batch is too long for the journal.
    ///
    /// ```
    /// # use flashtree::{Batch, Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.write(Batch::new().put("apple", "red").put("pear", "green"))?;
    /// assert!(fruit.contains("pear")?);
    /// # Ok(()) }
    /// ```
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.sync()?;
    /// # Ok(()) }
    /// ```
    pub fn sync(&mut self) -> Result<()> {
        Ok(self.changing()?.sync()?)
    }

    fn update(&mut self, updates: &[Update<'_>]) -> Result<()> {
        let updated = self.changing()?.update(updates);
        updated.map_err(|error| self.refused(error))
    }

    /// What the refusal of updates means for who owns the database.
    fn refused(&self, error: index::Error) -> Error {
        match (error, self.standing.memory) {
            (
                index::Error::Store(store::Error::LittleTables { have, need }),
                MemoryLimit::Total(total),
            ) => {
                // Tables get half of what is added to all memory.
                let more = need.saturating_sub(have).saturating_mul(2);
                Error::LittleTables { have: total, need: total.saturating_add(more) }
            }
            (error @ index::Error::Store(store::Error::Kept { .. }), _) => self.kept(error),
            (error, _) => error.into(),
        }
    }

    /// Says which checkpoints keep the room that there is none of.
    pub(super) fn kept(&self, error: index::Error) -> Error {
        match error {
            index::Error::Store(store::Error::Kept { kept: bytes }) => Error::Kept {
                names: self.checkpoints().iter().map(|kept| kept.name.clone()).collect(),
                pages: bytes / u64::from(self.standing.page_bytes.max(1)),
                bytes,
            },
            other => other.into(),
        }
    }
}
