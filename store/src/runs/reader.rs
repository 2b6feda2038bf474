//! Single units of runs, through a cache of bounded size: what lookups read.
//!
//! A unit is found in the cache by its run and number, never by where it stands: so what a run that
//! is gone left there is never taken for another's.
//!
//! The unit used longest ago leaves first. Units of large runs pass, if [`UnitReader::keep_first`]
//! says so: they have no more frames than those leave that fit, which stay then.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use device::Cause;

use super::buffer::Buffer;
use super::entry::Entry;
use super::fences::Fences;
use super::run::{Run, RunId};
use super::space::Space;
use super::unit::{Form, Seed, Unit};
use super::window::read_units;
use crate::cache::Cache;
use crate::{Error, LogicalPage, Result};

/// Reads units, and keeps those that were used last.
pub struct UnitReader {
    cache: Cache,
    /// Whose unit each frame holds.
    owners: Vec<Owner>,
    /// The runs whose units pass, and how many frames they may have.
    passing: Vec<RunId>,
    passing_most: usize,
    /// Frames that were given to units of those runs, in this order.
    passed: VecDeque<u32>,
    unit_bytes: u32,
    /// An entry that stood in pieces.
    record: Vec<u8>,
    record_bytes_most: usize,
    /// Units that are read together.
    batch: Buffer,
}

/// Whose unit a frame holds.
#[derive(Clone, Copy)]
struct Owner {
    run: RunId,
    unit: u32,
    /// True if it was used again since it came, or since it was passed by.
    is_used: bool,
}

/// The owner of a frame that holds nothing.
const NOBODY: Owner = Owner { run: RunId(0), unit: u32::MAX, is_used: false };

/// Bytes of memory of a frame beside its unit and the cache's own.
const OWNER_BYTES: u64 = (size_of::<Owner>() + size_of::<u32>()) as u64;

/// Runs that are told from others in memory.
const RUNS_PASSING: usize = 32;

impl UnitReader {
    /// Bytes of memory that a reader takes which keeps `frames` units of `unit_bytes` bytes, and
    /// reads up to `batch` of them together; entries longer than a unit come beside it.
    #[must_use]
    pub fn memory_of(unit_bytes: u32, frames: u32, (batch, alignment): (u32, u32)) -> u64 {
        let batch = Buffer::memory_of((batch * unit_bytes) as usize, alignment);
        let runs = (RUNS_PASSING * size_of::<RunId>()) as u64;
        let owners = u64::from(frames) * OWNER_BYTES + runs;
        Cache::bytes_for(frames, unit_bytes, alignment) + owners + batch
    }

    /// A reader that keeps `frames` units of up to `unit_bytes` bytes; it reads up to `batch` of
    /// them together, and entries of up to `record_bytes_most` bytes.
    #[must_use]
    pub fn new(
        unit_bytes: u32,
        frames: u32,
        (batch, alignment): (u32, u32),
        record_bytes_most: usize,
    ) -> Self {
        let frames = frames.max(1);
        UnitReader {
            cache: Cache::new(frames, unit_bytes, alignment),
            owners: vec![NOBODY; frames as usize],
            passing: Vec::with_capacity(RUNS_PASSING),
            passing_most: 0,
            passed: VecDeque::with_capacity(frames as usize),
            unit_bytes,
            record: Vec::new(),
            record_bytes_most,
            batch: Buffer::new((batch * unit_bytes) as usize, alignment),
        }
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let runs = self.passing.capacity() * size_of::<RunId>();
        let owners = size_of_val(&*self.owners) + 4 * self.passed.capacity() + runs;
        let record = self.record.capacity();
        self.cache.memory() + (owners + record) as u64 + self.batch.memory()
    }

    /// Holds nothing any more: going back to a named checkpoint gives numbers of runs anew.
    pub fn clear(&mut self) {
        self.owners.fill(NOBODY);
    }

