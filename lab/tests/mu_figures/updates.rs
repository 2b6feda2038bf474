//! Figure 13: the time that a million updates take on trees of several sizes.

use super::claims::Claims;
use super::stage::{self, Stage, TREES};
use super::work::{Keys, Taken, Work, run_work};

/// Bytes of the chip.
const CHIP: u64 = 16 << 20;

/// One run of a tree; `None` if the chip is too small for it.
pub(crate) fn run(stage: &Stage, records: u32, updates: u32, seed: u64) -> Option<Taken> {
    run_work(stage, &Work { records, lookups: 0, updates, keys: Keys::Random }, seed)
}

/// The mean of all runs but the fastest and the slowest.
fn mean(stage: &Stage, records: u32, updates: u32, runs: u64) -> Option<Taken> {
    let mut taken: Vec<Taken> =
        (1..=runs).map_while(|seed| run(stage, records, updates, seed)).collect();
    if (taken.len() as u64) < runs {
        return None;
    }
    taken.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let middle = if taken.len() > 2 { &taken[1..taken.len() - 1] } else { &taken[..] };
    let seconds = middle.iter().map(|it| it.seconds).sum::<f64>() / middle.len() as f64;
    Some(Taken { seconds, ..middle[middle.len() / 2] })
}

fn show(records: u32, tree: &str, taken: Option<Taken>) {
    match taken {
        None => println!("  {records} records, {tree:>7}: more than it takes on this chip"),
        Some(it) => println!(
            "  {records} records, {tree:>7}: {:7.1} s, {:.2} reads and {:.2} programs an update, \
             {:.2} of them moves; height {}, {} live pages",
            it.seconds, it.reads, it.programs, it.moved, it.height, it.live
        ),
    }
}

/// Figure 13, with the wandering B+-tree beside it.
pub(crate) fn figure_13(sizes: &[u32], updates: u32, runs: u64) {
    let mut claims = Claims::of("mu-13");
    let taken = stage::all(&TREES, |tree| {
        let stage = Stage::paper(tree, CHIP);
        sizes.iter().map(|records| mean(&stage, *records, updates, runs)).collect::<Vec<_>>()
    });
    for (place, records) in sizes.iter().enumerate() {
        for (tree, name) in TREES.iter().enumerate() {
            show(*records, name, taken[tree][place]);
        }
    }
    let last = sizes.len() - 1;
    let time = |tree: usize, place: usize| taken[tree][place].map_or(f64::NAN, |it| it.seconds);
    let ahead = |place: usize| 100.0 * (time(1, place) / time(2, place) - 1.0);
    for (place, records) in sizes.iter().enumerate() {
        println!("  {records} records: mu* is ahead of mu by {:.0} %", ahead(place));
    }
    claims.gain("at 400,000 records mu* is ahead by percent", (56.0, ahead(last)), 5.6);
    claims.holds("mu* is ahead of mu at every size", (0..=last).all(|it| ahead(it) > 0.0));
    let grows = |tree: usize| time(tree, last) / time(tree, 0);
    claims.holds("the time of mu grows faster with the records", grows(1) > grows(2));
    let b_plus = (0..=last).filter(|it| taken[0][*it].is_some());
    let beside =
        b_plus.clone().count() > 0 && b_plus.into_iter().all(|it| time(2, it) < time(0, it));
    claims.holds("mu* is ahead of the wandering B+-tree wherever that fits", beside);
    if claims.end().0 < 4 {
        find_cause(sizes[last], updates);
    }
}

/// What mu* is ahead by on other chips and with other collection: one thing changed at a time.
fn find_cause(records: u32, updates: u32) {
    // Blocks of 512 KiB that the page log and an open block take of the chip.
    const KEPT: u64 = 5 << 19;
    let stages: [(&str, u64, &'static str); 4] = [
        ("as above", CHIP, "0.1"),
        ("collection begins at 1 % free", CHIP, "0.01"),
        ("16 MiB beside the blocks that the log keeps", CHIP + KEPT, "0.1"),
        ("both", CHIP + KEPT, "0.01"),
    ];
    for (what, bytes, collect) in stages {
        let time = |tree: &'static str| {
            let mut stage = Stage::paper(tree, bytes);
            stage.given.push(("collect", collect));
            run(&stage, records, updates, 1).map_or(f64::NAN, |it| it.seconds)
        };
        let times = stage::all(&TREES[1..], time);
        let ahead = 100.0 * (times[0] / times[1] - 1.0);
        println!("  cause? {what}: mu* is ahead by {ahead:.0} %");
    }
}
