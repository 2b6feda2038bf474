//! Ranges, both ways: partition by partition, the runs of each merged with what waits in memory.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};
use store::runs::{Memtable, Which};

use super::FlatTree;
use super::directory::Directory;
use super::merger::Merger;
use super::runs::{Form, Held, RunCursor, Runs, Source};
use crate::btree::NodeSource;

/// A range that is being read.
pub(super) struct Scan<'t, 'd> {
    runs: &'t mut Runs<'d>,
    directory: &'t Directory,
    memtable: &'t Memtable,
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
    pub(super) fn new(tree: &'t mut FlatTree<'d>, range: KeyRange<'_>) -> Result<Self> {
        let direction = range.direction;
        let (start, limit) = match direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        let FlatTree { runs, directory, memtable, .. } = tree;
        let last = directory.partitions.len() - 1;
        let at = match (start, direction) {
            (Bound::Included(key), _) => directory.find(key),
            (Bound::Excluded(key), Direction::Ascending) => directory.find(key),
            (Bound::Excluded(key), Direction::Descending) => {
                // What is below a partition's first key stands in the one before.
                let at = directory.find(key);
                let begins = directory.partitions.get(at).is_some_and(|it| *it.low == *key);
                if begins { at.saturating_sub(1) } else { at }
            }
            (Bound::Unbounded, Direction::Ascending) => 0,
            (Bound::Unbounded, Direction::Descending) => last,
        };
        let merger = Merger::new(Vec::new(), direction);
        let limit = limit.map(<[u8]>::to_vec);
        let mut scan = Scan {
            runs,
            directory,
            memtable,
            direction,
            limit,
            at,
            merger,
            ended: false,
            has_entry: false,
        };
        scan.enter(start)?;
        Ok(scan)
    }

    /// Begins to read the partition at `self.at`, from `start` on.
    fn enter(&mut self, start: Bound<&[u8]>) -> Result<()> {
        let Some(partition) = self.directory.partitions.get(self.at) else {
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
        let mut sources = Vec::with_capacity(partition.runs() + 1);
        sources.push(Source::Memory(waiting));
        let fragments = partition.fragments.iter().rev();
        let fragments = fragments.map(|fragment| (Form::Fragment, fragment.run));
        // What the partition before was read with is not needed beside this one's.
        self.merger = Merger::new(Vec::new(), self.direction);
        for run in fragments.chain(partition.bottom.map(|run| (Form::Bottom, run))) {
            let start = (start, self.direction);
            sources.push(Source::Run(RunCursor::seek(self.runs, run, start, Cause::Lookup)?));
        }
        self.merger = Merger::new(sources, self.direction);
        Ok(())
    }

    /// True if the present key stands in a partition behind the present one.
    fn is_beyond(&self) -> bool {
        let key = self.merger.key();
        match self.direction {
            Direction::Ascending => self.directory.high(self.at).is_some_and(|high| key >= high),
            Direction::Descending => {
                self.directory.partitions.get(self.at).is_some_and(|it| key < &*it.low)
            }
        }
    }

    /// Goes on with the next partition; false if this is the last.
    fn next_partition(&mut self) -> Result<bool> {
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
            if !self.merger.advance(self.runs)? || self.is_beyond() {
                if !self.next_partition()? {
                    return Ok(false);
                }
                continue;
            }
            let key = self.merger.key();
            if self.direction.is_beyond(&self.limit, |limit| key.cmp(limit)) {
                return Ok(false);
            }
            if self.merger.held() != Held::Deleted {
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
        let value = match self.merger.held() {
            Held::Long(long) => Value::Long(long.bytes()),
            Held::Value(value) => Value::Inline(value),
            Held::Deleted => Value::Inline(&[]),
        };
        Ok(Some((self.merger.key(), value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        if !self.has_entry {
            return Err(Error::NoEntry);
        }
        match self.merger.held() {
            Held::Value(value) => Ok(read_piece(value, offset, into)),
            Held::Deleted => Err(Error::NoEntry),
            Held::Long(long) => {
                self.runs.store.read_long(long, offset, into)?;
                Ok(long.bytes())
            }
        }
    }
}
