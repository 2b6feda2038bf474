//! Writing a run: entries in their order become units in the page that is being filled.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::Cause;
use index::Result;
use store::runs::Entry;
use store::{EntryShape, Width};

use super::super::filter;
use super::run::{Extent, Run, Scale, UNIT_LEAST};
use super::storage::Storage;
use super::units::{Builder, Units};
use super::{fences, keys};

/// A run that is being written.
pub(super) struct RunWriter {
    run: Run,
    /// Where its partition begins.
    low: Box<[u8]>,
    /// A key as it stands in a unit.
    short: Vec<u8>,
    extents: Vec<Extent>,
    builder: Builder,
    /// True if a unit was begun.
    is_open: bool,
    /// The first key of each unit, behind its length.
    firsts: Vec<u8>,
    filter: Vec<u8>,
    filter_bits: u32,
    cause: Cause,
}

/// A run that was written.
pub(super) struct Written {
    /// Where its partition begins.
    pub(super) low: Box<[u8]>,
    pub(super) run: Run,
    pub(super) extents: Vec<Extent>,
    /// Bits of its filter for each entry.
    pub(super) filter_bits: u32,
    pub(super) tables: Vec<u8>,
}

/// What a run is going to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) number: u32,
    /// Its filter's bits for each of so many entries; a bottom has none.
    pub(super) fragment: Option<(u32, u32)>,
    /// Bytes of a unit.
    pub(super) unit: u32,
    /// Bytes of a key as it stands there; 0 if keys stand whole.
    pub(super) kept: u32,
}

/// Bytes of a unit of runs with entries of `bytes` bytes of key and value.
pub(super) fn unit_for(entries: EntryShape, bytes: usize) -> u32 {
    let beside = match (entries.key, entries.value) {
        (Width::Fixed(_), Width::Fixed(_)) => 4,
        // Length and kind, and where it ends.
        _ => 5,
    };
    let unit = 3 + beside + bytes;
    // A larger unit has a longer header, and longer ends.
    let unit = if unit > 128 { unit + 6 } else { unit };
    (unit as u32).max(UNIT_LEAST)
}

impl RunWriter {
    /// Begins a run of the partition from `low` on.
    pub(super) fn new(
        entries: EntryShape,
        plan: Plan,
        low: Box<[u8]>,
        cause: Cause,
    ) -> Result<Self> {
        let is_bottom = plan.fragment.is_none();
        let filter = plan.fragment.map_or(
            Vec::new(),
            |(bits, entries)| alloc::vec![0; filter::bytes_for(entries.into(), bits) as usize],
        );
        let mut run = Run {
            number: plan.number,
            is_bottom,
            has_gaps: false,
            entries: 0,
            units: 0,
            unit: plan.unit,
            longest: 0,
            kept: plan.kept,
            offset: 0,
        };
        let shape = run.shape(entries)?;
        let units = if is_bottom { Units::with_gaps(shape) } else { Units::Whole(shape) };
        run.has_gaps = units.have_gaps();
        Ok(RunWriter {
            run,
            low,
            short: Vec::new(),
            extents: Vec::with_capacity(2),
            builder: Builder::new(units),
            is_open: false,
            firsts: Vec::new(),
            filter,
            filter_bits: plan.fragment.map_or(0, |(bits, _)| bits),
            cause,
        })
    }

    pub(super) const fn entries(&self) -> u32 {
        self.run.entries
    }

    /// Adds an entry behind all others.
    pub(super) fn push(&mut self, storage: &mut Storage<'_>, entry: &Entry<'_>) -> Result<()> {
        let unit = self.run.unit as usize;
        let mut short = core::mem::take(&mut self.short);
        let held = match self.run.kept {
            0 => *entry,
            kept => {
                if !keys::shorten(entry.key, &self.low, kept as usize, &mut short) {
                    let what = "a key is beyond those that its run keeps";
                    return Err(index::Error::Unsupported { what });
                }
                Entry { key: &short, ..*entry }
            }
        };
        if !(self.is_open && self.builder.push(storage.slot(unit), &held)) {
            self.end_unit(storage);
            self.begin_unit(storage, entry.key)?;
            if !self.builder.push(storage.slot(unit), &held) {
                let found = entry.bytes();
                return Err(index::Error::EntryTooLong { found, limit: self.run.unit.into() });
            }
        }
        self.short = short;
        if !self.filter.is_empty() {
            filter::add(&mut self.filter, entry.key);
        }
        self.run.entries += 1;
        self.run.longest = self.run.longest.max(entry.bytes() as u32);
        Ok(())
    }

