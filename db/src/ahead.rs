//! Reading the entries of a range ahead, a piece at a time.

use std::ops::Bound;

use index::{Direction, KeyRange, KeyValue, Value, read_piece};

use crate::range::Source;
use crate::view::{Placed, View};
use crate::{Error, Result};

/// Bytes of entries that a range reads at first: many end after a few.
const FIRST_BYTES: usize = 1 << 10;

/// Values of an overlay up to so many bytes are copied; longer ones are read where they are.
const INLINE_BYTES: usize = 4 << 10;

/// What stands before an entry that was read ahead: the length of the key, that of the value, and
/// whether the value follows.
const HEADER: usize = 9;

/// Entries of a range, of which a few are held at a time: so the lock is free while the caller
/// looks at them.
pub(crate) struct Ahead<'c, 'd> {
    view: View<'c, 'd>,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Direction,
    buffer: Vec<u8>,
    /// Where the present entry begins, if there is one, and where it ends.
    start: Option<usize>,
    end: usize,
    /// What comes behind the buffer.
    behind: Behind,
}

enum Behind {
    More,
    Nothing,
    Failed(Error),
}

impl<'c, 'd> Ahead<'c, 'd> {
    /// The entries of `range`.
    pub(crate) fn new(view: View<'c, 'd>, range: KeyRange<'_>) -> Result<Self> {
        let (from, to) = view.scope.bounds(range)?;
        let mut ahead = Ahead {
            from,
            to,
            direction: range.direction,
            buffer: Vec::with_capacity(FIRST_BYTES.min(view.most_ahead)),
            view,
            start: None,
            end: 0,
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
        self.behind = match self.read_piece(&mut last) {
            Ok(behind) => behind,
            // Entries may stand before what failed.
            Err(error) if last.is_some() => Behind::Failed(error),
            Err(error) => return Err(error),
        };
        if let (Some(last), Behind::More) = (last, &self.behind) {
            let key = Bound::Excluded(key_of(&self.buffer, last).to_vec());
            match self.direction {
                Direction::Ascending => self.from = key,
                Direction::Descending => self.to = key,
            }
        }
        Ok(())
    }

    /// Reads entries into the buffer as long as they have room, and tells where the `last` begins.
    fn read_piece(&mut self, last: &mut Option<usize>) -> Result<Behind> {
        let core = &mut *self.view.core.lock()?;
        self.view.check()?;
        let (from, to) = (self.from.as_ref(), self.to.as_ref());
        let (from, to) = (from.map(Vec::as_slice), to.map(Vec::as_slice));
        let range = KeyRange { from, to, direction: self.direction };
        let overlay = self.view.over.overlay(&core.snapshots)?;
        let mut changes = overlay.map(|overlay| Placed::new(overlay, range));
        let cursor = core.index.range(range).map_err(|error| self.view.scope.without(error));
        let mut cursor = cursor?;
        loop {
            // No entry is read for nothing: the next piece goes on where the tree stopped.
            let end = self.buffer.len();
            if last.is_some_and(|last| 2 * end - last > self.buffer.capacity()) {
                return Ok(Behind::More);
            }
            let entry = cursor.next()?;
            let key = entry.map(|(key, _)| key);
            if let Some(key) = key {
                let before = last.map(|last| key_of(&self.buffer, last));
                if !follows(key, before, range) {
                    return Err(out_of_order());
                }
            }
            let mut is_changed = false;
            while let Some((changed, value)) = changes.as_mut().and_then(|it| it.up_to(key)) {
                is_changed = key == Some(changed.as_slice());
                let Some(value) = value else { continue };
                let value = match value.len() {
                    0..=INLINE_BYTES => Value::Inline(value),
                    length => Value::Long(length as u32),
                };
                if !hold(&mut self.buffer, changed, value, last) {
                    return Ok(Behind::More);
                }
            }
            match entry {
                None => return Ok(Behind::Nothing),
                Some(_) if is_changed => {}
                Some((key, value)) => {
                    if !hold(&mut self.buffer, key, value, last) {
                        return Ok(Behind::More);
                    }
                }
            }
        }
    }

    /// Goes to the next entry; false behind the last.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if self.end == self.buffer.len() && matches!(self.behind, Behind::More) {
            let wanted = (2 * self.buffer.capacity()).min(self.view.most_ahead);
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

    /// The present entry.
    pub(crate) fn entry(&self) -> Result<KeyValue<'_>> {
        let start = self.start.ok_or(Error::Index(index::Error::NoEntry))?;
        let key = key_of(&self.buffer, start);
        let value = match self.buffer.get(start + HEADER + key.len()..self.end) {
            Some(value) if !is_long(&self.buffer, start) => Value::Inline(value),
            _ => Value::Long(number(&self.buffer, start + 4)),
        };
        Ok((key.get(self.view.scope.prefix().len()..).unwrap_or_default(), value))
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
            (key, Value::Long(_)) => self.view.get_into(key, offset, into)?.ok_or(Error::Deleted),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>> {
        match self.entry()? {
            (_, Value::Inline(value)) => Ok(value.to_vec()),
            (key, Value::Long(_)) => self.view.get(key)?.ok_or(Error::Deleted),
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

/// Adds an entry to what is held, and tells where it begins; false if it has no room there, unless
/// it is the first.
fn hold(buffer: &mut Vec<u8>, key: &[u8], value: Value<'_>, start: &mut Option<usize>) -> bool {
    let bytes = value.whole().unwrap_or_default();
    let need = HEADER + key.len() + bytes.len();
    if !buffer.is_empty() && buffer.len() + need > buffer.capacity() {
        return false;
    }
    buffer.reserve_exact(need);
    *start = Some(buffer.len());
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
        let most_ahead = 64 << 10;
        let view = View { most_ahead, ..database.view() };
        let mut ahead = Ahead::new(view, KeyRange::ALL)?;
        let mut count = 0;
        while ahead.advance()? {
            count += 1;
            if count == 100 {
                assert!(ahead.buffer.capacity() <= 4 << 10, "{}", ahead.buffer.capacity());
            }
        }
        assert_eq!((count, ahead.buffer.capacity()), (10_000, most_ahead));
        Ok(())
    }
}
