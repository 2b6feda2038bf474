//! What overwriting entries costs the device, in batches and one by one.
//!
//! `cargo run --release -p flashtree --example overwriting -- FOLDER ENTRIES [BATCH [UPDATES]]`
//!
//! In FOLDER it makes a database as `Options::new()` does, loads it with ENTRIES entries of 8 + 8
//! bytes, and overwrites UPDATES (200,000) of them, chosen at random, in batches of BATCH (1,000).
//! It counts what reaches the file from the first batch to the end of closing, and prints JSON.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use device::{Cause, Meter, Request, Sector, SectorGeometry, Sectors};
use file::{DiskOptions, FileDisk};
use flashtree::{Batch, Database, Medium, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The most bytes that the file grows to.
const CAPACITY: u64 = 4 << 30;
/// Bytes of an entry.
const ENTRY: u64 = 16;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: overwriting FOLDER ENTRIES [BATCH [UPDATES]]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut number = |usual: Option<u64>| -> Outcome<u64> {
        match arguments.next() {
            Some(text) => Ok(text.to_str().ok_or(usage)?.parse()?),
            None => usual.ok_or_else(|| usage.into()),
        }
    };
    let (entries, size) = (number(None)?, number(Some(1000))?.max(1));
    let updates = number(Some(200_000))?;
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("overwritten.db");
    let mut database = Database::create(&path, &Options::new().capacity(CAPACITY))?;
    let sorted = (0..entries).map(|key| (key.to_be_bytes(), key.to_be_bytes()));
    database.load(sorted)?;
    database.close()?;
    let bytes = Arc::new(AtomicU64::new(0));
    let options = DiskOptions {
        sector_bytes: 4096,
        grows_to: Some(CAPACITY),
        gathers: true,
        ..DiskOptions::default()
    };
    let disk = Counting { disk: FileDisk::open(&path, &options)?, bytes: Arc::clone(&bytes) };
    let medium = Medium::Sectors(Box::new(disk));
    let mut database = Database::open_on(medium, &OpenOptions::new())?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (before, start) = (bytes.load(Ordering::Relaxed), Instant::now());
    let mut batch = Batch::new();
    for update in 0..updates {
        let key = random.random_range(0..entries).to_be_bytes();
        batch.put(key, update.to_be_bytes());
        if (update + 1) % size == 0 || update + 1 == updates {
            database.write(&batch)?;
            batch.clear();
        }
    }
    database.close()?;
    let written = bytes.load(Ordering::Relaxed) - before;
    println!(
        "{:#}",
        json!({
            "entries": entries,
            "batch": size,
            "updates": updates,
            "bytes_written": written,
            "write_amplification": written as f64 / (updates * ENTRY) as f64,
            "updates_per_second": updates as f64 / start.elapsed().as_secs_f64(),
        })
    );
    Ok(())
}

/// A disk that counts what is written to it.
struct Counting {
    disk: FileDisk,
    bytes: Arc<AtomicU64>,
}

impl Sectors for Counting {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> device::Result<()> {
        self.disk.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> device::Result<()> {
        self.bytes.fetch_add(from.len() as u64, Ordering::Relaxed);
        self.disk.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> device::Result<()> {
        self.disk.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> device::Result<()> {
        self.disk.flush(cause)
    }

    fn sectors_held(&self) -> Option<u64> {
        self.disk.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> device::Result<()> {
        self.disk.resize(sectors, cause)
    }

    fn meter(&self) -> Option<&Meter> {
        self.disk.meter()
    }
}
