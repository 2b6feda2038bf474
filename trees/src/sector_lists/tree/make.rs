//! Making and opening: how the memory is divided.

use alloc::boxed::Box;

use device::{Cause, DiskCosts, Medium, SectorGeometry, Sectors};
use index::{Durable, Error, Footprint, Index, MediumShape, Options, Result, Tree};
use store::node::{NODE_BYTES_LEAST, NODE_BYTES_MOST};
use store::{Durability, EntryShape, PageFile, Recovery};

use super::root::{BESIDE_BYTES, Root};
use super::{Kindred, ListTree, node_size, room, root};
use crate::btree::{BTree, Codecs, NodeStore};
use crate::sector_lists::{Choices, FRONT_BYTES, NodeId, Scanned, Shape, Store, Table};

/// Entries that are copied at a time: separators, the key before, a cursor's key and its bound, or
/// what a replay reads.
const ENTRIES_COPIED: u64 = 5;

/// The part of the memory beyond the least that the page file gets, for names of checkpoints.
const FILE_PART: u64 = 16;

/// Bytes of a frame of the page file beside its page. One in eight bytes beyond the least is for
/// names of checkpoints.
const FRAME_BESIDE: u64 = 64;

/// Frames of the page file beyond the least, so that a page of the free list stays in one while the
/// sectors of a node are read: else it would be written for each sector of a commit.
fn frames_for_lists(list: usize) -> u64 {
    list.min(16) as u64
}

/// The part of a disk's sectors that the buffer's units may fill, and how many units it has then.
const UNITS_PART: u64 = 32;
const UNITS_LEAST: u64 = 4;

/// How full ascending keys leave nodes.
const FILL_PERCENT: u8 = 70;

pub(super) fn fill_percent(percent: u8) -> u8 {
    percent.clamp(50, 100)
}

/// How the memory is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    pub(super) least: u64,
    /// What the page file gets, and what the cache of nodes.
    pub(super) file: u64,
    pub(super) cache: u64,
    choices: Choices,
}

/// Bytes of the memory budget beside the page file and the cache.
pub(super) fn work_bytes(shape: &Shape) -> u64 {
    shape.work_bytes() + ENTRIES_COPIED * shape.codecs.leaf.entry_bytes_most() as u64
}

fn choices<K: Kindred>(options: &Options, sector: u32) -> Result<(EntryShape, Choices)> {
    match &options.made {
        Some(made) => Root::choices(made, K::NAME),
        None => Ok((options.shape, K::choices(options, sector))),
    }
}

fn sector_bytes<K: Kindred>(options: &Options, disk: SectorGeometry) -> u32 {
    let least = disk.sector_bytes().clamp(NODE_BYTES_LEAST, NODE_BYTES_MOST);
    match options.settings.number(K::SECTOR) {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None => least,
    }
}

impl Plan {
    pub(super) fn new(
        memory: u64,
        disk: SectorGeometry,
        durability: Durability,
        (sector, (shape, choices)): (u32, (EntryShape, Choices)),
    ) -> Result<Self> {
        let wrong = |what| Error::from(store::Error::NodeSize { bytes: sector, what });
        if !sector.is_multiple_of(disk.sector_bytes()) || sector > NODE_BYTES_MOST {
            let what = "a sector is a multiple of the device's page, of up to 32768 bytes";
            return Err(wrong(what));
        }
        let node = sector.saturating_sub(FRONT_BYTES);
        let codecs = Codecs::new(node, shape).ok_or(wrong("they can't hold four entries"))?;
        let sectors = disk.bytes() / u64::from(sector);
        let units = choices.waits.units(sector).min((sectors / UNITS_PART).max(UNITS_LEAST));
        let Choices { list, waits, mode } = choices;
        let pages = sector / disk.sector_bytes();
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let units = units as usize;
        let shape = Shape { codecs, sector, sectors, pages, units, list, waits, mode };
        let file = PageFile::least_memory(disk, sector, durability)?;
        let file = file + frames_for_lists(list) * (u64::from(sector) + FRAME_BESIDE) / 7 * 8;
        let beside = work_bytes(&shape) + shape.cache_least();
        let least = file + beside;
        let file = file + memory.saturating_sub(least) / FILE_PART;
        let cache = memory.saturating_sub(file + work_bytes(&shape)).max(shape.cache_least());
        Ok(Plan { shape, least, file, cache, choices })
    }

    /// The plan for an index that is to be made.
    pub(super) fn of<K: Kindred>(options: &Options, disk: SectorGeometry) -> Result<Self> {
        Plan::with::<K>(options, disk, sector_bytes::<K>(options, disk))
    }

    /// The same on a disk that may tell what it costs.
    fn on<K: Kindred>(
        options: &Options,
        disk: SectorGeometry,
        costs: Option<DiskCosts>,
    ) -> Result<Self> {
        let sector = sector_bytes::<K>(options, disk);
        if !K::IS_SIZED || options.settings.number(K::SECTOR).is_some() {
            return Plan::with::<K>(options, disk, sector);
        }
        let fits = |sector| {
            let needs = Plan::with::<K>(options, disk, sector)
                .and_then(|plan| footprint_of(&plan, options, disk));
            needs.is_ok_and(|needs| {
                needs.memory_least <= options.memory_bytes
                    && needs.units_least <= disk.sectors()
                    && options.tables_bytes.is_none_or(|most| needs.tables <= most)
            })
        };
        let best = node_size::best(costs, options.shape, sector, fits);
        Plan::with::<K>(options, disk, best)
    }

