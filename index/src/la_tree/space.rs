//! Room on raw flash for emptying a buffer, however much is pending.
//!
//! [`admission`](super::admission) refuses what would not find room if everything pending were new
//! and every buffer had to be emptied while a half is reclaimed. That is far more than what
//! happens, and what is pending may be more than admission lets in: a journal that was filled with
//! other memory is replayed without asking. So what is done with the pending entries follows from
//! a smaller need, which does not depend on how the entries lie: whatever else is written, the
//! pages that are free have to suffice for a new generation into which buffers are copied instead
//! of emptied. Before a buffer is emptied, that is asked with the most that emptying it writes; if
//! the answer is no, the old half is reclaimed first. Where not even that makes room, a buffer is
//! emptied **leaf by leaf**: before each, the same is asked with what one leaf takes, and with what
//! it takes to put back what has not gone down.

use device::Cause;

use super::LaTree;
use super::buffer_pool::BufferId;
use super::layout::{FRAGMENT_HEADER_BYTES, NodeId};
use super::plan::CHUNK_HEADER;
use super::settle::PIECE_BYTES;
use super::table::BufferRecord;
use crate::Result;

/// A pool that has no room for one more entry holds at least one byte of entries in so many bytes.
const POOL_FILLED: u64 = 4;

/// A buffer that is emptied leaf by leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Pages that have to stay free.
    keep: u64,
    /// Nodes that there were when that was counted.
    nodes: u64,
}

