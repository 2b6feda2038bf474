//! The cost model: what random operations cost in-page logging.
//!
//! How many nodes there are and which of them the cache misses, `random_keys` says.
//!
//! - A node that is read costs its page and the log pages with deltas of it: half of a block's are
//!   written on average, one of its nodes each.
//! - A leaf that leaves the cache has deltas unless all its uses were lookups. They take a log
//!   page, or a part of one, until the block has none: then it is merged, which reads what is not
//!   in the cache, with its log pages, writes all nodes, and leaves nothing to be written of those
//!   that are cached.

use super::block::BlockShape;
use super::ground::Forms;
use super::make::{chip_of, footprint, frames, log_pages};
use crate::btree::CHILD_BYTES;
use index::Result;
use index::random_keys::{Levels, missing};
use index::{MediumShape, Options, Prediction, Profile};

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = chip_of(medium)?;
    let least = footprint(options, medium)?.memory_least;
    let forms = Forms::on(chip, options.shape)?;
    let levels = Levels::of(profile.entries, (&forms.leaf, &forms.inner), forms.shape, CHILD_BYTES);
    let shape = BlockShape::on(chip, log_pages(options)?)?;
    // What is too little memory is told by making the tree.
    let memory = options.memory_bytes.max(least);
    let stay = levels.stay(frames(chip, options.shape, (memory, least))? as f64);
    let misses: f64 = levels.nodes().iter().map(|nodes| missing(stay, *nodes)).sum();
    let leaf_missing = missing(stay, levels.nodes()[0]);

    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let operations = profile.lookups + updates;
    let share = updates / operations.max(f64::MIN_POSITIVE);
    // An update of a leaf is followed by one of its other uses until it leaves.
    let left_dirty = share / (share + (1.0 - share) * leaf_missing).max(f64::MIN_POSITIVE);
    let nodes = f64::from(shape.node_pages());
    let logs = f64::from(shape.log_pages()) * if shape.is_whole() { 1.0 } else { 4.0 };
    let cleaned = nodes * (1.0 - leaf_missing) * left_dirty;
    let merges = operations * leaf_missing * left_dirty / (logs + 1.0 + cleaned);
    let splits = profile.inserts / levels.entries_per_leaf;
    Ok(Prediction {
        page_reads: operations * (misses + leaf_missing * logs / nodes / 2.0)
            + merges * (nodes + logs) * leaf_missing,
        page_writes: merges * (logs + nodes) + splits,
        height: levels.height as u32,
    })
}
