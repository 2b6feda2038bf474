//! Moving the pages of a victim in one walk, where every node has a page to itself.
//!
//! Page by page, each move would write all nodes above it. So nodes above what was moved are held
//! on the way, point to where it stands now, and are written when the walk leaves them. With the
//! first leaf of a parent go all its others that stand in the victim: so each parent is written
//! once a victim. A node above parents is written as often as the walk comes back to it, and the
//! root once, last.
//!
//! # Invariants
//! - Only the last page has a root: until it stands, the tree is as it was before the walk.
//! - A walk writes no more pages than moving each page with all above it: what the walk leaves is
//!   written for a page that was moved below it since it was held.
//! - No memory is taken: a way has room for a leaf and all nodes above it.

use core::ops::Range;

use device::{Block, Cause, Page};
use store::node::{self, Codec};

use super::ground::child;
use super::layout::Layout;
use super::page::Header;
use super::plan::Edit;
use super::policy::Change;
use super::rewrite::Order;
use super::{PathTree, damage};
use crate::Result;

/// What of the way a walk holds.
struct Walk {
    /// The pages of the victim.
    victim: Range<u32>,
    /// The lowest level of which a node is held, with all above it.
    held: u8,
    /// A bit for each level whose node has to be written.
    changed: u8,
}

/// The move of the node of a level, with all above it.
const fn move_of(level: u8) -> Order<'static> {
    Order { base: level, edit: Edit::Keep, change: Change::Move, cause: Cause::Reclamation }
}

impl PathTree<'_> {
    /// Rewrites what lives in `pages` of `block`, and what else in it has the same parents.
    pub(super) fn move_in_one_walk(&mut self, block: Block, pages: Range<u32>) -> Result<()> {
        let victim = self.ground.log.pages_of(block);
        let mut walk = Walk { victim, held: self.height(), changed: 0 };
        let walked = pages.map(Page).try_for_each(|page| self.walk_to(page, &mut walk));
        // What was moved before an error need not be moved again.
        let ended = match walk.changed {
            0 => Ok(()),
            changed => self.rewrite(&move_of(changed.trailing_zeros() as u8)),
        };
        if ended.is_err() {
            // The tree is as it was, but pages are counted as moved.
            self.live.forget();
        }
        walked.and(ended)
    }

    /// Moves what lives in `page`, and the leaves beside it.
    fn walk_to(&mut self, page: Page, walk: &mut Walk) -> Result<()> {
        let is_live = self.live.is_live(page);
        if is_live == Some(false) {
            return Ok(());
        }
        // Inner nodes have their places on the way.
        let Some(base) = self.copy_lowest(page, (is_live == Some(true), 0))? else {
            return Ok(());
        };
        let key = core::mem::take(&mut self.moved_key);
        let outcome = self.walk_by(&key, (page, base), walk);
        self.moved_key = key;
        outcome
    }

    /// Moves the node of level `base` in `page`, whose first key is `key`, if it lives.
    fn walk_by(&mut self, key: &[u8], (page, base): (Page, u8), walk: &mut Walk) -> Result<()> {
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
    fn move_leaves(&mut self, walk: &mut Walk) -> Result<()> {
        for place in 0..node::count(self.way.node(1)) {
            let page = child(&self.codec_on_way(1)?, self.way.node(1), place);
            if walk.victim.contains(&page.0) {
                self.copy_leaf(page, Cause::Reclamation)?;
                self.way.go_on(1, place);
                self.write_alone(0, walk)?;
            }
        }
        Ok(())
    }

    /// Goes by `key` down to the node of level `base`, and holds it and all above it; returns the
    /// child that the key leads on to. What is on another way is written first if it is changed.
    fn hold(&mut self, (key, base): (&[u8], u8), walk: &mut Walk) -> Result<Page> {
        let top = self.height() - 1;
        let mut page = self.root;
        for level in (base..=top).rev() {
            if level < walk.held {
                // Every node is as long as a leaf, which stands before them.
                let start = match level == top {
                    true => self.ground.pages.area() as usize,
                    false => self.way.spot(level + 1).end(),
                };
                let target = (&mut self.way, start);
                self.ground.copy_node((page, level), Cause::Reclamation, target)?;
                walk.held = level;
            }
            let codec = self.codec_on_way(level)?;
            let found = codec.search(self.way.node(level), key);
            let place = found.unwrap_or_else(|place| place.saturating_sub(1));
            if place != self.way.spot(level).place() {
                self.leave(level, walk)?;
                self.way.go_on(level, place);
            }
            page = child(&codec, self.way.node(level), place);
        }
        Ok(page)
    }

    fn codec_on_way(&self, level: u8) -> Result<Codec> {
        let spot = self.way.spot(level);
        spot.codec().copied().ok_or(damage(spot.page, "a node that is none"))
    }

    /// Writes what is changed of the nodes that are held below `level`, which are held no more.
    fn leave(&mut self, level: u8, walk: &mut Walk) -> Result<()> {
        while walk.held < level {
            if walk.changed & 1 << walk.held != 0 {
                self.write_alone(walk.held, walk)?;
            }
            walk.held += 1;
        }
        Ok(())
    }

    /// Writes the node of the way of `level` as it is there, and lets the one above point to it.
    fn write_alone(&mut self, level: u8, walk: &mut Walk) -> Result<()> {
        let layout = Layout { height: self.height(), ..self.standing.next.layout };
        self.ground.content().fill(0xFF);
        self.copy_apart(&move_of(level), layout)?;
        let header =
            Header { layout, lowest: level, highest: level, has_root: false, ..self.standing };
        let (page, _) = self.write_made(header, Cause::Reclamation)?;
        if !self.way.point(level + 1, page, &mut self.scratch.other) {
            return Err(damage(page, "a node without its child"));
        }
        let old = self.way.spot(level).page;
        self.ground.forget_node(old, level);
        self.live.remove(old);
        self.live.add(page);
        walk.changed = walk.changed & !(1 << level) | 1 << (level + 1);
        Ok(())
    }
}
