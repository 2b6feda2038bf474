//! How many entries a tree finds a second in a file, one by one and in short ranges.
//!
//! `cargo run --release -p flashtree --example reading -- FOLDER [--NAME VALUE]...`
//!
//! In FOLDER it makes a database of `tree` (`b-plus`) with `entries` (1,000,000) entries of 8 + 8
//! bytes and `memory` (16) MiB for caches and buffers, in at most `capacity` (1,024) MiB, and
//! overwrites `updates` of them (an eighth) in batches of 1,000. It closes and opens it, and gets
//! `first` (1,000) entries. Then it gets `gets` (20,000), as many 1000 at once, and reads 100
//! entries from each of `scans` (5,000) on, chosen at random, and prints JSON. Where the system
//! counts what a process reads, it tells the pages of 4 KiB that a single get and a scan read. With
//! `--beside SPEC` it does the same with that tree, and tells the rates of the first in parts of
//! those of the other.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Instant;

use flashtree::{Batch, Database, OpenOptions, Options, Readable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Entries of a range, and of a batch.
const RANGE: u64 = 100;
const BATCH: u64 = 1000;

const USAGE: &str = "usage: reading FOLDER [--tree SPEC] [--beside SPEC] [--entries N] \
                     [--updates N] [--memory MIB] [--capacity MIB] [--first N] [--gets N] \
                     [--scans N]";

/// What is done with a database.
#[derive(Clone, Debug)]
struct Plan {
    tree: String,
    entries: u64,
    updates: u64,
    memory: u64,
    capacity: u64,
    first: u64,
    gets: u64,
    scans: u64,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let (mut tree, mut beside) = ("b-plus".to_owned(), None);
    let (mut entries, mut updates, mut first) = (1_000_000_u64, None, 1_000);
    let (mut memory, mut capacity, mut gets, mut scans) = (16, 1024, 20_000, 5_000);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--tree" => tree = value,
            "--beside" => beside = Some(value),
            "--entries" => entries = value.parse()?,
            "--updates" => updates = Some(value.parse()?),
            "--memory" => memory = value.parse()?,
            "--capacity" => capacity = value.parse()?,
            "--first" => first = value.parse()?,
            "--gets" => gets = value.parse()?,
            "--scans" => scans = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    let updates = updates.unwrap_or(entries / 8);
    let plan = Plan { tree, entries, updates, memory, capacity, first, gets, scans };
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("read.db");
    let mut measured = measure(&path, &plan)?;
    if let Some(tree) = beside {
        let other = measure(&path, &Plan { tree, ..plan })?;
        for of in ["updates", "gets", "scans"] {
            let rate = |of_tree: &Value| of_tree[format!("{of}_per_second")].as_f64();
            measured[format!("{of}_beside")] =
                json!(rate(&measured).zip(rate(&other)).map(|(one, other)| one / other));
        }
        measured["beside"] = other;
    }
    println!("{measured:#}");
    Ok(())
}

/// The rates of a new database.
fn measure(path: &Path, plan: &Plan) -> Outcome<Value> {
    let Plan { tree, entries, updates, memory, capacity, first, gets, scans } = plan.clone();
    let options = Options::new().tree(&tree).memory(memory << 20).capacity(capacity << 20);
    let mut database = Database::create(path, &options.overwrite(true))?;
    database.load((0..entries).map(|key| (key.to_be_bytes(), key.to_be_bytes())))?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let updated = rate(updates, |_| overwrite(&mut database, &mut random, entries))?;
    database.close()?;
    let database = Database::open(path, &OpenOptions::new().memory(memory << 20))?;
    let mut get = |_| get(&database, &mut random, entries);
    let mut read = [pages_read(), 0, 0];
    let got_first = rate(first, &mut get)?;
    read[1] = pages_read();
    let got = rate(gets, get)?;
    read[2] = pages_read();
    let got_together = rate(gets, |_| {
        let keys: Vec<_> =
            (0..BATCH).map(|_| random.random_range(0..entries).to_be_bytes()).collect();
        let found = database.get_many(keys)?;
        match found.iter().all(Option::is_some) {
            true => Ok(BATCH),
            false => Err("an entry is lost".into()),
        }
    })?;
    let before_scans = pages_read();
    let scanned = rate(scans, |_| scan(&database, &mut random, entries))?;
    let read_by_scans = pages_read() - before_scans;
    let pages_a_get = |from: usize, gets: u64| (read[from + 1] - read[from]) as f64 / gets as f64;
    Ok(json!({
        "tree": tree,
        "entries": entries,
        "updates": updates,
        "memory_mib": memory,
        "updates_per_second": updated,
        "first_gets_per_second": got_first,
        "first_pages_a_get": pages_a_get(0, first),
        "gets_per_second": got,
        "pages_a_get": pages_a_get(1, gets),
        "gets_together_per_second": got_together,
        "scans_per_second": scanned,
        "pages_a_scan": read_by_scans as f64 / scans as f64,
    }))
}

/// How many of `count` steps are done a second; each call tells how many it did.
fn rate(count: u64, mut steps: impl FnMut(u64) -> Outcome<u64>) -> Outcome<f64> {
    let (start, mut done) = (Instant::now(), 0);
    while done < count {
        done += steps(done)?;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

/// Pages of 4 KiB that this process read so far.
fn pages_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = counts.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    bytes.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0) / 4096
}

/// An entry chosen at random.
fn get(database: &Database<'_>, random: &mut ChaCha8Rng, entries: u64) -> Outcome<u64> {
    let found = database.get(random.random_range(0..entries).to_be_bytes())?;
    found.map(|_| 1).ok_or_else(|| "an entry is lost".into())
}

/// The entries behind one chosen at random.
fn scan(database: &Database<'_>, random: &mut ChaCha8Rng, entries: u64) -> Outcome<u64> {
    let from = random.random_range(0..entries);
    let mut range = database.range((Bound::Included(from.to_be_bytes()), Bound::Unbounded))?;
    for key in from..(from + RANGE).min(entries) {
        let entry = range.next()?.ok_or("a range ends early")?;
        if entry.key != key.to_be_bytes() {
            return Err("a range passes by an entry".into());
        }
    }
    Ok(1)
}

/// A batch of entries chosen at random.
fn overwrite(database: &mut Database<'_>, random: &mut ChaCha8Rng, entries: u64) -> Outcome<u64> {
    let mut batch = Batch::new();
    for value in 0..BATCH {
        batch.put(random.random_range(0..entries).to_be_bytes(), value.to_be_bytes());
    }
    database.write_batch(&batch)?;
    Ok(BATCH)
}
