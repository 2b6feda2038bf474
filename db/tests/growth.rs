//! A database is as long as its data, and a disk without room refuses puts and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::collections::VecDeque;
use std::fs;

use flashtree::{Batch, Database, Durability, Error, OpenOptions, Options};
use storage::{Model, SharedDisk, compare, place};

const TREES: [&str; 3] = ["b-plus", "la-tree", "flat-tree"];

fn key(number: u32) -> Vec<u8> {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec()
}

fn put(database: &mut Database<'_>, model: &mut Model, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let value = vec![number as u8; 12];
        database.put(key(number), &value).unwrap();
        model.insert(key(number), value);
    }
}

fn length(path: &std::path::Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn a_file_is_as_long_as_its_data_and_shrinks_again() {
    for tree in TREES {
        for durability in Durability::ALL {
            let (_folder, path) = place();
            let options = Options::new().tree(tree).durability(durability);
            let mut database = Database::create(&path, &options).unwrap();
            assert!(length(&path) <= 64 << 10, "{tree}, {durability}: {} bytes", length(&path));
            let mut model = Model::new();
            put(&mut database, &mut model, 0..1);
            assert!(length(&path) < 1 << 20, "{tree}, {durability}: {} bytes", length(&path));
            // Each of them waits for the disk under the last durability.
            let entries = if durability == Durability::Every { 2_000 } else { 40_000 };
            put(&mut database, &mut model, 1..entries);
            database.close().unwrap();
            let full = length(&path);
            assert!(full < 2 << 20, "{tree}, {durability}: {full} bytes");
            let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
            compare(&mut database, &model, "after growing");
            assert_eq!(length(&path), full, "reading changes nothing");
            for number in (0..entries).filter(|number| number % 10 > 0) {
                database.delete(key(number)).unwrap();
                model.remove(&key(number));
            }
            database.close().unwrap();
            Database::compact(&path, &OpenOptions::new()).unwrap();
            let small = length(&path);
            assert!(small < full / 2, "{tree}, {durability}: {small} of {full} bytes");
            let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
            compare(&mut database, &model, "after shrinking");
        }
    }
}

#[test]
fn two_hundred_thousand_entries_of_16_bytes_take_nine_megabytes_and_go() {
    let mut longest = 0;
    for tree in TREES {
        let (_folder, path) = place();
        let database = Database::create(&path, &Options::new().tree(tree)).unwrap();
        // The first put finds room for more.
        database.put(0_u64.to_be_bytes(), [0; 8]).unwrap();
        let new = length(&path);
        let keys = || (0..200_000_u64).map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for key in keys() {
            database.put(key.to_be_bytes(), key.to_le_bytes()).unwrap();
        }
        database.close().unwrap();
        let full = length(&path);
        let database = Database::open(&path, &OpenOptions::new()).unwrap();
        for key in keys().enumerate().filter(|(place, _)| place % 10 > 0).map(|(_, key)| key) {
            database.delete(key.to_be_bytes()).unwrap();
        }
        database.close().unwrap();
        let emptied = length(&path);
        Database::compact(&path, &OpenOptions::new()).unwrap();
        let compact = length(&path);
        println!(
            "{tree}: {new} bytes new and open, {full} with 200,000 entries of 16 bytes, \
             {emptied} without nine tenths of them, {compact} compacted"
        );
        assert!(new < 1 << 20 && compact < full / 8, "{tree}");
        longest = longest.max(full);
    }
    println!("the longest file has {longest} bytes");
    assert!(longest <= 9_000_000);
}

#[test]
fn a_file_with_a_named_checkpoint_does_not_grow_with_each_opening() {
    for tree in TREES {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            let (_folder, path) = place();
            let options = Options::new().tree(tree).durability(durability);
            let mut database = Database::create(&path, &options).unwrap();
            let mut model = Model::new();
            put(&mut database, &mut model, 0..2_500);
            database.checkpoint("kept").unwrap();
            let kept = model.clone();
            database.close().unwrap();
            let before = length(&path);
            for round in 0..60 {
                let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
                put(&mut database, &mut model, round..round + 1);
                database.close().unwrap();
            }
            // Each session keeps what the pages held that it wrote.
            let each = (length(&path) - before) / 60;
            assert!(each < 256 << 10, "{tree}, {durability}: {each} bytes an opening");
            let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
            compare(&mut database, &model, "the present");
            database.rollback("kept").unwrap();
            compare(&mut database, &kept, "gone back");
        }
    }
}

