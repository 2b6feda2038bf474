//! What a tree is made with, and how its memory is divided (section 4.2).
//!
//! What is fixed comes first: what sorting, reading and packing need. Of the rest the buffer pool
//! gets 75 percent and the node cache the others, for good or to begin with: `sharing.rs` moves
//! memory between them where the setting `share` is `shared`. Tables come beside the budget: 4
//! bytes a node, and for each node with a buffer its record and its place in the pool.

use device::Geometry;
use store::node::Codec;
use store::{EntryShape, PageLog, Width};

use super::buffer_pool::PoolSize;
use super::buffers::{BufferSizes, Buffers, Fences};
use super::cache::{CacheSize, FRAMES_LEAST, NodeCache};
use super::checkpoint_state::{self, Choices};
use super::chunks::CHUNK_OVERHEAD;
use super::cost::{Basis, UnitCosts, predict};
use super::layout::{CHUNK_HEADER, PageShape, codec, fanouts, node_bytes, usual_node_bytes};
use super::nodes::Nodes;
use super::policy::{Buffering, MEMORY_PER_LIMIT, Policy, Rule};
use super::sorter::{Sorter, sorted_most};
use super::stream::{Form, LENGTH_MOST};
use super::table::BufferRecord;
use crate::btree::CHILD_BYTES;
use index::parameters::{Kind, Parameter, Value};
use index::random_keys::average_bytes;
use index::{Error, Footprint, Options, Result};

pub(super) mod disk;
mod sizes;

pub(super) use sizes::{pages_of_generations, reserve};

/// Shared memory moves in such parts, and in no smaller ones than this.
const SHARED_PARTS: u64 = 16;

/// With less memory than this it is divided for good where nothing is said: parts would be too few.
const SHARED_LEAST: u64 = 64 << 10;
const SHARED_PART_LEAST: u64 = 512;

/// The most bytes in which a search for the least memory ends.
pub(super) const MEMORY_MOST: u64 = 1 << 30;

/// The most bytes above which a buffer can be told to be emptied: what sorting them takes is found
/// within [`MEMORY_MOST`], however short entries are.
const BUFFER_MOST: u64 = MEMORY_MOST / 4;

/// The fanout where none is given. Where its node would be larger than a page, it is a page; and
/// where nodes of so few entries would be too small, it is the least that is possible.
const FANOUT: &str = "16";

/// Of all memory pool and cache have at least one part in so many, where nodes are large enough for
/// that.
const MEMORY_PART: u64 = 3;

/// The most levels from one buffered level to the next.
const LEVELS_MOST: u64 = 8;

/// Bytes that the tree takes of the budget for itself: what a part of it gets is not lost by the
/// next.
pub(super) const TREE_BYTES: u64 = 3384;

