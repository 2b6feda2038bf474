//! Borrowing and merging after deletes.
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
//! of the one that gives away children, is taken into memory, and its entries come to the buffers
//! to which they belong then. Where a full chip has no room for that, the nodes stay as they are.

use alloc::vec::Vec;

use device::Cause;
use store::node::{self, Codec, Shift};

use super::LaTree;
use super::growth::MISPLACED;
use super::layout::{NodeId, Owner};
use super::nodes::damaged;
use super::table::BufferRecord;
use crate::btree::Edit;
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
        let id = self.path.at(level).id;
        let codec = self.nodes.at(level);
        if !codec.is_filled(self.nodes.node(&mut self.log, id, level, cause)?, QUARTER) {
            self.note_lean(level);
        }
        Ok(())
    }

    /// The node at `level` of the present way may have too few entries.
    pub(super) fn note_lean(&mut self, level: u8) {
        self.lean.level = Some(level);
        self.lean.key.clear();
        self.lean.key.extend_from_slice(&self.bounds.lower);
    }

    /// True if a node waits that what goes down has passed.
    pub(super) fn is_lean_behind(&self) -> bool {
        let has_passed = self.top.restructured || !self.top.bounds.contains(&self.in_flight.key);
        self.lean.level.is_some() && has_passed
    }

    /// Rebalances the node that waits, if one does, and those above it. Nothing is going down.
    pub(super) fn rebalance_lean(&mut self, cause: Cause) -> Result<()> {
        let Some(mut level) = self.lean.level.take() else {
            return Ok(());
        };
        let key = core::mem::take(&mut self.lean.key);
        let mut merged = Ok(true);
        while level + 1 < self.height && matches!(merged, Ok(true)) {
            merged = self.descend(level, &key, cause).and_then(|_| self.rebalance(level, cause));
            level += 1;
        }
        self.lean.key = key;
        merged.map(drop)
    }

    /// Fills up the node at `level` of the present way, if it is less than a quarter full: takes
    /// entries from a neighbour or, if that has too few, merges it with that. Then it returns true:
    /// their parent may have too few.
    fn rebalance(&mut self, level: u8, cause: Cause) -> Result<bool> {
        let id = self.path.at(level).id;
        let codec = self.nodes.at(level);
        let node = self.nodes.node(&mut self.log, id, level, cause)?;
        if codec.is_filled(node, QUARTER) {
            return Ok(false);
        }
        let Some(pair) = self.neighbours(level, cause)? else {
            return Ok(false);
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
            return Ok(false);
        }
        if fits_one { self.join(pair, cause) } else { Ok(false) }
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
        let codec = self.nodes.codecs.leaf;
        let (left, right) = self.nodes.pair(&mut self.log, (pair.left, pair.right), 0, cause)?;
        if codec.joint_bytes(left, right) > codec.node_bytes() {
            return Ok(false);
        }
        self.check_order(pair, cause)?;
        self.join(pair, cause)
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

    /// True if the entries in the buffer of node `id` may come to other buffers.
    fn may_take_aside(&self, id: NodeId) -> bool {
        id.buffer().is_none_or(|number| self.has_room_to_rebuffer(number))
    }

    /// Merges two neighbours, and what their buffers hold; false if there is no room for that.
    fn join(&mut self, pair: Neighbours, cause: Cause) -> Result<bool> {
        let level = pair.level;
        if !self.may_take_aside(pair.right) {
            return Ok(false);
        }
        let taken = self.take_aside(pair.right, cause)?;
        let change = |codec: &Codec, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]| {
            codec.join(left, right, scratch);
        };
        self.nodes.change_pair(&mut self.log, (pair.left, pair.right), level, change)?;
        let gone = Edit::Remove { place: pair.right_place };
        self.nodes.edit(&mut self.log, (pair.parent, level + 1), gone)?;
        self.nodes.free(&mut self.log, pair.right)?;
        let nodes = &mut self.room.levels[usize::from(level)];
        *nodes = nodes.saturating_sub(1);
        self.counters.nodes_merged += 1;
        self.counters.rebalanced += 2;
        self.top.restructured |= level >= self.top.level;
        match (pair.left.buffer(), pair.right.buffer()) {
            (Some(left), Some(right)) => {
                if self.buffers.is_listed(right) {
                    self.buffers.list(left);
                }
                self.buffers.set_record(right, BufferRecord::new(Owner(0), 1, false));
                self.buffers.forget_registers(right);
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
        let (codec, codecs) = (self.nodes.at(pair.level), self.nodes.codecs);
        let (left, right) =
            self.nodes.pair(&mut self.log, (pair.left, pair.right), pair.level, cause)?;
        let (giver, before, first) = match shift {
            Shift::Right(place) => (pair.left, codec.key(left, place - 1), codec.key(left, place)),
            Shift::Left(moved) => {
                (pair.right, codec.key(right, moved - 1), codec.key(right, moved))
            }
        };
        first.copy_to(&mut self.separator);
        if pair.level == 0 {
            codecs.shorten(&before, &mut self.separator);
        }
        if !self.may_take_aside(giver) {
            return Ok(false);
        }
        let taken = self.take_aside(giver, cause)?;
        let is_renamed = self.rename(pair, cause)?;
        if is_renamed {
            let change = |codec: &Codec, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]| {
                codec.apply_shift(left, right, shift, scratch);
            };
            self.nodes.change_pair(&mut self.log, (pair.left, pair.right), pair.level, change)?;
            self.counters.rebalanced += 2;
            self.counters.nodes_filled_up += 1;
            self.top.restructured |= pair.level >= self.top.level;
            self.recount(pair.left, pair.level, cause)?;
            self.recount(pair.right, pair.level, cause)?;
        }
        if taken {
            self.hand_back(pair.level, None, cause)?;
        }
        Ok(is_renamed)
    }

    /// Makes `self.separator` the key of the right neighbour in its parent; false, and nothing
    /// changed, if there is no room for it.
    fn rename(&mut self, pair: Neighbours, cause: Cause) -> Result<bool> {
        let codec = self.nodes.codecs.inner;
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
        self.nodes.edit(&mut self.log, parent, Edit::Remove { place })?;
        let value = pair.right.0.to_le_bytes();
        let value = node::Stored::inline(&value);
        let renamed = Edit::Insert { place, key: &self.separator, value };
        if self.nodes.edit(&mut self.log, parent, renamed)? {
            return Ok(true);
        }
        let as_before = Edit::Insert { place, key: &self.previous, value };
        if !self.nodes.edit(&mut self.log, parent, as_before)? {
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
