//! Values longer than a node, on raw flash: an index above an index.
//!
//! Trees on raw flash keep entries that fit a node. A longer value is cut into pieces, which are
//! entries of the same tree, and the entry names the first of them. So long values live, move and
//! last as all else does, in every tree, and no value has to fit into the journal.
//!
//! A long value takes its pieces' batches, each about a page, and then the batch that has the
//! entry: that one makes all of it visible at once. What it replaced is deleted after it. Values
//! that fit a node cost two bytes more, and no look at what they replace while there are no pieces.
//!
//! Beside the pieces themselves nothing has to be found at an opening: `pieces` has the invariant.

mod check;
mod cursor;
mod keys;
mod load;
mod pieces;

use std::collections::BTreeMap;
use std::fmt::Display;

use device::Meter;
use index::{
    CheckpointId, Cursor, EntryShape, Error, Index, KeyRange, Read, RecoveryStatistics, Result,
    Resume, Savepoint, Statistics, Update, Wear, read_piece,
};

pub(crate) use keys::shape_below;
use keys::{Held, Keys, Kind, Reference, damaged};

/// An index that takes values of any length, above one that does not.
pub(crate) struct LongValues<'d> {
    index: Box<dyn Index + 'd>,
    keys: Keys,
    /// Bytes of a key and a value that fit a node of the tree.
    entry_most: usize,
    /// The next number of a piece.
    next: u64,
    /// True if there may be pieces.
    has_pieces: bool,
    /// True if some may belong to no entry.
    has_unowned: bool,
    /// An entry of the tree.
    stored: Vec<u8>,
    /// Keys and values of a batch of the tree.
    batch: Vec<u8>,
}

/// An update of the tree in the bytes of a batch: where its key ends, and its value.
struct Stored {
    is_put: bool,
    start: usize,
    key_end: usize,
    end: usize,
}

impl<'d> LongValues<'d> {
    /// Bytes of memory that this takes beside the tree's, whose nodes have `node_bytes` bytes.
    pub(crate) fn memory_bytes(node_bytes: u32) -> u64 {
        cursor::AHEAD_BYTES as u64 + 2 * u64::from(node_bytes)
    }

    /// Above `index`, whose entries have a shape that [`shape_below`] returned.
    pub(crate) fn above(index: Box<dyn Index + 'd>, below: EntryShape) -> Self {
        let entry_most = index.entry_bytes_most();
        LongValues {
            index,
            keys: Keys::above(below.key),
            entry_most,
            next: 0,
            has_pieces: false,
            has_unowned: false,
            stored: vec![0; entry_most],
            batch: Vec::new(),
        }
    }

    /// Above `index`, which was just opened.
    pub(crate) fn open(index: Box<dyn Index + 'd>, below: EntryShape) -> Result<Self> {
        let mut values = LongValues::above(index, below);
        values.learn()?;
        Ok(values)
    }

    /// The shape of the entries above a tree with entries of the shape `below`.
    pub(crate) fn shape_above(below: EntryShape) -> EntryShape {
        EntryShape { key: Keys::above(below.key).width, value: below.value }
    }

    /// True if a value of `value` bytes does not fit a node with a key of `key` bytes.
    fn is_long(&self, key: usize, value: usize) -> bool {
        key + value + 2 > self.entry_most
    }

    /// Refuses an update that can't be taken.
    fn check_update(&self, update: &Update<'_>) -> Result<()> {
        let key = update.key();
        self.keys.check(key)?;
        let limit = self.key_bytes_most();
        if key.len() > limit {
            return Err(Error::KeyTooLong { found: key.len() as u64, limit: limit as u64 });
        }
        match update {
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
            Update::Put { .. } | Update::Delete { .. } => Ok(()),
        }
    }

    fn is_long_put(&self, update: &Update<'_>) -> bool {
        matches!(update, Update::Put { key, value } if self.is_long(key.len(), value.len()))
    }

