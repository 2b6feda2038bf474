//! Emptying buffers (figure 3(c), section 2.3).
//!
//! A buffer is read once and sorted ([`Emptying`](super::emptying::Emptying)), and its entries go
//! down path by path in the order of their keys: to the buffers at the next buffered level, or to
//! the leaves. What is then too large is listed, and emptied one after the other. On a disk pages
//! of fragments are given back as they are read.
//!
//! The way to the subtree's root is walked once, and again only after nodes there were split or
//! merged. A leaf that is full is split, and the way to it is walked again.
//!
//! What goes down comes to a lower level each time: the buffer that it comes to is none of those
//! above. A damaged node may name any buffer as its child's; without that, entries would go round
//! for ever.
//!
//! # Invariants
//! - A buffer counts as empty before its first entry goes down. What of its chain is not in memory
//!   stays on flash until the emptying is over: nothing is erased meanwhile.
//! - When a buffer is emptied because it is too large, none above it has more than U bytes, or is
//!   listed behind it.

use device::{Cause, Page};
use store::node;

use super::LaTree;
use super::bare_tree::{Bounds, Halves, QUARTER, Toward, last_filled, split_middle};
use super::cost::{Emptied, Subtree, TreeShape};
use super::counters::NodeReads;
use super::layout::{NodeId, damaged};
use super::policy::{Decision, Estimate};
use crate::btree::Edit;
use index::Result;

/// The root of the subtree that is being emptied.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) level: u8,
    /// True if nodes at its level, or above, were split or merged since the way to it was walked.
    pub(super) restructured: bool,
    pub(super) bounds: Bounds,
}

impl Top {
    pub(super) fn new(key_bytes: usize) -> Self {
        Top { level: 0, restructured: true, bounds: Bounds::with_capacity(key_bytes) }
    }

    /// The subtree's root is one at `level`, to which no way is known.
    pub(super) const fn begin(&mut self, level: u8) {
        (self.level, self.restructured) = (level, true);
    }
}

/// Entries that went back into buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PutBack {
    pub(super) entries: u32,
    pub(super) bytes: u32,
}

