//! Values of any length on raw flash: in every tree, whole or not there, wherever the power goes,
//! and without a trace when they are gone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use device::NandCosts;
use flashtree::{
    Batch, Database, Durability, EntryShape, Error, Geometry, Medium, OpenOptions, Options, Width,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultPlan, SimulatedNand};
use storage::{Model, compare};

/// Trees that stand on raw flash.
fn trees() -> impl Iterator<Item = &'static str> {
    trees::TREES.iter().filter(|entry| entry.nand).map(|entry| entry.name)
}

fn chip(pages: u32, blocks: u32) -> SimulatedNand {
    SimulatedNand::new(Geometry::new(2048, pages, blocks).unwrap(), NandCosts::default())
}

fn medium(chip: &mut SimulatedNand) -> Medium<'_> {
    Medium::Nand(Box::new(chip))
}

fn open(chip: &mut SimulatedNand) -> flashtree::Result<Database<'_>> {
    Database::open_on(medium(chip), &OpenOptions::new())
}

/// A value of any order of magnitude, up to 2^17 bytes.
fn value(random: &mut ChaCha8Rng) -> Vec<u8> {
    let most = 1_usize << random.random_range(0..18);
    let mut value = vec![0; random.random_range(0..most)];
    random.fill_bytes(&mut value);
    value
}

/// Keys of a length, with values of any length.
fn shapes() -> [EntryShape; 3] {
    [Width::Variable, Width::Fixed(4), Width::Fixed(12)]
        .map(|key| EntryShape { key, value: Width::Variable })
}

fn key(shape: EntryShape, number: u32) -> Vec<u8> {
    match shape.key {
        Width::Variable => number.to_string().into_bytes(),
        Width::Fixed(bytes) => [&number.to_be_bytes()[..], &[7; 8]].concat()[..bytes.into()].into(),
    }
}

#[test]
fn histories_of_long_and_short_values_are_those_of_an_ordered_map() {
    for (tree, shape) in trees().flat_map(|tree| shapes().map(|shape| (tree, shape))) {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut chip = chip(32, 256);
        let options = Options::new().tree(tree).shape(shape).durability(Durability::Batch);
        let mut model = Model::new();
        Database::create_on(medium(&mut chip), &options).unwrap().close().unwrap();
        for session in 0..4 {
            let what = format!("{tree}, {shape:?}, session {session}");
            let mut database = open(&mut chip).unwrap();
            compare(&mut database, &model, &what);
            for _ in 0..40 {
                let mut batch = Batch::new();
                for _ in 0..random.random_range(1..4) {
                    let key = key(shape, random.random_range(0..12));
                    if random.random_bool(0.7) {
                        let value = value(&mut random);
                        batch.put(&key, &value);
                        model.insert(key, value);
                    } else {
                        batch.delete(&key);
                        model.remove(&key);
                    }
                }
                database.write_batch(&batch).unwrap();
            }
            compare(&mut database, &model, &what);
            database.close().unwrap();
        }
        let mut database = open(&mut chip).unwrap();
        for key in core::mem::take(&mut model).into_keys() {
            database.delete(key).unwrap();
        }
        compare(&mut database, &model, tree);
    }
}

/// A key, and its value from now on.
type Change = (&'static str, Option<Vec<u8>>);

/// Updates that write, replace, shorten and delete long values, some of several in one batch.
fn script() -> Vec<Vec<Change>> {
    let long = |byte: u8, bytes: usize| Some(vec![byte; bytes]);
    vec![
        vec![("a", long(1, 3000)), ("b", long(2, 10))],
        vec![("a", long(3, 4000)), ("b", long(4, 2500)), ("c", long(5, 5))],
        vec![("a", long(6, 20)), ("c", None)],
        vec![("a", long(7, 2100)), ("b", None), ("a", long(8, 2200))],
    ]
}

fn write(database: &mut Database<'_>, updates: &[Change]) -> Result<(), Error> {
    let mut batch = Batch::new();
    for (key, value) in updates {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        };
    }
    database.write_batch(&batch)
}

fn make(model: &mut Model, updates: &[Change]) {
    for (key, value) in updates {
        match value {
            Some(value) => drop(model.insert((*key).into(), value.clone())),
            None => drop(model.remove(key.as_bytes())),
        }
    }
}

