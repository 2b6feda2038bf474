//! Splitting and merging nodes, and a new root: what happens to the nodes alone.

use device::Cause;
use store::node::{self, Codec, Shift, Stored};

use super::{BareTree, NodeId, QUARTER};
use crate::btree::{Edit, HEIGHT_MOST, Node, are_in_order};
use index::Result;

/// That what separates a node from its neighbour is not between their other separators.
const MISPLACED: &str = "its keys lie outside of what its parent says";

/// Two neighbours below one parent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Neighbours {
    pub(in super::super) level: u8,
    parent: NodeId,
    pub(in super::super) left: NodeId,
    pub(in super::super) right: NodeId,
    /// The place of the right one in the parent.
    right_place: usize,
}

/// Where a node is split.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Halves {
    /// The first entry of the right half.
    pub(in super::super) at: usize,
    /// True if what goes down next comes between the halves, and belongs to the right one.
    pub(in super::super) next_is_right: bool,
}

impl BareTree<'_> {
    /// Puts into `self.separator` what separates the halves of the node of the way; what goes down
    /// next has the key `next`. Returns where its parent has to be split first, which has no room
    /// for one more child.
    pub(in super::super) fn separate(
        &mut self,
        level: u8,
        halves: Halves,
        next: &[u8],
        cause: Cause,
    ) -> Result<Option<Halves>> {
        let Halves { at, next_is_right } = halves;
        let (id, parent) = (self.path.at(level).id, self.path.at(level + 1));
        let (codec, codecs) = (self.nodes.at(level), self.nodes.codecs);
        let node = self.nodes.node(&mut self.log, id, level, cause)?;
        if next_is_right {
            self.separator.clear();
            self.separator.extend_from_slice(next);
        } else {
            codec.key(node, at).copy_to(&mut self.separator);
        }
        if level == 0 && at > 0 {
            codecs.shorten(&codec.key(node, at - 1), &mut self.separator);
        }
        let inner = codecs.inner;
        let above = self.nodes.node(&mut self.log, parent.id, level + 1, cause)?;
        // Keys of a damaged node may lie anywhere. Where separators are not in order, a walk from
        // one to the next never ends.
        if inner.search(above, &self.separator) != Err(parent.place() + 1) {
            return Err(self.damage_of(id, MISPLACED));
        }
        if inner.has_room(above, &self.separator, 4) {
            return Ok(None);
        }
        if node::count(above) < 2 {
            return Err(self.damage_of(parent.id, "it is full with one entry"));
        }
        Ok(Some(Halves { at: split_middle(&inner, above), next_is_right: false }))
    }

    /// Splits the node at `level` of the way before its entry `at`, at `self.separator`; its parent
    /// has room. Returns its new right neighbour.
    pub(in super::super) fn split_node(&mut self, level: u8, at: usize) -> Result<NodeId> {
        let (id, parent) = (self.path.at(level).id, self.path.at(level + 1));
        let right = self.nodes.create(&mut self.log, id.buffer().is_some(), level)?;
        let split = |codec: &Codec, node: &mut [u8], fresh: &mut [u8], scratch: &mut [u8]| {
            codec.split_off(node, at, fresh, scratch);
        };
        self.nodes.change_pair(&mut self.log, (id, right), level, split)?;
        self.insert_child(parent.id, level + 1, parent.place() + 1, right)?;
        self.levels[usize::from(level)] += 1;
        Ok(right)
    }

    /// Makes `child`, from `self.separator` on, the child at `place` of `parent`, which has room.
    fn insert_child(
        &mut self,
        parent: NodeId,
        level: u8,
        place: usize,
        child: NodeId,
    ) -> Result<()> {
        let value = child.0.to_le_bytes();
        let edit = Edit::Insert { place, key: &self.separator, value: Stored::inline(&value) };
        match self.nodes.edit(&mut self.log, (parent, level), edit)? {
            true => Ok(()),
            false => Err(self.damage_of(parent, "it has no room")),
        }
    }

    /// Begins a node behind all others at `level`, from `self.separator` on, below the last node
    /// above it, if that has room and is not filled to `fill` percent.
    pub(in super::super) fn begin_right(&mut self, level: u8, fill: u8) -> Result<Option<NodeId>> {
        let parent = self.path.at(level + 1).id;
        let inner = self.nodes.codecs.inner;
        let node = self.nodes.node(&mut self.log, parent, level + 1, Cause::Load)?;
        if inner.is_filled(node, fill) || !inner.has_room(node, &self.separator, 4) {
            return Ok(None);
        }
        let place = node::count(node);
        let is_buffered = self.has_buffers(level);
        let right = self.nodes.create(&mut self.log, is_buffered, level)?;
        self.insert_child(parent, level + 1, place, right)?;
        self.path.set(level + 1, parent, place);
        self.path.set(level, right, 0);
        self.levels[usize::from(level)] += 1;
        Ok(Some(right))
    }

    /// Gives the root a parent. True if that has a buffer of its own; or else the buffer is for the
    /// whole tree, so it stays with the root.
    pub(in super::super) fn grow(&mut self) -> Result<bool> {
        let (top, old) = (self.height - 1, self.root);
        if usize::from(self.height) >= HEIGHT_MOST {
            return Err(self.damage_of(old, "the tree is higher than nodes allow"));
        }
        let has_own = self.has_buffers(top);
        let child = match has_own {
            true => {
                self.root = self.nodes.create(&mut self.log, true, self.height)?;
                old
            }
            false => self.nodes.slide_under(&mut self.log, old, top)?,
        };
        self.nodes.codecs.lowest(&mut self.separator);
        self.insert_child(self.root, self.height, 0, child)?;
        self.path.set(top, child, self.path.at(top).place());
        self.levels[usize::from(self.height)] = 1;
        self.height += 1;
        self.path.set(self.height - 1, self.root, 0);
        Ok(has_own)
    }

    /// The only child of the root, if it has only one.
    pub(in super::super) fn only_child(&mut self, cause: Cause) -> Result<Option<NodeId>> {
        let top = self.height - 1;
        match self.node_at(self.root, top, cause)?.count() {
            1 if top > 0 => self.child(self.root, top, 0, cause).map(Some),
            _ => Ok(None),
        }
    }

    /// Makes the root's only child the root.
    pub(in super::super) fn lower_root(&mut self, child: NodeId) -> Result<()> {
        match child.buffer() {
            Some(_) => {
                self.nodes.free(&mut self.log, self.root)?;
                self.root = child;
            }
            None => self.nodes.take_over(&mut self.log, self.root, child, self.height - 2)?,
        }
        self.height -= 1;
        self.levels[usize::from(self.height)] = 0;
        Ok(())
    }

    /// The node at `level` of the way with its left neighbour, or else its right one.
    ///
    /// # Errors
    /// Their keys are mixed: they are damaged, and what is made of both would be no node.
    pub(in super::super) fn neighbours(
        &mut self,
        level: u8,
        cause: Cause,
    ) -> Result<Option<Neighbours>> {
        let parent = self.path.at(level + 1);
        let right_place = parent.place().max(1);
        if right_place >= self.node_at(parent.id, level + 1, cause)?.count() {
            return Ok(None);
        }
        let left = self.child(parent.id, level + 1, right_place - 1, cause)?;
        let right = self.child(parent.id, level + 1, right_place, cause)?;
        let codec = self.nodes.at(level);
        let (one, other) = self.nodes.pair(&mut self.log, (left, right), level, cause)?;
        let [one, other] = [one, other].map(|bytes| Node { codec, bytes });
        if !are_in_order(&one, &other, &mut self.previous) {
            let what = "its keys are not above those of its left neighbour";
            return Err(self.damage_of(right, what));
        }
        Ok(Some(Neighbours { level, parent: parent.id, left, right, right_place }))
    }

    /// True if what two neighbours hold fits one node; and how entries move between them to fill
    /// both, if they have enough to stay two nodes.
    pub(in super::super) fn joint(
        &mut self,
        pair: Neighbours,
        cause: Cause,
    ) -> Result<(bool, Option<Shift>)> {
        let codec = self.nodes.at(pair.level);
        let nodes = (pair.left, pair.right);
        let (left, right) = self.nodes.pair(&mut self.log, nodes, pair.level, cause)?;
        let (joint, room) = (codec.joint_bytes(left, right), codec.node_bytes());
        let beside = node::HEADER_BYTES;
        let is_enough = joint > room || (joint - beside) * 6 > (room - beside) * 5;
        Ok((joint <= room, codec.shift(left, right).filter(|_| is_enough)))
    }

    /// Puts all entries of the right neighbour into the left one; it is no more.
    pub(in super::super) fn join(&mut self, pair: Neighbours) -> Result<()> {
        let join = |codec: &Codec, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]| {
            codec.join(left, right, scratch);
        };
        self.nodes.change_pair(&mut self.log, (pair.left, pair.right), pair.level, join)?;
        let gone = Edit::Remove { place: pair.right_place };
        self.nodes.edit(&mut self.log, (pair.parent, pair.level + 1), gone)?;
        self.nodes.free(&mut self.log, pair.right)?;
        let nodes = &mut self.levels[usize::from(pair.level)];
        *nodes = nodes.saturating_sub(1);
        Ok(())
    }

    /// Puts into `self.separator` what separates two neighbours once entries moved between them;
    /// returns the one that gives them away.
    pub(in super::super) fn separate_pair(
        &mut self,
        pair: Neighbours,
        shift: Shift,
        cause: Cause,
    ) -> Result<NodeId> {
        let (codec, codecs) = (self.nodes.at(pair.level), self.nodes.codecs);
        let nodes = (pair.left, pair.right);
        let (left, right) = self.nodes.pair(&mut self.log, nodes, pair.level, cause)?;
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
        Ok(giver)
    }

    /// Moves entries between two neighbours, which `self.separator` separates then; false, and
    /// nothing changed, if their parent has no room for it.
    pub(in super::super) fn shift(
        &mut self,
        pair: Neighbours,
        shift: Shift,
        cause: Cause,
    ) -> Result<bool> {
        if !self.rename(pair, cause)? {
            return Ok(false);
        }
        let change = |codec: &Codec, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]| {
            codec.apply_shift(left, right, shift, scratch);
        };
        self.nodes.change_pair(&mut self.log, (pair.left, pair.right), pair.level, change)?;
        Ok(true)
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
            return Err(self.damage_of(pair.right, MISPLACED));
        }
        self.nodes.edit(&mut self.log, parent, Edit::Remove { place })?;
        let value = pair.right.0.to_le_bytes();
        let value = Stored::inline(&value);
        let renamed = Edit::Insert { place, key: &self.separator, value };
        if self.nodes.edit(&mut self.log, parent, renamed)? {
            return Ok(true);
        }
        let as_before = Edit::Insert { place, key: &self.previous, value };
        match self.nodes.edit(&mut self.log, parent, as_before)? {
            true => Ok(false),
            false => Err(self.damage_of(parent.0, "what was taken away does not fit")),
        }
    }
}

/// Where `node` is split, so that both halves are at least a quarter full: at the middle, or before
/// it if a long entry there left too little behind it.
pub(in super::super) fn split_middle(codec: &Codec, node: &[u8]) -> usize {
    last_filled(codec, node, codec.middle(node))
}

/// The last place up to `at` from which on the entries of `node` fill a quarter of one.
pub(in super::super) fn last_filled(codec: &Codec, node: &[u8], at: usize) -> usize {
    let fills = |at: &usize| codec.is_filled_from(node, *at, QUARTER);
    (1..=at).rev().find(fills).unwrap_or(at)
}
