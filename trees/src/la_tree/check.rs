//! Verifying what the tree keeps beside what every B+-tree does.

use core::fmt::Display;

use device::Cause;

use super::LaTree;
use super::bare_tree::{BareTree, QUARTER};
use super::buffer_pool::BufferId;
use super::buffers::Buffers;
use super::layout::NodeId;
use crate::btree::{self, At, HEIGHT_MOST, Inspector, KeyBounds, NodeSource, Rules};
use index::Result;

/// What is found beside nodes and entries.
struct Beside<'b> {
    buffers: &'b mut Buffers,
    has_long_values: bool,
    /// Pages of long values.
    long_pages: u64,
    /// Nodes that are less than a quarter full, though they have a neighbour below their parent.
    lean: u64,
    /// Of each level, whether the node that was met last has several children.
    has_several: [bool; HEIGHT_MOST],
}

pub(super) fn check(tree: &mut LaTree<'_>, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
    let mut beside = Beside {
        buffers: &mut tree.buffers,
        has_long_values: tree.limits.has_long_values(),
        long_pages: 0,
        lean: 0,
        has_several: [false; HEIGHT_MOST],
    };
    let bare = &mut tree.bare;
    let (root, lowest) = (At { id: bare.root, level: bare.height - 1 }, bare.lowest_key());
    let rules = Rules {
        has_exact_separators: true,
        is_half_full: false,
        // If its only child has a buffer as well, it stays until its own is empty.
        has_branching_root: root.level == 0 || !bare.has_buffers(root.level - 1),
    };
    let counted = btree::check((&mut *bare, root), &lowest, rules, &mut beside, finding)?;
    let Beside { lean, long_pages, .. } = beside;
    tree.counters.lean = lean;
    let known = (bare.count(), &bare.levels[..], bare.entries);
    counted.compare(known, finding);
    let pending: u64 = tree.buffers.records.iter().map(|record| u64::from(record.entries())).sum();
    let known: u64 = tree.buffers.pending.iter().sum();
    if pending != known {
        finding(&format_args!("{known} entries are pending, but the buffers have {pending}"));
    }
    match tree.bare.log.disk_mut() {
        Some(disk) => disk.check(counted.nodes + long_pages, finding),
        None => Ok(()),
    }
}

impl<'d> Inspector<BareTree<'d>> for Beside<'_> {
    fn inspect(
        &mut self,
        tree: &mut BareTree<'d>,
        at: At<NodeId>,
        bounds: &KeyBounds<'_>,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> Result<()> {
        let node = tree.node(at, Cause::Lookup)?;
        let (count, is_lean) = (node.count(), !node.codec.is_filled(node.bytes, QUARTER));
        let level = usize::from(at.level);
        let has_neighbour = self.has_several.get(level + 1).is_some_and(|several| *several);
        self.lean += u64::from(is_lean && has_neighbour);
        if let Some(several) = self.has_several.get_mut(level) {
            *several = count > 1;
        }
        if level > 0 && count == 0 {
            finding(&format_args!("node {:#x} has no children", at.id.0));
        }
        if level == 0 && self.has_long_values {
            let most = u64::from(tree.log.pages()).saturating_sub(self.long_pages);
            self.long_pages += tree.check_values(at.id, most, finding)?;
        }
        match at.id.buffer() {
            Some(number) => inspect_buffer((tree, self.buffers), (at, number), bounds, finding),
            None => Ok(()),
        }
    }
}

/// Checks a buffer: what its record says, and whose keys it holds.
fn inspect_buffer(
    (tree, buffers): (&mut BareTree<'_>, &mut Buffers),
    (at, number): (At<NodeId>, u32),
    bounds: &KeyBounds<'_>,
    finding: &mut dyn FnMut(&dyn Display),
) -> Result<()> {
    let record = buffers.record(number);
    let (nodes, leaves) = tree.count_subtree(at.id, at.level, Cause::Lookup)?;
    let (mut entries, mut strangers, mut streams, mut last) = (0, 0, 0_u32, 0);
    let held = buffers.pool.held(BufferId(number)).entries;
    buffers.scan(&mut tree.log, number, &mut |entry, age| {
        streams += u32::from(age >> 32 != last);
        last = age >> 32;
        entries += 1;
        let above = bounds.upper.is_some_and(|upper| entry.key >= upper);
        strangers += u32::from(above || entry.key < bounds.lower);
    })?;
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
