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
//! - Nodes in disk mode change one by one, and each takes a page from the free list and gives one
//!   back: that list is written where it has left the page file's cache in between.

use super::Kindred;
use super::make::Plan;
use super::played::{Leaf, play};
use crate::btree::CHILD_BYTES;
use crate::sector_lists::Mode;
use crate::sector_lists::switching::Costs;
use index::random_keys::touched as touched_by;
use index::random_keys::{Levels, average_bytes, last_that_holds, missing};
use index::{Error, MediumShape, Options, Prediction, Profile, Result};
use store::{EntryShape, PageFile};

/// Bytes of a group and of a unit beside key and value.
const GROUP_BYTES: f64 = 8.0;
const UNIT_BYTES: f64 = 1.0;

/// Rounds after which the share of leaves in log mode is settled.
const ROUNDS: u32 = 4;

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

/// What both modes are reckoned from.
struct Given<'g> {
    plan: &'g Plan,
    levels: Levels,
    /// How many operations a node stays in the cache.
    stay: f64,
    frames: f64,
    /// Frames of the page file.
    file_frames: f64,
    updates: f64,
    operations: f64,
    splits: f64,
}

impl Given<'_> {
    fn leaf_missing(&self) -> f64 {
        missing(self.stay, self.levels.nodes()[0])
    }

    fn missing_above(&self) -> f64 {
        self.levels.nodes()[1..].iter().map(|nodes| missing(self.stay, *nodes)).sum()
    }

    /// Reads and writes where all nodes are lists of sectors.
    fn in_lists(&self) -> (f64, f64) {
        let Given { plan, frames, updates, operations, splits, .. } = *self;
        let (shape, leaves) = (&plan.shape, self.levels.nodes()[0]);
        let leaf_missing = self.leaf_missing();
        let EntryShape { key, value } = shape.codecs.shape;
        let entry = average_bytes(key) + average_bytes(value);
        // A split has two nodes written, and a unit for their parent.
        let commits = (updates + 3.0 * splits) / shape.units_waiting(entry.into()) as f64;
        let units = updates / commits.max(f64::MIN_POSITIVE);
        let touched = leaves * (1.0 - libm::pow(1.0 - 1.0 / leaves, units));
        let bytes = touched * GROUP_BYTES + units * (UNIT_BYTES + f64::from(entry));
        let list = shape.list as f64;
        let sectors = if updates > 0.0 { f64::midpoint(1.0, list) } else { 1.0 };
        let compactions = commits * touched / list;
        // What was changed since the last commit has left the cache if that holds less.
        let gone = leaf_missing * (1.0 - frames / touched.max(1.0)).clamp(0.0, 1.0);
        let filled = (bytes / f64::from(shape.sector)).max(1.0);
        let written = commits * filled + compactions + splits;
        let misses = operations * leaf_missing;
        let cold = 1.0 + written / misses.max(f64::MIN_POSITIVE);
        let shared = Shared { of_node: sectors - 1.0, all: list * leaves / touched.max(1.0), cold };
        let found = misses * shared.of_node * (1.0 - units_missing(self.file_frames, &shared));
        let read = operations * (leaf_missing + self.missing_above()) * sectors - found;
        (read + compactions * gone * list + written - splits, written)
    }

    /// Reads and writes where each leaf takes the mode in which it costs less: one of them is
    /// played.
    /// How many are in log mode decides how far the entries of a commit are spread, which decides
    /// that in turn; it is settled after a few rounds. Inner nodes, which are only read, are pages.
    fn as_costs_less(&self, costs: Costs) -> (f64, f64) {
        let Given { plan, operations, splits, .. } = *self;
        let (shape, leaves) = (&plan.shape, self.levels.nodes()[0]);
        let EntryShape { key, value } = shape.codecs.shape;
        let entry = f64::from(average_bytes(key)) + f64::from(average_bytes(value));
        let units = shape.units_waiting(entry as usize) as f64;
        let mut leaf = Leaf {
            costs,
            mode: shape.mode,
            list: shape.list as u32,
            missing: self.leaf_missing(),
            updates: self.updates / operations.max(f64::MIN_POSITIVE),
            spread: 1.0,
        };
        let (mut played, mut touched) = (play(leaf), 1.0);
        for _ in 0..ROUNDS {
            touched = touched_by(leaves * played.in_log, units);
            leaf.spread = touched / units;
            played = play(leaf);
        }
        let filled =
            (touched * GROUP_BYTES + units * (UNIT_BYTES + entry)) / f64::from(shape.sector);
        let logged = played.entries / units * filled.max(1.0) + played.whole;
        let written = logged + played.pages;
        let in_lists = leaves * played.in_log;
        let shared = Shared {
            of_node: played.shared / played.misses.max(f64::MIN_POSITIVE),
            all: shape.list as f64 * in_lists / touched.max(1.0),
            cold: 1.0 + written / played.misses.max(f64::MIN_POSITIVE),
        };
        let read_beside = played.shared * units_missing(self.file_frames, &shared);
        let given_back = logged + played.changed_later;
        // What was changed since the last commit has left the cache if that holds less.
        let gone = leaf.missing * (1.0 - self.frames / touched.max(1.0)).clamp(0.0, 1.0);
        let compacting = played.compacted * gone * shape.list as f64;
        let read = played.misses + read_beside + given_back + compacting + self.missing_above();
        let uses = played.pages + played.entries / units;
        let again = self.lists_again(uses, read);
        (operations * read + splits, operations * (written + again) + splits)
    }

    /// Reads and writes where each node is a sector of its own: what changes gets another, and
    /// the first bytes of the old one are read if the page file's cache does not have it any more.
    fn in_pages(&self) -> (f64, f64) {
        let leaf_missing = self.leaf_missing();
        let share = self.updates / self.operations.max(f64::MIN_POSITIVE);
        let lookups = 1.0 - share;
        let dirty = 1.0
            - leaf_missing * lookups
                / (1.0 - (1.0 - leaf_missing) * lookups).max(f64::MIN_POSITIVE);
        let misses = self.operations * leaf_missing;
        // That of a node that was just read is still there.
        let old = misses * (dirty - share).max(0.0);
        let read = self.operations * (leaf_missing + self.missing_above());
        let again = self.lists_again(misses * dirty, read + old);
        (read + old, misses * dirty + again + self.splits)
    }

    /// How often the page of the free list has left the page file's cache, and so was written, when
    /// it is used again, where so many uses come beside so many reads, all equally likely.
    fn lists_again(&self, uses: f64, read: f64) -> f64 {
        let next = uses / (uses + read).max(f64::MIN_POSITIVE);
        uses * libm::pow(1.0 - next, self.file_frames)
    }
}

