//! Changes of a B+-tree: puts with splits, deletes, and a new root.

use alloc::vec::Vec;

use device::Cause;
use index::{OverflowValue, Result};
use store::node::Stored;

use super::{
    At, CHILD_BYTES, Codecs, Edit, HEIGHT_MOST, Node, NodeId, NodeStore, Path, Reshaped, Toward,
    descend,
};

/// A B+-tree, all but its nodes.
pub(crate) struct BTree<I> {
    pub(crate) root: At<I>,
    pub(crate) entries: u64,
    /// Percent of a node that keys in ascending order fill.
    pub(crate) fill_percent: u8,
    /// True where a change was broken off while more than one node was being changed.
    pub(crate) is_poisoned: bool,
    /// Nodes whose keys went to others.
    pub(crate) reshaped: Reshaped<I>,
    pub(crate) codecs: Codecs,
    pub(super) path: Path<I>,
    /// A separator on its way to the parent.
    pub(super) separator: Vec<u8>,
    /// The key before: of an entry that was loaded, of a left neighbour.
    pub(super) previous: Vec<u8>,
}

/// How a put found its leaf.
pub(super) enum Put {
    /// The long value that the entry had before.
    Done(Option<OverflowValue>),
    /// There was no room for the entry, which belongs behind all others if `is_last`, and `beside`
    /// them if no half would take it.
    Full { is_last: bool, beside: Option<Side> },
}

impl Put {
    fn full(node: &Node<'_>, edit: Edit<'_>) -> Put {
        match edit {
            Edit::Insert { place, key, value } => Put::Full {
                is_last: place == node.count(),
                beside: Side::of(node, place, (key, value.bytes().len())),
            },
            _ => Put::Full { is_last: false, beside: None },
        }
    }
}

/// An end of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

impl Side {
    /// The side of `node` on which `key`, which belongs at `place`, stands apart from all others:
    /// it does not begin with what they share, and would lengthen each in the half there until
    /// they have no room. Between two of them no key is apart.
    fn of(node: &Node<'_>, place: usize, (key, value): (&[u8], usize)) -> Option<Side> {
        let (count, middle) = (node.count(), node.codec.nearest_middle(node.bytes));
        let (side, half) = match place {
            _ if count < 2 => return None,
            0 => (Side::Left, 0..middle),
            _ if place == count => (Side::Right, middle..count),
            _ => return None,
        };
        let has_room = node.codec.part_has_room(node.bytes, half, key, value);
        (!has_room).then_some(side)
    }
}

/// Where a node is split.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Entries arrive at the right edge of the tree: the node keeps most of them.
    is_append: bool,
    /// What comes would lengthen all others: it gets a node with the last on its side alone.
    beside: Option<Side>,
}

impl<I: NodeId> BTree<I> {
    /// A tree whose root is the empty leaf `root`.
    pub(crate) fn new(root: I, codecs: Codecs, fill_percent: u8) -> Self {
        let longest = codecs.leaf.entry_bytes_most();
        BTree {
            root: At::leaf(root),
            entries: 0,
            fill_percent,
            is_poisoned: false,
            reshaped: Reshaped::NONE,
            codecs,
            path: Path::new(root),
            separator: Vec::with_capacity(longest),
            previous: Vec::with_capacity(longest),
        }
    }

    /// Nodes from the root to a leaf.
    pub(crate) const fn height(&self) -> u8 {
        self.root.level + 1
    }

    /// Pages that one update changes: on each level a node, its new neighbour or the one it merges
    /// with; their parent is on the next level. Then a new root, and a page of the free list before
    /// and after.
    pub(crate) fn pages_of_one(&self) -> u32 {
        3 * u32::from(self.height()) + 4
    }

