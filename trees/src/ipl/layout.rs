//! The bytes of log pages: writes of deltas, one behind the other.
//!
//! ```text
//!   0        4       6       8
//!   +--------+-------+-------+-----------------------------------+
//!   | check- | bytes | node  | deltas                            |   one write, of one node
//!   | sum u32| u16   | u16   |                                   |
//!   +--------+-------+-------+-----------------------------------+
//!
//!   put      | 1 | key | value |      lengths, u16 each, stand in front of what varies in length
//!   delete   | 2 | key |
//!   cut      | 3 | key |              all entries from this key on are gone: a split
//! ```
//!
//! `node` is the place of the node's page in the block. The checksum covers the bytes behind it,
//! the address of the log page and the offset in it. Where a page is longer than a sector of 512
//! bytes, each write begins at a sector; what is left of the one before was not programmed. A page
//! ends where a write's bytes are all ones, as flash is that was not programmed, or at its end.
//!
//! Deltas are semantic: they say what to do with a key, not which bytes changed.
//!
//! Invariant: everything here takes any bytes; what makes no sense is an error, never a panic.

use device::Page;
use store::{EntryShape, Width};

use super::block::Parts;

/// Bytes of a write in front of its deltas.
pub(super) const HEADER_BYTES: usize = 8;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const CUT: u8 = 3;

/// What is wrong with a log page.
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

/// How the deltas of nodes of one shape are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeltaForm {
    shape: EntryShape,
}

impl DeltaForm {
    /// The form for leaves; for inner nodes the value's width is that of a child's address.
    pub(super) const fn new(shape: EntryShape) -> Self {
        DeltaForm { shape }
    }

    /// Bytes of a delta.
    pub(super) fn bytes(&self, delta: &Delta<'_>) -> usize {
        match delta {
            Delta::Put { key, value } => {
                1 + field_bytes(self.shape.key, key) + field_bytes(self.shape.value, value)
            }
            Delta::Delete { key } | Delta::Cut { key } => 1 + field_bytes(self.shape.key, key),
        }
    }

    /// Writes a delta to the start of `into`; returns its bytes, or `None`, and nothing written, if
    /// it does not fit.
    pub(super) fn write(&self, delta: &Delta<'_>, into: &mut [u8]) -> Option<usize> {
        let bytes = self.bytes(delta);
        let (kind, rest) = into.get_mut(..bytes)?.split_first_mut()?;
        match delta {
            Delta::Put { key, value } => {
                *kind = PUT;
                let rest = write_field(self.shape.key, key, rest);
                write_field(self.shape.value, value, rest);
            }
            Delta::Delete { key } => {
                *kind = DELETE;
                write_field(self.shape.key, key, rest);
            }
            Delta::Cut { key } => {
                *kind = CUT;
                write_field(self.shape.key, key, rest);
            }
        }
        Some(bytes)
    }

