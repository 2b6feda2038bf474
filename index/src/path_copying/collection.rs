//! Collection: blocks are made free by moving what lives in them.
//!
//! Victims come round robin. A page lives if its lowest node does: so its first key is looked for,
//! down to its level, and if that leads to the page, it is rewritten as an update would be, without
//! an edit. It is a state machine: each batch steps it while free blocks are below the threshold,
//! and runs it on only as far as it has to.

use device::Cause;
use store::{Recovery, node};

use super::plan::Edit;
use super::policy::Change;
use super::rewrite::Order;
use super::{Durably, PathTree, full};
use crate::Result;

/// The fewest pages of a victim that a batch looks at.
const PAGES_LEAST: u32 = 8;

impl PathTree<'_> {
    /// Collects until so many pages are free.
    ///
    /// # Errors
    /// There are not so many: admission let too much in, or the chip lost blocks since.
    pub(super) fn make_space(&mut self, needed: u64) -> Result<()> {
        let log = &self.ground.log;
        let (usable, mut turns_left) = (u64::from(log.usable_pages()), 3 * log.good_blocks());
        let mut was_checkpointed = false;
        while u64::from(self.ground.log.free_pages()) < self.wanted(needed) {
            let free = u64::from(self.ground.log.free_pages());
            if self.durably == Durably::ByCheckpoints && !self.can_collect(free) {
                if was_checkpointed {
                    return Err(full(usable));
                }
                self.checkpoint_now()?;
                was_checkpointed = true;
                continue;
            }
            let has_victim = turns_left > 0 && self.collect(u32::MAX)?;
            if has_victim {
                was_checkpointed = false;
                turns_left -= 1;
            } else if self.durably == Durably::ByCheckpoints && !was_checkpointed {
                self.checkpoint_now()?;
                was_checkpointed = true;
            } else {
                return Err(full(usable));
            }
        }
        Ok(())
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

    /// Collects a little if few blocks are free.
    pub(super) fn collect_lazily(&mut self, needed: u64) -> Result<()> {
        let log = &self.ground.log;
        let block = u64::from(log.geometry().pages_per_block());
        let soon = u64::from(log.free_pages()) + u64::from(log.released_blocks()) * block;
        let threshold = self.pages_all() * u64::from(self.free_percent) / 100;
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
        let threshold = self.pages_all() * u64::from(self.free_percent) / 100;
        if free >= threshold || !self.can_collect(free) {
            return Ok(false);
        }
        self.collect(pages)
    }

    /// Moves what lives in the next `pages` pages of the victim, at most to its end; false if there
    /// is no victim.
    fn collect(&mut self, pages: u32) -> Result<bool> {
        let Some((block, next)) = self.victim.or_else(|| {
            let block = self.ground.log.victim()?;
            Some((block, self.ground.log.pages_of(block).start))
        }) else {
            return Ok(false);
        };
        let end = self.ground.log.pages_of(block).end;
        for page in (next..end).take(pages as usize) {
            self.move_page(device::Page(page))?;
            self.victim = Some((block, page + 1));
        }
        if self.victim.is_some_and(|(_, next)| next == end) {
            self.victim = None;
            self.give_up(block)?;
        }
        Ok(true)
    }

    /// Nothing in `block` lives any more.
    fn give_up(&mut self, block: device::Block) -> Result<()> {
        self.ground.log.release(block);
        match self.durably {
            Durably::ByCheckpoints => {}
            Durably::ByItself | Durably::Not => {
                self.ground.log.erase_released(Cause::Reclamation)?;
            }
        }
        Ok(())
    }

    /// Rewrites what lives in `page`.
    fn move_page(&mut self, page: device::Page) -> Result<()> {
        let key = &mut self.moved_key;
        let found = self.ground.read_lowest(page, Cause::Reclamation, |header, codec, node| {
            let has_key = node::count(node) > 0;
            if has_key {
                codec.key(node, 0).copy_to(key);
            }
            (header.lowest, has_key)
        })?;
        let Some((base, has_key)) = found else {
            return Ok(());
        };
        if base >= self.height() || !has_key && page != self.root {
            return Ok(());
        }
        let key = core::mem::take(&mut self.moved_key);
        let moved = self.move_found(page, base, &key);
        self.moved_key = key;
        moved
    }

    fn move_found(&mut self, page: device::Page, base: u8, key: &[u8]) -> Result<()> {
        if self.find_page(key, base, Cause::Reclamation)? != page {
            return Ok(());
        }
        self.descend(key, base, Cause::Reclamation)?;
        self.rewrite(&Order {
            base,
            edit: Edit::Keep,
            change: Change::Move,
            closes: true,
            cause: Cause::Reclamation,
        })
    }

    /// Makes a checkpoint of the tree as it stands, with all that is buffered.
    pub(super) fn checkpoint_now(&mut self) -> Result<()> {
        self.write_buffer()?;
        let root = self.root_record();
        self.ground.log.checkpoint(&root, None)?;
        Ok(())
    }
}
