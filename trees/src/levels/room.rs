//! Room: what has to stay free, so that a merge never fails for lack of it.
//!
//! A merge writes its outcome before what it came from is free. So one inequality is kept, in
//! pages:
//!
//! ```text
//!  runs + runs that named checkpoints pin + outcome of merging all that there is <= pages
//! ```
//!
//! What comes out of a merge is bounded by counts and bytes of what goes in; nothing is tried and
//! nothing taken back. Runs that only the last checkpoint needs are in the way until the next one:
//! where they leave no room for a merge, that is made first. Deletes free room in the end, and have
//! a part of the pages for themselves.

use store::Update;
use store::runs::Space;

use super::{Form, Levels};
use index::Result;

/// The part of the pages that is kept for deletes, and pages beside it.
const DELETES_PART: u64 = 64;
const DELETES_PAGES: u64 = 1;

/// What is known between two merges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// Pages of runs that there are.
    live: u64,
    /// Pages of others that are in use after every checkpoint.
    pinned: u64,
    /// Pages of others that a checkpoint frees.
    waiting: u64,
    /// True if the page file has pages that a checkpoint frees.
    is_head_waiting: bool,
    /// Pages that a merge of all runs may write.
    outcome: u64,
}

impl Room {
    /// True if a checkpoint frees something.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waiting > 0 || self.is_head_waiting
    }
}

