//! Reading runs: single units for lookups, and one entry after the other.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use index::{Direction, Result};
use store::runs::{Entry, Kind, Unit};
use store::{EntryShape, Error};

use super::held::GROUP;
use super::keys;
use super::run::{Extent, Run, Scale, View, locate};
use super::storage::Storage;
use super::units::{UnitBuffer, Units};

/// Where a unit is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    OnChip,
    /// In memory, where it is there.
    Anywhere,
}

/// Reads `unit` of a run into `into`, and verifies it.
pub(super) fn read_unit<'b>(
    storage: &mut Storage<'_>,
    (view, units): (&View<'_>, &Units),
    unit: u32,
    into: &'b mut UnitBuffer,
    place: Where,
) -> Result<Unit<'b>> {
    let run = view.run;
    let (page, offset, behind) =
        view.locate(unit, storage.content()).ok_or_else(|| missing(&run, unit))?;
    into.raw.resize(run.unit as usize, 0);
    match place {
        Where::OnChip => storage.read(page, offset, &mut into.raw, Cause::Lookup)?,
        Where::Anywhere => {
            let group = (GROUP / run.unit.max(1)).max(1);
            let before = run.before(unit, storage.content()).min(unit % group);
            let around = (before, behind.min(group - unit % group));
            storage.read_for_lookup((page, offset), around, &mut into.raw)?;
        }
    }
    let verified = units.verify_in(run.seed(unit), into);
    if verified.is_err() {
        storage.doubt(page);
    }
    verified
}

pub(super) fn missing(run: &Run, unit: u32) -> Error {
    let what = "it is named, but its run is shorter";
    Error::DamagedUnit { run: run.number.into(), unit, what }
}

/// What a lookup has in memory.
pub(super) struct Buffers {
    pub(super) unit: UnitBuffer,
    /// The key as it stands in a run.
    pub(super) short: Vec<u8>,
}

/// Looks for `key` in a run of the partition from `low` on; hands the kind and the value of its
/// entry to `visit`.
pub(super) fn search<R>(
    storage: &mut Storage<'_>,
    (view, entries): (&View<'_>, EntryShape),
    (key, low, scale): (&[u8], &[u8], Scale),
    Buffers { unit: buffer, short }: &mut Buffers,
    visit: impl FnOnce(Kind, &[u8]) -> R,
) -> Result<Option<R>> {
    let form = view.run.units(entries)?;
    let units = view.plan(scale.fence(key));
    let key = match view.run.kept as usize {
        0 => key,
        kept if keys::shorten(key, low, kept, short) => short,
        _ => return Ok(None),
    };
    let (mut low, mut high) = (units.start, units.end);
    if low >= high {
        return Ok(None);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let unit = read_unit(storage, (view, &form), middle, buffer, Where::Anywhere)?;
        if unit.entry(0).key <= key {
            low = middle;
        } else {
            high = middle;
        }
    }
    let unit = read_unit(storage, (view, &form), low, buffer, Where::Anywhere)?;
    Ok(unit.get(key).map(|entry| visit(entry.kind, entry.value)))
}

/// The entries of a run, one after the other: some units at a time are in memory.
pub(super) struct RunCursor {
    run: Run,
    units: Units,
    /// Where its partition begins, if keys stand shortened.
    low: Vec<u8>,
    /// The key of the entry that was loaded, if keys stand shortened, and bytes of keys.
    key: Vec<u8>,
    width: usize,
    extents: Vec<Extent>,
    /// Units that are in memory.
    bytes: Vec<u8>,
    /// The unit that was unpacked last, if units have gaps.
    unpacked: (Option<u32>, Vec<u8>),
    first: u32,
    count: u32,
    window: usize,
    /// Where the next entry is: its unit, and its place there. Going down it is the one before.
    unit: u32,
    place: usize,
    is_loaded: bool,
    cause: Cause,
}

/// How cursors read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Bytes of units that each has in memory at least.
    pub(super) window: usize,
    /// Bytes beyond those that are left for all of them.
    pub(super) left: usize,
    pub(super) cause: Cause,
}

