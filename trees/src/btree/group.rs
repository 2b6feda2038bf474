//! A leaf changed by many updates at once: one descent, and one rebalancing at the end.

use alloc::vec::Vec;

use device::Cause;
use index::Result;
use store::node::Stored;

use super::change::Put;
use super::{At, BTree, Edit, NodeId, NodeStore, Toward};

/// Nodes that are remembered by name.
const NODES_MOST: usize = 16;

/// Nodes that split, merged or took over keys since this was cleared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reshaped<I> {
    nodes: [Option<At<I>>; NODES_MOST],
    len: usize,
    pub(crate) splits: u32,
    pub(crate) merges: u32,
    pub(crate) shifts: u32,
}

impl<I: NodeId> Reshaped<I> {
    pub(crate) const NONE: Self =
        Reshaped { nodes: [None; NODES_MOST], len: 0, splits: 0, merges: 0, shifts: 0 };

    fn note(&mut self, node: At<I>) {
        if let Some(place) = self.nodes.get_mut(self.len) {
            *place = Some(node);
        }
        self.len += 1;
    }

    #[inline]
    pub(super) fn note_split(&mut self, node: At<I>) {
        self.note(node);
        self.splits += 1;
    }

    pub(super) fn note_merge(&mut self, left: At<I>, right: I) {
        self.note(left);
        self.note(At { id: right, ..left });
        self.merges += 1;
    }

    pub(super) fn note_shift(&mut self, left: At<I>, right: I) {
        self.note(left);
        self.note(At { id: right, ..left });
        self.shifts += 1;
    }

    /// The nodes; `None` if they are more than are remembered.
    pub(crate) fn nodes(&self) -> Option<impl Iterator<Item = At<I>>> {
        let nodes = self.nodes.get(..self.len)?;
        Some(nodes.iter().copied().flatten())
    }
}

impl<I: NodeId> BTree<I> {
    /// The leaf where `key` is or belongs. `begin` gets the lowest key that belongs there, `end`
    /// the first one behind; false is returned if there is none.
    pub(crate) fn find_range<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        key: &[u8],
        (begin, end): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<(I, bool)> {
        let leaf = self.seek(store, Toward::Key(key), Cause::Update)?;
        self.codecs.lowest(begin);
        for level in 1..=self.root.level {
            let step = self.path.at(level);
            let node = store.node(At { id: step.id, level }, Cause::Update)?;
            if level == 1 && step.place() < node.count() {
                node.key(step.place()).copy_to(begin);
            }
            if step.place() + 1 < node.count() {
                node.key(step.place() + 1).copy_to(end);
                return Ok((leaf, true));
            }
        }
        Ok((leaf, false))
    }

    /// Takes an entry out of `leaf`, if it is there, and leaves the leaf as it then is: see
    /// [`BTree::mend`].
    pub(crate) fn remove_from<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        leaf: I,
        key: &[u8],
    ) -> Result<bool> {
        let at = At::leaf(leaf);
        let Ok(place) = store.node(at, Cause::Update)?.search(key) else {
            return Ok(false);
        };
        let what = "the root counts fewer entries than there are";
        self.entries = self.entries.checked_sub(1).ok_or_else(|| store.damaged(leaf, what))?;
        store.edit(at, Edit::Remove { place }, Cause::Update)
    }

    /// Inserts or replaces an entry in `leaf`, where it belongs; false, with nothing changed, if
    /// the leaf has no room: [`BTree::put`] splits it.
    pub(crate) fn put_in<S: NodeStore<Id = I>>(
        &mut self,
        store: &mut S,
        leaf: I,
        (key, value): (&[u8], &[u8]),
    ) -> Result<bool> {
        Ok(matches!(self.put_into(store, leaf, key, Stored::inline(value))?, Put::Done(_)))
    }

    /// Borrows or merges if the leaf where `key` is or belongs is less than half full.
    pub(crate) fn mend<S: NodeStore<Id = I>>(&mut self, store: &mut S, key: &[u8]) -> Result<()> {
        let leaf = self.seek(store, Toward::Key(key), Cause::Update)?;
        let node = store.node(At::leaf(leaf), Cause::Update)?;
        if node.codec.is_underfull(node.bytes) {
            self.is_poisoned = true;
            self.rebalance(store, 0)?;
            self.is_poisoned = false;
        }
        Ok(())
    }
}
