//! The figures 7 to 10 and 12 of the FD-tree paper (Li, He, Yang, Luo, Yi, VLDB 2010) on models of
//! its drives: what an operation of each tree costs.
//!
//! What is published in numbers is of 8 GB. Here it is 128 MB, a 64th and the smallest of the
//! figures, for the time that a run takes; the pool has 16 MB, as the paper's. BFTL is not among
//! the trees here, and what is published of it is left out.
//!
//! All trees are loaded, the B+-tree 70 % full, and get the same random insertions until the level
//! above the last one is half full; the last one is as full as 128 MB make it. The paper goes on
//! with the B+-tree until a fifth of its leaves have split. The ratio of levels is the one that the
//! cost model chooses for as many searches as insertions, in all figures. What merges is measured
//! from one merge into the last level to the next.
//!
//! ```text
//! ./check claims fd-7 fd-8 fd-9 fd-10
//! ```

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that reports")]

#[path = "mu_figures/claims.rs"]
mod claims;
#[path = "fd_tree_figures/stage.rs"]
mod stage;

use claims::Claims;

use stage::{DRIVES, Stage, second_half, whole_periods};

/// Operations of the B+-tree, and searches that are measured; the first half warms the pool.
const STEADY: u64 = 200_000;

/// By how much of what is published a gain may be less.
const MARGIN: f64 = 0.1;

/// The size of an index, and what follows from it.
#[derive(Clone, Copy)]
struct Scale {
    megabytes: u64,
    memory_bytes: u64,
    /// Insertions that fill half of what the level above the last one holds.
    before: u64,
    /// Changes in which that level is merged into the last one twice.
    changes: u64,
}

const WHOLE: Scale =
    Scale { megabytes: 128, memory_bytes: 16_000_000, before: 700_000, changes: 2_400_000 };
const SHORT: Scale =
    Scale { megabytes: 16, memory_bytes: 2_000_000, before: 20_000, changes: 400_000 };

/// A mix of operations.
#[derive(Clone, Copy)]
struct Mix {
    name: &'static str,
    /// Searches, insertions, deletions and updates in percent.
    parts: [u64; 4],
}

/// What an operation of each tree costs, in microseconds.
struct Costs {
    b_plus: f64,
    lsm: f64,
    fd_tree: f64,
}

impl Costs {
    fn of(device: &'static str, scale: Scale, mix: Mix) -> Self {
        let [searches, inserts, deletes, updates] = mix.parts;
        let text = format!("{searches}/{inserts}/{deletes}/{updates}");
        let stage = Stage {
            device,
            index_bytes: scale.megabytes * 1_000_000,
            memory_bytes: scale.memory_bytes,
            before: scale.before,
            operations: STEADY,
        };
        let is_merged = searches < 100;
        let operations = if is_merged { scale.changes * 100 / (100 - searches) } else { STEADY };
        let merged = Stage { operations, ..stage };
        let tuned = |tree| format!("{tree}:entries={}", scale.megabytes * 125_000);
        let merging = if is_merged { whole_periods } else { second_half };
        Costs {
            b_plus: cost("b-plus", &text, stage, second_half),
            lsm: cost(&tuned("lsm"), &text, merged, merging),
            fd_tree: cost(&tuned("fd-tree"), &text, merged, merging),
        }
    }

    fn over_b_plus(&self) -> f64 {
        self.b_plus / self.fd_tree
    }

    fn over_lsm(&self) -> f64 {
        self.lsm / self.fd_tree
    }

    fn is_fd_first(&self) -> bool {
        self.over_b_plus() > 1.0 && self.over_lsm() > 1.0
    }
}

/// What an operation of `tree` costs.
fn cost(tree: &str, mix: &str, stage: Stage, mean: fn(&[f64]) -> f64) -> f64 {
    let measured = stage.measured(tree, mix);
    let us = mean(&measured.course_us_per_op);
    let row = measured.row;
    let host = row.write_amplification.unwrap_or(0.0);
    let flash = row.flash_write_amplification.unwrap_or(0.0);
    println!(
        "{}, {mix}: {tree}, {} operations, {us:.2} us ({:.2} in all), host writes {host:.1} times, \
         flash {flash:.1}",
        stage.device, stage.operations, row.device_us_per_op,
    );
    us
}

/// A gain that is published as a range, or as one number.
fn gain(claims: &mut Claims, what: &str, (least, most): (f64, f64), ours: f64) {
    let margin = if least < most { (most - least) / 2.0 } else { least * MARGIN };
    claims.gain(what, (f64::midpoint(least, most), ours), margin);
}