impl Reading {
    /// Bytes of units that the next cursor has in memory, of a run of `all` bytes.
    fn take(&mut self, all: usize, content: usize) -> usize {
        let more = all.min(content).saturating_sub(self.window).min(self.left);
        self.left -= more;
        self.window + more
    }
}

impl RunCursor {
    /// A cursor at the first, or the last, entry of a run that is within `start`.
    pub(super) fn seek(
        storage: &mut Storage<'_>,
        (view, low, entries): (&View<'_>, &[u8], EntryShape),
        (start, direction): (Bound<(&[u8], Scale)>, Direction),
        reading: &mut Reading,
    ) -> Result<Self> {
        let run = view.run;
        let unit = run.unit as usize;
        let all = run.units as usize * unit;
        let window = reading.take(all, storage.content() as usize);
        let window = (window / unit.max(1)).max(1) * unit;
        let mut cursor = RunCursor {
            run,
            units: run.units(entries)?,
            low: if run.kept > 0 { low.to_vec() } else { Vec::new() },
            key: Vec::with_capacity(if run.kept > 0 { low.len() } else { 0 }),
            width: keys::width(entries).unwrap_or(0),
            extents: view.extents().collect(),
            bytes: Vec::with_capacity(window.min(all)),
            unpacked: (None, Vec::new()),
            first: 0,
            count: 0,
            window,
            unit: if direction == Direction::Ascending { 0 } else { run.units },
            place: 0,
            is_loaded: false,
            cause: reading.cause,
        };
        let (Bound::Included((key, scale)) | Bound::Excluded((key, scale)), is_included) =
            (start, matches!(start, Bound::Included(_)))
        else {
            return Ok(cursor);
        };
        let units = view.plan(scale.fence(key));
        let mut short = core::mem::take(&mut cursor.key);
        let (key, is_beyond) = match run.kept as usize {
            0 => (key, false),
            kept => {
                let is_in = keys::shorten(key, low, kept, &mut short);
                (&short[..], !is_in)
            }
        };
        let (mut low, mut high) = (units.start, units.end);
        while high > low + 1 {
            let middle = low + (high - low) / 2;
            cursor.hold(storage, middle, Direction::Ascending, 1)?;
            if is_beyond || cursor.view_unit(middle)?.entry(0).key <= key {
                low = middle;
            } else {
                high = middle;
            }
        }
        cursor.hold(storage, low, direction, u32::MAX)?;
        let held = cursor.view_unit(low)?;
        // Going up what is at `place` comes next, going down what is before it.
        let is_behind = (direction == Direction::Ascending) != is_included;
        let place = match is_behind {
            _ if is_beyond => held.len(),
            true => held.upper(key),
            false => held.lower(key),
        };
        (cursor.unit, cursor.place) = match direction {
            Direction::Descending if place > 0 => (low + 1, place),
            _ => (low, place),
        };
        cursor.key = short;
        Ok(cursor)
    }

    /// Sees to it that `unit` is in memory, with others behind it, or before it.
    fn hold(
        &mut self,
        storage: &mut Storage<'_>,
        unit: u32,
        direction: Direction,
        most: u32,
    ) -> Result<()> {
        if unit.wrapping_sub(self.first) >= self.count {
            self.fetch(storage, unit, direction, most)?;
        }
        if self.units.have_gaps() && self.unpacked.0 != Some(unit) {
            let (is_unpacked, into) = &mut self.unpacked;
            let at = (unit - self.first) as usize * self.run.unit as usize;
            let held = self.bytes.get(at..at + self.run.unit as usize).unwrap_or_default();
            *is_unpacked = None;
            self.units.verify(self.run.seed(unit), held, into)?;
            *is_unpacked = Some(unit);
        }
        Ok(())
    }

    /// Reads `unit`, and others behind it, or before it.
    fn fetch(
        &mut self,
        storage: &mut Storage<'_>,
        unit: u32,
        direction: Direction,
        most: u32,
    ) -> Result<()> {
        self.count = 0;
        let bytes = self.run.unit as usize;
        let most = most.min((self.window / bytes.max(1)) as u32).max(1);
        let content = storage.content();
        let missing = || missing(&self.run, unit);
        let (page, offset, behind) =
            locate(&self.run, self.extents.iter().copied(), unit, content).ok_or_else(missing)?;
        let (first, count, offset) = match direction {
            Direction::Ascending => (unit, most.min(behind), offset),
            Direction::Descending => {
                // Those before it in its page.
                let before = self.run.before(unit, content).min(most - 1);
                (unit - before, before + 1, offset - before * self.run.unit)
            }
        };
        self.bytes.resize(count as usize * bytes, 0);
        storage.read(page, offset, &mut self.bytes, self.cause)?;
        // Those with gaps are verified when they are unpacked.
        for place in (0..count).filter(|_| !self.units.have_gaps()) {
            let at = place as usize * bytes;
            let held = self.bytes.get(at..at + bytes).unwrap_or_default();
            self.units.verify(self.run.seed(first + place), held, &mut Vec::new())?;
        }
        (self.first, self.count) = (first, count);
        Ok(())
    }

    /// A unit that is in memory: see [`RunCursor::hold`].
    fn view_unit(&self, unit: u32) -> Result<Unit<'_>> {
        let bytes = self.run.unit as usize;
        let at = unit.wrapping_sub(self.first) as usize * bytes;
        let held = self.bytes.get(at..at + bytes).ok_or_else(|| missing(&self.run, unit))?;
        Ok(self.units.view(held, &self.unpacked.1))
    }

