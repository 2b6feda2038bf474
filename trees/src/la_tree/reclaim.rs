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
//!
//! A buffer has old fragments only if its owner is older than the generation, for a buffer gets a
//! new owner whenever it is emptied.

use alloc::vec::Vec;

use device::Cause;
use store::{PageLog, Recovery};

use super::LaTree;
use super::layout::NodeId;
use super::table::BufferRecord;
use index::Result;

/// How far reclamation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Emptying the buffers of inner subtrees, from this one on; then those of leaf subtrees.
    InnerBuffers(u32),
    LeafBuffers(u32),
    /// Copying nodes without buffers, from this one on; then those with buffers.
    Plain(u32),
    Buffered(u32),
}

/// The present generation of pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Generation {
    /// The sequence of its first page.
    pub(super) first: u64,
    /// Owners below this are older.
    pub(super) first_owner: u32,
    /// What is still to be done, if pages before it are in use.
    pub(super) stage: Option<Stage>,
    /// True if old blocks wait for a checkpoint to be erased.
    pub(super) is_waiting: bool,
    /// True if buffers are copied, for emptying them might take more pages than are free.
    pub(super) copies: bool,
    /// True if it was begun to make room for emptying, and nothing was emptied, changed or
    /// forgotten since.
    pub(super) is_vain: bool,
}

