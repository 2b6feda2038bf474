//! A page of the page log whose program was refused may stand on the chip whole: what is written
//! in its place counts, and nothing else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;

use device::{Cause, Geometry, NandCosts, Page};
use flashtree_store::{Durability, PageKind, PageLog, PageLogOptions, Recovery, Result};
use sim::{Cut, Failure, FaultKind, FaultPlan, SimulatedNand};

const CAUSE: Cause = Cause::Update;
const KIND: PageKind = PageKind::Tree(0);

/// Pages of the tree between two checkpoints.
const WRITES: u32 = 3;

/// Operations of a history at most: the log goes round the chip several times.
const OPERATIONS: u64 = 300;

fn options() -> PageLogOptions {
    PageLogOptions { durability: Durability::Checkpoint, ..PageLogOptions::default() }
}

/// A chip that refuses one program, the first from operation `at` on, and is cut at operation
/// `cut`.
fn refusing(spare: u32, at: u64, cut: Option<Cut>) -> SimulatedNand {
    let plan =
        FaultPlan { refused_program: Failure::at(at), power_cut: cut, ..FaultPlan::seeded(at) };
    let geometry = Geometry::new(512, 4, 9).unwrap().with_spare(spare).unwrap();
    SimulatedNand::new(geometry, NandCosts::default()).with_faults(plan)
}

/// The root records of the last checkpoint that was made, and of the one that was being made.
#[derive(Default)]
struct Told {
    last: Vec<u8>,
    next: Vec<u8>,
}

/// Writes pages of a tree that is its newest page, and checkpoints that name it, until the power is
/// cut.
fn play(chip: &mut SimulatedNand, told: &mut Told) -> Result<()> {
    let mut log = PageLog::create(Box::new(chip), &options())?;
    let geometry = log.geometry();
    let mut bytes = vec![0xA5; geometry.page_bytes() as usize];
    let (mut next, mut block) = (Vec::new(), None);
    for write in 0.. {
        let page: Page = loop {
            log.reserve(1, &mut next, CAUSE)?;
            match log.program(next[0], &mut bytes, KIND, CAUSE) {
                Err(error) if error.is_refusal() => log.release(geometry.block_of(next[0])),
                programmed => break programmed.map(|()| next[0])?,
            }
        };
        let now = geometry.block_of(page);
        if let Some(old) = block.replace(now).filter(|old| *old != now) {
            log.release(old);
        }
        if write % WRITES == 0 {
            told.next = page.0.to_le_bytes().to_vec();
            log.checkpoint(&told.next, None)?;
            told.last.clone_from(&told.next);
        }
    }
    Ok(())
}

/// Fails if two pages have the same sequence.
fn check_sequences(log: &mut PageLog<'_>, what: &str) {
    let mut known = BTreeSet::new();
    for page in (0..log.geometry().pages()).map(Page) {
        if let Some(tag) = log.tag(page, CAUSE).unwrap() {
            assert!(known.insert(tag.sequence), "{what}: {page:?} has a sequence that came before");
        }
    }
}

#[test]
fn a_refused_page_that_stands_there_whole_is_never_taken_for_the_one_written_in_its_place() {
    let mut refused = 0;
    for (spare, at) in (0..OPERATIONS).flat_map(|at| [(0, at), (16, at)]) {
        for behind in 1..10 {
            let what = format!("{spare} bytes of spare area, refused at {at}, cut {behind} later");
            let mut chip = refusing(spare, at, Some(Cut::Operation(at + behind)));
            let mut told = Told::default();
            let played = play(&mut chip, &mut told).unwrap_err();
            assert!(matches!(played, flashtree_store::Error::Device(device::Error::PowerCut)));
            if told.last.is_empty() {
                continue;
            }
            refused += chip.faults().count(FaultKind::RefusedProgram);
            chip.restore_power();
            chip.arm(FaultPlan::default());
            let opened = PageLog::open(Box::new(&mut chip));
            let (mut log, root) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(root == told.last || root == told.next, "{what}");
            check_sequences(&mut log, &what);
        }
    }
    assert!(refused > u64::from(WRITES) * OPERATIONS, "{refused}");
}
