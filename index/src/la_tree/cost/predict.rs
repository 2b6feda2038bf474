//! What a workload of random keys costs an LA-Tree that is in its steady state.
//!
//! Of u updates and l lookups, each buffered subtree sees its share, so all see `q = l / u` lookups
//! an update. What decides is at how many entries b a buffer is emptied, for what emptying changes
//! is shared by them.
//!
//! # When a buffer is emptied
//! Above its limit of U entries; but entries come in batches of c from the buffer above, so it is
//! only seen to be too large after a whole number of them: after n with the chance that n are more
//! than U, and n - 1 are not. Where batches are small that is at about `U + c / 2`. Of several
//! changes of a key only the newest goes on, so the batches are smaller than what was emptied.
//!
//! Or by ADAPT. A buffer that is in the pool costs no scan. In a pool of P entries the fullest
//! buffers leave, so what all have there is spread evenly between nothing and some x, the size of a
//! fragment: x is such that this fills the pool. A register taken when the buffer has k fragments
//! comes due after `e / (k s)` lookups, if scanning a fragment costs s and emptying e. The first to
//! come due empties the buffer (section 2.2):
//!
//! ```text
//! b = min over k of  k x + e / (k s q)
//! ```
//!
//! A buffer that is emptied below x never reaches flash.
//!
//! Few buffers are not spread evenly: what they have together goes up and down, and leaves the
//! pool at its highest, though the average would fit. If each is anywhere between nothing and twice
//! its average h with the same chance, the sum has the variance `sum of h^2 / 3`; as if it were a
//! normal distribution, its average without what is above P tells what stays in the pool.
//!
//! A buffer that its last batch made too large for memory goes to flash but for a page before it is
//! emptied, if that batch is more than a page.
//!
//! # What is in the cache
//! The cache holds the pages used last. Between two lookups through a node that has n on its level,
//! t lookups go by with the chance of `(1 - 1/n)^(t - 1) / n`; the node stays if the pages they
//! touch, `n (1 - (1 - 1/n)^t)` of each level, fit the cache beside it. On a disk fragments are
//! pages in that cache, too.

use alloc::vec::Vec;

use store::Width;
use store::node::{Codec, HEADER_BYTES};

use super::super::layout::{FRAGMENT_HEADER_BYTES, PageShape};
use super::super::policy::{Buffering, Policy};
use super::UnitCosts;
use crate::registry::{Prediction, Profile};

/// How full nodes are after many random inserts: the natural logarithm of 2.
const OCCUPANCY: f64 = core::f64::consts::LN_2;

/// The most levels that are looked at.
const LEVELS_MOST: usize = 32;

/// Registers with more fragments than this are not looked at.
const FRAGMENTS_MOST: u32 = 256;

/// The most lists of buffers that the pool has.
const LISTS_MOST: f64 = 256.0;

/// Standard deviations above the average that are never reached.
const NEVER_BEYOND: f64 = 3.0;

/// With more batches than this to a buffer it does not matter that their number is a whole one.
const BATCHES_MOST: f64 = 30.0;

/// The standard deviation of how full nodes are, which are half full at least, to their average.
const UNEVEN: f64 = 0.19;

/// Rounds in which sizes of buffers and of fragments are brought together.
const ROUNDS: usize = 6;

/// What a tree is made with.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Plan {
    pub(in super::super) shape: PageShape,
    pub(in super::super) units: UnitCosts,
    /// Bytes of a key and of a value.
    pub(in super::super) entry: (u16, u16),
    /// K.
    pub(in super::super) levels_per_buffer: u32,
    pub(in super::super) buffering: Buffering,
    pub(in super::super) memory_bytes: u64,
    /// The pool's part of it, and the nodes that the cache holds.
    pub(in super::super) pool_bytes: u64,
    pub(in super::super) cache_nodes: u32,
}

/// Nodes of each level, the leaves first, and how they are filled.
struct Levels {
    nodes: [f64; LEVELS_MOST],
    height: usize,
    entries_per_leaf: f64,
}

