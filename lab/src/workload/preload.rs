//! What is in an index before the measured phase.

use index::{Cursor, KeyValue, Value, Width, read_piece};

use super::table::Asked;
use super::{Source, Workload};

/// An entry that is loaded: whose key, and which row's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    pub(super) id: u32,
    pub(super) row: u32,
}

/// The entries to load, in the order of their keys.
#[derive(Debug)]
pub(super) enum Sorted {
    Listed(Vec<Loaded>),
    /// So many entries, the first ones: those of the keys that are theirs, when all keys are walked
    /// through.
    Walked(u32),
}

/// From so many entries on no list is made: while it is sorted it takes 24 bytes an entry. Walking
/// goes through all keys of 4 bytes, however few entries there are.
const WALKED_LEAST: u64 = 1 << 27;

impl Sorted {
    /// Those that the first `rows` rows leave behind.
    pub(super) fn new(source: &Source, rows: u64) -> Self {
        match source {
            Source::Numbers(numbers) if rows >= WALKED_LEAST && numbers.can_be_walked() => {
                Sorted::Walked(rows as u32)
            }
            _ => Sorted::Listed(sorted(source, rows)),
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Sorted::Listed(listed) => listed.len() as u64,
            Sorted::Walked(rows) => u64::from(*rows),
        }
    }

    /// The entry at `place`, or the first one behind it, and its place.
    fn from(&self, source: &Source, mut place: u64) -> Option<(u64, Loaded)> {
        match (self, source) {
            (Sorted::Listed(listed), _) => Some((place, *listed.get(place as usize)?)),
            (Sorted::Walked(rows), Source::Numbers(numbers)) => loop {
                let id = numbers.walked(place)?;
                if id < *rows {
                    return Some((place, Loaded { id, row: id }));
                }
                place += 1;
            },
            (Sorted::Walked(_), Source::Table(_)) => None,
        }
    }
}

/// The entries that the first `rows` rows leave behind, sorted by key.
fn sorted(source: &Source, rows: u64) -> Vec<Loaded> {
    let mut loaded = match source {
        Source::Table(table) if !table.row_ids.is_empty() => last_values(source, rows),
        _ => (0..rows as u32).map(|row| Loaded { id: row, row }).collect(),
    };
    match source.shape().key {
        Width::Fixed(bytes) if bytes <= 8 => {
            let mut key = Vec::with_capacity(8);
            loaded.sort_by_cached_key(|loaded| {
                key.clear();
                source.key(loaded.id, &mut key);
                key.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
            });
        }
        _ => loaded.sort_by_cached_key(|loaded| {
            let mut key = Vec::new();
            source.key(loaded.id, &mut key);
            key
        }),
    }
    loaded
}

/// Of rows that repeat keys and may delete: what is there after the first `rows`.
fn last_values(source: &Source, rows: u64) -> Vec<Loaded> {
    let Source::Table(table) = source else { return Vec::new() };
    let mut last: Vec<Option<u32>> = vec![None; table.keys.len()];
    for row in 0..rows {
        let value = match table.asked.get(row as usize).copied().unwrap_or(Asked::Put) {
            Asked::Put => Some(row as u32),
            Asked::Delete => None,
            Asked::Get | Asked::Range => continue,
        };
        last[table.id_of(row) as usize] = value;
    }
    let there = last.into_iter().enumerate();
    there.filter_map(|(id, row)| row.map(|row| Loaded { id: id as u32, row })).collect()
}

/// The entries to load, one after the other.
#[derive(Debug)]
pub struct Preload<'w> {
    workload: &'w Workload,
    place: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'w> Preload<'w> {
    pub(super) fn new(workload: &'w Workload) -> Self {
        Preload { workload, place: 0, key: Vec::new(), value: Vec::new() }
    }

    /// The next entry, or `None` after the last.
    // It lends, so it can't be an `Iterator`.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<(&[u8], &[u8])> {
        let (place, loaded) = self.workload.preload.from(&self.workload.source, self.place)?;
        self.place = place + 1;
        self.key.clear();
        self.value.clear();
        self.workload.source.key(loaded.id, &mut self.key);
        self.workload.source.value(u64::from(loaded.row), &mut self.value);
        Some((&self.key, &self.value))
    }
}

impl Cursor for Preload<'_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        Ok(Preload::next(self).map(|(key, value)| (key, Value::Inline(value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        if self.place == 0 {
            return Err(index::Error::NoEntry);
        }
        Ok(read_piece(&self.value, offset, into))
    }
}

#[cfg(test)]
mod tests {
    use super::{Sorted, Source};
    use crate::workload::numbers::{Numbers, Order};

    /// The first million keys, of which a quarter is loaded.
    #[test]
    fn walking_meets_the_entries_by_their_keys() {
        for order in [Order::Scattered, Order::Ascending] {
            let shape = index::EntryShape::fixed(4, 4);
            let source = Source::Numbers(Numbers { shape, order, seed: 7 });
            let rows = 1 << 30;
            let (walked, mut place) = (Sorted::Walked(rows), 0);
            let (mut before, mut count, mut key) = (None, 0, Vec::new());
            while let Some((at, loaded)) = walked.from(&source, place).filter(|it| it.0 < 1 << 20) {
                key.clear();
                source.key(loaded.id, &mut key);
                assert!(loaded.id < rows && before.as_ref() < Some(&key), "{order:?}, {at}");
                before = Some(key.clone());
                (place, count) = (at + 1, count + 1);
            }
            let expected = if order == Order::Scattered { 1 << 18 } else { 1 << 20 };
            assert!((expected * 99 / 100..=expected * 101 / 100).contains(&count), "{count}");
        }
    }

    #[test]
    fn few_entries_and_long_keys_are_listed() {
        let source = |key| {
            let shape = index::EntryShape::fixed(key, 4);
            Source::Numbers(Numbers { shape, order: Order::Scattered, seed: 7 })
        };
        assert!(
            matches!(Sorted::new(&source(4), 1000), Sorted::Listed(list) if list.len() == 1000)
        );
        assert!(matches!(Sorted::new(&source(4), 1 << 30), Sorted::Walked(_)));
        assert!(matches!(Sorted::new(&source(8), 1000), Sorted::Listed(_)));
        let Source::Numbers(long) = source(8) else { unreachable!() };
        assert!(!long.can_be_walked());
    }
}
