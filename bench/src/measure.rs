//! The phases of a run, each in its bounds of time, each a line of JSON.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::Outcome;
use crate::engine::{Engine, Kind, Setup};
use crate::system::{self, Moved};
use crate::workload::{Batch, Present, Random, Workload};

/// Entries of a batch, and of a scan.
const BATCH: u64 = 1000;
const SCAN: usize = 100;

/// Reading needs less time than writing to come to a steady rate.
const READING_SHARE: u32 = 4;
/// Putting in what the first phase had no time for may take this many times as long.
const FILL_TIMES: u32 = 6;
/// Background work may take this many times as long as the phase that made it.
const SETTLE_TIMES: u32 = 3;

/// What is run.
#[derive(Debug)]
pub struct Plan {
    /// The entries.
    pub workload: Workload,
    /// How the store is opened.
    pub setup: Setup,
    /// The longest that writing takes.
    pub limit: Duration,
    /// An empty folder.
    pub folder: PathBuf,
}

/// Runs all phases on `kind`, and hands each one's figures to `say`.
///
/// # Errors
/// What the store says, and values that are not those that were put.
pub fn run(kind: Kind, plan: &Plan, say: &mut dyn FnMut(Value)) -> Outcome<()> {
    say(json!({
        "phase": "settings",
        "package": kind.package,
        "version": kind.version(),
        "settings": (kind.settings)(&plan.setup),
    }));
    if plan.setup.synced && !kind.lasts {
        return Err("it has no commits that last".into());
    }
    let mut run = Run::new(kind, plan)?;
    say(run.load()?);
    say(run.fill()?);
    say(run.overwrite()?);
    say(run.reopen()?);
    say(run.gets()?);
    say(run.mixed()?);
    say(run.scans()?);
    if kind.lasts {
        say(run.commits()?);
    }
    run.close()?;
    say(json!({ "phase": "memory", "peak_bytes": system::peak_memory()? }));
    Ok(())
}

struct Run<'p> {
    kind: Kind,
    plan: &'p Plan,
    /// None between closing and opening.
    engine: Option<Box<dyn Engine>>,
    present: Present,
    random: Random,
    batch: Batch,
    /// The version of the last value that was put.
    version: u32,
    /// How long the engine went on by itself after the phases so far.
    waited: Duration,
    settled: bool,
}

impl<'p> Run<'p> {
    fn new(kind: Kind, plan: &'p Plan) -> Outcome<Self> {
        Ok(Run {
            kind,
            plan,
            engine: Some((kind.open)(&plan.folder, &plan.setup)?),
            present: Present::none_of(plan.workload.entries),
            random: Random(1),
            batch: Batch::new(plan.workload),
            version: 0,
            waited: Duration::ZERO,
            settled: true,
        })
    }

    fn entries(&self) -> u64 {
        self.plan.workload.entries
    }

    fn close(&mut self) -> Outcome<()> {
        self.engine.take().map_or(Ok(()), Engine::close)
    }

    /// Puts what is in the batch.
    fn put(&mut self, durable: bool) -> Outcome<()> {
        open(&mut self.engine)?.put(&self.batch, durable)
    }

    /// All entries in random order, as far as time allows.
    fn load(&mut self) -> Outcome<Value> {
        let workload = self.plan.workload;
        let mut figures = self.write("load", |run, at| {
            let number = workload.in_random_order(at);
            run.present.add(number);
            number
        })?;
        figures["entries"] = json!(self.entries());
        Ok(figures)
    }

    /// What was not loaded, in the order of the keys, so that all are measured on as many entries.
    fn fill(&mut self) -> Outcome<Value> {
        let (start, limit) = (Instant::now(), self.plan.limit * FILL_TIMES);
        let mut number = 0;
        while number < self.entries() && start.elapsed() < limit {
            self.batch.clear();
            while number < self.entries() && (self.batch.len() as u64) < 10 * BATCH {
                if !self.present.has(number) {
                    self.present.add(number);
                    self.batch.add(number, 0);
                }
                number += 1;
            }
            if !self.batch.is_empty() {
                self.put(false)?;
            }
        }
        open(&mut self.engine)?.sync()?;
        let seconds = start.elapsed().as_secs_f64();
        self.settle()?;
        Ok(json!({ "phase": "fill", "seconds": seconds, "entries": self.present.count() }))
    }

    fn overwrite(&mut self) -> Outcome<Value> {
        self.waited = Duration::ZERO;
        self.write("overwrite", |run, _| run.present.any(&mut run.random))
    }

    /// Batches of the entries that `next` names, as many as there are entries or time allows; then
    /// all that follows from them. The rate is that of the batches, the bytes are those of all.
    fn write(
        &mut self,
        phase: &str,
        mut next: impl FnMut(&mut Self, u64) -> u64,
    ) -> Outcome<Value> {
        let (before, start) = (Moved::so_far()?, Instant::now());
        let mut done = 0;
        while done < self.entries() && start.elapsed() < self.plan.limit {
            self.batch.clear();
            self.version += 1;
            let end = (done + BATCH).min(self.entries());
            for at in done..end {
                let number = next(self, at);
                self.batch.add(number, self.version);
            }
            self.put(self.plan.setup.synced)?;
            done = end;
        }
        let seconds = start.elapsed().as_secs_f64();
        let syncing = Instant::now();
        open(&mut self.engine)?.sync()?;
        self.waited += syncing.elapsed();
        self.settle()?;
        let bytes = done * self.plan.workload.shape.bytes() as u64;
        let moved = before.since()?;
        Ok(json!({
            "phase": phase,
            "done": done,
            "is_cut": done < self.entries(),
            "seconds": seconds,
            "per_second": done as f64 / seconds,
            "bytes_written": moved.written,
            "bytes_read": moved.read,
            "write_amplification": moved.written as f64 / bytes as f64,
            "wait_seconds": self.waited.as_secs_f64(),
            "is_settled": self.settled,
        }))
    }

