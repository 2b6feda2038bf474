//! The bytes of a log page: records of deltas, each of one node.
//!
//! ```text
//!   0        4     5
//!   +--------+-----+---------------+----------------------------------+
//!   | check- | n   | n places of   | deltas                           |   a record
//!   | sum u32| u8  | earlier ones  |                                  |
//!   +--------+-----+---------------+----------------------------------+
//!
//!   place    | log page u16 | byte u16 | bytes u16 |
//!
//!   put      | 1 | key | value |      lengths, u16 each, stand in front of what varies in length
//!   delete   | 2 | key |
//!   cut      | 3 | key |              all entries from this key on are gone: a split
//! ```
//!
//! A node that comes back into memory brings its newest record with it. Later deltas go behind
//! those of that record, and it is written again, longer, in place of the one before: so a node is
//! mostly its page and one record. When that is full, a further one begins, which names those
//! before it, the oldest first. The table of nodes says where the newest stands and how long it is.
//!
//! The checksum covers the bytes behind it, where the record stands and the place of the node's
//! page in the block. Where a page is longer than 512 bytes, each record begins at a sector of so
//! many.
//!
//! Deltas are semantic: they say what to do with a key, not which bytes changed.
//!
//! Invariant: everything here takes any bytes; what makes no sense is an error, never a panic.

use device::Page;
use store::{EntryShape, Width};

use super::block::RecordPlace;

/// Bytes of a record in front of the places of earlier ones.
const HEADER_BYTES: usize = 5;

const COUNT: usize = 4;

/// Earlier records of a node, at most: then its block is merged.
pub(super) const EARLIER_MOST: usize = 8;

/// The most bytes of a record in front of its deltas.
pub(super) const FRONT_BYTES_MOST: usize = HEADER_BYTES + EARLIER_MOST * RecordPlace::BYTES;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const CUT: u8 = 3;

/// What is wrong with a record.
pub(super) type Damage = &'static str;

/// A change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delta<'b> {
    /// The key has this value now; in an inner node, this child.
    Put { key: &'b [u8], value: &'b [u8] },
    /// The key is gone.
    Delete { key: &'b [u8] },
    /// All entries from this key on are gone.
    Cut { key: &'b [u8] },
}

impl<'b> Delta<'b> {
    const fn parts(&self) -> (u8, &'b [u8], Option<&'b [u8]>) {
        match *self {
            Delta::Put { key, value } => (PUT, key, Some(value)),
            Delta::Delete { key } => (DELETE, key, None),
            Delta::Cut { key } => (CUT, key, None),
        }
    }

    /// Bytes of the delta of a node with entries of `shape`.
    pub(super) fn bytes(&self, shape: EntryShape) -> usize {
        let (_, key, value) = self.parts();
        let value = value.map_or(0, |value| field_bytes(shape.value, value));
        1 + field_bytes(shape.key, key) + value
    }

    /// Writes the delta to the start of `into`, which has room for it.
    pub(super) fn write(&self, shape: EntryShape, into: &mut [u8]) {
        let (kind, key, value) = self.parts();
        into[0] = kind;
        let rest = write_field(shape.key, key, &mut into[1..]);
        if let Some(value) = value {
            write_field(shape.value, value, rest);
        }
    }

    /// Reads the delta at the start of `bytes`; also returns what follows it.
    ///
    /// # Errors
    /// It is none, or cut off.
    pub(super) fn read(shape: EntryShape, bytes: &'b [u8]) -> Result<(Self, &'b [u8]), Damage> {
        let (kind, rest) = bytes.split_first().ok_or("a delta is cut off")?;
        let (key, rest) = read_field(shape.key, rest)?;
        match *kind {
            PUT => {
                let (value, rest) = read_field(shape.value, rest)?;
                Ok((Delta::Put { key, value }, rest))
            }
            DELETE => Ok((Delta::Delete { key }, rest)),
            CUT => Ok((Delta::Cut { key }, rest)),
            _ => Err("a delta is neither a put nor a delete nor a cut"),
        }
    }
}

fn field_bytes(width: Width, field: &[u8]) -> usize {
    match width {
        Width::Fixed(_) => field.len(),
        Width::Variable => 2 + field.len(),
    }
}

/// Writes a field to the start of `into`, which is long enough; returns what follows it.
fn write_field<'i>(width: Width, field: &[u8], into: &'i mut [u8]) -> &'i mut [u8] {
    let (now, rest) = into.split_at_mut(field_bytes(width, field));
    let text = now.len() - field.len();
    debug_assert!(field.len() <= usize::from(u16::MAX), "no entry of a node is that long");
    now[..text].copy_from_slice(&(field.len() as u16).to_le_bytes()[..text]);
    now[text..].copy_from_slice(field);
    rest
}

