//! Moving what lives in victims in one walk, with nodes in pages of their own.
//!
//! Page by page, each move would write all nodes above it that stand in other pages. So nodes above
//! what was moved are held on the path, point to where it stands now, and are written when the walk
//! leaves them. With the first leaf of a parent go all its others that stand in victims. The walk
//! goes by the pages of one victim, and then comes back to nodes above parents as these come; or, a
//! sweep, by the keys, and then writes every inner node once, whatever it empties. A sweep may
//! write all inner nodes, apart from leaves: then none is left anywhere else.
//!
//! # Invariants
//! - Only the last page has a root: until it stands, the tree is as it was before the walk.
//! - A walk writes no more pages than moving each page with all above it: what the walk leaves is
//!   written for a page that was moved below it since it was held.
//! - Nodes are copied as they are: no walk adds one, or makes one larger.
//! - No memory is taken: a path has room for a leaf and all nodes above it.

use alloc::vec::Vec;
use core::ops::Range;

use device::{Block, Cause, Page};
use store::node::{self, Codec};

use super::page::Header;
use super::path_nodes::child;
use super::rewrite::Order;
use super::{PathTree, damage};
use index::Result;

/// What of the path a walk holds.
struct Walk<'v> {
    /// The blocks that are emptied, in the order of their numbers.
    victims: &'v [Block],
    /// The lowest level of which a node is held, with all above it.
    held: u8,
    /// A bit for each level whose node has to be written.
    changed: u8,
    /// True if all inner nodes are written, apart from leaves.
    is_apart: bool,
}