#[test]
fn wherever_the_power_goes_a_long_value_is_whole_or_not_there() {
    for tree in trees() {
        let mut made = chip(16, 64);
        let options = Options::new().tree(tree).durability(Durability::Every);
        Database::create_on(medium(&mut made), &options).unwrap().close().unwrap();
        let mut cuts = 0;
        for at in 1.. {
            let mut chip = made.clone();
            chip.arm(FaultPlan::cut(at, Cut::Change(at)));
            let mut model = Model::new();
            let mut next = None;
            if let Ok(mut database) = open(&mut chip) {
                next = script().into_iter().find(|updates| {
                    let written = write(&mut database, updates);
                    if written.is_ok() {
                        make(&mut model, updates);
                    }
                    written.is_err()
                });
            }
            if !chip.is_without_power() {
                break;
            }
            cuts += 1;
            chip.restore_power();
            chip.arm(FaultPlan::default());
            let mut database = open(&mut chip).unwrap();
            let what = format!("{tree}, cut at change {at}");
            let has_next = next.as_ref().is_some_and(|updates| {
                let mut with = model.clone();
                make(&mut with, updates);
                let entries = database.all().unwrap().into_iter().map(Result::unwrap);
                let is_there = entries.eq(with.clone());
                if is_there {
                    model = with;
                }
                is_there
            });
            compare(&mut database, &model, &format!("{what}, {has_next}"));
            // The next update deletes what the cut left.
            database.put("z", vec![9; 3000]).unwrap();
            model.insert(b"z".into(), vec![9; 3000]);
            compare(&mut database, &model, &what);
        }
        assert!(cuts > 20, "{tree}: {cuts}");
    }
}

#[test]
fn a_value_for_which_there_is_no_room_leaves_everything_as_it_was() {
    for tree in trees() {
        let mut chip = chip(16, 64);
        let options = Options::new().tree(tree).durability(Durability::Batch);
        let mut database = Database::create_on(medium(&mut chip), &options).unwrap();
        database.put("red", vec![1; 5000]).unwrap();
        let model = Model::from([(b"red".to_vec(), vec![1; 5000])]);
        for key in ["red", "blue"] {
            let refused = database.put(key, vec![2; 3 << 20]);
            assert!(matches!(refused, Err(Error::Full { .. })), "{tree}: {refused:?}");
        }
        // What was written of it is gone, but where deletes are appended, too.
        compare(&mut database, &model, tree);
        if tree != "list" {
            let put = database.put("green", vec![3; 5000]);
            assert!(put.is_ok(), "{tree}: {put:?}");
        }
        drop(database);
        let database = open(&mut chip).unwrap();
        assert_eq!(database.get("red").unwrap(), Some(vec![1; 5000]), "{tree}");
    }
}

#[test]
fn a_value_longer_than_the_journal_is_kept() {
    for tree in trees() {
        let mut chip = chip(32, 256);
        let options = Options::new().tree(tree).journal_bytes(64 << 10);
        let database = Database::create_on(medium(&mut chip), &options).unwrap();
        let value: Vec<u8> = (0..1 << 20).map(|byte: u32| (byte % 251) as u8).collect();
        database.put("long", &value).unwrap();
        database.sync().unwrap();
        drop(database);
        let database = open(&mut chip).unwrap();
        let mut piece = [0; 9];
        assert_eq!(database.get_into("long", 777_777, &mut piece).unwrap(), Some(1 << 20));
        assert_eq!(piece[..], value[777_777..777_786], "{tree}");
        assert_eq!(database.get("long").unwrap(), Some(value), "{tree}");
    }
}

#[test]
fn a_chip_is_filled_from_a_file_with_long_values_and_back() {
    let (_folder, path) = storage::place();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let file = Database::create(&path, &Options::new()).unwrap();
    let mut model = Model::new();
    for number in 0..200_u32 {
        let value = if number % 50 == 20 { vec![1; 20_000] } else { vec![2; 30] };
        let key = random.random_range(0..1 << 20).to_string().into_bytes();
        file.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    for tree in trees() {
        let mut chip = chip(32, 256);
        let mut copy = Database::create_on(medium(&mut chip), &Options::new().tree(tree)).unwrap();
        assert_eq!(file.copy_into(&copy).unwrap(), model.len() as u64);
        compare(&mut copy, &model, tree);
    }
}
