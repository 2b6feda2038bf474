//! How nodes get to raw flash (section 4.3): through the page of nodes that is being filled.
//!
//! A changed node goes there when it leaves the cache. What is in the page can still be read,
//! copied anew and taken out; once it is full, or a checkpoint is made, it is programmed, and the
//! tables say where its nodes stand.
//!
//! Invariant: a node is in the page once at most, and no table leads to that place before the page
//! is programmed.

use device::Cause;
use store::PageLog;

use super::super::ground::Ground;
use super::super::layout::{NodeId, seal_node};
use super::{NODES, Nodes, damaged};
use index::Result;

impl Nodes {
    /// Programs every node that is in memory only.
    ///
    /// # Errors
    /// No page is free, or the chip failed.
    pub(in super::super) fn write_all(&mut self, log: &mut Ground<'_>, cause: Cause) -> Result<()> {
        let Ground::Chip(log) = log else {
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
    ///
    /// # Errors
    /// No page is free, or the chip failed.
    pub(in super::super) fn give_frames_back(&mut self, log: &mut Ground<'_>) -> Result<()> {
        let Ground::Chip(log) = log else {
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

    /// Lets node `id` be written to a new place, if it stands on flash only.
    ///
    /// # Errors
    /// As [`Nodes::node`].
    pub(in super::super) fn copy(
        &mut self,
        log: &mut Ground<'_>,
        id: NodeId,
        cause: Cause,
    ) -> Result<()> {
        let Ground::Chip(log) = log else {
            return Ok(());
        };
        let is_in_memory = self.waiting.contains(&id)
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
        let slot = match self.slot_of(id) {
            Some(slot) => slot,
            None => {
                if self.waiting.len() == self.pages.nodes_per_page() as usize {
                    self.program(log, cause)?;
                }
                self.waiting.push(id);
                self.waiting.len() - 1
            }
        };
        device::copy(&mut self.page[self.pages.slot(slot)], self.cache.node(frame));
        self.cache.set_dirty(frame, false);
        Ok(())
    }

    /// The slot of node `id` in the page that is being filled, if it is there.
    pub(super) fn slot_of(&self, id: NodeId) -> Option<usize> {
        self.waiting.iter().position(|waiting| *waiting == id)
    }

    /// The copy of node `id` in the page that is being filled is not valid any more.
    pub(super) fn stop_waiting(&mut self, id: NodeId) {
        let Some(slot) = self.slot_of(id) else {
            return;
        };
        let last = self.pages.slot(self.waiting.len() - 1);
        self.page.copy_within(last, self.pages.slot(slot).start);
        self.waiting.swap_remove(slot);
    }

    /// Programs the page of nodes that is being filled.
    fn program(&mut self, log: &mut PageLog<'_>, cause: Cause) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.page[self.pages.slot(self.waiting.len()).start..].fill(0xFF);
        let page = loop {
            log.reserve(1, &mut self.next, cause)?;
            let page = self.next[0];
            for (slot, id) in self.waiting.iter().enumerate() {
                let place = self.pages.place(page, slot as u32);
                let place = place.ok_or(damaged(page, "its places have no numbers"))?;
                seal_node(*id, place, &mut self.page[self.pages.slot(slot)]);
            }
            match log.program(page, &mut self.page, NODES, cause) {
                Err(error) if error.is_refusal() => {}
                programmed => break programmed.map(|()| page)?,
            }
        };
        self.programmed += 1;
        for slot in 0..self.waiting.len() {
            let id = self.waiting[slot];
            let place = self.pages.place(page, slot as u32);
            let (table, number) = self.table(id);
            if place.is_some_and(|place| table.numbers.move_to(NodeId(number), place)) {
                table.changed(number);
            }
        }
        self.waiting.clear();
        Ok(())
    }
}
