//! One run, entry by entry, both ways.
//!
//! The cursor stands between two entries. Units are read ahead: twice as many each time, as far as
//! its window reaches; or, where it was told which units it is going to read, just these at once.

use alloc::vec::Vec;
use core::ops::Range;

use device::Cause;

use super::buffer::Buffer;
use super::entry::Entry;
use super::merged::{Source, Way};
use super::run::Run;
use super::space::Space;
use super::unit::{Form, Unit};
use super::window::Window;
use crate::{Error, Result};

/// How a cursor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorOptions {
    /// Bytes of the units that it holds at a time; at least a unit.
    pub window_bytes: usize,
    /// Bytes of one request; several are made at once.
    pub request_bytes: usize,
    /// The longest entry, in bytes.
    pub record_bytes_most: usize,
    /// True if all of the run is going to be read: the whole window is filled at once.
    pub is_whole: bool,
    /// Why it reads.
    pub cause: Cause,
}

/// A unit, or an entry in pieces, that is in memory.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    first: u32,
    units: u32,
    entries: usize,
    is_record: bool,
}

/// A cursor over one run.
pub struct RunCursor {
    run: Run,
    window: Window,
    options: CursorOptions,
    /// Units that the next read has.
    ahead: u32,
    /// Units that are going to be read.
    reach: Range<u32>,
    /// What it stands in, if that is in memory.
    loaded: Option<Loaded>,
    /// The unit before which it stands otherwise.
    unit: u32,
    /// How many entries of the present unit are before it.
    place: usize,
    record: Vec<u8>,
}

impl RunCursor {
    /// A cursor before the first entry of `run`.
    #[must_use]
    pub fn new(run: &Run, options: CursorOptions, alignment: u32) -> Self {
        let window_bytes = options.window_bytes.max(run.shape.bytes() as usize);
        RunCursor {
            run: run.clone(),
            window: Window::new(window_bytes, alignment),
            options,
            ahead: 1,
            reach: if options.is_whole { 0..run.units } else { 0..0 },
            loaded: None,
            unit: 0,
            place: 0,
            record: Vec::new(),
        }
    }

    /// Bytes of memory that a cursor takes, beside what is known of its run.
    #[must_use]
    pub const fn memory_of(options: &CursorOptions, alignment: u32) -> u64 {
        let window = Buffer::memory_of(options.window_bytes, alignment);
        window + options.record_bytes_most as u64
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.window.memory() + self.run.memory() + self.record.capacity() as u64
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// Says which units are going to be read: these are read ahead, and no others.
    pub fn set_reach(&mut self, units: Range<u32>) {
        self.reach = units;
    }

    /// The unit that it stands in.
    #[must_use]
    pub fn unit(&self) -> u32 {
        self.loaded.map_or(self.unit, |loaded| loaded.first)
    }

    /// Goes before the first entry.
    pub fn to_start(&mut self) {
        (self.loaded, self.unit, self.place) = (None, 0, 0);
    }

    /// Goes behind the last entry.
    pub fn to_end(&mut self) {
        (self.loaded, self.unit, self.place) = (None, self.run.units, 0);
    }

    /// Goes before the first entry whose key is not below `key`; or, with `is_behind`, behind the
    /// last whose key is not above. It stands in one of `units`, if these are not all.
    ///
    /// # Errors
    /// A unit is damaged, or the device failed.
    pub fn seek(
        &mut self,
        space: &mut dyn Space,
        key: &[u8],
        is_behind: bool,
        units: Option<Range<u32>>,
    ) -> Result<()> {
        let units = units.unwrap_or(0..self.run.units);
        let (mut low, mut high) = (units.start, units.end.min(self.run.units));
        self.to_start();
        if low >= high {
            self.unit = low.min(self.run.units);
            return Ok(());
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            self.enter(space, middle, Way::Up)?;
            let first = self.view().filter(|unit| !unit.is_empty()).map(|unit| unit.entry(0).key);
            let is_before =
                first.is_some_and(|first| if is_behind { first <= key } else { first < key });
            if is_before {
                low = middle;
            } else {
                high = self.unit().max(low + 1);
            }
        }
        self.enter(space, low, Way::Up)?;
        let place = |unit: Unit<'_>| if is_behind { unit.upper(key) } else { unit.lower(key) };
        self.place = self.view().map_or(0, place);
        Ok(())
    }

    /// What it stands in.
    fn view(&self) -> Option<Unit<'_>> {
        let loaded = self.loaded?;
        if loaded.is_record {
            return self.run.shape.record(&self.record).ok();
        }
        Some(self.run.shape.view(self.window.bytes(&self.run, loaded.first)))
    }