/// What is published of a mix on both drives: gains over the B+-tree, and over LSM.
type Published = [Option<((f64, f64), (f64, f64))>; 2];

/// Claims that FD-tree is the first, by how much, where that is published.
fn first(claims: &mut Claims, scale: Scale, mix: Mix, published: Published) {
    for (device, published) in DRIVES.into_iter().zip(published) {
        let Some((b_plus, lsm)) = published else { continue };
        let costs = Costs::of(device, scale, mix);
        let what = |what: &str| format!("{device}, {}: {what}", mix.name);
        claims.holds(&what("FD-tree is the first"), costs.is_fd_first());
        gain(claims, &what("so many times as fast as the B+-tree"), b_plus, costs.over_b_plus());
        gain(claims, &what("so many times as fast as LSM"), lsm, costs.over_lsm());
        if device == DRIVES[1] && mix.name == "W-Search" {
            claims.holds(&what("the B+-tree is ahead of LSM"), costs.b_plus < costs.lsm);
        }
    }
}

fn fd_8(scale: Scale) {
    let mut claims = Claims::of("fd-8");
    for device in DRIVES {
        let costs = Costs::of(device, scale, Mix { name: "searches", parts: [100, 0, 0, 0] });
        let near = (1.0, costs.fd_tree / costs.b_plus);
        claims.near(&format!("{device}: a search costs so many of the B+-tree's"), near, MARGIN);
        let ahead = costs.fd_tree < costs.lsm;
        claims.holds(&format!("{device}: a search costs less than on LSM"), ahead);
    }
    claims.end();
}

fn fd_9(scale: Scale) {
    let mut claims = Claims::of("fd-9");
    for device in DRIVES {
        let costs = Costs::of(device, scale, Mix { name: "insertions", parts: [0, 100, 0, 0] });
        let times = costs.over_b_plus();
        let what = |what: &str| format!("{device}: an insertion {what}");
        claims.told(
            &what("is over ten times as fast as on the B+-tree"),
            "> 10",
            &format!("{times:.1}"),
            times > 10.0,
        );
        if device == DRIVES[0] {
            let what = what("is so many times as fast as on the B+-tree");
            gain(&mut claims, &what, (280.0, 280.0), times);
        }
        let times = costs.fd_tree / costs.lsm;
        claims.told(
            &what("costs so many times that on LSM"),
            "1.1 to 1.5",
            &format!("{times:.3}"),
            times <= 1.5,
        );
    }
    claims.end();
}

fn fd_10(scale: Scale) {
    let mut claims = Claims::of("fd-10");
    let mix = Mix { name: "half of each", parts: [50, 50, 0, 0] };
    let published = [((24.2, 24.2), (1.8, 1.8)), ((3.3, 3.3), (1.6, 1.6))];
    first(&mut claims, scale, mix, published.map(Some));
    claims.end();
}

/// What is published of deamortized merging, for half searches and half insertions: with requests
/// of an update's share, and with larger ones.
fn fd_7(scale: Scale) {
    let mut claims = Claims::of("fd-7");
    let device = DRIVES[0];
    let stage = Stage {
        device,
        index_bytes: scale.megabytes * 1_000_000,
        memory_bytes: scale.memory_bytes,
        before: scale.before,
        operations: scale.changes,
    };
    let measured = |steps: &str| {
        let tree = format!("fd-tree:entries={},deamortized={steps}", scale.megabytes * 125_000);
        let row = stage.measured(&tree, "50/50/0/0").row;
        let (worst, mean) = (row.latency_us.max, row.device_us_per_op);
        println!("{device}, half of each: {tree}, {worst:.0} us at most, {mean:.2} on average");
        (worst, mean)
    };
    let (worst, mean) = measured("off");
    for (requests, steps) in [("a share", "on"), ("64 KiB", "on,unit=65536")] {
        let (steps_worst, steps_mean) = measured(steps);
        let what = |what: &str| format!("{device}, half of each, requests of {requests}: {what}");
        let less = worst / steps_worst;
        let worst = what("the worst operation takes so many times less");
        claims.told(&worst, "80 to 2500", &format!("{less:.0}"), less >= 80.0);
        let times = steps_mean / mean;
        let mean = what("the average one takes so many times as long");
        claims.told(&mean, "< 1.05", &format!("{times:.3}"), times < 1.05);
    }
    claims.end();
}

