//! Files: locks, foreign files, reading only, compacting, copying.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flashtree::encoding::Type;
use flashtree::{
    Batch, Database, Durability, EntryShape, Error, Geometry, OpenOptions, Options, Result, Width,
};
use storage::{Model, SharedDisk, compare, content, place};
use tempfile::TempDir;

fn small() -> Options {
    Options::new().capacity(4 << 20)
}

/// A closed database with `entries` entries.
fn filled(path: &Path, options: &Options, entries: u32) -> Model {
    let database = Database::create(path, options).unwrap();
    let mut model = Model::new();
    let mut batch = Batch::new();
    for number in 0..entries {
        let (key, value) = (format!("key {number}"), format!("value {number}"));
        batch.put(&key, &value);
        model.insert(key.into_bytes(), value.into_bytes());
        if batch.len() == 100 {
            database.write_batch(&batch).unwrap();
            batch.clear();
        }
    }
    database.write_batch(&batch).unwrap();
    database.close().unwrap();
    model
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The environment variables by which a process is told what to open, and what will come of it.
const PATH: &str = "FLASHTREE_TEST_PATH";
const EXPECTED: &str = "FLASHTREE_TEST_EXPECTED";

/// Opens a database as another process.
#[test]
#[ignore = "the other process of the tests of locks"]
fn another_process() {
    let path = std::env::var_os(PATH).expect("a test of locks starts this");
    let expected = std::env::var(EXPECTED).unwrap();
    let word = |opened: Result<Database<'_>>| match opened {
        Ok(_) => "opened",
        Err(Error::InUse { .. }) => "in use",
        Err(other) => panic!("{other}"),
    };
    let writing = word(Database::open(&path, &OpenOptions::new()));
    let reading = word(Database::open_read_only(&path, &OpenOptions::new()));
    let making = word(Database::create(&path, &small().overwrite(true)));
    assert_eq!(format!("{writing}, {reading}, {making}"), expected);
}

fn expect_of_another_process(path: &Path, expected: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", "another_process", "--ignored", "--nocapture"])
        .env(PATH, path)
        .env(EXPECTED, expected)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_second_process_is_refused_while_a_database_is_open() {
    let (_folder, path) = place();
    let model = filled(&path, &small(), 10);
    let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
    expect_of_another_process(&path, "in use, in use, in use");
    compare(&mut database, &model, "after another process tried");
    database.close().unwrap();
    let reader = Database::open_read_only(&path, &OpenOptions::new()).unwrap();
    expect_of_another_process(&path, "in use, opened, in use");
    drop(reader);
    expect_of_another_process(&path, "opened, opened, opened");
}

#[test]
fn who_waits_gets_a_database_as_soon_as_it_is_closed() {
    let (_folder, path) = place();
    let held = Database::create(&path, &small()).unwrap();
    let patient = OpenOptions::new().wait(Duration::from_secs(600));
    let opened = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Database::open(&path, &patient).map(drop));
        held.close().unwrap();
        waiting.join().unwrap()
    });
    opened.unwrap();
    let held = Database::open(&path, &OpenOptions::new()).unwrap();
    let impatient = Database::open(&path, &OpenOptions::new().wait(Duration::from_millis(20)));
    let Err(Error::InUse { holder, .. }) = impatient else { panic!("it was opened twice") };
    assert!(holder.is_none_or(|process| process == std::process::id()));
    drop(held);
}

