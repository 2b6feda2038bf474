//! What the measured phase cost: from the device's books to a row.

use std::collections::BTreeMap;
use std::time::Duration;

use device::{Cause, Meter, Tally};
use hdrhistogram::{CreationError, Histogram};

use crate::outcome::{Clock, Latency, Measured, Row};

/// The most points of a course.
const WINDOWS_MOST: u64 = 200;

/// The slowest operation that quantiles tell apart: 10,000 seconds of device time.
const SLOWEST_NS: u64 = 10_000_000_000_000;

/// Digits to which quantiles are right.
const DIGITS: u8 = 3;

/// The books of a device at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Books {
    tallies: [Tally; Cause::COUNT],
    /// Bytes that the flash inside a disk programmed.
    flash: Option<u64>,
}

impl Books {
    pub(crate) fn of(meter: Option<&Meter>) -> Self {
        let tally = |cause| meter.map(|meter| *meter.tally(cause)).unwrap_or_default();
        let flash = meter.and_then(Meter::flash).map(|moved| moved.programmed);
        Books { tallies: Cause::ALL.map(tally), flash }
    }

    fn since(self, earlier: Books) -> Books {
        let mut difference = self;
        for (tally, earlier) in difference.tallies.iter_mut().zip(earlier.tallies) {
            *tally = *tally - earlier;
        }
        difference.flash = self.flash.map(|bytes| bytes - earlier.flash.unwrap_or(0));
        difference
    }
}

/// Time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// What the device booked.
    pub(crate) device_ns: u64,
    /// What counts as the time of an operation: the same, or the time by the clock of the wall.
    pub(crate) latency_ns: u64,
}

impl Spent {
    pub(crate) const fn since(self, earlier: Spent) -> Spent {
        Spent {
            device_ns: self.device_ns - earlier.device_ns,
            latency_ns: self.latency_ns - earlier.latency_ns,
        }
    }
}

/// Takes notes of single operations. Makes no allocation for any of them.
#[derive(Debug)]
pub(crate) struct Recorder {
    latency_ns: Histogram<u64>,
    slowest_ns: u64,
    operations: u64,
    planned: u64,
    windows: u64,
    window_ns: u64,
    window_start: u64,
    window_end: u64,
    course_us: Vec<f64>,
    bytes_updated: u64,
}

impl Recorder {
    /// For `planned` operations.
    pub(crate) fn new(planned: u64) -> Result<Self, CreationError> {
        let windows = planned.min(WINDOWS_MOST);
        Ok(Recorder {
            latency_ns: Histogram::new_with_bounds(1, SLOWEST_NS, DIGITS)?,
            slowest_ns: 0,
            operations: 0,
            planned,
            windows,
            window_ns: 0,
            window_start: 0,
            window_end: planned / windows.max(1),
            course_us: Vec::with_capacity(windows as usize),
            bytes_updated: 0,
        })
    }

    /// How many operations were noted.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// Notes an operation that took `spent`, and put or deleted `bytes` bytes of keys and values.
    pub(crate) fn note(&mut self, spent: Spent, bytes: u64) {
        self.latency_ns.saturating_record(spent.latency_ns);
        self.slowest_ns = self.slowest_ns.max(spent.latency_ns);
        self.operations += 1;
        self.bytes_updated += bytes;
        self.window_ns += spent.device_ns;
        if self.operations == self.window_end {
            self.close_window();
        }
    }

    fn close_window(&mut self) {
        let operations = self.operations - self.window_start;
        if operations == 0 {
            return;
        }
        self.course_us.push(micros(self.window_ns) / operations as f64);
        self.window_ns = 0;
        self.window_start = self.operations;
        let next = self.course_us.len() as u64 + 1;
        // At most 2^40 operations are planned, so the product fits.
        self.window_end = next * self.planned / self.windows.max(1);
    }

    /// Fills in everything that follows from the notes, and from the device's books before and
    /// after.
    pub(crate) fn fill(
        mut self,
        measured: &mut Measured,
        meter: Option<&Meter>,
        before: Books,
        wall: Duration,
    ) {
        self.close_window();
        let row = &mut measured.row;
        row.operations = self.operations;
        let each = self.operations.max(1) as f64;
        let Books { tallies: causes, flash } = Books::of(meter).since(before);
        fill_costs(row, &causes, each);
        if let Some(meter) = meter {
            fill_erases(row, meter, &causes);
            measured.erases_by_block = meter.erases().to_vec();
            let energy_pj: u64 = causes.iter().map(|tally| tally.energy_pj).sum();
            row.energy_uj_per_op = meter.energy_known().then(|| energy_pj as f64 / 1e6 / each);
        }
        row.write_amplification = self.amplification(row.bytes_programmed);
        row.flash_bytes_programmed = flash;
        row.flash_write_amplification = flash.and_then(|bytes| self.amplification(bytes));
        row.wall_seconds = wall.as_secs_f64();
        row.wall_us_per_op = row.wall_seconds * 1e6 / each;
        row.latency_us = self.quantiles(measured.clock);
        measured.course_us_per_op = self.course_us;
    }

