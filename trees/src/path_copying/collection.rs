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

use super::bare_tree::BareTree;
use super::bare_tree::rewrite::Order;
use super::layout::Division;
use super::plan::worst::path_pages;
use super::victims::{Cost, Gain, Victims};
use super::walk::{move_in_one_walk, sweep_in_one_walk};
use index::Result;

/// The fewest pages of a victim that a batch looks at.
const PAGES_LEAST: u32 = 8;

/// The most blocks with damage in what lives there that are left as they are.
const PASSED_OVER_MOST: usize = 8;

/// So many of the emptiest blocks are looked at, or more.
const VICTIMS_LEAST: usize = 8;

/// Blocks that are counted in one walk over the tree, where there is no table of live pages.
const COUNTED_AT_ONCE: u32 = 64;

/// What is collected, and how far.
pub(super) struct Collection {
    /// Share of the blocks below which free ones are made.
    collect: f64,
    /// The block that is collected, and its next page.
    pub(super) victim: Option<(Block, u32)>,
    /// Blocks with damage in what lives there.
    passed_over: Vec<Block>,
    /// The key by which a page is looked for.
    key: Vec<u8>,
}

impl Collection {
    /// Of a tree whose keys have so many bytes at the most.
    pub(super) fn new(collect: f64, key_bytes: usize) -> Self {
        let passed_over = Vec::with_capacity(PASSED_OVER_MOST);
        Collection { collect, victim: None, passed_over, key: Vec::with_capacity(key_bytes) }
    }

    /// Room for one change of the tree, where nothing lasts; otherwise it was made beforehand.
    ///
    /// # Errors
    /// There is none: the chip lost blocks since.
    pub(super) fn make_room_for_one(&mut self, tree: &mut BareTree<'_>) -> Result<()> {
        if tree.nodes.lasts() {
            return Ok(());
        }
        // What stands apart counts for it.
        while u64::from(tree.nodes.log.free_blocks()) < tree.reserve_blocks() {
            if !self.empty_blocks(tree)? {
                return Err(tree.nodes.no_room());
            }
        }
        let needed = tree.reserve_pages();
        self.collect_lazily(tree, needed)
    }

    /// Empties the blocks in which least lives, as many as gain most for what that writes; false if
    /// nothing can be gained. Where something lasts, they are free after the next checkpoint.
    pub(super) fn empty_blocks(&mut self, tree: &mut BareTree<'_>) -> Result<bool> {
        self.victim = None;
        let mut victims = self.emptiest(tree)?;
        let dead: Vec<Block> = victims.dead().collect();
        if !dead.is_empty() {
            return dead.into_iter().try_for_each(|block| give_up(tree, block)).map(|()| true);
        }
        let (block, path) = (tree.nodes.block_pages(), path_pages(&tree.policy, tree.height()));
        let free = u64::from(tree.nodes.log.free_pages());
        let free = free.saturating_sub(u64::from(tree.room().spare_blocks) * block);
        let usual = victims.best(|lives| pages_to_sweep(tree, lives), (block, free));
        if tree.height() > 1 && path > 1 {
            let usual = usual.filter(|_| !tree.is_parted);
            let apart = best_apart(tree, &victims);
            let is_better = |apart: Gain| usual.is_none_or(|usual| apart.is_better_than(usual));
            if usual.is_none() || apart.is_some_and(is_better) {
                return self.empty_apart(tree, victims, apart);
            }
        }
        victims.keep(usual.map_or(0, |best| best.count));
        // What is moved page by page may take a path each, and gains all the same.
        let each = victims.lives() * path;
        let blocks = victims.in_order();
        let is_paged = each <= free && each < blocks.len() as u64 * block;
        let emptied = self.empty(tree, &blocks, is_paged);
        self.end_sweep(tree, &blocks, emptied)
    }

    /// The blocks that may be emptied in which least lives, as many as a sweep may free.
    fn emptiest(&self, tree: &mut BareTree<'_>) -> Result<Victims> {
        tree.learn_live()?;
        let most = tree.room().reserve(tree.census.demand.inner()) as usize;
        let mut victims = Victims::new(most.max(VICTIMS_LEAST));
        let blocks = tree.nodes.log.geometry().blocks();
        for first in (0..blocks).step_by(COUNTED_AT_ONCE as usize) {
            let mut lives = [0; COUNTED_AT_ONCE as usize];
            tree.count_lives(first, &mut lives)?;
            for (block, lives) in (first..blocks).map(Block).zip(lives) {
                let log = &tree.nodes.log;
                // Another sweep that writes apart frees what the last one wrote so.
                let is_kept = log.holds_apart(block) && lives > 0;
                let may_be = log.may_be_victim(block) && !is_kept;
                if may_be && !self.passed_over.contains(&block) {
                    victims.offer(block, lives);
                }
            }
        }
        Ok(victims)
    }

    /// Empties blocks with all inner nodes written apart from what is moved; false if nothing can
    /// be gained by that. If they stood beside leaves, a first sweep gains nothing: but the next
    /// ones do.
    fn empty_apart(
        &mut self,
        tree: &mut BareTree<'_>,
        mut victims: Victims,
        best: Option<Gain>,
    ) -> Result<bool> {
        let blocks = tree.census.demand.inner().div_ceil(tree.nodes.block_pages());
        let free = tree.nodes.log.free_blocks().saturating_sub(tree.room().spare_blocks);
        if best.is_none() && tree.is_parted || u64::from(free) < blocks {
            return Ok(false);
        }
        victims.keep(best.map_or(0, |best| best.count));
        let blocks = victims.in_order();
        let swept = sweep_in_one_walk(tree, (&blocks, true), &mut self.key);
        let is_swept = swept.is_ok();
        let is_gained = self.end_sweep(tree, &blocks, swept)?;
        tree.is_parted = is_swept;
        Ok(is_gained || is_swept)
    }

