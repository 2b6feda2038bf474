//! The operations of a workload, one after the other, the same for each tree.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::counts::{Counts, Deed};
use super::numbers::{push_decimal, push_low_bytes};
use super::preload::Sorted;
use super::present::Present;
use super::table::Asked;
use super::{Source, Workload};

/// One operation. Its bytes are lent until the next is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'o> {
    /// Let `key` have `value`.
    Put {
        /// The key.
        key: &'o [u8],
        /// The value.
        value: &'o [u8],
    },
    /// Let `key` be absent.
    Delete {
        /// The key.
        key: &'o [u8],
    },
    /// Look `key` up.
    Get {
        /// The key.
        key: &'o [u8],
    },
    /// Read up to `count` entries from key `from` on.
    Range {
        /// The first key.
        from: &'o [u8],
        /// The most entries.
        count: u32,
        /// Which way.
        direction: index::Direction,
    },
}

/// How often a key that is not there is drawn again before any one that is there is taken.
const DRAWS: u32 = 16;

/// The source of a workload's operations.
///
/// Updates and lookups come in random order: each next one is drawn from those that are left, so
/// that every order is equally likely. All that is random follows from the workload's seed.
#[derive(Debug)]
pub struct Operations<'w> {
    workload: &'w Workload,
    random: ChaCha8Rng,
    left: Counts,
    /// Inserts that come before all others.
    before: u64,
    present: Present,
    /// The next row that is put, or, where rows say what to do, done.
    row: u64,
    /// Puts of keys that were put before.
    changes: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'w> Operations<'w> {
    pub(super) fn new(workload: &'w Workload) -> Self {
        let mut present = Present::default();
        if !workload.is_scripted() {
            match &workload.preload {
                Sorted::Listed(listed) => {
                    for loaded in listed {
                        present.insert(loaded.id);
                    }
                }
                Sorted::Walked(rows) => present = Present::of_first(*rows),
            }
        }
        Operations {
            workload,
            random: ChaCha8Rng::seed_from_u64(workload.seed),
            left: workload.counts,
            before: workload.before,
            present,
            row: workload.first_row(),
            changes: 0,
            key: Vec::with_capacity(64),
            value: Vec::with_capacity(workload.longest_value()),
        }
    }

    /// The next operation, or `None` after the last.
    // It lends, so it can't be an `Iterator`.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Operation<'_>> {
        let drawn = self.draw()?;
        self.key.clear();
        self.value.clear();
        if self.workload.is_scripted() {
            return Some(self.scripted());
        }
        Some(match self.possible(drawn) {
            Deed::Hit => self.hit(),
            Deed::Miss => self.miss(),
            Deed::Range => self.range(),
            Deed::Insert => self.insert(),
            Deed::Delete => self.delete(),
            Deed::Update => self.update(),
        })
    }

    /// Draws what to do next from what is left to do.
    fn draw(&mut self) -> Option<Deed> {
        if self.before > 0 {
            self.before -= 1;
            return Some(Deed::Insert);
        }
        let total = self.left.total();
        if total == 0 {
            return None;
        }
        let place = self.random.random_range(0..total);
        Some(self.left.take(place))
    }

    /// What is done instead of `drawn` while nothing is there that it could be done to: an insert,
    /// if one is left. Then `drawn` waits for its turn.
    fn possible(&mut self, drawn: Deed) -> Deed {
        let needs_a_key = matches!(drawn, Deed::Hit | Deed::Range | Deed::Delete);
        if needs_a_key && self.present.len() == 0 {
            for other in [Deed::Insert, Deed::Update] {
                if self.left.exchange(other, drawn) {
                    return other;
                }
            }
        }
        drawn
    }

    fn hit(&mut self) -> Operation<'_> {
        match self.any_present() {
            Some(id) => self.workload.source.key(id, &mut self.key),
            None => self.write_miss(),
        }
        Operation::Get { key: &self.key }
    }

    fn miss(&mut self) -> Operation<'_> {
        self.write_miss();
        Operation::Get { key: &self.key }
    }

    fn range(&mut self) -> Operation<'_> {
        match self.any_present() {
            Some(id) => self.workload.source.key(id, &mut self.key),
            None => self.write_miss(),
        }
        let descending = self.random.random::<bool>();
        self.range_from_key(descending)
    }

    fn range_from_key(&self, descending: bool) -> Operation<'_> {
        let direction =
            if descending { index::Direction::Descending } else { index::Direction::Ascending };
        Operation::Range { from: &self.key, count: self.workload.scan, direction }
    }

    /// Puts the next row.
    fn insert(&mut self) -> Operation<'_> {
        let row = self.row;
        self.row += 1;
        let id = self.workload.source.id_of(row);
        self.put(id, row)
    }

    /// Puts a key once more.
    fn update(&mut self) -> Operation<'_> {
        let drawn = if self.workload.zipf.is_some() { self.by_rank() } else { self.any_present() };
        match drawn {
            Some(id) => self.put_again(id, u64::from(id)),
            None => self.insert(),
        }
    }

    /// Puts a row: with the value that it has, if that is new to its key.
    fn put(&mut self, id: u32, row: u64) -> Operation<'_> {
        let source = &self.workload.source;
        let fresh = self.present.insert(id);
        // A file has its own later values for a key; they are taken as they are.
        if source.reads_first(row) && (fresh || source.rows_repeat_keys()) {
            source.key(id, &mut self.key);
            source.value(row, &mut self.value);
            return Operation::Put { key: &self.key, value: &self.value };
        }
        self.put_again(id, row)
    }

    /// Puts a value that `id` never had.
    fn put_again(&mut self, id: u32, row: u64) -> Operation<'_> {
        self.present.insert(id);
        self.changes += 1;
        self.workload.source.key(id, &mut self.key);
        self.workload.source.value(row, &mut self.value);
        change(&mut self.value, self.changes, self.workload.shape());
        Operation::Put { key: &self.key, value: &self.value }
    }

    fn delete(&mut self) -> Operation<'_> {
        match self.any_present() {
            Some(id) => {
                self.present.remove(id);
                self.workload.source.key(id, &mut self.key);
            }
            None => self.write_miss(),
        }
        Operation::Delete { key: &self.key }
    }

    /// Draws an entry that is there: by rank under a Zipf distribution, else each as likely.
    fn any_present(&mut self) -> Option<u32> {
        if self.present.len() == 0 {
            return None;
        }
        if self.workload.zipf.is_some() {
            for _ in 0..DRAWS {
                if let Some(id) = self.by_rank().filter(|id| self.present.contains(*id)) {
                    return Some(id);
                }
            }
        }
        let place = self.random.random_range(0..self.present.len());
        Some(self.present.at(place))
    }

    /// Draws an entry by its rank. The keys of entries are scattered, so hot ones are not
    /// neighbours.
    fn by_rank(&mut self) -> Option<u32> {
        let zipf = self.workload.zipf.as_ref()?;
        let rank: f64 = self.random.sample(zipf);
        // Ranks go from 1 to the number of entries, which fits 32 bits.
        Some((rank as u64).saturating_sub(1) as u32)
    }

    fn write_miss(&mut self) {
        let draw = self.random.random();
        let issued = u32::try_from(self.row).unwrap_or(u32::MAX);
        self.workload.source.miss(draw, issued, &mut self.key);
    }

    /// Does what the next row asks for.
    fn scripted(&mut self) -> Operation<'_> {
        let row = self.row;
        self.row += 1;
        let Source::Table(table) = &self.workload.source else {
            return self.miss();
        };
        table.key(table.id_of(row), &mut self.key);
        match table.asked.get(row as usize).copied().unwrap_or(Asked::Get) {
            Asked::Put => {
                table.value(row, &mut self.value);
                Operation::Put { key: &self.key, value: &self.value }
            }
            Asked::Delete => Operation::Delete { key: &self.key },
            Asked::Get => Operation::Get { key: &self.key },
            Asked::Range => self.range_from_key(false),
        }
    }
}

/// Makes `value` one that its key did not have before: fixed ones count down from the largest,
/// where first values never are; texts get a number.
fn change(value: &mut Vec<u8>, changes: u64, shape: index::EntryShape) {
    match shape.value {
        index::Width::Fixed(bytes) => {
            value.clear();
            push_low_bytes(!changes, bytes, value);
        }
        index::Width::Variable => {
            value.push(b'\t');
            push_decimal(changes, 1, value);
        }
    }
}
