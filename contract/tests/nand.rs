//! Every chip passes the suite.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use device::NandCosts;
use flashtree_contract::nand::{Case, Witness, cases, check};
use sim::SimulatedNand;

fn play(case: &Case) -> Witness {
    let run = || {
        check(case, |geometry| {
            SimulatedNand::new(geometry, NandCosts::default()).with_random_bad_blocks(case.seed, 1)
        })
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        panic!(
            "{case} failed; play it again with\n  \
             FLASHTREE_CASE='{case}' cargo test -p flashtree-contract --test nand"
        )
    })
}

#[test]
fn the_simulated_chip_keeps_every_rule() {
    let wanted = std::env::var("FLASHTREE_CASE").ok();
    let chosen = |case: &Case| wanted.as_ref().is_none_or(|name| *name == case.to_string());
    let cases: Vec<Case> = cases().into_iter().filter(chosen).collect();
    assert!(!cases.is_empty(), "there is no such case");
    for case in &cases {
        let witness = play(case);
        assert!(witness.programs > 100, "{case}: {witness:?}");
        assert!(witness.reads > 500 && witness.erases > 50, "{case}: {witness:?}");
        assert!(witness.refusals > 100, "{case}: {witness:?}");
    }
}
