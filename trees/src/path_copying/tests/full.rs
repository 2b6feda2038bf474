//! Trees that are as high as they can be: what is refused leaves everything as it was, and what is
//! acknowledged can be written, whatever waited in memory and in the journal.

use contract::{sample, share};
use std::collections::BTreeMap;
use std::panic::catch_unwind;

use contract::tree::Model;
use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::{DeletePolicy, MediumShape, Options};
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Copy, Debug)]
struct Case {
    tree: &'static str,
    page_bytes: u32,
    blocks: u32,
    shape: EntryShape,
    durability: Durability,
    memory: u64,
    batch: usize,
}

impl Case {
    fn chip(&self) -> SimulatedNand {
        let geometry = Geometry::new(self.page_bytes, 64, self.blocks).unwrap();
        SimulatedNand::new(geometry, NandCosts::default())
    }

    fn options(&self) -> Options {
        let entry = flashtree_trees::find(self.tree).unwrap();
        let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
        let options = Options::new(self.shape, self.memory, settings);
        Options { durability: Some(self.durability), ..options }
    }

    /// The blocks of the case, or as many as the tree says that it needs.
    fn blocks_that_suffice(&self) -> u32 {
        let create = flashtree_trees::find(self.tree).unwrap().create;
        match create(Medium::Nand(Box::new(&mut self.chip())), &self.options()) {
            Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks {
                need, ..
            }))) => need,
            _ => self.blocks,
        }
    }

    /// The entry of a number: keys come in random order.
    fn entry(&self, number: u64) -> (Vec<u8>, Vec<u8>) {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut key = mixed.to_be_bytes().to_vec();
        let mut value = number.to_be_bytes().to_vec();
        if self.shape == EntryShape::VARIABLE {
            // Some keys share a prefix that others do not have.
            if mixed.is_multiple_of(3) {
                key.splice(1..1, [7; 12]);
            }
            value.resize(8 + (mixed >> 8) as usize % 16, 3);
        }
        (key, value)
    }
}

/// What is put until so many batches were refused, in batches of the case's size.
fn fill(index: &mut dyn Index, case: &Case, numbers: std::ops::Range<u64>, map: &mut Map) -> u32 {
    let mut refused = 0;
    let mut number = numbers.start;
    while number < numbers.end && refused < 12 {
        // After a batch that was refused, single puts.
        let many = if refused % 4 == 0 { case.batch } else { 1 };
        let entries: Vec<_> = (0..many as u64).map(|more| case.entry(number + more)).collect();
        number += many as u64;
        let updates: Vec<_> =
            entries.iter().map(|(key, value)| Update::Put { key, value }).collect();
        match index.update(&updates) {
            Ok(()) => map.extend(entries.clone()),
            Err(Error::TreeFull { .. } | Error::Store(store::Error::Full { .. })) => {
                refused += 1;
                for (key, _) in &entries {
                    let there = index.get(key, 0, &mut [0; 64]).unwrap();
                    assert_eq!(there.is_some(), map.contains_key(key), "half of a batch: {case:?}");
                }
            }
            Err(error) => panic!("{case:?}: {error}"),
        }
    }
    refused
}

fn holds(index: &mut dyn Index, map: &Map, case: &Case, when: &str) {
    let mut value = [0; 64];
    for (key, expected) in map.iter().step_by(23) {
        let bytes = index.get(key, 0, &mut value).unwrap();
        let found = bytes.map(|bytes| &value[..bytes as usize]);
        assert_eq!(found, Some(&expected[..]), "{case:?} {when}");
    }
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    let mut count = 0;
    for (key, value) in map {
        let (found, held) = cursor.next().unwrap().unwrap_or_else(|| panic!("{case:?} {when}"));
        assert_eq!((found, held.whole()), (&key[..], Some(&value[..])), "{case:?} {when}");
        count += 1;
    }
    assert!(cursor.next().unwrap().is_none() && count == map.len(), "{case:?} {when}");
}

