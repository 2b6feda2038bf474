//! A database that several threads share.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flashtree::{Database, Error, KeyRange, OpenOptions, Options};
use tempfile::TempDir;

const TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "fd-tree", "lsm"];

fn make(options: &Options) -> (TempDir, Database<'static>) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("shared.db"), options).unwrap();
    (folder, database)
}

#[test]
fn a_database_can_be_sent_and_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Database<'_>>();
}

#[test]
fn each_read_of_eight_threads_beside_a_writer_is_of_a_state_that_was() {
    const KEYS: u32 = 200;
    for tree in TREES {
        let (_folder, database) = make(&Options::new().tree(tree));
        let write = |round: u32| {
            let mut batch = flashtree::Batch::new();
            for key in 0..KEYS {
                batch.put(key.to_be_bytes(), round.to_be_bytes());
            }
            database.write_batch(&batch).unwrap();
        };
        write(0);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for reader in 0..8_u32 {
                let (database, is_over) = (&database, &is_over);
                scope.spawn(move || {
                    let mut last = 0;
                    for read in 0_u32.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let key = (reader * 31 + read * 7) % KEYS;
                        let value = database.get(key.to_be_bytes()).unwrap().unwrap();
                        let round = u32::from_be_bytes(value.try_into().unwrap());
                        assert!(round >= last, "{tree}: an older state came after a newer one");
                        last = round;
                        let rounds = database.read(|database| {
                            database.all()?.into_iter().map(|entry| Ok(entry?.1)).collect()
                        });
                        let rounds: Vec<Vec<u8>> = rounds.unwrap();
                        assert_eq!(rounds.len(), KEYS as usize, "{tree}");
                        assert!(rounds.iter().all(|round| *round == rounds[0]), "{tree}: mixed");
                    }
                });
            }
            for round in 1..30 / contract::share(3) as u32 {
                write(round);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(database.check().unwrap().is_empty());
        database.close().unwrap();
    }
}

#[test]
fn a_range_goes_on_while_others_write() {
    for tree in TREES {
        let (_folder, database) = make(&Options::new().tree(tree));
        for key in 0..3000_u32 {
            database.put(key.to_be_bytes(), [1; 16]).unwrap();
        }
        for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
            let (mut seen, mut last) = (0, None);
            let mut entries = database.scan(range).unwrap();
            while let Some(entry) = entries.next().unwrap() {
                let key = u32::from_be_bytes(entry.key.try_into().unwrap());
                let is_ahead = match range.direction {
                    flashtree::Direction::Ascending => last.is_none_or(|last| key > last),
                    flashtree::Direction::Descending => last.is_none_or(|last| key < last),
                };
                assert!(is_ahead, "{tree}: {key} behind {last:?}");
                last = Some(key);
                seen += 1;
                // What is changed may be what is read ahead, or not.
                database.put((key % 100).to_be_bytes(), [2; 16]).unwrap();
                if key.is_multiple_of(10) {
                    database.delete((key + 1).to_be_bytes()).unwrap();
                    database.put((key + 1).to_be_bytes(), [3; 16]).unwrap();
                }
            }
            assert!(seen >= 2700, "{tree}: {seen}");
        }
    }
}

#[test]
fn an_entry_that_is_deleted_while_a_range_has_it_is_told_of_or_passed_over() {
    let (_folder, database) = make(&Options::new());
    let long = vec![7; 20_000];
    database.put("a", "short").unwrap();
    database.put("b", &long).unwrap();
    database.put("c", &long).unwrap();
    let mut range = database.all().unwrap();
    range.next().unwrap();
    range.next().unwrap();
    database.delete("b").unwrap();
    assert!(matches!(range.value(), Err(Error::Deleted)));
    assert_eq!(range.next().unwrap().unwrap().key, b"c");
    assert_eq!(range.value().unwrap(), long);
    let entries = database.all().unwrap().into_iter();
    database.delete("c").unwrap();
    let left: Vec<_> = entries.map(|entry| entry.unwrap().0).collect();
    assert_eq!(left, [b"a"]);
}

