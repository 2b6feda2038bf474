//! The way from the root down.

use alloc::vec::Vec;

use device::Cause;
use store::node;

use super::LaTree;
use super::layout::NodeId;
use super::nodes::damaged;
use index::Result;

/// The most nodes on a way: with two children a node, more than 32 bits of nodes could fill.
pub(super) const HEIGHT_MOST: usize = 32;

/// That a node has a buffer where none does, or none where all do.
pub(super) const OTHER_KIND: &str = "a child has the number of another kind";

/// One node on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) id: NodeId,
    /// In an inner node, the place of the child that the way goes on with.
    pub(super) place: usize,
}

/// The nodes on the way, by level.
#[derive(Debug)]
pub(super) struct Path {
    steps: [Step; HEIGHT_MOST],
}

impl Path {
    pub(super) const fn new() -> Self {
        Path { steps: [Step { id: NodeId(0), place: 0 }; HEIGHT_MOST] }
    }

    /// The step at `level`.
    #[inline]
    pub(super) const fn at(&self, level: u8) -> Step {
        self.steps[level as usize % HEIGHT_MOST]
    }

    #[inline]
    pub(super) fn set(&mut self, level: u8, id: NodeId, place: usize) {
        self.steps[usize::from(level) % HEIGHT_MOST] = Step { id, place };
    }
}

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

impl LaTree<'_> {
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

    /// Goes from the root down to `level`, where `key` is or belongs: the way and the bounds of
    /// the node there are kept.
    pub(super) fn descend(&mut self, level: u8, key: &[u8], cause: Cause) -> Result<NodeId> {
        self.bounds.reset();
        let top = self.height - 1;
        self.path.set(top, self.root, 0);
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
        let mut id = self.path.at(from).id;
        let mut level = from;
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
        let node = self.nodes.node(&mut self.log, id, level, cause)?;
        let count = node::count(node);
        let place = match toward {
            Toward::Key(key) => {
                codec.search(node, key).unwrap_or_else(|place| place.saturating_sub(1))
            }
            Toward::Below(key) => {
                codec.search(node, key).unwrap_or_else(|place| place).saturating_sub(1)
            }
            Toward::Last => count.saturating_sub(1),
        };
        if place < count {
            // The first child has all keys from where its parent's begin, whatever its separator
            // says: so every turn narrows the bounds around what is turned to.
            if place > 0 {
                codec.key(node, place).copy_to(&mut self.bounds.lower);
            }
            if place + 1 < count {
                codec.key(node, place + 1).copy_to(&mut self.bounds.upper);
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
    pub(super) fn pass_leaf(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        self.bounds.pass(key).ok_or_else(|| {
            let leaf = self.path.at(0).id;
            damaged(self.nodes.page_of(leaf), "its keys lie behind those that follow")
        })
    }

    /// The child at `place` of node `id` at `level`.
    pub(super) fn child(
        &mut self,
        id: NodeId,
        level: u8,
        place: usize,
        cause: Cause,
    ) -> Result<NodeId> {
        let codec = self.nodes.codecs.inner;
        let node = self.nodes.node(&mut self.log, id, level, cause)?;
        if place >= node::count(node) {
            return Err(damaged(self.nodes.page_of(id), "a node has no such child"));
        }
        let bytes = codec.value(node, place).bytes().first_chunk().copied().unwrap_or_default();
        let child = NodeId(u32::from_le_bytes(bytes));
        match self.is_of_kind(child, level - 1) {
            true => Ok(child),
            false => Err(damaged(self.nodes.page_of(id), OTHER_KIND)),
        }
    }

    /// True if a node at `level`, the root aside, may have this number.
    pub(super) fn is_of_kind(&self, id: NodeId, level: u8) -> bool {
        let is_known = |number| (number as usize) < self.buffers.records.len();
        id.buffer().is_some() == self.has_buffers(level) && id.buffer().is_none_or(is_known)
    }

    /// The node on the way, at `level` or above it, whose buffer serves it: the root of its
    /// subtree.
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
        let children = node::count(self.nodes.node(&mut self.log, id, level, cause)?);
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
            if nodes > self.plan.pages.nodes_most(self.log.pages()) {
                return Err(damaged(self.nodes.page_of(id), "its subtree has too many nodes"));
            }
        }
        Ok((nodes, leaves))
    }

    /// Counts S and L of the subtree of node `id`, which has a buffer, anew.
    pub(super) fn recount(&mut self, id: NodeId, level: u8, cause: Cause) -> Result<()> {
        let Some(number) = id.buffer() else {
            return Ok(());
        };
        let (nodes, leaves) = self.count_subtree(id, level, cause)?;
        let record = self.buffers.record(number);
        self.buffers.set_record(number, record.above(nodes, leaves > 0));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