pub(super) fn predict<K: Kindred>(
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: K::NAME, medium: "raw flash" });
    };
    let plan = Plan::of::<K>(options, disk)?;
    let shape = &plan.shape;
    let codecs = (&shape.codecs.leaf, &shape.codecs.inner);
    let levels = Levels::of(profile.entries, codecs, shape.codecs.shape, CHILD_BYTES);
    let frames = (plan.cache / shape.frame_bytes()) as f64;
    let file = PageFile::frames(disk, &options.page_file(shape.sector, plan.file))?;
    let updates = profile.inserts + profile.overwrites + profile.deletes;
    let given = Given {
        plan: &plan,
        stay: levels.stay(frames),
        frames,
        file_frames: f64::from(file),
        updates,
        operations: profile.lookups + updates,
        splits: profile.inserts / levels.entries_per_leaf,
        levels,
    };
    let (read, written) = match shape.mode {
        Mode::Log => given.in_lists(),
        Mode::Disk => given.in_pages(),
        Mode::SelfTuning { .. } => given.as_costs_less(shape.costs(None)),
    };
    let each = f64::from(shape.sector.div_ceil(disk.sector_bytes()));
    Ok(Prediction {
        page_reads: read * each,
        page_writes: written * each,
        height: given.levels.height as u32,
    })
}
