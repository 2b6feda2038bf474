//! Each byte of a small database flipped in turn: right data or an error that says what is
//! damaged, never a panic, never wrong data.
//!
//! The usual tests flip every byte of sectors in which anything stands, and a sample of the rest;
//! the one that is ignored flips every byte of a file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use contract::share;
use flashtree::{Database, Durability, Error, OpenOptions, Options};
use storage::flipped::FlippedDisk;
use storage::outcomes::Outcomes;
use storage::{Model, SharedDisk, content};

/// Bits that are flipped of the byte at `place`.
const fn flip(place: usize) -> u8 {
    1 << (place % 8)
}

/// Which bytes are flipped: each one of the sectors in which anything stands; where nothing was
/// ever written some are enough.
fn places(whole: &[u8], sector_bytes: usize) -> Vec<usize> {
    let used: Vec<bool> = whole
        .chunks_exact(sector_bytes)
        .map(|sector| sector.iter().any(|byte| *byte != 0))
        .collect();
    let places = (0..whole.len()).filter(|place| used[place / sector_bytes] || place % 511 == 0);
    places.step_by(share(5)).collect()
}

/// What `flip_half` books of each half of `places`, on two threads.
fn on_two_threads(
    places: &[usize],
    flip_half: impl Fn(&[usize], &mut Outcomes) + Sync,
) -> Outcomes {
    let half = |places: &[usize]| {
        let mut outcomes = Outcomes::default();
        flip_half(places, &mut outcomes);
        outcomes
    };
    let (one, other) = places.split_at(places.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(other));
        let mut outcomes = half(one);
        outcomes.add(other.join().unwrap());
        outcomes
    })
}

/// Flips the bytes at `places` of a disk that is opened for writing.
fn flip_each(sector_bytes: u32, whole: &[u8], places: &[usize], states: &[Model]) -> Outcomes {
    let base: Arc<[u8]> = whole.into();
    flip_each_of(&|place| FlippedDisk::new(sector_bytes, &base, place, flip(place)), places, states)
}

fn flip_each_of(
    disk_at: &(dyn Fn(usize) -> FlippedDisk + Sync),
    places: &[usize],
    states: &[Model],
) -> Outcomes {
    on_two_threads(places, |places, outcomes| {
        for place in places.iter().copied() {
            let disk = disk_at(place);
            let opened = Database::open_on(disk.medium(), &OpenOptions::new());
            outcomes.book(opened, states, place);
        }
    })
}

/// Flips the bytes at `places` of a file that is opened for reading only.
fn flip_each_in_file(folder: &Path, whole: &[u8], places: &[usize], states: &[Model]) -> Outcomes {
    on_two_threads(places, |places, outcomes| {
        let path = folder.join(format!("from byte {}.db", places[0]));
        fs::write(&path, whole).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        for place in places.iter().copied() {
            file.write_all_at(&[whole[place] ^ flip(place)], place as u64).unwrap();
            let opened = Database::open_read_only(&path, &OpenOptions::new());
            outcomes.book(opened, states, place);
            file.write_all_at(&whole[place..=place], place as u64).unwrap();
        }
        assert!(fs::read(&path).unwrap() == whole, "opened for reading, and written");
    })
}

/// Several leaves, a long value, a named checkpoint.
fn fill(database: &mut Database<'_>, durable: bool, word: &str) {
    for number in 0..60_u32 {
        database.put(format!("key {number}"), format!("{word} {number}")).unwrap();
    }
    database.put("long", vec![7; 1500]).unwrap();
    if durable {
        database.checkpoint("kept").unwrap();
    }
}

/// Frees pages, and changes others.
fn change(database: &mut Database<'_>) -> Vec<Model> {
    let mut states = vec![content(database).unwrap()];
    for number in 0..40_u32 {
        match number {
            0..30 => database.delete(format!("key {number}")).unwrap(),
            _ => database.put(format!("key {number}"), "other").unwrap(),
        }
        states.push(content(database).unwrap());
    }
    states
}

/// A disk with a closed database.
fn closed(durability: Durability) -> (Vec<u8>, Model) {
    closed_with("b-plus", durability, "value")
}

fn closed_with(tree: &str, durability: Durability, word: &str) -> (Vec<u8>, Model) {
    let disk = SharedDisk::new(512, 512);
    let options = Options::new().tree(tree).durability(durability).journal_bytes(8 << 10);
    let mut database = Database::create_on(disk.medium(), &options).unwrap();
    fill(&mut database, durability != Durability::None, word);
    let expected = change(&mut database).pop().unwrap();
    database.close().unwrap();
    let whole = disk.bytes.lock().unwrap().clone();
    (whole, expected)
}

