//! Every translation layer of the registry passes the suite of disks.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{Cause, Error, Geometry, Nand, NandCosts, Sectors};
use flashtree_contract::on_all_cores;
use flashtree_contract::sectors::{Storage, Witness, check};
use ftl::{Entry, FTLS, Options};
use sim::SimulatedNand;

/// One history on one shape of chip.
#[derive(Clone, Copy)]
struct Case {
    entry: &'static Entry,
    page_bytes: u32,
    spare_bytes: u32,
    pages_per_block: u32,
    bad: u32,
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { entry, page_bytes, spare_bytes, pages_per_block, bad, seed } = self;
        let layer = entry.name;
        write!(f, "{layer}/{page_bytes}+{spare_bytes}/{pages_per_block}/bad{bad}/seed{seed}")
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in FTLS {
        for page_bytes in [512, 2048, 4096] {
            for spare_bytes in [0, 16, 64] {
                for (pages_per_block, bad) in [(16, 0), (16, 4), (64, 3)] {
                    let seed = cases.len() as u64 + 1;
                    cases.push(Case { entry, page_bytes, spare_bytes, pages_per_block, bad, seed });
                }
            }
        }
    }
    cases
}

const BLOCKS: u32 = 40;

/// A translation layer on a simulated chip.
struct Layer {
    entry: &'static Entry,
    chip: SimulatedNand,
}

impl Layer {
    fn new(case: &Case) -> Self {
        let geometry = Geometry::new(case.page_bytes, case.pages_per_block, BLOCKS)
            .and_then(|geometry| geometry.with_spare(case.spare_bytes))
            .unwrap();
        let chip = SimulatedNand::new(geometry, NandCosts::default());
        Layer { entry: case.entry, chip: chip.with_random_bad_blocks(case.seed, case.bad) }
    }
}

impl Storage for Layer {
    fn create(&mut self) -> Result<Box<dyn Sectors + '_>, Error> {
        Ok((self.entry.create)(Box::new(&mut self.chip), &Options::default())?)
    }

    fn open(&mut self) -> Result<Box<dyn Sectors + '_>, Error> {
        Ok((self.entry.open)(Box::new(&mut self.chip), &Options::default())?)
    }
}

const TURNOVERS: u64 = 20;

fn play(case: &Case) -> (Witness, SimulatedNand) {
    let mut layer = Layer::new(case);
    let run = || check(&mut layer, case.seed, TURNOVERS);
    let witness = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        panic!(
            "{case} failed; play it again with\n  \
             FLASHTREE_CASE='{case}' cargo test -p flashtree-contract --test sectors"
        )
    });
    (witness, layer.chip)
}

#[test]
fn every_layer_is_a_disk_while_it_collects_all_the_time() {
    let wanted = std::env::var("FLASHTREE_CASE").ok();
    let chosen = |case: &Case| wanted.as_ref().is_none_or(|name| *name == case.to_string());
    let cases: Vec<Case> = cases().into_iter().filter(chosen).collect();
    assert!(!cases.is_empty(), "there is no such case");
    on_all_cores(&cases, |case| {
        let (witness, chip) = play(case);
        let total = chip.meter().unwrap().total();
        let collected = chip.meter().unwrap().tally(Cause::Reclamation);
        assert!(witness.writes >= TURNOVERS * witness.sectors, "{case}: {witness:?}");
        assert!(witness.trims > 100 && witness.reads > 500, "{case}: {witness:?}");
        assert!(witness.flushes > 20, "{case}: {witness:?}");
        assert!(witness.restarts + witness.unflushed_restarts > 5, "{case}: {witness:?}");
        assert!(collected.page_programs > witness.sectors, "{case}: {collected:?}");
        assert!(total.block_erases > 10 * u64::from(BLOCKS), "{case}: {total:?}");
    });
}
