//! Making and opening: how the memory is divided.

use alloc::boxed::Box;

use device::{Medium, SectorGeometry};
use index::{Durable, Error, Footprint, Index, MediumShape, Options, Result, Tree, root_record};
use store::node::{NODE_BYTES_LEAST, NODE_BYTES_MOST};
use store::runs::Memtable;
use store::{Durability, EntryShape, PageFile};

use super::directory::{Directory, Totals};
use super::policy::Policy;
use super::runs::{Forms, Runs, Source};
use super::{FILTER, FlatTree, MEMTABLE, NAME, PARTITION, SPACE, UNIT, admission, chip};
use crate::btree::PageStore;

/// The fewest fragments that a partition can have: two, and two that may come in between.
const FRAGMENTS_LEAST: usize = 4;

/// The most: a merge goes through a bit for each source.
const FRAGMENTS_MOST: usize = 40;

/// The part of the memory beyond the least that buffers of merges take.
const BUFFERS_PART: u64 = 8;

/// Pages whose bytes updates may take that wait, at least: a flush writes some pages anyway.
const MEMTABLE_PAGES: u64 = 4;

/// The part of the disk's bytes that updates may take which wait in memory.
const MEMTABLE_PART: u64 = 8;

/// Keys and entries that are copied at a time: separators and the key before, of what is written;
/// a key each way, of what waits; where a range ends; a value with its kind; what a replay reads.
const ENTRIES_COPIED: u64 = 8;

/// Bytes of a filter for each entry of a fragment.
const FILTER_BITS: u64 = 14;

/// Bytes of tables beside entries, as long as there is one partition.
const TABLES_LEAST: u64 = 2048;

/// How the memory is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) forms: Forms,
    least: u64,
    pub(super) memtable: u64,
    fragments_most: usize,
    buffers: u64,
    /// What the page file gets.
    pub(super) file: u64,
}

/// Bytes of a page on such a disk.
pub(super) fn page_bytes(options: &Options, disk: SectorGeometry) -> u32 {
    let least = disk.sector_bytes().clamp(NODE_BYTES_LEAST, NODE_BYTES_MOST);
    match options.settings.number(UNIT.name) {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None => least,
    }
}

impl Plan {
    /// The plan for pages of `page` bytes, which are at least a sector.
    pub(super) fn new(
        options: &Options,
        disk: SectorGeometry,
        (page_bytes, shape, durability): (u32, EntryShape, Durability),
    ) -> Result<Self> {
        let node = |what| Error::from(store::Error::NodeSize { bytes: page_bytes, what });
        if !page_bytes.is_multiple_of(disk.sector_bytes()) || page_bytes > NODE_BYTES_MOST {
            return Err(node("a unit is a multiple of the device's page, of up to 32768 bytes"));
        }
        let forms = Forms::new(page_bytes, shape).ok_or(node("they can't hold four entries"))?;
        let entry = forms.entry_most() as u64;
        let source = size_of::<Source<'_>>() as u64 + u64::from(page_bytes) + entry;
        let file = PageFile::least_memory(disk, page_bytes, durability)?;
        let memtable = Memtable::least_memory(shape, forms.entry_most())?
            .max(MEMTABLE_PAGES * u64::from(page_bytes));
        let buffers = |sources: usize| {
            sources as u64 * source + u64::from(page_bytes) + ENTRIES_COPIED * entry
        };
        let least = file + memtable + buffers(FRAGMENTS_LEAST + 2);
        let have = options.memory_bytes;
        let beyond = have.saturating_sub(least);
        let share = options.settings.ratio(MEMTABLE.name).unwrap_or(0.25);
        // More than a part of what the disk takes would be memory for nothing.
        let more = (beyond as f64 * share) as u64;
        let memtable = memtable + more.min(disk.bytes() / MEMTABLE_PART);
        let more = usize::try_from(beyond / BUFFERS_PART / source).unwrap_or(usize::MAX);
        let fragments_most = FRAGMENTS_LEAST.saturating_add(more).min(FRAGMENTS_MOST);
        let buffers = buffers(fragments_most + 2);
        let file = have.saturating_sub(memtable + buffers);
        Ok(Plan { forms, least, memtable, fragments_most, buffers, file })
    }

