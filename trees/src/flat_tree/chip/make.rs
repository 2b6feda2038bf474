//! Making and opening: how the memory is divided.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Geometry, Nand};
use index::bounds::EntryLimits;
use index::random_keys::average_bytes;
use index::{
    Durable, Footprint, Index, MediumShape, Options, Result, Tree, entries_of_a_block, root_record,
};
use store::runs::Memtable;
use store::{EntryShape, PageLog, Width};

use super::super::{FILTER, MEMTABLE, NAME, PARTITION, UNIT};
use super::admission::{TABLES_LEAST, blocks_for};
use super::directory::{Directory, Part, Totals};
use super::keys;
use super::policy::{Mix, Policy};
use super::read::{Buffers, RunCursor};
use super::storage::Storage;
use super::units::{UnitBuffer, unpacked_bytes};
use super::write::unit_for;
use super::{ChipTree, Counters};

/// The fewest fragments that a partition can have: two, and two that may come in between.
const FRAGMENTS_LEAST: u64 = 4;

/// The most: a merge goes through a bit for each source.
const FRAGMENTS_MOST: u64 = 48;

/// The part of the memory beyond the least that buffers of merges take.
const BUFFERS_PART: u64 = 3;

/// Bytes that a merge has of each run in memory at least, where a unit is not longer.
const WINDOW: u32 = 112;

/// The part of the chip's bytes that updates may take which wait in memory.
pub(super) const MEMTABLE_PART: u64 = 32;

/// Keys and entries that are copied at a time.
const ENTRIES_COPIED: u64 = 8;

/// Units that are unpacked at a time: a lookup's, and those of two bottoms that are joined.
const UNITS_UNPACKED: u64 = 3;

/// The part of the chip's bytes that a root record has at most.
const ROOT_PART: u64 = 64;

/// How the memory is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) content: u32,
    pub(super) limits: EntryLimits,
    least: u64,
    pub(super) memtable: u64,
    pub(super) fragments_most: u64,
    buffers: u64,
    window: u32,
    pub(super) root_most: u64,
}

impl Plan {
    /// The plan for `memory` bytes on `chip`, of which the log takes `log`.
    pub(super) fn new(
        memory: u64,
        (chip, log): (Geometry, u64),
        shape: EntryShape,
    ) -> Result<Self> {
        let content = PageLog::content_bytes_on(chip);
        let limits = limits(shape, content)?;
        let entry = limits.entry as u64;
        let window = WINDOW.max(unit_for(shape, limits.entry)).min(content);
        let keys = 2 * keys::width(shape).unwrap_or(0) as u64;
        let source = size_of::<RunCursor>() as u64 + u64::from(window) + entry + keys + 64;
        let memtable = Memtable::least_memory(shape, limits.entry)?;
        let firsts = u64::from(content);
        let buffers = |sources: u64| {
            let copied = ENTRIES_COPIED * entry + UNITS_UNPACKED * unpacked_bytes(shape);
            sources * source + 2 * u64::from(content) + firsts + copied
        };
        let fixed = log + Storage::memory_on(chip);
        let least = fixed + memtable + buffers(FRAGMENTS_LEAST + 2);
        let beyond = memory.saturating_sub(least);
        let more = (beyond / BUFFERS_PART / source).min(FRAGMENTS_MOST - FRAGMENTS_LEAST);
        let fragments_most = FRAGMENTS_LEAST + more;
        let left = beyond - more * source;
        let memtable = memtable + left.min(chip.bytes() / MEMTABLE_PART);
        let record = u64::from(chip.pages_per_block()).saturating_sub(2).max(1);
        Ok(Plan {
            content,
            limits,
            least,
            memtable,
            fragments_most,
            buffers: Storage::memory_on(chip) + buffers(fragments_most + 2),
            window,
            root_most: (record * u64::from(content) * 7 / 8).max(chip.bytes() / ROOT_PART),
        })
    }
}

/// Entries that pages of `content` bytes can hold.
fn limits(shape: EntryShape, content: u32) -> Result<EntryLimits> {
    let entry = content as usize / 4;
    let fixed = |width| if let Width::Fixed(bytes) = width { usize::from(bytes) } else { 0 };
    let least = fixed(shape.key) + fixed(shape.value);
    if unit_for(shape, least.max(1)) > content / 2 {
        let what = "they can't hold four entries";
        return Err(store::Error::NodeSize { bytes: content, what }.into());
    }
    let entry = match (shape.key, shape.value) {
        (Width::Fixed(_), Width::Fixed(_)) => least,
        _ => entry.max(least),
    };
    Ok(EntryLimits { shape, key: entry, entry })
}