fn remove(index: &mut dyn Index, map: &mut Map, part: usize, case: &Case) {
    let keys: Vec<_> = map.keys().take(map.len() / part).cloned().collect();
    for key in keys {
        if let Err(error) = index.update(&[Update::Delete { key: &key }]) {
            panic!("{case:?}: a delete: {error}");
        }
        map.remove(&key);
    }
}

/// Plays a case; true if the tree was full.
fn play(case: &Case, puts: u64) -> bool {
    let mut chip = case.chip();
    let entry = flashtree_trees::find(case.tree).unwrap();
    let mut map = Map::new();
    let is_lasting = case.durability != Durability::None;
    let refused = {
        let made = (entry.create)(Medium::Nand(Box::new(&mut chip)), &case.options());
        let mut index = made.unwrap();
        let refused = fill(&mut *index, case, 0..puts, &mut map);
        holds(&mut *index, &map, case, "when it is full");
        if is_lasting {
            index.sync().unwrap();
        }
        remove(&mut *index, &mut map, 7, case);
        if is_lasting {
            index.checkpoint(None).unwrap();
        }
        fill(&mut *index, case, puts..puts + puts / 16, &mut map);
        if case.durability.has_journal() {
            // What is in the journal alone is replayed.
            index.sync().unwrap();
        } else {
            index.close().unwrap();
        }
        refused
    };
    for memory in [case.memory / 8, case.memory] {
        let least = entry.least_memory(&case.options(), chip_shape(case)).unwrap();
        let options = Options { memory_bytes: memory.max(least), ..case.options() };
        let opened = (entry.open)(Medium::Nand(Box::new(&mut chip)), &options);
        let mut index = opened.unwrap_or_else(|error| panic!("{case:?}: {error}"));
        holds(&mut *index, &map, case, "opened");
        remove(&mut *index, &mut map, 2, case);
        let before = map.len();
        fill(&mut *index, case, 2 * puts..2 * puts + puts / 8, &mut map);
        let appends = matches!((entry.deletes)(true), DeletePolicy::Append);
        assert!(appends || map.len() > before, "{case:?}: no put where entries went");
        holds(&mut *index, &map, case, "after puts");
        let mut findings = Vec::new();
        index.check(&mut |finding| findings.push(finding.to_string())).unwrap();
        assert!(findings.is_empty(), "{case:?}: {findings:?}");
        index.close().unwrap();
    }
    refused > 0
}

fn chip_shape(case: &Case) -> MediumShape {
    MediumShape::Nand(Geometry::new(case.page_bytes, 64, case.blocks).unwrap())
}

