//! The tree's cost model: what a workload of random keys costs a cached B+-tree.
//!
//! How many nodes there are and which of them the cache misses, `random_keys` says.
//!
//! Each missing node is one page read. A leaf that leaves is dirty unless all its uses were
//! lookups, and is then written; so is each new node that a split makes.

use device::SectorGeometry;
use store::PageFile;

use super::layout::codecs;
use super::{node_bytes, shares};
use crate::btree::CHILD_BYTES;
use index::Result;
use index::random_keys::{Levels, missing};
use index::{MediumShape, Options, Prediction, Profile};

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
    let nodes = codecs(page_bytes, options.shape)?;
    // Updates that wait for their leaves are not modelled.
    let (cache, _) = shares(options, &nodes, (disk, options.durability))?;
    let file = options.page_file(page_bytes, cache);
    let frames = PageFile::frames(disk, &file)?;
    let codecs = (&nodes.leaf, &nodes.inner);
    let levels = Levels::of(profile.entries, codecs, nodes.shape, CHILD_BYTES);

    let stay = levels.stay(f64::from(frames));
    let misses: f64 = levels.nodes().iter().map(|nodes| missing(stay, *nodes)).sum();
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let operations = profile.lookups + updates;
    let leaf_missing = missing(stay, levels.nodes()[0]);
    let leaf_misses = operations * leaf_missing;
    let share = updates / operations.max(f64::MIN_POSITIVE);
    let splits = profile.inserts / levels.entries_per_leaf;
    let pages = pages_per_node(page_bytes, disk);
    Ok(Prediction {
        page_reads: operations * misses * pages,
        page_writes: (leaf_misses * dirty(share, leaf_missing) + splits) * pages,
        height: levels.height as u32,
    })
}

fn pages_per_node(page_bytes: u32, disk: SectorGeometry) -> f64 {
    f64::from(page_bytes.div_ceil(disk.sector_bytes()))
}

/// The chance that a leaf leaves the cache dirty. After each of its uses it is used again with the
/// chance `1 - miss`; each use is an update with the chance `updates`.
fn dirty(updates: f64, miss: f64) -> f64 {
    let lookups = 1.0 - updates;
    1.0 - miss * lookups / (1.0 - (1.0 - miss) * lookups).max(f64::MIN_POSITIVE)
}
