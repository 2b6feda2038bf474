//! What random keys make of a tree, and what an LRU cache holds of it: shared by the cost models.
//!
//! Nodes are about 69 % full (ln 2, where random inserts settle), which gives the nodes `n_l` of
//! each level. An operation uses one node of each level, any of them alike. For an LRU cache of `c`
//! nodes, the approximation of Che, Tung and Wang (Hierarchical web caching systems, 2002), with
//! its exponential in the discrete form, gives the operations `t` that a node stays after its last
//! use:
//!
//! ```text
//! c = sum over l of n_l (1 - m_l)        a node of level l is missing with m_l = (1 - 1 / n_l)^t
//! ```

use store::node::Codec;
use store::{EntryShape, Width};

/// How full nodes are after many random inserts: the natural logarithm of 2.
pub const OCCUPANCY: f64 = core::f64::consts::LN_2;

/// What a key, or a value, of variable length is taken to have on average, in bytes.
const VARIABLE_BYTES: u16 = 16;

/// The most levels that are looked at; fewer hold any entries that 64 bits can count.
const LEVELS_MOST: usize = 32;

/// Halvings after which a bound is known to the precision of a number.
const HALVINGS: u32 = 100;

/// The length that a key or a value of `width` is assumed to have, in bytes.
pub fn average_bytes(width: Width) -> u16 {
    match width {
        Width::Fixed(bytes) => bytes,
        Width::Variable => VARIABLE_BYTES,
    }
}

/// Nodes of each level, the leaves first.
pub struct Levels {
    nodes: [f64; LEVELS_MOST],
    /// How many levels there are.
    pub height: usize,
    /// Entries of a leaf on average.
    pub entries_per_leaf: f64,
}

impl Levels {
    /// The levels of a tree of `entries` entries, where a full leaf has `leaf` entries and a full
    /// inner node `inner` children.
    pub fn new(entries: u64, leaf: f64, inner: f64) -> Self {
        let (entries_per_leaf, children) = (leaf * OCCUPANCY, (inner * OCCUPANCY).max(2.0));
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

    /// The tree with such nodes: children have `child` bytes.
    pub fn of(
        entries: u64,
        (leaf, inner): (&Codec, &Codec),
        shape: EntryShape,
        child: u16,
    ) -> Self {
        let (key, value) = (average_bytes(shape.key).into(), average_bytes(shape.value).into());
        let children = inner.capacity(key, child.into());
        Levels::new(entries, leaf.capacity(key, value) as f64, children as f64)
    }

    /// Nodes of each level, the leaves first.
    #[must_use]
    pub fn nodes(&self) -> &[f64] {
        &self.nodes[..self.height]
    }

    /// How many operations a node stays after its last use, in a cache of `frames` nodes.
    pub fn stay(&self, frames: f64) -> f64 {
        let all: f64 = self.nodes().iter().sum();
        if frames >= all {
            return f64::INFINITY;
        }
        let held = |stay: f64| -> f64 {
            self.nodes().iter().map(|nodes| nodes * (1.0 - missing(stay, *nodes))).sum()
        };
        last_that_holds(0.0, 64.0 * all, |stay| held(stay) < frames)
    }
}

/// The chance that one of the `nodes` nodes of a level is not in a cache where nodes stay for
/// `stay` operations.
pub fn missing(stay: f64, nodes: f64) -> f64 {
    libm::pow(1.0 - 1.0 / nodes, stay)
}

/// How many of `nodes` nodes are touched when one is chosen at random `times` times.
pub fn touched(nodes: f64, times: f64) -> f64 {
    if nodes <= 1.0 {
        return nodes.max(0.0) * times.min(1.0);
    }
    nodes * (1.0 - missing(times, nodes))
}

/// The largest number from `low` on and below `high` for which `holds` is true. It must be true up
/// to some number, and false beyond.
pub fn last_that_holds(mut low: f64, mut high: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
