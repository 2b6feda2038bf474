//! Choices and entries that a database can't have: each refusal names what it is about, and comes
//! before anything is written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::Path;

use flashtree::encoding::{Type, decode, encode};
use flashtree::{Database, Error, OpenOptions, Options};

fn refused(options: &Options) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let error = Database::create(folder.path().join("a.db"), options).err().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    error
}

#[test]
fn a_capacity_that_no_file_has_is_named() {
    for capacity in [0, 1, 4095, 1 << 63, u64::MAX] {
        let error = refused(&Options::new().capacity(capacity));
        let is_named = matches!(error, Error::BadOption { option: "capacity", .. });
        assert!(is_named && error.to_string().contains("4096"), "{capacity}: {error}");
    }
    for memory in [0, 1] {
        assert!(matches!(
            refused(&Options::new().memory_total(memory)),
            Error::LittleMemory { .. }
        ));
    }
}

/// It would take minutes if the journal were written first.
#[test]
fn a_journal_that_leaves_no_room_is_refused_before_it_is_written() {
    for journal in [64 << 20, 1 << 40, u64::MAX] {
        let error = refused(&Options::new().capacity(64 << 20).journal_bytes(journal));
        assert!(matches!(error, Error::BadOption { option: "journal bytes", .. }), "{error}");
    }
}

#[test]
fn an_empty_path_is_named() {
    for error in [
        Database::create("", &Options::new()).err().unwrap(),
        Database::open("", &OpenOptions::new()).err().unwrap(),
        Database::open_read_only("", &OpenOptions::new()).err().unwrap(),
    ] {
        assert!(matches!(error, Error::BadOption { option: "path", .. }), "{error}");
    }
}

#[test]
fn what_the_system_refuses_is_told_of_the_path_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let name = "x".repeat(250);
    let path = folder.path().join(&name);
    let error = Database::create(&path, &Options::new()).err().unwrap();
    assert!(matches!(&error, Error::Io { path: told, .. } if *told == path), "{error:?}");
    assert!(!error.to_string().contains(".new"), "{error}");
}

#[test]
fn a_load_that_refuses_an_entry_keeps_what_came_before_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let database = Database::create(&path, &Options::new().overwrite(true)).unwrap();
    let long = "k".repeat(5000);
    let error = database.load([("a", "1"), ("b", "2"), (&long, "3")]).unwrap_err();
    assert!(error.to_string().contains("a key of 5000 bytes"), "{error}");
    database.put("c", "4").unwrap();
    database.close().unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    assert_eq!(database.count().unwrap(), 3);
    assert_eq!(database.get("b").unwrap().unwrap(), b"2");
}

fn findings(path: &Path) -> Vec<String> {
    Database::open(path, &OpenOptions::new()).unwrap().check().unwrap()
}

#[test]
fn check_finds_what_is_not_of_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let options = Options::new().key(Type::Text).value(Type::Text);
    let database = Database::create(&path, &options).unwrap();
    // Characters of three bytes, so that pieces end within some.
    database.put("long", "\u{20ac}".repeat(100_000)).unwrap();
    assert_eq!(database.check().unwrap(), [""; 0]);
    database.put([0xFF], "red").unwrap();
    database.put("short", [b'r', 0xC3]).unwrap();
    let mut bytes = "\u{20ac}".repeat(100_000).into_bytes();
    bytes[200_000] = b'x';
    database.put("longer", &bytes).unwrap();
    bytes.truncate(199_999);
    database.put("cut", &bytes).unwrap();
    database.close().unwrap();
    let found = findings(&path);
    let about = ["of \"cut\"", "of \"longer\"", "of \"short\"", "the key \"\\xff\""];
    assert_eq!(found.len(), about.len(), "{found:?}");
    for (line, about) in found.iter().zip(about) {
        assert!(line.contains(about) && line.contains("not of type text"), "{line}");
    }

    let pair: Type = "tuple(text,u64)".parse().unwrap();
    let options = Options::new().key(pair.clone()).value(pair).overwrite(true);
    let database = Database::create(&path, &options).unwrap();
    let good = encode(&("LGA", 7_u64));
    let long = encode(&("x".repeat(50_000).as_str(), 7_u64));
    database.put(&good, &good).unwrap();
    database.put(encode(&("LGA", 8_u64)), &long).unwrap();
    assert_eq!(database.check().unwrap(), [""; 0]);
    database.put(&good, &long[..long.len() - 1]).unwrap();
    database.close().unwrap();
    assert_eq!(findings(&path).len(), 1);
}

/// Several records of one key, as a secondary index has them: the record is the last part of the
/// key, and the value is empty.
#[test]
fn a_key_has_several_records_where_they_are_part_of_it() {
    for tree in ["fd-tree", "b-plus"] {
        let folder = tempfile::tempdir().unwrap();
        let key: Type = "tuple(text,u64)".parse().unwrap();
        let options = Options::new().tree(tree).key(key).capacity(8 << 20);
        let database = Database::create(folder.path().join("colours.db"), &options).unwrap();
        let colours = ["blue", "red", "redder"];
        for record in 0..3000_u64 {
            database.put(encode(&(colours[record as usize % 3], record)), "").unwrap();
        }
        // A delete names its record, and leaves the others of its key.
        database.delete(encode(&("red", 1_u64))).unwrap();
        database.put(encode(&("red", 4_u64)), "").unwrap();
        let records: Vec<u64> = database
            .prefix(encode(&("red",)))
            .unwrap()
            .into_iter()
            .map(|entry| decode::<(String, u64)>(&entry.unwrap().0).unwrap().1)
            .collect();
        let expected: Vec<u64> = (4..3000).step_by(3).collect();
        assert_eq!(records, expected, "{tree}");
        assert_eq!(database.check().unwrap(), [""; 0]);
    }
}
