//! Every tree of the registry, on everything that it can stand on, keeps what it acknowledged when
//! the power is cut: a short run over all cells.
//!
//! The long one is the program's: `flashtree torture --cuts 100000`.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use flashtree_contract::torture::{Plan, Row, Witness, cells, torture};
use sim::FaultLog;

/// Tortures all cells with about `cuts` cuts in all.
fn run(cuts: u64, seed: u64) -> Vec<Row> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    torture(&Plan { cells: cells(), cuts, seed, jobs }, &())
}

/// Fails with the commands that play the failures again.
fn assert_clean(rows: &[Row]) {
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|row| row.first.as_ref())
        .map(|(id, failure)| format!("{failure}\n  {}", id.command()))
        .collect();
    assert!(failed.is_empty(), "{} cells failed\n{}", failed.len(), failed.join("\n"));
}

/// On every kind of device some histories contain a split, a merge, a checkpoint, a delete and a
/// batch and, on chips, a reclamation; one that can't be brought to it is a failure of its cell.
fn assert_complete(rows: &[Row]) {
    let mut complete = BTreeMap::new();
    for row in rows {
        let stand = row.cell.split('/').nth(1).unwrap_or_default();
        *complete.entry(stand).or_insert(0) += row.witness.complete;
    }
    println!("histories that contain everything, by device: {complete:?}");
    assert!(complete.len() > 4 && complete.values().all(|count| *count > 0), "{complete:?}");
}

#[test]
fn nothing_acknowledged_is_lost_in_any_cell() {
    let rows = run(30_000, 2);
    let (mut all, mut faults) = (Witness::default(), FaultLog::default());
    for row in &rows {
        all += row.witness;
        faults += row.faults;
    }
    println!("{} cells\n{all}", rows.len());
    for (kind, count) in faults.iter() {
        println!("{count:>10}  {kind}");
    }
    assert_clean(&rows);
    assert_eq!(rows.len(), cells().len());
    assert!(all.cuts >= 30_000 && rows.iter().all(|row| row.witness.cuts > 0));
    assert_complete(&rows);
    for (words, count) in all.counts() {
        // What nothing can be promised for: whether chips wear out in so short a time.
        assert!(count > 0 || words == "devices worn out", "there were no {words}\n{all}");
    }
}

#[test]
fn the_same_seed_gives_the_same_histories() {
    let run = |jobs| {
        let some: Vec<_> = cells().into_iter().step_by(97).collect();
        torture(&Plan { cells: some, cuts: 300, seed: 5, jobs }, &())
    };
    let witnesses = |rows: Vec<Row>| rows.into_iter().map(|row| row.witness).collect::<Vec<_>>();
    assert_eq!(witnesses(run(1)), witnesses(run(2)));
}
