//! What leaves a large pool on a disk: one buffer as a whole, in the order of its keys.
//!
//! With the memory of a server a buffer has thousands of entries in the pool. Were the oldest page
//! of each to leave, as on raw flash, a lookup would read all pages of its buffer. So the fullest
//! buffer leaves as a whole, sorted, and a lookup reads the page between whose keys its own lies
//! ([`Fences`](super::buffers::Fences)). A buffer that is not above leaves is emptied instead, for
//! that moves its entries from memory to memory.
//!
//! The root's buffer stays: every update comes to it, and the larger the batch that goes down the
//! less it costs, until it takes a good part of the pool.
//!
//! It is done between two updates, before the pool is full: then the memory for sorting is free.

use device::Cause;

use super::LaTree;
use super::buffer_pool::BufferId;
use index::Result;

/// The root's buffer is emptied if it has more than one in so many of the pool's bytes.
const ROOT_PART: u64 = 4;

impl LaTree<'_> {
    /// Makes room in the pool, if it is nearly full.
    pub(super) fn spill(&mut self) -> Result<()> {
        if !self.buffers.knows_fragments() || !self.buffers.pool.cells.is_nearly_full() {
            return Ok(());
        }
        let Some(mut number) = self.spilled_next() else {
            return Ok(());
        };
        if !self.buffers.record(number).is_leaf() && !self.generation.is_waiting {
            self.buffers.list(number);
            self.empty_listed(Cause::Flush)?;
            match self.spilled_next() {
                Some(next) => number = next,
                None => return Ok(()),
            }
        }
        self.buffers.write_run(&mut self.log, number, &mut self.sorter, Cause::Flush)
    }

    /// The buffer that is to leave the pool next.
    fn spilled_next(&self) -> Option<u32> {
        let pool = &self.buffers.pool;
        let root = self.root.buffer().map(BufferId);
        let has_part = |root| pool.held(root).bytes as u64 > pool.memory_bytes() / ROOT_PART;
        let largest = pool.largest(root.filter(|root| !has_part(*root)));
        largest.or_else(|| pool.largest(None)).map(|buffer| buffer.0)
    }
}
