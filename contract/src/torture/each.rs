//! Short histories that are cut at every operation, and after some of these cuts at every operation
//! of the recovery.

use rand::seq::SliceRandom;
use sim::Cut;

use super::cell::Cell;
use super::device::{Fate, Saved};
use super::failure::Failure;
use super::life::begin_with;
use super::run::Run;
use super::seeds::{mix, random};
use super::session::{Ground, Part};
use super::truth::Truth;

/// The number of the session that is cut: no other has it.
const NUMBER: u32 = 1 << 20;

/// One in so many cuts is followed by cuts at every operation of the recovery.
const AGAIN: u64 = 4;

/// Which cut of a history is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Which {
    /// The operation that is cut.
    pub(super) cut: u64,
    /// The operation of the recovery that is cut then.
    pub(super) again: Option<u64>,
}

/// A device at the start of the short history, and that history.
struct Short<'c> {
    ground: Ground<'c>,
    saved: Saved,
    truth: Truth,
    seed: u64,
    /// Whether reads count among the operations.
    reads: bool,
    part: Part,
}

/// Plays the short history with this seed, cut at every operation; or at one alone.
pub(super) fn play(
    cell: &Cell,
    seed: u64,
    only: Option<Which>,
    run: &mut Run<'_>,
) -> Result<(), Failure> {
    run.at_cut(seed, Which { cut: 0, again: None });
    let mut short = Short::begin(cell, seed)?;
    let outcome = match only {
        Some(which) => short.replay(which, run),
        None => short.cut_each(run),
    };
    run.add(&mut short.ground);
    outcome
}

impl<'c> Short<'c> {
    fn begin(cell: &'c Cell, seed: u64) -> Result<Self, Failure> {
        let mut ground = begin_with(cell, seed, (seed % 3) as u32)?;
        let saved = ground.device.save()?;
        let truth = ground.truth.clone();
        let actions = 1 + (mix(seed, 7) % 5) as u32;
        let part = Part { seed, number: NUMBER, actions, fate: Fate::default() };
        Ok(Short { ground, saved, truth, seed, reads: mix(seed, 8).is_multiple_of(5), part })
    }

    fn cut_each(&mut self, run: &mut Run<'_>) -> Result<(), Failure> {
        let operations = self.operations()?;
        let mut cuts: Vec<u64> = (1..=operations + 1).collect();
        // Where the number of cuts is limited, those that are made lie anywhere.
        cuts.shuffle(&mut random(self.ground.cell, self.seed, NUMBER));
        for (place, cut) in cuts.into_iter().enumerate() {
            if run.is_over(&self.ground) {
                return Ok(());
            }
            self.cut_at(cut, run)?;
            if (place as u64).is_multiple_of(AGAIN) {
                self.cut_recovery(cut, run)?;
            }
        }
        self.ground.witness.histories += 1;
        Ok(())
    }

    /// Plays the history once without a cut; returns how many operations it has.
    fn operations(&mut self) -> Result<u64, Failure> {
        self.ground.session(&self.part)?;
        let (operations, changes) = self.ground.device.operations();
        Ok(if self.reads { operations } else { changes })
    }

    fn fate(&self, seed: u64, at: u64) -> Fate {
        let cut = if self.reads { Cut::Operation(at) } else { Cut::Change(at) };
        Fate { seed: mix(self.seed, seed), cut: Some(cut), refusals: 0.0 }
    }

    /// Cuts the history at operation `cut`.
    fn cut(&mut self, cut: u64) -> Result<(), Failure> {
        self.ground.truth = self.truth.clone();
        self.ground.device.go_back(&self.saved)?;
        let fate = self.fate(cut, cut);
        self.ground.session(&Part { fate, ..self.part }).map(|_| ())
    }

    /// Compares what a cut left, and uses it a little.
    fn compare(&mut self, seed: u64) -> Result<(), Failure> {
        let fate = Fate { seed, ..Fate::default() };
        let actions = (seed % 3) as u32;
        let number = NUMBER + 1;
        self.ground.session(&Part { seed, number, actions, fate }).map(|_| ())
    }

    fn cut_at(&mut self, cut: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        run.at_cut(self.seed, Which { cut, again: None });
        self.cut(cut)?;
        self.compare(cut)
    }

    /// Cuts the history at `cut`, and then each operation of the recovery.
    fn cut_recovery(&mut self, cut: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        self.cut(cut)?;
        let (saved, truth) = (self.ground.device.save()?, self.ground.truth.clone());
        self.ground.recover(cut)?;
        let (operations, changes) = self.ground.opening;
        for again in 1..=(if self.reads { operations } else { changes }) {
            if run.is_over(&self.ground) {
                return Ok(());
            }
            self.ground.truth = truth.clone();
            self.ground.device.go_back(&saved)?;
            self.cut_again(cut, again, run)?;
        }
        Ok(())
    }

    fn cut_again(&mut self, cut: u64, again: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        run.at_cut(self.seed, Which { cut, again: Some(again) });
        let fate = self.fate(mix(cut, again), again);
        self.ground.session(&Part { actions: 0, fate, ..self.part })?;
        self.compare(again)
    }

    fn replay(&mut self, which: Which, run: &mut Run<'_>) -> Result<(), Failure> {
        let Some(again) = which.again else {
            return self.cut_at(which.cut, run);
        };
        self.cut(which.cut)?;
        self.cut_again(which.cut, again, run)
    }
}
