//! Nodes in disk mode: each is a sector of its own, written as a whole, and cached until it has to
//! leave.
//!
//! A page that changes gets a sector at once, so that all that an update takes is there when it is
//! made; it is written when it leaves the cache, or before a checkpoint. That is another sector if
//! the last checkpoint needs what it stood in, which is given back.

use device::Cause;
use index::Result;
use store::LogicalPage;

use super::choices::Mode;
use super::layout::whole_parts;
use super::store::{Store, bad_node};
use super::switching::{Node, Operation};
use super::table::NodeId;
use store::node;

/// Nodes that are due to become pages, at most: those beyond are noted when they are read again.
pub(super) const DUE_MOST: usize = 8;

impl Store<'_> {
    /// Counts what a node does to the device; true if it is to change its mode.
    pub(super) fn serve(&mut self, id: NodeId, operation: Operation) -> bool {
        if !matches!(self.shape.mode, Mode::SelfTuning { .. }) {
            return false;
        }
        let mut node = self.counted_node(id);
        #[cfg(test)]
        self.served.push((id, operation, node));
        let is_due = node.serve(&self.costs, operation, self.shape.mode);
        self.table.set_counter(id, node.counter);
        is_due
    }

    fn counted_node(&self, id: NodeId) -> Node {
        Node {
            counter: self.table.counter(id),
            sectors: self.table.list(id).len() as u32,
            is_page: self.table.is_page(id),
        }
    }

    /// A node was read. One that is due becomes a page before the next update: whoever only reads
    /// writes nothing.
    pub(super) fn count_read(&mut self, id: NodeId) {
        let sectors = self.table.list(id).len() as u32;
        if self.serve(id, Operation::Read { sectors }) && !self.table.is_page(id) {
            self.note_due(id);
        }
    }

    /// A node in log mode is to become a page, if there is room to remember that.
    pub(super) fn note_due(&mut self, id: NodeId) {
        if !self.due.contains(&id) && self.due.len() < self.due.capacity() {
            self.due.push(id);
        }
    }

    /// Lets nodes become pages that are due, as long as there is room beside what is promised.
    pub(crate) fn adapt(&mut self) -> Result<()> {
        while let Some(id) = self.due.last().copied() {
            if u64::from(self.file.pages_free()) <= self.promised {
                break;
            }
            self.due.pop();
            let is_due = self.table.exists(id) && !self.table.is_page(id);
            if !is_due || !self.counted_node(id).is_due(&self.costs) {
                continue;
            }
            match self.frame(id, Cause::Update) {
                Ok(frame) => self.become_page(id, frame)?,
                // What is damaged is told when it is needed.
                Err(index::Error::Store(error)) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The node in `frame` goes to disk mode.
    fn become_page(&mut self, id: NodeId, frame: u32) -> Result<()> {
        let sector = self.file.allocate(Cause::Update)?;
        if self.frames.state(frame).is_marked {
            self.marked.retain(|marked| *marked != id);
        }
        self.buffer.remove(id);
        self.frames.state_mut(frame).is_marked = false;
        self.set_dirty(frame, true);
        // The write that it takes is a part of the change.
        self.frames.state_mut(frame).was_changed = true;
        self.counted.to_disk += 1;
        let released = self.release(id);
        self.table.set_page(id, true);
        self.enter_page(id, sector)?;
        released
    }

    /// The page in `frame` is about to change: it gets another sector, unless it has one to which
    /// it was not written yet. Where no checkpoint needs what that holds, it is given back first,
    /// and taken again: so a sector has one image in an epoch, where names of checkpoints are kept.
    pub(super) fn make_dirty(&mut self, id: NodeId, frame: u32) -> Result<()> {
        if self.frames.state(frame).is_dirty {
            return Ok(());
        }
        let old = self.table.list(id).next();
        if old.is_some_and(|old| !self.file.is_needed(old)) {
            self.set_dirty(frame, true);
            let taken = self.release(id).and_then(|()| Ok(self.file.allocate(Cause::Update)?));
            // Without a sector it is no node.
            self.is_poisoned |= taken.is_err();
            return self.enter_page(id, taken?);
        }
        self.move_page(id, frame)
    }

    /// The page in `frame` gets another sector, to which it is to be written.
    pub(super) fn move_page(&mut self, id: NodeId, frame: u32) -> Result<()> {
        if self.frames.state(frame).is_dirty {
            return Ok(());
        }
        let sector = self.file.allocate(Cause::Update)?;
        self.set_dirty(frame, true);
        let released = self.release(id);
        self.enter_page(id, sector)?;
        released
    }

    pub(super) fn set_dirty(&mut self, frame: u32, is_dirty: bool) {
        let state = self.frames.state_mut(frame);
        match (core::mem::replace(&mut state.is_dirty, is_dirty), is_dirty) {
            (false, true) => self.dirty += 1,
            (true, false) => self.dirty = self.dirty.saturating_sub(1),
            _ => {}
        }
    }

    /// The list of a page, which is empty, gets its sector.
    pub(super) fn enter_page(&mut self, id: NodeId, sector: LogicalPage) -> Result<()> {
        if self.table.push(id, sector) {
            return Ok(());
        }
        self.is_poisoned = true;
        Err(bad_node(id, "its list of sectors is too long").into())
    }

    /// The page in `frame` goes to log mode: the next commit logs all of it.
    pub(super) fn leave_page(&mut self, id: NodeId, frame: u32) -> Result<()> {
        self.forget_unwritten(id, frame)?;
        self.table.set_page(id, false);
        self.counted.to_log += 1;
        self.mark(id, frame);
        Ok(())
    }

    /// Gives back the sector of a page that was not written to it.
    pub(super) fn forget_unwritten(&mut self, id: NodeId, frame: u32) -> Result<()> {
        if !self.frames.state(frame).is_dirty {
            return Ok(());
        }
        let listed = self.table.list(id).next();
        if let Some(sector) = listed {
            // Nothing is read of it then when it is given back.
            self.file.fresh(sector)?;
        }
        self.set_dirty(frame, false);
        self.release(id)
    }

    /// Writes the page in `frame` to its sector.
    pub(super) fn write_page(&mut self, frame: u32) -> Result<()> {
        let Some(id) = self.frames.key(frame).map(NodeId) else {
            return Ok(());
        };
        let Some(sector) = self.table.list(id).next() else {
            return Err(bad_node(id, "no sector is there for this node").into());
        };
        let image = self.frames.bytes(frame);
        let level = node::level(image);
        let kept = self.shape.codecs.at(level).kept_bytes(image);
        let (parts, _) = whole_parts(image, kept);
        self.packer.begin();
        self.packer.add_alone((id, level, true), parts);
        self.write_packed(sector)?;
        self.set_dirty(frame, false);
        self.frames.state_mut(frame).was_changed = false;
        self.counted.pages += 1;
        Ok(())
    }

    /// Writes all pages that changed.
    pub(crate) fn write_pages(&mut self) -> Result<()> {
        if self.shape.mode == Mode::Log {
            return Ok(());
        }
        for frame in 0..self.frames.len() {
            if self.frames.key(frame).is_some() && self.frames.state(frame).is_dirty {
                self.write_page(frame)?;
            }
            // In disk mode the others would be written as well.
            self.frames.state_mut(frame).was_changed = false;
        }
        Ok(())
    }
}
