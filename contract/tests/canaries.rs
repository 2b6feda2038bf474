//! Torture finds every mistake that is made on purpose in the mechanism of recovery, and without
//! them the same cells are clean: so its silence says something.
//!
//! `cargo test -p flashtree-contract --features canaries --test canaries`

#![cfg(feature = "canaries")]
#![allow(clippy::panic, reason = "a test fails by panicking")]

use flashtree_contract::torture::{Cell, Loss, Plan, Row, Stand, cells, torture};
use index::Durability;
use store::Canary;

/// Cuts within which a mistake is found.
const CUTS: u64 = 1000;

/// Cells on which a mistake can show: those with few sizes, on devices that lose what was not
/// flushed.
fn suitable(canary: Option<Canary>) -> Vec<Cell> {
    let mut cells = cells();
    cells.retain(|cell| {
        let is_journal = matches!(
            canary,
            Some(
                Canary::AcknowledgedBeforeFlush
                    | Canary::HalfBatchReplayed
                    | Canary::TornPageAccepted
                    | Canary::StaleJournalReplayed
            )
        );
        cell.parameters.is_empty()
            && cell.page_bytes == 512
            && matches!(
                cell.stand,
                Stand::Disk(Loss::Lost | Loss::Mixed | Loss::Torn) | Stand::File
            )
            && (!is_journal || cell.durability >= Durability::Batch)
    });
    for cell in &mut cells {
        cell.canary = canary;
    }
    cells
}

fn run(canary: Option<Canary>) -> Vec<Row> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    torture(&Plan { cells: suitable(canary), cuts: CUTS * 9 / 10, seed: 1, jobs }, &())
}

/// Fails if the mistake is not found.
fn assert_found(canary: Canary) {
    let rows = run(Some(canary));
    let cuts: u64 = rows.iter().map(|row| row.witness.cuts).sum();
    // A history that was begun is brought to its end.
    assert!(cuts <= CUTS, "{cuts} cuts");
    let failures: u64 = rows.iter().map(|row| row.failures).sum();
    let first = rows.iter().find_map(|row| row.first.as_ref());
    let Some((id, failure)) = first else {
        panic!("{canary:?} was not found within {cuts} cuts");
    };
    println!("{canary:?} was found {failures} times: {}\n  {failure}", id.command());
}

#[test]
fn without_a_mistake_the_same_cells_are_clean() {
    for row in run(None) {
        assert!(row.first.is_none(), "{}: {:?}", row.cell, row.first.map(|(_, failure)| failure));
    }
}

#[test]
fn a_checkpoint_written_before_its_pages_is_found() {
    assert_found(Canary::RecordBeforePages);
}

#[test]
fn an_image_written_after_its_page_was_overwritten_is_found() {
    assert_found(Canary::UndoAfterOverwrite);
}

#[test]
fn a_pinned_page_that_is_used_again_is_found() {
    assert_found(Canary::PinnedPageReused);
}

#[test]
fn a_freed_page_that_is_used_before_the_checkpoint_is_found() {
    assert_found(Canary::FreedPageReused);
}

#[test]
fn an_update_acknowledged_before_the_flush_is_found() {
    assert_found(Canary::AcknowledgedBeforeFlush);
}

#[test]
fn half_a_batch_that_is_replayed_is_found() {
    assert_found(Canary::HalfBatchReplayed);
}

#[test]
fn a_torn_page_that_is_accepted_is_found() {
    assert_found(Canary::TornPageAccepted);
}

#[test]
fn a_stale_journal_that_is_replayed_is_found() {
    assert_found(Canary::StaleJournalReplayed);
}

#[test]
fn a_root_record_of_the_wrong_checkpoint_is_found() {
    assert_found(Canary::WrongRootRecord);
}

#[test]
fn a_page_trimmed_before_the_checkpoint_that_frees_it_is_found() {
    assert_found(Canary::TrimBeforeCheckpoint);
}