    /// Goes down from the root to a leaf, and keeps the path.
    pub(super) fn seek<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        toward: Toward<'_>,
        cause: Cause,
    ) -> Result<I> {
        self.path.begin();
        descend(store, self.root, toward, cause, &mut self.path)
    }

    /// The leaf where `key` is or belongs.
    pub(crate) fn find_leaf<'s, S: NodeStore<Id = I>>(
        &mut self,
        store: &'s mut S,
        key: &[u8],
    ) -> Result<Node<'s>> {
        let leaf = self.seek(store, Toward::Key(key), Cause::Update)?;
        store.node(At::leaf(leaf), Cause::Update)
    }

    /// Inserts or replaces an entry; returns the long value that it had before.
    pub(crate) fn put<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        key: &[u8],
        value: Stored<'_>,
    ) -> Result<Option<OverflowValue>> {
        loop {
            let leaf = self.seek(store, Toward::Key(key), Cause::Update)?;
            let cut = match self.put_into(store, leaf, key, value)? {
                Put::Done(before) => return Ok(before),
                Put::Full { is_last, beside } => {
                    Cut { is_append: is_last && self.path.is_rightmost(), beside }
                }
            };
            self.is_poisoned = true;
            let split = self.split(store, 0, cut)?;
            self.is_poisoned = false;
            // Where room had to be made above the leaf first, the way down has changed.
            let Some(right) = split else { continue };
            let half = if key < self.separator.as_slice() { leaf } else { right };
            if let Put::Done(before) = self.put_into(store, half, key, value)? {
                return Ok(before);
            }
        }
    }

    pub(super) fn put_into<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        leaf: I,
        key: &[u8],
        value: Stored<'_>,
    ) -> Result<Put> {
        let at = At::leaf(leaf);
        let node = store.node(at, Cause::Update)?;
        let (edit, before) = match node.search(key) {
            Ok(place) => (Edit::Replace { place, value }, node.value(place).as_long()),
            Err(place) => (Edit::Insert { place, key, value }, None),
        };
        if !store.edit(at, edit, Cause::Update)? {
            let node = store.node(at, Cause::Update)?;
            return Ok(Put::full(&node, edit));
        }
        if matches!(edit, Edit::Insert { .. }) {
            self.entries = self.entries.saturating_add(1);
        }
        Ok(Put::Done(before))
    }

    /// Takes the entry of `key` away; returns the long value that it had.
    pub(crate) fn delete<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        key: &[u8],
    ) -> Result<Option<OverflowValue>> {
        let leaf = self.seek(store, Toward::Key(key), Cause::Update)?;
        let at = At::leaf(leaf);
        let node = store.node(at, Cause::Update)?;
        let Ok(place) = node.search(key) else {
            return Ok(None);
        };
        let before = node.value(place).as_long();
        let what = "the root counts fewer entries than there are";
        self.entries = self.entries.checked_sub(1).ok_or_else(|| store.damaged(leaf, what))?;
        store.edit(at, Edit::Remove { place }, Cause::Update)?;
        let node = store.node(at, Cause::Update)?;
        if node.codec.is_underfull(node.bytes) {
            self.is_poisoned = true;
            self.rebalance(store, 0)?;
            self.is_poisoned = false;
        }
        Ok(before)
    }

    /// Splits the node at `level` of the path, or, where its parent has no room for one more child,
    /// a node above it. Returns the new right neighbour of the node, which `self.separator`
    /// separates from it; or `None` if room was made above only, and the path is to be walked
    /// again.
    ///
    /// One split is always enough for what comes: it has a quarter of a node at most, and a half
    /// that has room for a quarter is what each [`Cut`] leaves on its side.
    fn split<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        level: u8,
        cut: Cut,
    ) -> Result<Option<I>> {
        if level == self.root.level {
            self.grow(store, Cause::Update)?;
        }
        let at = At { id: self.path.at(level).id, level };
        let place = self.split_place(store, at, cut)?;
        let step = self.path.at(level + 1);
        let parent = At { id: step.id, level: level + 1 };
        if !self.has_room(store, parent)? {
            let node = store.node(parent, Cause::Update)?;
            let child = (self.separator.as_slice(), usize::from(CHILD_BYTES));
            let beside = Side::of(&node, step.place() + 1, child);
            self.split(store, level + 1, Cut { beside, ..cut })?;
            return Ok(None);
        }
        self.reshaped.note_split(at);
        let right = store.split(at, place, Cause::Update)?;
        self.insert_child(store, parent, step.place() + 1, right, Cause::Update)?;
        Ok(Some(right))
    }

    /// The place from which on entries go to a new node; `self.separator` separates them.
    fn split_place<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        at: At<I>,
        cut: Cut,
    ) -> Result<usize> {
        let node = store.node(at, Cause::Update)?;
        let count = node.count();
        if count < 2 {
            return Err(store.damaged(at.id, "it is full with one entry"));
        }
        let place = match cut {
            Cut { beside: Some(Side::Left), .. } => 1,
            Cut { beside: Some(Side::Right), .. } => count - 1,
            Cut { is_append: true, .. } => self.append_place(&node),
            Cut { .. } => node.codec.nearest_middle(node.bytes),
        };
        node.key(place).copy_to(&mut self.separator);
        if at.level == 0 {
            self.codecs.shorten(&node.key(place - 1), &mut self.separator);
        }
        Ok(place)
    }

    /// The place behind `fill_percent` of the entries; where lengths vary, behind half of the bytes
    /// at least.
    fn append_place(&self, node: &Node<'_>) -> usize {
        let count = node.count();
        let filled = (count * usize::from(self.fill_percent)).div_ceil(100).clamp(1, count - 1);
        filled.max(node.codec.nearest_middle(node.bytes))
    }

    /// True if `parent` has room for one more child, from `self.separator` on.
    pub(super) fn has_room<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        parent: At<I>,
    ) -> Result<bool> {
        let node = store.node(parent, Cause::Update)?;
        Ok(node.codec.has_room(node.bytes, &self.separator, 4))
    }

    /// Gives the root a parent.
    pub(super) fn grow<S: NodeStore<Id = I>>(&mut self, store: &mut S, cause: Cause) -> Result<()> {
        let level = self.root.level + 1;
        if usize::from(level) >= HEIGHT_MOST {
            return Err(store.damaged(self.root.id, "the tree is higher than its pages allow"));
        }
        let root = At { id: store.create(level, cause)?, level };
        self.codecs.lowest(&mut self.separator);
        self.insert_child(store, root, 0, self.root.id, cause)?;
        self.path.set(level, root.id, 0);
        self.root = root;
        Ok(())
    }

    /// Makes `child`, from `self.separator` on, the child at `place` of `parent`, which has room.
    pub(super) fn insert_child<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        parent: At<I>,
        place: usize,
        child: I,
        cause: Cause,
    ) -> Result<()> {
        let node = store.node(parent, cause)?;
        if place > node.count() {
            // A damaged free list gave out a page that is in use.
            return Err(store.damaged(parent.id, "it was on the free list, and it is in use"));
        }
        // A store that records changes finds the place again by the key.
        if node.search(&self.separator) != Err(place) {
            return Err(store.damaged(parent.id, "its children have keys of others"));
        }
        let child = child.to_bytes();
        let edit = Edit::Insert { place, key: &self.separator, value: Stored::inline(&child) };
        match store.edit(parent, edit, cause)? {
            true => Ok(()),
            false => Err(store.damaged(parent.id, "it has no room")),
        }
    }
}

#[cfg(test)]
mod tests;
