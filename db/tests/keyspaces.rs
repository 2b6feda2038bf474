//! Keyspaces: each with its own keys and types, several in one transaction, dropped at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::collections::BTreeMap;

use device::{DiskCosts, NandCosts};
use flashtree::encoding::{Type, encode};
use flashtree::{
    Batch, Database, Durability, Error, Geometry, KeyRange, Medium, OpenOptions, Options, Readable,
    Result, SectorGeometry,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, DiskFaultPlan, FaultPlan, SimulatedDisk, SimulatedNand};
use storage::{Model, SharedDisk};

const TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "fd-tree", "lsm"];
const CHIP_TREES: [&str; 5] = ["b-plus", "la-tree", "flat-tree", "mu-star", "ipl"];

const NAMES: [&str; 2] = ["one", "two"];

fn chip() -> SimulatedNand {
    let geometry = Geometry::new(2048, 16, 64).unwrap().with_spare(64).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

fn options(tree: &str) -> Options {
    Options::new().tree(tree).keyspaces(true).identity(1)
}

fn entries(of: &impl Readable) -> Model {
    of.all().unwrap().into_iter().map(Result::unwrap).collect()
}

/// What each keyspace should hold; the one without a name is "".
type Models = BTreeMap<String, Model>;

fn compare(database: &Database<'_>, models: &Models, when: &str) {
    let names: Vec<_> = models.keys().filter(|name| !name.is_empty()).cloned().collect();
    let mut found = database.keyspaces().unwrap();
    found.sort();
    assert_eq!(found, names, "{when}");
    for (name, model) in models {
        let (found, backwards) = match name.as_str() {
            "" => (entries(database), database.all_descending().unwrap().into_iter().count()),
            name => {
                let keyspace = database.keyspace(name).unwrap();
                let backwards = keyspace.all_descending().unwrap().into_iter().count();
                (entries(&keyspace), backwards)
            }
        };
        assert_eq!(&found, model, "{when}: {name}");
        assert_eq!(backwards, model.len(), "{when}: {name}");
    }
    assert_eq!(database.check().unwrap(), [""; 0], "{when}");
}

fn play(database: &Database<'_>, models: &mut Models, random: &mut ChaCha8Rng) {
    for round in 0..40_u8 {
        let name = ["", "a", "b", "c"][random.random_range(0..4)];
        let key = [random.random_range(0..40_u8)];
        let value = vec![round; random.random_range(0..60)];
        if name.is_empty() {
            database.put(key, &value).unwrap();
            models.entry(String::new()).or_default().insert(key.to_vec(), value);
            continue;
        }
        if random.random_ratio(1, 8) {
            let dropped = database.drop_keyspace(name);
            assert_eq!(dropped.is_ok(), models.remove(name).is_some());
            continue;
        }
        let keyspace = database.create_keyspace(name, Type::Bytes, Type::Bytes).unwrap();
        let model = models.entry(name.to_owned()).or_default();
        match random.random_range(0..3) {
            0 => {
                keyspace.put(key, &value).unwrap();
                model.insert(key.to_vec(), value);
            }
            1 => {
                keyspace.delete(key).unwrap();
                model.remove(&key[..]);
            }
            _ => {
                let mut batch = Batch::new();
                for place in 0..20_u8 {
                    batch.put([place * 2], &value);
                    model.insert(vec![place * 2], value.clone());
                }
                keyspace.write_batch(&batch).unwrap();
            }
        }
    }
}

#[test]
fn histories_over_keyspaces_are_those_of_ordered_maps() {
    for tree in TREES {
        let disk = SharedDisk::new(4096, 4096);
        let options = options(tree).memory(1 << 20);
        Database::create_on(disk.medium(), &options).unwrap().close().unwrap();
        let mut models = Models::from([(String::new(), Model::new())]);
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for session in 0..6 {
            let open = OpenOptions::new().memory(1 << 20);
            let database = Database::open_on(disk.medium(), &open).unwrap();
            compare(&database, &models, &format!("{tree}, opened for session {session}"));
            play(&database, &mut models, &mut random);
            compare(&database, &models, &format!("{tree}, session {session}"));
            database.close().unwrap();
        }
    }
    for tree in CHIP_TREES {
        let mut chip = chip();
        let medium = Medium::Nand(Box::new(&mut chip));
        let database = Database::create_on(medium, &options(tree)).unwrap();
        let mut models = Models::from([(String::new(), Model::new())]);
        play(&database, &mut models, &mut ChaCha8Rng::seed_from_u64(4));
        compare(&database, &models, tree);
    }
}

#[test]
fn a_keyspace_keeps_its_types_and_refuses_what_is_not_of_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let key: Type = "tuple(text,u64)".parse().unwrap();
    let database = Database::create(&path, &options("b-plus")).unwrap();
    database.create_keyspace("log", key.clone(), Type::Text).unwrap();
    database.create_keyspace("count", Type::U64, Type::I64).unwrap();
    database.close().unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    let log = database.keyspace("log").unwrap();
    assert_eq!((log.key_type(), log.value_type()), (&key, &Type::Text));
    let count = database.create_keyspace("count", Type::U64, Type::I64).unwrap();
    let other = database.create_keyspace("count", Type::U64, Type::U64);
    assert!(matches!(other, Err(Error::BadOption { .. })));
    assert!(matches!(count.put("short", encode(&1_i64)), Err(Error::Index(_))));
    assert!(matches!(count.put(encode(&1_u64), "short"), Err(Error::Index(_))));
    assert!(matches!(count.get("short"), Err(Error::Index(_))));
    assert!(count.range(..&b"short"[..]).is_err());
    let refused = database.write(|transaction| transaction.keyspace(&count)?.put("short", "x"));
    assert!(matches!(refused, Err(Error::Index(_))));
    count.put(encode(&1_u64), encode(&-1_i64)).unwrap();
    log.put(encode(&("a", 7_u64)), "text").unwrap();
    assert_eq!(database.check().unwrap(), [""; 0]);
    log.put("no tuple", "text").unwrap();
    let findings = database.check().unwrap();
    assert!(findings.len() == 1 && findings[0].contains("no tuple"), "{findings:?}");
}

