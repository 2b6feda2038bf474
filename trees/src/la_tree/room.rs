//! Room: how large the tree may get, and what stays free while buffers are emptied.
//!
//! On raw flash generations share the good blocks that no name keeps, but for those that the log
//! keeps back, one that it begins beside them, and the ends of two blocks: the last of a generation
//! and the last of the next. One generation has to fit beside the next, so of their pages
//! `2 (N + 2 T + 3 W) + R` may be taken at most:
//!
//! - `N`: the nodes, and those that the puts which wait may add ([`Demand::growth`]);
//! - `T`: the tables, where they stand and where the next checkpoint writes them;
//! - `W`: the bytes that wait: where they stand, in a checkpoint, and where what is left of a
//!   buffer that is emptied leaf by leaf is put back;
//! - `R`: the reserve, of each half a sixteenth and at least two blocks. Half of it is for bytes
//!   that wait: so a delete is always taken when nothing else waits. The rest is for what emptying
//!   a leaf writes, and for blocks that get bad.
//!
//! Where a journal is replayed, this is counted from the last checkpoint, for a replay with other
//! memory may let anything wait that came since. What does not fit is refused until buffers were
//! emptied and a checkpoint was made; then one put alone is also taken if its leaf has room for it,
//! and goes there at once.
//!
//! # Invariants
//! - But for a new generation that is begun, the pages that are free suffice for one into which
//!   buffers are copied instead of emptied. Before a buffer is emptied, that is asked; and again
//!   before each leaf: what there is no room for is put back, and goes down behind a reclamation.
//!   What the log keeps back is no free page: nothing is added for it.
//! - Once all names are forgotten, which there is always room for, that is so again.
//! - Counting is arithmetic: nothing is written to see whether it fits.

use device::Geometry;
use index::random_keys::average_bytes;
use store::node::HEADER_BYTES;
use store::{Demand, Growth, PageLog, PageLogOptions, Reservation};

use super::buffers::Buffers;
use super::census::Census;
use super::checkpoint_state::ROOT_BYTES;
use super::compaction::Compaction;
use super::nodes::CHILD_BYTES;
use super::plan::Plan;
use super::table::Table;
use crate::btree::HEIGHT_MOST;

/// How often the bytes that wait are counted.
pub(super) const WAITING: u64 = 3;

/// How full nodes are taken to be where it is said how many entries there will be, in percent.
const FILLED: u64 = 62;

/// Blocks beside those that the log keeps back: one that it begins, and the ends of those that are
/// the last of two generations.
const BLOCKS_BESIDE: u32 = 3;

/// What the tree is made of, and what was taken since the base: the last checkpoint, or, where
/// nothing is replayed, any moment.
#[derive(Debug, Default)]
pub(super) struct Room {
    base: Demand,
    puts: Reservation,
    /// Bytes that wait, those of the base included, and how many more may come.
    waiting: u64,
    bytes_left: u64,
    /// Puts and bytes of the batch that was admitted last: a checkpoint may come before it.
    admitted: (u64, u64),
    /// True if the put that was admitted goes to its leaf at once.
    pub(super) is_direct: bool,
    pub(super) compaction: Compaction,
    /// What has to stay free while a buffer is emptied leaf by leaf.
    pub(super) part: Option<Part>,
}

/// A buffer that is emptied leaf by leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Pages that have to stay free.
    pub(super) keep: u64,
    /// Nodes that there were when that was counted.
    pub(super) nodes: u64,
}

/// Pages of a half of so many that stay free.
pub(super) fn reserve(half: u64, block: u64) -> u64 {
    (half / 16).max(2 * block)
}

/// Pages that the generations have together, of so many blocks of `block` pages, of which the log
/// keeps `own` back.
pub(super) fn pages_of_generations(blocks: u32, own: u32, block: u64) -> u64 {
    u64::from(blocks.saturating_sub(own + BLOCKS_BESIDE)) * block
}

impl Plan {
    pub(super) fn node_pages(&self, nodes: u64) -> u64 {
        nodes.div_ceil(u64::from(self.pages.nodes_per_page()))
    }

    /// Pages of both tables of so many leaves and inner nodes, at most: buffers are at every level
    /// or at inner ones.
    fn table_pages(&self, leaves: u64, inner: u64) -> u64 {
        let buffered = if self.levels_a_buffer == 1 { leaves + inner } else { inner + 1 };
        let plain = (leaves + inner).div_ceil(self.chunks.0.max(1).into());
        plain + buffered.div_ceil(self.chunks.1.max(1).into())
    }

    /// Pages of so many leaves and inner nodes, and of their tables, twice.
    pub(super) fn pages_of(&self, leaves: u64, inner: u64) -> u64 {
        self.node_pages(leaves + inner) + 2 * self.table_pages(leaves, inner) + 2
    }

    /// Bytes in the worst case of the tables that have so many numbers of nodes without buffers and
    /// with, and grow so much.
    pub(super) fn table_bytes_grown(&self, (plain, buffered): (u64, u64), growth: Growth) -> u64 {
        let inner = growth.inner + 1;
        let born = growth.leaves + inner;
        let buffered = buffered + if self.levels_a_buffer == 1 { born } else { inner };
        let plain = if self.pages.is_in_place() { 0 } else { plain + born };
        Table::bytes_most(plain, self.chunks.0)
            + Table::bytes_most(buffered, self.chunks.1)
            + Buffers::table_bytes_most(self.has_small_pool, buffered)
    }

