//! What a workload of random keys costs an LA-Tree that is in its steady state.
//!
//! Of u updates and l lookups, each buffered subtree sees its share, so all see `q = l / u` lookups
//! an update. Emptying a buffer of b bytes costs `d + g b`, scanning it `p b` (section 2.2.1).
//! ADAPT's register `i`, taken at `b_i = i / q`, comes due after `d / (p b_i) + g / p` lookups; the
//! first to come due is the one at `b_i = sqrt(d / (p q))`, so a buffer grows to
//!
//! ```text
//! b = min(U, 2 sqrt(d / (p q)) + g / (p q))
//! ```
//!
//! In a pool of P bytes for n buffers that all grow alike, the fullest leaves, so what is held is
//! spread evenly between nothing and the size of a fragment, which is then `2 P / n`. A buffer that
//! stays smaller never reaches flash.

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
    /// The part of the memory that is the pool's.
    pub(in super::super) pool_ratio: f64,
}

/// Nodes of each level, the leaves first, and how they are filled.
struct Levels {
    nodes: [f64; LEVELS_MOST],
    height: usize,
    entries_per_leaf: f64,
}

/// A level of buffers.
struct Buffers {
    /// S, and L where the lowest nodes are leaves.
    nodes: f64,
    leaves: f64,
    /// Bytes at which a buffer is emptied.
    bytes: f64,
    /// Bytes of a fragment when it goes to flash; more than `bytes` if it never does.
    fragment: f64,
}

/// What `profile` costs a tree made by `plan`.
pub(in super::super) fn predict(profile: &Profile, plan: &Plan) -> Prediction {
    let levels = levels(profile.entries, plan);
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let missed = missed(&levels, plan);
    let (mut reads, mut writes) = (0.0, 0.0);
    for node in &missed[..levels.height] {
        reads += profile.lookups * node;
    }
    let bytes = entry_bytes(plan);
    for level in buffered_levels(&levels, plan) {
        let buffers = buffers(profile, plan, &levels, level);
        let on_flash = (1.0 - buffers.fragment / buffers.bytes).max(0.0);
        // A lookup meets a buffer that is half full on average; emptying reads it once.
        let fragments = buffers.bytes * on_flash / buffers.fragment;
        reads += profile.lookups * fragments / 2.0;
        let entries = (buffers.bytes / bytes).max(1.0);
        let emptyings = updates / entries;
        let share_missed = missed_share(&levels, &missed, level, plan);
        reads += emptyings * (fragments + buffers.nodes * share_missed);
        let header = 1.0 + FRAGMENT_HEADER_BYTES as f64 / buffers.fragment;
        writes += updates * on_flash * bytes * header / f64::from(plan.shape.room());
        let changed = buffers.leaves * (1.0 - untouched(buffers.leaves, entries));
        let split = profile.inserts / updates.max(f64::MIN_POSITIVE) / levels.entries_per_leaf;
        let nodes = changed + if buffers.leaves > 0.0 { 2.0 * split * entries } else { 0.0 };
        writes += emptyings * nodes / f64::from(plan.shape.nodes_per_page());
    }
    Prediction { page_reads: reads, page_writes: writes, height: levels.height as u32 }
}

/// The share of `leaves` leaves that get none of `entries` random entries.
fn untouched(leaves: f64, entries: f64) -> f64 {
    if leaves <= 1.0 { 0.0 } else { libm::pow(1.0 - 1.0 / leaves, entries) }
}

/// Bytes of an entry in a buffer, its share of the byte of kinds included.
fn entry_bytes(plan: &Plan) -> f64 {
    f64::from(plan.entry.0) + f64::from(plan.entry.1) + 0.125
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
        levels.nodes[levels.height] = (levels.nodes[levels.height - 1] / children).max(1.0);
        levels.height += 1;
    }
    levels
}

