//! How a page is divided among the levels of the tree.
//!
//! ```text
//!  0        header                                              page
//!  +--------+-------+-----+--------+----------------------------+
//!  | header | root  | ... | inner  | leaf                       |
//!  |        |       |     | level 1| level 0                    |
//!  +--------+-------+-----+--------+----------------------------+
//!           '------------------- area -------------------------'
//! ```
//!
//! The root comes first and the leaf last: so one read from the page's start reaches a node
//! whatever is below it, and the many reads of inner nodes don't fetch the leaf.
//!
//! A page has room for one node of every level of its tree, so that a leaf and all above it go out
//! in one program. Two divisions exist. mu-Tree halves: a leaf has half of the area, and each level
//! above half of what the one below it has (equation 1). mu*-Tree gives the leaf a share `p1` that
//! each page names for itself, and divides the rest evenly (equations 2 and 3). In both, the root
//! has what is left, and a leaf that is the root has everything.
//!
//! The papers count levels from 1; here, as in the node codec, a leaf is level 0.

use core::fmt;

use store::node::Codec;
use store::{EntryShape, Width};

use index::bounds::EntryLimits;
use index::random_keys::average_bytes;
use index::{Error, Result};

/// The most levels of a tree: where nodes have the two children that they always have room for,
/// they lead to 32,768 leaves.
pub(crate) const HEIGHT_MOST: u8 = 16;

/// The most levels that share a page: with the least inner nodes of 2 KiB pages, 11 children each,
/// they lead to 19 million leaves.
pub(crate) const SHARED_MOST: u8 = 8;

/// Bytes of a page in front of its nodes.
pub(super) const HEADER_BYTES: usize = 36;

/// Bytes of a child's page in an inner node.
pub(crate) const CHILD_BYTES: u16 = 4;

/// An inner node of the third level of a page, or of a higher one, holds so many children at least.
const CHILDREN_LEAST: usize = 8;

/// Where lengths vary, no inner node is smaller than this part of the area: a key takes at most a
/// quarter of the smallest inner node, so the height is given up for keys of a useful length.
const VARIABLE_INNER_PARTS: u32 = 8;

/// Bytes beside key and value that an entry of variable length takes at the most: its slot and two
/// lengths.
pub(crate) const SLOT_BYTES_MOST: usize = 6;

/// A part of a page's area, in 65,536ths; neither nothing nor the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share(u16);

impl Share {
    pub(crate) const HALF: Share = Share(1 << 15);

    /// The share nearest to `ratio`; `None` unless that is more than nothing and less than all.
    pub(crate) fn from_ratio(ratio: f64) -> Option<Self> {
        let parts = libm::round(ratio * 65_536.0);
        (1.0..=65_535.0).contains(&parts).then_some(Share(parts as u16))
    }

    pub(crate) fn ratio(self) -> f64 {
        f64::from(self.0) / 65_536.0
    }

    pub(crate) fn from_bits(bits: u16) -> Option<Self> {
        (bits != 0).then_some(Share(bits))
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn plus(self, other: Share) -> Option<Share> {
        self.0.checked_add(other.0).map(Share)
    }

    pub(crate) fn minus(self, other: Share) -> Option<Share> {
        self.0.checked_sub(other.0).and_then(Share::from_bits)
    }

    /// So much of `bytes`, rounded down.
    pub(crate) fn of(self, bytes: u32) -> u32 {
        ((u64::from(bytes) * u64::from(self.0)) >> 16) as u32
    }

    /// What is left of the whole.
    pub(crate) fn rest(self) -> Share {
        Share(self.0.wrapping_neg())
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.4}", self.ratio())
    }
}

/// The rule by which a page is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// mu-Tree: a leaf has half, and each level above half of the one below.
    Halves,
    /// mu*-Tree: a leaf has its share, and the levels above divide the rest evenly.
    Even,
    /// The B+-tree that wanders: every node has a page to itself.
    Whole,
}

/// How one page is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) division: Division,
    /// `p1`, the leaf's share where the height is above 1; a half in mu-Tree.
    pub(crate) leaf: Share,
    /// Levels of the tree.
    pub(crate) height: u8,
}