    /// Sees to it that `unit` is in the window.
    fn hold(&mut self, space: &mut dyn Space, unit: u32, way: Way) -> Result<()> {
        if self.window.holds(unit) {
            return Ok(());
        }
        let capacity = self.window.capacity(&self.run);
        let mut most = capacity.min(self.ahead);
        let mut bounds = 0..self.run.units;
        if self.reach.contains(&unit) {
            (most, bounds) = (capacity, self.reach.start..self.reach.end.min(self.run.units));
        } else {
            self.ahead = self.ahead.saturating_mul(2).min(capacity);
        }
        let units = match way {
            Way::Up => unit..unit.saturating_add(most).min(bounds.end),
            Way::Down => (unit + 1).saturating_sub(most).max(bounds.start)..unit + 1,
        };
        let how = (self.options.request_bytes, self.options.cause);
        // What is overwritten is no more what it stands in.
        self.window.read(space, &self.run, units, how)
    }

    /// Stands in `unit`, or in the entry that it is a piece of, with nothing before it.
    fn enter(&mut self, space: &mut dyn Space, unit: u32, way: Way) -> Result<()> {
        let identity = space.identity();
        let mut first = unit;
        (self.loaded, self.unit, self.place) = (None, unit, 0);
        loop {
            self.hold(space, first, way)?;
            match self.window.open(&self.run, identity, first)? {
                (Form::Entries, entries) => {
                    let entries = entries.len();
                    self.loaded = Some(Loaded { first, units: 1, entries, is_record: false });
                    return Ok(());
                }
                (Form::First(bytes), _) => return self.assemble(space, first, bytes),
                (Form::Next, _) if first > 0 => first -= 1,
                _ => return Err(self.damaged(first)),
            }
        }
    }

    fn damaged(&self, unit: u32) -> Error {
        let what = "it is a piece of an entry that does not begin, or is longer than any";
        Error::DamagedUnit { run: self.run.id.0, unit, what }
    }

    fn assemble(&mut self, space: &mut dyn Space, first: u32, bytes: u32) -> Result<()> {
        let bytes = bytes as usize;
        if bytes > self.options.record_bytes_most {
            return Err(self.damaged(first));
        }
        let units = self.run.shape.pieces(bytes);
        if units > self.run.units - first {
            return Err(self.damaged(first));
        }
        self.record.clear();
        for unit in first..first + units {
            self.hold(space, unit, Way::Up)?;
            let (form, _) = self.window.open(&self.run, space.identity(), unit)?;
            if (unit == first) != matches!(form, Form::First(_)) || form == Form::Entries {
                return Err(self.damaged(unit));
            }
            let piece = self.run.shape.piece(form, self.window.bytes(&self.run, unit));
            let left = bytes - self.record.len();
            self.record.extend_from_slice(&piece[..piece.len().min(left)]);
        }
        let damaged = |what| Error::DamagedUnit { run: self.run.id.0, unit: first, what };
        self.run.shape.record(&self.record).map_err(damaged)?;
        self.loaded = Some(Loaded { first, units, entries: 1, is_record: true });
        Ok(())
    }
}

impl Source for RunCursor {
    fn load(&mut self, space: &mut dyn Space, way: Way) -> Result<bool> {
        loop {
            match (self.loaded, way) {
                (Some(loaded), Way::Up) if self.place < loaded.entries => return Ok(true),
                (Some(_), Way::Down) if self.place > 0 => return Ok(true),
                (loaded, Way::Up) => {
                    let behind = |loaded: Loaded| loaded.first + loaded.units;
                    let next = loaded.map_or(self.unit, behind);
                    if next >= self.run.units {
                        return Ok(false);
                    }
                    self.enter(space, next, way)?;
                }
                (_, Way::Down) => {
                    let Some(before) = self.unit().checked_sub(1) else {
                        return Ok(false);
                    };
                    self.enter(space, before, way)?;
                    self.place = self.loaded.map_or(0, |loaded| loaded.entries);
                }
            }
        }
    }

    fn head(&self, way: Way) -> Option<Entry<'_>> {
        let loaded = self.loaded?;
        let place = match way {
            Way::Up => Some(self.place).filter(|place| *place < loaded.entries),
            Way::Down => self.place.checked_sub(1),
        };
        place.and_then(|place| Some(self.view()?.entry(place)))
    }

    fn step(&mut self, way: Way) {
        match way {
            Way::Up => self.place += 1,
            Way::Down => self.place = self.place.saturating_sub(1),
        }
    }
}
