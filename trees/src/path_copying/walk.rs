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

use device::{Block, Page};
use store::node;

use super::bare_tree::BareTree;
use super::bare_tree::rewrite::Order;
use super::page::child;
use index::Result;

/// What of the path a walk holds.
struct Walk<'w, 'd> {
    tree: &'w mut BareTree<'d>,
    /// The blocks that are emptied, in the order of their numbers.
    victims: &'w [Block],
    /// The lowest level of which a node is held, with all above it.
    held: u8,
    /// A bit for each level whose node has to be written.
    changed: u32,
    /// True if all inner nodes are written, apart from leaves.
    is_apart: bool,
    /// By which the walk goes.
    key: &'w mut Vec<u8>,
}

/// Rewrites what lives in `pages` of `block`, and what else in it has the same parents.
pub(super) fn move_in_one_walk(
    tree: &mut BareTree<'_>,
    (block, mut pages): (Block, Range<u32>),
    key: &mut Vec<u8>,
) -> Result<()> {
    let walk_by = |walk: &mut Walk<'_, '_>| pages.try_for_each(|page| walk.move_page(Page(page)));
    walk_over(tree, (&[block], false), key, walk_by)
}

/// Rewrites what lives in `victims`, in the order of keys, each inner node above it once; or, if
/// `is_apart`, all of them, in blocks of their own.
pub(super) fn sweep_in_one_walk(
    tree: &mut BareTree<'_>,
    victims: (&[Block], bool),
    key: &mut Vec<u8>,
) -> Result<()> {
    key.clear();
    key.extend_from_slice(tree.lowest_key());
    walk_over(tree, victims, key, |walk| walk.sweep())
}

/// Walks by `by`, and writes what is held in the end.
fn walk_over(
    tree: &mut BareTree<'_>,
    (victims, is_apart): (&[Block], bool),
    key: &mut Vec<u8>,
    by: impl FnOnce(&mut Walk<'_, '_>) -> Result<()>,
) -> Result<()> {
    let live_pages = tree.standing().live_pages;
    let mut walk = Walk { held: tree.height(), tree, victims, changed: 0, is_apart, key };
    let walked = by(&mut walk);
    let Walk { tree, changed, .. } = walk;
    // What was moved before an error need not be moved again.
    tree.nodes.log.write_apart(is_apart);
    let ended = match changed {
        0 => Ok(()),
        changed => tree.rewrite(&Order::move_of(changed.trailing_zeros() as u8)),
    };
    tree.nodes.log.end_apart();
    if ended.is_err() {
        tree.take_back(live_pages);
    }
    walked.and(ended)
}

impl Walk<'_, '_> {
    fn is_victim(&self, page: Page) -> bool {
        let block = self.tree.nodes.log.geometry().block_of(page);
        self.victims.binary_search(&block).is_ok()
    }

    /// Goes from parent to parent, from that of the key on, and moves what stands in victims.
    fn sweep(&mut self) -> Result<()> {
        loop {
            self.hold(1)?;
            for level in 1..self.tree.height() {
                if self.is_apart || self.is_victim(self.tree.path.spot(level).page) {
                    self.changed |= 1 << level;
                }
            }
            self.move_leaves()?;
            let path = &self.tree.path;
            let next = (2..self.tree.height()).find_map(|level| {
                let (spot, node) = (path.spot(level), path.node(level));
                let place = Some(spot.place() + 1).filter(|place| *place < node::count(node))?;
                Some(spot.codec.as_ref()?.key(node, place))
            });
            match next {
                Some(next) => next.copy_to(self.key),
                None => return Ok(()),
            }
        }
    }

    /// Moves what lives in `page`, and the leaves beside it.
    fn move_page(&mut self, page: Page) -> Result<()> {
        // Inner nodes have their places on the path.
        let Some(base) = self.tree.copy_lowest(page, 0, self.key)? else {
            return Ok(());
        };
        let is_root = base + 1 == self.tree.height();
        let found = if is_root { self.tree.root().id } else { self.hold(base + 1)? };
        if found != page {
            return Ok(());
        }
        if base == 0 {
            // Its copy was made when its key was read.
            self.write_alone(0)?;
        } else {
            self.hold(base)?;
            self.changed |= 1 << base;
        }
        if base > 1 { Ok(()) } else { self.move_leaves() }
    }

    /// Moves all leaves in the victim that are children of the held parent.
    fn move_leaves(&mut self) -> Result<()> {
        let codec = self.tree.path.codec(1)?;
        for place in 0..node::count(self.tree.path.node(1)) {
            let page = child(&codec, self.tree.path.node(1), place);
            if self.is_victim(page) {
                self.tree.copy_leaf(page)?;
                self.tree.path.go_on(1, place);
                self.write_alone(0)?;
            }
        }
        Ok(())
    }

    /// Goes by the key down to the node of level `base`, and holds it and all above it; returns the
    /// child that the key leads on to. What is on another way is written first if it is changed.
    fn hold(&mut self, base: u8) -> Result<Page> {
        let mut page = self.tree.root().id;
        for level in (base..self.tree.height()).rev() {
            if level < self.held {
                self.tree.copy_below((page, level))?;
                self.held = level;
            }
            let path = &self.tree.path;
            let found = path.codec(level)?.search(path.node(level), self.key);
            let place = found.unwrap_or_else(|place| place.saturating_sub(1));
            if place != path.spot(level).place() {
                self.leave(level)?;
                self.tree.path.go_on(level, place);
            }
            page = self.tree.path.child(level)?;
        }
        Ok(page)
    }

    /// Writes what is changed of the nodes that are held below `level`, which are held no more.
    fn leave(&mut self, level: u8) -> Result<()> {
        while self.held < level {
            if self.changed & 1 << self.held != 0 {
                self.write_alone(self.held)?;
            }
            self.held += 1;
        }
        Ok(())
    }

    /// Writes the node of the path of `level` as it is there, and lets the one above point to it.
    fn write_alone(&mut self, level: u8) -> Result<()> {
        self.tree.nodes.log.write_apart(self.is_apart && level > 0);
        self.tree.write_alone(level)?;
        self.changed = self.changed & !(1 << level) | 1 << (level + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
