//! Verifying every invariant of the tree.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use store::{LogicalPage, node};

use super::BPlus;
use crate::{Error, Result};

/// What a walk over the tree counts.
struct Walk<'f> {
    finding: &'f mut dyn FnMut(&dyn Display),
    nodes: u64,
    entries: u64,
    nodes_most: u64,
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
    let mut walk = Walk { finding, nodes: 0, entries: 0, nodes_most: u64::from(high_water) };
    let mut lowest = Vec::new();
    tree.nodes.lowest(&mut lowest);
    let level = tree.height.saturating_sub(1);
    let whole = Subtree { page: tree.root, level, lower: &lowest, upper: None };
    walk_subtree(tree, &whole, &mut walk)?;

    let (nodes, entries) = (walk.nodes, walk.entries);
    if nodes != u64::from(used) {
        finding(&format_args!("{used} pages are in use, but the tree has {nodes} nodes"));
    }
    if entries != tree.entries {
        let counted = tree.entries;
        finding(&format_args!("the root counts {counted} entries, but the leaves hold {entries}"));
    }
    match tree.file.count_free(Cause::Lookup) {
        Ok(free) if free == high_water - used => Ok(()),
        Ok(free) => {
            finding(&format_args!("{free} pages are on the free list, not {}", high_water - used));
            Ok(())
        }
        Err(error) => report(Error::Store(error), finding),
    }
}

/// Damage is a finding; whatever else is wrong ends the check.
fn report(error: Error, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    match error {
        Error::Store(
            store::Error::CorruptPage { .. }
            | store::Error::DamagedPage { .. }
            | store::Error::Device(device::Error::Uncorrectable { .. }),
        ) => {
            finding(&error);
            Ok(())
        }
        error => Err(error),
    }
}

fn walk_subtree(tree: &mut BPlus<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<()> {
    walk.nodes += 1;
    if walk.nodes > walk.nodes_most {
        return Ok(());
    }
    let children = match inspect(tree, subtree, walk) {
        Ok(children) => children,
        Err(error) => return report(error, walk.finding),
    };
    for (place, (key, page)) in children.iter().enumerate() {
        let upper = children.get(place + 1).map(|(key, _)| key.as_slice()).or(subtree.upper);
        let child = Subtree { page: *page, level: subtree.level - 1, lower: key, upper };
        walk_subtree(tree, &child, walk)?;
    }
    Ok(())
}

/// Checks one node; returns its children with their keys.
fn inspect(
    tree: &mut BPlus<'_>,
    subtree: &Subtree<'_>,
    walk: &mut Walk<'_>,
) -> Result<Vec<(Vec<u8>, LogicalPage)>> {
    let page = subtree.page;
    let nodes = tree.nodes;
    let node = tree.file.page(page, Cause::Lookup, &nodes)?;
    let codec = nodes.at(subtree.level);
    let finding = &mut *walk.finding;
    if node::level(node) != subtree.level {
        finding(&format_args!("{page} is at level {}, not {}", node::level(node), subtree.level));
        return Ok(Vec::new());
    }
    let entries = node::count(node);
    let is_right_edge = subtree.upper.is_none();
    if codec.is_underfull(node) && !is_right_edge && !nodes.is_variable() {
        finding(&format_args!("{page} is less than half full: {entries} entries"));
    }
    if subtree.level > 0 && entries > 0 && codec.key(node, 0).compare(subtree.lower).is_ne() {
        finding(&format_args!("{page} does not begin with its parent's separator"));
    }
    let mut children = Vec::new();
    for place in 0..entries {
        let key = codec.key(node, place);
        let above = subtree.upper.is_some_and(|upper| key.compare(upper).is_ge());
        if above || key.compare(subtree.lower).is_lt() {
            finding(&format_args!("{page}: the key at place {place} belongs to another node"));
        }
        if subtree.level > 0 {
            let mut copy = Vec::new();
            key.copy_to(&mut copy);
            children.push((copy, nodes.child(node, place)));
        }
    }
    if subtree.level == 0 {
        walk.entries += entries as u64;
    }
    Ok(children)
}
