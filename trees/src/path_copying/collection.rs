//! Collection: blocks are made free by moving what lives in them.
//!
//! While there is room, victims come round robin. A page lives if its lowest node does: so its
//! first key is looked for, down to its level, and if that leads to the page, it is rewritten as an
//! update would be, without an edit. Where every node has a page to itself, [`super::walk`] writes
//! what the pages of a victim share only once. It is a state machine: each batch steps it while
//! free blocks are below the threshold.
//!
//! Where room is short, the blocks in which least lives are emptied in one sweep: as many of them
//! as gain most for what moving them writes, with the nodes above. Where these cost as much as is
//! gained, all inner nodes are written apart, in blocks of their own, so that the next sweep leaves
//! nothing in these. [`super::room`] keeps as much free as two such sweeps take.

use alloc::vec::Vec;
use core::ops::Range;

use device::{Block, Cause, Page};
use store::node;

use super::layout::{Division, HEIGHT_MOST};
use super::plan::worst::path_pages;
use super::rewrite::Order;
use super::victims::{Cost, Gain, Victims};
use super::{Durably, PathTree};
use index::Result;

/// The fewest pages of a victim that a batch looks at.
const PAGES_LEAST: u32 = 8;

/// The most blocks with damage in what lives there that are left as they are.
pub(super) const PASSED_OVER_MOST: usize = 8;

/// So many of the emptiest blocks are looked at, or more.
const VICTIMS_LEAST: usize = 8;

