//! The simulated disk.

use device::{
    Block, Cause, Charge, DiskCosts, Error, FlashBytes, Meter, Operation, Request, Result, Sector,
    SectorGeometry, Sectors, SolidState,
};

use super::HardDisk;
use super::drive::Drive;
use super::faulty::{Faulty, Verdict};
use super::plan::DiskFaultPlan;
use super::store::Store;
use super::timing::{Direction, Run, Timing};
use crate::faults::schedule::{Clock, Counts};
use crate::faults::{FaultKind, FaultLog};

/// A disk in memory, with the costs and the books of a real one.
///
/// Its requests cost what [`DiskCosts`] say, what a [`HardDisk`] takes, or what follows from the
/// state of a [`SolidState`] drive. The requests of one read are served and charged one after the
/// other, in their order; a drive takes as many at once as its figures say. A part of a sector
/// counts as one page, a request that touches n sectors as n. Trims cost nothing, and flushes only
/// on a drive: no source gives a figure for the others. A request of no bytes is none.
///
/// The meter of a drive also has the bytes that its flash moved, and the erases of each
/// **stripe**: the blocks of one number on all chips, which are erased together.
///
/// It takes memory only for sectors that hold data, a few KiB at a time.
///
/// # Faults
///
/// With a [plan](DiskFaultPlan) the disk remembers what was not flushed, and a power cut loses,
/// keeps or tears it. Without one [`cut_power`](SimulatedDisk::cut_power) keeps everything. After
/// a cut every operation returns [`Error::PowerCut`] until the
/// [power is back](SimulatedDisk::restore_power). A copy of a disk behaves as the disk does.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    geometry: SectorGeometry,
    timing: Timing,
    store: Store,
    meter: Meter,
    clock: Clock,
    faulty: Option<Box<Faulty>>,
}

impl SimulatedDisk {
    /// A disk of zeros whose requests cost what `costs` say. A request is sequential if it starts
    /// where the one before of its kind, read or write, ended; the first of all is random.
    #[must_use]
    pub fn new(geometry: SectorGeometry, costs: DiskCosts) -> Self {
        SimulatedDisk::with_timing(geometry, Timing::of_costs(costs, geometry.sector_bytes()))
    }

    /// A disk of zeros with an arm and platters. The geometry may be smaller than the drive.
    #[must_use]
    pub fn hard(geometry: SectorGeometry, disk: HardDisk) -> Self {
        SimulatedDisk::with_timing(geometry, Timing::of_hard_disk(disk))
    }

    /// A disk of zeros that is a solid-state drive. The geometry may be smaller than the drive.
    ///
    /// # Errors
    /// The figures make no drive, or not one with these sectors.
    pub fn solid_state(geometry: SectorGeometry, drive: SolidState) -> Result<Self> {
        let drive = Drive::new(drive, &geometry)?;
        let meter = Meter::new(drive.stripes(), false);
        let mut disk = SimulatedDisk::with_timing(geometry, Timing::Drive(Box::new(drive)));
        disk.meter = meter;
        disk.meter.book_flash(FlashBytes::default());
        Ok(disk)
    }

    fn with_timing(geometry: SectorGeometry, timing: Timing) -> Self {
        SimulatedDisk {
            geometry,
            store: Store::new(&geometry),
            meter: Meter::new(0, timing.energy_known()),
            timing,
            clock: Clock::idle(),
            faulty: None,
        }
    }

    /// The same disk with a plan of faults.
    #[must_use]
    pub fn with_faults(mut self, plan: DiskFaultPlan) -> Self {
        self.arm(plan);
        self
    }

    /// Takes `plan` in place of the one before and counts operations from 0 again. What the disk
    /// holds counts as flushed. Unreadable sectors stay so, and so does the state of the power.
    pub fn arm(&mut self, plan: DiskFaultPlan) {
        self.clock = Clock::idle();
        let faulty = Faulty::new(plan).follow(self.faulty.as_deref());
        self.faulty = Some(Box::new(faulty));
        self.look_ahead();
    }

    /// Cuts the power now, between two operations.
    pub fn cut_power(&mut self) {
        let faulty =
            self.faulty.get_or_insert_with(|| Box::new(Faulty::new(DiskFaultPlan::default())));
        faulty.lose_power(&mut self.store);
        self.look_ahead();
    }

    /// Gives the power back; the plan goes on.
    pub fn restore_power(&mut self) {
        if let Some(faulty) = &mut self.faulty {
            faulty.regain_power();
        }
        self.look_ahead();
    }

    /// True if the power was cut and is not back.
    #[must_use]
    pub fn is_without_power(&self) -> bool {
        self.faulty.as_ref().is_some_and(|faulty| !faulty.has_power())
    }

    /// The faults that happened so far, under all plans.
    #[must_use]
    pub fn faults(&self) -> FaultLog {
        self.faulty.as_ref().map_or_else(FaultLog::default, |faulty| faulty.log())
    }

