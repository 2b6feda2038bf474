//! What a tree writes while all entries are loaded in random order and overwritten, and what it
//! reads and takes then.
//!
//! `cargo run --release -p flashtree --example turnover -- FOLDER ENTRIES MIB [TREE]`
//!
//! In FOLDER it makes a database of TREE (`flat-tree`) with MIB MiB of memory in all, loads ENTRIES
//! entries of 8 + 8 bytes with random keys, in batches of 1,000, and overwrites as many, chosen at
//! random, twice. Then it is closed and opened, and reads random entries: a fiftieth of them that
//! are not counted, for the cache, and as many that are. It prints JSON; what is written is told of
//! loading and of the second time of overwriting, closing included.

use std::path::PathBuf;

use device::{Cause, Sector};
use flashtree::{Batch, Database, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use common::{CAPACITY, Outcome, Watch, open_watched};

mod common;

/// Bytes of an entry, and entries of a batch.
const ENTRY: u64 = 16;
const BATCH: u64 = 1000;

const USAGE: &str = "usage: turnover FOLDER ENTRIES MIB [TREE]";

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let mut number = || -> Outcome<u64> { Ok(arguments.next().ok_or(USAGE)?.parse()?) };
    let (entries, memory) = (number()?, number()? << 20);
    let tree = arguments.next().unwrap_or_else(|| "flat-tree".to_owned());
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("turned.db");
    let options = Options::new().tree(&tree).memory_total(memory).capacity(CAPACITY);
    Database::create(&path, &options)?.close()?;
    let open = OpenOptions::new().memory_total(memory);
    let mut random = ChaCha8Rng::seed_from_u64(1);

    let (database, seen) = open_watched::<Moved>(&path, &open)?;
    put(&database, 0, 0..entries)?;
    let loaded = seen.now().written;
    put(&database, 1, (0..entries).map(|_| random.random_range(0..entries)))?;
    let before = seen.now().written;
    put(&database, 2, (0..entries).map(|_| random.random_range(0..entries)))?;
    database.close()?;
    let overwritten = seen.now().written - before;
    let taken = std::fs::metadata(&path)?.len();

    let (database, seen) = open_watched::<Moved>(&path, &open)?;
    let gets = (entries / 50).max(1);
    let mut read = 0;
    for _ in 0..2 {
        let before = seen.now().reads;
        for _ in 0..gets {
            let found = database.get(key(random.random_range(0..entries)))?;
            found.ok_or("an entry is lost")?;
        }
        read = seen.now().reads - before;
    }
    let bytes = (entries * ENTRY) as f64;
    println!(
        "{:#}",
        json!({
            "tree": tree,
            "entries": entries,
            "memory_total": memory,
            "load_amplification": loaded as f64 / bytes,
            "overwrite_amplification": overwritten as f64 / bytes,
            "space": taken as f64 / bytes,
            "reads_a_get": read as f64 / gets as f64,
        })
    );
    Ok(())
}

/// Puts the `version`th value of each of `numbers`.
fn put(database: &Database<'_>, version: u64, numbers: impl Iterator<Item = u64>) -> Outcome<()> {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(key(number), (number ^ version << 60).to_be_bytes());
        if batch.len() as u64 == BATCH {
            database.write_batch(&batch)?;
            batch.clear();
        }
    }
    Ok(database.write_batch(&batch)?)
}

/// The key of an entry: another for each, and they look random (the finalizer of splitmix64).
const fn key(number: u64) -> [u8; 8] {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (number ^ (number >> 31)).to_be_bytes()
}

/// Bytes that were written, and requests that were read.
#[derive(Default)]
struct Moved {
    written: u64,
    reads: u64,
}

impl Watch for Moved {
    fn has_read(&mut self, _: std::time::Instant, _: Cause) {
        self.reads += 1;
    }

    fn writes(&mut self, _: Sector, bytes: u64, _: Cause) {
        self.written += bytes;
    }
}
