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

use device::{Cause, Geometry};
use index::random_keys::average_bytes;
use store::node::HEADER_BYTES;
use store::{Demand, Growth, LEVELS_MOST, PageLog, PageLogOptions, Reservation, Update};

use super::LaTree;
use super::buffer_pool::BufferId;
use super::buffers::Buffers;
use super::checkpoint_state::{PIECE_BYTES, ROOT_BYTES};
use super::compaction::Compaction;
use super::layout::FRAGMENT_HEADER_BYTES;
use super::nodes::{CHILD_BYTES, Table};
use super::plan::{CHUNK_HEADER, Plan};
use super::stream::Pending;
use crate::btree::HEIGHT_MOST;
use index::{Error, Result, Width};

/// How often the bytes that wait are counted.
const WAITING: u64 = 3;

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
    keep: u64,
    /// Nodes that there were when that was counted.
    nodes: u64,
}

/// Pages of a half of so many that stay free.
fn reserve(half: u64, block: u64) -> u64 {
    (half / 16).max(2 * block)
}

/// Pages that the generations have together, of so many blocks of `block` pages, of which the log
/// keeps `own` back.
fn pages_of_generations(blocks: u32, own: u32, block: u64) -> u64 {
    u64::from(blocks.saturating_sub(own + BLOCKS_BESIDE)) * block
}

