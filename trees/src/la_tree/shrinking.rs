//! Borrowing and merging after deletes.
//!
//! Nodes are at least a quarter full (section 3), but for those that have no neighbour below the
//! same parent. One that is not takes entries from a neighbour, so that both have as many, and is
//! merged with it if that has too few (section 2.1). Where that begins, the paper does not say; its
//! bound of 8 / F rebalancing operations a buffered entry (section 3) does: after each, F / 8
//! updates and more have to pass before the next. Neighbours that have 5 / 6 of a node together are
//! as far from their bounds either way: exchanging leaves both F / 6 above a quarter, merging F / 6
//! below the whole. With less they are merged, with more they exchange entries. (A leaf that many
//! entries split may be full from the start, or its other half just a quarter full: that is paid
//! for by the half of a leaf that follows.)
//!
//! Of two nodes that are merged, one may have a buffer with entries: it becomes the buffer of both.
//! Where both have entries, the smaller buffer is emptied before, as soon as what is going down has
//! arrived; then the nodes are merged, and the larger buffer stays. So is a buffer that shares its
//! chain, for it must not grow into keys that were split from it, and so are both where nodes
//! exchange children, for entries would have to change buffers with them. Of two merged nodes the
//! right one's entries in the pool are written before, with others in a page; no memory is taken.

use alloc::vec::Vec;

use device::Cause;
use store::node::{self, Codec, Shift};

use super::LaTree;
use super::buffer_pool::BufferId;
use super::growth::MISPLACED;
use super::layout::{NodeId, Owner};
use super::nodes::damaged;
use super::table::BufferRecord;
use index::Result;

/// A node with less than this percentage of its room in use is underfull.
pub(super) const QUARTER: u8 = 25;

/// Two neighbours below one parent.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    level: u8,
    parent: NodeId,
    left: NodeId,
    right: NodeId,
    /// The place of the right one in the parent.
    right_place: usize,
}

/// Nodes that are to be merged with a neighbour, or to exchange entries with one, when buffers that
/// are in the way are empty. They are marked in their buffers' records; the way to the last one is
/// known.
#[derive(Debug)]
pub(super) struct PutOff {
    level: Option<u8>,
    /// Any key of the last one.
    key: Vec<u8>,
    /// True if records may be marked.
    is_any_marked: bool,
}

impl PutOff {
    pub(super) fn new(key_bytes: usize) -> Self {
        PutOff { level: None, key: Vec::with_capacity(key_bytes), is_any_marked: false }
    }

    /// Nothing is put off in a tree that was just read.
    pub(super) const fn forget(&mut self) {
        (self.level, self.is_any_marked) = (None, false);
    }
}