    fn begin_unit(&mut self, storage: &mut Storage<'_>, key: &[u8]) -> Result<()> {
        let unit = self.run.unit as usize;
        let (page, offset) = storage.make_room(unit, self.cause)?;
        self.follow_last(storage);
        let goes_on = self.extents.last().is_some_and(|last| last.page + last.pages == page.0 + 1);
        if !goes_on {
            if self.run.units == 0 {
                self.run.offset = offset as u32;
            }
            storage.begin_part();
            match self.extents.last_mut() {
                Some(last) if last.page + last.pages == page.0 => last.pages += 1,
                _ => self.extents.push(Extent { page: page.0, pages: 1 }),
            }
        }
        storage.slot(unit).fill(0);
        self.firsts.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.firsts.extend_from_slice(key);
        self.builder = self.builder.next();
        self.is_open = true;
        Ok(())
    }

    /// The chip may have refused the last page, which stands elsewhere then.
    fn follow_last(&mut self, storage: &Storage<'_>) {
        let Some(last) = self.extents.last_mut() else {
            return;
        };
        let page = last.page + last.pages - 1;
        let now = storage.now(device::Page(page)).0;
        if now == page {
            return;
        }
        last.pages -= 1;
        if last.pages == 0 {
            self.extents.pop();
        }
        self.extents.push(Extent { page: now, pages: 1 });
    }

    fn end_unit(&mut self, storage: &mut Storage<'_>) {
        if self.is_open {
            let unit = self.run.unit as usize;
            self.builder.seal(self.run.seed(self.run.units), storage.slot(unit));
            storage.end_unit(unit);
            self.run.units += 1;
            self.is_open = false;
        }
    }

    /// Bytes of a unit.
    pub(super) const fn unit(&self) -> u32 {
        self.run.unit
    }

    /// True if `key` has room there, as short as keys are kept.
    pub(super) fn reaches(&mut self, key: &[u8]) -> bool {
        self.run.kept == 0 || keys::shorten(key, &self.low, self.run.kept as usize, &mut self.short)
    }

    /// The first key that it does not reach.
    pub(super) fn edge(&self, entries: EntryShape) -> Box<[u8]> {
        let width = keys::width(entries).unwrap_or(0);
        keys::edge(&self.low, self.run.kept as usize, width)
    }

    /// Bytes of a key as it stands there; 0 if keys stand whole.
    pub(super) const fn kept(&self) -> u32 {
        self.run.kept
    }

    /// Where its partition begins.
    pub(super) fn low(&self) -> &[u8] {
        &self.low
    }

    /// Bytes of key and value of its longest entry.
    pub(super) const fn longest(&self) -> u32 {
        self.run.longest
    }

    /// Ends a run that has entries, of a partition that ends where `high` says.
    pub(super) fn finish(mut self, storage: &mut Storage<'_>, high: Option<&[u8]>) -> Written {
        let scale = Scale::of(&self.low, high);
        self.end_unit(storage);
        self.follow_last(storage);
        let (units, fences) = (self.run.units, fences::bytes_of(self.run.units));
        let mut tables = Vec::with_capacity(fences + self.filter.len());
        tables.resize(fences, 0);
        let (mut rest, mut unit) = (&self.firsts[..], 0);
        while let Some((length, behind)) = rest.split_first_chunk().filter(|_| fences > 0) {
            let length = usize::from(u16::from_le_bytes(*length));
            let (key, behind) = behind.split_at_checked(length).unwrap_or_default();
            fences::set(&mut tables, units, unit, scale.fence(key));
            (rest, unit) = (behind, unit + 1);
        }
        tables.extend_from_slice(&self.filter);
        let RunWriter { low, run, extents, filter_bits, .. } = self;
        Written { low, run, extents, filter_bits, tables }
    }
}