/// The buffers of a level. Sizes are in entries.
#[derive(Clone, Copy, Debug)]
struct Buffers {
    level: usize,
    count: f64,
    /// The lowest level of the subtrees, S, and L where these are leaves.
    lowest: usize,
    nodes: f64,
    leaves: f64,
    /// Entries at which a buffer is emptied.
    emptied: f64,
    /// Entries that a lookup finds in one.
    held: f64,
    /// Entries that go to flash at the latest when it is emptied.
    beyond: f64,
    /// Entries that go on when it is emptied.
    passed: f64,
}

/// What a buffer has on flash.
#[derive(Clone, Copy, Debug)]
struct Fragments {
    /// Entries at which the first of it leaves the pool, and those of a fragment.
    first: f64,
    each: f64,
}

impl Fragments {
    /// Fragments of a buffer of `entries` entries.
    fn of(&self, entries: f64) -> f64 {
        if entries < self.first { 0.0 } else { 1.0 + floor((entries - self.first) / self.each) }
    }

    /// As many on the average, while a buffer grows to `entries`.
    fn mean(&self, entries: f64) -> f64 {
        if entries < self.first {
            return 0.0;
        }
        let beyond = entries - self.first;
        let whole = floor(beyond / self.each);
        let grown = self.each * whole * (whole + 1.0) / 2.0;
        (grown + (beyond - whole * self.each) * (whole + 1.0)) / entries
    }

    /// Entries of a buffer in the pool on the average.
    fn in_pool(&self, buffer: &Buffers) -> f64 {
        if buffer.emptied < self.first {
            return buffer.held;
        }
        buffer.held.min(self.first - self.each / 2.0)
    }
}

/// What `profile` costs a tree made by `plan`.
pub(in super::super) fn predict(profile: &Profile, plan: &Plan) -> Prediction {
    let levels = levels(profile.entries, plan);
    let (buffers, fragments) = buffers(profile, plan, &levels);
    let cache = Cache::new(plan, &levels, &buffers, &fragments);
    let missed: Vec<f64> = (0..levels.height).map(|level| cache.missed(Some(level))).collect();
    let fragment_missed = cache.missed(None);
    let (mut reads, mut writes) = (0.0, 0.0);
    // A lookup goes down until a buffer has its key.
    let mut going = profile.lookups;
    for level in (0..levels.height).rev() {
        if let Some(buffer) = buffers.iter().find(|buffer| buffer.level == level) {
            reads += going * fragments.mean(buffer.emptied) * fragment_missed;
            let keys = profile.entries as f64 / buffer.count;
            going *= libm::exp(-buffer.held / keys.max(1.0));
        }
        reads += going * missed[level];
    }
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let split = profile.inserts / updates.max(f64::MIN_POSITIVE) / levels.entries_per_leaf;
    let mut coming = updates;
    for buffer in &buffers {
        let emptyings = coming / buffer.emptied;
        coming = emptyings * buffer.passed;
        let way: f64 = missed[buffer.level..].iter().sum();
        let below: f64 = (buffer.lowest..buffer.level)
            .map(|level| {
                touched(levels.nodes[level] / buffer.count, buffer.emptied) * missed[level]
            })
            .sum();
        let chain = fragments.of(buffer.emptied).max(buffer.beyond / page_entries(plan));
        reads += emptyings * (chain * fragment_missed + way + below);
        let header = FRAGMENT_HEADER_BYTES as f64 / fragments.each;
        let stored = (fragments.of(buffer.emptied) * fragments.each).min(buffer.emptied);
        let stored = stored.max(buffer.beyond) * (entry_bytes(plan) + header);
        writes += emptyings * stored / f64::from(plan.shape.room());
        if buffer.leaves > 0.0 && !cache.holds_all() {
            let nodes = touched(buffer.leaves, buffer.emptied) + 2.0 * split * buffer.emptied;
            writes += emptyings * nodes / f64::from(plan.shape.nodes_per_page());
        }
    }
    Prediction { page_reads: reads, page_writes: writes, height: levels.height as u32 }
}

fn floor(number: f64) -> f64 {
    libm::floor(number)
}

