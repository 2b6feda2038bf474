//! What is known of a piece that has several cells: which keys begin there, and a tag for each
//! cell. The tags stand before the cells. The spans of all pieces stand together: most pieces are
//! told by these alone to have no key that is wanted.

use core::ops::RangeInclusive;

use super::super::super::stream::{Damage, Pending, hash, prefix};
use super::{CUT, Cells, List};

/// The span of a piece where no entry begins: the prefixes of its least and its greatest key.
pub(super) const NO_SPAN: [u64; 2] = [u64::MAX, 0];

/// Bytes of the span of a piece of several cells.
const SPAN_BYTES: usize = size_of_val(&NO_SPAN);

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
                while let Some(cell) = self.next_wanted((at, end), wanted)? {
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

    /// The first cell from `first` to `last`, where an entry begins whose key may have a prefix in
    /// `wanted`. All are of the piece of the last, but there may be none: the first is behind the
    /// last then.
    fn next_wanted(
        &self,
        (first, last): (u32, u32),
        wanted: &RangeInclusive<u64>,
    ) -> Result<Option<u32>, Damage> {
        let piece = self.pieces.get((last >> self.shift) as usize).ok_or(CUT)?;
        let (tags, cells) = piece.split_at(head_of(self.shift));
        let place = first as usize & ((1 << self.shift) - 1);
        for (place, cell) in (place..).zip(first..=last) {
            // A key that goes on in the next piece is read there.
            let key = || self.form.key_prefix(&cells[place * self.cell_bytes..]);
            if tags[place] != NO_TAG && key().is_none_or(|key| wanted.contains(&key)) {
                return Ok(Some(cell));
            }
        }
        Ok(None)
    }

    /// The tags of the piece of `cell`, none where it has one cell.
    pub(super) fn tags(&self, cell: u32) -> Option<&[u8]> {
        self.pieces.get((cell >> self.shift) as usize)?.get(..head_of(self.shift))
    }

    /// The prefixes between which the keys lie that begin in the piece of `cell`, which has several
    /// cells.
    pub(super) fn span(&self, cell: u32) -> Result<RangeInclusive<u64>, Damage> {
        match self.spans.get((cell >> self.shift) as usize) {
            Some([low, high]) => Ok(*low..=*high),
            _ => Err(CUT),
        }
    }

    /// Notes that no entry begins in `cell`; nor in all of its piece, if it is the first there.
    pub(super) fn note_none(&mut self, cell: u32) {
        let place = cell as usize & ((1 << self.shift) - 1);
        let piece = (cell >> self.shift) as usize;
        if self.shift > 0
            && let (Some(tags), Some(span)) =
                (self.pieces.get_mut(piece), self.spans.get_mut(piece))
        {
            tags[place] = NO_TAG;
            if place == 0 {
                span.copy_from_slice(&NO_SPAN);
            }
        }
    }

    /// Notes that an entry of `key` begins in `cell`.
    pub(super) fn note_key(&mut self, cell: u32, key: &[u8], kind: u8) {
        let place = cell as usize & ((1 << self.shift) - 1);
        let piece = (cell >> self.shift) as usize;
        if self.shift > 0
            && let (Some(tags), Some([low, high])) =
                (self.pieces.get_mut(piece), self.spans.get_mut(piece))
        {
            tags[place] = tag_of(key) | kind;
            let prefix = prefix(key);
            (*low, *high) = (prefix.min(*low), prefix.max(*high));
        }
    }
}

/// Bytes of the tags of a piece that has two to the power of `shift` cells.
pub(super) const fn head_of(shift: u32) -> usize {
    if shift > 0 { 1 << shift } else { 0 }
}

/// Bytes of its span.
pub(super) const fn span_of(shift: u32) -> usize {
    if shift > 0 { SPAN_BYTES } else { 0 }
}

/// The tag of a put of `key`, by all of its bytes.
fn tag_of(key: &[u8]) -> u8 {
    ((hash(key) >> 57) as u8).max(1)
}
