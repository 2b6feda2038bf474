//! Where the entries of a node are cut into parts.
//!
//! The list of cuts has the first entry of every part but the first. A node falls into the fewest
//! parts that hold its entries; these are alike in size, but above a new node that is appended,
//! where they are full: nothing comes between them soon. Where lengths vary, only filling nodes
//! tells how many entries one holds.

use store::node::{self, Codec, Stored};

use super::{Plan, Rewrite, Scratch};

impl Plan {
    /// Cuts the entries of `level`, the last that was added; returns how many parts there are, or
    /// `None` if an entry fits no node.
    pub(super) fn cut(
        &mut self,
        change: &Rewrite<'_>,
        level: u8,
        codec: &Codec,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let planned = self.level(level)?;
        let entries = planned.run.len();
        if entries == 0 || planned.is_copied {
            return Some(entries.min(1));
        }
        if !scratch.is_fixed() {
            return self.cut_by_trial(change, level, codec, scratch);
        }
        // With fixed lengths a node's capacity does not depend on its entries.
        let most = codec.capacity(0, 0);
        Some(if change.appends_above(level) {
            self.cut_full(entries, most)
        } else {
            self.cut_evenly(entries, most)
        })
    }

    /// Cuts so many entries into the fewest parts of at most `most`, all alike in size.
    fn cut_evenly(&mut self, entries: usize, most: usize) -> usize {
        let parts = entries.div_ceil(most.max(1));
        self.cuts.extend((1..parts).map(|part| (part * entries).div_ceil(parts)));
        parts
    }

    /// Cuts so many entries into parts of `most`, and one of what is left: nothing comes between
    /// them soon.
    fn cut_full(&mut self, entries: usize, most: usize) -> usize {
        let parts = entries.div_ceil(most.max(1));
        self.cuts.extend((1..parts).map(|part| part * most));
        parts
    }

    /// Cuts entries of variable length into the fewest parts, by filling one node after the other;
    /// then, if as many suffice, into parts alike in bytes. `None` if an entry fits no node.
    fn cut_by_trial(
        &mut self,
        change: &Rewrite<'_>,
        level: u8,
        codec: &Codec,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let start = self.cuts.len();
        let all = usize::MAX;
        let (parts, bytes) = self.fill_nodes(change, level, codec, scratch, (all, all))?;
        let is_even = parts > 1 && !change.appends_above(level);
        // Long entries, or keys that share less in other company, may not fit the last part of
        // equal ones: then those before it take more.
        for eighths in if is_even { 8..12 } else { 0..0 } {
            let middle = self.cuts.len();
            let enough = bytes.div_ceil(parts) * eighths / 8;
            let even = self.fill_nodes(change, level, codec, scratch, (enough, parts))?;
            if even.0 == parts {
                self.cuts.drain(start..middle);
                break;
            }
            self.cuts.truncate(middle);
        }
        Some(parts)
    }

    /// Fills nodes with the entries of `level`, each but the last of so many parts until it has
    /// `enough` bytes or is full, and notes where each begins; returns how many there are and the
    /// bytes they use.
    fn fill_nodes(
        &mut self,
        change: &Rewrite<'_>,
        level: u8,
        codec: &Codec,
        scratch: &mut Scratch,
        (enough, parts_most): (usize, usize),
    ) -> Option<(usize, usize)> {
        let node_bytes = codec.node_bytes();
        let (node, other) = (&mut scratch.node[..node_bytes], &mut scratch.other[..node_bytes]);
        codec.initialise(node, level);
        let key = &mut scratch.key;
        let (mut parts, mut used) = (1, 0);
        for place in 0..self.level(level)?.run.len() {
            self.key(change, level, place).copy_to(key);
            let value = self.old_value(change, level, place);
            let is_enough = codec.used_bytes(node) >= enough && parts < parts_most;
            let at = node::count(node);
            if is_enough || !codec.insert(node, at, key, Stored::inline(value), other) {
                used += codec.used_bytes(node);
                self.cuts.push(place);
                parts += 1;
                codec.initialise(node, level);
                if !codec.insert(node, 0, key, Stored::inline(value), other) {
                    return None;
                }
            }
        }
        Some((parts, used + codec.used_bytes(node)))
    }
}
