//! Bytes on flash: nodes, and the root record.
//!
//! A leaf holds entries of the index's shape. An inner node holds entries of the same keys whose
//! value is a child's page, 4 bytes, little-endian.

use alloc::vec::Vec;

use store::node::{self, Codec, NodeKey};
use store::{EntryShape, LogicalPage, PageCheck, Width};

use index::{Error, Result, root_record};

/// Bytes of a child's page in an inner node.
pub(super) const CHILD_BYTES: u16 = 4;

/// The codecs of a tree's nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes {
    pub(super) shape: EntryShape,
    pub(super) leaf: Codec,
    pub(super) inner: Codec,
}

impl Nodes {
    pub(super) fn new(bytes: u32, shape: EntryShape) -> Result<Self> {
        let what = match bytes > store::node::NODE_BYTES_MOST {
            true => "they must have 128 to 32768 bytes",
            false => "they can't hold four entries",
        };
        let small = store::Error::NodeSize { bytes, what };
        let leaf = Codec::new(bytes, shape.key, shape.value).ok_or(small)?;
        let inner = Codec::new(bytes, shape.key, Width::Fixed(CHILD_BYTES)).ok_or(small)?;
        Ok(Nodes { shape, leaf, inner })
    }

    /// The codec of nodes at `level`.
    #[inline]
    pub(super) fn at(&self, level: u8) -> &Codec {
        if level == 0 { &self.leaf } else { &self.inner }
    }

    /// True if values have no fixed length, so that one may be too long for a leaf.
    #[inline]
    pub(super) fn has_long_values(&self) -> bool {
        matches!(self.shape.value, Width::Variable)
    }

    /// True if nodes have slots, so that entries of different sizes move between them.
    pub(super) fn is_variable(&self) -> bool {
        !matches!((self.shape.key, self.shape.value), (Width::Fixed(_), Width::Fixed(_)))
    }

    /// Pages that one put may need in a tree of such a height, in the worst case: it may split its
    /// leaf (twice where a short prefix makes a half grow), and each level above, and the root may
    /// get a parent.
    pub(super) fn pages_for_one(&self, height: u8) -> u64 {
        let splits = if self.is_variable() { 2 } else { 1 };
        splits * (1 + u64::from(height)) + 1
    }

    #[inline]
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.shape.key {
            Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: u64::from(bytes), found: key.len() as u64 })
            }
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn check_value(&self, value_bytes: usize) -> Result<()> {
        match self.shape.value {
            Width::Fixed(bytes) if value_bytes != usize::from(bytes) => {
                Err(Error::ValueLength { expected: u64::from(bytes), found: value_bytes as u64 })
            }
            _ => Ok(()),
        }
    }

    /// Replaces `key` by the lowest key there is.
    pub(super) fn lowest(&self, key: &mut Vec<u8>) {
        key.clear();
        if let Width::Fixed(bytes) = self.shape.key {
            key.resize(usize::from(bytes), 0);
        }
    }

    /// Cuts `separator`, which is above `left`, to the shortest key that still is; keys of fixed
    /// length stay whole.
    pub(super) fn shorten(&self, left: &NodeKey<'_>, separator: &mut Vec<u8>) {
        if matches!(self.shape.key, Width::Fixed(_)) {
            return;
        }
        let whole = left.prefix.iter().chain(left.suffix);
        let shared = separator.iter().zip(whole).take_while(|(one, other)| one == other).count();
        separator.truncate(shared + 1);
    }

    /// The child at `place` of an inner node.
    #[inline]
    pub(super) fn child(&self, node: &[u8], place: usize) -> LogicalPage {
        let bytes =
            self.inner.value(node, place).bytes().first_chunk().copied().unwrap_or_default();
        LogicalPage(u32::from_le_bytes(bytes))
    }
}

impl PageCheck for Nodes {
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str> {
        // An inner node may have no children yet: loading makes it before its first child.
        self.at(node::level(page)).validate(page)
    }

    #[inline]
    fn is_kind(&self, page: &[u8]) -> bool {
        self.at(node::level(page)).is_kind(page)
    }
}

/// What stands in the root record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) shape: EntryShape,
    pub(super) page: LogicalPage,
    pub(super) height: u8,
    pub(super) entries: u64,
    /// Bytes in the longest long value that there ever was.
    pub(super) longest_value: u32,
}

impl Root {
    pub(super) fn encode(&self, tree: &str) -> Vec<u8> {
        let mut record = root_record::encode(tree, self.shape);
        record.extend_from_slice(&self.page.0.to_le_bytes());
        record.push(self.height);
        record.extend_from_slice(&self.entries.to_le_bytes());
        record.extend_from_slice(&self.longest_value.to_le_bytes());
        record
    }

    pub(super) fn decode(record: &[u8], tree: &str) -> Result<Self> {
        let damaged =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
        let (shape, rest) = root_record::decode(record, tree)?;
        let (page, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (height, rest) = rest.split_first().ok_or(damaged)?;
        let (entries, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let longest_value = rest.first_chunk().ok_or(damaged)?;
        Ok(Root {
            shape,
            page: LogicalPage(u32::from_le_bytes(*page)),
            height: *height,
            entries: u64::from_le_bytes(*entries),
            longest_value: u32::from_le_bytes(*longest_value),
        })
    }
}
