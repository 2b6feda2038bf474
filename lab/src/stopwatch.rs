//! Time that calls of an index take by the clock of the wall.

use std::time::{Duration, Instant};

use index::{Cursor, KeyValue};

/// Adds up the time of single calls, without what is compared between them. One that does not run
/// costs nothing.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    runs: bool,
    total: Duration,
}

impl Stopwatch {
    pub(crate) const fn new(runs: bool) -> Self {
        Stopwatch { runs, total: Duration::ZERO }
    }

    /// Does `call` and adds its time.
    pub(crate) fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        if !self.runs {
            return call();
        }
        let start = Instant::now();
        let outcome = call();
        self.total += start.elapsed();
        outcome
    }

    /// The sum in nanoseconds; `None` if it does not run.
    pub(crate) fn total_ns(&self) -> Option<u64> {
        self.runs.then(|| u64::try_from(self.total.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A cursor whose steps are timed.
pub(crate) struct Timed<'s, 'c> {
    pub(crate) cursor: Box<dyn Cursor + 'c>,
    pub(crate) stopwatch: &'s mut Stopwatch,
}

impl Cursor for Timed<'_, '_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        let Timed { cursor, stopwatch } = self;
        stopwatch.time(move || cursor.next())
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        let Timed { cursor, stopwatch } = self;
        stopwatch.time(|| cursor.read_value(offset, into))
    }
}
