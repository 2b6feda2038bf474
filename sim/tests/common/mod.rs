//! What the tests of faults share.

#![allow(dead_code, reason = "each test file uses its part")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use device::{Block, Cause, Cost, Error, Geometry, Linear, Nand, NandCosts, Page};
use flashtree_sim::{FaultPlan, SimulatedNand};

/// Runs `test` with each seed; a failure prints the command that runs it again with its seed.
pub(crate) fn with_seeds(file: &str, name: &str, count: u64, test: impl Fn(u64)) {
    let chosen = std::env::var("FLASHTREE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = chosen.map_or(1..=count, |seed| seed..=seed);
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("FLASHTREE_SEED={seed} cargo test -p flashtree-sim --test {file} {name}");
            resume_unwind(panic);
        }
    }
}

pub(crate) const PAGE: usize = 64;
pub(crate) const SPARE: usize = 16;

pub(crate) type Content = Result<([u8; PAGE], [u8; SPARE]), Error>;

/// 4 blocks of 8 pages of 64 bytes with 16 spare bytes, two programs a page, ascending.
pub(crate) fn shape() -> Geometry {
    Geometry::new(PAGE as u32, 8, 4)
        .and_then(|shape| shape.with_spare(SPARE as u32))
        .and_then(|shape| shape.with_programs(2))
        .unwrap()
}

pub(crate) fn costs() -> NandCosts {
    let cost = |fixed| Cost { time: Linear::fixed(fixed), energy: None };
    NandCosts { read: cost(10), program: cost(100), erase: cost(1000) }
}

/// A chip with a plan, on which nothing happened yet.
pub(crate) fn chip(plan: FaultPlan) -> SimulatedNand {
    SimulatedNand::new(shape(), costs()).with_faults(plan)
}

pub(crate) fn program(chip: &mut SimulatedNand, page: u32, byte: u8) -> Result<(), Error> {
    chip.program(Page(page), 0, &[byte; PAGE], &[byte; SPARE], Cause::Flush)
}

pub(crate) fn erase(chip: &mut SimulatedNand, block: u32) -> Result<(), Error> {
    chip.erase(Block(block), Cause::Reclamation)
}

pub(crate) fn read(chip: &mut SimulatedNand, page: u32) -> Content {
    let (mut data, mut spare) = ([0; PAGE], [0; SPARE]);
    chip.read(Page(page), 0, &mut data, &mut spare, Cause::Lookup)?;
    Ok((data, spare))
}

/// How a page reads that was programmed with `byte`; with 0xFF, one that is erased.
pub(crate) fn full(byte: u8) -> Content {
    Ok(([byte; PAGE], [byte; SPARE]))
}

/// Programs every page of `block` with its own number.
pub(crate) fn fill(chip: &mut SimulatedNand, block: u32) {
    for page in block * 8..block * 8 + 8 {
        program(chip, page, page as u8).unwrap();
    }
}
