//! A lookup (figure 2(c)): through all buffers of the way, from the root down. Before one is
//! scanned, ADAPT is asked whether it is to be emptied (algorithm 1, section 2.2).

use device::Cause;

use super::LaTree;
use super::buffer_pool::BufferId;
use super::cost;
use super::policy::{Decision, Estimate};
use super::stream::Pending;
use crate::btree::read_stored;
use index::{Result, read_piece};

impl LaTree<'_> {
    /// What ADAPT is told of buffer `number`: what a scan and emptying it cost. With
    /// `estimate=all`, what it has in the pool counts as if it were a fragment on flash, but where
    /// the pool has room for all: what is there keeps other buffers out, which go to flash.
    fn estimate_for_adapt(&mut self, number: u32, is_range: bool) -> Estimate {
        let mut estimate = self.estimate(number);
        estimate.scan = self.buffers.paid_of(estimate.scan);
        let held = self.buffers.pool.held(BufferId(number));
        // A range looks at each entry.
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
                    let before = self.time_ns();
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
}
