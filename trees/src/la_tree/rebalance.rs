//! Splitting nodes, and borrowing and merging after deletes, with what waits in their buffers.
//!
//! Nodes split and merge with empty buffers: what is in a buffer is taken into memory before, and
//! comes to the buffers of the nodes that come of it ([`LaTree::take_aside`]). Memory holds one
//! buffer; so what is going down is put back before, and is emptied again behind that.
//!
//! Nodes are at least a quarter full (section 3), but for those that have no neighbour below the
//! same parent. One that is not takes entries from a neighbour, so that both have as many, and is
//! merged with it if that has too few (section 2.1). Where that begins, the paper does not say; its
//! bound of 8 / F rebalancing operations a buffered entry (section 3) does: after each, F / 8
//! updates and more have to pass before the next. Neighbours that have 5 / 6 of a node together are
//! as far from their bounds either way: exchanging leaves both F / 6 above a quarter, merging F / 6
//! below the whole. With less they are merged, with more they exchange entries. (A leaf that many
//! entries split may be full from the start, or one of its halves just a quarter full: that is
//! paid for by the half of a leaf that follows.)
//!
//! Leaves are rebalanced as soon as what goes down has passed them, and so are the nodes between
//! them and the next buffer. Nodes at the level of that buffer, and above it, have neighbours whose
//! buffers hold entries: they wait until what is going down has arrived, or was put back
//! ([`LaTree::rebalance_lean`]). Then the buffer of the right one of two nodes that are merged, or
//! of the one that gives away children, is taken. Where a full chip has no room for that, the nodes
//! stay as they are.

use alloc::vec::Vec;

use device::Cause;
use store::node::Shift;

use super::LaTree;
use super::bare_tree::{Halves, Neighbours, QUARTER};
use super::empty_buffer::PutBack;
use super::layout::NodeId;
use index::Result;

/// A node that may have too few entries, and waits until what goes down has arrived.
#[derive(Debug)]
pub(super) struct Lean {
    level: Option<u8>,
    /// Any key of it.
    key: Vec<u8>,
}

impl Lean {
    pub(super) fn new(key_bytes: usize) -> Self {
        Lean { level: None, key: Vec::with_capacity(key_bytes) }
    }

    /// Nothing waits in a tree that was just read.
    pub(super) const fn forget(&mut self) {
        self.level = None;
    }
}

