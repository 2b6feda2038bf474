//! What the list promises beside what every tree does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::ops::Bound;

use device::{Cause, Geometry, Medium, Nand, NandCosts, ProgramOrder};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options, Profile, TreeDescriptor};
use sim::SimulatedNand;

const MEMORY: u64 = 64 << 10;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("list").unwrap()
}

fn chip(blocks: u32) -> SimulatedNand {
    let geometry = Geometry::new(2048, 16, blocks).unwrap().with_order(ProgramOrder::Ascending);
    SimulatedNand::new(geometry, NandCosts::default())
}

fn options(shape: EntryShape, durability: Durability) -> Options {
    let settings = Settings::parse("list", entry().parameters, []).unwrap();
    Options { durability: Some(durability), ..Options::new(shape, MEMORY, settings) }
}

fn put(index: &mut dyn Index, number: u32) -> index::Result<()> {
    index.update(&[Update::Put { key: &key(number), value: &number.to_be_bytes() }])
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Store(store::Error::Full { .. }))
}

#[test]
fn list_appends_at_the_cost_that_is_predicted_and_reads_all_of_itself() {
    const ENTRIES: u32 = 20_000;
    let mut chip = chip(32);
    let medium = MediumShape::Nand(chip.geometry());
    let options = options(EntryShape::fixed(4, 4), Durability::None);
    let profile = Profile {
        entries: ENTRIES.into(),
        lookups: 0.0,
        inserts: 1.0,
        overwrites: 0.0,
        deletes: 0.0,
    };
    let put_cost = (entry().predict)(&profile, &options, medium).unwrap();
    let profile = Profile { lookups: 1.0, inserts: 0.0, ..profile };
    let get_cost = (entry().predict)(&profile, &options, medium).unwrap();

    let mut index = (entry().create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    (0..ENTRIES).for_each(|number| put(&mut *index, number).unwrap());
    let reads = |index: &dyn Index| index.meter().unwrap().tally(Cause::Lookup).page_reads;
    let written = index.meter().unwrap().tally(Cause::Update).page_programs;
    let pages = index.statistics().live_pages;
    assert_eq!(written, pages, "a page is written once");
    assert!((written as f64 - f64::from(ENTRIES) * put_cost.page_writes).abs() < 2.0);

    for number in (0..ENTRIES).step_by(19) {
        assert_eq!(index.get(&key(number), 0, &mut [0; 4]), Ok(Some(4)));
    }
    let gets = f64::from(ENTRIES.div_ceil(19));
    let measured = reads(&*index) as f64 / gets;
    assert!((measured / get_cost.page_reads - 1.0).abs() < 0.02, "{measured} {get_cost:?}");
    let before = reads(&*index);
    assert_eq!(index.get(&key(ENTRIES), 0, &mut []), Ok(None));
    assert_eq!(reads(&*index) - before, pages, "an absent key is looked for in every page");

    // A query for a small range is one scan, as in the paper.
    let before = reads(&*index);
    let (from, to) = ([0; 4], 0x0010_0000_u32.to_be_bytes());
    let range =
        KeyRange { from: Bound::Included(&from), to: Bound::Included(&to), ..KeyRange::ALL };
    let mut cursor = index.range(range).unwrap();
    let mut found = 0;
    while cursor.next().unwrap().is_some() {
        found += 1;
    }
    drop(cursor);
    assert!((1..20).contains(&found), "{found} entries");
    assert_eq!(reads(&*index) - before, pages, "a small range is one scan");
}

#[test]
fn list_keeps_its_room_however_often_it_is_opened() {
    let mut chip = chip(24);
    let options = options(EntryShape::fixed(4, 4), Durability::Every);
    drop((entry().create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap());
    let mut puts = 0;
    // More openings than the chip has blocks, each with a page or so of entries.
    for _ in 0..60 {
        let mut index = (entry().open)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
        for _ in 0..250 {
            match put(&mut *index, puts) {
                Ok(()) => puts += 1,
                Err(error) => panic!("full after {puts} entries: {error}"),
            }
        }
    }
    let mut index = (entry().open)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    for number in (0..puts).step_by(7) {
        assert_eq!(index.get(&key(number), 0, &mut [0; 4]), Ok(Some(4)), "key {number}");
    }
    // And nothing of it is lost when it is full at last.
    let error = loop {
        match put(&mut *index, puts) {
            Ok(()) => puts += 1,
            Err(error) => break error,
        }
    };
    assert!(is_full(&error), "{error}");
    index.close().unwrap();
    drop(index);
    let mut index = (entry().open)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    let mut cursor = index.range(index::KeyRange::ALL).unwrap();
    let mut entries = 0;
    while cursor.next().unwrap().is_some() {
        entries += 1;
    }
    assert_eq!(entries, puts);
}

#[test]
fn list_takes_what_fits_a_quarter_of_a_page_and_refuses_more() {
    let mut chip = chip(24);
    let options = options(EntryShape::VARIABLE, Durability::None);
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    let value = [7; 4096];
    let refused = index.update(&[Update::Put { key: b"key", value: &value }]);
    let Err(Error::EntryTooLong { found: 4099, limit }) = refused else {
        panic!("{refused:?}");
    };
    assert!((480..512).contains(&limit), "{limit}");
    let most = limit as usize - 3;
    index.update(&[Update::Put { key: b"key", value: &value[..most] }]).unwrap();
    assert_eq!(index.get(b"key", 0, &mut []), Ok(Some(most as u32)));
    let refused = index.update(&[Update::Delete { key: &value }]);
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })), "{refused:?}");
}

