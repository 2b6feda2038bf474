//! Verifying every invariant of the tree.

use alloc::vec::Vec;
use core::fmt::Display;

use device::Cause;
use store::node;

use super::LaTree;
use super::descent::HEIGHT_MOST;
use super::layout::NodeId;
use super::shrinking::QUARTER;
use index::Result;

/// What a walk over the tree counts.
struct Walk<'f> {
    finding: &'f mut dyn FnMut(&dyn Display),
    nodes: u64,
    /// Nodes of each level, leaves first.
    levels: [u32; HEIGHT_MOST],
    entries: u64,
    /// Pages of long values.
    long_pages: u64,
    /// Nodes that are less than a quarter full, though they have a neighbour below their parent.
    lean: u64,
}

/// A subtree and the keys that it may hold.
struct Part<'k> {
    id: NodeId,
    level: u8,
    lower: &'k [u8],
    upper: Option<&'k [u8]>,
    has_neighbour: bool,
}

pub(super) fn check(tree: &mut LaTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let mut walk =
        Walk { finding, nodes: 0, levels: [0; HEIGHT_MOST], entries: 0, long_pages: 0, lean: 0 };
    let lowest = tree.lowest_key();
    let (id, level) = (tree.root, tree.height - 1);
    walk_part(
        tree,
        &Part { id, level, lower: &lowest, upper: None, has_neighbour: false },
        &mut walk,
    )?;
    let Walk { nodes, levels, entries, long_pages, lean, finding } = walk;
    tree.counters.lean = lean;
    if nodes != tree.nodes.count(&tree.log) {
        let known = tree.nodes.count(&tree.log);
        finding(&format_args!("the tables have {known} nodes, but the tree has {nodes}"));
    }
    for (level, (known, found)) in tree.room.levels.iter().zip(&levels).enumerate() {
        if known != found {
            finding(&format_args!(
                "{known} nodes are counted at level {level}, but the tree has {found}"
            ));
        }
    }
    if entries != tree.entries {
        let known = tree.entries;
        finding(&format_args!("{known} entries are counted, but the leaves hold {entries}"));
    }
    let pending: u64 = tree.buffers.records.iter().map(|record| u64::from(record.entries())).sum();
    let counted: u64 = tree.buffers.pending.iter().sum();
    if pending != counted {
        finding(&format_args!("{counted} entries are pending, but the buffers have {pending}"));
    }
    tree.check_pages(nodes + long_pages, finding)
}

fn walk_part(tree: &mut LaTree<'_>, part: &Part<'_>, walk: &mut Walk<'_>) -> Result<()> {
    walk.nodes += 1;
    walk.levels[usize::from(part.level) % HEIGHT_MOST] += 1;
    if walk.nodes > tree.nodes.count(&tree.log) {
        return Ok(());
    }
    let children = match inspect(tree, part, walk) {
        Ok(children) => children,
        Err(error) => return error.report_damage(walk.finding),
    };
    if part.level == 0 {
        let most = u64::from(tree.log.pages()).saturating_sub(walk.long_pages);
        walk.long_pages += tree.check_values(part.id, most, walk.finding)?;
    }
    if let Some(number) = part.id.buffer()
        && let Err(error) = inspect_buffer(tree, part, number, walk)
    {
        error.report_damage(walk.finding)?;
    }
    let (mut lower, mut next) = (Vec::new(), Vec::new());
    for place in 0..children {
        let codec = tree.nodes.inner;
        let node = tree.nodes.node(&mut tree.log, part.id, part.level, Cause::Lookup)?;
        codec.key(node, place).copy_to(&mut lower);
        let upper = if place + 1 < children {
            codec.key(node, place + 1).copy_to(&mut next);
            Some(next.as_slice())
        } else {
            part.upper
        };
        match tree.child(part.id, part.level, place, Cause::Lookup) {
            Ok(id) => {
                let (level, has_neighbour) = (part.level - 1, children > 1);
                let child = Part { id, level, lower: &lower, upper, has_neighbour };
                walk_part(tree, &child, walk)?;
            }
            Err(error) => error.report_damage(walk.finding)?,
        }
    }
    Ok(())
}

/// Checks one node; returns how many children it has.
fn inspect(tree: &mut LaTree<'_>, part: &Part<'_>, walk: &mut Walk<'_>) -> Result<usize> {
    let (id, level) = (part.id.0, part.level);
    let codec = tree.nodes.at(level);
    let is_root = part.id == tree.root;
    let buffers_stand_against = tree.has_buffers(level - u8::from(level > 0));
    let node = tree.nodes.node(&mut tree.log, part.id, level, Cause::Lookup)?;
    walk.lean += u64::from(part.has_neighbour && !codec.is_filled(node, QUARTER));
    let finding = &mut *walk.finding;
    let entries = node::count(node);
    if level > 0 && entries == 0 {
        finding(&format_args!("node {id:#x} has no children"));
    }
    if is_root && level > 0 && entries < 2 && !buffers_stand_against {
        finding(&format_args!("the root has one child only"));
    }
    if level > 0 && entries > 0 && codec.key(node, 0).compare(part.lower).is_ne() {
        finding(&format_args!("node {id:#x} does not begin with its parent's separator"));
    }
    for place in 0..entries {
        let key = codec.key(node, place);
        let above = part.upper.is_some_and(|upper| key.compare(upper).is_ge());
        if above || key.compare(part.lower).is_lt() {
            finding(&format_args!("node {id:#x}: key {place} belongs to another node"));
        }
    }
    if level == 0 {
        walk.entries += entries as u64;
        return Ok(0);
    }
    Ok(entries)
}

/// Checks a buffer: what its record says, and whose keys it holds.
fn inspect_buffer(
    tree: &mut LaTree<'_>,
    part: &Part<'_>,
    number: u32,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let record = tree.buffers.record(number);
    let (nodes, leaves) = tree.count_subtree(part.id, part.level, Cause::Lookup)?;
    let (mut entries, mut strangers, mut streams, mut last) = (0, 0, 0_u32, 0);
    let held = tree.buffers.pool.held(super::buffer_pool::BufferId(number)).entries;
    tree.buffers.scan(&mut tree.log, number, &mut |entry, age| {
        streams += u32::from(age >> 32 != last);
        last = age >> 32;
        entries += 1;
        let above = part.upper.is_some_and(|upper| entry.key >= upper);
        strangers += u32::from(above || entry.key < part.lower);
    })?;
    let finding = &mut *walk.finding;
    if !record.has_nodes(nodes, leaves > 0) {
        let known = record.nodes();
        finding(&format_args!("buffer {number} counts {known} nodes, but has {nodes}"));
    }
    if entries != record.entries() {
        let known = record.entries();
        finding(&format_args!("buffer {number} counts {known} entries, but has {entries}"));
    }
    let chained = streams - u32::from(held > 0);
    if chained != record.fragments() && record.fragments_most() != u32::MAX {
        let known = record.fragments();
        finding(&format_args!("buffer {number} counts {known} fragments, but has {chained}"));
    }
    if strangers > 0 {
        finding(&format_args!("buffer {number} has {strangers} entries of other nodes"));
    }
    Ok(())
}
