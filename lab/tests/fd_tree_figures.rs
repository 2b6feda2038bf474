//! The figures 7 to 10 and 12 of the FD-tree paper (Li, He, Yang, Luo, Yi, VLDB 2010) on models of
//! its drives: what an operation of each tree costs.
//!
//! What is published in numbers is of 8 GB. Here it is 128 MB, a 64th and the smallest of the
//! figures, for the time that a run takes; the pool has 16 MB, as the paper's. BFTL has its table
//! beside the pool, and lists as long as the paper found best on each drive.
//!
//! All trees are loaded, the B+-tree 70 % full, and get the same random insertions until the level
//! above the last one is half full; the last one is as full as 128 MB make it. The paper goes on
//! with the B+-tree until a fifth of its leaves have split. The ratio of levels is the one that the
//! cost model chooses for as many searches as insertions, in all figures. What merges is measured
//! from one merge into the last level to the next.
//!
//! ```text
//! ./check claims fd-7 fd-8 fd-9 fd-10 fd-12
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
    parts: [f64; 4],
}

impl Mix {
    /// The mix with a search before each deletion and update, as the paper's FD-tree and LSM-tree
    /// have it, and how many operations that makes of one. Ours delete and update by key.
    fn with_searches(self) -> (Self, f64) {
        let [searches, inserts, deletes, updates] = self.parts;
        let more = (100.0 + deletes + updates) / 100.0;
        let parts = [searches + deletes + updates, inserts, deletes, updates];
        (Mix { parts: parts.map(|part| part / more), ..self }, more)
    }

    fn text(self) -> String {
        self.parts.map(|part| part.to_string()).join("/")
    }
}

/// What an operation of each tree costs, in microseconds.
struct Costs {
    b_plus: f64,
    bftl: f64,
    lsm: f64,
    fd_tree: f64,
}

impl Costs {
    fn of(device: &'static str, scale: Scale, mix: Mix) -> Self {
        let stage = Stage {
            device,
            index_bytes: scale.megabytes * 1_000_000,
            memory_bytes: scale.memory_bytes,
            before: scale.before,
            operations: STEADY,
        };
        let (searched, more) = mix.with_searches();
        let changed = 1.0 - searched.parts[0] / 100.0;
        let is_merged = changed > 0.0;
        let operations = if is_merged { (scale.changes as f64 / changed) as u64 } else { STEADY };
        let merged = Stage { operations, ..stage };
        let tuned = |tree| format!("{tree}:entries={}", scale.megabytes * 125_000);
        let merging = if is_merged { whole_periods } else { second_half };
        Costs {
            b_plus: cost("b-plus", &mix.text(), stage, second_half),
            bftl: cost(bftl_on(device), &mix.text(), stage, second_half),
            lsm: more * cost(&tuned("lsm"), &searched.text(), merged, merging),
            fd_tree: more * cost(&tuned("fd-tree"), &searched.text(), merged, merging),
        }
    }

    fn over_b_plus(&self) -> f64 {
        self.b_plus / self.fd_tree
    }

    fn over_bftl(&self) -> f64 {
        self.bftl / self.fd_tree
    }

    fn over_lsm(&self) -> f64 {
        self.lsm / self.fd_tree
    }

    fn is_fd_first(&self) -> bool {
        [self.over_b_plus(), self.over_bftl(), self.over_lsm()].iter().all(|times| *times > 1.0)
    }
}

/// BFTL with as many pages a node as the paper found best (appendix D).
fn bftl_on(device: &str) -> &'static str {
    if device == DRIVES[0] { "bftl:list=11" } else { "bftl:list=2" }
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

/// What is published of a mix on both drives, where it is: gains over the B+-tree, BFTL and LSM,
/// the least and the most.
type Published = [Option<[(f64, f64); 3]>; 2];

/// Claims that FD-tree is the first, by how much, where that is published.
fn first(claims: &mut Claims, scale: Scale, mix: Mix, published: Published) {
    for (device, published) in DRIVES.into_iter().zip(published) {
        let Some([b_plus, bftl, lsm]) = published else { continue };
        let costs = Costs::of(device, scale, mix);
        let what = |what: &str| format!("{device}, {}: {what}", mix.name);
        claims.holds(&what("FD-tree is the first"), costs.is_fd_first());
        gain(claims, &what("so many times as fast as the B+-tree"), b_plus, costs.over_b_plus());
        gain(claims, &what("so many times as fast as BFTL"), bftl, costs.over_bftl());
        gain(claims, &what("so many times as fast as LSM"), lsm, costs.over_lsm());
        if device == DRIVES[1] && mix.name == "W-Search" {
            claims.holds(&what("the B+-tree is ahead of LSM"), costs.b_plus < costs.lsm);
        }
    }
}

