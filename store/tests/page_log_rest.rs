//! Where a tree writes on in blocks of the last checkpoint, no cut of an opening takes away what
//! tells the next one that something came after that checkpoint.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use device::{Block, Cause, Geometry, NandCosts, Page};
use flashtree_store::{Durability, PageKind, PageLog, PageLogOptions, Recovery};
use sim::{Cut, Failure, FaultPlan, SimulatedNand};

const CAUSE: Cause = Cause::Update;
const KIND: PageKind = PageKind::Tree(0);

const PAGES_PER_BLOCK: u32 = 4;

/// What goes wrong with all blocks but those in use and the one that tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Nothing,
    Programs,
    Erases,
}

/// A chip with something in a block of the tree that came after the last checkpoint, and the block
/// that tells of it.
fn chip() -> (SimulatedNand, Block) {
    let geometry = Geometry::new(512, PAGES_PER_BLOCK, 7).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let options =
        PageLogOptions { durability: Durability::Checkpoint, ..PageLogOptions::default() };
    let mut log = PageLog::create(Box::new(&mut chip), &options).unwrap();
    let mut bytes = vec![0xA5; geometry.page_bytes() as usize];
    let first = geometry.first_page(log.allocate_block(CAUSE).unwrap());
    // With the first record, the one of the making, and what tells of a page, a block is full.
    log.program_at(first, &mut bytes, KIND, CAUSE).unwrap();
    log.checkpoint(b"0", None).unwrap();
    log.checkpoint(b"1", None).unwrap();
    // A part of a page has no tag that would tell of it.
    log.program_part(Page(first.0 + 1), 0, &[0xA5; 40], CAUSE).unwrap();
    let tells =
        |page: &Page| log.tag(*page, CAUSE).unwrap().is_some_and(|tag| tag.kind == PageKind::Piece);
    let page = (0..geometry.pages()).rev().map(Page).find(tells).unwrap();
    assert_eq!(geometry.place_of(page), 0, "it is in a block of its own");
    drop(log);
    chip.cut_power();
    chip.restore_power();
    (chip, geometry.block_of(page))
}

/// Opens the chip, and makes a checkpoint if something came after the last: true if it was made.
fn open(chip: &mut SimulatedNand) -> bool {
    let Ok((mut log, root)) = PageLog::open(Box::new(chip)) else {
        return false;
    };
    assert!(root == b"1" && log.has_rest());
    log.checkpoint(b"2", None).is_ok()
}

#[test]
fn no_cut_of_an_opening_hides_that_something_came_after_the_checkpoint() {
    let (chip, tells) = chip();
    for refused in [Refused::Nothing, Refused::Programs, Refused::Erases] {
        let blocks: Vec<_> = (0..7).map(Block).filter(|block| *block != tells).collect();
        let of = |what| if refused == what { Failure::of(&blocks) } else { Failure::default() };
        let (mut cuts, mut hidden) = (0, Vec::new());
        for (at, seed) in (0..16).flat_map(|at| (0..20).map(move |seed| (at, seed))) {
            let mut chip = chip.clone();
            chip.arm(FaultPlan {
                power_cut: Some(Cut::Change(at)),
                refused_program: of(Refused::Programs),
                refused_erase: of(Refused::Erases),
                ..FaultPlan::seeded(seed)
            });
            if open(&mut chip) {
                break;
            }
            cuts += 1;
            chip.restore_power();
            chip.arm(FaultPlan::default());
            let (log, root) = PageLog::open(Box::new(&mut chip)).unwrap();
            if root == b"1" && !log.has_rest() {
                hidden.push((at, seed));
            }
        }
        println!("{refused:?} refused: {cuts} cuts");
        assert!(cuts >= 40, "{refused:?}: {cuts} cuts");
        assert!(hidden.is_empty(), "{refused:?}: cut at, and seed: {hidden:?}");
    }
}

#[test]
fn no_page_that_an_opening_does_not_see_has_a_sequence_that_comes_again() {
    let geometry = Geometry::new(512, PAGES_PER_BLOCK, 9).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let options =
        PageLogOptions { durability: Durability::Checkpoint, ..PageLogOptions::default() };
    let mut log = PageLog::create(Box::new(&mut chip), &options).unwrap();
    let mut bytes = vec![0xA5; geometry.page_bytes() as usize];
    let older = geometry.first_page(log.allocate_block(CAUSE).unwrap());
    log.program_at(older, &mut bytes, KIND, CAUSE).unwrap();
    log.checkpoint(b"1", None).unwrap();
    let newer = geometry.first_page(log.allocate_block(CAUSE).unwrap());
    log.program_at(newer, &mut bytes, KIND, CAUSE).unwrap();
    for place in 1..PAGES_PER_BLOCK {
        log.program_at(Page(older.0 + place), &mut bytes, KIND, CAUSE).unwrap();
    }
    drop(log);
    chip.cut_power();
    chip.restore_power();
    let (mut log, _) = PageLog::open(Box::new(&mut chip)).unwrap();
    let next = log.next_sequence();
    for page in (0..geometry.pages()).map(Page) {
        let tag = log.tag(page, CAUSE).unwrap();
        assert!(tag.is_none_or(|tag| tag.sequence < next), "{page:?}: {tag:?}, next {next}");
    }
}