impl PathTree<'_> {
    /// Rewrites what lives in `pages` of `block`, and what else in it has the same parents.
    pub(super) fn move_in_one_walk(&mut self, block: Block, pages: Range<u32>) -> Result<()> {
        self.walk_over((&[block], false), |tree, walk| {
            pages.map(Page).try_for_each(|page| tree.walk_to(page, walk))
        })
    }

    /// Rewrites what lives in `victims`, in the order of keys, each inner node above it once; or,
    /// if `is_apart`, all of them, in blocks of their own.
    pub(super) fn sweep_in_one_walk(&mut self, victims: &[Block], is_apart: bool) -> Result<()> {
        self.walk_over((victims, is_apart), |tree, walk| {
            let mut key = core::mem::take(&mut tree.moved_key);
            key.clear();
            key.extend_from_slice(&tree.plan.lowest_key);
            let swept = tree.sweep_from(&mut key, walk);
            tree.moved_key = key;
            swept
        })
    }

    /// Walks by `by`, and writes what is held in the end.
    fn walk_over(
        &mut self,
        (victims, is_apart): (&[Block], bool),
        by: impl FnOnce(&mut Self, &mut Walk<'_>) -> Result<()>,
    ) -> Result<()> {
        let live_pages = self.standing.live_pages;
        let mut walk = Walk { victims, held: self.height(), changed: 0, is_apart };
        let walked = by(self, &mut walk);
        // What was moved before an error need not be moved again.
        self.store.log.write_apart(is_apart);
        let ended = match walk.changed {
            0 => Ok(()),
            changed => self.rewrite(&Order::move_of(changed.trailing_zeros() as u8)),
        };
        self.store.log.end_apart();
        if ended.is_err() {
            // The tree is as it was, but pages are counted as moved.
            self.standing.live_pages = live_pages;
            self.live.forget();
        }
        walked.and(ended)
    }

    /// Goes from parent to parent, from that of `key` on, and moves what stands in victims.
    fn sweep_from(&mut self, key: &mut Vec<u8>, walk: &mut Walk<'_>) -> Result<()> {
        let geometry = self.store.log.geometry();
        loop {
            self.hold((key, 1), walk)?;
            for level in 1..self.height() {
                let block = geometry.block_of(self.path.spot(level).page);
                if walk.is_apart || walk.victims.binary_search(&block).is_ok() {
                    walk.changed |= 1 << level;
                }
            }
            self.move_leaves(walk)?;
            let next = (2..self.height()).find_map(|level| {
                let (spot, node) = (self.path.spot(level), self.path.node(level));
                let place = Some(spot.place() + 1).filter(|place| *place < node::count(node))?;
                Some(spot.codec()?.key(node, place))
            });
            match next {
                Some(next) => next.copy_to(key),
                None => return Ok(()),
            }
        }
    }

    /// Moves what lives in `page`, and the leaves beside it.
    fn walk_to(&mut self, page: Page, walk: &mut Walk<'_>) -> Result<()> {
        let is_live = self.live.is_live(page);
        if is_live == Some(false) {
            return Ok(());
        }
        // Inner nodes have their places on the path.
        let Some(base) = self.copy_lowest(page, (is_live == Some(true), 0))? else {
            return Ok(());
        };
        let key = core::mem::take(&mut self.moved_key);
        let outcome = self.walk_by(&key, (page, base), walk);
        self.moved_key = key;
        outcome
    }

    /// Moves the node of level `base` in `page`, whose first key is `key`, if it lives.
    fn walk_by(&mut self, key: &[u8], (page, base): (Page, u8), walk: &mut Walk<'_>) -> Result<()> {
        let is_root = base + 1 == self.height();
        let found = if is_root { self.root } else { self.hold((key, base + 1), walk)? };
        if found != page {
            return Ok(());
        }
        if base == 0 {
            // Its copy was made when its key was read.
            self.write_alone(0, walk)?;
        } else {
            self.hold((key, base), walk)?;
            walk.changed |= 1 << base;
        }
        if base > 1 { Ok(()) } else { self.move_leaves(walk) }
    }

    /// Moves all leaves in the victim that are children of the held parent.
    fn move_leaves(&mut self, walk: &mut Walk<'_>) -> Result<()> {
        let geometry = self.store.log.geometry();
        for place in 0..node::count(self.path.node(1)) {
            let page = child(&self.codec_on_path(1)?, self.path.node(1), place);
            let block = geometry.block_of(page);
            if walk.victims.binary_search(&block).is_ok() {
                self.copy_leaf(page, Cause::Reclamation)?;
                self.path.go_on(1, place);
                self.write_alone(0, walk)?;
            }
        }
        Ok(())
    }

    /// Goes by `key` down to the node of level `base`, and holds it and all above it; returns the
    /// child that the key leads on to. What is on another way is written first if it is changed.
    fn hold(&mut self, (key, base): (&[u8], u8), walk: &mut Walk<'_>) -> Result<Page> {
        let top = self.height() - 1;
        let mut page = self.root;
        for level in (base..=top).rev() {
            if level < walk.held {
                // A leaf stands before them.
                let start = match level == top {
                    true => self.leaf_bytes,
                    false => self.path.spot(level + 1).end(),
                };
                let target = (&mut self.path, start);
                self.store.copy_node((page, level), Cause::Reclamation, target)?;
                walk.held = level;
            }
            let codec = self.codec_on_path(level)?;
            let found = codec.search(self.path.node(level), key);
            let place = found.unwrap_or_else(|place| place.saturating_sub(1));
            if place != self.path.spot(level).place() {
                self.leave(level, walk)?;
                self.path.go_on(level, place);
            }
            page = child(&codec, self.path.node(level), place);
        }
        Ok(page)
    }

    fn codec_on_path(&self, level: u8) -> Result<Codec> {
        let spot = self.path.spot(level);
        spot.codec().copied().ok_or(damage(spot.page, "a node that is none"))
    }

    /// Writes what is changed of the nodes that are held below `level`, which are held no more.
    fn leave(&mut self, level: u8, walk: &mut Walk<'_>) -> Result<()> {
        while walk.held < level {
            if walk.changed & 1 << walk.held != 0 {
                self.write_alone(walk.held, walk)?;
            }
            walk.held += 1;
        }
        Ok(())
    }

    /// Writes the node of the path of `level` as it is there, and lets the one above point to it.
    fn write_alone(&mut self, level: u8, walk: &mut Walk<'_>) -> Result<()> {
        let spot = *self.path.spot(level);
        self.store.content().fill(0xFF);
        self.copy_node_of_path(level)?;
        let header = Header {
            layout: spot.brief.layout,
            lowest: level,
            highest: level,
            has_root: false,
            ..self.standing
        };
        self.store.log.write_apart(walk.is_apart && level > 0);
        let (page, _) = self.write_made(header, Cause::Reclamation)?;
        if !self.path.point(level + 1, page, &mut self.scratch.other) {
            return Err(damage(page, "a node without its child"));
        }
        self.store.forget_node(spot.page, level);
        self.standing.live_pages += 1;
        if spot.brief.lowest == level {
            self.standing.live_pages -= 1;
            self.live.remove(spot.page);
        }
        self.live.add(page);
        walk.changed = walk.changed & !(1 << level) | 1 << (level + 1);
        Ok(())
    }
}
