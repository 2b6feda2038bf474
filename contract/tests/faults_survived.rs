//! Every fault of a chip, under every translation layer, with a tree on top: an answer is right or
//! an error, never wrong.
//!
//! Power cuts have suites of their own: `power_cuts`, `fast`, `block_map`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::registry::{Options, find};
use index::{EntryShape, Index, Update};
use sim::{Failure, FaultKind, FaultPlan, Flips, SimulatedNand, WearOut};

const UPDATES: u32 = 12_000;

/// Each fault with the kind under which the chip counts it.
fn faults(seed: u64) -> Vec<(FaultKind, FaultPlan)> {
    let plan = FaultPlan::seeded(seed);
    let rate = Failure::with_rate(0.0005);
    let flips = Flips { ecc_bits: Some(4), ..Flips::default() };
    vec![
        (FaultKind::SilentProgram, FaultPlan { silent_program: rate.clone(), ..plan.clone() }),
        (
            FaultKind::SilentErase,
            FaultPlan { silent_erase: Failure::with_rate(0.01), ..plan.clone() },
        ),
        (FaultKind::RefusedProgram, FaultPlan { refused_program: rate.clone(), ..plan.clone() }),
        (FaultKind::RefusedErase, FaultPlan { refused_erase: rate, ..plan.clone() }),
        (
            FaultKind::CorrectedRead,
            FaultPlan { flips: Flips { corrected_rate: 0.01, ..flips.clone() }, ..plan.clone() },
        ),
        (
            FaultKind::UncorrectableRead,
            FaultPlan { flips: Flips { uncorrectable_rate: 0.0005, ..flips }, ..plan.clone() },
        ),
        (
            FaultKind::WornOut,
            FaultPlan { wear_out: Some(WearOut { endurance: 60, certain: 90 }), ..plan },
        ),
    ]
}

/// Updates until one fails, then compares every key; returns how many answers were errors.
fn use_index(index: &mut dyn Index) -> usize {
    let mut model = BTreeMap::new();
    let mut doubtful = None;
    for number in 0..UPDATES {
        let key = (number % 700).wrapping_mul(0x9E37_79B9).to_be_bytes();
        let value = number.to_le_bytes();
        if index.update(&[Update::Put { key: &key, value: &value }]).is_err() {
            doubtful = Some(key);
            break;
        }
        model.insert(key, value);
    }
    let mut errors = usize::from(doubtful.is_some());
    for (key, value) in &model {
        let mut into = [0; 4];
        match index.get(key, 0, &mut into) {
            Ok(found) if doubtful == Some(*key) => assert_eq!(found, Some(4)),
            Ok(found) => assert_eq!((found, into), (Some(4), *value), "a wrong answer"),
            Err(_) => errors += 1,
        }
    }
    errors
}

/// Uses a new index on the disk that is on `chip`; `None` if the fault forbids even that, which is
/// an error as well.
fn run(layer: &ftl::Entry, chip: &mut SimulatedNand) -> Option<usize> {
    let disk = (layer.open)(Box::new(chip), &ftl::Options::default()).ok()?;
    let tree = find("b-plus").unwrap();
    let settings = Settings::parse(tree.name, tree.parameters, []).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), 4096, settings);
    let mut index = (tree.create)(Medium::Sectors(disk), &options).ok()?;
    Some(use_index(&mut *index))
}

#[test]
fn under_every_fault_an_answer_is_right_or_an_error() {
    let mut witnessed: BTreeMap<String, u64> = BTreeMap::new();
    let mut harmless = 0;
    for layer in ftl::FTLS {
        for spare in [0, 16] {
            for seed in 1..=6 {
                for (kind, plan) in faults(seed) {
                    let geometry = Geometry::new(512, 16, 64).unwrap().with_spare(spare).unwrap();
                    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
                    let disk = (layer.create)(Box::new(&mut chip), &ftl::Options::default());
                    drop(disk.unwrap());
                    chip.arm(plan);
                    let name = format!("{} {kind:?}, spare {spare}, seed {seed}", layer.name);
                    if let Some(errors) = run(layer, &mut chip) {
                        println!("{name}: {errors} errors");
                        harmless += 1;
                    }
                    let count = chip.faults().count(kind);
                    *witnessed.entry(format!("{kind:?}")).or_default() += count;
                }
            }
        }
    }
    println!("{witnessed:?}");
    assert!(harmless > 100, "{harmless} runs");
    for (kind, count) in witnessed {
        assert!(count >= 10, "{kind} happened {count} times only");
    }
}