#[test]
fn a_call_from_inside_of_another_is_refused() {
    let (_folder, database) = make(&Options::new());
    database.put("a", "b").unwrap();
    let within = |refused: Result<(), Error>| assert!(matches!(refused, Err(Error::WithinItself)));
    database
        .read(|inside| {
            within(inside.put("a", "c"));
            within(inside.write(|_| Ok(())));
            within(inside.rollback("none"));
            inside.read(|inside| inside.get("a").map(drop))
        })
        .unwrap();
    database
        .write(|_| {
            within(database.put("a", "c"));
            within(database.begin().map(drop));
            database.get("a").map(drop)
        })
        .unwrap();
    let (_other_folder, other) = make(&Options::new());
    let loaded = other.load([("a", "b")].into_iter().inspect(|_| {
        within(other.get("a").map(drop));
        within(other.put("a", "c"));
    }));
    assert_eq!(loaded.unwrap(), 1);
    assert!(database.copy_into(&database).is_err());
    assert_eq!(database.get("a").unwrap(), Some(b"b".to_vec()));
}

#[test]
fn after_a_panic_inside_a_call_the_database_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("panic.db");
    let database = Database::create(&path, &Options::new()).unwrap();
    database.put("a", "b").unwrap();
    database.sync().unwrap();
    let panicked = thread::scope(|scope| {
        let copy = folder.path().join("copy.db");
        let backup = || database.backup_while(copy, &mut |_| panic!("on purpose"));
        scope.spawn(backup).join()
    });
    assert!(panicked.is_err());
    assert!(matches!(database.get("a"), Err(Error::Panicked)));
    assert!(matches!(database.put("a", "c"), Err(Error::Panicked)));
    assert!(matches!(database.close(), Err(Error::Panicked)));
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    assert_eq!(database.get("a").unwrap(), Some(b"b".to_vec()));
    assert!(database.check().unwrap().is_empty());
}

/// In a transaction and in a state that stays no lock is held, so a panic there breaks nothing.
#[test]
fn a_panic_in_a_transaction_drops_it() {
    let (_folder, database) = make(&Options::new());
    let panicked = thread::scope(|scope| {
        let write = || {
            let _ = database.write(|transaction| -> flashtree::Result<()> {
                transaction.put("a", "b")?;
                panic!("on purpose")
            });
        };
        scope.spawn(write).join().is_err()
    });
    assert!(panicked);
    assert!(!database.contains("a").unwrap());
    database.put("a", "c").unwrap();
}

#[test]
fn who_waits_too_long_for_a_turn_is_told_how_long() {
    let (_folder, database) = make(&Options::new().turn_wait(Duration::from_millis(20)));
    let transaction = database.begin().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let refused = database.put("a", "b");
            assert!(matches!(refused, Err(Error::Waited { .. })), "{refused:?}");
            assert_eq!(refused.unwrap_err().to_string().matches("0.02 s").count(), 1);
            assert!(!database.contains("a").unwrap());
        });
    });
    drop(transaction);
    database.put("a", "b").unwrap();
}

/// Two that are copied into each other would each have what the other waits for.
#[test]
fn databases_that_are_copied_into_each_other_do_not_wait_for_ever() {
    let options = Options::new().turn_wait(Duration::from_millis(200));
    let [(_one_folder, one), (_two_folder, two)] = [make(&options), make(&options)];
    for key in 0..5000_u32 {
        one.put(key.to_be_bytes(), [1; 16]).unwrap();
        two.put(key.to_be_bytes(), [2; 16]).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| one.copy_into(&two).unwrap_err());
        scope.spawn(|| two.copy_into(&one).unwrap_err());
    });
    assert!(one.check().unwrap().is_empty() && two.check().unwrap().is_empty());
}
