//! Bytes on flash: pages of nodes, pages of fragments (section 4.3).
//!
//! A page holds nodes or fragments, never both. Its header is the page log's tag, in the spare
//! area, or, where the chip has none for it, in the page's first 16 bytes: a page of 512 bytes then
//! holds three nodes of 128 bytes instead of four.
//!
//! ```text
//!  nodes    | node | node   | node | node |    each as far as it is in use
//!
//!  fragment 0        4        8        10       12
//!           +--------+--------+--------+--------+-----------------------
//!           | check- | page   | offset | bytes  | entries, a stream
//!           | sum u32| u32    | u16    | u16    | (`stream.rs`)
//!           +--------+--------+--------+--------+-----------------------
//!                    '-- the fragment before --'
//! ```
//!
//! Numbers are little-endian. Nodes and fragments are read alone, so each has a checksum of its
//! own, over its bytes, the address where it stands, and whose it is: a node's number, or the owner
//! of the buffer. A copy of something else, or one in another place, is caught.
//!
//! Invariant: everything here takes any bytes; what makes no sense is an error, never a panic.

use device::{Geometry, Page};
use store::node::{Codec, HEADER_BYTES, NODE_BYTES_LEAST, NODE_BYTES_MOST};
use store::{EntryShape, PageKind, Width};

use super::stream::Damage;
use index::Error;

/// Bytes of a page's header.
pub(super) const PAGE_HEADER_BYTES: u32 = 16;

/// Bytes of a fragment in front of its entries.
pub(super) const FRAGMENT_HEADER_BYTES: usize = 12;

/// The kinds of pages: of nodes, and of fragments.
pub(super) const NODES: PageKind = PageKind::Tree(0);
pub(super) const FRAGMENTS: PageKind = PageKind::Tree(1);

/// Bytes in front of what a chunk of a table holds: checksum, and which chunk it is.
pub(super) const CHUNK_HEADER: u32 = 8;

/// Bytes in front of a fragment of the pool in a checkpoint: its buffer, and its length.
pub(super) const PIECE_HEADER: usize = 6;

/// Bytes that a page of the pool needs for a fragment beside its stream.
pub(super) const PIECE_BYTES: u64 = (PIECE_HEADER + FRAGMENT_HEADER_BYTES) as u64;

/// Bytes of a root record beside the pages it names and the nodes of each level, at most.
pub(super) const ROOT_BYTES: u64 = 152;

const NO_PAGE: u32 = u32::MAX;

/// A node has at most two to the power of this units.
const SHIFT_MOST: u32 = 4;

/// Bytes that an entry of variable length is taken to have, where a node's size follows from its
/// fanout.
const VARIABLE_ENTRY_BYTES: u32 = 32;

/// The smallest node on raw flash of entries of fixed lengths, in bytes: smaller than a node may be
/// elsewhere, for section 6.1 has nodes of fewer than 16 entries.
const SMALL_NODE_BYTES: u32 = 64;

/// The fewest entries for which a node has room.
const ENTRIES_LEAST: usize = 4;

/// Damage in `page`.
pub(super) fn damaged(page: Page, what: &'static str) -> Error {
    store::Error::DamagedPage { page: store::LogicalPage(page.0), what }.into()
}

/// The form of nodes of `bytes` bytes; `None` if such a node could not hold four entries.
pub(super) fn codec(bytes: u32, key: Width, value: Width) -> Option<Codec> {
    let codec = Codec::new_part(bytes, key, value).filter(|_| bytes >= SMALL_NODE_BYTES)?;
    (codec.capacity(0, 0) >= ENTRIES_LEAST).then_some(codec)
}

/// How pages of a chip are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageShape {
    page_bytes: u32,
    first: u32,
    node_bytes: u32,
    /// A node has two to the power of this units: it begins and ends with one.
    shift: u32,
}