/// Keys that the tree holds for itself: bounds, separators and the entry that goes down.
const KEYS: u64 = 13;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "node",
        about: "bytes in a node on a disk: a multiple or a whole fraction of the disk's page",
        kind: Kind::Bytes,
        default: "",
    },
    Parameter {
        name: "fanout",
        about: "entries of a node on raw flash, header included; how few and how many there can \
                be follows from page and entries; twice as many, or more, if none is given and \
                tables would leave too little of all memory",
        kind: Kind::Count(4, 4096),
        default: FANOUT,
    },
    Parameter {
        name: "k",
        about: "levels of the tree from one buffered level to the next",
        kind: Kind::Count(1, LEVELS_MOST),
        default: "2",
    },
    Parameter {
        name: "buffer",
        about: "when a buffer is emptied: adaptive, or above so many bytes, or none at all",
        kind: Kind::WordOrBytes(&["adaptive", "none"], BUFFER_MOST),
        default: "adaptive",
    },
    Parameter {
        name: "pool",
        about: "share of the memory for buffers in memory, if it is divided for good; nodes get \
                the rest",
        kind: Kind::Ratio(0.01, 0.99),
        default: "0.75",
    },
    Parameter {
        name: "share",
        about: "memory of pool and nodes: divided for good, or lent to what saves more by it, as \
                it is on raw flash with 64 KiB and more if no pool is given",
        kind: Kind::Word(&["fixed", "shared"]),
        default: "",
    },
    Parameter {
        name: "place",
        about: "where nodes are written: a log and a node table on raw flash, in place on a disk",
        kind: Kind::Word(&["log", "in-place"]),
        default: "",
    },
    Parameter {
        name: "rule",
        about: "the savings that ADAPT counts: as printed, or with those of the lookup itself; or \
                none: the average cost decides",
        kind: Kind::Word(&["printed", "inclusive", "average"]),
        default: "printed",
    },
    Parameter {
        name: "estimate",
        about: "what ADAPT counts: costs as measured online, with what a buffer has in memory \
                counted as if it were on flash (all, so on raw flash), or without (measured, so on \
                disks); or by the printed bounds",
        kind: Kind::Word(&["all", "measured", "printed"]),
        default: "",
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
    /// True if ADAPT counts scans of entries in the pool as if these were on flash.
    pub(super) counts_pool: bool,
    /// The most bytes that the sorter takes: larger buffers are emptied in parts.
    pub(super) sorter_bytes: u32,
    pub(super) sorter_entries: usize,
    pub(super) sizes: BufferSizes,
    pub(super) cache: CacheSize,
    /// What pool and cache share, in bytes; `None` if each has its own.
    pub(super) shared_bytes: Option<u64>,
    /// The fewest bytes of the pool.
    pub(super) pool_least: u64,
    /// True if the pool has few cells: then less is known of each buffer.
    pub(super) has_small_pool: bool,
    /// Bytes that a range holds of the buffers on its way.
    pub(super) range_bytes: u64,
    /// The most bytes of an entry in a leaf.
    pub(super) entry_most: usize,
    pub(super) memory_bytes: u64,
    /// The part of the memory that is neither the pool nor the cache, nor the page log's.
    pub(super) fixed_bytes: u64,
    /// The most bytes that the tables may take, if that is bounded.
    pub(super) tables_most: Option<u64>,
    /// Numbers in a chunk of the table, without and with buffers.
    pub(super) chunks: (u32, u32),
}

/// The choices that `options` make on `chip`.
pub(super) fn choices(options: &Options, chip: Geometry) -> Result<Choices> {
    if let Some(record) = &options.made {
        return Ok(checkpoint_state::describe(record)?.1);
    }
    if let Some(bytes) = options.settings.number("node") {
        let expected = "on raw flash nodes are parts of the chip's pages, and as large as fanout \
                        says";
        let value = alloc::format!("{bytes}");
        return Err(Error::BadParameter { name: "node", value, expected: expected.into() });
    }
    if options.settings.word("place") == Some("in-place") {
        let expected = "on raw flash nothing is overwritten: nodes go to a log";
        let value = "in-place".into();
        return Err(Error::BadParameter { name: "place", value, expected: expected.into() });
    }
    let levels_a_buffer = levels(options);
    let given = options.settings.number("fanout");
    let Some(fanout) = given.filter(|_| options.settings.is_given("fanout")) else {
        return usual_choices(options, levels_a_buffer, chip);
    };
    let room = PageShape::room_of(&chip);
    let possible = fanouts(options.shape, room);
    if !possible.contains(&fanout) {
        let (least, most) = (possible.start(), possible.end());
        return Err(Error::BadParameter {
            name: "fanout",
            value: alloc::format!("{fanout}"),
            expected: alloc::format!(
                "with such entries in pages of {} bytes it must be a whole number from {least} to \
                 {most}",
                chip.page_bytes()
            )
            .into(),
        });
    }
    let fanout = u32::try_from(fanout).unwrap_or(u32::MAX);
    Ok(Choices { node_bytes: node_bytes(fanout, options.shape, room), levels_a_buffer })
}

/// The choices where no fanout is given. Where all memory is bounded, tables included, and it is
/// known how many entries will come, a page has half as many nodes, and again half as many, until
/// their tables leave [`MEMORY_PART`] of it to pool and cache: a leaf takes four bytes of tables
/// whatever its size.
fn usual_choices(options: &Options, levels_a_buffer: u8, chip: Geometry) -> Result<Choices> {
    let room = PageShape::room_of(&chip);
    let with = |node_bytes| Choices { node_bytes, levels_a_buffer };
    let fanout = FANOUT.parse().unwrap_or(16);
    let usual = usual_node_bytes(fanout, options.shape, room);
    let most = node_bytes(u32::MAX, options.shape, room);
    let (Some(_), Some(tables)) = (options.entries, options.tables_bytes) else {
        return Ok(with(usual));
    };
    let all = options.memory_bytes.saturating_add(tables);
    let mut node_bytes = usual;
    loop {
        let needs = needs(options, with(node_bytes), chip)?;
        if needs.memory_least.max(all / MEMORY_PART) + needs.tables <= all {
            return Ok(with(node_bytes));
        }
        let in_page = room / node_bytes;
        if in_page <= 1 || node_bytes >= most {
            // None does: the tree begins, and refuses what its tables have no room for.
            return Ok(with(usual));
        }
        // Of a node whole sixteenths are written.
        node_bytes = (room / in_page.div_ceil(2) / 16 * 16).min(most);
    }
}