impl LaTree<'_> {
    /// Pages that a new generation and the checkpoint after it take at most, if buffers are copied
    /// instead of emptied, with `more` entries pending.
    pub(super) fn pages_to_copy(&self, more: u64) -> u64 {
        self.pages_to_copy_beside(self.bytes_evicted(), more)
    }

    /// Bytes that leave the pool while all buffers are copied: of a buffer that does not fit
    /// memory, what is in the pool is written before.
    fn bytes_evicted(&self) -> u64 {
        let records = 0..self.buffers.records.len() as u32;
        records
            .filter(|number| self.is_large(&self.buffers.record(*number)))
            .map(|number| self.held_bytes(number))
            .sum()
    }

    /// At least [`LaTree::pages_to_copy`] with nothing more pending, without a look at each buffer.
    pub(super) fn pages_to_copy_most(&self) -> u64 {
        self.pages_to_copy_beside(self.buffers.pool.memory_bytes(), 0)
    }

    fn pages_to_copy_beside(&self, evicted: u64, more: u64) -> u64 {
        self.pages_to_copy_nodes(self.nodes.count(&self.log), evicted, more)
    }

    fn pages_to_copy_nodes(&self, nodes: u64, evicted: u64, more: u64) -> u64 {
        let entries = self.buffers.pending.iter().sum::<u64>() + more;
        let bytes = self.buffers.pending_bytes + more * self.plan.sizes.entry_most as u64;
        let pieces = PIECE_BYTES * entries.min(self.buffers.records.len() as u64);
        self.node_pages(nodes)
            + self.stream_pages(bytes + evicted + pieces, entries)
            + self.chunk_pages()
            + 2
            + self.block_pages()
    }

    /// Pages that emptying buffer `number` takes at most, if those above have so many bytes in the
    /// pool, when `more` entries have come to it.
    fn pages_to_empty(&self, number: u32, above: u64, more: u64) -> u64 {
        let record = self.buffers.record(number);
        let entries = u64::from(record.entries) + more;
        if entries == 0 {
            return 0;
        }
        let more_bytes = more * self.plan.sizes.entry_most as u64;
        let bytes = u64::from(record.bytes) + more_bytes;
        let is_large = bytes > u64::from(self.sorter_bytes);
        let evicted = if is_large { self.held_bytes(number) + more_bytes } else { 0 };
        if record.leaves == 0 {
            let moved =
                record.entries.saturating_sub(self.buffers.pool.held(BufferId(number)).entries);
            let moved = u32::try_from(u64::from(moved) + more).unwrap_or(u32::MAX);
            let stays = self.buffers.pool.has_room_for(moved, self.plan.sizes.entry_most);
            let bytes = if stays { 0 } else { bytes };
            return self.stream_pages(bytes + evicted, entries);
        }
        let nodes = (u64::from(record.nodes), u64::from(record.leaves));
        self.pages_to_reach_leaves(entries, nodes, evicted + above)
    }

    /// Pages that taking so many entries to the leaves of a subtree of so many nodes takes at most,
    /// if so many bytes leave the pool.
    fn pages_to_reach_leaves(&self, entries: u64, (nodes, leaves): (u64, u64), bytes: u64) -> u64 {
        // Each entry leads to the nodes of a way, and to neighbours of them; no node of the subtree
        // leaves the cache twice. Buffers above may be split, and leave the pool before.
        let levels = u64::from(self.levels_a_buffer.min(self.height));
        let ways = entries.saturating_mul(levels + 2);
        let nodes = ways.min(nodes) + self.nodes_born(entries, leaves) + 2 * u64::from(self.height);
        self.node_pages(nodes) + self.stream_pages(bytes, u64::from(self.height))
    }

    /// Bytes that the buffers of inner subtrees have in the pool.
    fn held_above(&self) -> u64 {
        let records = 0..self.buffers.records.len() as u32;
        records
            .filter(|number| self.buffers.record(*number).leaves == 0)
            .map(|number| self.held_bytes(number))
            .sum()
    }

    /// True if emptying buffer `number` leaves room enough. Asked for every buffer that is emptied:
    /// each of the others is looked at only where the most they can have in the pool is too much.
    pub(super) fn has_room_to_empty(&self, number: u32) -> bool {
        let free = self.pages_left();
        let most = self.pages_to_empty(number, self.buffers.pool.memory_bytes(), 0);
        if most == 0 || free >= most + self.pages_to_copy_most() + self.pages_kept_back() {
            return true;
        }
        free >= self.pages_to_empty(number, self.held_above(), 0) + self.pages_to_keep(0)
    }

    /// What has to stay free while buffer `number` is emptied leaf by leaf; `None` if that leaves
    /// no room for the first one, or if it is not the buffer of a leaf subtree.
    pub(super) fn part_of(&self, number: u32) -> Option<Part> {
        let is_leaf = self.buffers.record(number).leaves > 0;
        let state = self.pages_of_tables_and_pool(0);
        let keep = self.pages_to_keep(0) + state + self.pages_to_put_back(number, 0);
        let part = Part { keep, nodes: self.nodes.count(&self.log) };
        (is_leaf && self.has_room_beside(part)).then_some(part)
    }

    /// True if one leaf more can be changed, where that was asked to be seen for each.
    pub(super) fn has_room_for_leaf(&self) -> bool {
        self.flight.part.is_none_or(|part| self.has_room_beside(part))
    }

    /// True if a leaf can be changed at once, where nothing is pending. It matters in a replay: no
    /// checkpoint gives back what was reclaimed before its end.
    pub(super) fn has_room_for_one(&self) -> bool {
        if !self.generation.is_waiting {
            return true;
        }
        let keep = self.pages_to_keep(0) + self.pages_of_tables_and_pool(0);
        self.has_room_beside(Part { keep, nodes: self.nodes.count(&self.log) })
    }

    fn has_room_beside(&self, part: Part) -> bool {
        let dirty = self.node_pages(self.nodes.cache.dirty_frames().into());
        let born = self.nodes.count(&self.log).saturating_sub(part.nodes);
        let need = part.keep + dirty + self.node_pages(born) + self.pages_of_leaf();
        need <= u64::from(self.log.free_pages())
    }

    /// Pages that changing one leaf takes at most: on each level a node, the one that is split from
    /// it, and a neighbour.
    fn pages_of_leaf(&self) -> u64 {
        self.node_pages(3 * u64::from(self.height) + 3)
    }

    /// Pages that putting back all of buffer `number` takes at most, when `more` entries have come
    /// to it.
    fn pages_to_put_back(&self, number: u32, more: u64) -> u64 {
        let record = self.buffers.record(number);
        let bytes = u64::from(record.bytes) + more * self.plan.sizes.entry_most as u64;
        self.stream_pages(bytes + self.held_bytes(number), u64::from(record.entries) + more)
    }

    /// Pages that have to stay free for the next generation, with `more` entries pending; what
    /// comes from a journal may be written before it begins, or while it waits for a checkpoint.
    pub(super) fn pages_to_keep(&self, more: u64) -> u64 {
        self.pages_to_copy(more) + self.pages_kept_back()
    }

    /// Pages that are free beside those that the next checkpoint takes before a new generation: for
    /// nodes that were changed and stand in the cache alone, for the tables, and for the pool.
    pub(super) fn pages_left(&self) -> u64 {
        let dirty = self.node_pages(self.nodes.cache.dirty_frames().into());
        let taken = dirty + self.pages_of_tables_and_pool(0);
        u64::from(self.log.free_pages()).saturating_sub(taken)
    }

    /// Pages that a checkpoint takes at most beside the nodes, with `more` entries pending.
    fn pages_of_tables_and_pool(&self, more: u64) -> u64 {
        let entries = self.buffers.pending.iter().sum::<u64>() + more;
        let bytes = self.buffers.pending_bytes + more * self.plan.sizes.entry_most as u64;
        let held = bytes.min(self.buffers.pool.memory_bytes());
        let pieces = PIECE_BYTES * entries.min(self.buffers.records.len() as u64);
        self.chunk_pages() + 2 + self.stream_pages(held + pieces, entries)
    }

    /// What the log keeps of the chip, and a block that was begun.
    fn pages_kept_back(&self) -> u64 {
        (u64::from(self.log.own_reserve()) + 1) * self.block_pages()
    }

    /// True if `more` deletes find room though their worst case would not: in a new generation, and
    /// beside it in the next one with what emptying any buffer, or a leaf of it, takes that they
    /// come to.
    pub(super) fn fits_deletes(&self, more: u64) -> bool {
        let (above, come) = (self.held_above(), self.buffers.pending[0] + more);
        let in_parts = |number: u32| {
            let whole = self.pages_to_empty(number, above, come);
            match self.buffers.record(number).leaves {
                0 => whole,
                _ => whole.min(self.pages_to_put_back(number, come) + self.pages_of_leaf()),
            }
        };
        let numbers = 0..self.buffers.records.len() as u32;
        let empty = numbers.map(in_parts).max().unwrap_or(0);
        let need = self.pages_to_copy(more) + self.pages_to_keep(more) + empty;
        self.fits_generations(need, more)
    }

    /// True if each buffer can be emptied in a new generation when `puts` and `deletes` have come
    /// to it, whatever the others were emptied into before, and so can what one delete more comes
    /// to: while that holds, what is pending can be settled, and nothing that is deleted gets the
    /// tree to where it can't.
    pub(super) fn can_be_emptied(&self, (puts, deletes): (u64, u64)) -> bool {
        let more = puts + deletes + 1;
        let nodes = self.worst().nodes(&self.load(), puts);
        let entries = self.buffers.pending.iter().sum::<u64>() + more;
        // Each buffer is looked at only where all entries in one buffer of all nodes is too much.
        let pool = self.buffers.pool.memory_bytes();
        let bytes = self.buffers.pending_bytes + more * self.plan.sizes.entry_most as u64;
        let copy = self.pages_to_copy_nodes(nodes, pool, more);
        let most = self
            .pages_to_reach_leaves(entries, (nodes, self.leaves), bytes + pool)
            .max(self.stream_pages(bytes + pool, entries));
        if self.fits_generations(2 * copy + self.pages_kept_back() + most, more) {
            return true;
        }
        let copy = self.pages_to_copy_nodes(nodes, self.bytes_evicted(), more);
        let need = 2 * copy + self.pages_kept_back() + self.pages_to_empty_any(more);
        self.fits_generations(need, more)
    }

    /// Pages that emptying any buffer takes at most when `more` entries have come to it, and all
    /// that is above it.
    fn pages_to_empty_any(&self, more: u64) -> u64 {
        let (above, more) = (self.held_above(), self.buffers.pending[0] + more);
        let numbers = 0..self.buffers.records.len() as u32;
        numbers.map(|number| self.pages_to_empty(number, above, more)).max().unwrap_or(0)
    }

    /// True if generations have room for so many pages beside what a checkpoint with `more` entries
    /// pending takes.
    fn fits_generations(&self, pages: u64, more: u64) -> bool {
        let need = pages + self.pages_of_tables_and_pool(more);
        need + self.node_pages(2 * u64::from(self.height)) <= self.pages_of_generations()
    }

    /// Pages that generations have together.
    pub(super) fn pages_of_generations(&self) -> u64 {
        let own = u64::from(self.log.own_reserve()) + 3;
        let blocks = u64::from(self.log.good_blocks().saturating_sub(self.pinned_blocks));
        blocks.saturating_sub(own) * self.block_pages()
    }

    fn node_pages(&self, nodes: u64) -> u64 {
        nodes.div_ceil(u64::from(self.plan.pages.nodes_per_page())) + 1
    }

    /// Pages of fragments that `entries` entries of so many bytes take on their way through the
    /// pool. When it is full, its fullest buffers leave it, and these have more than the average.
    fn stream_pages(&self, bytes: u64, entries: u64) -> u64 {
        let head = FRAGMENT_HEADER_BYTES as u64;
        // A page may end before an entry that does not fit it.
        let lost = self.plan.sizes.entry_most as u64 + PIECE_BYTES + u64::from(CHUNK_HEADER);
        let room = u64::from(self.plan.pages.room()).saturating_sub(lost).max(1);
        let buffers = self.buffers.records.len() as u64;
        let average = self.buffers.pool.memory_bytes() / POOL_FILLED / buffers.max(1);
        let heads = (bytes / room + 1) * (1 + room / average.max(1)) * head;
        (bytes + heads.min(entries * head)).div_ceil(room) + 1
    }

    /// True if the buffer is not sorted as a whole.
    fn is_large(&self, record: &BufferRecord) -> bool {
        record.bytes > self.sorter_bytes
    }

    fn held_bytes(&self, number: u32) -> u64 {
        self.buffers.pool.held(BufferId(number)).bytes as u64
    }

    /// Takes the entries of buffer `number` off its chain, and puts them into it again.
    pub(super) fn copy_buffer(&mut self, number: u32, cause: Cause) -> Result<()> {
        self.find_buffer(NodeId::of_buffer(number), cause)?;
        self.take_off(number, cause)?;
        while self.next_in_flight(cause)? {
            self.buffers.append(&mut self.log, number, &self.flight.entry(), cause)?;
        }
        self.release_chain(cause)
    }
}
