//! The engine of the trees that copy their paths: on raw flash a change of a leaf moves it, so its
//! parent changes too, and all nodes up to the root.
//!
//! Three divisions of a page are three trees ([`layout::Division`]): mu-Tree and mu*-Tree put the
//! whole path into one page, the B+-tree that wanders gives every node its own. All else is the
//! same: what stands in a page ([`page`]), what a change writes ([`plan`], [`assembly`],
//! [`rewrite`]), how the leaf's share adapts ([`policy`]), the path down ([`descent`]), what there
//! is room for and what is let in ([`room`], [`admission`]), collection ([`collection`],
//! [`victims`], [`walk`]), the operation buffer ([`recent`]) and how it is written ([`flush`]), the
//! node cache ([`node_cache`]), and what a workload costs ([`cost`]).
//!
//! # Durability
//! The root record of a checkpoint names the root's page, and the page log keeps what the last
//! checkpoint reaches. What the operation buffer holds goes to the tree before one, unless the
//! journal stays.
//!
//! # Invariants
//! - What collection erases is reached by no root that an opening could find.
//! - Moves and deletes add no node, and puts only as many as there is room for: [`room`].

mod admission;
mod assembly;
mod check;
mod collection;
pub(crate) mod cost;
mod descent;
pub(crate) mod flush;
pub(crate) mod layout;
mod live;
mod load;
pub(crate) mod make;
mod node_cache;
mod page;
mod path_nodes;
mod plan;
pub(crate) mod policy;
mod recent;
mod rewrite;
mod room;
mod root;
mod victims;
mod walk;

#[cfg(test)]
pub(crate) mod model;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Block, Cause, Meter, Page};
use store::{Demand, Durability, LogicalPage, Memory, Recovery, Update};

use crate::btree::{self, At, Scan};
use admission::Admission;
use descent::CopiedPath;
use flush::Flush;
use index::bounds::{EntryLimits, can_be};
use index::{Cursor, Error, KeyRange, Read, Result, Resume, Statistics, Tree, read_piece};
use live::LivePages;
use page::Header;
use path_nodes::PathNodes;
use plan::{Plan, Scratch};
use policy::Policy;
use recent::Recent;

/// How the tree lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durably {
    /// Not at all, unless it is closed.
    Not,
    /// By checkpoints, and a journal if there is one.
    ByCheckpoints,
}

impl Durably {
    const fn of(durability: Durability) -> Self {
        match durability {
            Durability::None => Durably::Not,
            Durability::Checkpoint | Durability::Batch | Durability::Every => {
                Durably::ByCheckpoints
            }
        }
    }
}

/// A tree that copies its paths.
pub(crate) struct PathTree<'d> {
    name: &'static str,
    store: PathNodes<'d>,
    policy: Policy,
    durably: Durably,
    /// The page of the root.
    root: Page,
    /// What that page says.
    standing: Header,
    path: CopiedPath,
    plan: Plan,
    scratch: Scratch,
    addresses: Vec<Page>,
    /// Puts and deletes that the tree has not seen.
    buffer: Recent,
    flush: Flush,
    /// An entry on its way from the buffer to the tree; while a tree is loaded, the key before.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The key by which collection looks for a page: it runs while an entry is on its way.
    moved_key: Vec<u8>,
    /// Nodes that went since nothing was left in them.
    emptied: u64,
    /// The block that is collected, and its next page.
    victim: Option<(Block, u32)>,
    /// True if inner nodes stand apart from leaves, all of them.
    is_parted: bool,
    /// Blocks with damage in what lives there.
    passed_over: Vec<Block>,
    /// Share of the blocks below which free ones are made by collection.
    collect: f64,
    live: LivePages,
    limits: EntryLimits,
    /// Nodes of each level.
    nodes: room::Nodes,
    /// The longest key that was put since the tree was made, or a little more, where they vary.
    longest_key: usize,
    /// How nodes of a tree of no level grow, with such keys.
    growth: Demand,
    /// The most bytes of a leaf below a root.
    leaf_bytes: usize,
    admission: Admission,
}

/// That damaged nodes share children, and these theirs: a walk would have no end.
const SHARED: &str = "it and those before it have more children than there are pages";

fn damage(page: Page, what: &'static str) -> Error {
    store::Error::DamagedPage { page: LogicalPage(page.0), what }.into()
}

