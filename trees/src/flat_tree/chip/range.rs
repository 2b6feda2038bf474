//! Ranges, both ways: partition by partition, the runs of each merged with what waits in memory.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};
use store::runs::{Entry, Kind, Memtable, MemtableCursor, Source as _, Which};

use super::ChipTree;
use super::directory::Directory;
use super::read::{Reading, RunCursor};
use super::run::views;
use super::storage::Storage;
use crate::flat_tree::merger::{Load, Merger, Sorted, way};

/// Entries that are merged: those of a run, or those that wait in memory.
#[allow(clippy::large_enum_variant, reason = "most of them are runs")]
pub(super) enum Source<'m> {
    Memory(MemtableCursor<'m>),
    Run(RunCursor),
}

impl Source<'_> {
    /// The entry that was loaded.
    fn entry(&self, direction: Direction) -> Option<Entry<'_>> {
        match self {
            Source::Memory(cursor) => cursor.head(way(direction)),
            Source::Run(cursor) => cursor.entry(direction),
        }
    }
}

impl Sorted for Source<'_> {
    fn key(&self, direction: Direction) -> Option<&[u8]> {
        self.entry(direction).map(|entry| entry.key)
    }

    fn pass(&mut self, direction: Direction) {
        match self {
            Source::Memory(cursor) => cursor.step(way(direction)),
            Source::Run(cursor) => cursor.pass(direction),
        }
    }
}

impl<'d> Load<Storage<'d>> for Source<'_> {
    fn load(&mut self, storage: &mut Storage<'d>, direction: Direction) -> Result<bool> {
        match self {
            Source::Memory(cursor) => Ok(cursor.advance(way(direction))),
            Source::Run(cursor) => cursor.load(storage, direction),
        }
    }
}

impl Merger<Source<'_>> {
    /// The newest entry of the present key.
    pub(super) fn entry(&self) -> Option<Entry<'_>> {
        self.newest()?.entry(self.direction)
    }

    /// How many older entries there are of the present key.
    pub(super) fn hides(&self) -> u64 {
        self.older().count() as u64
    }
}

/// A range that is being read.
pub(super) struct Scan<'t, 'd> {
    storage: &'t mut Storage<'d>,
    directory: &'t Directory,
    memtable: &'t Memtable,
    shape: store::EntryShape,
    reading: Reading,
    direction: Direction,
    limit: Bound<Vec<u8>>,
    /// The partition that is read.
    at: usize,
    merger: Merger<Source<'t>>,
    ended: bool,
    has_entry: bool,
}

impl<'t, 'd> Scan<'t, 'd> {
    /// Begins to read `range`, whose bounds can be keys.
    pub(super) fn new(tree: &'t mut ChipTree<'d>, range: KeyRange<'_>) -> Result<Self> {
        let direction = range.direction;
        let (start, limit) = match direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        let reading = tree.reading(Cause::Lookup);
        let ChipTree { storage, directory, memtable, .. } = tree;
        let at = match (start, direction) {
            (Bound::Included(key), _) | (Bound::Excluded(key), Direction::Ascending) => {
                directory.find(key)
            }
            (Bound::Excluded(key), Direction::Descending) => {
                // What is below a partition's first key stands in the one before.
                let at = directory.find(key);
                let begins = directory.parts.get(at).is_some_and(|it| *it.low == *key);
                if begins { at.saturating_sub(1) } else { at }
            }
            (Bound::Unbounded, Direction::Ascending) => 0,
            (Bound::Unbounded, Direction::Descending) => directory.parts.len() - 1,
        };
        let mut scan = Scan {
            storage,
            directory,
            memtable,
            shape: tree.shape,
            reading,
            direction,
            limit: limit.map(<[u8]>::to_vec),
            at,
            merger: Merger::new(Vec::new(), direction),
            ended: false,
            has_entry: false,
        };
        scan.enter(start)?;
        Ok(scan)
    }

    /// Begins to read the partition at `self.at`, from `start` on.
    fn enter(&mut self, start: Bound<&[u8]>) -> Result<()> {
        let Some(part) = self.directory.parts.get(self.at) else {
            return Ok(());
        };
        let mut waiting = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        let is_up = self.direction == Direction::Ascending;
        match start {
            Bound::Included(key) => waiting.seek(key, !is_up),
            Bound::Excluded(key) => waiting.seek(key, is_up),
            Bound::Unbounded if !is_up => waiting.to_end(),
            Bound::Unbounded => {}
        }
        // What the partition before was read with is not needed beside this one's.
        self.merger = Merger::new(Vec::new(), self.direction);
        let mut sources = Vec::with_capacity(part.runs_count() as usize + 1);
        sources.push(Source::Memory(waiting));
        let scale = self.directory.scale(self.at);
        let mut reading = self.reading;
        for view in views(&part.runs) {
            let start = (start.map(|key| (key, scale)), self.direction);
            let run = (&view, &*part.low, self.shape);
            let cursor = RunCursor::seek(self.storage, run, start, &mut reading)?;
            sources.push(Source::Run(cursor));
        }
        self.merger = Merger::new(sources, self.direction);
        Ok(())
    }

    /// True if the present key stands in a partition behind the present one.
    fn is_beyond(&self, key: &[u8]) -> bool {
        match self.direction {
            Direction::Ascending => self.directory.high(self.at).is_some_and(|high| key >= high),
            Direction::Descending => {
                self.directory.parts.get(self.at).is_some_and(|it| key < &*it.low)
            }
        }
    }

    /// Goes on with the next partition; false if this is the last.
    fn next_part(&mut self) -> Result<bool> {
        let directory = self.directory;
        let start = match self.direction {
            Direction::Ascending => {
                let Some(high) = directory.high(self.at) else {
                    return Ok(false);
                };
                self.at += 1;
                Bound::Included(high)
            }
            Direction::Descending => {
                let Some(before) = self.at.checked_sub(1) else {
                    return Ok(false);
                };
                let low = directory.high(before).unwrap_or_default();
                self.at = before;
                Bound::Excluded(low)
            }
        };
        self.enter(start)?;
        Ok(true)
    }

    /// Goes to the next entry; false behind the last.
    fn advance(&mut self) -> Result<bool> {
        loop {
            let has_key = self.merger.advance(self.storage)?;
            let entry = self.merger.entry().filter(|_| has_key);
            let Some(entry) = entry.filter(|entry| !self.is_beyond(entry.key)) else {
                if !self.next_part()? {
                    return Ok(false);
                }
                continue;
            };
            if self.direction.is_beyond(&self.limit, |limit| entry.key.cmp(limit)) {
                return Ok(false);
            }
            if entry.kind == Kind::Put {
                return Ok(true);
            }
        }
    }
}

impl Cursor for Scan<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if self.ended {
            return Ok(None);
        }
        // Until an entry was found, the range counts as ended: so it does after an error.
        (self.ended, self.has_entry) = (true, false);
        if !self.advance()? {
            return Ok(None);
        }
        (self.ended, self.has_entry) = (false, true);
        Ok(self.merger.entry().map(|entry| (entry.key, Value::Inline(entry.value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let entry = self.merger.entry().filter(|_| self.has_entry);
        entry.map(|entry| read_piece(entry.value, offset, into)).ok_or(Error::NoEntry)
    }
}
