//! Rows that are asked through what all engines have in common.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashtree_bench::Outcome;
use flashtree_bench::engine::{self, Engine, Setup};
use flashtree_bench::system;
use flashtree_bench::workload::{Batch, Shape, Workload};

use crate::stores::compact;
use crate::{row, word};

pub(crate) const SETUP: Setup = Setup { memory: 2 << 20, synced: false };

pub(crate) fn open(engine: &str, folder: &Path) -> Outcome<Box<dyn Engine>> {
    (engine::find(engine)?.open)(folder, &SETUP)
}

/// One entry, the first of its kind.
pub(crate) fn put_one(engine: &mut dyn Engine, shape: Shape, durable: bool) -> Outcome<()> {
    let mut batch = Batch::new(Workload { entries: 1, shape });
    batch.add(0, 0);
    engine.put(&batch, durable)
}

pub(crate) fn has_one(engine: &mut dyn Engine, shape: Shape) -> Outcome<bool> {
    let workload = Workload { entries: 1, shape };
    let (mut key, mut value, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    workload.key(0, &mut key);
    workload.value(0, 0, &mut wanted);
    Ok(engine.get(&key, &mut value)? && value == wanted)
}

/// Many entries, each batch of a thousand; sorted by no means.
pub(crate) fn put_many(engine: &mut dyn Engine, workload: Workload) -> Outcome<()> {
    let mut batch = Batch::new(workload);
    for at in 0..workload.entries {
        batch.add(workload.in_random_order(at), 0);
        if batch.len() == 1000 || at + 1 == workload.entries {
            engine.put(&batch, false)?;
            batch.clear();
        }
    }
    engine.sync()
}

/// Whether `act` does what it should; what is refused by a panic is refused.
fn works(act: impl FnOnce() -> Outcome<bool>) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_ok_and(|outcome| outcome.unwrap_or(false))
}

/// The most bytes up to `most` that `takes` takes, each time with a store of its own.
fn longest(folder: &Path, most: usize, takes: impl Fn(&Path, usize) -> Outcome<bool>) -> String {
    let takes = |bytes: usize| {
        let folder = folder.join(bytes.to_string());
        fs::create_dir(&folder).unwrap();
        let took = works(|| takes(&folder, bytes));
        fs::remove_dir_all(&folder).unwrap();
        took
    };
    if takes(most) {
        return format!("{} MiB or more", most >> 20);
    }
    let (mut good, mut bad) = (8, most);
    while good + 1 < bad {
        let middle = good + (bad - good) / 2;
        if takes(middle) { good = middle } else { bad = middle }
    }
    format!("{good} bytes")
}

#[test]
fn longest_key() {
    row("longest key", |engine, folder| {
        Ok(longest(folder, 1 << 20, |folder, bytes| {
            let (mut store, shape) = (open(engine, folder)?, Shape { key: bytes, value: 8 });
            put_one(store.as_mut(), shape, true)?;
            has_one(store.as_mut(), shape)
        }))
    });
}

#[test]
fn longest_value() {
    row("longest value", |engine, folder| {
        Ok(longest(folder, 64 << 20, |folder, bytes| {
            let (mut store, shape) = (open(engine, folder)?, Shape { key: 8, value: bytes });
            put_one(store.as_mut(), shape, true)?;
            store.close()?;
            let wanted = Workload { entries: 1, shape };
            let (mut key, mut value) = (Vec::new(), Vec::new());
            wanted.key(0, &mut key);
            Ok(read_whole(engine, folder, &key, bytes, &mut value)?
                && wanted.is_value_of(0, &value))
        }))
    });
}

/// flashtree reads long values by pieces, or into memory of their length.
fn read_whole(
    engine: &str,
    folder: &Path,
    key: &[u8],
    bytes: usize,
    value: &mut Vec<u8>,
) -> Outcome<bool> {
    if engine != "flat-tree" {
        return open(engine, folder)?.get(key, value);
    }
    let options = flashtree::OpenOptions::new();
    let database = flashtree::Database::open(folder.join("flashtree.db"), &options)?;
    *value = database.get(key)?.unwrap_or_default();
    Ok(value.len() == bytes)
}

/// Enough for entries to stand where they stay.
const MANY: Workload = Workload { entries: 100_000, shape: Shape { key: 16, value: 100 } };

#[test]
fn flipped_bits() {
    row("a bit of a value that flipped on the disk", |engine, folder| {
        let mut store = open(engine, folder)?;
        put_many(store.as_mut(), MANY)?;
        store.close()?;
        let number = MANY.in_random_order(0);
        let (mut key, mut wanted, mut value) = (Vec::new(), Vec::new(), Vec::new());
        MANY.key(number, &mut key);
        MANY.value(number, 0, &mut wanted);
        assert!(flip(folder, &wanted)? > 0, "{engine} has no such bytes");
        let read = catch_unwind(AssertUnwindSafe(|| open(engine, folder)?.get(&key, &mut value)));
        Ok(match read {
            Ok(Ok(true)) if value == wanted => "is of no consequence",
            Ok(Ok(true)) => "is read as data",
            Ok(Ok(false)) => "loses the entry, in silence",
            Ok(Err(_)) | Err(_) => "is an error",
        }
        .to_owned())
    });
}

/// Flips a bit in the middle of these bytes wherever they stand; returns how often they do.
fn flip(folder: &Path, bytes: &[u8]) -> Outcome<usize> {
    let mut found = 0;
    for file in files(folder)? {
        let mut text = fs::read(&file)?;
        let places: Vec<_> = (0..text.len().saturating_sub(bytes.len()))
            .filter(|at| text[*at] == bytes[0] && text[*at..].starts_with(bytes))
            .collect();
        found += places.len();
        places.iter().for_each(|at| text[at + bytes.len() / 2] ^= 1);
        if !places.is_empty() {
            fs::write(&file, text)?;
        }
    }
    Ok(found)
}

fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(self::files(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

/// Bytes of a store with many entries, and when all of them were deleted, closed both times.
fn emptied(engine: &str, folder: &Path) -> Outcome<(u64, u64)> {
    let mut store = open(engine, folder)?;
    put_many(store.as_mut(), MANY)?;
    store.close()?;
    let full = system::bytes_taken(folder)?;
    let mut store = open(engine, folder)?;
    let mut key = Vec::new();
    for number in 0..MANY.entries {
        key.clear();
        MANY.key(number, &mut key);
        store.delete(&key)?;
    }
    store.sync()?;
    system::wait_until_quiet(Duration::from_secs(10))?;
    store.close()?;
    Ok((full, system::bytes_taken(folder)?))
}

#[test]
fn room_of_deleted_entries() {
    row("a file gets shorter when all was deleted and it is closed", |engine, folder| {
        let (full, empty) = emptied(engine, folder)?;
        Ok(word(empty < full / 4))
    });
}

#[test]
fn compaction() {
    row("a file gets shorter when all was deleted and it is compacted", |engine, folder| {
        let (full, _) = emptied(engine, folder)?;
        compact(engine, folder)?;
        Ok(word(system::bytes_taken(folder)? < full / 4))
    });
}
