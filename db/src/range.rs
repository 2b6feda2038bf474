//! Reading entries one after the other.

use std::ops::{
    Bound, Range as StdRange, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo,
    RangeToInclusive,
};

use index::{Cursor, KeyValue, Value};

use crate::{Error, Result};

/// Bytes of a long value that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// An entry that a [`Range`] lends until it goes on.
///
/// ```
/// # use flashtree::{Database, Options};
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// # fruit.put("apple", "red")?;
/// let mut range = fruit.all()?;
/// let apple = range.next()?.expect("there is an apple");
/// assert_eq!((apple.key, apple.value.whole()), (&b"apple"[..], Some(&b"red"[..])));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'r> {
    /// The key.
    pub key: &'r [u8],
    /// The value, or the length of one that is read in pieces: see [`Range::read_value`].
    pub value: Value<'r>,
}

/// Where entries come from.
pub(crate) trait Source {
    /// As [`index::Cursor::next`].
    fn next(&mut self) -> Result<Option<KeyValue<'_>>>;

    /// As [`index::Cursor::read_value`].
    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32>;

    /// The whole value of the entry that came last.
    fn value(&mut self) -> Result<Vec<u8>>;
}

/// A cursor of the index is a source while the lock is held.
impl Source for Box<dyn Cursor + '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        Ok((**self).next()?)
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        Ok((**self).read_value(offset, into)?)
    }

    fn value(&mut self) -> Result<Vec<u8>> {
        read_whole(|offset, into| Source::read_value(self, offset, into))
    }
}

/// Where keys begin and end: any range of Rust, of anything that is bytes.
///
/// ```
/// # use flashtree::{Database, Options};
/// # use std::ops::Bound;
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// # for name in ["apple", "banana", "cherry"] { fruit.put(name, "")?; }
/// assert_eq!(fruit.range(..)?.into_iter().count(), 3);
/// assert_eq!(fruit.range(..="banana")?.into_iter().count(), 2);
/// assert_eq!(fruit.range(b"a".to_vec()..vec![b'b'])?.into_iter().count(), 1);
/// let behind = (Bound::Excluded("banana"), Bound::Unbounded);
/// assert_eq!(fruit.range(behind)?.into_iter().count(), 1);
/// # Ok(()) }
/// ```
pub trait KeyBounds {
    /// The lower and the upper bound.
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyBounds for RangeFull {
    fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

macro_rules! key_bounds {
    ($($kind:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyBounds for $kind {
            fn key_bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                (self.start_bound().map(AsRef::as_ref), self.end_bound().map(AsRef::as_ref))
            }
        }
    )*};
}

key_bounds!(
    StdRange<K>,
    RangeFrom<K>,
    RangeInclusive<K>,
    RangeTo<K>,
    RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

/// Entries one after the other. It lends them, without allocating for each; as an iterator it gives
/// them away.
///
/// It reads some entries ahead, and others may change the database meanwhile: what was not read
/// yet is read as it is then. [`Database::read`](crate::Database::read) keeps changes away.
///
/// ```
/// use flashtree::{Database, Options};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// fruit.put("pear", "green")?;
/// let mut keys = Vec::new();
/// let mut range = fruit.range("b"..)?;
/// while let Some(entry) = range.next()? {
///     keys.push(entry.key.to_vec());
/// }
/// assert_eq!(keys, [b"pear"]);
/// drop(range);
///
/// let owned: Vec<_> = fruit.all_descending()?.into_iter().collect::<Result<_, _>>()?;
/// assert_eq!(owned[1], (b"apple".to_vec(), b"red".to_vec()));
/// # Ok(()) }
/// ```
#[must_use]
pub struct Range<'c> {
    source: Box<dyn Source + 'c>,
}

impl<'c> Range<'c> {
    pub(crate) fn new(source: impl Source + 'c) -> Self {
        Range { source: Box::new(source) }
    }

    /// The next entry, or `None` after the last one and after an error.
    ///
    /// # Errors
    /// The device failed, or what was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.all()?.next()?, None);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::should_implement_trait, reason = "an iterator can't lend")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let next = self.source.next()?;
        Ok(next.map(|(key, value)| Entry { key, value }))
    }

