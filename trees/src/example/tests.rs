//! The suite that every tree of the registry passes by its line there.

use alloc::vec::Vec;

use contract::tree::{Case, cases, run};
use contract::{on_all_cores, sample};

#[test]
fn the_example_agrees_with_an_ordered_map_in_every_case() {
    let fixed = |case: &Case| case.shape.name != "variable";
    let cases: Vec<_> = sample(11, cases(&super::ENTRY).into_iter().filter(fixed)).collect();
    assert!(cases.len() > 15, "{} cases", cases.len());
    on_all_cores(&cases, run);
}
