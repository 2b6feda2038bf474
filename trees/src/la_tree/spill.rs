//! What leaves a large pool on a disk: one buffer as a whole, in the order of its keys.
//!
//! With the memory of a server a buffer has thousands of entries in the pool. Were the oldest page
//! of each to leave, as on raw flash, a lookup would read all pages of its buffer. So the fullest
//! buffer leaves as a whole, sorted, and a lookup reads the page between whose keys its own lies
//! ([`Fences`](super::buffers::Fences)). A buffer that is not above leaves is emptied instead, for
//! that moves its entries from memory to memory.
//!
//! It is done between two updates, before the pool is full: then the memory for sorting is free.

use device::Cause;

use super::LaTree;
use super::buffer_pool::BufferId;
use index::Result;

impl LaTree<'_> {
    /// Makes room in the pool, if it is nearly full.
    pub(super) fn spill(&mut self) -> Result<()> {
        if !self.buffers.knows_fragments() || !self.buffers.pool.is_nearly_full() {
            return Ok(());
        }
        let Some(BufferId(mut number)) = self.buffers.pool.largest() else {
            return Ok(());
        };
        if !self.buffers.record(number).is_leaf() && !self.generation.is_waiting {
            self.buffers.list(number);
            self.empty_listed(Cause::Flush)?;
            match self.buffers.pool.largest() {
                Some(BufferId(largest)) => number = largest,
                None => return Ok(()),
            }
        }
        self.buffers.write_run(&mut self.log, number, &mut self.sorter, Cause::Flush)
    }
}