impl Levels<'_> {
    pub(super) fn pages_free(&self) -> u64 {
        self.store.file.pages_free()
    }

    /// Nothing waits for a checkpoint now: one was made, or names changed.
    pub(super) fn recount(&mut self) {
        let (live, dead) = self.manifest.pages();
        let outcome = self.outcome_of_runs();
        self.room = Room { live, pinned: dead, waiting: 0, is_head_waiting: false, outcome };
    }

    /// A merge was made.
    pub(super) fn count_merge(&mut self) {
        let (live, dead) = self.manifest.pages();
        let waiting = dead.saturating_sub(self.room.pinned);
        self.room.live = live;
        self.room.waiting = waiting;
        self.room.is_head_waiting = self.durability() != store::Durability::None;
        self.room.outcome = self.outcome_of_runs();
    }

    /// Entries got longer.
    pub(super) fn recount_outcome(&mut self) {
        self.room.outcome = self.outcome_of_runs();
    }

    /// Pages that merging the runs may write, whichever level it goes to.
    fn outcome_of_runs(&self) -> u64 {
        let (mut entries, mut bytes, mut most) = (0, 0, 0);
        for (place, component) in self.components.iter().enumerate() {
            let Some(run) = self.manifest.run(component.run) else { continue };
            (entries, bytes) = (entries + run.entries, bytes + run.bytes);
            most = most.max(self.outcome_of((entries, bytes), place + 1));
        }
        most
    }

    /// Pages that entries of so many bytes take, merged into a run above the component at `below`.
    fn outcome_of(&self, entries: (u64, u64), below: usize) -> u64 {
        let units = self.units_of(entries, below);
        self.plan.pages_with_fences(units, self.longest)
    }

    /// Units that entries of so many bytes take, in a run above the component at `below`.
    pub(super) fn units_of(&self, entries: (u64, u64), below: usize) -> u64 {
        let lower = self.components.get(below).filter(|_| self.kindred.form == Form::Cascading);
        let units = lower.and_then(|lower| self.manifest.run(lower.run)).map(|run| run.units);
        let fences = (units.unwrap_or(0).into(), units.is_some());
        self.plan.units_most(entries, fences, self.longest)
    }

    /// Pages that a merge may write if so many entries come.
    pub(super) fn outcome_pages(&self, entries: u64, bytes: u64) -> u64 {
        let held = (self.head.btree.entries + entries, self.head.bytes + bytes);
        if held.0 == 0 {
            return self.room.outcome;
        }
        let units = self.plan.units_most(held, (1, true), self.longest);
        let runs = u64::from(self.plan.stack) + 2;
        self.room.outcome + self.plan.pages_with_fences(units, self.longest) + runs
    }

    /// Pages of the head.
    fn head_pages(&self) -> u32 {
        let file = self.store.file.file();
        file.pages_used().0.saturating_sub(file.record_pages())
    }

    /// Pages that the head may have: the runs of fences above the first level belong to it, too.
    fn head_most(&self) -> u32 {
        let most = self.plan.choices.head_pages;
        let fences = self.components.first().map_or(&[][..], |first| &first.stack);
        let units = fences.iter().filter_map(|id| self.manifest.run(*id)).map(|run| run.units);
        let units: u32 = if self.kindred.form == Form::Cascading { units.sum() } else { 0 };
        most.saturating_sub(units).max(most / 4).max(self.head.pages_of_one() + 2)
    }

    /// True if the head may have no room for one more update.
    pub(super) fn is_head_full(&self) -> bool {
        self.head.btree.entries > 0
            && self.head_pages() + self.head.pages_of_one() > self.head_most()
    }

    /// True if some update of `batch` may find the head full.
    pub(super) fn may_merge(&self, batch: &[Update<'_>]) -> bool {
        let growth = (batch.len() as u64).saturating_mul(self.head.pages_of_one().into());
        u64::from(self.head_pages()) + growth > self.head_most().into()
    }

    /// Pages in use that giving the head's pages back changes: those that name them.
    pub(super) fn changes_of_merge(&self) -> u32 {
        2 * (self.plan.choices.head_pages / (self.plan.page_bytes / 4 - 4) + 2)
    }

    /// True if a merge now may lack room that a checkpoint gives.
    pub(super) fn lacks_checkpoint(&self) -> bool {
        let lacks_runs = self.room.waiting > 0 && self.pages_free() < self.outcome_pages(1, 0);
        lacks_runs || (self.room.is_head_waiting && self.lacks_head_pages())
    }

    /// True if the page file lacks pages for another head.
    fn lacks_head_pages(&self) -> bool {
        let free = self.store.file.file().pages_free();
        free < self.plan.choices.head_pages + self.head.pages_of_one()
    }

    /// Refuses a batch that may find too little room, with nothing changed.
    pub(super) fn admit_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let (mut bytes, mut puts) = (0, 0);
        for update in batch {
            let key = update.key().len() as u64;
            let mut entry = key;
            if let Update::Put { value, .. } = update {
                (entry, puts) = (entry + value.len() as u64, puts + 1);
            }
            bytes += entry;
            self.note_longest(key, entry);
        }
        let pages = u64::from(self.plan.choices.pages);
        let full = store::Error::Full { pages };
        let outcome = self.outcome_pages(batch.len() as u64, bytes);
        let kept = if puts > 0 { pages / DELETES_PART + DELETES_PAGES } else { 0 };
        let Room { live, pinned, .. } = self.room;
        if live + outcome + kept > pages {
            return Err(full.into());
        }
        if live + pinned + outcome + kept > pages {
            let kept = pinned * u64::from(self.plan.page_bytes);
            return Err(store::Error::Kept { kept }.into());
        }
        if !self.may_merge(batch) {
            let free = u64::from(self.store.file.file().pages_free());
            let growth = (batch.len() as u64) * u64::from(self.head.pages_of_one());
            return if growth <= free { Ok(()) } else { Err(full.into()) };
        }
        // A checkpoint can't fall inside a batch that no journal holds: the second merge of such
        // finds what the first one wrote beside what that took.
        let recovery = self.store.file.recovery();
        let is_one = batch.len() < 2 || recovery.durability() == store::Durability::None;
        let has_journal = recovery.durability().has_journal() && !recovery.is_beyond_journal(batch);
        let merges = if is_one || has_journal { 1 } else { 2 };
        if self.pages_free() < merges * outcome || self.lacks_head_pages() {
            return Err(full.into());
        }
        Ok(())
    }
}
