//! The reservation buffer: index units that no sector has yet, in the order of the changes.
//!
//! ```text
//!  | node and level u32 | bytes u16 | unit |
//! ```
//!
//! A unit takes as many bytes here as in a sector where it is a group of its own.

use alloc::vec::Vec;

use store::EntryShape;

use super::layout::{GROUP_BYTES, Unit, head, split_head};
use super::table::NodeId;

/// The buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    units: usize,
}

/// A unit that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<'b> {
    pub(super) node: NodeId,
    pub(super) level: u8,
    pub(super) unit: &'b [u8],
}

fn read(bytes: &[u8]) -> Option<(Waiting<'_>, &[u8])> {
    let ([n0, n1, n2, n3, b0, b1], rest) = bytes.split_first_chunk::<GROUP_BYTES>()?;
    let (unit, rest) = rest.split_at_checked(u16::from_le_bytes([*b0, *b1]).into())?;
    let (node, level) = split_head(u32::from_le_bytes([*n0, *n1, *n2, *n3]));
    Some((Waiting { node, level, unit }, rest))
}

impl Buffer {
    /// A buffer of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Buffer { bytes: Vec::with_capacity(bytes), units: 0 }
    }

    /// Bytes that a unit of so many bytes takes.
    pub(super) const fn bytes_of(unit: usize) -> usize {
        GROUP_BYTES + unit
    }

    /// Units in it.
    pub(super) const fn len(&self) -> usize {
        self.units
    }

    /// True if there is room for so many bytes.
    pub(super) fn has_bytes(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= self.bytes.capacity()
    }

    /// Adds a unit, for which there is room.
    pub(super) fn push(&mut self, node: NodeId, level: u8, shape: EntryShape, unit: &Unit<'_>) {
        self.bytes.extend_from_slice(&head(node, level).to_le_bytes());
        self.bytes.extend_from_slice(&(unit.bytes(shape) as u16).to_le_bytes());
        unit.write(shape, &mut self.bytes);
        self.units += 1;
    }

    /// All units, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Waiting<'_>> {
        let mut rest = &self.bytes[..];
        core::iter::from_fn(move || {
            let (waiting, more) = read(rest)?;
            rest = more;
            Some(waiting)
        })
    }

    /// The units of a node, oldest first.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = &[u8]> {
        self.iter().filter(move |waiting| waiting.node == node).map(|waiting| waiting.unit)
    }

    /// Takes the units of a node out.
    pub(super) fn remove(&mut self, node: NodeId) {
        let (mut from, mut kept) = (0, 0);
        while let Some((waiting, rest)) = read(&self.bytes[from..]) {
            let (is_kept, end) = (waiting.node != node, self.bytes.len() - rest.len());
            if is_kept {
                self.bytes.copy_within(from..end, kept);
                kept += end - from;
            } else {
                self.units -= 1;
            }
            from = end;
        }
        self.bytes.truncate(kept);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.units = 0;
    }
}
