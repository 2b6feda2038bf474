//! Merging: the head, and all levels down to one that has room, become one run in one pass.
//!
//! Above it runs of fences are written at the same time: as often as a unit of a run begins, a
//! fence that names it goes to the run above.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use index::{Direction, Result};
use store::Durability;
use store::runs::{
    Entry, FileSpace, Hooks, Kind, Kinds, Lead, Merge, MergeOptions, Run, RunCursor, RunId,
    RunWriter, Source, Space, UnitHooks, Verdict, Way, WriterOptions,
};

use super::head::HeadSource;
use super::{Component, Form, Levels, WRONG};

/// A level that there never is.
const LEVEL_MOST: u8 = 63;

/// What a merge reads.
pub(super) enum Input {
    Head(HeadSource),
    Run(RunCursor),
}

impl Source for Input {
    fn load(&mut self, space: &mut dyn Space, way: Way) -> store::Result<bool> {
        match self {
            Input::Head(head) => head.load(space, way),
            Input::Run(run) => run.load(space, way),
        }
    }

    fn head(&self, way: Way) -> Option<Entry<'_>> {
        match self {
            Input::Head(head) => head.head(way),
            Input::Run(run) => run.head(way),
        }
    }

    fn step(&mut self, way: Way) {
        match self {
            Input::Head(head) => head.step(way),
            Input::Run(run) => run.step(way),
        }
    }
}

/// Runs of fences that are being written above a run, the lowest first.
pub(super) struct Above<'w>(pub(super) &'w mut [RunWriter]);

impl UnitHooks for Above<'_> {
    fn unit_began(&mut self, space: &mut dyn Space, unit: u32, key: &[u8]) -> store::Result<()> {
        let Some((next, rest)) = self.0.split_first_mut() else {
            return Ok(());
        };
        let fence = Entry { key, kind: Kind::Fence, value: &unit.to_le_bytes() };
        next.push(space, &fence, &mut Above(rest))
    }
}

/// What becomes of entries, and of fences: those into the level below stay, of the input that has
/// them, and a unit that begins with none gets one more.
struct Cascade<'w> {
    above: Above<'w>,
    /// The input whose fences stay.
    fences_of: Option<usize>,
    /// The unit of the level below that the last fence named; `None` if there is no level below.
    last: Option<u32>,
    /// Deletes that met an older version of their key.
    filters_met: u64,
}

impl UnitHooks for Cascade<'_> {
    fn lead(&mut self, _: u32, first: &Entry<'_>) -> Option<Lead> {
        let unit = self.last.filter(|_| !first.kind.is_fence())?;
        Some(Lead { kind: Kind::InnerFence, unit })
    }

    fn unit_began(&mut self, space: &mut dyn Space, unit: u32, key: &[u8]) -> store::Result<()> {
        self.above.unit_began(space, unit, key)
    }
}

impl Hooks for Cascade<'_> {
    fn entry(&mut self, place: usize, entry: &Entry<'_>, meets: bool) -> Verdict {
        match entry.kind {
            Kind::Put => Verdict::Keep,
            Kind::Delete => {
                self.filters_met += u64::from(meets);
                Verdict::Keep
            }
            Kind::Fence if self.fences_of == Some(place) => {
                self.last = self.last.and_then(|last| entry.unit().or(Some(last)));
                Verdict::Keep
            }
            Kind::Fence | Kind::InnerFence => Verdict::Drop,
        }
    }
}

/// Where a merge goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    level: u8,
    /// The components that are merged: all before this one.
    pub(super) below: usize,
    /// Units of the outcome, at most, and pages with its runs of fences.
    units: u64,
    pub(super) pages: u64,
}