/// Of `nodes` nodes, those that are touched `times` times at random.
fn touched(nodes: f64, times: f64) -> f64 {
    if nodes <= 1.0 {
        return nodes.max(0.0) * times.min(1.0);
    }
    nodes * (1.0 - libm::pow(1.0 - 1.0 / nodes, times))
}

/// Bytes of an entry in a buffer, its share of the byte of kinds included.
fn entry_bytes(plan: &Plan) -> f64 {
    f64::from(plan.entry.0) + f64::from(plan.entry.1) + 0.125
}

/// Entries that fill a page of fragments.
fn page_entries(plan: &Plan) -> f64 {
    (f64::from(plan.shape.room()) / entry_bytes(plan)).max(1.0)
}

fn levels(entries: u64, plan: &Plan) -> Levels {
    let capacity = |value: u16| {
        let (bytes, key) = (plan.shape.node_bytes(), plan.entry.0);
        let codec = Codec::new(bytes, Width::Fixed(key), Width::Fixed(value));
        let least = (bytes as usize - HEADER_BYTES) / 32;
        codec.map_or(least, |codec| codec.capacity(usize::from(key), usize::from(value))) as f64
    };
    let entries_per_leaf = capacity(plan.entry.1) * OCCUPANCY;
    let children = (capacity(4) * OCCUPANCY).max(2.0);
    let mut levels = Levels { nodes: [1.0; LEVELS_MOST], height: 1, entries_per_leaf };
    levels.nodes[0] = (entries as f64 / entries_per_leaf).max(1.0);
    while levels.height < LEVELS_MOST && levels.nodes[levels.height - 1] > 1.0 {
        let nodes = levels.nodes[levels.height - 1] / children;
        // Between one node and two there is nothing.
        levels.nodes[levels.height] = if nodes <= 1.0 { 1.0 } else { nodes.max(2.0) };
        levels.height += 1;
    }
    levels
}

/// What the cache holds.
struct Cache<'p> {
    nodes: &'p [f64],
    /// Nodes, or pages, that it has room for.
    room: f64,
    /// Pages of fragments that a lookup reads, and those that there are; none on raw flash, where
    /// fragments are not in the cache.
    read: f64,
    pages: f64,
}

impl<'p> Cache<'p> {
    fn new(plan: &Plan, levels: &'p Levels, buffers: &[Buffers], fragments: &Fragments) -> Self {
        let in_page = f64::from(plan.shape.room()) / entry_bytes(plan);
        let (mut read, mut pages) = (0.0, 0.0);
        for buffer in buffers.iter().filter(|_| plan.shape.is_in_place()) {
            let mean = fragments.mean(buffer.emptied);
            read += mean;
            pages += buffer.count * mean * fragments.each / in_page;
        }
        let nodes = &levels.nodes[..levels.height];
        Cache { nodes, room: f64::from(plan.cache_nodes), read, pages: pages.max(read) }
    }

    fn holds_all(&self) -> bool {
        self.nodes.iter().sum::<f64>() + self.pages <= self.room
    }

    /// The chance that a node of `level`, or a page of fragments, is read and not found.
    fn missed(&self, level: Option<usize>) -> f64 {
        if level.is_none() && self.pages == 0.0 {
            return 1.0;
        }
        // A lookup reads so many pages of fragments, or one more.
        let (few, more) = (floor(self.read), self.read - floor(self.read));
        (1.0 - more) * self.missed_with(level, few) + more * self.missed_with(level, few + 1.0)
    }

    fn missed_with(&self, level: Option<usize>, fragments: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1e9);
        // What is a whole number may come out a little above it.
        let room = self.room - 1.0 + 1e-6;
        if self.between(level, fragments, high) <= room {
            return 0.0;
        }
        while high - low > 1.0 {
            let middle = floor(f64::midpoint(low, high));
            if self.between(level, fragments, middle) <= room {
                low = middle;
            } else {
                high = middle;
            }
        }
        let each = level.map_or(fragments / self.pages.max(1.0), |level| 1.0 / self.nodes[level]);
        libm::pow(1.0 - each.min(1.0), low)
    }

    /// Other pages that are touched between two uses of a page that are `lookups` lookups apart.
    fn between(&self, level: Option<usize>, fragments: f64, lookups: f64) -> f64 {
        let nodes = self.nodes.iter().enumerate().map(|(other, nodes)| {
            let is_its = level == Some(other);
            let less = f64::from(u8::from(is_its));
            touched((nodes - less).max(0.0), lookups - less)
        });
        nodes.sum::<f64>() + touched(self.pages, fragments * lookups)
    }
}

