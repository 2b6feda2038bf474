//! What a tree is made with, and how its memory is divided (section 4.2).
//!
//! What is fixed comes first: what sorting, reading and packing need. Of the rest the buffer pool
//! gets 75 percent and the node cache the others. Tables come beside the budget: 4 bytes a node,
//! and for each node with a buffer its record and its place in the pool.

use device::Geometry;
use store::node::Codec;
use store::{EntryShape, PageLog, Width};

use super::buffers::{BufferSizes, Buffers};
use super::cache::NodeCache;
use super::cost::{Basis, UnitCosts, predict};
use super::in_place;
use super::layout::{PageShape, node_bytes};
use super::nodes::{CHILD_BYTES, Nodes};
use super::policy::{Buffering, Policy, Rule};
use super::stream::LENGTH_MOST;
use super::table::BufferRecord;
use crate::parameters::{Kind, Parameter, Value};
use crate::registry::{MediumShape, Options, Prediction, Profile};
use crate::{Error, Result};

/// The fewest nodes that the cache holds: a node, its neighbours, and those above them.
const FRAMES_LEAST: u32 = 12;

/// Bytes in front of what a chunk of a table holds: checksum, and which chunk it is.
pub(super) const CHUNK_HEADER: u32 = 8;

/// The most bytes in which a search for the least memory ends.
pub(super) const MEMORY_MOST: u64 = 1 << 30;

/// Keys that the tree holds for itself: bounds, separators and the entry that goes down.
pub(super) const KEYS: u64 = 13;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "node",
        about: "bytes in a node on a disk: a multiple or a whole fraction of the disk's page",
        kind: Kind::Bytes,
        default: "",
    },
    Parameter {
        name: "fanout",
        about: "entries of a node on raw flash, header included; it is at most a page",
        kind: Kind::Count,
        default: "16",
    },
    Parameter {
        name: "levels",
        about: "levels of the tree from one buffered level to the next: K",
        kind: Kind::Count,
        default: "2",
    },
    Parameter {
        name: "buffer",
        about: "when a buffer is emptied: adaptive, or above so many bytes, or none at all",
        kind: Kind::WordOrBytes(&["adaptive", "none"]),
        default: "adaptive",
    },
    Parameter {
        name: "pool",
        about: "percent of the memory for buffers in memory; nodes get the rest",
        kind: Kind::Percent(1),
        default: "75",
    },
    Parameter {
        name: "rule",
        about: "the savings that ADAPT counts: as printed, or with those of the lookup itself",
        kind: Kind::Word(&["printed", "inclusive"]),
        default: "printed",
    },
    Parameter {
        name: "estimate",
        about: "what emptying costs: as measured online, or by the printed bounds",
        kind: Kind::Word(&["measured", "printed"]),
        default: "measured",
    },
];

/// What a tree is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) shape: EntryShape,
    pub(super) pages: PageShape,
    pub(super) levels_a_buffer: u8,
    pub(super) policy: Policy,
    pub(super) buffering: Buffering,
    pub(super) basis: Basis,
    pub(super) sorter_bytes: u32,
    pub(super) sorter_entries: usize,
    pub(super) sizes: BufferSizes,
    pub(super) frames: u32,
    /// Bytes that a range holds of the buffers on its way.
    pub(super) range_bytes: u64,
    /// The most bytes of an entry in a leaf.
    pub(super) entry_most: usize,
    pub(super) memory_bytes: u64,
    /// The part of the memory that is neither the pool nor the cache, nor the page log's.
    pub(super) fixed_bytes: u64,
    /// Numbers in a chunk of the table, without and with buffers.
    pub(super) chunks: (u32, u32),
}

/// What is stored of the choices that shape the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choices {
    pub(super) node_bytes: u32,
    pub(super) levels_a_buffer: u8,
}

/// The choices that `options` make on `chip`.
///
/// # Errors
/// They are not possible.
pub(super) fn choices(options: &Options, chip: Geometry) -> Result<Choices> {
    let fanout = options.settings.number("fanout").unwrap_or(16);
    let fanout = u32::try_from(fanout).unwrap_or(u32::MAX);
    let levels_a_buffer = levels(options)?;
    let room = PageShape::room_of(&chip);
    Ok(Choices { node_bytes: node_bytes(fanout, options.shape, room), levels_a_buffer })
}

/// K.
pub(super) fn levels(options: &Options) -> Result<u8> {
    let levels = options.settings.number("levels").unwrap_or(2);
    let given = u8::try_from(levels).ok().filter(|levels| (1..=8).contains(levels));
    given.ok_or_else(|| Error::BadParameter {
        name: "levels",
        value: alloc::format!("{levels}"),
        expected: "it must be a number from 1 to 8",
    })
}

impl Plan {
    /// What `options` say of a tree of `shape` with such choices on `chip`.
    ///
    /// # Errors
    /// The memory is too little, or nodes can't hold four entries.
    pub(super) fn new(
        options: &Options,
        shape: EntryShape,
        choices: Choices,
        chip: Geometry,
    ) -> Result<Self> {
        let plan = Self::with_memory(options, shape, (choices, chip), options.memory_bytes)?;
        plan.ok_or_else(|| {
            let need = Self::least_memory(options, shape, choices, chip).unwrap_or(MEMORY_MOST);
            store::Error::LittleMemory { have: options.memory_bytes, need }.into()
        })
    }

