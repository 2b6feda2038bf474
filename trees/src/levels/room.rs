//! Room: what has to stay free, so that a merge never fails for lack of it.
//!
//! A merge writes its outcome before what it came from is free. With `W` for the pages that all
//! there is takes as one run, the head's entries and those of a batch included, and its runs of
//! fences, a batch is let in if, in pages,
//!
//! ```text
//!  (1)  runs + runs that names pin + R + W         <= pages
//!  (2)  2 W + runs that names pin + D + S          <= pages    where it has puts
//! ```
//!
//! `R` is what a merge took that is made in steps, at most `W` pages: where that may be, (2) has
//! 3 W. Such a merge ends for certain, before anything else is merged; one beside which (1) does
//! not hold is made at once.
//!
//! By (1) everything can be merged into one run. Where (1) fails this is done, and there are at
//! most `W` pages of runs then: so by (2) it holds again, and `D` more pages of deletes have room,
//! which free room in the end. `S` is by how much several runs take more than one. Merges that
//! leave more than `W + S` pages, or break (1), are made with all that there is.
//!
//! `W` follows from counts, bytes and the longest entry; nothing is tried and nothing taken back.
//! Runs that only the last checkpoint needs are in the way until the next one: where they leave no
//! room for a merge, that is made first.

use device::Cause;
use store::Update;
use store::runs::{Run, Space};

use super::{Form, Levels};
use index::{Error, Result};

/// The part of the pages that is kept for deletes, beside what one of them may need.
const DELETES_PART: u64 = 64;

/// Bytes of a root record for a run, beside the run itself.
const COMPONENT_BYTES: usize = 32;

/// What is known between two merges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// Pages of runs that there are, and of those among them that names pin when they go.
    live: u64,
    held: u64,
    /// Pages of others that are in use after every checkpoint.
    pinned: u64,
    /// Pages of others that a checkpoint frees.
    waiting: u64,
    /// True if the page file has pages that a checkpoint frees.
    is_head_waiting: bool,
    /// Entries of all runs, and their bytes.
    entries: (u64, u64),
}

impl Room {
    /// True if a checkpoint frees something.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waiting > 0 || self.is_head_waiting
    }
}

/// What comes to what there is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct More {
    entries: u64,
    bytes: u64,
    /// The longest key, and the longest entry.
    longest: (u64, u64),
    has_puts: bool,
}