    fn with<K: Kindred>(options: &Options, disk: SectorGeometry, sector: u32) -> Result<Self> {
        let durability = options.durability.unwrap_or_default();
        let chosen = choices::<K>(options, sector)?;
        Plan::new(options.memory_bytes, disk, durability, (sector, chosen))
    }

    fn check_memory(&self, have: u64) -> Result<()> {
        match have >= self.least {
            true => Ok(()),
            false => Err(store::Error::LittleMemory { have, need: self.least }.into()),
        }
    }
}

pub(super) fn footprint<K: Kindred>(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: K::NAME, medium: "raw flash" });
    };
    footprint_of(&Plan::of::<K>(options, disk)?, options, disk)
}

fn footprint_of(plan: &Plan, options: &Options, disk: SectorGeometry) -> Result<Footprint> {
    let durability = options.durability.unwrap_or_default();
    let file = options.page_file(plan.shape.sector, 0);
    let pages = room::needs_at_first(&plan.shape, durability);
    let tables = PageFile::pages_and_tables(disk, plan.shape.sector, durability)?.1;
    Ok(Footprint {
        memory_least: plan.least,
        tables: tables + tables_least(&plan.shape),
        units_least: PageFile::sectors_least(disk, &file, pages, 0)?,
    })
}

/// Bytes of the tree's tables as long as it has a few nodes.
pub(super) fn tables_least(shape: &Shape) -> u64 {
    let sectors = room::step(shape, 3, u64::MAX) + room::NODES_AT_FIRST;
    Table::new(shape.limits()).bytes_with(room::NODES_AT_FIRST, sectors) + BESIDE_BYTES
}

fn disk<K: Kindred>(medium: Medium<'_>) -> Result<Box<dyn Sectors + '_>> {
    match medium {
        Medium::Sectors(disk) => Ok(disk),
        Medium::Nand(_) => Err(Error::WrongMedium { tree: K::NAME, medium: "raw flash" }),
    }
}

pub(super) fn create<'d, K: Kindred>(
    medium: Medium<'d>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let disk = disk::<K>(medium)?;
    let geometry = disk.geometry();
    let plan = Plan::on::<K>(options, geometry, disk.costs())?;
    plan.check_memory(options.memory_bytes)?;
    let shape = MediumShape::Sectors(geometry);
    shape.check_units(geometry.sectors(), |like| footprint::<K>(options, like))?;
    let file = PageFile::create(disk, &options.page_file(plan.shape.sector, plan.file))?;
    let mut tree = over::<K>(file, &plan, options);
    let root = tree.store.create(0, Cause::Load)?;
    tree.btree = BTree::new(root, plan.shape.codecs, FILL_PERCENT);
    Ok(Box::new(Durable::create(tree)?))
}

pub(super) fn open<'d, K: Kindred>(
    medium: Medium<'d>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    Ok(Box::new(Durable::open(restored::<K>(medium, options, false)?)?))
}

/// The tree as the last checkpoint left it; its table is found by a scan if that `is_wanted`, or if
/// the root record can't be read.
pub(super) fn restored<'d, K: Kindred>(
    medium: Medium<'d>,
    options: &Options,
    is_wanted: bool,
) -> Result<ListTree<'d>> {
    let mut disk = disk::<K>(medium)?;
    let found = PageFile::describe(&mut *disk)?;
    let chosen = (found.page_bytes, Root::choices(&found.root_head, K::NAME)?);
    let mut plan = Plan::new(options.memory_bytes, disk.geometry(), found.durability, chosen)?;
    plan.check_memory(options.memory_bytes)?;
    let mut file = PageFile::open_pages(disk, &options.page_file(found.page_bytes, plan.file))?;
    let record = file.root_record();
    let is_damaged = record.as_ref().is_err_and(store::Error::is_damage);
    // The pages of kept ones would be taken for those of this record.
    if is_wanted || (is_damaged && file.checkpoints().is_empty()) {
        let spare = plan.cache.saturating_sub(plan.shape.cache_least());
        let memory = (options.memory_bytes, plan.least, spare);
        let Some(scan) = Scanned::of(&mut file, &plan.shape, memory)? else {
            return Err(record.err().unwrap_or(root::damaged()).into());
        };
        plan.cache -= scan.bytes;
        let mut tree = over::<K>(file, &plan, options);
        tree.rebuild(&found.root_head, scan)?;
        return Ok(tree);
    }
    let record = record?;
    if !record.starts_with(&found.root_head) {
        let what = "its superblock has another root record";
        return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
    }
    let mut tree = over::<K>(file, &plan, options);
    tree.restore(&record)?;
    Ok(tree)
}

pub(super) fn over<'d, K: Kindred>(
    file: PageFile<'d>,
    plan: &Plan,
    options: &Options,
) -> ListTree<'d> {
    let mut tree = ListTree {
        name: K::NAME,
        store: Store::new(file, plan.shape, plan.cache),
        btree: BTree::new(NodeId(0), plan.shape.codecs, FILL_PERCENT),
        choices: plan.choices,
        tables_most: options.tables_bytes,
        tables_peak: tables_least(&plan.shape),
    };
    tree.store.kept = tree.pages_kept();
    tree
}
