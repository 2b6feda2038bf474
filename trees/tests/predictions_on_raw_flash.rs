//! Cost models of the trees on raw flash against the trees themselves, for random keys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::{Geometry, Medium, NandCosts};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use index::{MediumShape, Options, Profile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// What a model may be off by, as those of trees on disks.
const TOLERANCE: f64 = 0.15;

/// Entries in the tree: about 340 full leaves of 2 KiB.
const ENTRIES: u32 = 60_000;

const OPERATIONS: u32 = 60_000;

/// Another key for every number, in no order: multiples of one number would split all nodes at
/// about the same time.
fn key(number: u32) -> [u8; 4] {
    let bits = (number ^ (number >> 16)).wrapping_mul(0x85EB_CA6B);
    let bits = (bits ^ (bits >> 13)).wrapping_mul(0xC2B2_AE35);
    (bits ^ (bits >> 16)).to_be_bytes()
}

/// Pages read and written so far.
fn counts(index: &dyn Index) -> [u64; 2] {
    let total = index.meter().unwrap().total();
    [total.page_reads, total.page_programs]
}

/// Pages read and written an operation, where `lookups` of the operations are lookups and the
/// others puts of keys that are there; `settling` operations go before those that are counted.
fn measure(index: &mut dyn Index, lookups: f64, settling: u32) -> [f64; 2] {
    for number in 0..ENTRIES {
        index.update(&[Update::Put { key: &key(number), value: b"four" }]).unwrap();
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    play(index, &mut random, lookups, settling);
    let before = counts(index);
    play(index, &mut random, lookups, OPERATIONS);
    let after = counts(index);
    [0, 1].map(|place| (after[place] - before[place]) as f64 / f64::from(OPERATIONS))
}

fn play(index: &mut dyn Index, random: &mut ChaCha8Rng, lookups: f64, operations: u32) {
    for number in 0..operations {
        let key = key(random.random_range(0..ENTRIES));
        if random.random_bool(lookups) {
            assert_eq!(index.get(&key, 0, &mut [0; 4]), Ok(Some(4)));
        } else {
            // Not always the same value: that may change nothing.
            let value = number.to_le_bytes();
            index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        }
    }
}

/// What is compared.
struct Tree {
    name: &'static str,
    given: &'static [(&'static str, &'static str)],
    /// Operations until it is in its steady state.
    settling: u32,
}

/// What is done: lookups, and puts of keys that are there.
fn overwriting(lookups: f64) -> Profile {
    let overwrites = 1.0 - lookups;
    Profile { entries: u64::from(ENTRIES), lookups, inserts: 0.0, overwrites, deletes: 0.0 }
}

/// The predicted beside the measured pages read and written, of a tree with so many times the
/// memory that it needs, on a chip of so many blocks of 64 pages of 2 KiB.
fn compare(
    tree: &Tree,
    (memory, blocks): (u64, u32),
    profile: &Profile,
    measure: impl FnOnce(&mut dyn Index) -> [f64; 2],
) -> [(f64, f64); 2] {
    let &Tree { name: tree, given, .. } = tree;
    let entry = find(tree).unwrap();
    let geometry = Geometry::new(2048, 64, blocks).unwrap().with_spare(64).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let medium = MediumShape::Nand(geometry);
    let settings = Settings::parse(tree, entry.parameters, given.iter().copied()).unwrap();
    // The models know of no journal, as the papers' don't.
    let durability = Some(Durability::None);
    let mut options = Options { durability, ..Options::new(EntryShape::fixed(4, 4), 0, settings) };
    options.memory_bytes = memory * entry.least_memory(&options, medium).unwrap();
    let predicted = (entry.predict)(profile, &options, medium).unwrap();
    let mut index = (entry.create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    let [reads, writes] = measure(&mut *index);
    [(predicted.page_reads, reads), (predicted.page_writes, writes)]
}

fn assert_near(name: &'static str) {
    assert_tree_near(&Tree { name, given: &[], settling: 0 }, &[(1, 32), (8, 32), (8, 128)]);
}

fn assert_tree_near(tree: &Tree, stages: &[(u64, u32)]) {
    for &stage in stages {
        for lookups in [0.1, 0.5, 0.9] {
            let found = compare(tree, stage, &overwriting(lookups), |index| {
                measure(index, lookups, tree.settling)
            });
            for (what, (predicted, measured)) in ["reads", "writes"].into_iter().zip(found) {
                let (memory, blocks) = stage;
                let Tree { name: tree, given, .. } = tree;
                let name = format!(
                    "{tree} {given:?}, {memory}x, {blocks} blocks, {lookups} lookups: {what}"
                );
                println!("{name} {predicted:.3} against {measured:.3}");
                let off = (predicted - measured).abs() / measured;
                assert!(off < TOLERANCE, "{name} {predicted} against {measured}");
            }
        }
    }
}

#[test]
fn mu_costs_what_is_predicted_of_random_operations() {
    assert_near("mu");
}

#[test]
fn mu_star_costs_what_is_predicted_of_random_operations() {
    assert_near("mu-star");
}

#[test]
fn the_wandering_b_plus_tree_costs_what_is_predicted_of_random_operations() {
    assert_near("b-plus");
}

/// The same where not the tree's default leaves the operation buffer together.
#[test]
fn what_leaves_the_operation_buffer_together_costs_what_is_predicted() {
    for (name, given) in [
        ("b-plus", &[("flush", "entry")]),
        ("mu", &[("flush", "leaf")]),
        ("mu-star", &[("flush", "leaf")]),
    ] {
        assert_tree_near(&Tree { name, given, settling: 0 }, &[(8, 32), (8, 128)]);
    }
}

#[test]
fn ipl_costs_what_is_predicted_of_random_operations() {
    assert_near("ipl");
}

/// Pages read and written an operation, where `lookups` of the operations are lookups and the
/// others in turn deletes of random keys and inserts of new ones.
fn measure_churn(index: &mut dyn Index, lookups: f64) -> [f64; 2] {
    let mut present: Vec<u32> = (0..ENTRIES).collect();
    for number in &present {
        index.update(&[Update::Put { key: &key(*number), value: b"four" }]).unwrap();
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut next = ENTRIES;
    let before = counts(index);
    for _ in 0..OPERATIONS {
        let place = random.random_range(0..present.len());
        if random.random_bool(lookups) {
            assert_eq!(index.get(&key(present[place]), 0, &mut [0; 4]), Ok(Some(4)));
        } else if present.len() as u32 >= ENTRIES {
            let key = key(present.swap_remove(place));
            index.update(&[Update::Delete { key: &key }]).unwrap();
        } else {
            index.update(&[Update::Put { key: &key(next), value: b"four" }]).unwrap();
            present.push(next);
            next += 1;
        }
    }
    let after = counts(index);
    [0, 1].map(|place| (after[place] - before[place]) as f64 / f64::from(OPERATIONS))
}

/// Lookups, inserts of new keys and deletes, by which the tree keeps its size.
#[test]
fn inserts_and_deletes_cost_what_is_predicted_of_random_keys() {
    let lookups = 0.5;
    let profile = Profile { inserts: 0.25, overwrites: 0.0, deletes: 0.25, ..overwriting(lookups) };
    for name in ["b-plus", "mu", "mu-star", "ipl"] {
        let tree = Tree { name, given: &[], settling: 0 };
        for stage in [(1, 32), (8, 128)] {
            let churn = |index: &mut dyn Index| measure_churn(index, lookups);
            let found = compare(&tree, stage, &profile, churn);
            for (what, (predicted, measured)) in ["reads", "writes"].into_iter().zip(found) {
                let name = format!("{name}, {stage:?}: {what}");
                println!("{name} {predicted:.3} against {measured:.3}");
                let off = (predicted - measured).abs() / measured;
                assert!(off < TOLERANCE, "{name} {predicted} against {measured}");
            }
        }
    }
}

/// Its model knows of no reclamation, as the paper's doesn't: the chip has room to spare.
/// (With the least memory and buffers, where a page is half the pool, it is up to 18 % off.)
const LA_TREE_STAGES: [(u64, u32); 2] = [(1, 256), (8, 256)];

/// Memory that is shared is predicted as if it were divided in the best way, which it nearly is:
/// that is up to 20 % off.
const DIVIDED: &[(&str, &str)] = &[("share", "fixed"), ("estimate", "measured")];

#[test]
fn the_la_tree_costs_what_is_predicted_of_random_operations() {
    // All buffers are emptied a few times at least.
    let tree = Tree { name: "la-tree", given: DIVIDED, settling: 3 * OPERATIONS };
    assert_tree_near(&tree, &LA_TREE_STAGES[1..]);
}

#[test]
fn the_la_tree_without_buffers_costs_what_is_predicted_of_random_operations() {
    let given = &[("buffer", "none"), ("share", "fixed")];
    let tree = Tree { name: "la-tree", given, settling: 0 };
    assert_tree_near(&tree, &LA_TREE_STAGES);
}
