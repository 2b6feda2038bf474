//! Emptying buffers (figure 3(c), section 2.3).
//!
//! A buffer is read once and sorted, and its entries go down in the order of their keys, path by
//! path: to the buffers at the next buffered level, or to the leaves. What is then too large is
//! listed, and emptied one after the other. On a disk pages of fragments are given back: of a
//! buffer that fits memory while it is read, of a larger one by reading its chain again when all
//! went down.
//!
//! # Invariants
//! - A buffer counts as empty before its first entry goes down. What of its chain is not in memory
//!   stays on flash until the emptying is over: nothing is erased meanwhile.
//! - When a buffer is emptied because it is too large, none above it has more than U bytes, or is
//!   listed behind it.

use core::ops::Range;

use device::{Cause, Page};
use store::node::{self, Stored};

use super::LaTree;
use super::buffer_pool::BufferId;
use super::cost::{Emptied, Subtree, TreeShape};
use super::descent::{Bounds, Toward};
use super::emptying::{self, Next, Order};
use super::growth::{last_filled, split_middle};
use super::layout::{Link, NodeId, Owner};
use super::nodes::damaged;
use super::policy::{Decision, Estimate};
use super::shrinking::QUARTER;
use super::stream::Pending;
use super::table::BufferRecord;
use crate::Result;

/// Y, the batch that came last, read from its newest fragment on.
#[derive(Clone, Debug)]
struct Batch {
    owner: Owner,
    /// The next fragment, and the one behind the last.
    next: Option<Link>,
    until: Option<Link>,
    /// The stream in the buffer for reading, and how many of its entries are left.
    stream: Range<usize>,
    left: u32,
}

/// What is going down, and the entry of it that is next.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) key: alloc::vec::Vec<u8>,
    pub(super) value: alloc::vec::Vec<u8>,
    pub(super) is_delete: bool,
    /// True if the value tells where the entry's long value stands.
    pub(super) is_long: bool,
    /// True if the entry is all there is: it comes from no buffer.
    is_single: bool,
    order: Order,
    /// Entries of X that went down.
    place: usize,
    batch: Option<Batch>,
    /// The chain that is read again for the keys above the last, as its X does not fit memory.
    again: Option<BufferRecord>,
    /// The chain that is let go when all went down.
    pub(super) owed: Option<BufferRecord>,
    /// Entries beyond this are not the buffer's own.
    filter: Bounds,
    is_filtered: bool,
    /// What of the buffer that is being emptied went back, as there was no room for more steps.
    pub(super) put_back: PutBack,
}

/// Entries that went back into buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PutBack {
    pub(super) entries: u32,
    pub(super) bytes: u32,
}

impl Flight {
    /// The order in which entries go down.
    pub(super) const fn order(&self) -> Order {
        self.order
    }

    pub(super) fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Flight {
            key: alloc::vec::Vec::with_capacity(key_bytes),
            value: alloc::vec::Vec::with_capacity(value_bytes),
            is_delete: false,
            is_long: false,
            is_single: false,
            order: Order::Ascending,
            place: 0,
            batch: None,
            again: None,
            owed: None,
            filter: Bounds::with_capacity(key_bytes),
            is_filtered: false,
            put_back: PutBack::default(),
        }
    }

    pub(super) fn take(&mut self, entry: &Pending<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.value.clear();
        self.value.extend_from_slice(entry.value.unwrap_or_default());
        self.is_delete = entry.value.is_none();
        self.is_long = false;
    }

    /// The value, as it stands in a leaf.
    fn stored(&self) -> Stored<'_> {
        match self.value.first_chunk() {
            Some(long) if self.is_long => Stored::long(long),
            _ => Stored::inline(&self.value),
        }
    }
}

/// The root of the subtree that is being emptied.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) level: u8,
    /// True if nodes at its level, or above, were split or merged since the way to it was walked.
    pub(super) restructured: bool,
    bounds: Bounds,
}

impl Top {
    pub(super) fn new(key_bytes: usize) -> Self {
        Top { level: 0, restructured: true, bounds: Bounds::with_capacity(key_bytes) }
    }
}

