//! `la-tree`: the lazy-adaptive tree of Agrawal, Ganesan, Sitaraman, Diao and Singh (VLDB 2009).
//!
//! A B+-tree whose updates wait in buffers on flash, at every K-th level, and go down in batches.
//! ADAPT ([`policy`]) decides for each buffer when it is emptied: large buffers where updates
//! dominate, small ones where lookups do.
//!
//! One `put`, from top to bottom: it is appended to the root's buffer (`buffers`), which holds
//! entries in memory until the pool is full. When a buffer is too large, or a lookup finds that it
//! should have been emptied before, it is emptied (`subtree`): sorted, and handed to the buffers
//! at the next buffered level or to the leaves. Leaves split (`growth`), borrow and merge
//! (`shrinking`).
//! On raw flash nodes are small, never stay where they were, and are found by a table (`nodes`); on
//! a disk they are pages, rewritten in place (`in_place`).
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

pub mod policy;

mod admission;
mod behind;
mod buffer_pool;
mod buffers;
mod cache;
mod check;
mod chunks;
mod cost;
mod counters;
mod descent;
mod emptying;
mod ground;
mod growth;
mod in_place;
mod layout;
mod load;
mod nodes;
mod plan;
mod reclaim;
mod scan;
mod settle;
mod sharing;
mod shrinking;
mod space;
mod stream;
mod subtree;
mod table;
mod worst;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Medium, Meter};
use store::{PageLog, Recovery, Update};

use crate::bounds::can_be;
use crate::registry::{Deletes, Entry, Options};
use crate::{
    Behind, Cursor, Durable, Error, Index, KeyRange, Lookup, Result, Statistics, Tree, entry_size,
    read_piece, smallest_chip,
};
use buffer_pool::BufferId;
use buffers::Buffers;
use cost::{Estimator, TreeShape};
use counters::Counters;
use descent::{Bounds, Path};
use emptying::Sorter;
use ground::Ground;
use layout::NodeId;
use nodes::{Nodes, damaged};
use plan::Plan;
use policy::{Buffering, Decision};
use reclaim::Generation;
use sharing::Sharing;
use shrinking::PutOff;
use stream::{Form, Pending};
use subtree::{Flight, Top};
use table::BufferRecord;

/// The registry's line.
pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    about: "the lazy-adaptive tree: updates wait in buffers on flash, at every K-th level",
    paper: "Agrawal, Ganesan, Sitaraman, Diao, Singh: Lazy-Adaptive Tree (VLDB 2009)",
    nand: true,
    sectors: true,
    deletes: |_| Deletes::Merge,
    tables_grow: true,
    parameters: plan::PARAMETERS,
    create,
    open,
    least_memory: plan::least_memory,
    predict: plan::predict,
};

const NAME: &str = "la-tree";

/// The tree.
pub(crate) struct LaTree<'d> {
    log: Ground<'d>,
    plan: Plan,
    nodes: Nodes,
    buffers: Buffers,
    sorter: Sorter,
    /// The most bytes that the sorter takes.
    sorter_bytes: u32,
    policy: policy::Policy,
    estimator: Estimator,
    levels_a_buffer: u8,
    root: NodeId,
    /// Nodes from the root to a leaf; the root's level plus one.
    height: u8,
    /// Leaves, and entries in them.
    leaves: u64,
    entries: u64,
    path: Path,
    /// Of the node where the last descent ended.
    bounds: Bounds,
    top: Top,
    flight: Flight,
    put_off: PutOff,
    separator: Vec<u8>,
    previous: Vec<u8>,
    generation: Generation,
    /// Blocks that named checkpoints keep.
    pinned_blocks: u32,
    counters: Counters,
    sharing: Sharing,
    /// True from the first change after a checkpoint on: only then do lookups change anything.
    is_open: bool,
    whole: bool,
}

fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let chip = match medium {
        Medium::Nand(chip) => chip,
        Medium::Sectors(disk) => return in_place::create(disk, options),
    };
    let geometry = chip.geometry();
    let choices = plan::choices(options, geometry)?;
    let plan = Plan::new(options, options.shape, choices, geometry)?;
    let fewest = |chip| worst::fewest_blocks(&plan, chip, options);
    smallest_chip::check(options, geometry, geometry.blocks(), &fewest)?;
    let log = PageLog::create(chip, &options.page_log(false))?;
    smallest_chip::check(options, geometry, log.good_blocks(), &fewest)?;
    let mut tree = LaTree::over(Ground::Chip(log), plan)?;
    tree.plant()?;
    if options.is_stand_in {
        return Ok(Box::new(Durable::stand_in(tree)));
    }
    Ok(Box::new(Durable::create(tree)?))
}

fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let chip = match medium {
        Medium::Nand(chip) => chip,
        Medium::Sectors(disk) => return in_place::open(disk, options),
    };
    let geometry = chip.geometry();
    let (log, record) = PageLog::open_with(chip, &options.page_log(false))?;
    let (shape, choices) = settle::describe(&record)?;
    let durability = Some(log.durability());
    let options = Options { durability, ..options.clone() };
    let plan = Plan::new(&options, shape, choices, geometry)?;
    let mut tree = LaTree::over(Ground::Chip(log), plan)?;
    tree.restore(&record)?;
    tree.check_tables_now()?;
    Ok(Box::new(Durable::open(tree)?))
}

impl<'d> LaTree<'d> {
    fn over(mut log: Ground<'d>, plan: Plan) -> Result<Self> {
        log.give_back_at_rollback();
        let form = Form::new(plan.shape);
        let what = "they can't hold four entries";
        let bytes = plan.pages.node_bytes();
        let nodes = Nodes::new(plan.shape, plan.pages, plan.cache, plan.chunks);
        let nodes = nodes.ok_or(store::Error::NodeSize { bytes, what })?;
        let what = "the chip has more places for such nodes than can be numbered";
        plan.pages.places(log.pages()).ok_or(store::Error::NodeSize { bytes, what })?;
        let units = log.unit_costs(&plan.pages);
        let most = plan.sizes.entry_most;
        Ok(LaTree {
            log,
            nodes,
            buffers: Buffers::new(form, plan.pages, &plan.sizes),
            sorter: Sorter::new(form, plan.sorter_bytes, plan.sorter_entries),
            sorter_bytes: plan.sorter_bytes,
            policy: plan.policy,
            estimator: Estimator::new(units, plan.basis),
            levels_a_buffer: plan.levels_a_buffer,
            root: NodeId(0),
            height: 1,
            leaves: 0,
            entries: 0,
            path: Path::new(),
            bounds: Bounds::with_capacity(most),
            top: Top::new(most),
            flight: Flight::new(most, most),
            put_off: PutOff::new(most),
            separator: Vec::with_capacity(most),
            previous: Vec::with_capacity(most),
            generation: Generation::default(),
            pinned_blocks: 0,
            counters: Counters::default(),
            sharing: Sharing::default(),
            is_open: false,
            whole: true,
            plan,
        })
    }

    /// Makes the root of an empty tree.
    fn plant(&mut self) -> Result<()> {
        self.root = self.nodes.create(&mut self.log, true, 0)?;
        let owner = self.buffers.owner(&self.log)?;
        if let Some(number) = self.root.buffer() {
            self.buffers.set_record(number, BufferRecord::new(owner, 1, 1));
        }
        self.leaves = 1;
        self.is_open = true;
        Ok(())
    }

