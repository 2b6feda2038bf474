//! What leaves the operation buffer of the trees that copy their paths: an update alone, or with
//! all that waits for the same leaf, as `flush` says.

use contract::tree::Model;
use device::{Cause, Geometry, Medium, NandCosts};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use index::{MediumShape, Options};
use sim::SimulatedNand;

const TREES: [&str; 3] = ["b-plus", "mu", "mu-star"];

/// Entries that are loaded: two levels or three, and dozens of leaves.
const LOADED: u32 = 10_000;

/// Keys that are loaded are so far apart: new ones come between.
const GAP: u32 = 4;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn loaded() -> Model {
    let mut model = Model::default();
    for number in 0..LOADED {
        model.entries.insert(key(number * GAP).to_vec(), b"load".to_vec());
    }
    model
}

/// A tree of the keys that [`loaded`] has, its nodes full, with 32 KiB for what waits and none for
/// nodes.
fn tree(name: &str, flush: &str, fill: u8) -> Box<dyn Index> {
    let entry = find(name).unwrap();
    let geometry = Geometry::new(2048, 64, 256).unwrap().with_spare(64).unwrap();
    let given = [("cache", "0"), ("flush", flush)];
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    options.durability = Some(Durability::Checkpoint);
    let least = entry.least_memory(&options, MediumShape::Nand(geometry)).unwrap();
    options.memory_bytes = least + (32 << 10);
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let mut index = (entry.create)(Medium::Nand(Box::new(chip)), &options).unwrap();
    index.load(&mut loaded().cursor(), fill).unwrap();
    index
}

fn programs(index: &dyn Index) -> u64 {
    index.meter().unwrap().tally(Cause::Flush).page_programs
}

fn put(index: &mut dyn Index, model: &mut Model, key: &[u8], value: &[u8; 4]) {
    index.update(&[Update::Put { key, value }]).unwrap();
    model.entries.insert(key.to_vec(), value.to_vec());
}

fn delete(index: &mut dyn Index, model: &mut Model, key: &[u8]) {
    index.update(&[Update::Delete { key }]).unwrap();
    model.entries.remove(key);
}

/// Nodes of a path that have a page to themselves.
fn pages_of_a_path(name: &str, index: &dyn Index) -> u64 {
    if name == "b-plus" { index.statistics().height.into() } else { 1 }
}

#[test]
fn all_that_waits_for_one_leaf_is_written_with_one_path() {
    for name in TREES {
        let written = ["entry", "leaf"].map(|flush| {
            let (mut index, mut model) = (tree(name, flush, 60), loaded());
            // The lowest leaf: puts of keys that are there and of new ones, and deletes.
            for number in 0..12 {
                let (there, new) = (key(3 * number * GAP), key(3 * number * GAP + 1));
                put(&mut *index, &mut model, &there, b"here");
                put(&mut *index, &mut model, &new, b"new.");
                delete(&mut *index, &mut model, &key((3 * number + 1) * GAP));
            }
            assert_eq!(programs(&*index), 0, "{name}: all of it waits");
            index.sync().unwrap();
            model.compare_all(&mut *index);
            index.check(&mut |finding| panic!("{name}, {flush}: {finding}")).unwrap();
            programs(&*index) / pages_of_a_path(name, &*index)
        });
        assert_eq!(written, [36, 1], "{name}");
    }
}

#[test]
fn what_waits_for_other_leaves_goes_on_waiting() {
    for name in TREES {
        let (mut index, mut model) = (tree(name, "leaf", 60), loaded());
        let of_leaf = |leaf: u32, number: u32| key((leaf * LOADED / 20 + number) * GAP);
        // The oldest of all, others of its leaf among those of far leaves, and far ones.
        for number in 0..10 {
            for leaf in [1, 10, 19] {
                put(&mut *index, &mut model, &of_leaf(leaf, number), b"wait");
            }
        }
        let mut number = 0;
        while programs(&*index) == 0 {
            put(&mut *index, &mut model, &key((LOADED + number) * GAP), b"tail");
            number += 1;
        }
        assert_eq!(programs(&*index), pages_of_a_path(name, &*index), "{name}");
        let mut reads = |leaf| {
            let before = index.meter().unwrap().tally(Cause::Lookup).page_reads;
            for number in 0..10 {
                let mut value = [0; 4];
                index.get(&of_leaf(leaf, number), 0, &mut value).unwrap();
                assert_eq!(&value, b"wait", "{name}");
            }
            index.meter().unwrap().tally(Cause::Lookup).page_reads - before
        };
        let read = [1, 10, 19].map(&mut reads);
        assert_eq!(read, [10 * u64::from(index.statistics().height), 0, 0], "{name}");
    }
}

/// A leaf that fills up takes those that fit, and what does not is written after it was split; one
/// from which all goes is given up with the last of them.
#[test]
fn a_leaf_may_fill_up_or_lose_all_by_what_waits_for_it() {
    for name in TREES {
        let (mut index, mut model) = (tree(name, "leaf", 100), loaded());
        let there = || (0..LOADED).map(|number| number * GAP);
        for number in there().filter(|number| (4_000..6_400).contains(number)) {
            put(&mut *index, &mut model, &key(number + 2), b"fill");
        }
        index.sync().unwrap();
        model.compare_all(&mut *index);
        let before = index.statistics().live_pages;
        for number in there().filter(|number| (20_000..23_200).contains(number)) {
            delete(&mut *index, &mut model, &key(number));
        }
        index.sync().unwrap();
        model.compare_all(&mut *index);
        index.check(&mut |finding| panic!("{name}: {finding}")).unwrap();
        let after = index.statistics().live_pages;
        assert!(after < before, "{name}: {before} pages, then {after}");
    }
}