fn read_field(width: Width, bytes: &[u8]) -> Result<(&[u8], &[u8]), Damage> {
    const SHORT: Damage = "a delta is cut off";
    let (length, rest) = match width {
        Width::Fixed(length) => (usize::from(length), bytes),
        Width::Variable => {
            let (length, rest) = bytes.split_first_chunk().ok_or(SHORT)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
    };
    rest.split_at_checked(length).ok_or(SHORT)
}

/// A record without deltas, as it begins: the first, or one behind `record`, which stands at
/// `before`. Returns its bytes; `None`, and nothing changed, if it has too many before it.
#[must_use]
pub(super) fn begin_record(record: &mut [u8], before: Option<RecordPlace>) -> Option<usize> {
    let Some(before) = before else {
        record.get_mut(..HEADER_BYTES)?.fill(0);
        return Some(HEADER_BYTES);
    };
    let earlier = usize::from(*record.get(COUNT)?);
    let end = HEADER_BYTES + (earlier + 1) * RecordPlace::BYTES;
    if earlier >= EARLIER_MOST || end > record.len() {
        return None;
    }
    record[COUNT] += 1;
    record[end - RecordPlace::BYTES..end].copy_from_slice(&before.to_bytes());
    Some(end)
}

/// Where a record stands, which its checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) page: Page,
    pub(super) offset: u16,
    /// The place of the node's page in the block.
    pub(super) node: u16,
}

/// Completes a record before it is written.
pub(super) fn seal(address: Address, record: &mut [u8]) {
    let checksum = checksum(address, record);
    if let Some(first) = record.first_chunk_mut() {
        *first = checksum.to_le_bytes();
    }
}

fn checksum(address: Address, record: &[u8]) -> u32 {
    let Address { page, offset, node } = address;
    let rest = record.get(COUNT..).unwrap_or_default();
    let numbers = [&page.0.to_le_bytes()[..], &offset.to_le_bytes(), &node.to_le_bytes()];
    device::checksum(&[b"ipl", numbers[0], numbers[1], numbers[2], rest])
}

/// A record as it was read: the places of earlier ones, the oldest first, and its deltas.
///
/// # Errors
/// It is damaged, or another one.
pub(super) fn read_record(
    address: Address,
    record: &[u8],
) -> Result<(&[[u8; RecordPlace::BYTES]], &[u8]), Damage> {
    let found = record.first_chunk().ok_or("a record of deltas is cut off")?;
    if u32::from_le_bytes(*found) != checksum(address, record) {
        return Err("a record of deltas has another checksum than its bytes and place give");
    }
    split_record(record).ok_or("a record of deltas is cut off")
}

/// The same of a record that is known to be whole.
pub(super) fn split_record(record: &[u8]) -> Option<(&[[u8; RecordPlace::BYTES]], &[u8])> {
    let earlier = usize::from(*record.get(COUNT)?) * RecordPlace::BYTES;
    let (places, deltas) = record.get(HEADER_BYTES..)?.split_at_checked(earlier)?;
    Some((places.as_chunks().0, deltas))
}

#[cfg(test)]
mod tests;
