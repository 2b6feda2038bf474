//! The tree's cost model: what a workload of random keys costs a cached B+-tree.
//!
//! With `f` entries a full leaf and nodes about 69 % full (ln 2, where random inserts settle),
//! level `l` has `n_l = n_(l-1) / (0.69 f')` nodes. An LRU cache of `c` pages under random accesses
//! holds the top levels and a share of the first level that does not fit whole; each access below
//! reads one page, and each dirtied page that leaves is written once.

use crate::Result;
use crate::registry::{MediumShape, Options, Prediction, Profile};

use super::{cache_memory, node_bytes};
use crate::Error;
use crate::b_plus::layout::{CHILD_BYTES, Nodes};
use store::{PageFile, PageFileOptions, Width};

/// How full nodes are after many random inserts: the natural logarithm of 2.
const OCCUPANCY: f64 = core::f64::consts::LN_2;

/// What an entry of variable length is taken to have, in bytes, key and value each.
const VARIABLE_BYTES: usize = 16;

/// What `profile` costs the tree that `options` describe on `medium`.
///
/// # Errors
/// The tree can't be made so.
pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: super::NAME, medium: "raw flash" });
    };
    let page_bytes = node_bytes(options, disk);
    let nodes = Nodes::new(page_bytes, options.shape)?;
    let memory_bytes = cache_memory(options, disk)?;
    let frames = PageFile::frames(disk, PageFileOptions { page_bytes, memory_bytes })?;

    let width = |width| match width {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => VARIABLE_BYTES,
    };
    let key = width(options.shape.key);
    let leaf_fanout = nodes.leaf.capacity(key, width(options.shape.value)) as f64 * OCCUPANCY;
    let inner_fanout = nodes.inner.capacity(key, usize::from(CHILD_BYTES)) as f64 * OCCUPANCY;
    let (misses, height) = misses(profile.entries, leaf_fanout, inner_fanout, f64::from(frames));
    let updates = profile.puts + profile.deletes;
    let operations = profile.lookups + updates;
    let writes =
        operations * misses.leaf * dirty(updates / operations.max(f64::MIN_POSITIVE), misses.leaf)
            + profile.puts / leaf_fanout;
    let pages = f64::from(page_bytes.div_ceil(disk.sector_bytes()).max(1));
    Ok(Prediction {
        page_reads: operations * (misses.leaf + misses.inner) * pages,
        page_writes: writes * pages,
        height,
    })
}

/// The chance that a leaf leaves the cache dirty: while it was there it was used `1 / miss` times,
/// and each use was an update with the chance `updates`.
fn dirty(updates: f64, miss: f64) -> f64 {
    if miss <= 0.0 { 0.0 } else { 1.0 - libm::pow(1.0 - updates, 1.0 / miss) }
}

/// Pages that a descent finds outside the cache.
struct Misses {
    leaf: f64,
    inner: f64,
}

fn misses(entries: u64, leaf_fanout: f64, inner_fanout: f64, frames: f64) -> (Misses, u32) {
    let leaves = (entries as f64 / leaf_fanout).max(1.0);
    let mut levels = 1;
    let mut inner_nodes = 0.0;
    let mut nodes = leaves;
    while nodes > 1.0 {
        nodes = (nodes / inner_fanout).max(1.0);
        inner_nodes += nodes;
        levels += 1;
        if nodes <= 1.0 {
            break;
        }
    }
    let for_leaves = (frames - inner_nodes).max(0.0);
    let leaf = (1.0 - for_leaves / leaves).clamp(0.0, 1.0);
    let inner = if inner_nodes <= frames { 0.0 } else { 1.0 - frames / inner_nodes };
    (Misses { leaf, inner }, levels)
}
