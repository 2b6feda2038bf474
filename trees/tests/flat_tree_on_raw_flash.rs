//! `flat-tree` on raw flash, where it does not pass every suite yet: the histories of the contract
//! agree with an ordered map, and nothing is lost where the power is cut.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::panic::catch_unwind;

use contract::tree::{Case, Stand, cases, run};

fn entry() -> &'static index::TreeDescriptor {
    flashtree_trees::find("flat-tree").unwrap()
}

#[test]
fn it_agrees_with_an_ordered_map_in_every_case() {
    let is_on_chip = |case: &Case| matches!(case.stand, Stand::Nand);
    let cases: Vec<_> = cases(entry()).into_iter().filter(is_on_chip).collect();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    contract::on_all_cores(&cases, |case| {
        assert!(catch_unwind(|| run(case)).is_ok(), "{} failed", case.name());
    });
}