#[test]
fn what_was_dropped_is_gone_at_once_and_its_room_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let database = Database::create(&path, &options("b-plus")).unwrap();
    let kept = database.create_keyspace("kept", Type::Bytes, Type::Bytes).unwrap();
    kept.put("a", "b").unwrap();
    let big = database.create_keyspace("big", Type::Bytes, Type::Bytes).unwrap();
    for key in 0..3000_u32 {
        big.put(key.to_be_bytes(), [1; 100]).unwrap();
    }
    database.close().unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    let before = database.stats().unwrap().live_pages;
    let big = database.keyspace("big").unwrap();
    let mut range = big.all().unwrap();
    range.next().unwrap();
    database.drop_keyspace("big").unwrap();
    assert!(matches!(big.get("a"), Err(Error::NoKeyspace { .. })));
    assert!(matches!(big.put("a", "b"), Err(Error::NoKeyspace { .. })));
    let refused = database.write(|transaction| transaction.keyspace(&big).map(drop));
    assert!(matches!(refused, Err(Error::NoKeyspace { .. })));
    // What was read ahead comes, and then the error.
    let end = loop {
        match range.next() {
            Ok(Some(_)) => {}
            other => break other.map(drop),
        }
    };
    assert!(matches!(end, Err(Error::NoKeyspace { .. })), "{end:?}");
    drop(range);
    assert_eq!(database.keyspaces().unwrap(), ["kept"]);
    assert_eq!(database.check().unwrap(), [""; 0]);
    // A new one of the same name is empty, and has another number while entries are left.
    let big = database.create_keyspace("big", Type::U64, Type::Bytes).unwrap();
    assert_eq!(big.count().unwrap(), 0);
    big.put(encode(&1_u64), "one").unwrap();
    database.close().unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    let mut steps = 0;
    while database.free_dropped().unwrap() {
        steps += 1;
    }
    assert!(steps > 10, "{steps}");
    database.close().unwrap();
    let database = Database::open(&path, &OpenOptions::new()).unwrap();
    let after = database.stats().unwrap().live_pages;
    assert!(after < before / 4, "{after} of {before} pages");
    assert_eq!(database.keyspace("big").unwrap().count().unwrap(), 1);
    assert_eq!(entries(&database.keyspace("kept").unwrap()).len(), 1);
    assert_eq!(database.check().unwrap(), [""; 0]);
}

#[test]
fn a_database_without_keyspaces_says_so_and_one_with_them_is_copied_whole() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Database::create(folder.path().join("plain.db"), &Options::new()).unwrap();
    assert!(plain.keyspaces().unwrap().is_empty());
    let refused = plain.create_keyspace("a", Type::Bytes, Type::Bytes).map(drop);
    assert!(matches!(refused, Err(Error::BadOption { .. })), "{refused:?}");
    let path = folder.path().join("shop.db");
    let shop = Database::create(&path, &options("b-plus")).unwrap();
    assert_eq!(shop.load([("a", "1"), ("b", "2")]).unwrap(), 2);
    let colours = shop.create_keyspace("colours", Type::Text, Type::Text).unwrap();
    colours.put("apple", "red").unwrap();
    assert!(matches!(shop.copy_into(&plain), Err(Error::BadOption { .. })));
    let copy = shop.copy_to(folder.path().join("copy.db"), &Options::new().tree("lsm")).unwrap();
    let models = Models::from([
        (String::new(), Model::from([("a".into(), "1".into()), ("b".into(), "2".into())])),
        ("colours".to_owned(), Model::from([("apple".into(), "red".into())])),
    ]);
    compare(&copy, &models, "the copy");
    assert_eq!(copy.keyspace("colours").unwrap().key_type(), &Type::Text);
    let other = copy.keyspace("colours").unwrap();
    let refused = shop.write(|transaction| transaction.keyspace(&other).map(drop));
    assert!(matches!(refused, Err(Error::NoKeyspace { .. })));
    shop.close().unwrap();
    Database::compact(&path, &OpenOptions::new()).unwrap();
    compare(&Database::open(&path, &OpenOptions::new()).unwrap(), &models, "compacted");
}

