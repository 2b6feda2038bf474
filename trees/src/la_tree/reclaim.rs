//! Reclamation by halves of the chip (section 4.3).
//!
//! The chip's good blocks are two partitions, of no fixed place: the blocks of the present
//! generation of pages, at most half of them, and the free ones. When the present half is full, a
//! new generation begins in the other. Every buffer with fragments in old pages is emptied, those
//! of inner subtrees first, so that what comes down is emptied with the leaf subtrees; then every
//! node that still stands in an old page is copied. Then the old pages hold nothing: after a
//! checkpoint, their blocks are erased.
//!
//! Where the pages that are free might not suffice for that, buffers are copied too, entry by
//! entry.

use device::Cause;

use super::LaTree;
use super::generation::{Generation, Task};
use super::layout::NodeId;
use index::Result;

impl LaTree<'_> {
    /// True if a new generation must begin, or may: see [`Census::is_due`](super::census::Census).
    fn is_due(&self) -> bool {
        !self.bare.log.is_disk() && !self.generation.is_busy() && self.census().is_due()
    }

    /// True if a lookup may empty buffer `number`.
    pub(super) fn has_space_to_empty(&self, number: u32) -> bool {
        self.has_space() && (self.bare.log.is_disk() || self.has_room_to_empty(number))
    }

    fn has_room_to_empty(&self, number: u32) -> bool {
        self.census().has_room_to_empty(&self.buffers.record(number))
    }

    /// True if something may be written that is not asked for.
    pub(super) fn has_space(&self) -> bool {
        match self.bare.log.is_disk() {
            true => self.may_step(),
            false => !self.is_due() && !self.generation.is_waiting,
        }
    }

    /// Reclaims the old half, if the present one is full.
    pub(super) fn reclaim_if_due(&mut self) -> Result<()> {
        if self.generation.stage.is_none() {
            if !self.is_due() || !self.census().has_room_to_copy() {
                return Ok(());
            }
            self.begin_generation();
        }
        self.reclaim()
    }

    /// As [`LaTree::reclaim_if_due`], before a checkpoint: where nothing but checkpoints is made,
    /// the present half gets full by them. What is under way goes on after it.
    pub(super) fn reclaim_if_it_fits(&mut self) -> Result<()> {
        if self.is_due() { self.reclaim_if_due() } else { Ok(()) }
    }

    /// Makes room for the next buffer that is listed to be emptied, or for a part of it; false if
    /// there is none before a checkpoint gives some back.
    pub(super) fn make_room_for_listed(&mut self) -> Result<bool> {
        self.room.part = None;
        if self.bare.log.is_disk() || self.generation.stage.is_some() {
            return Ok(true);
        }
        if self.buffers.next_listed().is_some() {
            self.reclaim_if_due()?;
        }
        if self.buffers.next_listed().is_some_and(|number| !self.has_room_to_empty(number)) {
            self.reclaim_for_room()?;
        }
        let Some(number) = self.buffers.next_listed() else {
            return Ok(true);
        };
        let (now, record) = (self.census(), self.buffers.record(number));
        if !now.has_room_to_empty(&record) {
            return Ok(false);
        }
        let part = now.part_of(&record);
        self.room.part = Some(part);
        Ok(true)
    }

    /// Reclaims the old half before the present one is full, unless that was in vain.
    fn reclaim_for_room(&mut self) -> Result<()> {
        let Generation { is_waiting, is_vain, .. } = self.generation;
        if !is_waiting && !is_vain && self.census().has_room_to_copy() {
            self.begin_generation();
            self.reclaim()?;
            self.generation.is_vain = true;
        }
        Ok(())
    }

    /// Makes room to merge two leaves, where nothing waits; false if there is none before a
    /// checkpoint gives some back.
    pub(super) fn make_room_to_merge(&mut self) -> Result<bool> {
        if self.bare.log.is_disk() {
            return Ok(self.may_step());
        }
        self.reclaim_if_due()?;
        if !self.census().has_room_to_change() {
            self.reclaim_for_room()?;
        }
        Ok(self.census().has_room_to_change())
    }

    fn begin_generation(&mut self) {
        let copies = self.census().is_to_copy();
        if let Some(log) = self.bare.log.chip_mut() {
            log.begin_generation();
        }
        let first = self.bare.log.next_sequence();
        self.generation = Generation::begin(first, self.buffers.next_owner, copies);
    }

    /// Takes all that is left out of old pages.
    fn reclaim(&mut self) -> Result<()> {
        let cause = Cause::Reclamation;
        while let Some(task) = self.generation.next(&self.buffers, &self.bare.nodes) {
            match task {
                Task::Buffer(number) if self.generation.copies => {
                    self.copy_buffer(number, cause)?;
                }
                Task::Buffer(number) => {
                    self.buffers.list(number);
                    self.empty_listed(cause)?;
                }
                Task::Node(id) => self.bare.nodes.copy_old(&mut self.bare.log, id, cause)?,
            }
        }
        self.counters.reclaimed += 1;
        self.bare.nodes.observed = self.bare.nodes.programmed;
        // Nothing in old pages is needed by the next checkpoint.
        self.bare.nodes.forget_old_chunks(&self.bare.log);
        if let Some(log) = self.bare.log.chip_mut() {
            log.release_old();
            self.generation.is_waiting = !log.erases_at_once();
            if !self.generation.is_waiting {
                log.erase_released(cause)?;
            }
        }
        Ok(())
    }

    /// Takes the entries of buffer `number` off its chain, and puts them into it again.
    fn copy_buffer(&mut self, number: u32, cause: Cause) -> Result<()> {
        self.find_buffer(NodeId::of_buffer(number), cause)?;
        self.take_off(number, cause)?;
        while self.next_going_down(cause)? {
            let entry = self.emptying.entry.pending();
            self.buffers.append(&mut self.bare.log, number, &entry, cause)?;
        }
        Ok(())
    }
}
