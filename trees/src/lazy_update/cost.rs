//! The cost model: what a workload of random keys costs.
//!
//! How many nodes there are and which of them the cache misses, `random_keys` says. Requests wait
//! until the pool is full; from then on each commit takes a group. Where the largest is taken, the
//! sizes of groups are spread evenly from none to that of the victim: with `w` requests that wait
//! for `n` leaves a victim has `1 + 2 w / n`, and else `1 + w / n`. What comes for a leaf while it
//! is in the cache goes along when it is written. What waits in the pool answers lookups of its
//! keys.

use store::PageFile;

use super::make::{Choices, Plan};
use super::order::Policy;
use crate::btree::CHILD_BYTES;
use index::random_keys::{Levels, average_bytes, missing};
use index::{Error, MediumShape, Options, Prediction, Profile, Result};

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: super::NAME, medium: "raw flash" });
    };
    let plan = Plan::of(options, disk)?;
    let codecs = &plan.codecs;
    let node_bytes = codecs.leaf.node_bytes() as u32;
    let file = options.page_file(node_bytes, plan.file);
    let frames = PageFile::frames(disk, &file)?;
    let shape = codecs.shape;
    let levels = Levels::of(profile.entries, (&codecs.leaf, &codecs.inner), shape, CHILD_BYTES);
    let leaves = levels.nodes()[0];
    let stay = levels.stay(f64::from(frames));
    let missed = |nodes: &f64| missing(stay, *nodes);
    let above: f64 = levels.nodes()[1..].iter().map(missed).sum();

    let entry = average_bytes(shape.key) + average_bytes(shape.value) + 1;
    let range = average_bytes(shape.key) + 2;
    let requests = plan.waiting.requests((f64::from(entry), f64::from(range)), leaves);
    let per_leaf = requests / leaves;
    let group = match Choices::new(options).policy {
        _ if requests < 1.0 => 1.0,
        Policy::BiggestSize | Policy::CostBased => 1.0 + 2.0 * per_leaf,
        Policy::Lru | Policy::Fifo => (1.0 + per_leaf).max(1.0),
    };
    // What waits for a key takes its next update in, and answers lookups.
    let waiting = (requests / profile.entries.max(1) as f64).min(1.0);
    let updates = profile.inserts + (profile.overwrites + profile.deletes) * (1.0 - waiting);
    let lookups = profile.lookups * (1.0 - waiting);
    let commits = updates / group;
    let splits = profile.inserts / levels.entries_per_leaf;
    let leaf_missing = missing(stay, leaves);
    let pages = f64::from(node_bytes.div_ceil(disk.sector_bytes()));
    let touched = lookups + commits;
    let page_reads = touched * (leaf_missing + above);
    let while_there = (1.0 / leaf_missing.max(1e-6) - 1.0) * updates / touched.max(1e-9);
    let writes = updates / (group + while_there);
    Ok(Prediction {
        page_reads: page_reads * pages,
        page_writes: (writes + splits) * pages,
        height: levels.height as u32,
    })
}
