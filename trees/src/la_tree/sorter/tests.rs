use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use store::EntryShape;

use super::Sorter;
use super::places::Places;
use crate::la_tree::stream::{Form, Pending, Writer};

type Entry = (Vec<u8>, Option<Vec<u8>>);

fn encode(form: Form, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = vec![0; 64 * entries.len() + 64];
    let mut writer = Writer::new(form, &mut bytes);
    for (key, value) in entries {
        assert!(writer.push(&Pending { key, value: value.as_deref() }));
    }
    let end = writer.bytes();
    bytes.truncate(end);
    bytes
}

fn load(sorter: &mut Sorter, stream: &[u8]) -> Result<usize, &'static str> {
    sorter.room(stream.len()).unwrap().copy_from_slice(stream);
    sorter.load(stream.len())
}

/// `count` updates of keys below `keys`, oldest first.
fn updates(seed: u64, count: usize, keys: u64) -> Vec<Entry> {
    let mut state = seed;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % bound
    };
    (0..count)
        .map(|number| {
            let key = (below(keys) as u32).to_be_bytes().to_vec();
            let value = (number as u32).to_be_bytes().to_vec();
            (key, (below(3) > 0).then_some(value))
        })
        .collect()
}

/// The newest of each key.
fn expected(updates: &[Entry]) -> Vec<Entry> {
    let newest: BTreeMap<_, _> = updates.iter().cloned().collect();
    newest.into_iter().collect()
}

impl Sorter {
    /// Entries that are loaded; after sorting, those that are newest for their key.
    fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes of the memory budget that it takes.
    fn memory_bytes(&self) -> u64 {
        let places = match &self.places {
            Places::Short(places) => 2 * places.capacity(),
            Places::Long(places) => 4 * places.capacity(),
        };
        (self.bytes.len() + places) as u64
    }
}

fn sorted(sorter: &Sorter) -> Vec<Entry> {
    let owned = |entry: Pending<'_>| (entry.key.to_vec(), entry.value.map(<[u8]>::to_vec));
    (0..sorter.len()).filter_map(|place| sorter.get(place).map(owned)).collect()
}

#[test]
fn a_buffer_is_sorted_with_the_newest_entry_of_each_key() {
    for shape in [EntryShape::fixed(4, 4), EntryShape::VARIABLE] {
        for seed in 0..40 {
            let form = Form::new(shape);
            let updates = updates(seed, 300, 100);
            // Places take two bytes in the one, and four in the other.
            let bytes = if seed % 4 < 2 { 8192 } else { 40_000 };
            let mut sorter = Sorter::new(form, bytes, 400);
            let memory = sorter.memory_bytes();
            for fragment in updates.chunks(37).rev() {
                load(&mut sorter, &encode(form, fragment)).unwrap();
            }
            assert_eq!(sorter.len(), 300);
            sorter.sort();
            assert_eq!(sorter.memory_bytes(), memory, "nothing was taken besides");
            assert_eq!(sorted(&sorter), expected(&updates), "seed {seed}");
            sorter.clear();
            assert_eq!(sorter.len(), 0);
        }
    }
}

#[test]
fn streams_that_are_damaged_or_too_many_change_nothing() {
    let form = Form::new(EntryShape::fixed(4, 4));
    let updates = updates(1, 20, 100);
    let stream = encode(form, &updates);
    let mut sorter = Sorter::new(form, 512, 30);
    assert_eq!(load(&mut sorter, &stream), Ok(20));
    for _ in 0..2 {
        assert!(load(&mut sorter, &stream[..stream.len() - 1]).is_err(), "cut off");
        assert!(load(&mut sorter, &stream).is_err(), "more entries than it has room for");
    }
    assert!(sorter.room(512).is_none());
    sorter.sort();
    assert_eq!(sorted(&sorter), expected(&updates));
}

#[test]
fn what_was_lent_is_room_again_once_it_is_cleared() {
    let form = Form::new(EntryShape::fixed(4, 4));
    let stream = encode(form, &updates(1, 20, 1000));
    let mut sorter = Sorter::new(form, 1000, 100);
    assert!(load(&mut sorter, &stream).is_ok());
    sorter.lend();
    assert!(sorter.room(1).is_none() && sorter.get(0).is_none());
    assert_eq!((sorter.bytes(), sorter.load_older(&stream)), (1000, Ok(false)));
    sorter.clear();
    assert_eq!(load(&mut sorter, &stream), Ok(20));
}