impl Levels<'_> {
    /// The first level that has room for the head and all levels above it, and leaves room for what
    /// may come; or the last.
    pub(super) fn target(&self, is_last: bool) -> Result<Target> {
        self.target_with(is_last, (0, 0))
    }

    /// The same if so many entries, and bytes, come to the head before.
    pub(super) fn target_with(&self, is_last: bool, more: (u64, u64)) -> Result<Target> {
        let head = self.head_to_merge();
        let mut entries = (head.btree.entries + more.0, head.bytes + more.1);
        let mut below = 0;
        let last = self.components.last().map_or(0, |last| last.level);
        for level in 1..=LEVEL_MOST {
            if let Some(component) = self.components.get(below).filter(|it| it.level == level) {
                let run = self.run(component.run)?;
                entries = (entries.0 + run.entries, entries.1 + run.bytes);
                below += 1;
            }
            let is_whole = below == self.components.len();
            if is_last && level < last {
                continue;
            }
            let units = self.units_of(entries, below);
            if units > self.plan.capacity(level) && level < LEVEL_MOST {
                continue;
            }
            let pages = self.plan.pages_with_fences(units, self.longest);
            if is_whole || self.leaves_room(below, pages) {
                return Ok(Target { level, below, units, pages });
            }
        }
        Err(WRONG)
    }

    /// Merges the head and the levels down to one that has room; with `to_last`, to the last.
    pub(super) fn cascade(&mut self, to_last: bool) -> Result<()> {
        let merging = self.begin(to_last, u32::MAX)?;
        self.complete(merging)
    }

    /// Begins a merge of the head, with requests of up to `bytes_most` bytes.
    pub(super) fn begin(&mut self, to_last: bool, bytes_most: u32) -> Result<Merging> {
        let target = self.target(to_last)?;
        self.counts.begun += 1;
        let is_cascading = self.kindred.form == Form::Cascading;
        let is_last = target.below == self.components.len();
        let kinds = match (is_last, is_cascading) {
            (true, _) => Kinds::Puts,
            (false, true) => Kinds::Fences,
            (false, false) => Kinds::Deletes,
        };
        let sources = target.below + 2;
        let bytes = self.plan.buffer_bytes(sources + 1, self.plan.stack + 1).min(bytes_most);
        let mut inputs = Vec::with_capacity(sources);
        let whole = Bound::Unbounded;
        let direction = Direction::Ascending;
        let head = self.full.as_ref().map_or(&self.head, |full| &full.head);
        let mut entries = head.btree.entries;
        inputs.push(Input::Head(HeadSource::new(&mut self.store, head, whole, direction)?));
        for component in &self.components[..target.below] {
            inputs.push(Input::Run(self.all_of(component.run, bytes, &mut entries)?));
        }
        let mut fences_of = None;
        if is_cascading && !is_last {
            match self.components.first().filter(|_| target.below == 0) {
                None => fences_of = Some(target.below),
                Some(below) => {
                    if let Some(fences) = below.stack.last() {
                        fences_of = Some(inputs.len());
                        inputs.push(Input::Run(self.all_of(*fences, bytes, &mut entries)?));
                    }
                }
            }
        }
        let free = self.pages_free();
        let writer = self.writer((kinds, Cause::Merge), target.units, bytes)?;
        let above = match self.fence_writers(target.units, Cause::Merge) {
            Ok(above) => above,
            Err(error) => {
                writer.abandon(&mut self.store.file)?;
                return Err(error);
            }
        };
        Ok(Merging {
            merge: Merge::new(writer, MergeOptions { drops_deletes: is_last }),
            inputs,
            above,
            fences_of,
            last: (is_cascading && !is_last).then_some(0),
            filters_met: 0,
            target,
            entries,
            pages: free - self.pages_free(),
            request: u64::from(bytes / self.plan.page_bytes),
            most: u64::MAX,
            ended: 0,
            from: self.head.used(),
            room: self.head.room(self.head_most(), (self.plan.page_bytes, self.plan.longest.0)),
        })
    }

    /// Makes what is left of a merge.
    pub(super) fn complete(&mut self, mut merging: Merging) -> Result<()> {
        if let Err(error) = merging.step(&mut self.store.file, u64::MAX) {
            merging.abandon(&mut self.store.file)?;
            return Err(error);
        }
        let (target, filters_met) = (merging.target, merging.filters_met);
        let (run, stack) = merging.finish(&mut self.store.file)?;
        let entries = run.entries;
        self.commit(target, run, stack)?;
        self.counts.entries += entries;
        self.counts.filters_met += filters_met;
        let last = self.counts.into_level.len() - 1;
        self.counts.into_level[usize::from(target.level - 1).min(last)] += 1;
        Ok(())
    }

    /// All of a run, whose entries and fences are added to `entries`.
    fn all_of(&self, id: RunId, bytes: u32, entries: &mut u64) -> Result<RunCursor> {
        let run = self.run(id)?;
        *entries = entries.saturating_add(run.entries).saturating_add(run.fences);
        let options = self.plan.cursor(bytes, true, Cause::Merge);
        Ok(RunCursor::new(run, options, self.store.file.alignment()))
    }

    /// Begins a run of up to `units` units.
    pub(super) fn writer(
        &mut self,
        (kinds, cause): (Kinds, Cause),
        units: u64,
        bytes: u32,
    ) -> Result<RunWriter> {
        let shape = self.plan.unit_shape(kinds)?;
        let longest = self.longest.0 as usize;
        let pages = RunWriter::pages_for(&self.store.file, &shape, units.max(1), (longest, 0));
        let options = WriterOptions {
            id: self.manifest.number_run(),
            label: 0,
            shape,
            sequences: 0..=0,
            request_bytes: bytes,
            pages: u32::try_from(pages).unwrap_or(u32::MAX),
            fence_step: 0,
            cause,
        };
        Ok(RunWriter::new(&mut self.store.file, options)?)
    }

    /// Begins the runs of fences above one of up to `units` units, the lowest first.
    pub(super) fn fence_writers(&mut self, mut units: u64, cause: Cause) -> Result<Vec<RunWriter>> {
        let mut above = Vec::new();
        let bytes = self.plan.page_bytes;
        while units > 1 {
            let fewer = self.plan.units_most((0, 0), (units, false), self.longest);
            units = fewer.min(units - 1);
            match self.writer((Kinds::Fences, cause), units, bytes) {
                Ok(writer) => above.push(writer),
                Err(error) => {
                    abandon(&mut self.store.file, above)?;
                    return Err(error);
                }
            }
        }
        Ok(above)
    }

    /// The tree has the outcome of a merge from now on.
    fn commit(&mut self, target: Target, run: Run, stack: Vec<Run>) -> Result<()> {
        let Target { level, below, .. } = target;
        let mut dead = Vec::new();
        for component in &self.components[..below] {
            dead.extend(component.stack.iter().chain([&component.run]));
        }
        let units = dead.iter().filter_map(|id| self.manifest.run(*id)).map(|run| run.units);
        self.counts.units_read += units.map(u64::from).sum::<u64>();
        let is_cascading = self.kindred.form == Form::Cascading;
        if let Some(lower) = self.components.get(below).filter(|_| below == 0 && is_cascading) {
            dead.extend(&lower.stack);
        }
        self.is_poisoned = true;
        let mut born = Vec::new();
        let mut component = None;
        if run.units == 0 {
            // All that it would have held was deleted.
            self.store.file.free(&run.extents)?;
        } else {
            let ids = stack.iter().map(|run| run.id).collect();
            component = Some(Component { level, run: run.id, stack: ids });
            self.counts.units_written += u64::from(run.units);
            self.counts.units_written += stack.iter().map(|run| u64::from(run.units)).sum::<u64>();
            born.push(run);
            born.extend(stack);
        }
        self.manifest.change(&mut self.store.file, born, &dead)?;
        if let Some(lower) = self.components.get_mut(below).filter(|_| below == 0 && is_cascading) {
            lower.stack.clear();
        }
        self.components.splice(..below, component);
        if self.durability() == Durability::None {
            self.manifest.checkpointed(&mut self.store.file)?;
        }
        match self.full.take() {
            Some(full) => full.head.give_back(&mut self.store)?,
            None if self.head.btree.entries > 0 => self.head.clear(&mut self.store)?,
            None => {}
        }
        self.is_poisoned = false;
        self.counts.merges += 1;
        self.count_merge();
        Ok(())
    }
}