#[test]
fn a_backup_is_the_state_of_that_moment_and_takes_no_name_that_is_taken() {
    let (folder, path) = place();
    let database = Database::create(&path, &small()).unwrap();
    for number in 0..1_000_u32 {
        database.put(number.to_be_bytes(), [7; 40]).unwrap();
    }
    database.checkpoint("early").unwrap();
    let copied = folder.path().join("copy.db");
    database.put([1], [2]).unwrap();
    let bytes = database.backup(&copied).unwrap();
    assert_eq!(bytes, std::fs::metadata(&copied).unwrap().len());
    database.put([1], [3]).unwrap();
    assert!(matches!(database.backup(&copied), Err(Error::Exists { .. })));
    let copy = Database::open(&copied, &OpenOptions::new()).unwrap();
    assert_eq!((copy.get([1]).unwrap(), copy.count().unwrap()), (Some(vec![2]), 1_001));
    assert_eq!(copy.checkpoints().unwrap().len(), 1);
    assert_eq!(copy.check().unwrap(), Vec::<String>::new());
    copy.rollback("early").unwrap();
    assert_eq!(copy.count().unwrap(), 1_000);
    assert_eq!(database.get([1]).unwrap(), Some(vec![3]));
    let disk = sim::SimulatedDisk::new(
        flashtree::SectorGeometry::new(4096, 1000).unwrap(),
        Default::default(),
    );
    let medium = flashtree::Medium::Sectors(Box::new(disk));
    let elsewhere = Database::create_on(medium, &small()).unwrap();
    let refused = elsewhere.backup(folder.path().join("other.db"));
    assert!(matches!(refused, Err(Error::NotAPlainFile)));
}

#[test]
fn a_second_handle_is_refused_while_a_database_is_open() {
    for chip in [false, true] {
        let (_folder, path) = place();
        let mut options = small();
        if chip {
            options = options.chip(Geometry::new(512, 16, 256).unwrap());
        }
        let database = Database::create(&path, &options).unwrap();
        let again = Database::open(&path, &OpenOptions::new());
        assert!(
            matches!(again, Err(Error::InUse { path: named, .. }) if named.ends_with("fruit.db"))
        );
        let again = Database::open_read_only(&path, &OpenOptions::new());
        assert!(matches!(again, Err(Error::InUse { .. })));
        let over = Database::create(&path, &options.overwrite(true));
        assert!(matches!(over, Err(Error::InUse { .. })));
        drop(database);
        Database::open(&path, &OpenOptions::new()).unwrap();
    }
}