impl PageShape {
    /// Pages of `geometry` with nodes of `node_bytes` bytes; `None` if not one node fits a page, or
    /// nodes can't have that size.
    pub(super) fn new(geometry: &Geometry, node_bytes: u32) -> Option<Self> {
        let first = geometry.page_bytes() - Self::room_of(geometry);
        let possible = (SMALL_NODE_BYTES..=NODE_BYTES_MOST).contains(&node_bytes);
        let with =
            |shift| PageShape { page_bytes: geometry.page_bytes(), first, node_bytes, shift };
        let is_divided = |shape: &PageShape| {
            node_bytes.is_multiple_of(1 << shape.shift) && shape.places(geometry.pages()).is_some()
        };
        let shape = (1..=SHIFT_MOST).rev().map(with).find(is_divided).unwrap_or(with(0));
        (possible && node_bytes <= shape.room()).then_some(shape)
    }

    /// Pages of a page file, each of which is one node; fragments are behind `first` bytes.
    pub(super) const fn in_place(page_bytes: u32, first: u32) -> Self {
        PageShape { page_bytes, first, node_bytes: page_bytes, shift: 0 }
    }

    /// Bytes of a page of `geometry` that nodes or fragments may fill.
    pub(super) fn room_of(geometry: &Geometry) -> u32 {
        let has_spare = geometry.spare_bytes() >= PAGE_HEADER_BYTES;
        geometry.page_bytes() - if has_spare { 0 } else { PAGE_HEADER_BYTES }
    }

    /// True if each node is a whole page.
    pub(super) const fn is_in_place(&self) -> bool {
        self.node_bytes == self.page_bytes && self.first > 0
    }

    /// Bytes of a page that nodes or fragments may fill.
    pub(super) const fn room(&self) -> u32 {
        self.page_bytes - self.first
    }

    /// The byte of a page at which its nodes or fragments begin.
    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    /// Bytes in a node.
    pub(super) const fn node_bytes(&self) -> u32 {
        self.node_bytes
    }

    /// Nodes that a page holds at least: more, if they are not full.
    pub(super) const fn nodes_per_page(&self) -> u32 {
        if self.is_in_place() { 1 } else { self.room() / self.node_bytes }
    }

    const fn unit_bytes(&self) -> u32 {
        self.node_bytes >> self.shift
    }

    /// Bytes that a node takes in a page if so many of it are in use.
    pub(super) const fn stored_bytes(&self, used: usize) -> usize {
        let unit = self.unit_bytes() as usize;
        let units = used.div_ceil(unit);
        if units == 0 { unit } else { units * unit }
    }

    /// Bytes that programming a page moves, its spare area included.
    pub(super) const fn program_bytes(&self) -> u32 {
        self.room() + PAGE_HEADER_BYTES
    }

    /// Units of a page, at each of which a node may begin.
    const fn units_per_page(&self) -> u32 {
        if self.is_in_place() { 1 } else { self.room() / self.unit_bytes() }
    }

    /// The place of a node of `bytes` bytes, whole units, from byte `offset` of the content of
    /// `page` on; `None` if none can be there, or the place has no number.
    pub(super) fn place(&self, page: Page, offset: usize, bytes: usize) -> Option<Place> {
        let unit = self.unit_bytes() as usize;
        let (first, length) = (u32::try_from(offset / unit).ok()?, (bytes / unit) as u32);
        if length == 0 || length > 1 << self.shift || first + length > self.units_per_page() {
            return None;
        }
        let number = page.0.checked_mul(self.units_per_page())?.checked_add(first)?;
        let number = number.checked_mul(1 << self.shift)?.checked_add(length - 1)?;
        (number < Place::MOST).then_some(Place(number))
    }

    /// The page that `place` is in, the byte of its content at which the node begins, and the bytes
    /// of the node.
    pub(super) const fn locate(&self, place: Place) -> (Page, u32, usize) {
        let (units, unit) = (self.units_per_page(), self.unit_bytes());
        let (number, length) = (place.0 >> self.shift, place.0 & ((1 << self.shift) - 1));
        (Page(number / units), number % units * unit, ((length + 1) * unit) as usize)
    }

    /// True if a node can be at `place`, on a chip of `pages` pages.
    pub(super) fn is_place(&self, place: Place, pages: u32) -> bool {
        let (page, offset, bytes) = self.locate(place);
        page.0 < pages && self.place(page, offset as usize, bytes) == Some(place)
    }

