//! What a pool knows of each buffer. There are as many as nodes with buffers, so in a small pool,
//! whose numbers are small, it takes fifteen bytes.

use super::cells::List;
use super::links::NO_CELL;
use super::{NO_BUFFER, Slot};
use crate::la_tree::chunks::Chunked;

/// Bytes of a slot in a small pool: first and last cell u16, entries u16, bytes u24, neighbours
/// u24.
const SHORT_BYTES: usize = 15;

/// No cell, and no buffer, in a small pool.
const NO_CELL_SHORT: u16 = u16::MAX;
const NO_BUFFER_SHORT: u32 = 0x00FF_FFFF;

/// The slots of all buffers.
#[derive(Debug)]
pub(super) enum Slots {
    /// Of a pool of at most 32,767 single cells.
    Short(Chunked<[u8; SHORT_BYTES]>),
    Long(Chunked<Slot>),
}

#[expect(clippy::useless_conversion, reason = "it is one for the short form")]
impl Slots {
    pub(super) fn new(is_short: bool) -> Self {
        if is_short { Slots::Short(Chunked::new()) } else { Slots::Long(Chunked::new()) }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        either!(self, slots => slots.memory_bytes())
    }

    /// The most bytes that so many take.
    pub(super) const fn bytes_most(is_short: bool, buffers: u64) -> u64 {
        match is_short {
            true => Chunked::<[u8; SHORT_BYTES]>::bytes_most(buffers),
            false => Chunked::<Slot>::bytes_most(buffers),
        }
    }

    pub(super) fn len(&self) -> usize {
        either!(self, slots => slots.len())
    }

    pub(super) fn grow(&mut self, length: usize, slot: Slot) {
        either!(self, slots => slots.grow(length, slot.into()));
    }

    pub(super) fn get(&self, buffer: u32) -> Option<Slot> {
        either!(self, slots => slots.get(buffer as usize).map(|slot| (*slot).into()))
    }

    /// Lets `buffer` have `slot`, if there is one for it.
    pub(super) fn set(&mut self, buffer: u32, slot: Slot) {
        either!(self, slots => if let Some(held) = slots.get_mut(buffer as usize) {
            *held = slot.into();
        });
    }
}

impl From<Slot> for [u8; SHORT_BYTES] {
    fn from(slot: Slot) -> Self {
        // The low bits of no cell, and of no buffer, stand for them.
        let [f0, f1] = (slot.list.first as u16).to_le_bytes();
        let [l0, l1] = (slot.list.last as u16).to_le_bytes();
        let [e0, e1] = (slot.entries as u16).to_le_bytes();
        let [b0, b1, b2, _] = slot.bytes.to_le_bytes();
        let [n0, n1, n2, _] = slot.before.to_le_bytes();
        let [a0, a1, a2, _] = slot.after.to_le_bytes();
        [f0, f1, l0, l1, e0, e1, b0, b1, b2, n0, n1, n2, a0, a1, a2]
    }
}

impl From<[u8; SHORT_BYTES]> for Slot {
    fn from(short: [u8; SHORT_BYTES]) -> Self {
        let [f0, f1, l0, l1, e0, e1, b0, b1, b2, n0, n1, n2, a0, a1, a2] = short;
        let buffer = |bytes: [u8; 4]| match u32::from_le_bytes(bytes) {
            NO_BUFFER_SHORT => NO_BUFFER,
            number => number,
        };
        let cell = |bytes: [u8; 2]| match u16::from_le_bytes(bytes) {
            NO_CELL_SHORT => NO_CELL,
            number => number.into(),
        };
        Slot {
            list: List { first: cell([f0, f1]), last: cell([l0, l1]) },
            bytes: u32::from_le_bytes([b0, b1, b2, 0]),
            entries: u16::from_le_bytes([e0, e1]).into(),
            before: buffer([n0, n1, n2, 0]),
            after: buffer([a0, a1, a2, 0]),
        }
    }
}
