//! How fast a disk in a file is beside a plain program that moves the same bytes by direct I/O.
//!
//! `cargo run --release -p flashtree-file --example throughput -- FOLDER [MEGABYTES]`
//!
//! In FOLDER, which should be on a real disk, it makes two files of 1 GB (or of MEGABYTES), moves
//! them in requests of 512 KiB, and then reads 4 KiB at random places, one at a time and 32 at
//! once. Whatever is compared takes turns, many times, so that other work on the machine slows
//! both. It prints JSON and takes its files away.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use device::{Cause, Request, Sector, Sectors};
use flashtree_file::{DiskOptions, EngineChoice, Existing, FileDisk};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatfs};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

const REQUEST: usize = 512 << 10;
const SECTOR: usize = 4096;
/// Requests of one turn.
const TURN: u64 = 32;
/// Random reads of one turn, and how many turns there are.
const READS: usize = 256;
const READ_TURNS: usize = 60;
const AT_ONCE: usize = 32;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: throughput FOLDER [MEGABYTES]")?);
    let megabytes = match arguments.next() {
        Some(text) => text.to_str().ok_or("MEGABYTES is a number")?.parse()?,
        None => 1000_u64,
    };
    let folder = tempfile::tempdir_in(folder)?;
    let requests = (megabytes * 1_000_000).div_ceil(REQUEST as u64).max(1);
    let mut bench = Bench::new(folder.path(), requests)?;
    let sequential = bench.sequential()?;
    drop(bench);
    let mut random = Vec::new();
    for engine in [EngineChoice::Any, EngineChoice::Threads] {
        random.push(random_reads(&folder.path().join("disk"), engine)?);
    }
    println!("{:#}", report(folder.path(), requests, &sequential, &random)?);
    Ok(())
}

/// Memory that starts at a multiple of 4 KiB, or `off` bytes after one.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
}

impl Memory {
    fn new(length: usize, off: usize) -> Self {
        let bytes = vec![0x5A; length + 2 * SECTOR];
        let start = bytes.as_ptr().align_offset(SECTOR) + off;
        Memory { bytes, start }
    }

