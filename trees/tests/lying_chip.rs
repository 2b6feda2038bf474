//! A chip that says it programmed or erased what it did not, or programmed another page: what the
//! journal, the records of checkpoints and the pages of the tree hold comes back, or an error or
//! the check says that it does not.
//!
//! One operation of a history is a lie, and in the end the power is cut. The last page that was
//! programmed for what is acknowledged is exempt: nothing comes after it that could tell. How
//! often such a lie shows is printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod lies;

use contract::share;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program};
use contract::tree::{Case, Storage, cases_on_small_chips};
use device::{Block, Cause, Medium, Nand, Page, Result};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Durability, Index};
use lies::{History, Model, Outcome, judge};
use sim::SimulatedNand;

const STEPS: u32 = 400;
const KEYS: u32 = 150;

/// Operations of a history that are lies, one after the other.
const OPERATIONS: usize = 80;

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lie {
    /// It is not done.
    Lost,
    /// A program goes so many pages further.
    Elsewhere(u32),
}

/// What an operation was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Program(Cause),
    Erase,
}

#[derive(Default)]
struct Plan {
    operations: Vec<Operation>,
    /// The operation that is not what it is said to be, counted from 0.
    lies: Option<(usize, Lie)>,
}

impl Plan {
    /// Notes an operation; what happens to it.
    fn note(&mut self, operation: Operation) -> Option<Lie> {
        let number = self.operations.len();
        self.operations.push(operation);
        self.lies.filter(|(lying, _)| *lying == number).map(|(_, lie)| lie)
    }
}

#[derive(Clone, Default)]
struct Liar(Arc<Mutex<Plan>>);

impl Hook<&mut SimulatedNand> for Liar {
    fn program(&mut self, chip: &mut &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        match self.0.lock().unwrap().note(Operation::Program(program.cause)) {
            None => program.on(chip),
            Some(Lie::Lost) => Ok(()),
            Some(Lie::Elsewhere(by)) => {
                let page = Page((program.page.0 + by) % chip.geometry().pages());
                // Where something stands the chip of this suite takes nothing.
                let _ = Program { page, ..program }.on(chip);
                Ok(())
            }
        }
    }

    fn erase(&mut self, chip: &mut &mut SimulatedNand, block: Block, cause: Cause) -> Result<()> {
        match self.0.lock().unwrap().note(Operation::Erase) {
            None => chip.erase(block, cause),
            Some(_) => Ok(()),
        }
    }
}

fn open<'n>(
    case: &Case,
    chip: &'n mut SimulatedNand,
    liar: Liar,
    is_new: bool,
) -> index::Result<Box<dyn Index + 'n>> {
    let options = case.options(MediumShape::Nand(chip.geometry()));
    let make = if is_new { case.entry.create } else { case.entry.open };
    make(Medium::Nand(Box::new(Hooked { chip, hook: liar })), &options)
}

/// Plays the history until so many steps after a lie; then, with `None`, goes on to its end, and
/// looks at what there is, else cuts the power and opens again. What came of it, and the
/// operations there were.
fn play(
    case: &Case,
    lies: Option<(usize, Lie)>,
    steps_left: Option<u32>,
) -> (Outcome, Vec<Operation>) {
    // Without durability a case has a quarter of the room.
    let bytes = if case.durability == Durability::None { 192 << 10 } else { 48 << 10 };
    let Storage::Nand(mut chip) = case.storage(bytes) else { panic!("it is on a chip") };
    let liar = Liar::default();
    let mut index = open(case, &mut chip, liar.clone(), true).unwrap();
    *liar.0.lock().unwrap() = Plan { lies, ..Plan::default() };
    let history = History { keys: KEYS, durability: case.durability };
    let mut model = Model::new();
    let mut is_told = false;
    let mut left = steps_left.unwrap_or(STEPS);
    for number in 1..STEPS {
        is_told |= history.step(&mut *index, &mut model, number).is_err();
        let has_lied = lies.is_some_and(|(lie, _)| liar.0.lock().unwrap().operations.len() > lie);
        if has_lied && left == 0 {
            break;
        }
        left -= u32::from(has_lied);
    }
    let is_open = steps_left.is_none() && case.durability != Durability::None;
    is_told |= history.make_last(&mut *index).is_err();
    let open_found = is_open.then(|| judge(&mut *index));
    drop(index);
    let operations = core::mem::take(&mut liar.0.lock().unwrap().operations);
    let reopened = || {
        let index = open(case, &mut chip, Liar::default(), false);
        index.and_then(|mut index| judge(&mut *index))
    };
    let found = open_found.unwrap_or_else(reopened);
    (Outcome::of(found, &model, is_told), operations)
}

