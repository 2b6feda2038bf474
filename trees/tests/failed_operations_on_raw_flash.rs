//! Every operation of a chip failing in turn, in each way that it can: what was refused changed
//! nothing or makes the index read-only until it is opened again; what it reads meanwhile is
//! right; and then it holds what was acknowledged.
//!
//! What a failing program or erase was to do is done, or not, or by half.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod failing_play;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program, Read};
use contract::share;
use contract::tree::{Case, Storage, cases_on_small_chips};
use device::{Block, Cause, Error as Refused, Medium, Nand, Result};
use failing_play::{KEYS, Play, STEPS, read_all};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Durability, Index};
use sim::SimulatedNand;

/// Operations of a history that fail, one after the other.
const OPERATIONS: u32 = 100;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// The driver fails, and nothing was done.
    NotDone,
    /// The driver fails, and it was done.
    Done,
    /// The chip refuses, and nothing was done.
    Refused,
    /// The chip refuses, and half of it was done.
    RefusedByHalf,
}

const WAYS: [Way; 4] = [Way::NotDone, Way::Done, Way::Refused, Way::RefusedByHalf];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Read,
    Program,
    Erase,
}

#[derive(Default)]
struct Plan {
    done: u32,
    /// The operation that fails, counted from 1.
    fails: Option<(u32, Way)>,
    has_failed: Option<Operation>,
}

#[derive(Clone, Default)]
struct Failing(Arc<Mutex<Plan>>);

const DRIVER: Refused = Refused::Driver { code: 5 };

impl Failing {
    /// How this operation fails, if it does.
    fn way(&self, operation: Operation) -> Option<Way> {
        let mut plan = self.0.lock().unwrap();
        plan.done += 1;
        let done = plan.done;
        let way = plan.fails.filter(|(fails, _)| *fails == done).map(|(_, way)| way);
        if way.is_some() {
            plan.has_failed = Some(operation);
        }
        way
    }

    fn has_failed(&self) -> bool {
        self.0.lock().unwrap().has_failed.is_some()
    }
}

impl Hook<&mut SimulatedNand> for Failing {
    fn read(&mut self, chip: &mut &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        match self.way(Operation::Read) {
            None => read.on(chip),
            Some(Way::NotDone | Way::Done) => Err(DRIVER),
            Some(Way::Refused | Way::RefusedByHalf) => {
                Err(Refused::Uncorrectable { page: read.page })
            }
        }
    }

    fn program(&mut self, chip: &mut &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        let refused = Err(Refused::ProgramRefused { page: program.page });
        match self.way(Operation::Program) {
            None => program.on(chip),
            Some(Way::NotDone) => Err(DRIVER),
            Some(Way::Done) => program.on(chip).and(Err(DRIVER)),
            Some(Way::Refused) => refused,
            Some(Way::RefusedByHalf) => {
                let half = program.data.len() / 2;
                Program { data: &program.data[..half], ..program }.on(chip).and(refused)
            }
        }
    }

    fn erase(&mut self, chip: &mut &mut SimulatedNand, block: Block, cause: Cause) -> Result<()> {
        match self.way(Operation::Erase) {
            None => chip.erase(block, cause),
            Some(Way::NotDone) => Err(DRIVER),
            Some(Way::Done) => chip.erase(block, cause).and(Err(DRIVER)),
            Some(Way::Refused | Way::RefusedByHalf) => Err(Refused::EraseRefused { block }),
        }
    }
}

fn open<'n>(
    case: &Case,
    chip: &'n mut SimulatedNand,
    failing: Failing,
    is_new: bool,
) -> index::Result<Box<dyn Index + 'n>> {
    let options = case.options(MediumShape::Nand(chip.geometry()));
    let make = if is_new { case.entry.create } else { case.entry.open };
    make(Medium::Nand(Box::new(Hooked { chip, hook: failing })), &options)
}

/// Plays the history with an operation failing; returns how many operations there were, and which
/// one failed.
fn play(case: &Case, fails: Option<(u32, Way)>) -> (u32, Option<Operation>) {
    // Without durability a case has a quarter of the room.
    let bytes = if case.durability == Durability::None { 192 << 10 } else { 48 << 10 };
    let Storage::Nand(mut chip) = case.storage(bytes) else { panic!("it is on a chip") };
    let failing = Failing::default();
    let mut index = open(case, &mut chip, failing.clone(), true).unwrap();
    *failing.0.lock().unwrap() = Plan { fails, ..Plan::default() };
    let name = format!("{}: {fails:?} fails", case.name());
    let mut play = Play::new(case.durability, name);
    for step in 0..STEPS {
        play.step(&mut *index, step);
        if failing.has_failed() {
            play.read(&mut *index, Play::keys_behind(step), true, false);
        }
    }
    play.read(&mut *index, 0..KEYS, fails.is_some(), false);
    let is_closed = case.durability == Durability::None && play.close(&mut *index);
    drop(index);
    let Plan { done, has_failed, .. } = core::mem::take(&mut *failing.0.lock().unwrap());
    play.name = format!("{}, a {has_failed:?}", play.name);
    let found = open(case, &mut chip, Failing::default(), false);
    play.end(found.and_then(|mut index| read_all(&mut *index)), is_closed);
    (done, has_failed)
}

/// Every tree and durability, by turns on chips with a spare area and without.
fn wanted() -> impl Iterator<Item = Case> {
    cases_on_small_chips(TREES)
        .enumerate()
        .filter(|(n, _)| matches!(n % 4, 0 | 3))
        .map(|(_, case)| case)
}

#[test]
fn whichever_operation_of_a_chip_fails_what_was_acknowledged_is_there() {
    let mut failed = BTreeMap::new();
    for (place, case) in wanted().enumerate() {
        let (operations, _) = play(&case, None);
        let step = operations.div_ceil(OPERATIONS) as usize * share(4);
        for fails in (1 + place as u32 % step as u32..operations).step_by(step) {
            for way in WAYS {
                let (_, operation) = play(&case, Some((fails, way)));
                *failed.entry(format!("{} {operation:?}", case.entry.name)).or_insert(0) += 1;
            }
        }
    }
    println!("operations that failed, by tree: {failed:?}");
    for kind in ["Read", "Program", "Erase"] {
        let those = failed.iter().filter(|(name, _)| name.contains(kind));
        let tried: i32 = those.map(|(_, times)| times).sum();
        assert!(tried * share(4) as i32 > 50, "{kind}: {failed:?}");
    }
}
