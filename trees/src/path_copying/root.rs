//! The root record, and the path back from it.
//!
//! ```text
//!  | name and shape | page of the root u32 | alpha u16 | beta u16 | delta u16 | nodes u32 each |
//!  | longest key u16 |
//! ```
//!
//! The nodes are counted level by level, leaves first. No key is longer than the last field says;
//! where it is missing, any may be as long as can be.
//!
//! All else stands in the header of the root's page.

use alloc::vec::Vec;

use device::Page;
use store::EntryShape;

use super::census::Nodes;
use super::layout::{HEIGHT_MOST, Share};
use super::policy::Bounds;
use index::{Result, root_record};

/// What the root record of a tree says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) shape: EntryShape,
    pub(super) page: Page,
    pub(super) bounds: Bounds,
    pub(super) nodes: Nodes,
    pub(super) height: usize,
    pub(super) longest_key: Option<usize>,
}

impl Root {
    pub(super) fn decode(record: &[u8], name: &str) -> Result<Self> {
        let damaged =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
        let (shape, rest) = root_record::decode(record, name)?;
        let (page, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (rest, behind): (&[u8; 6], _) = rest.split_first_chunk().ok_or(damaged)?;
        let share = |at: usize| {
            Share::from_bits(u16::from_le_bytes([rest[at], rest[at + 1]])).ok_or(damaged)
        };
        let bounds = Bounds { alpha: share(0)?, beta: share(2)?, delta: share(4)? };
        let (levels, rest) = behind.as_chunks();
        let mut nodes = [0; HEIGHT_MOST as usize];
        let height = levels.len();
        let longest_key = match *rest {
            [] => None,
            [low, high] => Some(u16::from_le_bytes([low, high]).into()),
            _ => return Err(damaged.into()),
        };
        if height > nodes.len() {
            return Err(damaged.into());
        }
        for (nodes, bytes) in nodes.iter_mut().zip(levels) {
            *nodes = u32::from_le_bytes(*bytes);
        }
        let page = Page(u32::from_le_bytes(*page));
        Ok(Root { shape, page, bounds, nodes, height, longest_key })
    }

    /// The root record.
    pub(super) fn encode(&self, name: &str) -> Vec<u8> {
        let mut record = root_record::encode(name, self.shape);
        record.extend_from_slice(&self.page.0.to_le_bytes());
        let Bounds { alpha, beta, delta } = self.bounds;
        for share in [alpha, beta, delta] {
            record.extend_from_slice(&share.bits().to_le_bytes());
        }
        for nodes in &self.nodes[..self.height] {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        if let Some(longest) = self.longest_key {
            record.extend_from_slice(&(longest as u16).to_le_bytes());
        }
        record
    }
}

#[cfg(test)]
mod tests;
