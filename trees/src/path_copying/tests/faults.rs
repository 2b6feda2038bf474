//! Every fault of a chip, under the trees that copy their paths: an answer is right or an error,
//! never wrong. Bad blocks, refused operations, and flips that come and go, nobody notices.
//!
//! Power cuts are in `path_copying`, a full chip in `full_device`.

use std::collections::BTreeMap;

use device::{Geometry, Medium, NandCosts};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use index::{MediumShape, Options};
use sim::{Failure, FaultKind, FaultPlan, Flips, SimulatedNand, WearOut};

const TREES: [&str; 3] = ["b-plus", "mu", "mu-star"];

/// So many that blocks are collected many times, and enough of them are left at the rates below.
const UPDATES: u32 = 6_000;

/// A tree on a chip.
#[derive(Clone, Copy, Debug)]
struct Stage {
    tree: &'static str,
    spare: u32,
    durability: Durability,
}

impl Stage {
    fn all() -> Vec<Stage> {
        let mut all = Vec::new();
        for tree in TREES {
            for spare in [0, 64] {
                all.extend(Durability::ALL.map(|durability| Stage { tree, spare, durability }));
            }
        }
        all
    }

    fn geometry(&self) -> Geometry {
        Geometry::new(2048, 16, 64).unwrap().with_spare(self.spare).unwrap()
    }

    fn chip(&self) -> SimulatedNand {
        SimulatedNand::new(self.geometry(), NandCosts::default())
    }

    /// Makes the tree on `chip`, or opens it.
    fn index<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        opens: bool,
    ) -> index::Result<Box<dyn Index + 'c>> {
        let entry = find(self.tree).unwrap();
        let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
        let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
        options.durability = Some(self.durability);
        options.journal_bytes = Some(8 << 10);
        let shape = MediumShape::Nand(self.geometry());
        options.memory_bytes = 2 * entry.least_memory(&options, shape).unwrap();
        let make = if opens { entry.open } else { entry.create };
        make(Medium::Nand(Box::new(chip)), &options)
    }
}

/// What the index should hold; of one key it is not known.
#[derive(Default)]
struct Truth {
    entries: BTreeMap<[u8; 4], [u8; 4]>,
    doubtful: Option<[u8; 4]>,
}

impl Truth {
    /// Puts, and deletes one in four, until one fails.
    fn update(&mut self, index: &mut dyn Index) -> usize {
        for number in 0..UPDATES {
            let key = (number % 1_500).wrapping_mul(0x9E37_79B9).to_be_bytes();
            let value = number.to_le_bytes();
            let update = match number % 4 {
                3 => Update::Delete { key: &key },
                _ => Update::Put { key: &key, value: &value },
            };
            if index.update(&[update]).is_err() {
                self.doubtful = Some(key);
                return 1;
            }
            match number % 4 {
                3 => self.entries.remove(&key),
                _ => self.entries.insert(key, value),
            };
        }
        0
    }

    /// Compares every key; returns how many answers were errors.
    fn compare(&self, index: &mut dyn Index, name: &str) -> usize {
        let mut errors = 0;
        for number in 0..1_500u32 {
            let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
            let mut into = [0; 4];
            match index.get(&key, 0, &mut into) {
                Ok(_) if self.doubtful == Some(key) => {}
                Ok(found) => {
                    let found = found.map(|_| into);
                    assert_eq!(found, self.entries.get(&key).copied(), "{name}: a wrong answer");
                }
                Err(_) => errors += 1,
            }
        }
        errors
    }
}

