//! Merging runs into one, a step at a time.
//!
//! The sources stay with the tree, which hands them to every step, the newest first: so they can be
//! runs and frozen memory alike, and the tree can read them in between. A step ends after so many
//! bytes of entries; the run that comes of it is the same whatever the steps are.

use super::entry::{Entry, Kind};
use super::fences::Fences;
use super::merged::{Source, Way, places, select};
use super::run::Run;
use super::space::Space;
use super::writer::{RunWriter, UnitHooks};
use crate::Result;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Keep,
    /// It is left out.
    Drop,
    /// It is a fence, and names another unit from now on.
    Point(u32),
}

/// What a tree decides while runs are merged.
pub trait Hooks: UnitHooks {
    /// What becomes of `entry` of the source at `place`. Of entries with one key that are no fences
    /// only the newest is asked for; `meets` tells that there was another. Of fences each is.
    fn entry(&mut self, place: usize, entry: &Entry<'_>, meets: bool) -> Verdict {
        let _ = (place, entry, meets);
        Verdict::Keep
    }
}

impl Hooks for super::writer::NoHooks {}

/// How runs are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// True if nothing older is left that a delete could hide: it is left out then.
    pub drops_deletes: bool,
}

/// What a merge did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Entries of all sources.
    pub read: u64,
    /// Bytes of them.
    pub bytes_read: u64,
    /// Entries that a newer one took the place of.
    pub superseded: u64,
    /// Entries that were left out.
    pub dropped: u64,
}

/// A merge of several sources into one run.
pub struct Merge {
    writer: RunWriter,
    options: MergeOptions,
    counts: MergeCounts,
}

impl Merge {
    /// A merge whose outcome goes to `writer`.
    #[must_use]
    pub const fn new(writer: RunWriter, options: MergeOptions) -> Self {
        let counts = MergeCounts { read: 0, bytes_read: 0, superseded: 0, dropped: 0 };
        Merge { writer, options, counts }
    }

    /// What it did so far.
    #[must_use]
    pub const fn counts(&self) -> MergeCounts {
        self.counts
    }

    /// The run that comes of it, so far.
    #[must_use]
    pub const fn writer(&self) -> &RunWriter {
        &self.writer
    }

    /// Writes the end of the run, once nothing is left to merge: see [`RunWriter::end`].
    ///
    /// # Errors
    /// There is no room, or the device failed.
    pub fn end(&mut self, space: &mut dyn Space) -> Result<()> {
        self.writer.end(space)
    }

    /// Bytes of memory that it takes, beside its sources.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.writer.memory()
    }

    /// Merges entries of about `bytes` bytes, at least one; true if none is left.
    ///
    /// # Errors
    /// A source is damaged, there is no room, a hook failed, or the device did.
    pub fn step(
        &mut self,
        space: &mut dyn Space,
        sources: &mut [impl Source],
        hooks: &mut dyn Hooks,
        bytes: u64,
    ) -> Result<bool> {
        let end = self.counts.bytes_read.saturating_add(bytes);
        loop {
            for source in &mut *sources {
                source.load(space, Way::Up)?;
            }
            let Some((first, all)) = select(sources, Way::Up) else {
                return Ok(true);
            };
            self.take(space, sources, hooks, (first, all))?;
            for place in places(all) {
                sources[place].step(Way::Up);
            }
            if self.counts.bytes_read >= end {
                return Ok(false);
            }
        }
    }

    /// Takes the next entries, of one key, of all sources that have one.
    fn take(
        &mut self,
        space: &mut dyn Space,
        sources: &[impl Source],
        hooks: &mut dyn Hooks,
        (first, all): (usize, u64),
    ) -> Result<()> {
        let (mut is_written, mut is_asked) = (false, false);
        for place in places(all) {
            let Some(entry) = sources[place].head(Way::Up) else {
                continue;
            };
            self.counts.read += 1;
            // Even an entry without bytes ends a step some time.
            self.counts.bytes_read += entry.bytes().max(1);
            if is_written || is_asked && !entry.kind.is_fence() {
                self.counts.superseded += 1;
                continue;
            }
            is_asked = true;
            let meets = all != 1 << first;
            let verdict = hooks.entry(place, &entry, meets);
            let is_over = self.options.drops_deletes && entry.kind == Kind::Delete;
            match verdict {
                Verdict::Keep if !is_over => self.writer.push(space, &entry, hooks)?,
                Verdict::Point(unit) if entry.kind.is_fence() => {
                    let fence = Entry { value: &unit.to_le_bytes(), ..entry };
                    self.writer.push(space, &fence, hooks)?;
                }
                _ => {
                    self.counts.dropped += 1;
                    continue;
                }
            }
            is_written = true;
        }
        Ok(())
    }

    /// The run, and its fences: see [`RunWriter::finish`].
    ///
    /// # Errors
    /// There is no room, or the device failed.
    pub fn finish(self, space: &mut dyn Space) -> Result<(Run, Fences)> {
        self.writer.finish(space)
    }

    /// Gives up; what it took is free again.
    ///
    /// # Errors
    /// What is in use was counted wrongly.
    pub fn abandon(self, space: &mut dyn Space) -> Result<()> {
        self.writer.abandon(space)
    }
}