#[test]
fn a_flipped_byte_of_a_closed_database_is_an_error_or_without_consequence() {
    let b_plus = Durability::ALL.map(|durability| ("b-plus", durability));
    for (tree, durability) in b_plus.into_iter().chain([("la-tree", Durability::None)]) {
        let (whole, expected) = closed_with(tree, durability, "value");
        let outcomes = flip_each(512, &whole, &places(&whole, 512), &[expected]);
        println!("{tree}, {durability}: {outcomes} {:#?}", outcomes.kinds);
        outcomes.assert_right();
    }
}

/// A disk whose database was killed, and the states it had since the named checkpoint.
fn killed(word: &str) -> (SharedDisk, Vec<Model>) {
    let disk = SharedDisk::new(512, 512);
    let options = Options::new().durability(Durability::Every).journal_bytes(8 << 10);
    // The cache holds every page that changes, so a whole undo log can be another database's:
    // nothing tells of one that is gone altogether (docs/limits.md).
    let options = options.tree("b-plus:waiting=0");
    let mut database = Database::create_on(disk.medium(), &options.memory(8 << 10)).unwrap();
    fill(&mut database, true, word);
    let states = change(&mut database);
    (disk.copy(), states)
}

/// What comes of a disk some of whose sectors are those of another database, made with the same
/// options and changed in the same way, but with other values.
fn mix(whole: &[u8], other: &[u8], states: &[Model]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let sectors = whole.len() / 512;
    let single = (0..sectors).map(|sector| sector..sector + 1);
    let halves = [0..sectors / 2, sectors / 2..sectors, 0..1, 0..2, 1..sectors, 2..sectors];
    for part in single.chain(halves) {
        let part = part.start * 512..part.end * 512;
        if whole[part.clone()] == other[part.clone()] {
            continue;
        }
        let mut mixed = whole.to_vec();
        mixed[part.clone()].copy_from_slice(&other[part.clone()]);
        let disk = SharedDisk::of(512, mixed);
        let opened = Database::open_on(disk.medium(), &OpenOptions::new());
        outcomes.book(opened, states, part.start);
    }
    outcomes
}

#[test]
fn sectors_of_another_database_are_an_error_or_without_consequence() {
    for durability in Durability::ALL {
        let (whole, expected) = closed_with("b-plus", durability, "value");
        let (other, others) = closed_with("b-plus", durability, "eulav");
        let outcomes = mix(&whole, &other, &[expected, others]);
        println!("{durability}: {outcomes} {:#?}", outcomes.kinds);
        outcomes.assert_right();
    }
    let ((disk, mut states), (other, others)) = (killed("value"), killed("eulav"));
    states.extend(others);
    let (whole, other) = (disk.bytes.lock().unwrap().clone(), other.bytes.lock().unwrap().clone());
    let outcomes = mix(&whole, &other, &states);
    println!("killed: {outcomes} {:#?}", outcomes.kinds);
    outcomes.assert_right();
}

/// Sectors that a disk that grows can have.
const SECTORS_MOST: u64 = 2048;

/// The bytes of a disk whose database was killed when all it holds was acknowledged, and what that
/// is.
fn killed_when_all_lasts(tree: &str, durability: Durability, grows: bool) -> (Vec<u8>, Model) {
    let disk = match grows {
        true => SharedDisk::growing(512, SECTORS_MOST),
        false => SharedDisk::new(512, 512),
    };
    let options = Options::new().tree(tree).durability(durability).journal_bytes(8 << 10);
    let mut database = Database::create_on(disk.medium(), &options.memory(64 << 10)).unwrap();
    fill(&mut database, true, "value");
    let expected = change(&mut database).pop().unwrap();
    database.sync().unwrap();
    let mut whole = disk.bytes.lock().unwrap().clone();
    whole.truncate(disk.length() as usize * 512);
    (whole, expected)
}

#[test]
fn a_flipped_byte_of_a_database_that_was_killed_is_an_error_or_costs_nothing() {
    for (tree, grows) in [("b-plus", false), ("b-plus", true), ("la-tree", false)] {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            let (whole, expected) = killed_when_all_lasts(tree, durability, grows);
            let base: Arc<[u8]> = whole.as_slice().into();
            let disk_at = |place: usize, flip: u8| {
                let disk = FlippedDisk::new(512, &base, place, flip);
                if grows { disk.growing_to(SECTORS_MOST) } else { disk }
            };
            let sound = disk_at(0, 0).medium();
            let mut left = Database::open_on(sound, &OpenOptions::new()).unwrap();
            assert_eq!(content(&mut left).unwrap(), expected);
            let replayed = left.stats().unwrap().recovery.replayed;
            assert_eq!(replayed > 0, durability.has_journal(), "{replayed} updates");
            let flipped = |place| disk_at(place, flip(place));
            let outcomes = flip_each_of(&flipped, &places(&whole, 512), &[expected]);
            println!("{tree}, grows {grows}, {durability}: {outcomes} {:#?}", outcomes.kinds);
            outcomes.assert_right();
        }
    }
}

