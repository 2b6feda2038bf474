//! The published figures of the mu*-Tree's paper (Ahn, Kang, Jung, Kim, Maeng, IEEE TC 2013),
//! beside ours: figures 7 and 8 from the equations, 11 to 19 from the trees on its chip.
//!
//! Each test prints a row a claim, with what is published, what is measured and whether it holds,
//! and at the end `mu-N: C of D hold`. A claim that does not hold is no failure of the test;
//! `./check claims` compares the rows with those that were seen before.
//!
//! ```text
//! cargo test --release -p flashtree-lab --test mu_figures mu_13 -- --ignored --nocapture
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "mu_figures/claims.rs"]
mod claims;
#[path = "mu_figures/files.rs"]
mod files;
#[path = "mu_figures/layers.rs"]
mod layers;
#[path = "mu_figures/mixes.rs"]
mod mixes;
#[path = "mu_figures/parameters.rs"]
mod parameters;
#[path = "mu_figures/stage.rs"]
mod stage;
#[path = "mu_figures/updates.rs"]
mod updates;
#[path = "mu_figures/work.rs"]
mod work;

use claims::Claims;
use mixes::Part;
use stage::{Stage, TREES};
use trees::mu::equations::{Setting, least_height};

/// The setting of figures 7 and 8.
const PAPER: Setting =
    Setting { fanout: 512.0, pages: 8192.0, updates: 1_000_000.0, read_us: 165.6, write_us: 905.8 };

/// What a share of a page may be off by: a step of the paper's plot.
const STEP: f64 = 0.01;

#[test]
fn mu_7_the_cost_of_an_update_over_the_leafs_share() {
    let mut claims = Claims::of("mu-7");
    let records = 1e6;
    let shares: Vec<f64> = (50..100).map(|percent| f64::from(percent) / 100.0).collect();
    let cost = |leaf: f64| PAPER.average_us(records, leaf);
    let least = shares.iter().copied().min_by(|one, other| cost(*one).total_cmp(&cost(*other)));
    let least = least.unwrap();
    claims.near("the least cost is at p1", (0.81, least), STEP);
    let height = |leaf: f64| least_height(PAPER.fanout, leaf, records);
    let jumps: Vec<f64> =
        shares.windows(2).filter(|it| height(it[0]) != height(it[1])).map(|it| it[1]).collect();
    for (place, published) in [0.82, 0.93, 0.95].into_iter().enumerate() {
        let ours = jumps.get(place).copied().unwrap_or(f64::NAN);
        claims.near("the height and the cost jump at p1", (published, ours), STEP);
    }
    let falls = shares.windows(2).filter(|it| height(it[0]) == height(it[1]));
    let falls = falls.filter(|it| height(it[0]).is_some()).all(|it| cost(it[1]) < cost(it[0]));
    claims.holds("within a height the cost falls as p1 grows", falls);
    println!("  {:.1} us an update at p1 {least}", cost(least));
    println!("  beside it the wandering B+-tree: {:.1} us", PAPER.wandering_average_us(records));
    assert_eq!(claims.end(), (5, 5));
}

#[test]
fn mu_8_the_best_leaf_and_height_over_the_number_of_records() {
    let mut claims = Claims::of("mu-8");
    // A third of a percent more each time.
    let counts = (0..4_145).map(|step| 1e4 * f64::exp(f64::from(step) / 300.0));
    let best: Vec<(f64, _)> =
        counts.filter_map(|count| Some((count, PAPER.best(count, 0.5)?))).collect();
    let jumps: Vec<_> = best.windows(2).filter(|it| it[0].1.height != it[1].1.height).collect();
    for (place, published) in [6.6e4, 2.3e6].into_iter().enumerate() {
        let ours = jumps.get(place).map_or(f64::NAN, |it| it[1].0);
        claims.near("the height grows at so many records", (published, ours), STEP * published);
    }
    let up = jumps.iter().all(|it| it[1].1.leaf > it[0].1.leaf + 0.05);
    claims.holds("p1 jumps up with each height", up && jumps.len() > 2);
    let falls = best.windows(2).filter(|it| it[0].1.height == it[1].1.height);
    let falls = falls.into_iter().all(|it| it[1].1.leaf <= it[0].1.leaf);
    claims.holds("within a height the best p1 falls as records are added", falls);
    for it in jumps {
        let (before, after) = (it[0].1, it[1].1);
        println!(
            "  at {:.3e} records: height {} to {}, p1 {:.3} to {:.3}",
            it[1].0, before.height, after.height, before.leaf, after.leaf
        );
    }
    assert_eq!(claims.end(), (4, 4));
}

