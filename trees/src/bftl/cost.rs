//! The cost model: what random operations cost.
//!
//! How many nodes there are and which of them the cache misses, `random_keys` says.
//!
//! - A node that is read costs the sectors of its list: one after it was compacted, and one more
//!   for each commit that wrote units of it since.
//! - The whole of a node is read by itself. Its units stand in sectors that hold those of many
//!   nodes, so the page file's cache has some of them: see [`units_missing`].
//! - A commit writes what the units fill, in groups of as many nodes as they fall into. A list that
//!   is full is compacted then: the node is read, if it is not cached any more, and written.
//! - As many sectors are given back as are written, and the first bytes of each are read for that.

use super::make::Plan;
use crate::btree::CHILD_BYTES;
use index::random_keys::{Levels, average_bytes, last_that_holds, missing};
use index::{Error, MediumShape, Options, Prediction, Profile, Result};
use store::PageFile;

/// Bytes of a group and of a unit beside key and value.
const GROUP_BYTES: f64 = 8.0;
const UNIT_BYTES: f64 = 1.0;

/// Sectors of units, as leaves that are read use them.
struct Shared {
    /// Those in the list of a leaf.
    of_node: f64,
    /// All of them. Units stay in a list for as many commits as write units of their node, up to
    /// the most of a list; so this is how many are about equally likely to be read.
    all: f64,
    /// Other sectors that come to the page file's cache for each leaf that is read.
    cold: f64,
}

/// The chance that a sector of units is not in the page file's cache of so many frames: as
/// `random_keys` has it for nodes, beside sectors that are used once.
fn units_missing(frames: f64, shared: &Shared) -> f64 {
    let missing_after = |leaves: f64| missing(leaves * shared.of_node, shared.all.max(1.0));
    let held = |leaves: f64| shared.cold * leaves + shared.all * (1.0 - missing_after(leaves));
    missing_after(last_that_holds(0.0, frames, |leaves| held(leaves) < frames))
}

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
    let misses = operations * leaf_missing;
    let cold = 1.0 + written / misses.max(f64::MIN_POSITIVE);
    let shared = Shared { of_node: sectors - 1.0, all: list * leaves / touched.max(1.0), cold };
    let file = PageFile::frames(disk, &options.page_file(shape.sector, plan.file))?;
    let found = misses * shared.of_node * (1.0 - units_missing(f64::from(file), &shared));
    let read = operations * (leaf_missing + above) * sectors + compactions * gone * list - found;
    Ok(Prediction {
        page_reads: read * each + written - splits,
        page_writes: written * each,
        height: levels.height as u32,
    })
}
