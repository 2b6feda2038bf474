//! The cost models: the paper's analysis ([`equations`]), and what a workload of random keys costs
//! the tree as it is built.
//!
//! The paper's analysis takes nodes to be full and victims to be drawn at random. A prediction has
//! to be nearer to the tree:
//!
//! - Nodes are about 69 % full (ln 2, where random inserts settle), and the leaf's share is the
//!   largest with which the root is not full, as the adaptive layout leaves it.
//! - Blocks are reclaimed in turn, so a page is reclaimed when all of the others have been written
//!   since. Of `e` pages, `L` of them live, with `w` updates between, a page still lives with
//!   the chance `(1 - 1/L)^w`; each one that lives is one write more, so `w = e (1 - P)` and
//!
//!   ```text
//!   P = exp(-e (1 - P) / L)
//!   ```
//!
//!   where equation 8 has `P = L / e`.
//! - For a node cache of `c` bytes, the approximation of Che, Tung and Wang (Hierarchical web
//!   caching systems, 2002) over nodes of different sizes: with `n_l` nodes of `b_l` bytes on level
//!   `l`, each used alike, a node stays `t` operations after its last use, where
//!
//!   ```text
//!   c = sum over l of n_l b_l (1 - m_l)        a node is missing with m_l = (1 - 1 / n_l)^t
//!   ```
//!
//! - The operation buffer absorbs what hits one of its keys.

pub mod equations;

use device::Geometry;
use store::Width;

use super::{COLLECT, policy, working_bytes};
use crate::path_copying::layout::{Division, HEIGHT_MOST, Layout, Pages, VARIABLE_BYTES};
use crate::path_copying::policy::Policy;
use crate::registry::{MediumShape, Options, Prediction, Profile};
use crate::{Error, Result};

/// How full nodes are after many random inserts: the natural logarithm of 2.
const OCCUPANCY: f64 = core::f64::consts::LN_2;

/// Bytes that an entry of the operation buffer takes beside its key and value.
const BUFFERED_BYTES: f64 = 16.0;

/// What `profile` costs mu-Tree.
pub(super) fn predict_mu(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    predict(Division::Halves, profile, options, medium)
}

/// What `profile` costs mu*-Tree.
pub(super) fn predict_mu_star(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    predict(Division::Even, profile, options, medium)
}

fn predict(
    division: Division,
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Nand(chip) = medium else {
        return Err(Error::WrongMedium { tree: super::name(division), medium: "a disk" });
    };
    let policy = policy(division, options, chip)?;
    let levels = levels(&policy, profile.entries)?;
    let half = options.memory_bytes.saturating_sub(working_bytes(&policy)) as f64 / 2.0;
    let stay = levels.stay(half);

    let passed = 1.0 - absorbed(&policy, half, profile.entries);
    let updates = passed * (profile.inserts + profile.overwrites + profile.deletes);
    let splits = passed * profile.inserts / levels.entries_per_leaf();
    let live = live(reclaimable_pages(options, chip), levels.nodes[0]);
    let moved = (updates + splits) * live / (1.0 - live);
    let above: f64 = levels.iter().skip(1).map(|(nodes, _)| missing(stay, nodes)).sum();
    let way = above + missing(stay, levels.nodes[0]);
    Ok(Prediction {
        // What is moved is read from its page, which nobody used for long.
        page_reads: (passed * profile.lookups + updates) * way + moved * (1.0 + above),
        page_writes: updates + splits + moved,
        height: u32::from(levels.layout.height),
    })
}

/// Nodes of each level, the leaves first.
struct Levels {
    layout: Layout,
    nodes: [f64; HEIGHT_MOST as usize],
    bytes: [f64; HEIGHT_MOST as usize],
    entries: f64,
}

impl Levels {
    /// Nodes of each level and the bytes of one.
    fn iter(&self) -> impl Iterator<Item = (f64, f64)> {
        let height = usize::from(self.layout.height);
        self.nodes.iter().copied().zip(self.bytes.iter().copied()).take(height)
    }

