//! Flushes and merges: what waits in memory becomes a fragment of each partition, and the runs of a
//! partition become its bottom.
//!
//! Both write runs, and give others back: so whatever breaks them off, the last checkpoint stands.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Bound, Range};

use device::Cause;
use index::{Direction, Result};
use store::runs::{Source as _, Way, Which};

use super::FlatTree;
use super::directory::{Fragment, Partition};
use super::filter::Filter;
use super::merger::Merger;
use super::runs::{Form, Held, RunCursor, Source, Writing};

const ALL: (Bound<&[u8]>, Direction) = (Bound::Unbounded, Direction::Ascending);

impl FlatTree<'_> {
    /// Writes all that waits in memory.
    pub(super) fn flush_memtable(&mut self) -> Result<()> {
        self.is_poisoned = true;
        let (entries, _) = self.memtable.held(Which::Active);
        self.policy.flushed = self.policy.flushed.max(entries);
        let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        for at in 0..self.directory.partitions.len() {
            let start = cursor.position();
            let mut count = 0;
            while cursor.advance(Way::Up) {
                let high = self.directory.high(at);
                let is_beyond = |key: &[u8]| high.is_some_and(|high| key >= high);
                if cursor.head(Way::Up).is_none_or(|entry| is_beyond(entry.key)) {
                    break;
                }
                cursor.step(Way::Up);
                count += 1;
            }
            if count == 0 {
                continue;
            }
            cursor.resume(start);
            let mut filter = Filter::for_keys(count, self.filter_bits);
            let mut writing = self.runs.begin(Form::Fragment, Cause::Flush)?;
            for _ in 0..count {
                cursor.advance(Way::Up);
                if let Some(entry) = cursor.head(Way::Up) {
                    filter.add(entry.key);
                    let held = Held::waiting((entry.kind, entry.value));
                    self.runs.push(&mut writing, entry.key, held)?;
                }
                cursor.step(Way::Up);
            }
            let fragment = Fragment { run: self.runs.finish(&writing), filter: Some(filter) };
            self.directory.partitions[at].fragments.push(fragment);
        }
        drop(cursor);
        self.memtable.clear();
        self.is_poisoned = false;
        self.recount();
        Ok(())
    }

    /// The partitions that are merged with that at `at`: a small one is joined to its neighbour.
    pub(super) fn joined(&self, at: usize) -> Range<usize> {
        let partitions = &self.directory.partitions;
        let alone = at..at + 1;
        let Some(partition) = partitions.get(at) else {
            return alone;
        };
        let wanted = self.entries_wanted();
        let expected = self.entries_expected(partition);
        if expected >= wanted / 4 {
            return alone;
        }
        let fits = |other: usize| {
            let beside = partitions.get(other)?;
            let runs = partition.runs() + beside.runs();
            let entries = expected + self.entries_expected(beside);
            (runs <= self.fragments_most + 1 && entries <= wanted).then_some(())
        };
        let before = at.checked_sub(1).filter(|before| fits(*before).is_some());
        match before {
            Some(before) => before..at + 1,
            None if fits(at + 1).is_some() => at..at + 2,
            None => alone,
        }
    }

    /// Merges the partition at `at`.
    pub(super) fn merge(&mut self, at: usize) -> Result<()> {
        self.is_poisoned = true;
        let range = self.joined(at);
        let old = self.directory.partitions.get(range.clone()).unwrap_or_default();
        let (mut entries, mut expected, mut pending) = (0, 0, 0);
        let mut sources = Vec::with_capacity(self.fragments_most + 1);
        for partition in old {
            expected += self.entries_expected(partition);
            pending += partition.pending();
            entries += partition.bottom_entries() + partition.pending();
            let fragments = partition.fragments.iter().rev();
            let fragments = fragments.map(|fragment| (Form::Fragment, fragment.run));
            for run in fragments.chain(partition.bottom.map(|run| (Form::Bottom, run))) {
                let cursor = RunCursor::seek(&mut self.runs, run, ALL, Cause::Merge)?;
                sources.push(Source::Run(cursor));
            }
        }
        let low = old.first().map(|partition| partition.low.clone()).unwrap_or_default();
        let mut merger = Merger::new(sources, Direction::Ascending);
        let each = self.entries_each(expected, entries);
        let (fresh, hid) = self.write_bottoms(&mut merger, low, each)?;
        drop(merger);
        self.policy.learn(pending, hid);
        self.replace(range, fresh)?;
        self.is_poisoned = false;
        self.merges += 1;
        self.recount();
        Ok(())
    }

    /// Entries of each bottom, where so many are expected and more are never found.
    fn entries_each(&self, expected: u64, most: u64) -> u64 {
        let wanted = self.entries_wanted();
        let parts = if 4 * expected > 5 * wanted { expected.div_ceil(wanted) } else { 1 };
        if parts == 1 { most.min(2 * wanted) } else { expected.div_ceil(parts) }.max(1)
    }

    /// Writes what is merged as bottoms of up to `each` entries; returns them, and how many of the
    /// entries that came hid others.
    fn write_bottoms(
        &mut self,
        merger: &mut Merger<Source<'_>>,
        low: Box<[u8]>,
        each: u64,
    ) -> Result<(Vec<Partition>, u64)> {
        let (mut low, mut hid) = (Some(low), 0);
        let mut fresh = Vec::new();
        let mut present: Option<(Box<[u8]>, Writing)> = None;
        while merger.advance(&mut self.runs)? {
            for older in merger.superseded() {
                hid += 1;
                self.directory.garbage.extend(older.long());
            }
            if merger.held() == Held::Deleted {
                continue;
            }
            if let Some((low, full)) = present.take_if(|(_, writing)| writing.entries() >= each) {
                fresh.push(self.bottom(low, &full));
            }
            let (_, writing) = match &mut present {
                Some(present) => present,
                None => {
                    let low = low.take().unwrap_or_else(|| merger.key().into());
                    let writing = self.runs.begin(Form::Bottom, Cause::Merge)?;
                    present.insert((low, writing))
                }
            };
            self.runs.push(writing, merger.key(), merger.held())?;
        }
        if let Some((low, last)) = present {
            fresh.push(self.bottom(low, &last));
        }
        if let Some(low) = low {
            fresh.push(Partition { low, ..Partition::default() });
        }
        Ok((fresh, hid))
    }

    fn bottom(&mut self, low: Box<[u8]>, written: &Writing) -> Partition {
        let bottom = Some(self.runs.finish(written));
        Partition { low, bottom, ..Partition::default() }
    }

    /// Gives the runs of the partitions in `range` back, in whose place `fresh` ones come.
    fn replace(&mut self, range: Range<usize>, fresh: Vec<Partition>) -> Result<()> {
        let partitions = &mut self.directory.partitions;
        self.joins += (range.len() as u64).saturating_sub(fresh.len() as u64);
        self.splits += (fresh.len() as u64).saturating_sub(range.len() as u64);
        let start = range.start;
        let count = fresh.len();
        let old: Vec<Partition> = partitions.splice(range, fresh).collect();
        if count == 1 && partitions.len() > 1 && partitions[start].is_empty() {
            partitions.remove(start);
            self.joins += 1;
            if let Some(first) = partitions.first_mut() {
                first.low = Box::default();
            }
        }
        self.note_freed();
        for partition in old {
            for fragment in partition.fragments {
                self.runs.free(Form::Fragment, fragment.run)?;
            }
            if let Some(bottom) = partition.bottom {
                self.runs.free(Form::Bottom, bottom)?;
            }
        }
        Ok(())
    }
}
