//! Transactions: they see themselves, are made whole or not at all, and last when they return.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::thread;

use device::{DiskCosts, NandCosts};
use flashtree::{
    Database, Durability, Error, Geometry, KeyRange, Medium, OpenOptions, Options, Readable,
    Result, SectorGeometry, Transaction,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, DiskFaultPlan, FaultPlan, SimulatedDisk, SimulatedNand};
use storage::{Model, SharedDisk, content};

const TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "fd-tree", "lsm"];
const CHIP_TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "mu-star", "ipl"];

fn chip() -> SimulatedNand {
    let geometry = Geometry::new(2048, 16, 64).unwrap().with_spare(64).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

/// All entries that a transaction sees, in both directions and between bounds.
fn compare(transaction: &Transaction<'_, '_>, model: &Model, random: &mut ChaCha8Rng) {
    let seen: Model = transaction.all().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(&seen, model);
    let backwards = transaction.all_descending().unwrap().into_iter().map(Result::unwrap);
    let expected = model.iter().rev().map(|(key, value)| (key.clone(), value.clone()));
    assert!(backwards.eq(expected));
    let [low, high] = [0, 1].map(|_| [random.random_range(0..=255_u8)]);
    let between = transaction.range(low..=high).unwrap().into_iter().map(|entry| entry.unwrap().0);
    let expected = model.keys().filter(|key| (&low[..]..=&high[..]).contains(&key.as_slice()));
    assert!(between.eq(expected.cloned()));
    let key = [random.random_range(0..=255_u8), 7];
    assert_eq!(transaction.get(key).unwrap().as_ref(), model.get(&key[..]));
    assert_eq!(transaction.contains(key).unwrap(), model.contains_key(&key[..]));
}

fn play(database: &Database<'_>) {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut model = Model::new();
    for round in 0..60 {
        let before = model.clone();
        let is_kept = random.random_bool(0.7);
        let outcome = database.write(|transaction| {
            if random.random_bool(0.5) {
                transaction.sync_later();
            }
            for change in 0..random.random_range(0..30_u32) {
                let key = [random.random_range(0..=255_u8), 7];
                if random.random_bool(0.6) {
                    let value = vec![round; random.random_range(0..40)];
                    transaction.put(key, &value)?;
                    model.insert(key.to_vec(), value);
                } else {
                    transaction.delete(key)?;
                    model.remove(&key[..]);
                }
                if change.is_multiple_of(10) {
                    compare(transaction, &model, &mut random);
                }
            }
            compare(transaction, &model, &mut random);
            if is_kept { Ok(()) } else { Err(Error::Ended) }
        });
        assert_eq!(outcome.is_ok(), is_kept);
        if !is_kept {
            model = before;
        }
        let found: Model = database.all().unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(found, model);
    }
    assert!(database.check().unwrap().is_empty());
}

#[test]
fn a_transaction_reads_what_it_wrote_over_what_is_there() {
    for tree in TREES {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().tree(tree);
        play(&Database::create(folder.path().join("fruit.db"), &options).unwrap());
    }
    for tree in CHIP_TREES {
        let mut chip = chip();
        let medium = Medium::Nand(Box::new(&mut chip));
        play(&Database::create_on(medium, &Options::new().tree(tree)).unwrap());
    }
}

/// Longer than what a range reads at once, with long values among them.
#[test]
fn ranges_of_a_transaction_are_merged_beyond_what_is_read_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("fruit.db"), &Options::new()).unwrap();
    let mut model = Model::new();
    let mut batch = flashtree::Batch::new();
    for key in 0..20_000_u32 {
        let value = vec![1; if key.is_multiple_of(3000) { 9000 } else { 12 }];
        batch.put(key.to_be_bytes(), &value);
        model.insert(key.to_be_bytes().to_vec(), value);
    }
    database.write_batch(&batch).unwrap();
    let mut transaction = database.begin().unwrap();
    for key in (0..24_000_u32).step_by(7) {
        if key.is_multiple_of(2) {
            transaction.delete(key.to_be_bytes()).unwrap();
            model.remove(&key.to_be_bytes()[..]);
        } else {
            transaction.put(key.to_be_bytes(), [2; 30]).unwrap();
            model.insert(key.to_be_bytes().to_vec(), vec![2; 30]);
        }
    }
    for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
        let seen: Vec<_> =
            transaction.scan(range).unwrap().into_iter().map(Result::unwrap).collect();
        let mut expected: Vec<_> = model.clone().into_iter().collect();
        if range != KeyRange::ALL {
            expected.reverse();
        }
        assert!(seen == expected, "{range:?}");
    }
    transaction.commit().unwrap();
    let found: Model = database.all().unwrap().into_iter().map(Result::unwrap).collect();
    assert!(found == model);
}

