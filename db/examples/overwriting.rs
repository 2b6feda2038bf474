//! What overwriting entries costs the device, in batches and one by one.
//!
//! `cargo run --release -p flashtree --example overwriting -- FOLDER ENTRIES [BATCH [UPDATES
//! [TREE]]]`
//!
//! In FOLDER it makes a database of TREE (`b-plus`), else as `Options::new()` does, loads it with
//! ENTRIES entries of 8 + 8 bytes, and overwrites UPDATES (200,000) of them, chosen at random, in
//! batches of BATCH (1,000).
//! It counts what reaches the file from the first batch to the end of closing, and how long the
//! longest write takes, and prints JSON.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use device::{Cause, Sector};
use flashtree::{Batch, Database, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use common::{CAPACITY, Outcome, Watch, open_watched};

mod common;

/// Bytes of an entry.
const ENTRY: u64 = 16;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: overwriting FOLDER ENTRIES [BATCH [UPDATES [TREE]]]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = |usual: Option<u64>| -> Outcome<u64> {
        match arguments.next() {
            Some(text) => Ok(text.to_str().ok_or(usage)?.parse()?),
            None => usual.ok_or_else(|| usage.into()),
        }
    };
    let (entries, size) = (number(None)?, number(Some(1000))?.max(1));
    let updates = number(Some(200_000))?;
    let tree = arguments.next().map_or(Some("b-plus".to_owned()), |tree| tree.into_string().ok());
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("overwritten.db");
    let options = Options::new().tree(tree.ok_or(usage)?).capacity(CAPACITY);
    let database = Database::create(&path, &options)?;
    let sorted = (0..entries).map(|key| (key.to_be_bytes(), key.to_be_bytes()));
    database.load(sorted)?;
    database.close()?;
    let (database, seen) = open_watched::<Written>(&path, &OpenOptions::new())?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (before, start) = (seen.now().0, Instant::now());
    let mut batch = Batch::new();
    let mut longest = Duration::ZERO;
    for update in 0..updates {
        let key = random.random_range(0..entries).to_be_bytes();
        batch.put(key, update.to_be_bytes());
        if (update + 1) % size == 0 || update + 1 == updates {
            let begun = Instant::now();
            database.write_batch(&batch)?;
            longest = longest.max(begun.elapsed());
            batch.clear();
        }
    }
    database.close()?;
    let written = seen.now().0 - before;
    println!(
        "{:#}",
        json!({
            "entries": entries,
            "batch": size,
            "updates": updates,
            "bytes_written": written,
            "write_amplification": written as f64 / (updates * ENTRY) as f64,
            "longest_write_ms": longest.as_secs_f64() * 1e3,
            "updates_per_second": updates as f64 / start.elapsed().as_secs_f64(),
        })
    );
    Ok(())
}

/// Bytes that were written.
#[derive(Default)]
struct Written(u64);

impl Watch for Written {
    fn writes(&mut self, _: Sector, bytes: u64, _: Cause) {
        self.0 += bytes;
    }
}
