//! Collection: blocks are made free by moving what lives in them.
//!
//! Victims come round robin. A page lives if its lowest node does: so its first key is looked for,
//! down to its level, and if that leads to the page, it is rewritten as an update would be, without
//! an edit. Where every node has a page to itself, [`super::walk`] writes what the pages of a
//! victim share only once. It is a state machine: each batch steps it while free blocks are below
//! the threshold, and runs it on only as far as it has to.

use core::ops::Range;

use device::{Block, Cause, Page};
use store::{Recovery, node};

use super::debts::Growth;
use super::layout::{Division, HEIGHT_MOST};
use super::plan::Edit;
use super::policy::Change;
use super::rewrite::Order;
use super::{Durably, PathTree};
use crate::Result;

/// The fewest pages of a victim that a batch looks at.
const PAGES_LEAST: u32 = 8;

impl PathTree<'_> {
    /// Collects until so many pages are free.
    ///
    /// # Errors
    /// There are not so many: admission let too much in, or the chip lost blocks since.
    pub(super) fn make_space(&mut self, needed: u64) -> Result<()> {
        let mut turns_left = 3 * self.ground.log.good_blocks();
        let mut was_checkpointed = false;
        while u64::from(self.ground.log.free_pages()) < self.wanted(needed) {
            let free = u64::from(self.ground.log.free_pages());
            if self.durably == Durably::ByCheckpoints && !self.can_collect(free) {
                // What a whole block holds has no room; there may be blocks with less.
                if was_checkpointed && (turns_left == 0 || !self.collect_cheapest()?) {
                    return Err(self.no_room());
                }
                turns_left = turns_left.saturating_sub(1);
                self.checkpoint_now()?;
                was_checkpointed = true;
                continue;
            }
            if free < self.pages_to_collect() && self.durably != Durably::ByCheckpoints {
                if turns_left == 0 || !self.collect_cheapest()? {
                    return Err(self.no_room());
                }
                turns_left -= 1;
                continue;
            }
            let has_victim = turns_left > 0 && self.collect_next(free)?;
            if has_victim {
                was_checkpointed = false;
                turns_left -= 1;
            } else if self.durably == Durably::ByCheckpoints && !was_checkpointed {
                self.checkpoint_now()?;
                was_checkpointed = true;
            } else {
                return Err(self.no_room());
            }
        }
        Ok(())
    }

    /// Collects the next block of the round; where nodes have to be written that pages have become
    /// too small for, the one that costs least: the next may cost more than it has pages.
    fn collect_next(&mut self, free: u64) -> Result<bool> {
        let block = u64::from(self.ground.log.geometry().pages_per_block());
        let found = self.pages_to_find((&Growth::default(), false));
        let is_near = self.debts.is_filled
            || free < 2 * block + 2 * self.worst.pages_each
            || found > self.pages_all() / 4 * 3;
        if is_near && self.debts.has_any() {
            self.collect_cheapest()
        } else {
            self.collect(u32::MAX)
        }
    }

    /// Gives up every block in which nothing lives; if there is none, moves what lives in the block
    /// in which that costs least, if it has room. False if nothing could be given up. Nothing is
    /// buffered.
    ///
    /// Openings after cuts close the block that was being filled, and replay, without a batch that
    /// would collect: so there may be less free than moving a full block takes.
    fn collect_cheapest(&mut self) -> Result<bool> {
        self.victim = None;
        self.learn_live()?;
        let (mut cheapest, mut has_released) = (None, false);
        for _ in 0..self.ground.log.good_blocks() {
            let Some(block) = self.ground.log.victim() else {
                break;
            };
            let lives = self.count_moves(block)?;
            if lives == 0 {
                self.give_up(block)?;
                has_released = true;
            } else if cheapest.is_none_or(|(least, _)| lives < least) {
                cheapest = Some((lives, block));
            }
        }
        if has_released {
            return Ok(true);
        }
        let free = u64::from(self.ground.log.free_pages());
        let Some((_, block)) = cheapest.filter(|(lives, _)| free >= self.pages_to_move(*lives))
        else {
            return Ok(false);
        };
        self.victim = Some((block, self.ground.log.pages_of(block).start));
        self.collect(u32::MAX)
    }

    /// Pages that moving what lives in `block` takes; what is damaged counts.
    fn count_moves(&mut self, block: Block) -> Result<u64> {
        let (mut lives, has_debts) = (0, self.debts.has_any());
        for page in self.ground.log.pages_of(block).map(Page) {
            let is_live = match self.live.is_live(page) {
                Some(is_live) => Ok(is_live),
                None => self.way_to(page, false).map(|base| base.is_some()),
            };
            let is_live = match is_live {
                Err(crate::Error::Store(error)) if error.is_damage() => true,
                other => other?,
            };
            if is_live {
                lives += 1 + if has_debts { self.more_pages(page)? } else { 0 };
            }
        }
        Ok(lives)
    }

    /// Pages beside one that a move of what lives in `page` takes: where its leaf may have to stand
    /// alone, and where misfits are on the way.
    fn more_pages(&mut self, page: Page) -> Result<u64> {
        let mut more = u64::from(self.stands_alone(page)?);
        if !self.debts.has_misfits() {
            return Ok(more);
        }
        let base = match self.way_to(page, true) {
            Err(crate::Error::Store(error)) if error.is_damage() => return Ok(more),
            other => other?,
        };
        for level in base.map_or(0, |base| base.max(1))..self.height() {
            if self.is_misfit_at(level) {
                more += self.debts.price_of_misfit(level);
            }
        }
        Ok(more)
    }

    /// True if a leaf is in `page` that may have to stand alone.
    fn stands_alone(&mut self, page: Page) -> Result<bool> {
        let used =
            self.ground.visit_lowest(page, false, Cause::Reclamation, |brief, codec, node| {
                (brief.lowest == 0).then(|| codec.used_bytes(node))
            })?;
        Ok(used.flatten().is_some_and(|used| self.debts.may_stand_alone(used)))
    }

    /// What has to be free now, of what a batch asked for before a checkpoint may have been made.
    fn wanted(&self, needed: u64) -> u64 {
        needed.min(u64::from(self.ground.log.usable_pages()))
    }

    /// True if moving a block leaves room for a checkpoint, with all that is buffered.
    fn can_collect(&self, free: u64) -> bool {
        let block = u64::from(self.ground.log.geometry().pages_per_block());
        let flushed = self.written_most(self.buffer.len() as u64);
        free >= self.pages_to_collect() + flushed + block
    }

    /// Pages of which fewer are free when collection begins.
    fn free_wanted(&self) -> u64 {
        (self.pages_all() as f64 * self.collect) as u64
    }

    /// Collects a little if few blocks are free.
    pub(super) fn collect_lazily(&mut self, needed: u64) -> Result<()> {
        let log = &self.ground.log;
        let block = u64::from(log.geometry().pages_per_block());
        let soon = u64::from(log.free_pages()) + u64::from(log.released_blocks()) * block;
        let threshold = self.free_wanted();
        if self.debts.is_filled {
            // What is moved beforehand costs more than it gives.
            return Ok(());
        }
        // In a tree that fills its chip, so many blocks can't be free.
        let live = u64::from(self.standing.live_pages);
        let most = needed + self.pages_all().saturating_sub(live + needed) / 4;
        if soon >= threshold.max(needed).min(most) {
            return Ok(());
        }
        if self.durably == Durably::ByCheckpoints
            && u64::from(log.free_pages()) < needed + self.pages_to_collect()
        {
            return Ok(());
        }
        let pages = (log.geometry().pages_per_block() / 4).max(PAGES_LEAST);
        self.collect(pages).map(|_| ())
    }

    /// Looks at so many pages while few blocks are free; true if there is more to do.
    pub(super) fn collect_some(&mut self, pages: u32) -> Result<bool> {
        if self.durably == Durably::Not {
            return Ok(false);
        }
        let log = &self.ground.log;
        let free = u64::from(log.free_pages());
        let threshold = self.free_wanted();
        if free >= threshold || !self.can_collect(free) {
            return Ok(false);
        }
        self.learn_what_fits()?;
        self.collect(pages)
    }

    /// Moves what lives in the next `pages` pages of the victim, at most to its end; false if there
    /// is no victim. A victim that is damaged where something lives is passed over.
    fn collect(&mut self, pages: u32) -> Result<bool> {
        if self.victim.is_none() {
            self.learn_live()?;
        }
        let Some((block, next)) = self.victim.or_else(|| {
            let block = self.ground.log.victim()?;
            Some((block, self.ground.log.pages_of(block).start))
        }) else {
            return Ok(false);
        };
        let end = self.ground.log.pages_of(block).end;
        let pages = next..end.min(next.saturating_add(pages));
        match self.move_pages(block, pages) {
            Err(crate::Error::Store(error)) if error.is_damage() => {
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
        if self.ground.pages.division == Division::Whole && self.height() > 1 {
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
        self.ground.log.release(block);
        if self.durably == Durably::Not {
            self.ground.log.erase_released(Cause::Reclamation)?;
        }
        Ok(())
    }

    /// Rewrites what lives in `page`. Its lowest node is read once, and the way to it.
    fn move_page(&mut self, page: Page) -> Result<()> {
        let is_live = self.live.is_live(page);
        if is_live == Some(false) {
            return Ok(());
        }
        let Some(base) = self.way_to(page, is_live == Some(true))? else {
            return Ok(());
        };
        self.rewrite(&Order {
            base,
            edit: Edit::Keep,
            change: Change::Move,
            cause: Cause::Reclamation,
        })
    }

    /// Copies the lowest node of `page` and all above it; returns its level if it lives.
    fn way_to(&mut self, page: Page, is_live: bool) -> Result<Option<u8>> {
        let Some(base) = self.copy_lowest(page, (is_live, HEIGHT_MOST))? else {
            return Ok(None);
        };
        let key = core::mem::take(&mut self.moved_key);
        let is_found = self.is_on_way(page, base, &key);
        self.moved_key = key;
        Ok(is_found?.then_some(base))
    }

    /// Copies the first key of the lowest node of `page` aside, and the node to the way if its
    /// level is `most` or lower, if the tree can have such a node; returns its level. What is
    /// damaged does not live, unless it is known to.
    pub(super) fn copy_lowest(
        &mut self,
        page: Page,
        (is_live, most): (bool, u8),
    ) -> Result<Option<u8>> {
        let (way, key) = (&mut self.way, &mut self.moved_key);
        let copied =
            self.ground.visit_lowest(page, is_live, Cause::Reclamation, |brief, codec, node| {
                let has_key = node::count(node) > 0;
                if has_key {
                    codec.key(node, 0).copy_to(key);
                }
                let is_copied =
                    brief.lowest > most || way.copy((page, brief.lowest), (brief, 0), codec, node);
                (brief.lowest, has_key, is_copied)
            })?;
        let Some((base, has_key, is_copied)) = copied else {
            return Ok(None);
        };
        let is_possible = base < self.height() && is_copied && (has_key || page == self.root);
        Ok(is_possible.then_some(base))
    }

    /// Copies the nodes above that of level `base`, to which `key` leads; true if it is in `page`.
    fn is_on_way(&mut self, page: Page, base: u8, key: &[u8]) -> Result<bool> {
        if base + 1 == self.height() {
            return Ok(page == self.root);
        }
        let start = self.way.spot(base).end();
        self.descend_behind(start, (key, base + 1), Cause::Reclamation)?;
        let parent = self.way.spot(base + 1);
        let codec = parent.codec().ok_or(super::damage(parent.page, "a node that is none"))?;
        Ok(super::ground::child(codec, self.way.node(base + 1), parent.place()) == page)
    }

    /// Makes a checkpoint of the tree as it stands, with all that is buffered.
    pub(super) fn checkpoint_now(&mut self) -> Result<()> {
        self.write_buffer()?;
        let root = self.root_record();
        self.ground.log.checkpoint(&root, None)?;
        self.promise.begin_anew();
        self.learn_what_fits()
    }
}