    /// Reads the value of the last entry from byte `offset` on into `into`, as far as both reach;
    /// returns the whole length of the value.
    ///
    /// # Errors
    /// There is no last entry, or it was deleted meanwhile ([`Error::Deleted`]); the device failed,
    /// or what was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red and green")?;
    /// let mut range = fruit.all()?;
    /// range.next()?;
    /// let mut piece = [0; 5];
    /// assert_eq!(range.read_value(8, &mut piece)?, 13);
    /// assert_eq!(&piece, b"green");
    /// # Ok(()) }
    /// ```
    pub fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        self.source.read_value(offset, into)
    }

    /// The whole value of the last entry.
    ///
    /// # Errors
    /// As [`read_value`](Range::read_value).
    ///
    /// ```
    /// # use flashtree::{Database, Options};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", vec![7; 100_000])?;
    /// let mut range = fruit.all()?;
    /// range.next()?;
    /// assert_eq!(range.value()?, vec![7; 100_000]);
    /// # Ok(()) }
    /// ```
    pub fn value(&mut self) -> Result<Vec<u8>> {
        self.source.value()
    }

    /// The next entry as the caller's own.
    fn next_owned(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        loop {
            let Some(entry) = self.next()? else {
                return Ok(None);
            };
            let key = entry.key.to_vec();
            if let Value::Inline(bytes) = entry.value {
                return Ok(Some((key, bytes.to_vec())));
            }
            match self.value() {
                // It is not there any more.
                Err(Error::Deleted) => {}
                value => return Ok(Some((key, value?))),
            }
        }
    }
}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

impl<'c> IntoIterator for Range<'c> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = Entries<'c>;

    fn into_iter(self) -> Entries<'c> {
        Entries { range: self, is_over: false }
    }
}

/// Keys and values one after the other, as the caller's own: a [`Range`] as an iterator. It ends
/// after an error.
///
/// ```
/// # use flashtree::{Database, Options};
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// fruit.put("apple", "red")?;
/// for entry in fruit.prefix("app")? {
///     let (key, value) = entry?;
///     assert_eq!((key.as_slice(), value.as_slice()), (&b"apple"[..], &b"red"[..]));
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Entries<'c> {
    range: Range<'c>,
    /// An error ends it: what came behind would follow a gap that nobody sees.
    is_over: bool,
}

impl std::iter::FusedIterator for Entries<'_> {}

impl Iterator for Entries<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.range.next_owned().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Reads a value of unknown length by pieces. Its memory grows with what was really read, since
/// the length may come from a damaged device.
pub(crate) fn read_whole<E>(
    mut read: impl FnMut(u32, &mut [u8]) -> std::result::Result<u32, E>,
) -> std::result::Result<Vec<u8>, E> {
    let mut value = Vec::new();
    let mut length = read(0, &mut [])? as usize;
    while value.len() < length {
        let start = value.len();
        value.resize(length.min(start + PIECE_BYTES), 0);
        length = read(start as u32, &mut value[start..])? as usize;
    }
    Ok(value)
}

/// The first key behind all that begin with `prefix`; unbounded if there is none.
pub(crate) fn behind_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    match prefix.iter().rposition(|byte| *byte != 0xFF) {
        Some(place) => {
            let mut key = prefix[..=place].to_vec();
            key[place] += 1;
            Bound::Excluded(key)
        }
        None => Bound::Unbounded,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::behind_prefix;

    #[test]
    fn what_is_behind_a_prefix_is_behind_its_last_key() {
        assert_eq!(behind_prefix(b"ab"), Bound::Excluded(b"ac".to_vec()));
        assert_eq!(behind_prefix(b"a\xFF\xFF"), Bound::Excluded(b"b".to_vec()));
        assert_eq!(behind_prefix(b"\xFF"), Bound::Unbounded);
        assert_eq!(behind_prefix(b""), Bound::Unbounded);
    }
}