/// Gives up runs that were begun.
pub(super) fn abandon(space: &mut dyn Space, writers: Vec<RunWriter>) -> Result<()> {
    for writer in writers {
        writer.abandon(space)?;
    }
    Ok(())
}

/// Ends the runs of fences above a run of `units` units, as many as it takes for one to have a
/// single unit; the topmost first.
pub(super) fn finish_fences(
    space: &mut dyn Space,
    above: Vec<RunWriter>,
    mut units: u32,
) -> Result<Vec<Run>> {
    let mut stack = Vec::new();
    let mut above = above.into_iter();
    for writer in above.by_ref() {
        if units <= 1 {
            writer.abandon(space)?;
            break;
        }
        match writer.finish(space) {
            Ok((run, _)) => {
                units = run.units;
                stack.insert(0, run);
            }
            Err(error) => {
                give_up(space, &stack)?;
                abandon(space, above.collect())?;
                return Err(error.into());
            }
        }
    }
    abandon(space, above.collect())?;
    Ok(stack)
}

/// Gives back runs that came to be part of nothing.
pub(super) fn give_up(space: &mut dyn Space, runs: &[Run]) -> Result<()> {
    runs.iter().try_for_each(|run| Ok(space.free(&run.extents)?))
}

/// A merge under way.
pub(super) struct Merging {
    merge: Merge,
    inputs: Vec<Input>,
    above: Vec<RunWriter>,
    fences_of: Option<usize>,
    last: Option<u32>,
    filters_met: u64,
    target: Target,
    /// Entries and fences of all inputs.
    pub(super) entries: u64,
    /// Pages that it took.
    pub(super) pages: u64,
    /// Pages of a request, and that an update's share may have.
    pub(super) request: u64,
    pub(super) most: u64,
    /// Runs whose ends are written.
    ended: usize,
    /// What the head that takes updates had taken when it began, and what it takes at least.
    pub(super) from: u64,
    pub(super) room: u64,
}

