//! `la-tree`: the lazy-adaptive tree of Agrawal, Ganesan, Sitaraman, Diao and Singh (VLDB 2009).
//!
//! A B+-tree whose updates wait in buffers on flash, at every K-th level, and go down in batches.
//! ADAPT ([`policy`]) decides for each buffer when it is emptied: large buffers where updates
//! dominate, small ones where lookups do.
//!
//! One `put`, from top to bottom (`operations`): it is appended to the root's buffer (`buffers`),
//! which holds entries in memory until the pool is full. When a buffer is too large, or a lookup
//! finds that it should have been emptied before, it is emptied (`empty_buffer`): it is sorted
//! (`emptying`), and handed to the buffers at the next buffered level or to the leaves. Leaves
//! split, borrow and merge (`rebalance`). On raw flash nodes are small, never stay where they were,
//! and are found by a table (`nodes`); on a disk they are pages, rewritten in place (`disk`).
//!
//! No part knows the tree, and none a part that stands on it: `bare_tree` has the nodes and walks
//! over them, `buffers` what waits, `emptying` what goes down, `generation` what is to leave old
//! pages, `census` and `room` count, `sharing` lends memory, `checkpoint_state` writes what is in
//! memory only. `operations`, `empty_buffer`, `rebalance`, `reclaim`, `compaction`, `load` and
//! `make` are the tree's own, and `scan`, `check`, `resume` and `counters` read it.
//!
//! # Words
//! - A **subtree** is a node with a buffer, and the K levels from it down to the next buffers.
//! - A **buffer** is a chain of fragments on flash, each linked to the one before it, and the
//!   entries in the pool that are not on flash yet.
//! - A **leaf subtree** is one whose lowest level are leaves.
//!
//! # Choices that the paper leaves open
//! - Levels are counted from the leaves, so a buffered level stays one when the tree grows: levels
//!   K - 1, 2K - 1 and so on, and the root always. Only the top subtree may have fewer levels.
//! - Sizes are bytes, not entries, because keys and values may vary in length.
//! - A delete in a buffer carries its key only.
//!
//! # Invariants
//! - Of two entries for a key, the one in the higher buffer is newer; in one buffer the later one.
//! - The first key of an inner node is exactly the separator that its parent has for it; on the
//!   left edge that is the lowest key there is.
//! - After an error while something was changed, nothing more is read or changed: entries may have
//!   been on their way from one buffer to another.

/// Does the same with the short and the long form of a list.
macro_rules! either {
    ($lists:expr, $list:ident => $do:expr) => {
        match $lists {
            Self::Short($list) => $do,
            Self::Long($list) => $do,
        }
    };
}

pub mod policy;

mod bare_tree;
mod buffer_pool;
mod buffers;
mod cache;
mod census;
mod check;
mod checkpoint_state;
mod chunks;
mod compaction;
mod cost;
mod counters;
mod disk;
mod empty_buffer;
mod emptying;
mod footprint;
mod generation;
mod layout;
mod limits;
mod load;
mod make;
mod nodes;
mod operations;
mod plan;
mod rebalance;
mod reclaim;
mod resume;
mod room;
mod scan;
mod sharing;
mod sorter;
mod storage;
mod stream;
mod table;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::Meter;
use store::{Growth, Recovery, Update};

use bare_tree::BareTree;
use buffers::Buffers;
use census::{Census, Chip, More};
use cost::Estimator;
use counters::Counters;
use disk::Disk;
use empty_buffer::{PutBack, Top};
use emptying::Emptying;
use generation::Generation;
use index::bounds::can_be;
use index::{Cursor, Error, KeyRange, Read, Result, Resume, Statistics, Tree};
use index::{DeletePolicy, TreeDescriptor};
use layout::PIECE_BYTES;
use limits::Limits;
use plan::Plan;
use rebalance::Lean;
use room::Room;
use sharing::Sharing;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "the lazy-adaptive tree: updates wait in buffers on flash, at every K-th level",
    paper: "Agrawal, Ganesan, Sitaraman, Diao, Singh: Lazy-Adaptive Tree (VLDB 2009)",
    nand: true,
    sectors: true,
    deletes: |_| DeletePolicy::Merge,
    tables_part: |_| 2,
    long_values: true,
    parameters: plan::PARAMETERS,
    create: make::create,
    open: make::open,
    footprint: footprint::footprint,
    predict: footprint::predict,
};

const NAME: &str = "la-tree";

