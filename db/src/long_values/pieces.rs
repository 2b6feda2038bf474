//! The pieces of a value: written before the entry that has it, deleted after it.
//!
//! # Invariants
//! - Pieces belong to one entry, or their first number is marked as unowned: an entry and its mark
//!   change in one batch. So a power cut leaves no pieces that nobody knows of.
//! - A batch of the tree's takes about a page of pieces, whatever the journal's length.

use std::ops::Bound;

use index::{Direction, Error, KeyRange, Result, Update};

use super::LongValues;
use super::keys::{Kind, Reference, damaged};

/// Pieces that are written together: about a page of them.
const PIECES_AT_ONCE: usize = 4;

/// Pieces that are deleted together.
const DELETES_AT_ONCE: usize = 16;

impl LongValues<'_> {
    /// Learns which numbers are taken.
    pub(super) fn learn(&mut self) -> Result<()> {
        let piece = self.last(Kind::Piece)?;
        let unowned = self.last(Kind::Unowned)?;
        self.has_pieces = piece.is_some();
        self.has_unowned = unowned.is_some();
        let behind = |(first, count): (u64, u32)| first.saturating_add(count.into());
        self.next = piece.map_or(0, |(number, _)| number.saturating_add(1));
        self.next = self.next.max(unowned.map_or(0, behind));
        Ok(())
    }

    /// The highest number of a kind, and its value.
    fn last(&mut self, kind: Kind) -> Result<Option<(u64, u32)>> {
        self.numbered(kind, Direction::Descending)
    }

    /// The first number of a kind in `direction`, and its value.
    fn numbered(&mut self, kind: Kind, direction: Direction) -> Result<Option<(u64, u32)>> {
        let (from, to) = self.keys.all(kind);
        let from = Bound::Included(from.as_slice());
        let to = Bound::Excluded(to.as_slice());
        let mut cursor = self.index.range(KeyRange { from, to, direction })?;
        let Some((key, value)) = cursor.next()? else {
            return Ok(None);
        };
        let number = self.keys.number(key).ok_or_else(|| damaged("a piece has no number"))?;
        let count = value.whole().and_then(|value| value.first_chunk());
        Ok(Some((number, count.map_or(0, |count| u32::from_le_bytes(*count)))))
    }

    /// Deletes the pieces that belong to no entry, as far as there is room for that.
    pub(super) fn sweep(&mut self) -> Result<()> {
        match self.sweep_all() {
            Err(error) if is_about_room(&error) => Ok(()),
            swept => swept,
        }
    }

    fn sweep_all(&mut self) -> Result<()> {
        while self.has_unowned {
            let Some((first, count)) = self.numbered(Kind::Unowned, Direction::Ascending)? else {
                self.has_unowned = false;
                break;
            };
            let end = first.saturating_add(count.into());
            while self.delete_pieces(first, end)? {}
            let mark = self.keys.numbered(Kind::Unowned, first);
            self.index.update(&[Update::Delete { key: &mark }])?;
        }
        Ok(())
    }

    /// Deletes some of the pieces from number `first` to below `end`; false if there are none. Only
    /// those that are there take time, whatever a mark counts.
    fn delete_pieces(&mut self, first: u64, end: u64) -> Result<bool> {
        let from = self.keys.numbered(Kind::Piece, first);
        let (_, to) = self.keys.all(Kind::Piece);
        let (from, to) = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let range = KeyRange { from, to, direction: Direction::Ascending };
        let mut cursor = self.index.range(range)?;
        let mut keys = Vec::with_capacity(DELETES_AT_ONCE);
        while keys.len() < DELETES_AT_ONCE {
            match cursor.next()? {
                Some((key, _)) if self.keys.number(key).is_some_and(|number| number < end) => {
                    keys.push(key.to_vec());
                }
                _ => break,
            }
        }
        drop(cursor);
        if keys.is_empty() {
            return Ok(false);
        }
        let deletes: Vec<_> = keys.iter().map(|key| Update::Delete { key }).collect();
        match self.index.update(&deletes) {
            // A full chip may have room for one at a time only.
            Err(error) if is_about_room(&error) => {
                deletes.chunks(1).try_for_each(|delete| self.index.update(delete))?;
            }
            other => other?,
        }
        Ok(true)
    }

    /// The numbers of the pieces of a value of `bytes` bytes that is to be written.
    pub(super) fn reserve(&mut self, bytes: u32) -> Result<Reference> {
        let piece_bytes = self.piece_bytes();
        let reference = Reference { first: self.next, bytes, piece_bytes };
        let end = self.next.saturating_add(reference.pieces());
        if end > self.keys.numbers_most() {
            let what = "the numbers of pieces of long values are used up: only a copy has new ones";
            return Err(Error::Unsupported { what });
        }
        self.next = end;
        (self.has_pieces, self.has_unowned) = (true, true);
        let mark = self.keys.numbered(Kind::Unowned, reference.first);
        let count = (reference.pieces() as u32).to_le_bytes();
        self.index.update(&[Update::Put { key: &mark, value: &count }])?;
        Ok(reference)
    }

    /// Bytes of the pieces of a new value.
    fn piece_bytes(&self) -> u16 {
        let key = self.keys.numbered(Kind::Piece, 0).len();
        u16::try_from(self.entry_most.saturating_sub(key)).unwrap_or(u16::MAX).max(1)
    }

    /// Writes a value, whose pieces belong to no entry yet.
    pub(super) fn write_value(&mut self, value: &[u8]) -> Result<Reference> {
        let limit = u64::from(u32::MAX);
        let bytes = u32::try_from(value.len())
            .map_err(|_| Error::ValueTooLong { found: value.len() as u64, limit })?;
        let reference = self.reserve(bytes)?;
        let mut number = reference.first;
        let piece_bytes = usize::from(reference.piece_bytes);
        for pieces in value.chunks(piece_bytes * PIECES_AT_ONCE) {
            let pieces = pieces.chunks(piece_bytes);
            let keyed: Vec<_> = pieces
                .zip(number..)
                .map(|(piece, number)| (self.keys.numbered(Kind::Piece, number), piece))
                .collect();
            let puts: Vec<_> =
                keyed.iter().map(|(key, value)| Update::Put { key, value }).collect();
            self.index.update(&puts)?;
            number += puts.len() as u64;
        }
        Ok(reference)
    }

    /// Reads a value from byte `offset` on into `into`, as far as both reach; returns its length.
    pub(super) fn read_pieces(
        &mut self,
        reference: Reference,
        offset: u32,
        into: &mut [u8],
    ) -> Result<u32> {
        let left = reference.bytes.saturating_sub(offset) as usize;
        let wanted = left.min(into.len());
        let (mut rest, mut at) = (&mut into[..wanted], offset);
        let piece_bytes = u32::from(reference.piece_bytes);
        while !rest.is_empty() {
            let begun = at % piece_bytes;
            let number = u64::from(at / piece_bytes);
            let length = self.length_of(&reference, number);
            let most = rest.len().min((length - begun) as usize);
            let (now, later) = rest.split_at_mut(most);
            let key = self.keys.numbered(Kind::Piece, reference.first + number);
            if self.index.get(&key, begun, now)? != Some(length) {
                return Err(damaged("a piece of a long value is missing or of a wrong length"));
            }
            at += most as u32;
            rest = later;
        }
        Ok(reference.bytes)
    }

    /// Bytes of the piece at `place` of a value.
    pub(super) fn length_of(&self, reference: &Reference, place: u64) -> u32 {
        let before = place.saturating_mul(reference.piece_bytes.into());
        let left = u64::from(reference.bytes).saturating_sub(before);
        left.min(reference.piece_bytes.into()) as u32
    }
}

/// True if there is too little room, which is no failure.
pub(super) fn is_about_room(error: &Error) -> bool {
    use store::Error::{Full, Kept, LittleTables};
    matches!(
        error,
        Error::TreeFull { .. } | Error::Store(Full { .. } | Kept { .. } | LittleTables { .. })
    )
}
