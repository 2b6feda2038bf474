//! Torture finds every mistake that is made on purpose in the mechanism of recovery within 1,000
//! cuts, and without them the same histories are clean: so its silence says something.
//!
//! `cargo test -p flashtree-trees --features canaries --test canaries -- --nocapture`

#![cfg(feature = "canaries")]
#![allow(clippy::panic, reason = "a test fails by panicking")]

use contract::torture::{Cell, Loss, Plan, Row, Stand, cells, torture};
use flashtree_trees::TREES;
use index::Durability;
use store::Canary;

/// Cuts within which a mistake is found.
const CUTS_MOST: u64 = 1000;

/// Cuts in one cell before the next has its turn: so few that every tree and shape has one.
const CUTS_IN_A_CELL: u64 = 60;

/// Every mistake, and what it is.
const CANARIES: [(Canary, &str); 11] = [
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
    (Canary::UpdateSkipped, "replay too late after a checkpoint inside a batch"),
];

/// Every mistake that the page log can make, on raw flash.
const ON_RAW_FLASH: [(Canary, &str); 9] = [
    (Canary::RecordBeforePages, "checkpoint record before its pages"),
    (Canary::PinnedPageReused, "pinned block erased"),
    (Canary::FreedPageReused, "freed block used again before the checkpoint"),
    (Canary::TrimBeforeCheckpoint, "freed block erased before the checkpoint"),
    (Canary::AcknowledgedBeforeFlush, "acknowledged before flushed"),
    (Canary::HalfBatchReplayed, "half a batch replayed"),
    (Canary::TornPageAccepted, "torn page accepted"),
    (Canary::StaleJournalReplayed, "stale journal replayed"),
    (Canary::WrongRootRecord, "root record of the wrong checkpoint"),
];

/// Every mistake that a tree can make that reclaims half of the chip at once.
const IN_HALVES: [(Canary, &str); 2] = [
    (Canary::TrimBeforeCheckpoint, "old half erased before the checkpoint"),
    (Canary::FreedPageReused, "old half used again before the checkpoint"),
];

/// Cells on which a mistake in reclaiming halves can show: one history in three reclaims a half.
fn suitable_in_halves(canary: Canary) -> Vec<Cell> {
    let mut cells = cells(TREES);
    cells.retain(|cell| {
        cell.entry.name == "la-tree"
            && matches!(cell.stand, Stand::Nand { .. })
            && cell.durability == Durability::Checkpoint
            && cell.page_bytes == 512
            && ["4+4", "variable"].contains(&cell.shape.name)
    });
    for cell in &mut cells {
        cell.canary = Some(canary);
    }
    cells
}

/// Cells on raw flash on which a mistake can show: those of the two trees that hand the mistakes
/// on, one by the log's order of pages, one by whole blocks.
fn suitable_on_raw_flash(canary: Canary) -> Vec<Cell> {
    let mut cells = cells(TREES);
    cells.retain(|cell| {
        let trees: &[&str] = match canary {
            // The list's blocks are given back when nothing of them is needed, or not at all.
            Canary::PinnedPageReused | Canary::FreedPageReused | Canary::TrimBeforeCheckpoint => {
                &["ipl"]
            }
            // Only pages of the log's order are kept back.
            Canary::RecordBeforePages => &["list"],
            _ => &["ipl", "list"],
        };
        let durability = match canary {
            Canary::TornPageAccepted | Canary::AcknowledgedBeforeFlush => Durability::Every,
            Canary::HalfBatchReplayed | Canary::StaleJournalReplayed => Durability::Batch,
            _ => Durability::Checkpoint,
        };
        let can_show = match cell.stand {
            // Where the tag is in front, a page whose first bytes were written has one.
            Stand::Nand { spare, parts: false } => !spare || canary != Canary::TornPageAccepted,
            _ => false,
        };
        can_show
            && trees.contains(&cell.entry.name)
            && cell.durability == durability
            && cell.page_bytes == 512
            && ["4+4", "variable"].contains(&cell.shape.name)
    });
    for cell in &mut cells {
        cell.canary = Some(canary);
    }
    cells
}

