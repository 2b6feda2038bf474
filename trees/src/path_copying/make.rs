//! Making and opening a tree, and what memory it needs.

use alloc::boxed::Box;
use alloc::vec::Vec;
use device::{Cause, Geometry, Nand};
use store::{EntryShape, PageLog, Recovery};

use super::admission::Admission;
use super::collection::PASSED_OVER_MOST;
use super::descent::{CopiedPath, Spot};
use super::flush::{self, Flush};
use super::layout::{Division, HEIGHT_MOST, Layout, Pages, SHARED_MOST};
use super::live::LivePages;
use super::page::Header;
use super::path_nodes::PathNodes;
use super::plan::worst::{leaf_bytes, path_bytes};
use super::plan::{Level, Plan, Scratch};
use super::policy::{Bounds, Policy};
use super::recent::Recent;
use super::room::{Room, growth_of};
use super::root::Root;
use super::{Durably, PathTree};
use index::entries_of_a_block;
use index::parameters::{Kind, Parameter};
use index::random_keys::average_bytes;
use index::{Durable, Index, Result, Tree};
use index::{Footprint, MediumShape, Options};

/// What is chosen of a tree beside what [`Options`] say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// The tree's name.
    pub(crate) name: &'static str,
    pub(crate) division: Division,
    /// Alpha, beta and delta; where a page is not divided by them, they mean nothing.
    pub(crate) bounds: Bounds,
    /// Share of the blocks below which free ones are made.
    pub(crate) collect: f64,
    /// Share of the memory left over that caches nodes; the rest is the operation buffer.
    pub(crate) cache: f64,
    /// What leaves the operation buffer together.
    pub(crate) flush: Flush,
}

/// The parameter of every tree that copies its paths: when collection begins.
pub(crate) const COLLECT: Parameter = Parameter {
    name: "collect",
    about: "share of the blocks below which free ones are made by collection",
    kind: Kind::Ratio(0.01, 0.5),
    default: "0.1",
};

/// The parameter of every tree that copies its paths: what the node cache gets.
pub(crate) const CACHE: Parameter = Parameter {
    name: "cache",
    about: "share of the memory left over that caches nodes; the rest is the operation buffer",
    kind: Kind::Ratio(0.0, 1.0),
    default: "0.5",
};

impl Choice {
    /// What `options` choose, of which `collect`, `cache` and `flush` are parameters.
    pub(crate) fn new(
        name: &'static str,
        division: Division,
        bounds: Bounds,
        options: &Options,
    ) -> Self {
        let collect = options.settings.ratio(COLLECT.name).unwrap_or(0.1);
        let cache = options.settings.ratio(CACHE.name).unwrap_or(0.5);
        let flush = options.settings.word(flush::NAME).and_then(Flush::of_word);
        let flush = flush.unwrap_or(Flush::usual(division));
        Choice { name, division, bounds, collect, cache, flush }
    }
}

/// The least memory with which an operation buffer is worth having, in bytes.
const BUFFER_BYTES_LEAST: u64 = 256;

/// Nodes that a tree of a block's worth of entries may have more than nodes that are half full.
const NODES_MORE: u64 = 16;

/// Room for cuts of a plan, at first.
const CUTS: usize = 64;

/// The policy of a tree of this division.
pub(crate) fn policy(
    division: Division,
    bounds: Bounds,
    (chip, shape): (Geometry, EntryShape),
) -> Result<Policy> {
    let pages = Pages::new(PageLog::content_bytes_on(chip), shape, division)?;
    let policy = match division {
        Division::Halves => Policy::halves(pages),
        Division::Even => Policy::adaptive(pages, bounds)?,
        Division::Whole => Policy::whole(pages),
    };
    let height = height_for(&policy, chip);
    Ok(policy.up_to(height))
}

