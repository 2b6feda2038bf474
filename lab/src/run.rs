//! One tree's run: load, measure, settle, verify.

use std::ops::Bound;
use std::time::Instant;

use index::{Cursor, Direction, Index, KeyRange, KeyValue, Update, Value};

use crate::candidate::{Candidate, Footing, Storage};
use crate::expected::Expected;
use crate::in_file::SystemBytes;
use crate::outcome::{Clock, Measured, MemoryUse, Row, Verified};
use crate::plan::{MemoryLimit, Phase, Plan, Verify, Watcher};
use crate::recorder::{Books, Recorder, Spent, micros};
use crate::stopwatch::{Stopwatch, Timed};
use crate::workload::{Operation, Operations, Preload, Workload, scatter64};

mod failure;

use failure::{Broken, Failure, MEASURING};

/// One in so many lookups, and so many pieces of the contents, is a sample.
const SAMPLE: u64 = 16;

/// Entries in a piece of the contents.
const PIECE: u64 = 64;

/// Steps between two looks at the watcher.
const STRIDE: u64 = 1024;

/// A tree's part of a comparison.
pub(crate) struct Task<'t> {
    pub(crate) place: usize,
    pub(crate) candidate: &'t Candidate,
    pub(crate) footing: &'t Footing,
    pub(crate) storage: &'t Storage,
    pub(crate) workload: &'t Workload,
    pub(crate) plan: &'t Plan,
    pub(crate) watcher: &'t dyn Watcher,
}

/// Counts steps for the watcher, and stops when it says so.
struct Steps<'t> {
    task: &'t Task<'t>,
    done: u64,
}

impl<'t> Steps<'t> {
    fn begin(task: &'t Task<'t>, phase: Phase, planned: u64) -> Self {
        task.watcher.begin(task.place, &task.candidate.spec, phase, planned);
        Steps { task, done: 0 }
    }

    fn step(&mut self) -> Result<(), Failure> {
        self.done += 1;
        if self.done.is_multiple_of(STRIDE) {
            self.task.watcher.advance(self.task.place, STRIDE);
            if self.task.watcher.cancelled() {
                return Err(Failure::Cancelled);
            }
        }
        Ok(())
    }
}

/// Runs a tree. Whatever happens, there is a row.
pub(crate) fn run(task: &Task<'_>) -> Measured {
    let mut measured = blank(task);
    if let Err(broken) = attempt(task, &mut measured) {
        let entries = (task.workload.loaded(), task.workload.total());
        let instead = broken.total_needed(task.plan.memory, entries);
        let instead = instead.map(|total| format!(", here with --memory-total {total}"));
        measured.row.error = Some(format!("{broken}{}", instead.unwrap_or_default()));
    }
    task.watcher.finish(task.place);
    measured
}

/// What there is of a tree that did nothing yet.
pub(crate) fn blank(task: &Task<'_>) -> Measured {
    let ftl = task.footing.ftl.clone();
    let memory_bytes = task.footing.options.memory_bytes;
    let row = Row { ftl, memory_bytes, ..blank_row(task.plan, &task.candidate.spec) };
    Measured { row, clock: task.storage.model.clock(), ..Measured::default() }
}

/// The row of a tree called `spec` that did nothing.
pub(crate) fn blank_row(plan: &Plan, spec: &str) -> Row {
    let (memory_bytes, memory_total_bytes) = match plan.memory {
        MemoryLimit::CachesAndBuffers(bytes) => (bytes, None),
        MemoryLimit::Total(bytes) => (0, Some(bytes)),
    };
    Row {
        tree: spec.to_string(),
        device: plan.device.clone(),
        workload: plan.workload.clone(),
        seed: plan.seed,
        memory_bytes,
        memory_total_bytes,
        durability: plan.durability.to_string(),
        ..Row::default()
    }
}

