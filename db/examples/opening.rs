//! How long it takes to open a database of 1 GB: after it was closed, and after its process was
//! killed with a full journal and undo log.
//!
//! `cargo run --release -p flashtree --example opening -- FOLDER [MEGABYTES]`
//!
//! In FOLDER, which should be on a real disk, it makes a database as `Options::new()` does, but
//! that no update waits in memory, which would leave nothing to put back, and loads it with
//! MEGABYTES (1000) of entries. A second process, which is this program again,
//! overwrites entries at random places until the journal is full, and the undo log nearly so, and
//! is killed. Opening then is timed as a whole, and once more by what it does: the time from the
//! first page that the replay touches to the last is the replay's. It prints JSON and takes its
//! file away.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use device::Cause;
use flashtree::{Database, OpenOptions, Options, RecoveryStatistics};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use common::{CAPACITY, Outcome, Watch, open_watched};

mod common;

/// Bytes of a value.
const VALUE: usize = 480;
/// Bytes of an entry.
const ENTRY: u64 = 20 + VALUE as u64;
/// Bytes of a value that overwrites one.
const NEW_VALUE: usize = 900;
/// Places at which entries are overwritten, so many that the journal and the undo log get full
/// together.
const PLACES: u64 = 2200;
/// How full the journal is when the writer is killed, and how full the undo log has to be.
const FULL: f64 = 0.95;
const UNDO_FULL: f64 = 0.8;
/// What the writer says when it is.
const READY: &str = "ready to be killed";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--write", path, entries, seed] => write(Path::new(path), entries.parse()?, seed.parse()?),
        [folder] => measure(Path::new(folder), 1000),
        [folder, megabytes] => measure(Path::new(folder), megabytes.parse()?),
        _ => Err("usage: opening FOLDER [MEGABYTES]".into()),
    }
}

/// An entry's key, of 20 bytes, in the order of their numbers.
fn key(number: u64) -> String {
    format!("key {number:016}")
}

fn value(random: &mut ChaCha8Rng, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    random.fill(&mut value[..]);
    value
}

fn measure(folder: &Path, megabytes: u64) -> Outcome<()> {
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("opening.db");
    let entries = (megabytes * 1_000_000).div_ceil(ENTRY);
    let options = Options::new().tree("b-plus:waiting=0").capacity(CAPACITY);
    let database = Database::create(&path, &options)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    database.load((0..entries).map(|number| (key(number), value(&mut random, VALUE))))?;
    let bytes = database.stats()?.file.map_or(0, |file| file.taken);
    database.close()?;
    if bytes < megabytes * 1_000_000 {
        return Err(format!("the file takes {bytes} bytes only").into());
    }

    let (clean, _) = timed(&path)?;
    let writer = Writer { path: &path, entries };
    writer.write_and_kill(1)?;
    let (killed, recovery) = timed(&path)?;
    writer.write_and_kill(2)?;
    let parts = timed_in_parts(&path)?;
    let beyond = (parts.whole - parts.replay).max(clean).as_secs_f64();
    println!(
        "{:#}",
        json!({
            "file_bytes": bytes,
            "entries": entries,
            "closed": { "seconds": clean.as_secs_f64() },
            "killed": told(killed, &recovery),
            "killed_in_parts": {
                "whole": told(parts.whole, &parts.recovery),
                "seconds_to_replay": parts.replay.as_secs_f64(),
            },
            "seconds_beyond_replay": beyond,
        })
    );
    Ok(())
}

fn told(time: Duration, recovery: &RecoveryStatistics) -> Value {
    json!({
        "seconds": time.as_secs_f64(),
        "pages_put_back": recovery.restored,
        "updates_replayed": recovery.replayed,
    })
}

/// Opens the database and reads an entry; closes it.
fn timed(path: &Path) -> Outcome<(Duration, RecoveryStatistics)> {
    let start = Instant::now();
    let database = open(path)?;
    if database.get(key(0))?.is_none() {
        return Err("the first entry is gone".into());
    }
    let time = start.elapsed();
    let recovery = database.stats()?.recovery;
    database.close()?;
    Ok((time, recovery))
}

fn open(path: &Path) -> Outcome<Database<'static>> {
    Ok(Database::open(path, &OpenOptions::new())?)
}

/// Waits until the system closed what a killed process had open, and wrote back what is not this
/// program's to wait for.
fn settle(path: &Path) -> Outcome<()> {
    let file = File::open(path)?;
    file.lock()?;
    Ok(file.sync_all()?)
}

/// The process that is killed.
struct Writer<'w> {
    path: &'w Path,
    entries: u64,
}

impl Writer<'_> {
    fn write_and_kill(&self, seed: u64) -> Outcome<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--write")
            .arg(self.path)
            .args([self.entries.to_string(), seed.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().map(BufReader::new).ok_or("the writer has no output")?;
        for line in said.lines() {
            if line? == READY {
                child.kill()?;
            }
        }
        if child.wait()?.code().is_some() {
            return Err("the writer was not killed".into());
        }
        settle(self.path)
    }
}

/// Overwrites entries until there is much to recover, makes that durable, and waits to be killed.
fn write(path: &Path, entries: u64, seed: u64) -> Outcome<()> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let database = open(path)?;
    let undo = loop {
        let number = random.random_range(0..PLACES) * (entries / PLACES);
        database.put(key(number), value(&mut random, NEW_VALUE))?;
        let now = database.stats()?.recovery;
        if now.journal_bytes as f64 / now.journal_bytes_most as f64 >= FULL {
            break now.undo_bytes as f64 / now.undo_bytes_most as f64;
        }
    };
    if undo < UNDO_FULL {
        return Err(format!("the undo log is full to {undo} only").into());
    }
    database.sync()?;
    println!("{READY}");
    loop {
        std::thread::park();
    }
}

/// An opening in parts.
struct Parts {
    whole: Duration,
    replay: Duration,
    recovery: RecoveryStatistics,
}

/// When the replay touched its first page and its last.
#[derive(Clone, Copy, Default)]
struct Moments {
    first: Option<Instant>,
    last: Option<Instant>,
}

fn timed_in_parts(path: &Path) -> Outcome<Parts> {
    let start = Instant::now();
    let (database, seen) = open_watched::<Moments>(path, &OpenOptions::new())?;
    let whole = start.elapsed();
    let recovery = database.stats()?.recovery;
    let Moments { first, last } = *seen.now();
    if database.get(key(0))?.is_none() {
        return Err("the first entry is gone".into());
    }
    database.close()?;
    let replay = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    Ok(Parts { whole, replay, recovery })
}

impl Watch for Moments {
    fn has_read(&mut self, start: Instant, cause: Cause) {
        if cause == Cause::Update {
            self.first.get_or_insert(start);
            self.last = Some(Instant::now());
        }
    }
}
