//! Trees on raw flash, one by one: the suite of `trees.rs`, and power cuts.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::panic::catch_unwind;

use flashtree_contract::torture::{self, Plan, Witness, cells_of, torture};
use flashtree_contract::tree::{Stand, cases, run};
use index::registry::Entry;

fn entry(tree: &str) -> &'static Entry {
    index::registry::find(tree).unwrap_or_else(|| panic!("there is no {tree}"))
}

/// Plays the histories of every case of `tree` on raw flash, with and without a spare area.
fn agrees(tree: &str) {
    let cases = cases(entry(tree)).into_iter().filter(|case| matches!(case.stand, Stand::Nand));
    let (mut played, mut failed) = (0, Vec::new());
    for case in cases {
        played += 1;
        if catch_unwind(|| run(&case)).is_err() {
            failed.push(case.replay());
        }
    }
    assert!(played >= 48, "{played} cases");
    assert!(failed.is_empty(), "{} of {played} failed\n{}", failed.len(), failed.join("\n"));
}

/// Tortures the cells of `tree` on so many kinds of raw flash with so many cuts, or as many as the
/// environment says.
fn survives(tree: &str, stands: usize, cuts: u64) {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let cuts = number("FLASHTREE_CUTS").unwrap_or(cuts);
    let cells: Vec<_> = cells_of(entry(tree))
        .into_iter()
        .filter(|cell| matches!(cell.stand, torture::Stand::Nand { .. }))
        .collect();
    // Three sizes of pages, four shapes of entries, three durabilities.
    assert_eq!(cells.len(), stands * 36);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let seed = number("FLASHTREE_SEED").unwrap_or(1);
    let rows = torture(&Plan { cells, cuts, seed, jobs }, &());
    let mut all = Witness::default();
    rows.iter().for_each(|row| all += row.witness);
    println!("{all}");
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|row| row.first.as_ref())
        .map(|(id, failure)| format!("{failure}\n  {}", id.command()))
        .collect();
    assert!(failed.is_empty(), "{} cells failed\n{}", failed.len(), failed.join("\n"));
    assert!(all.cuts >= cuts && all.replayed > 0 && all.rollbacks > 0, "{all}");
}

#[test]
fn list_agrees_with_an_ordered_map() {
    agrees("list");
}

#[test]
fn list_keeps_what_it_acknowledged_when_the_power_is_cut() {
    // With and without a spare area.
    survives("list", 2, 4_000);
}

#[test]
fn ipl_agrees_with_an_ordered_map() {
    agrees("ipl");
}

#[test]
fn ipl_keeps_what_it_acknowledged_when_the_power_is_cut() {
    // And with pages that are programmed in parts, or not.
    survives("ipl", 4, 4_000);
}
