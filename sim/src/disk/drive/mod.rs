//! A solid-state drive: what its requests cost follows from where its flash translation layer has
//! put what was written before.
//!
//! The drive keeps no content, only where its mapping units stand. It does what appendix A of the
//! FD-tree paper (VLDB 2010) describes: "a block with the size of mapping granularity is rewritten
//! to another place, and the corresponding entry in the mapping table is updated"; living units are
//! copied out of what is erased; and a RAM cache improves "writes with high locality".
//!
//! - **Writing**: a request crosses the link into the write cache, where each unit that was
//!   written has a line. A unit that is whole goes to flash at once, without a read. Where lines
//!   run short the unit that was not written for the longest time goes: those of its pages that
//!   are not whole in the cache are read from where it stood, and all are programmed elsewhere.
//!   Some lines are kept for units on their way to flash; a request waits only if all lines are
//!   taken.
//! - **Reading**: what is in the cache comes from there, else each page from its chip. The pages of
//!   a request, and of all requests of one call as far as the drive takes them at a time, are read
//!   on all of their chips at once; each crosses its channel and then the link.
//! - A **flush** writes every unit in the cache, and waits until all is programmed.
//!
//! The drive was written once from end to end before it is used, and what is not used of it holds
//! data that never change: so all of its spare flash serves the part in use. It knows no trim, as
//! the drives of its time didn't. It reads nothing ahead, and levels no wear beyond taking stripes
//! in the order in which they were erased.

mod cache;
mod lanes;
mod mapping;
mod trial;

use std::collections::VecDeque;

use device::{DiskCosts, FlashBytes, Result, SectorGeometry, SolidState};

use super::timing::Run;
use cache::Cache;
use lanes::Lanes;
use mapping::{Mapping, Step};

/// One line in so many, and at least one, is for units on their way to flash.
const LINES_PER_UNDERWAY: u16 = 8;

/// A drive at work.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    figures: SolidState,
    costs: DiskCosts,
    shape: Shape,
    lanes: Lanes,
    mapping: Mapping,
    cache: Cache,
    /// When each unit on its way to flash is there, in their order.
    underway: VecDeque<u64>,
    /// When each of the last commands was done, as many as the drive takes at a time.
    commands: VecDeque<u64>,
    controller_until: u64,
    link_until: u64,
    steps: Vec<Step>,
    work: Work,
}

/// What the flash did since it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// Bytes moved.
    pub(crate) moved: FlashBytes,
    /// Stripes erased.
    pub(crate) erased: Vec<u32>,
}

/// Numbers of a drive that are used all the time.
#[derive(Clone, Copy, Debug)]
struct Shape {
    sector_bytes: u64,
    page_bytes: u64,
    unit_bytes: u64,
    units_per_stripe: u32,
    sectors_per_page: u32,
    pages_per_unit: u32,
    chips: u64,
    lines: u16,
    lines_underway: u16,
}

/// A piece of a request that lies in one unit.
#[derive(Clone, Copy, Debug)]
struct Piece {
    unit: u32,
    /// Where in the unit it begins, and where it ends.
    from: u64,
    to: u64,
}

impl Drive {
    /// A drive of these figures, of which `sectors` are used.
    pub(crate) fn new(figures: SolidState, sectors: &SectorGeometry) -> Result<Self> {
        let mut drive = Drive::bare(figures, sectors)?;
        drive.costs = trial::costs(figures, sectors)?;
        Ok(drive)
    }

    /// The same without knowing what requests cost on average.
    fn bare(figures: SolidState, sectors: &SectorGeometry) -> Result<Self> {
        figures.check(sectors)?;
        let shape = Shape::of(&figures, sectors);
        let units = sectors.bytes().div_ceil(shape.unit_bytes) as u32;
        let spare = figures.stripes(sectors).1 as u32;
        Ok(Drive {
            figures,
            costs: DiskCosts::default(),
            shape,
            lanes: Lanes::new(&figures),
            mapping: Mapping::new(units, shape.units_per_stripe, spare),
            cache: Cache::new(units, shape.lines, shape.sectors_per_page * shape.pages_per_unit),
            underway: VecDeque::with_capacity(usize::from(shape.lines)),
            commands: VecDeque::with_capacity(figures.queue_depth.min(1024) as usize),
            controller_until: 0,
            link_until: 0,
            steps: Vec::new(),
            work: Work::default(),
        })
    }

