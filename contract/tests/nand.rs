//! The simulated chip passes the suite of chips, sound and under every fault.

use device::NandCosts;
use flashtree_contract::nand::{Case, Fault, cases, cases_with, check_all};
use sim::SimulatedNand;

/// The command that plays a case of `test` again.
fn command(test: &str) -> String {
    format!("cargo test -p flashtree-contract --test nand {test}")
}

fn chip(case: &Case) -> SimulatedNand {
    SimulatedNand::new(case.geometry, NandCosts::default())
}

#[test]
fn a_sound_chip_keeps_every_rule() {
    let command = command("a_sound_chip");
    check_all(&cases(), &command, |case| chip(case).with_random_bad_blocks(case.seed, 1));
}

#[test]
fn under_every_fault_the_contract_holds() {
    let cases: Vec<Case> = Fault::all().into_iter().flat_map(cases_with).collect();
    check_all(&cases, &command("under_every_fault"), chip);
}