/// Where a node lies in its page's area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl Layout {
    /// The node of `level` in an area of `area` bytes that all levels share; `None` above the root.
    /// This is `N_L` of equations 1 and 2.
    #[inline]
    pub(crate) fn part(&self, area: u32, level: u8) -> Option<Part> {
        let top = self.height.checked_sub(1)?;
        if level > top || top >= HEIGHT_MOST {
            return None;
        }
        let end = area - self.below(area, level);
        let offset = if level == top { 0 } else { area - self.below(area, level + 1) };
        Some(Part { offset, bytes: end - offset })
    }

    /// Bytes of the levels below `level`, which stand behind it; the root is not the leaf.
    #[inline]
    fn below(&self, area: u32, level: u8) -> u32 {
        match self.division {
            Division::Whole => 0,
            Division::Halves => (1..=u32::from(level)).map(|halvings| area >> halvings).sum(),
            _ if level == 0 => 0,
            Division::Even => {
                let leaf = self.leaf.of(area);
                if level == 1 {
                    // It is asked for with every read: no division.
                    return leaf;
                }
                leaf + u32::from(level - 1) * ((area - leaf) / (u32::from(self.height) - 1))
            }
        }
    }
}

/// What is the same in all pages of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    page_bytes: u32,
    pub(crate) shape: EntryShape,
    pub(crate) division: Division,
    /// Levels that share a page; those above have pages to themselves.
    pub(crate) together: u8,
}

impl Pages {
    /// Pages of `page_bytes` bytes for a tree whose entries are of `shape`.
    ///
    /// # Errors
    /// A page could not hold even a lone leaf of such entries.
    pub(crate) fn new(page_bytes: u32, shape: EntryShape, division: Division) -> Result<Self> {
        let together = if division == Division::Whole { 1 } else { SHARED_MOST };
        let pages = Pages { page_bytes, shape, division, together };
        if page_bytes <= HEADER_BYTES as u32 || pages.codec(&pages.lone_leaf(), 0).is_none() {
            let what = "a page can't hold three entries, or is above 32 KiB";
            return Err(store::Error::NodeSize { bytes: page_bytes, what }.into());
        }
        Ok(pages)
    }

    pub(crate) fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Bytes of a page without its header.
    pub(crate) fn area(&self) -> u32 {
        self.page_bytes - HEADER_BYTES as u32
    }

    /// The layout of an empty tree.
    pub(crate) fn lone_leaf(&self) -> Layout {
        self.layout(Share::HALF, 1)
    }

    pub(crate) fn layout(&self, leaf: Share, height: u8) -> Layout {
        Layout { division: self.division, leaf, height }
    }

    /// True if a node of `level` has a page to itself, whatever else is written.
    #[inline]
    pub(crate) fn stands_alone(&self, level: u8) -> bool {
        level >= self.together || self.together == 1
    }

    /// The node of `level` in a page of `layout`; `None` above the root.
    #[inline]
    pub(crate) fn part(&self, layout: &Layout, level: u8) -> Option<Part> {
        if level >= layout.height || layout.height > HEIGHT_MOST {
            return None;
        }
        if self.stands_alone(level) {
            return Some(Part { offset: 0, bytes: self.area() });
        }
        let shared = Layout { height: layout.height.min(self.together), ..*layout };
        shared.part(self.area(), level)
    }

    /// The codec of the node of `level` in a page of `layout`; `None` if there is no such node, or
    /// it is too small for three entries.
    #[inline]
    pub(crate) fn codec(&self, layout: &Layout, level: u8) -> Option<Codec> {
        self.codec_of(self.part(layout, level)?, level)
    }

    #[inline]
    fn codec_of(&self, part: Part, level: u8) -> Option<Codec> {
        if level == 0 {
            return Codec::new_part(part.bytes, self.shape.key, self.shape.value);
        }
        let codec = Codec::new_part(part.bytes, self.shape.key, Width::Fixed(CHILD_BYTES))?;
        Some(if self.counts_keys() { codec.without_prefixes() } else { codec })
    }

    /// True if room is counted by the longest key, which must not lengthen others then. Where
    /// levels share a page, inner nodes are too small to go without what their keys share.
    #[inline]
    pub(crate) fn counts_keys(&self) -> bool {
        self.division == Division::Whole && self.shape.key == Width::Variable
    }

