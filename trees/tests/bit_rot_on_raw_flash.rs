//! Each byte of a small index on raw flash flipped in turn, spare areas included, after the power
//! was cut: all that was acknowledged comes back, or an error or the check tells of the damage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod lies;

use contract::sample;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use contract::nand::{Hook, Hooked, Program, Read};
use contract::tree::{Case, Storage, cases_on_small_chips};
use device::{Block, Cause, Medium, Nand, Page, Result};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Durability, Index};
use lies::{History, Model, Outcome, judge};
use sim::SimulatedNand;

/// Steps before a checkpoint and behind it.
const STEPS: [u32; 2] = [20, 34];
const KEYS: u32 = 25;

/// The pages in which something stands.
#[derive(Clone, Default)]
struct Programmed(Arc<Mutex<BTreeSet<Page>>>);

impl Hook<&mut SimulatedNand> for Programmed {
    fn program(&mut self, chip: &mut &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        self.0.lock().unwrap().insert(program.page);
        program.on(chip)
    }
}

/// A flipped bit of a page, until its block is erased.
struct Flip {
    page: Page,
    /// The byte, of the page and then of its spare area.
    byte: usize,
}

impl Hook<&mut SimulatedNand> for Flip {
    fn read(&mut self, chip: &mut &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        let Read { page, offset, into, spare, cause } = read;
        let corrected =
            Read { page, offset, into: &mut *into, spare: &mut *spare, cause }.on(chip)?;
        if page == self.page {
            let page_bytes = chip.geometry().page_bytes() as usize;
            let flipped = match self.byte.checked_sub(page_bytes) {
                Some(byte) => spare.get_mut(byte),
                None => {
                    let at = self.byte.checked_sub(offset as usize);
                    at.and_then(|at| into.get_mut(at))
                }
            };
            if let Some(byte) = flipped {
                *byte ^= 1 << (self.byte % 8);
            }
        }
        Ok(corrected)
    }

    fn erase(&mut self, chip: &mut &mut SimulatedNand, block: Block, cause: Cause) -> Result<()> {
        if chip.geometry().block_of(self.page) == block {
            self.page = Page(u32::MAX);
        }
        chip.erase(block, cause)
    }
}

fn open<'n>(
    case: &Case,
    chip: &'n mut SimulatedNand,
    hook: impl Hook<&'n mut SimulatedNand> + 'n,
    is_new: bool,
) -> index::Result<Box<dyn Index + 'n>> {
    let options = case.options(MediumShape::Nand(chip.geometry()));
    let make = if is_new { case.entry.create } else { case.entry.open };
    make(Medium::Nand(Box::new(Hooked { chip, hook })), &options)
}

/// A chip with an index that was left when all it holds was acknowledged, what that is, and the
/// pages in which something stands.
fn left(case: &Case) -> (SimulatedNand, Model, Vec<Page>) {
    // Without durability a case has a quarter of the room.
    let bytes = if case.durability == Durability::None { 192 << 10 } else { 48 << 10 };
    let Storage::Nand(mut chip) = case.storage(bytes) else { panic!("it is on a chip") };
    let programmed = Programmed::default();
    let mut index = open(case, &mut chip, programmed.clone(), true).unwrap();
    let history = History { keys: KEYS, durability: case.durability };
    let mut model = Model::new();
    for number in 1..STEPS[1] {
        if number == STEPS[0] && case.durability != Durability::None {
            index.checkpoint(None).unwrap();
        }
        history.step(&mut *index, &mut model, number).unwrap();
    }
    history.make_last(&mut *index).unwrap();
    drop(index);
    let pages = programmed.0.lock().unwrap().iter().copied().collect();
    (*chip, model, pages)
}

/// What comes of each byte of an index flipped: how often, and what was wrong.
fn flip_all(case: &Case) -> (BTreeMap<Outcome, u32>, Vec<String>) {
    let (chip, model, pages) = left(case);
    let (page_bytes, spare) = (chip.geometry().page_bytes(), chip.geometry().spare_bytes());
    let mut outcomes = BTreeMap::new();
    let mut wrong = Vec::new();
    for page in pages {
        for byte in 0..(page_bytes + spare) as usize {
            let mut chip = chip.clone();
            let index = open(case, &mut chip, Flip { page, byte }, false);
            let found = index.and_then(|mut index| judge(&mut *index));
            let outcome = Outcome::of(found, &model, false);
            *outcomes.entry(outcome).or_insert(0) += 1;
            if outcome == Outcome::Wrong {
                wrong.push(format!("{}: byte {byte} of page {}", case.name(), page.0));
            }
        }
    }
    (outcomes, wrong)
}

#[test]
fn each_byte_flipped_in_turn_costs_nothing_or_is_told() {
    let cases: Vec<Case> = sample(5, cases_on_small_chips(TREES)).collect();
    let (left, right) = cases.split_at(cases.len() / 2);
    let play = |cases: &[Case]| -> Vec<_> {
        cases.iter().map(|case| (case.name(), flip_all(case))).collect()
    };
    let all: Vec<_> = std::thread::scope(|scope| {
        let other = scope.spawn(|| play(right));
        let mut all = play(left);
        all.extend(other.join().unwrap());
        all
    });
    let mut wrong = Vec::new();
    for (name, (outcomes, of_case)) in all {
        println!("{name}: {outcomes:?}");
        let told = [Outcome::Error, Outcome::Checked].map(|it| outcomes.get(&it).unwrap_or(&0));
        assert!(told.into_iter().sum::<u32>() > 50, "{name}: {outcomes:?}");
        wrong.extend(of_case);
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