    /// The same of an empty tree that a put comes to, whatever its nodes hold.
    pub(super) fn table_bytes_at_first(&self) -> u64 {
        let mut root = Demand { puts_a_leaf: 1, leaves_a_put: 1, ..Demand::default() };
        root.levels[0] = 1;
        self.table_bytes_grown((0, 1), root.growth(1))
    }

    /// The same of a tree of so many entries, if they are known, whose nodes are as full as deletes
    /// and puts of random keys leave them, and a little less.
    pub(super) fn table_bytes_of(&self, entries: Option<u64>) -> u64 {
        let capacity = |value| {
            let key = average_bytes(self.shape.key);
            let room = self.pages.node_bytes().saturating_sub(HEADER_BYTES as u32);
            u64::from(room / (u32::from(key) + u32::from(value)).max(1)).max(4)
        };
        let filled = |number: u64, capacity: u64| (number * 100).div_ceil(capacity * FILLED);
        let leaves = filled(entries.unwrap_or(0), capacity(average_bytes(self.shape.value)));
        let (mut inner, mut nodes) = (0, leaves);
        while nodes > 1 {
            nodes = filled(nodes, capacity(CHILD_BYTES));
            inner += nodes;
        }
        let grown = self.table_bytes_grown((0, 1), Growth { leaves, inner, ..Growth::default() });
        grown.max(self.table_bytes_at_first())
    }

    /// Bytes of the longest root record on a chip with so many pages.
    pub(super) fn root_bytes_most(&self, pages: u32) -> u64 {
        let nodes = u64::from(pages / 2) * u64::from(self.pages.nodes_per_page());
        // No more than finds room waits, whatever the pool holds: with other memory it is the same.
        let pool = u64::from(pages) / 16 + 2;
        let levels = HEIGHT_MOST as u64;
        ROOT_BYTES + 4 * (levels + self.table_pages(nodes, nodes / 3) + pool)
    }
}

/// Blocks of which half have as many pages as four blocks, beside the reserve.
pub(super) fn fewest_blocks(plan: &Plan, chip: Geometry, log: &PageLogOptions) -> u32 {
    let block = u64::from(chip.pages_per_block());
    let own = PageLog::own_reserve_on(chip, log, plan.root_bytes_most(chip.pages()));
    let is_enough = |blocks: &u32| {
        let half = pages_of_generations(*blocks, own, block) / 2;
        half >= reserve(half, block) + 4 * block
    };
    (own..u32::MAX).find(is_enough).unwrap_or(u32::MAX)
}

impl Room {
    /// Takes room for an admitted batch of so many puts, and bytes of all; false if there is none.
    pub(super) fn take(&mut self, puts: u64, bytes: u64) -> bool {
        let is_taken = bytes <= self.bytes_left && self.puts.take(puts);
        if is_taken {
            self.admitted = (puts, bytes);
            self.bytes_left -= bytes;
            self.waiting += bytes;
        }
        is_taken
    }

    /// A batch is to be admitted: nothing of it is yet.
    pub(super) const fn begin_batch(&mut self) {
        (self.is_direct, self.admitted) = (false, (0, 0));
    }

    /// Counts anew what may come, from now on if this `is_base`: of the pages that are left half
    /// are for nodes and half for what waits, until they are counted again.
    pub(super) fn count(&mut self, now: &Census<'_>, is_base: bool) {
        let (mut base, mut taken, mut waiting) = (self.base, self.puts.taken(), self.waiting);
        if is_base {
            (base, taken, waiting) = (now.demand(), now.waiting(), now.bytes_waiting());
        }
        let (most, reserve) = now.capacity();
        let grown = now.pages_grown(&base, base.growth(taken));
        if now.chip.pinned_blocks > 0 && grown > most + reserve {
            // Names leave no room for a new generation.
            self.forget();
            return;
        }
        let waiting_pages = WAITING * now.waiting_pages(waiting);
        let free = most.saturating_sub(grown + waiting_pages);
        let for_waiting = (waiting_pages + free / 2).max(reserve / 2);
        let bytes_left = (for_waiting / WAITING * now.room_of_page()).saturating_sub(waiting);
        let fits = |growth| now.pages_grown(&base, growth) <= grown + free - free / 2;
        let puts = Reservation::new(&base, taken, fits);
        (self.base, self.puts, self.waiting, self.bytes_left) = (base, puts, waiting, bytes_left);
    }

    /// Counts room from a checkpoint on, that of a batch which is to come after it included.
    pub(super) fn begin(&mut self, now: &Census<'_>) {
        let (puts, bytes) = self.admitted;
        self.count(now, true);
        if !self.take(puts, bytes) {
            self.waiting += bytes;
            self.bytes_left = 0;
        }
    }

    pub(super) fn forget(&mut self) {
        let compaction = core::mem::take(&mut self.compaction);
        *self = Room { compaction, ..Room::default() };
    }
}