fn attempt(task: &Task<'_>, measured: &mut Measured) -> Result<(), Broken> {
    let stopped =
        |doing, done, planned, unit| move |failure| Broken { doing, done, planned, unit, failure };
    let index = create(task).map_err(stopped("making it", 0, 1, "steps"))?;
    let mut session = Session {
        task,
        index,
        expected: (task.plan.verify != Verify::Off).then(|| Expected::new(task.workload.shape())),
        value: vec![0; task.workload.longest_value() + 1],
        stopwatch: Stopwatch::new(measured.clock == Clock::Wall),
    };
    let loaded = session.preload();
    session.note_memory(&mut measured.row);
    loaded?;
    session.measure(measured)?;
    let settling = stopped("settling", 0, 1, "steps");
    session.settle(&mut measured.row).map_err(settling)?;
    session.verify()?;
    measured.row.verified = match task.plan.verify {
        Verify::Full => Verified::Full,
        Verify::Sampled => Verified::Sampled,
        Verify::Off => Verified::No,
    };
    Ok(())
}

fn create(task: &Task<'_>) -> Result<Box<dyn Index>, Failure> {
    let device = task.storage.model.make()?;
    Ok(task.candidate.create(device, task.storage, task.footing)?)
}

/// An index at work, and what it should hold.
struct Session<'t> {
    task: &'t Task<'t>,
    index: Box<dyn Index>,
    expected: Option<Expected>,
    /// Where gets put values: longer than any, so that one that is too long is seen.
    value: Vec<u8>,
    stopwatch: Stopwatch,
}

