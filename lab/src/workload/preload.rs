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

/// The entries that the first `rows` rows leave behind, sorted by key.
pub(super) fn sorted(source: &Source, rows: u64) -> Vec<Loaded> {
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
    place: usize,
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
        let loaded = self.workload.preload.get(self.place)?;
        self.place += 1;
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
