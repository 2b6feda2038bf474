//! Emptying buffers (figure 3(c), section 2.3).
//!
//! A buffer is read once and sorted ([`sort_merge`](super::sort_merge)), and its entries go down in
//! the order of their keys ([`distribution`](super::distribution)): to the buffers at the next
//! buffered level, or to the leaves. What is then too large is listed, and emptied one after the
//! other. On a disk pages of fragments are given back as they are read.
//!
//! # Invariants
//! - A buffer counts as empty before its first entry goes down. What of its chain is not in memory
//!   stays on flash until the emptying is over: nothing is erased meanwhile.
//! - When a buffer is emptied because it is too large, none above it has more than U bytes, or is
//!   listed behind it.

use alloc::vec::Vec;

use device::Cause;
use store::node;

use super::LaTree;
use super::cost::{Emptied, Subtree, TreeShape};
use super::counters::NodeReads;
use super::layout::NodeId;
use super::nodes::damaged;
use super::policy::Estimate;
use index::Result;

impl LaTree<'_> {
    /// H and F.
    pub(super) fn tree_shape(&self) -> TreeShape {
        TreeShape {
            height: u32::from(self.height),
            fanout: self.nodes.codecs.leaf.capacity(self.plan.sizes.entry_least, 4) as u32,
        }
    }

    /// What buffer `number` costs.
    pub(super) fn estimate(&mut self, number: u32) -> Estimate {
        self.estimator.rates.stored = self.buffers.stored;
        self.estimator.estimate(&self.buffers.subtree(number), self.tree_shape())
    }

    /// Empties every buffer that is listed, and those that get too large by that, as far as there
    /// is room.
    pub(super) fn empty_listed(&mut self, cause: Cause) -> Result<()> {
        while self.may_step() && self.make_room_for_listed()? {
            let Some(number) = self.buffers.take_listed() else {
                break;
            };
            self.empty(number, cause)?;
        }
        Ok(())
    }

    /// Empties all buffers, those of inner subtrees first, as far as there is room.
    pub(super) fn empty_all(&mut self, cause: Cause) -> Result<()> {
        for is_leaf in [false, true] {
            // What goes down may come to a buffer whose turn was before, once a level at most.
            for _ in 0..self.height {
                self.empty_each(is_leaf, cause)?;
                if self.buffers.pending[usize::from(is_leaf)] == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Empties the buffers of leaf subtrees, or the others, in the order of their numbers.
    fn empty_each(&mut self, is_leaf: bool, cause: Cause) -> Result<()> {
        let mut number = 0;
        while (number as usize) < self.buffers.records.len() && self.may_step() {
            let record = self.buffers.record(number);
            if record.entries() > 0 && record.is_leaf() == is_leaf {
                self.buffers.list(number);
                self.empty_listed(cause)?;
            }
            number += 1;
        }
        Ok(())
    }

    /// Empties buffer `number`.
    pub(super) fn empty(&mut self, number: u32, cause: Cause) -> Result<()> {
        let record = self.buffers.record(number);
        if record.entries() == 0 {
            return Ok(());
        }
        self.generation.is_vain = false;
        let id = NodeId::of_buffer(number);
        let (read, rebalanced) = (self.nodes.reads, self.counters.rebalanced);
        let level = self.find_buffer(id, cause)?;
        let before = self.buffers.subtree(number);
        let is_root = self.root == id;
        self.counters.emptying_estimated += self.estimate(number).emptying;
        let printed = self.estimator.printed(&before, self.tree_shape());
        self.counters.emptying_printed += printed.emptying;
        self.take_off(number, cause)?;
        self.top.level = level;
        self.top.restructured = false;
        self.top.bounds.copy_from(&self.bounds);
        let mut leaves_changed = 0;
        match self.buffers_below(level) {
            Some(below) => self.distribute_to_buffers(below, None, cause)?,
            None => leaves_changed = self.distribute_to_leaves(cause)?,
        }
        self.in_flight.part = None;
        self.rebalance_lean(cause)?;
        self.lower_root(cause)?;
        self.counters.leaves_changed += u64::from(leaves_changed);
        let emptied = Emptied {
            before,
            nodes_read: self.sixteenths_read(&read),
            leaves_changed,
            rebalanced: (self.counters.rebalanced - rebalanced) as u32,
        };
        if self.note_emptied(&before, is_root) {
            self.estimator.rates.observe(&emptied);
        }
        let pages = self.nodes.programmed - self.nodes.observed;
        self.nodes.observed = self.nodes.programmed;
        if self.log.is_disk() {
            // A node that is changed is written, later.
            return Ok(());
        }
        self.estimator.rates.written.add(
            pages * u64::from(self.plan.pages.nodes_per_page()),
            u64::from(emptied.leaves_changed + emptied.rebalanced),
        );
        Ok(())
    }

    /// What reading nodes cost since `before`, in sixteenths of reading a whole node.
    fn sixteenths_read(&self, before: &NodeReads) -> u32 {
        let nodes = self.nodes.reads.all() - before.all();
        let bytes = self.nodes.reads.bytes - before.bytes;
        let saved = nodes * u64::from(self.plan.pages.node_bytes()) - bytes;
        self.estimator.units.sixteenths(nodes, saved)
    }

    /// Counts what went down of the buffer that was emptied; false if that was a part only, from
    /// which no rates can be learned.
    fn note_emptied(&mut self, before: &Subtree, is_root: bool) -> bool {
        let back = core::mem::take(&mut self.in_flight.put_back);
        let leaf = usize::from(before.leaves > 0);
        let bytes = before.bytes.saturating_sub(back.bytes);
        self.counters.emptied[leaf] += 1;
        let entries = u64::from(before.entries.saturating_sub(back.entries));
        self.counters.emptied_entries[leaf] += entries;
        if is_root {
            self.counters.emptied_at_root += 1;
            self.counters.emptied_entries_at_root += entries;
        }
        self.counters.emptied_bytes[leaf] += u64::from(bytes);
        if leaf > 0 {
            self.note_gone_down(bytes);
        }
        back.entries == 0
    }

    /// Walks the way to node `id`, which has a buffer; returns its level.
    pub(super) fn find_buffer(&mut self, id: NodeId, cause: Cause) -> Result<u8> {
        let codecs = [self.nodes.codecs.leaf, self.nodes.codecs.inner];
        let node = self.nodes.any(&mut self.log, id, cause)?;
        let level = node::level(node);
        let mut key = core::mem::take(&mut self.in_flight.key);
        if node::count(node) > 0 {
            codecs[usize::from(level > 0)].key(node, 0).copy_to(&mut key);
        } else {
            key.clear();
            self.any_key(id, &mut key)?;
        }
        let found = match level {
            0 if key.is_empty() => self.find_empty_leaf(id, &mut key, cause),
            level if level < self.height => self.descend(level, &key, cause),
            _ => Ok(id),
        };
        self.in_flight.key = key;
        if found? != id || level >= self.height {
            return Err(damaged(self.nodes.page_of(id), "the tree does not lead to this node"));
        }
        Ok(level)
    }

    /// Goes from leaf to leaf until `id`, of which no key is known.
    fn find_empty_leaf(&mut self, id: NodeId, key: &mut Vec<u8>, cause: Cause) -> Result<NodeId> {
        key.extend_from_slice(&self.lowest_key());
        loop {
            let found = self.descend(0, key, cause)?;
            if found == id || !self.pass_leaf(key)? {
                return Ok(found);
            }
        }
    }

    /// Any key of the buffer of `id`, an empty leaf: no other has its entries.
    fn any_key(&mut self, id: NodeId, key: &mut Vec<u8>) -> Result<()> {
        let Some(number) = id.buffer() else {
            return Ok(());
        };
        self.buffers.scan(&mut self.log, number, &mut |entry, _| {
            key.clear();
            key.extend_from_slice(entry.key);
        })
    }
}
