//! What the tree counts, for estimates and reports.

use index::{GENERATIONS_RECLAIMED, INNER_NODES, LEAVES, NODES_MERGED, NODES_SPLIT};

/// Counts of an event in inner subtrees, and in leaf subtrees.
pub(super) type Both = [u64; 2];

/// What happened since the tree was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Nodes changed or made by splits, merges and redistributions.
    pub(super) rebalanced: u64,
    /// Nodes that were split, and that were merged with a neighbour.
    pub(super) nodes_split: u64,
    pub(super) nodes_merged: u64,
    /// Underfull nodes that took entries from a neighbour.
    pub(super) nodes_filled_up: u64,
    /// Buffers that were emptied, the entries and bytes in them, and those buffers of them that a
    /// lookup had emptied.
    pub(super) emptied: Both,
    pub(super) emptied_entries: Both,
    pub(super) emptied_bytes: Both,
    pub(super) emptied_for_lookups: Both,
    /// Of the buffers that were emptied, the root's, and the entries in it.
    pub(super) emptied_at_root: u64,
    pub(super) emptied_entries_at_root: u64,
    /// Buffers that did not fit memory when they were emptied, in parts.
    pub(super) emptied_in_parts: u64,
    /// What emptying was estimated to cost, as measured rates and as printed bounds have it, and
    /// writing what was put into the root's buffer; in nanoseconds.
    pub(super) emptying_estimated: u64,
    pub(super) emptying_printed: u64,
    pub(super) put_estimated: u64,
    /// What scans for lookups were estimated to cost, and did, in nanoseconds.
    pub(super) scan_estimated: u64,
    pub(super) scan_actual: u64,
    /// Leaves that emptying changed.
    pub(super) leaves_changed: u64,
    /// Buffers with entries that were split and merged with their nodes.
    pub(super) buffers_split: u64,
    pub(super) buffers_merged: u64,
    /// What moving the entries of buffers took whose nodes were split or merged, in nanoseconds.
    pub(super) buffers_rebalanced_ns: u64,
    /// Generations of pages that were reclaimed.
    pub(super) reclaimed: u64,
    /// Nodes that the last check found to be less than a quarter full, though they have neighbours.
    pub(super) lean: u64,
}

/// What buffers counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BufferCounters {
    /// Lookups that came to a buffer with entries, and the fragments that they read.
    pub(super) searched: Both,
    pub(super) fragments_read: Both,
    /// Entries in the pool that they passed.
    pub(super) passed: Both,
    /// Registers that the paper's own form would have held: groups of consecutive lookups.
    pub(super) registers: Both,
    /// Fragments that were read for whatever reason.
    pub(super) fetched: u64,
    /// Buffers that left the pool sorted, and how many of them did as a whole.
    pub(super) spills: u64,
    pub(super) spilled: u64,
    /// Fragments that were written, and the entries in them.
    pub(super) fragments: Both,
    pub(super) fragment_entries: Both,
}

/// Nodes read from flash: leaves, those just above them, and others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeReads {
    /// For lookups.
    pub(super) lookup: [u64; 3],
    /// For updates.
    pub(super) update: [u64; 3],
    /// Bytes of all of them.
    pub(super) bytes: u64,
}

impl NodeReads {
    pub(super) fn all(&self) -> u64 {
        self.lookup.iter().chain(&self.update).sum()
    }

    pub(super) fn count(&mut self, level: u8, bytes: usize, is_lookup: bool) {
        self.bytes += bytes as u64;
        let reads = if is_lookup { &mut self.lookup } else { &mut self.update };
        reads[usize::from(level).min(2)] += 1;
    }
}

/// Tells all that is counted, by name.
pub(super) fn tell(tree: &super::LaTree<'_>, tell: &mut dyn FnMut(&'static str, u64)) {
    let (tree_wide, buffers, reads) =
        (&tree.counters, &tree.buffers.counters, &tree.bare.nodes.reads);
    let both: [(&'static str, &'static str, Both); 10] = [
        ("emptied inner", "emptied leaf", tree_wide.emptied),
        ("emptied entries inner", "emptied entries leaf", tree_wide.emptied_entries),
        ("emptied bytes inner", "emptied bytes leaf", tree_wide.emptied_bytes),
        ("emptied for lookups inner", "emptied for lookups leaf", tree_wide.emptied_for_lookups),
        ("registers inner", "registers leaf", buffers.registers),
        ("searched inner", "searched leaf", buffers.searched),
        ("fragments read inner", "fragments read leaf", buffers.fragments_read),
        ("entries passed in memory inner", "entries passed in memory leaf", buffers.passed),
        ("fragments written inner", "fragments written leaf", buffers.fragments),
        ("fragment entries inner", "fragment entries leaf", buffers.fragment_entries),
    ];
    for (inner, leaf, counts) in both {
        tell(inner, counts[0]);
        tell(leaf, counts[1]);
    }
    tell("emptied at the root", tree_wide.emptied_at_root);
    tell("emptied entries at the root", tree_wide.emptied_entries_at_root);
    let names = ["leaves read", "parents of leaves read", "higher nodes read"];
    for (name, count) in names.into_iter().zip(reads.lookup) {
        tell(name, count);
    }
    let names = ["leaves read to change", "parents read to change", "higher read to change"];
    for (name, count) in names.into_iter().zip(reads.update) {
        tell(name, count);
    }
    tell("pages of nodes programmed", tree.bare.nodes.programmed);
    tell("emptying estimated ns", tree_wide.emptying_estimated);
    tell("emptying printed ns", tree_wide.emptying_printed);
    tell("put estimated ns", tree_wide.put_estimated);
    tell("scan estimated ns", tree_wide.scan_estimated);
    tell("scan actual ns", tree_wide.scan_actual);
    tell("leaves changed", tree_wide.leaves_changed);
    tell("nodes rebalanced", tree_wide.rebalanced);
    tell(NODES_SPLIT, tree_wide.nodes_split);
    tell(NODES_MERGED, tree_wide.nodes_merged);
    tell("nodes filled up by a neighbour", tree_wide.nodes_filled_up);
    tell("nodes less than a quarter full at the last check", tree_wide.lean);
    tell(LEAVES, tree.bare.leaves());
    let inner = tree.bare.levels[1..].iter().map(|nodes| u64::from(*nodes)).sum();
    tell(INNER_NODES, inner);
    tell("entries", tree.bare.entries);
    tell("nodes", tree.bare.nodes.count(&tree.bare.log));
    tell("fragments fetched", buffers.fetched);
    tell("buffers written sorted", buffers.spilled);
    tell("buffers written sorted in part", buffers.spills - buffers.spilled);
    tell("frames of nodes", tree.bare.nodes.cache.frames() as u64);
    tell("bytes of the pool", tree.buffers.pool.memory_bytes());
    tell("memory moved to nodes", tree.sharing.moved[0]);
    tell("memory moved to the pool", tree.sharing.moved[1]);
    tell("bytes that tables may take", tree.sharing.tables.unwrap_or(0));
    tell("buffers emptied in parts", tree_wide.emptied_in_parts);
    tell("buffers split", tree_wide.buffers_split);
    tell("buffers merged", tree_wide.buffers_merged);
    tell("buffers rebalanced ns", tree_wide.buffers_rebalanced_ns);
    tell(GENERATIONS_RECLAIMED, tree_wide.reclaimed);
    tell(
        "buffers of leaf subtrees",
        tree.buffers.records.iter().filter(|record| record.is_leaf()).count() as u64,
    );
    tell("pending inner", tree.buffers.pending[0]);
    tell("pending leaf", tree.buffers.pending[1]);
}