#[test]
fn what_is_no_database_is_neither_opened_nor_overwritten() {
    let contents: [&[u8]; 5] = [
        b"",
        b"a poem",
        &[0; 8192],
        &[0xFF; 1 << 20],
        b"\x7FELF\x02\x01\x01 and so on, for more than a sector",
    ];
    for content in contents {
        let (folder, path) = place();
        fs::write(&path, content).unwrap();
        let opened = [
            Database::open(&path, &OpenOptions::new()),
            Database::open_read_only(&path, &OpenOptions::new()),
        ];
        for opened in opened {
            let error = opened.err().unwrap();
            assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
        }
        assert!(matches!(Database::create(&path, &small()), Err(Error::Exists { .. })));
        assert!(matches!(
            Database::compact(&path, &OpenOptions::new()),
            Err(Error::NotADatabase { .. })
        ));
        assert_eq!(fs::read(&path).unwrap(), content);
        assert_eq!(names(&folder), ["fruit.db"]);

        let made = Database::create(&path, &small().overwrite(true)).unwrap();
        made.put("apple", "red").unwrap();
        assert_eq!(names(&folder), ["fruit.db"]);
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let (folder, path) = place();
    for options in [small(), small().overwrite(true)] {
        assert!(Database::create(folder.path(), &options).is_err());
        assert!(Database::create(folder.path().join("no/fruit.db"), &options).is_err());
    }
    assert!(Database::open(folder.path(), &OpenOptions::new()).is_err());
    assert!(matches!(Database::open(&path, &OpenOptions::new()), Err(Error::Missing { .. })));
    assert!(matches!(
        Database::open_read_only(&path, &OpenOptions::new()),
        Err(Error::Missing { .. })
    ));
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn a_database_that_can_not_be_made_leaves_no_file() {
    let (folder, path) = place();
    let refused = [
        small().tree("c-plus"),
        small().tree("b-plus:node=1000"),
        small().page_bytes(64),
        small().memory_total(10_000),
        small().capacity(0),
        small().capacity(8192),
        small().capacity(u64::MAX),
        small().ftl("page-map"),
        small().key(Type::Tuple(vec![])),
        small().key(Type::Tuple(vec![Type::U64; 32])).value(Type::Tuple(vec![Type::U64; 32])),
        small().shape(EntryShape::fixed(3000, 3000)),
        small().chip(Geometry::new(2048, 64, 2).unwrap()),
        small().chip(Geometry::new(2048, 64, 64).unwrap()).ftl("page-map:logs=1"),
    ];
    for options in refused {
        let error = Database::create(&path, &options).err().unwrap();
        assert_eq!(names(&folder), [""; 0], "{error}");
    }
}

#[test]
fn the_least_memory_that_is_named_works() {
    for chip in [false, true] {
        for durability in Durability::ALL {
            let (_folder, path) = place();
            let mut options = small().durability(durability).memory_total(0);
            if chip {
                options = options.chip(Geometry::new(512, 16, 512).unwrap());
            }
            let Err(Error::LittleMemory { have: 0, need }) = Database::create(&path, &options)
            else {
                panic!("no memory is too little");
            };
            let less = Database::create(&path, &options.clone().memory_total(need - 1));
            assert!(matches!(less, Err(Error::LittleMemory { .. })));
            let made = Database::create(&path, &options.memory_total(need)).unwrap();
            made.put("apple", vec![7; 50_000]).unwrap();
            assert!(made.stats().unwrap().memory_bytes() <= need);
            made.close().unwrap();

            let opened = Database::open(&path, &OpenOptions::new().memory_total(0));
            let Err(Error::LittleMemory { have: 0, need }) = opened else {
                panic!("no memory is too little");
            };
            let options = OpenOptions::new().memory_total(need);
            let opened = Database::open(&path, &options).unwrap();
            assert_eq!(opened.get("apple").unwrap().unwrap(), vec![7; 50_000]);
        }
    }
}

#[test]
fn a_durable_file_that_can_be_made_takes_a_put() {
    let (mut made, mut refused) = (0, 0);
    for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
        for bytes in (1..32).map(|number| number << 16) {
            let (_folder, path) = place();
            match Database::create(&path, &small().durability(durability).capacity(bytes)) {
                Ok(database) => {
                    database.put("apple", "red").unwrap();
                    assert_eq!(database.get("apple").unwrap().unwrap(), b"red");
                    made += 1;
                }
                Err(Error::LittleRoom { .. } | Error::Index(_)) => refused += 1,
                Err(error) => panic!("{durability:?} in {bytes} bytes: {error}"),
            }
        }
    }
    assert!(made > 60 && refused > 2, "{made} were made, {refused} were refused");
}

#[test]
fn reading_only_writes_nothing() {
    for chip in [false, true] {
        let (_folder, path) = place();
        let mut options = small();
        if chip {
            options = options.chip(Geometry::new(512, 16, 512).unwrap());
        }
        let model = filled(&path, &options, 300);
        let before = fs::read(&path).unwrap();
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        let mut reader = Database::open_read_only(&path, &OpenOptions::new()).unwrap();
        compare(&mut reader, &model, "read only");
        assert!(matches!(reader.put("a", "b"), Err(Error::ReadOnly)));
        assert!(matches!(reader.delete("a"), Err(Error::ReadOnly)));
        assert!(matches!(reader.write_batch(&flashtree::Batch::new()), Err(Error::ReadOnly)));
        assert!(matches!(reader.sync(), Err(Error::ReadOnly)));
        assert!(matches!(reader.checkpoint("a"), Err(Error::ReadOnly)));
        assert!(matches!(reader.rollback("a"), Err(Error::ReadOnly)));
        assert!(matches!(reader.forget("a"), Err(Error::ReadOnly)));
        assert!(matches!(reader.load([("a", "b")]), Err(Error::ReadOnly)));
        reader.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), changed);
    }
}

