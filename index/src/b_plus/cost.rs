//! The tree's cost model: what a workload of random keys costs a cached B+-tree.
//!
//! Nodes are about 69 % full (ln 2, where random inserts settle), which gives the nodes `n_l` of
//! each level. An operation uses one node of each level, any of them alike. For an LRU cache of `c`
//! pages, the approximation of Che, Tung and Wang (Hierarchical web caching systems, 2002), with
//! its exponential in the discrete form, gives the operations `t` that a page stays after its last
//! use:
//!
//! ```text
//! c = sum over l of n_l (1 - m_l)        a node of level l is missing with m_l = (1 - 1 / n_l)^t
//! ```
//!
//! Each missing node is one page read. A leaf that leaves is dirty unless all its uses were
//! lookups, and is then written; so is each new node that a split makes.

use device::SectorGeometry;
use store::{PageFile, Width};

use super::layout::{CHILD_BYTES, Nodes};
use super::{cache_memory, node_bytes};
use crate::Result;
use crate::registry::{MediumShape, Options, Prediction, Profile};

/// How full nodes are after many random inserts: the natural logarithm of 2.
const OCCUPANCY: f64 = core::f64::consts::LN_2;

/// What an entry of variable length is taken to have, in bytes, key and value each.
const VARIABLE_BYTES: usize = 16;

/// The most levels that are looked at; fewer hold any entries that 64 bits can count.
const LEVELS_MOST: usize = 32;

/// Nodes of each level, the leaves first.
struct Levels {
    nodes: [f64; LEVELS_MOST],
    height: usize,
    entries_per_leaf: f64,
}

/// What `profile` costs the tree that `options` describe on `medium`.
pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let disk = match medium {
        MediumShape::Sectors(disk) => disk,
        MediumShape::Nand(chip) => return super::wandering::predict(profile, options, chip),
    };
    let page_bytes = node_bytes(options, disk);
    let nodes = Nodes::new(page_bytes, options.shape)?;
    let file = options.page_file(page_bytes, cache_memory(options, &nodes)?);
    let frames = PageFile::frames(disk, &file)?;
    let levels = levels(profile.entries, &nodes);

    let stay = stay(&levels, f64::from(frames));
    let misses: f64 = levels.iter().map(|nodes| missing(stay, nodes)).sum();
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let operations = profile.lookups + updates;
    let leaf_misses = operations * missing(stay, levels.nodes[0]);
    let share = updates / operations.max(f64::MIN_POSITIVE);
    let splits = profile.inserts / levels.entries_per_leaf;
    let pages = pages_per_node(page_bytes, disk);
    Ok(Prediction {
        page_reads: operations * misses * pages,
        page_writes: (leaf_misses * dirty(share, missing(stay, levels.nodes[0])) + splits) * pages,
        height: levels.height as u32,
    })
}

fn pages_per_node(page_bytes: u32, disk: SectorGeometry) -> f64 {
    f64::from(page_bytes.div_ceil(disk.sector_bytes()))
}

impl Levels {
    fn iter(&self) -> impl Iterator<Item = f64> {
        self.nodes[..self.height].iter().copied()
    }
}

fn levels(entries: u64, nodes: &Nodes) -> Levels {
    let width = |width| match width {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => VARIABLE_BYTES,
    };
    let (key, value) = (width(nodes.shape.key), width(nodes.shape.value));
    let entries_per_leaf = nodes.leaf.capacity(key, value) as f64 * OCCUPANCY;
    let children = nodes.inner.capacity(key, usize::from(CHILD_BYTES)) as f64 * OCCUPANCY;
    let mut levels = Levels { nodes: [1.0; LEVELS_MOST], height: 1, entries_per_leaf };
    levels.nodes[0] = (entries as f64 / entries_per_leaf).max(1.0);
    while levels.height < LEVELS_MOST && levels.nodes[levels.height - 1] > 1.0 {
        levels.nodes[levels.height] = (levels.nodes[levels.height - 1] / children).max(1.0);
        levels.height += 1;
    }
    levels
}

/// The chance that one of `nodes` nodes is not in the cache.
fn missing(stay: f64, nodes: f64) -> f64 {
    libm::pow(1.0 - 1.0 / nodes, stay)
}

/// How many operations a page stays after its last use, in a cache of `frames` pages.
fn stay(levels: &Levels, frames: f64) -> f64 {
    let held = |stay: f64| -> f64 {
        levels.iter().map(|nodes| nodes * (1.0 - missing(stay, nodes))).sum()
    };
    let all: f64 = levels.iter().sum();
    if frames >= all {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 64.0 * all);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if held(middle) < frames {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The chance that a leaf leaves the cache dirty. After each of its uses it is used again with the
/// chance `1 - miss`; each use is an update with the chance `updates`.
fn dirty(updates: f64, miss: f64) -> f64 {
    let lookups = 1.0 - updates;
    1.0 - miss * lookups / (1.0 - (1.0 - miss) * lookups).max(f64::MIN_POSITIVE)
}