/// The levels with buffers, the root's first.
fn buffered_levels(levels: &Levels, plan: &Plan) -> Vec<usize> {
    let (height, step) = (levels.height, (plan.levels_per_buffer as usize).max(1));
    let has_buffers = !matches!(plan.buffering, Buffering::None);
    (0..height)
        .rev()
        .filter(|level| level + 1 == height || has_buffers && (level + 1).is_multiple_of(step))
        .collect()
}

/// All buffers, the root's first, and what of them is on flash.
fn buffers(profile: &Profile, plan: &Plan, levels: &Levels) -> (Vec<Buffers>, Fragments) {
    let buffered = buffered_levels(levels, plan);
    let mut buffers = Vec::with_capacity(buffered.len());
    for (place, level) in buffered.iter().enumerate() {
        let count = levels.nodes[*level];
        let lowest = buffered.get(place + 1).map_or(0, |below| below + 1);
        let nodes = levels.nodes[lowest..=*level].iter().sum::<f64>() / count;
        let leaves = if lowest == 0 { levels.nodes[0] / count } else { 0.0 };
        buffers.push(Buffers {
            level: *level,
            count,
            lowest,
            nodes,
            leaves,
            emptied: 1.0,
            held: 0.0,
            beyond: 0.0,
            passed: 1.0,
        });
    }
    let mut fragments = Fragments { first: f64::INFINITY, each: page_entries(plan) };
    grow(profile, plan, &mut buffers, &fragments);
    let pool = pool_entries(plan, &buffers);
    for _ in 0..ROUNDS {
        fragments = fragments_of(plan, &buffers, pool, fragments);
        grow(profile, plan, &mut buffers, &fragments);
    }
    (buffers, fragments)
}

/// When buffers are emptied, if so much of them is on flash.
fn grow(profile: &Profile, plan: &Plan, buffers: &mut [Buffers], fragments: &Fragments) {
    let most = f64::from(Policy::new(plan.buffering, plan.memory_bytes).most_bytes());
    // An entry counts a byte more than it has.
    let limit = (most / (entry_bytes(plan) + 0.875)).max(1.0);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let changed = 1.0 - profile.inserts / updates.max(f64::MIN_POSITIVE);
    let mut from: Option<Buffers> = None;
    for buffer in buffers {
        let batch = from.map_or(1.0, |above| above.passed * above.count / buffer.count);
        let due = due(profile, plan, buffer, fragments);
        buffer.emptied = due.min(outgrown(limit, batch, buffer.count)).max(batch).max(1.0);
        buffer.held = ((buffer.emptied - batch) / 2.0).max(0.0);
        let page = page_entries(plan);
        let is_large = buffer.emptied > limit && batch > page;
        buffer.beyond = if is_large { buffer.emptied - page } else { 0.0 };
        // What is put to new keys has no older entry.
        let keys = profile.entries as f64 / buffer.count;
        let twice = (buffer.emptied - touched(keys, buffer.emptied)).max(0.0);
        buffer.passed = buffer.emptied - changed * twice;
        from = Some(*buffer);
    }
}

/// Entries of a buffer when batches of `batch` entries make it larger than `limit`, where `count`
/// buffers share what comes from above.
fn outgrown(limit: f64, batch: f64, count: f64) -> f64 {
    if count <= 1.0 || batch * BATCHES_MOST < limit {
        return limit + batch / 2.0;
    }
    // Keys fall at random, and but for the two halves of what was one node, nodes differ.
    let uneven = UNEVEN * (1.0 - 2.0 / count).max(0.0);
    let chance = batch * (1.0 - 1.0 / count);
    let (mut batches, mut within, mut number) = (0.0, 1.0, 0.0);
    while number < 2.0 * BATCHES_MOST && within > 1e-6 {
        batches += within;
        number += 1.0;
        let spread = number * batch * uneven;
        let deviation = libm::sqrt(number * chance + spread * spread);
        let above = (number * batch - limit) / deviation.max(f64::MIN_POSITIVE);
        within = libm::erfc(above / core::f64::consts::SQRT_2) / 2.0;
    }
    batches * batch
}

