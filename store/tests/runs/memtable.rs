//! A memtable holds what was put into it, in its memory, and both heads of it.

use std::collections::BTreeMap;

use crate::media::{self, MEDIA, SHAPES};
use flashtree_store::runs::{Entry, Kind, Kinds, Memtable, Source, Space, Way, Which};
use flashtree_store::{EntryShape, Error};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Model = BTreeMap<Vec<u8>, (Kind, Vec<u8>)>;

const HEADS: [Which; 2] = [Which::Active, Which::Frozen];

fn entry_bytes(shape: EntryShape) -> usize {
    match shape {
        EntryShape::VARIABLE => 70,
        _ => 120,
    }
}

fn same(table: &Memtable, which: Which, model: &Model, space: &mut dyn Space) {
    let bytes = model.iter().map(|(key, (_, value))| (key.len() + value.len()) as u64).sum();
    assert_eq!(table.held(which), (model.len() as u64, bytes));
    let mut cursor = table.cursor(which, Default::default());
    for (key, (kind, value)) in model {
        assert!(cursor.load(space, Way::Up).unwrap());
        assert_eq!(cursor.head(Way::Up), Some(Entry { key, kind: *kind, value }));
        cursor.step(Way::Up);
        assert_eq!(cursor.head(Way::Down), Some(Entry { key, kind: *kind, value }));
    }
    assert!(!cursor.load(space, Way::Up).unwrap());
    for (key, (kind, value)) in model.iter().rev() {
        assert!(cursor.load(space, Way::Down).unwrap());
        assert_eq!(cursor.head(Way::Down), Some(Entry { key, kind: *kind, value }));
        cursor.step(Way::Down);
    }
    assert!(!cursor.load(space, Way::Down).unwrap());
}

#[test]
fn both_heads_hold_what_a_plain_map_holds() {
    let mut space = MEDIA[0].space();
    for (number, shape) in SHAPES.into_iter().enumerate() {
        for seed in 0..12 {
            let mut random = ChaCha8Rng::seed_from_u64(seed * 10 + number as u64);
            let memory = random.random_range(12_000..60_000);
            let mut table = Memtable::new(memory, shape, entry_bytes(shape)).unwrap();
            assert!(table.memory() <= memory, "{shape:?}: {} of {memory}", table.memory());
            let mut models = [Model::new(), Model::new()];
            for step in 0..3000 {
                let key = media::key(&mut random, shape);
                let is_put = random.random_bool(0.8);
                let mut value = if is_put { media::value(&mut random, shape) } else { vec![] };
                if shape.value == flashtree_store::Width::Variable {
                    value.truncate(30);
                }
                let kind = if is_put { Kind::Put } else { Kind::Delete };
                let takes = table.takes(1, (key.len() + value.len()) as u64);
                let is_in = table.put(&key, kind, &value);
                assert!(is_in || !takes, "seed {seed}");
                if is_in {
                    models[0].insert(key, (kind, value));
                } else if models[1].is_empty() {
                    assert!(table.freeze());
                    models.swap(0, 1);
                } else {
                    assert!(!table.freeze());
                    let last = models[1].keys().nth(models[1].len() / 2).cloned();
                    table.drain(Which::Frozen, last.as_deref());
                    match last.filter(|_| models[1].len() > 1) {
                        Some(last) => models[1].retain(|key, _| *key > last),
                        None => models[1].clear(),
                    }
                }
                if step % 500 == 0 {
                    for (which, model) in HEADS.into_iter().zip(&models) {
                        same(&table, which, model, &mut *space);
                    }
                }
                let key = media::key(&mut random, shape);
                for (which, model) in HEADS.into_iter().zip(&models) {
                    let expected = model.get(&key).map(|(kind, value)| (*kind, &value[..]));
                    assert_eq!(table.get(which, &key), expected, "seed {seed}");
                }
            }
            assert!(table.memory() <= memory);
            HEADS.into_iter().for_each(|which| table.drain(which, None));
            assert_eq!(table.percent_used(), 0);
        }
    }
}

