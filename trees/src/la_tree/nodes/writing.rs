//! How nodes get to raw flash (section 4.3): through the page of nodes that is being filled.
//!
//! A changed node goes there when it leaves the cache, without the room in it that is not in use.
//! What is in the page can still be read,
//! copied anew and taken out; once it is full, or a checkpoint is made, it is programmed, and the
//! tables say where its nodes stand.
//!
//! Invariant: a node is in the page once at most, and no table leads to that place before the page
//! is programmed.

use core::ops::Range;

use device::Cause;
use store::{PageLog, node};

use super::super::layout::{NODES, NodeId, damaged, seal_node};
use super::super::storage::Storage;
use super::Nodes;
use index::Result;

/// A node in the page that is being filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) id: NodeId,
    /// Where it begins in the content of the page, and its bytes.
    offset: u32,
    bytes: u32,
}

impl Nodes {
    /// Programs every node that is in memory only.
    pub(in super::super) fn write_all(
        &mut self,
        log: &mut Storage<'_>,
        cause: Cause,
    ) -> Result<()> {
        let Storage::Chip(log) = log else {
            return Ok(());
        };
        for frame in 0..self.cache.frames() {
            if let Some(id) = self.cache.dirty(frame) {
                self.leave(log, frame, id, cause)?;
            }
        }
        self.program(log, cause)
    }

    /// Gives a chunk of the cache back.
    pub(in super::super) fn give_frames_back(&mut self, log: &mut Storage<'_>) -> Result<()> {
        let Storage::Chip(log) = log else {
            return Ok(());
        };
        while let Some((frame, dirty)) = self.cache.oldest_to_stay() {
            if let Some(id) = dirty {
                self.leave(log, frame, id, Cause::Flush)?;
            }
            self.cache.take_from_last(frame);
        }
        for frame in self.cache.last_chunk() {
            if let Some(id) = self.cache.dirty(frame) {
                self.leave(log, frame, id, Cause::Flush)?;
            }
            self.cache.clear(frame);
        }
        self.cache.shrink();
        Ok(())
    }

    /// Lets node `id` be written to a new place, if it stands in an old page, and nowhere else.
    pub(in super::super) fn copy_old(
        &mut self,
        log: &mut Storage<'_>,
        id: NodeId,
        cause: Cause,
    ) -> Result<()> {
        let Storage::Chip(log) = log else {
            return Ok(());
        };
        let place = self.place(id).map(|place| self.pages.locate(place).0);
        if !place.is_some_and(|page| log.is_old(page)) {
            return Ok(());
        }
        let is_in_memory = self.slot_of(id).is_some()
            || self.cache.find(id).is_some_and(|frame| self.cache.dirty(frame).is_some());
        if is_in_memory {
            return Ok(());
        }
        let frame = self.frame_of_any(log, id, cause)?;
        self.leave(log, frame, id, cause)
    }

    /// A frame without a node.
    pub(super) fn free_frame(&mut self, log: &mut PageLog<'_>) -> Result<usize> {
        let (frame, dirty) = self.cache.oldest();
        if let Some(id) = dirty {
            self.leave(log, frame, id, Cause::Flush)?;
        }
        self.cache.clear(frame);
        Ok(frame)
    }

    /// Copies node `id` from its frame to the page that is being filled.
    fn leave(
        &mut self,
        log: &mut PageLog<'_>,
        frame: usize,
        id: NodeId,
        cause: Cause,
    ) -> Result<()> {
        let node = self.cache.node(frame);
        let used = self.at(node::level(node)).kept_bytes(node);
        let bytes = self.pages.stored_bytes(used);
        let mut slot = self.slot_of(id);
        if slot.is_some_and(|slot| self.bytes_of(slot).len() != bytes) {
            self.stop_waiting(id);
            slot = None;
        }
        let slot = match slot {
            Some(slot) => slot,
            None => {
                let is_full = self.filled() + bytes > self.pages.room() as usize;
                if is_full || self.waiting.len() == self.waiting.capacity() {
                    self.program(log, cause)?;
                }
                self.waiting.push(Waiting {
                    id,
                    offset: self.filled() as u32,
                    bytes: bytes as u32,
                });
                self.waiting.len() - 1
            }
        };
        let range = self.bytes_of(slot);
        device::copy(&mut self.page[range], &self.cache.node(frame)[..bytes]);
        self.cache.set_dirty(frame, false);
        Ok(())
    }

    /// Bytes of the page that is being filled which nodes take.
    fn filled(&self) -> usize {
        self.waiting.last().map_or(0, |last| (last.offset + last.bytes) as usize)
    }

    /// The bytes of the page that is being filled in which its node number `slot` stands.
    pub(super) fn bytes_of(&self, slot: usize) -> Range<usize> {
        let Some(waiting) = self.waiting.get(slot) else {
            return 0..0;
        };
        let from = (self.pages.first() + waiting.offset) as usize;
        from..from + waiting.bytes as usize
    }

    /// The slot of node `id` in the page that is being filled, if it is there.
    pub(super) fn slot_of(&self, id: NodeId) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.id == id)
    }

    /// The copy of node `id` in the page that is being filled is not valid any more.
    pub(super) fn stop_waiting(&mut self, id: NodeId) {
        let Some(slot) = self.slot_of(id) else {
            return;
        };
        let (gap, first) = (self.bytes_of(slot), self.pages.first() as usize);
        self.page.copy_within(gap.end..first + self.filled(), gap.start);
        self.waiting.remove(slot);
        for waiting in &mut self.waiting[slot..] {
            waiting.offset -= gap.len() as u32;
        }
    }

    /// Programs the page of nodes that is being filled.
    fn program(&mut self, log: &mut PageLog<'_>, cause: Cause) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let end = self.pages.first() as usize + self.filled();
        self.page[end..].fill(0xFF);
        let page = loop {
            log.reserve(1, &mut self.next, cause)?;
            let page = self.next[0];
            for slot in 0..self.waiting.len() {
                let Waiting { id, offset, bytes } = self.waiting[slot];
                let place = self.pages.place(page, offset as usize, bytes as usize);
                let place = place.ok_or(damaged(page, "its places have no numbers"))?;
                let range = self.bytes_of(slot);
                seal_node(id, place, &mut self.page[range]);
            }
            match log.program(page, &mut self.page, NODES, cause) {
                Err(error) if error.is_refusal() => {}
                programmed => break programmed.map(|()| page)?,
            }
        };
        self.programmed += 1;
        for slot in 0..self.waiting.len() {
            let Waiting { id, offset, bytes } = self.waiting[slot];
            let place = self.pages.place(page, offset as usize, bytes as usize);
            let (table, number) = self.table(id);
            if place.is_some_and(|place| table.numbers.move_to(NodeId(number), place)) {
                table.changed(number);
            }
        }
        self.waiting.clear();
        Ok(())
    }
}
