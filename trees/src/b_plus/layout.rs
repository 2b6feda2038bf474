//! What the tree takes, and its root record.

use alloc::vec::Vec;

use store::{EntryShape, LogicalPage, Width};

use crate::btree::Codecs;
use index::{Error, Result, root_record};

/// The codecs of nodes of `bytes` bytes.
///
/// # Errors
/// They could not hold four entries.
pub(super) fn codecs(bytes: u32, shape: EntryShape) -> Result<Codecs> {
    let what = match bytes > store::node::NODE_BYTES_MOST {
        true => "they must have 128 to 32768 bytes",
        false => "they can't hold four entries",
    };
    Ok(Codecs::new(bytes, shape).ok_or(store::Error::NodeSize { bytes, what })?)
}

impl Codecs {
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