#[test]
fn increments_of_four_threads_are_all_counted() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new();
    let database = Database::create(folder.path().join("count.db"), &options).unwrap();
    thread::scope(|scope| {
        for number in 0..4 {
            let database = &database;
            scope.spawn(move || {
                for _ in 0..50 {
                    if number % 2 == 0 {
                        let add = |transaction: &mut Transaction<'_, '_>| {
                            transaction.sync_later();
                            let old = transaction.get("n")?.map_or(0, |value| value[0]);
                            transaction.put("n", [old + 1])
                        };
                        database.write(add).unwrap();
                    } else {
                        loop {
                            let old = database.get("n").unwrap();
                            let new = [old.as_ref().map_or(0, |value| value[0]) + 1];
                            if database.compare_and_set("n", old.as_deref(), Some(&new)).unwrap() {
                                break;
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!(database.get("n").unwrap(), Some(vec![200]));
}

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("fruit.db"), &Options::new()).unwrap();
    let refused = database.write(|transaction| {
        transaction.put("apple", "red")?;
        transaction.put(vec![7; 3000], "too long a key")
    });
    assert!(matches!(refused, Err(Error::Index(_))), "{refused:?}");
    assert_eq!(database.count().unwrap(), 0);
    let geometry = Geometry::new(2048, 16, 256).unwrap().with_spare(64).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let options = Options::new().tree("mu-star").journal_bytes(16 << 10);
    let database = Database::create_on(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    let refused = database.write(|transaction| {
        (0..300_u32).try_for_each(|key| transaction.put(key.to_be_bytes(), [1; 100]))
    });
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("journal"), "{text}");
    assert_eq!(database.count().unwrap(), 0);
    database.put("apple", "red").unwrap();
}

/// Each state that the transactions of a history leave.
fn states() -> Vec<Model> {
    let mut states = vec![Model::new()];
    for number in 0..6 {
        let mut next = states.last().unwrap().clone();
        change(number, &mut |key, value| {
            match value {
                Some(value) => next.insert(key, value),
                None => next.remove(&key),
            };
            Ok(())
        })
        .unwrap();
        states.push(next);
    }
    states
}

/// The changes of a transaction.
fn change(number: u32, set: &mut dyn FnMut(Vec<u8>, Option<Vec<u8>>) -> Result<()>) -> Result<()> {
    for place in 0..12_u32 {
        let key = ((number * 5 + place * 3) % 23).to_be_bytes().to_vec();
        let is_delete = (number + place).is_multiple_of(4);
        set(key, (!is_delete).then(|| vec![number as u8; 30 + place as usize]))?;
    }
    Ok(())
}

/// Makes transactions until one fails; returns how many were made.
fn write(database: &Database<'_>, is_synced: bool) -> u32 {
    let make = |number: &u32| {
        let made = database.write(|transaction| {
            if !is_synced {
                transaction.sync_later();
            }
            change(*number, &mut |key, value| match value {
                Some(value) => transaction.put(key, value),
                None => transaction.delete(key),
            })
        });
        made.is_ok()
    };
    (0..states().len() as u32 - 1).take_while(make).count() as u32
}

/// What is there after a power cut is what a transaction left: of those that returned none is
/// missing, unless it was not synced.
fn judge(database: &mut Database<'_>, made: u32, is_synced: bool, when: &str) {
    let states = states();
    let found = content(database).unwrap();
    let place = states.iter().position(|state| *state == found);
    let place = place.unwrap_or_else(|| panic!("{when}: a part of a transaction: {found:?}"));
    assert!(place as u32 <= made + 1, "{when}: {place} of {made}");
    assert!(!is_synced || place as u32 >= made, "{when}: only {place} of {made}");
    assert_eq!(database.check().unwrap(), [""; 0], "{when}");
}

#[test]
fn wherever_the_power_goes_on_a_disk_a_transaction_is_whole_or_not_there() {
    let mut cuts = 0;
    for tree in TREES {
        for durability in [Durability::Batch, Durability::Every, Durability::Checkpoint] {
            for is_synced in [true, false] {
                let geometry = SectorGeometry::new(512, 8192).unwrap();
                let mut made = SimulatedDisk::new(geometry, DiskCosts::default());
                let options = Options::new().tree(tree).durability(durability);
                let options = options.memory(64 << 10).journal_bytes(8 << 10).identity(1);
                let medium = Medium::Sectors(Box::new(&mut made));
                Database::create_on(medium, &options).unwrap().close().unwrap();
                for at in 1.. {
                    let when = format!("{tree}, {durability}, cut at {at}");
                    let mut disk = made.clone();
                    disk.arm(DiskFaultPlan::cut(at, Cut::Operation(at)));
                    let medium = Medium::Sectors(Box::new(&mut disk));
                    let open = OpenOptions::new().memory(64 << 10);
                    let returned = Database::open_on(medium, &open).map_or(0, |database| {
                        let made = write(&database, is_synced || durability == Durability::Every);
                        drop(database);
                        made
                    });
                    if !disk.is_without_power() {
                        break;
                    }
                    cuts += 1;
                    disk.restore_power();
                    disk.arm(DiskFaultPlan::default());
                    let medium = Medium::Sectors(Box::new(&mut disk));
                    let mut database = Database::open_on(medium, &open).expect(&when);
                    judge(&mut database, returned, is_synced, &when);
                }
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 200, "{cuts}");
}

#[test]
fn wherever_the_power_goes_on_a_chip_a_transaction_is_whole_or_not_there() {
    let mut cuts = 0;
    for tree in CHIP_TREES {
        let mut made = chip();
        let options = Options::new().tree(tree).identity(1);
        let medium = Medium::Nand(Box::new(&mut made));
        Database::create_on(medium, &options).unwrap().close().unwrap();
        for at in 1.. {
            let when = format!("{tree}, cut at {at}");
            let mut chip = made.clone();
            chip.arm(FaultPlan::cut(at, Cut::Change(at)));
            let medium = Medium::Nand(Box::new(&mut chip));
            let returned = Database::open_on(medium, &OpenOptions::new())
                .map_or(0, |database| write(&database, true));
            if !chip.is_without_power() {
                break;
            }
            cuts += 1;
            chip.restore_power();
            chip.arm(FaultPlan::default());
            let medium = Medium::Nand(Box::new(&mut chip));
            let mut database = Database::open_on(medium, &OpenOptions::new()).expect(&when);
            judge(&mut database, returned, true, &when);
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 50, "{cuts}");
}

/// A copy of the bytes that a process had written when it was killed.
#[test]
fn a_transaction_is_there_when_the_process_is_killed_behind_it() {
    for tree in TREES {
        let disk = SharedDisk::new(4096, 4096);
        let options = Options::new().tree(tree).memory(1 << 20);
        let database = Database::create_on(disk.medium(), &options).unwrap();
        for number in 0..20_u8 {
            database.write(|transaction| transaction.put([number], [number; 100])).unwrap();
            let left = disk.copy();
            let open = OpenOptions::new().memory(1 << 20);
            let left = Database::open_on(left.medium(), &open).unwrap();
            assert_eq!(left.count().unwrap(), u64::from(number) + 1, "{tree}");
        }
    }
}
