//! A full device: the update is refused, everything before it stays, deletes make room.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::{sample, share};
use std::collections::BTreeMap;

use contract::tree::{Case, MemoryLevel, Model, Stand, cases, findings};
use flashtree_trees::TREES;
use index::{Error, Index, Update, Width};

fn put(index: &mut dyn Index, key: u32, value: u32) -> index::Result<()> {
    let (key, value) = (key.to_be_bytes(), value.to_be_bytes());
    index.update(&[Update::Put { key: &key, value: &value }])
}

/// Puts scattered keys from number `from` on until the device is full; returns how many went in.
fn fill(index: &mut dyn Index, model: &mut Model, from: u32) -> u32 {
    for number in 0.. {
        let key = (from + number).wrapping_mul(0x9E37_79B9);
        match put(index, key, number) {
            Ok(()) => {
                model.entries.insert(key.to_be_bytes().to_vec(), number.to_be_bytes().to_vec());
            }
            Err(error) => {
                assert!(
                    matches!(error, Error::Store(store::Error::Full { .. })),
                    "a full device says so: {error}"
                );
                return number;
            }
        }
    }
    0
}

fn is_wanted(case: &Case) -> bool {
    let usual = case.shape.name == "4+4" && case.memory == MemoryLevel::Double;
    // Small pages of raw flash hold few entries whatever the device's size.
    let page_bytes = if matches!(case.stand, Stand::Nand) { 2048 } else { 512 };
    usual && case.parameters.is_empty() && case.page_bytes == page_bytes
}

fn with_each_durability(case: Case) -> [Case; 4] {
    index::Durability::ALL.map(|durability| Case { durability, ..case.clone() })
}

#[test]
fn a_full_device_refuses_keeps_what_it_has_and_takes_again_after_deletes() {
    let mut tried = BTreeMap::new();
    let wanted = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    // Each tree by itself; of what stands below it, by turns.
    let (plain, others): (Vec<_>, Vec<_>) =
        wanted.partition(|case| matches!(case.stand, Stand::Ram | Stand::Nand));
    for case in plain.into_iter().chain(sample(5, others)) {
        let mut storage = case.storage(64 << 10);
        let mut index = case.index(&mut storage, false);
        let mut model = Model::default();
        let filled = fill(&mut *index, &mut model, 0);
        assert!(filled > 1000, "{}: full after {filled}", case.name());
        model.compare_all(&mut *index);
        // Another key may find room in its leaf.
        let refused = put(&mut *index, filled.wrapping_mul(0x9E37_79B9), 1);
        assert!(refused.is_err(), "{}: it stays full", case.name());

        // Trees on raw flash delete without balancing: what makes room there is an empty leaf. A
        // list never takes again: what is deleted stays in it, and deletes are appended, too.
        let half = model.entries.len() / 2;
        let is_list = case.entry.name == "list";
        let copies_paths = matches!(case.stand, Stand::Nand)
            && matches!(case.entry.name, "b-plus" | "mu" | "mu-star");
        let live_pages = index.statistics().live_pages;
        let every = if is_list { 50 } else { 2 };
        let keys: Vec<_> = match case.stand {
            Stand::Nand if !is_list => model.entries.keys().take(half).cloned().collect(),
            _ => model.entries.keys().step_by(every).cloned().collect(),
        };
        for key in &keys {
            index.update(&[Update::Delete { key }]).expect("a delete works on a full device");
            model.entries.remove(key);
        }
        if copies_paths {
            // What is buffered has to come to the tree. Half of the leaves are empty then, and go.
            index.checkpoint(None).expect("it makes a checkpoint");
            let left = index.statistics().live_pages;
            assert!(left * 10 <= live_pages * 6, "{}: {left} of {live_pages}", case.name());
        }
        let again = fill(&mut *index, &mut model, filled);
        // Keys so evenly scattered split all leaves at about the same time: those that were not
        // deleted from take the room of two, too.
        let expected = match case.stand {
            _ if is_list => 0,
            Stand::Nand => keys.len() / 8,
            // Before it refuses a put, the LA-Tree merges leaves that have room for each other.
            _ if case.entry.name == "la-tree" => keys.len() * 9 / 10,
            _ => keys.len() / 2,
        };
        println!("{}: {again} more after {filled} and {} deleted", case.name(), keys.len());
        assert!(
            again as usize >= expected,
            "{}: only {again} more after {filled} and {} deleted",
            case.name(),
            keys.len()
        );
        model.compare_all(&mut *index);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        index.close().expect("it closes");
        drop(index);
        model.compare_all(&mut *case.index(&mut storage, true));
        *tried.entry(case.entry.name).or_insert(0) += 1;
    }
    for entry in TREES {
        assert!(tried.contains_key(entry.name), "{} was not tried", entry.name);
    }
}

