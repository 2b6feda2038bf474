//! Lazy insert and delete (figures 2(a) and 2(b)): an update goes to the root's buffer and no
//! further. And lookups (figure 2(c)): through all buffers of the way, from the root down. Before
//! one is scanned, ADAPT is asked whether it is to be emptied (algorithm 1, section 2.2).
//!
//! On a disk an entry with a value too long for a leaf does not wait in buffers: writing the value
//! takes pages anyway, and so every long value is named by exactly one leaf. An older entry for the
//! key may still wait in a buffer above the leaf: it is taken out first.

use device::{Cause, Page};
use store::{OverflowValue, Update, Width};

use super::LaTree;
use super::buffer_pool::BufferId;
use super::census::Census;
use super::census::More;
use super::cost;
use super::layout::damaged;
use super::policy::{Buffering, Decision, Estimate};
use super::stream::Pending;
use crate::btree::read_stored;
use index::{Error, Result, read_piece};

impl LaTree<'_> {
    /// Refuses `batch` if there is no room for it.
    pub(super) fn admit_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        if let Some(disk) = self.bare.log.disk() {
            let more = More::of(batch, &self.limits, disk);
            if more.puts > 0 {
                self.check_tables(more.puts + more.deletes)?;
            }
            return if self.census().fits(disk, more) { Ok(()) } else { Err(self.refusal()) };
        }
        self.room.begin_batch();
        let (mut puts, mut bytes) = (0, 0);
        for update in batch {
            let (key, value) = match *update {
                Update::Put { key, value } => (key, Some(value)),
                Update::PutStored { key, .. } | Update::Delete { key } => (key, None),
            };
            puts += u64::from(value.is_some());
            let entry = self.buffers.form.bytes(&Pending { key, value }) as u64 + 1;
            bytes += Census::waiting_bytes(1, entry);
        }
        let now = self.census();
        let waits = now.waiting() > 0;
        if now.is_bound_by_names() {
            return Err(self.refusal());
        }
        if puts > 0
            && let Err(error) = self.check_tables(batch.len() as u64)
        {
            // Nodes that may come of what waits need tables.
            return Err(if waits { self.refusal() } else { error });
        }
        if self.room.take(puts, bytes) {
            return Ok(());
        }
        let is_base = !self.is_open || !self.bare.log.recovery().durability().has_journal();
        self.count_room(is_base);
        if self.room.take(puts, bytes) {
            return Ok(());
        }
        if is_base && !waits && self.adds_none(batch)? {
            self.room.is_direct = true;
            return Ok(());
        }
        Err(self.refusal())
    }

    /// True if `batch` is one put for which its leaf has room.
    fn adds_none(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let [Update::Put { key, value }] = batch else {
            return Ok(false);
        };
        let leaf = self.bare.descend(0, key, Cause::Update)?;
        let node = self.bare.node_at(leaf, 0, Cause::Update)?;
        let is_replaced = node.search(key).is_ok() && self.plan.shape.value != Width::Variable;
        Ok(is_replaced || node.codec.has_room(node.bytes, key, value.len()))
    }

    /// That there is no room, or only what named checkpoints keep.
    pub(super) fn refusal(&self) -> Error {
        let Some(log) = self.bare.log.chip() else {
            return store::Error::Full { pages: u64::from(self.bare.log.pages()) }.into();
        };
        match self.pinned_blocks {
            0 => store::Error::Full { pages: u64::from(log.usable_pages() / 2) }.into(),
            kept => {
                store::Error::Kept { kept: u64::from(kept) * log.geometry().block_bytes() }.into()
            }
        }
    }

    /// Puts `value`, or the delete of `key`, into the root's buffer; without buffers into its leaf,
    /// if nothing stands against that.
    pub(super) fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let entry = Pending { key, value };
        let bytes = self.buffers.form.bytes(&entry) as u32 + 1;
        if self.plan.buffering == Buffering::None {
            if self.buffers.pending != [0; 2] {
                // The tree had buffers when it was used before, or updates had to wait.
                self.empty_all(Cause::Flush)?;
            }
            // A leaf must not be newer than a buffer above it, and takes a step of the way back.
            // In a replay, no checkpoint gives back before its end what was reclaimed.
            let has_room = !self.generation.is_waiting || self.census().has_room_to_change();
            if self.buffers.pending == [0; 2] && self.may_step() && has_room {
                self.note_gone_down(bytes);
                return self.put_down(&entry, false);
            }
        }
        if core::mem::take(&mut self.room.is_direct) {
            return self.put_down(&entry, false);
        }
        let number = self.bare.root.buffer();
        let number = number.ok_or(damaged(Page(0), "the root has no buffer"))?;
        self.buffers.append(&mut self.bare.log, number, &entry, Cause::Flush)?;
        self.counters.put_estimated += self.estimator.entries(bytes);
        // In a replay, no checkpoint makes room for emptying again once a half was reclaimed.
        let is_full = self.buffers.at_update(&self.policy, number) == Decision::Empty;
        if is_full && !self.generation.is_waiting {
            self.buffers.list(number);
            self.empty_listed(Cause::Flush)?;
        }
        Ok(())
    }

    /// Puts `value`, if it is long, at its place; false if it is not.
    pub(super) fn put_long(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.limits.is_long(key.len(), value.len() as u64) {
            return Ok(false);
        }
        let Some(disk) = self.bare.log.disk_mut() else {
            return Ok(false);
        };
        let written = disk.file.write_long(value, Cause::Update);
        // What was written of it was given back.
        self.is_poisoned = !matches!(written, Err(store::Error::Full { .. }));
        let long = written?;
        self.adopt_value(key, long)?;
        Ok(true)
    }

    /// Lets `key` have a value whose pages are written already.
    pub(super) fn adopt_value(&mut self, key: &[u8], value: OverflowValue) -> Result<()> {
        let Some(disk) = self.bare.log.disk_mut() else {
            return Err(store::Error::AdoptedTwice.into());
        };
        disk.longest_value = disk.longest_value.max(value.bytes());
        self.take_out(key)?;
        self.put_down(&Pending { key, value: Some(&value.to_bytes()) }, true)
    }

    /// Takes every entry for `key` out of the buffers on its way.
    fn take_out(&mut self, key: &[u8]) -> Result<()> {
        for level in (0..self.bare.height).rev() {
            let Some(number) = self.bare.descend(level, key, Cause::Update)?.buffer() else {
                continue;
            };
            let found = self.buffers.find(&mut self.bare.log, number, key, &mut |_| ())?;
            if found.is_none() {
                continue;
            }
            self.take_off(number, Cause::Update)?;
            self.hand_back(level, Some(key), Cause::Update)?;
        }
        Ok(())
    }

    /// Makes the change of `entry` in its leaf, with nothing else that goes down.
    fn put_down(&mut self, entry: &Pending<'_>, is_long: bool) -> Result<()> {
        self.emptying.take_single(entry, is_long);
        self.top.begin(self.bare.leaf_subtree_level());
        self.distribute_to_leaves(Cause::Update)?;
        self.rebalance_lean(Cause::Update)?;
        self.lower_root(Cause::Update)
    }

    /// What ADAPT is told of buffer `number`: what a scan and emptying it cost. With
    /// `estimate=all`, what it has in the pool counts as if it were a fragment on flash, but where
    /// the pool has room for all: what is there keeps other buffers out, which go to flash.
    fn estimate_for_adapt(&mut self, number: u32, is_range: bool) -> Estimate {
        let mut estimate = self.estimate(number);
        estimate.scan = self.buffers.paid_of(estimate.scan, is_range);
        let held = self.buffers.pool.held(BufferId(number));
        // A range may look at each entry.
        let by_tags = !is_range && self.buffers.pool.cells.has_tags();
        estimate.scan += cost::search_of_held(held.entries, by_tags);
        if held.entries == 0 || !self.plan.counts_pool || !self.buffers.is_pool_short() {
            return estimate;
        }
        let held = cost::scan_of_held(&self.estimator.units, held.bytes);
        Estimate { scan: estimate.scan + held, emptying: estimate.emptying + held }
    }

    /// Asks ADAPT whether buffer `number`, which a lookup, or a range, is to scan, is to be emptied
    /// before.
    pub(super) fn is_to_be_emptied(&mut self, number: u32, is_range: bool) -> bool {
        let estimate = self.estimate_for_adapt(number, is_range);
        let is_wanted = self.buffers.at_lookup(&self.policy, number, estimate) == Decision::Empty;
        is_wanted && self.is_open && self.has_space_to_empty(number)
    }

    /// Empties buffer `number` because of a lookup.
    pub(super) fn empty_for_lookup(&mut self, number: u32) -> Result<()> {
        self.paused = None;
        self.is_poisoned = true;
        let leaf = usize::from(self.buffers.record(number).is_leaf());
        self.counters.emptied_for_lookups[leaf] += 1;
        self.buffers.list(number);
        self.empty_listed(Cause::Flush)?;
        self.is_poisoned = false;
        Ok(())
    }

    /// Figure 2(c): through all buffers of the way, from the root down.
    pub(super) fn find(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        // Buffers at this level and above were searched.
        let mut searched = self.bare.height;
        'again: loop {
            let (mut level, mut id) = (self.bare.height - 1, self.bare.root);
            loop {
                if let Some(number) = id.buffer().filter(|_| level < searched) {
                    if self.is_to_be_emptied(number, false) {
                        self.empty_for_lookup(number)?;
                        continue 'again;
                    }
                    searched = level;
                    let read = &mut |entry: &Pending<'_>| {
                        entry.value.map(|value| read_piece(value, offset, into))
                    };
                    let before = self.bare.log.time_ns();
                    if let Some(found) = self.buffers.find(&mut self.bare.log, number, key, read)? {
                        return Ok(found);
                    }
                    self.note_scan(number, before);
                }
                let place = self.bare.node_at(id, level, Cause::Lookup)?.search(key);
                if level == 0 {
                    let Ok(place) = place else {
                        return Ok(None);
                    };
                    return read_stored(&mut self.bare, id, place, (offset, into)).map(Some);
                }
                let place = place.unwrap_or_else(|place| place.saturating_sub(1));
                id = self.bare.child(id, level, place, Cause::Lookup)?;
                level -= 1;
            }
        }
    }

    /// Notes what the whole scan of buffer `number` cost, which began at a time.
    fn note_scan(&mut self, number: u32, before: u64) {
        let subtree = self.buffers.subtree(number);
        self.counters.scan_estimated += cost::scan(&self.estimator.units, &subtree);
        self.counters.scan_actual += self.bare.log.time_ns() - before;
    }
}
