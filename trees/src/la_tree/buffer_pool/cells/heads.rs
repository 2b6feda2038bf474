//! What stands before the cells of a piece that has several: which keys begin there, and a tag for
//! each cell.
//!
//! ```text
//!  0     8      16     16 + cells
//!  +-----+------+------+-------
//!  | low | high | tags | cells     low, high: prefixes of the least and the greatest key
//!  +-----+------+------+-------
//! ```

use core::ops::RangeInclusive;

use super::super::super::stream::{Damage, Pending, hash, prefix};
use super::{CUT, Cells, List};

/// Bytes of the span of a piece of several cells.
const SPAN_BYTES: usize = 16;

/// In a tag, marks a delete; the rest is of the key. A cell where no entry begins has [`NO_TAG`].
pub(super) const DELETE: u8 = 0x80;
pub(super) const NO_TAG: u8 = 0;

impl Cells {
    /// As [`Cells::newest`], by the tags.
    pub(super) fn newest_in_pieces(
        &mut self,
        list: &List,
        key: &[u8],
    ) -> Result<Option<u32>, Damage> {
        let (wanted, all, prefix) = (tag_of(key), (1 << self.shift) - 1, prefix(key));
        let (mut at, mut newest) = (list.first, None);
        loop {
            let is_last = at >> self.shift == list.last >> self.shift;
            let end = if is_last { list.last } else { at | all };
            let is_wanted = |tag: &u8| *tag & !DELETE == wanted;
            // All of a piece, whatever is in use of it, so that the tags are compared at once.
            let is_there = |tags: &[u8]| tags.iter().fold(false, |any, tag| any | is_wanted(tag));
            if self.span(at)?.contains(&prefix) && is_there(self.tags(at).ok_or(CUT)?) {
                for cell in (at..=end).rev() {
                    let tag = self.tags(cell).and_then(|tags| tags.get((cell & all) as usize));
                    if tag.is_some_and(is_wanted) && self.entry(cell)?.0.key == key {
                        newest = Some(cell);
                        break;
                    }
                }
            }
            if is_last {
                return Ok(newest);
            }
            at = self.next(end);
        }
    }

    /// As [`Cells::visit`], by the spans and the prefixes.
    pub(super) fn visit_pieces(
        &mut self,
        list: &List,
        wanted: &RangeInclusive<u64>,
        each: &mut dyn FnMut(&Pending<'_>),
    ) -> Result<(), Damage> {
        let (all, mut at) = ((1 << self.shift) - 1, list.first);
        loop {
            let is_last = at >> self.shift == list.last >> self.shift;
            let end = if is_last { list.last } else { at | all };
            let span = self.span(at)?;
            if span.start() <= wanted.end() && wanted.start() <= span.end() {
                while let Some(cell) = self.next_wanted(at..=end, wanted)? {
                    each(&self.entry(cell)?.0);
                    at = cell + 1;
                }
            }
            if is_last {
                return Ok(());
            }
            at = self.next(end);
        }
    }

    /// The first of `cells`, where an entry begins whose key may have a prefix in `wanted`. All are
    /// of the piece of the last, but there may be none: the first is behind the last then.
    fn next_wanted(
        &self,
        cells: RangeInclusive<u32>,
        wanted: &RangeInclusive<u64>,
    ) -> Result<Option<u32>, Damage> {
        let piece = self.pieces.get((*cells.end() >> self.shift) as usize).ok_or(CUT)?;
        let is_wanted = |cell: &u32| {
            let place = *cell as usize & ((1 << self.shift) - 1);
            // A key that goes on in the next piece is read there.
            let key =
                || self.form.key_prefix(&piece[head_of(self.shift) + place * self.cell_bytes..]);
            piece[SPAN_BYTES + place] != NO_TAG && key().is_none_or(|key| wanted.contains(&key))
        };
        Ok(cells.into_iter().find(is_wanted))
    }

    /// The tags of the piece of `cell`, none where it has one cell.
    pub(super) fn tags(&self, cell: u32) -> Option<&[u8]> {
        let head = head_of(self.shift);
        self.pieces.get((cell >> self.shift) as usize)?.get(head.min(SPAN_BYTES)..head)
    }

    /// The prefixes between which the keys lie that begin in the piece of `cell`; all where it has
    /// one cell.
    pub(super) fn span(&self, cell: u32) -> Result<RangeInclusive<u64>, Damage> {
        if self.shift == 0 {
            return Ok(0..=u64::MAX);
        }
        let piece = self.pieces.get((cell >> self.shift) as usize).ok_or(CUT)?;
        let (low, rest) = piece.split_first_chunk().ok_or(CUT)?;
        let high = rest.first_chunk().ok_or(CUT)?;
        Ok(u64::from_le_bytes(*low)..=u64::from_le_bytes(*high))
    }

    /// Notes that no entry begins in `cell`; nor in all of its piece, if it is the first there.
    pub(super) fn note_none(&mut self, cell: u32) {
        let place = cell as usize & ((1 << self.shift) - 1);
        if self.shift > 0
            && let Some(piece) = self.pieces.get_mut((cell >> self.shift) as usize)
        {
            piece[SPAN_BYTES + place] = NO_TAG;
            if place == 0 {
                piece[..8].copy_from_slice(&u64::MAX.to_le_bytes());
                piece[8..SPAN_BYTES].copy_from_slice(&0_u64.to_le_bytes());
            }
        }
    }

    /// Notes that an entry of `key` begins in `cell`.
    pub(super) fn note_key(&mut self, cell: u32, key: &[u8], kind: u8) {
        if self.shift == 0 {
            return;
        }
        let (prefix, Ok(span)) = (prefix(key), self.span(cell)) else {
            return;
        };
        let place = cell as usize & ((1 << self.shift) - 1);
        if let Some(piece) = self.pieces.get_mut((cell >> self.shift) as usize) {
            piece[SPAN_BYTES + place] = tag_of(key) | kind;
            piece[..8].copy_from_slice(&prefix.min(*span.start()).to_le_bytes());
            piece[8..SPAN_BYTES].copy_from_slice(&prefix.max(*span.end()).to_le_bytes());
        }
    }
}

/// Bytes before the cells of a piece that has two to the power of `shift` of them.
pub(super) const fn head_of(shift: u32) -> usize {
    if shift > 0 { SPAN_BYTES + (1 << shift) } else { 0 }
}

/// The tag of a put of `key`, by all of its bytes.
fn tag_of(key: &[u8]) -> u8 {
    ((hash(key) >> 57) as u8).max(1)
}
