//! Files that are no database of this program: something else, cut off, of a later format. They
//! are refused with a sentence that says so, and not touched.

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

use flashtree::encoding::Type;
use flashtree::{Database, Durability, Error, Geometry, OpenOptions, Options, Result};
use storage::place;

/// A database of 300 entries that is closed, in a file or on an imitated chip.
fn make(path: &Path, chip: bool) {
    let mut options = Options::new().capacity(1 << 20).overwrite(true);
    if chip {
        options = options.chip(Geometry::new(512, 16, 256).unwrap());
    }
    let database = Database::create(path, &options).unwrap();
    for number in 0..300_u32 {
        database.put(number.to_be_bytes(), "fruit").unwrap();
    }
    database.close().unwrap();
}

/// Every way to open what is at `path`; none may change it.
fn refusals(path: &Path) -> Vec<Error> {
    let before = fs::read(path).unwrap();
    let opened = [
        Database::open(path, &OpenOptions::new()).map(drop),
        Database::open_read_only(path, &OpenOptions::new()).map(drop),
        Database::compact(path, &OpenOptions::new()).map(drop),
    ];
    assert!(fs::read(path).unwrap() == before, "it was changed");
    opened.into_iter().map(|opened: Result<()>| opened.unwrap_err()).collect()
}

/// Each error is one line that says what to do.
fn check_line(error: &Error) {
    let line = error.to_string();
    assert!(!line.contains('\n') && line.len() < 400, "{line}");
    assert!(line.chars().next().is_some_and(|first| !first.is_uppercase()), "{line}");
}

#[test]
fn a_file_that_was_cut_off_is_refused_and_so_is_a_lengthened_chip() {
    let (_folder, path) = place();
    for chip in [false, true] {
        make(&path, chip);
        let whole = fs::read(&path).unwrap();
        let lengths = [0, 1, 100, 4095, 4096, 8192, 12_288, whole.len() / 2, whole.len() - 4096];
        let lengths = lengths.into_iter().chain([whole.len() - 1, whole.len() + 4096]);
        // A plain file may have grown when the power was cut.
        for length in lengths.filter(|length| chip || *length < whole.len()) {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_len(length as u64).unwrap();
            for error in refusals(&path) {
                check_line(&error);
                let is_told =
                    matches!(error, Error::NotADatabase { .. } | Error::OtherLength { .. });
                assert!(is_told, "{length} bytes: {error:?}");
            }
            fs::write(&path, &whole).unwrap();
        }
        let database = Database::open(&path, &OpenOptions::new()).unwrap();
        assert_eq!(database.count().unwrap(), 300);
    }
}

#[test]
fn a_file_that_grew_and_was_not_used_yet_is_opened_as_it_was() {
    let (_folder, path) = place();
    make(&path, false);
    let whole = fs::read(&path).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(whole.len() as u64 + (64 << 10)).unwrap();
    let read = Database::open_read_only(&path, &OpenOptions::new()).unwrap();
    assert_eq!(read.count().unwrap(), 300);
    drop(read);
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    assert_eq!(database.count().unwrap(), 300);
    database.put("more", "fruit").unwrap();
    database.close().unwrap();
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < whole.len() as u64 + (32 << 10), "{length} of {} bytes", whole.len());
}

#[test]
fn another_format_is_refused_with_both_numbers_and_the_program_that_reads_it() {
    let (_folder, path) = place();
    // Where the versions of a superblock's two copies stand, and that of an imitated chip.
    for (chip, at) in [(false, [12, 4096 + 12]), (true, [8, 8])] {
        for (version, program) in [(77_u32, "a later flashtree"), (0, "flashtree 0.1")] {
            make(&path, chip);
            let file = fs::File::options().write(true).open(&path).unwrap();
            for at in at {
                file.write_all_at(&version.to_le_bytes(), at).unwrap();
            }
            for error in refusals(&path) {
                check_line(&error);
                let line = error.to_string();
                assert!(matches!(error, Error::OtherVersion { found, .. } if found == version));
                let wanted = format!("format version {version} of {program}");
                assert!(line.contains(&wanted), "{line}");
            }
        }
    }
}