#[test]
fn a_file_whose_oldest_checkpoint_is_forgotten_again_and_again_stays_short() {
    for tree in ["b-plus", "la-tree", "flat-tree", "fd-tree"] {
        for kept_most in [1, 3] {
            let (_folder, path) = place();
            let options = Options::new().tree(tree).durability(Durability::Batch);
            let mut database = Database::create(&path, &options).unwrap();
            let mut model = Model::new();
            put(&mut database, &mut model, 0..4_000);
            let mut kept: VecDeque<(String, Model)> = VecDeque::new();
            let most = length(&path).max(12 << 20);
            let (mut longest, mut early) = (0, 0);
            for round in 0..120_u32 {
                let name = format!("day {round}");
                database.checkpoint(&name).unwrap();
                kept.push_back((name, model.clone()));
                if kept.len() > kept_most {
                    database.forget(&kept.pop_front().unwrap().0).unwrap();
                }
                // Each of them changes most pages.
                let numbers = (0..4_000).filter(|number| number % 20 == round % 20);
                put(&mut database, &mut model, numbers);
                if round % 10 == 9 {
                    database.close().unwrap();
                    database = Database::open(&path, &OpenOptions::new()).unwrap();
                }
                longest = longest.max(length(&path));
                early = if round < 30 { longest } else { early };
            }
            println!("{tree}, {kept_most}: {early} bytes in 30 rounds, {longest} in 120");
            assert!(longest <= most, "{tree}, {kept_most}: {longest}");
            compare(&mut database, &model, "the present");
            for (name, then) in kept.iter().rev() {
                database.rollback(name).unwrap();
                compare(&mut database, then, name);
            }
            let names = database.checkpoints().unwrap();
            assert_eq!(names.len(), 1, "{tree}: what was forgotten stays forgotten");
        }
    }
}

/// What a name needs is kept once, however often the pages are written again.
#[test]
fn a_file_with_one_checkpoint_stays_short_while_all_is_overwritten_again_and_again() {
    for tree in ["b-plus", "la-tree", "flat-tree", "fd-tree", "bftl", "flashdb", "lazy-update"] {
        let (_folder, path) = place();
        let options = Options::new().tree(tree).durability(Durability::Batch);
        let mut database = Database::create(&path, &options).unwrap();
        let mut model = Model::new();
        put(&mut database, &mut model, 0..4_000);
        database.checkpoint("kept").unwrap();
        let kept = model.clone();
        let (mut early, mut longest) = (0, 0);
        for round in 0..300_u32 {
            put(&mut database, &mut model, (0..4_000).filter(|number| number % 10 == round % 10));
            if round % 50 == 49 {
                database.close().unwrap();
                database = Database::open(&path, &OpenOptions::new()).unwrap();
            }
            longest = longest.max(length(&path));
            early = if round < 75 { longest } else { early };
        }
        println!("{tree}: {early} bytes in 75 rounds, {longest} in 300");
        assert!(longest * 4 <= early * 5, "{tree}: {longest} for {early}");
        compare(&mut database, &model, "the present");
        database.rollback("kept").unwrap();
        compare(&mut database, &kept, "gone back");
    }
}

/// The oldest name stays while another is replaced again and again, until the file is full.
#[test]
fn a_full_file_has_room_once_its_oldest_checkpoint_is_forgotten() {
    for tree in ["b-plus", "la-tree", "flat-tree", "bftl", "flashdb", "lazy-update"] {
        let (_folder, path) = place();
        let options = Options::new().tree(tree).durability(Durability::Batch).capacity(4 << 20);
        let mut database = Database::create(&path, &options).unwrap();
        let mut model = Model::new();
        put(&mut database, &mut model, 0..1_000);
        database.checkpoint("oldest").unwrap();
        database.checkpoint("newest").unwrap();
        let is_full = (0..400_u32).any(|round| {
            let value = round.to_le_bytes();
            let changed = (0..1_000).try_for_each(|number| database.put(key(number), value));
            let named = changed.and_then(|()| {
                database.forget("newest")?;
                database.checkpoint("newest").map(drop)
            });
            assert!(matches!(named, Ok(()) | Err(Error::Kept { .. })), "{tree}: {named:?}");
            named.is_err()
        });
        assert!(is_full, "{tree}: names never fill the file");
        database.forget("oldest").unwrap();
        let put = database.put(key(0), b"last");
        assert!(put.is_ok(), "{tree}: {put:?}, {:?}", database.stats().unwrap().recovery);
    }
}

