//! What lazy-update does by itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::catch_unwind;

use contract::tree::{Case, cases, figure, findings, run};
use contract::{RamDisk, on_all_cores, sample};
use device::{Medium, SectorGeometry};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, KeyRange, Options, Update, Value, Width};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[test]
fn it_agrees_with_an_ordered_map() {
    let cases: Vec<_> = sample(10, cases(find("lazy-update").unwrap())).collect();
    // Each with another way to choose victims.
    let ways = [
        ("policy", "biggest-size"),
        ("policy", "lru"),
        ("policy", "fifo"),
        ("pruning", "off"),
        ("super-groups", "first"),
        ("pool", "0.9"),
    ];
    let with = |(place, mut case): (usize, Case)| {
        if case.parameters.is_empty()
            && let Some((name, word)) = ways.get(place % 9)
        {
            case.parameters.push((name, (*word).to_owned()));
        }
        case
    };
    let cases: Vec<_> = cases.into_iter().enumerate().map(with).collect();
    on_all_cores(&cases, |case| {
        if catch_unwind(|| run(case)).is_err() {
            panic!("{} failed; play it again with\n  {}", case.name(), case.replay());
        }
    });
}

const SECTOR: u32 = 512;

fn options(given: &[(&str, &str)], durability: Durability) -> Options {
    let entry = find("lazy-update").unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, given.iter().copied()).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 48 << 10, settings);
    Options { durability: Some(durability), ..options }
}

fn disk() -> RamDisk {
    RamDisk::new(SectorGeometry::new(SECTOR, 20_000).unwrap())
}

fn make<'d>(disk: &'d mut RamDisk, options: &Options) -> Box<dyn Index + 'd> {
    (find("lazy-update").unwrap().create)(Medium::Sectors(Box::new(disk)), options).unwrap()
}

fn open<'d>(disk: &'d mut RamDisk, options: &Options) -> Box<dyn Index + 'd> {
    (find("lazy-update").unwrap().open)(Medium::Sectors(Box::new(disk)), options).unwrap()
}

fn figures(index: &dyn Index) -> BTreeMap<&'static str, u64> {
    let mut figures = BTreeMap::new();
    index.metrics(&mut |name, figure| {
        figures.insert(name, figure);
    });
    figures
}

type Model = BTreeMap<u32, u32>;

fn compare(index: &mut dyn Index, model: &Model) {
    assert_eq!(findings(index), Vec::<String>::new());
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    for (key, value) in model {
        let (found, stored) = cursor.next().unwrap().unwrap();
        assert_eq!(found, key.to_be_bytes());
        assert_eq!(stored, Value::Inline(&value.to_le_bytes()));
    }
    assert!(cursor.next().unwrap().is_none());
}

/// A history of updates and lookups, some in bursts near to each other, in a tree that grows and
/// shrinks; what it counted.
fn play(given: &[(&str, &str)], seed: u64, operations: u32) -> BTreeMap<&'static str, u64> {
    let (mut disk, options) = (disk(), options(given, Durability::None));
    let mut index = make(&mut disk, &options);
    let (mut model, mut dice) = (Model::new(), ChaCha8Rng::seed_from_u64(seed));
    let mut near = 0;
    for number in 0..operations {
        if dice.random_ratio(1, 8) {
            near = dice.random_range(0..30_000);
        }
        let key: u32 = match dice.random_bool(0.5) {
            true => near + dice.random_range(0..60),
            false => dice.random_range(0..30_000),
        };
        let grows = number / 10_000 % 2 == 0;
        let is_put = dice.random_bool(if grows { 0.75 } else { 0.25 });
        match dice.random_range(0..10) {
            0..7 if is_put => {
                model.insert(key, number);
                let value = number.to_le_bytes();
                index.update(&[Update::Put { key: &key.to_be_bytes(), value: &value }]).unwrap();
            }
            0..7 => {
                let key = model.range(key..).next().map_or(key, |(key, _)| *key);
                model.remove(&key);
                index.update(&[Update::Delete { key: &key.to_be_bytes() }]).unwrap();
            }
            _ => {
                let mut value = [0; 4];
                let found = index.get(&key.to_be_bytes(), 0, &mut value).unwrap();
                let expected = model.get(&key).copied();
                assert_eq!(found.map(|_| u32::from_le_bytes(value)), expected, "{seed}: {key}");
            }
        }
        if number % 4999 == 0 {
            compare(&mut *index, &model);
        }
    }
    compare(&mut *index, &model);
    figures(&*index)
}

