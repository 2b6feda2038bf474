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
//! comes due after `e / (k s)` lookups, if scanning a fragment costs s and emptying e; whole
//! lookups count, and the one it is taken at. The first to come due empties the buffer (section
//! 2.2):
//!
//! ```text
//! b = min over k of  k x + (e / (k s) + 1.5) / q
//! ```
//!
//! On raw flash the pool is small beside a page, and leaves by whole pages. If g updates pass
//! between two of them and r entries come to a buffer for an update, in batches of c, the buffer
//! goes at `max(g r, x + (g r + c) / 2)`. In place this is left out: buffers are few there, and x
//! alone is nearer to what the tree does.
//!
//! A buffer that is emptied below x never reaches flash. There the processor's time to search it,
//! `c` for each entry beyond the first `n0`, takes the place of the scan:
//!
//! ```text
//! b = n0 + 2 (e / (c q))^(1/2) + 1.5 / q
//! ```
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
use super::super::nodes::CHILD_BYTES;
use super::super::policy::{Buffering, Policy};
use super::{ENTRY_SEARCH, SEARCHED_AT_ONCE, UnitCosts};
use crate::random_keys::{Levels, last_that_holds};
use crate::registry::{Prediction, Profile};

/// Registers with more fragments than this are not looked at.
const FRAGMENTS_MOST: u32 = 256;

/// Lookups that a register waits for besides `e / s`: the one that it is taken at, and, as only
/// whole ones count and the savings have to exceed the cost, half of one more.
const LOOKUPS_BESIDE: f64 = 1.5;

/// The most lists of buffers that the pool has.
const LISTS_MOST: f64 = 256.0;

/// Standard deviations above the average that are never reached.
const NEVER_BEYOND: f64 = 3.0;

/// With more batches than this to a buffer it does not matter that their number is a whole one.
const BATCHES_MOST: f64 = 30.0;

/// The standard deviation of how full nodes are, which are half full at least, to their average.
const UNEVEN: f64 = 0.19;

/// Rounds in which sizes of buffers and of fragments are brought together.
const ROUNDS: usize = 12;

/// Sizes of a buffer that lookups are taken to come at.
const SIZES: u32 = 64;

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

/// The buffers of a level. Sizes are in entries.
#[derive(Clone, Copy, Debug)]
struct Buffers {
    level: usize,
    count: f64,
    /// The lowest level of the subtrees, S, and L where these are leaves.
    lowest: usize,
    nodes: f64,
    leaves: f64,
    /// Entries that come to one for an update of the tree.
    rate: f64,
    /// Lookups that come to one for an entry that does.
    lookups: f64,
    /// Entries that come at once.
    batch: f64,
    /// Entries at which a buffer is emptied.
    emptied: f64,
    /// The most entries that a lookup finds in one; it may be any number below.
    seen: f64,
    /// What of it goes to flash before.
    flash: Fragments,
    /// Entries that go to flash at the latest when it is emptied.
    beyond: f64,
    /// Entries that go on when it is emptied.
    passed: f64,
}

impl Buffers {
    /// Entries that a lookup finds in a buffer.
    fn held(&self) -> f64 {
        self.seen / 2.0
    }

    /// Those of them that are in the pool, if `flash` is what goes to flash.
    fn in_pool(&self, flash: &Fragments) -> f64 {
        // One that was put to the pool may send the fragment to flash.
        let most = flash.fullest - f64::midpoint(flash.each, 1.0);
        self.held().min(most.max(0.0))
    }

    /// Fragments that a lookup reads, which does not go on when it finds its key, one of `keys`;
    /// and the chance that it does not find it.
    fn searched(&self, keys: f64) -> (f64, f64) {
        let (keys, each) = (keys.max(1.0), self.flash.each);
        let (mut read, mut missed) = (0.0, 0.0);
        for step in 0..SIZES {
            let part = (f64::from(step) + 0.5) / f64::from(SIZES);
            // Batches differ, and so do fragments: one more of them may be there before the last.
            let entries = self.emptied * part;
            let number = self.flash.of(entries);
            let in_pool = libm::exp(-(entries - number * each) / keys);
            let beside = libm::exp(-each / keys);
            read += in_pool * (1.0 - libm::pow(beside, number)) / (1.0 - beside);
            missed += libm::exp(-self.seen * part / keys);
        }
        (read / f64::from(SIZES), missed / f64::from(SIZES))
    }

