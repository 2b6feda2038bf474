//! A page on flash: the header, and what seals the nodes behind it.
//!
//! ```text
//!  0        4          12         16        20        24       26
//!  +--------+----------+----------+---------+---------+--------+--------+--
//!  | check- | sequence | live     | splits, | splits, | leaf   | height |
//!  | sum    | u64      | pages u32| inner   | leaf u32| share  | u8     |
//!  |        |          |          | u32     |         | u16    |        |
//!  +--------+----------+----------+---------+---------+--------+--------+--
//!   27       28        29      30           32       33     36
//!  -+--------+---------+-------+------------+--------+------+-------------
//!   | lowest | highest | flags | next leaf  | next   | 0    | nodes
//!   | level  | level   | u8    | share u16  | height |      |
//!  -+--------+---------+-------+------------+--------+------+-------------
//! ```
//!
//! Numbers are little-endian. `leaf share` and `height` say how this page is divided; `next` says
//! how what is written after it is, so that the adaptive layout goes on after a power cut where it
//! was. The page holds the nodes from the lowest to the highest level: more than one page is
//! written where a node is split, and only the last has a root. Live pages and splits count in
//! pages with a root.
//!
//! The header's checksum covers the page's address and the header; a node's, in its first four
//! bytes, covers the page's address, its sequence and what is in use of the node. So a node is read
//! and checked without the rest of its page, and a page is whole if its header and all its nodes
//! are.
//!
//! [`Header::decode`] takes any bytes.

use device::Page;
use store::LogicalPage;
use store::node::Codec;

use super::layout::{CHILD_BYTES, Division, HEADER_BYTES, HEIGHT_MOST, Layout, Pages, Share};
use super::policy::{Splits, State};
use index::Error;

const CHECKSUM_BYTES: usize = 4;

const ROOT: u8 = 1;
const HALVES: u8 = 2;
const WHOLE: u8 = 4;

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Of pages with a root, the newest is the tree: the one with the highest sequence.
    pub(super) sequence: u64,
    /// Pages that hold a live node.
    pub(super) live_pages: u32,
    /// How the page is divided.
    pub(super) layout: Layout,
    /// The lowest level of a node in this page.
    pub(super) lowest: u8,
    /// The highest level of a node in this page.
    pub(super) highest: u8,
    /// True if the highest node is the root of a tree.
    pub(super) has_root: bool,
    /// How pages after this one are to be divided, and the counts that decide it.
    pub(super) next: State,
}

/// What of a page's header matters to who has one of its nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brief {
    pub(super) layout: Layout,
    /// The lowest level of a node in the page.
    pub(super) lowest: u8,
}

pub(super) const BRIEF_BYTES: usize = 4;

/// What is wrong with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// It was not programmed since its block was erased.
    Erased,
    /// A checksum does not fit: the page was torn, or never of this tree.
    Checksum {
        /// The checksum stored in the page.
        expected: u32,
        /// The checksum of what was read.
        found: u32,
    },
    /// The checksum fits, but what the page says makes no sense.
    Nonsense(&'static str),
}

