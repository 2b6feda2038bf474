//! How many commits a second there are, beside a plain program that writes 4 KiB and flushes.
//!
//! `cargo run --release -p flashtree --example commit_rate -- FOLDER [COMMITS]`
//!
//! In FOLDER, which should be on a real disk, it makes a database with durability every, and a
//! plain file as long as the database's journal, filled with zeros as that is, which it writes by
//! direct I/O in the order of the journal's sectors. The two take turns, so that other work on the
//! machine slows both. It prints JSON and takes its files away.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashtree::{Database, Durability, Options};
use rustix::fs::OFlags;
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error>>;

const SECTOR: usize = 4096;
/// Commits, or writes, of one turn.
const TURN: u64 = 25;
/// Bytes of the plain file.
const PLAIN_BYTES: u64 = 4 << 20;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: commit_rate FOLDER [COMMITS]")?);
    let commits = match arguments.next() {
        Some(text) => text.to_str().ok_or("COMMITS is a number")?.parse()?,
        None => 3000_u64,
    };
    let folder = tempfile::tempdir_in(folder)?;
    let mut plain = Plain::new(&folder.path().join("plain"))?;
    let options = Options::new().durability(Durability::Every);
    let mut database = Database::create(folder.path().join("commits.db"), &options)?;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    let turns = commits.div_ceil(TURN).max(2);
    for turn in 0..turns {
        let numbers = turn * TURN..(turn + 1) * TURN;
        if turn.is_multiple_of(2) {
            bare.push(plain.write(numbers.clone())?);
            ours.push(commit(&mut database, numbers)?);
        } else {
            ours.push(commit(&mut database, numbers.clone())?);
            bare.push(plain.write(numbers)?);
        }
    }
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    let mut ratios: Vec<f64> =
        bare.iter().zip(&ours).map(|(bare, ours)| ratio(*bare, *ours)).collect();
    ratios.sort_by(f64::total_cmp);
    let per_second = |times: &[Duration]| {
        let seconds: f64 = times.iter().map(Duration::as_secs_f64).sum();
        (turns * TURN) as f64 / seconds
    };
    let (bare_rate, our_rate) = (per_second(&bare), per_second(&ours));
    println!(
        "{:#}",
        json!({
            "commits": turns * TURN,
            "plain_program_is_direct": plain.is_direct,
            "bare_writes_and_flushes_per_second": bare_rate,
            "commits_per_second": our_rate,
            "rate_ratio": our_rate / bare_rate,
            "rate_ratio_median_of_turns": ratios.get(ratios.len() / 2),
        })
    );
    Ok(())
}

fn commit(database: &mut Database<'_>, numbers: std::ops::Range<u64>) -> Outcome<Duration> {
    let start = Instant::now();
    for number in numbers {
        database.put(number.to_be_bytes(), number.to_be_bytes())?;
    }
    Ok(start.elapsed())
}

/// What a plain program does.
struct Plain {
    file: File,
    is_direct: bool,
    memory: Vec<u8>,
    start: usize,
}

impl Plain {
    fn new(path: &Path) -> Outcome<Self> {
        let mut file = File::create(path)?;
        file.write_all(&vec![0; PLAIN_BYTES as usize])?;
        file.sync_all()?;
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)
        };
        let (file, is_direct) = match open(OFlags::DIRECT) {
            Ok(file) => (file, true),
            Err(_) => (open(OFlags::empty())?, false),
        };
        let memory = vec![0x5A; 2 * SECTOR];
        let start = memory.as_ptr().align_offset(SECTOR);
        Ok(Plain { file, is_direct, memory, start })
    }

    fn write(&mut self, numbers: std::ops::Range<u64>) -> Outcome<Duration> {
        let start = Instant::now();
        for number in numbers {
            // About as many commits fit a page of the journal; they take two sectors in turn.
            let sector = number / 130 * 2 + number % 2;
            let offset = sector * SECTOR as u64 % PLAIN_BYTES;
            self.file.write_all_at(&self.memory[self.start..self.start + SECTOR], offset)?;
            self.file.sync_data()?;
        }
        Ok(start.elapsed())
    }
}
