//! What the threads of a database share under its lock, and reading entries out of it.

use std::ops::Bound;

use index::{Cursor, Direction, Index, KeyRange, KeyValue, Update, Value, read_piece};

use crate::keyspace::{Catalog, Scope, free_some, under};
use crate::range::{Source, read_whole};
use crate::turns::Lock;
use crate::{Error, Result};

/// Bytes of entries that a range reads at first: many end after a few.
const FIRST_BYTES: usize = 1 << 10;

/// Values up to so many bytes are read at once.
const SHORT_BYTES: usize = 1024;

/// What stands before an entry that was read ahead: the length of the key, that of the value, and
/// whether the value follows.
const HEADER: usize = 9;

/// Where a range of the tree's keys begins and ends.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The index.
pub(crate) struct Core<'d> {
    pub(crate) index: Box<dyn Index + 'd>,
    /// The tree's key of a user's.
    key: Vec<u8>,
    /// The keyspaces, once they were asked for.
    catalog: Option<Catalog>,
}

impl<'d> Core<'d> {
    pub(crate) const fn new(index: Box<dyn Index + 'd>) -> Self {
        Core { index, key: Vec::new(), catalog: None }
    }

    /// The keyspaces.
    pub(crate) fn catalog(&mut self) -> Result<&mut Catalog> {
        let catalog = match self.catalog.take() {
            Some(catalog) => catalog,
            None => Catalog::read(&mut *self.index)?,
        };
        Ok(self.catalog.insert(catalog))
    }

    /// Forgets what keyspaces there are: everything may be another.
    pub(crate) fn forget_catalog(&mut self) {
        if let Some(catalog) = self.catalog.take() {
            catalog.forget();
        }
    }

    /// Deletes some entries of a keyspace that was dropped.
    pub(crate) fn free_some(&mut self) -> Result<()> {
        let mut catalog = self.catalog.take();
        let freed = match &mut catalog {
            Some(catalog) => free_some(&mut *self.index, catalog),
            None => Ok(()),
        };
        self.catalog = catalog;
        freed
    }

    /// Makes one change in a keyspace.
    pub(crate) fn update_one(
        &mut self,
        scope: &Scope,
        update: &Update<'_>,
    ) -> Result<index::Result<()>> {
        let key = scope.join(update.key(), &mut self.key);
        let update = under(scope, key, update)?;
        Ok(self.index.update(&[update]))
    }

    /// Reads a piece of the value of `key` in a keyspace, as [`index::Read::get`].
    pub(crate) fn get(
        &mut self,
        scope: &Scope,
        key: &[u8],
        offset: u32,
        into: &mut [u8],
    ) -> Result<Option<u32>> {
        scope.check()?;
        scope.check_key(key)?;
        let key = scope.join(key, &mut self.key);
        self.index.get(key, offset, into).map_err(|error| scope.without(error))
    }

    /// The whole value of `key`.
    pub(crate) fn value(&mut self, scope: &Scope, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut short = [0; SHORT_BYTES];
        let Some(length) = self.get(scope, key, 0, &mut short)? else {
            return Ok(None);
        };
        if let Some(value) = short.get(..length as usize) {
            return Ok(Some(value.to_vec()));
        }
        let key = scope.join(key, &mut self.key);
        let index = &mut *self.index;
        let value = read_whole(|offset, into| Ok(index.get(key, offset, into)?.unwrap_or(0)))?;
        Ok(Some(value))
    }
}

/// Entries of a range, of which a few are held at a time: so the lock is free while the caller
/// looks at them.
pub(crate) struct Ahead<'c, 'd> {
    core: &'c Lock<Core<'d>>,
    scope: Scope,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Direction,
    buffer: Vec<u8>,
    /// Where the present entry begins, if there is one, and where it ends.
    start: Option<usize>,
    end: usize,
    /// Bytes of the buffer, at most.
    most: usize,
    /// What comes behind the buffer.
    behind: Behind,
}

enum Behind {
    More,
    Nothing,
    Failed(Error),
}