    /// Loads the next entry; false if there is none.
    pub(super) fn load(&mut self, storage: &mut Storage<'_>, direction: Direction) -> Result<bool> {
        if self.is_loaded {
            return Ok(true);
        }
        let is_loaded = self.find_next(storage, direction)?;
        if is_loaded && self.run.kept > 0 {
            let mut key = core::mem::take(&mut self.key);
            if let Some(entry) = self.held(direction) {
                keys::restore(entry.key, &self.low, self.width, &mut key);
            }
            self.key = key;
        }
        Ok(is_loaded)
    }

    fn find_next(&mut self, storage: &mut Storage<'_>, direction: Direction) -> Result<bool> {
        match direction {
            Direction::Ascending => {
                while self.unit < self.run.units {
                    self.hold(storage, self.unit, direction, u32::MAX)?;
                    if self.place < self.view_unit(self.unit)?.len() {
                        self.is_loaded = true;
                        return Ok(true);
                    }
                    (self.unit, self.place) = (self.unit + 1, 0);
                }
            }
            Direction::Descending => {
                if let Some(unit) = self.unit.checked_sub(1) {
                    self.hold(storage, unit, direction, u32::MAX)?;
                    if self.place == 0 {
                        self.place = self.view_unit(unit)?.len();
                    }
                    self.is_loaded = self.place > 0;
                    return Ok(self.is_loaded);
                }
            }
        }
        Ok(false)
    }

    /// The entry that was loaded.
    pub(super) fn entry(&self, direction: Direction) -> Option<Entry<'_>> {
        let held = self.held(direction)?;
        Some(if self.run.kept > 0 { Entry { key: &self.key, ..held } } else { held })
    }

    /// The entry that was loaded, as it stands in its unit.
    fn held(&self, direction: Direction) -> Option<Entry<'_>> {
        if !self.is_loaded {
            return None;
        }
        let (unit, place) = match direction {
            Direction::Ascending => (self.unit, self.place),
            Direction::Descending => (self.unit.checked_sub(1)?, self.place.checked_sub(1)?),
        };
        Some(self.view_unit(unit).ok()?.entry(place))
    }

    pub(super) fn pass(&mut self, direction: Direction) {
        if !core::mem::take(&mut self.is_loaded) {
            return;
        }
        match direction {
            Direction::Ascending => self.place += 1,
            Direction::Descending => {
                self.place -= 1;
                if self.place == 0 {
                    self.unit -= 1;
                }
            }
        }
    }
}
