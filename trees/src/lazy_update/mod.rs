//! `lazy-update`: the B+-tree of On, Hu, Li and Xu (2010), whose updates wait for their leaves.
//!
//! An update goes to a pool in memory. When that is full, a group of requests that belong to one
//! leaf is committed: the leaf is read and written once for all of them. Which group, a policy
//! decides. The tree itself is `btree` over pages of a page file, as in `b-plus`.
//!
//! One update, from top to bottom: [`Tree::apply_step`] has it taken by the [`pool`]; where that is
//! full, [`victim`] chooses a group by what the [`list`] knows, [`forming`] groups as nodes are
//! read, and [`commit`] makes it one change of a leaf, alone or with its [`super_group`].
//!
//! # Choices that the paper leaves open
//! - The list is flat: see [`list`]. Its memory counts, as that of the pool does; the paper's
//!   request takes 12 bytes and its list none.
//! - Victims are found best first, and not in the order of a stack (algorithm 5): what is looked
//!   into is what algorithm 5 may have to look into, and no more. Ties go to the group that was hit
//!   longest ago under every policy; a group that is formed was hit when its index block was.
//! - Whether a leaf that gets less than half full merges or takes entries over is not told apart.
//! - Ranges form groups on the way to their first leaf. Lookups commit nothing: an update commits
//!   those of the dirty leaves that may leave the cache for it.
//! - A request is a put or a delete, and the last one for a key wins. A put and the delete after it
//!   cancel out where the leaf was in the cache and did not have the key.
//! - What waits at a checkpoint is written to pages of its own; so it lasts as the tree does.
//! - One commit takes at most as many puts as a leaf may hold; more of one leaf come with the next.
//! - Leaves are not linked, so merging writes no neighbour's chain.
//! - While checkpoints are kept by name, and on a disk too full for the images of a commit, updates
//!   are made at once. Where nodes share sectors nothing waits.
//!
//! # Invariants
//! - As `btree`, `pool` and `list` have them.
//! - What is in the pool was let in as if it were made already.

mod blocks;
mod check;
mod commit;
mod cost;
mod forming;
mod list;
mod make;
mod order;
mod pool;
mod room;
mod root;
mod super_group;
mod victim;
mod waiting;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Bound;

use device::Meter;
use store::node::Stored;
use store::{LogicalPage, Recovery, Update};

use crate::btree::{self, At, BTree, NodeSource, PageStore, Puts, Scan};
use blocks::BlockId;
use index::bounds::{EntryLimits, can_be};
use index::parameters::{Kind, Parameter};
use index::{
    Cursor, Direction, KeyRange, Read, Result, Resume, Statistics, Tree, UPDATES_WAITING,
    read_piece,
};
use index::{DeletePolicy, NODES_MERGED, NODES_SPLIT, TreeDescriptor};
use make::Choices;
use order::Policy;
use pool::Taken;
use room::Saved;
use root::Root;
use waiting::Waiting;

/// The registry's line.
pub(crate) const ENTRY: TreeDescriptor = TreeDescriptor {
    name: NAME,
    about: "a B+-tree whose updates wait in memory and are committed in groups, a leaf at a time",
    paper: "On, Hu, Li and Xu (2010)",
    nand: false,
    sectors: true,
    deletes: |_| DeletePolicy::Merge,
    tables_part: |_| 0,
    long_values: false,
    parameters: PARAMETERS,
    create: make::create,
    open: make::open,
    footprint: make::footprint,
    predict: cost::predict,
};

const NAME: &str = "lazy-update";

/// Nodes are never filled to less than half, which a delete would mend at once.
const FILL_LEAST: u8 = 50;

const NODE: Parameter = Parameter {
    name: "node",
    about: "bytes in a node: a multiple or a whole fraction of the device's page",
    kind: Kind::Bytes,
    default: "",
};

const FILL: Parameter = Parameter {
    name: "fill",
    about: "percent of a node that loading, and keys in ascending order, fill",
    kind: Kind::Percent(FILL_LEAST),
    default: "70",
};

const POLICY: Parameter = Parameter {
    name: "policy",
    about: "which group is committed when the pool is full",
    kind: Kind::Word(Policy::NAMES),
    default: "cost-based",
};