/// The height that a tree of average entries needs at the most on `chip`, with one to spare: nodes
/// can be less than half full; but no more than can share a page. Longer keys make it higher
/// ([`PathTree::allow_height`]).
fn height_for(policy: &Policy, chip: Geometry) -> u8 {
    let pages = policy.pages();
    let (mut leaves, mut height) = (1u64, 1);
    while leaves < u64::from(chip.pages()) && height < SHARED_MOST {
        let layout = pages.layout(policy.bounds().beta, height.max(pages.together) + 1);
        let half = pages.capacity(&layout, height) as u64 / 2;
        leaves = leaves.saturating_mul(half.max(2));
        height += 1;
    }
    (height + 1).min(SHARED_MOST)
}

/// Bytes of memory that a tree works in, without the page log's: the nodes of a path, the page that
/// is made of them, a plan, keys and an entry, what a cursor or a replay holds, and, where lengths
/// vary, two more nodes.
pub(crate) fn working_bytes(policy: &Policy, page_bytes: u32) -> u64 {
    let pages = policy.pages();
    let nodes = if pages.is_variable() { 2 * u64::from(pages.area()) } else { 0 };
    let limits = policy.limits();
    let plan = usize::from(policy.height_most()) * size_of::<Level>() + CUTS * size_of::<usize>();
    let keys = 4 * limits.key + 4 * limits.entry;
    path_bytes(policy) + u64::from(page_bytes) + nodes + (plan + keys) as u64
}

/// What a tree needs on a medium; the blocks suffice for a block's worth of entries.
pub(crate) fn footprint(
    choice: &Choice,
    medium: MediumShape,
    options: &Options,
) -> Result<Footprint> {
    let chip = medium.chip(choice.name)?;
    let policy = policy(choice.division, choice.bounds, (chip, options.shape))?;
    let log = PageLog::least_memory(chip, &options.page_log());
    Ok(Footprint {
        memory_least: least_bytes(&policy, chip, log),
        tables: PageLog::table_bytes_on(chip),
        units_least: fewest_blocks(&policy, chip, options).into(),
    })
}

/// The least memory over a page log that takes `log` bytes of it. A table of live pages is part
/// of it where that is small.
fn least_bytes(policy: &Policy, chip: Geometry, log: u64) -> u64 {
    let working = working_bytes(policy, chip.page_bytes()) + log;
    working + LivePages::bytes_of(chip.pages(), (working, working / 8))
}

/// What is done with the memory beside what the tree works in, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// The table of live pages; 0 if there is none.
    pub(super) live: u64,
    /// The operation buffer; 0 if there is none.
    pub(super) buffer: u64,
    /// The node cache.
    pub(super) cache: u64,
}

impl Shares {
    /// The shares of a tree over a page log that takes `log` bytes, of which the node cache gets
    /// `cache` of what the table of live pages leaves.
    fn of(policy: &Policy, cache: f64, (chip, log): (Geometry, u64), options: &Options) -> Self {
        let taken = working_bytes(policy, chip.page_bytes()) + log;
        let left = options.memory_bytes.saturating_sub(taken);
        let live = LivePages::bytes_of(chip.pages(), (taken, left));
        let left = left - live;
        let buffer = (left as f64 * (1.0 - cache)) as u64;
        let buffer = if buffer < BUFFER_BYTES_LEAST { 0 } else { buffer };
        Shares { live, buffer, cache: left - buffer }
    }

    /// What they are of a tree that is to be made.
    pub(super) fn on(chip: Geometry, choice: &Choice, policy: &Policy, options: &Options) -> Self {
        let log = PageLog::least_memory(chip, &options.page_log());
        Shares::of(policy, choice.cache, (chip, log), options)
    }
}

/// Makes an empty tree.
pub(crate) fn create<'d>(
    nand: Box<dyn Nand + 'd>,
    choice: &Choice,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let chip = nand.geometry();
    let policy = policy(choice.division, choice.bounds, (chip, options.shape))?;
    policy.check_room()?;
    check_memory(&policy, options, PageLog::least_memory(chip, &options.page_log()), chip)?;
    let (medium, needs) = (MediumShape::Nand(chip), |like| footprint(choice, like, options));
    medium.check_units(chip.blocks(), needs)?;
    let log = PageLog::create(nand, &options.page_log())?;
    medium.check_units(log.good_blocks(), needs)?;
    let mut tree = over(log, policy, choice, options)?;
    tree.write_empty()?;
    Ok(Box::new(Durable::create(tree)?))
}