#[test]
fn reading_only_refuses_what_has_to_be_recovered_and_writes_nothing() {
    for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
        let disk = SharedDisk::new(4096, 1024);
        let options = Options::new().durability(durability);
        let database = Database::create_on(disk.medium(), &options).unwrap();
        for number in 0..2000_u32 {
            database.put(number.to_be_bytes(), [1; 50]).unwrap();
        }
        database.sync().unwrap();
        // Overwritten in place since, with the old content in the undo log.
        for number in 0..2000_u32 {
            database.put(number.to_be_bytes(), [2; 50]).unwrap();
        }
        let left = disk.copy();
        let opened = Database::open_read_only_on(left.medium(), &OpenOptions::new());
        if durability.has_journal() {
            assert!(matches!(opened, Err(Error::NeedsRecovery)), "{durability}");
        }
        drop(opened);
        assert_eq!(*left.writes.lock().unwrap(), 0);
        let recovered = Database::open_on(left.medium(), &OpenOptions::new()).unwrap();
        assert_eq!(recovered.count().unwrap(), 2000);
        recovered.close().unwrap();
        Database::open_read_only_on(left.medium(), &OpenOptions::new()).unwrap();
    }
}

#[test]
fn a_database_without_durability_that_was_not_closed_is_refused() {
    let disk = SharedDisk::new(4096, 1024);
    let options = Options::new().durability(Durability::None);
    let database = Database::create_on(disk.medium(), &options).unwrap();
    database.put("apple", "red").unwrap();
    assert!(matches!(database.sync(), Err(Error::Index(_))));
    let left = Database::open_on(disk.copy().medium(), &OpenOptions::new());
    assert!(matches!(left, Err(Error::NotClosed)));
    drop(database);
    let opened = Database::open_on(disk.medium(), &OpenOptions::new()).unwrap();
    assert!(opened.contains("apple").unwrap());
}

#[test]
fn compacting_keeps_every_entry_and_gives_room_back() {
    for durability in Durability::ALL {
        let (folder, path) = place();
        let options = Options::new()
            .capacity(16 << 20)
            .tree("b-plus:fill=95")
            .page_bytes(2048)
            .durability(durability)
            .key(Type::Text)
            .value("text".parse().unwrap());
        let mut model = filled(&path, &options, 30_000);
        let database = Database::open(&path, &OpenOptions::new()).unwrap();
        database.put("long", vec![b'x'; 1 << 20]).unwrap();
        for hundred in 0..290 {
            let mut batch = Batch::new();
            for number in hundred * 100..(hundred + 1) * 100 {
                batch.delete(format!("key {number}"));
                model.remove(format!("key {number}").as_bytes());
            }
            database.write_batch(&batch).unwrap();
        }
        let pages = database.stats().unwrap().live_pages;
        database.close().unwrap();
        model.insert(b"long".to_vec(), vec![b'x'; 1 << 20]);

        let compaction = Database::compact(&path, &OpenOptions::new()).unwrap();
        assert_eq!(compaction.entries, model.len() as u64);
        assert!(compaction.bytes_after <= compaction.bytes_before, "{compaction:?}");
        assert_eq!(names(&folder), ["fruit.db"]);
        let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
        compare(&mut database, &model, "compacted");
        let stats = database.stats().unwrap();
        assert!(stats.live_pages < pages, "{} pages, {pages} before", stats.live_pages);
        assert_eq!((stats.page_bytes, stats.recovery.durability), (2048, durability));
        assert_eq!((stats.key, stats.value), (Type::Text, Type::Text));
        assert_eq!(stats.file.unwrap().capacity, 16 << 20);
    }
}

#[test]
fn compacting_refuses_what_it_would_lose() {
    let (_folder, path) = place();
    let model = filled(&path, &small(), 10);
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    assert!(matches!(Database::compact(&path, &OpenOptions::new()), Err(Error::InUse { .. })));
    database.checkpoint("harvest").unwrap();
    database.close().unwrap();
    let refused = Database::compact(&path, &OpenOptions::new());
    assert!(matches!(refused, Err(Error::CheckpointsKept { count: 1 })));
    let mut database = Database::open(&path, &OpenOptions::new()).unwrap();
    compare(&mut database, &model, "not compacted");
    database.forget("harvest").unwrap();
    database.close().unwrap();
    Database::compact(&path, &OpenOptions::new()).unwrap();
}