impl LaTree<'_> {
    /// H and F.
    pub(super) fn tree_shape(&self) -> TreeShape {
        TreeShape {
            height: u32::from(self.height),
            fanout: self.nodes.leaf.capacity(self.plan.sizes.entry_least, 4) as u32,
        }
    }

    /// What buffer `number` costs.
    pub(super) fn estimate(&mut self, number: u32) -> Estimate {
        self.estimator.rates.stored = self.buffers.stored;
        self.estimator.estimate(&self.buffers.subtree(number), self.tree_shape())
    }

    /// Empties every buffer that is listed, those that get too large by that, and those that stand
    /// in the way of merging their nodes, as far as there is room.
    pub(super) fn empty_listed(&mut self, cause: Cause) -> Result<()> {
        loop {
            while self.may_step() {
                if !self.make_room_for_listed()? {
                    return Ok(());
                }
                let Some(number) = self.buffers.take_listed() else {
                    break;
                };
                self.empty(number, cause)?;
            }
            if !self.may_step() || !self.rebalance_put_off(cause)? {
                return Ok(());
            }
        }
    }

    /// Empties buffer `number`.
    pub(super) fn empty(&mut self, number: u32, cause: Cause) -> Result<()> {
        let record = self.buffers.record(number);
        if record.entries == 0 {
            return Ok(());
        }
        self.generation.is_fresh = false;
        let id = NodeId::of_buffer(number);
        let (read, rebalanced) = (self.nodes.reads.all(), self.counters.rebalanced);
        let level = self.find_buffer(id, cause)?;
        let before = self.buffers.subtree(number);
        self.counters.emptying_estimated += self.estimate(number).emptying;
        let printed = self.estimator.printed(&before, self.tree_shape());
        self.counters.emptying_printed += printed.emptying;
        self.take_off(number, cause)?;
        self.top.level = level;
        self.top.restructured = false;
        self.top.bounds.copy_from(&self.bounds);
        let mut leaves_changed = 0;
        match self.buffers_below(level) {
            Some(below) => self.distribute_to_buffers(below, cause)?,
            None => leaves_changed = self.distribute_to_leaves(cause)?,
        }
        self.lower_root(cause)?;
        self.release_chain(cause)?;
        self.counters.leaves_changed += u64::from(leaves_changed);
        let emptied = Emptied {
            before,
            nodes_read: (self.nodes.reads.all() - read) as u32,
            leaves_changed,
            rebalanced: (self.counters.rebalanced - rebalanced) as u32,
        };
        if self.note_emptied(&before) {
            self.estimator.rates.observe(&emptied);
        }
        let pages = self.nodes.programmed - self.nodes.observed;
        self.nodes.observed = self.nodes.programmed;
        if self.log.is_disk() {
            // A node that is changed is written, later.
            return Ok(());
        }
        self.estimator.rates.written.add(
            pages * u64::from(self.plan.pages.nodes_per_page()),
            u64::from(emptied.leaves_changed + emptied.rebalanced),
        );
        Ok(())
    }

    /// Counts what went down of the buffer that was emptied; false if that was a part only, from
    /// which no rates can be learned.
    fn note_emptied(&mut self, before: &Subtree) -> bool {
        let back = core::mem::take(&mut self.flight.put_back);
        let leaf = usize::from(before.leaves > 0);
        let bytes = before.bytes.saturating_sub(back.bytes);
        self.counters.emptied[leaf] += 1;
        self.counters.emptied_entries[leaf] +=
            u64::from(before.entries.saturating_sub(back.entries));
        self.counters.emptied_bytes[leaf] += u64::from(bytes);
        if leaf > 0 {
            self.note_gone_down(bytes);
        }
        back.entries == 0
    }

    /// Walks the way to node `id`, which has a buffer; returns its level.
    pub(super) fn find_buffer(&mut self, id: NodeId, cause: Cause) -> Result<u8> {
        let codecs = [self.nodes.leaf, self.nodes.inner];
        let node = self.nodes.any(&mut self.log, id, cause)?;
        let level = node::level(node);
        let mut key = core::mem::take(&mut self.flight.key);
        if node::count(node) > 0 {
            codecs[usize::from(level > 0)].key(node, 0).copy_to(&mut key);
        } else {
            key.clear();
            self.any_key(id, &mut key)?;
        }
        let found = match level {
            0 if key.is_empty() => self.find_empty_leaf(id, &mut key, cause),
            level if level < self.height => self.descend(level, &key, cause),
            _ => Ok(id),
        };
        self.flight.key = key;
        if found? != id || level >= self.height {
            return Err(damaged(self.nodes.page_of(id), "the tree does not lead to this node"));
        }
        Ok(level)
    }

    /// Goes from leaf to leaf until `id`, of which no key is known.
    fn find_empty_leaf(
        &mut self,
        id: NodeId,
        key: &mut alloc::vec::Vec<u8>,
        cause: Cause,
    ) -> Result<NodeId> {
        key.extend_from_slice(&self.lowest_key());
        loop {
            let found = self.descend(0, key, cause)?;
            if found == id || !self.bounds.has_upper {
                return Ok(found);
            }
            key.clear();
            key.extend_from_slice(&self.bounds.upper);
        }
    }

    /// Any key of the buffer of `id`, an empty leaf: no other has its entries.
    fn any_key(&mut self, id: NodeId, key: &mut alloc::vec::Vec<u8>) -> Result<()> {
        let Some(number) = id.buffer() else {
            return Ok(());
        };
        self.buffers.scan(&mut self.log, number, &mut |entry, _| {
            key.clear();
            key.extend_from_slice(entry.key);
        })
    }

    /// Makes the entries of buffer `number`, which the way leads to, those that go down, and the
    /// buffer empty.
    pub(super) fn take_off(&mut self, number: u32, cause: Cause) -> Result<()> {
        let record = self.buffers.record(number);
        self.sorter.clear();
        self.flight.is_single = false;
        self.flight.place = 0;
        (self.flight.batch, self.flight.again) = (None, None);
        self.flight.is_filtered = record.shared;
        self.flight.filter.copy_from(&self.bounds);
        self.flight.order = Order::Ascending;
        if record.bytes <= self.sorter_bytes {
            let sorter = &mut self.sorter;
            let held = self.buffers.pool.held(BufferId(number)).entries;
            let fits = self.buffers.load_held(number, held, sorter)?
                && self.buffers.take_chain(&mut self.log, &record, sorter, cause)?;
            if !fits {
                return Err(damaged(self.nodes.page_of(NodeId::of_buffer(number)), emptying::FULL));
            }
            self.sorter.sort(self.flight.order);
        } else {
            self.flight.owed = Some(self.take_off_large(number, cause)?);
        }
        self.buffers.begin_anew(&self.log, number)
    }

    /// As [`LaTree::take_off`], of a buffer that does not fit memory; returns what it was. What is
    /// in the pool is taken from there, but for what of Y does not fit the buffer for reading.
    fn take_off_large(&mut self, number: u32, cause: Cause) -> Result<BufferRecord> {
        self.buffers.evict_beyond_read(&mut self.log, number, cause)?;
        let record = self.buffers.record(number);
        let (owner, below) = (record.owner, record.below_batch);
        let (of_x, sorter) = (self.buffers.held_of_x(number), &mut self.sorter);
        let fits = self.buffers.load_held(number, of_x, sorter)?
            && self.buffers.load_chain(&mut self.log, owner, below, sorter, cause)?;
        if !fits {
            self.counters.emptied_in_parts += 1;
            self.buffers.evict(&mut self.log, number, cause)?;
            let (record, sorter) = (self.buffers.record(number), &mut self.sorter);
            self.buffers.select_chain(&mut self.log, &record, None, sorter, cause)?;
            self.flight.again = Some(record);
            return Ok(record);
        }
        self.counters.emptied_in_two += 1;
        if !record.batch_ascends {
            self.flight.order = Order::Descending;
        }
        self.flight.order = self.flight.order.reversed();
        let (stream, left) = self.buffers.read_held_of_y(number)?;
        self.flight.batch = Some(Batch { owner, next: record.newest, until: below, stream, left });
        self.sorter.sort(self.flight.order);
        Ok(record)
    }

    /// Reads what goes down again, for the keys above the last one; false if there are none.
    fn read_again(&mut self, cause: Cause) -> Result<bool> {
        let Some(record) = self.flight.again.filter(|_| self.sorter.is_cut()) else {
            return Ok(false);
        };
        let (after, sorter) = (Some(self.flight.key.as_slice()), &mut self.sorter);
        self.buffers.select_chain(&mut self.log, &record, after, sorter, cause)?;
        self.flight.place = 0;
        Ok(true)
    }

    /// Makes `key` with `value`, or its delete, all that goes down.
    pub(super) fn take_single(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.sorter.clear();
        self.flight.take(&Pending { key, value });
        self.flight.is_single = true;
        self.flight.place = 0;
        (self.flight.batch, self.flight.again) = (None, None);
        self.flight.is_filtered = false;
        self.flight.order = Order::Ascending;
        self.top.restructured = true;
        self.top.level = self.leaf_subtree_level();
    }

    /// Goes on to the next entry that goes down; false after the last.
    pub(super) fn next_in_flight(&mut self, cause: Cause) -> Result<bool> {
        if self.flight.is_single {
            self.flight.is_single = false;
            return Ok(true);
        }
        loop {
            self.fill_batch(cause)?;
            let older = self.sorter.get(self.flight.place);
            let newer = match &self.flight.batch {
                Some(batch) if batch.left > 0 => {
                    let mut reader =
                        self.buffers.form.reader(&self.buffers.read[batch.stream.clone()]);
                    let mut entry = None;
                    for _ in 0..batch.left {
                        entry = reader.next().map_err(|what| damaged(Page(0), what))?;
                    }
                    entry.map(|(entry, _)| entry)
                }
                _ => None,
            };
            let keys = (older.map(|entry| entry.key), newer.map(|entry| entry.key));
            let Some(next) = emptying::next(keys.0, keys.1, self.flight.order) else {
                if self.read_again(cause)? {
                    continue;
                }
                return Ok(false);
            };
            let entry = if next == Next::Older { older } else { newer };
            if let Some(entry) = entry {
                self.flight.take(&entry);
            }
            self.flight.place += usize::from(next != Next::Newer);
            if let Some(batch) = self.flight.batch.as_mut().filter(|_| next != Next::Older) {
                batch.left -= 1;
            }
            if !self.flight.is_filtered || self.flight.filter.contains(&self.flight.key) {
                return Ok(true);
            }
        }
    }

    /// Reads the next fragment of Y, if the one before is at its end.
    fn fill_batch(&mut self, cause: Cause) -> Result<()> {
        let Some(batch) = self.flight.batch.as_mut() else {
            return Ok(());
        };
        while batch.left == 0 && batch.next != batch.until {
            let Some(link) = batch.next else {
                return Err(damaged(Page(0), "a chain ends above its batch"));
            };
            let (stream, before) =
                self.buffers.read_fragment(&mut self.log, batch.owner, link, cause)?;
            let mut reader = self.buffers.form.reader(&self.buffers.read[stream.clone()]);
            while reader.next().map_err(|what| damaged(link.page, what))?.is_some() {
                batch.left += 1;
            }
            batch.stream = stream;
            batch.next = before;
        }
        Ok(())
    }

    /// Goes to the node at `level` where the next entry belongs.
    pub(super) fn go_down(&mut self, level: u8, cause: Cause) -> Result<NodeId> {
        let key = core::mem::take(&mut self.flight.key);
        let mut outcome = Ok(NodeId(0));
        if self.top.restructured || !self.top.bounds.contains(&key) {
            self.top.level = self.top.level.min(self.height - 1);
            outcome = self.descend(self.top.level, &key, cause);
            self.top.bounds.copy_from(&self.bounds);
            self.top.restructured = false;
        } else {
            self.bounds.copy_from(&self.top.bounds);
        }
        if outcome.is_ok() {
            outcome = self.walk(self.top.level, level, Toward::Key(&key), cause);
        }
        self.flight.key = key;
        outcome
    }

    /// Hands what goes down to the buffers at level `below`.
    pub(super) fn distribute_to_buffers(&mut self, below: u8, cause: Cause) -> Result<()> {
        let mut child: Option<u32> = None;
        while self.next_in_flight(cause)? {
            let mut first = None;
            if child.is_none() || !self.bounds.contains(&self.flight.key) {
                self.batch_came(child);
                child = self.go_down(below, cause)?.buffer();
                first = Some(self.flight.order);
            }
            let value = (!self.flight.is_delete).then_some(self.flight.value.as_slice());
            let entry = Pending { key: &self.flight.key, value };
            let number = child.ok_or(damaged(Page(0), "a node has no buffer"))?;
            self.buffers.append_to_batch(&mut self.log, number, &entry, first, cause)?;
        }
        self.batch_came(child);
        Ok(())
    }

    /// Lists a buffer that is too large after its batch came.
    pub(super) fn batch_came(&mut self, child: Option<u32>) {
        let policy = self.policy;
        let Some(number) = child else {
            return;
        };
        if let Some(record) = self.buffers.record_mut(number) {
            let bytes = u64::from(record.bytes);
            if policy.at_update(&mut record.registers, bytes) == Decision::Empty {
                self.buffers.list(number);
            }
        }
    }

    /// Hands what goes down to the leaves; returns how many were changed.
    pub(super) fn distribute_to_leaves(&mut self, cause: Cause) -> Result<u32> {
        let (mut changed, mut at_leaf) = (0, false);
        while self.next_in_flight(cause)? {
            loop {
                if !at_leaf || !self.bounds.contains(&self.flight.key) {
                    if at_leaf {
                        self.rebalance(0, cause)?;
                    }
                    if changed > 0 && !self.may_step() {
                        self.put_back(cause)?;
                        return Ok(changed);
                    }
                    self.go_down(0, cause)?;
                    (at_leaf, changed) = (true, changed + 1);
                }
                if self.apply_to_leaf(cause)? {
                    break;
                }
                // It was split: the way is to be walked again.
                (at_leaf, changed) = (false, changed - 1);
            }
        }
        if at_leaf {
            self.rebalance(0, cause)?;
        }
        Ok(changed)
    }

    /// Makes the next entry's change in the leaf of the way; false if the leaf was full, and room
    /// was made.
    fn apply_to_leaf(&mut self, cause: Cause) -> Result<bool> {
        let leaf = self.path.at(0).id;
        let codec = self.nodes.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, cause)?;
        let found = codec.search(node, &self.flight.key);
        let place = match (found, self.flight.is_delete) {
            (Ok(place), true) => {
                let before = codec.value(node, place).as_long();
                self.nodes.remove(&mut self.log, (leaf, 0), place)?;
                if let Some(disk) = self.log.disk_mut() {
                    disk.compaction.note_delete();
                }
                let what = "the root counts fewer entries than there are";
                let entries = self.entries.checked_sub(1);
                self.entries = entries.ok_or(damaged(self.nodes.page_of(leaf), what))?;
                self.drop_value(before, cause)?;
                return Ok(true);
            }
            (Err(_), true) => return Ok(true),
            (Ok(place), false) => {
                let (known, value) = (codec.value(node, place), self.flight.stored());
                let before = known.as_long();
                if before.is_none() && !self.flight.is_long && known.bytes() == value.bytes() {
                    return Ok(true);
                }
                if self.nodes.replace(&mut self.log, leaf, place, value)? {
                    self.drop_value(before, cause)?;
                    return Ok(true);
                }
                place
            }
            (Err(place), false) => {
                let entry = (self.flight.key.as_slice(), self.flight.stored());
                if self.nodes.insert(&mut self.log, (leaf, 0), place, entry)? {
                    self.entries += 1;
                    return Ok(true);
                }
                place
            }
        };
        let at = self.split_place(leaf, place, cause)?;
        self.split(0, at, cause)?;
        Ok(false)
    }

    /// Where a full leaf is split that takes an entry at `place`. If many more entries follow, what
    /// they have passed is not divided again, so that leaves get full.
    fn split_place(&mut self, leaf: NodeId, place: usize, cause: Cause) -> Result<usize> {
        let codec = self.nodes.leaf;
        let node = self.nodes.node(&mut self.log, leaf, 0, cause)?;
        let count = node::count(node);
        if count < 2 {
            return Err(damaged(self.nodes.page_of(leaf), "it is full with one entry"));
        }
        let middle = split_middle(&codec, node);
        let ahead = self.flight.place + count * usize::from(100 - 2 * QUARTER) / 100;
        let follow = ahead.checked_sub(1).and_then(|ahead| self.sorter.get(ahead));
        let Some(follow) = follow.filter(|entry| self.bounds.contains(entry.key)) else {
            return Ok(middle);
        };
        let next = (place < count).then(|| codec.key(node, place));
        Ok(match self.flight.order {
            Order::Ascending if next.is_some_and(|next| next.compare(follow.key).is_gt()) => {
                last_filled(&codec, node, place.clamp(middle, count - 1)).max(middle)
            }
            Order::Ascending => place.max(middle),
            // What goes down comes to the left one, which may have few entries yet.
            Order::Descending => {
                let is_there = next.is_some_and(|next| next.compare(&self.flight.key).is_eq());
                (place + usize::from(is_there)).min(middle)
            }
        })
    }
}