    /// Refuses to go on after a change that was broken off.
    fn check_whole(&self) -> Result<()> {
        if self.whole {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: "a change of the tree was broken off by an error: open the index again",
        })
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.plan.shape.key {
            // On a disk a key that no entry can have is just absent, as in all trees there.
            store::Width::Variable if self.log.is_disk() => Ok(()),
            store::Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: u64::from(bytes), found: key.len() as u64 })
            }
            store::Width::Variable => {
                let limit = self.nodes.inner.entry_bytes_most().min(self.plan.entry_most);
                let limit = limit.saturating_sub(usize::from(nodes::CHILD_BYTES));
                if key.len() > limit {
                    let (found, limit) = (key.len() as u64, limit as u64);
                    return Err(Error::KeyTooLong { found, limit });
                }
                Ok(())
            }
            store::Width::Fixed(_) => Ok(()),
        }
    }

    fn check_entry(&self, key: &[u8], value_bytes: usize) -> Result<()> {
        self.check_stored_key(key)?;
        match self.plan.shape.value {
            store::Width::Variable if self.log.is_disk() => {
                let (found, limit) = (value_bytes as u64, u64::from(u32::MAX));
                if found > limit {
                    return Err(Error::ValueTooLong { found, limit });
                }
                Ok(())
            }
            store::Width::Fixed(bytes) if value_bytes != usize::from(bytes) => {
                Err(Error::ValueLength { expected: u64::from(bytes), found: value_bytes as u64 })
            }
            _ => entry_size(key.len() + value_bytes, self.plan.entry_most),
        }
    }

    /// Puts `value`, or the delete of `key`, into the root's buffer; without buffers into its leaf,
    /// if nothing stands against that.
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let entry = Pending { key, value };
        if self.plan.buffering == Buffering::None {
            if self.buffers.pending != [0; 2] {
                // The tree had buffers when it was used before, or updates had to wait.
                self.empty_all(Cause::Flush)?;
            }
            // A leaf must not be newer than a buffer above it, and takes a step of the way back.
            if self.buffers.pending == [0; 2] && self.may_step() {
                self.note_gone_down(self.buffers.form.bytes(&entry) as u32 + 1);
                self.take_single(key, value);
                self.distribute_to_leaves(Cause::Update)?;
                return self.lower_root(Cause::Update);
            }
        }
        let number =
            self.root.buffer().ok_or(damaged(device::Page(0), "the root has no buffer"))?;
        self.buffers.append(&mut self.log, number, &entry, Cause::Flush)?;
        let bytes = self.buffers.form.bytes(&entry) as u32 + 1;
        self.counters.put_estimated += self.estimator.entries(bytes);
        // In a replay, no checkpoint makes room for emptying again once a half was reclaimed.
        let (policy, may_empty) = (self.policy, !self.generation.is_waiting);
        if let Some(record) = self.buffers.record_mut(number) {
            let bytes = u64::from(record.bytes);
            let is_full = policy.at_update(&mut record.registers, bytes) == Decision::Empty;
            if is_full && may_empty {
                self.buffers.list(number);
                self.empty_listed(Cause::Flush)?;
            }
        }
        Ok(())
    }

    /// H and F.
    fn tree_shape(&self) -> TreeShape {
        TreeShape {
            height: u32::from(self.height),
            fanout: self.nodes.leaf.capacity(self.plan.sizes.entry_least, 4) as u32,
        }
    }

    /// What buffer `number` costs.
    fn estimate(&mut self, number: u32) -> policy::Estimate {
        self.estimator.rates.stored = self.buffers.stored;
        self.estimator.estimate(&self.buffers.subtree(number), self.tree_shape())
    }

    /// What ADAPT is told of buffer `number`: what a scan and emptying it cost. With
    /// `estimate=all`, what it has in the pool counts as if it were a fragment on flash, but where
    /// the pool has room for all: what is there keeps other buffers out, which go to flash.
    fn estimate_for_adapt(&mut self, number: u32) -> policy::Estimate {
        let mut estimate = self.estimate(number);
        let held = self.buffers.pool.held(BufferId(number));
        estimate.scan += cost::search_of_held(held.entries);
        if held.entries == 0 || !self.plan.counts_pool || !self.buffers.is_pool_short() {
            return estimate;
        }
        let held = cost::scan_of_held(&self.estimator.units, held.bytes);
        policy::Estimate { scan: estimate.scan + held, emptying: estimate.emptying + held }
    }

    /// Asks ADAPT whether buffer `number`, which a lookup is to scan, is to be emptied before.
    fn is_to_be_emptied(&mut self, number: u32) -> bool {
        let estimate = self.estimate_for_adapt(number);
        let policy = self.policy;
        let is_wanted = self.buffers.record_mut(number).is_some_and(|record| {
            record.entries > 0
                && policy.at_lookup(&mut record.registers, estimate) == Decision::Empty
        });
        is_wanted && self.is_open && self.has_space_to_empty(number)
    }

    /// Empties buffer `number` because of a lookup.
    fn empty_for_lookup(&mut self, number: u32) -> Result<()> {
        self.whole = false;
        let leaf = usize::from(self.buffers.record(number).leaves > 0);
        self.counters.emptied_for_lookups[leaf] += 1;
        self.buffers.list(number);
        self.empty_listed(Cause::Flush)?;
        self.whole = true;
        Ok(())
    }

    /// Figure 2(c): through all buffers of the way, from the root down.
    fn find(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        // Buffers at this level and above were searched.
        let mut searched = self.height;
        'again: loop {
            let (mut level, mut id) = (self.height - 1, self.root);
            loop {
                if let Some(number) = id.buffer().filter(|_| level < searched) {
                    if self.is_to_be_emptied(number) {
                        self.empty_for_lookup(number)?;
                        continue 'again;
                    }
                    searched = level;
                    let read = &mut |entry: &Pending<'_>| {
                        entry.value.map(|value| read_piece(value, offset, into))
                    };
                    let before = self.time_ns();
                    if let Some(found) = self.buffers.find(&mut self.log, number, key, read)? {
                        return Ok(found);
                    }
                    self.note_scan(number, before);
                }
                let codec = self.nodes.at(level);
                let node = self.nodes.node(&mut self.log, id, level, Cause::Lookup)?;
                let place = codec.search(node, key);
                if level == 0 {
                    let Ok(place) = place else {
                        return Ok(None);
                    };
                    return self.read_stored(id, place, offset, into).map(Some);
                }
                let place = place.unwrap_or_else(|place| place.saturating_sub(1));
                id = self.child(id, level, place, Cause::Lookup)?;
                level -= 1;
            }
        }
    }
}

