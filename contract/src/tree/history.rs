//! Random histories.

use std::ops::Bound;

use index::{Direction, Error, Index, KeyRange, Lookup, Update, Width};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::case::{Case, Stand};
use super::model::Model;

/// Keys of a history are drawn from so many.
const KEYS: u32 = 3000;

/// The same on raw flash with pages below 2 KiB, where a path that shares a page leads to few
/// leaves: with keys of fixed length, and with others.
const KEYS_OF_SMALL_PAGES: [u32; 2] = [300, 20];

/// Operations between two reopenings.
const OPERATIONS: u32 = 1500;

/// A history that is being played.
struct History<'c> {
    case: &'c Case,
    random: ChaCha8Rng,
    model: Model,
    /// The most bytes that a key and its value may have together in a node.
    entry_most: usize,
    /// Bytes in the smallest node.
    node_bytes: usize,
    /// Keys are drawn from so many.
    keys: u32,
}

/// Plays the history of `case`: loading, puts, deletes, batches, gets and ranges, with three
/// reopenings on the way, first growing, then shrinking to nothing.
///
/// # Panics
/// An answer is not what the model says, an invariant is broken, or an operation fails.
pub fn run(case: &Case) {
    let mut storage = case.storage(2 << 20);
    let mut history = History {
        case,
        random: ChaCha8Rng::seed_from_u64(case.seed),
        model: Model::default(),
        entry_most: entry_most(case),
        node_bytes: node_bytes(case),
        keys: keys(case),
    };
    let mut index = case.index(&mut storage, false);
    if case.seed.is_multiple_of(2) {
        history.load(&mut *index);
    }
    for deletes_percent in [20, 50, 90] {
        for _ in 0..OPERATIONS {
            history.step(&mut *index, deletes_percent);
        }
        history.inspect(&mut *index);
        index.close().expect("it closes");
        drop(index);
        index = case.index(&mut storage, true);
        history.inspect(&mut *index);
    }
    history.empty(&mut *index);
}

fn keys(case: &Case) -> u32 {
    match case.stand {
        Stand::Nand if case.page_bytes < 2048 => {
            KEYS_OF_SMALL_PAGES[usize::from(case.shape.shape.key == Width::Variable)]
        }
        Stand::Nand | Stand::Ram | Stand::Growing | Stand::Ftl(_) => KEYS,
    }
}

fn node_bytes(case: &Case) -> usize {
    let node = case.parameters.iter().find(|(name, _)| *name == "node");
    node.map_or(case.page_bytes as usize, |(_, bytes)| bytes.parse().unwrap_or(128))
}

/// What every tree on such pages takes: a quarter of the smallest node, with some room for slots.
fn entry_most(case: &Case) -> usize {
    match case.stand {
        // The nodes of a whole path may share a page.
        Stand::Nand => (node_bytes(case) / 2 - 48) / 4 - 8,
        Stand::Ram | Stand::Growing | Stand::Ftl(_) => (node_bytes(case) - 16) / 4 - 8,
    }
}

/// What a key has to leave for what tells where a long value stands.
const LONG_VALUE_BYTES: usize = 8;