impl Session<'_> {
    fn time_ns(&self) -> u64 {
        self.index.meter().map_or(0, device::Meter::time_ns)
    }

    /// Time that operations took until now.
    fn spent(&self) -> Spent {
        let device_ns = self.time_ns();
        Spent { device_ns, latency_ns: self.stopwatch.total_ns().unwrap_or(device_ns) }
    }

    fn preload(&mut self) -> Result<(), Broken> {
        let planned = self.task.workload.loaded();
        if planned == 0 {
            return Ok(());
        }
        let mut loading = Loading {
            entries: self.task.workload.preload(),
            expected: self.expected.as_mut(),
            steps: Steps::begin(self.task, Phase::Preload, planned),
            stopped: None,
        };
        let outcome = self.index.load(&mut loading, self.task.footing.fill_percent);
        let done = loading.steps.done;
        let outcome = match (loading.stopped, outcome) {
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(loaded)) if loaded != planned => Err(Failure::Lost { loaded }),
            (None, Ok(_)) => Ok(()),
        };
        let (doing, unit) = ("loading", "entries");
        outcome.map_err(|failure| Broken { doing, done, planned, unit, failure })
    }

    /// Runs the measured operations. What they cost until then is in the row after a failure too.
    fn measure(&mut self, measured: &mut Measured) -> Result<(), Broken> {
        let planned = self.task.workload.total();
        let stopped =
            |done, failure| Broken { doing: MEASURING, done, planned, unit: "operations", failure };
        let mut operations = self.task.workload.operations();
        self.begin(&mut operations).map_err(|failure| stopped(0, failure))?;
        let mut recorder = Recorder::new(planned).map_err(|error| stopped(0, error.into()))?;
        let before = Books::of(self.index.meter());
        let system = self.system_bytes();
        let started = Instant::now();
        let outcome = self.operate(&mut operations, &mut recorder);
        let wall = started.elapsed();
        let done = recorder.operations();
        recorder.fill(measured, self.index.meter(), before, wall);
        if let (Some(before), Some(after)) = (system, self.system_bytes()) {
            let moved = after.since(before);
            measured.row.system_bytes_read = Some(moved.read);
            measured.row.system_bytes_written = Some(moved.written);
        }
        self.note_memory(&mut measured.row);
        outcome.map_err(|failure| stopped(done, failure))
    }

    /// What the system counts, where it is of this tree's file: one tree runs at a time there.
    fn system_bytes(&self) -> Option<SystemBytes> {
        let is_real = self.task.storage.model.clock() == Clock::Wall;
        is_real.then(SystemBytes::now).flatten()
    }

    /// Makes the operations that come before the measured ones.
    fn begin(&mut self, operations: &mut Operations<'_>) -> Result<(), Failure> {
        let before = self.task.workload.before();
        if before == 0 {
            return Ok(());
        }
        let mut steps = Steps::begin(self.task, Phase::Preload, before);
        while steps.done < before {
            let Some(operation) = operations.next() else { break };
            self.perform(operation, steps.done)?;
            steps.step()?;
        }
        Ok(())
    }

    fn operate(
        &mut self,
        operations: &mut Operations<'_>,
        recorder: &mut Recorder,
    ) -> Result<(), Failure> {
        let mut steps = Steps::begin(self.task, Phase::Run, self.task.workload.total());
        while let Some(operation) = operations.next() {
            let from = self.spent();
            let bytes = self.perform(operation, steps.done)?;
            recorder.note(self.spent().since(from), bytes);
            steps.step()?;
        }
        Ok(())
    }

    /// Does one operation and compares its answer; returns the bytes that it put or deleted.
    fn perform(&mut self, operation: Operation<'_>, number: u64) -> Result<u64, Failure> {
        match operation {
            Operation::Put { key, value } => {
                self.update(Update::Put { key, value })?;
                if let Some(expected) = &mut self.expected {
                    expected.put(key, value);
                }
                Ok((key.len() + value.len()) as u64)
            }
            Operation::Delete { key } => {
                self.update(Update::Delete { key })?;
                if let Some(expected) = &mut self.expected {
                    expected.delete(key);
                }
                Ok(key.len() as u64)
            }
            Operation::Get { key } => {
                let Session { index, value, stopwatch, .. } = self;
                let length = stopwatch.time(|| index.get(key, 0, value))?;
                if let Some(expected) = self.expected_at(number) {
                    expected.check_get(key, &self.value, length)?;
                }
                Ok(0)
            }
            Operation::Range { from, count, direction } => {
                self.read_range(range_from(from, direction), u64::from(count), number)?;
                Ok(0)
            }
        }
    }

    fn update(&mut self, update: Update<'_>) -> index::Result<()> {
        self.stopwatch.time(|| self.index.update(&[update]))
    }

    fn read_range(&mut self, range: KeyRange<'_>, count: u64, number: u64) -> Result<(), Failure> {
        let checked = self.is_checked(number);
        let Session { index, expected, stopwatch, .. } = self;
        let cursor = stopwatch.time(move || index.range(range))?;
        let mut cursor = Timed { cursor, stopwatch };
        match expected.as_ref().filter(|_| checked) {
            Some(expected) => {
                expected.check_range(range, count, &mut cursor)?;
            }
            None => {
                for _ in 0..count {
                    if cursor.next()?.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the answer of operation `number` is compared.
    fn is_checked(&self, number: u64) -> bool {
        match self.task.plan.verify {
            Verify::Full => true,
            Verify::Sampled => scatter64(number).is_multiple_of(SAMPLE),
            Verify::Off => false,
        }
    }

    fn expected_at(&self, number: u64) -> Option<&Expected> {
        self.expected.as_ref().filter(|_| self.is_checked(number))
    }

    fn note_memory(&self, row: &mut Row) {
        let statistics = self.index.statistics();
        row.height = statistics.height;
        row.live_pages = statistics.live_pages;
        row.peak_memory_bytes = statistics.memory_peak;
        row.memory = MemoryUse {
            cache: statistics.memory.cache,
            buffers: statistics.memory.buffers,
            tables: statistics.memory.tables,
            ftl: self.task.footing.ftl_bytes.map(|bytes| statistics.memory.ftl.max(bytes)),
        };
    }

    /// Closes the index, before anything is verified: reading everything would push out of the
    /// cache what settling has to pay for.
    fn settle(&mut self, row: &mut Row) -> Result<(), Failure> {
        let from = self.time_ns();
        self.index.close()?;
        row.settle_us = micros(self.time_ns() - from);
        row.peak_memory_bytes = row.peak_memory_bytes.max(self.index.statistics().memory_peak);
        let used = row.peak_memory_bytes + row.memory.ftl.unwrap_or(0);
        match self.task.plan.memory {
            MemoryLimit::Total(limit) if used > limit => Err(Failure::Memory { used, limit }),
            _ => Ok(()),
        }
    }

    /// Compares the contents in both directions.
    fn verify(&mut self) -> Result<(), Broken> {
        let Some(expected) = &self.expected else { return Ok(()) };
        let entries = expected.len() as u64;
        let sampled = self.task.plan.verify == Verify::Sampled;
        let planned = if sampled { entries / SAMPLE } else { 2 * entries };
        let mut steps = Steps::begin(self.task, Phase::Verify, planned);
        let outcome = if sampled {
            verify_pieces(&mut *self.index, expected, &mut steps)
        } else {
            [KeyRange::ALL, KeyRange::ALL.reversed()].into_iter().try_for_each(|range| {
                verify_range(&mut *self.index, expected, (range, u64::MAX), &mut steps)
            })
        };
        let (doing, done, unit) = ("verifying", steps.done, "entries");
        outcome.map_err(|failure| Broken { doing, done, planned, unit, failure })
    }
}

/// The range that starts at `from` and goes on to the end in its direction.
fn range_from(from: &[u8], direction: Direction) -> KeyRange<'_> {
    let (from, to) = match direction {
        Direction::Ascending => (Bound::Included(from), Bound::Unbounded),
        Direction::Descending => (Bound::Unbounded, Bound::Included(from)),
    };
    KeyRange { from, to, direction }
}

fn verify_range(
    index: &mut dyn Index,
    expected: &Expected,
    (range, count): (KeyRange<'_>, u64),
    steps: &mut Steps<'_>,
) -> Result<(), Failure> {
    let cursor = index.range(range)?;
    let mut watched = Watched { cursor, steps, stopped: None };
    let outcome = expected.check_range(range, count, &mut watched);
    match watched.stopped {
        Some(failure) => Err(failure),
        None => outcome.map(|_| ()).map_err(Failure::from),
    }
}

/// Compares one piece in `SAMPLE`, in turn upwards and downwards.
fn verify_pieces(
    index: &mut dyn Index,
    expected: &Expected,
    steps: &mut Steps<'_>,
) -> Result<(), Failure> {
    let mut direction = Direction::Ascending;
    for key in expected.every((SAMPLE * PIECE) as usize) {
        verify_range(index, expected, (range_from(&key, direction), PIECE), steps)?;
        direction = KeyRange { direction, ..KeyRange::ALL }.reversed().direction;
    }
    Ok(())
}

/// A cursor that counts steps. If the watcher wants to stop, it ends.
struct Watched<'w, 't, 'c> {
    cursor: Box<dyn Cursor + 'c>,
    steps: &'w mut Steps<'t>,
    stopped: Option<Failure>,
}

impl Cursor for Watched<'_, '_, '_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        if let Err(failure) = self.steps.step() {
            self.stopped = Some(failure);
            return Ok(None);
        }
        self.cursor.next()
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        self.cursor.read_value(offset, into)
    }
}

/// The entries to load; notes what the index should hold from then on.
struct Loading<'w, 't, 'e> {
    entries: Preload<'w>,
    expected: Option<&'e mut Expected>,
    steps: Steps<'t>,
    stopped: Option<Failure>,
}

impl Cursor for Loading<'_, '_, '_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        if let Err(failure) = self.steps.step() {
            self.stopped = Some(failure);
            return Ok(None);
        }
        if let Some(expected) = &mut self.expected {
            expected.put(key, value);
        }
        Ok(Some((key, Value::Inline(value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        self.entries.read_value(offset, into)
    }
}