/// Going back to a checkpoint whose images are damaged leaves the present state or that of the
/// checkpoint.
#[test]
fn a_flipped_byte_never_costs_both_a_checkpoint_and_the_present() {
    let (whole, present) = closed(Durability::Batch);
    let base: Arc<[u8]> = whole.as_slice().into();
    let usual = FlippedDisk::new(512, &base, 0, 0);
    let mut database = Database::open_on(usual.medium(), &OpenOptions::new()).unwrap();
    database.rollback("kept").unwrap();
    let kept = content(&mut database).unwrap();
    let (mut gone_back, mut refused, mut unreadable) = (0, 0, 0);
    for place in places(&whole, 512) {
        let disk = FlippedDisk::new(512, &base, place, flip(place));
        let Ok(database) = Database::open_on(disk.medium(), &OpenOptions::new()) else {
            continue;
        };
        let expected = match database.rollback("kept") {
            Ok(()) => (gone_back += 1, &kept).1,
            Err(Error::Damaged { .. }) => (refused += 1, &present).1,
            Err(other) => panic!("byte {place}: {other:?}"),
        };
        drop(database);
        let mut database = Database::open_on(disk.medium(), &OpenOptions::new())
            .unwrap_or_else(|error| panic!("byte {place}: not even opened: {error}"));
        match content(&mut database) {
            Ok(found) => assert!(found == *expected, "byte {place}"),
            // A page that no image is of is the damaged one.
            Err(Error::Damaged { .. }) => unreadable += 1,
            Err(other) => panic!("byte {place}: {other:?}"),
        }
    }
    println!("gone back {gone_back}, refused {refused}, unreadable {unreadable}");
    assert!(gone_back > 0 && refused > 0);
}

/// How far the file of a small database can grow.
const CAPACITY: u64 = 576 << 10;

/// The bytes of a file with a small database, in which the journal and the undo log were used.
fn small_file() -> (tempfile::TempDir, Vec<u8>, Model) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.db");
    let options = Options::new().capacity(CAPACITY).page_bytes(512).journal_bytes(16 << 10);
    let mut database = Database::create(&path, &options).unwrap();
    fill(&mut database, false, "value");
    let expected = change(&mut database).pop().unwrap();
    database.close().unwrap();
    let whole = fs::read(&path).unwrap();
    (folder, whole, expected)
}

/// Flips bytes of a file at `places`: opened for reading it as a file, and for writing as a disk
/// that holds what the file does.
fn flip_file(places: impl Fn(&[u8]) -> Vec<usize>) -> Outcomes {
    let (folder, whole, expected) = small_file();
    let places = places(&whole);
    let states = [expected];
    let base: Arc<[u8]> = whole.as_slice().into();
    let disk = |place| {
        let disk = FlippedDisk::new(4096, &base, place, flip(place));
        disk.growing_to(CAPACITY / 4096)
    };
    let mut outcomes = flip_each_of(&disk, &places, &states);
    println!("opened for writing: {outcomes} {:#?}", outcomes.kinds);
    let reading = flip_each_in_file(folder.path(), &whole, &places, &states);
    println!("opened for reading: {reading} {:#?}", reading.kinds);
    outcomes.add(reading);
    outcomes
}

#[test]
fn a_flipped_byte_of_a_small_file_is_an_error_or_without_consequence() {
    let outcomes = flip_file(|whole| {
        (0..whole.len()).filter(|place| place % 37 == 0 || *place < 200).collect()
    });
    println!("all {outcomes}");
    outcomes.assert_right();
}

#[test]
#[ignore = "minutes: the promise byte-flips runs it"]
fn each_byte_of_a_small_file_flipped_in_turn_is_an_error_or_without_consequence() {
    let outcomes = flip_file(|whole| (0..whole.len()).collect());
    println!("all {outcomes}");
    outcomes.assert_right();
}

#[test]
fn the_same_calls_with_the_same_identity_make_the_same_bytes() {
    let make = |identity: Option<u64>| {
        let disk = SharedDisk::new(512, 512);
        let options = Options::new().journal_bytes(8 << 10);
        let options = match identity {
            Some(identity) => options.identity(identity),
            None => options,
        };
        let mut database = Database::create_on(disk.medium(), &options).unwrap();
        fill(&mut database, true, "value");
        database.close().unwrap();
        disk.bytes.lock().unwrap().clone()
    };
    assert!(make(Some(1)) == make(Some(1)));
    assert!(make(Some(1)) != make(Some(2)));
    assert!(make(None) != make(None));
}