#[test]
fn a_key_of_its_own_finds_room_though_all_others_had_much_in_common() {
    let mut tried = 0;
    for entries in (0..2000).step_by(3) {
        let mut random = ChaCha8Rng::seed_from_u64(entries);
        let mut table = Memtable::new(30_000, EntryShape::VARIABLE, 500).unwrap();
        for _ in 0..entries {
            let mut key = vec![b'm'; 400];
            key.extend(random.random::<[u8; 3]>());
            let is_in = table.put(&key, Kind::Put, &[7; 20]);
            assert!(is_in || !table.takes(1, 423), "{entries} entries");
        }
        if table.takes(1, 21) {
            tried += 1;
            assert!(table.put(b"a", Kind::Put, &[7; 20]), "{entries} entries");
        }
    }
    assert!(tried > 5, "{tried} tables had room");
}

#[test]
fn a_cursor_finds_its_place_and_goes_on_where_another_stood() {
    let (mut space, shape) = (MEDIA[0].space(), EntryShape::VARIABLE);
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut table = Memtable::new(100_000, shape, 70).unwrap();
    let mut model = Model::new();
    for (key, kind, mut value) in media::entries(&mut random, shape, Kinds::Deletes) {
        value.truncate(30);
        assert!(table.put(&key, kind, &value));
        model.insert(key, (kind, value));
    }
    for _ in 0..500 {
        let key = media::key(&mut random, shape);
        let is_behind = random.random_bool(0.5);
        let mut cursor = table.cursor(Which::Active, Default::default());
        cursor.seek(&key, is_behind);
        let position = cursor.position();
        let mut cursor = table.cursor(Which::Active, cursor.into_keys());
        cursor.resume(position);
        let up = model.range(key.clone()..).find(|(other, _)| !is_behind || **other != key);
        let down = model.range(..=key.clone()).rfind(|(other, _)| is_behind || **other != key);
        for (way, expected) in [(Way::Up, up), (Way::Down, down)] {
            assert_eq!(cursor.load(&mut *space, way).unwrap(), expected.is_some());
            let found = cursor.head(way).filter(|_| expected.is_some());
            assert_eq!(found.map(|entry| entry.key), expected.map(|(key, _)| &key[..]));
        }
    }
}

#[test]
fn keys_that_ascend_fill_their_leaves() {
    let shape = EntryShape::fixed(8, 8);
    let mut table = Memtable::new(64 << 10, shape, 16).unwrap();
    let mut entries = 0u64;
    while table.put(&entries.to_be_bytes(), Kind::Put, &entries.to_le_bytes()) {
        entries += 1;
    }
    // 17 bytes each, beside the ends of leaves and the list of them.
    assert!(entries * 17 > (64 << 10) * 93 / 100, "{entries}");
}

#[test]
fn too_little_memory_is_refused_with_what_is_needed() {
    let shape = EntryShape::fixed(8, 8);
    let Err(Error::LittleMemory { need, .. }) = Memtable::new(100, shape, 16) else {
        panic!("100 bytes are too few");
    };
    let table = Memtable::new(need, shape, 16).unwrap();
    assert!(table.memory() <= need);
}

#[test]
fn a_range_of_keys_is_taken_out_and_its_leaves_are_free() {
    let mut space = MEDIA[0].space();
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let mut random = ChaCha8Rng::seed_from_u64(number as u64);
        let mut table = Memtable::new(60_000, shape, entry_bytes(shape)).unwrap();
        let mut model = Model::new();
        for _ in 0..400 {
            for _ in 0..20 {
                let (key, mut value) =
                    (media::key(&mut random, shape), media::value(&mut random, shape));
                value.truncate(if shape.value == flashtree_store::Width::Variable {
                    30
                } else {
                    200
                });
                if table.put(&key, Kind::Put, &value) {
                    model.insert(key, (Kind::Put, value));
                }
            }
            let (one, other) = (media::key(&mut random, shape), media::key(&mut random, shape));
            let (from, to) = if one < other { (one, other) } else { (other, one) };
            let to = random.random_bool(0.8).then_some(to);
            table.drain_range(&from, to.as_deref());
            model.retain(|key, _| *key < from || to.as_ref().is_some_and(|to| key >= to));
            same(&table, Which::Active, &model, &mut *space);
        }
        table.drain_range(&[], None);
        assert_eq!((table.held(Which::Active), table.percent_used()), ((0, 0), 0));
    }
}
