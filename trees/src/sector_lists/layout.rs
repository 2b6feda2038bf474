//! The bytes of a sector: what it holds of each node, as a group.
//!
//! ```text
//!  0        4        7      8        10       12
//!  +--------+--------+------+--------+--------+-----------------------------+
//!  | check- | sequen-| kind | its    | groups | groups                      |
//!  | sum    | ce, 24 | u8 9 | high 16| u16    |                             |
//!  +--------+--------+------+--------+--------+-----------------------------+
//!  | check- | sequen-| kind | its    | node, level, mode | whole             |
//!  | sum    | ce, 24 | u8 10| high 16| u32, bit 31: disk |                   |
//!  +--------+--------+------+--------+-------------------+------------------+
//!                                    10                  14
//!
//!  group    | node, level and form u32 | bytes u16 | content |
//!           bits 0 to 26 the node's number, 27 to 30 its level, 31 set if it is whole
//!  whole    | entries u16 | the node behind its first 8 bytes, as far as its bytes are in use |
//!  else     index units, oldest first
//!
//!  unit     | 1 put | key | value |     lengths, u16 each, stand in front of what varies in length
//!           | 2 delete | key |         in an inner node a value is a child, 4 bytes
//! ```
//!
//! A whole node is all of its units as puts, whose flags and node number stand once for all. A node
//! in disk mode stands in a sector of kind 10, and so does one in log mode that has no room beside
//! a group's header. The sequence counts the sectors that were written.
//!
//! Invariant: everything here takes any bytes; what makes no sense is an error, never a panic.

use store::node::{self, Codec, Stored};
use store::{EntryShape, PageCheck, Width};

use super::table::NodeId;
use crate::btree::{CHILD_BYTES, Edit};

/// Bytes in front of the groups of a sector, and of a group's content.
pub(super) const HEADER_BYTES: usize = 12;
pub(super) const GROUP_BYTES: usize = 6;

/// Bytes in front of a node that stands alone in its sector.
const ALONE_BYTES: usize = 14;

/// Bytes that a whole node begins with, in place of those that nodes begin with.
const COUNT_BYTES: usize = 2;

/// Bytes of a sector that a node can't have which stands in it alone.
pub(crate) const FRONT_BYTES: u32 = (ALONE_BYTES + COUNT_BYTES - node::HEADER_BYTES) as u32;

/// Numbers that nodes can have.
pub(super) const NUMBERS_MOST: u32 = 1 << LEVEL_SHIFT;

const LEVEL_SHIFT: u32 = 27;
const LEVEL_MASK: u32 = 0xF;
const WHOLE: u32 = 1 << 31;
const IN_DISK_MODE: u32 = 1 << 31;

const KIND: usize = 7;
const HEAD: usize = 10;
const KIND_GROUPS: u8 = 9;
const KIND_ALONE: u8 = 10;

/// Where the entries of a node stand in its first bytes.
const COUNT: usize = 4;

/// Sequences that sectors can have.
pub(super) const SEQUENCES: u64 = 1 << 40;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// What is wrong with bytes.
pub(super) type Damage = &'static str;

/// What a sector holds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group<'s> {
    pub(super) node: NodeId,
    pub(super) level: u8,
    pub(super) is_whole: bool,
    /// True if the node is in disk mode.
    pub(super) is_page: bool,
    pub(super) content: &'s [u8],
}

/// A node and its level in one number, of which bit 31 is left.
pub(super) const fn head(node: NodeId, level: u8) -> u32 {
    node.0 | (level as u32) << LEVEL_SHIFT
}

/// The node and the level in such a number.
pub(super) const fn split_head(head: u32) -> (NodeId, u8) {
    (NodeId(head & (NUMBERS_MOST - 1)), (head >> LEVEL_SHIFT & LEVEL_MASK) as u8)
}

/// The sequence of a sector that was checked.
pub(super) fn sequence(sector: &[u8]) -> u64 {
    let Some([_, _, _, _, s0, s1, s2, _, s3, s4]) = sector.first_chunk() else { return 0 };
    u64::from_le_bytes([*s0, *s1, *s2, *s3, *s4, 0, 0, 0])
}

/// Reads the node that stands alone in a sector.
fn read_alone(sector: &[u8]) -> Option<Group<'_>> {
    let (header, content) = sector.split_first_chunk::<ALONE_BYTES>()?;
    let [.., kind, _, _, n0, n1, n2, n3] = *header;
    let head = u32::from_le_bytes([n0, n1, n2, n3]);
    let (node, level) = split_head(head);
    let is_page = head & IN_DISK_MODE > 0;
    (kind == KIND_ALONE).then_some(Group { node, level, is_whole: true, is_page, content })
}