impl<'c, 'd> Ahead<'c, 'd> {
    /// The entries of `range` in a keyspace, up to `most` bytes of them at a time.
    pub(crate) fn new(
        core: &'c Lock<Core<'d>>,
        scope: &Scope,
        range: KeyRange<'_>,
        most: usize,
    ) -> Result<Self> {
        let (from, to) = scope.bounds(range)?;
        let mut ahead = Ahead {
            core,
            scope: scope.clone(),
            from,
            to,
            direction: range.direction,
            buffer: Vec::with_capacity(FIRST_BYTES.min(most)),
            start: None,
            end: 0,
            most,
            behind: Behind::More,
        };
        ahead.fill()?;
        Ok(ahead)
    }

    /// Reads the next entries.
    fn fill(&mut self) -> Result<()> {
        self.buffer.clear();
        (self.start, self.end) = (None, 0);
        self.behind = Behind::Nothing;
        let mut last = None;
        {
            let mut core = self.core.lock()?;
            self.scope.check()?;
            let (from, to) = (self.from.as_ref(), self.to.as_ref());
            let (from, to) = (from.map(Vec::as_slice), to.map(Vec::as_slice));
            let range = KeyRange { from, to, direction: self.direction };
            let cursor = core.index.range(range).map_err(|error| self.scope.without(error));
            let mut cursor = cursor?;
            loop {
                match cursor.next() {
                    Ok(Some((key, value))) => {
                        let start = self.buffer.len();
                        let before = last.map(|last| key_of(&self.buffer, last));
                        if !follows(key, before, range) {
                            self.behind = Behind::Failed(out_of_order());
                            break;
                        }
                        if !hold(&mut self.buffer, key, value) {
                            self.behind = Behind::More;
                            break;
                        }
                        last = Some(start);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.behind = Behind::Failed(error);
                        break;
                    }
                }
            }
        }
        if let (Some(last), Behind::More) = (last, &self.behind) {
            let key = Bound::Excluded(key_of(&self.buffer, last).to_vec());
            match self.direction {
                Direction::Ascending => self.from = key,
                Direction::Descending => self.to = key,
            }
        }
        Ok(())
    }

    /// Goes to the next entry; false behind the last.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if self.end == self.buffer.len() && matches!(self.behind, Behind::More) {
            let wanted = (2 * self.buffer.capacity()).min(self.most);
            if self.buffer.capacity() < wanted {
                // Twice as much each time: a short range reads little that nobody asks for.
                self.buffer = Vec::new();
                self.buffer.reserve_exact(wanted);
            }
            self.fill()?;
        }
        if let Some(end) = entry_end(&self.buffer, self.end) {
            (self.start, self.end) = (Some(self.end), end);
            return Ok(true);
        }
        self.start = None;
        match std::mem::replace(&mut self.behind, Behind::Nothing) {
            Behind::Failed(error) => Err(error),
            Behind::More | Behind::Nothing => Ok(false),
        }
    }

    /// The tree's key of the present entry.
    pub(crate) fn tree_key(&self) -> Option<&[u8]> {
        self.start.map(|start| key_of(&self.buffer, start))
    }

    /// The present entry.
    pub(crate) fn entry(&self) -> Result<KeyValue<'_>> {
        let start = self.start.ok_or(Error::Index(index::Error::NoEntry))?;
        let key = key_of(&self.buffer, start);
        let value = match self.buffer.get(start + HEADER + key.len()..self.end) {
            Some(value) if !is_long(&self.buffer, start) => Value::Inline(value),
            _ => Value::Long(number(&self.buffer, start + 4)),
        };
        Ok((key.get(self.scope.prefix().len()..).unwrap_or_default(), value))
    }
}

impl Source for Ahead<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        match self.advance()? {
            true => self.entry().map(Some),
            false => Ok(None),
        }
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        match self.entry()? {
            (_, Value::Inline(value)) => Ok(read_piece(value, offset, into)),
            (key, Value::Long(_)) => {
                let read = self.core.lock()?.get(&self.scope, key, offset, into)?;
                read.ok_or(Error::Deleted)
            }
        }
    }

    fn value(&mut self) -> Result<Vec<u8>> {
        match self.entry()? {
            (_, Value::Inline(value)) => Ok(value.to_vec()),
            (key, Value::Long(_)) => {
                self.core.lock()?.value(&self.scope, key)?.ok_or(Error::Deleted)
            }
        }
    }
}