    /// Keeps the units of the first of `runs`, as many of these as fit: the others pass.
    pub fn keep_first<'r>(&mut self, runs: impl Iterator<Item = &'r Run>) {
        let mut left = self.cache.frames();
        let (passing, passed) = (&mut self.passing, &mut self.passed);
        passing.clear();
        passed.clear();
        for run in runs.take(RUNS_PASSING) {
            // One frame at least is theirs.
            match left.checked_sub(run.units).filter(|left| *left > 0 && passing.is_empty()) {
                Some(rest) => left = rest,
                None => passing.push(run.id),
            }
        }
        self.passing_most = left as usize;
        let frames = self.owners.iter().zip(0..);
        let theirs = frames.filter(|(owner, _)| passing.contains(&owner.run));
        passed.extend(theirs.map(|(_, frame)| frame));
    }

    /// Lets a unit of those that pass be the next to leave, if they have all their frames: the one
    /// that came first and was not used since.
    fn make_way(&mut self) {
        while self.passed.len() >= self.passing_most {
            let Some(frame) = self.passed.pop_front() else { return };
            let Some(owner) = self.owners.get_mut(frame as usize) else { return };
            if !self.passing.contains(&owner.run) {
                // Another has the frame since.
                continue;
            }
            if !core::mem::take(&mut owner.is_used) {
                self.cache.make_oldest(frame);
                return;
            }
            self.passed.push_back(frame);
        }
    }

    /// Where the cache has a unit: any number that differs mostly.
    fn address(run: &Run, unit: u32) -> LogicalPage {
        let mixed = run.id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        LogicalPage((mixed as u32 ^ unit) & (u32::MAX >> 1))
    }

    /// The frame that holds `unit`, if one does.
    fn find(&mut self, run: &Run, unit: u32) -> Option<u32> {
        let frame = self.cache.touch(Self::address(run, unit))?;
        let owner = self.owners.get_mut(frame as usize)?;
        let is_it = (owner.run, owner.unit) == (run.id, unit);
        owner.is_used |= is_it;
        is_it.then_some(frame)
    }

    /// Gives `unit` a frame.
    fn enter(&mut self, run: &Run, unit: u32) -> u32 {
        let address = Self::address(run, unit);
        self.cache.forget(address);
        let passes = self.passing.contains(&run.id);
        if passes {
            self.make_way();
        }
        let frame = self.cache.enter(address);
        if let Some(owner) = self.owners.get_mut(frame as usize) {
            *owner = Owner { run: run.id, unit, is_used: false };
        }
        if passes {
            self.passed.push_back(frame);
        }
        frame
    }

    fn load(
        &mut self,
        space: &mut dyn Space,
        run: &Run,
        (unit, cause): (u32, Cause),
    ) -> Result<u32> {
        if let Some(frame) = self.find(run, unit) {
            return Ok(frame);
        }
        let damaged = |what| Error::DamagedUnit { run: run.id.0, unit, what };
        if unit >= run.units {
            return Err(damaged("it is named, but its run is shorter"));
        }
        let length = run.shape.bytes() as usize;
        let frame = self.enter(run, unit);
        let whole = self.cache.bytes_mut(frame);
        let into = whole.get_mut(..length).ok_or(damaged("it is longer than what holds it"))?;
        let read = read_units(space, run, unit..unit + 1, into, (length, cause));
        let seed = Seed { identity: space.identity(), run: run.id.0, unit };
        let opened = read.and_then(|()| run.shape.open(seed, into).map(|_| ()));
        if let Err(error) = opened {
            self.cache.forget(Self::address(run, unit));
            return Err(error);
        }
        Ok(frame)
    }

    /// The entries of `unit`, or, if it is a piece of an entry, that entry; and the unit in which
    /// these begin.
    ///
    /// # Errors
    /// There is no such unit, it is damaged, or the device failed.
    pub fn unit(
        &mut self,
        space: &mut dyn Space,
        run: &Run,
        unit: u32,
        cause: Cause,
    ) -> Result<(u32, Unit<'_>)> {
        let length = run.shape.bytes() as usize;
        let mut start = unit;
        let frame = loop {
            let frame = self.load(space, run, (start, cause))?;
            let bytes = self.cache.bytes(frame).get(..length).unwrap_or_default();
            match run.shape.form(bytes) {
                Form::Entries => break frame,
                Form::First(bytes) => {
                    self.assemble(space, run, (start, bytes), cause)?;
                    let damaged = |what| Error::DamagedUnit { run: run.id.0, unit: start, what };
                    let record = run.shape.record(&self.record).map_err(damaged)?;
                    return Ok((start, record));
                }
                Form::Next if start > 0 => start -= 1,
                Form::Next | Form::Footer(_) => {
                    let what = "it is a piece of an entry that does not begin";
                    return Err(Error::DamagedUnit { run: run.id.0, unit: start, what });
                }
            }
        };
        let bytes = self.cache.bytes(frame).get(..length).unwrap_or_default();
        Ok((start, run.shape.view(bytes)))
    }

    /// Reads the pieces of an entry.
    fn assemble(
        &mut self,
        space: &mut dyn Space,
        run: &Run,
        (start, bytes): (u32, u32),
        cause: Cause,
    ) -> Result<()> {
        let bytes = bytes as usize;
        let damaged = |unit| Error::DamagedUnit {
            run: run.id.0,
            unit,
            what: "it is a piece of an entry that is longer than any",
        };
        if bytes > self.record_bytes_most {
            return Err(damaged(start));
        }
        let mut record = core::mem::take(&mut self.record);
        record.clear();
        for unit in start..start.saturating_add(run.shape.pieces(bytes)) {
            let frame = self.load(space, run, (unit, cause))?;
            let held = self.cache.bytes(frame).get(..run.shape.bytes() as usize);
            let held = held.unwrap_or_default();
            let form = run.shape.form(held);
            if (unit == start) != matches!(form, Form::First(_)) || form == Form::Entries {
                return Err(damaged(unit));
            }
            let piece = run.shape.piece(form, held);
            record.extend_from_slice(&piece[..piece.len().min(bytes - record.len())]);
        }
        self.record = record;
        Ok(())
    }

    /// Reads the `wanted` units that are not kept yet, up to the batch's most of them, in one call.
    ///
    /// # Errors
    /// A unit does not exist or is damaged, or the device failed.
    pub fn fetch(
        &mut self,
        space: &mut dyn Space,
        wanted: &[(&Run, u32)],
        cause: Cause,
    ) -> Result<()> {
        let most = self.batch.len() / self.unit_bytes.max(1) as usize;
        let mut missing: Vec<(&Run, u32)> = Vec::with_capacity(most);
        for (run, unit) in wanted {
            if missing.len() < most && self.find(run, *unit).is_none() {
                missing.push((run, *unit));
            }
        }
        let mut batch = core::mem::replace(&mut self.batch, Buffer::new(0, 1));
        let read = super::window::read_scattered(space, &missing, batch.all_mut(), cause);
        let entered = read.and_then(|()| self.enter_all(space.identity(), &missing, &batch));
        self.batch = batch;
        entered
    }

    fn enter_all(&mut self, identity: u64, read: &[(&Run, u32)], batch: &Buffer) -> Result<()> {
        let mut left = batch.all();
        for (run, unit) in read {
            let (bytes, later) = left.split_at(run.shape.bytes() as usize);
            left = later;
            run.shape.open(Seed { identity, run: run.id.0, unit: *unit }, bytes)?;
            let frame = self.enter(run, *unit);
            self.cache.bytes_mut(frame)[..bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// The entry of `key` in `run` that is no fence, if there is one. Without `fences` units are
    /// read by halves.
    ///
    /// # Errors
    /// A unit is damaged, or the device failed.
    pub fn get(
        &mut self,
        space: &mut dyn Space,
        (run, fences): (&Run, Option<&Fences>),
        key: &[u8],
        cause: Cause,
    ) -> Result<Option<Entry<'_>>> {
        if run.units == 0 || key < &run.first_key[..] || key > &run.last_key[..] {
            return Ok(None);
        }
        let units = fences.map_or(0..run.units, |fences| fences.plan(key, run.units));
        if units.is_empty() {
            return Ok(None);
        }
        let (mut low, mut high) = (units.start, units.end);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let (start, unit) = self.unit(space, run, middle, cause)?;
            if !unit.is_empty() && unit.entry(0).key <= key {
                low = middle;
            } else {
                high = start.max(low + 1);
            }
        }
        let (_, unit) = self.unit(space, run, low, cause)?;
        Ok(unit.get(key))
    }

    /// Verifies the footer of `run`, and that it is that of its manifest; returns the fences that
    /// it has.
    ///
    /// # Errors
    /// It is damaged, or the device failed.
    pub fn open(&mut self, space: &mut dyn Space, run: &Run, cause: Cause) -> Result<Fences> {
        super::window::read_footer(space, run, cause).map(|(_, fences)| fences)
    }
}