/// Blocks that suffice for a block's worth of entries on chips like this one.
fn fewest_blocks(policy: &Policy, chip: Geometry, options: &Options) -> u32 {
    let (pages, beta) = (*policy.pages(), policy.bounds().beta);
    // Entries that come in order leave nodes half full, and one put more is counted beside them.
    let half = |level: u8, least: usize| {
        let layout = pages.layout(beta, (level + 1).max(2));
        (pages.capacity(&layout, level) / 2).max(least) as u64
    };
    let leaves = entries_of_a_block(chip, options.shape).div_ceil(half(0, 1));
    let (mut nodes, mut inner, mut height) = (leaves, 0, 1);
    while nodes > 1 && height < policy.height_most() {
        nodes = nodes.div_ceil(half(height, 2));
        inner += nodes;
        height += 1;
    }
    let (mut demand, height) = (growth_of(policy), height.max(2));
    demand.levels[..usize::from(height)].fill(1);
    demand.levels[0] = u32::try_from(leaves * 9 / 8 + NODES_MORE).unwrap_or(u32::MAX);
    demand.levels[1] += u32::try_from(2 * inner).unwrap_or(u32::MAX);
    let own = PageLog::own_reserve_on(chip, &options.page_log(), 0);
    let has_room = |blocks: &u32| {
        Room::of(policy, height, chip, (*blocks, own)).fits_grown(&demand, demand.growth(1))
    };
    (own..u32::MAX).find(has_room).unwrap_or(u32::MAX)
}

/// The bounds that the index of such a tree has which exists, if `options` are for one.
///
/// # Errors
/// Its root record is damaged.
pub(crate) fn made_bounds(name: &str, options: &Options) -> Result<Option<Bounds>> {
    let record = options.made.as_deref();
    record.map(|record| Ok(Root::decode(record, name)?.bounds)).transpose()
}

/// Opens the tree on a chip.
pub(crate) fn open<'d>(
    nand: Box<dyn Nand + 'd>,
    choice: &Choice,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let chip = nand.geometry();
    let (log, record) = PageLog::open(nand)?;
    let root = Root::decode(&record, choice.name)?;
    let policy = policy(choice.division, root.bounds, (chip, root.shape))?;
    check_memory(&policy, options, log.buffer_bytes(), chip)?;
    let mut tree = over(log, policy, choice, options)?;
    tree.restore(&record)?;
    if !tree.recovery().checkpoints().is_empty() {
        // Before anything is written: a replay must find what is not to be touched.
        tree.pin_savepoints()?;
    }
    Ok(Box::new(Durable::open(tree)?))
}

fn check_memory(policy: &Policy, options: &Options, log: u64, chip: Geometry) -> Result<()> {
    let (have, need) = (options.memory_bytes, least_bytes(policy, chip, log));
    if have < need {
        return Err(store::Error::LittleMemory { have, need }.into());
    }
    Ok(())
}

fn over<'d>(
    log: PageLog<'d>,
    policy: Policy,
    choice: &Choice,
    options: &Options,
) -> Result<PathTree<'d>> {
    let durably = Durably::of(log.durability());
    let pages = *policy.pages();
    let limits = policy.limits();
    let chip = log.geometry();
    let shares = Shares::of(&policy, choice.cache, (chip, log.buffer_bytes()), options);
    let Shares { live, buffer, cache } = shares;
    let entry =
        usize::from(average_bytes(pages.shape.key)) + usize::from(average_bytes(pages.shape.value));
    let bounded = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let standing = empty(&policy);
    Ok(PathTree {
        name: choice.name,
        durably,
        root: device::Page(0),
        standing,
        path: CopiedPath::new(&pages, policy.height_most(), path_bytes(&policy)),
        plan: Plan::new(&policy),
        scratch: Scratch::new(&policy),
        addresses: Vec::with_capacity(CUTS),
        buffer: Recent::new(bounded(buffer), entry),
        flush: choice.flush,
        key: Vec::with_capacity(limits.entry),
        value: Vec::with_capacity(limits.entry),
        moved_key: Vec::with_capacity(limits.key),
        emptied: 0,
        victim: None,
        is_parted: false,
        passed_over: Vec::with_capacity(PASSED_OVER_MOST),
        collect: choice.collect,
        live: LivePages::new(live),
        limits,
        nodes: [0; HEIGHT_MOST as usize],
        growth: growth_of(&policy),
        leaf_bytes: leaf_bytes(&policy) as usize,
        admission: Admission::default(),
        store: PathNodes::new(log, pages, bounded(cache)),
        policy,
    })
}

