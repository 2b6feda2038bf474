//! The lazy-adaptive tree alone: the suite of `trees.rs` on raw flash.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::panic::catch_unwind;

use flashtree_contract::tree::{Stand, cases, run};

#[test]
fn la_tree_agrees_with_an_ordered_map_on_raw_flash() {
    let entry = index::registry::find("la-tree").unwrap_or_else(|| panic!("there is no la-tree"));
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
