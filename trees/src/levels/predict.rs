//! What random keys cost a tree of runs, in pages.
//!
//! Which units a lookup misses in memory is told as for all trees ([`index::random_keys`]); what
//! merges read and write is played ([`super::model`]). The head grows from nothing to all its pages
//! between two merges, so what it costs is an average over that.

use alloc::vec::Vec;

use store::runs::Kinds;
use store::{Durability, PageFile};

use super::model::{MERGED, Numbers, STEPS, play};
use super::plan::{Plan, file_options};
use super::{Form, Kindred, choices, ratio};
use index::random_keys::{average_bytes, last_that_holds, missing};
use index::{Error, MediumShape, Options, Prediction, Profile, Result};

/// How full leaves are of random keys.
const FILL: f64 = 0.69;

/// Pages of a lookup in two heads: the root and a leaf of each.
const FRAMES_OF_LOOKUP: f64 = 4.0;

/// What `profile` costs the tree that `options` describe on `medium`.
pub(crate) fn predict(
    kindred: &Kindred,
    profile: &Profile,
    options: &Options,
    medium: MediumShape,
) -> Result<Prediction> {
    let MediumShape::Sectors(disk) = medium else {
        return Err(Error::WrongMedium { tree: kindred.name, medium: "raw flash" });
    };
    let options = Options { durability: Some(Durability::None), ..options.clone() };
    let chosen = |page, pages| Ok(choices(&options, page, pages));
    let mut plan = Plan::new(&options, disk, chosen, None)?;
    let front = disk.with_sectors(plan.front)?;
    plan.divide(&options, front)?;
    plan.choices.ratio = ratio(&options, &plan, None);
    let file = file_options(&options, disk, plan.page_bytes, (plan.front, plan.memory.file));
    let frames = f64::from(PageFile::frames(front, &file)?);
    Model { kindred, plan: &plan, frames }.predict(profile)
}

struct Model<'m> {
    kindred: &'m Kindred,
    plan: &'m Plan,
    /// Frames of the page file.
    frames: f64,
}

