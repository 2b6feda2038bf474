//! Verifying every invariant of the tree.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use store::{LogicalPage, node};

use super::BPlus;
use index::{Error, Result};

/// What a walk over the tree counts.
struct Walk<'f> {
    finding: &'f mut dyn FnMut(&dyn Display),
    /// Nodes, and pages of long values.
    pages: u64,
    entries: u64,
    pages_most: u64,
}

/// A subtree and the keys that it may hold.
struct Subtree<'k> {
    page: LogicalPage,
    level: u8,
    lower: &'k [u8],
    upper: Option<&'k [u8]>,
}

pub(super) fn check(tree: &mut BPlus<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let (used, high_water) = tree.file.pages_used();
    let mut walk = Walk { finding, pages: 0, entries: 0, pages_most: u64::from(high_water) };
    let mut lowest = Vec::new();
    tree.nodes.lowest(&mut lowest);
    let level = tree.height.saturating_sub(1);
    let whole = Subtree { page: tree.root, level, lower: &lowest, upper: None };
    walk_subtree(tree, &whole, &mut walk)?;

    let (pages, entries) = (walk.pages, walk.entries);
    let own = used.saturating_sub(tree.file.record_pages());
    if pages != u64::from(own) {
        finding(&format_args!("{own} pages are in use, but the tree has {pages}"));
    }
    if entries != tree.entries {
        let counted = tree.entries;
        finding(&format_args!("the root counts {counted} entries, but the leaves hold {entries}"));
    }
    match tree.file.check_pages(finding) {
        Ok(()) => Ok(()),
        Err(error) => Error::Store(error).report_damage(finding),
    }
}

fn walk_subtree(tree: &mut BPlus<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<()> {
    walk.pages += 1;
    if walk.pages > walk.pages_most {
        return Ok(());
    }
    let children = match inspect(tree, subtree, walk) {
        Ok(children) => children,
        Err(error) => return error.report_damage(walk.finding),
    };
    if subtree.level == 0 && tree.nodes.has_long_values() {
        inspect_values(tree, subtree.page, walk)?;
    }
    // Two keys a level are all that this holds besides the cache.
    let (mut lower, mut next) = (Vec::new(), Vec::new());
    for place in 0..children {
        let nodes = tree.nodes;
        let node = tree.file.page(subtree.page, Cause::Lookup, &nodes)?;
        nodes.inner.key(node, place).copy_to(&mut lower);
        let page = nodes.child(node, place);
        let upper = if place + 1 < children {
            nodes.inner.key(node, place + 1).copy_to(&mut next);
            Some(next.as_slice())
        } else {
            subtree.upper
        };
        let child = Subtree { page, level: subtree.level - 1, lower: &lower, upper };
        walk_subtree(tree, &child, walk)?;
    }
    Ok(())
}

/// Checks one node; returns how many children it has.
fn inspect(tree: &mut BPlus<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<usize> {
    let page = subtree.page;
    let nodes = tree.nodes;
    let is_root = page == tree.root;
    let node = tree.file.page(page, Cause::Lookup, &nodes)?;
    let codec = nodes.at(subtree.level);
    let finding = &mut *walk.finding;
    if node::level(node) != subtree.level {
        finding(&format_args!("{page} is at level {}, not {}", node::level(node), subtree.level));
        return Ok(0);
    }
    let entries = node::count(node);
    let is_right_edge = subtree.upper.is_none();
    if codec.is_underfull(node) && !is_right_edge && !nodes.is_variable() {
        finding(&format_args!("{page} is less than half full: {entries} entries"));
    }
    if is_root && subtree.level > 0 && entries < 2 {
        finding(&format_args!("the root, {page}, has one child only"));
    }
    if subtree.level > 0 && entries > 0 && codec.key(node, 0).compare(subtree.lower).is_ne() {
        finding(&format_args!("{page} does not begin with its parent's separator"));
    }
    for place in 0..entries {
        let key = codec.key(node, place);
        let above = subtree.upper.is_some_and(|upper| key.compare(upper).is_ge());
        if above || key.compare(subtree.lower).is_lt() {
            finding(&format_args!("{page}: the key at place {place} belongs to another node"));
        }
    }
    if subtree.level == 0 {
        walk.entries += entries as u64;
        return Ok(0);
    }
    Ok(entries)
}

/// Checks the long values of a leaf.
fn inspect_values(tree: &mut BPlus<'_>, leaf: LogicalPage, walk: &mut Walk<'_>) -> Result<()> {
    let nodes = tree.nodes;
    let mut place = 0;
    // A damaged leaf may tell of the same value over and over.
    while walk.pages <= walk.pages_most {
        let node = tree.file.page(leaf, Cause::Lookup, &nodes)?;
        if node::level(node) != 0 || place >= node::count(node) {
            break;
        }
        if let Some(long) = nodes.leaf.value(node, place).as_long() {
            let finding = &mut *walk.finding;
            let mut told = |damage: store::Error| {
                finding(&format_args!("the long value at place {place} of {leaf}: {damage}"));
            };
            walk.pages += u64::from(tree.file.check_long(long, Cause::Lookup, &mut told)?);
            let (bytes, most) = (long.bytes(), tree.longest_value);
            if bytes > most {
                finding(&format_args!(
                    "{leaf}: the value at place {place} has {bytes} bytes, but the longest {most}"
                ));
            }
        }
        place += 1;
    }
    Ok(())
}
