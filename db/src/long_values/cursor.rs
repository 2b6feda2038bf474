//! Entries one after the other, of which a few are held at a time.
//!
//! The tree's own cursor lends the tree away; the pieces of a value are entries of the same tree.
//! So the cursor is kept only while it fills a bounded buffer.

use std::ops::{Bound, Range};

use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

use super::LongValues;
use super::keys::{Bounds, Held};

/// Entries are read ahead until they have so many bytes.
pub(super) const AHEAD_BYTES: usize = 4 << 10;

/// Places of a key and a value.
type Place = (Range<usize>, Range<usize>);

pub(super) struct Ahead<'c, 'd> {
    values: &'c mut LongValues<'d>,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Direction,
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The next of these.
    next: usize,
    /// What comes behind them.
    end: End,
}

enum End {
    /// More entries.
    More,
    /// Nothing.
    Nothing,
    /// An error.
    Failed(Error),
}

impl<'c, 'd> Ahead<'c, 'd> {
    pub(super) fn new(
        values: &'c mut LongValues<'d>,
        (from, to): Bounds,
        direction: Direction,
    ) -> Self {
        let (bytes, places) = (Vec::new(), Vec::new());
        Ahead { values, from, to, direction, bytes, places, next: 0, end: End::More }
    }

    /// Reads the next entries.
    fn read_ahead(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.next = 0;
        self.end = match self.fill() {
            Ok(true) => End::More,
            Ok(false) => End::Nothing,
            Err(error) => End::Failed(error),
        };
        if let Some((key, _)) = self.places.last() {
            let last = Bound::Excluded(self.bytes[key.clone()].to_vec());
            match self.direction {
                Direction::Ascending => self.from = last,
                Direction::Descending => self.to = last,
            }
        }
    }

    /// Fills the buffer; false if nothing comes behind.
    fn fill(&mut self) -> Result<bool> {
        let (from, to) = (self.from.as_ref(), self.to.as_ref());
        let (from, to) = (from.map(Vec::as_slice), to.map(Vec::as_slice));
        let range = KeyRange { from, to, direction: self.direction };
        let mut cursor = self.values.index.range(range)?;
        while self.bytes.len() < AHEAD_BYTES {
            let Some((key, value)) = cursor.next()? else {
                return Ok(false);
            };
            let start = self.bytes.len();
            self.bytes.extend_from_slice(key);
            let middle = self.bytes.len();
            self.bytes.extend_from_slice(value.whole().unwrap_or_default());
            self.places.push((start..middle, middle..self.bytes.len()));
        }
        Ok(true)
    }
}

impl<'d> Ahead<'_, 'd> {
    /// Goes to the next entry; false behind the last.
    fn advance(&mut self) -> Result<bool> {
        if self.next == self.places.len() && matches!(self.end, End::More) {
            self.read_ahead();
        }
        if self.next < self.places.len() {
            self.next += 1;
            return Ok(true);
        }
        self.places.clear();
        self.next = 0;
        match core::mem::replace(&mut self.end, End::Nothing) {
            End::Failed(error) => Err(error),
            End::More | End::Nothing => Ok(false),
        }
    }

    /// The key and the value of the entry that it came to last.
    fn entry(&self) -> Result<(&[u8], Held<'_>)> {
        let place = self.next.checked_sub(1).and_then(|last| self.places.get(last));
        let (key, value) = place.ok_or(Error::NoEntry)?;
        let held = Held::decode(&self.bytes[value.clone()])?;
        Ok((&self.bytes[key.start + 1..key.end], held))
    }

    /// The value of the next entry.
    pub(super) fn next_held(&mut self) -> Result<Option<Held<'_>>> {
        match self.advance()? {
            true => self.entry().map(|(_, held)| Some(held)),
            false => Ok(None),
        }
    }

    /// The index that it reads.
    pub(super) const fn values(&mut self) -> &mut LongValues<'d> {
        self.values
    }
}

impl Cursor for Ahead<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        let (key, held) = self.entry()?;
        let value = match held {
            Held::Inline(value) => Value::Inline(value),
            Held::InPieces(reference) => Value::Long(reference.bytes),
        };
        Ok(Some((key, value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        match self.entry()?.1 {
            Held::Inline(value) => Ok(read_piece(value, offset, into)),
            Held::InPieces(reference) => self.values.read_pieces(reference, offset, into),
        }
    }
}