impl LaTree<'_> {
    /// Fills up the node at `level` of the present way, if it is less than a quarter full: takes
    /// entries from a neighbour or, if that has too few, merges it with that.
    pub(super) fn rebalance(&mut self, level: u8, cause: Cause) -> Result<()> {
        if level + 1 >= self.height {
            return self.lower_root(cause);
        }
        let id = self.path.at(level).id;
        let codec = self.nodes.at(level);
        let node = self.nodes.node(&mut self.log, id, level, cause)?;
        if codec.is_filled(node, QUARTER) {
            return Ok(());
        }
        let Some(pair) = self.neighbours(level, cause)? else {
            return Ok(());
        };
        self.check_order(pair, cause)?;
        let (left, right) =
            self.nodes.pair(&mut self.log, (pair.left, pair.right), level, cause)?;
        let fits_one = codec.joint_bytes(left, right) <= codec.node_bytes();
        let shift =
            codec.shift(left, right).filter(|_| !fits_one || Self::is_enough(&codec, left, right));
        if let Some(shift) = shift
            && self.borrow(pair, shift, cause)?
        {
            return Ok(());
        }
        if fits_one { self.join(pair, cause) } else { Ok(()) }
    }

    /// True if two neighbours of `codec` have enough together to stay two nodes.
    fn is_enough(codec: &Codec, left: &[u8], right: &[u8]) -> bool {
        let room = codec.node_bytes() - node::HEADER_BYTES;
        (codec.joint_bytes(left, right) - node::HEADER_BYTES) * 6 > room * 5
    }

    /// Merges the leaf of the present way with its left neighbour, if both fit one.
    pub(super) fn join_with_left(&mut self, cause: Cause) -> Result<bool> {
        if self.height < 2 || self.path.at(1).place == 0 {
            return Ok(false);
        }
        let Some(pair) = self.neighbours(0, cause)? else {
            return Ok(false);
        };
        let codec = self.nodes.leaf;
        let (left, right) = self.nodes.pair(&mut self.log, (pair.left, pair.right), 0, cause)?;
        if codec.joint_bytes(left, right) > codec.node_bytes() {
            return Ok(false);
        }
        self.check_order(pair, cause)?;
        self.join(pair, cause)?;
        Ok(true)
    }

    /// The node at `level` of the present way with its left neighbour, or else its right one.
    fn neighbours(&mut self, level: u8, cause: Cause) -> Result<Option<Neighbours>> {
        let parent = self.path.at(level + 1);
        let node = self.nodes.node(&mut self.log, parent.id, level + 1, cause)?;
        let right_place = parent.place.max(1);
        if right_place >= node::count(node) {
            return Ok(None);
        }
        let left = self.child(parent.id, level + 1, right_place - 1, cause)?;
        let right = self.child(parent.id, level + 1, right_place, cause)?;
        Ok(Some(Neighbours { level, parent: parent.id, left, right, right_place }))
    }

    /// Refuses neighbours whose keys are mixed: they are damaged, and what is made of both would be
    /// no node.
    fn check_order(&mut self, pair: Neighbours, cause: Cause) -> Result<()> {
        let codec = self.nodes.at(pair.level);
        let pages = (pair.left, pair.right);
        let (left, right) = self.nodes.pair(&mut self.log, pages, pair.level, cause)?;
        let Some(last) = node::count(left).checked_sub(1).filter(|_| node::count(right) > 0) else {
            return Ok(());
        };
        codec.key(left, last).copy_to(&mut self.previous);
        if codec.key(right, 0).compare(&self.previous).is_le() {
            let what = "its keys are not above those of its left neighbour";
            return Err(damaged(self.nodes.page_of(pair.right), what));
        }
        Ok(())
    }

    /// The buffers of two neighbours, if they have some.
    fn buffers_of(&self, pair: &Neighbours) -> Option<[(u32, BufferRecord); 2]> {
        let left = pair.left.buffer()?;
        let right = pair.right.buffer()?;
        Some([(left, self.buffers.record(left)), (right, self.buffers.record(right))])
    }

    /// Puts off what is done with two neighbours at `level` of the present way, until the buffers
    /// `in_the_way` are emptied; false if none of them has entries.
    fn put_off(&mut self, level: u8, in_the_way: [Option<u32>; 2]) -> bool {
        let mut is_put_off = false;
        for number in in_the_way.into_iter().flatten() {
            if self.buffers.record(number).entries() > 0 {
                self.buffers.list(number);
                is_put_off = true;
            }
        }
        if is_put_off {
            self.counters.merges_put_off += 1;
            self.set_mark(self.path.at(level).id, true);
            self.put_off.level = Some(level);
            self.put_off.key.clear();
            self.put_off.key.extend_from_slice(&self.bounds.lower);
        }
        is_put_off
    }

    /// Goes on with one of the nodes that were put off, whose buffers were emptied meanwhile; false
    /// if there are none. Then there may be more buffers to be emptied.
    pub(super) fn rebalance_put_off(&mut self, cause: Cause) -> Result<bool> {
        let level = match self.put_off.level.take() {
            Some(level) if level < self.height => {
                let key = core::mem::take(&mut self.put_off.key);
                let id = self.descend(level, &key, cause);
                self.put_off.key = key;
                self.set_mark(id?, false);
                level
            }
            Some(_) => return Ok(true),
            None => match self.take_marked() {
                Some(number) => self.find_buffer(NodeId::of_buffer(number), cause)?,
                None => return Ok(false),
            },
        };
        let merged = self.counters.nodes_merged;
        self.rebalance(level, cause)?;
        self.counters.merged_after_emptying += u64::from(self.counters.nodes_merged > merged);
        Ok(true)
    }

    /// Marks node `id`, which has a buffer, or marks it no more. The turn of marked ones comes when
    /// no buffer is listed.
    fn set_mark(&mut self, id: NodeId, is_lean: bool) {
        if let Some(record) = id.buffer().and_then(|number| self.buffers.record_mut(number)) {
            record.set_lean(is_lean);
            self.put_off.is_any_marked |= is_lean;
        }
    }

    /// The buffer of a node that is marked, and is no more.
    fn take_marked(&mut self) -> Option<u32> {
        if !self.put_off.is_any_marked {
            return None;
        }
        let number = self.buffers.records.iter().position(BufferRecord::is_lean);
        self.put_off.is_any_marked = number.is_some();
        let number = number? as u32;
        self.buffers.record_mut(number)?.set_lean(false);
        Some(number)
    }

    /// Merges two neighbours and, if they have buffers, these; where both hold entries, that is put
    /// off until one of them is empty.
    fn join(&mut self, pair: Neighbours, cause: Cause) -> Result<()> {
        let buffers = self.buffers_of(&pair);
        if let Some([(left, left_record), (right, right_record)]) = buffers {
            let both = left_record.entries() > 0 && right_record.entries() > 0;
            let left_is_smaller = left_record.bytes <= right_record.bytes;
            let in_the_way = [
                (left_record.is_shared() || both && left_is_smaller).then_some(left),
                (right_record.is_shared() || both && !left_is_smaller).then_some(right),
            ];
            if self.put_off(pair.level, in_the_way) {
                return Ok(());
            }
            if self.buffers.is_listed(right) {
                self.buffers.list(left);
            }
            self.evict_to_rebalance(right, cause)?;
        }
        self.nodes.join(&mut self.log, (pair.left, pair.right), pair.level)?;
        if let Some([(left, left_record), (right, _)]) = buffers {
            let moved = self.buffers.record(right);
            if moved.entries() > 0 {
                self.counters.buffers_merged += 1;
                let above = moved.above(left_record.nodes(), left_record.is_leaf());
                self.buffers.set_record(left, above);
            }
            debug_assert_eq!(self.buffers.pool.held(BufferId(right)).entries, 0);
            self.buffers.set_record(right, BufferRecord::new(Owner(0), 1, false));
            self.buffers.forget_registers(right);
        }
        self.nodes.remove(&mut self.log, (pair.parent, pair.level + 1), pair.right_place)?;
        self.nodes.free(&mut self.log, pair.right)?;
        let nodes = &mut self.room.levels[usize::from(pair.level)];
        *nodes = nodes.saturating_sub(1);
        self.counters.nodes_merged += 1;
        self.counters.rebalanced += 2;
        self.top.restructured |= pair.level >= self.top.level;
        if buffers.is_some() {
            self.recount(pair.left, pair.level, cause)?;
            // Both were underfull, where the other one had waited.
            let codec = self.nodes.at(pair.level);
            let node = self.nodes.node(&mut self.log, pair.left, pair.level, cause)?;
            let is_lean = !codec.is_filled(node, QUARTER);
            self.set_mark(pair.left, is_lean);
        } else {
            self.count_nodes(pair.level, -1)?;
        }
        self.rebalance(pair.level + 1, cause)
    }

    /// Moves entries between two neighbours, now or when their buffers are emptied; false if the
    /// parent has no room for the new separator.
    fn borrow(&mut self, pair: Neighbours, shift: Shift, cause: Cause) -> Result<bool> {
        let buffers = self.buffers_of(&pair);
        if let Some([(left, _), (right, _)]) = buffers
            && self.put_off(pair.level, [Some(left), Some(right)])
        {
            return Ok(true);
        }
        let codec = self.nodes.at(pair.level);
        let (left, right) =
            self.nodes.pair(&mut self.log, (pair.left, pair.right), pair.level, cause)?;
        let (before, first) = match shift {
            Shift::Right(place) => (codec.key(left, place - 1), codec.key(left, place)),
            Shift::Left(moved) => (codec.key(right, moved - 1), codec.key(right, moved)),
        };
        first.copy_to(&mut self.separator);
        if pair.level == 0 {
            super::growth::shorten(&before, &mut self.separator, self.plan.shape.key);
        }
        if !self.rename(pair, cause)? {
            return Ok(false);
        }
        self.nodes.shift(&mut self.log, (pair.left, pair.right), pair.level, shift)?;
        self.counters.rebalanced += 2;
        self.top.restructured |= pair.level >= self.top.level;
        if buffers.is_some() {
            self.recount(pair.left, pair.level, cause)?;
            self.recount(pair.right, pair.level, cause)?;
        }
        self.counters.nodes_filled_up += 1;
        Ok(true)
    }

    /// Makes `self.separator` the key of the right neighbour in its parent; false, and nothing
    /// changed, if there is no room for it.
    fn rename(&mut self, pair: Neighbours, cause: Cause) -> Result<bool> {
        let codec = self.nodes.inner;
        let (parent, place) = ((pair.parent, pair.level + 1), pair.right_place);
        let node = self.nodes.node(&mut self.log, parent.0, parent.1, cause)?;
        codec.key(node, place).copy_to(&mut self.previous);
        // It takes the place of the one that is there.
        let is_at_place = match codec.search(node, &self.separator) {
            Ok(found) => found == place,
            Err(before) => before == place || before == place + 1,
        };
        if !is_at_place {
            return Err(damaged(self.nodes.page_of(pair.right), MISPLACED));
        }
        self.nodes.remove(&mut self.log, parent, place)?;
        let value = pair.right.0.to_le_bytes();
        let entry = (self.separator.as_slice(), node::Stored::inline(&value));
        if self.nodes.insert(&mut self.log, parent, place, entry)? {
            return Ok(true);
        }
        let entry = (self.previous.as_slice(), node::Stored::inline(&value));
        if !self.nodes.insert(&mut self.log, parent, place, entry)? {
            return Err(damaged(self.nodes.page_of(parent.0), "what was taken away does not fit"));
        }
        Ok(false)
    }

    /// Makes the root's only child the root, as long as it has only one. If both have a buffer, the
    /// root's is emptied before.
    pub(super) fn lower_root(&mut self, cause: Cause) -> Result<()> {
        while self.height > 1 {
            let (top, root) = (self.height - 1, self.root);
            let node = self.nodes.node(&mut self.log, root, top, cause)?;
            if node::count(node) != 1 {
                break;
            }
            let child = self.child(root, top, 0, cause)?;
            let number = root.buffer().unwrap_or_default();
            if child.buffer().is_some() {
                if self.buffers.record(number).entries() > 0 {
                    self.buffers.list(number);
                    break;
                }
                self.nodes.free(&mut self.log, root)?;
                self.buffers.set_record(number, BufferRecord::new(Owner(0), 1, false));
                self.buffers.forget_registers(number);
                self.root = child;
            } else {
                self.nodes.take_over(&mut self.log, root, child, top - 1)?;
            }
            self.height -= 1;
            self.room.levels[usize::from(self.height)] = 0;
            self.top.restructured = true;
            self.recount(self.root, self.height - 1, cause)?;
        }
        Ok(())
    }
}
