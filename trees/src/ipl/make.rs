//! Making and opening the tree.

use alloc::boxed::Box;

use device::{Cause, Geometry, Medium};
use store::{Durability, EntryShape, PageLog, Recovery, Reservation};

use super::block::BlockShape;
use super::log_store::{FRAMES_LEAST, LogStore};
use super::room;
use super::root::Root;
use super::table::NodeId;
use super::{Ipl, NAME};
use crate::btree::{BTree, Codecs, NodeStore};
use index::{Durable, Error, Index, Result};
use index::{Footprint, MediumShape, Options, raw_flash};

/// Percent of a node that stays where keys arrive in ascending order: room counts with halves.
const MIDDLE: u8 = 50;

/// Log pages in a block, as `options` or the index that exists have them; `None` for the usual.
///
/// # Errors
/// The root record of the index is damaged.
pub(super) fn log_pages(options: &Options) -> Result<Option<u32>> {
    if let Some(record) = &options.made {
        return Ok(Some(u32::from(Root::decode(record)?.log_pages)));
    }
    let pages = options.settings.number("log-pages");
    Ok(pages.map(|pages| u32::try_from(pages).unwrap_or(u32::MAX)))
}

pub(super) fn codecs_on(chip: Geometry, shape: EntryShape) -> Result<Codecs> {
    let bytes = PageLog::content_bytes_on(chip);
    let small = store::Error::NodeSize { bytes, what: "they can't hold four entries" };
    let codecs = Codecs::new(bytes, shape).ok_or(small)?;
    // Room is counted by the longest key: so one that comes must not lengthen the others.
    Ok(Codecs { inner: codecs.inner.without_prefixes(), ..codecs })
}

impl BlockShape {
    pub(super) fn on(chip: Geometry, log_pages: Option<u32>) -> Result<Self> {
        let shape = BlockShape::new(&chip, log_pages).ok_or_else(|| Error::BadParameter {
            name: "log-pages",
            value: alloc::format!("{}", log_pages.unwrap_or_default()),
            expected: alloc::format!(
                "it must be a whole number from 1 to {} on this chip",
                chip.pages_per_block().saturating_sub(1)
            )
            .into(),
        })?;
        Ok(shape.with_content(PageLog::content_bytes_on(chip)))
    }
}

/// Bytes of memory beside the cache: pages to work in, one more node, keys, and a root record,
/// twice more in a checkpoint; and what is read before parts of a page are programmed.
pub(super) fn work_bytes(chip: Geometry, forms: &Codecs, durability: Durability) -> u64 {
    let keys = 6 * (forms.leaf.entry_bytes_most() as u64 + 16);
    let parts = if has_parts(chip, durability) { u64::from(chip.page_bytes()) } else { 0 };
    LogStore::work_bytes(chip, forms) + u64::from(chip.page_bytes()) + keys + parts
}

/// True if a page is programmed in parts, none of which may be lost.
pub(super) fn has_parts(chip: Geometry, durability: Durability) -> bool {
    chip.programs_per_page() > 1 && durability != Durability::None
}

pub(super) fn footprint(options: &Options, medium: MediumShape) -> Result<Footprint> {
    let chip = medium.chip(NAME)?;
    let (shape, log) = (BlockShape::on(chip, log_pages(options)?)?, options.page_log());
    let memory = (PageLog::least_memory(chip, &log), log.durability);
    let forms = codecs_on(chip, options.shape)?;
    Ok(Footprint {
        memory_least: least_of(chip, options.shape, memory)?,
        tables: LogStore::table_bytes(chip, &shape),
        units_least: room::fewest_blocks(chip, (&shape, &forms), &log).into(),
    })
}

/// The least memory where the log takes `log` bytes.
fn least_of(
    chip: Geometry,
    shape: EntryShape,
    (log, durability): (u64, Durability),
) -> Result<u64> {
    let forms = codecs_on(chip, shape)?;
    let frames = u64::from(FRAMES_LEAST) * LogStore::frame_bytes(&forms);
    Ok(log + work_bytes(chip, &forms, durability) + frames)
}

pub(super) fn create<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let nand = raw_flash(medium, NAME)?;
    let geometry = nand.geometry();
    let medium = MediumShape::Nand(geometry);
    let needs = |like| footprint(options, like);
    let need = needs(medium)?.memory_least;
    let shape = BlockShape::on(geometry, log_pages(options)?)?;
    let frames = frames(geometry, options.shape, (options.memory_bytes, need))?;
    medium.check_units(geometry.blocks(), needs)?;
    let log = PageLog::create(nand, &options.page_log())?;
    medium.check_units(log.good_blocks(), needs)?;
    let mut tree = Ipl::over(log, shape, options.shape, frames)?;
    tree.btree.root.id = tree.store.create(0, Cause::Load)?;
    Ok(Box::new(Durable::create(tree)?))
}

pub(super) fn open<'d>(medium: Medium<'d>, options: &Options) -> Result<Box<dyn Index + 'd>> {
    let (log, record) = PageLog::open_with(raw_flash(medium, NAME)?, &options.page_log())?;
    let root = Root::decode(&record)?;
    let geometry = log.geometry();
    let need = least_of(geometry, root.shape, (log.buffer_bytes(), log.durability()))?;
    let frames = frames(geometry, root.shape, (options.memory_bytes, need))?;
    let shape = BlockShape::on(geometry, Some(u32::from(root.log_pages)))?;
    let mut tree = Ipl::over(log, shape, root.shape, frames)?;
    // A rollback comes back with the root record of a checkpoint that was made before others. One
    // that gets a name is made twice.
    let is_of_old = tree.store.log.statistics().checkpoint.0 > root.made.saturating_add(1);
    let is_torn = tree.store.log.has_rest() || is_of_old;
    tree.restore_from(&record, is_torn)?;
    drop(record);
    Ok(Box::new(Durable::open(tree)?))
}

/// Nodes in the cache, of `have` bytes of memory where `need` are the least.
pub(super) fn frames(chip: Geometry, shape: EntryShape, (have, need): (u64, u64)) -> Result<u32> {
    let Some(left) = have.checked_sub(need) else {
        return Err(store::Error::LittleMemory { have, need }.into());
    };
    let more = left / LogStore::frame_bytes(&codecs_on(chip, shape)?);
    // More nodes than the chip has pages are never in use.
    Ok(FRAMES_LEAST + more.min(u64::from(chip.pages())) as u32)
}

impl<'d> Ipl<'d> {
    fn over(
        mut log: PageLog<'d>,
        shape: BlockShape,
        entries: EntryShape,
        frames: u32,
    ) -> Result<Self> {
        let forms = codecs_on(log.geometry(), entries)?;
        log.expect_root(room::root_bytes_most(&shape, log.geometry().blocks()));
        Ok(Ipl {
            store: LogStore::new(log, shape, forms, frames),
            btree: BTree::new(NodeId(0), forms, MIDDLE),
            room: Reservation::default(),
            longest_key: 0,
            log_pages: shape.log_pages(),
            is_poisoned: false,
            is_loading: false,
            may_compact: true,
        })
    }
}
