//! Short histories that are cut at every operation, and then at every operation of the recovery.

use rand::seq::SliceRandom;
use sim::Cut;

use super::cell::Cell;
use super::device::{Fate, Saved, Size};
use super::failure::Failure;
use super::life::begin_with;
use super::run::Run;
use super::seeds::{chance, mix, random};
use super::session::{Part, Play, Storage};
use super::truth::Truth;

/// The number of the session that is cut: no other has it.
const NUMBER: u32 = 1 << 20;

/// The first choice that a short history depends on: beyond the numbers of sessions.
const CHOICES: u64 = 1 << 32;

/// Actions within which a history must be complete.
const COMPLETE_WITHIN: u32 = 4000;

/// Actions within which a chip must come to reclaim blocks.
const AGED_WITHIN: u32 = 8000;

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
    storage: Storage<'c>,
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
    run.add(&mut short.storage);
    outcome
}

impl<'c> Short<'c> {
    fn begin(cell: &'c Cell, seed: u64) -> Result<Self, Failure> {
        let choice = |number| chance(cell, seed, CHOICES + number);
        let mut storage = begin_with(cell, seed, (choice(0) % 3) as u32)?;
        let is_complete = choice(1).is_multiple_of(3) && Size::of(cell, seed) != Size::Tight;
        let actions = 1 + (choice(2) % 5) as u32;
        let mut part =
            Part { seed, number: NUMBER, actions, play: Play::Random, fate: Fate::default() };
        if is_complete {
            part.play = Play::Script;
            if let Some(memory) = cell.script_memory() {
                storage.memory = memory;
            }
            age(&mut storage, &part)?;
        }
        let saved = storage.device.save()?;
        let truth = storage.truth.clone();
        if is_complete {
            part.actions = complete(&mut storage, &part)?;
            storage.truth = truth.clone();
            storage.device.go_back(&saved)?;
        }
        Ok(Short { storage, saved, truth, seed, reads: choice(3).is_multiple_of(5), part })
    }

    fn cut_each(&mut self, run: &mut Run<'_>) -> Result<(), Failure> {
        let operations = self.operations()?;
        self.storage.witness.complete += u64::from(self.part.play == Play::Script);
        let mut cuts: Vec<u64> = (1..=operations + 1).collect();
        // Where the number of cuts is limited, those that are made lie anywhere.
        cuts.shuffle(&mut random(self.storage.cell, self.seed, NUMBER));
        for cut in cuts {
            if run.is_over(&self.storage) {
                return Ok(());
            }
            self.cut_at(cut, run)?;
            self.cut_recovery(cut, run)?;
        }
        self.storage.witness.histories += 1;
        Ok(())
    }

    /// Plays the history once without a cut; returns how many operations it has.
    fn operations(&mut self) -> Result<u64, Failure> {
        self.storage.session(&self.part)?;
        let (operations, changes) = self.storage.device.operations();
        Ok(if self.reads { operations } else { changes })
    }

    fn fate(&self, seed: u64, at: u64) -> Fate {
        let cut = if self.reads { Cut::Operation(at) } else { Cut::Change(at) };
        Fate { seed: mix(self.seed, seed), cut: Some(cut), ..Fate::default() }
    }

    /// Cuts the history at operation `cut`.
    fn cut(&mut self, cut: u64) -> Result<(), Failure> {
        self.storage.truth = self.truth.clone();
        self.storage.device.go_back(&self.saved)?;
        let fate = self.fate(cut, cut);
        self.storage.session(&Part { fate, ..self.part }).map(|_| ())
    }

    /// Compares what a cut left, and uses it a little; at times the power goes once more before.
    fn compare(&mut self, seed: u64) -> Result<(), Failure> {
        let random = Part { seed, number: NUMBER + 1, play: Play::Random, ..self.part };
        let chance = mix(self.seed, mix(seed, 3));
        if chance.is_multiple_of(4) {
            let fate = self.fate(chance, 1 + chance / 4 % 24);
            self.storage.session(&Part { actions: 0, fate, ..random })?;
        }
        let fate = Fate { seed, ..Fate::default() };
        self.storage.session(&Part { actions: (seed % 3) as u32, fate, ..random }).map(|_| ())
    }

    fn cut_at(&mut self, cut: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        run.at_cut(self.seed, Which { cut, again: None });
        self.cut(cut)?;
        self.compare(cut)
    }

    /// Cuts the history at `cut`, and then each operation of the recovery.
    fn cut_recovery(&mut self, cut: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        self.cut(cut)?;
        let (saved, truth) = (self.storage.device.save()?, self.storage.truth.clone());
        self.storage.recover(cut)?;
        let (operations, changes) = self.storage.opening;
        for again in 1..=(if self.reads { operations } else { changes }) {
            if run.is_over(&self.storage) {
                return Ok(());
            }
            self.storage.truth = truth.clone();
            self.storage.device.go_back(&saved)?;
            self.cut_again(cut, again, run)?;
        }
        Ok(())
    }

    fn cut_again(&mut self, cut: u64, again: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        run.at_cut(self.seed, Which { cut, again: Some(again) });
        let fate = self.fate(mix(cut, again), again);
        self.storage.session(&Part { actions: 0, fate, ..self.part })?;
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

/// Uses a chip until it has no fresh blocks left.
fn age(storage: &mut Storage<'_>, part: &Part) -> Result<(), Failure> {
    let (mut number, mut actions) = (NUMBER + 2, 0);
    let stand = storage.cell.stand;
    while stand.is_chip() && storage.device.reclaimed(stand) == 0 {
        if actions >= AGED_WITHIN {
            return Err(Failure::Tame { actions, lacks: vec!["blocks reclaimed"] });
        }
        storage.session(&Part { number, actions: 200, play: Play::Random, ..*part })?;
        number += 1;
        actions += 200;
    }
    Ok(())
}

/// Plays the script on until it contains everything; returns how many actions that takes. Twice as
/// many are tried as the last time, each time from the start.
fn complete(storage: &mut Storage<'_>, part: &Part) -> Result<u32, Failure> {
    let saved = storage.device.save()?;
    let truth = storage.truth.clone();
    let impossible = storage.cell.impossible();
    let mut actions = 8;
    loop {
        let before = storage.witness;
        storage.session(&Part { actions, ..*part })?;
        let lacks = (storage.witness - before).lacks(&impossible);
        if lacks.is_empty() {
            return Ok(actions);
        }
        if actions >= COMPLETE_WITHIN {
            return Err(Failure::Tame { actions, lacks });
        }
        actions = actions * 3 / 2;
        storage.truth = truth.clone();
        storage.device.go_back(&saved)?;
    }
}
