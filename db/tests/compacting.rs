//! A process is killed while it compacts: the old file or the new one is there, whole.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use flashtree::{Database, Durability, Error, OpenOptions, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use storage::{Model, compare};

/// The environment variable by which the compacting process is told its file.
const PATH: &str = "FLASHTREE_TEST_PATH";

const KILLS: u32 = 25;

#[test]
#[ignore = "the process that is killed"]
fn compacts_again_and_again() {
    let path = std::env::var_os(PATH).expect("the other test starts this");
    loop {
        Database::compact(&path, &OpenOptions::new()).unwrap();
    }
}

/// A database with gaps, in a file.
fn make(path: &Path) -> Model {
    let options = Options::new().capacity(4 << 20).page_bytes(1024);
    let database = Database::create(path, &options).unwrap();
    let mut model = Model::new();
    for number in 0..3000_u32 {
        let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
        database.put(key, [number as u8; 40]).unwrap();
        if number.is_multiple_of(3) {
            database.delete(key).unwrap();
        } else {
            model.insert(key.to_vec(), vec![number as u8; 40]);
        }
    }
    database.put("long", vec![5; 100_000]).unwrap();
    model.insert(b"long".to_vec(), vec![5; 100_000]);
    database.close().unwrap();
    model
}

#[test]
fn a_process_killed_while_it_compacts_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gaps.db");
    let model = make(&path);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut replaced, mut left) = (0, 0);
    for kill in 0..KILLS {
        let before = fs::metadata(&path).unwrap().ino();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "compacts_again_and_again", "--ignored", "--nocapture"])
            .env(PATH, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(random.random_range(5_000..250_000)));
        process.kill().unwrap();
        process.wait().unwrap();
        replaced += u32::from(fs::metadata(&path).unwrap().ino() != before);
        for entry in fs::read_dir(folder.path()).unwrap() {
            let other = entry.unwrap().path();
            if other != path {
                left += 1;
                fs::remove_file(other).unwrap();
            }
        }
        let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
        compare(&mut database, &model, &format!("kill {kill}"));
    }
    println!("killed {KILLS} times: {replaced} new files, {left} half files beside the old one");
    assert!(replaced + left > 0, "no kill came while it compacted");
}

/// The new file is made whole before it takes the name, so a folder in which nothing can be made
/// keeps the old one.
#[test]
fn what_can_not_be_compacted_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gaps.db");
    let model = make(&path);
    let before = fs::read(&path).unwrap();
    let little = OpenOptions::new().memory_total(70_000);
    let refused = Database::compact(&path, &little);
    assert!(matches!(refused, Err(Error::LittleMemory { have: 70_000, .. })), "{refused:?}");
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    compare(&mut Database::open(&path, &OpenOptions::new()).unwrap(), &model, "as it was");
}

/// What they are shows in the memory that they take.
#[test]
fn compacting_keeps_the_trees_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let needs = |path: &std::path::Path| {
        let refused = Database::open(path, &OpenOptions::new().memory_total(1)).err();
        match refused {
            Some(flashtree::Error::LittleMemory { need, .. }) => need,
            other => panic!("{other:?}"),
        }
    };
    let mut needed = Vec::new();
    for tree in ["la-tree", "la-tree:buffer=200000,k=3"] {
        let path = folder.path().join("a.db");
        let options = Options::new().tree(tree).memory_total(8 << 20).overwrite(true);
        Database::create(&path, &options).unwrap().close().unwrap();
        let before = needs(&path);
        Database::compact(&path, &OpenOptions::new().memory_total(16 << 20)).unwrap();
        assert_eq!(needs(&path), before, "{tree}");
        needed.push(before);
    }
    assert!(needed[1] > needed[0] + 200_000, "{needed:?}");
}

#[test]
fn every_tree_in_a_file_is_compacted_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    for tree in ["b-plus", "b-plus:fill=70", "la-tree", "flat-tree"] {
        let (path, copy) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let options = Options::new().tree(tree).overwrite(true);
        let database = Database::create(&path, &options).unwrap();
        for number in 0..3000_u32 {
            database.put(number.to_be_bytes(), [number as u8; 40]).unwrap();
        }
        database.close().unwrap();
        Database::compact(&path, &OpenOptions::new()).unwrap();
        let database = Database::open(&path, &OpenOptions::new()).unwrap();
        database.copy_to(&copy, &Options::new().overwrite(true)).unwrap().close().unwrap();
        database.close().unwrap();
        for path in [&path, &copy] {
            let copied = Database::open(path, &OpenOptions::new()).unwrap();
            assert_eq!(copied.range(..).unwrap().into_iter().count(), 3000, "{tree}");
            copied.close().unwrap();
        }
    }
}

/// Behind a value in pieces entries are put, not loaded, and a small file has room for few at once.
#[test]
fn what_stands_behind_a_value_in_pieces_is_compacted_in_a_small_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    for tree in ["bftl", "flashdb", "lazy-update"] {
        let options = Options::new().tree(tree).capacity(1 << 20).overwrite(true);
        let options = options.durability(Durability::Checkpoint);
        let database = Database::create(&path, &options).unwrap();
        let mut model = Model::new();
        for number in 0..400_u32 {
            let (key, value) =
                (number.to_be_bytes(), vec![7; if number == 0 { 3000 } else { 150 }]);
            database.put(key, &value).unwrap();
            model.insert(key.to_vec(), value);
        }
        database.close().unwrap();
        Database::compact(&path, &OpenOptions::new()).unwrap();
        let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
        compare(&mut database, &model, tree);
    }
}

/// Puts entries in random order until the database is full.
fn fill(path: &Path, tree: &str) -> Model {
    let options = Options::new().tree(tree).capacity(1 << 20).overwrite(true);
    let database = Database::create(path, &options).unwrap();
    let (mut model, mut random) = (Model::new(), ChaCha8Rng::seed_from_u64(1));
    loop {
        let (key, value) = (random.random::<u64>().to_be_bytes(), [7; 16]);
        match database.put(key, value) {
            Ok(()) => model.insert(key.to_vec(), value.to_vec()),
            Err(Error::Full { .. }) => break,
            Err(other) => panic!("{tree}: {other}"),
        };
    }
    database.close().unwrap();
    model
}

#[test]
fn what_is_full_is_compacted_and_copied_and_takes_deletes_and_puts_then() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.db"), folder.path().join("b.db"));
    for tree in ["flat-tree", "la-tree", "b-plus", "fd-tree"] {
        let mut model = fill(&path, tree);
        Database::compact(&path, &OpenOptions::new()).unwrap();
        let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
        let copied = database.copy_to(&copy, &Options::new().overwrite(true)).unwrap();
        assert_eq!(copied.range(..).unwrap().into_iter().count(), model.len(), "{tree}");
        copied.close().unwrap();
        compare(&mut database, &model, tree);
        let keys: Vec<_> = model.keys().step_by(2).cloned().collect();
        for key in &keys {
            database.delete(key).unwrap();
            model.remove(key);
        }
        for key in &keys[..keys.len() / 2] {
            database.put(key, b"again").unwrap();
            model.insert(key.clone(), b"again".to_vec());
        }
        compare(&mut database, &model, tree);
        database.close().unwrap();
    }
}

#[test]
fn a_copy_has_no_more_room_than_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let model = fill(&path, "flat-tree");
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    let asked = Options::new().capacity(512 << 10);
    assert!(matches!(database.copy_to(&copy, &asked), Err(Error::Full { .. })));
    assert!(!copy.exists() && !model.is_empty());
}