/// K. Settings that were parsed are within their bounds.
pub(super) fn levels(options: &Options) -> u8 {
    options.settings.number("k").unwrap_or(2).clamp(1, LEVELS_MOST) as u8
}

impl Plan {
    /// What `options` say of a tree of `shape` with such choices on `chip`.
    pub(super) fn new(
        options: &Options,
        shape: EntryShape,
        choices: Choices,
        chip: Geometry,
    ) -> Result<Self> {
        let with = |memory| Self::with_memory(options, shape, (choices, chip), memory);
        let have = options.memory_bytes;
        if let Some(plan) = with(have)? {
            return Ok(plan);
        }
        let need = Self::least_memory(options, shape, choices, chip)?;
        // Shared memory moves in parts that grow with it: a little more than the least can be too
        // little for parts of the next size. Then that little stays unused.
        let least = if need <= have { with(need)? } else { None };
        least.ok_or_else(|| store::Error::LittleMemory { have, need }.into())
    }

    /// The least memory with which the tree works, in bytes.
    pub(super) fn least_memory(
        options: &Options,
        shape: EntryShape,
        choices: Choices,
        chip: Geometry,
    ) -> Result<u64> {
        least_that_suffices(options, |memory| {
            Ok(Self::with_memory(options, shape, (choices, chip), memory)?.is_some())
        })
    }

    /// What does not depend on the medium: the parts of the memory that are fixed, on raw flash and
    /// on a disk, and nothing yet of pool and cache.
    pub(super) fn undivided(
        options: &Options,
        (shape, choices): (EntryShape, Choices),
        (pages, leaf): (PageShape, &Codec),
        memory_bytes: u64,
    ) -> Self {
        let entry_most = leaf.entry_bytes_most().min(LENGTH_MOST);
        let buffering = buffering(options);
        let policy = Policy::new(buffering, limited_by(&pages, memory_bytes));
        let policy = policy.with_rule(rule(options));
        let in_stream = entry_most + 4;
        let limit = policy.most_bytes();
        // Any fragment finds room.
        let sorter_bytes =
            sorted_most(limit).max(pages.room()).saturating_add(in_stream as u32 + 1);
        let entry_least = key_least(shape);
        let in_page = pages.room() as usize / entry_least.max(1);
        let sorter_entries = (sorter_bytes as usize / (entry_least + 1) + 1).max(in_page);
        let fences = match pages.is_in_place() {
            true => Fences::most(memory_bytes, pages.node_bytes()),
            false => 0,
        };
        let pool = PoolSize::fixed(0);
        let sizes = BufferSizes { pool, entry_most: in_stream, entry_least, fences };
        // With less, a range over much would read fragments twice.
        let range_bytes = range_bytes(choices, limit, in_stream);
        let room = pages.room() - CHUNK_HEADER;
        Plan {
            shape,
            pages,
            levels_a_buffer: choices.levels_a_buffer,
            policy,
            buffering,
            basis: basis(options),
            counts_pool: counts_pool(options, &pages),
            sorter_bytes,
            sorter_entries,
            sizes,
            cache: CacheSize::Fixed(0),
            shared_bytes: None,
            pool_least: 0,
            has_small_pool: false,
            range_bytes,
            entry_most,
            memory_bytes,
            // A range holds its entries in the memory of the sorter.
            fixed_bytes: Sorter::bytes_of(sorter_bytes, sorter_entries).max(range_bytes)
                + Nodes::fixed_bytes(&pages)
                + Buffers::fixed_bytes(&pages, &sizes)
                + KEYS * in_stream as u64
                + TREE_BYTES,
            tables_most: options.tables_bytes,
            chunks: (room / 4, room / (4 + BufferRecord::BYTES as u32)),
        }
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
        let leaf = codec(bytes, shape.key, shape.value).ok_or(small)?;
        codec(bytes, shape.key, Width::Fixed(CHILD_BYTES)).ok_or(small)?;
        let given = (shape, choices);
        let mut plan = Self::undivided(options, given, (pages, &leaf), memory_bytes);
        let log = PageLog::least_memory(chip, &options.page_log());
        plan.fixed_bytes += 2 * CHUNK_OVERHEAD;
        let Some(rest) = memory_bytes.checked_sub(plan.fixed_bytes + log) else {
            return Ok(None);
        };
        plan.pool_least = Buffers::pool_least(&pages, &plan.sizes);
        let divided = |is_shared| {
            let divided = divide(rest, options, (bytes as usize, is_shared));
            divided.filter(|(pool, cache)| {
                pool.bytes >= plan.pool_least && cache.frames() >= FRAMES_LEAST
            })
        };
        let mut is_shared = is_shared(options, memory_bytes);
        let mut found = divided(is_shared);
        if found.is_none() && is_shared && options.settings.word("share").is_none() {
            is_shared = false;
            found = divided(false);
        }
        let Some((pool, cache)) = found else {
            return Ok(None);
        };
        (plan.sizes.pool, plan.cache) = (pool, cache);
        plan.has_small_pool = Buffers::has_small_pool(Form::new(shape), &pages, &plan.sizes);
        plan.shared_bytes = is_shared.then_some(rest);
        Ok(Some(plan))
    }

