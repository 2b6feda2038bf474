//! Admission: whether what is pending, and one batch more, finds room in the worst case.
//!
//! The worst case is that the present half gets full now, and a new generation has to take
//! everything: every node once, those that emptying all buffers makes, the fragments that are
//! written on the way, the tables and the checkpoint. That has to fit the other half.

use device::Cause;
use store::{Durability, Update};

use super::LaTree;
use super::in_place::room::More;
use super::policy::Buffering;
use super::settle::{PIECE_BYTES, RECORD_PAGES, ROOT_BYTES};
use crate::Result;

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
        let pending: u64 = self.buffers.pending.iter().sum();
        if pending > 0 && (self.is_open || self.is_durable()) && self.has_space_to_empty() {
            self.whole = false;
            self.empty_all(Cause::Flush)?;
            self.whole = true;
            if self.fits(batch) {
                return Ok(());
            }
        }
        let kept = self.pinned_blocks;
        if kept > 0 {
            return Err(
                store::Error::Kept { kept: u64::from(kept) * self.log.block_bytes() }.into()
            );
        }
        Err(store::Error::Full { pages: u64::from(self.log.usable_pages() / 2) }.into())
    }

    fn fits(&self, batch: &[Update<'_>]) -> bool {
        let puts = batch.iter().filter(|update| matches!(update, Update::Put { .. })).count();
        let half = self.half_for_all();
        let reserve = if puts > 0 { (half / 16).max(2 * self.block_pages()) } else { 0 };
        self.pages_needed(batch.len() as u64) + reserve <= half
    }

    /// True if the log keeps what the last checkpoint needs.
    fn is_durable(&self) -> bool {
        self.log.durability() != Durability::None
    }

    fn block_pages(&self) -> u64 {
        u64::from(self.log.pages_per_block())
    }

    /// Half of the pages that no named checkpoint keeps.
    fn half_for_all(&self) -> u64 {
        let blocks = self.log.good_blocks().saturating_sub(self.pinned_blocks);
        u64::from(blocks / 2) * self.block_pages()
    }

    /// True if one more leaf finds room while the tree is loaded.
    pub(super) fn has_room_to_load(&self) -> bool {
        if self.log.is_disk() {
            return self.fits_on_disk(More { puts: 1, ..More::default() });
        }
        let half = self.half_for_all();
        self.pages_needed(1) + (half / 16).max(2 * self.block_pages()) <= half
    }

    /// Refuses a chip that is too small for any tree.
    pub(super) fn check_chip(&self) -> Result<()> {
        let half = self.half_for_all();
        let need = self.pages_needed(8) + 4 * self.block_pages();
        if need > half {
            let block = self.block_pages();
            let have = self.log.good_blocks();
            let need = u32::try_from(2 * need.div_ceil(block)).unwrap_or(u32::MAX);
            return Err(device::Error::TooFewBlocks { have, need }.into());
        }
        Ok(())
    }

    /// Pages that a new generation takes in the worst case, with `more` entries pending.
    pub(super) fn pages_needed(&self, more: u64) -> u64 {
        let [inner, leaf] = self.buffers.pending;
        let pending = inner + leaf + more;
        let entry = self.plan.entry_most;
        let capacity = self.nodes.leaf.capacity(entry, 0).max(4) as u64;
        let leaves = pending.min(self.leaves + 2 * pending / capacity);
        let children = self.nodes.inner.capacity(entry, 4).max(4) as u64 / 2;
        let nodes =
            self.nodes.count(&self.log) + leaves + leaves / (children - 1) + u64::from(self.height);
        let per_page = u64::from(self.plan.pages.nodes_per_page());
        let room = u64::from(self.plan.pages.room());
        let piece = self.plan.sizes.entry_most.min(usize::from(u16::MAX)) as u64 + 13;
        let levels = u64::from(self.height / self.levels_a_buffer + 1);
        let pool = self.plan.sizes.pool_bytes;
        let held = if self.plan.buffering == Buffering::None { 0 } else { pending * piece };
        let heads = PIECE_BYTES * self.buffers.records.len() as u64;
        let fragments = ((inner + more) * piece * levels + held.min(2 * pool)).div_ceil(room);
        let held_pages = (held + 6 * pending).min(2 * pool + heads).div_ceil(room);
        let chunks = nodes / u64::from(self.plan.chunks.0.max(1))
            + nodes / children / u64::from(self.plan.chunks.1.max(1))
            + self.chunk_pages()
            + 2;
        let root = (ROOT_BYTES + 4 * (chunks + held_pages)).div_ceil(room - 32) + RECORD_PAGES;
        let journal = self.log.statistics().journal_bytes_most / self.log.content_bytes() as u64;
        nodes.div_ceil(per_page)
            + 2
            + fragments
            + 2 * (chunks + held_pages + root)
            + journal
            + self.emptying_pages(pending, nodes)
            + 3 * self.block_pages()
    }

    /// Pages that emptying one buffer takes at most, which happens before it is seen that the
    /// present half is full.
    fn emptying_pages(&self, pending: u64, nodes: u64) -> u64 {
        let most = (2 * self.plan.sorter_entries as u64).min(pending).min(nodes);
        (2 * most).div_ceil(u64::from(self.plan.pages.nodes_per_page())) + 2
    }

    /// Pages that the fragments of all buffers take.
    pub(super) fn fragment_pages(&self) -> u64 {
        let bytes: u64 =
            self.buffers.records.iter().map(|record| u64::from(record.stored_bytes)).sum();
        bytes.div_ceil(u64::from(self.plan.pages.room()))
    }

    /// Empties all buffers, those of inner subtrees first.
    pub(super) fn empty_all(&mut self, cause: Cause) -> Result<()> {
        for is_leaf in [false, true] {
            let mut number = 0;
            while (number as usize) < self.buffers.records.len() {
                let record = self.buffers.record(number);
                if record.entries > 0 && (record.leaves > 0) == is_leaf {
                    self.buffers.list(number);
                    self.empty_listed(cause)?;
                }
                number += 1;
            }
        }
        Ok(())
    }
}
