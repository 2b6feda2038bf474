//! How the memory of a tree on a disk is divided: as on raw flash, with the page file's cache for
//! that of nodes.

use device::SectorGeometry;
use store::node::{self, Codec};
use store::{Durability, EntryShape, PageFile, Width};

use super::super::buffer_pool::PoolSize;
use super::super::buffers::Buffers;
use super::super::checkpoint_state::{self, Choices};
use super::super::disk::{Disk, PAGE_HEADER};
use super::super::layout::PageShape;
use super::super::stream::Form;
use super::{Plan, least_that_suffices, levels, pool_ratio};
use crate::btree::CHILD_BYTES;
use index::{Error, Options, Result};

/// Bytes that the state's root record may take in memory for each page of the pool, encoded.
const LIST_BYTES: u64 = 12;

/// Bytes of the beginnings of root records that the page file has in memory.
const ROOT_COPIES: u64 = 1024;

/// The most bytes that the pool's lists of buffers take.
const POOL_LISTS: usize = 1100;

/// The choices that `options` make on `disk`.
pub(in super::super) fn choices(options: &Options, disk: SectorGeometry) -> Result<Choices> {
    if let Some(record) = &options.made {
        return Ok(checkpoint_state::describe(record)?.1);
    }
    for (name, word, expected) in [
        ("place", "log", "on a disk nodes are rewritten in place: there is no node table"),
        (
            "share",
            "shared",
            "on a disk the pool and the nodes have a fixed part of the memory each",
        ),
    ] {
        if options.settings.word(name) == Some(word) {
            return Err(Error::BadParameter {
                name,
                value: word.into(),
                expected: expected.into(),
            });
        }
    }
    let default = disk.sector_bytes().clamp(node::NODE_BYTES_LEAST, node::NODE_BYTES_MOST);
    let node_bytes = match options.settings.number("node") {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None => default,
    };
    Ok(Choices { node_bytes, levels_a_buffer: levels(options) })
}

/// What `options` say of a tree of `shape` with such choices on `disk`, and the memory of its page
/// file.
pub(in super::super) fn plan(
    options: &Options,
    shape: EntryShape,
    (choices, durability): (Choices, Durability),
    disk: SectorGeometry,
) -> Result<(Plan, u64)> {
    let given = (choices, durability);
    match with_memory(options, shape, given, disk, options.memory_bytes)? {
        Some(plan) => Ok(plan),
        None => {
            let need = least(options, shape, given, disk)?;
            Err(store::Error::LittleMemory { have: options.memory_bytes, need }.into())
        }
    }
}

pub(in super::super) fn least(
    options: &Options,
    shape: EntryShape,
    given: (Choices, Durability),
    disk: SectorGeometry,
) -> Result<u64> {
    least_that_suffices(options, |memory| {
        Ok(with_memory(options, shape, given, disk, memory)?.is_some())
    })
}

/// The form of leaves.
fn leaf_codec(bytes: u32, shape: EntryShape) -> Result<Codec> {
    let small = store::Error::NodeSize { bytes, what: "they can't hold four entries" };
    Codec::new(bytes, shape.key, Width::Fixed(CHILD_BYTES)).ok_or(small)?;
    Ok(Codec::new(bytes, shape.key, shape.value).ok_or(small)?)
}

fn with_memory(
    options: &Options,
    shape: EntryShape,
    (choices, durability): (Choices, Durability),
    disk: SectorGeometry,
    memory_bytes: u64,
) -> Result<Option<(Plan, u64)>> {
    let bytes = choices.node_bytes;
    let file_least = PageFile::least_memory(disk, bytes, durability)?;
    let leaf = leaf_codec(bytes, shape)?;
    let pages = PageShape::in_place(bytes, PAGE_HEADER as u32);
    let mut plan = Plan::undivided(options, (shape, choices), (pages, &leaf), memory_bytes);
    let room = pages.room() as usize;
    let lists = memory_bytes / room as u64 * LIST_BYTES;
    plan.fixed_bytes += lists + ROOT_COPIES + size_of::<Disk<'_>>() as u64;
    let Some(rest) = memory_bytes.checked_sub(plan.fixed_bytes + file_least) else {
        return Ok(None);
    };
    let pool_bytes = ((rest as f64 * pool_ratio(options, false)) as u64).min(rest);
    // Entries and what finds them again, and the lists of buffers by their size.
    if pool_bytes < (2 * (room + 4 * plan.sizes.entry_most) + POOL_LISTS) as u64 {
        return Ok(None);
    }
    // Nodes are in the page file's cache.
    (plan.sizes.pool, plan.pool_least) = (PoolSize::in_pieces(pool_bytes), pool_bytes);
    plan.has_small_pool = Buffers::has_small_pool(Form::new(shape), &pages, &plan.sizes);
    Ok(Some((plan, file_least + rest - pool_bytes)))
}