    /// The choices that are stored with the tree.
    pub(super) const fn choices(&self) -> Choices {
        Choices { node_bytes: self.pages.node_bytes(), levels_a_buffer: self.levels_a_buffer }
    }

    /// Refuses a pool and a cache for which the system has no memory.
    pub(super) fn check_memory(&self) -> Result<()> {
        let node = NodeCache::bytes_a_node(self.pages.node_bytes() as usize);
        let cache = u64::from(self.cache.frames()) * node;
        Ok(store::check_memory(self.sizes.pool.bytes + cache)?)
    }

    /// What the cost model needs to know, with what reading and writing take on the medium, and
    /// the nodes that are cached.
    pub(super) fn for_predicting(&self, units: UnitCosts, cache_nodes: u32) -> predict::Plan {
        let is_fixed = |width| matches!(width, Width::Fixed(_));
        let nodes_are_packed = is_fixed(self.shape.key) && is_fixed(self.shape.value);
        let units = match nodes_are_packed && !self.pages.is_in_place() {
            true => units.of_nodes(&self.pages, predict::used_bytes(self.pages.node_bytes())),
            false => units,
        };
        predict::Plan {
            shape: self.pages,
            nodes_are_packed,
            units,
            entry: (average_bytes(self.shape.key), average_bytes(self.shape.value)),
            levels_per_buffer: u32::from(self.levels_a_buffer),
            buffering: self.buffering,
            memory_bytes: limited_by(&self.pages, self.memory_bytes),
            pool_bytes: self.sizes.pool.bytes,
            cache_nodes,
            counts_pool: self.counts_pool,
            shared: self
                .shared_bytes
                .map(|bytes| (bytes, NodeCache::bytes_a_node(self.pages.node_bytes() as usize))),
        }
    }
}