impl Lookup for LaTree<'_> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        let can_be = can_be(self.check_key(key))?;
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

    fn behind(&mut self, key: Option<&[u8]>) -> Result<Behind> {
        self.check_whole()?;
        behind::behind(self, key)
    }

    fn statistics(&self) -> Statistics {
        let below = self.log.memory();
        let memory = store::Memory {
            cache: below.cache + self.nodes.cache.memory_bytes(),
            buffers: below.buffers + self.plan.fixed_bytes + self.buffers.pool.memory_bytes(),
            tables: self.table_bytes(),
            ftl: below.ftl,
        };
        let nodes = self.nodes.count(&self.log);
        let nodes = nodes.div_ceil(u64::from(self.plan.pages.nodes_per_page()));
        Statistics {
            height: u32::from(self.height),
            live_pages: match self.log.disk() {
                Some(disk) => disk.file.sectors_used(),
                None => nodes + self.fragment_pages() + self.chunk_pages(),
            },
            memory,
            memory_peak: memory.cache + memory.buffers + memory.tables,
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        counters::tell(self, tell);
    }

    fn meter(&self) -> Option<&Meter> {
        self.log.meter()
    }
}

impl Tree for LaTree<'_> {
    fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.check_whole()?;
        for update in batch {
            match update {
                Update::Put { key, value } => self.check_entry(key, value.len())?,
                Update::Delete { key } => self.check_stored_key(key)?,
                Update::Adopt { key, .. } if self.has_long_values() => {
                    self.check_stored_key(key)?;
                }
                Update::Adopt { .. } => return Err(store::Error::AdoptedTwice.into()),
            }
        }
        self.admit_room(batch)
    }

    fn apply(&mut self, update: &Update<'_>) -> Result<()> {
        self.check_whole()?;
        match update {
            Update::Put { key, value } => self.check_entry(key, value.len())?,
            Update::Delete { key } => self.check_stored_key(key)?,
            Update::Adopt { key, .. } if self.has_long_values() => self.check_stored_key(key)?,
            // A journal says so: nothing that was written here does.
            Update::Adopt { .. } => return Err(store::Error::AdoptedTwice.into()),
        }
        self.is_open = true;
        self.whole = false;
        self.reclaim_if_due()?;
        match update {
            Update::Put { key, value } => {
                if !self.put_long(key, value)? {
                    self.change(key, Some(value))?;
                }
            }
            Update::Delete { key } => self.change(key, None)?,
            Update::Adopt { key, value } => self.adopt_value(key, *value)?,
        }
        self.empty_owed()?;
        self.share_memory()?;
        self.whole = true;
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.check_whole()?;
        self.is_open = true;
        self.load_sorted(sorted, fill_percent)
    }

    fn maintain(&mut self, pages: u32) -> Result<bool> {
        self.check_whole()?;
        self.whole = false;
        let more = self.maintain_pages(pages)?;
        self.whole = true;
        Ok(more)
    }

    fn settle(&mut self) -> Result<Vec<u8>> {
        self.check_whole()?;
        self.write_state()
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.generation.is_waiting
    }

    fn restore(&mut self, root: &[u8]) -> Result<()> {
        self.read_state(root)
    }

    fn admit_named(&mut self) -> Result<()> {
        // On a disk the page file counts what names keep, and what forgetting takes.
        if self.log.is_disk() { Ok(()) } else { self.admit_name() }
    }

    fn keep_named(&mut self) -> Result<()> {
        // On a disk the page file keeps the way back by itself.
        if self.log.is_disk() { Ok(()) } else { self.pin_named() }
    }

    fn entry_bytes_most(&self) -> usize {
        self.plan.entry_most
    }

    fn is_settled(&self) -> bool {
        // On raw flash what is pending is settled while an update is admitted, unless that may not
        // change anything yet: the tree was opened, and nothing else says that it is open again.
        let settles = !self.log.is_disk() && (self.is_open || self.is_durable());
        settles || self.buffers.pending == [0; 2] && !self.may_compact()
    }

    fn drain(&mut self) -> Result<bool> {
        self.check_whole()?;
        self.is_open |= self.may_step();
        self.whole = false;
        let drained = self.drain_some()?;
        self.whole = true;
        Ok(drained)
    }

    fn pages_changed(&self, batch: &[Update<'_>]) -> u32 {
        if self.log.is_disk() {
            return self.pages_changed_on_disk(batch);
        }
        // What was reclaimed is erased by the next checkpoint, which is due then.
        if self.generation.is_waiting { u32::MAX } else { 0 }
    }

    fn recovery(&self) -> &dyn Recovery {
        self.log.recovery()
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        self.log.recovery_mut()
    }
}