impl Header {
    /// Writes the header into the first bytes of `page`, which is to stand at `address`.
    pub(super) fn encode(&self, address: Page, page: &mut [u8]) {
        let mut bytes = [0; HEADER_BYTES];
        let mut at = CHECKSUM_BYTES;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.sequence.to_le_bytes());
        put(&self.live_pages.to_le_bytes());
        put(&self.next.splits.inner.to_le_bytes());
        put(&self.next.splits.leaf.to_le_bytes());
        put(&self.layout.leaf.bits().to_le_bytes());
        put(&[self.layout.height, self.lowest, self.highest, self.flags()]);
        put(&self.next.layout.leaf.bits().to_le_bytes());
        put(&[self.next.layout.height]);
        let checksum = header_checksum(address, &bytes);
        bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        page[..HEADER_BYTES].copy_from_slice(&bytes);
    }

    fn flags(&self) -> u8 {
        let division = match self.layout.division {
            Division::Even => 0,
            Division::Halves => HALVES,
            Division::Whole => WHOLE,
        };
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.has_root, ROOT) | division
    }

    /// Reads the header of the page at `address`, of which `bytes` are the first.
    ///
    /// # Errors
    /// What is wrong with the page.
    pub(super) fn decode(
        pages: &Pages,
        address: Page,
        bytes: &[u8],
    ) -> core::result::Result<Self, Damage> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Damage::Nonsense("it is shorter than its header"));
        };
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Err(Damage::Erased);
        }
        let expected = u32::from_le_bytes(field(bytes, 0));
        let found = header_checksum(address, bytes);
        if expected != found {
            return Err(Damage::Checksum { expected, found });
        }
        Header::read(bytes).and_then(|header| header.check(pages)).map_err(Damage::Nonsense)
    }

    fn read(bytes: &[u8; HEADER_BYTES]) -> core::result::Result<Self, &'static str> {
        let flags = bytes[29];
        let unknown = "it has flags that mean nothing";
        if flags & !(ROOT | HALVES | WHOLE) != 0 || bytes[33..] != [0; 3] {
            return Err(unknown);
        }
        let division = match flags & (HALVES | WHOLE) {
            0 => Division::Even,
            HALVES => Division::Halves,
            WHOLE => Division::Whole,
            _ => return Err(unknown),
        };
        let layout = |leaf: [u8; 2], height| {
            let leaf = Share::from_bits(u16::from_le_bytes(leaf)).ok_or("its leaf has no share")?;
            Ok(Layout { division, leaf, height })
        };
        let splits = Splits {
            inner: u32::from_le_bytes(field(bytes, 16)),
            leaf: u32::from_le_bytes(field(bytes, 20)),
        };
        Ok(Header {
            sequence: u64::from_le_bytes(field(bytes, 4)),
            live_pages: u32::from_le_bytes(field(bytes, 12)),
            layout: layout(field(bytes, 24), bytes[26])?,
            lowest: bytes[27],
            highest: bytes[28],
            has_root: flags & ROOT != 0,
            next: State { layout: layout(field(bytes, 30), bytes[32])?, splits },
        })
    }

    /// Refuses what no page of a tree with these `pages` can say.
    fn check(self, pages: &Pages) -> core::result::Result<Self, &'static str> {
        if self.layout.division != pages.division {
            return Err("it is divided by the rule of another tree");
        }
        let next = Some(self.next.layout).filter(|next| *next != self.layout);
        for layout in next.into_iter().chain([self.layout]) {
            if !(1..=HEIGHT_MOST).contains(&layout.height) || !pages.is_feasible(&layout) {
                return Err("no page is divided so");
            }
        }
        if self.lowest > self.highest || self.highest >= self.layout.height {
            return Err("its levels are none of its tree");
        }
        if self.layout.division == Division::Whole && self.lowest != self.highest {
            return Err("it holds more than one node");
        }
        if self.has_root != (self.highest + 1 == self.layout.height) {
            return Err("its root is not at the root's level");
        }
        Ok(self)
    }

    /// True if the page holds a node of `level`.
    pub(super) fn holds(&self, level: u8) -> bool {
        (self.lowest..=self.highest).contains(&level)
    }
}

impl Brief {
    pub(super) fn of(header: &Header) -> Self {
        Brief { layout: header.layout, lowest: header.lowest }
    }

    pub(super) fn encode(&self) -> [u8; BRIEF_BYTES] {
        let [low, high] = self.layout.leaf.bits().to_le_bytes();
        [low, high, self.layout.height, self.lowest]
    }

    pub(super) fn decode(pages: &Pages, bytes: [u8; BRIEF_BYTES]) -> Self {
        let [low, high, height, lowest] = bytes;
        let leaf = Share::from_bits(u16::from_le_bytes([low, high])).unwrap_or(Share::HALF);
        Brief { layout: pages.layout(leaf, height), lowest }
    }
}