    fn entries_per_leaf(&self) -> f64 {
        self.entries / self.nodes[0]
    }

    /// How many operations a node stays after its last use, in a cache of `bytes` bytes.
    fn stay(&self, bytes: f64) -> f64 {
        let held = |stay: f64| -> f64 {
            self.iter().map(|(nodes, bytes)| nodes * bytes * (1.0 - missing(stay, nodes))).sum()
        };
        if bytes >= self.iter().map(|(nodes, bytes)| nodes * bytes).sum() {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0.0, 64.0 * self.iter().map(|(nodes, _)| nodes).sum::<f64>());
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if held(middle) < bytes {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The tree that holds `entries` entries, put in random order.
fn levels(policy: &Policy, entries: u64) -> Result<Levels> {
    let heights = 1..=policy.height_most();
    let fitting = heights.filter_map(|height| largest_fitting(policy, entries as f64, height));
    let Some(levels) = fitting.min_by_key(|levels| levels.layout.height) else {
        return Err(policy.tree_full());
    };
    Ok(levels)
}

/// The tree of this height with the largest leaves, if one holds so many entries.
fn largest_fitting(policy: &Policy, entries: f64, height: u8) -> Option<Levels> {
    policy.leaves(height).find_map(|leaf| {
        let layout = policy.pages().layout(leaf, height);
        tree(policy.pages(), layout, entries)
    })
}

/// The tree of this layout, if it holds so many entries.
fn tree(pages: &Pages, layout: Layout, entries: f64) -> Option<Levels> {
    let mut levels = Levels {
        layout,
        nodes: [1.0; HEIGHT_MOST as usize],
        bytes: [0.0; HEIGHT_MOST as usize],
        entries,
    };
    let mut below = entries;
    for level in 0..layout.height {
        let place = usize::from(level);
        let capacity = pages.capacity(&layout, level) as f64;
        levels.bytes[place] = f64::from(layout.part(pages.area(), level)?.bytes);
        if level + 1 == layout.height {
            return (below <= capacity).then_some(levels);
        }
        below = (below / (capacity * OCCUPANCY)).max(1.0);
        levels.nodes[place] = below;
    }
    None
}

/// The chance that one of `nodes` nodes is not in the cache.
fn missing(stay: f64, nodes: f64) -> f64 {
    libm::pow(1.0 - 1.0 / nodes, stay)
}

/// Pages that are written between two erases of a block.
fn reclaimable_pages(options: &Options, chip: Geometry) -> f64 {
    let free = options.settings.ratio(COLLECT.name).unwrap_or(0.1);
    f64::from(chip.pages()) * (1.0 - free)
}

/// The chance that a page lives when its block's turn comes, of `pages` pages of which `live` live.
fn live(pages: f64, live: f64) -> f64 {
    // A tree that fills the chip would move for ever; it refuses puts before.
    const MOST: f64 = 0.98;
    let ratio = pages / live.max(1.0);
    if ratio <= 1.0 {
        return MOST;
    }
    // Below a ratio of 1 there is no other solution than 1; above, repeating leads to the lower.
    let mut chance = 0.0;
    for _ in 0..1_000 {
        chance = libm::exp(-ratio * (1.0 - chance));
    }
    chance.min(MOST)
}

/// The chance that the key of an operation is in an operation buffer of `bytes` bytes.
fn absorbed(policy: &Policy, bytes: f64, entries: u64) -> f64 {
    let width = |width| match width {
        Width::Fixed(bytes) => f64::from(bytes),
        Width::Variable => VARIABLE_BYTES as f64,
    };
    let shape = policy.pages().shape;
    let held = bytes / (width(shape.key) + width(shape.value) + BUFFERED_BYTES);
    (held / (entries.max(1) as f64)).min(1.0)
}

#[cfg(test)]
mod tests;