    /// Gives up the blocks that were emptied, or passes over them if there is damage; false if
    /// nothing is gained.
    fn end_sweep(
        &mut self,
        tree: &mut BareTree<'_>,
        blocks: &[Block],
        emptied: Result<()>,
    ) -> Result<bool> {
        match emptied {
            Err(index::Error::Store(error)) if error.is_damage() => {
                // What is damaged is left where it is, with what stands beside it.
                let room = PASSED_OVER_MOST.saturating_sub(self.passed_over.len());
                self.passed_over.extend(blocks.iter().take(room));
                return Ok(room > 0 && !blocks.is_empty());
            }
            other => other?,
        }
        blocks.iter().try_for_each(|block| give_up(tree, *block))?;
        Ok(!blocks.is_empty())
    }

    /// Moves what lives in `blocks`, page by page if that has room.
    fn empty(&mut self, tree: &mut BareTree<'_>, blocks: &[Block], is_paged: bool) -> Result<()> {
        let is_shared = tree.nodes.pages.division != Division::Whole;
        if tree.height() == 1 || is_shared && is_paged {
            for block in blocks {
                for page in tree.nodes.log.pages_of(*block) {
                    self.move_page(tree, Page(page))?;
                }
            }
            return Ok(());
        }
        match blocks {
            [] => Ok(()),
            [block] => {
                let pages = tree.nodes.log.pages_of(*block);
                move_in_one_walk(tree, (*block, pages), &mut self.key)
            }
            _ => sweep_in_one_walk(tree, (blocks, false), &mut self.key),
        }
    }

    /// Collects a little if few blocks are free, beside the pages that are needed.
    pub(super) fn collect_lazily(&mut self, tree: &mut BareTree<'_>, needed: u64) -> Result<()> {
        let (room, live) = (tree.room(), tree.standing().live_pages.into());
        let has_room = needed + room.pages_to_collect() <= tree.nodes.log.free_pages().into();
        let wanted = room.free_wanted(self.collect, (live, needed));
        if !has_room || tree.nodes.free_soon() >= wanted {
            return Ok(());
        }
        let pages = (tree.nodes.log.geometry().pages_per_block() / 4).max(PAGES_LEAST);
        self.collect(tree, pages)
    }

    /// Moves what lives in the next `pages` pages of the victim, at most to its end. A victim that
    /// is damaged where something lives is passed over.
    fn collect(&mut self, tree: &mut BareTree<'_>, pages: u32) -> Result<()> {
        if self.victim.is_none() {
            tree.learn_live()?;
        }
        let Some((block, next)) = self.victim.or_else(|| {
            let block = tree.nodes.log.victim()?;
            Some((block, tree.nodes.log.pages_of(block).start))
        }) else {
            return Ok(());
        };
        let end = tree.nodes.log.pages_of(block).end;
        let pages = next..end.min(next.saturating_add(pages));
        match self.move_pages(tree, block, pages) {
            Err(index::Error::Store(error)) if error.is_damage() => {
                self.victim = None;
                return Ok(());
            }
            other => other?,
        }
        if self.victim.is_some_and(|(_, next)| next == end) {
            self.victim = None;
            give_up(tree, block)?;
        }
        Ok(())
    }

    /// Rewrites what lives in `pages`, the next ones of the victim.
    fn move_pages(
        &mut self,
        tree: &mut BareTree<'_>,
        block: Block,
        pages: Range<u32>,
    ) -> Result<()> {
        if tree.nodes.pages.division == Division::Whole && tree.height() > 1 {
            let end = pages.end;
            move_in_one_walk(tree, (block, pages), &mut self.key)?;
            self.victim = Some((block, end));
            return Ok(());
        }
        for page in pages {
            self.move_page(tree, Page(page))?;
            self.victim = Some((block, page + 1));
        }
        Ok(())
    }

    /// Rewrites what lives in `page`. Its lowest node is read once, and the path to it.
    fn move_page(&mut self, tree: &mut BareTree<'_>, page: Page) -> Result<()> {
        match tree.path_to(page, &mut self.key)? {
            Some(base) => tree.rewrite(&Order::move_of(base)),
            None => Ok(()),
        }
    }
}

/// What gains most with all inner nodes written apart from what is moved. The blocks of the last
/// sweep that did this are dead then.
fn best_apart(tree: &BareTree<'_>, victims: &Victims) -> Option<Gain> {
    let (block, inner) = (tree.nodes.block_pages(), tree.census.demand.inner());
    let (log, blocks) = (&tree.nodes.log, inner.div_ceil(block));
    let free = u64::from(log.free_blocks().saturating_sub(tree.room().spare_blocks));
    let free = free.checked_sub(blocks)? * block;
    // Nodes of one path may have shared a page in the last one.
    let more = match tree.is_parted {
        true => 0,
        false => blocks.saturating_sub(log.apart_blocks().into()) * block,
    };
    let cost = |lives| Cost { moved: lives, apart: inner, pages_apart: more };
    victims.best(cost, (block, free))
}

/// Pages that a sweep writes at the most that moves so many.
fn pages_to_sweep(tree: &BareTree<'_>, lives: u64) -> Cost {
    let path = path_pages(&tree.policy, tree.height());
    let above = (lives * (path - 1)).min(tree.census.demand.inner()) + u64::from(path > 1);
    Cost { moved: lives + above, ..Cost::default() }
}

/// Nothing in `block` lives any more.
fn give_up(tree: &mut BareTree<'_>, block: Block) -> Result<()> {
    tree.nodes.log.release(block);
    if !tree.nodes.lasts() {
        tree.nodes.log.erase_released(Cause::Reclamation)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
