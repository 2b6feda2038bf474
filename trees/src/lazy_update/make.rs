//! Making and opening: how the memory is divided between the page cache and the pool.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Cause, Medium, SectorGeometry, Sectors};
use index::{Durable, Error, Footprint, Index, MediumShape, Options, Result, Tree};
use store::node::{NODE_BYTES_LEAST, NODE_BYTES_MOST};
use store::{Durability, EntryShape, LogicalPage, PageFile, Width};

use super::order::Policy;
use super::room::Saved;
use super::root::Root;
use super::waiting::{Division, NODES_LEAST, Waiting};
use super::{FILL, FILL_LEAST, LazyUpdate, NAME, NODE, POLICY, POOL, PRUNING, SUPER_GROUPS};
use crate::btree::{BTree, CHILD_BYTES, Codecs, NodeStore, PageStore, Puts};

/// Entries that are copied at a time: separators, the key before, a cursor's key and its bound or
/// what a replay reads, and those of a commit.
const ENTRIES_COPIED: u64 = 10;

/// The part of a file's pages that the pool may take at a checkpoint.
const PAGES_PART: u64 = 16;

/// Pages below which nothing waits: there may be too few images for deletes on a full disk then.
const PAGES_LEAST: u32 = 256;

/// Nodes beside those of a pool that is read.
const NODES_BESIDE: usize = 1;

/// How super groups are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuperGroups {
    None,
    /// A victim is a group, and its super group is committed with it.
    First,
    /// A victim is a super group.
    Second,
}

/// What is chosen whenever the tree is made or opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices {
    pub(super) policy: Policy,
    pub(super) is_pruning: bool,
    pub(super) super_groups: SuperGroups,
    fill: u8,
    /// The pool's share of the memory.
    pool: f64,
}

impl Choices {
    pub(super) fn new(options: &Options) -> Self {
        let settings = &options.settings;
        Choices {
            policy: Policy::from_name(settings.word(POLICY.name).unwrap_or_default()),
            is_pruning: settings.word(PRUNING.name) != Some("off"),
            super_groups: match settings.word(SUPER_GROUPS.name) {
                Some("first") => SuperGroups::First,
                Some("second") => SuperGroups::Second,
                _ => SuperGroups::None,
            },
            fill: fill_percent(settings.number(FILL.name).unwrap_or(70)),
            pool: settings.ratio(POOL.name).unwrap_or(0.5),
        }
    }
}

pub(super) fn fill_percent(percent: u64) -> u8 {
    percent.clamp(u64::from(FILL_LEAST), 100) as u8
}

pub(super) fn node_bytes(options: &Options, disk: SectorGeometry) -> u32 {
    let default = disk.sector_bytes().clamp(NODE_BYTES_LEAST, NODE_BYTES_MOST);
    match options.settings.number(NODE.name) {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None => default,
    }
}

/// The codecs of nodes of `bytes` bytes.
pub(super) fn codecs(bytes: u32, shape: EntryShape) -> Result<Codecs> {
    let what = match bytes > NODE_BYTES_MOST {
        true => "they must have 128 to 32768 bytes",
        false => "they can't hold four entries",
    };
    Ok(Codecs::new(bytes, shape).ok_or(store::Error::NodeSize { bytes, what })?)
}

/// Bytes of the memory budget that are neither the page file's nor the pool's.
pub(super) fn buffer_bytes(codecs: &Codecs) -> u64 {
    let siblings = siblings_most(codecs) * size_of::<(u16, super::blocks::BlockId)>();
    let node = codecs.leaf.node_bytes() as u64;
    node + ENTRIES_COPIED * codecs.leaf.entry_bytes_most() as u64 + siblings as u64
}

/// The most children of an inner node that are looked at for a super group.
fn siblings_most(codecs: &Codecs) -> usize {
    let key = if let Width::Fixed(bytes) = codecs.shape.key { bytes } else { 0 };
    codecs.inner.capacity(key.into(), CHILD_BYTES.into()).min(4096)
}

/// How the memory is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) codecs: Codecs,
    /// What the page file gets, and what waits.
    pub(super) file: u64,
    pub(super) waiting: Division,
}