fn fd_12(scale: Scale) {
    let mut claims = Claims::of("fd-12");
    let (changed, intel) = ((20.5, 27.9), Some(((1.7, 3.6), (1.4, 1.8))));
    let mixes: [(&'static str, [u64; 4], Published); 5] = [
        ("W-Search", [80, 10, 5, 5], [Some(((5.7, 5.7), (1.6, 1.6))), intel]),
        ("W-Insert", [20, 50, 20, 10], [Some((changed, (1.4, 1.4))), intel]),
        ("W-Delete", [20, 20, 50, 10], [Some((changed, (1.4, 1.4))), intel]),
        ("O-Delete", [0, 0, 100, 0], [Some(((20.6, 22.9), (1.6, 1.7))), None]),
        ("O-Update", [0, 0, 0, 100], [Some(((20.6, 22.9), (1.6, 1.7))), None]),
    ];
    for (name, parts, published) in mixes {
        first(&mut claims, scale, Mix { name, parts }, published);
    }
    claims.end();
}

#[test]
fn random_inserts_into_a_tree_in_place_cost_many_lookups_on_a_block_mapped_drive_only() {
    let cost = |device, mix| {
        let (index_bytes, memory_bytes, operations) = (16 << 20, 512 << 10, 1500);
        Stage { device, index_bytes, memory_bytes, before: 0, operations }
            .measured("b-plus", mix)
            .row
    };
    for (device, least, most) in [(DRIVES[0], 20.0, 80.0), (DRIVES[1], 1.5, 10.0)] {
        let (search, insert) = (cost(device, "100/0/0/0"), cost(device, "0/100/0/0"));
        let times = insert.device_us_per_op / search.device_us_per_op;
        assert!((least..most).contains(&times), "{device}: {times}");
        let (host, flash) = (insert.write_amplification, insert.flash_write_amplification);
        assert!(flash > host.map(|host| 10.0 * host), "{device}: {host:?}, {flash:?}");
        assert_eq!(search.flash_write_amplification, None);
    }
}

/// The ratio that the cost model chooses for 128 MB and a pool of 16 MB, on both drives.
const RATIO: u32 = 21;

/// What operations cost on the first drive with other memory, and other insertions before.
fn other(mix: &str, memory_bytes: u64, before: u64, operations: u64) {
    println!("memory of {memory_bytes} bytes, {before} insertions before:");
    let (device, index_bytes) = (DRIVES[0], WHOLE.megabytes * 1_000_000);
    let stage = Stage { device, index_bytes, memory_bytes, before, operations };
    let steady = Stage { operations: STEADY, ..stage };
    let merging = if operations > STEADY { whole_periods } else { second_half };
    let b_plus = cost("b-plus", mix, steady, second_half);
    let [lsm, fd_tree] =
        ["lsm", "fd-tree"].map(|tree| cost(&format!("{tree}:ratio={RATIO}"), mix, stage, merging));
    println!("FD-tree is ahead {:.2} times, {:.3} of LSM", b_plus / fd_tree, lsm / fd_tree);
}

/// Where the level above the last one is empty, and where FD-tree and LSM get as much for pages as
/// the B+-tree has in figure 8.
#[test]
#[ignore = "takes minutes"]
fn why_searches_cost_what_they_do() {
    other("100/0/0/0", 16_000_000, 0, STEADY);
    other("100/0/0/0", 21_500_000, WHOLE.before, STEADY);
}

#[test]
#[ignore = "takes minutes"]
fn what_a_sixteenth_of_the_memory_changes() {
    other("100/0/0/0", 1_000_000, WHOLE.before, STEADY);
    other("50/50/0/0", 1_000_000, WHOLE.before, 2 * WHOLE.changes);
}

#[test]
#[ignore = "takes minutes"]
fn fd_7_deamortized() {
    fd_7(WHOLE);
}

#[test]
#[ignore = "takes minutes"]
fn fd_7_in_short() {
    fd_7(SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn fd_8_searches() {
    fd_8(WHOLE);
}

#[test]
#[ignore = "takes minutes"]
fn fd_8_in_short() {
    fd_8(SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn fd_9_insertions() {
    fd_9(WHOLE);
}

#[test]
#[ignore = "takes minutes"]
fn fd_9_in_short() {
    fd_9(SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn fd_10_half_of_each() {
    fd_10(WHOLE);
}

#[test]
#[ignore = "takes minutes"]
fn fd_10_in_short() {
    fd_10(SHORT);
}

#[test]
#[ignore = "takes minutes"]
fn fd_12_workloads() {
    fd_12(WHOLE);
}

#[test]
#[ignore = "takes minutes"]
fn fd_12_in_short() {
    fd_12(SHORT);
}
