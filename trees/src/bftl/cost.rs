//! The cost model: what random operations cost.
//!
//! How many nodes there are and which of them the cache misses, `random_keys` says.
//!
//! - A node that is read costs the sectors of its list: one after it was compacted, and one more
//!   for each commit that wrote units of it since.
//! - A commit writes what the units fill, in groups of as many nodes as they fall into. A list that
//!   is full is compacted then: the node is read, if it is not cached any more, and written.
//! - As many sectors are given back as are written, and the first bytes of each are read for that.

use super::make::Plan;
use crate::btree::CHILD_BYTES;
use index::random_keys::{Levels, average_bytes, missing};
use index::{Error, MediumShape, Options, Prediction, Profile, Result};

/// Bytes of a group and of a unit beside key and value.
const GROUP_BYTES: f64 = 8.0;
const UNIT_BYTES: f64 = 1.0;

pub(super) fn predict(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: super::NAME, medium: "raw flash" });
    };
    let plan = Plan::of(options, disk)?;
    let shape = &plan.shape;
    let codecs = (&shape.codecs.leaf, &shape.codecs.inner);
    let levels = Levels::of(profile.entries, codecs, shape.codecs.shape, CHILD_BYTES);
    let frames = (plan.cache / shape.frame_bytes()) as f64;
    let stay = levels.stay(frames);
    let leaves = levels.nodes()[0];
    let leaf_missing = missing(stay, leaves);
    let above: f64 = levels.nodes()[1..].iter().map(|nodes| missing(stay, *nodes)).sum();

    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let operations = profile.lookups + updates;
    let splits = profile.inserts / levels.entries_per_leaf;
    // A split has two nodes written, and a unit for their parent.
    let commits = (updates + 3.0 * splits) / shape.units as f64;
    let units = updates / commits.max(f64::MIN_POSITIVE);
    let touched = leaves * (1.0 - libm::pow(1.0 - 1.0 / leaves, units));
    let entry = average_bytes(shape.codecs.shape.key) + average_bytes(shape.codecs.shape.value);
    let bytes = touched * GROUP_BYTES + units * (UNIT_BYTES + f64::from(entry));
    let list = shape.list as f64;
    let sectors = if updates > 0.0 { f64::midpoint(1.0, list) } else { 1.0 };
    let compactions = commits * touched / list;
    // What was changed since the last commit has left the cache if that holds less.
    let gone = leaf_missing * (1.0 - frames / touched.max(1.0)).clamp(0.0, 1.0);
    let each = f64::from(shape.sector.div_ceil(disk.sector_bytes()));
    let written = commits * (bytes / f64::from(shape.sector)).max(1.0) + compactions + splits;
    let read = operations * (leaf_missing + above) * sectors + compactions * gone * list;
    Ok(Prediction {
        page_reads: read * each + written - splits,
        page_writes: written * each,
        height: levels.height as u32,
    })
}