/// True if `key` is in `range`, and comes behind the one `before` it: what is damaged might bring
/// the next piece of a range back to where the last one began, without end.
fn follows(key: &[u8], before: Option<&[u8]>, range: KeyRange<'_>) -> bool {
    let start = match (before, range.direction) {
        (Some(before), _) => Bound::Excluded(before),
        (None, Direction::Ascending) => range.from,
        (None, Direction::Descending) => range.to,
    };
    let order = |bound: &[u8]| match range.direction {
        Direction::Ascending => key.cmp(bound),
        Direction::Descending => bound.cmp(key),
    };
    match start {
        Bound::Excluded(bound) => order(bound).is_gt(),
        Bound::Included(bound) => order(bound).is_ge(),
        Bound::Unbounded => true,
    }
}

fn out_of_order() -> Error {
    let what = "its keys are out of order";
    Error::NotADatabase { path: None, is_ours: true, what: what.to_owned() }
}

/// Adds an entry to what is held; false if it has no room there, unless it is the first.
fn hold(buffer: &mut Vec<u8>, key: &[u8], value: Value<'_>) -> bool {
    let bytes = value.whole().unwrap_or_default();
    let need = HEADER + key.len() + bytes.len();
    if !buffer.is_empty() && buffer.len() + need > buffer.capacity() {
        return false;
    }
    buffer.reserve_exact(need);
    buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
    buffer.extend_from_slice(&value.len().to_le_bytes());
    buffer.push(value.whole().is_none().into());
    buffer.extend_from_slice(key);
    buffer.extend_from_slice(bytes);
    true
}

fn number(buffer: &[u8], at: usize) -> u32 {
    let bytes = buffer.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn is_long(buffer: &[u8], start: usize) -> bool {
    buffer.get(start + HEADER - 1).is_some_and(|mark| *mark != 0)
}

fn key_of(buffer: &[u8], start: usize) -> &[u8] {
    let (from, length) = (start + HEADER, number(buffer, start) as usize);
    buffer.get(from..from + length).unwrap_or_default()
}

/// Where the entry ends that begins at `start`; `None` behind the last.
fn entry_end(buffer: &[u8], start: usize) -> Option<usize> {
    if start >= buffer.len() {
        return None;
    }
    let value = if is_long(buffer, start) { 0 } else { number(buffer, start + 4) as usize };
    Some(start + HEADER + number(buffer, start) as usize + value)
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

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::{Database, Options};

    #[test]
    fn a_key_that_does_not_follow_the_one_before_ends_a_range() {
        let (ascending, descending) = (KeyRange::ALL, KeyRange::ALL.reversed());
        assert!(follows(b"b", Some(b"a"), ascending) && follows(b"a", Some(b"b"), descending));
        assert!(!follows(b"a", Some(b"a"), ascending) && !follows(b"b", Some(b"a"), descending));
        // The next piece begins behind the last key of the one before.
        let behind = KeyRange { from: Bound::Excluded(b"m"), ..KeyRange::ALL };
        assert!(follows(b"n", None, behind) && !follows(b"m", None, behind));
        assert!(!follows(b"c", None, behind));
    }
    #[test]
    fn a_short_range_reads_little_ahead_and_a_long_one_in_large_pieces() -> Result<()> {
        let folder = tempfile::tempdir().expect("there is a folder");
        let database = Database::create(folder.path().join("a.db"), &Options::new())?;
        let entries = (0..10_000_u32).map(|number| (number.to_be_bytes(), [7; 8]));
        database.load(entries)?;
        let (scope, most) = (database.unnamed(), 64 << 10);
        let mut ahead = Ahead::new(&database.core, &scope, KeyRange::ALL, most)?;
        let mut count = 0;
        while ahead.advance()? {
            count += 1;
            if count == 100 {
                assert!(ahead.buffer.capacity() <= 4 << 10, "{}", ahead.buffer.capacity());
            }
        }
        assert_eq!((count, ahead.buffer.capacity()), (10_000, most));
        Ok(())
    }
}
