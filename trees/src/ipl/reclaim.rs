//! Merging: the nodes of a block and their deltas go to a fresh one.
//!
//! What is read for it is the page of each node that is not in the cache and its records, once.

use device::{Block, Cause};

use super::cache::Unsaved;
use super::log_store::{LogStore, no_node};
use index::{Error, Result};

impl LogStore<'_> {
    /// Merges the nodes of `block` and their deltas into a fresh block. Where free blocks are rare,
    /// the nodes of the emptiest other block go with them.
    pub(super) fn merge(&mut self, block: Block, cause: Cause) -> Result<()> {
        let room = self.shape.node_pages() - self.table.live_in(block);
        let beside = self.table.emptiest(Some(block), room).filter(|_| self.is_short());
        self.merge_both(block, beside, cause)
    }

    fn merge_both(&mut self, block: Block, beside: Option<Block>, cause: Cause) -> Result<()> {
        loop {
            let target = self.log.allocate_block(cause)?;
            match self.move_nodes([Some(block), beside], target, cause) {
                Ok(()) => {
                    for left in [Some(block), beside].into_iter().flatten() {
                        self.drop_if_empty(left);
                    }
                    return self.erase_if_possible();
                }
                Err(Error::Store(error)) if error.is_refusal() => self.log.release(target),
                Err(error) => {
                    self.log.release(target);
                    return Err(error);
                }
            }
        }
    }

    /// True if `block` may be merged: what that takes is free again at once, or kept for nothing.
    pub(super) fn may_merge(&self, block: Block) -> bool {
        let is_free_again = self.log.erases_at_once() || self.table.is_new(block);
        is_free_again || self.log.free_blocks() > self.kept
    }

    /// True if free blocks are so rare that nodes should move together.
    pub(super) fn is_short(&self) -> bool {
        self.log.free_blocks() < self.log.good_blocks() / 4
    }

    fn move_nodes(&mut self, from: [Option<Block>; 2], target: Block, cause: Cause) -> Result<()> {
        self.moved.clear();
        for block in from.into_iter().flatten() {
            let room = usize::from(self.shape.node_pages()) - self.moved.len();
            self.moved.extend(self.table.nodes_in(block).take(room));
        }
        for number in 0..self.moved.len() {
            let id = self.moved[number];
            match (self.cache.find(id), self.table.place(id)) {
                (Some(frame), _) => device::copy(&mut self.image, self.cache.node(frame)),
                (None, Some(place)) => self.read_node(place, cause)?,
                (None, None) => return Err(no_node(id).into()),
            }
            self.program_image(target, number as u16, cause)?;
        }
        // Only now, for a program may have been refused.
        self.table.begin_block(target);
        for number in 0..self.moved.len() {
            let id = self.moved[number];
            if let Some(page) = self.table.state(target).take_node(&self.shape) {
                self.table.put(id, target, page);
            }
            if let Some(frame) = self.cache.find(id) {
                self.cache.renewed(frame, Unsaved::Nothing);
            }
        }
        self.drop_if_empty(target);
        Ok(())
    }

    /// A block in which no node lives is free as soon as no checkpoint needs it.
    pub(super) fn drop_if_empty(&mut self, block: Block) {
        if self.table.live_in(block) == 0 {
            if self.table.end_block(block) {
                self.log.give_back(block);
            } else {
                self.log.release(block);
            }
        }
    }

    /// Makes room ahead: two blocks become one. Where no two fit one, and `in_part` says so, one
    /// is filled up with nodes of the emptiest other, as long as fewer blocks would do for all.
    pub(super) fn compact(&mut self, in_part: bool, cause: Cause) -> Result<bool> {
        let nodes = self.shape.node_pages();
        let Some(first) = self.table.emptiest(None, nodes - 1) else {
            return Ok(false);
        };
        let is_spare = in_part && self.has_block_to_spare();
        let room = if is_spare { nodes - 1 } else { nodes - self.table.live_in(first) };
        let Some(beside) = self.table.emptiest(Some(first), room) else {
            return Ok(false);
        };
        self.merge_both(beside, Some(first), cause)?;
        Ok(true)
    }

    /// True if fewer blocks would do for all nodes that stand in some.
    pub(super) fn has_block_to_spare(&self) -> bool {
        let written = self.table.live().saturating_sub(self.cache.unwritten());
        written.div_ceil(self.shape.node_pages().into()) < self.table.used()
    }

    /// Where nothing lasts, blocks that were left are free at once.
    pub(super) fn erase_if_possible(&mut self) -> Result<()> {
        if self.log.erases_at_once() && self.log.released_blocks() > 0 {
            self.log.erase_released(Cause::Reclamation)?;
        }
        Ok(())
    }
}
