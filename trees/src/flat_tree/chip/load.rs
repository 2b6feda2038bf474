//! Loading sorted entries: bottoms, one after the other.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::Cause;
use index::{Cursor, Error, KeyRange, Result};
use store::runs::Entry;

use super::ChipTree;
use super::admission::More;
use super::directory::Part;
use super::range::Scan;
use super::run::Scale;
use super::write::{Plan, RunWriter};

/// A bottom that is being loaded, and where it begins.
struct Loading {
    low: Box<[u8]>,
    writer: RunWriter,
}

impl ChipTree<'_> {
    pub(super) fn load_sorted(&mut self, sorted: &mut dyn Cursor) -> Result<u64> {
        if Scan::new(self, KeyRange::ALL)?.next()?.is_some() {
            return Err(Error::NotEmpty);
        }
        // What was deleted is let go of.
        while let Some(at) = self.most_pending() {
            if !self.has_room_to_merge(at) {
                return Err(self.no_room());
            }
            self.merge(at)?;
        }
        let limits = self.limits;
        let (mut loading, mut fresh) = (None, Vec::new());
        let loaded = limits.take_sorted(sorted, |key, value| {
            self.load_one((&mut loading, &mut fresh), &Entry::put(key, value))
        });
        if let Some(Loading { low, writer }) = loading {
            let scale = Scale::of(&low, None);
            fresh.push(self.bottom(low, writer, scale));
        }
        if !fresh.is_empty() {
            self.directory.parts = fresh;
        }
        self.follow_moved();
        self.recount();
        loaded
    }

    fn load_one(
        &mut self,
        (loading, fresh): (&mut Option<Loading>, &mut Vec<Part>),
        entry: &Entry<'_>,
    ) -> Result<()> {
        let each = self.entries_wanted() as u32;
        if let Some(full) = loading.take_if(|it| it.writer.entries() >= each) {
            let scale = Scale::of(&full.low, Some(entry.key));
            let part = self.bottom(full.low, full.writer, scale);
            let record = 4 + part.low.len() as u64 + u64::from(part.counts.record);
            self.totals.record += record;
            self.totals.largest = self.totals.largest.max(part.counts.parts.into());
            self.totals.bottom += u64::from(part.counts.bottom);
            self.totals.bottom_bytes += u64::from(part.counts.bytes);
            self.totals.memory +=
                (part.low.len() + part.runs.capacity()) as u64 + 2 * size_of::<Part>() as u64;
            self.tables_peak = self.tables_peak.max(self.totals.memory);
            fresh.push(part);
            self.admit_load(entry)?;
        }
        let writer = match loading {
            Some(loading) => &mut loading.writer,
            None => {
                if fresh.is_empty() {
                    self.admit_load(entry)?;
                }
                let low = if fresh.is_empty() { Box::default() } else { entry.key.into() };
                let unit = self.bottom_unit(self.limits.entry.min(entry.bytes() as usize) as u32);
                let plan = Plan { number: self.directory.number(), fragment: None, unit };
                let writer = RunWriter::new(self.shape, plan, Cause::Load)?;
                &mut loading.insert(Loading { low, writer }).writer
            }
        };
        if super::write::unit_for(self.shape, entry.bytes() as usize) > writer.unit() {
            // It begins a bottom of longer units.
            if let Some(full) = loading.take() {
                let scale = Scale::of(&full.low, Some(entry.key));
                let part = self.bottom(full.low, full.writer, scale);
                fresh.push(part);
            }
            return self.load_one((loading, fresh), entry);
        }
        writer.push(&mut self.ground, entry)
    }

    /// Refuses what finds less room than it may take.
    fn admit_load(&mut self, entry: &Entry<'_>) -> Result<()> {
        let bytes = self.entries_wanted() * (entry.bytes() + 8);
        self.admit_more(&More::put(bytes))
    }
}
