//! What a workload of random keys costs an LA-Tree that is in its steady state.
//!
//! Of u updates and l lookups, each buffered subtree sees its share, so all see `q = l / u` lookups
//! an update. What decides is at how many entries b a buffer is emptied, for what emptying changes
//! is shared by them.
//!
//! A level's buffers ([`level`]) are emptied ([`emptied`]) at sizes that follow from what of them
//! is on flash, which follows from the room in the pool ([`pool`]) and so from those sizes; and
//! both follow from which nodes are in the [`cache`]. So all are found in rounds. From them the
//! pages come that a lookup and an emptying read and write.

use alloc::vec::Vec;

use store::Width;
use store::node::HEADER_BYTES;

use super::super::layout::{self, FRAGMENT_HEADER_BYTES};
use super::super::policy::Buffering;
use crate::btree::CHILD_BYTES;
use index::random_keys::{Levels, touched};
use index::{Prediction, Profile};

mod cache;
mod emptied;
mod level;
mod plan;
mod pool;

use cache::Cache;
use emptied::{ROUNDS, grow};
use level::{Buffers, Fragments, stored};
pub(in super::super) use plan::{Plan, used_bytes};
use pool::{pool_entries, share};

/// What `profile` costs a tree made by `plan`. Memory that is shared goes to where it saves most.
pub(in super::super) fn predict(profile: &Profile, plan: &Plan) -> Prediction {
    let (read, write) = (plan.units.fragment_read as f64, page_write(plan));
    let cost = |of: &Prediction| of.page_reads * read + of.page_writes * write;
    let all = plan.divisions().map(|plan| predict_divided(profile, &plan));
    let best = all.min_by(|one, other| cost(one).total_cmp(&cost(other)));
    best.unwrap_or_else(|| predict_divided(profile, plan))
}

/// What writing a page costs.
fn page_write(plan: &Plan) -> f64 {
    plan.units.byte_write as f64 * f64::from(plan.shape.room()) / 1000.0
}

fn predict_divided(profile: &Profile, plan: &Plan) -> Prediction {
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
        let chain = buffer.fragments().max(buffer.beyond / plan.page_entries());
        reads += emptyings * (chain * fragment_missed + way + below);
        let header = FRAGMENT_HEADER_BYTES as f64 / buffer.flash.each;
        let stored = buffer.stored() * (plan.entry_bytes() + header);
        writes += emptyings * stored / f64::from(plan.shape.room());
        if buffer.leaves > 0.0 && !cache.holds_all() {
            let nodes = touched(buffer.leaves, buffer.emptied) + 2.0 * split * buffer.emptied;
            writes += emptyings * nodes / plan.nodes_per_page();
        }
    }
    Prediction { page_reads: reads, page_writes: writes, height: levels.height as u32 }
}

fn levels(entries: u64, plan: &Plan) -> Levels {
    let capacity = |value: u16| {
        let (bytes, key) = (plan.shape.node_bytes(), plan.entry.0);
        let codec = layout::codec(bytes, Width::Fixed(key), Width::Fixed(value));
        let least = (bytes as usize - HEADER_BYTES) / 32;
        codec.map_or(least, |codec| codec.capacity(usize::from(key), usize::from(value))) as f64
    };
    Levels::new(entries, capacity(plan.entry.1), capacity(CHILD_BYTES))
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
            limit: 1.0,
            reach: 1.0,
            longest: 1.0,
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
    let mut between = plan.page_entries() / buffers.len() as f64;
    for _ in 0..ROUNDS {
        share(plan, &mut buffers, pool, between);
        grow(profile, plan, &mut buffers, &missed);
        let cache = Cache::new(profile, plan, levels, &buffers);
        missed.clear();
        missed.extend((0..levels.height).map(|level| cache.missed(Some(level))));
        between = f64::midpoint(between, plan.page_entries() / stored(&buffers));
    }
    buffers
}
