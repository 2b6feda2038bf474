use std::collections::BTreeMap;
use std::format;
use std::vec::Vec;

use store::{EntryShape, Width};

use crate::path_copying::model::{Dice, Model, bounds, mu, star};
use crate::path_copying::policy::Policy;

const SHAPES: [EntryShape; 6] = [
    EntryShape::fixed(4, 4),
    EntryShape::fixed(8, 4),
    EntryShape::fixed(8, 8),
    EntryShape::VARIABLE,
    EntryShape { key: Width::Fixed(8), value: Width::Variable },
    EntryShape { key: Width::Variable, value: Width::Fixed(4) },
];

/// Every tree in pages of every size.
fn policies() -> Vec<(std::string::String, Policy)> {
    let mut policies = Vec::new();
    for page_bytes in [512, 2048, 4096] {
        for (number, shape) in SHAPES.into_iter().enumerate() {
            let name = |tree: &str| format!("{tree}, {page_bytes} B, shape {number} ({shape})");
            policies.push((name("mu"), mu(page_bytes, shape)));
            policies.push((name("mu-star"), star(page_bytes, shape)));
        }
    }
    policies
}

struct Histories {
    dice: Dice,
    shape: EntryShape,
    key_most: usize,
    entry_most: usize,
    keys: u64,
}

impl Histories {
    fn key(&mut self) -> Vec<u8> {
        let number = self.dice.roll(self.keys) as u32;
        let number = number.wrapping_mul(0x9E37_79B9);
        match self.shape.key {
            Width::Fixed(bytes) => {
                let mut key = std::vec![0; usize::from(bytes)];
                key[..4].copy_from_slice(&number.to_be_bytes());
                key
            }
            Width::Variable => {
                let stem: &[u8] = [&b"flight/ewr/"[..], b"flight/", b"f", b""][number as usize % 4];
                let mut key = stem.to_vec();
                key.extend_from_slice(format!("{:x}", number >> 8).as_bytes());
                key.truncate(self.key_most);
                key
            }
        }
    }

    fn value(&mut self, key: usize) -> Vec<u8> {
        let length = match self.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => {
                let most = (self.entry_most - key).min(80) as u64;
                let length = self.dice.roll(most + 1) as usize;
                if self.dice.roll(50) == 0 { self.entry_most - key } else { length }
            }
        };
        let byte = self.dice.roll(256) as u8;
        std::vec![byte; length]
    }
}

fn histories(model: &Model, seed: u64, keys: u64) -> Histories {
    let limits = model.policy.limits();
    let shape = model.policy.pages().shape;
    Histories { dice: Dice(seed), shape, key_most: limits.key, entry_most: limits.entry, keys }
}

/// Puts, overwrites and deletes, then deletes until nothing is left; now and then pages are moved.
fn play(name: &str, policy: Policy, (seed, is_sparing): (u64, bool), rounds: u32) {
    let mut model = Model::new(policy);
    let mut expected = BTreeMap::new();
    let mut history = histories(&model, seed, u64::from(rounds) / 3);
    let mut refused = 0;
    for round in 0..rounds {
        // Nodes that were written as usual are what sparing has to do with.
        model.is_sparing = is_sparing && round > rounds / 4 && round / 64 % 2 == 0;
        let key = history.key();
        let is_shrinking = round > rounds * 2 / 3;
        if history.dice.roll(10) < if is_shrinking { 8 } else { 2 } {
            if model.delete(&key) {
                expected.remove(&key);
            } else {
                refused += 1;
            }
        } else {
            let value = history.value(key.len());
            if model.put(&key, &value) {
                expected.insert(key.clone(), value);
            } else {
                refused += 1;
            }
        }
        assert_eq!(model.get(&key).as_ref(), expected.get(&key), "{name}, round {round}");
        if history.dice.roll(8) == 0 {
            let page = history.dice.roll(model.pages.len() as u64) as usize;
            model.move_page(page);
        }
        if round % (rounds / 8) == 0 {
            assert_eq!(model.entries(), expected, "{name}, round {round}");
        }
    }
    assert_eq!(model.entries(), expected, "{name}");
    assert_eq!(refused, 0, "{name}");
    for key in expected.keys().cloned().collect::<Vec<_>>() {
        if model.delete(&key) {
            expected.remove(&key);
        }
    }
    assert_eq!(model.entries(), expected, "{name}");
    assert!(expected.is_empty(), "{name}: {} entries stay", expected.len());
}

