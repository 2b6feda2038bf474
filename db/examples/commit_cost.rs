//! What a commit costs the device: a put that is durable when it returns.
//!
//! `cargo run --release -p flashtree --example commit_cost -- FOLDER [COMMITS]`
//!
//! In FOLDER it makes a database as `Options::new()` does, with durability every, puts entries of
//! 8 + 8 bytes one by one, and counts what reaches the file. Of the flushes only every hundredth
//! is carried out: they are counted, and take long. Beside that stands what the system says that
//! this process wrote. It prints JSON and takes its file away.
//!
//! With `--plain` in place of COMMITS it makes 1000 commits through `Database::open` and counts
//! nothing, for `strace -f -c` to count.

use std::path::{Path, PathBuf};

use device::{Cause, Sector};
use flashtree::{Database, Durability, OpenOptions, Options};
use serde_json::{Value, json};

use common::{CAPACITY, Outcome, Watch, open_watched};

mod common;

/// Flushes of which one is carried out.
const FLUSHES: u64 = 100;
/// Flushes of a commit, on average, with those of the checkpoints.
const FLUSHES_MOST: f64 = 1.01;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: commit_cost FOLDER [COMMITS]")?);
    let commits = match arguments.next() {
        Some(text) if text == "--plain" => return plain(&folder),
        Some(text) => text.to_str().ok_or("COMMITS is a number")?.parse()?,
        None => 300_000_u64,
    };
    let folder = tempfile::tempdir_in(folder)?;
    let order = |name: &str, keys: fn(u64) -> u64| run(folder.path(), name, commits, keys);
    let ascending = order("ascending", |number| number)?;
    // Spread by an odd multiplier, a bijection, over a set of keys.
    let some = order("random among 10,000 keys", |number| number * 7919 % 10_000)?;
    let all = order("random, each once", |number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15))?;
    let rows = [ascending, some];
    let worst = |name: &str| {
        let of = |row: &Value| row.get(name).and_then(Value::as_f64);
        rows.iter().filter_map(of).reduce(f64::max)
    };
    if worst("flushes_per_commit").is_none_or(|flushes| flushes > FLUSHES_MOST) {
        return Err(format!("a commit costs a flush: {rows:#?}").into());
    }
    let books = ["bytes_per_commit", "bytes_per_commit_by_system"].map(worst);
    let bytes = books.into_iter().flatten().reduce(f64::max);
    println!(
        "{:#}",
        json!({
            "commits": commits,
            "bytes_per_commit": bytes,
            "flushes_per_commit": worst("flushes_per_commit"),
            "rows": rows,
            // Here each update has its own page, which is written as well, and its image before.
            "beyond_the_cache": all,
        })
    );
    Ok(())
}

/// Commits with nothing between the database and its file.
fn plain(folder: &Path) -> Outcome<()> {
    let folder = tempfile::tempdir_in(folder)?;
    let options = Options::new().durability(Durability::Every);
    let database = Database::create(folder.path().join("commits.db"), &options)?;
    for number in 0..1000_u64 {
        database.put(number.to_be_bytes(), number.to_be_bytes())?;
    }
    Ok(())
}

/// Bytes that this process had written to disks, by the system's books; `None` where it keeps
/// none.
fn bytes_by_system() -> Option<u64> {
    let books = std::fs::read_to_string("/proc/self/io").ok()?;
    books.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

/// What reached the device.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    writes: u64,
    bytes: u64,
    journal_bytes: u64,
    flushes: u64,
    checkpoints: u64,
}

impl Watch for Counts {
    fn writes(&mut self, first: Sector, bytes: u64, cause: Cause) {
        self.writes += 1;
        self.bytes += bytes;
        // The superblock's first copy stands in sector 0.
        self.checkpoints += u64::from(first.0 == 0);
        if cause == Cause::Journal {
            self.journal_bytes += bytes;
        }
    }

    fn flushes(&mut self) -> bool {
        self.flushes += 1;
        self.flushes.is_multiple_of(FLUSHES)
    }
}

/// Commits without a checkpoint, by what they cost.
#[derive(Default)]
struct Ordinary {
    commits: u64,
    with_one_write: u64,
    flushes_most: u64,
    bytes_most: u64,
}

impl Ordinary {
    fn note(&mut self, before: Counts, after: Counts) {
        if after.checkpoints > before.checkpoints {
            return;
        }
        let (writes, bytes) = (after.writes - before.writes, after.bytes - before.bytes);
        self.commits += 1;
        self.with_one_write += u64::from(writes == 1 && bytes == 4096);
        self.flushes_most = self.flushes_most.max(after.flushes - before.flushes);
        self.bytes_most = self.bytes_most.max(bytes);
    }
}

/// Puts entries of 8 + 8 bytes, whose keys `key` makes of their numbers.
fn run(folder: &Path, name: &str, commits: u64, key: fn(u64) -> u64) -> Outcome<Value> {
    let path = folder.join("commits.db");
    let options = Options::new().capacity(CAPACITY).durability(Durability::Every).overwrite(true);
    Database::create(&path, &options)?.close()?;
    let length = std::fs::metadata(&path)?.len();
    let (database, seen) = open_watched::<Counts>(&path, &OpenOptions::new())?;
    let now = || *seen.now();
    let (start, system_start) = (now(), bytes_by_system());
    let mut ordinary = Ordinary::default();
    for number in 0..commits {
        let before = now();
        database.put(key(number).to_be_bytes(), number.to_be_bytes())?;
        ordinary.note(before, now());
    }
    let (end, system_end) = (now(), bytes_by_system());
    drop(database);
    let by_system = system_end.zip(system_start).map(|(end, start)| end - start);
    let average = |of: fn(&Counts) -> u64| (of(&end) - of(&start)) as f64 / commits as f64;
    Ok(json!({
        "keys": name,
        "bytes_per_commit": average(|counts| counts.bytes),
        "bytes_per_commit_by_system": by_system.map(|bytes| bytes as f64 / commits as f64),
        "journal_bytes_per_commit": average(|counts| counts.journal_bytes),
        "flushes_per_commit": average(|counts| counts.flushes),
        "checkpoints": end.checkpoints - start.checkpoints,
        "commits_without_checkpoint": ordinary.commits,
        "commits_with_one_write_of_4096_bytes": ordinary.with_one_write,
        "flushes_most_without_checkpoint": ordinary.flushes_most,
        "bytes_most_without_checkpoint": ordinary.bytes_most,
        "file_grew_by": std::fs::metadata(&path)?.len() - length,
    }))
}
