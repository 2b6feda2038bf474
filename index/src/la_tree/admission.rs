//! Admission: whether what is pending, and one batch more, finds room in the worst case.
//!
//! The worst case is that the present half gets full now, and a new generation has to take
//! everything: every node once, those that emptying all buffers makes, the fragments that are
//! written on the way, the tables and the checkpoint. That has to fit the other half.

use device::Cause;
use store::{Durability, Update};

use super::LaTree;
use super::buffer_pool::BufferId;
use super::in_place::room::More;
use super::plan::CHUNK_HEADER;
use super::settle::PIECE_BYTES;
use super::worst::put_reserve;
use crate::{Error, Result};

impl LaTree<'_> {
    /// Refuses `batch` if there is no room for its worst case.
    pub(super) fn admit_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        if self.log.is_disk() {
            return self.admit_on_disk(batch);
        }
        if self.fits(batch) {
            return Ok(());
        }
        // What is pending may be much less than its worst case: that is found out by settling it.
        // What can't be settled before the next checkpoint is left to the attempt after it.
        let pending: u64 = self.buffers.pending.iter().sum();
        if pending > 0 && (self.is_open || self.is_durable()) {
            self.whole = false;
            self.empty_all(Cause::Flush)?;
            self.whole = true;
            if self.fits(batch) {
                return Ok(());
            }
        }
        if batch.iter().any(|update| matches!(update, Update::Put { .. })) {
            self.check_tables(batch.len() as u64)?;
        } else if !self.generation.is_waiting && self.fits_deletes(batch.len() as u64) {
            return Ok(());
        }
        Err(self.refusal())
    }

    /// That there is no room, or only what named checkpoints keep.
    pub(super) fn refusal(&self) -> Error {
        let block = self.log.block_bytes();
        match self.pinned_blocks {
            0 => store::Error::Full { pages: u64::from(self.log.usable_pages() / 2) }.into(),
            kept => store::Error::Kept { kept: u64::from(kept) * block }.into(),
        }
    }

    /// Refuses one more named checkpoint if there would be no room to forget all of them again:
    /// each takes a checkpoint, and only the next one erases what is given back.
    pub(super) fn admit_name(&self) -> Result<()> {
        let names = self.log.checkpoints().len() as u64 + 1;
        let nodes = u64::from(self.plan.cache.frames_most()).min(self.nodes.count(&self.log));
        let first = nodes.div_ceil(u64::from(self.plan.pages.nodes_per_page()))
            + 2 * self.chunk_pages()
            + 2
            + self.pool_pages();
        let need = first + names * (self.pool_pages() + 1) + self.block_pages();
        if need <= u64::from(self.log.free_pages()) { Ok(()) } else { Err(self.refusal()) }
    }

    /// Pages that a checkpoint takes for what is in the pool.
    pub(super) fn pool_pages(&self) -> u64 {
        let held = |number| self.buffers.pool.held(BufferId(number));
        let bytes: u64 = (0..self.buffers.records.len() as u32)
            .map(held)
            .filter(|held| held.entries > 0)
            .map(|held| held.bytes as u64 + PIECE_BYTES)
            .sum();
        // A page may end before an entry that does not fit it, and a piece begins behind it.
        let lost = self.plan.sizes.entry_most as u64 + PIECE_BYTES + u64::from(CHUNK_HEADER);
        let room = u64::from(self.plan.pages.room()).saturating_sub(lost).max(1);
        bytes.div_ceil(room)
    }

    /// Refuses so many entries more if the tables have no memory for them.
    pub(super) fn check_tables(&self, more: u64) -> Result<()> {
        match self.plan.tables_most {
            Some(have) if self.tables_needed(more) > have => {
                let need = self.tables_needed(more);
                Err(store::Error::LittleTables { have, need }.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses tables that are larger now than they may be, as those of an index can be that had
    /// more memory, or will be as soon as something waits in every buffer.
    pub(super) fn check_tables_now(&self) -> Result<()> {
        let need = self.table_bytes() + self.buffers.bytes_to_come();
        match (self.plan.tables_most, need) {
            (Some(have), need) if need > have => {
                Err(store::Error::LittleTables { have, need }.into())
            }
            _ => Ok(()),
        }
    }

    /// Bytes of all tables in the worst case, with `more` entries pending.
    fn tables_needed(&self, more: u64) -> u64 {
        let born =
            self.worst().nodes(&self.load(), more).saturating_sub(self.nodes.count(&self.log));
        // Those with a buffer have at least half of a node's children each.
        let is_each = self.levels_a_buffer == 1;
        let buffered = if is_each { born } else { born / self.worst().children_least() + 1 };
        self.nodes.table_bytes_with(born, buffered)
            + self.buffers.table_bytes_with(buffered)
            + self.log.table_bytes()
    }

    /// Bytes of all tables.
    pub(super) fn table_bytes(&self) -> u64 {
        self.nodes.table_bytes() + self.buffers.table_bytes() + self.log.table_bytes()
    }

    /// Nodes more that so many entries make of a tree with so many leaves, in the worst case.
    pub(super) fn nodes_born(&self, entries: u64, leaves: u64) -> u64 {
        self.worst().nodes_born(entries, leaves)
    }

    fn fits(&self, batch: &[Update<'_>]) -> bool {
        let puts = batch.iter().filter(|update| matches!(update, Update::Put { .. })).count();
        let half = self.half_for_all();
        let reserve = if puts > 0 { put_reserve(half, self.block_pages()) } else { 0 };
        let more = batch.len() as u64;
        let fits_memory = puts == 0 || self.check_tables(more).is_ok();
        fits_memory
            && self.pages_needed(more) + reserve <= half
            && self.can_be_emptied((puts as u64, more - puts as u64))
    }

    /// True if the log keeps what the last checkpoint needs.
    pub(super) fn is_durable(&self) -> bool {
        self.log.durability() != Durability::None
    }

    pub(super) fn block_pages(&self) -> u64 {
        u64::from(self.log.pages_per_block())
    }

    /// Half of the pages that no named checkpoint keeps.
    fn half_for_all(&self) -> u64 {
        let blocks = self.log.good_blocks().saturating_sub(self.pinned_blocks);
        u64::from(blocks / 2) * self.block_pages()
    }

    /// True if one more leaf finds room while the tree is loaded.
    pub(super) fn has_room_to_load(&mut self) -> Result<bool> {
        if self.log.is_disk() {
            return self.finds_room(More { puts: 1, ..More::default() });
        }
        let half = self.half_for_all();
        Ok(self.pages_needed(1) + put_reserve(half, self.block_pages()) <= half)
    }

    /// Pages that a new generation takes in the worst case, with `more` entries pending.
    pub(super) fn pages_needed(&self, more: u64) -> u64 {
        let own = |root| self.log.own_reserve_beside(root);
        self.worst().pages(&self.load(), more, (self.block_pages(), &own))
    }

    /// Pages that the fragments of all buffers take.
    pub(super) fn fragment_pages(&self) -> u64 {
        let bytes: u64 =
            self.buffers.records.iter().map(|record| u64::from(record.stored_bytes)).sum();
        bytes.div_ceil(u64::from(self.plan.pages.room()))
    }

    /// Empties all buffers, those of inner subtrees first, as far as there is room.
    pub(super) fn empty_all(&mut self, cause: Cause) -> Result<()> {
        for is_leaf in [false, true] {
            // What goes down may come to a buffer whose turn was before, once a level at most.
            for _ in 0..self.height {
                self.empty_each(is_leaf, cause)?;
                if self.buffers.pending[usize::from(is_leaf)] == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Empties the buffers of leaf subtrees, or the others, in the order of their numbers.
    fn empty_each(&mut self, is_leaf: bool, cause: Cause) -> Result<()> {
        let mut number = 0;
        while (number as usize) < self.buffers.records.len() && self.may_step() {
            let record = self.buffers.record(number);
            if record.entries > 0 && (record.leaves > 0) == is_leaf {
                self.buffers.list(number);
                self.empty_listed(cause)?;
            }
            number += 1;
        }
        Ok(())
    }
}
