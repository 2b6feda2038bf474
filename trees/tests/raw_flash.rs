//! Trees on raw flash, one by one: the suite of `trees.rs`, and power cuts.

#![allow(clippy::panic, reason = "a test fails by panicking")]

mod raw_flash_cuts;

use std::panic::catch_unwind;

use contract::tree::{Stand, cases, run};
use contract::{sample, share};
use index::TreeDescriptor;
use raw_flash_cuts::survives_on_raw_flash;

fn entry(tree: &str) -> &'static TreeDescriptor {
    flashtree_trees::find(tree).unwrap_or_else(|| panic!("there is no {tree}"))
}

/// Plays the histories of every case of `tree` on raw flash, with and without a spare area.
fn agrees(tree: &str) {
    let cases = cases(entry(tree)).into_iter().filter(|case| matches!(case.stand, Stand::Nand));
    let cases = sample(5, cases);
    let (mut played, mut failed) = (0, Vec::new());
    for case in cases {
        played += 1;
        if catch_unwind(|| run(&case)).is_err() {
            failed.push(case.replay());
        }
    }
    assert!(played * share(5) >= 48, "{played} cases");
    assert!(failed.is_empty(), "{} of {played} failed\n{}", failed.len(), failed.join("\n"));
}

/// Tortures the cells of `tree` on so many kinds of raw flash: three sizes of pages, four shapes of
/// entries, three durabilities.
fn survives(tree: &str, stands: usize) {
    let all = survives_on_raw_flash(tree, stands * 36, 4_000);
    assert!(all.replayed > 0 && all.rollbacks > 0, "{all}");
}

#[test]
fn list_agrees_with_an_ordered_map() {
    agrees("list");
}

#[test]
fn list_keeps_what_it_acknowledged_when_the_power_is_cut() {
    // With and without a spare area.
    survives("list", 2);
}

#[test]
fn ipl_agrees_with_an_ordered_map() {
    agrees("ipl");
}

#[test]
fn ipl_keeps_what_it_acknowledged_when_the_power_is_cut() {
    // And with pages that are programmed in parts, or not.
    survives("ipl", 4);
}

#[test]
fn flat_tree_agrees_with_an_ordered_map() {
    agrees("flat-tree");
}

#[test]
fn flat_tree_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("flat-tree", 2);
}
