//! Splitting nodes, and a new root.
//!
//! A node with a buffer may come to be split while that holds entries: a leaf far below was filled.
//! What is going down is put back then, what the buffer holds is taken into memory, the node is
//! split, and each half gets what lies within its own keys.

use device::Cause;
use store::node::{self, Codec};

use super::LaTree;
use super::descent::HEIGHT_MOST;
use super::layout::NodeId;
use super::nodes::damaged;
use super::shrinking::QUARTER;
use super::table::BufferRecord;
use crate::btree::Edit;
use index::Result;

/// That what separates a node from its neighbour is not between their other separators.
pub(super) const MISPLACED: &str = "its keys lie outside of what its parent says";

/// Where a node is split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves {
    /// The first entry of the right half.
    pub(super) at: usize,
    /// True if what goes down next comes between the halves, and belongs to the right one.
    pub(super) next_is_right: bool,
}

impl LaTree<'_> {
    /// Splits the node at `level` of the present way, or, where its parent has no room for one more
    /// child, a node above it. Then the way is to be walked again.
    pub(super) fn split(&mut self, level: u8, halves: Halves, cause: Cause) -> Result<()> {
        if level + 1 == self.height {
            self.grow(cause)?;
        }
        let id = self.path.at(level).id;
        let parent = self.path.at(level + 1);
        self.separate(level, id, halves, cause)?;
        let at = halves.at;
        let inner = self.nodes.codecs.inner;
        let above = self.nodes.node(&mut self.log, parent.id, level + 1, cause)?;
        // Keys of a damaged node may lie anywhere. Where separators are not in order, a walk from
        // one to the next never ends.
        if inner.search(above, &self.separator) != Err(parent.place + 1) {
            return Err(damaged(self.nodes.page_of(id), MISPLACED));
        }
        if !inner.has_room(above, &self.separator, 4) {
            if node::count(above) < 2 {
                return Err(damaged(self.nodes.page_of(parent.id), "it is full with one entry"));
            }
            let halves = Halves { at: split_middle(&inner, above), next_is_right: false };
            return self.split(level + 1, halves, cause);
        }
        match id.buffer() {
            Some(number) if self.buffers.record(number).entries() > 0 => {
                self.split_with_buffer(level, id, at, cause)
            }
            _ => self.split_node(level, id, at, cause),
        }
    }

    /// As [`split`](LaTree::split), of a node whose parent has room, and whose buffer holds
    /// entries.
    fn split_with_buffer(&mut self, level: u8, id: NodeId, at: usize, cause: Cause) -> Result<()> {
        let single = self.in_flight.single();
        if single.is_none() {
            self.put_back(true, cause)?;
        }
        self.take_aside(id, cause)?;
        self.counters.buffers_split += 1;
        self.split_node(level, id, at, cause)?;
        self.hand_back(level, None, cause)?;
        if let Some(single) = single {
            self.in_flight = single;
        }
        Ok(())
    }

    /// Splits a node without entries in its buffer, whose parent has room.
    fn split_node(&mut self, level: u8, id: NodeId, at: usize, cause: Cause) -> Result<()> {
        let parent = self.path.at(level + 1);
        let right = self.nodes.create(&mut self.log, id.buffer().is_some(), level)?;
        self.nodes.change_pair(
            &mut self.log,
            (id, right),
            level,
            |codec, node, fresh, scratch| {
                codec.split_off(node, at, fresh, scratch);
            },
        )?;
        self.adopt(parent.id, level + 1, parent.place + 1, right)?;
        self.counters.rebalanced += 2;
        self.counters.nodes_split += 1;
        self.room.levels[usize::from(level)] += 1;
        self.top.restructured |= level >= self.top.level;
        let (Some(number), Some(right_number)) = (id.buffer(), right.buffer()) else {
            return self.count_nodes(level, 1);
        };
        let owner = self.buffers.owner(&self.log)?;
        let is_leaf = self.buffers.record(number).is_leaf();
        self.buffers.set_record(right_number, BufferRecord::new(owner, 1, is_leaf));
        self.recount(id, level, cause)?;
        self.recount(right, level, cause)
    }

    /// Adds `nodes` nodes at `level` to the subtree of the present way.
    pub(super) fn count_nodes(&mut self, level: u8, nodes: i32) -> Result<()> {
        let Some(number) = self.subtree_root(level) else {
            return Err(damaged(self.nodes.page_of(self.root), "the root has no buffer"));
        };
        if let Some(record) = self.buffers.record_mut(number) {
            record.add_nodes(nodes);
        }
        Ok(())
    }

    /// Gives the root a parent.
    pub(super) fn grow(&mut self, cause: Cause) -> Result<()> {
        let (top, old) = (self.height - 1, self.root);
        if usize::from(self.height) >= HEIGHT_MOST {
            return Err(damaged(self.nodes.page_of(old), "the tree is higher than nodes allow"));
        }
        if self.has_buffers(top) {
            let root = self.nodes.create(&mut self.log, true, self.height)?;
            self.nodes.codecs.lowest(&mut self.separator);
            self.adopt(root, self.height, 0, old)?;
            let owner = self.buffers.owner(&self.log)?;
            if let Some(number) = root.buffer() {
                self.buffers.set_record(number, BufferRecord::new(owner, 1, false));
            }
            self.root = root;
        } else {
            // The buffer is for the whole tree, so it stays with the root.
            let child = self.nodes.slide_under(&mut self.log, old, top)?;
            self.nodes.codecs.lowest(&mut self.separator);
            self.adopt(old, self.height, 0, child)?;
            self.path.set(top, child, self.path.at(top).place);
        }
        self.room.levels[usize::from(self.height)] = 1;
        self.height += 1;
        self.path.set(self.height - 1, self.root, 0);
        self.top.restructured = true;
        self.recount(self.root, self.height - 1, cause)
    }

    /// The lowest key there is.
    pub(super) fn lowest_key(&self) -> alloc::vec::Vec<u8> {
        let mut key = alloc::vec::Vec::new();
        self.nodes.codecs.lowest(&mut key);
        key
    }

    /// Puts into `self.separator` what separates the halves.
    fn separate(&mut self, level: u8, id: NodeId, halves: Halves, cause: Cause) -> Result<()> {
        let Halves { at, next_is_right } = halves;
        let (codec, codecs) = (self.nodes.at(level), self.nodes.codecs);
        let node = self.nodes.node(&mut self.log, id, level, cause)?;
        if next_is_right {
            self.separator.clear();
            self.separator.extend_from_slice(&self.in_flight.key);
        } else {
            codec.key(node, at).copy_to(&mut self.separator);
        }
        if level == 0 && at > 0 {
            codecs.shorten(&codec.key(node, at - 1), &mut self.separator);
        }
        Ok(())
    }

    /// Makes `child`, from `self.separator` on, the child at `place` of `parent`, which has room.
    pub(super) fn adopt(
        &mut self,
        parent: NodeId,
        level: u8,
        place: usize,
        child: NodeId,
    ) -> Result<()> {
        let value = child.0.to_le_bytes();
        let value = node::Stored::inline(&value);
        let edit = Edit::Insert { place, key: &self.separator, value };
        if !self.nodes.edit(&mut self.log, (parent, level), edit)? {
            return Err(damaged(self.nodes.page_of(parent), "it has no room"));
        }
        Ok(())
    }
}

/// Where `node` is split, so that both halves are at least a quarter full: at the middle, or before
/// it if a long entry there left too little behind it.
pub(super) fn split_middle(codec: &Codec, node: &[u8]) -> usize {
    last_filled(codec, node, codec.middle(node))
}

/// The last place up to `at` from which on the entries of `node` fill a quarter of one.
pub(super) fn last_filled(codec: &Codec, node: &[u8], at: usize) -> usize {
    let fills = |at: &usize| codec.is_filled_from(node, *at, QUARTER);
    (1..=at).rev().find(fills).unwrap_or(at)
}
