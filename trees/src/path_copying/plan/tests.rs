use std::vec::Vec;

use device::Page;
use store::{EntryShape, node};

use super::worst::{change_pages, path_bytes};
use super::{Level, Run, Source};
use crate::path_copying::model::{Model, mu, star};
use crate::path_copying::page::Header;

#[test]
fn a_run_is_the_old_entries_with_new_ones_in_their_place() {
    let run = Run { old: 5, from: 2, removed: 1, added: 3 };
    assert_eq!(run.len(), 7);
    let sources: Vec<Source> = (0..7).map(|place| run.source(place)).collect();
    let [old, new] = [Source::Old as fn(usize) -> Source, Source::New];
    assert_eq!(sources, [old(0), old(1), new(0), new(1), new(2), old(3), old(4)]);
    let gone = Run { old: 3, from: 1, removed: 1, added: 0 };
    assert_eq!((gone.len(), gone.source(1)), (2, Source::Old(2)));
}

#[test]
fn parts_take_pages_one_after_the_other_and_the_one_above_stands_with_the_last() {
    let leaf = Level { parts: 3, ..Level::default() };
    assert_eq!([0, 1, 2].map(|part| leaf.page(part)), [0, 1, 2]);
    assert_eq!((leaf.last_page(), leaf.last_part()), (2, 2));
    for with_child in 0..3 {
        let parent = Level { parts: 3, first_page: 2, with_child, ..Level::default() };
        assert_eq!(parent.page(with_child), 2);
        let mut pages = [0, 1, 2].map(|part| parent.page(part));
        pages.sort_unstable();
        assert_eq!(pages, [2, 3, 4]);
        assert_eq!(parent.page(parent.last_part()), parent.last_page());
    }
}

/// Of each page from `first` on: entries of its leaf, its highest level, and whether that is the
/// root's.
fn pages_from(model: &Model, first: usize) -> Vec<(usize, u8, bool)> {
    let pages = model.policy.pages();
    let page = |number: usize| {
        let bytes = &model.pages[number];
        let header = Header::decode(pages, Page(number as u32), bytes).unwrap();
        let leaf = &bytes[pages.bytes_of(&header.layout, 0).unwrap()];
        (node::count(leaf), header.highest, header.has_root)
    };
    (first..model.pages.len()).map(page).collect()
}

#[test]
fn a_full_leaf_of_mu_falls_into_two_pages_and_what_is_above_stands_in_the_second() {
    let mut model = Model::new(mu(4096, EntryShape::fixed(4, 4)));
    let mut keys = 0..u32::MAX;
    let mut put = |model: &mut Model| {
        let first = model.pages.len();
        assert!(model.put(&keys.next().unwrap().to_be_bytes(), b"four"));
        pages_from(model, first)
    };
    for entries in 1..=506 {
        assert_eq!(put(&mut model), [(entries, 0, true)]);
    }
    // A lone leaf has twice the room of others: with one entry more it does not fit two.
    assert_eq!(put(&mut model), [(169, 0, false), (169, 0, false), (169, 1, true)]);
    for entries in 170..=252 {
        assert_eq!(put(&mut model), [(entries, 1, true)]);
    }
    assert_eq!(put(&mut model), [(127, 0, false), (126, 1, true)]);
}

#[test]
fn a_change_that_spares_nodes_writes_a_few_pages_a_level() {
    let shape = EntryShape::fixed(4, 4);
    assert_eq!([1, 2, 3].map(|height| change_pages(&mu(4096, shape), height)), [5, 6, 7]);
    assert_eq!([1, 2, 3].map(|height| change_pages(&star(4096, shape), height)), [6, 8, 10]);
}

#[test]
fn a_path_has_less_than_two_pages_with_the_papers_settings() {
    for page_bytes in [512, 2048, 4096] {
        for policy in [mu, star].map(|tree| tree(page_bytes, EntryShape::fixed(8, 4)).up_to(1)) {
            let bytes = path_bytes(&policy);
            let pages = bytes as f64 / f64::from(page_bytes);
            std::println!("{page_bytes} B, height {}: {pages:.2} pages", policy.height_most());
            assert!((0.9..2.0).contains(&pages), "{pages}");
        }
    }
}
