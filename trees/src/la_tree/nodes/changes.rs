//! Changes of nodes that need the scratch node.

use device::Cause;
use store::node::Codec;

use super::super::ground::Ground;
use super::super::layout::NodeId;
use super::Nodes;
use crate::btree::Edit;
use index::Result;

impl Nodes {
    /// Makes a change in a node at a level; false, and nothing changed, if there is no room for it.
    pub(in super::super) fn edit(
        &mut self,
        log: &mut Ground<'_>,
        (id, level): (NodeId, u8),
        edit: Edit<'_>,
    ) -> Result<bool> {
        let codec = self.at(level);
        let log = match log {
            Ground::Disk(disk) => {
                let node = self.page_mut(disk, id, level, Cause::Update)?;
                return Ok(edit.apply(&codec, node, &mut self.scratch));
            }
            Ground::Chip(log) => log,
        };
        let frame = self.frame(log, id, level, Cause::Update)?;
        let is_done = edit.apply(&codec, self.cache.node_mut(frame), &mut self.scratch);
        if is_done {
            self.cache.set_dirty(frame, true);
        }
        Ok(is_done)
    }

    /// Lets `change` move entries between two nodes of one level, whose codec it gets, and a node
    /// of memory.
    pub(in super::super) fn change_pair(
        &mut self,
        log: &mut Ground<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        change: impl FnOnce(&Codec, &mut [u8], &mut [u8], &mut [u8]),
    ) -> Result<()> {
        let (codec, mut scratch) = (self.at(level), core::mem::take(&mut self.scratch));
        let changed = self.pair_mut(log, pair, level, Cause::Update);
        let changed = changed.map(|(left, right)| change(&codec, left, right, &mut scratch));
        self.scratch = scratch;
        changed
    }
}
