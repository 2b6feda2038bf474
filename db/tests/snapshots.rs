//! Snapshots and cursors: what stays while others write, and going through it both ways.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod storage;

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use device::NandCosts;
use flashtree::encoding::Type;
use flashtree::{Database, Error, Geometry, Medium, Options, Readable, Result, Snapshot};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;
use storage::Model;

const TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "fd-tree", "lsm"];
const CHIP_TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "mu-star", "ipl"];

fn entries(reader: &impl Readable) -> Model {
    reader.all().unwrap().into_iter().map(Result::unwrap).collect()
}

/// All that a snapshot sees, in both directions, between bounds and of single keys.
fn compare(snapshot: &Snapshot<'_, '_>, model: &Model, random: &mut ChaCha8Rng) {
    assert_eq!(&entries(snapshot), model);
    let backwards = snapshot.all_descending().unwrap().into_iter().map(Result::unwrap);
    assert!(backwards.eq(model.clone().into_iter().rev()));
    let [low, high] = [0, 1].map(|_| [random.random_range(0..=255_u8)]);
    let between = snapshot.range(low..=high).unwrap().into_iter().map(|entry| entry.unwrap().0);
    let expected = model.keys().filter(|key| (&low[..]..=&high[..]).contains(&key.as_slice()));
    assert!(between.eq(expected.cloned()));
    let key = [random.random_range(0..=255_u8), 7];
    assert_eq!(snapshot.get(key).unwrap().as_ref(), model.get(&key[..]));
    let length = model.get(&key[..]).map(|value| value.len() as u32);
    assert_eq!(snapshot.value_length(key).unwrap(), length);
}

fn play(database: &Database<'_>) {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let mut model = Model::new();
    let mut snapshots = Vec::new();
    for round in 0..150_u8 {
        let mut batch = flashtree::Batch::new();
        for _ in 0..random.random_range(1..12) {
            let key = [random.random_range(0..=255_u8), 7];
            if random.random_bool(0.6) {
                let longest = if random.random_bool(0.1) { 9000 } else { 40 };
                let value = vec![round; random.random_range(0..longest)];
                batch.put(key, &value);
                model.insert(key.to_vec(), value);
            } else {
                batch.delete(key);
                model.remove(&key[..]);
            }
        }
        database.write_batch(&batch).unwrap();
        if random.random_bool(0.2) {
            snapshots.push((database.snapshot().unwrap(), model.clone()));
        }
        if snapshots.len() > 4 {
            drop(snapshots.swap_remove(random.random_range(0..snapshots.len())));
        }
        if let Some((snapshot, model)) = snapshots.choose(&mut random) {
            compare(snapshot, model, &mut random);
        }
    }
    for (snapshot, model) in &snapshots {
        compare(snapshot, model, &mut random);
    }
    drop(snapshots);
    assert_eq!(entries(database), model);
    assert!(database.check().unwrap().is_empty());
}

#[test]
fn a_snapshot_stays_as_it_was_beside_others_on_every_tree() {
    for tree in TREES {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().tree(tree);
        play(&Database::create(folder.path().join("fruit.db"), &options).unwrap());
    }
    for tree in CHIP_TREES {
        let geometry = Geometry::new(2048, 16, 64).unwrap().with_spare(64).unwrap();
        let mut chip = SimulatedNand::new(geometry, NandCosts::default());
        let medium = Medium::Nand(Box::new(&mut chip));
        play(&Database::create_on(medium, &Options::new().tree(tree)).unwrap());
    }
}

#[test]
fn a_range_of_a_snapshot_goes_on_while_all_of_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("fruit.db"), &Options::new()).unwrap();
    database.load((0..20_000_u32).map(|key| (key.to_be_bytes(), [7; 8]))).unwrap();
    let snapshot = database.snapshot().unwrap();
    let mut range = snapshot.all().unwrap();
    for key in 0..20_000_u32 {
        assert_eq!(range.next().unwrap().unwrap().key, key.to_be_bytes());
        database.delete((19_999 - key).to_be_bytes()).unwrap();
    }
    assert_eq!(range.next().unwrap(), None);
    assert_eq!((database.count().unwrap(), snapshot.count().unwrap()), (0, 20_000));
}