    /// Operations that reached the disk since the plan was armed, or since the disk was made.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.clock.operations()
    }

    /// Writes, trims and flushes among them.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.clock.changes()
    }

    /// Bytes of memory for sectors that hold data.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.store.memory()
    }

    fn look_ahead(&mut self) {
        if let Some(faulty) = self.faulty.as_deref() {
            self.clock.look_at(faulty.next_event(&self.clock));
        }
    }

    /// `error`, unless nothing can be told without power.
    fn power_or(&self, error: Error) -> Error {
        if self.is_without_power() { Error::PowerCut } else { error }
    }

    /// Looks closer at the operation that was just counted.
    #[cold]
    fn verdict(&mut self, direction: Option<Direction>, counts: Counts) -> Result<Verdict> {
        let Some(faulty) = self.faulty.as_deref_mut() else { return Ok(Verdict::Proceed) };
        if !faulty.has_power() {
            self.clock.take_back(counts);
            return Err(Error::PowerCut);
        }
        let verdict = faulty.verdict(direction, counts, &self.clock);
        self.look_ahead();
        Ok(verdict)
    }

    /// Counts a change; tells what happens to it.
    fn change(&mut self, direction: Option<Direction>) -> Result<Verdict> {
        if self.clock.change() {
            return self.verdict(direction, Counts::AsChange);
        }
        Ok(Verdict::Proceed)
    }

    fn lose_power(&mut self) -> Error {
        self.cut_power();
        Error::PowerCut
    }

    fn run(&self, first: Sector, offset: u32, bytes: usize) -> Run {
        let sector_bytes = u64::from(self.geometry.sector_bytes());
        let start = first.0 * sector_bytes + u64::from(offset);
        let bytes = bytes as u64;
        let sectors = (start + bytes).div_ceil(sector_bytes) - start / sector_bytes;
        Run { start, bytes, sectors }
    }

    /// Books a request of a call that began at device time `issued_ns`.
    fn book(&mut self, direction: Direction, run: Run, cause: Cause, issued_ns: u64) {
        let charge = self.timing.charge(direction, run, issued_ns, self.meter.time_ns());
        let operation = match direction {
            Direction::Read => Operation::Read,
            Direction::Write => Operation::Program,
        };
        self.meter.book(operation, cause, run.sectors, run.bytes, charge);
        self.book_flash(cause);
    }

    /// Books what the flash of a drive did.
    fn book_flash(&mut self, cause: Cause) {
        let Some(drive) = self.timing.drive() else { return };
        let blocks = drive.blocks_per_stripe();
        let work = drive.work();
        self.meter.book_flash(std::mem::take(&mut work.moved));
        for stripe in work.erased.drain(..) {
            self.meter.wear(Block(stripe));
            self.meter.book(Operation::Erase, cause, blocks, 0, Charge::default());
        }
    }

    fn serve(&mut self, request: &mut Request<'_>, cause: Cause, issued_ns: u64) -> Result<()> {
        if request.into.is_empty() {
            return Ok(());
        }
        let mut verdict = Verdict::Proceed;
        if self.clock.read() {
            verdict = self.verdict(Some(Direction::Read), Counts::AsRead)?;
        }
        let run = self.run(request.first, request.offset, request.into.len());
        self.book(Direction::Read, run, cause, issued_ns);
        if verdict == Verdict::Cut {
            return Err(self.lose_power());
        }
        if let Some(faulty) = self.faulty.as_deref_mut() {
            let first = run.start / u64::from(self.geometry.sector_bytes());
            if verdict == Verdict::Fail || faulty.is_unreadable(first, run.sectors) {
                return Err(faulty.failure(FaultKind::SectorUnreadable));
            }
        }
        self.store.read(run.start, request.into);
        Ok(())
    }

    fn check_trim(&self, first: Sector, count: u64) -> Result<()> {
        self.geometry.check_bytes(first, 0, 0)?;
        if count > self.geometry.sectors() - first.0 {
            let sectors = self.geometry.sectors();
            return Err(Error::NoSuchSector { sector: Sector(sectors), sectors });
        }
        Ok(())
    }
}

impl Sectors for SimulatedDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        for request in requests.iter() {
            self.geometry
                .check_bytes(request.first, request.offset, request.into.len())
                .map_err(|error| self.power_or(error))?;
        }
        let issued_ns = self.meter.time_ns();
        requests.iter_mut().try_for_each(|request| self.serve(request, cause, issued_ns))
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.geometry.check_run(first, from.len()).map_err(|error| self.power_or(error))?;
        if from.is_empty() {
            return Ok(());
        }
        let verdict = self.change(Some(Direction::Write))?;
        let run = self.run(first, 0, from.len());
        self.book(Direction::Write, run, cause, self.meter.time_ns());
        if let Some(faulty) = self.faulty.as_deref_mut() {
            faulty.before_write(&self.store, first.0, from);
        }
        self.store.write(run.start, from);
        let Some(faulty) = self.faulty.as_deref_mut() else { return Ok(()) };
        match verdict {
            Verdict::Proceed => Ok(()),
            Verdict::Fail => {
                faulty.fail_write(&mut self.store, first.0, run.sectors);
                Err(faulty.failure(FaultKind::FailedWrite))
            }
            Verdict::Cut => {
                faulty.tear(first.0, run.sectors);
                Err(self.lose_power())
            }
        }
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        self.check_trim(first, count).map_err(|error| self.power_or(error))?;
        let verdict = self.change(None)?;
        match self.faulty.as_deref_mut() {
            Some(faulty) => faulty.trim(&mut self.store, first.0, count),
            None => self.store.clear(first.0, count),
        }
        if verdict == Verdict::Cut { Err(self.lose_power()) } else { Ok(()) }
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        if self.change(None)? == Verdict::Cut {
            return Err(self.lose_power());
        }
        let charge = self.timing.charge_flush(self.meter.time_ns());
        self.meter.book(Operation::Program, cause, 0, 0, charge);
        self.book_flash(cause);
        if let Some(faulty) = self.faulty.as_deref_mut() {
            faulty.flush();
        }
        Ok(())
    }

    fn meter(&self) -> Option<&Meter> {
        Some(&self.meter)
    }

    fn costs(&self) -> Option<DiskCosts> {
        self.timing.costs()
    }
}
