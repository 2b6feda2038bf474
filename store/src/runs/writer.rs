//! Writing a run: entries in their order become units, which go to the device in large requests.
//!
//! Invariant: what was begun and is not finished leaves nothing but room that
//! [`RunWriter::abandon`], or the next opening, makes free.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use device::Cause;

use super::buffer::Buffer;
use super::entry::{Entry, Kind};
use super::fences::Fences;
use super::run::{Run, RunId};
use super::space::{Extent, Reserved, Space};
use super::unit::{Builder, KEY_BYTES_MOST, Pieces, Seed, UnitShape, record_of};
use crate::{Error, Result, Width};

/// How a run is to be written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Its number.
    pub id: RunId,
    /// A number of the tree's own.
    pub label: u64,
    /// How its units are made.
    pub shape: UnitShape,
    /// The updates that it may hold.
    pub sequences: RangeInclusive<u64>,
    /// Bytes of a request: whole pages, at least one.
    pub request_bytes: u32,
    /// Pages that are reserved for it: what it needs at most, footer included.
    pub pages: u32,
    /// For every so many units the first key is kept in the footer, and in memory; 0 for none.
    pub fence_step: u8,
    /// Why it is written.
    pub cause: Cause,
}

/// A fence that a unit is to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// What it is.
    pub kind: Kind,
    /// The unit that it names.
    pub unit: u32,
}

/// What a tree does when a unit of a run that is written begins.
pub trait UnitHooks {
    /// Unit `unit` is going to begin with `first`, unless a fence with the same key is to come
    /// before it.
    fn lead(&mut self, unit: u32, first: &Entry<'_>) -> Option<Lead> {
        let _ = (unit, first);
        None
    }

    /// Unit `unit` began, with this key.
    ///
    /// # Errors
    /// What the tree does about it failed.
    fn unit_began(&mut self, space: &mut dyn Space, unit: u32, key: &[u8]) -> Result<()> {
        let _ = (space, unit, key);
        Ok(())
    }
}

/// Nothing is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl UnitHooks for NoHooks {}

/// A run that is being written.
pub struct RunWriter {
    options: WriterOptions,
    identity: u64,
    /// Pages that were not written yet; those behind `filled` units are zeros.
    buffer: Buffer,
    page_bytes: usize,
    /// Units in the buffer that are whole.
    filled: u32,
    builder: Builder,
    /// An entry longer than a unit, or the footer.
    record: Vec<u8>,
    reserved: Reserved,
    /// What is known so far.
    run: Run,
    units_checksum: u32,
    is_last_fence: bool,
    /// True if its footer is written.
    is_ended: bool,
    /// Why a write failed.
    failure: Option<Error>,
    fences: Fences,
}

impl RunWriter {
    /// Begins a run; its room is reserved.
    ///
    /// # Errors
    /// Units do not fit pages, or there is no room.
    pub fn new(space: &mut dyn Space, options: WriterOptions) -> Result<Self> {
        let (page_bytes, unit_bytes) = (space.page_bytes(), options.shape.bytes());
        if unit_bytes > page_bytes {
            let what = "a unit is no longer than a page of runs";
            return Err(Error::NodeSize { bytes: unit_bytes, what });
        }
        let pages = (options.request_bytes / page_bytes).max(1);
        let reserved = space.reserve(options.pages, options.cause)?;
        let run = Run {
            id: options.id,
            label: options.label,
            shape: options.shape,
            units: 0,
            entries: 0,
            deletes: 0,
            fences: 0,
            bytes: 0,
            sequences: options.sequences.clone(),
            first_key: Vec::new(),
            last_key: Vec::new(),
            extents: Vec::new(),
            fence_step: options.fence_step,
            footer_bytes: 0,
            footer_checksum: 0,
        };
        Ok(RunWriter {
            identity: space.identity(),
            buffer: Buffer::new((pages * page_bytes) as usize, space.alignment()),
            page_bytes: page_bytes as usize,
            filled: 0,
            builder: Builder::new(options.shape),
            record: Vec::new(),
            reserved,
            run,
            units_checksum: 0,
            is_last_fence: false,
            is_ended: false,
            failure: None,
            fences: Fences::default(),
            options,
        })
    }

    /// Bytes of memory that a writer takes, beside what keys and fences take.
    #[must_use]
    pub fn memory_of(space: &dyn Space, request_bytes: u32) -> u64 {
        let pages = (request_bytes / space.page_bytes()).max(1);
        Buffer::memory_of((pages * space.page_bytes()) as usize, space.alignment())
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let record = self.record.capacity() as u64;
        self.buffer.memory() + record + self.run.memory() + self.fences.memory()
    }