    /// Entries that go to flash of a buffer until it is emptied.
    fn stored(&self) -> f64 {
        let stored = self.flash.of(self.emptied) * self.flash.each;
        stored.min(self.emptied).max(self.beyond)
    }
}

/// What a buffer has on flash.
#[derive(Clone, Copy, Debug)]
struct Fragments {
    /// Entries at which the first of it leaves the pool, and those of a fragment.
    first: f64,
    each: f64,
    /// Entries of the buffer in the pool at most, but for a short time.
    fullest: f64,
}

impl Fragments {
    /// All is in the pool.
    fn none(plan: &Plan) -> Self {
        let never = f64::INFINITY;
        Fragments { first: never, each: page_entries(plan), fullest: never }
    }

    /// Fragments of a buffer of `entries` entries.
    fn of(&self, entries: f64) -> f64 {
        if entries < self.first { 0.0 } else { 1.0 + floor((entries - self.first) / self.each) }
    }
}

/// What `profile` costs a tree made by `plan`.
pub(in super::super) fn predict(profile: &Profile, plan: &Plan) -> Prediction {
    let levels = levels(profile.entries, plan);
    let buffers = buffers(profile, plan, &levels);
    let cache = Cache::new(profile, plan, &levels, &buffers);
    let missed: Vec<f64> = (0..levels.height).map(|level| cache.missed(Some(level))).collect();
    let fragment_missed = cache.missed(None);
    let (mut reads, mut writes) = (0.0, 0.0);
    // A lookup goes down until a buffer has its key.
    let mut going = profile.lookups;
    for level in (0..levels.height).rev() {
        if let Some(buffer) = buffers.iter().find(|buffer| buffer.level == level) {
            let (fragments, on) = buffer.searched(profile.entries as f64 / buffer.count);
            reads += going * fragments * fragment_missed;
            going *= on;
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
                touched(levels.nodes()[level] / buffer.count, buffer.emptied) * missed[level]
            })
            .sum();
        let chain = buffer.flash.of(buffer.emptied).max(buffer.beyond / page_entries(plan));
        reads += emptyings * (chain * fragment_missed + way + below);
        let header = FRAGMENT_HEADER_BYTES as f64 / buffer.flash.each;
        let stored = buffer.stored() * (entry_bytes(plan) + header);
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
    Levels::new(entries, capacity(plan.entry.1), capacity(CHILD_BYTES))
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
    fn new(profile: &Profile, plan: &Plan, levels: &'p Levels, buffers: &[Buffers]) -> Self {
        let in_page = f64::from(plan.shape.room()) / entry_bytes(plan);
        let (mut read, mut pages) = (0.0, 0.0);
        for buffer in buffers.iter().filter(|_| plan.shape.is_in_place()) {
            let (mean, _) = buffer.searched(profile.entries as f64 / buffer.count);
            read += mean;
            pages += buffer.count * mean * buffer.flash.each / in_page;
        }
        let nodes = levels.nodes();
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
fn buffers(profile: &Profile, plan: &Plan, levels: &Levels) -> Vec<Buffers> {
    let buffered = buffered_levels(levels, plan);
    let mut buffers = Vec::with_capacity(buffered.len());
    for (place, level) in buffered.iter().enumerate() {
        let count = levels.nodes()[*level];
        let lowest = buffered.get(place + 1).map_or(0, |below| below + 1);
        let nodes = levels.nodes()[lowest..=*level].iter().sum::<f64>() / count;
        let leaves = if lowest == 0 { levels.nodes()[0] / count } else { 0.0 };
        buffers.push(Buffers {
            level: *level,
            count,
            lowest,
            nodes,
            leaves,
            rate: 1.0 / count,
            lookups: 0.0,
            batch: 0.0,
            emptied: 1.0,
            seen: 0.0,
            flash: Fragments::none(plan),
            beyond: 0.0,
            passed: 1.0,
        });
    }
    let mut missed = alloc::vec![1.0; levels.height];
    grow(profile, plan, &mut buffers, &missed);
    let pool = pool_entries(plan, &buffers);
    // Updates between two pages of fragments.
    let mut between = page_entries(plan) / buffers.len() as f64;
    for _ in 0..ROUNDS {
        share(plan, &mut buffers, pool, between);
        grow(profile, plan, &mut buffers, &missed);
        let cache = Cache::new(profile, plan, levels, &buffers);
        missed.clear();
        missed.extend((0..levels.height).map(|level| cache.missed(Some(level))));
        between = f64::midpoint(between, page_entries(plan) / stored(&buffers));
    }
    buffers
}

/// Entries that go to flash for an update.
fn stored(buffers: &[Buffers]) -> f64 {
    let stored = |all: &Buffers| all.rate * all.count * all.stored() / all.emptied;
    buffers.iter().map(stored).sum::<f64>().max(1e-6)
}

/// When buffers are emptied, if so much of them is on flash and so many nodes are not in the
/// cache.
fn grow(profile: &Profile, plan: &Plan, buffers: &mut [Buffers], missed: &[f64]) {
    let most = f64::from(Policy::new(plan.buffering, plan.memory_bytes).most_bytes());
    // An entry counts a byte more than it has.
    let limit = (most / (entry_bytes(plan) + 0.875)).max(1.0);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let changed = 1.0 - profile.inserts / updates.max(f64::MIN_POSITIVE);
    let came = buffers.iter().map(|all| all.rate * all.count).sum::<f64>();
    let stored = stored(buffers) / came;
    let (mut coming, mut going) = (1.0, profile.lookups / updates.max(f64::MIN_POSITIVE));
    let mut from: Option<Buffers> = None;
    for buffer in buffers {
        let keys = profile.entries as f64 / buffer.count;
        let batch = from.map_or(1.0, |above| above.passed * above.count / buffer.count);
        buffer.batch = if from.is_some() { batch } else { 0.0 };
        buffer.rate = coming / buffer.count;
        buffer.lookups = going / coming;
        let due = due(plan, buffer, missed, stored);
        let outgrown = outgrown(limit, batch, buffer.count);
        buffer.emptied = due.min(outgrown).max(batch).max(1.0);
        // A lookup finds it after each batch but the one that makes it too large.
        let unseen = if due < outgrown { 0.0 } else { batch };
        buffer.seen = (buffer.emptied - unseen).max(0.0);
        let page = page_entries(plan);
        let is_large = buffer.emptied > limit && batch > page;
        buffer.beyond = if is_large { buffer.emptied - page } else { 0.0 };
        // What is put to new keys has no older entry.
        let twice = (buffer.emptied - touched(keys, buffer.emptied)).max(0.0);
        buffer.passed = buffer.emptied - changed * twice;
        coming *= buffer.passed / buffer.emptied;
        going *= buffer.searched(keys).1;
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

/// Entries at which ADAPT empties a buffer, if the share `stored` of all entries goes to flash.
fn due(plan: &Plan, buffer: &Buffers, missed: &[f64], stored: f64) -> f64 {
    let flash = &buffer.flash;
    let is_adaptive = matches!(plan.buffering, Buffering::Adaptive);
    if !is_adaptive || buffer.lookups <= 0.0 {
        return f64::INFINITY;
    }
    let (units, bytes) = (&plan.units, entry_bytes(plan));
    let (node_read, node_write) = (units.node_read as f64, units.node_write as f64);
    let fragment = flash.each * bytes * units.byte_read as f64 / 1000.0;
    let fragment = units.fragment_read as f64 + fragment;
    let emptying = |entries: f64| {
        let inner = (buffer.nodes - buffer.leaves) * node_read * missed[buffer.level];
        inner
            + if buffer.leaves > 0.0 {
                touched(buffer.leaves, entries) * (node_read * missed[0] + node_write)
            } else {
                entries * stored * bytes * units.byte_write as f64 / 1000.0
            }
    };
    // In the pool a register that is taken at n entries comes due after `e / (c (n - n0))` lookups:
    // first where `n - n0` is the square root of `e / (c q)`.
    let free = f64::from(SEARCHED_AT_ONCE);
    let searched = (0..ROUNDS).fold(free, |entries, _| {
        let each = ENTRY_SEARCH as f64 * buffer.lookups;
        free + 2.0 * libm::sqrt(emptying(entries) / each) + LOOKUPS_BESIDE / buffer.lookups
    });
    if flash.first.is_infinite() {
        return searched;
    }
    let register = |number: u32| {
        let number = f64::from(number);
        let entries = flash.first + (number - 1.0) * flash.each;
        let scan = number * fragment;
        let lookups = (scan + emptying(entries)) / scan + LOOKUPS_BESIDE;
        entries + lookups / buffer.lookups
    };
    (1..=FRAGMENTS_MOST).map(register).fold(searched, f64::min)
}

/// Entries that the pool has on the average, with buffers that would be so large if it had all.
fn pool_entries(plan: &Plan, buffers: &[Buffers]) -> f64 {
    let page = page_entries(plan);
    // A cell has a link of two bytes, and each number of entries up to a page a list of buffers.
    let lists = 4.0 * (page.min(LISTS_MOST) + 1.0);
    let room = (plan.pool_bytes as f64 - lists).max(0.0) / (entry_bytes(plan) - 0.125 + 2.0);
    // When the pool is full, a page of it leaves.
    let pool = (room - page / 2.0).max(room / 2.0);
    let all = buffers.iter().map(|all| all.count * all.held()).sum::<f64>();
    let variance = buffers.iter().map(|all| all.count * all.held() * all.held() / 3.0).sum::<f64>();
    let deviation = libm::sqrt(variance).max(f64::MIN_POSITIVE);
    let beside = (room - all) / deviation;
    if all <= pool && beside > NEVER_BEYOND {
        return pool;
    }
    let kept = all - deviation * mean_above(beside);
    // It is not always full.
    if all < room { kept } else { pool.min(kept) }
}

/// Lets so much of the buffers go to flash that they have `pool` entries in the pool, when a page
/// of it leaves every `between` updates; as before, if they have no more.
fn share(plan: &Plan, buffers: &mut [Buffers], pool: f64, between: f64) {
    let page = page_entries(plan);
    let of = |buffer: &Buffers, fullest: f64| {
        if plan.shape.is_in_place() {
            return Fragments { first: fullest, each: fullest.min(page), fullest };
        }
        let comes = buffer.rate * between;
        let first = comes.max(fullest + (comes + buffer.batch) / 2.0);
        // A batch that comes seldom is gone soon.
        let fullest = first - (buffer.batch - comes).max(0.0) / 2.0;
        Fragments { first, each: first.min(page), fullest }
    };
    let held = |fullest: f64| {
        buffers.iter().map(|all| all.count * all.in_pool(&of(all, fullest))).sum::<f64>()
    };
    let most = buffers.iter().map(|all| all.emptied).fold(1.0, f64::max);
    if held(most + 1.0) <= pool {
        return;
    }
    let fullest = last_that_holds(1.0, most, |fullest| held(fullest) <= pool);
    for buffer in buffers {
        buffer.flash = of(buffer, fullest);
    }
}

/// By how much a standard normal variable is above `bound` on the average, nothing if it is below.
fn mean_above(bound: f64) -> f64 {
    let density = libm::exp(-bound * bound / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
    density - bound * libm::erfc(bound / core::f64::consts::SQRT_2) / 2.0
}
