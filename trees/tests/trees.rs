//! Every tree of the registry passes the suite.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use contract::tree::{Case, Stand, cases, find, run};
use contract::{on_all_cores, sample};
use flashtree_trees::TREES;

/// Plays `case` and, if it fails, says how to play it again.
fn play(case: &Case) {
    if catch_unwind(|| run(case)).is_err() {
        panic!("{} failed; play it again with\n  {}", case.name(), case.replay());
    }
}

/// A tree whose updates wait in memory looks through all of them for each lookup, which takes long;
/// of its cases on translation layers, of which it knows nothing, each seventh is played.
fn is_played_always(case: &Case) -> bool {
    let is_ftl = matches!(case.stand, Stand::Ftl(_));
    case.entry.name != "la-tree" || !is_ftl || case.seed.is_multiple_of(7)
}

#[test]
fn every_tree_agrees_with_an_ordered_map_in_every_case() {
    let cases: Vec<_> =
        sample(11, TREES.iter().flat_map(|entry| cases(entry)).filter(is_played_always)).collect();
    assert!(cases.len() > 100, "{} cases", cases.len());
    on_all_cores(&cases, play);
}

#[test]
fn one_case_again() {
    let Ok(name) = std::env::var("FLASHTREE_CASE") else {
        // Without a name there is nothing to play again; that names are found is tested below.
        return;
    };
    play(&find(TREES, &name).unwrap_or_else(|| panic!("there is no case {name}")));
}

#[test]
fn no_two_cases_have_the_same_name_and_they_are_found_by_it() {
    let cases: Vec<_> = TREES.iter().flat_map(|entry| cases(entry)).collect();
    let names: BTreeSet<String> = cases.iter().map(Case::name).collect();
    assert_eq!(names.len(), cases.len());
    for case in cases.iter().step_by(101) {
        assert_eq!(find(TREES, &case.name()).unwrap().name(), case.name());
    }
}
