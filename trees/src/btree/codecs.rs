//! What nodes of one length hold: leaves the index's entries, inner nodes the same keys, each with
//! the four bytes that name a child.

use alloc::vec::Vec;

use store::node::{self, Codec, NodeKey};
use store::{EntryShape, PageCheck, Width};

/// Bytes of what names a child in an inner node.
pub(crate) const CHILD_BYTES: u16 = 4;

/// The codecs of a tree's nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codecs {
    pub(crate) shape: EntryShape,
    pub(crate) leaf: Codec,
    pub(crate) inner: Codec,
    /// True if other nodes of the file have entries of other lengths.
    pub(crate) is_one_of_many: bool,
}

impl Codecs {
    /// The codecs of nodes of `bytes` bytes; `None` if they could not hold four entries.
    pub(crate) fn new(bytes: u32, shape: EntryShape) -> Option<Self> {
        let leaf = Codec::new(bytes, shape.key, shape.value)?;
        let inner = Codec::new(bytes, shape.key, Width::Fixed(CHILD_BYTES))?;
        Some(Codecs { shape, leaf, inner, is_one_of_many: false })
    }

    /// The codec of nodes at `level`.
    #[inline]
    pub(crate) const fn at(&self, level: u8) -> &Codec {
        if level == 0 { &self.leaf } else { &self.inner }
    }

    /// True if values have no fixed length, so that one may be too long for a leaf.
    #[inline]
    pub(crate) fn has_long_values(&self) -> bool {
        matches!(self.shape.value, Width::Variable)
    }

    /// True if nodes have slots, so that entries of different sizes move between them.
    pub(crate) fn is_variable(&self) -> bool {
        !matches!((self.shape.key, self.shape.value), (Width::Fixed(_), Width::Fixed(_)))
    }

    /// The most bytes of a key: leaves have room for four with empty values, and inner nodes for
    /// four with their children, so that a full one has two on each side when it is split.
    pub(crate) fn key_bytes_most(&self) -> usize {
        match self.shape.key {
            Width::Fixed(bytes) => bytes.into(),
            Width::Variable => {
                let separator = self.inner.entry_bytes_most().saturating_sub(CHILD_BYTES.into());
                self.leaf.entry_bytes_most().min(separator)
            }
        }
    }

    /// Replaces `key` by the lowest key there is.
    pub(crate) fn lowest(&self, key: &mut Vec<u8>) {
        key.clear();
        if let Width::Fixed(bytes) = self.shape.key {
            key.resize(usize::from(bytes), 0);
        }
    }

    /// Cuts `separator`, which is above `left`, to the shortest key that still is; keys of fixed
    /// length stay whole.
    pub(crate) fn shorten(&self, left: &NodeKey<'_>, separator: &mut Vec<u8>) {
        if matches!(self.shape.key, Width::Fixed(_)) {
            return;
        }
        let whole = left.prefix.iter().chain(left.suffix);
        let shared = separator.iter().zip(whole).take_while(|(one, other)| one == other).count();
        separator.truncate(shared + 1);
    }
}

impl PageCheck for Codecs {
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str> {
        // An inner node may have no children yet: loading makes it before its first child.
        self.at(node::level(page)).validate(page)
    }

    #[inline]
    fn is_kind(&self, page: &[u8]) -> bool {
        let codec = self.at(node::level(page));
        // A damaged pointer may lead to a node that has more entries than one of these holds.
        let may_be = || self.is_variable() || node::count(page) <= codec.capacity(0, 0);
        codec.is_kind(page) && (!self.is_one_of_many || may_be())
    }
}
