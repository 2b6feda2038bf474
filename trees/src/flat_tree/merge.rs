//! Flushes and merges: what waits in memory becomes a fragment of each partition, and the runs of a
//! partition become its bottom.
//!
//! Both write runs, and give others back: so whatever breaks them off, the last checkpoint stands.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use device::Cause;
use index::{Direction, Meanwhile, Result};
use store::runs::{Source as _, Way, Which};
use store::{Durability, Recovery as _};

use super::FlatTree;
use super::directory::{Fragment, Partition};
use super::filter::Filter;
use super::growth::{CUT_PAGES, Cut};
use super::lookup::Reader;
use super::merger::Merger;
use super::runs::{Content, Form, Held, RunCursor, Runs, Source, Writing};

/// The part by which a piece of a bottom that is cut may have more leaves than the others.
const SLACK_PART: u64 = 8;

/// Leaves that a merge writes before it lets others look up something.
const LEAVES_BETWEEN: u64 = 4;

impl FlatTree<'_> {
    /// Writes what waits in memory: as fragments, or into bottoms where these have no room. Then it
    /// may break off until a checkpoint made room, or long values were given back, which it does
    /// only if who asks `may_wait`.
    pub(super) fn flush_waiting(
        &mut self,
        may_wait: bool,
        meanwhile: Meanwhile<'_, '_>,
    ) -> Result<()> {
        // Giving back takes room for images: so no more than a merge leaves is ever to come.
        if may_wait && !self.is_kept() && self.give_back_garbage()? {
            return Ok(());
        }
        match may_wait && !self.has_room_to_flush() {
            true => self.merge_waiting(meanwhile),
            false => self.flush_memtable(meanwhile),
        }
    }

    /// Merges what waits into bottoms, as long as there is room before a checkpoint.
    fn merge_waiting(&mut self, meanwhile: Meanwhile<'_, '_>) -> Result<()> {
        self.lacks_room = false;
        self.count_waiting()?;
        let mut is_cut = false;
        while let Some(at) = self.first_waiting() {
            let updates = self.count_waiting_at(at);
            let cut = self.cut_merged(at);
            // What was let in has room behind a checkpoint.
            if !self.has_room_for_merged(at, cut) && index::Tree::waits_for_checkpoint(self) {
                self.lacks_room = true;
                break;
            }
            is_cut |= cut.pages > 0;
            let grown = self.growth_of(at);
            self.merge_range(at..at + 1, updates, cut, meanwhile)?;
            self.note_merged(grown);
            if !self.directory.garbage.is_empty() {
                break;
            }
        }
        self.recount();
        // What is let in next counts with what is cut, and so does a replay then.
        self.lacks_room |= is_cut;
        Ok(())
    }

    /// The partition of the first update that waits.
    fn first_waiting(&self) -> Option<usize> {
        let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        let first = if cursor.advance(Way::Up) { cursor.head(Way::Up) } else { None };
        first.map(|entry| self.directory.find(entry.key))
    }

    /// Writes all that waits in memory as fragments.
    fn flush_memtable(&mut self, meanwhile: Meanwhile<'_, '_>) -> Result<()> {
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
            let prefix = self.directory.prefix(at);
            let mut writing = self.runs.begin(Form::Fragment, prefix, Cause::Flush)?;
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
            let partition = &mut self.directory.partitions[at];
            let held =
                if partition.is_empty() { Some(Content::default()) } else { partition.content };
            partition.content = held.map(|held| held.with(writing.content()));
            partition.fragments.push(fragment);
            // What waits in memory hides it.
            meanwhile(&mut Reader::new(&mut self.runs, &mut self.directory, &self.memtable));
        }
        drop(cursor);
        self.memtable.clear();
        self.joined_at = None;
        self.is_unrecorded = false;
        self.unsettle();
        self.forget_waiting();
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
        let wanted = self.partition_pages() * self.leaf_room();
        let expected = self.bytes_expected(partition);
        if expected >= wanted / 4 {
            return alone;
        }
        let fits = |other: usize| {
            let beside = partitions.get(other)?;
            let runs = partition.runs() + beside.runs();
            let bytes = expected + self.bytes_expected(beside);
            let is_small = runs <= self.fragments_most + 1 && bytes <= wanted;
            (is_small && self.has_room_beside(2 * (partition.pages() + beside.pages())))
                .then_some(())
        };
        let before = at.checked_sub(1).filter(|before| fits(*before).is_some());
        match before {
            Some(before) => before..at + 1,
            None if fits(at + 1).is_some() => at..at + 2,
            None => alone,
        }
    }

    /// Merges the partition at `at`.
    pub(super) fn merge(&mut self, at: usize, meanwhile: Meanwhile<'_, '_>) -> Result<()> {
        let range = self.joined(at);
        let cut = self.cut_of(range.clone());
        let cut = if self.has_room_beside(cut.pages) { cut } else { Cut::NONE };
        self.unsettle();
        self.merge_range(range, 0, cut, meanwhile)?;
        self.recount();
        Ok(())
    }

    /// Merges the partitions in `range` and, if so many `updates` wait for one, these as well.
    fn merge_range(
        &mut self,
        range: Range<usize>,
        updates: u64,
        cut: Cut,
        meanwhile: Meanwhile<'_, '_>,
    ) -> Result<()> {
        self.is_poisoned = true;
        self.begun += 1;
        let old = self.directory.partitions.get(range.clone()).unwrap_or_default();
        let low = old.first().map(|partition| partition.low.clone()).unwrap_or_default();
        let high: Option<Box<[u8]>> = self.directory.high(range.end - 1).map(Into::into);
        let mut pending = 0;
        let mut sources = Vec::with_capacity(self.fragments_most + 2);
        if updates > 0 {
            let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
            if !low.is_empty() {
                cursor.seek(&low, false);
            }
            sources.push(Source::Memory(cursor));
        }
        for partition in old {
            pending += partition.pending();
            let fragments = partition.fragments.iter().rev();
            let fragments = fragments.map(|fragment| (Form::Fragment, fragment.run));
            for run in fragments.chain(partition.bottom.map(|run| (Form::Bottom, run))) {
                let cursor = RunCursor::whole(&mut self.runs, run, Cause::Merge)?;
                sources.push(Source::Run(cursor));
            }
        }
        let merged = Merged { cut, prefix: self.directory.prefix_of(range.clone()), low, high };
        let most = self.pages_merged(range.start) + cut.pages;
        let mut merger = Merger::new(sources, Direction::Ascending);
        let mut reader = Reader::new(&mut self.runs, &mut self.directory, &self.memtable);
        let (fresh, hid) = merged.write(&mut reader, &mut merger, meanwhile)?;
        drop(merger);
        if updates > 0 {
            // The invariant of `growth.rs`.
            let pages: u64 = fresh.iter().map(Partition::pages).sum();
            debug_assert!(pages <= most, "{pages} pages for {most}");
            self.memtable.drain_range(&merged.low, merged.high.as_deref());
        } else {
            self.policy.learn(pending, hid);
        }
        self.replace(range, fresh)?;
        self.is_poisoned = false;
        self.merges += 1;
        Ok(())
    }

    /// How the partitions in `range` are cut if there is room for it.
    fn cut_of(&self, range: Range<usize>) -> Cut {
        let old = self.directory.partitions.get(range).unwrap_or_default();
        let most = old.iter().map(Partition::pages).sum::<u64>();
        let wanted = self.partition_pages();
        let cut = match old {
            [alone] => self.cut_alone(alone, wanted),
            // What was joined would be cut, and joined, without end.
            _ => None,
        };
        let (bytes, leaves) = cut.unwrap_or((u64::MAX, 2 * wanted));
        // Were nothing hidden, they would be more.
        let held =
            old.iter().filter_map(|it| it.content).map(|it| u64::from(it.bytes)).sum::<u64>();
        let pieces = most.div_ceil(leaves).max(held.div_ceil(bytes));
        let pages = if pieces > 1 { CUT_PAGES * pieces } else { 0 };
        Cut { bytes, leaves, pages }
    }

    /// Bytes and leaves of each piece of a partition that comes to more than the pages `wanted`.
    fn cut_alone(&self, partition: &Partition, wanted: u64) -> Option<(u64, u64)> {
        let mut expected = self.pages_expected(partition);
        // A bottom of a few pages may be nearly empty: there bytes count, if they are known.
        let counts_bytes = self.is_small() && partition.content.is_some();
        let bytes = self.bytes_expected(partition);
        if counts_bytes {
            let leaves = bytes.div_ceil(self.leaf_room());
            expected = expected.min(leaves + u64::from(leaves > 1));
        }
        if 4 * expected <= 5 * wanted {
            return None;
        }
        // What comes to a little more than is expected has no piece of its own.
        let each = expected.div_ceil(expected.div_ceil(wanted));
        let leaves = each + each / SLACK_PART;
        let bytes = if counts_bytes { bytes * leaves / expected } else { u64::MAX };
        Some((bytes.max(1), leaves))
    }

    /// Runs changed otherwise than by merging what waits: a replay may come to others.
    fn unsettle(&mut self) {
        self.is_settled = self.runs.store.file.durability() == Durability::None;
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
            // Keys of a neighbour may have less in common from now on.
            if let Some(neighbour) = partitions.get_mut(start.saturating_sub(1)) {
                neighbour.content = None;
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

/// Where what is merged goes.
struct Merged {
    low: Box<[u8]>,
    high: Option<Box<[u8]>>,
    /// Bytes that all keys have in common.
    prefix: usize,
    cut: Cut,
}

impl Merged {
    /// Writes what is merged as bottoms; returns them, and how many of the entries that came hid
    /// others. Long values that were hidden are garbage.
    fn write(
        &self,
        reader: &mut Reader<'_, '_>,
        merger: &mut Merger<Source<'_>>,
        meanwhile: Meanwhile<'_, '_>,
    ) -> Result<(Vec<Partition>, u64)> {
        let (mut low, mut hid) = (Some(self.low.clone()), 0);
        let mut fresh = Vec::new();
        let mut present: Option<(Box<[u8]>, Writing)> = None;
        let Cut { bytes, leaves, .. } = self.cut;
        while merger.advance(reader.runs)? {
            if self.high.as_deref().is_some_and(|high| merger.key() >= high) {
                break;
            }
            for older in merger.superseded() {
                hid += 1;
                reader.directory.garbage.extend(older.long());
            }
            if merger.held() == Held::Deleted {
                continue;
            }
            if let Some((low, mut writing)) = present.take() {
                let (entry, before) = ((merger.key(), merger.held()), writing.leaves());
                let is_open = u64::from(writing.content().bytes) < bytes;
                if is_open && reader.runs.push_within(&mut writing, entry, leaves)? {
                    if writing.leaves() > before && before.is_multiple_of(LEAVES_BETWEEN) {
                        meanwhile(reader);
                    }
                    present = Some((low, writing));
                    continue;
                }
                fresh.push(reader.runs.bottom(low, &writing));
            }
            let low = low.take().unwrap_or_else(|| merger.key().into());
            let mut writing = reader.runs.begin(Form::Bottom, self.prefix, Cause::Merge)?;
            reader.runs.push(&mut writing, merger.key(), merger.held())?;
            present = Some((low, writing));
        }
        if let Some((low, last)) = present {
            fresh.push(reader.runs.bottom(low, &last));
        }
        if let Some(low) = low {
            fresh.push(Partition { low, ..Partition::default() });
        }
        Ok((fresh, hid))
    }
}

impl Runs<'_> {
    /// A partition that has what was written.
    pub(super) fn bottom(&mut self, low: Box<[u8]>, written: &Writing) -> Partition {
        let bottom = Some(self.finish(written));
        Partition { low, bottom, content: Some(written.content()), ..Partition::default() }
    }
}