#[test]
fn a_later_format_of_one_copy_of_the_superblock_does_not_hide_the_other() {
    let (_folder, path) = place();
    make(&path, false);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&77_u32.to_le_bytes(), 12).unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    assert_eq!(database.count().unwrap(), 300);
}

/// What another process of the same number left when it was killed is no hindrance.
#[test]
fn a_file_that_a_killed_process_left_is_not_in_the_way() {
    let (folder, path) = place();
    for number in 0..30 {
        let left = format!("fruit.db.{}-{number}.new", std::process::id());
        fs::write(folder.path().join(left), "half a database").unwrap();
    }
    make(&path, false);
    let compaction = Database::compact(&path, &OpenOptions::new()).unwrap();
    assert_eq!(compaction.entries, 300);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 31);
}

/// An error of each kind that a user can bring about.
fn errors() -> Vec<Error> {
    let (folder, path) = place();
    let mut errors = Vec::new();
    let options = Options::new().capacity(1 << 20);
    let database = Database::create(&path, &options).unwrap();
    errors.push(Database::open(&path, &OpenOptions::new()).unwrap_err());
    errors.push(database.put(vec![0; 5000], "").unwrap_err());
    errors.push(database.put("long", vec![0; 2_000_000]).unwrap_err());
    errors.push(database.checkpoint("").unwrap_err());
    errors.push(database.rollback("none").unwrap_err());
    errors.push(database.forget("none").unwrap_err());
    database.checkpoint("kept").unwrap();
    errors.push(database.checkpoint("kept").unwrap_err());
    database.put("apple", "red").unwrap();
    errors.push(database.load([("b", "")]).unwrap_err());
    errors.push(database.copy_to(&path, &options).unwrap_err());
    database.close().unwrap();
    let open = |options| Database::open(&path, &options).unwrap_err();
    errors.push(Database::compact(&path, &OpenOptions::new()).unwrap_err());
    errors.push(open(OpenOptions::new().memory_total(1)));
    errors.push(open(OpenOptions::new().durability(Durability::None)));
    errors.push(Database::open(folder.path(), &OpenOptions::new()).unwrap_err());
    errors.push(Database::open(folder.path().join("no"), &OpenOptions::new()).unwrap_err());
    let reader = Database::open_read_only(&path, &OpenOptions::new()).unwrap();
    errors.push(reader.delete("apple").unwrap_err());
    let other = folder.path().join("other.db");
    let make = |options: &Options| Database::create(&other, options).unwrap_err();
    for tree in ["b-pluss", "b-plus:noode=1", "b-plus:node=1000", "b-plus:fill=7", "b-plus:x"] {
        errors.push(make(&options.clone().tree(tree)));
    }
    errors.push(make(&options.clone().ftl("page-map")));
    errors.push(make(&options.clone().capacity(4096)));
    errors.push(make(&options.clone().capacity(9000).durability(Durability::None)));
    let chip = Geometry::new(2048, 64, 2).unwrap();
    errors.push(make(&options.clone().chip(chip)));
    errors.push(Database::create(folder.path().join("no/a.db"), &options).unwrap_err());
    let typed = options.key(Type::U64).value(Type::U64);
    let typed = Database::create(&other, &typed).unwrap();
    errors.push(typed.put("four", "").unwrap_err());
    errors.push(typed.load([([1; 8], [0; 8]), ([0; 8], [0; 8])]).unwrap_err());
    errors
}

#[test]
fn each_error_is_one_line_and_advises_nothing_that_only_a_program_can_know() {
    for error in errors() {
        println!("{error}");
        check_line(&error);
        let line = error.to_string();
        assert!(!line.contains("--"), "{line}");
    }
}