impl Levels<'_> {
    pub(super) fn pages_free(&self) -> u64 {
        self.store.file.pages_free()
    }

    /// Nothing waits for a checkpoint now: one was made, or names changed.
    pub(super) fn recount(&mut self) {
        self.count_runs();
        self.room.is_head_waiting = false;
    }

    /// A merge was made.
    pub(super) fn count_merge(&mut self) {
        self.count_runs();
        self.room.is_head_waiting = self.durability() != store::Durability::None;
    }

    fn count_runs(&mut self) {
        let (live, dead) = self.manifest.pages();
        let (held, pinned) = self.manifest.pages_pinned();
        let runs = self.components.iter().filter_map(|one| self.manifest.run(one.run));
        let entries = runs.fold((0_u64, 0_u64), |sum, run| {
            (sum.0.saturating_add(run.entries), sum.1.saturating_add(run.bytes))
        });
        let waiting = dead.saturating_sub(pinned);
        self.room = Room { live, held, pinned, waiting, entries, ..self.room };
        // Each lookup goes through all levels: a page of the upper ones is wanted most often.
        let runs = self.components.iter().flat_map(|one| one.stack.iter().chain([&one.run]));
        self.reader.keep_first(runs.filter_map(|id| self.manifest.run(*id)));
    }

    /// `W`: pages that all there is takes as one run, with `more`.
    pub(super) fn whole(&self, more: &More) -> u64 {
        let Room { entries, .. } = self.room;
        let mut beside = (more.entries, more.bytes);
        for head in self.heads() {
            beside = (beside.0 + head.btree.entries, beside.1 + head.bytes);
        }
        let all = (entries.0.saturating_add(beside.0), entries.1.saturating_add(beside.1));
        let longest = (self.longest.0.max(more.longest.0), self.longest.1.max(more.longest.1));
        let units = self.plan.units_most(all, (0, false), longest);
        self.plan.pages_with_fences(units, longest)
    }

    /// Units that entries of so many bytes take, in a run above the component at `below`.
    pub(super) fn units_of(&self, entries: (u64, u64), below: usize) -> u64 {
        let lower = self.components.get(below).filter(|_| self.kindred.form == Form::Cascading);
        let units = lower.and_then(|lower| self.manifest.run(lower.run)).map(|run| run.units);
        let fences = (units.unwrap_or(0).into(), units.is_some());
        self.plan.units_most(entries, fences, self.longest)
    }

    /// True if a merge of all components before `below` into a run that takes `pages` pages leaves
    /// so much room that everything can be merged then.
    pub(super) fn leaves_room(&self, below: usize, pages: u64) -> bool {
        let Room { live, held, pinned, .. } = self.room;
        let gone = self.components[..below].iter();
        let gone = gone.flat_map(|one| one.stack.iter().chain([&one.run]));
        let gone: u64 = gone.filter_map(|id| self.manifest.run(*id)).map(|run| run.pages()).sum();
        let (live, whole) = (live - gone.min(live) + pages, self.whole(&More::default()));
        let is_compact = pages <= whole && live <= whole + self.plan.spread_pages();
        let room = (self.plan.copies() - 1) * whole;
        is_compact && live + pinned + held.min(gone) + room <= self.plan.choices.pages.into()
    }

    /// True if everything can be merged when a merge under way that took `pages` pages is made.
    pub(super) fn has_room_beside(&self, pages: u64) -> bool {
        let Room { live, pinned, .. } = self.room;
        let whole = self.whole(&More::default());
        live + pinned + pages + whole <= self.plan.choices.pages.into()
    }

    /// Pages of the head that takes updates.
    pub(super) fn head_pages(&self) -> u32 {
        let file = self.store.file.file();
        let full = self.full.as_ref().map_or(0, |full| full.pages);
        file.pages_used().0.saturating_sub(file.record_pages()).saturating_sub(full)
    }

    /// Pages that the head may have: the runs of fences above the first level belong to it, too.
    pub(super) fn head_most(&self) -> u32 {
        let fences = self.components.first().map_or(&[][..], |first| &first.stack);
        let units = fences.iter().filter_map(|id| self.manifest.run(*id)).map(|run| run.units);
        self.head_beside(units.sum())
    }

    /// Pages that the head may have beside so many pages of fences.
    fn head_beside(&self, fences: u32) -> u32 {
        let most = self.plan.choices.head_pages;
        let fences = if self.kindred.form == Form::Cascading { fences } else { 0 };
        most.saturating_sub(fences).max(most / 4).max(self.head.pages_of_one() + 2)
    }

    /// True if `batch` may find the head full twice, where all there is takes `whole` pages: the
    /// update that finds it full first goes into the single leaf that a merge leaves.
    fn may_merge_twice(&self, batch: &[Update<'_>], whole: u64) -> bool {
        let units = self.plan.units_above(whole, self.plan.longest.0 as u64);
        let most = self.head_beside(u32::try_from(units).unwrap_or(u32::MAX));
        batch.len() > 2 && self.growth(&batch[1..]) + 1 > most.into()
    }

    /// True if the head may have no room for one more update.
    pub(super) fn is_head_full(&self) -> bool {
        self.head.btree.entries > 0
            && self.head_pages() + self.head.pages_of_one() > self.head_most()
    }

    /// Pages by which a batch may make the head grow.
    fn growth(&self, batch: &[Update<'_>]) -> u64 {
        (batch.len() as u64).saturating_mul(self.head.pages_of_one().into())
    }

    /// True if some update of `batch` may find the head full.
    pub(super) fn may_merge(&self, batch: &[Update<'_>]) -> bool {
        u64::from(self.head_pages()) + self.growth(batch) > self.head_most().into()
    }

    /// Pages in use that giving the head's pages back changes: those that name them.
    pub(super) fn changes_of_merge(&self) -> u32 {
        2 * (self.plan.choices.head_pages / (self.plan.page_bytes / 4 - 4) + 2)
    }

    /// True if a merge now may lack room that a checkpoint gives.
    pub(super) fn lacks_checkpoint(&self) -> bool {
        let lacks = || self.target(false).is_ok_and(|target| target.pages > self.pages_free());
        (self.room.waiting > 0 && lacks()) || (self.room.is_head_waiting && self.lacks_head_pages())
    }

    /// True if the page file lacks pages for another head.
    fn lacks_head_pages(&self) -> bool {
        self.store.file.file().pages_free() < self.another_head()
    }

    /// Pages of another head, and by which a root record gets longer by what a merge makes.
    fn another_head(&self) -> u32 {
        let file = self.store.file.file();
        let head = self.plan.choices.head_pages + self.head.pages_of_one();
        let runs = 1 + self.plan.stack as usize;
        let extents = self.store.file.extents_free() + runs;
        let each = Run::encoded_bytes_most(self.longest.0 as usize, 0) + COMPONENT_BYTES;
        let record = (runs * each + 8 * extents) as u32;
        head + file.pages_for_long(record)
    }

    fn more(&self, batch: &[Update<'_>]) -> More {
        let mut more = More { entries: batch.len() as u64, ..More::default() };
        for update in batch {
            let key = update.key().len() as u64;
            let mut entry = key;
            if let Update::Put { value, .. } = update {
                entry += value.len() as u64;
                more.longest = (more.longest.0.max(key), more.longest.1.max(entry));
                more.has_puts = true;
            }
            more.bytes += entry;
        }
        more
    }

    /// True if entries of so many bytes that are loaded have room.
    pub(super) fn has_room_for(&self, (entries, bytes): (u64, u64)) -> bool {
        let more = More { entries, bytes, longest: self.longest, has_puts: true };
        let need = self.plan.copies() * self.whole(&more) + self.room.pinned;
        let need = need + self.plan.kept_pages();
        need <= self.plan.choices.pages.into()
    }

    /// Refuses a batch that may find too little room, with nothing changed.
    pub(super) fn admit_room(&mut self, batch: &[Update<'_>]) -> Result<()> {
        let more = self.more(batch);
        let pages = u64::from(self.plan.choices.pages);
        let whole = self.whole(&more);
        let Room { live, held, pinned, .. } = self.room;
        let mut need = live + self.pages_reserved() + whole;
        if more.has_puts {
            need = need.max(self.plan.copies() * whole + self.plan.kept_pages());
        }
        // The second merge of a batch finds what the first one wrote, and what that left pinned.
        let merges = 1 + u64::from(self.may_merge_twice(batch, whole));
        let mut kept = pinned;
        if merges > 1 {
            need = need.max(self.plan.copies() * whole + self.plan.spread_pages());
            kept += held;
        }
        if need > pages {
            return Err(store::Error::Full { pages }.into());
        }
        if need + kept > pages {
            return Err(self.lack());
        }
        if !self.may_merge(batch) {
            let free = u64::from(self.store.file.file().pages_free());
            return if self.growth(batch) <= free { Ok(()) } else { Err(self.lack()) };
        }
        // A checkpoint can't fall inside a batch that no journal holds: the second merge of such
        // finds what the first one took, too. Where nothing lasts, that is free at once.
        let recovery = self.store.file.recovery();
        let has_journal =
            recovery.durability().has_journal() && !recovery.lasts_by_checkpoint(batch, true);
        let is_lasting = recovery.durability() != store::Durability::None;
        let merges = if is_lasting && !has_journal { merges } else { 1 };
        if self.pages_free() < merges * whole || self.lacks_head_pages() {
            return Err(self.lack());
        }
        self.hold_for_merges(batch, &more, whole)
    }

    /// Where the device grows, lets it have room for what the merges in `batch` write: were it full
    /// then, the batch could not be made, and no opening could make it either.
    fn hold_for_merges(&mut self, batch: &[Update<'_>], more: &More, whole: u64) -> Result<()> {
        let known = self.longest;
        self.longest = (known.0.max(more.longest.0), known.1.max(more.longest.1));
        let target = self.target_with(false, (more.entries, more.bytes));
        self.longest = known;
        let merges = 1 + u64::from(self.may_merge_twice(batch, whole));
        let pages = merges * target.map_or(whole, |target| target.pages.min(whole));
        Ok(self.store.file.hold_free(pages, Cause::Merge)?)
    }

    /// Too little room; where names keep some, they are in the way.
    fn lack(&self) -> Error {
        let runs = self.room.pinned * u64::from(self.plan.page_bytes);
        match self.store.file.recovery().statistics().kept_bytes + runs {
            0 => store::Error::Full { pages: self.plan.choices.pages.into() }.into(),
            kept => store::Error::Kept { kept }.into(),
        }
    }

    /// Refuses one more name if then no update may be taken before it is forgotten.
    pub(super) fn admit_name(&self) -> Result<()> {
        let Room { live, pinned, .. } = self.room;
        let whole = self.plan.copies() * self.whole(&More::default());
        let need = whole + self.plan.kept_pages() + pinned + live + self.pages_reserved();
        // Each page in use may get an image that is kept.
        let (file, head) = (self.store.file.file(), self.another_head());
        let images = file.pages_used().0.into();
        match need <= self.plan.choices.pages.into() && file.has_room(head.into(), images, 1) {
            true => Ok(()),
            false => Err(self.lack()),
        }
    }
}

impl super::plan::Plan {
    /// Times that all there is has room: as it stands, and merged into one run; and once more
    /// beside a merge that is made in steps.
    pub(super) const fn copies(&self) -> u64 {
        if self.choices.is_deamortized { 3 } else { 2 }
    }

    /// `S`: pages by which several runs may take more than one with their entries.
    pub(super) fn spread_pages(&self) -> u64 {
        u64::from(self.levels - 1) * self.pages_of_one()
    }

    /// By how many pages one entry more makes a run longer, with those of fences above it.
    fn pages_of_one(&self) -> u64 {
        u64::from(self.stack) + self.footer_units() + 2
    }

    /// `D + S`: pages that puts leave.
    pub(super) fn kept_pages(&self) -> u64 {
        let pages = u64::from(self.choices.pages);
        2 * self.pages_of_one() + pages / DELETES_PART + self.spread_pages()
    }
}
