//! The check that every page is the one written last finds nothing in an index that is whole, with
//! pages that are not written yet, and a list of free pages that is longer than the cache.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::sample;
use contract::tree::{Case, MemoryLevel, Stand, cases, findings};
use flashtree_trees::TREES;
use index::{Durability, Index, Update};

const KEYS: u32 = 60_000;

fn wanted() -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Least
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| Durability::ALL.map(|durability| Case { durability, ..case.clone() }))
}

fn put(index: &mut dyn Index, number: u32) {
    let key = number.to_be_bytes();
    index.update(&[Update::Put { key: &key, value: &key }]).unwrap();
}

#[test]
fn a_whole_index_with_pages_to_write_and_a_long_free_list_has_no_finding() {
    for case in sample(3, wanted()) {
        let bytes = if case.durability == Durability::None { 4 << 20 } else { 1 << 20 };
        let mut storage = case.storage(bytes);
        let mut index = case.index(&mut storage, false);
        for number in 0..KEYS {
            put(&mut *index, number);
        }
        for number in 100..KEYS {
            index.update(&[Update::Delete { key: &number.to_be_bytes() }]).unwrap();
        }
        for round in 0..200 {
            put(&mut *index, round);
            assert!(findings(&mut *index).is_empty(), "{}, {round}", case.name());
        }
    }
}
