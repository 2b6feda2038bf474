//! Nodes to the B+-tree: each change is a delta, but for what takes over entries of a neighbour.
//!
//! That is written anew, as a page: as deltas it would take more.

use alloc::vec::Vec;

use device::Cause;
use store::LEVELS_MOST;
use store::node::{self, Codec, Shift};

use super::cache::Unsaved;
use super::layout::Delta;
use super::log_store::{LogStore, bad_node};
use super::table::NodeId;
use crate::btree::{At, Edit, Node, NodeSource, NodeStore};
use index::Result;

impl NodeSource for LogStore<'_> {
    type Id = NodeId;

    fn node(&mut self, at: At<NodeId>, cause: Cause) -> Result<Node<'_>> {
        let frame = self.frame(at.id, cause)?;
        let bytes = self.cache.node(frame);
        if node::level(bytes) != at.level {
            return Err(bad_node(at.id, "it is at another level").into());
        }
        Ok(Node { codec: *self.forms.at(at.level), bytes })
    }

    fn nodes_most(&self) -> u64 {
        self.table.live().into()
    }
}

impl NodeStore for LogStore<'_> {
    fn edit(&mut self, at: At<NodeId>, edit: Edit<'_>, cause: Cause) -> Result<bool> {
        let place = match edit {
            Edit::Insert { key, value, .. } => {
                let delta = Delta::Put { key, value: value.bytes() };
                return self.change(at, edit, &delta, cause);
            }
            Edit::Replace { place, .. } | Edit::Remove { place } => place,
        };
        // A delta names what it changes by the key, which stands in the node only.
        let key = self.take_key(at, place, cause)?;
        let delta = match edit {
            Edit::Replace { value, .. } => Delta::Put { key: &key, value: value.bytes() },
            _ => Delta::Delete { key: &key },
        };
        let changed = self.change(at, edit, &delta, cause);
        self.key = key;
        changed
    }

    fn create(&mut self, level: u8, cause: Cause) -> Result<NodeId> {
        self.free_frame(cause)?;
        let id = self.table.allocate();
        let Some(nodes) = self.levels.get_mut(usize::from(level)) else {
            return Err(bad_node(id, "the tree is higher than its nodes allow").into());
        };
        *nodes += 1;
        self.table.count_birth();
        let frame = self.cache.enter(id, Unsaved::All);
        self.forms.at(level).initialise(self.cache.node_mut(frame), level);
        Ok(id)
    }

    fn free(&mut self, at: At<NodeId>, _: Cause) -> Result<()> {
        if let Some(frame) = self.cache.find(at.id) {
            self.cache.forget(frame);
        }
        if let Some(block) = self.table.free(at.id) {
            self.drop_if_empty(block);
        }
        let nodes = &mut self.levels[usize::from(at.level) % LEVELS_MOST];
        *nodes = nodes.saturating_sub(1);
        Ok(())
    }

    fn pair(
        &mut self,
        left: At<NodeId>,
        right: NodeId,
        cause: Cause,
    ) -> Result<(Node<'_>, Node<'_>)> {
        let [one, other] = self.frames_of(left, right, cause)?;
        let codec = *self.forms.at(left.level);
        let node = |frame: u32| Node { codec, bytes: self.cache.node(frame) };
        Ok((node(one), node(other)))
    }

    fn split(&mut self, at: At<NodeId>, place: usize, cause: Cause) -> Result<NodeId> {
        let right = self.create(at.level, cause)?;
        let key = self.take_key(at, place, cause)?;
        let cut = self.cut(at, right, place, &key, cause);
        self.key = key;
        cut.map(|()| right)
    }

    fn join(&mut self, left: At<NodeId>, right: NodeId, cause: Cause) -> Result<()> {
        let frames = self.frames_of(left, right, cause)?;
        self.change_both(left, frames, |codec, one, other, scratch| {
            codec.join(one, other, scratch);
        })?;
        self.take_up(left.id, frames[0]);
        Ok(())
    }

    fn shift(&mut self, left: At<NodeId>, right: NodeId, shift: Shift, cause: Cause) -> Result<()> {
        let frames = self.frames_of(left, right, cause)?;
        self.change_both(left, frames, |codec, one, other, scratch| {
            codec.apply_shift(one, other, shift, scratch);
        })?;
        self.take_up(left.id, frames[0]);
        self.take_up(right, frames[1]);
        Ok(())
    }
}

