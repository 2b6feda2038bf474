//! What an index should hold: an ordered map in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use index::read_piece;
use index::{Cursor, Direction, Error, Index, KeyRange, KeyValue, Lookup, Result, Value};

/// Bytes in a piece of a long value; a prime, so that pieces begin everywhere in pages.
const PIECE_BYTES: usize = 4093;

/// What a piece is read into: whole pieces are compared, byte by byte would take most of the time.
const UNTOUCHED: [u8; PIECE_BYTES] = [0xEE; PIECE_BYTES];

/// An ordered map of byte strings.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The entries.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    /// The entries of `range`, in its direction.
    pub fn range<'m>(&'m self, range: KeyRange<'_>) -> Vec<(&'m [u8], &'m [u8])> {
        if is_empty(range.from, range.to) {
            return Vec::new();
        }
        let entries = self.entries.range::<[u8], _>((range.from, range.to));
        let pair = |(key, value): (&'m Vec<u8>, &'m Vec<u8>)| (key.as_slice(), value.as_slice());
        match range.direction {
            Direction::Ascending => entries.map(pair).collect(),
            Direction::Descending => entries.rev().map(pair).collect(),
        }
    }

    /// Compares the value of `key` in `index`, from byte `offset` on, with what it should be.
    ///
    /// # Panics
    /// They differ.
    pub fn compare_get(&self, mut index: &mut dyn Index, key: &[u8], offset: u32) {
        self.compare_lookup(&mut index, key, offset);
    }

    /// The same, where keys are only looked up.
    ///
    /// # Panics
    /// They differ.
    pub fn compare_lookup(&self, index: &mut dyn Lookup, key: &[u8], offset: u32) {
        let mut into = [0xEE; 96];
        let found = index.get(key, offset, &mut into).expect("a get works");
        let expected = self.entries.get(key);
        assert_eq!(found, expected.map(|value| value.len() as u32), "the length of {key:?}");
        if let Some(wanted) = expected.and_then(|value| value.get(offset as usize..)) {
            let length = wanted.len().min(into.len());
            assert_eq!(&into[..length], &wanted[..length], "the value of {key:?}");
            assert!(into[length..].iter().all(|byte| *byte == 0xEE), "bytes behind the value");
        }
    }

    /// Compares the whole value of `key` in `index`, piece by piece, with what it should be.
    ///
    /// # Panics
    /// They differ.
    pub fn compare_value(&self, index: &mut dyn Index, key: &[u8]) {
        let expected = self.entries.get(key).map_or(&[][..], Vec::as_slice);
        for offset in (0..=expected.len()).step_by(PIECE_BYTES) {
            let mut into = UNTOUCHED;
            let found = index.get(key, offset as u32, &mut into).expect("a get works");
            assert_eq!(found.map_or(0, |bytes| bytes as usize), expected.len(), "of {key:?}");
            let wanted = &expected[offset..expected.len().min(offset + PIECE_BYTES)];
            assert!(into.starts_with(wanted), "the value of {key:?} from byte {offset} on");
        }
    }

    /// Compares at most `most` entries of `range` in `index` with what they should be.
    ///
    /// # Panics
    /// They differ.
    pub fn compare_range(&self, index: &mut dyn Index, range: KeyRange<'_>, most: usize) {
        let mut cursor = index.range(range).expect("a range opens");
        let expected = self.range(range);
        for (place, wanted) in expected.iter().take(most).enumerate() {
            assert!(is_next(&mut *cursor, *wanted), "entry {place} of {range:?}");
        }
        if expected.len() < most {
            assert_eq!(cursor.next().expect("it ends"), None, "behind {range:?}");
            assert_eq!(cursor.read_value(0, &mut []), Err(Error::NoEntry), "behind {range:?}");
            assert_eq!(cursor.next().expect("it stays ended"), None, "behind {range:?}");
        }
    }

    /// Compares all contents of `index` in both directions.
    ///
    /// # Panics
    /// They differ.
    pub fn compare_all(&self, index: &mut dyn Index) {
        self.compare_range(index, KeyRange::ALL, usize::MAX);
        self.compare_range(index, KeyRange::ALL.reversed(), usize::MAX);
    }

    /// A cursor over all entries, for loading.
    pub fn cursor(&self) -> impl Cursor + '_ {
        Entries { entries: self.entries.iter(), last: None, whole_most: usize::MAX }
    }

    /// As [`Model::cursor`], but values of more than `most` bytes are handed out in pieces only.
    pub fn cursor_with_long_values(&self, most: usize) -> impl Cursor + '_ {
        Entries { entries: self.entries.iter(), last: None, whole_most: most }
    }
}

/// True if the next entry of `cursor` is this one, also where its value is read in pieces.
fn is_next(cursor: &mut dyn Cursor, (key, value): (&[u8], &[u8])) -> bool {
    match cursor.next().expect("a range goes on") {
        Some((found, Value::Inline(whole))) if (found, whole) == (key, value) => {}
        Some((found, Value::Long(bytes))) if found == key && bytes as usize == value.len() => {}
        _ => return false,
    }
    (0..=value.len()).step_by(PIECE_BYTES).all(|offset| {
        let mut into = UNTOUCHED;
        let bytes = cursor.read_value(offset as u32, &mut into).expect("a value is read");
        let wanted = &value[offset..value.len().min(offset + PIECE_BYTES)];
        bytes as usize == value.len()
            && into.starts_with(wanted)
            && into[wanted.len()..] == UNTOUCHED[wanted.len()..]
    })
}

/// True where an ordered map would call a range impossible.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from > to,
        _ => false,
    }
}

struct Entries<'m> {
    entries: std::collections::btree_map::Iter<'m, Vec<u8>, Vec<u8>>,
    last: Option<&'m [u8]>,
    /// The most bytes of a value that is handed out as a whole.
    whole_most: usize,
}

impl Cursor for Entries<'_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        let entry = self.entries.next();
        self.last = entry.map(|(_, value)| value.as_slice());
        Ok(entry.map(|(key, value)| {
            if value.len() <= self.whole_most {
                (key.as_slice(), Value::Inline(value))
            } else {
                (key.as_slice(), Value::Long(value.len() as u32))
            }
        }))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        self.last.map(|value| read_piece(value, offset, into)).ok_or(Error::NoEntry)
    }
}