#[test]
fn random_histories_leave_what_an_ordered_map_holds_in_every_shape_and_page_size() {
    for (name, policy) in policies() {
        for (seed, is_sparing) in [(1, false), (2, true)] {
            play(&format!("{name}, seed {seed}"), policy.clone(), (seed, is_sparing), 4_000);
        }
    }
}

fn number_key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

#[test]
fn pages_with_different_layouts_live_in_one_tree() {
    let mut model = Model::new(star(4096, EntryShape::fixed(4, 4)));
    let mut layouts = std::collections::BTreeSet::new();
    for number in 0..60_000 {
        assert!(model.put(&number_key(number), b"four"));
        layouts.insert((model.layout().height, model.layout().leaf));
    }
    assert!(layouts.len() > 100, "{} layouts", layouts.len());
    assert_eq!(model.entries().len(), 60_000);
}

#[test]
fn an_update_that_splits_nothing_writes_one_page() {
    let mut model = Model::new(star(2048, EntryShape::fixed(8, 4)));
    let key = |number| [number_key(number), [0; 4]].concat();
    for number in 0..20_000 {
        assert!(model.put(&key(number), b"four"));
    }
    let (pages, splits) = (model.pages.len() as u32, model.state().splits);
    for number in 0..20_000 {
        assert!(model.put(&key(number), b"five"));
    }
    let split = model.state().splits.leaf + model.state().splits.inner;
    let split = split - splits.leaf - splits.inner;
    let written = model.pages.len() as u32 - pages;
    assert!(written - 20_000 >= split, "a split writes two pages at least");
    assert!(written < 21_000, "{written} pages for 20,000 updates with {split} splits");
}

/// Figure 11 in short: the leaf starts from alpha, falls to beta, and starts anew at each height.
#[test]
fn the_leaf_shrinks_from_alpha_to_beta_at_each_height() {
    let mut model = Model::new(star(4096, EntryShape::fixed(4, 4)));
    let mut height = 1;
    let mut smallest = 1.0f64;
    for number in 0..60_000 {
        assert!(model.put(&number_key(number), b"four"));
        let layout = model.layout();
        if layout.height > height {
            std::println!("{number} records: height {}, leaf {}", layout.height, layout.leaf);
            assert!(height == 1 || smallest < 0.51, "it left height {height} at {smallest}");
            assert!((layout.leaf.ratio() - 0.9).abs() < 0.001, "it starts at {}", layout.leaf);
            (height, smallest) = (layout.height, 1.0);
        }
        smallest = smallest.min(layout.leaf.ratio());
    }
    assert!(height >= 3);
    assert_eq!(model.height_changes, u32::from(height) - 1);
}

#[test]
fn puts_and_deletes_in_turn_do_not_change_the_height_to_and_fro() {
    for records in [300, 5_000, 36_000] {
        let mut model = Model::new(star(4096, EntryShape::fixed(4, 4)));
        for number in 0..records {
            assert!(model.put(&number_key(number), b"four"));
        }
        model.height_changes = 0;
        for turn in 0..3_000 {
            assert!(model.delete(&number_key(turn % records)));
            assert!(model.put(&number_key(turn % records), b"five"));
        }
        assert!(model.height_changes <= 1, "{records}: {} times", model.height_changes);
    }
}

#[test]
fn a_static_layout_never_changes_its_leaf() {
    let pages = *star(4096, EntryShape::fixed(4, 4)).pages();
    for share in [0.5, 0.7, 0.9] {
        let mut model = Model::new(Policy::adaptive(pages, bounds(share, share)).unwrap());
        for number in 0..12_000 {
            assert!(model.put(&number_key(number), b"four"));
            let leaf = model.layout().leaf.ratio();
            assert!(model.layout().height == 1 || (leaf - share).abs() < 1e-4, "{leaf}");
        }
        for number in 0..12_000 {
            assert!(model.delete(&number_key(number)));
        }
        assert_eq!(model.entries().len(), 0);
        assert_eq!(model.layout().height, 1);
    }
}

/// The levels above those that share a page have pages to themselves.
#[test]
fn trees_of_small_pages_have_no_greatest_height() {
    for policy in [star, mu].map(|tree| tree(512, EntryShape::fixed(8, 8))) {
        let together = policy.pages().together;
        let mut model = Model::new(policy);
        let key = |number| [number_key(number), [0; 4]].concat();
        for number in 0..20_000 {
            assert!(model.put(&key(number), b"eightbyt"), "{number}");
        }
        assert!(model.layout().height > together, "{:?} and {together}", model.layout());
        assert_eq!(model.entries().len(), 20_000);
        for number in 0..20_000 {
            assert!(model.delete(&key(number)));
        }
        assert_eq!((model.entries().len(), model.layout().height), (0, 1));
    }
}