/// What the page of an empty tree says.
fn empty(policy: &Policy) -> Header {
    let next = policy.first();
    let layout: Layout = next.layout;
    Header { sequence: 0, live_pages: 1, layout, lowest: 0, highest: 0, has_root: true, next }
}

impl PathTree<'_> {
    /// Writes an empty leaf.
    fn write_empty(&mut self) -> Result<()> {
        let pages = self.store.pages;
        let header = empty(&self.policy);
        let no_node = super::damage(self.root, "a leaf that is none");
        let codec = pages.codec(&header.layout, 0).ok_or(no_node.clone())?;
        let range = pages.bytes_of(&header.layout, 0).ok_or(no_node)?;
        self.store.content().fill(0xFF);
        codec.initialise(&mut self.store.content()[range], 0);
        let (page, header) = self.write_made(header, Cause::Load)?;
        self.live.forget();
        self.nodes = [0; HEIGHT_MOST as usize];
        self.nodes[0] = 1;
        self.stand_on(page, header);
        Ok(())
    }

    /// Lets the tree have `height` levels: the node cache gives way to longer paths. False where it
    /// is too small for that. The path is forgotten.
    pub(super) fn allow_height(&mut self, height: u8) -> bool {
        if height <= self.policy.height_most() {
            return true;
        }
        let cache = self.store.cache_bytes();
        let Some(left) = cache.checked_sub(self.more_for(height)).filter(|_| height <= HEIGHT_MOST)
        else {
            return false;
        };
        self.store.shrink_cache(left as usize);
        self.policy = self.policy.clone().up_to(height);
        // Before the new one is made, for there is no memory for both.
        self.path = CopiedPath::new(&self.store.pages, 0, 0);
        let height = self.policy.height_most();
        self.path = CopiedPath::new(&self.store.pages, height, path_bytes(&self.policy));
        true
    }

    /// Lets the tree get two levels higher, if it has the memory: an update adds one at the most,
    /// and is admitted as if it could.
    pub(super) fn allow_growth(&mut self) {
        self.allow_height(self.height() + 2);
    }

    /// Bytes of memory that the tree works in beside what it does now, at most, if it has `height`
    /// levels: each more has a page to itself.
    fn more_for(&self, height: u8) -> u64 {
        let levels = u64::from(height.saturating_sub(self.policy.height_most()));
        let place = (size_of::<Level>() + size_of::<Spot>()) as u64;
        levels * (u64::from(self.store.pages.area()) + place)
    }

    /// Refuses a tree of `height` levels where the memory is too small for its paths: more memory
    /// made it.
    pub(super) fn check_height(&mut self, height: u8) -> Result<()> {
        if self.allow_height(height) {
            return Ok(());
        }
        let buffer = self.buffer.memory_bytes() as u64;
        let have = self.working_bytes() + buffer + self.store.cache_bytes();
        let need = self.working_bytes() + buffer + self.more_for(height);
        Err(store::Error::LittleMemory { have, need }.into())
    }

    /// Bytes of memory that the tree works in.
    pub(super) fn working_bytes(&self) -> u64 {
        let log = &self.store.log;
        working_bytes(&self.policy, log.geometry().page_bytes()) + log.buffer_bytes()
    }
}
