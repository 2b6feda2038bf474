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

/// Cells on which a mistake can show: one of each kind of device that loses what was not flushed.
fn suitable(canary: Option<Canary>) -> Vec<Cell> {
    let mut cells = cells();
    cells.retain(|cell| {
        let loses = match cell.stand {
            Stand::Disk(loss) => loss != Loss::Kept,
            Stand::Ftl { entry, spare } => entry.name == "page-map" && spare,
            Stand::Nand { .. } | Stand::File => true,
        };
        let is_disk = matches!(cell.stand, Stand::Disk(_));
        let can_show = match canary {
            // Pages that are given back as they were at the checkpoint are those of long values,
            // and on a disk more happens between two checkpoints.
            Some(Canary::FreedPageReused) => is_disk && cell.shape.name == "variable",
            // It takes a device that tears, or loses, what was written last.
            Some(Canary::TornPageAccepted) => {
                matches!(cell.stand, Stand::Disk(Loss::Torn))
                    && cell.durability == Durability::Every
            }
            Some(Canary::AcknowledgedBeforeFlush) => {
                is_disk && cell.durability == Durability::Every
            }
            Some(Canary::HalfBatchReplayed | Canary::StaleJournalReplayed) => {
                cell.durability == Durability::Batch
            }
            _ => cell.durability == Durability::Checkpoint,
        };
        let is_small = cell.page_bytes == 512 && cell.parameters.is_empty();
        let shapes = ["4+4", "variable"];
        loses && can_show && is_small && shapes.contains(&cell.shape.name)
    });
    for cell in &mut cells {
        cell.canary = canary;
    }
    cells
}

/// The seed of all histories; `FLASHTREE_SEED` asks for another.
fn seed() -> u64 {
    std::env::var("FLASHTREE_SEED").map_or(1, |seed| seed.parse().unwrap_or(1))
}

/// Histories of one cell; each round has others.
fn run(cell: Cell, round: u64) -> Row {
    let seed = seed().wrapping_add(round << 32);
    let plan = Plan { cells: vec![cell], cuts: CUTS_IN_A_CELL, seed, jobs: 1 };
    torture(&plan, &()).remove(0)
}

/// The cut at which the mistake is found, and how; `None` if it is not.
fn cut_that_finds(canary: Canary) -> Option<(u64, String)> {
    let (mut cuts, cells) = (0, suitable(Some(canary)));
    for round in 0..CUTS_MOST {
        for cell in &cells {
            let row = run(cell.clone(), round);
            if let (Some((id, failure)), Some(after)) = (row.first, row.first_after) {
                // Some show before the first cut, when an index is opened again.
                return Some((cuts + after.max(1), format!("{id}\n    {failure}")));
            }
            cuts += row.witness.cuts;
            if cuts > CUTS_MOST {
                return None;
            }
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
    let seed = seed();
    assert!(silent.is_empty(), "not found with FLASHTREE_SEED={seed}: {}", silent.join(", "));
}

#[test]
fn without_a_mistake_the_same_histories_are_clean() {
    let (mut cuts, mut histories) = (0, 0);
    let kinds =
        [Canary::AcknowledgedBeforeFlush, Canary::RecordBeforePages, Canary::FreedPageReused];
    for kind in kinds {
        for mut cell in suitable(Some(kind)) {
            cell.canary = None;
            let row = run(cell, 0);
            assert!(row.first.is_none(), "{}: {:?}", row.cell, row.first.map(|(_, what)| what));
            cuts += row.witness.cuts;
            histories += row.witness.devices;
        }
    }
    println!("without a canary: {cuts} cuts in {histories} histories are clean");
    assert!(cuts >= CUTS_MOST, "only {cuts} cuts");
}