    #[inline]
    fn range_of(&self, part: Part) -> core::ops::Range<usize> {
        let start = HEADER_BYTES + part.offset as usize;
        start..start + part.bytes as usize
    }

    /// Where the node of `level` lies in a page of `layout`, its header counted, and its codec:
    /// each node that is read or written asks for both.
    #[inline]
    pub(crate) fn place_of(
        &self,
        layout: &Layout,
        level: u8,
    ) -> Option<(core::ops::Range<usize>, Codec)> {
        let part = self.part(layout, level)?;
        Some((self.range_of(part), self.codec_of(part, level)?))
    }

    /// Where the node of `level` lies in a page of `layout`, its header counted.
    #[inline]
    pub(crate) fn bytes_of(&self, layout: &Layout, level: u8) -> Option<core::ops::Range<usize>> {
        Some(self.range_of(self.part(layout, level)?))
    }

    /// Entries in a node of `level`: all that fit if lengths are fixed, those that fit on average
    /// if they vary.
    pub(crate) fn capacity(&self, layout: &Layout, level: u8) -> usize {
        let value = if level == 0 { average_bytes(self.shape.value) } else { CHILD_BYTES };
        let (key, value) = (average_bytes(self.shape.key).into(), value.into());
        self.codec(layout, level).map_or(0, |codec| codec.capacity(key, value))
    }

    /// True if a key or a value can have any length.
    pub(crate) fn is_variable(&self) -> bool {
        !matches!((self.shape.key, self.shape.value), (Width::Fixed(_), Width::Fixed(_)))
    }

    /// True if every level of `layout` has a node that is large enough.
    ///
    /// Every page that is read is asked: so only the leaf and the smallest inner node are looked
    /// at. No part is larger than the area, for which there is a codec.
    #[inline]
    pub(crate) fn is_feasible(&self, layout: &Layout) -> bool {
        let height = layout.height.min(self.together);
        let smallest = match self.division {
            // The root is as large as its children, or larger.
            Division::Halves => height.saturating_sub(2).max(1),
            Division::Even | Division::Whole => 1,
        };
        if self.codec(layout, 0).is_none() {
            return false;
        }
        let is_variable = self.is_variable() && self.together > 1;
        let least = if is_variable { self.area() / VARIABLE_INNER_PARTS } else { 0 };
        height < 2
            || self.codec(layout, smallest).is_some_and(|it| it.node_bytes() >= least as usize)
    }

    /// True if so many levels are worth sharing a page, of which a leaf has `leaf`.
    pub(crate) fn are_worth_sharing(&self, leaf: Share, height: u8) -> bool {
        let layout = self.layout(leaf, height);
        let inner = (1..height).map(|level| self.capacity(&layout, level)).min();
        let has_children = inner.is_none_or(|most| height == 2 || most >= CHILDREN_LEAST);
        self.is_feasible(&layout) && (has_children || self.is_variable())
    }

    /// Entries that a tree of `layout` holds where every node is full: equation 4 with whole
    /// entries.
    pub(crate) fn entries_most(&self, layout: &Layout) -> u64 {
        (0..layout.height)
            .map(|level| self.capacity(layout, level) as u64)
            .fold(1, u64::saturating_mul)
    }

    /// The most bytes of a key, and of a key with its value, that fit every node of `layouts`.
    pub(crate) fn entry_limits(&self, layouts: impl Iterator<Item = Layout>) -> EntryLimits {
        let shape = self.shape;
        let mut limits = EntryLimits { shape, key: usize::MAX, entry: usize::MAX };
        for layout in layouts {
            for level in 0..layout.height {
                let most = self.codec(&layout, level).map_or(0, |it| it.entry_bytes_most());
                if level == 0 {
                    limits.entry = limits.entry.min(most);
                } else {
                    limits.key = limits.key.min(most.saturating_sub(usize::from(CHILD_BYTES)));
                }
            }
        }
        limits.key = limits.key.min(limits.entry);
        limits
    }
}

/// The ratio that the parameter `name` was set to, as a share of a page.
pub(crate) fn share(name: &'static str, ratio: f64) -> Result<Share> {
    Share::from_ratio(ratio).ok_or_else(|| Error::BadParameter {
        name,
        value: alloc::format!("{ratio}"),
        expected: "it must be a share of a page, more than nothing and less than all".into(),
    })
}

#[cfg(test)]
mod tests;
