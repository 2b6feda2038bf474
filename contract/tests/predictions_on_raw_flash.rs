//! Cost models of the trees on raw flash against the trees themselves, for random keys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::registry::{MediumShape, Options, Profile, find};
use index::{Durability, EntryShape, Index, Update};
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
/// others puts of keys that are there.
fn measure(index: &mut dyn Index, lookups: f64) -> [f64; 2] {
    for number in 0..ENTRIES {
        index.update(&[Update::Put { key: &key(number), value: b"four" }]).unwrap();
    }
    let before = counts(index);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..OPERATIONS {
        let key = key(random.random_range(0..ENTRIES));
        if random.random_bool(lookups) {
            assert_eq!(index.get(&key, 0, &mut [0; 4]), Ok(Some(4)));
        } else {
            index.update(&[Update::Put { key: &key, value: b"five" }]).unwrap();
        }
    }
    let after = counts(index);
    [0, 1].map(|place| (after[place] - before[place]) as f64 / f64::from(OPERATIONS))
}

/// The predicted beside the measured pages read and written, of a tree with so many times the
/// memory that it needs, on a chip of so many blocks of 64 pages of 2 KiB.
fn compare(tree: &'static str, (memory, blocks): (u64, u32), lookups: f64) -> [(f64, f64); 2] {
    let entry = find(tree).unwrap();
    let geometry = Geometry::new(2048, 64, blocks).unwrap().with_spare(64).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let medium = MediumShape::Nand(geometry);
    let settings = Settings::parse(tree, entry.parameters, []).unwrap();
    // The models know of no journal, as the papers' don't.
    let durability = Some(Durability::None);
    let mut options = Options { durability, ..Options::new(EntryShape::fixed(4, 4), 0, settings) };
    options.memory_bytes = memory * (entry.least_memory)(&options, medium).unwrap();
    let profile = Profile {
        entries: u64::from(ENTRIES),
        lookups,
        inserts: 0.0,
        overwrites: 1.0 - lookups,
        deletes: 0.0,
    };
    let predicted = (entry.predict)(&profile, &options, medium).unwrap();
    let mut index = (entry.create)(Medium::Nand(Box::new(&mut chip)), &options).unwrap();
    let [reads, writes] = measure(&mut *index, lookups);
    [(predicted.page_reads, reads), (predicted.page_writes, writes)]
}

fn assert_near(tree: &'static str) {
    for stage in [(1, 32), (8, 32), (8, 128)] {
        for lookups in [0.1, 0.5, 0.9] {
            let found = compare(tree, stage, lookups);
            for (what, (predicted, measured)) in ["reads", "writes"].into_iter().zip(found) {
                let (memory, blocks) = stage;
                let name = format!("{tree}, {memory}x, {blocks} blocks, {lookups} lookups: {what}");
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

#[test]
fn ipl_costs_what_is_predicted_of_random_operations() {
    assert_near("ipl");
}
