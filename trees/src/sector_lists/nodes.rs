//! Nodes to the B+-tree: a change is an index unit, but for what splits, joins or takes over
//! entries of a neighbour. That is written anew: as units it would take more.

use alloc::vec::Vec;

use device::Cause;
use index::Result;
use store::LEVELS_MOST;
use store::node::{self, Codec, Shift};

use super::choices::Mode;
use super::layout::{NUMBERS_MOST, Unit, shape_at};
use super::store::{Store, bad_node};
use super::switching::Operation;
use super::table::NodeId;
use crate::btree::{At, Edit, Node, NodeSource, NodeStore};

impl NodeSource for Store<'_> {
    type Id = NodeId;

    fn node(&mut self, at: At<NodeId>, cause: Cause) -> Result<Node<'_>> {
        let frame = self.frame(at.id, cause)?;
        let bytes = self.frames.bytes(frame);
        if node::level(bytes) != at.level {
            return Err(bad_node(at.id, "it is at another level").into());
        }
        Ok(Node { codec: *self.shape.codecs.at(at.level), bytes })
    }

    fn nodes_most(&self) -> u64 {
        self.table.nodes().into()
    }
}

impl NodeStore for Store<'_> {
    fn edit(&mut self, at: At<NodeId>, edit: Edit<'_>, cause: Cause) -> Result<bool> {
        let place = match edit {
            Edit::Insert { key, value, .. } => {
                let unit = Unit::Put { key, value: value.bytes() };
                return self.change(at, edit, &unit, cause);
            }
            Edit::Replace { place, .. } | Edit::Remove { place } => place,
        };
        // A unit names what it changes by the key, which stands in the node only.
        let key = self.take_key(at, place, cause)?;
        let unit = match edit {
            Edit::Replace { value, .. } => Unit::Put { key: &key, value: value.bytes() },
            _ => Unit::Delete { key: &key },
        };
        let changed = self.change(at, edit, &unit, cause);
        self.key = key;
        changed
    }

    fn create(&mut self, level: u8, _: Cause) -> Result<NodeId> {
        self.create_in(level, self.shape.mode == Mode::Disk)
    }

    fn free(&mut self, at: At<NodeId>, _: Cause) -> Result<()> {
        if let Some(frame) = self.frames.find(at.id.0) {
            self.forget_unwritten(at.id, frame)?;
            self.frames.forget(frame);
        }
        self.marked.retain(|marked| *marked != at.id);
        self.buffer.remove(at.id);
        self.release(at.id)?;
        self.table.free(at.id);
        let nodes = &mut self.levels[usize::from(at.level) % LEVELS_MOST];
        *nodes = nodes.saturating_sub(1);
        self.counted.freed += 1;
        Ok(())
    }

    fn pair(
        &mut self,
        left: At<NodeId>,
        right: NodeId,
        cause: Cause,
    ) -> Result<(Node<'_>, Node<'_>)> {
        // Both may be written anew, and their parent gets two units.
        self.make_room(4)?;
        let [one, other] = self.frames_of(left, right, cause)?;
        let codec = *self.shape.codecs.at(left.level);
        let node = |frame: u32| Node { codec, bytes: self.frames.bytes(frame) };
        Ok((node(one), node(other)))
    }

    fn split(&mut self, at: At<NodeId>, place: usize, cause: Cause) -> Result<NodeId> {
        let is_page = match self.shape.mode {
            Mode::SelfTuning { splits_alike, .. } => splits_alike && self.table.is_page(at.id),
            mode => mode == Mode::Disk,
        };
        let right = self.create_in(at.level, is_page)?;
        self.change_both(at, right, cause, |codec, left, right, scratch| {
            codec.split_off(left, place, right, scratch);
        })?;
        Ok(right)
    }

    fn join(&mut self, left: At<NodeId>, right: NodeId, cause: Cause) -> Result<()> {
        self.change_both(left, right, cause, |codec, one, other, scratch| {
            codec.join(one, other, scratch);
        })
    }

    fn shift(&mut self, left: At<NodeId>, right: NodeId, shift: Shift, cause: Cause) -> Result<()> {
        self.change_both(left, right, cause, |codec, one, other, scratch| {
            codec.apply_shift(one, other, shift, scratch);
        })
    }
}