impl LaTree<'_> {
    /// H and F.
    pub(super) fn tree_shape(&self) -> TreeShape {
        TreeShape {
            height: u32::from(self.bare.height),
            fanout: self.bare.nodes.codecs.leaf.capacity(self.plan.sizes.entry_least, 4) as u32,
        }
    }

    /// What buffer `number` costs.
    pub(super) fn estimate(&mut self, number: u32) -> Estimate {
        self.estimator.rates.stored = self.buffers.stored;
        self.estimator.estimate(&self.buffers.subtree(number), self.tree_shape())
    }

    /// Empties every buffer that is listed, and those that get too large by that, as far as there
    /// is room.
    pub(super) fn empty_listed(&mut self, cause: Cause) -> Result<()> {
        while self.buffers.next_listed().is_some()
            && self.may_step()
            && self.make_room_for_listed()?
        {
            let Some(number) = self.buffers.take_listed() else {
                break;
            };
            self.empty(number, cause)?;
        }
        self.room.part = None;
        Ok(())
    }

    /// Goes on with what is listed to be emptied, as far as there is room.
    pub(super) fn empty_owed(&mut self) -> Result<()> {
        match self.bare.log.is_disk() {
            true => self.empty_listed(Cause::Flush),
            false => Ok(()),
        }
    }

    /// Empties buffers as far as there is room, and then merges leaves; false if there is none.
    pub(super) fn drain_some(&mut self) -> Result<bool> {
        let (may_step, before) = (self.may_step(), self.buffers.pending);
        self.empty_all(Cause::Flush)?;
        let is_merged = self.buffers.pending == [0; 2] && self.compact_some(Cause::Flush)?;
        // On raw flash a checkpoint may have to erase what was left before it goes on.
        let is_less =
            is_merged || self.buffers.pending != before || self.bare.log.blocks_to_erase() > 0;
        Ok(may_step && (self.bare.log.is_disk() || is_less))
    }

    /// Notes that an entry of `bytes` bytes, or several, came to a leaf.
    pub(super) fn note_gone_down(&mut self, bytes: u32) {
        if let Some(disk) = self.bare.log.disk_mut() {
            disk.gone_down += u64::from(bytes);
        }
    }

    /// Empties all buffers, those of inner subtrees first, as far as there is room.
    pub(super) fn empty_all(&mut self, cause: Cause) -> Result<()> {
        for is_leaf in [false, true] {
            // What goes down may come to a buffer whose turn was before, once a level at most.
            for _ in 0..self.bare.height {
                self.empty_each(is_leaf, cause)?;
                if self.buffers.pending[usize::from(is_leaf)] == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Empties the buffers of leaf subtrees, or the others, in the order of their numbers.
    fn empty_each(&mut self, is_leaf: bool, cause: Cause) -> Result<()> {
        let mut number = 0;
        while (number as usize) < self.buffers.records.len() && self.may_step() {
            let record = self.buffers.record(number);
            if record.entries() > 0 && record.is_leaf() == is_leaf {
                self.buffers.list(number);
                self.empty_listed(cause)?;
            }
            number += 1;
        }
        Ok(())
    }

    /// Empties buffer `number`.
    pub(super) fn empty(&mut self, number: u32, cause: Cause) -> Result<()> {
        let record = self.buffers.record(number);
        if record.entries() == 0 {
            return Ok(());
        }
        self.generation.is_vain = false;
        let id = NodeId::of_buffer(number);
        let (read, rebalanced) = (self.bare.nodes.reads, self.counters.rebalanced);
        let level = self.find_buffer(id, cause)?;
        let before = self.buffers.subtree(number);
        let is_root = self.bare.root == id;
        self.counters.emptying_estimated += self.estimate(number).emptying;
        let printed = self.estimator.printed(&before, self.tree_shape());
        self.counters.emptying_printed += printed.emptying;
        self.take_off(number, cause)?;
        (self.top.level, self.top.restructured) = (level, false);
        self.top.bounds.copy_from(&self.bare.bounds);
        let mut leaves_changed = 0;
        match self.bare.buffers_below(level) {
            Some(below) => self.distribute_to_buffers(below, None, cause)?,
            None => leaves_changed = self.distribute_to_leaves(cause)?,
        }
        self.room.part = None;
        self.rebalance_lean(cause)?;
        self.lower_root(cause)?;
        self.counters.leaves_changed += u64::from(leaves_changed);
        let emptied = Emptied {
            before,
            nodes_read: self.sixteenths_read(&read),
            leaves_changed,
            rebalanced: (self.counters.rebalanced - rebalanced) as u32,
        };
        if self.note_emptied(&before, is_root) {
            self.estimator.rates.observe(&emptied);
        }
        let pages = self.bare.nodes.programmed - self.bare.nodes.observed;
        self.bare.nodes.observed = self.bare.nodes.programmed;
        if self.bare.log.is_disk() {
            // A node that is changed is written, later.
            return Ok(());
        }
        self.estimator.rates.written.add(
            pages * u64::from(self.plan.pages.nodes_per_page()),
            u64::from(emptied.leaves_changed + emptied.rebalanced),
        );
        Ok(())
    }

    /// What reading nodes cost since `before`, in sixteenths of reading a whole node.
    fn sixteenths_read(&self, before: &NodeReads) -> u32 {
        let nodes = self.bare.nodes.reads.all() - before.all();
        let bytes = self.bare.nodes.reads.bytes - before.bytes;
        let saved = nodes * u64::from(self.plan.pages.node_bytes()) - bytes;
        self.estimator.units.sixteenths(nodes, saved)
    }

    /// Counts what went down of the buffer that was emptied; false if that was a part only, from
    /// which no rates can be learned.
    fn note_emptied(&mut self, before: &Subtree, is_root: bool) -> bool {
        let back = core::mem::take(&mut self.put_back);
        let leaf = usize::from(before.leaves > 0);
        let bytes = before.bytes.saturating_sub(back.bytes);
        self.counters.emptied[leaf] += 1;
        let entries = u64::from(before.entries.saturating_sub(back.entries));
        self.counters.emptied_entries[leaf] += entries;
        if is_root {
            self.counters.emptied_at_root += 1;
            self.counters.emptied_entries_at_root += entries;
        }
        self.counters.emptied_bytes[leaf] += u64::from(bytes);
        if leaf > 0 {
            self.note_gone_down(bytes);
        }
        back.entries == 0
    }

    /// Walks the way to node `id`, which has a buffer; returns its level.
    pub(super) fn find_buffer(&mut self, id: NodeId, cause: Cause) -> Result<u8> {
        let key = &mut self.emptying.entry.key;
        let (level, count) = self.bare.first_key(id, key, cause)?;
        if let (0, Some(number)) = (count, id.buffer()) {
            // Any key of the buffer of an empty leaf: no other has its entries.
            self.buffers.scan(&mut self.bare.log, number, &mut |entry, _| {
                key.clear();
                key.extend_from_slice(entry.key);
            })?;
        }
        let found = match level {
            0 if key.is_empty() => self.bare.find_empty_leaf(id, key, cause),
            level if level < self.bare.height => self.bare.descend(level, key, cause),
            _ => Ok(id),
        };
        if found? != id || level >= self.bare.height {
            return Err(self.bare.damage_of(id, "the tree does not lead to this node"));
        }
        Ok(level)
    }

    /// Makes room in the pool, if it is nearly full: the fullest buffer leaves it, or one that is
    /// not above leaves is emptied, which moves its entries from memory to memory.
    pub(super) fn spill(&mut self) -> Result<()> {
        let root = self.bare.root.buffer();
        let Some(mut number) = self.buffers.next_to_spill(root) else {
            return Ok(());
        };
        if !self.buffers.record(number).is_leaf() && !self.generation.is_waiting {
            self.buffers.list(number);
            self.empty_listed(Cause::Flush)?;
            match self.buffers.next_to_spill(root) {
                Some(next) => number = next,
                None => return Ok(()),
            }
        }
        let sorter = &mut self.emptying.sorter;
        self.buffers.write_run(&mut self.bare.log, number, sorter, Cause::Flush)
    }

    /// Makes the entries of buffer `number`, which the way leads to, those that go down, and the
    /// buffer empty.
    pub(super) fn take_off(&mut self, number: u32, cause: Cause) -> Result<()> {
        let from = (number, &self.bare.bounds);
        let fits = self.emptying.take_off(&mut self.bare.log, &mut self.buffers, from, cause)?;
        self.counters.emptied_in_parts += u64::from(!fits);
        Ok(())
    }

    /// Goes on to the next entry that goes down; false after the last.
    pub(super) fn next_going_down(&mut self, cause: Cause) -> Result<bool> {
        self.emptying.next(&mut self.bare.log, &mut self.buffers, cause)
    }

    /// Goes to the node at `level` where the next entry belongs.
    fn go_down(&mut self, level: u8, cause: Cause) -> Result<NodeId> {
        let key = &self.emptying.entry.key;
        if self.top.restructured || !self.top.bounds.contains(key) {
            self.top.level = self.top.level.min(self.bare.height - 1);
            self.bare.descend(self.top.level, key, cause)?;
            self.top.bounds.copy_from(&self.bare.bounds);
            self.top.restructured = false;
        } else {
            self.bare.bounds.copy_from(&self.top.bounds);
        }
        self.bare.walk(self.top.level, level, Toward::Key(key), cause)
    }

    /// Hands what goes down to the buffers at `level`, but for the entry of the key `without`.
    pub(super) fn distribute_to_buffers(
        &mut self,
        level: u8,
        without: Option<&[u8]>,
        cause: Cause,
    ) -> Result<()> {
        let mut child = None;
        while self.next_going_down(cause)? {
            if without != Some(self.emptying.entry.key.as_slice()) {
                child = Some(self.hand_to_buffer(child, level, cause)?);
            }
        }
        self.batch_came(child);
        Ok(())
    }

    /// Appends the entry on its way to the buffer at `level` where it belongs: to that of `child`,
    /// if the entry before it went there and it does, too. Returns the buffer.
    pub(super) fn hand_to_buffer(
        &mut self,
        child: Option<u32>,
        level: u8,
        cause: Cause,
    ) -> Result<u32> {
        let number = match child.filter(|_| self.bare.bounds.contains(&self.emptying.entry.key)) {
            Some(number) => number,
            None => {
                self.batch_came(child);
                let number = self.go_down(level, cause)?.buffer();
                let number = number.ok_or(damaged(Page(0), "a node has no buffer"))?;
                if self.bare.is_above(level, number) {
                    let id = NodeId::of_buffer(number);
                    return Err(self.bare.damage_of(id, "a node is below itself"));
                }
                number
            }
        };
        self.buffers.append(&mut self.bare.log, number, &self.emptying.entry.pending(), cause)?;
        Ok(number)
    }

    /// Lists a buffer that is too large after its batch came.
    pub(super) fn batch_came(&mut self, child: Option<u32>) {
        let policy = self.policy;
        let Some(number) = child else {
            return;
        };
        if self.buffers.at_update(&policy, number) == Decision::Empty {
            self.buffers.list(number);
        }
    }

    /// Hands what goes down to the leaves; returns how many were changed.
    pub(super) fn distribute_to_leaves(&mut self, cause: Cause) -> Result<u32> {
        let (mut changed, mut at_leaf) = (0, false);
        while self.next_going_down(cause)? {
            loop {
                if !at_leaf || !self.bare.bounds.contains(&self.emptying.entry.key) {
                    if at_leaf {
                        self.rebalance_leaf(cause)?;
                    }
                    let is_lean = self.is_lean_behind();
                    let is_full = changed > 0 && !(self.may_step() && self.has_room_for_leaf());
                    if is_lean || is_full {
                        self.put_back(is_lean, cause)?;
                        return Ok(changed);
                    }
                    self.go_down(0, cause)?;
                    (at_leaf, changed) = (true, changed + 1);
                }
                if self.apply_to_leaf(cause)? {
                    break;
                }
                // It was split: the way is to be walked again, if anything is left to go it.
                (at_leaf, changed) = (false, changed - 1);
                if self.put_back.entries > 0 {
                    return Ok(changed);
                }
            }
        }
        if at_leaf {
            self.rebalance_leaf(cause)?;
        }
        Ok(changed)
    }

    /// True if one leaf more can be changed.
    fn has_room_for_leaf(&self) -> bool {
        self.room.part.is_none_or(|part| self.census().has_room_for_leaf(part))
    }

    /// Makes the next entry's change in the leaf of the way; false if the leaf was full, and room
    /// was made.
    fn apply_to_leaf(&mut self, cause: Cause) -> Result<bool> {
        let leaf = self.bare.path.at(0).id;
        let entry = &self.emptying.entry;
        let node = self.bare.node_at(leaf, 0, cause)?;
        let (found, value) = (node.search(&entry.key), entry.stored());
        let known = found.ok().map(|place| node.value(place));
        let before = known.and_then(|known| known.as_long());
        let edit = match (found, entry.is_delete) {
            (Err(_), true) => return Ok(true),
            (Ok(place), true) => Edit::Remove { place },
            (Ok(place), false) => {
                let is_inline = before.is_none() && !entry.is_long;
                if is_inline && known.is_some_and(|known| known.bytes() == value.bytes()) {
                    return Ok(true);
                }
                Edit::Replace { place, value }
            }
            (Err(place), false) => Edit::Insert { place, key: &entry.key, value },
        };
        if self.bare.edit((leaf, 0), edit)? {
            match edit {
                Edit::Insert { .. } => self.bare.entries = self.bare.entries.saturating_add(1),
                Edit::Replace { .. } => {}
                Edit::Remove { .. } => self.note_removed(leaf)?,
            }
            self.bare.drop_value(before, cause)?;
            return Ok(true);
        }
        let (Ok(place) | Err(place)) = found;
        let halves = self.split_place(leaf, place, cause)?;
        self.lend_for_put()?;
        self.split(0, halves, cause)?;
        Ok(false)
    }

    fn note_removed(&mut self, leaf: NodeId) -> Result<()> {
        self.room.compaction.note_delete();
        let what = "the root counts fewer entries than there are";
        let entries = self.bare.entries.checked_sub(1);
        self.bare.entries = entries.ok_or_else(|| self.bare.damage_of(leaf, what))?;
        Ok(())
    }

    /// Where a full leaf is split that takes an entry at `place`. If many more entries follow, what
    /// they have passed is not divided again, so that leaves get full.
    fn split_place(&mut self, leaf: NodeId, place: usize, cause: Cause) -> Result<Halves> {
        let codec = self.bare.nodes.codecs.leaf;
        let node = self.bare.nodes.node(&mut self.bare.log, leaf, 0, cause)?;
        let count = node::count(node);
        if count < 2 {
            return Err(self.bare.damage_of(leaf, "it is full with one entry"));
        }
        let left = |at| Halves { at, next_is_right: at == count };
        let middle = split_middle(&codec, node);
        let follow = self.emptying.peek(count * usize::from(100 - 2 * QUARTER) / 100);
        let Some(follow) = follow.filter(|entry| self.bare.bounds.contains(entry.key)) else {
            return Ok(left(middle));
        };
        // What follows fills the left one; it has a quarter from the start.
        let least = match self.buffers.form.fixed_bytes() {
            Some(_) => count.div_ceil(4),
            None => middle,
        };
        let next = (place < count).then(|| codec.key(node, place));
        if next.is_none_or(|next| next.compare(follow.key).is_le()) {
            return Ok(left(place.max(middle)));
        }
        let at = last_filled(&codec, node, place.clamp(least, count - 1)).max(least);
        // Where too little of it would be left on the right, what follows fills that one.
        Ok(if at < place { Halves { at: place, next_is_right: true } } else { left(at) })
    }
}