impl Plan {
    /// The plan for `codecs` on a disk, with `saved` nodes in the pool.
    fn new(
        options: &Options,
        (disk, durability): (SectorGeometry, Durability),
        codecs: Codecs,
        saved: usize,
    ) -> Result<Self> {
        let (have, choices) = (options.memory_bytes, Choices::new(options));
        let node = codecs.leaf.node_bytes() as u32;
        let least = PageFile::least_memory(disk, node, durability)? + buffer_bytes(&codecs);
        let left = have.saturating_sub(least);
        // Where nodes share sectors, writing the pool would take images of their neighbours.
        let is_whole = node >= disk.sector_bytes();
        let share = if is_whole { (have as f64 * choices.pool) as u64 } else { 0 };
        let beside = Division::beside(&codecs);
        let share = share.min(left.saturating_sub(beside));
        let pages = PageFile::pages_and_tables(disk, node, durability)?.0;
        // A file that was closed may be shorter than it was when its pool was filled.
        let nodes = if saved > 0 { NODES_LEAST.max(saved + NODES_BESIDE) } else { 0 };
        let most = if pages < PAGES_LEAST { 0 } else { u64::from(pages) / PAGES_PART };
        let most = most.max(nodes as u64);
        let waiting = Division::new(&codecs, share, most);
        if have < least {
            return Err(store::Error::LittleMemory { have, need: least }.into());
        }
        let file = have.saturating_sub(buffer_bytes(&codecs) + waiting.bytes());
        Ok(Plan { codecs, file, waiting })
    }

    /// The plan for an index that is to be made, or is thought to be.
    pub(super) fn of(options: &Options, disk: SectorGeometry) -> Result<Self> {
        let codecs = codecs(node_bytes(options, disk), options.shape)?;
        Plan::new(options, (disk, options.durability.unwrap_or_default()), codecs, 0)
    }
}

pub(super) fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: NAME, medium: "raw flash" });
    };
    let node_bytes = node_bytes(options, disk);
    let codecs = codecs(node_bytes, options.shape)?;
    let file = options.page_file(node_bytes, 0);
    // The root, and what the first put may need: two leaves and their parent, or three.
    let pages = if codecs.is_variable() { 6 } else { 4 };
    Ok(Footprint {
        memory_least: PageFile::least_memory(disk, node_bytes, file.durability)?
            + buffer_bytes(&codecs),
        tables: PageFile::pages_and_tables(disk, node_bytes, file.durability)?.1,
        units_least: PageFile::sectors_least(disk, &file, pages, 0)?,
    })
}

fn disk(medium: Medium<'_>) -> Result<Box<dyn Sectors + '_>> {
    match medium {
        Medium::Sectors(disk) => Ok(disk),
        Medium::Nand(_) => Err(Error::WrongMedium { tree: NAME, medium: "raw flash" }),
    }
}

pub(super) fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    Ok(Box::new(Durable::create(begin(medium, options)?)?))
}

/// An empty tree, of which nothing lasts yet.
pub(super) fn begin<'d>(medium: Medium<'d>, options: &Options) -> Result<LazyUpdate<'d>> {
    let disk = disk(medium)?;
    let geometry = disk.geometry();
    let plan = Plan::of(options, geometry)?;
    let shape = MediumShape::Sectors(geometry);
    shape.check_units(geometry.sectors(), |like| footprint(options, like))?;
    let node = plan.codecs.leaf.node_bytes() as u32;
    let file = PageFile::create(disk, &options.page_file(node, plan.file))?;
    let mut store = PageStore::new(file, plan.codecs);
    let root = store.create(0, Cause::Load)?;
    Ok(over(store, root, &plan, options))
}

pub(super) fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let mut disk = disk(medium)?;
    let found = PageFile::describe(&mut *disk)?;
    let root = Root::decode(&found.root_head)?;
    let codecs = codecs(found.page_bytes, root.shape)?;
    let saved = root.pool.map_or(0, |pool| pool.bytes() / found.page_bytes);
    let plan = Plan::new(options, (disk.geometry(), found.durability), codecs, saved as usize)?;
    let (file, record) = PageFile::open(disk, &options.page_file(found.page_bytes, plan.file))?;
    let store = PageStore::new(file, codecs);
    let mut tree = over(store, LogicalPage(0), &plan, options);
    tree.restore(&record)?;
    Ok(Box::new(Durable::open(tree)?))
}

fn over<'d>(
    store: PageStore<'d>,
    root: LogicalPage,
    plan: &Plan,
    options: &Options,
) -> LazyUpdate<'d> {
    let (codecs, choices) = (plan.codecs, Choices::new(options));
    let mut waiting = Waiting::new(&codecs, choices.policy, plan.waiting);
    let btree = BTree::new(root, codecs, choices.fill);
    waiting.begin_list(&codecs, btree.root);
    LazyUpdate {
        store,
        btree,
        waiting,
        saved: Saved::default(),
        puts: Puts::default(),
        choices,
        is_waiting_allowed: plan.waiting.nodes > 0,
        is_tight: false,
        nodes_next: plan.waiting.nodes,
        batch_updates: 1,
        siblings: Vec::with_capacity(siblings_most(&codecs)),
        sibling_key: Vec::with_capacity(codecs.leaf.entry_bytes_most()),
        counted: super::Counted::default(),
    }
}
