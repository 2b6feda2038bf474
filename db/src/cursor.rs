//! Going through entries both ways.

use std::fmt;
use std::ops::Bound;

use index::{Direction, KeyRange};

use crate::{Entry, Error, Range, Readable, Result};

/// A place among the entries of a database, a snapshot, a transaction or a keyspace. It goes both
/// ways and can turn round anywhere; every step gives the entry that it came to.
///
/// The place is a key: it stays good when that is deleted, and others are put beside it. Who goes
/// through a [`Snapshot`](crate::Snapshot) sees nothing of such changes. Going one way it reads
/// ahead, as a [`Range`] does; a turn begins anew.
///
/// ```
/// use flashtree::{Database, Options, Readable};
///
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
/// for name in ["apple", "cherry", "pear"] {
///     fruit.put(name, "")?;
/// }
/// let mut cursor = fruit.cursor();
/// assert_eq!(cursor.seek("banana")?.unwrap().key, b"cherry");
/// assert_eq!(cursor.previous()?.unwrap().key, b"apple");
/// assert_eq!(cursor.previous()?, None);
/// assert_eq!(cursor.next()?.unwrap().key, b"apple");
/// # Ok(()) }
/// ```
#[must_use]
pub struct Cursor<'r, R: ?Sized> {
    reader: &'r R,
    /// What comes next, and its direction.
    ahead: Option<(Direction, Range<'r>)>,
    place: Place,
    /// The key of the place, if it is at one.
    key: Vec<u8>,
    /// True if what is read ahead ended with an error: the next step begins anew, from the place.
    has_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first entry.
    Before,
    At,
    /// Behind the last one.
    Behind,
}

impl<'r, R: Readable + ?Sized> Cursor<'r, R> {
    pub(crate) const fn new(reader: &'r R) -> Self {
        Cursor { reader, ahead: None, place: Place::Before, key: Vec::new(), has_failed: false }
    }

    /// Goes to the first entry.
    ///
    /// # Errors
    /// As [`Readable::scan`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.cursor().first()?.unwrap().key, b"apple");
    /// # Ok(()) }
    /// ```
    pub fn first(&mut self) -> Result<Option<Entry<'_>>> {
        (self.ahead, self.place) = (None, Place::Before);
        self.next()
    }

    /// Goes to the last entry.
    ///
    /// # Errors
    /// As [`Readable::scan`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.cursor().last()?.unwrap().key, b"apple");
    /// # Ok(()) }
    /// ```
    pub fn last(&mut self) -> Result<Option<Entry<'_>>> {
        (self.ahead, self.place) = (None, Place::Behind);
        self.previous()
    }

    /// Goes to `key`, or to the first entry behind it.
    ///
    /// # Errors
    /// As [`Readable::scan`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.cursor().seek("a")?.unwrap().key, b"apple");
    /// assert_eq!(fruit.cursor().seek("b")?, None);
    /// # Ok(()) }
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        self.go(Direction::Ascending, Bound::Included(key.as_ref()))
    }

    /// Goes to `key`, or to the last entry before it.
    ///
    /// # Errors
    /// As [`Readable::scan`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// assert_eq!(fruit.cursor().seek_back("b")?.unwrap().key, b"apple");
    /// # Ok(()) }
    /// ```
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Entry<'_>>> {
        self.go(Direction::Descending, Bound::Included(key.as_ref()))
    }

    /// Goes to the next entry; a new cursor is before the first one.
    ///
    /// # Errors
    /// As [`Readable::scan`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// assert_eq!(fruit.cursor().next()?, None);
    /// # Ok(()) }
    /// ```
    #[allow(clippy::should_implement_trait, reason = "an iterator can't lend")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        self.step(Direction::Ascending)
    }

    /// Goes to the entry before this one.
    ///
    /// # Errors
    /// As [`Readable::scan`].
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", "red")?;
    /// let mut cursor = fruit.cursor();
    /// cursor.first()?;
    /// assert_eq!(cursor.previous()?, None);
    /// # Ok(()) }
    /// ```
    pub fn previous(&mut self) -> Result<Option<Entry<'_>>> {
        self.step(Direction::Descending)
    }

    /// The whole value of the entry that it came to last.
    ///
    /// # Errors
    /// There is none, or it was deleted meanwhile ([`Error::Deleted`]); the device failed, or what
    /// was read is damaged.
    ///
    /// ```
    /// # use flashtree::{Database, Options, Readable};
    /// # fn main() -> flashtree::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let fruit = Database::create(folder.path().join("fruit.db"), &Options::new())?;
    /// fruit.put("apple", vec![7; 100_000])?;
    /// let mut cursor = fruit.cursor();
    /// cursor.first()?;
    /// assert_eq!(cursor.value()?, vec![7; 100_000]);
    /// # Ok(()) }
    /// ```
    pub fn value(&mut self) -> Result<Vec<u8>> {
        match &mut self.ahead {
            Some((_, range)) if self.place == Place::At && !self.has_failed => range.value(),
            _ => Err(Error::Index(index::Error::NoEntry)),
        }
    }

    /// Goes on in this direction.
    fn step(&mut self, direction: Direction) -> Result<Option<Entry<'_>>> {
        let goes_on = self.ahead.as_ref().is_some_and(|(ahead, _)| *ahead == direction);
        if goes_on && !self.has_failed {
            return self.advance(direction);
        }
        let key = self.key.clone();
        let from = match (self.place, direction) {
            (Place::At, _) => Bound::Excluded(key.as_slice()),
            (Place::Before, Direction::Ascending) | (Place::Behind, Direction::Descending) => {
                Bound::Unbounded
            }
            // There is nothing beyond an end.
            (Place::Before, Direction::Descending) | (Place::Behind, Direction::Ascending) => {
                return Ok(None);
            }
        };
        self.go(direction, from)
    }

    /// Goes to the first entry from here on in this direction.
    fn go(&mut self, direction: Direction, from: Bound<&[u8]>) -> Result<Option<Entry<'_>>> {
        let (from, to) = match direction {
            Direction::Ascending => (from, Bound::Unbounded),
            Direction::Descending => (Bound::Unbounded, from),
        };
        (self.ahead, self.has_failed) = (None, false);
        self.ahead = Some((direction, self.reader.scan(KeyRange { from, to, direction })?));
        self.advance(direction)
    }

    /// Takes the next entry of the range that is read ahead.
    fn advance(&mut self, direction: Direction) -> Result<Option<Entry<'_>>> {
        let Some((_, range)) = &mut self.ahead else { return Ok(None) };
        let entry = range.next();
        self.has_failed = entry.is_err();
        let entry = entry?;
        self.place = match (&entry, direction) {
            (Some(entry), _) => {
                self.key.clear();
                self.key.extend_from_slice(entry.key);
                Place::At
            }
            (None, Direction::Ascending) => Place::Behind,
            (None, Direction::Descending) => Place::Before,
        };
        Ok(entry)
    }
}

impl<R: ?Sized> fmt::Debug for Cursor<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("place", &self.place).finish_non_exhaustive()
    }
}