impl LogStore<'_> {
    /// The key at `place` of a node, in memory that is to be given back.
    fn take_key(&mut self, at: At<NodeId>, place: usize, cause: Cause) -> Result<Vec<u8>> {
        let mut key = core::mem::take(&mut self.key);
        match self.node(at, cause) {
            Ok(node) => node.key(place).copy_to(&mut key),
            Err(error) => {
                self.key = key;
                return Err(error);
            }
        }
        Ok(key)
    }

    /// The frames of two neighbours: the cache has room for more than two.
    fn frames_of(&mut self, left: At<NodeId>, right: NodeId, cause: Cause) -> Result<[u32; 2]> {
        self.node(left, cause)?;
        self.node(At { id: right, ..left }, cause)?;
        Ok([self.frame(left.id, cause)?, self.frame(right, cause)?])
    }

    fn change_both(
        &mut self,
        left: At<NodeId>,
        frames: [u32; 2],
        change: impl FnOnce(&Codec, &mut [u8], &mut [u8], &mut [u8]),
    ) -> Result<()> {
        let LogStore { cache, forms, scratch, .. } = self;
        let Some((one, other)) = cache.two_mut(frames) else {
            return Err(bad_node(left.id, "it is its own neighbour").into());
        };
        change(forms.at(left.level), one, other, scratch);
        Ok(())
    }

    /// What a node took over takes another page.
    fn take_up(&mut self, id: NodeId, frame: u32) {
        self.cache.renewed(frame, Unsaved::All);
        self.table.count_birth();
        if let Some(block) = self.table.take_up(id) {
            self.drop_if_empty(block);
        }
    }

    /// Moves the entries from `place` on, where `key` stands, to the empty node `right`.
    fn cut(
        &mut self,
        at: At<NodeId>,
        right: NodeId,
        place: usize,
        key: &[u8],
        cause: Cause,
    ) -> Result<()> {
        let delta = Delta::Cut { key };
        self.make_room_for(at, &delta, cause)?;
        let frames = self.frames_of(at, right, cause)?;
        self.change_both(at, frames, |codec, left, right, scratch| {
            codec.split_off(left, place, right, scratch);
        })?;
        self.add_delta(at, frames[0], &delta);
        Ok(())
    }

    /// Changes a node and remembers the delta; false, and nothing changed, if there is no room.
    fn change(
        &mut self,
        at: At<NodeId>,
        edit: Edit<'_>,
        delta: &Delta<'_>,
        cause: Cause,
    ) -> Result<bool> {
        let frame = self.make_room_for(at, delta, cause)?;
        let LogStore { cache, scratch, forms, .. } = self;
        let is_done = edit.apply(forms.at(at.level), cache.node_mut(frame), scratch);
        if is_done {
            self.add_delta(at, frame, delta);
        }
        Ok(is_done)
    }

    /// The frame of a node that is changed, whose newest record has room for the delta.
    fn make_room_for(&mut self, at: At<NodeId>, delta: &Delta<'_>, cause: Cause) -> Result<u32> {
        let frame = self.frame(at.id, cause)?;
        self.table.count_change();
        let bytes = delta.bytes(self.forms.deltas(at.level));
        let most = self.forms.record_bytes().saturating_sub(bytes);
        if self.cache.record(frame).len() > most {
            self.write_back(frame, cause)?;
        }
        // It was written as a record, and not anew.
        if let Some(record) = self.table.place(at.id).and_then(|place| place.record)
            && self.cache.record(frame).len() > most
            && !self.cache.begin_record(frame, record)
        {
            self.cache.renewed(frame, Unsaved::Anew);
        }
        Ok(frame)
    }

    fn add_delta(&mut self, at: At<NodeId>, frame: u32, delta: &Delta<'_>) {
        let shape = self.forms.deltas(at.level);
        self.cache.add_delta(frame, delta.bytes(shape), |into| delta.write(shape, into));
    }
}
