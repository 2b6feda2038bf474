//! Verifying every invariant of the tree.

use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Page};
use store::node;

use super::PathTree;
use super::ground::child;
use index::Result;

/// What a walk over the tree counts.
struct Walk<'f> {
    finding: &'f mut dyn FnMut(&dyn Display),
    nodes: u64,
    nodes_most: u64,
    by_level: [u32; super::layout::HEIGHT_MOST as usize],
    /// Pages whose lowest node was met.
    pages: u64,
}

/// A subtree and the keys that it may hold.
struct Subtree<'k> {
    page: Page,
    level: u8,
    lower: &'k [u8],
    upper: Option<&'k [u8]>,
}

pub(super) fn check(tree: &mut PathTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    // What is checked is what stands on flash.
    tree.ground.forget_all();
    let geometry = tree.ground.log.geometry();
    let nodes_most = u64::from(geometry.pages()) * u64::from(super::layout::HEIGHT_MOST);
    let mut walk = Walk { finding, nodes: 0, nodes_most, by_level: [0; 8], pages: 0 };
    let level = tree.height() - 1;
    let whole = Subtree { page: tree.root, level, lower: &[], upper: None };
    walk_subtree(tree, &whole, &mut walk)?;
    let (by_level, pages) = (walk.by_level, walk.pages);
    let live = u64::from(tree.standing.live_pages);
    if pages != live {
        finding(&format_args!("the root counts {live} live pages, but {pages} are"));
    }
    if by_level != tree.nodes {
        let counted = tree.nodes;
        finding(&format_args!("it counts {counted:?} nodes a level, but {by_level:?} are"));
    }
    if let Some(known) = tree.live.count().filter(|known| *known != pages) {
        finding(&format_args!("the table of live pages has {known}, but {pages} are"));
    }
    Ok(())
}

fn walk_subtree(tree: &mut PathTree<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<()> {
    walk.nodes += 1;
    walk.by_level[usize::from(subtree.level)] += 1;
    if walk.nodes > walk.nodes_most {
        return Ok(());
    }
    let children = match inspect(tree, subtree, walk) {
        Ok(children) => children,
        Err(error) => return error.report_damage(walk.finding),
    };
    // Two keys a level are all that this holds.
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for place in 0..children {
        let node = (subtree.page, subtree.level);
        let next = tree.ground.visit(node, Cause::Lookup, |_, codec, node| {
            codec.key(node, place).copy_to(&mut lower);
            let has_next = place + 1 < node::count(node);
            if has_next {
                codec.key(node, place + 1).copy_to(&mut upper);
            }
            (child(codec, node, place), has_next)
        });
        let (page, has_next) = match next {
            Ok(next) => next,
            Err(error) => return error.report_damage(walk.finding),
        };
        // What is below the first separator is in the first child.
        let lower = if place == 0 { subtree.lower } else { &lower };
        let upper = if has_next { Some(upper.as_slice()) } else { subtree.upper };
        let level = subtree.level - 1;
        walk_subtree(tree, &Subtree { page, level, lower, upper }, walk)?;
    }
    Ok(())
}

/// Looks at one node; returns how many children it has.
fn inspect(tree: &mut PathTree<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<usize> {
    let Subtree { page, level, lower, upper } = *subtree;
    tree.ground.log.geometry().check_page(page)?;
    let finding = &mut *walk.finding;
    let (is_lowest, count) =
        tree.ground.visit((page, level), Cause::Lookup, |brief, codec, node| {
            let count = node::count(node);
            if count > 0 {
                let (first, last) = (codec.key(node, 0), codec.key(node, count - 1));
                if first.compare(lower).is_lt() {
                    finding(&format_args!("{page} has a key below those of its level {level}"));
                }
                if upper.is_some_and(|upper| last.compare(upper).is_ge()) {
                    finding(&format_args!("{page} has a key above those of its level {level}"));
                }
            }
            (brief.lowest == level, count)
        })?;
    walk.pages += u64::from(is_lowest);
    Ok(if level > 0 { count } else { 0 })
}