#[test]
fn a_copy_holds_the_same_in_another_form() {
    let (folder, path) = place();
    let options = small().key(Type::Text);
    let mut model = filled(&path, &options, 2000);
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    database.put("long", vec![9; 300_000]).unwrap();
    model.insert(b"long".to_vec(), vec![9; 300_000]);
    let chip = Geometry::new(2048, 32, 128).unwrap();
    let forms = [
        small().tree("b-plus").page_bytes(512).durability(Durability::None),
        small().tree("b-plus").page_bytes(16_384),
        small().chip(chip).durability(Durability::None),
        small().value(Type::Hex).tree("b-plus:fill=100"),
    ];
    for (place, form) in forms.iter().enumerate() {
        let other = folder.path().join(format!("copy {place}.db"));
        let mut copy = database.copy_to(&other, form).unwrap();
        compare(&mut copy, &model, "copied");
        assert_eq!(copy.key_type(), &Type::Text);
        copy.close().unwrap();
        let mut copy = Database::open(&other, &OpenOptions::new()).unwrap();
        compare(&mut copy, &model, "copied and opened");
        assert!(matches!(database.copy_to(&other, form), Err(Error::Exists { .. })));
    }
    // One that can't hold it leaves no file.
    let narrow = small().shape(EntryShape { key: Width::Fixed(4), value: Width::Variable });
    let other = folder.path().join("narrow.db");
    assert!(matches!(database.copy_to(&other, &narrow), Err(Error::Index(_))));
    assert!(!other.exists());
    // Nor can one that is not empty be copied into.
    let mut full = Database::open(folder.path().join("copy 0.db"), &OpenOptions::new()).unwrap();
    assert!(matches!(database.copy_into(&full), Err(Error::Index(index::Error::NotEmpty))));
    assert_eq!(content(&mut full).unwrap(), model);
}

#[test]
fn what_a_database_was_made_with_is_found_when_it_is_opened() {
    let (_folder, path) = place();
    let key: Type = "tuple(text,time)".parse().unwrap();
    let options = small()
        .key(key.clone())
        .value(Type::F64)
        .page_bytes(1024)
        .durability(Durability::Every)
        .journal_bytes(128 << 10);
    Database::create(&path, &options).unwrap().close().unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    assert_eq!((database.key_type(), database.value_type()), (&key, &Type::F64));
    let stats = database.stats().unwrap();
    assert_eq!((stats.page_bytes, stats.recovery.durability), (1024, Durability::Every));
    assert!(stats.recovery.journal_bytes_most <= 128 << 10);
    assert_eq!(stats.file.unwrap().capacity, 4 << 20);
}

#[test]
fn keys_and_values_of_a_type_of_fixed_length_have_that_length() {
    let (_folder, path) = place();
    let options = small().key(Type::I64).value(Type::U64);
    let database = Database::create(&path, &options).unwrap();
    assert!(matches!(
        database.put("four", [0; 8]),
        Err(Error::Index(index::Error::KeyLength { expected: 8, found: 4 }))
    ));
    assert!(matches!(
        database.put([0; 8], "four"),
        Err(Error::Index(index::Error::ValueLength { expected: 8, found: 4 }))
    ));
    database.put([0; 8], [0; 8]).unwrap();
    assert_eq!(database.count().unwrap(), 1);
}

#[test]
fn a_link_to_a_database_stays_a_link() {
    let (folder, path) = place();
    filled(&path, &small(), 100);
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    Database::compact(&link, &OpenOptions::new()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
    let database = Database::create(&link, &small().overwrite(true)).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
    assert_eq!(database.count().unwrap(), 0);
    assert!(matches!(Database::open(&path, &OpenOptions::new()), Err(Error::InUse { .. })));
}