/// Plays every durability and shape, singly and in batches; at least so many trees come to be full.
fn keeps(tree: &'static str, (page_bytes, blocks): (u32, u32), puts: u64, full: u32) {
    // A list reads all that it has for a lookup.
    let puts = if tree == "list" { puts / 4 } else { puts };
    let mut cases = Vec::new();
    for durability in Durability::ALL {
        for shape in [EntryShape::fixed(8, 8), EntryShape::VARIABLE] {
            for (batch, memory) in [(1, 1 << 20), (30, 1 << 17)] {
                let case = Case { tree, page_bytes, blocks, shape, durability, memory, batch };
                cases.push(Case { blocks: case.blocks_that_suffice(), ..case });
            }
        }
    }
    let (mut played, mut filled, mut failed) = (0, 0, Vec::new());
    for case in sample(5, cases) {
        played += 1;
        match catch_unwind(|| play(&case, puts)) {
            Ok(was_full) => filled += u32::from(was_full),
            Err(_) => failed.push(case),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(filled * 16 >= full * played, "{filled} of {played} trees were full");
}

#[test]
fn mu_in_pages_of_512_bytes_keeps_what_it_acknowledged() {
    keeps("mu", (512, 32), 24_000, 16);
}

#[test]
fn mu_star_in_pages_of_512_bytes_keeps_what_it_acknowledged() {
    keeps("mu-star", (512, 32), 32_000, 16);
}

#[test]
fn b_plus_in_pages_of_512_bytes_keeps_what_it_acknowledged() {
    keeps("b-plus", (512, 32), 40_000, 16);
}

#[test]
fn other_trees_in_pages_of_512_bytes_keep_what_they_acknowledged() {
    for tree in flashtree_trees::TREES.iter().filter(|tree| tree.nand) {
        if !["mu", "mu-star", "b-plus"].contains(&tree.name) {
            keeps(tree.name, (512, 24), 8_000, 0);
        }
    }
}

#[test]
fn trees_in_pages_of_2048_bytes_keep_what_they_acknowledged() {
    for tree in flashtree_trees::TREES.iter().filter(|tree| tree.nand) {
        keeps(tree.name, (2048, 32), 12_000, 0);
    }
}

/// No height bounds a tree: it is full when its chip is.
#[test]
fn trees_of_small_pages_fill_their_chip() {
    let shapes = [EntryShape::fixed(8, 8), EntryShape::VARIABLE];
    let cases =
        ["mu", "mu-star", "b-plus"].into_iter().flat_map(|tree| shapes.map(|it| (tree, it)));
    for (tree, shape) in sample(3, cases) {
        let case = Case {
            tree,
            page_bytes: 512,
            blocks: 256 / share(4) as u32,
            shape,
            durability: Durability::None,
            memory: 1 << 18,
            batch: 1,
        };
        let mut chip = case.chip();
        let create = flashtree_trees::find(tree).unwrap().create;
        let mut index = create(Medium::Nand(Box::new(&mut chip)), &case.options()).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let (mut taken, value) = (0, [7; 8]);
        let refused = loop {
            let key = random.random::<u64>().to_be_bytes();
            match index.update(&[Update::Put { key: &key, value: &value }]) {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Store(store::Error::Full { .. })), "{case:?}: {refused}");
        let (live, height) = (index.statistics().live_pages, index.statistics().height);
        let share = live as f64 / (64.0 * f64::from(case.blocks));
        println!("{tree}, {shape}: {taken} entries, {height} levels, {:.0} %", share * 100.0);
        // Nodes of so small pages hold few children: many inner nodes keep much room for sweeps.
        assert!(share > 0.3, "{case:?}: {share}");
    }
}

/// What is refused of a closed tree writes nothing that an opening has to find closed again.
#[test]
fn a_refused_update_leaves_a_closed_tree_closed_that_nothing_makes_durable() {
    for tree in flashtree_trees::TREES.iter().filter(|tree| tree.nand) {
        for (page_bytes, batch) in [(512, 1), (512, 30), (1024, 30)] {
            let case = Case {
                tree: tree.name,
                page_bytes,
                blocks: 96,
                shape: EntryShape::VARIABLE,
                durability: Durability::None,
                memory: 1 << 17,
                batch,
            };
            refuses_and_stays_closed(&case);
        }
    }
}

fn refuses_and_stays_closed(case: &Case) {
    let entry = flashtree_trees::find(case.tree).unwrap();
    let (mut chip, mut map) = (case.chip(), Map::new());
    {
        let mut index = (entry.create)(Medium::Nand(Box::new(&mut chip)), &case.options()).unwrap();
        fill(&mut *index, &Case { batch: 1, ..*case }, 0..6_000, &mut map);
        index.close().unwrap();
    }
    for closes in [false, true] {
        for number in 10_000..10_012 {
            let mut index =
                (entry.open)(Medium::Nand(Box::new(&mut chip)), &case.options()).unwrap();
            let entries: Vec<_> =
                (0..case.batch as u64).map(|more| case.entry(number * 100 + more)).collect();
            let updates: Vec<_> =
                entries.iter().map(|(key, value)| Update::Put { key, value }).collect();
            let is_made = index.update(&updates).is_ok();
            if is_made {
                map.extend(entries.clone());
            }
            if is_made || closes {
                index.close().unwrap();
            }
        }
    }
    let mut index = (entry.open)(Medium::Nand(Box::new(&mut chip)), &case.options()).unwrap();
    holds(&mut *index, &map, case, "after refusals");
}

/// A load fills nodes that later heights have no room for in one page, and roots to the brim.
#[test]
fn every_delete_is_taken_after_a_load_that_fills_the_chip() {
    let shapes = [EntryShape::fixed(8, 8), EntryShape::VARIABLE];
    let each = |tree| Durability::ALL.map(|durability| shapes.map(|it| (tree, durability, it)));
    let cases = ["mu", "mu-star"].into_iter().flat_map(each).flatten();
    for (tree, durability, shape) in sample(3, cases) {
        let case = Case {
            tree,
            page_bytes: 512,
            blocks: 48,
            shape,
            durability,
            memory: 1 << 18,
            batch: 1,
        };
        let (mut chip, mut model) = (case.chip(), Model::default());
        let entry = flashtree_trees::find(tree).unwrap();
        let made = (entry.create)(Medium::Nand(Box::new(&mut chip)), &case.options());
        let mut index = made.unwrap();
        model.entries = (0..60_000).map(|number| case.entry(number)).collect();
        let refused = index.load(&mut model.cursor(), 100).map(|_| ());
        let is_full = matches!(refused, Err(Error::Store(store::Error::Full { .. })));
        assert!(is_full, "{case:?}: {refused:?}");
        let held = index.statistics().live_pages;
        let mut map = Map::new();
        for (key, value) in &model.entries {
            if index.get(key, 0, &mut [0; 64]).unwrap().is_some() {
                map.insert(key.clone(), value.clone());
            }
        }
        let keys: Vec<_> = map.keys().cloned().collect();
        // First here and there, so that each path is written again; then all.
        for key in keys.iter().step_by(37).chain(&keys) {
            let deleted = index.update(&[Update::Delete { key }]);
            deleted.unwrap_or_else(|error| panic!("{case:?}: {error}"));
            map.remove(key);
            if map.len().is_multiple_of(512) {
                holds(&mut *index, &map, &case, "while all is deleted");
            }
        }
        assert!(map.is_empty() && held > 5, "{case:?}: {held} pages");
        index.close().unwrap();
    }
}

/// Moving an inner node reads no leaf: what the path had of one before may be half overwritten.
#[test]
fn mu_star_moves_inner_nodes_of_a_full_chip_whatever_was_read_before() {
    let geometry = Geometry::new(1024, 4, 64).unwrap();
    for seed in sample(5, 0..40) {
        let case = Case {
            tree: "mu-star",
            page_bytes: 1024,
            blocks: 64,
            shape: EntryShape::VARIABLE,
            durability: Durability::None,
            memory: 64 << 10,
            batch: 1,
        };
        let mut chip = SimulatedNand::new(geometry, NandCosts::default());
        let entry = flashtree_trees::find(case.tree).unwrap();
        let mut map = Map::new();
        let mut dice = seed;
        let mut roll = |sides: u64| {
            dice = u64::wrapping_mul(dice, 6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (dice >> 33) % sides
        };
        for round in 0..6 {
            let make = if round == 0 { entry.create } else { entry.open };
            let mut index = make(Medium::Nand(Box::new(&mut chip)), &case.options()).unwrap();
            for _ in 0..3_000 {
                let mut key = format!("{}", roll(100_000)).into_bytes();
                if roll(100) < 85 * (round % 2) + 10 {
                    let old = map.range(key.clone()..).next().map(|(key, _)| key.clone());
                    let key = old.unwrap_or(key);
                    index.update(&[Update::Delete { key: &key }]).unwrap();
                    map.remove(&key);
                    continue;
                }
                if roll(50) == 0 {
                    key.resize(20, b'x');
                }
                let value = vec![7; roll(9) as usize];
                match index.update(&[Update::Put { key: &key, value: &value }]) {
                    Ok(()) => drop(map.insert(key, value)),
                    Err(Error::Store(store::Error::Full { .. })) => {}
                    Err(error) => panic!("{seed}: {error}"),
                }
            }
            holds(&mut *index, &map, &case, "after a round");
            index.close().unwrap();
        }
    }
}