/// How often a range of `keys` keys reads each page of the list.
fn scans_of(index: &mut dyn Index, keys: usize) -> u64 {
    let pages = index.statistics().live_pages;
    let reads = |index: &dyn Index| index.meter().unwrap().tally(Cause::Lookup).page_reads;
    let before = reads(index);
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    (0..keys).for_each(|_| assert!(cursor.next().unwrap().is_some()));
    drop(cursor);
    assert_eq!((reads(index) - before) % pages, 0, "the whole list each time");
    (reads(index) - before) / pages
}

/// What a window has no room for is found by another scan of the whole list.
#[test]
fn list_reads_all_of_itself_once_for_each_windowful_of_a_range() {
    const ENTRIES: u32 = 20_000;
    let mut chip = chip(32);
    let options = options(EntryShape::fixed(4, 4), Durability::None);
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    (0..ENTRIES).for_each(|number| put(&mut *index, number).unwrap());
    let scans = [10, 1_000, 5_000, 20_000].map(|keys| scans_of(&mut *index, keys));
    println!("scans for 10, 1,000, 5,000 and 20,000 keys: {scans:?}");
    assert_eq!(scans[..2], [1, 1]);
    // An entry takes 9 bytes of a window of at most 32 KiB, and a sort keeps half of it or more.
    assert!((2..=4).contains(&scans[2]) && (6..=14).contains(&scans[3]), "{scans:?}");
}

/// `l` gets of present keys that are mixed into puts of `p` pages read `l p / 4` pages.
#[test]
fn gets_mixed_into_puts_read_a_quarter_of_the_pages_each() {
    const ENTRIES: u32 = 20_000;
    let mut chip = chip(32);
    let options = options(EntryShape::fixed(4, 4), Durability::None);
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    let mut bits = 1u32;
    let mut gets = 0;
    for number in 0..ENTRIES {
        put(&mut *index, number).unwrap();
        if number % 10 == 0 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let wanted = ((u64::from(bits) * u64::from(number + 1)) >> 32) as u32;
            assert_eq!(index.get(&key(wanted), 0, &mut [0; 4]), Ok(Some(4)));
            gets += 1;
        }
    }
    let reads = index.meter().unwrap().tally(Cause::Lookup).page_reads;
    let predicted = f64::from(gets) * index.statistics().live_pages as f64 / 4.0;
    println!("{gets} gets read {reads} pages, {predicted:.0} predicted");
    assert!((reads as f64 / predicted - 1.0).abs() < 0.05, "{reads} against {predicted}");
}
