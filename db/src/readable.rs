//! Reading: what databases, keyspaces, snapshots and transactions have in common.

use std::ops::Bound;

use index::{Direction, KeyRange};

use crate::range::behind_prefix;
use crate::{Cursor, Database, KeyBounds, Keyspace, Range, Result};
use crate::{Snapshot, SnapshotKeyspace, Transaction, TransactionKeyspace};

/// What can be read: a database, a snapshot, a transaction, and a keyspace of each.
///
/// ```
/// use flashtree::{Database, Options, Readable};
///
/// fn colour(of: &impl Readable, fruit: &str) -> flashtree::Result<Option<Vec<u8>>> {
///     of.get(fruit)
/// }
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// assert_eq!(colour(&fruit, "apple")?, Some(b"red".to_vec()));
/// fruit.write(|transaction| {
///     transaction.put("apple", "green")?;
///     assert_eq!(colour(transaction, "apple")?, Some(b"green".to_vec()));
///     Ok(())
/// })?;
/// # Ok(()) }
/// ```
pub trait Readable {
    /// The value of `key`, as [`Database::get`](crate::Database::get).
    ///
    /// # Errors
    /// The key is of a wrong length, the device failed, or what was read is damaged.
    fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>>;

    /// Reads a piece of the value of `key`, as
    /// [`Database::get_into`](crate::Database::get_into).
    ///
    /// # Errors
    /// As [`get`](Readable::get).
    fn get_into(&self, key: impl AsRef<[u8]>, offset: u32, into: &mut [u8]) -> Result<Option<u32>>;

    /// The values of `keys`, in their order. Their pages are read together, 32 at a time: on a disk
    /// that is much faster than one by one.
    ///
    /// # Errors
    /// As [`get`](Readable::get).
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.get_many(["pear", "apple"])?, [None, Some(b"red".to_vec())]);
    /// # Ok(()) }
    /// ```
    fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>>;

    /// The entries of `range`, in its direction. The other ranges are shorthands for this one.
    ///
    /// # Errors
    /// A bound is of a wrong length, the device failed, or what was read is damaged.
    fn scan(&self, range: KeyRange<'_>) -> Result<Range<'_>>;

    /// The length of the value of `key`, in bytes.
    ///
    /// # Errors
    /// As [`get`](Readable::get).
    fn value_length(&self, key: impl AsRef<[u8]>) -> Result<Option<u32>> {
        self.get_into(key, 0, &mut [])
    }

    /// True if `key` is present.
    ///
    /// # Errors
    /// As [`get`](Readable::get).
    fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.value_length(key)?.is_some())
    }

    /// The entries whose keys are in `bounds`, ascending.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn range(&self, bounds: impl KeyBounds) -> Result<Range<'_>> {
        let (from, to) = bounds.key_bounds();
        self.scan(KeyRange { from, to, direction: Direction::Ascending })
    }

    /// The entries whose keys are in `bounds`, descending.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn range_descending(&self, bounds: impl KeyBounds) -> Result<Range<'_>> {
        let (from, to) = bounds.key_bounds();
        self.scan(KeyRange { from, to, direction: Direction::Descending })
    }

    /// The entries whose keys begin with `prefix`, ascending.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        let (from, to) = prefix_bounds(prefix.as_ref());
        let to = to.as_ref().map(Vec::as_slice);
        self.scan(KeyRange { from, to, direction: Direction::Ascending })
    }

    /// The entries whose keys begin with `prefix`, descending.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn prefix_descending(&self, prefix: impl AsRef<[u8]>) -> Result<Range<'_>> {
        let (from, to) = prefix_bounds(prefix.as_ref());
        let to = to.as_ref().map(Vec::as_slice);
        self.scan(KeyRange { from, to, direction: Direction::Descending })
    }

    /// All entries, ascending.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn all(&self) -> Result<Range<'_>> {
        self.scan(KeyRange::ALL)
    }

    /// All entries, descending.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn all_descending(&self) -> Result<Range<'_>> {
        self.scan(KeyRange::ALL.reversed())
    }

    /// A cursor that goes both ways, before the first entry.
    fn cursor(&self) -> Cursor<'_, Self> {
        Cursor::new(self)
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.all()?.into_iter().next().transpose()
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.all_descending()?.into_iter().next().transpose()
    }

    /// The number of entries. It reads all of them.
    ///
    /// # Errors
    /// As [`scan`](Readable::scan).
    fn count(&self) -> Result<u64> {
        let mut entries = 0;
        let mut range = self.all()?;
        while range.next()?.is_some() {
            entries += 1;
        }
        Ok(entries)
    }
}

/// All of them read through their views.
macro_rules! read_by_view {
    ($($reader:ty),*) => {$(
        impl Readable for $reader {
            fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
                self.view().get(key.as_ref())
            }

            fn get_into(
                &self,
                key: impl AsRef<[u8]>,
                offset: u32,
                into: &mut [u8],
            ) -> Result<Option<u32>> {
                self.view().get_into(key.as_ref(), offset, into)
            }

            fn get_many<K: AsRef<[u8]>>(
                &self,
                keys: impl IntoIterator<Item = K>,
            ) -> Result<Vec<Option<Vec<u8>>>> {
                let keys: Vec<K> = keys.into_iter().collect();
                let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
                self.view().get_many(&keys)
            }

            fn scan(&self, range: KeyRange<'_>) -> Result<Range<'_>> {
                self.view().scan(range)
            }
        }
    )*};
}

read_by_view!(
    Database<'_>,
    Keyspace<'_, '_>,
    Snapshot<'_, '_>,
    SnapshotKeyspace<'_, '_, '_>,
    Transaction<'_, '_>,
    TransactionKeyspace<'_, '_, '_>
);

/// Where the keys begin and end that begin with `prefix`.
fn prefix_bounds(prefix: &[u8]) -> (Bound<&[u8]>, Bound<Vec<u8>>) {
    (Bound::Included(prefix), behind_prefix(prefix))
}
