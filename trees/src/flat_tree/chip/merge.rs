//! Flushes and merges: what waits in memory becomes fragments, the fullest partition first, and the
//! runs of a partition become its bottom.
//!
//! Both write runs, and give others back: so whatever breaks them off, the last checkpoint stands.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Bound, Range};

use device::Cause;
use index::{Direction, Result};
use store::runs::{Entry, Kind, Source as _, Way, Which};

use super::ChipTree;
use super::directory::{Directory, Part};
use super::keys;
use super::range::Source;
use super::read::{Reading, RunCursor};
use super::run::views;
use super::write::{Plan, RunWriter};
use crate::flat_tree::merger::Merger;

impl ChipTree<'_> {
    /// Writes the fullest partitions' updates, until an update finds room, and at least a page.
    pub(super) fn flush_some(&mut self) -> Result<()> {
        let content = u64::from(self.storage.content());
        let before = self.memtable.held(Which::Active).1;
        let most = self.limits.entry as u64;
        while self.has_waiting_updates() {
            let held = self.memtable.held(Which::Active).1;
            if before - held >= content && self.memtable.takes(1, most) {
                break;
            }
            let parts = self.directory.parts.iter().enumerate();
            let Some((at, _)) = parts.max_by_key(|(_, part)| part.waiting) else {
                break;
            };
            self.flush_part(at)?;
        }
        self.recount();
        Ok(())
    }

    /// Writes all that waits.
    pub(super) fn flush_all(&mut self) -> Result<()> {
        for at in 0..self.directory.parts.len() {
            if self.directory.parts.get(at).is_some_and(|part| part.waiting > 0) {
                self.flush_part(at)?;
            }
        }
        self.memtable.clear();
        self.recount();
        Ok(())
    }

    /// Writes what waits for one partition.
    fn flush_part(&mut self, at: usize) -> Result<()> {
        self.is_poisoned = true;
        let most = 2 * self.entries_wanted() as u32;
        let Some(part) = self.directory.parts.get(at) else {
            return Ok(());
        };
        let (mut left, before) = (part.waiting, part.runs.capacity());
        let low = part.low.clone();
        let kept = self.bytes_kept(&low, self.directory.high(at), (1, 1));
        let mut from: Vec<u8> = low.to_vec();
        while left > 0 {
            let count = left.min(most);
            let longest = self.longest_waiting(&from, count);
            let unit = self.fragment_unit(count, longest, kept);
            let fragment = Some((self.policy.filter_bits(), count));
            let plan = Plan { number: self.directory.number(), fragment, unit, kept };
            let mut writer = RunWriter::new(self.shape, plan, low.clone(), Cause::Flush)?;
            let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
            cursor.seek(&from, false);
            for _ in 0..count {
                cursor.advance(Way::Up);
                if let Some(entry) = cursor.head(Way::Up) {
                    writer.push(&mut self.storage, &entry)?;
                }
                cursor.step(Way::Up);
            }
            if cursor.advance(Way::Up)
                && let Some(entry) = cursor.head(Way::Up)
            {
                from.clear();
                from.extend_from_slice(entry.key);
            }
            drop(cursor);
            left -= count;
            let written = writer.finish(&mut self.storage, self.directory.high(at));
            if let Some(part) = self.directory.parts.get_mut(at) {
                part.add(&written);
            }
        }
        self.memtable.drain_range(&low, self.directory.high(at));
        if let Some(part) = self.directory.parts.get_mut(at) {
            part.waiting = 0;
            part.count(self.storage.content());
            self.totals.memory += part.runs.capacity().saturating_sub(before) as u64;
        }
        self.make_memory(0);
        self.expect_tables(0);
        self.follow_moved();
        self.is_poisoned = false;
        Ok(())
    }

    /// Bytes of the longest of so many entries that wait, from a key on.
    fn longest_waiting(&self, from: &[u8], count: u32) -> u32 {
        if let (store::Width::Fixed(key), store::Width::Fixed(value)) =
            (self.shape.key, self.shape.value)
        {
            return u32::from(key) + u32::from(value);
        }
        let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        cursor.seek(from, false);
        let mut longest = 0;
        for _ in 0..count {
            cursor.advance(Way::Up);
            longest = longest.max(cursor.head(Way::Up).map_or(0, |entry| entry.bytes() as u32));
            cursor.step(Way::Up);
        }
        longest
    }

    /// The partitions that are merged with that at `at`: a small one is joined to its neighbour.
    pub(super) fn joined(&self, at: usize) -> Range<usize> {
        let parts = &self.directory.parts;
        let alone = at..at + 1;
        let Some(part) = parts.get(at) else {
            return alone;
        };
        let wanted = self.entries_wanted();
        let expected = self.entries_expected(part);
        if expected >= wanted / 4 {
            return alone;
        }
        let fits = |other: usize| {
            let beside = parts.get(other)?;
            let runs = part.runs_count() + beside.runs_count();
            let entries = expected + self.entries_expected(beside);
            let takes = runs <= self.policy.fragments_most + 1;
            (takes && entries <= self.joined_most(at.min(other))).then_some(())
        };
        let before = at.checked_sub(1).filter(|before| fits(*before).is_some());
        match before {
            Some(before) => before..at + 1,
            None if fits(at + 1).is_some() => at..at + 2,
            None => alone,
        }
    }

    /// Entries up to which the partition at `at` is joined to the next one: fewer where keys get
    /// longer by that, and none if that may take more room.
    fn joined_most(&self, at: usize) -> u64 {
        let wanted = self.entries_wanted();
        let Some([one, other]) = self.directory.parts.get(at..at + 2) else {
            return 0;
        };
        // Whole keys, of which nothing is kept apart, are the longest.
        let kept = |low: &[u8], high| self.bytes_kept(low, high, (1, 1)).wrapping_sub(1);
        let end = self.directory.high(at + 1);
        let alone = kept(&one.low, Some(&other.low)).max(kept(&other.low, end));
        let unit = || self.bottom_unit(self.entry_bytes() as u32);
        if kept(&one.low, end) <= alone || self.have_gaps(unit(), 0) {
            return wanted;
        }
        let sum = |count: fn(&Part) -> u32| u64::from(count(one)) + u64::from(count(other));
        let entries = sum(|it| it.counts.bottom) + sum(|it| it.counts.pending);
        let longer = entries * keys::width(self.shape).unwrap_or(0) as u64;
        let room = sum(|it| it.counts.parts) * u64::from(self.storage.content());
        if sum(|it| it.counts.all_bytes) + longer <= room { wanted / 4 } else { 0 }
    }

    /// Merges the partition at `at`.
    pub(super) fn merge(&mut self, at: usize) -> Result<()> {
        self.is_poisoned = true;
        self.counters.begun += 1;
        let range = self.joined(at);
        let (mut expected, mut pending, mut entries, mut longest) = (0, 0, 0, 0);
        let mut reading = self.reading(Cause::Merge);
        let old = self.directory.parts.get(range.clone()).unwrap_or_default();
        let mut sources = Vec::with_capacity(self.policy.fragments_most as usize + 1);
        for part in old {
            expected += self.entries_expected(part);
            pending += u64::from(part.counts.pending);
            entries += u64::from(part.counts.bottom) + u64::from(part.counts.pending);
            for view in views(&part.runs) {
                let reading = &mut reading;
                longest = longest.max(view.run.longest);
                let all = (Bound::Unbounded, Direction::Ascending);
                let run = (&view, &*part.low, self.shape);
                sources.push(Source::Run(RunCursor::seek(&mut self.storage, run, all, reading)?));
            }
        }
        let low = old.first().map(|part| part.low.clone()).unwrap_or_default();
        let high: Option<Box<[u8]>> = self.directory.high(range.end - 1).map(Into::into);
        let merger = Merger::new(sources, Direction::Ascending);
        let end = high.as_deref();
        let unit = self.bottom_unit(longest);
        let (each, kept) = self.entries_each((expected, entries), (&low, end), unit);
        let bottoms = Bottoms { unit, each: each as u32, kept, fresh: Vec::new(), hid: 0 };
        let bottoms = self.write_bottoms(merger, bottoms, low, end)?;
        self.policy.learn(pending, bottoms.hid);
        self.replace(range, bottoms.fresh)?;
        self.follow_moved();
        self.is_poisoned = false;
        self.counters.merges += 1;
        self.recount();
        Ok(())
    }

    /// How the cursors of a merge, or of a range, read.
    pub(super) fn reading(&self, cause: Cause) -> Reading {
        Reading { window: self.window, left: self.storage.content() as usize * 2, cause }
    }

    /// Entries of each bottom between two keys, and bytes of their keys, in units of so many bytes,
    /// where so many are expected and more are never found.
    fn entries_each(
        &self,
        (expected, most): (u64, u64),
        (low, high): (&[u8], Option<&[u8]>),
        unit: u32,
    ) -> (u64, u32) {
        let wanted = self.entries_wanted();
        let kept = self.bytes_kept(low, high, (1, 1));
        let has_memory = self.has_memory_for_parts();
        let parts = match has_memory {
            true if 2 * expected > 3 * wanted => expected.div_ceil(wanted),
            true => 1,
            false => expected.div_ceil(2 * wanted).max(1),
        };
        let each = |parts| match parts {
            1 => most.min(2 * wanted).max(1),
            // A few more than expected make no partition of their own.
            _ => expected.div_ceil(parts) * 17 / 16 + 1,
        };
        if !has_memory || self.have_gaps(unit, kept) {
            return (each(parts), kept);
        }
        let whole = keys::width(self.shape).unwrap_or(0) as u32;
        let bytes = |kept: u32| if kept > 0 { kept } else { whole };
        let all = bytes(kept);
        // One more, if that shortens keys: by a page at least, for each may end in another page.
        // None so small that it is joined to another.
        let pays = |parts: &u64| {
            let shorter = bytes(self.bytes_kept(low, high, (1, *parts)));
            let saved = expected * u64::from(all.saturating_sub(shorter));
            saved >= u64::from(self.storage.content()) && expected > parts * wanted / 3
        };
        let shortest = [parts, parts + 1].into_iter().filter(pays);
        let best = shortest.min_by_key(|it| bytes(self.bytes_kept(low, high, (1, *it))));
        let kept = self.bytes_kept(low, high, (1, best.unwrap_or(1)));
        (each(best.unwrap_or(parts)), kept)
    }

    /// Writes what is merged as bottoms of partitions from `low` on, below `high`.
    fn write_bottoms(
        &mut self,
        mut merger: Merger<Source<'_>>,
        mut bottoms: Bottoms,
        low: Box<[u8]>,
        high: Option<&[u8]>,
    ) -> Result<Bottoms> {
        let mut low = Some(low);
        let mut present: Option<RunWriter> = None;
        while merger.advance(&mut self.storage)? {
            bottoms.hid += merger.hides();
            let Some(entry) = merger.entry().filter(|entry| entry.kind == Kind::Put) else {
                continue;
            };
            let is_full =
                |it: &mut RunWriter| it.entries() >= bottoms.each || !it.reaches(entry.key);
            if let Some(full) = present.take_if(is_full) {
                low = Some(self.end_bottom(full, entry.key, &mut bottoms.fresh));
            }
            let writer = match &mut present {
                Some(present) => present,
                None => {
                    let Bottoms { unit, kept, .. } = bottoms;
                    let low = low.take().unwrap_or_else(|| entry.key.into());
                    let low = bottoms.begin(low, entry.key);
                    let number = self.directory.number();
                    let plan = Plan { number, fragment: None, unit, kept };
                    present.insert(RunWriter::new(self.shape, plan, low, Cause::Merge)?)
                }
            };
            writer.push(&mut self.storage, &entry)?;
        }
        if let Some(last) = present {
            self.end_last(last, high, &mut bottoms.fresh);
        }
        if let Some(low) = low {
            bottoms.fresh.push(Part { low, ..Part::default() });
        }
        Ok(bottoms)
    }

    /// Ends a bottom before `key`; returns where the next one begins. A partition goes no further
    /// than its keys reach: so merged anew, and not joined to others, it takes no more room.
    pub(super) fn end_bottom(
        &mut self,
        mut writer: RunWriter,
        key: &[u8],
        fresh: &mut Vec<Part>,
    ) -> Box<[u8]> {
        if writer.reaches(key) {
            fresh.push(self.bottom(writer, Some(key)));
            return key.into();
        }
        let (edge, kept) = (writer.edge(self.shape), writer.kept());
        fresh.push(self.bottom(writer, Some(&edge)));
        if keys::shorten(key, &edge, kept as usize, &mut Vec::new()) {
            return edge;
        }
        // Nothing stands in between.
        fresh.push(Part { low: edge, ..Part::default() });
        key.into()
    }

    /// Ends the last bottom, behind which nothing stands before `high`.
    pub(super) fn end_last(
        &mut self,
        writer: RunWriter,
        high: Option<&[u8]>,
        fresh: &mut Vec<Part>,
    ) {
        let kept = self.bytes_kept(writer.low(), high, (1, 1));
        let is_short = writer.kept() > 0 && (kept == 0 || kept > writer.kept());
        let edge = is_short.then(|| writer.edge(self.shape));
        fresh.push(self.bottom(writer, edge.as_deref().or(high)));
        if let Some(low) = edge {
            fresh.push(Part { low, ..Part::default() });
        }
    }

    /// A partition of what was written, which ends where `high` says.
    fn bottom(&mut self, writer: RunWriter, high: Option<&[u8]>) -> Part {
        let mut written = writer.finish(&mut self.storage, high);
        let low = core::mem::take(&mut written.low);
        let mut part = Part { low, ..Part::default() };
        part.add(&written);
        part.count(self.storage.content());
        part
    }

    /// Gives the runs of the partitions in `range` back, in whose place `fresh` ones come.
    fn replace(&mut self, range: Range<usize>, mut fresh: Vec<Part>) -> Result<()> {
        self.counters.joins += (range.len() as u64).saturating_sub(fresh.len() as u64);
        self.counters.splits += (fresh.len() as u64).saturating_sub(range.len() as u64);
        let count = fresh.len();
        let Directory { parts, .. } = &mut self.directory;
        let waiting: u32 =
            parts.get(range.clone()).unwrap_or_default().iter().map(|it| it.waiting).sum();
        if let [only] = &mut fresh[..] {
            only.waiting = waiting;
        }
        // Few more at a time: the list may stand twice while it grows.
        parts.reserve_exact(fresh.len().saturating_sub(range.len()));
        let start = range.start;
        let old: Vec<Part> = parts.splice(range, fresh).collect();
        for part in old {
            for view in views(&part.runs) {
                self.storage.free(view.extents())?;
            }
        }
        if count > 1 && waiting > 0 {
            self.count_waiting(start..start + count);
        }
        Ok(())
    }

    /// Counts what waits for each of some partitions.
    pub(super) fn count_waiting(&mut self, range: Range<usize>) {
        for at in range {
            let Some(low) = self.directory.parts.get(at).map(|part| part.low.clone()) else {
                return;
            };
            let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
            cursor.seek(&low, false);
            let mut count = 0;
            while cursor.advance(Way::Up) {
                let high = self.directory.high(at);
                let is_beyond = |entry: Entry<'_>| high.is_some_and(|high| entry.key >= high);
                if cursor.head(Way::Up).is_none_or(is_beyond) {
                    break;
                }
                cursor.step(Way::Up);
                count += 1;
            }
            drop(cursor);
            if let Some(part) = self.directory.parts.get_mut(at) {
                part.waiting = count;
            }
        }
    }
}

/// Bottoms that a merge writes.
struct Bottoms {
    unit: u32,
    /// Entries of each, and bytes of their keys.
    each: u32,
    kept: u32,
    fresh: Vec<Part>,
    /// Entries that hid others.
    hid: u64,
}

impl Bottoms {
    /// Where the bottom begins whose first key is `key`: at `low`, or at that key, if it is out of
    /// reach from there. Nothing stands in between.
    fn begin(&mut self, low: Box<[u8]>, key: &[u8]) -> Box<[u8]> {
        let kept = self.kept as usize;
        if kept == 0 || keys::shorten(key, &low, kept, &mut Vec::new()) {
            return low;
        }
        self.fresh.push(Part { low, ..Part::default() });
        key.into()
    }
}