fn field<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    bytes[at..].first_chunk().copied().unwrap_or([0; N])
}

/// One piece costs less than two: the address stands where the checksum does.
fn header_checksum(address: Page, bytes: &[u8; HEADER_BYTES]) -> u32 {
    let mut bytes = *bytes;
    bytes[..CHECKSUM_BYTES].copy_from_slice(&address.0.to_le_bytes());
    device::checksum(&[&bytes])
}

/// The checksum of what is kept of `node`: what is behind that means nothing. A node that counts
/// more entries than it has room for is taken whole.
fn node_checksum(codec: &Codec, address: Page, sequence: u64, node: &[u8]) -> u32 {
    let end = codec.kept_bytes(node).min(node.len());
    let rest = node.get(CHECKSUM_BYTES..end).unwrap_or_default();
    let [a, b, c, d] = address.0.to_le_bytes();
    let [e, f, g, h, i, j, k, l] = sequence.to_le_bytes();
    device::checksum(&[&[a, b, c, d, e, f, g, h, i, j, k, l], rest])
}

/// Writes the checksum of `node`, which is to stand in the page at `address` with this `sequence`.
pub(super) fn seal_node(codec: &Codec, address: Page, sequence: u64, node: &mut [u8]) {
    let checksum = node_checksum(codec, address, sequence, node);
    if let Some(head) = node.first_chunk_mut::<CHECKSUM_BYTES>() {
        *head = checksum.to_le_bytes();
    }
}

/// Refuses `node`, read from the page at `address`, if it is not the node of `level` that `header`
/// was written with and `codec` is for.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_node(
    codec: &Codec,
    address: Page,
    header: &Header,
    (level, node): (u8, &[u8]),
) -> core::result::Result<(), Damage> {
    let Some(head) = node.first_chunk::<CHECKSUM_BYTES>() else {
        return Err(Damage::Nonsense("it has no room for a node"));
    };
    let expected = u32::from_le_bytes(*head);
    let found = node_checksum(codec, address, header.sequence, node);
    if expected != found {
        return Err(Damage::Checksum { expected, found });
    }
    codec.validate(node).map_err(Damage::Nonsense)?;
    if store::node::level(node) != level {
        return Err(Damage::Nonsense("its node is of another level"));
    }
    if level > 0 && store::node::count(node) == 0 {
        return Err(Damage::Nonsense("its node has no children"));
    }
    Ok(())
}

/// The page at which an inner node points.
pub(super) fn child(codec: &Codec, node: &[u8], place: usize) -> Page {
    let bytes = codec.value(node, place).bytes().first_chunk::<{ CHILD_BYTES as usize }>();
    Page(u32::from_le_bytes(bytes.copied().unwrap_or([0xFF; CHILD_BYTES as usize])))
}

pub(super) fn damaged(page: Page, damage: Damage) -> store::Error {
    let page = LogicalPage(page.0);
    match damage {
        Damage::Erased => store::Error::DamagedPage { page, what: "nothing stands in it" },
        Damage::Checksum { expected, found } => store::Error::CorruptPage { page, expected, found },
        Damage::Nonsense(what) => store::Error::DamagedPage { page, what },
    }
}

pub(super) fn damage(page: Page, what: &'static str) -> Error {
    store::Error::DamagedPage { page: LogicalPage(page.0), what }.into()
}

/// Reads the header of a whole page and checks every node in it.
#[cfg(test)]
pub(super) fn check_page(
    pages: &Pages,
    address: Page,
    page: &[u8],
) -> core::result::Result<Header, Damage> {
    let header = Header::decode(pages, address, page)?;
    for level in header.lowest..=header.highest {
        let place = pages.place_of(&header.layout, level);
        let (range, codec) = place.ok_or(Damage::Nonsense("it has no node of this level"))?;
        let node = page.get(range).ok_or(Damage::Nonsense("it is shorter than a page"))?;
        check_node(&codec, address, &header, (level, node))?;
    }
    Ok(header)
}

#[cfg(test)]
mod tests;