/// Figure 11: ten thousand to so many random records.
fn leaf_share(most: u32) {
    let mut claims = Claims::of("mu-11");
    let (course, _) = stage::grow(&Stage::paper("mu-star", 64 << 20), most, &[]);
    let mut before = None;
    let (mut starts, mut ends, mut steady) = (Vec::new(), Vec::new(), true);
    for (records, layout) in &course {
        match before {
            Some((_, last)) if layout.height > stage::Layout::height(&last) => {
                ends.push(last);
                starts.push((*records, *layout));
            }
            Some((_, last)) => steady &= layout.leaf <= last.leaf && layout.height == last.height,
            None => {}
        }
        before = Some((*records, *layout));
    }
    let last = course.last().unwrap().1;
    for (records, start) in &starts {
        println!("  height {} from {records} records on, p1 {:.4}", start.height, start.leaf);
        claims.near("a height begins with p1 = alpha", (0.9, start.leaf), STEP);
    }
    // The first page of all has one node.
    for end in ends.iter().skip(1) {
        claims.near("a height ends with p1 = beta", (0.5, end.leaf), STEP);
    }
    claims.holds("between heights p1 only falls", steady);
    println!("  {most} records: height {}, p1 {:.4}", last.height, last.leaf);
    for count in [10_000, 30_000, 100_000, 300_000, 1_000_000] {
        let place = course.partition_point(|(records, _)| *records <= count).saturating_sub(1);
        let (now, model) = (course[place].1, PAPER.best(f64::from(count), 0.5).unwrap());
        println!(
            "  {count:>9} records: height {} p1 {:.3}; full nodes (figure 8): height {} p1 {:.3}",
            now.height, now.leaf, model.height, model.leaf
        );
    }
    let earlier = starts.iter().all(|(records, start)| {
        PAPER
            .best(f64::from(*records), 0.5)
            .is_some_and(|best| best.height <= u32::from(start.height))
    });
    claims.holds("the tree grows no later than the model, whose nodes are full", earlier);
    let (held, all) = claims.end();
    assert_eq!(held, all);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_11_the_leafs_share_while_a_million_records_go_in() {
    leaf_share(1_000_000);
}

/// Bytes of nodes that each tree caches while pages and heights are counted: what a hit spares is
/// a read and its check. Twice as many would spare more reads, and be slower to reach.
const CACHED_BYTES: u64 = 1 << 20;

/// Bytes of the chip for each record: a gigabyte for ten million, half of the paper's chip. What
/// lives, in mu-Tree at most a quarter, is seldom moved, which has no part in pages and heights.
const CHIP_BYTES_EACH: u64 = 104;

/// Figure 12: pages and heights of the three trees.
fn space(records: u32) {
    let mut claims = Claims::of("mu-12");
    let started = std::time::Instant::now();
    let points: Vec<u32> =
        (1..=10u64).map(|tenth| (u64::from(records) * tenth / 10) as u32).collect();
    let capacity = (u64::from(records) * CHIP_BYTES_EACH).max(64 << 20);
    let pace = stage::Pace::of(&TREES);
    let grown = stage::all(&TREES, |tree| {
        let runner = pace.runner(tree);
        let stage = Stage::paper(tree, capacity).caching(CACHED_BYTES);
        stage::grow_in_turn(&stage, records, &points, |number| runner.turn(number))
    });
    println!(
        "  {:>9} {:>16} {:>16} {:>16} {:>8}",
        "records", TREES[0], TREES[1], TREES[2], "figure 8"
    );
    for (place, point) in points.iter().enumerate() {
        let cell = |tree: usize| {
            let (pages, height) = grown[tree].1[place];
            format!("{pages} / {height}")
        };
        let best = PAPER.best(f64::from(*point), 0.5).unwrap().height;
        println!("  {point:>9} {:>16} {:>16} {:>16} {best:>8}", cell(0), cell(1), cell(2));
    }
    let pages = |tree: usize| grown[tree].1.last().unwrap().0 as f64;
    let (mu, star) = (pages(1) / pages(0), pages(2) / pages(0));
    println!("  pages of mu over b-plus: {mu:.2}; of mu-star over b-plus: {star:.2}");
    claims.near("mu has nearly twice the pages of the B+-tree", (2.0, mu), 0.2);
    claims.holds("mu* has slightly more pages than the B+-tree", star > 1.0 && star < mu);
    // The first course is all that the B+-tree shows: its height.
    let heights = |tree: usize| stage::heights(&grown[tree].0);
    for (tree, name) in TREES.iter().enumerate() {
        println!("  {name}: {}", stage::show_heights(&heights(tree)));
    }
    let later = stage::is_later(&heights(2), &heights(1));
    claims.holds("mu* grows in height later than mu", later);
    let lower = stage::is_later(&heights(0), &heights(1));
    claims.holds("the B+-tree grows in height later than mu", lower);
    println!("mu-12 took {:.1} s", started.elapsed().as_secs_f64());
    if !later {
        // The cause, by an ablation: without the adaptive layout mu* grows as mu does.
        let mut frozen = Stage::paper("mu-star", capacity);
        frozen.given.extend([("alpha", "0.5"), ("beta", "0.5")]);
        let (course, _) = stage::grow(&frozen, records.min(500_000), &[]);
        let frozen = stage::heights(&course);
        println!("  mu-star with alpha = beta = 0.5: {}", stage::show_heights(&frozen));
        let is_cause = stage::is_later(&frozen, &heights(2));
        let cause =
            if is_cause { "leaves that shrink split before they are full" } else { "unknown" };
        println!("  cause: {cause}");
    }
    claims.end();
}

#[test]
#[ignore = "it takes two minutes: run it in a release build"]
fn mu_12_pages_and_heights_of_ten_million_records() {
    space(10_000_000);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_12_in_short() {
    space(500_000);
}

#[test]
#[ignore = "it takes minutes: run it in a release build"]
fn mu_13_a_million_updates_in_16_mb() {
    updates::figure_13(&[100_000, 200_000, 300_000, 400_000], 1_000_000, 5);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_13_in_short() {
    updates::figure_13(&[100_000, 400_000], 200_000, 1);
}

#[test]
#[ignore = "it takes a minute: run it in a release build"]
fn mu_14_counts_of_the_six_traces() {
    mixes::figure_14(Part { of_steady: 10, of_files: 1, of_lookups: 10 }, true);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_14_in_short() {
    mixes::figure_14(Part { of_steady: 100, of_files: 10, of_lookups: 10 }, false);
}

#[test]
#[ignore = "it takes a minute: run it in a release build"]
fn mu_15_alpha_beta_and_delta_one_at_a_time() {
    parameters::figure_15(&[(100_000, 200_000), (300_000, 200_000)]);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_15_in_short() {
    parameters::figure_15(&[(100_000, 50_000)]);
}

#[test]
#[ignore = "it takes a minute: run it in a release build"]
fn mu_16_static_layouts_and_the_adaptive_one() {
    parameters::figure_16(3, 1_000_000);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_16_in_short() {
    parameters::figure_16(2, 20_000);
}

#[test]
#[ignore = "it takes half a minute: run it in a release build"]
fn mu_17_caches_of_0_to_256_kib() {
    mixes::figure_17(20);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_17_in_short() {
    mixes::figure_17(200);
}

#[test]
#[ignore = "it takes a minute: run it in a release build"]
fn mu_18_caches_of_32_kib_against_the_b_plus_tree() {
    mixes::figure_18(Part { of_steady: 20, of_files: 1, of_lookups: 1 });
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_18_in_short() {
    mixes::figure_18(Part { of_steady: 400, of_files: 20, of_lookups: 1 });
}

#[test]
#[ignore = "it takes half a minute: run it in a release build"]
fn mu_19_beside_a_b_plus_tree_over_dac_and_fast() {
    layers::figure_19(&[100_000, 200_000, 300_000, 400_000], 300_000);
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn mu_19_in_short() {
    layers::figure_19(&[100_000], 20_000);
}