const POOL: Parameter = Parameter {
    name: "pool",
    about: "share of the memory in which updates wait; the page cache has the rest",
    kind: Kind::Ratio(0.0, 0.94),
    default: "0.5",
};

const PRUNING: Parameter = Parameter {
    name: "pruning",
    about: "read only those nodes whose requests may be the next to be committed",
    kind: Kind::Word(&["on", "off"]),
    default: "on",
};

const SUPER_GROUPS: Parameter = Parameter {
    name: "super-groups",
    about: "commit groups of neighbouring leaves together where that saves writes: with the one \
            that is chosen, or choosing among such sets",
    kind: Kind::Word(&["none", "first", "second"]),
    default: "none",
};

/// Victims come by the policy, as sections 4.2 to 4.4 have it.
const PARAMETERS: &[Parameter] = &[NODE, FILL, POLICY, POOL, PRUNING, SUPER_GROUPS];

/// What happened, for the figures.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    commits: u64,
    chosen: u64,
    together: u64,
    answered: u64,
    committed: u64,
    cancelled: u64,
    replaced: u64,
    formed: u64,
    sized: u64,
    pruned: u64,
    rides: u64,
    rides_alone: u64,
    savings: [u64; 3],
    splits: u64,
    merges: u64,
    shifts: u64,
}

/// The tree.
pub(crate) struct LazyUpdate<'d> {
    store: PageStore<'d>,
    btree: BTree<LogicalPage>,
    waiting: Waiting,
    /// The pool as the last checkpoint has it.
    saved: Saved,
    /// Puts that a replay would make, with those that waited at the last checkpoint.
    puts: Puts,
    choices: Choices,
    is_waiting_allowed: bool,
    /// Updates were refused that there may be room for if the pool takes less.
    is_tight: bool,
    /// Nodes that the pool may have from the next checkpoint on.
    nodes_next: usize,
    /// Updates of the batch that was let in last.
    batch_updates: usize,
    /// Groups of one parent, with the places of their leaves.
    siblings: Vec<(u16, BlockId)>,
    sibling_key: Vec<u8>,
    counted: Counted,
}