pub(in super::super) fn footprint(options: &Options, chip: Geometry) -> Result<Footprint> {
    let log = options.page_log();
    let least = PageLog::least_memory(chip, &log);
    let shape = options.shape;
    let plan = Plan::new(options.memory_bytes, (chip, least), shape)?;
    let bytes = u64::from(average_bytes(shape.key)) + u64::from(average_bytes(shape.value));
    let entries = entries_of_a_block(chip, shape);
    let own = PageLog::own_most_on(chip, &log, plan.root_most).into();
    let at_first = PageLog::table_bytes_on(chip)
        + Storage::table_bytes_on(chip)
        + TABLES_LEAST
        + 8 * size_of::<Part>() as u64
        + 1024;
    let tables = match options.entries {
        Some(entries) => {
            let share = options.settings.ratio(MEMTABLE.name).unwrap_or(0.25) * 0.7;
            let beyond = options.memory_bytes.saturating_sub(plan.least + at_first);
            let most = (beyond as f64 * (1.0 - share)) as u64 / 9 * 8;
            at_first + (2 * entries).min(most)
        }
        None => at_first,
    };
    let content = u64::from(plan.content);
    Ok(Footprint {
        memory_least: plan.least,
        tables,
        units_least: blocks_for((chip, content), own, (entries, bytes)),
    })
}

pub(in super::super) fn create<'d>(
    chip: Box<dyn Nand + 'd>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let geometry = chip.geometry();
    let log = PageLog::least_memory(geometry, &options.page_log());
    let plan = Plan::new(options.memory_bytes, (geometry, log), options.shape)?;
    plan.check_memory(options.memory_bytes)?;
    let (medium, needs) =
        (MediumShape::Nand(geometry), |like: MediumShape| footprint(options, like.chip(NAME)?));
    medium.check_units(geometry.blocks(), needs)?;
    let log = PageLog::create(chip, &options.page_log())?;
    medium.check_units(log.good_blocks(), needs)?;
    let mut tree = over(log, &plan, options, options.shape)?;
    tree.recount();
    Ok(Box::new(Durable::create(tree)?))
}

pub(in super::super) fn open<'d>(
    chip: Box<dyn Nand + 'd>,
    options: &Options,
) -> Result<Box<dyn Index + 'd>> {
    let (log, record) = PageLog::open_with(chip, &options.page_log())?;
    let (shape, _) = root_record::decode(&record, NAME)?;
    let plan = Plan::new(options.memory_bytes, (log.geometry(), log.buffer_bytes()), shape)?;
    plan.check_memory(options.memory_bytes)?;
    let mut tree = over(log, &plan, options, shape)?;
    tree.restore(&record)?;
    drop(record);
    if !tree.recovery().checkpoints().is_empty() {
        // Before anything is written: a replay must find what is not to be touched.
        tree.pin_savepoints()?;
    }
    Ok(Box::new(Durable::open(tree)?))
}

impl Plan {
    fn check_memory(&self, have: u64) -> Result<()> {
        match have >= self.least {
            true => Ok(()),
            false => Err(store::Error::LittleMemory { have, need: self.least }.into()),
        }
    }
}

/// What a merge costs for each page, as so many reads of a unit.
fn reads_a_page(log: &PageLog<'_>, content: u32) -> u32 {
    let Some(costs) = log.costs().filter(|costs| costs.read.time.at(1, 1) > 0) else {
        return 8;
    };
    let page = u64::from(log.geometry().page_bytes());
    let merged = costs.read.time.at(page, 1)
        + costs.program.time.at(page, 1)
        + costs.erase.time.at(0, 1) / u64::from(log.geometry().pages_per_block());
    let unit = costs.read.time.at(u64::from(content / 8), 1).max(1);
    u32::try_from(merged / unit).unwrap_or(8).max(1)
}

fn over<'d>(
    mut log: PageLog<'d>,
    plan: &Plan,
    options: &Options,
    shape: EntryShape,
) -> Result<ChipTree<'d>> {
    log.give_back_at_rollback();
    log.expect_root(plan.root_most);
    let settings = &options.settings;
    let unit = settings.number(UNIT.name).map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let policy = Policy {
        partition: settings.number(PARTITION.name),
        unit,
        filter: settings.number(FILTER.name).map(|bits| bits as u32),
        mix: Mix::default(),
        hiding: 1.0,
        reads_a_page: reads_a_page(&log, plan.content),
        fragments_most: plan.fragments_most as u32,
        root_most: plan.root_most,
    };
    Ok(ChipTree {
        storage: Storage::new(log),
        shape,
        limits: plan.limits,
        directory: Directory::new(),
        memtable: Memtable::new(plan.memtable, shape, plan.limits.entry)?,
        policy,
        totals: Totals::default(),
        due: None,
        tables_most: options.tables_bytes,
        tables_peak: 0,
        tables_told: 0,
        buffer_bytes: plan.buffers,
        buffers: Buffers {
            unit: UnitBuffer::default(),
            short: Vec::with_capacity(plan.limits.key),
        },
        window: plan.window as usize,
        is_midway: false,
        is_poisoned: false,
        counters: Counters::default(),
    })
}