/// Reads the group at the start of `bytes`; also returns what follows it.
fn read_group(bytes: &[u8]) -> Option<(Group<'_>, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<GROUP_BYTES>()?;
    let [n0, n1, n2, n3, b0, b1] = *header;
    let (content, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([b0, b1])))?;
    let head = u32::from_le_bytes([n0, n1, n2, n3]);
    let (node, level) = split_head(head);
    Some((Group { node, level, is_whole: head & WHOLE > 0, is_page: false, content }, rest))
}

/// Groups that a sector says it has.
fn counted(sector: &[u8]) -> u16 {
    match sector.get(KIND) {
        Some(&KIND_GROUPS) => u16::from_le_bytes([sector[HEAD], sector[HEAD + 1]]),
        _ => 0,
    }
}

/// The groups of a sector; a node that stands alone is one.
pub(super) fn groups(sector: &[u8]) -> impl Iterator<Item = Group<'_>> {
    let mut rest = sector.get(HEADER_BYTES..).unwrap_or_default();
    let groups = (0..counted(sector)).map_while(move |_| {
        let (group, more) = read_group(rest)?;
        rest = more;
        Some(group)
    });
    read_alone(sector).into_iter().chain(groups)
}

/// What sectors of groups are to be.
pub(crate) struct Sector;

impl PageCheck for Sector {
    fn check(&self, page: &[u8]) -> Result<(), Damage> {
        if !self.is_kind(page) {
            return Err("it holds no index units");
        }
        let count = usize::from(counted(page)).max(usize::from(page[KIND] == KIND_ALONE));
        match groups(page).count() == count && count > 0 {
            true => Ok(()),
            false => Err("its index units are cut off"),
        }
    }

    fn is_kind(&self, page: &[u8]) -> bool {
        matches!(page.get(KIND), Some(&(KIND_GROUPS | KIND_ALONE)))
    }
}

/// A sector that is being filled.
#[derive(Debug)]
pub(super) struct Packer {
    bytes: alloc::vec::Vec<u8>,
    end: usize,
    count: u16,
}

impl Packer {
    pub(super) fn new(sector_bytes: usize) -> Self {
        let mut packer = Packer { bytes: alloc::vec![0; sector_bytes], end: 0, count: 0 };
        packer.begin();
        packer
    }

    /// Begins a sector.
    pub(super) fn begin(&mut self) {
        self.bytes.fill(0);
        self.bytes[KIND] = KIND_GROUPS;
        (self.end, self.count) = (HEADER_BYTES, 0);
    }

    /// True if nothing is in it.
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the longest group's content.
    pub(super) fn content_most(&self) -> usize {
        self.bytes.len().saturating_sub(HEADER_BYTES + GROUP_BYTES)
    }

    /// True if there is room for a group of so many bytes.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.end + GROUP_BYTES + bytes <= self.bytes.len()
    }

    /// Adds a group for which there is room, made of `parts`.
    pub(super) fn add<'p>(
        &mut self,
        (node, level, is_whole): (NodeId, u8, bool),
        bytes: usize,
        parts: impl Iterator<Item = &'p [u8]>,
    ) {
        let form = if is_whole { WHOLE } else { 0 };
        let [n0, n1, n2, n3] = (head(node, level) | form).to_le_bytes();
        let [b0, b1] = (bytes as u16).to_le_bytes();
        let header = [n0, n1, n2, n3, b0, b1];
        self.append(&header);
        parts.for_each(|part| self.append(part));
        self.count += 1;
        let [c0, c1] = self.count.to_le_bytes();
        (self.bytes[HEAD], self.bytes[HEAD + 1]) = (c0, c1);
    }

    /// Fills the sector, which is empty, with a whole node, made of `parts`.
    pub(super) fn add_alone(
        &mut self,
        (node, level, is_page): (NodeId, u8, bool),
        parts: [&[u8]; 2],
    ) {
        let mode = if is_page { IN_DISK_MODE } else { 0 };
        self.bytes[KIND] = KIND_ALONE;
        self.end = HEAD;
        self.append(&(head(node, level) | mode).to_le_bytes());
        parts.into_iter().for_each(|part| self.append(part));
        (self.end, self.count) = (self.bytes.len(), 1);
    }

    fn append(&mut self, part: &[u8]) {
        if let Some(into) = self.bytes.get_mut(self.end..self.end + part.len()) {
            into.copy_from_slice(part);
            self.end += part.len();
        }
    }

    /// The sector, which gets this sequence.
    pub(super) fn finish(&mut self, sequence: u64) -> &[u8] {
        let [s0, s1, s2, s3, s4, ..] = sequence.to_le_bytes();
        self.bytes[4..7].copy_from_slice(&[s0, s1, s2]);
        self.bytes[8..10].copy_from_slice(&[s3, s4]);
        &self.bytes
    }
}