impl PathTree<'_> {
    /// Room for one change of the tree, where nothing lasts; otherwise it was made beforehand.
    ///
    /// # Errors
    /// There is none: the chip lost blocks since.
    pub(super) fn make_room_for_one(&mut self) -> Result<()> {
        if self.durably != Durably::Not {
            return Ok(());
        }
        // What stands apart counts for it.
        while u64::from(self.store.log.free_blocks()) < self.reserve_blocks() {
            if !self.empty_blocks()? {
                return Err(self.no_room());
            }
        }
        self.collect_lazily(self.reserve_pages())
    }

    /// Empties the blocks in which least lives, as many as gain most for what that writes; false if
    /// nothing can be gained. Where something lasts, they are free after the next checkpoint.
    pub(super) fn empty_blocks(&mut self) -> Result<bool> {
        self.victim = None;
        let most = self.room().reserve(self.inner_nodes(), 0) as usize;
        let mut victims = self.emptiest(most.max(VICTIMS_LEAST))?;
        let dead: Vec<Block> = victims.dead().collect();
        if !dead.is_empty() {
            return dead.into_iter().try_for_each(|block| self.give_up(block)).map(|()| true);
        }
        let block = self.pages_of_a_block();
        let free = u64::from(self.store.log.free_pages());
        let free = free.saturating_sub(u64::from(self.spare_blocks()) * block);
        let usual = victims.best(|lives| self.pages_to_sweep(lives), (block, free));
        if self.height() > 1 && self.path_pages() > 1 {
            let usual = usual.filter(|_| !self.is_parted);
            let apart = self.best_apart(&victims);
            let is_better = |apart: Gain| usual.is_none_or(|usual| apart.is_better_than(usual));
            if usual.is_none() || apart.is_some_and(is_better) {
                return self.empty_apart(victims, apart);
            }
        }
        victims.keep(usual.map_or(0, |best| best.count));
        // What is moved page by page may take a path each, and gains all the same.
        let each = victims.lives() * self.path_pages();
        let blocks = victims.in_order();
        let is_paged = each <= free && each < blocks.len() as u64 * block;
        let emptied = self.empty(&blocks, is_paged);
        self.end_sweep(&blocks, emptied)
    }

    /// What gains most with all inner nodes written apart from what is moved. The blocks of the
    /// last sweep that did this are dead then.
    fn best_apart(&self, victims: &Victims) -> Option<Gain> {
        let (block, inner) = (self.pages_of_a_block(), self.inner_nodes());
        let blocks = inner.div_ceil(block);
        let free = u64::from(self.store.log.free_blocks().saturating_sub(self.spare_blocks()));
        let free = free.checked_sub(blocks)? * block;
        // Nodes of one path may have shared a page in the last one.
        let more = match self.is_parted {
            true => 0,
            false => blocks.saturating_sub(self.store.log.apart_blocks().into()) * block,
        };
        let cost = |lives| Cost { moved: lives, apart: inner, pages_apart: more };
        victims.best(cost, (block, free))
    }

    /// Empties blocks with all inner nodes written apart from what is moved; false if nothing can
    /// be gained by that. If they stood beside leaves, a first sweep gains nothing: but the next
    /// ones do.
    fn empty_apart(&mut self, mut victims: Victims, best: Option<Gain>) -> Result<bool> {
        let blocks = self.inner_nodes().div_ceil(self.pages_of_a_block());
        let free = self.store.log.free_blocks().saturating_sub(self.spare_blocks());
        if best.is_none() && self.is_parted || u64::from(free) < blocks {
            return Ok(false);
        }
        victims.keep(best.map_or(0, |best| best.count));
        let blocks = victims.in_order();
        let swept = self.sweep_in_one_walk(&blocks, true);
        let is_swept = swept.is_ok();
        let is_gained = self.end_sweep(&blocks, swept)?;
        self.is_parted = is_swept;
        Ok(is_gained || is_swept)
    }

    /// Gives up the blocks that were emptied, or passes over them if there is damage; false if
    /// nothing is gained.
    fn end_sweep(&mut self, blocks: &[Block], emptied: Result<()>) -> Result<bool> {
        match emptied {
            Err(index::Error::Store(error)) if error.is_damage() => {
                // What is damaged is left where it is, with what stands beside it.
                let room = PASSED_OVER_MOST.saturating_sub(self.passed_over.len());
                self.passed_over.extend(blocks.iter().take(room));
                return Ok(room > 0 && !blocks.is_empty());
            }
            other => other?,
        }
        blocks.iter().try_for_each(|block| self.give_up(*block))?;
        Ok(!blocks.is_empty())
    }

    /// Moves what lives in `blocks`, page by page if that has room.
    fn empty(&mut self, blocks: &[Block], is_paged: bool) -> Result<()> {
        let is_shared = self.store.pages.division != Division::Whole;
        if self.height() == 1 || is_shared && is_paged {
            for block in blocks {
                for page in self.store.log.pages_of(*block) {
                    self.move_page(Page(page))?;
                }
            }
            return Ok(());
        }
        match blocks {
            [] => Ok(()),
            [block] => self.move_in_one_walk(*block, self.store.log.pages_of(*block)),
            _ => self.sweep_in_one_walk(blocks, false),
        }
    }

    /// Pages that a sweep writes at the most that moves so many.
    fn pages_to_sweep(&self, lives: u64) -> Cost {
        let path = self.path_pages();
        let above = (lives * (path - 1)).min(self.inner_nodes()) + u64::from(path > 1);
        Cost { moved: lives + above, ..Cost::default() }
    }

    /// Pages that a path takes at the most.
    fn path_pages(&self) -> u64 {
        path_pages(&self.policy, self.height())
    }

    /// Pages that are free, or will be after the next checkpoint.
    pub(super) fn free_soon(&self) -> u64 {
        let log = &self.store.log;
        u64::from(log.free_pages()) + u64::from(log.blocks_to_erase()) * self.pages_of_a_block()
    }

    /// Collects a little if few blocks are free, beside the pages that are needed.
    pub(super) fn collect_lazily(&mut self, needed: u64) -> Result<()> {
        if !self.wants_collection(self.free_soon(), needed) {
            return Ok(());
        }
        let pages = (self.store.log.geometry().pages_per_block() / 4).max(PAGES_LEAST);
        self.collect(pages).map(|_| ())
    }

    /// True if it is time to collect in turn, with so many pages free, and there is room for it
    /// beside `needed` ones.
    fn wants_collection(&self, free: u64, needed: u64) -> bool {
        let (room, live) = (self.room(), self.standing.live_pages.into());
        let has_room = needed + room.pages_to_collect() <= self.store.log.free_pages().into();
        has_room && free < room.free_wanted(self.collect, (live, needed))
    }

    /// Moves what lives in the next `pages` pages of the victim, at most to its end; false if there
    /// is no victim. A victim that is damaged where something lives is passed over.
    fn collect(&mut self, pages: u32) -> Result<bool> {
        if self.victim.is_none() {
            self.learn_live()?;
        }
        let Some((block, next)) = self.victim.or_else(|| {
            let block = self.store.log.victim()?;
            Some((block, self.store.log.pages_of(block).start))
        }) else {
            return Ok(false);
        };
        let end = self.store.log.pages_of(block).end;
        let pages = next..end.min(next.saturating_add(pages));
        match self.move_pages(block, pages) {
            Err(index::Error::Store(error)) if error.is_damage() => {
                self.victim = None;
                return Ok(true);
            }
            other => other?,
        }
        if self.victim.is_some_and(|(_, next)| next == end) {
            self.victim = None;
            self.give_up(block)?;
        }
        Ok(true)
    }

    /// Rewrites what lives in `pages`, the next ones of the victim.
    fn move_pages(&mut self, block: Block, pages: Range<u32>) -> Result<()> {
        if self.store.pages.division == Division::Whole && self.height() > 1 {
            let end = pages.end;
            self.move_in_one_walk(block, pages)?;
            self.victim = Some((block, end));
            return Ok(());
        }
        for page in pages {
            self.move_page(Page(page))?;
            self.victim = Some((block, page + 1));
        }
        Ok(())
    }

    /// Nothing in `block` lives any more.
    fn give_up(&mut self, block: Block) -> Result<()> {
        self.store.log.release(block);
        if self.durably == Durably::Not {
            self.store.log.erase_released(Cause::Reclamation)?;
        }
        Ok(())
    }

    /// Rewrites what lives in `page`. Its lowest node is read once, and the path to it.
    fn move_page(&mut self, page: Page) -> Result<()> {
        let is_live = self.live.is_live(page);
        if is_live == Some(false) {
            return Ok(());
        }
        let Some(base) = self.path_to(page, is_live == Some(true))? else {
            return Ok(());
        };
        self.rewrite(&Order::move_of(base))
    }

    /// Copies the lowest node of `page` and all above it; returns its level if it lives.
    fn path_to(&mut self, page: Page, is_live: bool) -> Result<Option<u8>> {
        let Some(base) = self.copy_lowest(page, (is_live, HEIGHT_MOST))? else {
            return Ok(None);
        };
        let key = core::mem::take(&mut self.moved_key);
        let is_found = self.is_on_path(page, base, &key);
        self.moved_key = key;
        Ok(is_found?.then_some(base))
    }

    /// Copies the first key of the lowest node of `page` aside, and the node to the path if its
    /// level is `most` or lower, if the tree can have such a node; returns its level. What is
    /// damaged does not live, unless it is known to.
    pub(super) fn copy_lowest(
        &mut self,
        page: Page,
        (is_live, most): (bool, u8),
    ) -> Result<Option<u8>> {
        let (path, key) = (&mut self.path, &mut self.moved_key);
        let copied =
            self.store.visit_lowest(page, is_live, Cause::Reclamation, |brief, codec, node| {
                let has_key = node::count(node) > 0;
                if has_key {
                    codec.key(node, 0).copy_to(key);
                }
                let is_copied =
                    brief.lowest > most || path.copy((page, brief.lowest), (brief, 0), codec, node);
                (brief.lowest, has_key, is_copied)
            })?;
        let Some((base, has_key, is_copied)) = copied else {
            return Ok(None);
        };
        let is_possible = base < self.height() && is_copied && (has_key || page == self.root);
        Ok(is_possible.then_some(base))
    }

    /// Copies the nodes above that of level `base`, to which `key` leads; true if it is in `page`.
    fn is_on_path(&mut self, page: Page, base: u8, key: &[u8]) -> Result<bool> {
        if base + 1 == self.height() {
            return Ok(page == self.root);
        }
        let start = self.path.spot(base).end();
        self.descend_behind(start, (key, base + 1), Cause::Reclamation)?;
        let parent = self.path.spot(base + 1);
        let codec = parent.codec().ok_or(super::damage(parent.page, "a node that is none"))?;
        Ok(super::path_nodes::child(codec, self.path.node(base + 1), parent.place()) == page)
    }
}
