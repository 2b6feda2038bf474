//! Writing a run: entries in their order become units in the page that is being filled.

use alloc::vec::Vec;

use device::Cause;
use index::Result;
use store::runs::{Entry, Kinds, UnitBuilder, UnitShape};
use store::{EntryShape, Width};

use super::super::filter;
use super::ground::Ground;
use super::run::{Extent, Run, Scale, UNIT_LEAST};

/// A run that is being written.
pub(super) struct RunWriter {
    run: Run,
    shape: UnitShape,
    extents: Vec<Extent>,
    builder: UnitBuilder,
    /// True if a unit was begun.
    is_open: bool,
    /// The first key of each unit, behind its length.
    firsts: Vec<u8>,
    filter: Vec<u8>,
    cause: Cause,
}

/// A run that was written.
pub(super) struct Written {
    pub(super) run: Run,
    pub(super) extents: Vec<Extent>,
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
    pub(super) fn new(entries: EntryShape, plan: Plan, cause: Cause) -> Result<Self> {
        let is_bottom = plan.fragment.is_none();
        let kinds = if is_bottom { Kinds::Puts } else { Kinds::Deletes };
        let shape = UnitShape::new(plan.unit, entries, kinds)?;
        let filter = plan.fragment.map_or(
            Vec::new(),
            |(bits, entries)| alloc::vec![0; filter::bytes_for(entries.into(), bits) as usize],
        );
        let run = Run {
            number: plan.number,
            is_bottom,
            entries: 0,
            units: 0,
            unit: plan.unit,
            longest: 0,
            offset: 0,
        };
        Ok(RunWriter {
            run,
            shape,
            extents: Vec::with_capacity(2),
            builder: UnitBuilder::new(shape),
            is_open: false,
            firsts: Vec::new(),
            filter,
            cause,
        })
    }

    pub(super) const fn entries(&self) -> u32 {
        self.run.entries
    }

    /// Adds an entry behind all others.
    pub(super) fn push(&mut self, ground: &mut Ground<'_>, entry: &Entry<'_>) -> Result<()> {
        let unit = self.run.unit as usize;
        if !(self.is_open && self.builder.push(ground.slot(unit), entry)) {
            self.end_unit(ground);
            self.begin_unit(ground, entry.key)?;
            if !self.builder.push(ground.slot(unit), entry) {
                let found = entry.bytes();
                return Err(index::Error::EntryTooLong { found, limit: self.run.unit.into() });
            }
        }
        if !self.filter.is_empty() {
            filter::add(&mut self.filter, entry.key);
        }
        self.run.entries += 1;
        self.run.longest = self.run.longest.max(entry.bytes() as u32);
        Ok(())
    }

    fn begin_unit(&mut self, ground: &mut Ground<'_>, key: &[u8]) -> Result<()> {
        let unit = self.run.unit as usize;
        let (page, offset) = ground.make_room(unit, self.cause)?;
        self.follow_last(ground);
        let goes_on = self.extents.last().is_some_and(|last| last.page + last.pages == page.0 + 1);
        if !goes_on {
            if self.run.units == 0 {
                self.run.offset = offset as u32;
            }
            ground.begin_part();
            match self.extents.last_mut() {
                Some(last) if last.page + last.pages == page.0 => last.pages += 1,
                _ => self.extents.push(Extent { page: page.0, pages: 1 }),
            }
        }
        ground.slot(unit).fill(0);
        self.firsts.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.firsts.extend_from_slice(key);
        self.builder = UnitBuilder::new(self.shape);
        self.is_open = true;
        Ok(())
    }

    /// The chip may have refused the last page, which stands elsewhere then.
    fn follow_last(&mut self, ground: &Ground<'_>) {
        let Some(last) = self.extents.last_mut() else {
            return;
        };
        let page = last.page + last.pages - 1;
        let now = ground.now(device::Page(page)).0;
        if now == page {
            return;
        }
        last.pages -= 1;
        if last.pages == 0 {
            self.extents.pop();
        }
        self.extents.push(Extent { page: now, pages: 1 });
    }

    fn end_unit(&mut self, ground: &mut Ground<'_>) {
        if self.is_open {
            let unit = self.run.unit as usize;
            self.builder.seal(self.run.seed(self.run.units), ground.slot(unit));
            ground.end_unit(unit);
            self.run.units += 1;
            self.is_open = false;
        }
    }

    /// Bytes of a unit.
    pub(super) const fn unit(&self) -> u32 {
        self.run.unit
    }

    /// Ends a run that has entries, of a partition whose keys have this scale.
    pub(super) fn finish(mut self, ground: &mut Ground<'_>, scale: Scale) -> Written {
        self.end_unit(ground);
        self.follow_last(ground);
        let fences = if self.run.units > 1 { 2 * self.run.units as usize } else { 0 };
        let mut tables = Vec::with_capacity(fences + self.filter.len());
        let mut rest = &self.firsts[..];
        while let Some((length, behind)) = rest.split_first_chunk().filter(|_| fences > 0) {
            let length = usize::from(u16::from_le_bytes(*length));
            let (key, behind) = behind.split_at_checked(length).unwrap_or_default();
            tables.extend_from_slice(&scale.fence(key).to_le_bytes());
            rest = behind;
        }
        tables.extend_from_slice(&self.filter);
        Written { run: self.run, extents: self.extents, tables }
    }
}
