//! Reading a database: values, and entries in the order of their keys.

use std::ops::{Bound, RangeBounds};

use index::{Direction, KeyRange};

use crate::range::{behind_prefix, read_whole};
use crate::{Database, Range, Result};

/// Values up to so many bytes are read at once.
const SHORT_BYTES: usize = 1024;

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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
    /// assert_eq!(fruit.get("pear")?, None);
    /// # Ok(()) }
    /// ```
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        let mut short = [0; SHORT_BYTES];
        let Some(length) = self.get_into(key, 0, &mut short)? else {
            return Ok(None);
        };
        if let Some(value) = short.get(..length as usize) {
            return Ok(Some(value.to_vec()));
        }
        let index = &mut *self.standing.index;
        let value = read_whole(|offset, into| Ok(index.get(key, offset, into)?.unwrap_or(0)))?;
        Ok(Some(value))
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", vec![7; 100_000])?;
    /// let mut piece = [0; 10];
    /// assert_eq!(fruit.get_into("apple", 99_995, &mut piece)?, Some(100_000));
    /// assert_eq!(piece, [7, 7, 7, 7, 7, 0, 0, 0, 0, 0]);
    /// # Ok(()) }
    /// ```
    pub fn get_into(
        &mut self,
        key: impl AsRef<[u8]>,
        offset: u32,
        into: &mut [u8],
    ) -> Result<Option<u32>> {
        Ok(self.standing.index.get(key.as_ref(), offset, into)?)
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.value_length("apple")?, Some(3));
    /// # Ok(()) }
    /// ```
    pub fn value_length(&mut self, key: impl AsRef<[u8]>) -> Result<Option<u32>> {
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(!fruit.contains("apple")?);
    /// # Ok(()) }
    /// ```
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.scan(KeyRange::ALL.reversed())?.into_iter().count(), 1);
    /// # Ok(()) }
    /// ```
    pub fn scan(&mut self, range: KeyRange<'_>) -> Result<Range<'_>> {
        Ok(Range::new(self.standing.index.range(range)?))
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
    /// let mut range = fruit.range("b"..="cherry")?;
    /// assert_eq!(range.next()?.unwrap().key, b"banana");
    /// assert_eq!(range.next()?.unwrap().key, b"cherry");
    /// # Ok(()) }
    /// ```
    pub fn range<K: AsRef<[u8]>>(&mut self, bounds: impl RangeBounds<K>) -> Result<Range<'_>> {
        self.bounded(&bounds, Direction::Ascending)
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.range_descending(.."c")?.next()?.unwrap().key, b"banana");
    /// # Ok(()) }
    /// ```
    pub fn range_descending<K: AsRef<[u8]>>(
        &mut self,
        bounds: impl RangeBounds<K>,
    ) -> Result<Range<'_>> {
        self.bounded(&bounds, Direction::Descending)
    }

    fn bounded<K: AsRef<[u8]>>(
        &mut self,
        bounds: &impl RangeBounds<K>,
        direction: Direction,
    ) -> Result<Range<'_>> {
        let from = bounds.start_bound().map(AsRef::as_ref);
        let to = bounds.end_bound().map(AsRef::as_ref);
        self.scan(KeyRange { from, to, direction })
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "apricot", "banana"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.prefix("ap")?.into_iter().count(), 2);
    /// # Ok(()) }
    /// ```
    pub fn prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        self.prefixed(prefix.as_ref(), Direction::Ascending)
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// # for name in ["apple", "apricot", "banana"] { fruit.put(name, "")?; }
    /// assert_eq!(fruit.prefix_descending("ap")?.next()?.unwrap().key, b"apricot");
    /// # Ok(()) }
    /// ```
    pub fn prefix_descending(&mut self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        self.prefixed(prefix.as_ref(), Direction::Descending)
    }

    fn prefixed(&mut self, prefix: &[u8], direction: Direction) -> Result<Range<'_>> {
        let behind = behind_prefix(prefix);
        let to = behind.as_ref().map(Vec::as_slice);
        self.scan(KeyRange { from: Bound::Included(prefix), to, direction })
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.all()?.next()?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn all(&mut self) -> Result<Range<'_>> {
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert!(fruit.all_descending()?.next()?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn all_descending(&mut self) -> Result<Range<'_>> {
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.first()?, Some((b"apple".to_vec(), b"red".to_vec())));
    /// # Ok(()) }
    /// ```
    pub fn first(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.all()?.into_iter().next().transpose()
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.last()?, None);
    /// # Ok(()) }
    /// ```
    pub fn last(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.all_descending()?.into_iter().next().transpose()
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
    /// # let mut fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.count()?, 1);
    /// # Ok(()) }
    /// ```
    pub fn count(&mut self) -> Result<u64> {
        let mut entries = 0;
        let mut range = self.all()?;
        while range.next()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }
}
