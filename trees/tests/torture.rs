//! Every tree of the registry, on everything that it can stand on, keeps what it acknowledged when
//! the power is cut: a short run over all cells.
//!
//! The long one is the program's: `flashtree torture --cuts 100000`.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use contract::torture::{Plan, ReplayId, Row, Witness, assert_clean, cells, replay, torture};
use flashtree_trees::TREES;
use sim::FaultLog;

/// Tortures all cells with about `cuts` cuts in all.
fn run(cuts: u64, seed: u64) -> Vec<Row> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    torture(&Plan { cells: cells(TREES), cuts, seed, jobs }, &())
}

/// On every kind of device some histories contain a split, a merge or an emptied node, a
/// checkpoint, a delete and a batch and, on chips, a reclamation; one that can't be brought to it
/// is a failure of its cell.
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
    let cuts = 30_000 / contract::share(2) as u64;
    let rows = run(cuts, 2);
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
    assert_eq!(rows.len(), cells(TREES).len());
    assert!(all.cuts >= cuts && rows.iter().all(|row| row.witness.cuts > 0));
    assert_complete(&rows);
    for (words, count) in all.counts() {
        // What nothing can be promised for: whether chips wear out in so short a time.
        let is_rare = words == "devices worn out";
        // Only trees with levels of runs tell of these.
        let is_absent =
            words == "cuts inside a merge of runs" && flashtree_trees::find("fd-tree").is_none();
        assert!(count > 0 || is_rare || is_absent, "there were no {words}\n{all}");
    }
}

#[test]
fn the_same_seed_gives_the_same_histories() {
    let run = |jobs| {
        let some: Vec<_> = cells(TREES).into_iter().step_by(97).collect();
        torture(&Plan { cells: some, cuts: 300, seed: 5, jobs }, &())
    };
    let witnesses = |rows: Vec<Row>| rows.into_iter().map(|row| row.witness).collect::<Vec<_>>();
    assert_eq!(witnesses(run(1)), witnesses(run(2)));
}

/// What is demanded of a history is what the tree says that deletes do: these trees merge no nodes
/// on raw flash, but give up those in which nothing is left.
#[test]
fn histories_on_raw_flash_are_complete_by_what_the_tree_says_that_deletes_do() {
    for tree in ["b-plus", "mu", "mu-star"] {
        let mut all = Witness::default();
        let cells =
            ["nand/512/8+8/checkpoint", "nand/512/4+4/every", "nand+spare/512/variable/batch"];
        for (cell, seed) in cells.iter().flat_map(|cell| (0..6).map(move |seed| (cell, seed))) {
            let seed = 1_000_003 + seed;
            let id = format!("{tree}/{cell}@each:{seed}:0");
            let row = replay(&ReplayId::parse(TREES, &id).unwrap());
            let failure = row.first.map(|(id, failure)| format!("{}: {failure}", id.command()));
            assert_eq!(failure, None);
            all += row.witness;
        }
        assert!(all.emptied > 0 && all.merges == 0, "{tree}\n{all}");
    }
}

/// What was refused stood on the chip whole, with the sequence of what was written in its place.
/// And an erase in one opening took away what told the next one that something had come. A torn
/// page of the journal was completed by the next torn one; names took the room that closing needed.
/// A checkpoint in a replay fell between a long value's pages and its entry. Another fell inside a
/// batch that was in no journal. A merge that failed while an update was let in went on. A header
/// of the undo log that could not be read, for it was torn, kept an index closed. Blocks that had
/// refused a program were not marked before the power went, and were taken one after the other. A
/// checkpoint in a replay counted the change that was in hand as made.
#[test]
fn cuts_that_once_left_an_index_damaged_leave_it_whole() {
    for id in [
        "mu/nand/4096/8+4/checkpoint@life:11000033:30",
        "ipl/nand+spare/4096/8+4/checkpoint@each:11000034:1:2",
        "la-tree/disk-torn/512/4+4/every@each:7000023:33",
        "la-tree/file/512/4+4/batch@life:2000006:36",
        "b-plus:waiting=0.75/dac+spare/2048/variable/every@life:77000231:10",
        "flat-tree/fast/2048/8+4/every@life:1000003:40",
        "flat-tree/disk-kept/2048/8+8/batch@life:7000021:23",
        "lsm:deamortized=on/fast/512/4+4/batch@life:5501016503:15",
        "fd-tree/block-map/512/4+4/checkpoint@life:61000184:30",
        "lsm:ratio=2,head=16384/page-map/2048/8+4/checkpoint@life:61000183:9",
        "fd-tree:ratio=2,head=32768/dac+spare/4096/8+4/checkpoint@life:43000129:40",
    ] {
        let row = replay(&ReplayId::parse(TREES, id).unwrap());
        let failure = row.first.map(|(id, failure)| format!("{}: {failure}", id.command()));
        assert_eq!(failure, None);
    }
}