/// The chance that a node of each level is not in the cache, which holds the upper levels.
fn missed(levels: &Levels, plan: &Plan) -> [f64; LEVELS_MOST] {
    let cache = plan.memory_bytes as f64 * (1.0 - plan.pool_ratio);
    let mut left = cache / f64::from(plan.shape.node_bytes());
    let mut missed = [0.0; LEVELS_MOST];
    for level in (0..levels.height).rev() {
        let held = left.clamp(0.0, levels.nodes[level]);
        missed[level] = 1.0 - held / levels.nodes[level];
        left -= held;
    }
    missed
}

/// The levels with buffers: counted from the leaves, and the root's.
fn buffered_levels(levels: &Levels, plan: &Plan) -> impl Iterator<Item = usize> {
    let (height, step) = (levels.height, (plan.levels_per_buffer as usize).max(1));
    let has_buffers = !matches!(plan.buffering, Buffering::None);
    (0..height)
        .filter(move |level| (level + 1).is_multiple_of(step) || level + 1 == height)
        .filter(move |level| has_buffers || level + 1 == height)
}

/// The lowest level of the subtree whose root is at `level`.
fn lowest(levels: &Levels, level: usize, plan: &Plan) -> usize {
    match plan.buffering {
        Buffering::None => 0,
        _ => {
            buffered_levels(levels, plan).filter(|other| *other < level).last().map_or(0, |l| l + 1)
        }
    }
}

/// The mean of the chances to miss a node of the subtree below `level`.
fn missed_share(levels: &Levels, missed: &[f64], level: usize, plan: &Plan) -> f64 {
    let range = lowest(levels, level, plan)..=level;
    let nodes: f64 = levels.nodes[range.clone()].iter().sum();
    let read: f64 = range.map(|level| levels.nodes[level] * missed[level]).sum();
    read / nodes
}

fn buffers(profile: &Profile, plan: &Plan, levels: &Levels, level: usize) -> Buffers {
    let count = levels.nodes[level];
    let lowest = lowest(levels, level, plan);
    let nodes = levels.nodes[lowest..=level].iter().sum::<f64>() / count;
    let leaves = if lowest == 0 { levels.nodes[0] / count } else { 0.0 };
    let pool = plan.memory_bytes as f64 * plan.pool_ratio;
    let all: f64 = buffered_levels(levels, plan).map(|level| levels.nodes[level]).sum();
    let fragment = (2.0 * pool / all).clamp(entry_bytes(plan), f64::from(plan.shape.room()));
    let buffers = Buffers { nodes, leaves, bytes: 0.0, fragment };
    Buffers { bytes: size(profile, plan, &buffers).max(entry_bytes(plan)), ..buffers }
}

/// Bytes at which ADAPT, or a fixed limit, empties a buffer.
fn size(profile: &Profile, plan: &Plan, buffers: &Buffers) -> f64 {
    let most = f64::from(Policy::new(plan.buffering, plan.memory_bytes).most_bytes());
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let ratio = profile.lookups / updates.max(f64::MIN_POSITIVE);
    if !matches!(plan.buffering, Buffering::Adaptive) || ratio <= 0.0 {
        return most;
    }
    let units = &plan.units;
    let scan = units.fragment_read as f64 / buffers.fragment + units.byte_read as f64 / 1000.0;
    let leaf = buffers.leaves > 0.0;
    let written = if leaf { buffers.leaves * units.node_write as f64 } else { 0.0 };
    let fixed = buffers.nodes * units.node_read as f64 + written;
    let each = scan + if leaf { 0.0 } else { units.byte_write as f64 / 1000.0 };
    let due = entry_bytes(plan) / (scan * ratio);
    // d, g and p are per byte here, q per update: so the root is taken over bytes an entry.
    let grown = 2.0 * libm::sqrt(fixed * due) + each * due;
    // What stays in the pool costs no scan, so no register comes due by it.
    grown.max(buffers.fragment).min(most)
}