impl LaTree<'_> {
    /// Splits the node at `level` of the present way, or, where its parent has no room for one more
    /// child, a node above it. Then the way is to be walked again.
    pub(super) fn split(&mut self, level: u8, halves: Halves, cause: Cause) -> Result<()> {
        if level + 1 == self.bare.height {
            self.grow(cause)?;
        }
        let next = &self.emptying.entry.key;
        if let Some(above) = self.bare.separate(level, halves, next, cause)? {
            return self.split(level + 1, above, cause);
        }
        let id = self.bare.path.at(level).id;
        if id.buffer().is_none_or(|number| self.buffers.record(number).entries() == 0) {
            return self.split_node(level, halves.at, cause);
        }
        let single = self.emptying.single();
        if single.is_none() {
            self.put_back(true, cause)?;
        }
        self.take_aside(id, cause)?;
        self.counters.buffers_split += 1;
        self.split_node(level, halves.at, cause)?;
        self.hand_back(level, None, cause)?;
        if let Some(single) = single {
            self.emptying.resume(single);
        }
        Ok(())
    }

    /// Splits a node without entries in its buffer, whose parent has room.
    fn split_node(&mut self, level: u8, at: usize, cause: Cause) -> Result<()> {
        let id = self.bare.path.at(level).id;
        let right = self.bare.split_node(level, at)?;
        self.counters.rebalanced += 2;
        self.counters.nodes_split += 1;
        self.top.restructured |= level >= self.top.level;
        let Some(number) = id.buffer() else {
            return self.count_nodes(level, 1);
        };
        let is_leaf = self.buffers.record(number).is_leaf();
        self.begin_buffer(right, is_leaf)?;
        self.recount(id, level, cause)?;
        self.recount(right, level, cause)
    }

    /// Gives node `id` an empty buffer, if it is one of those that have one.
    pub(super) fn begin_buffer(&mut self, id: NodeId, is_leaf: bool) -> Result<()> {
        match id.buffer() {
            Some(number) => self.buffers.begin(&self.bare.log, number, is_leaf),
            None => Ok(()),
        }
    }

    /// Adds `nodes` nodes at `level` to the subtree of the present way.
    pub(super) fn count_nodes(&mut self, level: u8, nodes: i32) -> Result<()> {
        let Some(number) = self.bare.subtree_root(level) else {
            return Err(self.bare.damage_of(self.bare.root, "the root has no buffer"));
        };
        if let Some(record) = self.buffers.record_mut(number) {
            record.add_nodes(nodes);
        }
        Ok(())
    }

    /// Counts S and L of the subtree of node `id`, if it has a buffer, anew.
    fn recount(&mut self, id: NodeId, level: u8, cause: Cause) -> Result<()> {
        let Some(number) = id.buffer() else {
            return Ok(());
        };
        let (nodes, leaves) = self.bare.count_subtree(id, level, cause)?;
        let record = self.buffers.record(number);
        self.buffers.set_record(number, record.above(nodes, leaves > 0));
        Ok(())
    }

    /// Gives the root a parent.
    pub(super) fn grow(&mut self, cause: Cause) -> Result<()> {
        if self.bare.grow()? {
            self.begin_buffer(self.bare.root, false)?;
        }
        self.top.restructured = true;
        self.recount(self.bare.root, self.bare.height - 1, cause)
    }

    /// Makes the root's only child the root, as long as it has only one. If both have a buffer, the
    /// root's is emptied before.
    pub(super) fn lower_root(&mut self, cause: Cause) -> Result<()> {
        while let Some(child) = self.bare.only_child(cause)? {
            if let (Some(number), Some(_)) = (self.bare.root.buffer(), child.buffer()) {
                if self.buffers.record(number).entries() > 0 {
                    self.buffers.list(number);
                    break;
                }
                self.buffers.end(number);
            }
            self.bare.lower_root(child)?;
            self.top.restructured = true;
            self.recount(self.bare.root, self.bare.height - 1, cause)?;
        }
        Ok(())
    }

    /// Rebalances the leaf of the present way, and the nodes above it as far as they have no
    /// buffers.
    pub(super) fn rebalance_leaf(&mut self, cause: Cause) -> Result<()> {
        let mut level = 0;
        while level < self.top.level {
            if !self.rebalance(level, cause)? {
                return Ok(());
            }
            level += 1;
        }
        if self.is_lean(level, cause)? {
            self.note_lean(level);
        }
        Ok(())
    }

    /// The node at `level` of the present way may have too few entries.
    pub(super) fn note_lean(&mut self, level: u8) {
        self.lean.level = Some(level);
        self.lean.key.clear();
        self.lean.key.extend_from_slice(&self.bare.bounds.lower);
    }

    /// True if a node waits that what goes down has passed.
    pub(super) fn is_lean_behind(&self) -> bool {
        let has_passed =
            self.top.restructured || !self.top.bounds.contains(&self.emptying.entry.key);
        self.lean.level.is_some() && has_passed
    }

    /// Rebalances the node that waits, if one does, and those above it. Nothing is going down.
    pub(super) fn rebalance_lean(&mut self, cause: Cause) -> Result<()> {
        let Some(mut level) = self.lean.level.take() else {
            return Ok(());
        };
        let key = core::mem::take(&mut self.lean.key);
        let mut merged = Ok(true);
        while level + 1 < self.bare.height && matches!(merged, Ok(true)) {
            merged =
                self.bare.descend(level, &key, cause).and_then(|_| self.rebalance(level, cause));
            level += 1;
        }
        self.lean.key = key;
        merged.map(drop)
    }

    /// Fills up the node at `level` of the present way, if it is less than a quarter full: takes
    /// entries from a neighbour or, if that has too few, merges it with that. Then it returns true:
    /// their parent may have too few.
    fn rebalance(&mut self, level: u8, cause: Cause) -> Result<bool> {
        if !self.is_lean(level, cause)? {
            return Ok(false);
        }
        let Some(pair) = self.bare.neighbours(level, cause)? else {
            return Ok(false);
        };
        let (fits_one, shift) = self.bare.joint(pair, cause)?;
        if let Some(shift) = shift
            && self.borrow(pair, shift, cause)?
        {
            return Ok(false);
        }
        if fits_one { self.join(pair, cause) } else { Ok(false) }
    }

    /// Merges the leaf of the present way with its left neighbour, if both fit one.
    pub(super) fn join_with_left(&mut self, cause: Cause) -> Result<bool> {
        if self.bare.height < 2 || self.bare.path.at(1).place() == 0 {
            return Ok(false);
        }
        match self.bare.neighbours(0, cause)? {
            Some(pair) if self.bare.joint(pair, cause)?.0 => self.join(pair, cause),
            _ => Ok(false),
        }
    }

    /// True if the entries in the buffer of node `id` may come to other buffers.
    fn may_take_aside(&self, id: NodeId) -> bool {
        self.bare.log.is_disk()
            || id.buffer().is_none_or(|number| {
                self.census().has_room_to_rebuffer(&self.buffers.record(number))
            })
    }

    /// Merges two neighbours, and what their buffers hold; false if there is no room for that.
    fn join(&mut self, pair: Neighbours, cause: Cause) -> Result<bool> {
        let level = pair.level;
        if !self.may_take_aside(pair.right) {
            return Ok(false);
        }
        let taken = self.take_aside(pair.right, cause)?;
        self.bare.join(pair)?;
        self.counters.nodes_merged += 1;
        self.counters.rebalanced += 2;
        self.top.restructured |= level >= self.top.level;
        match (pair.left.buffer(), pair.right.buffer()) {
            (Some(left), Some(right)) => {
                if self.buffers.is_listed(right) {
                    self.buffers.list(left);
                }
                self.buffers.end(right);
                self.recount(pair.left, level, cause)?;
            }
            _ => self.count_nodes(level, -1)?,
        }
        if taken {
            self.counters.buffers_merged += 1;
            self.hand_back(level, None, cause)?;
        }
        Ok(true)
    }

    /// Moves entries between two neighbours; false if the parent has no room for the new separator,
    /// or buffers have none for what they would exchange.
    fn borrow(&mut self, pair: Neighbours, shift: Shift, cause: Cause) -> Result<bool> {
        let giver = self.bare.separate_pair(pair, shift, cause)?;
        if !self.may_take_aside(giver) {
            return Ok(false);
        }
        let taken = self.take_aside(giver, cause)?;
        let is_shifted = self.bare.shift(pair, shift, cause)?;
        if is_shifted {
            self.counters.rebalanced += 2;
            self.counters.nodes_filled_up += 1;
            self.top.restructured |= pair.level >= self.top.level;
            self.recount(pair.left, pair.level, cause)?;
            self.recount(pair.right, pair.level, cause)?;
        }
        if taken {
            self.hand_back(pair.level, None, cause)?;
        }
        Ok(is_shifted)
    }

    /// True if the node at `level` of the present way is less than a quarter full.
    fn is_lean(&mut self, level: u8, cause: Cause) -> Result<bool> {
        let node = self.bare.node_at(self.bare.path.at(level).id, level, cause)?;
        Ok(!node.codec.is_filled(node.bytes, QUARTER))
    }

    /// Takes what the buffer of node `id` holds, if it has one, into memory, before the node is
    /// split, or merged with a neighbour; false if it holds nothing.
    pub(super) fn take_aside(&mut self, id: NodeId, cause: Cause) -> Result<bool> {
        let Some(number) = id.buffer().filter(|number| self.buffers.record(*number).entries() > 0)
        else {
            return Ok(false);
        };
        let before = self.bare.log.time_ns();
        self.find_buffer(id, cause)?;
        self.take_off(number, cause)?;
        self.counters.buffers_rebalanced_ns += self.bare.log.time_ns() - before;
        Ok(true)
    }

    /// Appends what was taken aside to the buffers at `level` where it belongs now, but for the
    /// entry of the key `without`.
    pub(super) fn hand_back(
        &mut self,
        level: u8,
        without: Option<&[u8]>,
        cause: Cause,
    ) -> Result<()> {
        let before = self.bare.log.time_ns();
        self.top.begin(level);
        self.distribute_to_buffers(level, without, cause)?;
        self.top.restructured = true;
        self.counters.buffers_rebalanced_ns += self.bare.log.time_ns() - before;
        Ok(())
    }

    /// Puts what has not gone down yet, the entry on its way first, back into the buffers of leaf
    /// subtrees, which are listed to be emptied again if this `is_short`.
    pub(super) fn put_back(&mut self, is_short: bool, cause: Cause) -> Result<()> {
        let level = self.bare.leaf_subtree_level();
        self.top.begin(level);
        let before = (self.buffers.pending, self.buffers.pending_bytes);
        let mut child = None;
        loop {
            child = Some(self.hand_to_buffer(child, level, cause)?);
            if let Some(number) = child.filter(|_| is_short) {
                self.buffers.list(number);
            }
            if !self.next_going_down(cause)? {
                break;
            }
        }
        self.batch_came(child);
        let entries: u64 = self.buffers.pending.iter().sum();
        self.put_back = PutBack {
            entries: entries.saturating_sub(before.0.iter().sum()) as u32,
            bytes: self.buffers.pending_bytes.saturating_sub(before.1) as u32,
        };
        Ok(())
    }
}