#[test]
fn the_oldest_snapshot_is_over_when_there_is_no_room_and_writers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().snapshot_bytes(3000);
    let database = Database::create(folder.path().join("fruit.db"), &options).unwrap();
    database.put("apple", vec![1; 1000]).unwrap();
    let first = database.snapshot().unwrap();
    database.put("apple", vec![2; 1000]).unwrap();
    let second = database.snapshot().unwrap();
    assert_eq!(first.get("apple").unwrap(), Some(vec![1; 1000]));
    database.put("apple", "short").unwrap();
    database.put("pear", vec![3; 1000]).unwrap();
    database.put("pear", "short").unwrap();
    assert_eq!(second.get("apple").unwrap(), Some(vec![2; 1000]));
    database.put("plum", vec![4; 2000]).unwrap();
    let third = database.snapshot().unwrap();
    // The old value of the plum has no room beside what the first has kept.
    database.delete("plum").unwrap();
    assert!(matches!(first.get("apple"), Err(Error::SnapshotOver { limit: 3000 })));
    assert!(matches!(first.all().map(drop), Err(Error::SnapshotOver { .. })));
    assert_eq!(third.get("plum").unwrap(), Some(vec![4; 2000]));
    // A value that no snapshot can keep ends all that would need it.
    database.put("melon", vec![5; 5000]).unwrap();
    let fourth = database.snapshot().unwrap();
    database.put("melon", "short").unwrap();
    assert!(matches!(fourth.get("melon"), Err(Error::SnapshotOver { .. })));
    assert_eq!(database.get("melon").unwrap(), Some(b"short".to_vec()));
}

#[test]
fn a_cursor_of_a_snapshot_that_is_over_says_so_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().snapshot_bytes(0);
    let database = Database::create(folder.path().join("fruit.db"), &options).unwrap();
    database.load((0..20_000_u32).map(|key| (key.to_be_bytes(), [7; 8]))).unwrap();
    let snapshot = database.snapshot().unwrap();
    let mut cursor = snapshot.cursor();
    cursor.first().unwrap();
    database.put(7_u32.to_be_bytes(), [8; 8]).unwrap();
    // What was read ahead is of the snapshot.
    let failed = (0..20_000).find_map(|_| cursor.next().map(drop).err());
    assert!(matches!(failed, Some(Error::SnapshotOver { limit: 0 })));
    assert!(matches!(cursor.next(), Err(Error::SnapshotOver { .. })));
    assert!(matches!(cursor.previous(), Err(Error::SnapshotOver { .. })));
    assert!(cursor.value().is_err());
}

#[test]
fn going_back_ends_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("fruit.db"), &Options::new()).unwrap();
    database.put("apple", "red").unwrap();
    database.checkpoint("monday").unwrap();
    database.put("apple", "green").unwrap();
    let snapshot = database.snapshot().unwrap();
    database.rollback("monday").unwrap();
    assert!(matches!(snapshot.get("apple"), Err(Error::SnapshotOver { .. })));
    assert_eq!(database.snapshot().unwrap().get("apple").unwrap(), Some(b"red".to_vec()));
}

#[test]
fn a_snapshot_has_its_keyspaces_even_when_they_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().keyspaces(true);
    let shop = Database::create(folder.path().join("shop.db"), &options).unwrap();
    let prices = shop.create_keyspace("prices", Type::Bytes, Type::Bytes).unwrap();
    for fruit in 0..200_u32 {
        prices.put(fruit.to_be_bytes(), "5").unwrap();
    }
    let snapshot = shop.snapshot().unwrap();
    let before = snapshot.keyspace(&prices).unwrap();
    prices.put(7_u32.to_be_bytes(), "6").unwrap();
    assert_eq!(before.get(7_u32.to_be_bytes()).unwrap(), Some(b"5".to_vec()));
    shop.drop_keyspace("prices").unwrap();
    while shop.free_dropped().unwrap() {}
    assert_eq!(before.count().unwrap(), 200);
    assert_eq!(before.get(7_u32.to_be_bytes()).unwrap(), Some(b"5".to_vec()));
    assert!(matches!(prices.get(7_u32.to_be_bytes()), Err(Error::NoKeyspace { .. })));
    assert_eq!(snapshot.count().unwrap(), 0);
    assert!(matches!(snapshot.keyspace(&prices), Err(Error::NoKeyspace { .. })));
    // What comes in its place has nothing of it.
    let stock = shop.create_keyspace("stock", Type::Bytes, Type::Bytes).unwrap();
    stock.put(7_u32.to_be_bytes(), "100").unwrap();
    assert_eq!(snapshot.keyspace(&stock).unwrap().count().unwrap(), 0);
    assert_eq!(before.count().unwrap(), 200);
    let other = Database::create(folder.path().join("other.db"), &options).unwrap();
    let theirs = other.create_keyspace("prices", Type::Bytes, Type::Bytes).unwrap();
    assert!(matches!(snapshot.keyspace(&theirs), Err(Error::NoKeyspace { .. })));
}