    /// `bytes` over the bytes that were put and deleted.
    fn amplification(&self, bytes: u64) -> Option<f64> {
        (self.bytes_updated > 0).then(|| bytes as f64 / self.bytes_updated as f64)
    }

    fn quantiles(&self, clock: Clock) -> Latency {
        // A quantile is the end of its class, which may lie beyond the slowest operation.
        let at =
            |quantile| micros(self.latency_ns.value_at_quantile(quantile).min(self.slowest_ns));
        Latency {
            p50: at(0.5),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: (clock == Clock::Wall).then(|| at(0.9999)),
            max: micros(self.slowest_ns),
        }
    }
}

fn fill_costs(row: &mut Row, causes: &[Tally; Cause::COUNT], each: f64) {
    let mut total = Tally::default();
    for tally in causes {
        total += *tally;
    }
    row.page_reads = total.page_reads;
    row.page_programs = total.page_programs;
    row.bytes_read = total.bytes_read;
    row.bytes_programmed = total.bytes_programmed;
    let by_cause = Cause::ALL.iter().zip(causes);
    row.by_cause = by_cause
        .map(|(cause, tally)| (cause.name().to_string(), micros(tally.time_ns) / each))
        .collect::<BTreeMap<String, f64>>();
    row.device_us_per_op = row.by_cause.values().sum();
}

fn fill_erases(row: &mut Row, meter: &Meter, causes: &[Tally; Cause::COUNT]) {
    let erases = meter.erases();
    let Some(most) = erases.iter().max() else { return };
    let sum: u64 = erases.iter().map(|erases| u64::from(*erases)).sum();
    row.block_erases = Some(causes.iter().map(|tally| tally.block_erases).sum());
    row.erases_most = Some(u64::from(*most));
    row.erases_mean = Some(sum as f64 / erases.len() as f64);
}

/// Nanoseconds as microseconds.
pub(crate) fn micros(time_ns: u64) -> f64 {
    time_ns as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::{Books, Recorder, Spent};
    use crate::outcome::Measured;
    use device::{Block, Cause, Charge, Meter, Operation};
    use std::time::Duration;

    fn recorded(planned: u64, done: u64) -> Measured {
        let mut meter = Meter::new(4, true);
        let charge = Charge { time_ns: 1000, energy_pj: 2_000_000 };
        meter.book(Operation::Program, Cause::Load, 1, 100, charge);
        meter.wear(Block(1));
        let before = Books::of(Some(&meter));
        let mut recorder = Recorder::new(planned).unwrap();
        for operation in 0..done {
            let from = meter.time_ns();
            if operation % 2 == 0 {
                meter.book(Operation::Program, Cause::Flush, 1, 50, charge);
            }
            if operation % 10 == 0 {
                meter.book(Operation::Erase, Cause::Reclamation, 1, 0, charge);
                meter.wear(Block(3));
            }
            let time_ns = meter.time_ns() - from;
            recorder.note(Spent { device_ns: time_ns, latency_ns: time_ns }, 5);
        }
        let mut measured = Measured::default();
        recorder.fill(&mut measured, Some(&meter), before, Duration::from_millis(100));
        measured
    }

    #[test]
    fn a_row_holds_the_measured_phase_alone() {
        let measured = recorded(1000, 1000);
        let row = &measured.row;
        assert_eq!(row.operations, 1000);
        assert_eq!(row.page_programs, 500);
        assert_eq!(row.block_erases, Some(100));
        assert_eq!(row.bytes_programmed, 25_000);
        assert_eq!(row.write_amplification, Some(5.0));
        assert_eq!(row.by_cause["flush"], 0.5);
        assert_eq!(row.by_cause["reclamation"], 0.1);
        assert_eq!(row.by_cause["load"], 0.0);
        assert_eq!(row.device_us_per_op, row.by_cause.values().sum::<f64>());
        assert_eq!(row.energy_uj_per_op, Some(1.2));
        assert_eq!(row.latency_us.max, 2.0);
        assert_eq!((row.erases_most, row.erases_mean), (Some(100), Some(101.0 / 4.0)));
        assert_eq!(measured.erases_by_block, [0, 1, 0, 100]);
        assert_eq!(row.wall_us_per_op, 100.0);
    }

    #[test]
    fn a_course_has_equal_windows_that_add_up() {
        for planned in [1, 7, 199, 200, 201, 1000, 1234] {
            let course = recorded(planned, planned).course_us_per_op;
            assert_eq!(course.len() as u64, planned.min(200), "{planned}");
        }
        let course = recorded(1000, 1000).course_us_per_op;
        let mean = course.iter().sum::<f64>() / course.len() as f64;
        assert!((mean - 0.6).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn a_run_that_ends_early_keeps_what_it_has() {
        let measured = recorded(1000, 503);
        assert_eq!(measured.row.operations, 503);
        assert_eq!(measured.course_us_per_op.len(), 101);
        assert_eq!(recorded(1000, 0).course_us_per_op.len(), 0);
    }
}