/// However full its leaves were, and with any memory: leaves of the LA-Tree are merged when they
/// are less than a quarter full, or before a put is refused.
#[test]
fn a_full_disk_takes_as_much_as_was_deleted_from_it() {
    let is_wanted = |case: &Case| {
        let is_disk = matches!(case.stand, Stand::Ram | Stand::Ftl(_));
        let is_shape = matches!(case.shape.name, "4+4" | "variable");
        let is_small = is_shape && case.page_bytes == 512 && case.memory != MemoryLevel::Mebibyte;
        is_disk && is_small && case.parameters.is_empty()
    };
    let entry = flashtree_trees::find("la-tree").expect("there is one");
    let wanted: Vec<_> =
        cases(entry).into_iter().filter(is_wanted).flat_map(with_each_durability).collect();
    assert_eq!(wanted.len(), 5 * 2 * 3 * 4);
    for case in sample(7, wanted) {
        let mut storage = case.storage(64 << 10);
        let mut index = case.index(&mut storage, false);
        let mut model = Model::default();
        let filled = fill(&mut *index, &mut model, 0);
        let keys: Vec<_> = model.entries.keys().step_by(2).cloned().collect();
        for key in &keys {
            index.update(&[Update::Delete { key }]).expect("a delete works on a full device");
            model.entries.remove(key);
        }
        let again = fill(&mut *index, &mut model, filled) as usize;
        let name = case.name();
        assert!(again * 10 >= keys.len() * 9, "{name}: {again} for {} deleted", keys.len());
        assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}");
        index.close().expect("it closes");
        drop(index);
        model.compare_all(&mut *case.index(&mut storage, true));
    }
}

#[test]
fn loading_more_than_fits_is_refused_with_a_whole_tree() {
    for case in TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted) {
        if !matches!(case.stand, Stand::Ram) {
            continue;
        }
        let mut storage = case.storage(64 << 10);
        let mut index = case.index(&mut storage, false);
        let mut model = Model::default();
        for number in 0..60_000u32 {
            model.entries.insert(number.to_be_bytes().to_vec(), number.to_le_bytes().to_vec());
        }
        let refused = index.load(&mut model.cursor(), 100);
        assert!(matches!(refused, Err(Error::Store(store::Error::Full { .. }))), "{refused:?}");
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        let mut into = [0; 4];
        assert_eq!(index.get(&5u32.to_be_bytes(), 0, &mut into), Ok(Some(4)));
        assert_eq!(into, 5u32.to_le_bytes());
    }
}

