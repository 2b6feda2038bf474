//! What a file or its disk can do, by plain direct I/O: the rates that those of trees on
//! `file:` are relative to.
//!
//! `cargo run --release -p flashtree-lab --example probe -- FILE [MEGABYTES]`
//!
//! It makes FILE, which must not exist, with 256 MB (or MEGABYTES), and takes it away. Nothing of
//! flashtree is between it and the system. It writes and reads FILE from end to end in requests of
//! 512 KiB, then reads and writes 4 KiB at random places, one at a time, and reads 32 at a time, by
//! as many threads. It prints JSON: rates, latencies of one request at a time, and the bytes that
//! the system counts (`/proc/self/io`), which tell whether the page cache was left out.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::OFlags;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const LONG: usize = 512 << 10;
const SHORT: usize = 4 << 10;
const AT_ONCE: u64 = 32;
/// How long random requests of one kind are made.
const RANDOM: Duration = Duration::from_secs(3);

fn main() -> Outcome<()> {
    let usage = "usage: probe FILE [MEGABYTES]";
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or(usage)?);
    let megabytes: u64 = match arguments.next() {
        Some(text) => text.to_str().ok_or(usage)?.parse()?,
        None => 256,
    };
    let requests = (megabytes * 1_000_000 / LONG as u64).max(1);
    let (file, is_direct) = make(&path)?;
    let outcome = probe(&Arc::new(file), requests);
    fs::remove_file(&path)?;
    let mut figures = outcome?;
    figures["direct"] = json!(is_direct);
    println!("{figures:#}");
    Ok(())
}

/// A new file, and whether it can be moved directly.
fn make(path: &Path) -> Outcome<(File, bool)> {
    let open = |flags: OFlags| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags.bits().cast_signed());
        options
    };
    open(OFlags::empty()).create_new(true).open(path)?;
    match open(OFlags::DIRECT).open(path) {
        Ok(file) => Ok((file, true)),
        Err(_) => Ok((open(OFlags::empty()).open(path)?, false)),
    }
}

fn probe(file: &Arc<File>, requests: u64) -> Outcome<Value> {
    let bytes = requests * LONG as u64;
    let rate = |time: Duration| (bytes as f64 / 1e6 / time.as_secs_f64()).round();
    let counted = system_bytes();
    let written = long_requests(requests, |memory, at| file.write_all_at(memory, at))?;
    let start = Instant::now();
    file.sync_data()?;
    let written = written + start.elapsed();
    let system_written = moved(counted, "write_bytes");
    let counted = system_bytes();
    let read = long_requests(requests, |memory, at| file.read_exact_at(memory, at))?;
    let system_read = moved(counted, "read_bytes");
    let places = bytes / SHORT as u64;
    let reads = random(places, 1, |memory, at| file.read_exact_at(memory, at))?;
    let writes = random(places, 2, |memory, at| file.write_all_at(memory, at))?;
    let helpers: Vec<_> = (0..AT_ONCE)
        .map(|seed| {
            let file = Arc::clone(file);
            std::thread::spawn(move || {
                random(places, 3 + seed, |memory, at| file.read_exact_at(memory, at))
            })
        })
        .collect();
    let mut at_once = 0.0;
    for helper in helpers {
        at_once += helper.join().map_err(|_| "a thread broke off")??.per_second;
    }
    Ok(json!({
        "bytes": bytes,
        "sequential_write_mb_per_second": rate(written),
        "sequential_read_mb_per_second": rate(read),
        "system_bytes_written": system_written,
        "system_bytes_read": system_read,
        "random_reads_per_second": reads.per_second.round(),
        "random_read_us": reads.latency_us,
        "random_reads_32_at_once_per_second": at_once.round(),
        "random_writes_per_second": writes.per_second.round(),
        "random_write_us": writes.latency_us,
    }))
}

/// Memory as direct I/O wants it.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
}

impl Memory {
    fn new(length: usize) -> Self {
        let bytes = vec![0x5A; length + SHORT];
        let start = bytes.as_ptr().align_offset(SHORT);
        Memory { bytes, start }
    }

    fn get(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Moves all of the file in its order; returns how long that takes.
fn long_requests(
    requests: u64,
    act: impl Fn(&mut [u8], u64) -> std::io::Result<()>,
) -> Outcome<Duration> {
    let mut memory = Memory::new(LONG);
    let start = Instant::now();
    for request in 0..requests {
        act(memory.get(LONG), request * LONG as u64)?;
    }
    Ok(start.elapsed())
}

/// What random requests took.
struct Random {
    per_second: f64,
    latency_us: Value,
}

/// What takes longer counts as this.
const SLOWEST_NS: u64 = 60_000_000_000;

/// Moves pages at random places for a while.
fn random(
    places: u64,
    seed: u64,
    act: impl Fn(&mut [u8], u64) -> std::io::Result<()>,
) -> Outcome<Random> {
    let mut memory = Memory::new(SHORT);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut latency_ns: Histogram<u64> = Histogram::new_with_bounds(1, SLOWEST_NS, 3)?;
    let start = Instant::now();
    while start.elapsed() < RANDOM {
        let at = random.random_range(0..places) * SHORT as u64;
        let begun = Instant::now();
        act(memory.get(SHORT), at)?;
        latency_ns.saturating_record(u64::try_from(begun.elapsed().as_nanos())?);
    }
    let per_second = latency_ns.len() as f64 / start.elapsed().as_secs_f64();
    let at = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1000.0;
    let latency_us = json!({
        "p50": at(0.5),
        "p99": at(0.99),
        "p99_9": at(0.999),
        "p99_99": at(0.9999),
        "max": latency_ns.max() as f64 / 1000.0,
    });
    Ok(Random { per_second, latency_us })
}

/// What the system counts for this process.
fn system_bytes() -> String {
    fs::read_to_string("/proc/self/io").unwrap_or_default()
}

/// What was added to one of its counts; nothing where there is none.
fn moved(before: String, name: &str) -> Option<u64> {
    let count = |text: String| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name)?.1.parse::<u64>().ok()
    };
    Some(count(system_bytes())? - count(before)?)
}