#[test]
fn after_a_rollback_handles_are_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let shop = Database::create(folder.path().join("shop.db"), &options("b-plus")).unwrap();
    let one = shop.create_keyspace("one", Type::Bytes, Type::Bytes).unwrap();
    one.put("a", "1").unwrap();
    shop.checkpoint("before").unwrap();
    shop.create_keyspace("two", Type::Bytes, Type::Bytes).unwrap().put("b", "2").unwrap();
    shop.rollback("before").unwrap();
    assert!(matches!(one.get("a"), Err(Error::NoKeyspace { .. })));
    let models = Models::from([
        (String::new(), Model::new()),
        ("one".to_owned(), Model::from([("a".into(), "1".into())])),
    ]);
    compare(&shop, &models, "rolled back");
}

/// Transactions over two keyspaces, with one dropped and made again between them.
fn write(database: &Database<'_>) -> Result<()> {
    for number in 0..5_u8 {
        let [one, two] = NAMES.map(|name| database.create_keyspace(name, Type::Bytes, Type::Bytes));
        let (one, two) = (one?, two?);
        database.write(|transaction| {
            for place in 0..6_u8 {
                let key = [(number * 3 + place) % 9];
                transaction.keyspace(&one)?.put(key, [1, number, place])?;
                transaction.keyspace(&two)?.put(key, [2, number, place])?;
            }
            transaction.keyspace(&one)?.put("last", [1, number])?;
            transaction.keyspace(&two)?.put("last", [2, number])
        })?;
        if number == 2 {
            database.drop_keyspace("two")?;
        }
    }
    Ok(())
}

/// Each key is in its keyspace, and both are of one transaction.
fn judge(database: &Database<'_>, when: &str) {
    assert_eq!(database.check().unwrap(), [""; 0], "{when}");
    assert_eq!(database.count().unwrap(), 0, "{when}");
    let mut last = Vec::new();
    for (place, name) in NAMES.into_iter().enumerate() {
        let Ok(keyspace) = database.keyspace(name) else { continue };
        let mut entries = keyspace.scan(KeyRange::ALL).unwrap();
        while let Some(entry) = entries.next().unwrap() {
            let value = entry.value.whole().unwrap();
            assert_eq!(usize::from(value[0]), place + 1, "{when}: in the wrong keyspace");
        }
        last.push(keyspace.get("last").unwrap().map(|value| value[1]));
    }
    if let [Some(one), Some(two)] = last[..] {
        assert_eq!(one, two, "{when}: half a transaction");
    }
    // The next one finds everything as it should be.
    write(database).expect(when);
    let both = NAMES.map(|name| database.keyspace(name).unwrap().get("last").unwrap());
    assert_eq!(both, [Some(vec![1, 4]), Some(vec![2, 4])], "{when}");
    assert_eq!(database.check().unwrap(), [""; 0], "{when}");
}

#[test]
fn wherever_the_power_goes_no_key_is_in_the_wrong_keyspace() {
    let mut cuts = 0;
    for tree in TREES {
        for durability in [Durability::Batch, Durability::Every] {
            let geometry = SectorGeometry::new(512, 8192).unwrap();
            let mut made = SimulatedDisk::new(geometry, DiskCosts::default());
            let options = options(tree).durability(durability).memory(64 << 10);
            let options = options.journal_bytes(8 << 10);
            let medium = Medium::Sectors(Box::new(&mut made));
            Database::create_on(medium, &options).unwrap().close().unwrap();
            for at in 1.. {
                let when = format!("{tree}, {durability}, cut at {at}");
                let mut disk = made.clone();
                disk.arm(DiskFaultPlan::cut(at, Cut::Change(at)));
                let medium = Medium::Sectors(Box::new(&mut disk));
                let open = OpenOptions::new().memory(64 << 10);
                let _ = Database::open_on(medium, &open).and_then(|database| write(&database));
                if !disk.is_without_power() {
                    break;
                }
                cuts += 1;
                disk.restore_power();
                disk.arm(DiskFaultPlan::default());
                let medium = Medium::Sectors(Box::new(&mut disk));
                judge(&Database::open_on(medium, &open).expect(&when), &when);
            }
        }
    }
    for tree in CHIP_TREES {
        let mut made = chip();
        let medium = Medium::Nand(Box::new(&mut made));
        Database::create_on(medium, &options(tree)).unwrap().close().unwrap();
        for at in 1.. {
            let when = format!("{tree}, cut at {at}");
            let mut chip = made.clone();
            chip.arm(FaultPlan::cut(at, Cut::Change(at)));
            let medium = Medium::Nand(Box::new(&mut chip));
            let open = OpenOptions::new();
            let _ = Database::open_on(medium, &open).and_then(|database| write(&database));
            if !chip.is_without_power() {
                break;
            }
            cuts += 1;
            chip.restore_power();
            chip.arm(FaultPlan::default());
            let medium = Medium::Nand(Box::new(&mut chip));
            judge(&Database::open_on(medium, &open).expect(&when), &when);
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 200, "{cuts}");
}