    fn get(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Time for writing and for reading.
#[derive(Clone, Copy, Default)]
struct Times {
    write: Duration,
    read: Duration,
}

/// What the plain program and the disk took, the disk also from memory that is not aligned.
#[derive(Default)]
struct Sequential {
    plain: Times,
    disk: Times,
    crooked: Times,
    plain_is_direct: bool,
    transfer: String,
}

struct Bench {
    plain: File,
    plain_is_direct: bool,
    disk: FileDisk,
    requests: u64,
    straight: Memory,
    crooked: Memory,
}

impl Bench {
    fn new(folder: &Path, requests: u64) -> Outcome<Self> {
        let bytes = requests * REQUEST as u64;
        let path = folder.join("plain");
        let (plain, plain_is_direct) = match plain(&path, OFlags::DIRECT) {
            Ok(file) => (file, true),
            Err(_) => (plain(&path, OFlags::empty())?, false),
        };
        fallocate(&plain, FallocateFlags::empty(), 0, bytes)?;
        plain.sync_all()?;
        let options = DiskOptions { existing: Existing::Keep, ..DiskOptions::default() };
        let disk = FileDisk::create(&folder.join("disk"), bytes, &options)?;
        let (straight, crooked) = (Memory::new(REQUEST, 0), Memory::new(REQUEST, 16));
        Ok(Bench { plain, plain_is_direct, disk, requests, straight, crooked })
    }

    /// Moves all bytes, in turns, each of the two first in every other turn. Both files are
    /// written for the first time here: their room was reserved and is taken into use.
    fn sequential(&mut self) -> Outcome<Sequential> {
        let mut times = Sequential {
            plain_is_direct: self.plain_is_direct,
            transfer: self.disk.transfer().to_string(),
            ..Sequential::default()
        };
        for first in (0..self.requests).step_by(TURN as usize) {
            let turn = first..(first + TURN).min(self.requests);
            if (first / TURN).is_multiple_of(2) {
                times.plain.write += self.write_plain(turn.clone())?;
                times.disk.write += self.write_disk(turn.clone(), false)?;
            } else {
                times.disk.write += self.write_disk(turn.clone(), false)?;
                times.plain.write += self.write_plain(turn.clone())?;
            }
        }
        for first in (0..self.requests).step_by(TURN as usize) {
            let turn = first..(first + TURN).min(self.requests);
            times.crooked.write += self.write_disk(turn, true)?;
        }
        for first in (0..self.requests).step_by(TURN as usize) {
            let turn = first..(first + TURN).min(self.requests);
            if (first / TURN).is_multiple_of(2) {
                times.plain.read += self.read_plain(turn.clone())?;
                times.disk.read += self.read_disk(turn.clone(), false)?;
            } else {
                times.disk.read += self.read_disk(turn.clone(), false)?;
                times.plain.read += self.read_plain(turn.clone())?;
            }
            times.crooked.read += self.read_disk(turn, true)?;
        }
        Ok(times)
    }

    fn write_plain(&mut self, turn: std::ops::Range<u64>) -> Outcome<Duration> {
        let start = Instant::now();
        for request in turn {
            let from = self.straight.get(REQUEST);
            self.plain.write_all_at(from, request * REQUEST as u64)?;
        }
        self.plain.sync_data()?;
        Ok(start.elapsed())
    }

    fn write_disk(&mut self, turn: std::ops::Range<u64>, crooked: bool) -> Outcome<Duration> {
        let start = Instant::now();
        let memory = if crooked { &mut self.crooked } else { &mut self.straight };
        for request in turn {
            let first = Sector(request * (REQUEST / SECTOR) as u64);
            self.disk.write(first, memory.get(REQUEST), Cause::Load)?;
        }
        self.disk.flush(Cause::Load)?;
        Ok(start.elapsed())
    }

    fn read_plain(&mut self, turn: std::ops::Range<u64>) -> Outcome<Duration> {
        let start = Instant::now();
        for request in turn {
            let into = self.straight.get(REQUEST);
            self.plain.read_exact_at(into, request * REQUEST as u64)?;
            black_box(into);
        }
        Ok(start.elapsed())
    }

    fn read_disk(&mut self, turn: std::ops::Range<u64>, crooked: bool) -> Outcome<Duration> {
        let start = Instant::now();
        let memory = if crooked { &mut self.crooked } else { &mut self.straight };
        for request in turn {
            let first = Sector(request * (REQUEST / SECTOR) as u64);
            let into = memory.get(REQUEST);
            self.disk.read(&mut [Request { first, offset: 0, into }], Cause::Lookup)?;
            black_box(memory.get(1));
        }
        Ok(start.elapsed())
    }
}

fn plain(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).custom_flags(flags).open(path)
}

/// What random reads took.
struct Random {
    engine: String,
    one: Duration,
    at_once: Duration,
}

/// Reads at random places, one at a time and many at once, in turns.
fn random_reads(path: &Path, engine: EngineChoice) -> Outcome<Random> {
    let mut disk = FileDisk::open(path, &DiskOptions { engine, ..DiskOptions::default() })?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut memory = Memory::new(AT_ONCE * SECTOR, 0);
    let sectors = disk.geometry().sectors();
    let mut times =
        Random { engine: disk.engine().to_string(), one: Duration::ZERO, at_once: Duration::ZERO };
    for _ in 0..READ_TURNS {
        for at_once in [1, AT_ONCE] {
            let start = Instant::now();
            for _ in 0..READS / at_once {
                let pieces = memory.get(at_once * SECTOR).chunks_exact_mut(SECTOR);
                let mut requests: Vec<Request<'_>> = pieces
                    .map(|into| {
                        let first = Sector(random.random_range(0..sectors));
                        Request { first, offset: 0, into }
                    })
                    .collect();
                disk.read(&mut requests, Cause::Lookup)?;
                black_box(&requests);
            }
            match at_once {
                1 => times.one += start.elapsed(),
                _ => times.at_once += start.elapsed(),
            }
        }
    }
    Ok(times)
}

fn report(folder: &Path, requests: u64, times: &Sequential, random: &[Random]) -> Outcome<Value> {
    let bytes = requests * REQUEST as u64;
    let rate = |time: Duration| (bytes as f64 / 1e6 / time.as_secs_f64()).round();
    let ratio = |one: Duration, other: Duration| rounded(one.as_secs_f64() / other.as_secs_f64());
    let rates = |times: &Times| json!({"write": rate(times.write), "read": rate(times.read)});
    let write_ratio = ratio(times.plain.write, times.disk.write);
    let read_ratio = ratio(times.plain.read, times.disk.read);
    let reads = (READS * READ_TURNS) as f64;
    let per_second = |time: Duration| (reads / time.as_secs_f64()).round();
    let random_rows: Vec<Value> = random
        .iter()
        .map(|row| {
            json!({
                "engine": row.engine,
                "one_at_a_time_per_second": per_second(row.one),
                "many_at_once_per_second": per_second(row.at_once),
                "ratio": ratio(row.one, row.at_once),
            })
        })
        .collect();
    let magic = fstatfs(File::open(folder)?)?.f_type;
    Ok(json!({
        "file_system_magic": format!("{magic:#x}"),
        "transfer": times.transfer,
        "plain_program_is_direct": times.plain_is_direct,
        "bytes": bytes,
        "request_bytes": REQUEST,
        "plain_mb_per_second": rates(&times.plain),
        "disk_mb_per_second": rates(&times.disk),
        "disk_unaligned_memory_mb_per_second": rates(&times.crooked),
        "write_ratio": write_ratio,
        "read_ratio": read_ratio,
        "throughput_ratio": write_ratio.min(read_ratio),
        "reads_at_once": AT_ONCE,
        "random_reads": random_rows,
        "random_read_ratio": random.first().map(|row| ratio(row.one, row.at_once)),
    }))
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
