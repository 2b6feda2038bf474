//! What random keys cost a tree of runs, in pages.
//!
//! Which units a lookup misses in memory is told as for all trees ([`index::random_keys`]); what
//! merges read and write is played ([`super::model`]). The head grows from nothing to all its pages
//! between two merges, so what it costs is an average over that.

use alloc::vec::Vec;

use store::runs::Kinds;
use store::{Durability, PageFile};

use super::model::{Numbers, play};
use super::plan::{Plan, file_options};
use super::{Form, Kindred, choices, ratio};
use index::random_keys::{average_bytes, last_that_holds, missing};
use index::{Error, MediumShape, Options, Prediction, Profile, Result};

/// How full leaves are of random keys.
const FILL: f64 = 0.69;

/// Sizes of the head that the average is taken over.
const STEPS: u32 = 16;

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
        };
        let grows = profile.inserts > profile.overwrites + profile.deletes;
        let first = play(&numbers(pages), entries, grows);
        // The runs of fences above the first level take pages of the head.
        let above = if is_cascading { first.above } else { 0.0 };
        let pages = (pages - above).max(pages / 4.0).max(4.0) - 3.0;
        let merged = play(&numbers(pages), entries, grows);
        let operations = profile.lookups + updates;
        let share = updates / operations.max(f64::MIN_POSITIVE);
        let head = self.head(pages, share);
        let per_merge = 2.0 * (pages - self.frames).max(0.0) / numbers(pages).head;
        let reads = profile.lookups * self.lookup(&merged.units)
            + operations * head.0
            + updates * (merged.read + per_merge);
        let writes = updates * merged.written + operations * head.1;
        let height = merged.units.iter().filter(|(units, _)| *units > 0.0).count() as u32 + 2;
        Ok(Prediction { page_reads: reads, page_writes: writes, height })
    }

    /// Pages of the head that an operation reads and writes, where `share` of them are updates.
    fn head(&self, pages: f64, share: f64) -> (f64, f64) {
        let (mut reads, mut writes) = (0.0, 0.0);
        for step in 0..STEPS {
            let leaves = pages * (f64::from(step) + 0.5) / f64::from(STEPS);
            // One frame has the root.
            let miss = (1.0 - (self.frames - 1.0) / leaves.max(1.0)).max(0.0);
            let lookups = 1.0 - share;
            let dirty =
                1.0 - miss * lookups / (1.0 - (1.0 - miss) * lookups).max(f64::MIN_POSITIVE);
            reads += miss / f64::from(STEPS);
            writes += miss * dirty / f64::from(STEPS);
        }
        (reads, writes)
    }

    /// Units that a lookup misses, of runs of so many units to each of which some lookups come.
    fn lookup(&self, runs: &[(f64, f64)]) -> f64 {
        let frames = f64::from(self.plan.memory.units);
        let there: Vec<_> = runs.iter().copied().filter(|(units, _)| *units > 0.0).collect();
        let all: f64 = there.iter().map(|(units, _)| units).sum();
        if frames >= all {
            return 0.0;
        }
        let missed = |stay: f64, (units, share): (f64, f64)| missing(stay * share.min(1.0), units);
        let held =
            |stay: f64| -> f64 { there.iter().map(|run| run.0 * (1.0 - missed(stay, *run))).sum() };
        let stay = last_that_holds(0.0, 64.0 * all, |stay| held(stay) < frames);
        let stay = if frames < there.len() as f64 { 0.0 } else { stay };
        let is_held = |units: f64| units <= 1.0 && frames > 1.0;
        let read = there.iter().filter(|(units, _)| !is_held(*units));
        read.map(|run| run.1 * missed(stay, *run)).sum()
    }
}