    fn check_memory(&self, have: u64) -> Result<()> {
        match have >= self.least {
            true => Ok(()),
            false => Err(store::Error::LittleMemory { have, need: self.least }.into()),
        }
    }
}

pub(super) fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let disk = match medium {
        MediumShape::Sectors(disk) => disk,
        MediumShape::Nand(chip) => return chip::footprint(options, chip),
    };
    let durability = options.durability.unwrap_or_default();
    let page_bytes = page_bytes(options, disk);
    let plan = Plan::new(options, disk, (page_bytes, options.shape, durability))?;
    let file = options.page_file(page_bytes, 0);
    let pages = admission::needs_at_first();
    let tables = PageFile::pages_and_tables(disk, page_bytes, durability)?.1;
    Ok(Footprint {
        memory_least: plan.least,
        tables: tables + tables_least(&plan.forms),
        units_least: PageFile::sectors_least(disk, &file, pages, 0)?,
    })
}

/// Bytes of tables that are always stated.
pub(super) fn tables_least(forms: &Forms) -> u64 {
    TABLES_LEAST + 4 * forms.entry_most() as u64
}

pub(super) fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let disk = match medium {
        Medium::Sectors(disk) => disk,
        Medium::Nand(nand) => return chip::create(nand, options),
    };
    let geometry = disk.geometry();
    let durability = options.durability.unwrap_or_default();
    let page_bytes = page_bytes(options, geometry);
    let plan = Plan::new(options, geometry, (page_bytes, options.shape, durability))?;
    plan.check_memory(options.memory_bytes)?;
    let shape = MediumShape::Sectors(geometry);
    shape.check_units(geometry.sectors(), |like| footprint(options, like))?;
    let file = PageFile::create(disk, &options.page_file(page_bytes, plan.file))?;
    let mut tree = over(file, &plan, options)?;
    tree.recount();
    Ok(Box::new(Durable::create(tree)?))
}

pub(super) fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let mut disk = match medium {
        Medium::Sectors(disk) => disk,
        Medium::Nand(nand) => return chip::open(nand, options),
    };
    let found = PageFile::describe(&mut *disk)?;
    let (shape, _) = root_record::decode(&found.root_head, NAME)?;
    let made = (found.page_bytes, shape, found.durability);
    let plan = Plan::new(options, disk.geometry(), made)?;
    plan.check_memory(options.memory_bytes)?;
    let (file, record) = PageFile::open(disk, &options.page_file(found.page_bytes, plan.file))?;
    if !record.starts_with(&found.root_head) {
        let what = "its superblock has another root record";
        return Err(store::Error::NotAnIndex { is_ours: true, what }.into());
    }
    let mut tree = over(file, &plan, options)?;
    tree.restore(&record)?;
    drop(record);
    Ok(Box::new(Durable::open(tree)?))
}

fn over<'d>(file: PageFile<'d>, plan: &Plan, options: &Options) -> Result<FlatTree<'d>> {
    let forms = plan.forms;
    let store = PageStore::new(file, *forms.of(super::Form::Bottom));
    let settings = &options.settings;
    let space = settings.ratio(SPACE.name).unwrap_or(1.25);
    let filter_bits = settings.number(FILTER.name).unwrap_or(FILTER_BITS) as u32;
    Ok(FlatTree {
        runs: Runs::new(store, forms),
        directory: Directory::new(),
        memtable: Memtable::new(plan.memtable, forms.shape(), forms.entry_most())?,
        policy: Policy::new(space, settings.number(PARTITION.name)),
        totals: Totals::default(),
        growth: None,
        due: None,
        joined_at: None,
        fragments_most: plan.fragments_most,
        filter_bits,
        tables_most: options.tables_bytes,
        owed: 0,
        tables_peak: 0,
        buffer_bytes: plan.buffers,
        freed_at: None,
        lacks_room: false,
        is_midway: false,
        is_unrecorded: false,
        is_settled: true,
        is_poisoned: false,
        begun: 0,
        merges: 0,
        splits: 0,
        joins: 0,
    })
}