/// Plays histories until each of these was counted often enough.
fn witness(given: &[(&str, &str)], names: &[&str]) {
    let mut seen = BTreeMap::new();
    for seed in 0..20 {
        for (name, figure) in play(given, seed, 30_000) {
            *seen.entry(name).or_insert(0) += figure;
        }
        if names.iter().all(|name| seen[name] >= 100) {
            return;
        }
    }
    panic!("{given:?}: {seen:?}");
}

#[test]
fn each_policy_chooses_a_hundred_groups_and_more() {
    for policy in ["biggest-size", "cost-based", "lru", "fifo"] {
        let names = ["groups chosen by the policy", "index blocks divided"];
        witness(&[("policy", policy)], &names);
        witness(&[("policy", policy), ("pruning", "off")], &names);
    }
}

#[test]
fn blocks_are_pruned_and_dirty_leaves_take_requests_along() {
    let names = ["choices that pruned blocks", "commits that rode along"];
    witness(&[("policy", "biggest-size")], &names);
    witness(&[], &[names[0], names[1], "leaves sized"]);
}

#[test]
fn lookups_are_answered_by_requests_that_wait() {
    witness(&[], &["lookups answered by requests"]);
}

#[test]
fn lookups_and_ranges_form_groups_of_the_nodes_that_they_read() {
    let (mut disk, options) = (disk(), options(&[], Durability::None));
    let mut index = make(&mut disk, &options);
    for number in 0..20_000_u32 {
        let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
        index.update(&[Update::Put { key: &key, value: &[1; 4] }]).unwrap();
    }
    index.close().unwrap();
    drop(index);
    // The requests that came along leave room for groups.
    let options = Options { memory_bytes: 256 << 10, ..options };
    let mut index = open(&mut disk, &options);
    for number in 0..200_u32 {
        let key = number.wrapping_mul(0x85EB_CA6B).to_be_bytes();
        index.update(&[Update::Put { key: &key, value: &[2; 4] }]).unwrap();
    }
    let divided = |index: &dyn Index| figure(index, "index blocks divided");
    let before = divided(&*index);
    index.get(&[0x20, 0, 0, 1], 0, &mut [0; 4]).unwrap();
    let by_lookup = divided(&*index);
    let (from, to) = ([0x80, 0, 0, 1], [0xC0, 0, 0, 1]);
    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    let range = KeyRange { from: bounds.0, to: bounds.1, ..KeyRange::ALL };
    drop(index.range(range).unwrap());
    let by_range = divided(&*index);
    drop(index.range(range.reversed()).unwrap());
    let backwards = divided(&*index);
    let seen = [before, by_lookup, by_range, backwards];
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
}

#[test]
fn without_pruning_nothing_is_pruned() {
    let seen = play(&[("pruning", "off")], 0, 20_000);
    assert_eq!(seen["choices that pruned blocks"], 0);
    assert!(seen["groups chosen by the policy"] >= 100, "{seen:?}");
    // Leaves are read to know what they have room for, though no victim hangs on it.
    let pruned = play(&[], 0, 20_000);
    assert!(seen["leaves sized"] > pruned["leaves sized"], "{seen:?}, {pruned:?}");
}

#[test]
fn a_put_of_an_absent_key_and_its_delete_cancel_out() {
    witness(&[], &["requests cancelled out", "requests replaced"]);
}

#[test]
fn commits_split_merge_and_even_out_leaves_with_the_list_kept_true() {
    witness(&[], &[index::NODES_SPLIT, index::NODES_MERGED, "nodes evened out"]);
}

#[test]
fn each_case_of_a_super_group_is_seen() {
    let cases =
        ["groups joined, both rebalance", "groups joined, neighbours", "groups joined, chained"];
    for way in ["first", "second"] {
        for policy in ["biggest-size", "cost-based"] {
            let given = [("super-groups", way), ("policy", policy)];
            witness(&given, &[cases[0], cases[1], cases[2], "groups committed together"]);
        }
    }
}

/// What updates of one index did, one by one: groups committed, and leaves sized, by each.
fn committed_by_each(given: &[(&str, &str)], keys: u32, updates: u32) -> Vec<[u64; 2]> {
    let (mut disk, options) = (disk(), options(given, Durability::None));
    let mut index = make(&mut disk, &options);
    let mut dice = ChaCha8Rng::seed_from_u64(11);
    let (mut before, mut by_each) = ([0; 2], Vec::new());
    for number in 0..updates {
        let key = dice.random_range(0..keys).to_be_bytes();
        let update = match dice.random_ratio(1, 3) {
            true => Update::Delete { key: &key },
            false => Update::Put { key: &key, value: &number.to_be_bytes() },
        };
        index.update(&[update]).unwrap();
        let figures = figures(&*index);
        let after = ["groups committed", "leaves sized"].map(|name| figures[name]);
        by_each.push([after[0] - before[0], after[1] - before[1]]);
        before = after;
    }
    assert_eq!(findings(&mut *index), Vec::<String>::new());
    by_each
}

