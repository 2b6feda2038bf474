//! Each byte of a small database flipped in turn: right data or an error that says what is
//! damaged, never a panic, never wrong data.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod ground;

use std::fs;
use std::os::unix::fs::FileExt;

use flashtree::{Database, Durability, Error, OpenOptions, Options};
use ground::{Model, SharedDisk, content};

/// What came of opening a damaged database and reading all of it.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    right: u32,
    errors: u32,
}

impl Outcomes {
    fn book(&mut self, found: flashtree::Result<Model>, expected: &[Model], place: usize) {
        match found {
            Ok(found) => {
                assert!(expected.contains(&found), "wrong data after byte {place} was flipped");
                self.right += 1;
            }
            Err(
                Error::Damaged { .. }
                | Error::NotADatabase { .. }
                | Error::OtherVersion { .. }
                | Error::Unknown { .. },
            ) => self.errors += 1,
            Err(other) => panic!("byte {place}: {other:?}"),
        }
    }
}

/// Which bytes are flipped: each one of the sectors in which anything stands; where nothing was
/// ever written some are enough.
fn places(whole: &[u8], sector_bytes: usize) -> impl Iterator<Item = usize> {
    let used: Vec<bool> = whole
        .chunks_exact(sector_bytes)
        .map(|sector| sector.iter().any(|byte| *byte != 0))
        .collect();
    (0..whole.len()).filter(move |place| used[place / sector_bytes] || place % 511 == 0)
}

/// A little of everything: several leaves, a long value, freed pages, a named checkpoint.
fn fill(database: &mut Database<'_>, durable: bool) {
    for number in 0..60_u32 {
        database.put(format!("key {number}"), format!("value {number}")).unwrap();
    }
    database.put("long", vec![7; 1500]).unwrap();
    if durable {
        database.checkpoint("kept").unwrap();
    }
    for number in 0..30_u32 {
        database.delete(format!("key {number}")).unwrap();
    }
}

fn read(disk: &SharedDisk) -> flashtree::Result<Model> {
    let mut database = Database::open_on(disk.medium(), &OpenOptions::new())?;
    let findings = database.check()?;
    let found = content(&mut database)?;
    // Keys one by one find what a range finds.
    for (key, value) in &found {
        assert_eq!(database.get(key)?.as_ref(), Some(value));
    }
    drop(findings);
    Ok(found)
}

#[test]
fn a_flipped_byte_of_a_closed_database_is_an_error_or_without_consequence() {
    for durability in Durability::ALL {
        let disk = SharedDisk::new(512, 512);
        let options = Options::new().durability(durability).journal_bytes(8 << 10);
        let mut database = Database::create_on(disk.medium(), &options).unwrap();
        fill(&mut database, durability != Durability::None);
        let expected = [content(&mut database).unwrap()];
        database.close().unwrap();
        let whole = disk.bytes.lock().unwrap().clone();
        let mut outcomes = Outcomes::default();
        for place in places(&whole, 512) {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            outcomes.book(read(&SharedDisk::of(512, bytes)), &expected, place);
        }
        println!("{durability}: {outcomes:?}");
        assert!(outcomes.right > 0 && outcomes.errors > 0, "{durability}: {outcomes:?}");
    }
}

#[test]
fn a_flipped_byte_of_a_database_that_was_killed_is_an_error_or_a_state_that_there_was() {
    let disk = SharedDisk::new(512, 512);
    let options = Options::new().durability(Durability::Every).journal_bytes(8 << 10);
    let mut database = Database::create_on(disk.medium(), &options).unwrap();
    fill(&mut database, true);
    let mut states = vec![content(&mut database).unwrap()];
    for number in 40..60_u32 {
        database.put(format!("key {number}"), "other").unwrap();
        states.push(content(&mut database).unwrap());
    }
    let whole = disk.bytes.lock().unwrap().clone();
    assert_eq!(read(&SharedDisk::of(512, whole.clone())).unwrap(), states[20]);
    // All states since the journal began: what is behind a damaged record of it is not there.
    let mut all = states;
    let mut earlier = SharedDisk::of(512, whole.clone());
    earlier = {
        // Without its journal the database is as at the last checkpoint.
        earlier.bytes.lock().unwrap()[2 * 512..18 * 512].fill(0);
        earlier
    };
    if let Ok(state) = read(&earlier) {
        all.push(state);
    }
    let mut outcomes = Outcomes::default();
    for place in places(&whole, 512) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        let found = read(&SharedDisk::of(512, bytes));
        if let Ok(found) = &found
            && !all.contains(found)
        {
            assert!(is_prefix(found), "wrong data after byte {place} was flipped");
            all.push(found.clone());
        }
        outcomes.book(found, &all, place);
    }
    println!("{outcomes:?}");
    assert!(outcomes.right > 0 && outcomes.errors > 0, "{outcomes:?}");
}

/// True if some beginning of the updates of [`fill`] leads to `found`.
fn is_prefix(found: &Model) -> bool {
    let disk = SharedDisk::new(512, 512);
    let options = Options::new().durability(Durability::None);
    let mut database = Database::create_on(disk.medium(), &options).unwrap();
    let mut model = Model::new();
    let mut updates = Vec::new();
    for number in 0..60_u32 {
        updates.push((format!("key {number}"), Some(format!("value {number}").into_bytes())));
    }
    updates.push(("long".to_owned(), Some(vec![7; 1500])));
    updates.extend((0..30_u32).map(|number| (format!("key {number}"), None)));
    database.put("unused", "").unwrap();
    if *found == model {
        return true;
    }
    updates.into_iter().any(|(key, value)| {
        match value {
            Some(value) => model.insert(key.into_bytes(), value),
            None => model.remove(key.as_bytes()),
        };
        *found == model
    })
}

#[test]
fn a_flipped_byte_of_a_small_file_is_an_error_or_without_consequence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.db");
    let options = Options::new().capacity(1 << 20).page_bytes(512).journal_bytes(64 << 10);
    let mut database = Database::create(&path, &options).unwrap();
    fill(&mut database, false);
    let expected = [content(&mut database).unwrap()];
    database.close().unwrap();
    let whole = fs::read(&path).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let mut outcomes = Outcomes::default();
    for place in places(&whole, 4096) {
        file.write_all_at(&[whole[place] ^ 1 << (place % 8)], place as u64).unwrap();
        let found = Database::open_read_only(&path, &OpenOptions::new())
            .and_then(|mut database| content(&mut database));
        match found {
            // One of the two anchors is damaged, which opening for writing mends.
            Err(Error::NeedsRecovery) if place < 2 * 4096 => outcomes.errors += 1,
            found => outcomes.book(found, &expected, place),
        }
        file.write_all_at(&whole[place..=place], place as u64).unwrap();
    }
    println!("{outcomes:?}");
    assert!(outcomes.right > 0 && outcomes.errors > 1000, "{outcomes:?}");
}