impl PathTree<'_> {
    fn stand_on(&mut self, page: Page, header: Header) {
        self.root = page;
        self.standing = header;
        self.store.usual = header.next.layout;
    }

    /// The chip has no room, or has none beside what named checkpoints keep.
    fn no_room(&self) -> Error {
        let log = &self.store.log;
        log.no_room(log.pinned_blocks() > 0).into()
    }

    fn root_node(&self) -> At<Page> {
        At { id: self.root, level: self.height() - 1 }
    }

    fn height(&self) -> u8 {
        self.standing.layout.height
    }

    /// Makes one change, through the operation buffer if it is to wait there; or, for lack of room
    /// in that, a step towards it. True if it is made.
    fn update(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<bool> {
        if self.lets_wait(value.is_some()) && self.buffer.insert(key, value) {
            self.admission.count_made(value.is_some());
            return Ok(true);
        }
        // It is longer than the whole buffer, or adds no node to the tree as it is.
        if !self.write_oldest()? {
            self.make_room_for_one()?;
            self.change(key, value, Cause::Update)?;
            self.admission.count_made(value.is_some());
            return Ok(true);
        }
        Ok(false)
    }

    /// True if a step of a change may find too few pages free. Without a journal what a batch
    /// writes is free before it is taken.
    fn is_short(&self) -> bool {
        let log = &self.store.log;
        // Beside named checkpoints, too, all was free; there the reserve is in hand.
        let needed = match log.pinned_blocks() {
            0 => self.reserve_blocks(),
            _ => self.room().change_blocks() + u64::from(self.spare_blocks()),
        };
        log.durability().has_journal() && u64::from(log.free_blocks()) < needed
    }
}

impl Read for PathTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.limits.check_key(key))? {
            return Ok(None);
        }
        if let Some((_, held)) = self.buffer.get(key) {
            return Ok(held.map(|value| read_piece(value, offset, into)));
        }
        let root = self.root_node();
        btree::read(&mut self.store, root, key, (offset, into))
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let range = range.within_length(|key| self.limits.check_key(key))?;
        let root = self.root_node();
        Ok(Box::new(Scan::new(&mut self.store, &self.buffer, root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.limits.check_key(key))?;
        let root = self.root_node();
        btree::resume_after(&mut self.store, root, key)
    }

    fn statistics(&self) -> Statistics {
        let memory = Memory {
            cache: self.store.cache_bytes(),
            buffers: self.working_bytes() + self.buffer.memory_bytes() as u64,
            tables: self.store.log.table_bytes() + self.live.memory_bytes(),
            ftl: 0,
        };
        Statistics {
            height: u32::from(self.height()),
            live_pages: u64::from(self.standing.live_pages),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        tell(index::NODES_EMPTIED, self.emptied);
        tell(index::LEAVES, self.nodes[0].into());
        tell(index::INNER_NODES, self.inner_nodes());
        tell(index::UPDATES_WAITING, self.buffer.len() as u64);
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.log.meter()
    }
}

impl Tree for PathTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits.check_batch(batch)?;
        self.admit_updates(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        while !self.apply_step(update)? {}
        Ok(())
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.allow_growth();
        match update {
            Update::Put { key, value } => self.update(key, Some(value)),
            Update::Delete { key } => self.update(key, None),
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    fn wants_room(&self) -> bool {
        self.is_short()
    }

    fn reclaim(&mut self) -> Result<()> {
        match self.empty_blocks()? {
            true => Ok(()),
            false => Err(self.no_room()),
        }
    }

    fn rebase(&mut self) {
        self.begin_replay();
    }

    fn waits_for_checkpoint(&self) -> bool {
        // A checkpoint is the base again of what is promised.
        self.store.log.blocks_to_erase() > 0 || self.admission.lacks_base
    }

    fn has_waiting(&self) -> bool {
        self.buffer.len() > 0
    }

    fn flush(&mut self) -> Result<()> {
        self.write_next()
    }

    fn is_drained(&self) -> bool {
        let is_written = self.durably != Durably::Not || self.buffer.len() == 0;
        is_written && self.admission.wanted == 0
    }

    fn drain(&mut self) -> Result<bool> {
        if self.durably == Durably::Not {
            return self.write_oldest();
        }
        let is_gained = self.empty_blocks()?;
        if !is_gained || self.free_soon() >= self.admission.wanted {
            self.admission.wanted = 0;
        }
        Ok(is_gained)
    }

    fn is_poisoned(&self) -> bool {
        // Nothing of a change counts before its last page stands.
        false
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.load_sorted(sorted, fill_percent)
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        Ok(self.root_bytes())
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        self.restore_from(root)
    }

    fn pin_savepoints(&mut self) -> Result<()> {
        self.pin_named()
    }

    fn entry_bytes_most(&self) -> usize {
        self.limits.entry
    }

    fn pages_changed(&self, _batch: &[Update<'_>]) -> u32 {
        // Admission has seen to it.
        0
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.store.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.store.log
    }
}
