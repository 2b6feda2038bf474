use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use device::Cause;

use super::Emptying;
use crate::la_tree::bare_tree::Bounds;
use crate::la_tree::buffers::Buffers;
use crate::la_tree::buffers::tests::{SHAPE, chip, none};
use crate::la_tree::sorter::Sorter;
use crate::la_tree::storage::Storage;
use crate::la_tree::stream::{Form, Pending};

const FORM: Form = Form::new(SHAPE);
const CAUSE: Cause = Cause::Flush;

/// A pool of so many bytes on a chip, with one empty buffer.
fn parts(pool: u64) -> (Storage<'static>, Buffers) {
    let (log, mut buffers) = (chip(), none(pool));
    buffers.begin(&log, 0, true).unwrap();
    (log, buffers)
}

type Entries = BTreeMap<[u8; 4], Option<[u8; 4]>>;

/// Puts and deletes of some keys over and over; returns what holds in the end.
fn fill(log: &mut Storage<'_>, buffers: &mut Buffers, updates: u32) -> Entries {
    let mut model = Entries::new();
    for number in 0..updates {
        let key = (number.wrapping_mul(0x9E37_79B1) >> 24).to_be_bytes();
        let value = (number % 3 > 0).then_some(number.to_be_bytes());
        let entry = Pending { key: &key, value: value.as_ref().map(|value| &value[..]) };
        buffers.append(log, 0, &entry, CAUSE).unwrap();
        model.insert(key, value);
    }
    model
}

/// Takes all that goes down, in its order.
fn land(emptying: &mut Emptying, log: &mut Storage<'_>, buffers: &mut Buffers) -> Vec<[u8; 4]> {
    let mut keys = Vec::new();
    while emptying.next(log, buffers, CAUSE).unwrap() {
        keys.push(emptying.entry.key[..].try_into().unwrap());
    }
    keys
}

fn value(emptying: &Emptying) -> Option<[u8; 4]> {
    let value = emptying.entry.pending().value;
    value.map(|value| value.try_into().unwrap())
}

#[test]
fn the_newest_entry_of_each_key_goes_down_in_the_order_of_the_keys() {
    // The second has most of its entries on flash.
    for pool in [16 << 10, 3000] {
        let (mut log, mut buffers) = parts(pool);
        let model = fill(&mut log, &mut buffers, 600);
        let mut emptying = Emptying::new(Sorter::new(FORM, 8192, 2000), 12);
        let all = Bounds::default();
        assert!(emptying.take_off(&mut log, &mut buffers, (0, &all), CAUSE).unwrap());
        assert_eq!(buffers.record(0).entries(), 0, "it counts as empty from now on");
        let mut landed = Entries::new();
        while emptying.next(&mut log, &mut buffers, CAUSE).unwrap() {
            let key = emptying.entry.key[..].try_into().unwrap();
            let is_behind = landed.keys().next_back().is_none_or(|last| *last < key);
            assert!(is_behind, "{key:?} is out of order");
            landed.insert(key, value(&emptying));
        }
        assert_eq!(landed, model);
    }
}

#[test]
fn what_does_not_fit_memory_goes_down_in_parts_the_oldest_first() {
    let (mut log, mut buffers) = parts(3000);
    let model = fill(&mut log, &mut buffers, 600);
    let mut emptying = Emptying::new(Sorter::new(FORM, 1200, 300), 12);
    let all = Bounds::default();
    assert!(!emptying.take_off(&mut log, &mut buffers, (0, &all), CAUSE).unwrap());
    let (mut landed, mut parts, mut last) = (Entries::new(), 1, None);
    while emptying.next(&mut log, &mut buffers, CAUSE).unwrap() {
        let key: [u8; 4] = emptying.entry.key[..].try_into().unwrap();
        parts += u32::from(last.is_some_and(|last| key <= last));
        last = Some(key);
        // What comes later is newer.
        landed.insert(key, value(&emptying));
    }
    assert!(parts > 3, "{parts} parts");
    assert_eq!(landed, model);
}

#[test]
fn entries_of_another_node_are_damage_and_one_entry_alone_goes_on_where_it_was() {
    let (mut log, mut buffers) = parts(16 << 10);
    fill(&mut log, &mut buffers, 100);
    let mut emptying = Emptying::new(Sorter::new(FORM, 8192, 2000), 12);
    let few = Bounds { upper: Vec::from([0, 0, 0, 9]), has_upper: true, ..Bounds::default() };
    emptying.take_off(&mut log, &mut buffers, (0, &few), CAUSE).unwrap();
    let mut read = Ok(true);
    while let Ok(true) = read {
        read = emptying.next(&mut log, &mut buffers, CAUSE);
    }
    assert!(read.is_err(), "keys from 9 on are none of that node");
    let entry = Pending { key: &[7; 4], value: Some(&[8; 4]) };
    emptying.take_single(&entry, false);
    assert_eq!(emptying.entry.pending(), entry);
    assert!(emptying.next(&mut log, &mut buffers, CAUSE).unwrap());
    // Another buffer is taken off and lands meanwhile.
    let single = emptying.single().unwrap();
    buffers.append(&mut log, 0, &Pending { key: &[1; 4], value: None }, CAUSE).unwrap();
    emptying.take_off(&mut log, &mut buffers, (0, &Bounds::default()), CAUSE).unwrap();
    assert_eq!(land(&mut emptying, &mut log, &mut buffers), [[1; 4]]);
    emptying.resume(single);
    assert_eq!(emptying.entry.pending(), entry);
    assert!(!emptying.next(&mut log, &mut buffers, CAUSE).unwrap(), "there is no other");
}
