//! How long threads wait for what they get while another thread writes.
//!
//! `cargo run --release -p flashtree --example beside -- FOLDER ENTRIES MIB [TREE]`
//!
//! In FOLDER it makes a database of TREE (`flat-tree`) with ENTRIES entries of 8 + 8 bytes and MIB
//! MiB of memory in all. For ten seconds eight threads get random entries, and one reads 100 from a
//! random one on, each as soon as it has the one before, while one thread overwrites random entries
//! in batches of 1,000. It prints JSON: gets, ranges and updates a second, and how long a
//! get, a range and a batch took: the median, the 99th and the 99.9th of each hundred or thousand,
//! and the longest, in microseconds.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flashtree::{Batch, Database, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: beside FOLDER ENTRIES MIB [TREE]";
const SECONDS: Duration = Duration::from_secs(10);
const READERS: u64 = 8;
const BATCH: u64 = 1000;
const IN_A_RANGE: usize = 100;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let mut number = || -> Outcome<u64> { Ok(arguments.next().ok_or(USAGE)?.parse()?) };
    let (entries, memory) = (number()?, number()? << 20);
    let tree = arguments.next().unwrap_or_else(|| "flat-tree".to_owned());
    let folder = tempfile::tempdir_in(folder)?;
    let options = Options::new().tree(&tree).memory_total(memory);
    let database = Database::create(folder.path().join("shared.db"), &options)?;
    database.load((0..entries).map(|key| (key.to_be_bytes(), key.to_be_bytes())))?;

    let overwrite = |random: &mut ChaCha8Rng| -> Outcome<()> {
        let mut batch = Batch::new();
        for _ in 0..BATCH {
            let key = random.random_range(0..entries).to_be_bytes();
            batch.put(key, key);
        }
        Ok(database.write_batch(&batch)?)
    };
    let get = |random: &mut ChaCha8Rng| -> Outcome<()> {
        let key = random.random_range(0..entries).to_be_bytes();
        (database.get(key)? == Some(key.to_vec())).then_some(()).ok_or_else(|| "lost".into())
    };
    let scan = |random: &mut ChaCha8Rng| -> Outcome<()> {
        let start = random.random_range(0..entries - IN_A_RANGE as u64).to_be_bytes();
        let read: Vec<_> = database.range(start..)?.into_iter().take(IN_A_RANGE).collect();
        let is_whole = read.len() == IN_A_RANGE && read.iter().all(Result::is_ok);
        is_whole.then_some(()).ok_or_else(|| "lost".into())
    };
    let is_over = AtomicBool::new(false);
    let timed = |seed, step: &dyn Fn(&mut ChaCha8Rng) -> Outcome<()>| -> Outcome<Vec<Duration>> {
        let (mut random, mut times) = (ChaCha8Rng::seed_from_u64(seed), Vec::new());
        while !is_over.load(Ordering::Relaxed) {
            let start = Instant::now();
            step(&mut random)?;
            times.push(start.elapsed());
        }
        Ok(times)
    };
    let (gets, ranges, batches) = thread::scope(|scope| -> Outcome<_> {
        let readers: Vec<_> =
            (0..READERS).map(|seed| scope.spawn(move || timed(seed, &get))).collect();
        let scanner = scope.spawn(|| timed(READERS, &scan));
        let writer = scope.spawn(|| timed(READERS + 1, &overwrite));
        thread::sleep(SECONDS);
        is_over.store(true, Ordering::Relaxed);
        let mut gets = Vec::new();
        for reader in readers {
            gets.append(&mut reader.join().map_err(|_| "a reader broke off")??);
        }
        let ranges = scanner.join().map_err(|_| "a reader broke off")??;
        Ok((gets, ranges, writer.join().map_err(|_| "the writer broke off")??))
    })?;
    let rate = |times: &[Duration]| times.len() as f64 / SECONDS.as_secs_f64();
    let told = json!({
        "tree": tree,
        "entries": entries,
        "memory_total": memory,
        "gets_per_second": rate(&gets).round(),
        "ranges_per_second": rate(&ranges).round(),
        "updates_per_second": (rate(&batches) * BATCH as f64).round(),
        "get_us": percentiles(gets),
        "range_us": percentiles(ranges),
        "batch_us": percentiles(batches),
    });
    println!("{told:#}");
    Ok(())
}

fn percentiles(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place).or(times.last()).map_or(0, Duration::as_micros) as u64
    };
    json!({ "p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999), "longest": at(1.0) })
}