fn fd_8(scale: Scale) {
    let mut claims = Claims::of("fd-8");
    for device in DRIVES {
        let costs =
            Costs::of(device, scale, Mix { name: "searches", parts: [100.0, 0.0, 0.0, 0.0] });
        let near = (1.0, costs.fd_tree / costs.b_plus);
        claims.near(&format!("{device}: a search costs so many of the B+-tree's"), near, MARGIN);
        let ahead = costs.fd_tree < costs.lsm;
        claims.holds(&format!("{device}: a search costs less than on LSM"), ahead);
        let ahead = costs.fd_tree < costs.bftl;
        claims.holds(&format!("{device}: a search costs less than on BFTL"), ahead);
        let (what, holds) = if device == DRIVES[0] {
            ("BFTL is the slowest", costs.bftl > costs.b_plus.max(costs.lsm))
        } else {
            ("BFTL is ahead of LSM", costs.bftl < costs.lsm)
        };
        claims.holds(&format!("{device}: {what}"), holds);
    }
    claims.end();
}

fn fd_9(scale: Scale) {
    let mut claims = Claims::of("fd-9");
    for device in DRIVES {
        let costs =
            Costs::of(device, scale, Mix { name: "insertions", parts: [0.0, 100.0, 0.0, 0.0] });
        let times = costs.over_b_plus();
        let what = |what: &str| format!("{device}: an insertion {what}");
        claims.told(
            &what("is over ten times as fast as on the B+-tree"),
            "> 10",
            &format!("{times:.1}"),
            times > 10.0,
        );
        let over_bftl = costs.over_bftl();
        claims.told(
            &what("is over ten times as fast as on BFTL"),
            "> 10",
            &format!("{over_bftl:.1}"),
            over_bftl > 10.0,
        );
        if device == DRIVES[0] {
            let many = what("is so many times as fast as on the B+-tree");
            gain(&mut claims, &many, (280.0, 280.0), times);
            let many = what("is so many times as fast as on BFTL");
            gain(&mut claims, &many, (35.0, 35.0), over_bftl);
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
    let mix = Mix { name: "half of each", parts: [50.0, 50.0, 0.0, 0.0] };
    let published = [[24.2, 5.8, 1.8], [3.3, 3.3, 1.6]];
    let published = published.map(|gains| Some(gains.map(|gain| (gain, gain))));
    first(&mut claims, scale, mix, published);
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
    let search = Some([(5.7, 5.7), (3.7, 3.7), (1.6, 1.6)]);
    let change = Some([(20.5, 27.9), (4.6, 5.5), (1.4, 1.4)]);
    let only = Some([(20.6, 22.9), (2.6, 2.9), (1.6, 1.7)]);
    let intel = Some([(1.7, 3.6), (1.9, 3.4), (1.4, 1.8)]);
    let mixes: [(&'static str, [f64; 4], Published); 5] = [
        ("W-Search", [80.0, 10.0, 5.0, 5.0], [search, intel]),
        ("W-Insert", [20.0, 50.0, 20.0, 10.0], [change, intel]),
        ("W-Delete", [20.0, 20.0, 50.0, 10.0], [change, intel]),
        ("O-Delete", [0.0, 0.0, 100.0, 0.0], [only, None]),
        ("O-Update", [0.0, 0.0, 0.0, 100.0], [only, None]),
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
fn other(parts: [f64; 4], memory_bytes: u64, before: u64) {
    println!("memory of {memory_bytes} bytes, {before} insertions before:");
    let mix = Mix { name: "other", parts };
    let (searched, more) = mix.with_searches();
    let (device, index_bytes) = (DRIVES[0], WHOLE.megabytes * 1_000_000);
    let steady = Stage { device, index_bytes, memory_bytes, before, operations: STEADY };
    let changed = 1.0 - searched.parts[0] / 100.0;
    let (stage, merging): (_, fn(&[f64]) -> f64) = if changed > 0.0 {
        let operations = (WHOLE.changes as f64 / changed) as u64;
        (Stage { operations, ..steady }, whole_periods)
    } else {
        (steady, second_half)
    };
    let b_plus = cost("b-plus", &mix.text(), steady, second_half);
    let [lsm, fd_tree] = ["lsm", "fd-tree"].map(|tree| {
        more * cost(&format!("{tree}:ratio={RATIO}"), &searched.text(), stage, merging)
    });
    println!("FD-tree is ahead {:.2} times, {:.3} of LSM", b_plus / fd_tree, lsm / fd_tree);
}

const SEARCHES_ONLY: [f64; 4] = [100.0, 0.0, 0.0, 0.0];

/// Where the level above the last one is empty, and where FD-tree and LSM get as much for pages as
/// the B+-tree has in figure 8.
#[test]
#[ignore = "takes minutes"]
fn why_searches_cost_what_they_do() {
    other(SEARCHES_ONLY, 16_000_000, 0);
    other(SEARCHES_ONLY, 21_500_000, WHOLE.before);
}

/// Searches, half of each, and W-Insert.
#[test]
#[ignore = "takes minutes"]
fn what_a_sixteenth_of_the_memory_changes() {
    for parts in [SEARCHES_ONLY, [50.0, 50.0, 0.0, 0.0], [20.0, 50.0, 20.0, 10.0]] {
        other(parts, 1_000_000, WHOLE.before);
    }
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
