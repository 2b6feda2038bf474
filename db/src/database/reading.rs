//! Reading a database: values, and entries in the order of their keys.

use index::KeyRange;

use crate::inside::Ahead;
use crate::{Database, KeyBounds, Range, Readable, Result};

/// Reading.
impl Database<'_> {
    /// The value of `key`.
    ///
    /// # Errors
    /// The key is of a wrong length, the device failed, or what was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
    /// assert_eq!(fruit.get("pear")?, None);
    /// # Ok(()) }
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.core.lock()?.value(&self.unnamed(), key.as_ref())
    }

    /// Reads the value of `key` from byte `offset` on into `into`, as far as both reach. Returns
    /// the length of the whole value, or `None` if the key is absent. So a long value can be read
    /// in pieces.
    ///
    /// # Errors
    /// As [`get`](Database::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", vec![7; 100_000])?;
    /// let mut piece = [0; 10];
    /// assert_eq!(fruit.get_into("apple", 99_995, &mut piece)?, Some(100_000));
    /// assert_eq!(piece, [7, 7, 7, 7, 7, 0, 0, 0, 0, 0]);
    /// # Ok(()) }
    /// ```
    pub fn get_into(
        &self,
        key: impl AsRef<[u8]>,
        offset: u32,
        into: &mut [u8],
    ) -> Result<Option<u32>> {
        self.core.lock()?.get(&self.unnamed(), key.as_ref(), offset, into)
    }

    /// The length of the value of `key`, in bytes.
    ///
    /// # Errors
    /// As [`get`](Database::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.value_length("apple")?, Some(3));
    /// # Ok(()) }
    /// ```
    pub fn value_length(&self, key: impl AsRef<[u8]>) -> Result<Option<u32>> {
        self.get_into(key, 0, &mut [])
    }

    /// True if `key` is present.
    ///
    /// # Errors
    /// As [`get`](Database::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.value_length(key)?.is_some())
    }

    /// The entries of `range`, in its direction. The other ranges are shorthands for this one.
    ///
    /// # Errors
    /// A bound is of a wrong length, the device failed, or what was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, KeyRange, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.scan(KeyRange::ALL.reversed())?.into_iter().count(), 1);
    /// # Ok(()) }
    /// ```
    pub fn scan(&self, range: KeyRange<'_>) -> Result<Range<'_>> {
        let most = self.about.memory.bytes_ahead();
        Ok(Range::new(Ahead::new(&self.core, &self.unnamed(), range, most)?))
    }

    /// The entries whose keys are in `bounds`, ascending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
    /// let mut range = fruit.range("b"..="cherry")?;
    /// assert_eq!(range.next()?.unwrap().key, b"banana");
    /// assert_eq!(range.next()?.unwrap().key, b"cherry");
    /// # Ok(()) }
    /// ```
    pub fn range(&self, bounds: impl KeyBounds) -> Result<Range<'_>> {
        Readable::range(self, bounds)
    }

    /// The entries whose keys are in `bounds`, descending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.range_descending(.."c")?.next()?.unwrap().key, b"banana");
    /// # Ok(()) }
    /// ```
    pub fn range_descending(&self, bounds: impl KeyBounds) -> Result<Range<'_>> {
        Readable::range_descending(self, bounds)
    }

    /// The entries whose keys begin with `prefix`, ascending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "apricot", "banana"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.prefix("ap")?.into_iter().count(), 2);
    /// # Ok(()) }
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        Readable::prefix(self, prefix)
    }

    /// The entries whose keys begin with `prefix`, descending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "apricot", "banana"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.prefix_descending("ap")?.next()?.unwrap().key, b"apricot");
    /// # Ok(()) }
    /// ```
    pub fn prefix_descending(&self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        Readable::prefix_descending(self, prefix)
    }

    /// All entries, ascending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.all()?.next()?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn all(&self) -> Result<Range<'_>> {
        self.scan(KeyRange::ALL)
    }

    /// All entries, descending.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.all_descending()?.next()?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn all_descending(&self) -> Result<Range<'_>> {
        self.scan(KeyRange::ALL.reversed())
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.first()?, Some((b"apple".to_vec(), b"red".to_vec())));
    /// # Ok(()) }
    /// ```
    pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        Readable::first(self)
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.last()?, None);
    /// # Ok(()) }
    /// ```
    pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        Readable::last(self)
    }

    /// The number of entries. It reads all of them.
    ///
    /// # Errors
    /// As [`scan`](Database::scan).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.count()?, 1);
    /// # Ok(()) }
    /// ```
    pub fn count(&self) -> Result<u64> {
        Readable::count(self)
    }

    /// Reads with nothing changed meanwhile: changes of other threads wait until `reading` returns,
    /// and other readers don't. What `reading` changes itself is refused
    /// ([`Error::WithinItself`](crate::Error::WithinItself)).
    ///
    /// # Errors
    /// As `reading`; or others have been changing the database for longer than
    /// [`Options::turn_wait`](crate::Options::turn_wait).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// fruit.read(|fruit| {
    ///     let number = fruit.count()?;
    ///     // No other thread has put or deleted anything.
    ///     assert_eq!(fruit.all()?.into_iter().count() as u64, number);
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn read<R>(&self, reading: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let _stay = self.turns.read()?;
        reading(self)
    }
}

impl Readable for Database<'_> {
    fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        Database::get(self, key)
    }

    fn get_into(&self, key: impl AsRef<[u8]>, offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        Database::get_into(self, key, offset, into)
    }

    fn scan(&self, range: KeyRange<'_>) -> Result<Range<'_>> {
        Database::scan(self, range)
    }
}