/// Wherever a put finds the device full, it changed nothing: whatever levels had to be split.
#[test]
fn the_last_put_that_is_refused_leaves_the_index_in_order() {
    for case in TREES.iter().flat_map(|entry| cases(entry)) {
        let usual = case.memory == MemoryLevel::Double && case.page_bytes == 512;
        let is_wanted = usual && matches!(case.stand, Stand::Ram) && case.shape.name != "8+8";
        if !is_wanted || case.parameters.iter().any(|(_, value)| value == "1024") {
            continue;
        }
        let mut made_of = 0;
        // Two sizes always: one where a level more comes, and one where lists get shorter while
        // pages wait to be written.
        for sectors in sample(13, 8..100u64).chain([37, 45]) {
            let mut storage = case.storage(sectors * 512);
            // One that could not hold a single entry is not even made.
            let made = case.try_index_over(&mut storage, false, |disk| disk);
            let Ok(mut index) = made else {
                let Err(Error::Store(store::Error::Device(refused))) = made else {
                    panic!("{}, {sectors} sectors: {:?}", case.name(), made.err());
                };
                // It is not full, but too small, and says how large it has to be.
                let device::Error::TooSmall { have, need } = refused else {
                    panic!("{}, {sectors} sectors: {refused}", case.name());
                };
                assert!(need > have, "{}: {refused}", case.name());
                continue;
            };
            made_of += 1;
            let mut keys = Vec::new();
            let refused = loop {
                let number = (keys.len() as u32).wrapping_mul(0x9E37_79B9).to_be_bytes();
                let key = match case.shape.shape.key {
                    Width::Fixed(bytes) => [[0; 4], number].concat()[8 - bytes as usize..].to_vec(),
                    Width::Variable => [&[b'k'; 10][..number[0] as usize % 10], &number].concat(),
                };
                let put = Update::Put { key: &key, value: b"four" };
                match index.update(&[put]) {
                    Ok(()) => keys.push(key),
                    Err(error) => break error,
                }
            };
            let name = case.name();
            assert!(
                matches!(refused, Error::Store(store::Error::Full { .. })),
                "{name}, {sectors} sectors: {refused}"
            );
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}, {sectors} sectors");
            for key in &keys {
                index.update(&[Update::Delete { key }]).expect("a delete works");
            }
            assert!(!keys.is_empty(), "{name}, {sectors} sectors");
            index.close().expect("it closes");
        }
        assert!(made_of * share(13) > 40, "{}: {made_of}", case.name());
    }
}

/// Nodes of trees that copy their paths are not balanced: where every second key is deleted, no
/// page becomes free. But there is room in every leaf, so the keys come back.
#[test]
fn leaves_that_are_half_empty_take_puts_on_a_full_device() {
    let copies_paths = |case: &Case| {
        let is_one = matches!(case.entry.name, "b-plus" | "mu" | "mu-star");
        is_one && matches!(case.stand, Stand::Nand)
    };
    let wanted = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    let wanted: Vec<_> = wanted.filter(copies_paths).flat_map(with_each_durability).collect();
    assert_eq!(wanted.len(), 3 * 4);
    sample(5, wanted).for_each(|case| refill(&case));
}

/// Deletes every second key of a full device, three times, and puts it again.
fn refill(case: &Case) {
    let name = case.name();
    let mut storage = case.storage(64 << 10);
    let mut index = case.index(&mut storage, false);
    let mut model = Model::default();
    let filled = fill(&mut *index, &mut model, 0);
    let gone: Vec<_> = model.entries.keys().step_by(2).cloned().collect();
    for round in 0..3 {
        for key in &gone {
            index.update(&[Update::Delete { key }]).expect("a delete works on a full device");
            model.entries.remove(key);
        }
        for (place, key) in gone.iter().enumerate() {
            let value = [round; 4];
            if let Err(error) = index.update(&[Update::Put { key, value: &value }]) {
                panic!("{name}: {place} of {} back of {filled}: {error}", gone.len());
            }
            model.entries.insert(key.clone(), value.to_vec());
        }
        // What is there can be put again.
        let key = model.entries.keys().next().expect("there is one").clone();
        let put = Update::Put { key: &key, value: &[9; 4] };
        if let Err(error) = index.update(&[put]) {
            panic!("{name}, round {round}: a put of a key that is there is taken: {error}");
        }
        model.entries.insert(key, vec![9; 4]);
    }
    model.compare_all(&mut *index);
    assert_eq!(findings(&mut *index), Vec::<String>::new());
    index.close().expect("it closes");
    drop(index);
    model.compare_all(&mut *case.index(&mut storage, true));
}