#[test]
fn what_is_chosen_together_is_committed_together() {
    for way in ["first", "second"] {
        let by_each = committed_by_each(&[("super-groups", way)], 30_000, 60_000);
        let together = by_each.iter().filter(|[groups, _]| *groups > 1).count();
        assert!(together >= 100, "{way}: {together}");
    }
}

#[test]
fn without_room_for_groups_the_cheapest_is_chosen_by_what_it_costs() {
    // Far more leaves than there are blocks for.
    let by_each = committed_by_each(&[], 1_000_000, 200_000);
    let sized = by_each[100_000..].iter().filter(|[_, sized]| *sized > 0).count();
    assert!(sized >= 100, "{sized}");
}

#[test]
fn requests_of_no_group_ride_along_as_well() {
    let (mut disk, options) = (disk(), options(&[("policy", "lru")], Durability::None));
    let mut index = make(&mut disk, &options);
    let mut dice = ChaCha8Rng::seed_from_u64(12);
    for number in 0..60_000_u32 {
        let key = dice.random_range(0..100_000_u32).to_be_bytes();
        index.update(&[Update::Put { key: &key, value: &number.to_be_bytes() }]).unwrap();
    }
    let seen = figures(&*index);
    assert!(seen["commits that rode along, without a group"] >= 100, "{seen:?}");
}

#[test]
fn what_waits_at_a_checkpoint_is_there_after_opening() {
    for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
        let (mut disk, options) = (disk(), options(&[], durability));
        let mut index = make(&mut disk, &options);
        for key in 0..300_u32 {
            let key = key.wrapping_mul(0x9E37_79B1).to_be_bytes();
            index.update(&[Update::Put { key: &key, value: &[1; 4] }]).unwrap();
        }
        assert!(figure(&*index, index::UPDATES_WAITING) >= 300);
        index.checkpoint(None).unwrap();
        drop(index);
        let mut index = open(&mut disk, &options);
        assert!(figure(&*index, index::UPDATES_WAITING) >= 300, "{durability}");
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        for key in 0..300_u32 {
            let key = key.wrapping_mul(0x9E37_79B1).to_be_bytes();
            assert_eq!(index.get(&key, 0, &mut [0; 4]), Ok(Some(4)));
        }
        // With as little memory as it can have, what waits has no room and is made at once.
        let entry = find("lazy-update").unwrap();
        drop(index);
        let less = Options { memory_bytes: 6 << 10, ..options };
        let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &less).unwrap();
        assert_eq!(figure(&*index, index::UPDATES_WAITING), 0);
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        for key in 0..300_u32 {
            let key = key.wrapping_mul(0x9E37_79B1).to_be_bytes();
            assert_eq!(index.get(&key, 0, &mut [0; 4]), Ok(Some(4)));
        }
    }
}

#[test]
fn a_longer_value_of_a_request_that_was_committed_for_it_is_no_fresh_put() {
    let shape = EntryShape { key: Width::Fixed(4), value: Width::Variable };
    let options = Options { shape, ..options(&[], Durability::Batch) };
    let mut disk = disk();
    let mut index = make(&mut disk, &options);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut model = BTreeMap::new();
    for number in 0..60_000_u32 {
        let key: u32 = random.random_range(0..number / 20 + 20);
        let before = model.get(&key).map_or(0, Vec::len);
        // The same key grows, and goes.
        if before > 70 {
            index.update(&[Update::Delete { key: &key.to_be_bytes() }]).unwrap();
            model.remove(&key);
        } else {
            let value = vec![number as u8; before + random.random_range(1..40)];
            index.update(&[Update::Put { key: &key.to_be_bytes(), value: &value }]).unwrap();
            model.insert(key, value);
        }
        if number % 997 == 0 {
            let found = findings(&mut *index);
            assert_eq!(found, Vec::<String>::new(), "after {number}");
        }
    }
    for key in 0..4_000_u32 {
        let mut into = [0; 160];
        let length = index.get(&key.to_be_bytes(), 0, &mut into).unwrap();
        let found = length.map(|length| into[..length as usize].to_vec());
        assert_eq!(found.as_ref(), model.get(&key), "key {key}");
    }
}
