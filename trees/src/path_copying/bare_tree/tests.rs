use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use device::{Cause, Geometry, NandCosts};
use sim::SimulatedNand;
use store::{Durability, EntryShape, PageLog, PageLogOptions};

use super::BareTree;
use super::rewrite::Order;
use crate::btree;
use crate::path_copying::check::check;
use crate::path_copying::layout::{Division, Pages};
use crate::path_copying::model::paper_bounds;
use crate::path_copying::policy::Policy;

pub(in crate::path_copying) const KEYS: u32 = 600;

const DIVISIONS: [Division; 3] = [Division::Halves, Division::Even, Division::Whole];

/// A tree of no entry on a chip of small pages.
fn empty(division: Division) -> BareTree<'static> {
    let geometry = Geometry::new(512, 32, 64).unwrap();
    let chip = Box::new(SimulatedNand::new(geometry, NandCosts::default()));
    let options = PageLogOptions { durability: Durability::Checkpoint, ..Default::default() };
    let log = PageLog::create(chip, &options).unwrap();
    let bytes = PageLog::content_bytes_on(geometry);
    let pages = Pages::new(bytes, EntryShape::fixed(4, 4), division).unwrap();
    let policy = match division {
        Division::Halves => Policy::halves(pages),
        Division::Even => Policy::adaptive(pages, paper_bounds()).unwrap(),
        Division::Whole => Policy::whole(pages),
    };
    let mut tree = BareTree::new(log, policy, (0, u64::from(geometry.pages()) / 8));
    tree.write_empty().unwrap();
    tree
}

fn update(tree: &mut BareTree<'_>, key: u32, is_put: bool) {
    let key = key.to_be_bytes();
    let order = tree.order_of((&key, is_put.then_some(&key[..])), Cause::Update).unwrap();
    tree.rewrite(&order.unwrap()).unwrap();
}

/// A tree of [`KEYS`] entries on a chip that few pages of are free.
pub(in crate::path_copying) fn full(division: Division) -> BareTree<'static> {
    let mut tree = empty(division);
    let mut number = 0;
    while number < KEYS || tree.nodes.log.free_pages() > 300 {
        update(&mut tree, number * 7 % KEYS, true);
        number += 1;
    }
    tree
}

/// Panics unless the tree is sound and has every key but `gone`.
pub(in crate::path_copying) fn verify(tree: &mut BareTree<'_>, gone: &[u32]) {
    let mut findings = Vec::new();
    check(tree, &mut |finding| findings.push(finding.to_string())).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    let root = tree.root();
    for key in 0..KEYS {
        let read = btree::read(&mut tree.nodes, root, &key.to_be_bytes(), (0, &mut [])).unwrap();
        assert_eq!(read.is_none(), gone.contains(&key), "{key}");
    }
}

#[test]
fn changes_are_found_again_and_counted() {
    for division in DIVISIONS {
        let mut tree = full(division);
        assert!(tree.height() > 1 && tree.census.growths > 0);
        tree.learn_live().unwrap();
        update(&mut tree, 5, false);
        assert!(tree.order_of((&5u32.to_be_bytes(), None), Cause::Update).unwrap().is_none());
        assert_eq!(tree.live.count(), Some(u64::from(tree.standing().live_pages)));
        verify(&mut tree, &[5]);
    }
}

#[test]
fn a_page_that_was_moved_lives_no_more() {
    for division in DIVISIONS {
        let mut tree = full(division);
        let mut key = Vec::new();
        tree.descend(0, (&9u32.to_be_bytes(), 0), Cause::Lookup).unwrap();
        let page = tree.path.spot(0).page;
        let level = tree.path_to(page, &mut key).unwrap().unwrap();
        let live = tree.standing().live_pages;
        tree.rewrite(&Order::move_of(level)).unwrap();
        assert_eq!(tree.path_to(page, &mut key).unwrap(), None);
        assert_eq!(tree.standing().live_pages, live);
        verify(&mut tree, &[]);
    }
}

#[test]
fn a_tree_stands_again_on_the_root_that_its_record_names() {
    let mut tree = full(Division::Even);
    let root = tree.record();
    update(&mut tree, 3, false);
    verify(&mut tree, &[3]);
    tree.restore(&root, 0).unwrap();
    verify(&mut tree, &[]);
}

#[test]
fn a_node_that_is_written_alone_counts_once_the_root_above_it_stands() {
    let mut tree = full(Division::Whole);
    let before = (tree.record(), tree.standing().live_pages);
    tree.descend(0, (&9u32.to_be_bytes(), 0), Cause::Lookup).unwrap();
    let page = tree.path.spot(0).page;
    tree.write_alone(0).unwrap();
    assert_eq!(tree.record(), before.0);
    tree.rewrite(&Order::move_of(1)).unwrap();
    assert_eq!(tree.standing().live_pages, before.1);
    assert_eq!(tree.path_to(page, &mut Vec::new()).unwrap(), None);
    verify(&mut tree, &[]);
}
