//! Changes of nodes that need the scratch node.

use device::Cause;
use store::node;

use super::super::ground::Ground;
use super::super::layout::NodeId;
use super::Nodes;
use index::Result;

impl Nodes {
    /// Puts an entry at `place` of a node at a level; false if there is no room for it.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn insert(
        &mut self,
        log: &mut Ground<'_>,
        (id, level): (NodeId, u8),
        place: usize,
        (key, value): (&[u8], node::Stored<'_>),
    ) -> Result<bool> {
        let codec = self.at(level);
        let log = match log {
            Ground::Disk(disk) => {
                let mut scratch = core::mem::take(&mut self.scratch);
                let inserted = self
                    .page_mut(disk, id, level, Cause::Update)
                    .map(|node| codec.insert(node, place, key, value, &mut scratch));
                self.scratch = scratch;
                return inserted;
            }
            Ground::Chip(log) => log,
        };
        let frame = self.frame(log, id, level, Cause::Update)?;
        let node = self.cache.node_mut(frame);
        let inserted = codec.insert(node, place, key, value, &mut self.scratch);
        if inserted {
            self.cache.set_dirty(frame, true);
        }
        Ok(inserted)
    }

    /// Replaces the value at `place` of leaf `id`; false if there is no room for it.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn replace(
        &mut self,
        log: &mut Ground<'_>,
        id: NodeId,
        place: usize,
        value: node::Stored<'_>,
    ) -> Result<bool> {
        let log = match log {
            Ground::Disk(disk) => {
                let (codec, mut scratch) = (self.leaf, core::mem::take(&mut self.scratch));
                let replaced = self
                    .page_mut(disk, id, 0, Cause::Update)
                    .map(|node| codec.replace(node, place, value, &mut scratch));
                self.scratch = scratch;
                return replaced;
            }
            Ground::Chip(log) => log,
        };
        let frame = self.frame(log, id, 0, Cause::Update)?;
        let node = self.cache.node_mut(frame);
        let replaced = self.leaf.replace(node, place, value, &mut self.scratch);
        if replaced {
            self.cache.set_dirty(frame, true);
        }
        Ok(replaced)
    }

    /// Takes the entry at `place` out of a node at a level.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn remove(
        &mut self,
        log: &mut Ground<'_>,
        (id, level): (NodeId, u8),
        place: usize,
    ) -> Result<()> {
        let codec = self.at(level);
        codec.remove(self.node_mut(log, id, level, Cause::Update)?, place);
        Ok(())
    }

    /// Moves the entries of the first node from `place` on to the second, which is empty.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn split_off(
        &mut self,
        log: &mut Ground<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        place: usize,
    ) -> Result<()> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let codec = self.at(level);
        let split = self.pair_mut(log, pair, level, Cause::Update).map(|(node, fresh)| {
            codec.split_off(node, place, fresh, &mut scratch);
        });
        self.scratch = scratch;
        split
    }

    /// Moves all entries of the second node behind those of the first.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn join(
        &mut self,
        log: &mut Ground<'_>,
        pair: (NodeId, NodeId),
        level: u8,
    ) -> Result<()> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let codec = self.at(level);
        let joined = self.pair_mut(log, pair, level, Cause::Update).map(|(left, right)| {
            codec.join(left, right, &mut scratch);
        });
        self.scratch = scratch;
        joined
    }

    /// Moves entries between two nodes.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn shift(
        &mut self,
        log: &mut Ground<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        shift: node::Shift,
    ) -> Result<()> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let codec = self.at(level);
        let shifted = self.pair_mut(log, pair, level, Cause::Update).map(|(left, right)| {
            codec.apply_shift(left, right, shift, &mut scratch);
        });
        self.scratch = scratch;
        shifted
    }
}