    /// What requests cost on average, as trees weigh reading against writing by it.
    pub(crate) const fn costs(&self) -> DiskCosts {
        self.costs
    }

    /// Stripes of the part in use and of what is spare.
    pub(crate) const fn stripes(&self) -> u32 {
        self.mapping.stripes()
    }

    /// Blocks of chips that an erase of a stripe erases.
    pub(crate) const fn blocks_per_stripe(&self) -> u64 {
        self.shape.chips
    }

    /// What the flash did since the last call.
    pub(crate) fn work(&mut self) -> &mut Work {
        &mut self.work
    }

    /// Reads a run that was asked for at `issued`; returns when it is all with the host.
    pub(crate) fn read(&mut self, run: Run, issued: u64) -> u64 {
        let begun = self.command(issued);
        let mut end = begun;
        for piece in self.shape.pieces(run) {
            for page in piece.from / self.shape.page_bytes..piece.to.div_ceil(self.shape.page_bytes)
            {
                let start = page * self.shape.page_bytes;
                let from = piece.from.max(start);
                let to = piece.to.min(start + self.shape.page_bytes);
                let ready = self.read_page(piece.unit, (from, to), begun);
                end = self.cross_link(ready, to - from);
            }
        }
        self.done(end)
    }

    /// Reads bytes `from` to `to` of a unit, which lie in one page; returns when they are there.
    fn read_page(&mut self, unit: u32, (from, to): (u64, u64), at: u64) -> u64 {
        let sector = self.shape.sector_bytes;
        if self.cache.holds(unit) {
            let (first, end) = (from / sector, to.div_ceil(sector));
            if self.cache.has(unit, first as u32, (end - first) as u32) {
                return at;
            }
        }
        let bytes = (to.div_ceil(sector) - from / sector) * sector;
        self.work.moved.read += bytes;
        let page = (from / self.shape.page_bytes) as u32;
        let chip = self.shape.chip(self.mapping.slot(unit), page);
        self.lanes.read_for_host(chip, at, bytes)
    }

    /// Writes a run that was given at `issued`; returns when the drive has taken it.
    pub(crate) fn write(&mut self, run: Run, issued: u64) -> u64 {
        let mut now = self.command(issued);
        for piece in self.shape.pieces(run) {
            if !self.cache.holds(piece.unit) {
                now = self.make_line(now);
            }
            now = self.cross_link(now, piece.to - piece.from);
            let first = piece.from / self.shape.sector_bytes;
            let count = piece.to.div_ceil(self.shape.sector_bytes) - first;
            if self.cache.write(piece.unit, first as u32, count as u32) {
                self.send(piece.unit, now);
            }
        }
        self.done(now)
    }

    /// Makes all that was written durable from `issued` on; returns when it is.
    pub(crate) fn flush(&mut self, issued: u64) -> u64 {
        let now = self.command(issued);
        while let Some(unit) = self.cache.oldest() {
            self.send(unit, now);
        }
        let end = self.underway.back().map_or(now, |last| now.max(*last));
        self.underway.clear();
        self.done(end)
    }

    /// Takes a command; returns when its work begins.
    fn command(&mut self, issued: u64) -> u64 {
        let depth = self.figures.queue_depth as usize;
        let mut begin = issued.max(self.controller_until);
        if self.commands.len() >= depth {
            begin = begin.max(self.commands.pop_front().unwrap_or(0));
        }
        self.controller_until = begin + self.figures.command_ns;
        self.controller_until
    }

    /// Notes that a command ends at `end`.
    fn done(&mut self, end: u64) -> u64 {
        self.commands.push_back(end);
        end
    }

