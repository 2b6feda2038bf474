//! Every fault of a chip, under every translation layer, with a tree on top: an answer is right or
//! an error, never wrong. What a layer can make good (refused operations, flips within the code and
//! flips that come and go) nobody above it notices.
//!
//! Power cuts have suites of their own: `power_cuts`, `fast`, `block_map`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use device::{Cause, Geometry, Medium, NandCosts, Request, Sector};
use flashtree_trees::find;
use index::Options;
use index::parameters::Settings;
use index::{EntryShape, Index, Update};
use sim::{Failure, FaultKind, FaultPlan, Flips, SimulatedNand, WearOut};

/// So many that no layer runs out of blocks to spare, at the rates below.
const UPDATES: u32 = 10_000;

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

/// True if a translation layer promises that nobody above it notices, while it has blocks to
/// spare.
fn is_survived(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::RefusedProgram
            | FaultKind::RefusedErase
            | FaultKind::CorrectedRead
            | FaultKind::UncorrectableRead
    )
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

/// Content of every sector, the newest in a place of its own now and then.
fn content(sector: u64, version: u32) -> [u8; 512] {
    let mut content = [version as u8; 512];
    content[..8].copy_from_slice(&sector.to_le_bytes());
    content
}

/// A disk of which every sector was written, some of them several times; returns how often.
fn fill(layer: &ftl::Entry, chip: &mut SimulatedNand) -> Vec<u32> {
    let mut disk = (layer.create)(Box::new(chip), &ftl::Options::default()).unwrap();
    let mut versions = vec![0; disk.geometry().sectors() as usize];
    let sectors = versions.len();
    for number in 0..3 * sectors {
        let sector = if number < sectors { number } else { number * 7919 % sectors };
        versions[sector] += 1;
        let content = content(sector as u64, versions[sector]);
        disk.write(Sector(sector as u64), &content, Cause::Update).unwrap();
    }
    disk.flush(Cause::Flush).unwrap();
    versions
}

#[test]
fn flips_that_come_and_go_lose_nothing_while_a_disk_is_opened_read_and_collected() {
    let mut unreadable = 0;
    for layer in ftl::FTLS {
        for spare in [0, 16] {
            let geometry = Geometry::new(512, 16, 64).unwrap().with_spare(spare).unwrap();
            let mut chip = SimulatedNand::new(geometry, NandCosts::default());
            let mut versions = fill(layer, &mut chip);
            for seed in 1..=10 {
                // One read of 200 fails, and succeeds when it is tried again.
                let flips = Flips { uncorrectable_rate: 0.005, ..Flips::default() };
                chip.arm(FaultPlan { flips, ..FaultPlan::seeded(seed) });
                let name = format!("{}, spare {spare}, seed {seed}", layer.name);
                let opened = (layer.open)(Box::new(&mut chip), &ftl::Options::default());
                let mut disk = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
                for (sector, version) in (0..).zip(&mut versions) {
                    let mut found = [0; 512];
                    let request = Request { first: Sector(sector), offset: 0, into: &mut found };
                    let read = disk.read(&mut [request], Cause::Lookup);
                    assert_eq!(read, Ok(()), "{name}, sector {sector}");
                    assert_eq!(found, content(sector, *version), "{name}, sector {sector}");
                    if sector % 3 == seed % 3 {
                        *version += 1;
                        let content = content(sector, *version);
                        disk.write(Sector(sector), &content, Cause::Update).unwrap();
                    }
                }
                disk.flush(Cause::Flush).unwrap();
                assert_eq!(disk.statistics().pages_lost, 0, "{name}");
            }
            unreadable += chip.faults().count(FaultKind::UncorrectableRead);
        }
    }
    assert!(unreadable >= 500, "{unreadable} reads failed");
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
                    let errors = run(layer, &mut chip);
                    println!("{name}: {errors:?} errors");
                    if is_survived(kind) {
                        assert_eq!(errors, Some(0), "{name}");
                    }
                    harmless += u32::from(errors.is_some());
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