    /// Puts the tree's update of a user's into the batch.
    fn add_entry(&mut self, to: &mut Vec<Stored>, key: &[u8], held: Option<Held<'_>>) {
        let start = self.batch.len();
        self.batch.push(Kind::Entry as u8);
        self.batch.extend_from_slice(key);
        let key_end = self.batch.len();
        if let Some(held) = held {
            held.encode(&mut self.batch);
        }
        to.push(Stored { is_put: held.is_some(), start, key_end, end: self.batch.len() });
    }

    /// Puts the mark of pieces that belong to no entry into the batch, or its deletion.
    fn add_mark(&mut self, to: &mut Vec<Stored>, reference: &Reference, is_put: bool) {
        let start = self.batch.len();
        self.batch.push(Kind::Unowned as u8);
        self.keys.push_number(reference.first, &mut self.batch);
        let key_end = self.batch.len();
        if is_put {
            self.batch.extend_from_slice(&(reference.pieces() as u32).to_le_bytes());
        }
        to.push(Stored { is_put, start, key_end, end: self.batch.len() });
    }

    /// Makes the updates of the tree that are in the batch.
    fn commit(&mut self, stored: &[Stored]) -> Result<()> {
        let bytes = core::mem::take(&mut self.batch);
        let updates: Vec<_> = stored.iter().map(|stored| stored.update(&bytes)).collect();
        let made = self.index.update(&updates);
        self.batch = bytes;
        made.map_err(above)
    }

    /// Where the value of a user's key stands in pieces.
    fn reference(&mut self, key: &[u8]) -> Result<Option<Reference>> {
        Ok(match self.read_stored(key)? {
            Some(length) => match Held::decode(&self.stored[..length])? {
                Held::InPieces(reference) => Some(reference),
                Held::Inline(_) => None,
            },
            None => None,
        })
    }

    /// Reads the entry of a user's key; returns its length.
    fn read_stored(&mut self, key: &[u8]) -> Result<Option<usize>> {
        self.batch.clear();
        self.batch.push(Kind::Entry as u8);
        self.batch.extend_from_slice(key);
        let Some(length) = self.index.get(&self.batch, 0, &mut self.stored)? else {
            return Ok(None);
        };
        match length as usize {
            length if length <= self.stored.len() => Ok(Some(length)),
            _ => Err(damaged("an entry is longer than one can be")),
        }
    }

    /// Makes the changes of a batch of which none is of a long value.
    fn update_short(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.batch.clear();
        if let [update] = batch {
            let mut stored = Vec::with_capacity(1);
            self.add_short(&mut stored, update);
            return self.commit(&stored);
        }
        let mut stored = Vec::with_capacity(batch.len());
        for update in batch {
            self.add_short(&mut stored, update);
        }
        self.commit(&stored)
    }

    fn add_short(&mut self, to: &mut Vec<Stored>, update: &Update<'_>) {
        let held = match update {
            Update::Put { value, .. } => Some(Held::Inline(value)),
            Update::Delete { .. } | Update::PutStored { .. } => None,
        };
        self.add_entry(to, update.key(), held);
    }

    /// Makes the changes of a batch where there are pieces, or will be.
    fn update_long(&mut self, batch: &[Update<'_>]) -> Result<()> {
        // Of one key the last update counts.
        let last: BTreeMap<_, _> = batch.iter().map(|update| (update.key(), update)).collect();
        let mut values = Vec::with_capacity(last.len());
        for (key, update) in last {
            let old = if self.has_pieces { self.reference(key)? } else { None };
            let new = match update {
                Update::Put { value, .. } if self.is_long_put(update) => {
                    Some(self.write_value(value)?)
                }
                _ => None,
            };
            values.push((update, old, new));
        }
        self.batch.clear();
        let mut stored = Vec::with_capacity(values.len());
        for (update, old, new) in values {
            match new {
                Some(new) => {
                    self.add_entry(&mut stored, update.key(), Some(Held::InPieces(new)));
                    self.add_mark(&mut stored, &new, false);
                }
                None => self.add_short(&mut stored, update),
            }
            if let Some(old) = old {
                self.has_unowned = true;
                self.add_mark(&mut stored, &old, true);
            }
        }
        self.commit(&stored)
    }
}

impl Stored {
    fn update<'b>(&self, bytes: &'b [u8]) -> Update<'b> {
        let key = &bytes[self.start..self.key_end];
        match self.is_put {
            true => Update::Put { key, value: &bytes[self.key_end..self.end] },
            false => Update::Delete { key },
        }
    }
}