/// Entries at which ADAPT empties a buffer.
fn due(profile: &Profile, plan: &Plan, buffer: &Buffers, fragments: &Fragments) -> f64 {
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let ratio = profile.lookups / updates.max(f64::MIN_POSITIVE);
    let is_adaptive = matches!(plan.buffering, Buffering::Adaptive);
    if !is_adaptive || ratio <= 0.0 || fragments.first.is_infinite() {
        return f64::INFINITY;
    }
    let (units, bytes) = (&plan.units, entry_bytes(plan));
    let (node_read, node_write) = (units.node_read as f64, units.node_write as f64);
    let fragment = fragments.each * bytes * units.byte_read as f64 / 1000.0;
    let fragment = units.fragment_read as f64 + fragment;
    let emptying = |entries: f64| {
        let inner = (buffer.nodes - buffer.leaves) * node_read;
        inner
            + if buffer.leaves > 0.0 {
                touched(buffer.leaves, entries) * (node_read + node_write)
            } else {
                entries * bytes * units.byte_write as f64 / 1000.0
            }
    };
    let register = |number: u32| {
        let number = f64::from(number);
        let entries = fragments.first + (number - 1.0) * fragments.each;
        let scan = number * fragment;
        entries + (scan + emptying(entries)) / (scan * ratio)
    };
    (1..=FRAGMENTS_MOST).map(register).fold(f64::INFINITY, f64::min)
}

/// Entries that the pool has on the average, with buffers that would be so large if it had all.
fn pool_entries(plan: &Plan, buffers: &[Buffers]) -> f64 {
    let page = page_entries(plan);
    // A cell has a link of two bytes, and each number of entries up to a page a list of buffers.
    let lists = 4.0 * (page.min(LISTS_MOST) + 1.0);
    let room = (plan.pool_bytes as f64 - lists).max(0.0) / (entry_bytes(plan) - 0.125 + 2.0);
    // When the pool is full, a page of it leaves.
    let pool = (room - page / 2.0).max(room / 2.0);
    let all = buffers.iter().map(|all| all.count * all.held).sum::<f64>();
    let variance = buffers.iter().map(|all| all.count * all.held * all.held / 3.0).sum::<f64>();
    let deviation = libm::sqrt(variance).max(f64::MIN_POSITIVE);
    let beside = (room - all) / deviation;
    if all <= pool && beside > NEVER_BEYOND {
        return pool;
    }
    let kept = all - deviation * mean_above(beside);
    // It is not always full.
    if all < room { kept } else { pool.min(kept) }
}

/// What of the buffers is on flash, so that the others have `pool` entries; as before, if they have
/// no more.
fn fragments_of(plan: &Plan, buffers: &[Buffers], pool: f64, before: Fragments) -> Fragments {
    let page = page_entries(plan);
    let of = |first: f64| Fragments { first, each: first.min(page) };
    let held = |first: f64| {
        let fragments = of(first);
        buffers.iter().map(|all| all.count * fragments.in_pool(all)).sum::<f64>()
    };
    let most = buffers.iter().map(|all| all.emptied).fold(1.0, f64::max);
    if held(most + 1.0) <= pool {
        return before;
    }
    let (mut low, mut high) = (1.0, most);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if held(middle) <= pool { low = middle } else { high = middle }
    }
    of(low)
}

/// By how much a standard normal variable is above `bound` on the average, nothing if it is below.
fn mean_above(bound: f64) -> f64 {
    let density = libm::exp(-bound * bound / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
    density - bound * libm::erfc(bound / core::f64::consts::SQRT_2) / 2.0
}
