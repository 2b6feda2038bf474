//! What leaves a large pool on a disk: one buffer as a whole, in the order of its keys.
//!
//! With the memory of a server a buffer has thousands of entries in the pool. Were the oldest page
//! of each to leave, as on raw flash, a lookup would read all pages of its buffer. So the fullest
//! buffer leaves as a whole, sorted, and a lookup reads the page between whose keys its own lies
//! ([`Fences`](super::Fences)). A buffer that is not above leaves is emptied instead, for
//! that moves its entries from memory to memory.
//!
//! The root's buffer stays: every update comes to it, and the larger the batch that goes down the
//! less it costs, until it takes a good part of the pool.
//!
//! It is done between two updates, before the pool is full: then the memory for sorting is free.

use device::Cause;

use super::super::buffer_pool::BufferId;
use super::super::layout::FRAGMENT_HEADER_BYTES;
use super::super::sorter::Sorter;
use super::super::storage::Storage;
use super::super::stream::GROUP;
use super::Buffers;
use index::Result;

/// The root's buffer is emptied if it has more than one in so many of the pool's bytes.
const ROOT_PART: u64 = 4;

impl Buffers {
    /// The buffer that is to leave the pool next, if that is nearly full: not that of the `root`,
    /// but for a good part of the pool.
    pub(in super::super) fn next_to_spill(&self, root: Option<u32>) -> Option<u32> {
        let (pool, root) = (&self.pool, root.map(BufferId));
        if !self.knows_fragments() || !pool.cells.is_nearly_full() {
            return None;
        }
        let has_part = |root| pool.held(root).bytes as u64 > pool.memory_bytes() / ROOT_PART;
        let largest = pool.largest(root.filter(|root| !has_part(*root)));
        largest.or_else(|| pool.largest(None)).map(|buffer| buffer.0)
    }

    /// Writes the pages that buffer `number` fills in the pool to flash, in the order of the keys,
    /// of each the newest entry: so a lookup reads one of these fragments, and not all.
    pub(in super::super) fn write_run(
        &mut self,
        log: &mut Storage<'_>,
        number: u32,
        sorter: &mut Sorter,
        cause: Cause,
    ) -> Result<()> {
        let buffer = BufferId(number);
        let held = self.pool.held(buffer);
        sorter.clear();
        if held.bytes > sorter.bytes() {
            return self.evict(log, number, cause);
        }
        self.counters.spills += 1;
        self.load_held(number, sorter)?;
        sorter.sort();
        self.pool.clear(buffer);
        let (mut place, mut bytes) = (0, 0);
        while let Some(entry) = sorter.get(place) {
            while !self.pool.append(buffer, &entry) {
                self.write_page(log, Some(number), cause)?;
            }
            bytes += self.form.bytes(&entry) + 1;
            place += 1;
        }
        // An entry counts a byte more than it has, and not its share of the bytes of kinds.
        let counted = held.bytes as u32 - held.entries.div_ceil(GROUP) + held.entries;
        let mut record = self.record(number);
        let fewer = held.entries.saturating_sub(place as u32);
        record.remove_entries(fewer, counted.saturating_sub(bytes as u32));
        self.set_record(number, record);
        // What does not fill a page stays: with entries of other buffers beside it, these would lie
        // between all their keys.
        while self.pool.held(buffer).bytes + FRAGMENT_HEADER_BYTES > self.pages.room() as usize {
            self.write_page(log, Some(number), cause)?;
        }
        self.counters.spilled += 1;
        Ok(())
    }
}