/// An error of the tree's as the user's entries have it.
fn above(error: Error) -> Error {
    match error {
        Error::KeyTooLong { found, limit } | Error::EntryTooLong { found, limit } => {
            Error::KeyTooLong { found: found.saturating_sub(1), limit: limit.saturating_sub(1) }
        }
        other => other,
    }
}

impl Read for LongValues<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.keys.check(key)?;
        let Some(length) = self.read_stored(key)? else {
            return Ok(None);
        };
        match Held::decode(&self.stored[..length])? {
            Held::Inline(value) => Ok(Some(read_piece(value, offset, into))),
            Held::InPieces(reference) => self.read_pieces(reference, offset, into).map(Some),
        }
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let bounds = self.keys.bounds(range)?;
        Ok(Box::new(cursor::Ahead::new(self, bounds, range.direction)))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        self.index.check(finding)?;
        self.check_pieces(finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        let lowest = self.keys.before(Kind::Entry as u8);
        let below = key.map_or(lowest, |key| [&[Kind::Entry as u8], key].concat());
        Ok(match self.index.resume_after(Some(&below))? {
            Resume::From(next) => match next.split_first() {
                Some((&first, key)) if first == Kind::Entry as u8 => Resume::From(key.to_vec()),
                _ => Resume::End,
            },
            other => other,
        })
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = self.index.statistics();
        let bytes = (cursor::AHEAD_BYTES + 2 * self.entry_most) as u64;
        statistics.memory.buffers += bytes;
        statistics.memory_peak += bytes;
        statistics
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        self.index.metrics(tell);
    }

    fn meter(&self) -> Option<&Meter> {
        self.index.meter()
    }
}

impl Index for LongValues<'_> {
    fn update(&mut self, batch: &[Update<'_>]) -> Result<()> {
        for update in batch {
            self.check_update(update)?;
        }
        self.sweep()?;
        if !self.has_pieces && !batch.iter().any(|update| self.is_long_put(update)) {
            return self.update_short(batch);
        }
        let updated = self.update_long(batch);
        let swept = self.sweep();
        updated.and(swept)
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.load_sorted(sorted, fill_percent)
    }

    fn sync(&mut self) -> Result<()> {
        self.index.sync()
    }

    fn checkpoint(&mut self, name: Option<&str>) -> Result<CheckpointId> {
        self.index.checkpoint(name)
    }

    fn checkpoints(&self) -> &[Savepoint] {
        self.index.checkpoints()
    }

    fn roll_back(&mut self, name: &str) -> Result<()> {
        self.index.roll_back(name)?;
        self.learn()
    }

    fn forget(&mut self, name: &str) -> Result<()> {
        self.index.forget(name)
    }

    fn recovery(&self) -> RecoveryStatistics {
        self.index.recovery()
    }

    fn wear(&self) -> Option<Wear> {
        self.index.wear()
    }

    fn entry_bytes_most(&self) -> usize {
        self.entry_most.saturating_sub(2)
    }

    fn key_bytes_most(&self) -> usize {
        let beside_reference = self.entry_most.saturating_sub(1 + Reference::ENCODED_BYTES);
        beside_reference.min(self.index.key_bytes_most().saturating_sub(1))
    }

    fn close(&mut self) -> Result<()> {
        self.index.close()
    }
}