/// The tree.
pub(crate) struct LaTree<'d> {
    plan: Plan,
    limits: Limits,
    bare: BareTree<'d>,
    buffers: Buffers,
    emptying: Emptying,
    policy: policy::Policy,
    estimator: Estimator,
    room: Box<Room>,
    top: Top,
    /// What of the buffer that is being emptied went back.
    put_back: PutBack,
    lean: Lean,
    generation: Generation,
    /// Blocks that named checkpoints keep.
    pinned_blocks: u32,
    counters: Counters,
    sharing: Sharing,
    /// What the last range held, for one that goes on where it stopped; every change forgets it.
    paused: Option<Box<scan::Paused>>,
    /// True from the first change after a checkpoint on: only then do lookups change anything.
    is_open: bool,
    is_poisoned: bool,
}

/// Mistakes that tests make on purpose are no part of the budget.
#[cfg(not(feature = "canaries"))]
const _: () =
    assert!(size_of::<LaTree<'_>>() as u64 <= plan::TREE_BYTES, "the budget knows the tree");

impl LaTree<'_> {
    /// Refuses to go on after a change that was broken off.
    fn check_whole(&self) -> Result<()> {
        if !self.is_poisoned {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: "a change of the tree failed midway: none is made until it is opened again",
        })
    }

    /// What there is now, as far as room matters.
    fn census(&self) -> Census<'_> {
        let (bare, buffers, entry) = (&self.bare, &self.buffers, self.plan.entry_most);
        let codecs = &bare.nodes.codecs;
        Census {
            plan: &self.plan,
            height: bare.height.into(),
            levels: bare.levels,
            // One that is split elsewhere than in the middle is so for as many as follow.
            refill: (
                (codecs.leaf.capacity(entry, 0) / 2).max(1) as u32,
                (codecs.inner.capacity(entry, 4) / 2).max(2) as u32,
            ),
            nodes: bare.count(),
            dirty: bare.nodes.cache.dirty_frames().into(),
            numbers: bare.nodes.numbers(),
            chunks: bare.nodes.chunk_pages(),
            pending: buffers.pending,
            pending_bytes: buffers.pending_bytes,
            records: buffers.records.len() as u64,
            pool_bytes: buffers.pool.memory_bytes(),
            names: bare.log.recovery().checkpoints().len() as u64,
            chip: bare.log.chip().map_or(Chip::default(), |log| Chip {
                block: log.geometry().pages_per_block().into(),
                good_blocks: log.good_blocks(),
                pinned_blocks: self.pinned_blocks,
                released_blocks: log.released_blocks(),
                free_blocks: log.free_blocks(),
                free_pages: log.free_pages().into(),
                own_blocks: log.own_reserve(),
            }),
        }
    }

    /// True if there is room to change one more leaf before the next checkpoint.
    fn may_step(&self) -> bool {
        let disk = self.bare.log.disk();
        disk.is_none_or(|disk| self.census().may_step(disk, &self.limits))
    }

    /// True if all that is pending finds room on a disk, with so much more; the file grows for it
    /// where it can.
    fn finds_room(&mut self, more: More) -> Result<bool> {
        while self.bare.log.disk().is_some_and(|disk| !self.census().fits(disk, more)) {
            if !self.bare.log.disk_mut().map_or(Ok(false), Disk::extend)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts anew what may come.
    fn count_room(&mut self, is_base: bool) {
        self.change_room(|room, now| room.count(now, is_base));
    }

    fn change_room(&mut self, change: impl FnOnce(&mut Room, &Census<'_>)) {
        let mut room = core::mem::take(&mut *self.room);
        change(&mut room, &self.census());
        *self.room = room;
    }

    /// Counts room from a checkpoint on.
    fn begin_room(&mut self) {
        self.change_room(Room::begin);
    }

    /// Refuses so many entries more if the tables have no memory for them.
    fn check_tables(&self, more: u64) -> Result<()> {
        if self.sharing.tables.is_none() {
            return Ok(());
        }
        let need = self.census().tables_needed(more) + self.bare.log.memory().tables;
        self.sharing.check_tables(need, &self.bare.nodes, &self.buffers)
    }

    /// Refuses tables that are larger now than they may be, as those of an index can be that had
    /// more memory, or will be as soon as something waits in every buffer.
    fn check_tables_now(&self) -> Result<()> {
        let need = self.table_bytes() + self.buffers.bytes_to_come();
        self.sharing.check_tables(need, &self.bare.nodes, &self.buffers)
    }

    /// Lets the tables have memory for so many numbers of nodes without buffers and with, for so
    /// much growth, and for what is known of each buffer once something waits in it.
    fn lend_to_tables(&mut self, numbers: (u64, u64), growth: Growth) -> Result<()> {
        let grown = self.plan.table_bytes_grown(numbers, growth);
        let need = grown + self.bare.log.memory().tables;
        self.sharing.lend_to_tables(need, &mut self.bare, &mut self.buffers)
    }

    /// The same for the nodes that one put may make.
    fn lend_for_put(&mut self) -> Result<()> {
        let growth = self.census().demand().growth(1);
        self.lend_to_tables(self.bare.nodes.numbers(), growth)
    }

    /// Moves memory between pool and cache, if that is allowed and worth it.
    fn share_memory(&mut self) -> Result<()> {
        if !self.sharing.is_due(&self.bare.nodes, &self.buffers) || !self.has_space() {
            return Ok(());
        }
        self.sharing.share(&self.estimator.units, &mut self.bare, &mut self.buffers)
    }

    /// Bytes of all tables.
    fn table_bytes(&self) -> u64 {
        let below = self.bare.log.memory().tables;
        self.bare.nodes.table_bytes() + self.buffers.table_bytes() + below
    }
}

impl Read for LaTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        let can_be = can_be(self.limits.check_key(key))?;
        self.check_whole()?;
        if !can_be {
            return Ok(None);
        }
        self.find(key, offset, into)
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        self.check_whole()?;
        Ok(Box::new(scan::Scan::new(self, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        self.check_whole()?;
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        self.check_whole()?;
        resume::resume_after(self, key)
    }

    fn statistics(&self) -> Statistics {
        let below = self.bare.log.memory();
        let memory = store::Memory {
            cache: below.cache + self.bare.nodes.cache.memory_bytes(),
            buffers: below.buffers + self.plan.fixed_bytes + self.buffers.pool.memory_bytes(),
            tables: self.table_bytes(),
            ftl: below.ftl,
        };
        let nodes = self.bare.count();
        let nodes = nodes.div_ceil(u64::from(self.plan.pages.nodes_per_page()));
        let fragments = self.buffers.fragment_bytes().div_ceil(self.plan.pages.room().into());
        Statistics {
            height: u32::from(self.bare.height),
            live_pages: match self.bare.log.disk() {
                Some(disk) => disk.file.sectors_used(),
                None => nodes + fragments + self.bare.nodes.chunk_pages(),
            },
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        counters::tell(self, tell);
    }

    fn meter(&self) -> Option<&Meter> {
        self.bare.log.meter()
    }
}

impl Tree for LaTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.check_whole()?;
        for update in batch {
            self.limits.check_update(update)?;
        }
        self.admit_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        self.check_whole()?;
        self.limits.check_update(update)?;
        self.paused = None;
        self.is_open = true;
        self.is_poisoned = true;
        self.generation.is_vain = false;
        self.reclaim_if_due()?;
        match update {
            Update::Put { key, value } => {
                if !self.put_long(key, value)? {
                    self.change(key, Some(value))?;
                }
            }
            Update::Delete { key } => self.change(key, None)?,
            Update::PutStored { key, value } => self.adopt_value(key, *value)?,
        }
        self.empty_owed()?;
        self.spill()?;
        self.share_memory()?;
        self.is_poisoned = false;
        Ok(())
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.check_whole()?;
        self.paused = None;
        self.is_open = true;
        self.load_sorted(sorted, fill_percent)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        self.check_whole()?;
        self.paused = None;
        self.write_state()
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.generation.is_waiting || self.bare.log.blocks_to_erase() > 0
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        self.paused = None;
        self.read_state(root)
    }

    fn admit_savepoint(&mut self) -> Result<()> {
        let now = self.census();
        if let Some(disk) = self.bare.log.disk() {
            // Right behind a checkpoint all that waits is written: the page file counts the rest.
            let fits = !self.is_open || now.fits(disk, More { names: 1, ..More::default() });
            return if fits { Ok(()) } else { Err(self.refusal()) };
        }
        match now.admits_name(now.waiting_pages(self.buffers.held_bytes(PIECE_BYTES))) {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        self.pin_named()
    }

    fn entry_bytes_most(&self) -> usize {
        self.plan.entry_most
    }

    fn is_drained(&self) -> bool {
        self.census().is_bound_by_names() || self.buffers.pending == [0; 2] && !self.may_compact()
    }

    fn drain(&mut self) -> Result<bool> {
        self.check_whole()?;
        self.paused = None;
        self.is_open |= self.may_step();
        self.is_poisoned = true;
        let drained = self.drain_some()?;
        self.is_poisoned = false;
        Ok(drained)
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        if let Some(disk) = self.bare.log.disk() {
            return self.census().pages_changed(disk, &self.limits, batch);
        }
        // What was reclaimed is erased by the next checkpoint, which is due then.
        if self.generation.is_waiting { u32::MAX } else { 0 }
    }

    fn recovery(&self) -> &dyn Recovery {
        self.bare.log.recovery()
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        self.bare.log.recovery_mut()
    }
}