impl LazyUpdate<'_> {
    fn limits(&self) -> EntryLimits {
        let codecs = &self.store.codecs;
        let (key, entry) = (codecs.key_bytes_most(), self.entry_bytes_most());
        EntryLimits { shape: codecs.shape, key, entry }
    }

    fn append(&mut self, key: &[u8], value: &[u8], fill: u8) -> Result<()> {
        let entry = (key, Stored::inline(value));
        if self.btree.append(&mut self.store, entry, fill)? {
            return Ok(());
        }
        let pages = 2 * (u64::from(self.btree.height()) + 1) + 1 + self.pages_of_pool();
        if !self.store.file.has_pages(pages)? {
            let pages = u64::from(self.store.file.pages_most());
            return Err(store::Error::Full { pages }.into());
        }
        let leaf = self.btree.begin_leaf(&mut self.store, key, fill)?;
        if !self.btree.append(&mut self.store, entry, fill)? {
            return Err(self.store.damaged(leaf, "it is empty and has no room"));
        }
        Ok(())
    }

    /// The key of `update`, and its value if it is a put.
    fn split<'u>(update: &Update<'u>) -> Result<(&'u [u8], Option<&'u [u8]>)> {
        match *update {
            Update::Put { key, value } => Ok((key, Some(value))),
            Update::Delete { key } => Ok((key, None)),
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    fn count_put(&mut self, (key, value): (&[u8], Option<&[u8]>)) {
        if let Some(value) = value {
            self.puts = self.puts.and(Puts::one(key.len() + value.len()));
        }
    }
}

impl Read for LazyUpdate<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        if !can_be(self.limits().check_key(key))? {
            return Ok(None);
        }
        if let Some((kind, value)) = self.waiting.pool.get(key) {
            self.counted.answered += 1;
            return Ok(kind.is_put().then(|| read_piece(value, offset, into)));
        }
        // The search starts at the lowest node that the list knows.
        let start = self.waiting.block_of(key).map_or(self.btree.root, |(_, block)| block.at());
        let found = btree::read(&mut self.store, start, key, (offset, into))?;
        if !self.waiting.is_empty() {
            self.form_behind_lookup(key)?;
        }
        Ok(found)
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        let range = range.within_length(|key| self.limits().check_key(key))?;
        let first = match range.direction {
            Direction::Ascending => range.from,
            Direction::Descending => range.to,
        };
        if let (Bound::Included(key) | Bound::Excluded(key), false) =
            (first, self.waiting.is_empty())
        {
            // The scan finds the same nodes in the cache.
            let start = self.waiting.block_of(key).map_or(self.btree.root, |(_, block)| block.at());
            btree::read(&mut self.store, start, key, (0, &mut []))?;
            self.form_behind_lookup(key)?;
        }
        let LazyUpdate { store, waiting, btree, .. } = self;
        Ok(Box::new(Scan::new(store, &waiting.pool, btree.root, range)?))
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        check::check(self, finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        key.map_or(Ok(()), |key| self.limits().check_key(key))?;
        btree::resume_after(&mut self.store, self.btree.root, key)
    }

    fn statistics(&self) -> Statistics {
        let mut memory = self.store.file.memory();
        memory.buffers += make::buffer_bytes(&self.store.codecs) + self.waiting.memory_bytes();
        Statistics {
            height: self.btree.height().into(),
            live_pages: self.store.file.sectors_used(),
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        let counted = &self.counted;
        tell(UPDATES_WAITING, self.waiting.pool.len() as u64);
        tell(NODES_SPLIT, counted.splits);
        tell(NODES_MERGED, counted.merges);
        tell("nodes evened out", counted.shifts);
        tell("lookups answered by requests", counted.answered);
        tell("groups committed", counted.commits);
        tell("groups chosen by the policy", counted.chosen);
        tell("groups committed together", counted.together);
        tell("requests committed", counted.committed);
        tell("requests cancelled out", counted.cancelled);
        tell("requests replaced", counted.replaced);
        tell("index blocks divided", counted.formed);
        tell("leaves sized", counted.sized);
        tell("choices that pruned blocks", counted.pruned);
        tell("commits that rode along", counted.rides);
        tell("commits that rode along, without a group", counted.rides_alone);
        tell("groups joined, both rebalance", counted.savings[0]);
        tell("groups joined, neighbours", counted.savings[1]);
        tell("groups joined, chained", counted.savings[2]);
    }

    fn meter(&self) -> Option<&Meter> {
        self.store.file.meter()
    }
}

impl Tree for LazyUpdate<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.limits().check_batch(batch)?;
        self.batch_updates = batch.len();
        self.allow_waiting(batch.len());
        if !self.is_waiting_allowed && !self.waiting.is_empty() {
            // What waits makes way first: then nothing but the update itself needs room.
            return Err(self.store.full());
        }
        let mut puts = Puts::default();
        for update in batch {
            if let (key, Some(value)) = Self::split(update)? {
                puts = puts.and(Puts::one(key.len() + value.len()));
            }
        }
        if puts.count == 0 {
            // Deletes take nothing but what is kept free for the pool.
            return Ok(());
        }
        let puts = puts.and(self.puts_before());
        if !self.store.file.durability().has_journal() {
            self.waiting.pool.requests.nodes_most = self.nodes_for(&puts);
        }
        let pages = self.store.pages_needed(&puts, &self.btree) + self.pages_of_pool();
        let admitted = self.store.check_free(pages);
        self.is_tight = admitted.is_err() && self.store.file.durability().has_journal();
        admitted
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        // Nobody admitted what a damaged journal holds.
        self.limits().check_batch(core::slice::from_ref(update))?;
        let (key, value) = Self::split(update)?;
        self.count_put((key, value));
        self.make_at_once(key, value)
    }

    fn apply_step(&mut self, update: &Update<'_>) -> Result<bool> {
        self.limits().check_batch(core::slice::from_ref(update))?;
        let (key, value) = Self::split(update)?;
        if !self.lets_wait(key.len(), value.map_or(0, <[u8]>::len)) {
            return self.apply(update).map(|()| true);
        }
        let is_bounded = self.is_bounded();
        let was_committed = self.ride_along()?;
        if was_committed && !is_bounded {
            return Ok(false);
        }
        let bytes = value.unwrap_or_default();
        let kind = self.kind_of(key, value);
        let mut taken = self.waiting.take(key, (kind, bytes));
        if taken == Taken::Full && !(was_committed || self.waiting.is_empty()) {
            self.commit_next()?;
            if !is_bounded {
                return Ok(false);
            }
            // What waited of the same key may be in the tree now.
            let kind = self.kind_of(key, value);
            taken = self.waiting.take(key, (kind, bytes));
        }
        match taken {
            Taken::Full => return self.apply(update).map(|()| true),
            Taken::Cancelled => self.counted.cancelled += 1,
            Taken::Replaced(_) => self.counted.replaced += 1,
            Taken::New => {}
        }
        self.count_put((key, value));
        Ok(true)
    }

    fn has_waiting(&self) -> bool {
        self.saved.unread.is_some()
    }

    fn flush(&mut self) -> Result<()> {
        self.make_next_unread()
    }

    fn pages_promised(&self) -> Option<u64> {
        let waiting = self.store.pages_needed(&self.waiting.pool.puts, &self.btree);
        Some(waiting + 2 * self.pages_of_pool())
    }

    fn rebase(&mut self) {
        self.puts = self.waiting.pool.puts;
        self.waiting.pool.requests.nodes_most = self.nodes_next;
        self.is_tight = false;
    }

    fn is_drained(&self) -> bool {
        self.waiting.is_empty()
    }

    fn drains_first(&self) -> bool {
        true
    }

    fn drain(&mut self) -> Result<bool> {
        let mut has_changed = false;
        while !self.waiting.is_empty() && (!has_changed || self.has_images()) {
            match self.is_waiting_allowed {
                true => self.commit_next()?,
                false => self.make_first_at_once()?,
            }
            has_changed = true;
        }
        Ok(has_changed)
    }

    fn is_poisoned(&self) -> bool {
        self.btree.is_poisoned
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        if self.btree.entries > 0 || !self.waiting.is_empty() {
            return Err(index::Error::NotEmpty);
        }
        self.btree.begin_load(&mut self.store)?;
        let fill = make::fill_percent(u64::from(fill_percent));
        let taken = self.limits().take_sorted(sorted, |key, value| self.append(key, value, fill));
        self.follow(false);
        taken
    }

    fn root_record(&mut self) -> Result<Vec<u8>> {
        if !self.has_waiting() {
            self.save_pool()?;
            self.waiting.pool.trusts_fresh |= self.waiting.is_empty();
        }
        self.store.file.write_back_all()?;
        // A replay from here never fills more than is allowed here, now and behind the checkpoint.
        self.nodes_next = self.nodes_for(&self.waiting.pool.puts);
        let nodes_most = self.nodes_next.min(self.waiting.pool.requests.nodes_most);
        let root = Root {
            shape: self.store.codecs.shape,
            page: self.btree.root.id,
            height: self.btree.height(),
            entries: self.btree.entries,
            pool: self.saved.pool,
            // Puts that were made already may be among those that were saved as fresh.
            is_begun: self.has_waiting() || !self.waiting.pool.trusts_fresh,
            nodes_most: nodes_most as u32,
        };
        Ok(root.encode())
    }

    fn restore(&mut self, record: &[u8]) -> Result<()> {
        let root = Root::decode(record)?;
        if root.page.0 >= self.store.file.pages_used().1
            || root.height == 0
            || root.shape != self.store.codecs.shape
        {
            return Err(root::damaged().into());
        }
        self.btree.root = At { id: root.page, level: root.height - 1 };
        self.btree.entries = root.entries;
        self.btree.is_poisoned = false;
        self.waiting.clear(&self.store.codecs, self.btree.root);
        self.saved = Saved { pool: root.pool, unread: None };
        self.waiting.pool.trusts_fresh = !root.is_begun;
        if let Some(pool) = root.pool {
            let read = self.read_pool(pool);
            if read.is_err() {
                self.waiting.clear(&self.store.codecs, self.btree.root);
            }
            read?;
        }
        self.waiting.begin_list(&self.store.codecs, self.btree.root);
        self.puts = self.waiting.pool.puts;
        let requests = &mut self.waiting.pool.requests;
        requests.nodes_most = self.waiting.division.nodes.min(root.nodes_most as usize);
        Ok(())
    }

    fn entry_bytes_most(&self) -> usize {
        self.store.codecs.leaf.entry_bytes_most()
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        self.pages_changed_by(batch.len().max(1))
    }

    fn checkpoints_within(&self) -> bool {
        true
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.store.file
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.store.file
    }
}