const LAST_PAGE: &str = "the last page of what is acknowledged";

/// What operation `number` of `operations` was for.
fn part_of(operations: &[Operation], number: usize) -> &'static str {
    let is_last = |causes: &[Cause]| {
        let is_one = |operation: &Operation| match operation {
            Operation::Program(cause) => causes.contains(cause),
            Operation::Erase => false,
        };
        operations.iter().rposition(is_one) == Some(number)
    };
    match operations[number] {
        _ if is_last(&[Cause::Journal]) => LAST_PAGE,
        _ if is_last(&[Cause::Journal, Cause::Checkpoint]) => LAST_PAGE,
        Operation::Program(Cause::Journal) => "journal",
        Operation::Program(Cause::Checkpoint) => "checkpoint",
        Operation::Program(_) => "page of the tree",
        Operation::Erase => "erase",
    }
}

#[test]
fn what_is_not_there_or_stands_elsewhere_is_told() {
    let (mut outcomes, mut trees) = (BTreeMap::new(), BTreeMap::new());
    let mut wrong = Vec::new();
    for case in cases_on_small_chips(TREES) {
        let (outcome, operations) = play(&case, None, None);
        assert_eq!(outcome, Outcome::Right, "{}", case.name());
        for number in
            (0..operations.len()).step_by(operations.len().div_ceil(OPERATIONS) * share(3))
        {
            let mut lies = vec![Lie::Lost];
            if matches!(operations[number], Operation::Program(_)) {
                lies.extend([Lie::Elsewhere(1), Lie::Elsewhere(number as u32 * 37 + 5)]);
            }
            for (lie, steps_left) in lies
                .into_iter()
                .flat_map(|lie| [Some(0), Some(4), Some(25), None].map(|left| (lie, left)))
            {
                let (outcome, operations) = play(&case, Some((number, lie)), steps_left);
                let what = part_of(&operations, number);
                *outcomes.entry((what, lie == Lie::Lost, outcome)).or_insert(0) += 1;
                *trees.entry((case.entry.name, case.durability.to_string())).or_insert(0) += 1;
                if outcome == Outcome::Wrong && what != LAST_PAGE {
                    let name = case.name();
                    wrong.push(format!(
                        "{name}: operation {number}, {what}: {lie:?}, {steps_left:?}"
                    ));
                }
            }
        }
    }
    println!("{trees:?}");
    for ((what, is_lost, outcome), times) in &outcomes {
        let lie = if *is_lost { "lost" } else { "elsewhere" };
        println!("{what}, {lie}: {outcome:?} {times}");
    }
    assert!(wrong.is_empty(), "{} of {outcomes:?}\n{}", wrong.len(), wrong.join("\n"));
    let told = |part| -> i32 {
        let those = outcomes.iter().filter(|((what, _, outcome), _)| {
            *what == part && matches!(outcome, Outcome::Error | Outcome::Checked)
        });
        those.map(|(_, times)| times).sum()
    };
    for part in ["journal", "checkpoint", "page of the tree"] {
        assert!(told(part) > 500, "{part}: {outcomes:?}");
    }
}
