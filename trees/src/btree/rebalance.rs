//! Borrowing and merging after deletes.

use alloc::vec::Vec;

use device::Cause;
use index::Result;
use store::Width;
use store::node::Shift;

use super::{At, BTree, Edit, Node, NodeId, NodeStore};

/// Two neighbours below one parent.
#[derive(Clone, Copy)]
struct Neighbours<I> {
    parent: At<I>,
    left: At<I>,
    right: I,
    /// The place of the right one in the parent.
    right_place: usize,
}

impl<I: NodeId> BTree<I> {
    /// Fills up the node at `level` of the path, which is less than half full: merges it with a
    /// neighbour, or takes entries from it.
    pub(super) fn rebalance<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        level: u8,
    ) -> Result<()> {
        if level >= self.root.level {
            return self.lower_root(store);
        }
        let Some(pair) = self.neighbours(store, level)? else {
            return Ok(());
        };
        let (left, right) = store.pair(pair.left, pair.right, Cause::Update)?;
        if !are_in_order(&left, &right, &mut self.previous) {
            let what = "its keys are not above those of its left neighbour";
            return Err(store.damaged(pair.right, what));
        }
        let codec = left.codec;
        if codec.joint_bytes(left.bytes, right.bytes) <= codec.node_bytes() {
            return self.merge(store, pair);
        }
        match codec.shift(left.bytes, right.bytes) {
            Some(shift) => self.borrow(store, pair, shift),
            None => Ok(()),
        }
    }

    /// The node at `level` of the path with its left neighbour, or else its right one.
    fn neighbours<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        level: u8,
    ) -> Result<Option<Neighbours<I>>> {
        let step = self.path.at(level + 1);
        let parent = At { id: step.id, level: level + 1 };
        let node = store.node(parent, Cause::Update)?;
        let right_place = step.place().max(1);
        if right_place >= node.count() {
            return Ok(None);
        }
        let left = At { id: node.child(right_place - 1), level };
        Ok(Some(Neighbours { parent, left, right: node.child(right_place), right_place }))
    }

    fn merge<S: NodeStore<Id = I>>(&mut self, store: &mut S, pair: Neighbours<I>) -> Result<()> {
        let Neighbours { parent, left, right, right_place } = pair;
        self.reshaped.note_merge(left, right);
        store.join(left, right, Cause::Update)?;
        store.edit(parent, Edit::Remove { place: right_place }, Cause::Update)?;
        let node = store.node(parent, Cause::Update)?;
        let goes_on = node.codec.is_underfull(node.bytes) || parent.level == self.root.level;
        store.free(At { id: right, ..left }, Cause::Update)?;
        if goes_on { self.rebalance(store, parent.level) } else { Ok(()) }
    }

    /// Moves entries between two neighbours, if the parent has room for the new separator.
    fn borrow<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        pair: Neighbours<I>,
        shift: Shift,
    ) -> Result<()> {
        let Neighbours { parent, left, right, right_place } = pair;
        let (one, other) = store.pair(left, right, Cause::Update)?;
        let (before, first) = match shift {
            Shift::Right(place) => (one.key(place - 1), one.key(place)),
            Shift::Left(moved) => (other.key(moved - 1), other.key(moved)),
        };
        first.copy_to(&mut self.separator);
        if left.level == 0 {
            self.codecs.shorten(&before, &mut self.separator);
        }
        // Keys of one length take each other's place.
        if self.codecs.shape.key == Width::Variable && !self.has_room(store, parent)? {
            return Ok(());
        }
        self.reshaped.note_shift(left, right);
        store.edit(parent, Edit::Remove { place: right_place }, Cause::Update)?;
        self.insert_child(store, parent, right_place, right, Cause::Update)?;
        store.shift(left, right, shift, Cause::Update)
    }

    /// Makes the root's only child the root, as long as it has only one.
    fn lower_root<S: NodeStore<Id = I>>(&mut self, store: &mut S) -> Result<()> {
        while self.root.level > 0 {
            let node = store.node(self.root, Cause::Update)?;
            match node.count() {
                0 => return Err(store.damaged(self.root.id, "it has no children")),
                1 => {}
                _ => break,
            }
            let child = node.child(0);
            store.free(self.root, Cause::Update)?;
            self.root = At { id: child, level: self.root.level - 1 };
        }
        Ok(())
    }
}

/// True if all keys of `right` are above those of `left`. What is joined has to fit together: it
/// may be damaged.
pub(crate) fn are_in_order(left: &Node<'_>, right: &Node<'_>, last: &mut Vec<u8>) -> bool {
    let Some(place) = left.count().checked_sub(1).filter(|_| right.count() > 0) else {
        return true;
    };
    left.key(place).copy_to(last);
    right.key(0).compare(last).is_gt()
}