/// Every snapshot is of a moment between two transactions, each of which keeps the sum.
#[test]
fn threads_read_snapshots_that_existed_while_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let bank = Database::create(folder.path().join("bank.db"), &Options::new()).unwrap();
    bank.load((0..100_u32).map(|account| (account.to_be_bytes(), [100]))).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let snapshot = bank.snapshot().unwrap();
                    let sum = |(_, value): (Vec<u8>, Vec<u8>)| u32::from(value[0]);
                    let all = || snapshot.all().unwrap().into_iter().map(Result::unwrap);
                    assert_eq!(all().map(sum).sum::<u32>(), 10_000);
                    assert!(all().eq(all()), "it changed");
                }
            });
        }
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..2000 {
            let [from, to] = [0, 1].map(|_| random.random_range(0..100_u32).to_be_bytes());
            bank.write(|transaction| {
                transaction.sync_later();
                let left = transaction.get(from)?.unwrap()[0];
                let moved = left.min(3);
                transaction.put(from, [left - moved])?;
                let more = transaction.get(to)?.unwrap()[0];
                transaction.put(to, [more.saturating_add(moved)])?;
                if more.checked_add(moved).is_none() { Err(Error::Ended) } else { Ok(()) }
            })
            .or_else(|error| if matches!(error, Error::Ended) { Ok(()) } else { Err(error) })
            .unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// A cursor beside a map, one step at a time.
#[test]
fn a_cursor_seeks_steps_both_ways_and_turns_round() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("fruit.db"), &Options::new()).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let keys = (0..2000_u32).map(|number| (number * 3).to_be_bytes());
    let model: Model = keys.map(|key| (key.to_vec(), key.to_vec())).collect();
    database.load(&model).unwrap();
    let snapshot = database.snapshot().unwrap();
    for key in (0..2000_u32).step_by(2) {
        database.delete((key * 3).to_be_bytes()).unwrap();
    }
    let mut cursor = snapshot.cursor();
    // Where the cursor is: behind all keys up to the bound.
    let mut place: Bound<Vec<u8>> = Bound::Unbounded;
    let mut is_behind = false;
    for _ in 0..5000 {
        let key = random.random_range(0..6100_u32).to_be_bytes();
        let next = |place: &Bound<Vec<u8>>| {
            let mut range = model.range::<Vec<u8>, _>((place.as_ref(), Bound::Unbounded));
            range.next().map(|(key, _)| key.clone())
        };
        let previous = |place: &Bound<Vec<u8>>| {
            let mut range = model.range::<Vec<u8>, _>((Bound::Unbounded, place.as_ref()));
            range.next_back().map(|(key, _)| key.clone())
        };
        let (found, expected, is_up) = match random.random_range(0..20) {
            0 => (cursor.first(), next(&Bound::Unbounded), true),
            1 => (cursor.last(), previous(&Bound::Unbounded), false),
            2 => (cursor.seek(key), next(&Bound::Included(key.to_vec())), true),
            3 => (cursor.seek_back(key), previous(&Bound::Included(key.to_vec())), false),
            4..13 if place == Bound::Unbounded && is_behind => (cursor.next(), None, true),
            4..13 => (cursor.next(), next(&place), true),
            _ if place == Bound::Unbounded && !is_behind => (cursor.previous(), None, false),
            _ => (cursor.previous(), previous(&place), false),
        };
        let found = found.unwrap().map(|entry| (entry.key.to_vec(), entry.value.whole().is_some()));
        assert_eq!(found, expected.clone().map(|key| (key, true)));
        match expected {
            Some(key) => {
                assert_eq!(cursor.value().unwrap(), key);
                place = Bound::Excluded(key);
            }
            None => {
                assert!(cursor.value().is_err());
                (place, is_behind) = (Bound::Unbounded, is_up);
            }
        }
    }
}
