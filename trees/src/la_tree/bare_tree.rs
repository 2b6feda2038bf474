//! The tree without its buffers: nodes, and the way from the root down. It knows which levels have
//! buffers, for that is what the numbers of their nodes say, and not what waits in them.
//!
//! Who splits or merges nodes sees to their buffers before and after.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use store::{OverflowValue, node};

use super::layout::{NodeId, damaged};
use super::nodes::Nodes;
use super::storage::Storage;
use crate::btree::{self, At, Edit, HEIGHT_MOST, Node, NodeSource, Path};
use index::{Error, Result};

mod changes;

pub(super) use changes::{Halves, Neighbours, last_filled, split_middle};

/// A node with less than this percentage of its room in use is underfull.
pub(super) const QUARTER: u8 = 25;

/// That a node has a buffer where none does, or none where all do.
const OTHER_KIND: &str = "a child has the number of another kind";

/// The keys that a node may hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    pub(super) lower: Vec<u8>,
    /// Keys are below this, unless the node is at the right edge.
    pub(super) upper: Vec<u8>,
    pub(super) has_upper: bool,
}

impl Bounds {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Bounds {
            lower: Vec::with_capacity(bytes),
            upper: Vec::with_capacity(bytes),
            has_upper: false,
        }
    }

    /// All keys.
    pub(super) fn reset(&mut self) {
        self.lower.clear();
        self.upper.clear();
        self.has_upper = false;
    }

    #[inline]
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        key >= self.lower.as_slice() && !(self.has_upper && key >= self.upper.as_slice())
    }

    /// Moves `key`, found in these bounds, to where the next ones begin; false if these are the
    /// last, and `None` if the next ones do not lie behind `key`.
    fn pass(&self, key: &mut Vec<u8>) -> Option<bool> {
        if self.has_upper {
            (self.upper > *key).then(|| key.clone_from(&self.upper))?;
        }
        Some(self.has_upper)
    }

    pub(super) fn copy_from(&mut self, other: &Bounds) {
        self.lower.clear();
        self.lower.extend_from_slice(&other.lower);
        self.upper.clear();
        self.upper.extend_from_slice(&other.upper);
        self.has_upper = other.has_upper;
    }
}

/// Where a descent turns to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Toward<'k> {
    /// Where this key is or belongs.
    Key(&'k [u8]),
    /// Where the highest keys below this one are.
    Below(&'k [u8]),
    /// The highest keys.
    Last,
}

/// The nodes, what they stand on, and the way that was walked last.
pub(super) struct BareTree<'d> {
    pub(super) log: Storage<'d>,
    pub(super) nodes: Nodes,
    pub(super) levels_a_buffer: u8,
    pub(super) root: NodeId,
    /// Nodes from the root to a leaf; the root's level plus one.
    pub(super) height: u8,
    /// Entries in leaves.
    pub(super) entries: u64,
    /// Nodes of each level, leaves first.
    pub(super) levels: [u32; HEIGHT_MOST],
    pub(super) path: Path<NodeId>,
    /// Of the node where the last descent ended.
    pub(super) bounds: Bounds,
    /// What separates a node from its right neighbour.
    pub(super) separator: Vec<u8>,
    previous: Vec<u8>,
}

impl<'d> BareTree<'d> {
    /// A tree on `log` that has no node yet.
    pub(super) fn new(
        log: Storage<'d>,
        nodes: Nodes,
        levels_a_buffer: u8,
        key_bytes: usize,
    ) -> Self {
        BareTree {
            log,
            nodes,
            levels_a_buffer,
            root: NodeId(0),
            height: 1,
            entries: 0,
            levels: [0; HEIGHT_MOST],
            path: Path::new(NodeId(0)),
            bounds: Bounds::with_capacity(key_bytes),
            separator: Vec::with_capacity(key_bytes),
            previous: Vec::with_capacity(key_bytes),
        }
    }

