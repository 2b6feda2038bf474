use store::EntryShape;

use super::{Census, adds_none};
use crate::path_copying::layout::{Division, Pages};
use crate::path_copying::model::mu;
use crate::path_copying::policy::Policy;

#[test]
fn nodes_come_and_go_and_only_those_that_come_are_growth() {
    let policy = mu(2048, EntryShape::fixed(4, 4));
    let mut census = Census::new(&policy);
    let mut added = [0; 16];
    added[..3].copy_from_slice(&[5, 2, 1]);
    census.count(&added);
    assert_eq!((census.demand.leaves(), census.demand.inner(), census.growths), (5, 3, 1));
    added[..3].copy_from_slice(&[-2, 0, 0]);
    assert!(adds_none(&added) && census.demand_after(&added).leaves() == 3);
    census.count(&added);
    assert_eq!((census.demand.leaves(), census.demand.inner(), census.growths), (3, 3, 1));
}

#[test]
fn a_longer_key_than_all_before_leaves_room_for_fewer_children() {
    let shape = EntryShape::VARIABLE;
    let policy = Policy::whole(Pages::new(2048, shape, Division::Whole).unwrap());
    let mut census = Census::new(&policy);
    let before = census.demand.children_a_node;
    assert!(census.note_key(5, &policy) && !census.note_key(16, &policy));
    assert_eq!(census.longest_key, 16, "lengths are counted in steps");
    assert!(census.note_key(17, &policy) && census.longest_key == 32);
    assert!(census.demand.children_a_node < before);
    census.set_longest_key(None, &policy);
    assert_eq!(census.longest_key, policy.limits().key);
    let fixed = mu(2048, EntryShape::fixed(4, 4));
    assert!(!Census::new(&fixed).note_key(4, &fixed));
}
