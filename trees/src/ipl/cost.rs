//! The cost model: what random operations cost in-page logging.
//!
//! How many nodes there are and which of them the cache misses, `random_keys` says.
//!
//! - A node that is read costs its page, and its newest record if it has one. Each of a block's
//!   nodes is as likely to be written as any other, until the logs are full.
//! - A leaf that leaves the cache has deltas unless all its uses were lookups. They take a log
//!   page, or a part of one, until the block has none: then it is merged, which reads what is not
//!   in the cache, with its records, writes all nodes, and leaves nothing to be written of those
//!   that are cached.

use super::block::{BlockShape, BlockState};
use super::make::{codecs_on, footprint, frames, log_pages};
use crate::btree::CHILD_BYTES;
use index::Result;
use index::random_keys::{Levels, missing};
use index::{MediumShape, Options, Prediction, Profile};
use store::PageLog;

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let chip = medium.chip(super::NAME)?;
    let least = footprint(options, medium)?.memory_least;
    let forms = codecs_on(chip, options.shape)?;
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
    let delta_bytes = 1.0 + f64::from(PageLog::content_bytes_on(chip)) / levels.entries_per_leaf;
    let records = records_a_block(&shape, forms.record_bytes() as f64, delta_bytes);
    let each = records / nodes;
    let has_record = 1.0 - libm::exp(-each);
    let cleaned = nodes * (1.0 - leaf_missing) * left_dirty;
    let merges = operations * leaf_missing * left_dirty / (records + 1.0 + cleaned);
    let splits = profile.inserts / levels.entries_per_leaf;
    Ok(Prediction {
        page_reads: operations * (misses + leaf_missing * (1.0 - has_record / each))
            + merges * nodes * (1.0 + has_record) * leaf_missing,
        page_writes: merges * (records + nodes) + splits,
        height: levels.height as u32,
    })
}

/// Records that the logs of a block take: those of a node get longer by a delta each time, until
/// they are full.
fn records_a_block(shape: &BlockShape, full: f64, delta: f64) -> f64 {
    let (nodes, mut bytes, mut records) = (f64::from(shape.node_pages()), delta, 1.0);
    for _ in 0..8 {
        let mut block = BlockState::default();
        let fits = core::iter::from_fn(|| block.take_log(shape, bytes as usize));
        records = fits.count().max(1) as f64;
        let longer = delta * (1.0 + records / nodes / 2.0);
        bytes = f64::midpoint(bytes, longer.min(full / 2.0));
    }
    records
}