    /// The least memory with which the tree works, in bytes.
    ///
    /// # Errors
    /// Nodes can't hold four entries.
    pub(super) fn least_memory(
        options: &Options,
        shape: EntryShape,
        choices: Choices,
        chip: Geometry,
    ) -> Result<u64> {
        let (mut low, mut high) = (0, MEMORY_MOST);
        while low + 1 < high {
            let middle = u64::midpoint(low, high);
            if Self::with_memory(options, shape, (choices, chip), middle)?.is_some() {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }

    fn with_memory(
        options: &Options,
        shape: EntryShape,
        (choices, chip): (Choices, Geometry),
        memory_bytes: u64,
    ) -> Result<Option<Self>> {
        let bytes = choices.node_bytes;
        let what = "they can't hold four entries, or not one fits a page";
        let small = store::Error::NodeSize { bytes, what };
        let pages = PageShape::new(&chip, bytes).ok_or(small)?;
        let leaf = Codec::new(bytes, shape.key, shape.value).ok_or(small)?;
        Codec::new(bytes, shape.key, Width::Fixed(CHILD_BYTES)).ok_or(small)?;
        let entry_most = leaf.entry_bytes_most().min(LENGTH_MOST);
        let buffering = buffering(options);
        let policy = Policy::new(buffering, memory_bytes).with_rule(rule(options));
        let in_stream = entry_most + 4;
        let limit = policy.most_bytes();
        let sorter_bytes = limit.saturating_add(in_stream as u32 + 1);
        let least = key_least(shape);
        let sorter_entries = sorter_bytes as usize / (least + 1) + 1;
        let room = pages.room() as usize;
        let mut sizes = BufferSizes {
            pool_bytes: 0,
            whole_bytes: sorter_bytes,
            entry_most: in_stream,
            entry_least: least,
        };
        let levels = u64::from(12 / choices.levels_a_buffer) + 1;
        let range_bytes = u64::from(limit / 2).max(levels * 4 * (in_stream as u64 + 16));
        let fixed_bytes = u64::from(sorter_bytes)
            + 4 * sorter_entries as u64
            + Nodes::fixed_bytes(&pages)
            + Buffers::fixed_bytes(&pages, &sizes)
            + KEYS * in_stream as u64
            + range_bytes;
        let log = PageLog::least_memory(chip, &options.page_log(false));
        let Some(rest) = memory_bytes.checked_sub(fixed_bytes + log) else {
            return Ok(None);
        };
        let percent = options.settings.number("pool").unwrap_or(75);
        sizes.pool_bytes = rest * percent / 100;
        let frames = (rest - sizes.pool_bytes) / NodeCache::bytes_a_node(bytes as usize);
        let frames = u32::try_from(frames).unwrap_or(u32::MAX).min(1 << 24);
        let pool_least = (room + 4 * in_stream + 64) as u64;
        if sizes.pool_bytes < pool_least || frames < FRAMES_LEAST {
            return Ok(None);
        }
        Ok(Some(Plan {
            shape,
            pages,
            levels_a_buffer: choices.levels_a_buffer,
            policy,
            buffering,
            basis: basis(options),
            sorter_bytes,
            sorter_entries,
            sizes,
            frames,
            range_bytes,
            entry_most,
            memory_bytes,
            fixed_bytes,
            chunks: (
                (pages.room() - CHUNK_HEADER) / 4,
                (pages.room() - CHUNK_HEADER) / (4 + BufferRecord::BYTES as u32),
            ),
        }))
    }
}

/// The least bytes of a key of `shape`.
pub(super) fn key_least(shape: EntryShape) -> usize {
    match shape.key {
        Width::Fixed(key) => usize::from(key),
        Width::Variable => 1,
    }
}

pub(super) fn buffering(options: &Options) -> Buffering {
    match options.settings.value("buffer") {
        Some(Value::Word("none")) => Buffering::None,
        Some(Value::Number(bytes)) => Buffering::Fixed(u32::try_from(bytes).unwrap_or(u32::MAX)),
        _ => Buffering::Adaptive,
    }
}

pub(super) fn rule(options: &Options) -> Rule {
    match options.settings.word("rule") {
        Some("inclusive") => Rule::Inclusive,
        _ => Rule::Printed,
    }
}

pub(super) fn basis(options: &Options) -> Basis {
    match options.settings.word("estimate") {
        Some("printed") => Basis::Printed,
        _ => Basis::Measured,
    }
}

pub(super) fn least_memory(options: &Options, medium: MediumShape) -> Result<u64> {
    let chip = match medium {
        MediumShape::Nand(chip) => chip,
        MediumShape::Sectors(disk) => return in_place::plan::least_memory(options, disk),
    };
    Plan::least_memory(options, options.shape, choices(options, chip)?, chip)
}

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = match medium {
        MediumShape::Nand(chip) => chip,
        MediumShape::Sectors(disk) => return in_place::plan::predict(profile, options, disk),
    };
    let plan = Plan::new(options, options.shape, choices(options, chip)?, chip)?;
    let width = |width| match width {
        Width::Fixed(bytes) => bytes,
        Width::Variable => 16,
    };
    let percent = options.settings.number("pool").unwrap_or(75);
    let plan = predict::Plan {
        shape: plan.pages,
        units: UnitCosts::usual(&plan.pages),
        entry: (width(options.shape.key), width(options.shape.value)),
        levels_per_buffer: u32::from(plan.levels_a_buffer),
        buffering: plan.buffering,
        memory_bytes: plan.memory_bytes,
        pool_ratio: percent as f64 / 100.0,
    };
    Ok(predict::predict(profile, &plan))
}