impl Plan {
    fn node_pages(&self, nodes: u64) -> u64 {
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
    fn pages_of(&self, leaves: u64, inner: u64) -> u64 {
        self.node_pages(leaves + inner) + 2 * self.table_pages(leaves, inner) + 2
    }

    /// Bytes in the worst case of the tables that have so many numbers of nodes without buffers and
    /// with, and grow so much.
    fn table_bytes_grown(&self, (plain, buffered): (u64, u64), growth: Growth) -> u64 {
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
    fn root_bytes_most(&self, pages: u32) -> u64 {
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

impl LaTree<'_> {
    /// From now on the log keeps as much back as the longest root record needs.
    pub(super) fn expect_root(&mut self) {
        let bytes = self.plan.root_bytes_most(self.bare.log.pages());
        if let Some(log) = self.bare.log.chip_mut() {
            log.expect_root(bytes);
        }
    }

    /// The tree as far as room matters.
    fn demand(&self) -> Demand {
        let mut levels = [0_u32; LEVELS_MOST];
        for (level, nodes) in self.bare.levels.iter().enumerate() {
            let counted = &mut levels[level.min(LEVELS_MOST - 1)];
            *counted = counted.saturating_add(*nodes);
        }
        let entry = self.plan.entry_most;
        // One that is split elsewhere than in the middle is so for as many as follow.
        Demand {
            levels,
            puts_a_leaf: (self.bare.nodes.codecs.leaf.capacity(entry, 0) / 2).max(1) as u32,
            children_a_node: (self.bare.nodes.codecs.inner.capacity(entry, 4) / 2).max(2) as u32,
            leaves_a_put: 1,
        }
    }

    fn pending(&self) -> u64 {
        self.buffers.pending.iter().sum()
    }

    /// Bytes that so many entries take while they wait, of `bytes` bytes themselves: each may be a
    /// fragment of its own.
    const fn waiting_bytes(entries: u64, bytes: u64) -> u64 {
        bytes + entries * FRAGMENT_HEADER_BYTES as u64
    }

    /// Bytes of all that waits.
    fn bytes_waiting(&self) -> u64 {
        Self::waiting_bytes(self.pending(), self.buffers.pending_bytes)
    }

    /// Pages of so many bytes that wait.
    fn waiting_pages(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.room_of_page())
    }

    /// Bytes of a page that are filled for certain: it may end before an entry that does not fit.
    fn room_of_page(&self) -> u64 {
        let lost = self.plan.sizes.entry_most as u64 + PIECE_BYTES + u64::from(CHUNK_HEADER);
        u64::from(self.plan.pages.room()).saturating_sub(lost).max(1)
    }

    pub(super) fn block_pages(&self) -> u64 {
        u64::from(self.bare.log.chip().map_or(1, |log| log.geometry().pages_per_block()))
    }

    /// Pages of half of the blocks that no named checkpoint keeps, beside the reserve.
    fn capacity(&self) -> (u64, u64) {
        let half = self.pages_of_generations() / 2;
        let reserve = reserve(half, self.block_pages());
        (half.saturating_sub(reserve), reserve)
    }

    /// Pages of a tree that has grown so, and of its tables.
    fn pages_grown(&self, demand: &Demand, growth: Growth) -> u64 {
        let leaves = demand.leaves().saturating_add(growth.leaves);
        self.plan.pages_of(leaves, demand.inner().saturating_add(growth.inner))
    }

    /// Refuses `batch` if there is no room for it.
    pub(super) fn admit_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        if self.bare.log.is_disk() {
            return self.admit_on_disk(batch);
        }
        self.room.is_direct = false;
        self.room.admitted = (0, 0);
        let (mut puts, mut bytes) = (0, 0);
        for update in batch {
            let (key, value) = match *update {
                Update::Put { key, value } => (key, Some(value)),
                Update::PutStored { key, .. } | Update::Delete { key } => (key, None),
            };
            puts += u64::from(value.is_some());
            let entry = self.buffers.form.bytes(&Pending { key, value }) as u64 + 1;
            bytes += Self::waiting_bytes(1, entry);
        }
        if self.is_bound_by_names() {
            return Err(self.refusal());
        }
        if puts > 0
            && let Err(error) = self.check_tables(batch.len() as u64)
        {
            // Nodes that may come of what waits need tables.
            return Err(if self.pending() > 0 { self.refusal() } else { error });
        }
        if self.take(puts, bytes) {
            return Ok(());
        }
        let is_base = !self.is_open || !self.bare.log.recovery().durability().has_journal();
        self.count_room(is_base);
        if self.take(puts, bytes) {
            return Ok(());
        }
        if is_base && self.pending() == 0 && self.adds_none(batch)? {
            self.room.is_direct = true;
            return Ok(());
        }
        Err(self.refusal())
    }

    /// True if names leave no more room than for a new generation, which gives nothing back of what
    /// they keep.
    pub(super) fn is_bound_by_names(&self) -> bool {
        self.pinned_blocks > 0 && self.pages_left() <= self.pages_to_copy()
    }

    fn take(&mut self, puts: u64, bytes: u64) -> bool {
        let is_taken = bytes <= self.room.bytes_left && self.room.puts.take(puts);
        if is_taken {
            self.room.admitted = (puts, bytes);
            self.room.bytes_left -= bytes;
            self.room.waiting += bytes;
        }
        is_taken
    }

    /// Counts anew what may come, from now on if this `is_base`: of the pages that are left half
    /// are for nodes and half for what waits, until they are counted again.
    fn count_room(&mut self, is_base: bool) {
        let (mut base, mut taken, mut waiting) =
            (self.room.base, self.room.puts.taken(), self.room.waiting);
        if is_base {
            (base, taken) = (self.demand(), self.pending());
            waiting = self.bytes_waiting();
        }
        let (most, reserve) = self.capacity();
        let grown = self.pages_grown(&base, base.growth(taken));
        if self.pinned_blocks > 0 && grown > most + reserve {
            // Names leave no room for a new generation.
            self.forget_room();
            return;
        }
        let waiting_pages = WAITING * self.waiting_pages(waiting);
        let free = most.saturating_sub(grown + waiting_pages);
        let for_waiting = (waiting_pages + free / 2).max(reserve / 2);
        let bytes_left = (for_waiting / WAITING * self.room_of_page()).saturating_sub(waiting);
        let fits = |growth| self.pages_grown(&base, growth) <= grown + free - free / 2;
        let puts = Reservation::new(&base, taken, fits);
        let room = &mut *self.room;
        (room.base, room.puts, room.waiting, room.bytes_left) = (base, puts, waiting, bytes_left);
    }

    /// Counts room from a checkpoint on, that of a batch which is to come after it included.
    pub(super) fn begin_room(&mut self) {
        if self.bare.log.is_disk() {
            return;
        }
        let (puts, bytes) = self.room.admitted;
        self.count_room(true);
        if !self.take(puts, bytes) {
            self.room.waiting += bytes;
            self.room.bytes_left = 0;
        }
    }

    pub(super) fn forget_room(&mut self) {
        let compaction = core::mem::take(&mut self.room.compaction);
        *self.room = Room { compaction, ..Room::default() };
    }

    /// True if `batch` is one put for which its leaf has room.
    fn adds_none(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let [Update::Put { key, value }] = batch else {
            return Ok(false);
        };
        let leaf = self.bare.descend(0, key, Cause::Update)?;
        let codec = self.bare.nodes.codecs.leaf;
        let node = self.bare.nodes.node(&mut self.bare.log, leaf, 0, Cause::Update)?;
        let is_there = codec.search(node, key).is_ok();
        let is_replaced = is_there && self.plan.shape.value != Width::Variable;
        Ok(is_replaced || codec.has_room(node, key, value.len()))
    }

    /// That there is no room, or only what named checkpoints keep.
    pub(super) fn refusal(&self) -> Error {
        let block = self.bare.log.chip().map_or(0, |log| log.geometry().block_bytes());
        match self.pinned_blocks {
            0 => store::Error::Full { pages: u64::from(self.bare.log.usable_pages() / 2) }.into(),
            kept => store::Error::Kept { kept: u64::from(kept) * block }.into(),
        }
    }

    /// Refuses one more named checkpoint if there would be no room to forget all of them again, and
    /// then for a new generation: each takes a checkpoint, and only the next one erases what is
    /// given back.
    pub(super) fn admit_name(&self) -> Result<()> {
        let names = self.bare.log.recovery().checkpoints().len() as u64 + 1;
        let nodes =
            u64::from(self.plan.cache.frames_most()).min(self.bare.nodes.count(&self.bare.log));
        let first = self.plan.node_pages(nodes) + 2 * self.chunk_pages() + 2 + self.pool_pages();
        let need = first + names * (self.pool_pages() + 1) + self.block_pages();
        // A rollback leaves the end of the block that was begun.
        let copied = self.pages_to_copy() + self.pages_of_pool() + 1 + self.block_pages();
        let kept = u64::from(self.bare.log.released_blocks()) * self.block_pages();
        let fits =
            need <= u64::from(self.bare.log.free_pages()) && copied <= self.pages_left() + kept;
        if fits { Ok(()) } else { Err(self.refusal()) }
    }

    /// Pages that a checkpoint takes for what is in the pool.
    pub(super) fn pool_pages(&self) -> u64 {
        let held = |number| self.buffers.pool.held(BufferId(number));
        let bytes: u64 = (0..self.buffers.records.len() as u32)
            .map(held)
            .filter(|held| held.entries > 0)
            .map(|held| held.bytes as u64 + PIECE_BYTES)
            .sum();
        self.waiting_pages(bytes)
    }

    /// Refuses so many entries more if the tables have no memory for them.
    pub(super) fn check_tables(&self, more: u64) -> Result<()> {
        let need = self.tables_needed(more);
        match self.tables_most() {
            Some(have) if need > have => Err(store::Error::LittleTables { have, need }.into()),
            _ => Ok(()),
        }
    }

    /// The most bytes that the tables may take, those included that pool and cache can give.
    fn tables_most(&self) -> Option<u64> {
        self.plan.tables_most.map(|most| most + self.lendable_bytes())
    }

    /// Lets the tables have memory for the nodes that one put may make, and for what is known of
    /// each buffer once something waits in it.
    pub(super) fn lend_for_put(&mut self) -> Result<()> {
        let demand = self.demand();
        let grown = self.plan.table_bytes_grown(self.bare.nodes.numbers(), demand.growth(1));
        self.lend_to_tables(grown + self.bare.log.memory().tables)
    }

    /// The same for so many nodes without buffers and with, which are read.
    pub(super) fn lend_for_numbers(&mut self, plain: u32, buffered: u32) -> Result<()> {
        let numbers = (plain.into(), buffered.into());
        let bytes = self.plan.table_bytes_grown(numbers, Growth::default());
        self.lend_to_tables(bytes + self.bare.log.memory().tables)
    }

    /// Refuses tables that are larger now than they may be, as those of an index can be that had
    /// more memory, or will be as soon as something waits in every buffer.
    pub(super) fn check_tables_now(&self) -> Result<()> {
        let need = self.table_bytes() + self.buffers.bytes_to_come();
        match self.tables_most() {
            Some(have) if need > have => Err(store::Error::LittleTables { have, need }.into()),
            _ => Ok(()),
        }
    }

    /// Bytes of all tables in the worst case, with `more` entries pending.
    fn tables_needed(&self, more: u64) -> u64 {
        let growth = self.demand().growth(self.pending() + more);
        self.plan.table_bytes_grown(self.bare.nodes.numbers(), growth)
            + self.bare.log.memory().tables
    }

    /// Bytes of all tables.
    pub(super) fn table_bytes(&self) -> u64 {
        self.bare.nodes.table_bytes() + self.buffers.table_bytes() + self.bare.log.memory().tables
    }

    /// True if one more leaf finds room while the tree is loaded.
    pub(super) fn has_room_to_load(&mut self) -> Result<bool> {
        if self.bare.log.is_disk() {
            return self.finds_room(super::in_place::room::More { puts: 1, ..Default::default() });
        }
        let demand = self.demand();
        Ok(self.pages_grown(&demand, demand.growth(1)) <= self.capacity().0)
    }

    /// Pages that the fragments of all buffers take.
    pub(super) fn fragment_pages(&self) -> u64 {
        let bytes = self.buffers.fragment_bytes();
        bytes.div_ceil(u64::from(self.plan.pages.room()))
    }

    /// Pages that a new generation and the checkpoint after it take at most, if buffers are copied
    /// instead of emptied, the end of the block that is begun, and what forgetting names takes.
    pub(super) fn pages_to_copy(&self) -> u64 {
        let names = self.bare.log.recovery().checkpoints().len() as u64;
        self.plan.node_pages(self.bare.nodes.count(&self.bare.log))
            + 2 * self.waiting_pages(self.bytes_waiting())
            + self.chunk_pages()
            + 4
            + self.block_pages()
            + names * (self.pages_of_pool() + 1)
    }

    /// As [`LaTree::pool_pages`], at most, whatever the pool has of what waits.
    fn pages_of_pool(&self) -> u64 {
        let held = self.buffers.pool.memory_bytes().min(self.buffers.pending_bytes);
        let pieces = PIECE_BYTES * self.pending().min(self.buffers.records.len() as u64);
        self.waiting_pages(held + pieces)
    }

    /// Pages that are free beside those that the next checkpoint takes before a new generation: for
    /// nodes that were changed and stand in the cache alone, for the tables, and for the pool.
    pub(super) fn pages_left(&self) -> u64 {
        let dirty = self.plan.node_pages(self.bare.nodes.cache.dirty_frames().into());
        let taken = dirty + self.chunk_pages() + 5 + self.pages_of_pool();
        u64::from(self.bare.log.free_pages()).saturating_sub(taken)
    }

    /// Pages that generations have together.
    pub(super) fn pages_of_generations(&self) -> u64 {
        let blocks = self.bare.log.good_blocks().saturating_sub(self.pinned_blocks);
        let own = self.bare.log.chip().map_or(0, PageLog::own_reserve);
        pages_of_generations(blocks, own, self.block_pages())
    }

    /// True if the pages that are free may not suffice to empty every buffer meanwhile.
    pub(super) fn is_to_copy(&self) -> bool {
        let demand = self.demand();
        let grown = self.pages_grown(&demand, demand.growth(self.pending()));
        let need = grown + (WAITING - 1) * self.waiting_pages(self.bytes_waiting());
        need + self.block_pages() > u64::from(self.bare.log.free_pages())
    }

    /// True if emptying buffer `number` can begin: with its first leaf, or if it is one of an inner
    /// subtree, with all of it.
    pub(super) fn has_room_to_empty(&self, number: u32) -> bool {
        self.part_of(number).keep + self.pages_of_leaf() <= self.pages_left()
    }

    /// What has to stay free while buffer `number` is emptied leaf by leaf.
    pub(super) fn part_of(&self, number: u32) -> Part {
        let mut keep = self.pages_to_copy() + self.pages_to_put_back(number);
        if self.buffers.record(number).is_leaf() {
            // Nodes above may be split, whose buffers are written anew.
            let above = self.buffers.pending[0];
            let bytes = above * (self.plan.sizes.entry_most as u64 + 1);
            let bytes = bytes.min(self.buffers.pending_bytes);
            keep += 2 * self.waiting_pages(Self::waiting_bytes(above, bytes));
        }
        Part { keep, nodes: self.bare.nodes.count(&self.bare.log) }
    }

    /// Pages that are written where what is in a buffer goes to others, or back: what of it is in
    /// the pool may be written before.
    fn pages_to_put_back(&self, number: u32) -> u64 {
        let record = self.buffers.record(number);
        2 * self.waiting_pages(Self::waiting_bytes(record.entries().into(), record.bytes.into()))
    }

    /// Pages that changing one leaf takes at most: on each level a node, the one that is split from
    /// it, and a neighbour.
    fn pages_of_leaf(&self) -> u64 {
        self.plan.node_pages(3 * u64::from(self.bare.height) + 3) + 1
    }

    /// True if a leaf can be changed, where nothing waits.
    pub(super) fn has_room_to_change(&self) -> bool {
        self.pages_to_copy() + self.pages_of_leaf() <= self.pages_left()
    }

    /// True if what is in buffer `number` can be moved to others.
    pub(super) fn has_room_to_rebuffer(&self, number: u32) -> bool {
        let need = self.pages_to_copy() + self.pages_to_put_back(number) + self.pages_of_leaf();
        self.bare.log.is_disk() || need <= self.pages_left()
    }

    /// True if one leaf more can be changed.
    pub(super) fn has_room_for_leaf(&self) -> bool {
        self.room.part.is_none_or(|part| {
            let born = self.bare.nodes.count(&self.bare.log).saturating_sub(part.nodes);
            let need = part.keep + self.plan.node_pages(born) + self.pages_of_leaf();
            need <= self.pages_left()
        })
    }

    /// True if a leaf can be changed at once, where nothing is pending. It matters in a replay: no
    /// checkpoint gives back what was reclaimed before its end.
    pub(super) fn has_room_for_one(&self) -> bool {
        !self.generation.is_waiting || self.has_room_to_change()
    }
}
