//! What an index should hold: an ordered map in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use index::{Cursor, Direction, Index, KeyRange, Result};

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
    pub fn compare_get(&self, index: &mut dyn Index, key: &[u8], offset: u32) {
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

    /// Compares at most `most` entries of `range` in `index` with what they should be.
    ///
    /// # Panics
    /// They differ.
    pub fn compare_range(&self, index: &mut dyn Index, range: KeyRange<'_>, most: usize) {
        let mut cursor = index.range(range).expect("a range opens");
        let expected = self.range(range);
        for (place, wanted) in expected.iter().take(most).enumerate() {
            let found = cursor.next().expect("a range goes on");
            assert_eq!(found, Some(*wanted), "entry {place} of {range:?}");
        }
        if expected.len() < most {
            assert_eq!(cursor.next().expect("it ends"), None, "behind {range:?}");
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
        Entries(self.entries.iter())
    }
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

struct Entries<'m>(std::collections::btree_map::Iter<'m, Vec<u8>, Vec<u8>>);

impl Cursor for Entries<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        Ok(self.0.next().map(|(key, value)| (key.as_slice(), value.as_slice())))
    }
}