    fn settle(&mut self) -> Outcome<()> {
        if self.kind.background {
            let (busy, settled) = system::wait_until_quiet(self.plan.limit * SETTLE_TIMES)?;
            self.waited += busy;
            self.settled &= settled;
        }
        Ok(())
    }

    /// Closes and opens, so that all start reading from what they have on the disk.
    fn reopen(&mut self) -> Outcome<Value> {
        let Plan { folder, setup, workload, .. } = self.plan;
        let closing = Instant::now();
        if self.kind.lasts {
            self.close()?;
        }
        let closing = closing.elapsed();
        let taken = system::bytes_taken(folder)?;
        let peak = system::peak_memory()?;
        let opening = Instant::now();
        if self.kind.lasts {
            self.engine = Some((self.kind.open)(folder, setup)?);
        }
        let bytes = self.present.count() * workload.shape.bytes() as u64;
        Ok(json!({
            "phase": "reopen",
            "close_seconds": closing.as_secs_f64(),
            "open_seconds": opening.elapsed().as_secs_f64(),
            "wait_seconds": (self.waited + closing).as_secs_f64(),
            "is_settled": self.settled,
            "peak_bytes": peak,
            "bytes_taken": taken,
            "space": taken as f64 / bytes as f64,
        }))
    }

    fn gets(&mut self) -> Outcome<Value> {
        self.repeat("gets", Self::get)
    }

    fn get(&mut self) -> Outcome<()> {
        let workload = self.plan.workload;
        let number = self.present.any(&mut self.random);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        workload.key(number, &mut key);
        match open(&mut self.engine)?.get(&key, &mut value)? && workload.is_value_of(number, &value)
        {
            true => Ok(()),
            false => Err(format!("entry {number} is lost").into()),
        }
    }

    fn update(&mut self, durable: bool) -> Outcome<()> {
        self.version += 1;
        self.batch.clear();
        let number = self.present.any(&mut self.random);
        self.batch.add(number, self.version);
        self.put(durable)
    }

    /// A get, an update, in turn.
    fn mixed(&mut self) -> Outcome<Value> {
        let mut latency_ns = Histogram::<u64>::new_with_bounds(1, 600_000_000_000, 3)?;
        let durable = self.plan.setup.synced;
        let mut figures = self.repeat("mixed", |run| {
            run.get()?;
            let start = Instant::now();
            run.update(durable)?;
            latency_ns.saturating_record(start.elapsed().as_nanos() as u64);
            Ok(())
        })?;
        // Both of the two are counted.
        figures["per_second"] = json!(figures["per_second"].as_f64().unwrap_or(0.0) * 2.0);
        let at = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1000.0;
        figures["update_us"] = json!({
            "p50": at(0.5),
            "p99_9": at(0.999),
            "p99_99": at(0.9999),
            "max": latency_ns.max() as f64 / 1000.0,
        });
        Ok(figures)
    }

    fn scans(&mut self) -> Outcome<Value> {
        let workload = self.plan.workload;
        self.repeat("scans", |run| {
            let number = run.present.any(&mut run.random);
            let mut key = Vec::new();
            workload.key(number, &mut key);
            let (mut seen, mut last) = (0, Vec::new());
            open(&mut run.engine)?.scan(&key, SCAN, &mut |key, _| {
                seen += usize::from(key > last.as_slice());
                last.clear();
                last.extend_from_slice(key);
            })?;
            // At the end of the keys there are fewer, and where some are missing that is anywhere.
            let is_near_end =
                number + SCAN as u64 > workload.entries || run.present.count() < workload.entries;
            match seen == SCAN || is_near_end {
                true => Ok(()),
                false => Err(format!("a scan from entry {number} on has {seen}").into()),
            }
        })
    }

    fn commits(&mut self) -> Outcome<Value> {
        self.repeat("commits", |run| run.update(true))
    }

    /// How often `act` can be done in the time for reading.
    fn repeat(
        &mut self,
        phase: &str,
        mut act: impl FnMut(&mut Self) -> Outcome<()>,
    ) -> Outcome<Value> {
        let limit = self.plan.limit / READING_SHARE;
        let (before, start) = (Moved::so_far()?, Instant::now());
        let mut done = 0_u64;
        while start.elapsed() < limit {
            act(self)?;
            done += 1;
        }
        let seconds = start.elapsed().as_secs_f64();
        let moved = before.since()?;
        Ok(json!({
            "phase": phase,
            "done": done,
            "seconds": seconds,
            "per_second": done as f64 / seconds,
            "bytes_read": moved.read,
            "bytes_written": moved.written,
            "reads_each": moved.read as f64 / 4096.0 / done as f64,
        }))
    }
}

fn open(engine: &mut Option<Box<dyn Engine>>) -> Outcome<&mut dyn Engine> {
    match engine {
        Some(engine) => Ok(engine.as_mut()),
        None => Err("the store is closed".into()),
    }
}
