//! The root record: the tree, and where the pool stands.
//!
//! ```text
//!  | tree, shape | root's page u32 | height u8 | entries u64 |
//!  | the pool's first page u32 | its bytes u32 | begun u8 | nodes u32 |
//! ```
//!
//! The pool stands in pages of its own, as a long value does: its nodes, one behind the other. An
//! empty one has no bytes, and no page. It is begun if some of its requests are made already. A
//! replay lets it grow to so many nodes: there is room on the disk to write them.

use alloc::vec::Vec;

use store::{EntryShape, LogicalPage, OverflowValue};

use super::NAME;
use index::{Result, root_record};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) shape: EntryShape,
    pub(super) page: LogicalPage,
    pub(super) height: u8,
    pub(super) entries: u64,
    pub(super) pool: Option<OverflowValue>,
    /// Some of the pool's requests are made, and will be again.
    pub(super) is_begun: bool,
    /// Nodes that the pool may have until the next checkpoint.
    pub(super) nodes_most: u32,
}

pub(super) const fn damaged() -> store::Error {
    store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" }
}

impl Root {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut record = root_record::encode(NAME, self.shape);
        record.extend_from_slice(&self.page.0.to_le_bytes());
        record.push(self.height);
        record.extend_from_slice(&self.entries.to_le_bytes());
        let pool = self.pool.map_or([0; OverflowValue::ENCODED_BYTES], |pool| pool.to_bytes());
        record.extend_from_slice(&pool);
        record.push(u8::from(self.is_begun));
        record.extend_from_slice(&self.nodes_most.to_le_bytes());
        record
    }

    pub(super) fn decode(record: &[u8]) -> Result<Self> {
        let (shape, rest) = root_record::decode(record, NAME)?;
        let (page, rest) = rest.split_first_chunk().ok_or(damaged())?;
        let (height, rest) = rest.split_first().ok_or(damaged())?;
        let (entries, rest) = rest.split_first_chunk().ok_or(damaged())?;
        let (pool, rest) = rest.split_first_chunk().ok_or(damaged())?;
        let pool = OverflowValue::from_bytes(*pool);
        let (is_begun, rest) = rest.split_first().ok_or(damaged())?;
        let nodes_most = rest.first_chunk().ok_or(damaged())?;
        Ok(Root {
            shape,
            page: LogicalPage(u32::from_le_bytes(*page)),
            height: *height,
            entries: u64::from_le_bytes(*entries),
            pool: (pool.bytes() > 0).then_some(pool),
            is_begun: *is_begun != 0,
            nodes_most: u32::from_le_bytes(*nodes_most),
        })
    }
}