    /// The most nodes that stand in `pages` pages at once.
    pub(super) fn nodes_most(&self, pages: u32) -> u32 {
        pages.saturating_mul(self.units_per_page()).min(Place::MOST)
    }

    /// How many places a chip of `pages` pages has; `None` if they are too many to be numbered.
    pub(super) fn places(&self, pages: u32) -> Option<u32> {
        let places = pages.checked_mul(self.units_per_page())?.checked_mul(1 << self.shift)?;
        (places <= Place::MOST).then_some(places)
    }

    /// The most fragments that `pages` pages have room for.
    pub(super) fn fragments(&self, pages: u32) -> u64 {
        let each = self.room() / (FRAGMENT_HEADER_BYTES as u32 + 1);
        u64::from(pages) * u64::from(each)
    }

    /// Refuses a link to bytes that are not inside a page of a chip with `pages` pages.
    pub(super) fn check_link(&self, link: Link, pages: u32) -> Result<(), Damage> {
        let (offset, bytes) = (u32::from(link.offset), usize::from(link.bytes));
        let end = offset + u32::from(link.bytes);
        let is_inside = link.page.0 < pages && offset >= self.first && end <= self.page_bytes;
        if !is_inside || bytes <= FRAGMENT_HEADER_BYTES {
            return Err("a buffer is linked to a place where no fragment can be");
        }
        Ok(())
    }
}

/// The size of nodes that hold about `fanout` entries, header included: 128 bytes for 16 entries of
/// 4 + 4 bytes. Where that does not fit a page's `room`, a node takes all of it.
pub(super) fn node_bytes(fanout: u32, shape: EntryShape, room: u32) -> u32 {
    let (least, most) = node_bounds(shape, room);
    fanout.saturating_mul(entry_bytes(shape)).max(least).min(most)
}

/// The same where no fanout is given: then nodes are no smaller than elsewhere.
pub(super) fn usual_node_bytes(fanout: u32, shape: EntryShape, room: u32) -> u32 {
    node_bytes(fanout, shape, room).max(NODE_BYTES_LEAST.min(room))
}

/// The numbers of entries that nodes can have: those of any other number would be as small or as
/// large as these.
pub(super) fn fanouts(shape: EntryShape, room: u32) -> core::ops::RangeInclusive<u64> {
    let (least, most) = node_bounds(shape, room);
    let entry = entry_bytes(shape);
    let most = most / entry;
    u64::from(least.div_ceil(entry).min(most))..=u64::from(most)
}

/// Bytes of an entry, as fanouts count.
fn entry_bytes(shape: EntryShape) -> u32 {
    match (shape.key, shape.value) {
        (Width::Fixed(key), Width::Fixed(value)) => {
            // Inner nodes name their children in four bytes.
            u32::from(key) + u32::from(value).max(4)
        }
        _ => VARIABLE_ENTRY_BYTES,
    }
}

/// The least and the most bytes of a node.
fn node_bounds(shape: EntryShape, room: u32) -> (u32, u32) {
    let four_entries = HEADER_BYTES as u32 + entry_bytes(shape).saturating_mul(4);
    let is_fixed = matches!((shape.key, shape.value), (Width::Fixed(_), Width::Fixed(_)));
    // An entry of variable length may have a quarter of half a page.
    let least = if is_fixed { SMALL_NODE_BYTES } else { NODE_BYTES_LEAST.max(room / 2) };
    (least.max(four_entries), room.min(NODE_BYTES_MOST))
}

/// Where a node stands: page, unit, and how many units it has, in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(pub(super) u32);

impl Place {
    /// Places have lower numbers than this.
    pub(super) const MOST: u32 = 0x7FFF_FFFF;
}

/// The number of a node, which stays when the node moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(super) u32);

/// Whose a fragment is: a number that a buffer gets when it is made, or emptied, and that no other
/// buffer ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(pub(super) u32);

/// Writes the checksum of a node that is to stand at `place` into its first bytes.
pub(super) fn seal_node(id: NodeId, place: Place, node: &mut [u8]) {
    if let Some((head, rest)) = node.split_first_chunk_mut::<4>() {
        *head = node_checksum(id, place, rest).to_le_bytes();
    }
}

