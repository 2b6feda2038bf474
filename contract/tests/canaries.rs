//! Torture finds every mistake that is made on purpose in the mechanism of recovery within 1,000
//! cuts, and without them the same histories are clean: so its silence says something.
//!
//! `cargo test -p flashtree-contract --features canaries --test canaries -- --nocapture`

#![cfg(feature = "canaries")]
#![allow(clippy::panic, reason = "a test fails by panicking")]

use flashtree_contract::torture::{Cell, Loss, Plan, Row, Stand, cells, torture};
use index::Durability;
use store::Canary;

/// Cuts within which a mistake is found.
const CUTS_MOST: u64 = 1000;

/// Cuts in one cell before the next has its turn.
const CUTS_IN_A_CELL: u64 = 90;

/// Every mistake, and what it is.
const CANARIES: [(Canary, &str); 10] = [
    (Canary::RecordBeforePages, "checkpoint record before its pages"),
    (Canary::UndoAfterOverwrite, "undo image after its overwrite"),
    (Canary::PinnedPageReused, "pinned page reused"),
    (Canary::FreedPageReused, "freed page reused before the checkpoint"),
    (Canary::AcknowledgedBeforeFlush, "acknowledged before flushed"),
    (Canary::HalfBatchReplayed, "half a batch replayed"),
    (Canary::TornPageAccepted, "torn page accepted"),
    (Canary::StaleJournalReplayed, "stale journal replayed"),
    (Canary::WrongRootRecord, "root record of the wrong checkpoint"),
    (Canary::TrimBeforeCheckpoint, "trim, and so erase, before the checkpoint that frees it"),
];

/// True if the mistake is one in the journal.
fn is_in_journal(canary: Canary) -> bool {
    matches!(
        canary,
        Canary::AcknowledgedBeforeFlush
            | Canary::HalfBatchReplayed
            | Canary::TornPageAccepted
            | Canary::StaleJournalReplayed
    )
}

/// Cells on which a mistake can show: one of each kind of device that loses what was not flushed.
fn suitable(canary: Option<Canary>) -> Vec<Cell> {
    let mut cells = cells();
    cells.retain(|cell| {
        let stands = match cell.stand {
            Stand::Disk(loss) => loss != Loss::Kept,
            Stand::Ftl { entry, spare } => entry.name == "page-map" && spare,
            Stand::Nand { .. } | Stand::File => true,
        };
        let has_mechanism = match canary {
            Some(canary) if is_in_journal(canary) => cell.durability == Durability::Batch,
            _ => cell.durability == Durability::Checkpoint,
        };
        let is_small = cell.page_bytes == 512 && cell.parameters.is_empty();
        let shapes = ["4+4", "variable"];
        stands && has_mechanism && is_small && shapes.contains(&cell.shape.name)
    });
    for cell in &mut cells {
        cell.canary = canary;
    }
    cells
}

fn run(cell: Cell) -> Row {
    let plan = Plan { cells: vec![cell], cuts: CUTS_IN_A_CELL, seed: 1, jobs: 1 };
    torture(&plan, &()).remove(0)
}

/// The cut at which the mistake is found, and how; `None` if it is not.
fn cut_that_finds(canary: Canary) -> Option<(u64, String)> {
    let mut cuts = 0;
    for cell in suitable(Some(canary)) {
        let row = run(cell);
        if let (Some((id, failure)), Some(after)) = (row.first, row.first_after) {
            // Some show before the first cut, when an index is opened again.
            return Some((cuts + after.max(1), format!("{id}\n    {failure}")));
        }
        cuts += row.witness.cuts;
        if cuts > CUTS_MOST {
            break;
        }
    }
    None
}

#[test]
fn every_mistake_is_found_within_a_thousand_cuts() {
    let mut silent = Vec::new();
    for (canary, words) in CANARIES {
        match cut_that_finds(canary).filter(|(cut, _)| *cut <= CUTS_MOST) {
            Some((cut, how)) => println!("{words}: found at cut {cut}, {how}"),
            None => silent.push(words),
        }
    }
    println!("canaries caught: {}", CANARIES.len() - silent.len());
    assert!(silent.is_empty(), "not found within {CUTS_MOST} cuts: {}", silent.join(", "));
}

#[test]
fn without_a_mistake_the_same_histories_are_clean() {
    let (mut cuts, mut histories) = (0, 0);
    for kind in [Canary::AcknowledgedBeforeFlush, Canary::RecordBeforePages] {
        for mut cell in suitable(Some(kind)) {
            cell.canary = None;
            let row = run(cell);
            assert!(row.first.is_none(), "{}: {:?}", row.cell, row.first.map(|(_, what)| what));
            cuts += row.witness.cuts;
            histories += row.witness.devices;
        }
    }
    println!("without a canary: {cuts} cuts in {histories} histories are clean");
    assert!(cuts >= CUTS_MOST, "only {cuts} cuts");
}
