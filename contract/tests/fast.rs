//! FAST: what its merges cost, and that it survives power cuts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod merges;
mod storms;

use device::Sectors;
use ftl::{Fast, Options};
use merges::{Bench, Operations, chip, compare, costs, uniform};
use sim::SimulatedNand;

const RANDOM_LOGS: u32 = 8;

fn disk(spare: bool) -> Fast<SimulatedNand> {
    let options = Options::default().with_logs(RANDOM_LOGS).unwrap();
    Fast::format(chip(spare), options).unwrap()
}

/// The numbers of the formulas in `ftl/src/fast/mod.rs`.
struct Shape {
    /// n, the logical blocks.
    logical: f64,
    /// L, the sectors of a logical block.
    sectors: f64,
    /// Pages of metadata of a data block.
    metadata: f64,
    /// Sectors and pages of metadata of a log block: P - 1 and a header; without a spare area
    /// P - 2 and a page that names them, too.
    log_sectors: f64,
    log_metadata: f64,
}

impl Shape {
    fn of(disk: &Fast<SimulatedNand>, spare: bool) -> Self {
        let sectors = f64::from(disk.sectors_per_block());
        Shape {
            logical: disk.geometry().sectors() as f64 / sectors,
            sectors,
            metadata: if spare { 0.0 } else { 2.0 },
            log_sectors: if spare { 63.0 } else { 62.0 },
            log_metadata: if spare { 1.0 } else { 2.0 },
        }
    }

    /// A write costs a program, and a block an erase and its pages of metadata.
    fn sequential(&self) -> Operations {
        Operations {
            reads: 0.0,
            programs: (self.sectors + self.metadata) / self.sectors,
            erases: 1.0 / self.sectors,
        }
    }

    /// One of L writes costs a partial merge. The others go to the random logs, where a logical
    /// block waits for W further writes from its first sector on until it is merged, and n for
    /// its next first sector. One of n (L - 1) of these W is a write to the first sector of the
    /// logical block, whose partial merge makes the full one needless.
    fn random(&self) -> Operations {
        let first = 1.0 / self.sectors;
        let wait =
            (f64::from(RANDOM_LOGS) - 1.0) * self.log_sectors + (self.log_sectors - 1.0) / 2.0;
        let needless = wait / (self.logical * (self.sectors - 1.0));
        let merges = self.logical / (self.logical + wait) * (1.0 - needless);
        let blocks = first + (1.0 - first) * merges;
        let logs = (1.0 - first) / self.log_sectors;
        Operations {
            reads: first * (self.sectors - 1.0) + (1.0 - first) * merges * self.sectors,
            programs: blocks * (self.sectors + self.metadata)
                + (1.0 - first)
                + logs * self.log_metadata,
            erases: blocks + logs,
        }
    }
}

#[test]
fn random_and_sequential_writes_cost_what_arithmetic_on_merges_says() {
    for spare in [true, false] {
        let mut bench = Bench::filled(disk(spare));
        let costs = costs(bench.disk.nand());
        let shape = Shape::of(&bench.disk, spare);
        let sectors = bench.disk.geometry().sectors();

        let measured = bench.measure(sectors, |number, _| number);
        let in_order = compare("sequential", shape.sequential(), measured, &costs);

        bench.write(10_000, uniform(sectors));
        let measured = bench.measure(40_000, uniform(sectors));
        let anywhere = compare("random", shape.random(), measured, &costs);
        println!("  random against sequential: {:.1}", anywhere / in_order);
        assert!(anywhere / in_order > 20.0);
        let did = bench.disk.statistics();
        assert!(did.switch_merges >= 3 * shape.logical as u64, "{did:?}");
        assert!(did.partial_merges >= 500 && did.full_merges >= 10_000, "{did:?}");
    }
}

#[test]
fn more_random_logs_make_random_writes_cheaper_but_not_sequential_ones() {
    let mut times = Vec::new();
    for logs in [1, 4, 16, 64] {
        let options = Options::default().with_logs(logs).unwrap().with_over_provision(0.3).unwrap();
        let mut bench = Bench::filled(Fast::format(chip(true), options).unwrap());
        let sectors = bench.disk.geometry().sectors();
        let (_, in_order) = bench.measure(sectors, |number, _| number);
        bench.write(6000, uniform(sectors));
        let (_, anywhere) = bench.measure(6000, uniform(sectors));
        println!("{logs} logs: {anywhere:.0} us a random write, {in_order:.0} us a sequential one");
        times.push((anywhere, in_order));
    }
    assert!(times.is_sorted_by(|fewer, more| fewer.0 > 1.1 * more.0), "{times:?}");
    assert!(times.iter().all(|(_, in_order)| (in_order - times[0].1).abs() < 0.5), "{times:?}");
}

#[test]
fn nothing_flushed_is_lost_in_ten_thousand_power_cuts_with_a_spare_area() {
    let did = storms::storm("fast", 16, "--test fast with_a_spare_area");
    storms::assert_merges(&did);
}

#[test]
fn nothing_flushed_is_lost_in_ten_thousand_power_cuts_without_a_spare_area() {
    let did = storms::storm("fast", 0, "--test fast without_a_spare_area");
    storms::assert_merges(&did);
}
