//! Making units: entries go in one behind the other, in their order.

use super::{Entry, Form, PIECE_HEADER, Seed, UnitShape, varint_bytes};
use crate::Width;

/// A unit that is being made.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    shape: UnitShape,
    count: usize,
    /// Where the next entry goes.
    end: usize,
}

impl Builder {
    /// An empty unit; its bytes have to be zeros.
    #[must_use]
    pub fn new(shape: UnitShape) -> Self {
        let kinds = shape.packed().map_or(0, |_| shape.packed_room().1);
        Builder { shape, count: 0, end: shape.header() + kinds }
    }

    /// True if it has no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds `entry` to the unit in `bytes`; false, and nothing changed, if there is no room.
    #[must_use]
    pub fn push(&mut self, bytes: &mut [u8], entry: &Entry<'_>) -> bool {
        if self.count == self.shape.count_most() {
            return false;
        }
        let is_in = match self.shape.packed() {
            Some(lengths) => self.push_packed(lengths, bytes, entry),
            None => self.push_varying(bytes, entry),
        };
        self.count += usize::from(is_in);
        is_in
    }

    fn push_packed(
        &mut self,
        lengths: (usize, usize),
        bytes: &mut [u8],
        entry: &Entry<'_>,
    ) -> bool {
        if self.count == self.shape.packed_room().0 {
            return false;
        }
        let bits = self.shape.kinds.bits();
        let at = self.count * bits;
        if bits > 0 {
            bytes[self.shape.header() + at / 8] |= entry.kind.number() << (at % 8);
        }
        let (key, value) = lengths;
        bytes[self.end..self.end + key].copy_from_slice(entry.key);
        let start = self.end + key;
        bytes[start..start + entry.value.len()].copy_from_slice(entry.value);
        self.end = start + value;
        true
    }

    fn push_varying(&mut self, bytes: &mut [u8], entry: &Entry<'_>) -> bool {
        let head = self.shape.head_bytes(entry.key.len());
        let end = self.end + head + entry.key.len() + entry.value.len();
        let wide = self.shape.end_bytes();
        let ends = (self.count + 1) * wide;
        if end + ends > self.shape.bytes as usize {
            return false;
        }
        put_record(&self.shape, &mut bytes[self.end..end], entry);
        let at = self.shape.bytes as usize - ends;
        bytes[at..at + wide].copy_from_slice(&(end as u16).to_le_bytes()[..wide]);
        self.end = end;
        true
    }

    /// Ends the unit in `bytes`; returns its checksum.
    pub fn seal(&self, seed: Seed, bytes: &mut [u8]) -> u32 {
        put_header(&self.shape, bytes, (self.count, 0));
        seed.seal(&self.shape, bytes)
    }
}

pub(super) fn put_header(shape: &UnitShape, bytes: &mut [u8], (count, form): (usize, u8)) {
    let at = shape.checksum_bytes();
    if shape.is_short() {
        bytes[at] = count as u8 | form << 6;
    } else {
        let head = count as u16 | u16::from(form) << 14;
        bytes[at..at + 2].copy_from_slice(&head.to_le_bytes());
    }
}

/// Writes an entry as it stands among others of varying length.
fn put_record(shape: &UnitShape, into: &mut [u8], entry: &Entry<'_>) {
    let mut at = 0;
    let bits = shape.kinds.bits();
    match shape.entries.key {
        Width::Fixed(_) if bits == 0 => {}
        Width::Fixed(_) => {
            into[0] = entry.kind.number();
            at = 1;
        }
        Width::Variable => {
            let mut number = entry.key.len() << bits | usize::from(entry.kind.number());
            for _ in 1..varint_bytes(number) {
                into[at] = number as u8 | 0x80;
                (number, at) = (number >> 7, at + 1);
            }
            into[at] = number as u8;
            at += 1;
        }
    }
    let (key, value) = into[at..].split_at_mut(entry.key.len());
    key.copy_from_slice(entry.key);
    value.copy_from_slice(entry.value);
}

/// A record that is written in pieces, a unit each.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pieces<'r> {
    shape: UnitShape,
    /// What is still to be written.
    left: &'r [u8],
    first: Option<Form>,
}

impl<'r> Pieces<'r> {
    /// The pieces of `record`, which is the footer or an entry.
    pub(in super::super) const fn new(shape: UnitShape, record: &'r [u8], is_footer: bool) -> Self {
        let bytes = record.len() as u32;
        let first = if is_footer { Form::Footer(bytes) } else { Form::First(bytes) };
        Pieces { shape, left: record, first: Some(first) }
    }

    pub(in super::super) const fn is_done(&self) -> bool {
        self.left.is_empty() && self.first.is_none()
    }

    /// Writes the next piece to the unit in `bytes`, which are zeros; returns its checksum.
    pub(in super::super) fn put(&mut self, seed: Seed, bytes: &mut [u8]) -> u32 {
        let shape = self.shape;
        let mut at = shape.header();
        let form = self.first.take();
        if let Some(Form::First(all) | Form::Footer(all)) = form {
            bytes[at..at + PIECE_HEADER].copy_from_slice(&all.to_le_bytes());
            at += PIECE_HEADER;
        }
        let (piece, left) = self.left.split_at(self.left.len().min(bytes.len() - at));
        bytes[at..at + piece.len()].copy_from_slice(piece);
        self.left = left;
        let number = match form {
            Some(Form::First(_)) => 1,
            Some(_) => 3,
            None => 2,
        };
        put_header(&shape, bytes, (0, number));
        seed.seal(&shape, bytes)
    }
}

/// The bytes of `entry` as a record of its own, into `into`.
pub(in super::super) fn record(
    shape: &UnitShape,
    entry: &Entry<'_>,
    into: &mut alloc::vec::Vec<u8>,
) {
    into.clear();
    let head = shape.head_bytes(entry.key.len());
    into.resize(head + entry.key.len() + entry.value.len(), 0);
    put_record(shape, into, entry);
}
