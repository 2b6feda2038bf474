use alloc::vec::Vec;

use device::{Block, Cause};

use super::{move_in_one_walk, sweep_in_one_walk};
use crate::path_copying::bare_tree::BareTree;
use crate::path_copying::bare_tree::tests::{KEYS, full, verify};
use crate::path_copying::layout::Division;

/// Pages that live in `block`.
fn lives(tree: &mut BareTree<'_>, block: Block) -> u64 {
    tree.learn_live().unwrap();
    tree.live.count_in(tree.nodes.log.pages_of(block)).into()
}

/// So many blocks in which most lives, in the order of their numbers.
fn fullest(tree: &mut BareTree<'_>, count: usize) -> Vec<Block> {
    let blocks = (0..tree.nodes.log.geometry().blocks()).map(Block);
    let mut blocks: Vec<Block> =
        blocks.filter(|block| tree.nodes.log.may_be_victim(*block)).collect();
    blocks.sort_by_cached_key(|block| core::cmp::Reverse(lives(tree, *block)));
    blocks.truncate(count);
    blocks.sort_unstable();
    blocks
}

#[test]
fn a_walk_empties_its_victim_and_writes_parents_less_often_than_their_leaves_move() {
    let mut tree = full(Division::Whole);
    let victim = fullest(&mut tree, 1)[0];
    let moved = lives(&mut tree, victim);
    let (before, live) = (tree.nodes.log.next_sequence(), tree.standing().live_pages);
    let pages = tree.nodes.log.pages_of(victim);
    move_in_one_walk(&mut tree, (victim, pages), &mut Vec::new()).unwrap();
    let written = tree.nodes.log.next_sequence() - before;
    assert!(moved > 2 && written < moved * u64::from(tree.height()), "{moved}, {written}");
    assert_eq!((lives(&mut tree, victim), tree.standing().live_pages), (0, live));
    verify(&mut tree, &[]);
}

#[test]
fn a_sweep_apart_writes_each_inner_node_once_and_leaves_none_beside_leaves() {
    let mut tree = full(Division::Whole);
    let victims = fullest(&mut tree, 3);
    let before = tree.nodes.log.next_sequence();
    let lives_in: u64 = victims.iter().map(|block| lives(&mut tree, *block)).sum();
    sweep_in_one_walk(&mut tree, (&victims, true), &mut Vec::new()).unwrap();
    let (written, inner) = (tree.nodes.log.next_sequence() - before, tree.census.demand.inner());
    assert!(written >= inner && written <= inner + lives_in, "{written}, {inner}, {lives_in}");
    assert!(victims.iter().all(|block| lives(&mut tree, *block) == 0));
    for key in 0..KEYS {
        tree.descend(0, (&key.to_be_bytes(), 0), Cause::Lookup).unwrap();
        let log = &tree.nodes.log;
        for level in 0..tree.height() {
            let block = log.geometry().block_of(tree.path.spot(level).page);
            assert_eq!(log.holds_apart(block), level > 0, "{key}, level {level}");
        }
    }
    verify(&mut tree, &[]);
}