impl History<'_> {
    fn key(&mut self) -> Vec<u8> {
        let number = self.random.random_range(0..self.keys);
        match self.case.shape.shape.key {
            Width::Fixed(4) => number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec(),
            Width::Fixed(_) => (u64::from(number) << 20).to_be_bytes().to_vec(),
            Width::Variable => {
                let stem = ["", "a", "flights/2013/ewr/", "flights/2013/", "weather/"];
                let mut key = stem[number as usize % stem.len()].as_bytes().to_vec();
                if number > 0 {
                    key.extend_from_slice(number.to_string().as_bytes());
                }
                key.truncate(self.entry_most - LONG_VALUE_BYTES);
                key
            }
        }
    }

    fn value(&mut self, key: &[u8]) -> Vec<u8> {
        let length = match self.case.shape.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => {
                let most = self.entry_most - key.len();
                let usual = match self.random.random_range(0..100) {
                    0..5 => most,
                    5..8 if self.case.has_long_values() => 3 * self.node_bytes,
                    _ => most.min(80),
                };
                self.random.random_range(0..=usual)
            }
        };
        let mut value = vec![0; length];
        self.random.fill_bytes(&mut value);
        value
    }

    fn load(&mut self, index: &mut dyn Index) {
        for _ in 0..self.random.random_range(0..2000) {
            let key = self.key();
            let value = self.value(&key);
            self.model.entries.insert(key, value);
        }
        let percent = self.random.random_range(50..=100);
        let whole_most = self.random.random_range(0..2 * self.node_bytes);
        let mut sorted = self.model.cursor_with_long_values(whole_most);
        let loaded = index.load(&mut sorted, percent).expect("it loads");
        drop(sorted);
        assert_eq!(loaded, self.model.entries.len() as u64);
        if loaded > 0 {
            assert_eq!(index.load(&mut self.model.cursor(), 70), Err(Error::NotEmpty));
        }
        self.inspect(index);
    }

    fn step(&mut self, index: &mut dyn Index, deletes_percent: u32) {
        let key = self.key();
        match self.random.random_range(0..100) {
            0..60 => {
                let batch = if self.random.random_ratio(1, 10) { 7 } else { 1 };
                self.update(index, batch, deletes_percent);
            }
            60..85 => {
                let bytes = self.model.entries.get(&key).map_or(0, Vec::len) as u32;
                let offset = match self.random.random_range(0..4) {
                    0 => 3,
                    1 => self.random.random_range(0..bytes + 5),
                    _ => 0,
                };
                self.model.compare_get(index, &key, offset);
            }
            _ => {
                let (from, to) = (self.bound(), self.bound());
                let direction = if self.random.random_ratio(1, 2) {
                    Direction::Ascending
                } else {
                    Direction::Descending
                };
                let range = KeyRange { from: as_slice(&from), to: as_slice(&to), direction };
                self.model.compare_range(index, range, 20);
            }
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        let key = self.key();
        match self.random.random_range(0..10) {
            0 => Bound::Unbounded,
            1..6 => Bound::Included(key),
            _ => Bound::Excluded(key),
        }
    }

    fn update(&mut self, index: &mut dyn Index, length: usize, deletes_percent: u32) {
        let mut changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        for _ in 0..length {
            let delete = self.random.random_range(0..100) < deletes_percent;
            let key = if delete && self.random.random_ratio(3, 4) {
                self.present_key()
            } else {
                self.key()
            };
            let value = (!delete).then(|| self.value(&key));
            changes.push((key, value));
        }
        let batch: Vec<Update<'_>> = changes
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Update::Put { key, value },
                None => Update::Delete { key },
            })
            .collect();
        let first = &changes[0].0;
        if first.last().is_some_and(|last| last % 2 == 1) {
            let mut look_up = |index: &mut dyn Lookup| self.model.compare_lookup(index, first, 0);
            while index.prepare(&batch, &mut look_up).expect("it is prepared") {}
        }
        index.update(&batch).expect("an update works");
        for (key, value) in changes {
            match value {
                Some(value) => self.model.entries.insert(key, value),
                None => self.model.entries.remove(&key),
            };
        }
    }

    fn present_key(&mut self) -> Vec<u8> {
        let near = self.key();
        let mut behind = self.model.entries.range(near.clone()..);
        behind.next().map_or(near, |(key, _)| key.clone())
    }

    fn inspect(&mut self, index: &mut dyn Index) {
        self.model.compare_all(index);
        let findings = super::findings(index);
        assert!(findings.is_empty(), "{findings:?}");
        let statistics = index.statistics();
        let memory = statistics.memory;
        let taken = memory.cache + memory.buffers;
        assert!(taken <= statistics.memory_peak, "{memory:?} above its peak");
    }

    /// Deletes all that is left.
    fn empty(&mut self, index: &mut dyn Index) {
        while let Some((key, _)) = self.model.entries.pop_first() {
            index.update(&[Update::Delete { key: &key }]).expect("a delete works");
        }
        self.inspect(index);
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