impl LaTree<'_> {
    /// Pages of half of the blocks that the tree can use.
    pub(super) fn half_pages(&self) -> u64 {
        let dead = if self.generation.is_waiting { 0 } else { self.bare.log.released_blocks() };
        let blocks = self.bare.log.good_blocks().saturating_sub(dead) / 2;
        u64::from(blocks) * self.block_pages()
    }

    /// True if a new generation must begin while it finds room, or may as the present half is full.
    /// Where the next one would end as soon as it began, because what is in use leaves no more, the
    /// present one goes on for as long as the next finds room.
    fn is_due(&self) -> bool {
        if self.bare.log.is_disk() || self.generation.stage.is_some() || self.generation.is_waiting
        {
            return false;
        }
        let (half, copied) = (self.half_pages(), self.pages_to_copy());
        let is_full = u64::from(self.bare.log.free_pages()) <= half;
        let goes_on = self.pages_of_generations() <= half + 2 * self.block_pages() + copied;
        is_full && !goes_on || self.pages_left() <= copied
    }

    /// True if a lookup may empty buffer `number`.
    pub(super) fn has_space_to_empty(&self, number: u32) -> bool {
        self.has_space() && (self.bare.log.is_disk() || self.has_room_to_empty(number))
    }

    /// True if something may be written that is not asked for.
    pub(super) fn has_space(&self) -> bool {
        match self.bare.log.disk() {
            Some(_) => self.may_step(),
            None => !self.is_due() && !self.generation.is_waiting,
        }
    }

    /// Reclaims the old half, if the present one is full.
    pub(super) fn reclaim_if_due(&mut self) -> Result<()> {
        if self.generation.stage.is_none() {
            if !self.is_due() || !self.has_room_to_copy() {
                return Ok(());
            }
            self.begin_generation();
        }
        while !self.reclaim_step()? {}
        Ok(())
    }

    /// As [`LaTree::reclaim_if_due`], before a checkpoint: where nothing but checkpoints is made,
    /// the present half gets full by them. What is under way goes on after it.
    pub(super) fn reclaim_if_it_fits(&mut self) -> Result<()> {
        if self.is_due() { self.reclaim_if_due() } else { Ok(()) }
    }

    /// True if a new generation finds room: what named checkpoints keep may leave none. The end of
    /// the block that was begun may be lost already, as an opening goes on with none.
    fn has_room_to_copy(&self) -> bool {
        self.pages_to_copy()
            <= u64::from(self.bare.log.chip().map_or(0, PageLog::free_blocks) + 1)
                * self.block_pages()
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
        let is_short = |tree: &Self, number| !tree.has_room_to_empty(number);
        if self.buffers.next_listed().is_some_and(|number| is_short(self, number)) {
            self.reclaim_for_room()?;
        }
        let Some(number) = self.buffers.next_listed() else {
            return Ok(true);
        };
        if is_short(self, number) {
            return Ok(false);
        }
        self.room.part = Some(self.part_of(number));
        Ok(true)
    }

    /// Reclaims the old half before the present one is full, unless that was in vain.
    fn reclaim_for_room(&mut self) -> Result<()> {
        let Generation { is_waiting, is_vain, .. } = self.generation;
        if !is_waiting && !is_vain && self.has_room_to_copy() {
            self.begin_generation();
            while !self.reclaim_step()? {}
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
        if !self.has_room_to_change() {
            self.reclaim_for_room()?;
        }
        Ok(self.has_room_to_change())
    }

    fn begin_generation(&mut self) {
        let copies = self.is_to_copy();
        if let Some(log) = self.bare.log.chip_mut() {
            log.begin_generation();
        }
        self.generation = Generation {
            first: self.bare.log.next_sequence(),
            first_owner: self.buffers.next_owner,
            stage: Some(Stage::InnerBuffers(0)),
            is_waiting: false,
            copies,
            is_vain: false,
        };
    }

    /// Does the next step; true if that was the last.
    fn reclaim_step(&mut self) -> Result<bool> {
        let Some(stage) = self.generation.stage else {
            return Ok(true);
        };
        let buffers = self.buffers.records.len() as u32;
        let next = match stage {
            Stage::InnerBuffers(next) if next < buffers => {
                self.empty_old(next, false)?;
                Stage::InnerBuffers(next + 1)
            }
            Stage::InnerBuffers(_) => Stage::LeafBuffers(0),
            Stage::LeafBuffers(next) if next < buffers => {
                self.empty_old(next, true)?;
                Stage::LeafBuffers(next + 1)
            }
            // A buffer that was split or merged meanwhile may have got a number that was passed.
            Stage::LeafBuffers(_) if self.has_old_buffers() => Stage::InnerBuffers(0),
            Stage::LeafBuffers(_) => Stage::Plain(0),
            Stage::Plain(next) if next < self.bare.nodes.plain.numbers.high_water() => {
                self.copy_old(NodeId(next))?;
                Stage::Plain(next + 1)
            }
            Stage::Plain(_) => Stage::Buffered(0),
            Stage::Buffered(next) if next < self.bare.nodes.buffered.numbers.high_water() => {
                self.copy_old(NodeId::of_buffer(next))?;
                Stage::Buffered(next + 1)
            }
            Stage::Buffered(_) => {
                self.generation.stage = None;
                self.finish_generation()?;
                return Ok(true);
            }
        };
        self.generation.stage = Some(next);
        Ok(false)
    }

    fn is_old(&self, record: &BufferRecord) -> bool {
        record.is_chained() && record.owner.0 < self.generation.first_owner
    }

    fn has_old_buffers(&self) -> bool {
        self.buffers.records.iter().any(|record| self.is_old(record))
    }

    fn empty_old(&mut self, number: u32, is_leaf: bool) -> Result<()> {
        let record = self.buffers.record(number);
        if !self.is_old(&record) || record.is_leaf() != is_leaf {
            return Ok(());
        }
        if self.generation.copies {
            return self.copy_buffer(number, Cause::Reclamation);
        }
        self.buffers.list(number);
        self.empty_listed(Cause::Reclamation)
    }

    /// Takes the entries of buffer `number` off its chain, and puts them into it again.
    fn copy_buffer(&mut self, number: u32, cause: Cause) -> Result<()> {
        self.find_buffer(NodeId::of_buffer(number), cause)?;
        self.take_off(number, cause)?;
        while self.next_in_flight(cause)? {
            self.buffers.append(&mut self.bare.log, number, &self.flight.entry.pending(), cause)?;
        }
        Ok(())
    }

    fn copy_old(&mut self, id: NodeId) -> Result<()> {
        let Some(place) = self.bare.nodes.place(id) else {
            return Ok(());
        };
        if self.bare.log.is_old(self.plan.pages.locate(place).0) {
            self.bare.nodes.copy(&mut self.bare.log, id, Cause::Reclamation)?;
        }
        Ok(())
    }

    /// Nothing in old pages is needed by the next checkpoint.
    fn finish_generation(&mut self) -> Result<()> {
        self.counters.reclaimed += 1;
        self.bare.nodes.observed = self.bare.nodes.programmed;
        self.forget_old_chunks();
        if let Some(log) = self.bare.log.chip_mut() {
            log.release_old();
            self.generation.is_waiting = !log.erases_at_once();
            if !self.generation.is_waiting {
                log.erase_released(Cause::Reclamation)?;
            }
        }
        Ok(())
    }

    /// Chunks of tables that stand in old pages are to be written again.
    pub(super) fn forget_old_chunks(&mut self) {
        for table in [&mut self.bare.nodes.plain, &mut self.bare.nodes.buffered] {
            for chunk in &mut table.chunks {
                if chunk.is_some_and(|page| self.bare.log.is_old(page)) {
                    *chunk = None;
                }
            }
        }
    }

    /// Pins every page that a named checkpoint reaches.
    pub(super) fn pin_named(&mut self) -> Result<()> {
        // On a disk the page file keeps the way back by itself.
        let Some(log) = self.bare.log.chip_mut() else {
            return Ok(());
        };
        log.unpin_all()?;
        let names: Vec<_> = log.checkpoints().iter().map(|kept| kept.name.clone()).collect();
        for name in names {
            let root =
                self.bare.log.chip_mut().map_or(Ok(Vec::new()), |log| log.kept_root(&name))?;
            self.pin_state(&root)?;
        }
        self.pinned_blocks = self.bare.log.chip().map_or(0, PageLog::pinned_blocks);
        // What a name does not keep any more may be what there was no room for.
        self.generation.is_vain = false;
        Ok(())
    }
}
