//! Verifying every invariant of the tree.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use store::{LEVELS_MOST, node};

use super::Ipl;
use super::table::NodeId;
use index::Result;

struct Walk<'f> {
    finding: &'f mut dyn FnMut(&dyn Display),
    nodes: u64,
    /// Nodes of each level, leaves first.
    levels: [u32; LEVELS_MOST],
    entries: u64,
}

/// A subtree and the keys that it may hold.
struct Subtree<'k> {
    node: NodeId,
    level: u8,
    lower: &'k [u8],
    upper: Option<&'k [u8]>,
}

pub(super) fn check(tree: &mut Ipl<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let mut walk = Walk { finding, nodes: 0, levels: [0; LEVELS_MOST], entries: 0 };
    let level = tree.height - 1;
    let whole = Subtree { node: tree.root, level, lower: &[], upper: None };
    walk_subtree(tree, &whole, &mut walk)?;
    let (nodes, levels, entries) = (walk.nodes, walk.levels, walk.entries);
    let live = u64::from(tree.ground.table.live());
    if nodes != live {
        finding(&format_args!("the table has {live} nodes, but the tree {nodes}"));
    }
    for (level, (counted, found)) in tree.levels.iter().zip(&levels).enumerate() {
        if counted != found {
            finding(&format_args!(
                "the root counts {counted} nodes at level {level}, but the tree has {found}"
            ));
        }
    }
    let counted = tree.entries;
    if entries != counted {
        finding(&format_args!("the root counts {counted} entries, but the leaves hold {entries}"));
    }
    Ok(())
}

fn walk_subtree(tree: &mut Ipl<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<()> {
    walk.nodes += 1;
    walk.levels[usize::from(subtree.level)] += 1;
    if walk.nodes > u64::from(tree.ground.table.live()) {
        return Ok(());
    }
    let children = match inspect(tree, subtree, walk) {
        Ok(children) => children,
        Err(error) => return error.report_damage(walk.finding),
    };
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for place in 0..children {
        let here = (subtree.node, subtree.level);
        tree.copy_key(here, place, &mut lower)?;
        let has_next = place + 1 < children;
        if has_next {
            tree.copy_key(here, place + 1, &mut upper)?;
        }
        let forms = tree.ground.forms;
        let node = forms.child(tree.ground.node(subtree.node, Cause::Lookup)?, place);
        let upper = if has_next { Some(upper.as_slice()) } else { subtree.upper };
        let child = Subtree { node, level: subtree.level - 1, lower: &lower, upper };
        walk_subtree(tree, &child, walk)?;
    }
    Ok(())
}

/// Looks at one node; returns how many children it has.
fn inspect(tree: &mut Ipl<'_>, subtree: &Subtree<'_>, walk: &mut Walk<'_>) -> Result<usize> {
    let Subtree { node: id, level, lower, upper } = *subtree;
    let codec = *tree.ground.forms.at(level);
    let is_root = id == tree.root;
    let bytes = tree.ground.node(id, Cause::Lookup)?;
    let finding = &mut *walk.finding;
    if node::level(bytes) != level {
        finding(&format_args!("node {} is at level {}, not {level}", id.0, node::level(bytes)));
        return Ok(0);
    }
    let count = node::count(bytes);
    for place in 0..count {
        let key = codec.key(bytes, place);
        let above = upper.is_some_and(|upper| key.compare(upper).is_ge());
        let is_in_order = place == 0 || {
            let before = codec.key(bytes, place - 1);
            let before: Vec<u8> = before.prefix.iter().chain(before.suffix).copied().collect();
            key.compare(&before).is_gt()
        };
        if above || key.compare(lower).is_lt() || !is_in_order {
            finding(&format_args!("node {}: the key at place {place} is misplaced", id.0));
        }
    }
    if level == 0 {
        walk.entries += count as u64;
        return Ok(0);
    }
    if is_root && count < 2 {
        finding(&format_args!("the root has {count} children"));
    }
    Ok(count)
}