impl Store<'_> {
    /// Makes a node without entries, in disk mode if it `is_page`.
    fn create_in(&mut self, level: u8, is_page: bool) -> Result<NodeId> {
        // Its neighbour may be written anew, too, and its parent gets a unit.
        self.make_room(3)?;
        self.free_frame()?;
        let page = match is_page {
            true => Some(self.file.allocate(Cause::Update)?),
            false => None,
        };
        let id = self.table.allocate();
        let nodes = self.levels.get_mut(usize::from(level)).filter(|_| id.0 < NUMBERS_MOST);
        let Some(nodes) = nodes else {
            return Err(bad_node(id, "the tree is larger than its nodes allow").into());
        };
        *nodes += 1;
        self.counted.made += 1;
        let frame = self.frames.enter(id.0);
        match page {
            Some(sector) => {
                self.table.set_page(id, true);
                self.enter_page(id, sector)?;
                self.set_dirty(frame, true);
            }
            None => self.mark(id, frame),
        }
        let bytes = self.frames.bytes_mut(frame);
        bytes.fill(0);
        self.shape.codecs.at(level).initialise(bytes, level);
        Ok(id)
    }

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

    /// Changes two neighbours, which are written anew.
    fn change_both(
        &mut self,
        left: At<NodeId>,
        right: NodeId,
        cause: Cause,
        change: impl FnOnce(&Codec, &mut [u8], &mut [u8], &mut [u8]),
    ) -> Result<()> {
        let [one, other] = self.frames_of(left, right, cause)?;
        for (id, frame) in [(left.id, one), (right, other)] {
            self.prepare(id, frame, |is_first| Operation::Whole { is_first })?;
        }
        let Store { frames, shape, scratch, .. } = self;
        let Some((left_bytes, right_bytes)) = frames.two_mut(one, other) else {
            return Err(bad_node(left.id, "it is its own neighbour").into());
        };
        change(shape.codecs.at(left.level), left_bytes, right_bytes, scratch);
        for (id, frame) in [(left.id, one), (right, other)] {
            if !self.table.is_page(id) {
                self.mark(id, frame);
            }
        }
        Ok(())
    }

    /// Changes a node and notes the unit; false, and nothing changed, if there is no room.
    fn change(
        &mut self,
        at: At<NodeId>,
        edit: Edit<'_>,
        unit: &Unit<'_>,
        cause: Cause,
    ) -> Result<bool> {
        self.make_room_for(unit.bytes(shape_at(at.level, self.shape.codecs.shape)))?;
        let frame = self.frame(at.id, cause)?;
        let before = self.counted_before(at.id, frame);
        self.prepare(at.id, frame, |is_first| Operation::Write { is_first })?;
        let Store { frames, shape, scratch, .. } = self;
        let is_done = edit.apply(shape.codecs.at(at.level), frames.bytes_mut(frame), scratch);
        match is_done {
            true => self.note(at.id, at.level, frame, unit),
            false => self.take_back(at.id, frame, before),
        }
        Ok(is_done)
    }

    /// What `prepare` counts of the node in `frame`.
    fn counted_before(&self, id: NodeId, frame: u32) -> (bool, i32, bool) {
        (self.table.is_page(id), self.table.counter(id), self.frames.state(frame).was_changed)
    }

    /// The change that was counted was not made: the split that follows is counted by itself. A
    /// node that went to log mode by it stays there, with nothing counted.
    fn take_back(&mut self, id: NodeId, frame: u32, before: (bool, i32, bool)) {
        let (was_page, counter, was_changed) = before;
        if self.table.is_page(id) == was_page {
            self.table.set_counter(id, counter);
        }
        self.frames.state_mut(frame).was_changed = was_changed;
        #[cfg(test)]
        if matches!(self.shape.mode, Mode::SelfTuning { .. }) {
            self.served.pop();
        }
    }

    /// The node in `frame` is about to change: that is counted, and may take it to log mode.
    fn prepare(
        &mut self,
        id: NodeId,
        frame: u32,
        operation: impl FnOnce(bool) -> Operation,
    ) -> Result<()> {
        if self.shape.mode == Mode::Log {
            return Ok(());
        }
        let is_first = !core::mem::replace(&mut self.frames.state_mut(frame).was_changed, true);
        let is_due = self.serve(id, operation(is_first));
        match self.table.is_page(id) {
            true if is_due => self.leave_page(id, frame),
            true => self.make_dirty(id, frame),
            false if is_due => {
                self.note_due(id);
                Ok(())
            }
            false => Ok(()),
        }
    }
}
