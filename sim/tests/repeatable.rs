//! The same seed and the same operations give the same faults, and no plan no fault at all.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod common;

use common::{chip, costs, erase, program, read, shape, with_seeds};
use device::{Nand, Page};
use flashtree_sim::{
    Cut, Failure, FaultKind, FaultLog, FaultPlan, Flips, Growth, SimulatedNand, WearOut,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Everything at once.
fn storm(seed: u64) -> FaultPlan {
    FaultPlan {
        power_cut: Some(Cut::Operation(500 + seed % 100)),
        refused_program: Failure { at_operation: Some(700), ..Failure::with_rate(0.001) },
        refused_erase: Failure::with_rate(0.002),
        silent_program: Failure::with_rate(0.01),
        silent_erase: Failure::with_rate(0.02),
        flips: Flips {
            ecc_bits: Some(3),
            corrected_rate: 0.02,
            uncorrectable_rate: 0.01,
            growth: Growth { per_read: 0.01, per_erase: 0.01, most: 5.0 },
            ..Flips::default()
        },
        wear_out: Some(WearOut { endurance: 20, certain: 60 }),
        random_bad_blocks: 1,
        ..FaultPlan::seeded(seed)
    }
}

/// Plays `count` operations drawn by `seed`; returns what they answered.
fn play(chip: &mut SimulatedNand, seed: u64, count: u32) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut answers = Vec::new();
    for _ in 0..count {
        let page = random.random_range(0..32);
        answers.push(match random.random_range(0..10) {
            0 | 1 => format!("{:?}", erase(chip, page / 8)),
            2..5 => format!("{:?}", program(chip, page, random.random())),
            5 => format!("{:?}", chip.is_bad(chip.geometry().block_of(Page(page)))),
            _ => format!("{:?}", read(chip, page)),
        });
        if chip.is_without_power() && random.random_range(0..5) == 0 {
            chip.restore_power();
        }
    }
    answers
}

#[test]
fn the_same_seed_and_operations_give_the_same_faults() {
    let mut log = FaultLog::default();
    for seed in 0..50 {
        let mut once = chip(storm(seed));
        let mut again = chip(storm(seed));
        let mut other = chip(storm(seed + 1000));
        let answers = play(&mut once, seed, 2000);
        assert_eq!(play(&mut again, seed, 2000), answers, "seed {seed}");
        assert_eq!(once.meter(), again.meter(), "seed {seed}");
        assert_eq!(once.faults(), again.faults(), "seed {seed}");
        assert_ne!(play(&mut other, seed, 2000), answers, "seed {seed}");
        log += once.faults();
    }
    for kind in [
        FaultKind::PowerCut,
        FaultKind::RefusedProgram,
        FaultKind::RefusedErase,
        FaultKind::SilentProgram,
        FaultKind::SilentErase,
        FaultKind::CorrectedRead,
        FaultKind::UncorrectableRead,
        FaultKind::WornOut,
        FaultKind::FactoryBad,
    ] {
        assert!(log.count(kind) >= 5, "{kind}: {log:?}");
    }
}

#[test]
fn a_copy_goes_on_as_the_chip_does() {
    with_seeds("repeatable", "a_copy_goes_on", 50, |seed| {
        let mut chip = chip(storm(seed));
        play(&mut chip, seed, 1000);
        let mut copy = chip.clone();
        assert_eq!(play(&mut copy, seed + 1, 1000), play(&mut chip, seed + 1, 1000));
        assert_eq!(copy.meter(), chip.meter());
        assert_eq!(copy.faults(), chip.faults());
        // What happens to the copy does not happen to the chip.
        let before = play(&mut chip.clone(), seed + 2, 500);
        play(&mut copy, seed + 3, 500);
        assert_eq!(play(&mut chip, seed + 2, 500), before);
    });
}

#[test]
fn a_plan_that_is_armed_but_idle_changes_nothing() {
    with_seeds("repeatable", "armed_but_idle", 20, |seed| {
        let mut plain = SimulatedNand::new(shape(), costs());
        let seldom = || Failure { at_operation: Some(1 << 40), ..Failure::with_rate(1e-15) };
        let mut armed = chip(FaultPlan {
            power_cut: Some(Cut::Operation(1 << 40)),
            refused_program: seldom(),
            refused_erase: seldom(),
            silent_program: seldom(),
            silent_erase: seldom(),
            flips: Flips {
                corrected_rate: 1e-15,
                uncorrectable_rate: 1e-15,
                growth: Growth { per_read: 1e-9, per_erase: 1e-9, most: 2.0 },
                ..Flips::default()
            },
            wear_out: Some(WearOut { endurance: 1 << 20, certain: 1 << 21 }),
            ..FaultPlan::seeded(seed)
        });
        assert_eq!(play(&mut armed, seed, 3000), play(&mut plain, seed, 3000));
        assert_eq!(armed.meter(), plain.meter());
        assert_eq!(armed.faults(), FaultLog::default());
        assert!(armed.operations() > 1000);
        assert_eq!(armed.operations(), plain.operations());
    });
}

#[test]
fn a_copy_holds_all_that_the_chip_holds() {
    let mut chip = SimulatedNand::new(shape(), costs());
    for (page, byte) in [(0, 1), (1, 2), (12, 3), (31, 4)] {
        program(&mut chip, page, byte).unwrap();
    }
    program(&mut chip, 20, 5).unwrap();
    erase(&mut chip, 2).unwrap();
    let mut copy = chip.clone();
    for page in 0..32 {
        assert_eq!(read(&mut copy, page), read(&mut chip, page), "page {page}");
    }
    assert_eq!(copy.meter(), chip.meter());
    program(&mut copy, 2, 9).unwrap();
    assert_eq!(read(&mut chip, 2), common::full(0xFF), "the copy wrote to the chip");
}
