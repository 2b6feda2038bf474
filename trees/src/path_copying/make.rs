//! Making and opening a tree, and what memory it needs.

use alloc::boxed::Box;
use device::{Geometry, Nand};
use store::{EntryShape, PageLog};

use super::PathTree;
use super::admission::Admission;
use super::bare_tree::{BareTree, working_bytes};
use super::census::growth_of;
use super::collection::Collection;
use super::flush::{self, Flush};
use super::layout::{Division, Pages, SHARED_MOST};
use super::live::LivePages;
use super::policy::{Bounds, Policy};
use super::recent::Recent;
use super::room::Room;
use super::root::Root;
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
/// ([`BareTree::allow_growth`]).
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
    let mut tree = over(log, policy, choice, options);
    tree.bare.write_empty()?;
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
    let (mut demand, height) = (growth_of(policy, policy.limits().key), height.max(2));
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
    let mut tree = over(log, policy, choice, options);
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

fn over<'d>(log: PageLog<'d>, policy: Policy, choice: &Choice, options: &Options) -> PathTree<'d> {
    let pages = *policy.pages();
    let limits = policy.limits();
    let shares = Shares::of(&policy, choice.cache, (log.geometry(), log.buffer_bytes()), options);
    let entry =
        usize::from(average_bytes(pages.shape.key)) + usize::from(average_bytes(pages.shape.value));
    let bounded = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    PathTree {
        name: choice.name,
        limits,
        bare: BareTree::new(log, policy, (bounded(shares.cache), shares.live)),
        buffer: Recent::new(bounded(shares.buffer), entry),
        flush: choice.flush,
        admission: Admission::default(),
        collection: Collection::new(choice.collect, limits.key),
    }
}