/// Refuses bytes that are not node `id` at `place`.
pub(super) fn verify_node(id: NodeId, place: Place, node: &[u8]) -> Result<(), Damage> {
    match node.split_first_chunk::<4>() {
        Some((head, rest)) if u32::from_le_bytes(*head) == node_checksum(id, place, rest) => Ok(()),
        _ => Err("a node has another checksum than its bytes, its number and its place give"),
    }
}

fn node_checksum(id: NodeId, place: Place, rest: &[u8]) -> u32 {
    device::checksum(&[&id.0.to_le_bytes(), &place.0.to_le_bytes(), rest])
}

/// The way to a fragment: all that is needed to read it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) page: Page,
    /// The byte of the page at which the fragment begins.
    pub(super) offset: u16,
    /// Bytes of the fragment, header included.
    pub(super) bytes: u16,
}

impl Link {
    /// Bytes of a link in what is stored.
    pub(super) const BYTES: usize = 8;

    /// No link.
    pub(super) const NONE: Link = Link { page: Page(NO_PAGE), offset: 0, bytes: 0 };

    /// The link, if it is one.
    pub(super) fn known(self) -> Option<Link> {
        Some(self).filter(|link| *link != Self::NONE)
    }

    /// The bytes of `link`, or of none.
    pub(super) fn encode(link: Option<Link>) -> [u8; Self::BYTES] {
        let link = link.unwrap_or(Self::NONE);
        let [p0, p1, p2, p3] = link.page.0.to_le_bytes();
        let [o0, o1] = link.offset.to_le_bytes();
        let [b0, b1] = link.bytes.to_le_bytes();
        [p0, p1, p2, p3, o0, o1, b0, b1]
    }

    /// Reads a link; [`PageShape::check_link`] tells whether it leads anywhere.
    pub(super) fn decode(bytes: [u8; Self::BYTES]) -> Result<Option<Link>, Damage> {
        let [p0, p1, p2, p3, o0, o1, b0, b1] = bytes;
        let link = Link {
            page: Page(u32::from_le_bytes([p0, p1, p2, p3])),
            offset: u16::from_le_bytes([o0, o1]),
            bytes: u16::from_le_bytes([b0, b1]),
        };
        match link {
            Self::NONE => Ok(None),
            Link { page: Page(NO_PAGE), .. } => Err("a link to no page names bytes of it"),
            link => Ok(Some(link)),
        }
    }
}

/// Completes a fragment that is to stand at `offset` of `page`: its entries are in `bytes` behind
/// the header already. Returns the link to it, or `None` if it is longer than fragments can be.
pub(super) fn seal_fragment(
    owner: Owner,
    at: (Page, u16),
    before: Option<Link>,
    bytes: &mut [u8],
) -> Option<Link> {
    let link = Link { page: at.0, offset: at.1, bytes: u16::try_from(bytes.len()).ok()? };
    let (head, _) = bytes.split_first_chunk_mut::<FRAGMENT_HEADER_BYTES>()?;
    head[4..].copy_from_slice(&Link::encode(before));
    let checksum = fragment_checksum(owner, link, &bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    Some(link)
}

/// Reads the fragment at `link`: the link to the one before it, and its entries.
pub(super) fn open_fragment(
    owner: Owner,
    link: Link,
    bytes: &[u8],
) -> Result<(Option<Link>, &[u8]), Damage> {
    const OTHER: Damage = "a fragment has another checksum than its bytes, owner and place give";
    let (head, entries) = bytes
        .split_first_chunk::<FRAGMENT_HEADER_BYTES>()
        .filter(|_| bytes.len() == usize::from(link.bytes))
        .ok_or("a fragment is shorter than the link to it says")?;
    let [c0, c1, c2, c3, before @ ..] = *head;
    if u32::from_le_bytes([c0, c1, c2, c3]) != fragment_checksum(owner, link, &bytes[4..]) {
        return Err(OTHER);
    }
    Ok((Link::decode(before)?, entries))
}

fn fragment_checksum(owner: Owner, link: Link, rest: &[u8]) -> u32 {
    device::checksum(&[&owner.0.to_le_bytes(), &Link::encode(Some(link)), rest])
}

#[cfg(test)]
mod tests;