    /// Pages that a run of `units` units and with keys of `key` bytes takes, where fences are kept
    /// every `fence_step` units.
    #[must_use]
    pub fn pages_for(
        space: &dyn Space,
        shape: &UnitShape,
        units: u64,
        (key, fence_step): (usize, u8),
    ) -> u64 {
        let fences = units.checked_div(fence_step.into()).map_or(0, |fences| fences + 2);
        let footer = 110 + 2 * key as u64 + fences * (6 + key as u64);
        let a_page = u64::from(space.page_bytes() / shape.bytes()).max(1);
        let footer = u64::from(shape.pieces(usize::try_from(footer).unwrap_or(usize::MAX / 2)));
        (units + footer).div_ceil(a_page)
    }

    /// Units that are whole, or begun.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.run.units + u32::from(!self.builder.is_empty())
    }

    /// Entries so far, fences included.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.run.entries + self.run.fences
    }

    /// Adds `entry`, which stands behind all before it.
    ///
    /// # Errors
    /// Its length or its place does not fit, there is no room, a hook failed, or the device did.
    pub fn push(
        &mut self,
        space: &mut dyn Space,
        entry: &Entry<'_>,
        hooks: &mut dyn UnitHooks,
    ) -> Result<()> {
        self.check_failure()?;
        self.check(entry)?;
        if !self.builder.is_empty() && self.put(entry) {
            self.note(entry);
            return Ok(());
        }
        self.end_unit(space)?;
        let unit = self.run.units;
        if let Some(lead) = hooks.lead(unit, entry) {
            let value = lead.unit.to_le_bytes();
            let fence = Entry { key: entry.key, kind: lead.kind, value: &value };
            self.check(&fence)?;
            if self.put(&fence) {
                self.note(&fence);
            }
        }
        if self.put(entry) {
            self.note(entry);
        } else {
            // Even what leads a unit then has it for itself.
            self.end_unit(space)?;
            self.put_pieces(space, entry)?;
            self.note(entry);
        }
        let step = u32::from(self.options.fence_step);
        if step > 0 && (unit.is_multiple_of(step)) {
            self.fences.push(unit, entry.key);
        }
        hooks.unit_began(space, unit, entry.key)
    }

    /// Refuses an entry that can't stand behind the last one, or in this run.
    fn check(&self, entry: &Entry<'_>) -> Result<()> {
        let shape = self.options.shape;
        let is_length = |width: Width, bytes: usize| match width {
            Width::Fixed(length) => bytes == usize::from(length),
            Width::Variable => true,
        };
        let widths = shape.entries();
        let has_value = match entry.kind {
            Kind::Put => is_length(widths.value, entry.value.len()),
            Kind::Delete => entry.value.is_empty(),
            Kind::Fence | Kind::InnerFence => entry.value.len() == 4,
        };
        let fits = is_length(widths.key, entry.key.len()) && entry.key.len() <= KEY_BYTES_MOST;
        if !fits || !has_value || !shape.kinds().allow(entry.kind) {
            return Err(Error::RunEntry {
                what: "its lengths or its kind are not those of its run",
            });
        }
        if self.run.entries + self.run.fences == 0 {
            return Ok(());
        }
        let last = if self.is_last_fence { Kind::Fence } else { Kind::Put };
        let last = Entry { key: &self.run.last_key, kind: last, value: &[] };
        let order = last.order(entry);
        // A unit may end with the fence that the next one's first entry is behind.
        if order.is_lt() || entry.kind == Kind::InnerFence && order.is_eq() {
            return Ok(());
        }
        Err(Error::RunEntry { what: "it does not stand behind the one before it" })
    }

    fn note(&mut self, entry: &Entry<'_>) {
        if self.run.entries + self.run.fences == 0 {
            self.run.first_key.extend_from_slice(entry.key);
        }
        self.run.last_key.clear();
        self.run.last_key.extend_from_slice(entry.key);
        self.is_last_fence = entry.kind.is_fence();
        if self.is_last_fence {
            self.run.fences += 1;
        } else {
            self.run.entries += 1;
            self.run.deletes += u64::from(entry.kind == Kind::Delete);
        }
        self.run.bytes += entry.bytes();
    }

    /// The bytes of the unit behind those that are whole.
    fn slot(&mut self) -> &mut [u8] {
        let unit_bytes = self.options.shape.bytes() as usize;
        let a_page = self.page_bytes / unit_bytes;
        let (page, slot) = (self.filled as usize / a_page, self.filled as usize % a_page);
        let at = page * self.page_bytes + slot * unit_bytes;
        &mut self.buffer.all_mut()[at..at + unit_bytes]
    }

    fn put(&mut self, entry: &Entry<'_>) -> bool {
        let mut builder = self.builder;
        let is_in = builder.push(self.slot(), entry);
        self.builder = builder;
        is_in
    }

    fn seed(&self, unit: u32) -> Seed {
        Seed { identity: self.identity, run: self.options.id.0, unit }
    }

    /// Ends the present unit, if there is one: so that what comes next, as a slice of another
    /// partition, shares none with what came before.
    ///
    /// # Errors
    /// The device failed.
    pub fn end_unit(&mut self, space: &mut dyn Space) -> Result<()> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let (builder, seed) = (self.builder, self.seed(self.run.units));
        let checksum = builder.seal(seed, self.slot());
        self.builder = Builder::new(self.options.shape);
        self.run.units += 1;
        self.end_slot(space, checksum)
    }

    fn end_slot(&mut self, space: &mut dyn Space, checksum: u32) -> Result<()> {
        let sums = [self.units_checksum.to_le_bytes(), checksum.to_le_bytes()];
        self.units_checksum = device::checksum(&[&sums[0], &sums[1]]);
        self.filled += 1;
        let a_page = self.page_bytes / self.options.shape.bytes() as usize;
        if self.filled as usize == self.buffer.len() / self.page_bytes * a_page {
            self.write_out(space)?;
        }
        Ok(())
    }

    /// Writes the whole pages of the buffer; the last one may be only begun.
    fn write_out(&mut self, space: &mut dyn Space) -> Result<()> {
        let a_page = self.page_bytes / self.options.shape.bytes() as usize;
        let length = (self.filled as usize).div_ceil(a_page) * self.page_bytes;
        let bytes = &mut self.buffer.all_mut()[..length];
        let cause = self.options.cause;
        if let Err(error) = space.write(&mut self.reserved, bytes, &mut self.run.extents, cause) {
            // What of it was written is not known.
            self.failure = Some(error);
            return Err(error);
        }
        bytes.fill(0);
        self.filled = 0;
        Ok(())
    }

    /// Writes an entry that is longer than a unit.
    fn put_pieces(&mut self, space: &mut dyn Space, entry: &Entry<'_>) -> Result<()> {
        let mut record = core::mem::take(&mut self.record);
        record_of(&self.options.shape, entry, &mut record);
        let put = self.put_record(space, &record, false);
        self.record = record;
        self.run.units += put?;
        Ok(())
    }

    /// Writes a record in pieces; returns how many units it took.
    fn put_record(&mut self, space: &mut dyn Space, record: &[u8], is_footer: bool) -> Result<u32> {
        let mut pieces = Pieces::new(self.options.shape, record, is_footer);
        let mut count = 0;
        while !pieces.is_done() {
            let seed = self.seed(self.run.units + count);
            let checksum = pieces.put(seed, self.slot());
            count += 1;
            self.end_slot(space, checksum)?;
        }
        Ok(count)
    }

    /// Writes what is left of a run to which nothing comes any more, before it is finished.
    ///
    /// # Errors
    /// There is no room, or the device failed; then it can only be abandoned.
    pub fn end(&mut self, space: &mut dyn Space) -> Result<()> {
        if !self.is_ended {
            self.write_footer(space)?;
            self.is_ended = true;
        }
        Ok(())
    }

    /// Ends the run: what was reserved and is not needed is given back. It has to be flushed
    /// before a delta names it. Returns it with its fences.
    ///
    /// # Errors
    /// There is no room, or the device failed; then all of it is given back.
    pub fn finish(mut self, space: &mut dyn Space) -> Result<(Run, Fences)> {
        match self.end(space) {
            Ok(()) => {
                space.unreserve(core::mem::take(&mut self.reserved));
                Ok((self.run, self.fences))
            }
            Err(error) => {
                self.abandon(space)?;
                Err(error)
            }
        }
    }

    /// A run of which a write failed can only be abandoned.
    fn check_failure(&self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }

    fn write_footer(&mut self, space: &mut dyn Space) -> Result<()> {
        self.check_failure()?;
        self.end_unit(space)?;
        let mut footer = self.run.footer(self.units_checksum);
        if self.options.fence_step > 0 {
            self.fences.encode(&mut footer);
        }
        self.run.footer_bytes = footer.len() as u32;
        self.run.footer_checksum = device::checksum(&[&footer]);
        self.put_record(space, &footer, true)?;
        if self.filled > 0 { self.write_out(space) } else { Ok(()) }
    }

    /// Gives back all that it took.
    ///
    /// # Errors
    /// What is in use was counted wrongly.
    pub fn abandon(self, space: &mut dyn Space) -> Result<()> {
        space.unreserve(self.reserved);
        let written: Vec<Extent> = self.run.extents;
        space.free(&written)
    }
}
