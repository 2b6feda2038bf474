//! Changing a database.

use index::Update;

use crate::{Batch, Database, Result};

/// Changing.
impl Database<'_> {
    /// Lets `key` have `value`.
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
        Ok(self.changing()?.update(&[put])?)
    }

    /// Lets `key` be absent; it may be so already.
    ///
    /// # Errors
    /// The key is too long or of a wrong length, there is no room even for that (nothing changed),
    /// or the device failed.
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
        Ok(self.changing()?.update(&[delete])?)
    }

    /// Makes all changes of `batch`, in their order, or none: not even a power cut leaves half of
    /// it.
    ///
    /// # Errors
    /// As [`put`](Database::put), or the journal can't take so long a batch.
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
        Ok(self.changing()?.update(&batch.updates())?)
    }

    /// Makes every change that returned survive a power cut, unless the durability is none: then
    /// only closing does.
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
}
