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

use device::{Cause, Page};

use super::layout::{HEIGHT_MOST, Share};
use super::policy::Bounds;
use super::room::{Nodes, growth_of};
use super::{PathTree, damage};
use index::{Result, root_record};
use store::Recovery;

/// What the root record of a tree says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) shape: store::EntryShape,
    pub(super) page: Page,
    pub(super) bounds: Bounds,
    nodes: Nodes,
    height: usize,
    longest_key: Option<usize>,
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
}

impl PathTree<'_> {
    /// The root record of the tree as it stands on flash.
    pub(super) fn root_bytes(&self) -> Vec<u8> {
        let mut record = root_record::encode(self.name, self.store.pages.shape);
        record.extend_from_slice(&self.root.0.to_le_bytes());
        let Bounds { alpha, beta, delta } = self.policy.bounds();
        for share in [alpha, beta, delta] {
            record.extend_from_slice(&share.bits().to_le_bytes());
        }
        for nodes in &self.nodes[..usize::from(self.height())] {
            record.extend_from_slice(&nodes.to_le_bytes());
        }
        if self.store.pages.counts_keys() {
            record.extend_from_slice(&(self.longest_key as u16).to_le_bytes());
        }
        record
    }

    /// Stands on the root that `record` names.
    pub(super) fn restore_from(&mut self, record: &[u8]) -> Result<()> {
        let root = Root::decode(record, self.name)?;
        let page = root.page;
        self.store.forget_all();
        self.live.forget();
        while self.buffer.remove_oldest() {}
        self.victim = None;
        self.is_parted = false;
        let header = self.store.read_header(page, Cause::Recovery)?;
        let pages = self.store.log.geometry().pages();
        let is_fit = header.has_root
            && header.live_pages <= pages
            && usize::from(header.layout.height) == root.height
            && root.nodes.iter().all(|nodes| *nodes <= pages);
        if !is_fit {
            return Err(damage(page, "it has no root of this tree"));
        }
        self.check_height(header.layout.height.max(header.next.layout.height))?;
        // The one page of a block may have a damaged tag.
        let block = self.store.log.geometry().block_of(page);
        self.store.log.claim_block(block)?;
        self.nodes = root.nodes;
        self.longest_key = root.longest_key.unwrap_or(usize::MAX).min(self.limits.key);
        self.growth = growth_of(&self.policy, self.longest_key);
        self.stand_on(page, header);
        self.begin_replay();
        Ok(())
    }

    /// Pins what named checkpoints reach. No leaf is read: its page is known from its parent.
    pub(super) fn pin_named(&mut self) -> Result<()> {
        self.store.log.unpin_all()?;
        for place in 0..self.store.log.checkpoints().len() {
            let Some(kept) = self.store.log.checkpoints().get(place) else {
                break;
            };
            let name = kept.name.clone();
            let record = self.store.log.kept_root(&name)?;
            let root = Root::decode(&record, self.name)?;
            let header = self.store.read_header(root.page, Cause::Recovery)?;
            let height = header.layout.height;
            self.walk_pages((root.page, height), Cause::Recovery, |tree, page, _| {
                tree.store.log.pin(page);
                Ok(())
            })?;
        }
        Ok(())
    }
}
