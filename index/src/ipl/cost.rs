//! The cost model: what random operations cost in-page logging.
//!
//! Nodes are 69 % full (ln 2, where random inserts settle), and each level's are used alike, so the
//! approximation of Che, Tung and Wang (Hierarchical web caching systems, 2002) says of each level
//! how many miss in a cache of `c` nodes that drops the one used longest ago:
//!
//! ```text
//! c = sum over l of n_l (1 - m_l)        a node of level l is missing with m_l = (1 - 1 / n_l)^t
//! ```
//!
//! - A node that is read costs its page and the log pages with deltas of it: half of a block's are
//!   written on average, one of its nodes each.
//! - A leaf that leaves the cache has deltas unless all its uses were lookups. They take a log
//!   page, or a part of one, until the block has none: then it is merged, which reads what is not
//!   in the cache, with its log pages, writes all nodes, and leaves nothing to be written of those
//!   that are cached.

use store::Width;

use super::block::BlockShape;
use super::ground::Forms;
use super::make::{chip_of, frames, least_memory, log_pages};
use super::tree::HEIGHT_MOST;
use crate::Result;
use crate::registry::{MediumShape, Options, Prediction, Profile};

/// What an entry of variable length is taken to have, in bytes, key and value each.
const VARIABLE_BYTES: usize = 16;

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = chip_of(medium)?;
    let least = least_memory(options, medium)?;
    let levels = Levels::of(profile.entries, &Forms::on(chip, options.shape)?);
    let shape = BlockShape::on(chip, log_pages(options))?;
    // What is too little memory is told by making the tree.
    let memory = options.memory_bytes.max(least);
    let stay = levels.stay(frames(chip, options.shape, (memory, least))? as f64);
    let missing = |level: usize| levels.missing(stay, level);
    let misses: f64 = (0..levels.height).map(missing).sum();

    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let operations = profile.lookups + updates;
    let share = updates / operations.max(f64::MIN_POSITIVE);
    // An update of a leaf is followed by one of its other uses until it leaves.
    let left_dirty = share / (share + (1.0 - share) * missing(0)).max(f64::MIN_POSITIVE);
    let nodes = f64::from(shape.node_pages());
    let logs = f64::from(shape.log_pages()) * if shape.is_whole() { 1.0 } else { 4.0 };
    let cleaned = nodes * (1.0 - missing(0)) * left_dirty;
    let merges = operations * missing(0) * left_dirty / (logs + 1.0 + cleaned);
    let splits = profile.inserts / levels.entries_per_leaf;
    Ok(Prediction {
        page_reads: operations * (misses + missing(0) * logs / nodes / 2.0)
            + merges * (nodes + logs) * missing(0),
        page_writes: merges * (logs + nodes) + splits,
        height: levels.height as u32,
    })
}

/// Nodes of each level, the leaves first.
struct Levels {
    nodes: [f64; HEIGHT_MOST],
    height: usize,
    entries_per_leaf: f64,
}

impl Levels {
    fn of(entries: u64, forms: &Forms) -> Self {
        let bytes = |width| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => VARIABLE_BYTES,
        };
        let full = core::f64::consts::LN_2;
        let (key, value) = (bytes(forms.shape.key), bytes(forms.shape.value));
        let entries_per_leaf = forms.leaf.capacity(key, value) as f64 * full;
        let children = forms.inner.capacity(key, 4) as f64 * full;
        let mut levels = Levels { nodes: [1.0; HEIGHT_MOST], height: 1, entries_per_leaf };
        levels.nodes[0] = (entries as f64 / entries_per_leaf).max(1.0);
        while levels.height < HEIGHT_MOST && levels.nodes[levels.height - 1] > 1.0 {
            levels.nodes[levels.height] = (levels.nodes[levels.height - 1] / children).max(1.0);
            levels.height += 1;
        }
        levels
    }

    /// The chance that the node of a level that is used is not in the cache.
    fn missing(&self, stay: f64, level: usize) -> f64 {
        libm::pow(1.0 - 1.0 / self.nodes[level], stay)
    }

    /// How many operations a node stays after its last use, in a cache of `frames` nodes.
    fn stay(&self, frames: f64) -> f64 {
        let nodes = &self.nodes[..self.height];
        if frames >= nodes.iter().sum() {
            return f64::INFINITY;
        }
        let held = |stay| {
            let each = nodes.iter().enumerate();
            each.map(|(level, nodes)| nodes * (1.0 - self.missing(stay, level))).sum::<f64>()
        };
        let (mut low, mut high) = (0.0, 64.0 * nodes.iter().sum::<f64>());
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if held(middle) < frames { low = middle } else { high = middle }
        }
        low
    }
}