/// A change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit<'b> {
    Put { key: &'b [u8], value: &'b [u8] },
    Delete { key: &'b [u8] },
}

/// The shape of units of nodes at `level`.
pub(super) fn shape_at(level: u8, shape: EntryShape) -> EntryShape {
    match level {
        0 => shape,
        _ => EntryShape { value: Width::Fixed(CHILD_BYTES), ..shape },
    }
}

const fn field_bytes(width: Width, field: &[u8]) -> usize {
    match width {
        Width::Fixed(_) => field.len(),
        Width::Variable => 2 + field.len(),
    }
}

fn read_field(width: Width, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match width {
        Width::Fixed(length) => (usize::from(length), bytes),
        Width::Variable => {
            let (length, rest) = bytes.split_first_chunk()?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
    };
    rest.split_at_checked(length)
}

impl<'b> Unit<'b> {
    /// Bytes that it takes.
    pub(super) fn bytes(&self, shape: EntryShape) -> usize {
        1 + match self {
            Unit::Put { key, value } => {
                field_bytes(shape.key, key) + field_bytes(shape.value, value)
            }
            Unit::Delete { key } => field_bytes(shape.key, key),
        }
    }

    /// Appends it to `into`.
    pub(super) fn write(&self, shape: EntryShape, into: &mut alloc::vec::Vec<u8>) {
        let (flag, key, value) = match *self {
            Unit::Put { key, value } => (PUT, key, Some(value)),
            Unit::Delete { key } => (DELETE, key, None),
        };
        into.push(flag);
        for (width, field) in [(shape.key, Some(key)), (shape.value, value)] {
            let Some(field) = field else { continue };
            if width == Width::Variable {
                into.extend_from_slice(&(field.len() as u16).to_le_bytes());
            }
            into.extend_from_slice(field);
        }
    }

    fn read(shape: EntryShape, bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (flag, rest) = bytes.split_first()?;
        let (key, rest) = read_field(shape.key, rest)?;
        match *flag {
            PUT => {
                let (value, rest) = read_field(shape.value, rest)?;
                Some((Unit::Put { key, value }, rest))
            }
            DELETE => Some((Unit::Delete { key }, rest)),
            _ => None,
        }
    }
}

/// Makes the changes of `units` to `node`, the oldest first, each as it was made: the node becomes
/// the very bytes that it was. `scratch` is as long as the node.
///
/// # Errors
/// They were not made for this node.
pub(super) fn apply(
    (shape, codec): (EntryShape, &Codec),
    node: &mut [u8],
    units: &[u8],
    scratch: &mut [u8],
) -> Result<(), Damage> {
    let shape = shape_at(node::level(node), shape);
    let mut rest = units;
    while !rest.is_empty() {
        let (unit, more) = Unit::read(shape, rest).ok_or("an index unit of it is cut off")?;
        rest = more;
        let edit = match unit {
            Unit::Put { key, value } if key.len() + value.len() > codec.entry_bytes_most() => {
                return Err("an index unit of it is too long for a node");
            }
            Unit::Put { key, value } => match (codec.search(node, key), Stored::inline(value)) {
                (Ok(place), value) => Edit::Replace { place, value },
                (Err(place), value) => Edit::Insert { place, key, value },
            },
            Unit::Delete { key } => match codec.search(node, key) {
                Ok(place) => Edit::Remove { place },
                Err(_) => return Err("an index unit deletes what it does not hold"),
            },
        };
        if !edit.apply(codec, node, scratch) {
            return Err("it has no room for what its index units say");
        }
    }
    Ok(())
}

/// The parts of a whole node's content, of which `kept` bytes are in use, and how long they are.
pub(super) fn whole_parts(image: &[u8], kept: usize) -> ([&[u8]; 2], usize) {
    let entries = &image[COUNT..COUNT + COUNT_BYTES];
    let rest = &image[node::HEADER_BYTES..kept];
    ([entries, rest], COUNT_BYTES + rest.len())
}

/// Makes `into` the whole node of a group.
///
/// # Errors
/// It is no well-formed node.
pub(super) fn read_whole(codec: &Codec, group: &Group<'_>, into: &mut [u8]) -> Result<(), Damage> {
    let end = node::HEADER_BYTES + group.content.len().saturating_sub(COUNT_BYTES);
    let Some((entries, content)) = group.content.split_first_chunk::<COUNT_BYTES>() else {
        return Err("a whole node in it is cut off");
    };
    if end > into.len() {
        return Err("a whole node in it is longer than nodes are");
    }
    into.fill(0);
    codec.initialise(into, group.level);
    into[COUNT..COUNT + COUNT_BYTES].copy_from_slice(entries);
    into[node::HEADER_BYTES..end].copy_from_slice(content);
    codec.validate(into)
}
