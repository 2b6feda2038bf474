//! The trees that copy their paths, alone: the suite of `trees.rs` on raw flash.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::panic::catch_unwind;

use flashtree_contract::torture::{self, cells_of};
use flashtree_contract::tree::{Stand, cases, run};

fn agrees(tree: &str) {
    let entry = index::registry::find(tree).unwrap_or_else(|| panic!("there is no {tree}"));
    let cases: Vec<_> =
        cases(entry).into_iter().filter(|case| matches!(case.stand, Stand::Nand)).collect();
    assert!(cases.len() >= 48, "{} cases", cases.len());
    let mut failed = 0;
    for case in &cases {
        if catch_unwind(|| run(case)).is_err() {
            println!("{} failed; play it again with\n  {}", case.name(), case.replay());
            failed += 1;
        }
    }
    assert_eq!(failed, 0, "of {} cases", cases.len());
}

#[test]
fn mu_star_agrees_with_an_ordered_map_on_raw_flash() {
    agrees("mu-star");
}

#[test]
fn mu_agrees_with_an_ordered_map_on_raw_flash() {
    agrees("mu");
}

/// Tortures the cells of `tree` on raw flash with so many cuts, or as many as the environment says.
fn survives(tree: &str, cuts: u64) {
    let entry = index::registry::find(tree).unwrap_or_else(|| panic!("there is no {tree}"));
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let cuts = number("FLASHTREE_CUTS").unwrap_or(cuts);
    let cells: Vec<_> = cells_of(entry)
        .into_iter()
        .filter(|cell| matches!(cell.stand, torture::Stand::Nand { .. }))
        .collect();
    assert_eq!(cells.len(), 72);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let seed = number("FLASHTREE_SEED").unwrap_or(1);
    let rows = torture::torture(&torture::Plan { cells, cuts, seed, jobs }, &());
    let mut all = torture::Witness::default();
    rows.iter().for_each(|row| all += row.witness);
    println!("{all}");
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|row| row.first.as_ref())
        .map(|(id, failure)| format!("{failure}\n  {}", id.command()))
        .collect();
    assert!(failed.is_empty(), "{} cells failed\n{}", failed.len(), failed.join("\n"));
    assert!(all.cuts >= cuts && all.reclamations > 0, "{all}");
}

#[test]
fn mu_star_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("mu-star", 4_000);
}

#[test]
fn mu_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("mu", 4_000);
}

#[test]
fn the_wandering_b_plus_tree_agrees_with_an_ordered_map_on_raw_flash() {
    agrees("b-plus");
}

#[test]
fn the_wandering_b_plus_tree_keeps_what_it_acknowledged_when_the_power_is_cut() {
    survives("b-plus", 4_000);
}