    /// Forgets all nodes; a root is to be made.
    pub(super) fn forget(&mut self) {
        self.nodes.forget();
        (self.height, self.entries) = (1, 0);
        self.levels.fill(0);
    }

    /// Makes the root of an empty tree.
    pub(super) fn plant(&mut self) -> Result<()> {
        self.root = self.nodes.create(&mut self.log, true, 0)?;
        self.levels[0] = 1;
        self.path.set(0, self.root, 0);
        Ok(())
    }

    /// Nodes that there are.
    pub(super) fn count(&self) -> u64 {
        self.nodes.count(&self.log)
    }

    pub(super) fn leaves(&self) -> u64 {
        self.levels[0].into()
    }

    /// Node `id` at `level`.
    #[inline]
    pub(super) fn node_at(&mut self, id: NodeId, level: u8, cause: Cause) -> Result<Node<'_>> {
        let codec = self.nodes.at(level);
        let bytes = self.nodes.node(&mut self.log, id, level, cause)?;
        Ok(Node { codec, bytes })
    }

    /// Makes a change in a node at a level; false, and nothing changed, if there is no room for it.
    pub(super) fn edit(&mut self, at: (NodeId, u8), edit: Edit<'_>) -> Result<bool> {
        self.nodes.edit(&mut self.log, at, edit)
    }

    /// Damage in the page of node `id`.
    pub(super) fn damage_of(&self, id: NodeId, what: &'static str) -> Error {
        damaged(self.nodes.page_of(id), what)
    }

    /// True if all nodes at `level` have buffers; the root has one besides.
    #[inline]
    pub(super) const fn has_buffers(&self, level: u8) -> bool {
        (level + 1).is_multiple_of(self.levels_a_buffer)
    }

    /// The level of the roots of leaf subtrees.
    pub(super) const fn leaf_subtree_level(&self) -> u8 {
        let top = self.height - 1;
        if self.levels_a_buffer - 1 < top { self.levels_a_buffer - 1 } else { top }
    }

    /// The next level below `level` whose nodes have buffers; `None` in a leaf subtree.
    pub(super) fn buffers_below(&self, level: u8) -> Option<u8> {
        (0..level).rev().find(|below| self.has_buffers(*below))
    }

    /// A descent from the root begins.
    pub(super) fn begin(&mut self) -> (NodeId, u8) {
        let top = self.height - 1;
        self.bounds.reset();
        self.path.set(top, self.root, 0);
        (self.root, top)
    }

    /// Goes from the root down to `level`, where `key` is or belongs: the way and the bounds of
    /// the node there are kept.
    pub(super) fn descend(&mut self, level: u8, key: &[u8], cause: Cause) -> Result<NodeId> {
        let (_, top) = self.begin();
        self.walk(top, level, Toward::Key(key), cause)
    }

    /// Goes on down from the node of the way at level `from`, whose bounds are known.
    pub(super) fn walk(
        &mut self,
        from: u8,
        to: u8,
        toward: Toward<'_>,
        cause: Cause,
    ) -> Result<NodeId> {
        let (mut id, mut level) = (self.path.at(from).id, from);
        while level > to {
            id = self.step_down(level, id, toward, cause)?;
            level -= 1;
        }
        Ok(id)
    }

    /// Goes from node `id` at `level` to the child that is turned to.
    pub(super) fn step_down(
        &mut self,
        level: u8,
        id: NodeId,
        toward: Toward<'_>,
        cause: Cause,
    ) -> Result<NodeId> {
        let codec = self.nodes.codecs.inner;
        let bytes = self.nodes.node(&mut self.log, id, level, cause)?;
        let node = Node { codec, bytes };
        let count = node.count();
        let place = match toward {
            Toward::Key(key) => node.search_child(key),
            Toward::Below(key) => node.search(key).unwrap_or_else(|place| place).saturating_sub(1),
            Toward::Last => count.saturating_sub(1),
        };
        if place < count {
            // The first child has all keys from where its parent's begin, whatever its separator
            // says: so every turn narrows the bounds around what is turned to.
            if place > 0 {
                node.key(place).copy_to(&mut self.bounds.lower);
            }
            if place + 1 < count {
                node.key(place + 1).copy_to(&mut self.bounds.upper);
                self.bounds.has_upper = true;
            }
        }
        self.path.set(level, id, place);
        self.child(id, level, place, cause).inspect(|child| self.path.set(level - 1, *child, 0))
    }

    /// Moves `key` from the leaf of the present way, found by it, to where the next one begins;
    /// false if that was the last.
    ///
    /// # Errors
    /// The next leaf does not lie behind `key`: a walk over damaged nodes would never end.
    pub(super) fn pass_leaf(&self, key: &mut Vec<u8>) -> Result<bool> {
        let what = "its keys lie behind those that follow";
        self.bounds.pass(key).ok_or_else(|| self.damage_of(self.path.at(0).id, what))
    }

    /// The child at `place` of node `id` at `level`.
    pub(super) fn child(
        &mut self,
        id: NodeId,
        level: u8,
        place: usize,
        cause: Cause,
    ) -> Result<NodeId> {
        let node = self.node_at(id, level, cause)?;
        if place >= node.count() {
            return Err(self.damage_of(id, "a node has no such child"));
        }
        let child = node.child(place);
        match self.is_of_kind(child, level - 1) {
            true => Ok(child),
            false => Err(self.damage_of(id, OTHER_KIND)),
        }
    }

    /// True if a node at `level`, the root aside, may have this number.
    fn is_of_kind(&self, id: NodeId, level: u8) -> bool {
        let is_known = |number| number < self.nodes.buffered.numbers.high_water();
        id.buffer().is_some() == self.has_buffers(level) && id.buffer().is_none_or(is_known)
    }

    /// The buffer of the root of the subtree that the node of the way at `level` is in.
    pub(super) fn subtree_root(&self, level: u8) -> Option<u32> {
        (level..self.height).find_map(|level| self.path.at(level).id.buffer())
    }

    /// True if a node on the way, above `level`, has this buffer.
    pub(super) fn is_above(&self, level: u8, number: u32) -> bool {
        (level + 1..self.height).any(|above| self.path.at(above).id.buffer() == Some(number))
    }

    /// S and L of the subtree of node `id` at `level`.
    pub(super) fn count_subtree(
        &mut self,
        id: NodeId,
        level: u8,
        cause: Cause,
    ) -> Result<(u32, u32)> {
        let Some(below) = level.checked_sub(1) else {
            return Ok((1, 1));
        };
        if self.has_buffers(below) {
            return Ok((1, 0));
        }
        let children = self.node_at(id, level, cause)?.count();
        if below == 0 {
            return Ok((1 + children as u32, children as u32));
        }
        if self.has_buffers(below - 1) {
            return Ok((1 + children as u32, 0));
        }
        let (mut nodes, mut leaves) = (1, 0);
        for place in 0..children {
            let child = self.child(id, level, place, cause)?;
            let counted = self.count_subtree(child, below, cause)?;
            nodes += counted.0;
            leaves += counted.1;
            // Damaged nodes may share children, and theirs theirs: that is no tree.
            if nodes > self.nodes.pages.nodes_most(self.log.pages()) {
                return Err(self.damage_of(id, "its subtree has too many nodes"));
            }
        }
        Ok((nodes, leaves))
    }

    /// The lowest key there is.
    pub(super) fn lowest_key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        self.nodes.codecs.lowest(&mut key);
        key
    }

    /// Puts the first key of node `id` into `key`, none if it has none; returns the level of the
    /// node, and how many entries it has.
    pub(super) fn first_key(
        &mut self,
        id: NodeId,
        key: &mut Vec<u8>,
        cause: Cause,
    ) -> Result<(u8, usize)> {
        let codecs = self.nodes.codecs;
        let node = self.nodes.any(&mut self.log, id, cause)?;
        let (level, count) = (node::level(node), node::count(node));
        match count {
            0 => key.clear(),
            _ => codecs.at(level).key(node, 0).copy_to(key),
        }
        Ok((level, count))
    }

    /// Goes from leaf to leaf until `id`, of which no key is known.
    pub(super) fn find_empty_leaf(
        &mut self,
        id: NodeId,
        key: &mut Vec<u8>,
        cause: Cause,
    ) -> Result<NodeId> {
        key.extend_from_slice(&self.lowest_key());
        loop {
            let found = self.descend(0, key, cause)?;
            if found == id || !self.pass_leaf(key)? {
                return Ok(found);
            }
        }
    }

    /// Gives back the pages of the value that an entry had, if it was long.
    pub(super) fn drop_value(&mut self, value: Option<OverflowValue>, cause: Cause) -> Result<()> {
        match (value, self.log.disk_mut()) {
            (Some(value), Some(disk)) => Ok(disk.file.free_long(value, cause)?),
            _ => Ok(()),
        }
    }

    /// Gives a node back, after all that is below it; `left` nodes are not given back yet.
    pub(super) fn drop_node(&mut self, id: NodeId, level: u8, left: &mut u64) -> Result<()> {
        // Damaged nodes may share children, and theirs theirs.
        let what = "it is a child of more than one node";
        *left = left.checked_sub(1).ok_or_else(|| self.damage_of(id, what))?;
        let count = self.node_at(id, level, Cause::Load)?.count();
        for place in 0..count {
            if level > 0 {
                let child = self.child(id, level, place, Cause::Load)?;
                self.drop_node(child, level - 1, left)?;
                continue;
            }
            let long = self.node_at(id, level, Cause::Load)?.value(place).as_long();
            self.drop_value(long, Cause::Load)?;
        }
        self.nodes.free(&mut self.log, id)
    }

    /// Reads the long values of `leaf`, up to `most` pages of them: a damaged leaf may tell of the
    /// same value over and over. Returns how many pages they take.
    pub(super) fn check_values(
        &mut self,
        leaf: NodeId,
        most: u64,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<u64> {
        let (mut pages, mut place) = (0, 0);
        while pages <= most {
            let node = self.node_at(leaf, 0, Cause::Lookup)?;
            if place >= node.count() {
                break;
            }
            let long = node.value(place).as_long();
            place += 1;
            let (Some(long), Some(disk)) = (long, self.log.disk_mut()) else {
                continue;
            };
            let mut told = |damage: store::Error| finding(&damage);
            pages += u64::from(disk.file.check_long(long, Cause::Lookup, &mut told)?);
        }
        Ok(pages)
    }
}

impl btree::NodeId for NodeId {
    fn from_bytes(bytes: [u8; 4]) -> Self {
        NodeId(u32::from_le_bytes(bytes))
    }

    fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

impl NodeSource for BareTree<'_> {
    type Id = NodeId;

    fn node(&mut self, at: At<NodeId>, cause: Cause) -> Result<Node<'_>> {
        if at.level + 1 < self.height && !self.is_of_kind(at.id, at.level) {
            return Err(self.damage_of(at.id, OTHER_KIND));
        }
        self.node_at(at.id, at.level, cause)
    }

    fn nodes_most(&self) -> u64 {
        self.count()
    }

    fn read_long(&mut self, value: OverflowValue, offset: u32, into: &mut [u8]) -> Result<()> {
        match self.log.disk_mut() {
            Some(disk) => Ok(disk.file.read_long(value, offset, into, Cause::Lookup)?),
            None => Ok(()),
        }
    }

    fn damaged(&self, id: NodeId, what: &'static str) -> Error {
        self.damage_of(id, what)
    }
}

#[cfg(test)]
mod tests;