impl Model<'_> {
    fn predict(&self, profile: &Profile) -> Result<Prediction> {
        let updates = profile.inserts + profile.overwrites + profile.deletes;
        let entries = profile.entries.max(1) as f64;
        let shape = self.plan.shape;
        let key = usize::from(average_bytes(shape.key));
        let value = usize::from(average_bytes(shape.value));
        let unit = self.plan.unit_shape(Kinds::Fences)?.capacity(key, value) as f64;
        let leaf = self.plan.codecs.leaf.capacity(key, value + 1) as f64 * FILL;
        let is_cascading = self.kindred.form == Form::Cascading;
        let pages = f64::from(self.plan.choices.head_pages);
        let numbers = |pages: f64| Numbers {
            unit,
            head: (pages * leaf).max(1.0),
            head_units: f64::from(self.plan.choices.head_pages),
            ratio: self.plan.choices.ratio.into(),
            has_fences: is_cascading,
            has_two: self.plan.choices.is_deamortized,
        };
        let grows = profile.inserts > profile.overwrites + profile.deletes;
        let first = play(&numbers(pages), entries, grows);
        // The runs of fences above the first level take pages of the head.
        let above = if is_cascading { first.above } else { 0.0 };
        let pages = (pages - above).max(pages / 4.0).max(4.0) - 3.0;
        let merged = play(&numbers(pages), entries, grows);
        let operations = profile.lookups + updates;
        let share = updates / operations.max(f64::MIN_POSITIVE);
        let head = self.heads(pages, share, (&numbers(pages), entries));
        let per_merge = 2.0 * (pages - self.frames).max(0.0) / numbers(pages).head;
        let reads = profile.lookups * self.lookup(&merged.units)
            + operations * head.0
            + updates * (merged.read + per_merge);
        let pushed = self.pushed_out(pages, self.plan.choices.is_deamortized);
        let per_update = merged.written + pushed / numbers(pages).head;
        let writes = updates * per_update + operations * head.1;
        let height = merged.units.iter().filter(|(units, _)| *units > 0.0).count() as u32 + 2;
        Ok(Prediction { page_reads: reads, page_writes: writes, height })
    }

    /// Pages of the heads that an operation reads and writes, where `share` of them are updates.
    ///
    /// A full head is there until it is merged: lookups go on to its root and a leaf of it, and an
    /// update reads the leaf that its share of the merge is at.
    fn heads(&self, pages: f64, share: f64, (numbers, entries): (&Numbers, f64)) -> (f64, f64) {
        let (mut reads, mut writes) = (0.0, 0.0);
        let lookups = 1.0 - share;
        for step in 0..STEPS {
            let part = (f64::from(step) + 0.5) / f64::from(STEPS);
            let leaves = (pages * part).max(1.0);
            let mut groups = alloc::vec![(leaves, 1.0)];
            if numbers.has_two && part < MERGED {
                let beyond = lookups * numbers.beyond_first(entries, part);
                if self.frames < FRAMES_OF_LOOKUP {
                    // All pages of a lookup push each other out, the root of the first head, too.
                    reads += 1.0 + 3.0 * beyond + share * lookups;
                    writes += share;
                    continue;
                }
                groups.extend([(1.0, beyond), (pages, beyond), (1.0, share)]);
            }
            // One frame has the root.
            let missed = missed(self.frames - 1.0, &groups);
            let miss = missed[0];
            let dirty =
                1.0 - miss * lookups / (1.0 - (1.0 - miss) * lookups).max(f64::MIN_POSITIVE);
            reads += missed.iter().zip(&groups).map(|(miss, group)| miss * group.1).sum::<f64>();
            writes += miss * dirty;
        }
        (reads / f64::from(STEPS), writes / f64::from(STEPS))
    }

    /// Pages of a full head, of those that are written in no other way, which the other one pushes
    /// out of memory before it is merged.
    fn pushed_out(&self, pages: f64, has_two: bool) -> f64 {
        let pushed = if has_two { pages * (1.0 + MERGED) - self.frames } else { 0.0 };
        pushed.clamp(0.0, pages.min(self.frames))
    }

    /// Units that a lookup misses, of runs of so many units to each of which some lookups come.
    fn lookup(&self, runs: &[(f64, f64)]) -> f64 {
        let frames = f64::from(self.plan.memory.units);
        let there: Vec<_> = runs.iter().copied().filter(|(units, _)| *units > 0.0).collect();
        // The first stay, as many as fit; the others share what these leave.
        let (mut left, mut kept) = (frames, 0);
        while let Some((units, _)) = there.get(kept).filter(|(units, _)| left - units >= 1.0) {
            (left, kept) = (left - units, kept + 1);
        }
        let passing = &there[kept..];
        // Where each run pushes out the one before nothing stays until it is read again.
        let left = if left < passing.len() as f64 { 0.0 } else { left };
        let missed = missed(left, passing).into_iter().zip(passing);
        missed.map(|(miss, run)| run.1 * miss).sum()
    }
}

/// Of groups of so many pages, to each of which some of all operations come, the parts that are
/// missing in `frames` frames, which keep what was read last.
fn missed(frames: f64, groups: &[(f64, f64)]) -> Vec<f64> {
    let all: f64 = groups.iter().map(|(pages, _)| pages).sum();
    if frames >= all {
        return groups.iter().map(|_| 0.0).collect();
    }
    let missed = |stay: f64, (pages, share): (f64, f64)| match pages > 1.0 {
        true => missing(stay * share.min(1.0), pages),
        // A single one is missing where none of the operations between came to it.
        false => libm::pow((1.0 - share).max(0.0), stay),
    };
    let held =
        |stay: f64| -> f64 { groups.iter().map(|it| it.0 * (1.0 - missed(stay, *it))).sum() };
    let stay = last_that_holds(0.0, 64.0 * all, |stay| held(stay) < frames);
    groups.iter().map(|it| missed(stay, *it)).collect()
}