/// Makes an index on `chip`, uses it under `plan`, closes it, and opens it without faults; returns
/// the errors on the way, and those at the end.
fn live(stage: &Stage, chip: &mut SimulatedNand, plan: FaultPlan) -> (usize, usize) {
    let name = format!("{stage:?}");
    let mut truth = Truth::default();
    chip.arm(plan);
    let Ok(mut index) = stage.index(chip, false) else {
        return (1, 0);
    };
    let mut errors = truth.update(&mut *index) + truth.compare(&mut *index, &name);
    errors += usize::from(index.close().is_err());
    drop(index);
    chip.arm(FaultPlan::default());
    if errors > 0 {
        return (errors, 0);
    }
    let mut index = stage.index(chip, true).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut at_end = truth.compare(&mut *index, &name);
    index.check(&mut |_| at_end += 1).unwrap();
    (errors, at_end)
}

fn plan(seed: u64) -> FaultPlan {
    FaultPlan::seeded(seed)
}

/// Runs every stage under `fault`, of which nobody is to notice anything; it has to happen so
/// often.
fn nobody_notices(kind: FaultKind, least: u64, fault: impl Fn(u64) -> FaultPlan) {
    let mut happened = 0;
    for (seed, stage) in (1..).zip(Stage::all()) {
        let mut chip = stage.chip();
        let found = live(&stage, &mut chip, fault(seed));
        assert_eq!(found, (0, 0), "{stage:?}, seed {seed}: errors under faults, and after them");
        happened += chip.faults().count(kind);
    }
    assert!(happened >= least, "{kind:?} happened {happened} times only");
}

#[test]
fn blocks_that_are_bad_from_the_factory_are_left_alone() {
    for (seed, stage) in (1..).zip(Stage::all()) {
        let mut chip = stage.chip().with_random_bad_blocks(seed, 6);
        assert_eq!(live(&stage, &mut chip, FaultPlan::default()), (0, 0), "{stage:?}");
    }
}

#[test]
fn refused_programs_are_made_elsewhere() {
    nobody_notices(FaultKind::RefusedProgram, 50, |seed| FaultPlan {
        refused_program: Failure::with_rate(0.0005),
        ..plan(seed)
    });
}

#[test]
fn blocks_that_refuse_to_be_erased_are_used_no_more() {
    nobody_notices(FaultKind::RefusedErase, 50, |seed| FaultPlan {
        refused_erase: Failure::with_rate(0.01),
        ..plan(seed)
    });
}

#[test]
fn flips_within_the_code_are_corrected() {
    nobody_notices(FaultKind::CorrectedRead, 1_000, |seed| FaultPlan {
        flips: Flips { ecc_bits: Some(4), corrected_rate: 0.02, ..Flips::default() },
        ..plan(seed)
    });
}

#[test]
fn flips_beyond_the_code_that_come_and_go_are_read_again() {
    nobody_notices(FaultKind::UncorrectableRead, 100, |seed| FaultPlan {
        flips: Flips { ecc_bits: Some(4), uncorrectable_rate: 0.002, ..Flips::default() },
        ..plan(seed)
    });
}

/// Programs and erases that the chip acknowledges and does not do, and blocks that wear out, can't
/// be made good: an answer is right or an error.
#[test]
fn under_faults_that_stay_an_answer_is_right_or_an_error() {
    let silent = Failure::with_rate(0.0005);
    let mut happened = [0; 3];
    for (seed, stage) in (1..).zip(Stage::all()) {
        let faults = [
            (FaultKind::SilentProgram, FaultPlan { silent_program: silent.clone(), ..plan(seed) }),
            (
                FaultKind::SilentErase,
                FaultPlan { silent_erase: Failure::with_rate(0.01), ..plan(seed) },
            ),
            (
                FaultKind::WornOut,
                FaultPlan { wear_out: Some(WearOut { endurance: 4, certain: 40 }), ..plan(seed) },
            ),
        ];
        for (place, (kind, fault)) in faults.into_iter().enumerate() {
            let mut chip = stage.chip();
            let (errors, at_end) = live(&stage, &mut chip, fault);
            println!("{stage:?}, {kind:?}: {errors} errors, {at_end} after an opening");
            happened[place] += chip.faults().count(kind);
        }
    }
    assert!(happened.iter().all(|count| *count >= 10), "{happened:?}");
}