    /// Reads the delta at the start of `bytes`; also returns what follows it.
    ///
    /// # Errors
    /// It is none, or cut off.
    pub(super) fn read<'b>(&self, bytes: &'b [u8]) -> Result<(Delta<'b>, &'b [u8]), Damage> {
        let (kind, rest) = bytes.split_first().ok_or("a delta is cut off")?;
        let (key, rest) = read_field(self.shape.key, rest)?;
        match *kind {
            PUT => {
                let (value, rest) = read_field(self.shape.value, rest)?;
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

/// Where a write stands: the log page, and the byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) page: Page,
    pub(super) offset: u32,
}

/// Completes a write of deltas of the node at `node` in its block: they are in `bytes` behind the
/// header already. False, and nothing written, if it is too long or too short to be one.
#[must_use]
pub(super) fn seal(address: Address, node: u16, bytes: &mut [u8]) -> bool {
    let Ok(length) = u16::try_from(bytes.len()) else {
        return false;
    };
    if bytes.len() <= HEADER_BYTES || length == u16::MAX {
        return false;
    }
    bytes[4..6].copy_from_slice(&length.to_le_bytes());
    bytes[6..8].copy_from_slice(&node.to_le_bytes());
    let checksum = checksum(address, &bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    true
}

fn checksum(address: Address, rest: &[u8]) -> u32 {
    device::checksum(&[&address.page.0.to_le_bytes(), &address.offset.to_le_bytes(), rest])
}

/// Deltas of a node, as one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write<'b> {
    /// The place of the node's page in the block.
    pub(super) node: u16,
    /// One delta behind the other.
    pub(super) deltas: &'b [u8],
}

/// Reads the writes of a log page.
#[derive(Clone, Debug)]
pub(super) struct Writes<'b> {
    page: Page,
    bytes: &'b [u8],
    at: usize,
    parts: Parts,
}

impl<'b> Writes<'b> {
    /// The writes in `bytes`, which is log page `page` from its start on.
    pub(super) const fn new(page: Page, bytes: &'b [u8], parts: Parts) -> Self {
        Writes { page, bytes, at: 0, parts }
    }

    /// The next write, or `None` after the last.
    ///
    /// # Errors
    /// The page is damaged; what follows cannot be found.
    pub(super) fn next(&mut self) -> Result<Option<Write<'b>>, Damage> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((head, _)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        if head.iter().all(|byte| *byte == 0xFF) {
            return Ok(None);
        }
        let [c0, c1, c2, c3, l0, l1, n0, n1] = *head;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        let write = rest
            .get(..length)
            .filter(|write| write.len() > HEADER_BYTES)
            .ok_or("a write of deltas goes beyond its log page")?;
        let address = Address { page: self.page, offset: self.at as u32 };
        if u32::from_le_bytes([c0, c1, c2, c3]) != checksum(address, &write[4..]) {
            return Err("a write of deltas has another checksum than its bytes and place give");
        }
        self.at = self.parts.next((self.at + length) as u32) as usize;
        let node = u16::from_le_bytes([n0, n1]);
        Ok(Some(Write { node, deltas: &write[HEADER_BYTES..] }))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use device::{Geometry, Page};
    use store::EntryShape;

    use super::{Address, Delta, DeltaForm, HEADER_BYTES, Write, Writes, seal};
    use crate::ipl::block::BlockShape;

    const FORM: DeltaForm = DeltaForm::new(EntryShape::fixed(4, 4));

    const DELTAS: [Delta<'static>; 3] = [
        Delta::Put { key: b"key1", value: b"four" },
        Delta::Delete { key: b"key2" },
        Delta::Cut { key: b"key3" },
    ];

    /// The writes in a page of 512 bytes.
    fn writes_in(page: Page, bytes: &[u8]) -> Writes<'_> {
        let chip = Geometry::new(512, 32, 8).unwrap();
        Writes::new(page, bytes, BlockShape::new(&chip, None).unwrap().parts())
    }

    fn encode(form: DeltaForm, deltas: &[Delta<'_>]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        for delta in deltas {
            let mut one = vec![0; form.bytes(delta)];
            assert_eq!(form.write(delta, &mut one), Some(one.len()));
            bytes.extend_from_slice(&one);
        }
        bytes
    }

    /// A log page with a write for node 3, one for node 0 and room behind.
    fn page() -> Vec<u8> {
        let mut page = Vec::new();
        for node in [3, 0] {
            let mut write = encode(FORM, &DELTAS[..1 + usize::from(node) % 2]);
            let offset = page.len() as u32;
            assert!(seal(Address { page: Page(40), offset }, node, &mut write));
            page.extend_from_slice(&write);
        }
        page.resize(512, 0xFF);
        page
    }

    #[test]
    fn deltas_of_every_shape_come_back() {
        for shape in [EntryShape::fixed(4, 4), EntryShape::fixed(4, 0), EntryShape::VARIABLE] {
            let form = DeltaForm::new(shape);
            let value: &[u8] = if shape == EntryShape::fixed(4, 0) { b"" } else { b"four" };
            let deltas = [Delta::Put { key: b"key1", value }, DELTAS[1], DELTAS[2]];
            let bytes = encode(form, &deltas);
            let mut rest = &bytes[HEADER_BYTES..];
            for delta in deltas {
                let (read, more) = form.read(rest).unwrap();
                assert_eq!(read, delta);
                rest = more;
            }
            assert!(rest.is_empty() && form.read(rest).is_err());
            assert_eq!(form.write(&deltas[0], &mut [0; 4]), None);
        }
    }

    #[test]
    fn a_log_page_gives_its_writes_in_order_up_to_what_was_not_programmed() {
        let page = page();
        let mut writes = writes_in(Page(40), &page);
        let nodes: Vec<u16> = core::iter::from_fn(|| writes.next().unwrap())
            .map(|write: Write<'_>| write.node)
            .collect();
        assert_eq!(nodes, [3, 0]);
        let full = writes_in(Page(40), &page[..30]).next().unwrap();
        assert_eq!(full.map(|write| write.deltas.len()), Some(9 + 5));
    }

    #[test]
    fn writes_that_changed_or_stand_elsewhere_are_refused() {
        let mut page = page();
        assert!(writes_in(Page(41), &page).next().is_err());
        assert!(writes_in(Page(40), &page[22..]).next().is_err(), "moved within the page");
        for byte in 0..22 {
            page[byte] ^= 1;
            assert!(writes_in(Page(40), &page).next().is_err(), "byte {byte}");
            page[byte] ^= 1;
        }
        assert!(writes_in(Page(40), &page[..21]).next().is_err(), "cut off");
    }

    #[test]
    fn writes_that_no_page_can_hold_are_not_sealed() {
        let address = Address { page: Page(1), offset: 0 };
        assert!(!seal(address, 1, &mut [0; HEADER_BYTES]));
        assert!(!seal(address, 1, &mut vec![0; 65_535]));
        assert!(!seal(address, 1, &mut vec![0; 70_000]));
    }

    #[test]
    fn no_bytes_make_the_readers_panic() {
        for seed in 0..3000_u32 {
            let length = seed % 60;
            let bytes: Vec<u8> = (0..length)
                .map(|place| (seed.wrapping_mul(0x9E37_79B9) >> (place % 25)) as u8)
                .collect();
            let mut writes = writes_in(Page(1), &bytes);
            while let Ok(Some(_)) = writes.next() {}
            for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE] {
                let mut rest = &bytes[..];
                while let Ok((_, more)) = DeltaForm::new(shape).read(rest) {
                    assert!(more.len() < rest.len(), "seed {seed}");
                    rest = more;
                }
            }
        }
    }
}
