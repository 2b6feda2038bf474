//! What the tree is made of, as far as room matters: numbers, and what follows from them alone.
//!
//! All pages are of raw flash; on a disk, where a page file keeps the way back, the bounds are
//! those of [`disk`].

use store::{Demand, Growth, LEVELS_MOST};

use super::layout::{CHUNK_HEADER, FRAGMENT_HEADER_BYTES, PIECE_BYTES};
use super::plan::{Plan, pages_of_generations, reserve};
use super::table::BufferRecord;
use crate::btree::HEIGHT_MOST;

mod disk;

pub(super) use disk::{More, needs_at_first};

/// How often the bytes that wait are counted.
pub(super) const WAITING: u64 = 3;

/// A buffer that is emptied leaf by leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Pages that have to stay free.
    pub(super) keep: u64,
    /// Nodes that there were when that was counted.
    pub(super) nodes: u64,
}

/// Numbers of a tree and of the chip that it stands on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Census<'p> {
    pub(super) plan: &'p Plan,
    pub(super) height: u64,
    /// Nodes of each level, leaves first.
    pub(super) levels: [u32; HEIGHT_MOST],
    /// Puts between two splits of a leaf, and children between two of an inner node, at least.
    pub(super) refill: (u32, u32),
    /// Nodes, and those of them that are in the cache alone.
    pub(super) nodes: u64,
    pub(super) dirty: u64,
    /// Numbers that nodes without buffers have, and with.
    pub(super) numbers: (u64, u64),
    /// Pages of the chunks of both tables.
    pub(super) chunks: u64,
    /// Entries that wait in buffers of inner subtrees and of leaf subtrees, and bytes of both.
    pub(super) pending: [u64; 2],
    pub(super) pending_bytes: u64,
    /// Records of buffers.
    pub(super) records: u64,
    pub(super) pool_bytes: u64,
    /// Named checkpoints, and blocks that they keep.
    pub(super) names: u64,
    pub(super) chip: Chip,
}

/// Numbers of a chip; none on a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chip {
    /// Pages in a block.
    pub(super) block: u64,
    pub(super) good_blocks: u32,
    /// Blocks that named checkpoints keep.
    pub(super) pinned_blocks: u32,
    /// Those that wait for their erase.
    pub(super) released_blocks: u32,
    pub(super) free_blocks: u32,
    pub(super) free_pages: u64,
    /// Blocks that the log keeps back.
    pub(super) own_blocks: u32,
}

impl<'p> Census<'p> {
    /// Nothing yet.
    pub(super) fn of_none(plan: &'p Plan) -> Self {
        Census {
            plan,
            height: 1,
            levels: [0; HEIGHT_MOST],
            refill: (1, 2),
            nodes: 0,
            dirty: 0,
            numbers: (0, 0),
            chunks: 0,
            pending: [0; 2],
            pending_bytes: 0,
            records: 0,
            pool_bytes: 0,
            names: 0,
            chip: Chip::default(),
        }
    }

    pub(super) const fn leaves(&self) -> u64 {
        self.levels[0] as u64
    }

    /// The tree as far as its growth matters.
    pub(super) fn demand(&self) -> Demand {
        let mut levels = [0_u32; LEVELS_MOST];
        for (level, nodes) in self.levels.iter().enumerate() {
            let counted = &mut levels[level.min(LEVELS_MOST - 1)];
            *counted = counted.saturating_add(*nodes);
        }
        let (puts_a_leaf, children_a_node) = self.refill;
        Demand { levels, puts_a_leaf, children_a_node, leaves_a_put: 1 }
    }

