//! Pages that updates write at the most, and those that there are for it.

use super::PathTree;
use super::admission::{BLOCKS_BEGUN, held_pages, moved_pages};
use super::layout::Division;
use super::plan::worst::{Worst, worst};

impl PathTree<'_> {
    /// The worst of so many updates.
    pub(super) fn worst_of(&self, updates: u64, live: u64) -> Worst {
        // No chip has more pages than that, however many updates add to them.
        let asked = (self.height(), u32::try_from(live).unwrap_or(u32::MAX), updates);
        let (of, answer) = self.answer.get();
        if of == asked {
            return answer;
        }
        let answer = worst(&self.policy, self.height(), live, updates);
        self.answer.set((asked, answer));
        answer
    }

    /// Pages that so many updates write at the most.
    pub(super) fn written_most(&self, updates: u64) -> u64 {
        self.written_by(updates, u64::from(self.standing.live_pages))
    }

    pub(super) fn written_by(&self, updates: u64, live: u64) -> u64 {
        let simple = updates * self.worst.pages_each;
        if updates <= 1 { simple } else { simple.min(self.worst_of(updates, live).written) }
    }

    pub(super) fn growth_most(&self, updates: u64, live: u64) -> u64 {
        let simple = updates * self.worst.pages_each;
        if updates <= 1 { simple } else { simple.min(self.worst_of(updates, live).growth) }
    }

    /// Pages that are kept free beside what updates write: for moving a block, and for one
    /// that the chip refuses.
    pub(super) fn reserve_pages(&self) -> u64 {
        self.pages_to_collect() + self.pages_of_a_block()
    }

    /// Pages that moving all of a block takes at the most.
    pub(super) fn pages_to_collect(&self) -> u64 {
        self.pages_to_move(self.pages_of_a_block())
    }

    /// Pages that moving so many pages takes at the most.
    pub(super) fn pages_to_move(&self, pages: u64) -> u64 {
        moved_pages(self.ground.pages.division, self.height(), pages) + self.worst.pages_each
    }

    /// Pages of all blocks that the tree can use.
    pub(super) fn pages_all(&self) -> u64 {
        let log = &self.ground.log;
        let blocks = log
            .good_blocks()
            .saturating_sub(log.pinned_blocks() + log.own_reserve() + BLOCKS_BEGUN);
        u64::from(blocks) * self.pages_of_a_block()
    }

    /// What live pages take, of pages that can be reclaimed at all.
    pub(super) fn held_pages(&self, live: u64) -> u64 {
        held_pages(self.ground.pages.division, self.height(), live)
    }

    /// As [`PathTree::held_pages`], after so many updates: the tree may be higher then.
    pub(super) fn held_after(&self, updates: u64, live: u64) -> u64 {
        let held = self.held_pages(live);
        if self.ground.pages.division != Division::Whole {
            return held;
        }
        held * u64::from(self.height_after(updates)) / u64::from(self.height())
    }

    pub(super) fn pages_of_a_block(&self) -> u64 {
        self.ground.log.geometry().pages_per_block().into()
    }
}