#[test]
fn what_named_checkpoints_need_moves_with_the_end_of_the_file() {
    for tree in TREES {
        let (_folder, path) = place();
        let mut database = Database::create(&path, &Options::new().tree(tree)).unwrap();
        let mut model = Model::new();
        put(&mut database, &mut model, 0..5_000);
        database.close().unwrap();
        let before = length(&path);
        database = Database::open(&path, &OpenOptions::new()).unwrap();
        database.checkpoint("kept").unwrap();
        let kept = model.clone();
        for round in 0..8 {
            put(&mut database, &mut model, (0..70_000).filter(|number| number % 8 == round));
            if round == 3 {
                database.close().unwrap();
                database = Database::open(&path, &OpenOptions::new()).unwrap();
            }
        }
        compare(&mut database, &model, "the present");
        assert!(length(&path) > 3 * before, "{tree} grew from {before} to {} bytes", length(&path));
        database.rollback("kept").unwrap();
        compare(&mut database, &kept, "gone back");
        database.forget("kept").unwrap();
        database.close().unwrap();
        assert!(length(&path) <= before, "{tree}: {} of {before} bytes", length(&path));
    }
}

#[test]
fn a_full_disk_refuses_the_put_and_all_before_stays() {
    let each = |tree| Durability::ALL.map(|durability| (tree, durability));
    for (tree, durability) in contract::sample(3, TREES.into_iter().flat_map(each)) {
        let disk = SharedDisk::growing(4096, 8192);
        disk.leave_room(700);
        let options = Options::new().tree(tree).durability(durability);
        let mut database = Database::create_on(disk.medium(), &options).unwrap();
        let mut model = Model::new();
        let mut refused = None;
        for number in 0..300_000 {
            let value = vec![number as u8; 12];
            let mut batch = Batch::new();
            batch.put(key(number), &value);
            batch.put(key(number + 1_000_000), &value);
            match database.write_batch(&batch) {
                Ok(()) => {
                    model.insert(key(number), value.clone());
                    model.insert(key(number + 1_000_000), value);
                }
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let name = format!("{tree}, {durability}, {} entries", model.len());
        assert!(matches!(refused, Some(Error::Full { .. } | Error::Driver { .. })), "{name}");
        assert!(model.len() > 20_000, "{name}");
        compare(&mut database, &model, &name);
        // What needs no more room is taken.
        let gone: Vec<_> = model.keys().step_by(7).cloned().collect();
        for key in gone {
            database.delete(&key).unwrap_or_else(|error| panic!("{name}: {error}"));
            model.remove(&key);
        }
        if durability == Durability::None {
            database.close().unwrap();
        } else {
            // Not closed: an opening needs no room that is not there.
            database.sync().unwrap();
            drop(database);
        }
        let mut database = Database::open_on(disk.medium(), &OpenOptions::new()).unwrap();
        compare(&mut database, &model, &name);
        disk.leave_room(8192);
        put(&mut database, &mut model, 2_000_000..2_030_000);
        compare(&mut database, &model, &name);
        database.close().unwrap();
        assert!(disk.length() < 8192);
    }
}

#[test]
fn what_is_longer_than_the_journal_lasts_when_it_returns() {
    for (tree, durability) in [("b-plus", Durability::Every), ("la-tree", Durability::Batch)] {
        let disk = SharedDisk::growing(4096, 8192);
        let options = Options::new().tree(tree).durability(durability).journal_bytes(64 << 10);
        let database = Database::create_on(disk.medium(), &options).unwrap();
        database.put("before", "stays").unwrap();
        let long = vec![7; 3 << 20];
        database.put("long", &long).unwrap();
        let mut batch = Batch::new();
        for number in 0..20_000_u32 {
            batch.put(number.to_be_bytes(), number.to_le_bytes());
        }
        database.write_batch(&batch).unwrap();
        // The process ends here.
        drop(database);
        let database = Database::open_on(disk.medium(), &OpenOptions::new()).unwrap();
        assert_eq!(database.count().unwrap(), 20_002, "{tree}");
        assert_eq!(database.get("before").unwrap().unwrap(), b"stays");
        assert_eq!(database.get("long").unwrap().unwrap(), long);
        assert_eq!(database.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_file_as_long_as_it_can_be_is_read_when_its_process_was_killed() {
    for tree in TREES {
        let (_folder, path) = storage::place();
        let options = Options::new().tree(tree).capacity(1 << 20);
        let database = Database::create(&path, &options).unwrap();
        let mut model = Model::new();
        for number in 0.. {
            let value = vec![number as u8; 300];
            match database.put(key(number), &value) {
                Ok(()) => drop(model.insert(key(number), value)),
                Err(error) => {
                    assert!(matches!(error, Error::Full { .. }), "{tree}: {error}");
                    break;
                }
            }
        }
        // What a killed process leaves is recovered, and then closed without being read.
        let left = path.with_extension("left");
        std::fs::copy(&path, &left).unwrap();
        assert_eq!(length(&left), 1 << 20, "{tree}");
        drop(database);
        let refused = Database::open_read_only(&left, &OpenOptions::new()).err();
        assert!(matches!(refused, None | Some(Error::NeedsRecovery)), "{tree}: {refused:?}");
        let mut database = Database::open(&left, &OpenOptions::new()).unwrap();
        compare(&mut database, &model, tree);
    }
}

/// A value whose length follows from the number and the round.
fn value(number: u32, round: u32, most: u32) -> Vec<u8> {
    let length = number.wrapping_mul(0x85EB_CA6B).wrapping_add(round) >> 8;
    vec![number as u8; (length % most) as usize]
}

/// Fills `database` until a put is refused, with overwriting between; returns how many keys it has.
fn fill(database: &Database<'_>, key: impl Fn(u32) -> Vec<u8>, round: u32, most: u32) -> u32 {
    for number in 0.. {
        for (place, round) in [(number, round), (number / 2, round + 1)] {
            match database.put(key(place), value(place, round, most)) {
                Ok(()) => {}
                Err(Error::Full { .. }) => return number.max(1),
                Err(error) => panic!("{error}"),
            }
        }
    }
    0
}

#[test]
fn a_full_file_of_flat_tree_takes_deletes_behind_openings() {
    let orders: [fn(u32) -> Vec<u8>; 3] =
        [key, |number| number.to_be_bytes().to_vec(), |number| (!number).to_be_bytes().to_vec()];
    for (order, most) in [(0, 20), (0, 1500), (1, 200), (2, 200), (0, 200)] {
        let (_folder, path) = place();
        let options = Options::new().tree("flat-tree").capacity(1 << 20);
        let mut database = Database::create(&path, &options).unwrap();
        let mut first = 0;
        for round in 0..4 {
            let name = format!("order {order}, {most} bytes, round {round}");
            let count = fill(&database, orders[order], round, most);
            first = first.max(if round == 0 { count } else { 0 });
            assert!(count >= first * 9 / 10, "{name}: {count} keys, {first} at first");
            for (place, number) in (0..=count).enumerate() {
                if place % 700 == 10 {
                    if round % 2 == 0 {
                        database.close().unwrap();
                    } else {
                        drop(database);
                    }
                    database = Database::open(&path, &OpenOptions::new()).unwrap();
                }
                let number = if round == 1 { count - number } else { number };
                let deleted = database.delete(orders[order](number));
                deleted.unwrap_or_else(|error| panic!("{name}, {place}: {error}"));
            }
            assert_eq!(database.count().unwrap(), 0, "{name}");
            assert_eq!(database.check().unwrap(), Vec::<String>::new(), "{name}");
        }
    }
}