    /// Entries that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.pending.iter().sum()
    }

    /// Bytes that so many entries take while they wait, of `bytes` bytes themselves: each may be a
    /// fragment of its own.
    pub(super) const fn waiting_bytes(entries: u64, bytes: u64) -> u64 {
        bytes + entries * FRAGMENT_HEADER_BYTES as u64
    }

    /// Bytes of all that waits.
    pub(super) fn bytes_waiting(&self) -> u64 {
        Self::waiting_bytes(self.waiting(), self.pending_bytes)
    }

    /// Pages of so many bytes that wait.
    pub(super) fn waiting_pages(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.room_of_page())
    }

    /// Bytes of a page that are filled for certain: it may end before an entry that does not fit.
    pub(super) fn room_of_page(&self) -> u64 {
        let lost = self.plan.sizes.entry_most as u64 + PIECE_BYTES + u64::from(CHUNK_HEADER);
        u64::from(self.plan.pages.room()).saturating_sub(lost).max(1)
    }

    /// Pages that generations have together.
    pub(super) fn pages_of_generations(&self) -> u64 {
        let Chip { good_blocks, pinned_blocks, own_blocks, block, .. } = self.chip;
        pages_of_generations(good_blocks.saturating_sub(pinned_blocks), own_blocks, block)
    }

    /// Pages of half of the blocks that no named checkpoint keeps, beside the reserve.
    pub(super) fn capacity(&self) -> (u64, u64) {
        let half = self.pages_of_generations() / 2;
        let reserve = reserve(half, self.chip.block);
        (half.saturating_sub(reserve), reserve)
    }

    /// Pages of a tree that has grown so, and of its tables.
    pub(super) fn pages_grown(&self, demand: &Demand, growth: Growth) -> u64 {
        let leaves = demand.leaves().saturating_add(growth.leaves);
        self.plan.pages_of(leaves, demand.inner().saturating_add(growth.inner))
    }

    /// True if one more leaf finds room while the tree is loaded.
    pub(super) fn has_room_to_load(&self) -> bool {
        let demand = self.demand();
        self.pages_grown(&demand, demand.growth(1)) <= self.capacity().0
    }

    /// Bytes of the tree's tables in the worst case, with `more` entries pending.
    pub(super) fn tables_needed(&self, more: u64) -> u64 {
        let growth = self.demand().growth(self.waiting() + more);
        self.plan.table_bytes_grown(self.numbers, growth)
    }

    /// Pages of half of the blocks that the tree can use, where none wait for a checkpoint.
    fn half_pages(&self) -> u64 {
        u64::from(self.chip.good_blocks.saturating_sub(self.chip.released_blocks) / 2)
            * self.chip.block
    }

    /// True if a new generation must begin while it finds room, or may as the present half is full.
    /// Where the next one would end as soon as it began, because what is in use leaves no more, the
    /// present one goes on for as long as the next finds room.
    pub(super) fn is_due(&self) -> bool {
        let (half, copied) = (self.half_pages(), self.pages_to_copy());
        let is_full = self.chip.free_pages <= half;
        let goes_on = self.pages_of_generations() <= half + 2 * self.chip.block + copied;
        is_full && !goes_on || self.pages_left() <= copied
    }

    /// True if a new generation finds room: what named checkpoints keep may leave none. The end of
    /// the block that was begun may be lost already, as an opening goes on with none.
    pub(super) fn has_room_to_copy(&self) -> bool {
        self.pages_to_copy() <= u64::from(self.chip.free_blocks + 1) * self.chip.block
    }

    /// Pages that a new generation and the checkpoint after it take at most, if buffers are copied
    /// instead of emptied, the end of the block that is begun, and what forgetting names takes.
    pub(super) fn pages_to_copy(&self) -> u64 {
        self.plan.node_pages(self.nodes)
            + 2 * self.waiting_pages(self.bytes_waiting())
            + self.chunks
            + 4
            + self.chip.block
            + self.names * (self.pages_of_pool() + 1)
    }

    /// Pages that a checkpoint takes for what is in the pool at most, whatever that has of what
    /// waits.
    fn pages_of_pool(&self) -> u64 {
        let held = self.pool_bytes.min(self.pending_bytes);
        let pieces = PIECE_BYTES * self.waiting().min(self.records);
        self.waiting_pages(held + pieces)
    }

    /// Pages that are free beside those that the next checkpoint takes before a new generation: for
    /// nodes that were changed and stand in the cache alone, for the tables, and for the pool.
    pub(super) fn pages_left(&self) -> u64 {
        let taken = self.plan.node_pages(self.dirty) + self.chunks + 5 + self.pages_of_pool();
        self.chip.free_pages.saturating_sub(taken)
    }

    /// True if names leave no more room than for a new generation, which gives nothing back of what
    /// they keep.
    pub(super) fn is_bound_by_names(&self) -> bool {
        self.chip.pinned_blocks > 0 && self.pages_left() <= self.pages_to_copy()
    }

    /// True if there is room to forget all names again with one more of them, and then for a new
    /// generation: each takes a checkpoint, with `pool` pages of the pool, and only the next one
    /// erases what is given back.
    pub(super) fn admits_name(&self, pool: u64) -> bool {
        let names = self.names + 1;
        let nodes = u64::from(self.plan.cache.frames_most()).min(self.nodes);
        let first = self.plan.node_pages(nodes) + 2 * self.chunks + 2 + pool;
        let need = first + names * (pool + 1) + self.chip.block;
        // A rollback leaves the end of the block that was begun.
        let copied = self.pages_to_copy() + self.pages_of_pool() + 1 + self.chip.block;
        let kept = u64::from(self.chip.released_blocks) * self.chip.block;
        need <= self.chip.free_pages && copied <= self.pages_left() + kept
    }

    /// True if the pages that are free may not suffice to empty every buffer meanwhile.
    pub(super) fn is_to_copy(&self) -> bool {
        let demand = self.demand();
        let grown = self.pages_grown(&demand, demand.growth(self.waiting()));
        let need = grown + (WAITING - 1) * self.waiting_pages(self.bytes_waiting());
        need + self.chip.block > self.chip.free_pages
    }

    /// True if emptying a buffer can begin: with its first leaf, or if it is one of an inner
    /// subtree, with all of it.
    pub(super) fn has_room_to_empty(&self, record: &BufferRecord) -> bool {
        self.part_of(record).keep + self.pages_of_leaf() <= self.pages_left()
    }

    /// What has to stay free while a buffer is emptied leaf by leaf.
    pub(super) fn part_of(&self, record: &BufferRecord) -> Part {
        let mut keep = self.pages_to_copy() + self.pages_to_put_back(record);
        if record.is_leaf() {
            // Nodes above may be split, whose buffers are written anew.
            let above = self.pending[0];
            let bytes = above * (self.plan.sizes.entry_most as u64 + 1);
            let bytes = bytes.min(self.pending_bytes);
            keep += 2 * self.waiting_pages(Self::waiting_bytes(above, bytes));
        }
        Part { keep, nodes: self.nodes }
    }

    /// Pages that are written where what is in a buffer goes to others, or back: what of it is in
    /// the pool may be written before.
    fn pages_to_put_back(&self, record: &BufferRecord) -> u64 {
        2 * self.waiting_pages(Self::waiting_bytes(record.entries().into(), record.bytes.into()))
    }

    /// Pages that changing one leaf takes at most: on each level a node, the one that is split from
    /// it, and a neighbour.
    fn pages_of_leaf(&self) -> u64 {
        self.plan.node_pages(3 * self.height + 3) + 1
    }

    /// True if a leaf can be changed, where nothing waits.
    pub(super) fn has_room_to_change(&self) -> bool {
        self.pages_to_copy() + self.pages_of_leaf() <= self.pages_left()
    }

    /// True if what is in a buffer can be moved to others.
    pub(super) fn has_room_to_rebuffer(&self, record: &BufferRecord) -> bool {
        let need = self.pages_to_copy() + self.pages_to_put_back(record) + self.pages_of_leaf();
        need <= self.pages_left()
    }

    /// True if one leaf more can be changed of a buffer that is emptied.
    pub(super) fn has_room_for_leaf(&self, part: Part) -> bool {
        let born = self.nodes.saturating_sub(part.nodes);
        let need = part.keep + self.plan.node_pages(born) + self.pages_of_leaf();
        need <= self.pages_left()
    }
}

#[cfg(test)]
mod tests;
