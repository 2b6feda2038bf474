//! Units of a run in memory, read together.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use device::Cause;

use super::buffer::Buffer;
use super::fences::Fences;
use super::run::Run;
use super::space::{PageRequest, Space};
use super::unit::{Form, Seed, Unit};
use crate::{Error, Result};

/// Requests that are made at once.
const AT_ONCE: usize = 32;

/// Reads `units` of `run` one behind the other into `into`, which is as long: requests of whole
/// extents where units fill their pages, and of at most `most` bytes.
pub(super) fn read_units(
    space: &mut dyn Space,
    run: &Run,
    units: Range<u32>,
    into: &mut [u8],
    (most, cause): (usize, Cause),
) -> Result<()> {
    let page_bytes = space.page_bytes();
    let unit_bytes = run.shape.bytes();
    let a_page = page_bytes / unit_bytes;
    let damaged = |unit| Error::DamagedUnit {
        run: run.id.0,
        unit,
        what: "it is named, but its run is shorter",
    };
    if a_page == 0 || into.len() as u64 != (units.len() as u64) * u64::from(unit_bytes) {
        return Err(damaged(units.start));
    }
    let is_dense = a_page * unit_bytes == page_bytes;
    let mut left = into;
    let mut next = units.start;
    while next < units.end {
        let mut requests: [Option<PageRequest<'_>>; AT_ONCE] = [const { None }; AT_ONCE];
        let mut count = 0;
        for request in &mut requests {
            if next == units.end {
                break;
            }
            let (place, slot) = (next / a_page, next % a_page);
            let (page, pages) = run.page_at(place).ok_or(damaged(next))?;
            let behind = if is_dense { pages.saturating_mul(a_page) } else { a_page };
            let whole = ((most as u32 / unit_bytes) / a_page * a_page).max(1);
            let part = (behind - slot).min(units.end - next).min(whole.max(a_page - slot));
            let bytes = part as usize * unit_bytes as usize;
            let (now, later) = core::mem::take(&mut left).split_at_mut(bytes);
            *request = Some(PageRequest { page, offset: slot * unit_bytes, into: now });
            (left, next, count) = (later, next + part, count + 1);
        }
        read_all(space, requests, count, cause)?;
    }
    Ok(())
}

fn read_all(
    space: &mut dyn Space,
    requests: [Option<PageRequest<'_>>; AT_ONCE],
    count: usize,
    cause: Cause,
) -> Result<()> {
    let none = || PageRequest { page: 0, offset: 0, into: &mut [] };
    let mut requests = requests.map(|request| request.unwrap_or_else(none));
    space.read(&mut requests[..count], cause)
}

/// Whole units of one run, one behind the other, in a buffer of bounded size.
pub(super) struct Window {
    buffer: Buffer,
    held: Range<u32>,
}

impl Window {
    pub(super) fn new(bytes: usize, alignment: u32) -> Self {
        Window { buffer: Buffer::new(bytes, alignment), held: 0..0 }
    }

    pub(super) const fn memory(&self) -> u64 {
        self.buffer.memory()
    }

    /// Units of `run` that it can hold; at least one.
    pub(super) fn capacity(&self, run: &Run) -> u32 {
        (self.buffer.len() / run.shape.bytes() as usize).max(1) as u32
    }

    pub(super) fn holds(&self, unit: u32) -> bool {
        self.held.contains(&unit)
    }

    /// Reads `units` in place of what it holds.
    pub(super) fn read(
        &mut self,
        space: &mut dyn Space,
        run: &Run,
        units: Range<u32>,
        how: (usize, Cause),
    ) -> Result<()> {
        self.held = 0..0;
        let bytes = units.len() * run.shape.bytes() as usize;
        let short = Error::LittleMemory { have: self.buffer.len() as u64, need: bytes as u64 };
        let into = self.buffer.all_mut().get_mut(..bytes).ok_or(short)?;
        read_units(space, run, units.clone(), into, how)?;
        self.held = units;
        Ok(())
    }

    /// The bytes of `unit`, which it holds.
    pub(super) fn bytes(&self, run: &Run, unit: u32) -> &[u8] {
        let length = run.shape.bytes() as usize;
        let at = unit.wrapping_sub(self.held.start) as usize * length;
        self.buffer.all().get(at..at + length).unwrap_or_default()
    }

    /// The `unit` that it holds, verified.
    pub(super) fn open(&self, run: &Run, identity: u64, unit: u32) -> Result<(Form, Unit<'_>)> {
        let seed = Seed { identity, run: run.id.0, unit };
        run.shape.open(seed, self.bytes(run, unit))
    }
}

/// Reads single units of runs one behind the other into `into`, all in one call as far as that can
/// be.
pub(super) fn read_scattered(
    space: &mut dyn Space,
    units: &[(&Run, u32)],
    into: &mut [u8],
    cause: Cause,
) -> Result<()> {
    let page_bytes = space.page_bytes();
    let mut left = into;
    for group in units.chunks(AT_ONCE) {
        let mut requests: [Option<PageRequest<'_>>; AT_ONCE] = [const { None }; AT_ONCE];
        for ((run, unit), request) in group.iter().zip(&mut requests) {
            let what = "it is named, but its run is shorter";
            let damaged = Error::DamagedUnit { run: run.id.0, unit: *unit, what };
            let a_page = page_bytes.checked_div(run.shape.bytes()).filter(|units| *units > 0);
            let a_page = a_page.filter(|_| *unit < run.units).ok_or(damaged)?;
            let (page, _) = run.page_at(unit / a_page).ok_or(damaged)?;
            let length = run.shape.bytes() as usize;
            let (now, later) =
                core::mem::take(&mut left).split_at_mut_checked(length).ok_or(damaged)?;
            let offset = unit % a_page * run.shape.bytes();
            (*request, left) = (Some(PageRequest { page, offset, into: now }), later);
        }
        read_all(space, requests, group.len(), cause)?;
    }
    Ok(())
}

/// Reads and verifies the footer of `run`: the checksum of its units, and its fences.
pub(super) fn read_footer(space: &mut dyn Space, run: &Run, cause: Cause) -> Result<(u32, Fences)> {
    let units = run.units..run.units.saturating_add(run.footer_units());
    let unit_bytes = run.shape.bytes() as usize;
    let what = "its run's footer makes no sense";
    let damaged = |unit| Error::DamagedUnit { run: run.id.0, unit, what };
    // What its pages can't hold is no footer: so this is bounded by them.
    let pages: u64 = run.extents.iter().map(|extent| u64::from(extent.pages)).sum();
    let room = pages * u64::from(space.page_bytes());
    if units.len() as u64 * unit_bytes as u64 > room {
        return Err(damaged(run.units));
    }
    let mut footer = Vec::with_capacity(run.footer_bytes as usize);
    let mut bytes = vec![0; unit_bytes];
    for unit in units {
        read_units(space, run, unit..unit + 1, &mut bytes, (unit_bytes, cause))?;
        let seed = Seed { identity: space.identity(), run: run.id.0, unit };
        let (form, _) = run.shape.open(seed, &bytes)?;
        let is_right = match form {
            Form::Footer(bytes) => unit == run.units && bytes == run.footer_bytes,
            Form::Next => unit > run.units,
            _ => false,
        };
        if !is_right {
            return Err(damaged(unit));
        }
        let piece = run.shape.piece(form, &bytes);
        let left = (run.footer_bytes as usize).saturating_sub(footer.len());
        footer.extend_from_slice(&piece[..piece.len().min(left)]);
    }
    let (checksum, fences) = run.check_footer(&footer).ok_or(damaged(run.units))?;
    let fences = match run.fence_step {
        0 => Fences::default(),
        _ => Fences::decode(fences, run.units).ok_or(damaged(run.units))?,
    };
    Ok((checksum, fences))
}
