//! Copies and compacted databases are like the one that they come from, and can be ended.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flashtree::encoding::Type;
use flashtree::{Database, Durability, Error, Geometry, OpenOptions, Options, Stats};
use storage::place;

/// A database of 3,000 entries, in which every choice is another than the usual one.
fn make(path: &Path, options: Options) {
    let options = options.capacity(24 << 20).durability(Durability::Every);
    let options = options.page_bytes(2048).tree("b-plus:fill=70").value(Type::U64);
    let database = Database::create(path, &options).unwrap();
    let entry = |number: u64| (number.to_be_bytes(), number.to_be_bytes());
    database.load((0..3000).map(entry)).unwrap();
    database.close().unwrap();
}

fn stats(path: &Path) -> Stats {
    Database::open_read_only(path, &OpenOptions::new()).unwrap().stats().unwrap()
}

/// What two databases that are alike have in common.
fn choices(stats: &Stats) -> impl PartialEq + std::fmt::Debug + use<> {
    let capacity = stats.file.map(|file| file.capacity);
    let types = (stats.key.clone(), stats.value.clone());
    let recovery = &stats.recovery;
    let recovery = (recovery.durability, recovery.journal_bytes_most, recovery.undo_bytes_most);
    (stats.tree, types, stats.page_bytes, capacity, recovery, stats.live_pages)
}

#[test]
fn compacting_twice_changes_nothing_that_was_chosen() {
    for journal in [None, Some(100_000), Some(6 << 20)] {
        let (_folder, path) = place();
        let options =
            journal.map_or_else(Options::new, |bytes| Options::new().journal_bytes(bytes));
        make(&path, options);
        let before = stats(&path);
        for _ in 0..2 {
            Database::compact(&path, &OpenOptions::new()).unwrap();
            assert_eq!(choices(&stats(&path)), choices(&before));
        }
    }
}

#[test]
fn a_copy_is_like_the_original_in_all_that_is_not_chosen_anew() {
    let (folder, path) = place();
    make(&path, Options::new());
    let before = stats(&path);
    let original = Database::open(&path, &OpenOptions::new()).unwrap();
    let copied = |name: &str, options: &Options| {
        let path = folder.path().join(name);
        original.copy_to(&path, options).unwrap().close().unwrap();
        stats(&path)
    };
    let same = copied("same.db", &Options::new());
    assert_eq!(choices(&same), choices(&before));
    let other = copied("other.db", &Options::new().durability(Durability::Batch).page_bytes(4096));
    assert_eq!((other.recovery.durability, other.page_bytes), (Durability::Batch, 4096));
    assert_eq!(other.recovery.journal_bytes_most, before.recovery.journal_bytes_most);
    let full = copied("full.db", &Options::new().tree("b-plus:fill=100"));
    assert!(full.live_pages < before.live_pages && full.page_bytes == 2048);
    let small = copied("small.db", &Options::new().capacity(2 << 20));
    assert!(small.recovery.journal_bytes_most < 1 << 20);
    // A chip has pages of its own.
    let chip = copied("chip.db", &Options::new().chip(Geometry::new(4096, 16, 64).unwrap()));
    assert_eq!((chip.recovery.durability, chip.page_bytes), (Durability::Every, 4096));
    let chip = Database::open(folder.path().join("chip.db"), &OpenOptions::new()).unwrap();
    let back = chip.copy_to(folder.path().join("back.db"), &Options::new()).unwrap();
    assert_eq!(back.stats().unwrap().recovery.durability, Durability::Every);
    assert_eq!(back.value_type(), &Type::U64);
}

#[test]
fn what_is_ended_leaves_everything_as_it_was() {
    let (folder, path) = place();
    make(&path, Options::new());
    let before = fs::read(&path).unwrap();
    let mut asked = 0;
    let mut go_on = |entries: u64| {
        asked += 1;
        entries < 2000
    };
    let ended = Database::compact_while(&path, &OpenOptions::new(), &mut go_on);
    assert!(matches!(ended, Err(Error::Ended)) && asked == 3, "{ended:?}, asked {asked} times");
    let original = Database::open(&path, &OpenOptions::new()).unwrap();
    let copy = folder.path().join("copy.db");
    let ended = original.copy_to_while(&copy, &Options::new(), &mut |entries| entries < 2000);
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    assert_eq!(original.count().unwrap(), 3000);
    original.close().unwrap();
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_is_replaced_keeps_its_rights_and_what_is_new_has_the_usual_ones() {
    let (folder, path) = place();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let usual = folder.path().join("usual");
    fs::write(&usual, "").unwrap();
    make(&path, Options::new());
    assert_eq!(mode(&path), mode(&usual));
    let chip = Options::new().chip(Geometry::new(512, 16, 256).unwrap()).overwrite(true);
    for wanted in [0o600, 0o640, 0o666] {
        let give = || fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        make(&path, Options::new().overwrite(true));
        give();
        Database::compact(&path, &OpenOptions::new()).unwrap();
        assert_eq!(mode(&path), wanted);
        make(&path, Options::new().overwrite(true));
        assert_eq!(mode(&path), wanted);
        Database::create(&path, &chip).unwrap().close().unwrap();
        assert_eq!(mode(&path), wanted);
    }
    // Until it is whole, nobody else can read what takes the place of a file.
    make(&path, Options::new().overwrite(true));
    let names = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    let mut look = |_| {
        for name in names().filter(|name| name.extension().is_some_and(|end| end == "new")) {
            assert_eq!(mode(&name), 0o600);
            seen += 1;
        }
        true
    };
    Database::compact_while(&path, &OpenOptions::new(), &mut look).unwrap();
    assert!(seen > 0);
}
