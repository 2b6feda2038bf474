//! How many entries threads get from one database in a file, and how near that is to what the disk
//! can do.
//!
//! `cargo run --release -p flashtree --example threads -- FOLDER ENTRIES MIB [TREE]`
//!
//! In FOLDER it makes a database of TREE (`flat-tree`) with ENTRIES entries of 8 + 8 bytes and MIB
//! MiB of memory in all, which should be a fraction of the file. It gets random entries for three
//! seconds each: one thread alone, eight threads, and one that gets 1,000 at once. Then as many
//! threads as each has reads in flight (1, 8, 32) read the same file by plain direct I/O, 4 KiB at
//! random places. It prints JSON: the rates, the reads of 4 KiB a get as the system counts them,
//! and the share: the rate times the reads a get, over the rate of plain reads.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flashtree::{Database, Options, Readable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::OFlags;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: threads FOLDER ENTRIES MIB [TREE]";
const SECONDS: Duration = Duration::from_secs(3);
const PAGE: usize = 4096;
const TOGETHER: usize = 1000;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let mut number = || -> Outcome<u64> { Ok(arguments.next().ok_or(USAGE)?.parse()?) };
    let (entries, memory) = (number()?, number()? << 20);
    let tree = arguments.next().unwrap_or_else(|| "flat-tree".to_owned());
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("shared.db");
    let options = Options::new().tree(&tree).memory_total(memory);
    let database = Database::create(&path, &options)?;
    database.load((0..entries).map(|key| (key.to_be_bytes(), key.to_be_bytes())))?;

    let get = |random: &mut ChaCha8Rng| {
        let key = random.random_range(0..entries);
        let found = database.get(key.to_be_bytes())?;
        (found == Some(key.to_be_bytes().to_vec())).then_some(1).ok_or_else(|| "lost".into())
    };
    let get_together = |random: &mut ChaCha8Rng| {
        let keys = (0..TOGETHER).map(|_| random.random_range(0..entries).to_be_bytes());
        let found = database.get_many(keys)?;
        found.iter().all(Option::is_some).then_some(TOGETHER as u64).ok_or_else(|| "lost".into())
    };
    rate(8, get)?; // What a cache can hold, it holds.
    let alone = counted(1, get)?;
    let shared = counted(8, get)?;
    let together = counted(1, get_together)?;
    database.close()?;

    let row = |(rate, reads): (f64, f64), depth| -> Outcome<Value> {
        let plain = probe(&path, depth)?;
        Ok(json!({
            "gets_per_second": rate.round(),
            "reads_a_get": reads,
            "plain_reads_per_second": plain.round(),
            "share": rate * reads / plain,
        }))
    };
    println!(
        "{:#}",
        json!({
            "tree": tree,
            "entries": entries,
            "memory_total": memory,
            "file_bytes": fs::metadata(&path)?.len(),
            "one_thread": row(alone, 1)?,
            "eight_threads": row(shared, 8)?,
            "a_thousand_at_once": row(together, 32)?,
        })
    );
    Ok(())
}

/// What so many threads do a second, and the pages that are read for each of it.
fn counted(
    threads: u64,
    step: impl Fn(&mut ChaCha8Rng) -> Outcome<u64> + Sync,
) -> Outcome<(f64, f64)> {
    let before = bytes_read()?;
    let (done, rate) = rate(threads, step)?;
    let pages = (bytes_read()? - before) as f64 / PAGE as f64;
    Ok((rate, pages / done as f64))
}

/// How often so many threads do a step, in all and a second; each call tells what it counts for.
fn rate(
    threads: u64,
    step: impl Fn(&mut ChaCha8Rng) -> Outcome<u64> + Sync,
) -> Outcome<(u64, f64)> {
    let start = Instant::now();
    let one = |seed| -> Outcome<u64> {
        let (mut random, mut done) = (ChaCha8Rng::seed_from_u64(seed), 0);
        while start.elapsed() < SECONDS {
            done += step(&mut random)?;
        }
        Ok(done)
    };
    let done = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|seed| scope.spawn(move || one(seed))).collect();
        let ends = all.into_iter().map(|it| it.join().map_err(|_| "a thread broke off")?);
        ends.sum::<Outcome<u64>>()
    })?;
    Ok((done, done as f64 / start.elapsed().as_secs_f64()))
}

/// Plain reads of so many threads a second, at random places of the file.
fn probe(path: &Path, threads: u64) -> Outcome<f64> {
    let mut options = OpenOptions::new();
    let file: File =
        options.read(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(path)?;
    let pages = file.metadata()?.len() / PAGE as u64;
    let read = |random: &mut ChaCha8Rng| {
        let mut memory = [0; 2 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        let at = random.random_range(0..pages) * PAGE as u64;
        file.read_exact_at(&mut memory[start..start + PAGE], at)?;
        Ok(1)
    };
    Ok(rate(threads, read)?.1)
}

/// Bytes that the system read from disks for this process.
fn bytes_read() -> Outcome<u64> {
    let counts = fs::read_to_string("/proc/self/io")?;
    let count = counts.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(count.ok_or("the system does not count what is read")?.parse()?)
}