    fn cross_link(&mut self, ready: u64, bytes: u64) -> u64 {
        let time = bytes * self.figures.link_ps_per_byte / 1000;
        self.link_until = self.link_until.max(ready) + time;
        self.link_until
    }

    /// Sees to it from `now` on that a line is unused; returns when one is.
    fn make_line(&mut self, now: u64) -> u64 {
        let lines = usize::from(self.shape.lines);
        let most_held = lines - usize::from(self.shape.lines_underway);
        if self.cache.held() >= most_held
            && let Some(unit) = self.cache.oldest()
        {
            self.send(unit, now);
        }
        while self.underway.front().is_some_and(|there| *there <= now) {
            self.underway.pop_front();
        }
        if self.cache.held() + self.underway.len() < lines {
            return now;
        }
        self.underway.pop_front().map_or(now, |there| there.max(now))
    }

    /// Writes a unit of the cache to flash from `now` on.
    fn send(&mut self, unit: u32, now: u64) {
        let taken = self.cache.take_out(unit);
        let old = self.mapping.slot(unit);
        let mut steps = std::mem::take(&mut self.steps);
        let new = self.mapping.write(unit, &mut steps);
        for step in steps.drain(..) {
            match step {
                Step::Move { from, to } => {
                    self.copy(from, to, now, |_, _| false);
                }
                Step::Erase { stripe } => {
                    self.lanes.erase(now);
                    self.work.erased.push(stripe);
                }
            }
        }
        self.steps = steps;
        let per_page = self.shape.sectors_per_page;
        let there =
            self.copy(old, new, now, |cache, page| cache.had(taken, page * per_page, per_page));
        let last = self.underway.back().copied().unwrap_or(0);
        self.underway.push_back(there.max(last));
    }

    /// Programs a unit to the slot `to`; pages that are not `at_hand` are read from the slot
    /// `from`. Returns when it is done.
    fn copy(&mut self, from: u32, to: u32, now: u64, at_hand: impl Fn(&Cache, u32) -> bool) -> u64 {
        let mut end = now;
        for page in 0..self.shape.pages_per_unit {
            let mut ready = now;
            if !at_hand(&self.cache, page) {
                ready = self.lanes.read(self.shape.chip(from, page), now);
                self.work.moved.read += self.shape.page_bytes;
            }
            end = end.max(self.lanes.program(self.shape.chip(to, page), now, ready));
        }
        self.work.moved.programmed += self.shape.unit_bytes;
        end
    }
}

impl Shape {
    fn of(figures: &SolidState, sectors: &SectorGeometry) -> Self {
        // All of these fit, or the figures were refused.
        let page = u64::from(figures.page_bytes);
        let unit = figures.mapping_unit_bytes;
        let lines = (figures.write_cache_bytes / unit) as u16;
        Shape {
            sector_bytes: u64::from(sectors.sector_bytes()),
            page_bytes: page,
            unit_bytes: unit,
            units_per_stripe: figures.units_per_stripe() as u32,
            sectors_per_page: figures.page_bytes / sectors.sector_bytes(),
            pages_per_unit: (unit / page) as u32,
            chips: figures.chips(),
            lines,
            lines_underway: (lines / LINES_PER_UNDERWAY).max(1),
        }
    }

    /// The chip of page `page` of the unit in a slot. Units follow each other over the chips.
    const fn chip(&self, slot: u32, page: u32) -> usize {
        let within = (slot % self.units_per_stripe) as u64;
        ((within * self.pages_per_unit as u64 + page as u64) % self.chips) as usize
    }

    /// Splits a run at the borders of units.
    fn pieces(&self, run: Run) -> impl Iterator<Item = Piece> + use<> {
        let (unit_bytes, end) = (self.unit_bytes, run.start + run.bytes);
        let mut at = run.start;
        std::iter::from_fn(move || {
            let unit = at / unit_bytes;
            let to = end.min((unit + 1) * unit_bytes);
            let from = std::mem::replace(&mut at, to);
            let start = unit * unit_bytes;
            (from < to).then_some(Piece { unit: unit as u32, from: from - start, to: to - start })
        })
    }
}

#[cfg(test)]
mod tests;
