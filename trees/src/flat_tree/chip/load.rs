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
use super::write::{Plan, RunWriter, unit_for};

/// Bottoms that are loaded.
#[derive(Default)]
struct Loading {
    /// The one that is being written.
    present: Option<RunWriter>,
    fresh: Vec<Part>,
    /// Where the next one begins.
    low: Box<[u8]>,
    /// Bytes of the longest entry of the one before, and of its keys.
    longest: u32,
    kept: u32,
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
        let mut loading = Loading::default();
        let loaded = limits
            .take_sorted(sorted, |key, value| self.load_one(&mut loading, &Entry::put(key, value)));
        let Loading { present, mut fresh, low, .. } = loading;
        if let Some(writer) = present {
            self.end_last(writer, None, &mut fresh);
        } else if !low.is_empty() {
            // The last one ends before the entry that was refused.
            fresh.push(Part { low, ..Part::default() });
        }
        if !fresh.is_empty() {
            self.directory.parts = fresh;
        }
        self.follow_moved();
        self.recount();
        loaded
    }

    fn load_one(&mut self, loading: &mut Loading, entry: &Entry<'_>) -> Result<()> {
        let each = self.entries_wanted() as u32;
        let unit = unit_for(self.shape, entry.bytes() as usize);
        let is_full =
            |it: &mut RunWriter| it.entries() >= each || unit > it.unit() || !it.reaches(entry.key);
        if let Some(writer) = loading.present.take_if(is_full) {
            loading.longest = writer.longest();
            // The next one has as many entries, and goes half as far at the least.
            let share = (u64::from(each), 2 * u64::from(writer.entries()));
            loading.kept = self.bytes_kept(writer.low(), Some(entry.key), share);
            let low = self.end_bottom(writer, entry.key, &mut loading.fresh);
            if let Some(part) = loading.fresh.last() {
                self.note_loaded(part);
            }
            loading.low = low;
        }
        let writer = match &mut loading.present {
            Some(present) => present,
            None => {
                self.admit_load(entry)?;
                let low = core::mem::take(&mut loading.low);
                let unit = self.bottom_unit(loading.longest.max(entry.bytes() as u32));
                let (number, kept) = (self.directory.number(), loading.kept);
                let plan = Plan { number, fragment: None, unit, kept };
                loading.present.insert(RunWriter::new(self.shape, plan, low, Cause::Load)?)
            }
        };
        writer.push(&mut self.storage, entry)
    }

    /// Counts a partition that is in no directory yet.
    fn note_loaded(&mut self, part: &Part) {
        let low = part.low.len() as u64;
        let totals = &mut self.totals;
        totals.record += 4 + low + u64::from(part.counts.record);
        totals.largest = totals.largest.max(part.counts.parts.into());
        totals.bottom += u64::from(part.counts.bottom);
        totals.bottom_bytes += u64::from(part.counts.bytes);
        totals.memory += low + (part.runs.capacity() + 2 * size_of::<Part>()) as u64;
        self.expect_tables(0);
    }

    /// Refuses what finds less room than it may take.
    fn admit_load(&mut self, entry: &Entry<'_>) -> Result<()> {
        let bytes = self.entries_wanted() * (entry.bytes() + 8);
        self.admit_more(&More::put(bytes))
    }
}
