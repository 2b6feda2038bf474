//! Every store does what is asked of it: against a map in memory, and once more when it was closed.

#![allow(clippy::unwrap_used, reason = "helpers of tests may unwrap as tests do")]

use std::collections::BTreeMap;

use flashtree_bench::engine::{self, Engine, Kind, Setup};
use flashtree_bench::workload::{Batch, Random, Shape, Workload};

const ENTRIES: u64 = 2000;
const WORKLOAD: Workload = Workload { entries: ENTRIES, shape: Shape { key: 16, value: 100 } };

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    WORKLOAD.key(number, &mut key);
    key
}

/// Puts and deletes, some of them durable.
fn change(engine: &mut dyn Engine, kind: &Kind, model: &mut Model, random: &mut Random) {
    for version in 0..50 {
        let mut batch = Batch::new(WORKLOAD);
        for _ in 0..100 {
            batch.add(random.below(ENTRIES), version);
        }
        engine.put(&batch, kind.lasts && version % 10 == 0).unwrap();
        model.extend(batch.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        let key = key(random.below(ENTRIES));
        engine.delete(&key).unwrap();
        model.remove(&key);
    }
}

fn compare(engine: &mut dyn Engine, model: &Model, kind: &Kind) {
    for number in 0..ENTRIES {
        let (key, mut value) = (key(number), Vec::new());
        let found = engine.get(&key, &mut value).unwrap();
        assert_eq!(found.then_some(&value), model.get(&key), "{}, entry {number}", kind.name);
    }
    for number in (0..ENTRIES).step_by(97) {
        let mut seen = Vec::new();
        let from = key(number);
        engine
            .scan(&from, 100, &mut |key, value| seen.push((key.to_vec(), value.to_vec())))
            .unwrap();
        let wanted: Vec<_> =
            model.range(from..).take(100).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(seen, wanted, "{}, from {number}", kind.name);
    }
}

#[test]
fn all_engines_hold_what_a_map_holds() {
    for kind in engine::all() {
        for synced in [false, true].into_iter().filter(|synced| kind.lasts || !synced) {
            let folder = tempfile::tempdir().unwrap();
            let setup = Setup { memory: 8 << 20, synced };
            let (mut model, mut random) = (Model::new(), Random(7));
            for _ in 0..if kind.lasts { 2 } else { 1 } {
                let mut engine = (kind.open)(folder.path(), &setup).unwrap();
                compare(engine.as_mut(), &model, &kind);
                change(engine.as_mut(), &kind, &mut model, &mut random);
                compare(engine.as_mut(), &model, &kind);
                engine.sync().unwrap();
                engine.close().unwrap();
            }
        }
    }
}

#[test]
fn the_random_order_has_each_entry_once() {
    for entries in [1, 2, 3, 1000, 4096] {
        let workload = Workload { entries, ..WORKLOAD };
        let mut order: Vec<_> = (0..entries).map(|at| workload.in_random_order(at)).collect();
        assert!(entries < 1000 || !order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..entries));
    }
}

#[test]
fn keys_are_in_the_order_of_their_numbers() {
    assert!((0..ENTRIES).map(key).is_sorted());
}