/// The least memory, in bytes, that `suffices`.
///
/// # Errors
/// None does, for so much of it is the pool's that no node finds room in the rest: that follows
/// from `options`.
pub(super) fn least_that_suffices(
    options: &Options,
    mut suffices: impl FnMut(u64) -> Result<bool>,
) -> Result<u64> {
    if !suffices(MEMORY_MOST)? {
        let most = (1.0 - 1.0 / SHARED_PARTS as f64) * 100.0;
        return Err(Error::BadParameter {
            name: "pool",
            value: alloc::format!("{}", pool_ratio(options, false)),
            expected: alloc::format!(
                "nodes need a part of the memory, too: with share=shared it must be a ratio from \
                 0.01 to {}",
                most as u64 as f64 / 100.0
            )
            .into(),
        });
    }
    let (mut low, mut high) = (0, MEMORY_MOST);
    while low + 1 < high {
        let middle = u64::midpoint(low, high);
        if suffices(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Pages of a buffer beyond which longer fragments save little.
const PAGES_ENOUGH: u64 = 8;

/// The memory of which U is a part. On raw flash it is half of the budget where U has
/// [`PAGES_ENOUGH`] pages then: buffers that lookups meet get nowhere near, and what sorts them is
/// missing elsewhere.
fn limited_by(pages: &PageShape, memory_bytes: u64) -> u64 {
    let enough = MEMORY_PER_LIMIT * PAGES_ENOUGH * u64::from(pages.room());
    match pages.is_in_place() {
        true => memory_bytes,
        false => memory_bytes.min(enough.max(memory_bytes / 2)),
    }
}

/// Bytes of the entries that a range holds: of four a buffered level at the least.
fn range_bytes(choices: Choices, part: u32, in_stream: usize) -> u64 {
    let levels = u64::from(12 / choices.levels_a_buffer) + 1;
    u64::from(part).max(levels * 4 * (in_stream as u64 + 16))
}

/// Divides `rest` bytes between the pool and the cache of nodes of `node_bytes` bytes; `None` if
/// they are too few.
fn divide(
    rest: u64,
    options: &Options,
    (node_bytes, is_shared): (usize, bool),
) -> Option<(PoolSize, CacheSize)> {
    let bytes = ((rest as f64 * pool_ratio(options, is_shared)) as u64).min(rest);
    if !is_shared {
        let frames = (rest - bytes) / NodeCache::bytes_a_node(node_bytes);
        let frames = u32::try_from(frames).unwrap_or(u32::MAX).min(1 << 24);
        return Some((PoolSize::fixed(bytes), CacheSize::Fixed(frames)));
    }
    let unit = (rest / SHARED_PARTS).max(SHARED_PART_LEAST);
    let pool = PoolSize::shared(bytes, rest, unit);
    Some((pool, CacheSize::shared(node_bytes, rest - bytes, rest, unit)?))
}

fn is_shared(options: &Options, memory_bytes: u64) -> bool {
    match options.settings.word("share") {
        Some("shared") => true,
        Some("fixed") => false,
        // Who says how large the pool is means it.
        _ => memory_bytes >= SHARED_LEAST && !options.settings.is_given("pool"),
    }
}

/// The least bytes of a key of `shape`.
fn key_least(shape: EntryShape) -> usize {
    match shape.key {
        Width::Fixed(key) => usize::from(key),
        Width::Variable => 1,
    }
}

/// The share of the memory left over that the buffer pool gets.
pub(super) fn pool_ratio(options: &Options, is_shared: bool) -> f64 {
    match is_shared && !options.settings.is_given("pool") {
        // It moves from there to where it saves more.
        true => 0.5,
        false => options.settings.ratio("pool").unwrap_or(0.75),
    }
}

fn buffering(options: &Options) -> Buffering {
    match options.settings.value("buffer") {
        Some(Value::Word("none")) => Buffering::None,
        Some(Value::Number(bytes)) => Buffering::Fixed(u32::try_from(bytes).unwrap_or(u32::MAX)),
        _ => Buffering::Adaptive,
    }
}

fn rule(options: &Options) -> Rule {
    match options.settings.word("rule") {
        Some("inclusive") => Rule::Inclusive,
        Some("average") => Rule::Average,
        _ => Rule::Printed,
    }
}

fn basis(options: &Options) -> Basis {
    match options.settings.word("estimate") {
        Some("printed") => Basis::Printed,
        _ => Basis::Measured,
    }
}

/// True if estimates count all entries of a buffer, as the equations do, not only those that a scan
/// has to read.
fn counts_pool(options: &Options, pages: &PageShape) -> bool {
    match options.settings.word("estimate") {
        None => !pages.is_in_place(),
        Some(word) => word == "all",
    }
}

/// What a tree with such choices needs.
pub(super) fn needs(options: &Options, choices: Choices, chip: Geometry) -> Result<Footprint> {
    let memory_least = Plan::least_memory(options, options.shape, choices, chip)?;
    let memory_bytes = options.memory_bytes.max(memory_least);
    let options = Options { memory_bytes, ..options.clone() };
    let plan = Plan::new(&options, options.shape, choices, chip)?;
    Ok(Footprint {
        memory_least,
        tables: plan.table_bytes_of(options.entries) + PageLog::table_bytes_on(chip),
        units_least: sizes::fewest_blocks(&plan, chip, &options.page_log()).into(),
    })
}