impl Merging {
    /// True if all entries were read.
    pub(super) const fn is_read(&self) -> bool {
        self.merge.counts().read >= self.entries
    }

    /// Does an update's share: goes on until `entries` entries were read, or until what comes next
    /// might be more than `most` pages in all; at least one page that is due is moved.
    ///
    /// An entry may end a page of the run, and with it one of the fences above.
    pub(super) fn share(
        &mut self,
        space: &mut FileSpace<'_>,
        (entries, most): (u64, u64),
    ) -> Result<()> {
        let begun = space.pages_moved();
        let has_room = |space: &FileSpace<'_>, pages: u64| {
            let moved = space.pages_moved() - begun;
            moved == 0 || moved + pages <= most
        };
        let (request, entries) = (self.request, entries.min(self.entries));
        while self.merge.counts().read < entries && !self.is_read() {
            for input in &mut self.inputs {
                if !has_room(space, request) {
                    return Ok(());
                }
                input.load(space, Way::Up)?;
            }
            if !has_room(space, request + 1) {
                return Ok(());
            }
            let read = self.merge.counts().read;
            self.step(space, read + 1)?;
            if self.merge.counts().read == read {
                // Fewer than its runs say.
                self.entries = read;
            }
        }
        Ok(())
    }

    /// Writes the end of one more run, once all entries were read; false if all are written.
    pub(super) fn end_one(&mut self, space: &mut dyn Space) -> Result<bool> {
        let place = self.ended;
        let below = match place.checked_sub(1) {
            None => return self.ends_with(|merging| merging.merge.end(space)),
            Some(0) => self.merge.writer().units(),
            Some(above) => self.above.get(above - 1).map_or(0, RunWriter::units),
        };
        // Above a run of one unit stands none.
        if below <= 1 || place > self.above.len() {
            return Ok(false);
        }
        self.ends_with(|merging| merging.above[place - 1].end(space))
    }

    fn ends_with(&mut self, end: impl FnOnce(&mut Self) -> store::Result<()>) -> Result<bool> {
        end(self)?;
        self.ended += 1;
        Ok(true)
    }

    /// Goes on until `entries` entries were read, or all.
    pub(super) fn step(&mut self, space: &mut dyn Space, entries: u64) -> Result<()> {
        let above = Above(&mut self.above);
        let Merging { fences_of, last, filters_met, .. } = *self;
        let mut hooks = Cascade { above, fences_of, last, filters_met };
        let mut is_over = false;
        while !is_over && self.merge.counts().read < entries {
            // No entry counts as less than a byte: so these are not more than asked for.
            let bytes = entries - self.merge.counts().read;
            is_over = self.merge.step(space, &mut self.inputs, &mut hooks, bytes)?;
        }
        (self.last, self.filters_met) = (hooks.last, hooks.filters_met);
        Ok(())
    }

    /// The outcome of all steps, and the runs of fences above it.
    fn finish(self, space: &mut dyn Space) -> Result<(Run, Vec<Run>)> {
        let (run, _) = match self.merge.finish(space) {
            Ok(run) => run,
            Err(error) => {
                abandon(space, self.above)?;
                return Err(error.into());
            }
        };
        match finish_fences(space, self.above, run.units) {
            Ok(stack) => Ok((run, stack)),
            Err(error) => {
                give_up(space, &[run])?;
                Err(error)
            }
        }
    }

    /// Gives back what it took.
    pub(super) fn abandon(self, space: &mut dyn Space) -> Result<()> {
        self.merge.abandon(space)?;
        abandon(space, self.above)
    }
}
