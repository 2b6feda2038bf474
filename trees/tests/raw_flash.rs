//! Trees on raw flash, one by one: power cuts.

#![allow(clippy::panic, reason = "a test fails by panicking")]

mod raw_flash_cuts;

use raw_flash_cuts::survives_on_raw_flash;

/// Tortures the cells of `tree` on so many kinds of raw flash: three sizes of pages, four shapes of
/// entries, three durabilities.
fn survives(tree: &str, stands: usize) {
    let all = survives_on_raw_flash(tree, stands * 36, 4_000);
    assert!(all.replayed > 0 && all.rollbacks > 0, "{all}");
}

#[test]
fn list_keeps_what_it_acknowledged_when_the_power_is_cut() {
    // With and without a spare area.
    survives("list", 2);
}

#[test]
fn ipl_keeps_what_it_acknowledged_when_the_power_is_cut() {
    // And with pages that are programmed in parts, or not.
    survives("ipl", 4);
}

#[test]
fn flat_tree_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("flat-tree", 2);
}