/// Cells on which a mistake can show: one of each kind of device that loses what was not flushed.
fn suitable(canary: Option<Canary>) -> Vec<Cell> {
    let mut cells = cells(TREES);
    cells.retain(|cell| {
        let loses = match cell.stand {
            Stand::Disk(loss) => loss != Loss::Kept,
            Stand::Ftl { entry, spare } => entry.name == "page-map" && spare,
            Stand::File => true,
            Stand::Nand { .. } => false,
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
            Some(
                Canary::HalfBatchReplayed | Canary::StaleJournalReplayed | Canary::UpdateSkipped,
            ) => cell.durability == Durability::Batch,
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

/// The cut at which the mistake that `cells` make is found, and how; `None` if it is not.
fn cut_that_finds(cells: &[Cell], most: u64) -> Option<(u64, String)> {
    let mut cuts = 0;
    for round in 0..most {
        for cell in cells {
            let row = run(cell.clone(), round);
            if let (Some((id, failure)), Some(after)) = (row.first, row.first_after) {
                // Some show before the first cut, when an index is opened again.
                return Some((cuts + after.max(1), format!("{id}\n    {failure}")));
            }
            cuts += row.witness.cuts;
            if cuts > most {
                return None;
            }
        }
    }
    None
}

/// Lets each mistake be found; returns how many were.
fn catch(
    canaries: &[(Canary, &'static str)],
    most: u64,
    suitable: impl Fn(Canary) -> Vec<Cell>,
) -> usize {
    let mut silent = Vec::new();
    for (canary, words) in canaries {
        match cut_that_finds(&suitable(*canary), most).filter(|(cut, _)| *cut <= most) {
            Some((cut, how)) => println!("{words}: found at cut {cut}, {how}"),
            None => silent.push(*words),
        }
    }
    let seed = seed();
    assert!(silent.is_empty(), "not found with FLASHTREE_SEED={seed}: {}", silent.join(", "));
    canaries.len() - silent.len()
}

#[test]
fn every_mistake_is_found_within_a_thousand_cuts() {
    println!("canaries caught: {}", catch(&CANARIES, CUTS_MOST, |canary| suitable(Some(canary))));
}

/// Mistakes that show in no history of a tree: those of pages that are given back as they were at
/// the checkpoint need long values, of which trees have the same, and those inside a batch need a
/// checkpoint there, which only trees of runs make.
const NOT_IN_EACH: [Canary; 2] = [Canary::FreedPageReused, Canary::UpdateSkipped];

#[test]
fn every_mistake_is_found_in_each_tree_over_sectors_within_three_thousand_cuts() {
    let canaries: Vec<_> =
        CANARIES.into_iter().filter(|(canary, _)| !NOT_IN_EACH.contains(canary)).collect();
    let mut caught = 0;
    for tree in ["bftl", "flashdb", "lazy-update"] {
        println!("{tree}:");
        caught += catch(&canaries, 3 * CUTS_MOST, |canary| {
            let mut cells = suitable(Some(canary));
            cells.retain(|cell| cell.entry.name == tree);
            cells
        });
    }
    println!("canaries caught in each tree: {caught}");
}

#[test]
fn every_mistake_of_the_page_log_is_found_within_a_thousand_cuts() {
    println!(
        "canaries caught on raw flash: {}",
        catch(&ON_RAW_FLASH, CUTS_MOST, suitable_on_raw_flash)
    );
}

#[test]
fn every_mistake_in_reclaiming_halves_is_found_within_three_thousand_cuts() {
    println!("canaries caught in halves: {}", catch(&IN_HALVES, 3 * CUTS_MOST, suitable_in_halves));
}

#[test]
fn without_a_mistake_the_same_histories_are_clean() {
    let (mut cuts, mut histories) = (0, 0);
    let kinds =
        [Canary::AcknowledgedBeforeFlush, Canary::RecordBeforePages, Canary::FreedPageReused];
    for kind in kinds {
        let on_raw_flash = suitable_on_raw_flash(kind).into_iter().chain(suitable_in_halves(kind));
        for mut cell in suitable(Some(kind)).into_iter().chain(on_raw_flash) {
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
