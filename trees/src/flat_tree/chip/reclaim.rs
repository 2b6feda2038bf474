//! Reclamation: pages are moved out of blocks in which little lives.
//!
//! Most blocks die whole, for runs are freed whole. Where the chip gets full, what is left of a
//! block is moved, page by page, as it stands there: a run has its units at the same bytes of
//! another page then, so only its extents change.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use device::{Block, Cause, Page};
use index::Result;
use store::Recovery;

use super::ChipTree;
use super::admission::Room;
use super::directory::Directory;
use super::run::{Extent, views};

/// Blocks out of which pages are moved between two checkpoints, at the most.
const BLOCKS_A_STEP: u32 = 8;

impl ChipTree<'_> {
    /// The block that is to be emptied next, if that gains enough.
    pub(super) fn victim(&self) -> Option<Block> {
        let (block, parts) = self.storage.emptiest()?;
        let pages = self.storage.pages_per_block();
        let gain = pages.saturating_sub(parts.into());
        (gain >= Room::gain_least(pages)).then_some(block)
    }

    /// True if a block can be emptied now.
    pub(super) fn can_move(&self) -> bool {
        let free = self.storage.free_to_move();
        self.victim().is_some_and(|block| self.storage.pages_to_move(block) <= free)
    }

    /// Does what gives room: erases what was given up, moves pages, or merges; false if there is
    /// nothing to gain.
    pub(super) fn gain_room(&mut self) -> Result<bool> {
        if self.can_move() {
            return self.empty_victim().map(|()| true);
        }
        match self.most_pending().filter(|at| self.has_room_to_merge(*at)) {
            Some(at) => self.merge(at).map(|()| true),
            None => Ok(false),
        }
    }

    /// Makes room to merge a partition, where no checkpoint is needed for that; false if there is
    /// none.
    pub(super) fn make_room_to_merge(&mut self, at: usize) -> Result<bool> {
        while !self.has_room_to_merge(at) {
            if !self.can_move() {
                return Ok(false);
            }
            self.empty_victim()?;
        }
        Ok(true)
    }

    /// Moves pages, so that the next checkpoint makes room.
    pub(super) fn move_some(&mut self) -> Result<()> {
        for _ in 0..BLOCKS_A_STEP {
            if !self.can_move() {
                break;
            }
            self.empty_victim()?;
        }
        Ok(())
    }

    /// A step of what gives room where the tree refused an update.
    pub(super) fn drain_some(&mut self) -> Result<bool> {
        if self.has_waiting_updates() {
            return self.flush_all().map(|()| true);
        }
        let is_short = self.storage.free_pages() < self.needs(&super::admission::More::default());
        if is_short && self.can_move() {
            return self.empty_victim().map(|()| true);
        }
        if let Some(at) = self.most_pending().filter(|at| self.has_room_to_merge(*at)) {
            return self.merge(at).map(|()| true);
        }
        if self.can_move() {
            return self.empty_victim().map(|()| true);
        }
        Ok(false)
    }

    /// Moves all that lives in the victim.
    fn empty_victim(&mut self) -> Result<()> {
        let Some(block) = self.victim() else {
            return Ok(());
        };
        self.is_poisoned = true;
        let mut moved: Vec<(u32, u32)> =
            Vec::with_capacity(self.storage.pages_per_block() as usize);
        let pages = self.storage.log.pages_of(block);
        let parts = self.parts_in(&pages);
        for (page, parts) in pages.clone().zip(parts).filter(|(_, parts)| *parts > 0) {
            let to = self.storage.copy_page(Page(page), parts)?;
            self.counters.moved += 1;
            moved.push((page, to.0));
        }
        self.redirect(&pages, &|page| {
            let found = moved.iter().find(|(from, _)| *from == page);
            found.map(|(_, to)| *to)
        });
        self.follow_moved();
        if self.may_erase() {
            self.storage.log.erase_released(Cause::Reclamation)?;
        }
        self.is_poisoned = false;
        Ok(())
    }

    /// How many runs have a part in each of `pages`.
    fn parts_in(&self, pages: &Range<u32>) -> Vec<u32> {
        let mut counts = vec![0; pages.len()];
        for view in self.directory.parts.iter().flat_map(|part| views(&part.runs)) {
            for page in view.extents().flat_map(|extent| extent.within(pages)) {
                if let Some(count) = counts.get_mut((page - pages.start) as usize) {
                    *count += 1;
                }
            }
        }
        counts
    }

    /// What stands in a page that `find` knows, which is one of `pages`, stands in the page that it
    /// tells from now on.
    pub(super) fn redirect(&mut self, pages: &Range<u32>, find: &dyn Fn(u32) -> Option<u32>) {
        let content = self.storage.content();
        for part in &mut self.directory.parts {
            let mut start = 0;
            let mut is_changed = false;
            while let Some(view) = super::run::view_at(&part.runs, start) {
                // Next to no run has a part there.
                if view.extents().all(|extent| extent.within(pages).is_empty()) {
                    start = view.end;
                    continue;
                }
                let mut extents: Vec<Extent> = Vec::new();
                for page in view.extents().flat_map(|extent| extent.page..extent.end()) {
                    let page = find(page).unwrap_or(page);
                    match extents.last_mut() {
                        Some(last) if last.end() == page => last.pages += 1,
                        _ => extents.push(Extent { page, pages: 1 }),
                    }
                }
                part.replace(start, Some(&extents), None);
                is_changed = true;
                match super::run::view_at(&part.runs, start) {
                    Some(view) => start = view.end,
                    None => break,
                }
            }
            if is_changed {
                part.count(content);
            }
        }
        self.recount();
    }

    /// Keeps what named checkpoints reach, and gives up what only forgotten ones did.
    pub(super) fn pin_named(&mut self) -> Result<()> {
        let log = &mut self.storage.log;
        log.unpin_all()?;
        // What a name has in memory comes beside.
        self.storage.held.fit(0, 0);
        let log = &self.storage.log;
        let names: Vec<_> = log.checkpoints().iter().map(|kept| kept.name.clone()).collect();
        for name in names {
            let root = self.storage.log.kept_root(&name)?;
            let pages = (self.storage.content(), self.storage.geometry().pages());
            let (_, directory) = Directory::decode(&root, pages)?;
            let views = directory.parts.iter().flat_map(|it| views(&it.runs));
            for extent in views.flat_map(|view| view.extents().collect::<Vec<_>>()) {
                for page in extent.page..extent.page + extent.pages {
                    self.storage.log.pin(Page(page));
                }
            }
            let taken = directory.totals().memory + root.len() as u64;
            self.tables_peak = self.tables_peak.max(self.totals.memory + taken);
        }
        self.expect_tables(0);
        self.storage.give_up_all_empty();
        Ok(())
    }

    /// Refuses another name, if what it would keep left no room to go on.
    pub(super) fn admit_name(&mut self) -> Result<()> {
        let room = self.room();
        let live = self.storage.parts_live();
        // What lives is kept, in blocks that may hold little else, and has to find room again.
        let kept =
            Room { blocks: room.blocks.saturating_sub(live.div_ceil(room.block) + 1), ..room };
        let needs = self.needs(&super::admission::More::default());
        let is_free = needs + room.block <= self.storage.free_pages();
        match is_free && kept.fits(live, needs) {
            true => Ok(()),
            false => Err(self.no_room()),
        }
    }
}
