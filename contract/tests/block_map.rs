//! Block mapping: what its merges cost, and that it survives power cuts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod merges;
mod storms;

use device::Sectors;
use ftl::{BlockMap, Options};
use merges::{Bench, Operations, chip, compare, costs, uniform};
use sim::SimulatedNand;

const REPLACEMENTS: u32 = 8;

fn disk(spare: bool) -> BlockMap<SimulatedNand> {
    let options = Options::default().with_logs(REPLACEMENTS).unwrap();
    BlockMap::format(chip(spare), options).unwrap()
}

/// A write costs a program, and a block of L sectors an erase and its pages of metadata.
fn sequential(sectors_per_block: f64, metadata: f64) -> Operations {
    Operations {
        reads: 0.0,
        programs: (sectors_per_block + metadata) / sectors_per_block,
        erases: 1.0 / sectors_per_block,
    }
}

/// A replacement block is filled once, by what users write and by copies, and costs an erase. It
/// takes one write, or more if a write hits one of the k that are open, of n logical blocks (k/n),
/// behind the last place that is filled ((L - 1) / 2L).
fn random(sectors_per_block: f64, metadata: f64, logical: f64) -> Operations {
    let open = f64::from(REPLACEMENTS);
    let goes_on = open / logical * (sectors_per_block - 1.0) / (2.0 * sectors_per_block);
    let blocks = 1.0 - goes_on;
    Operations {
        reads: blocks * sectors_per_block - 1.0,
        programs: blocks * (sectors_per_block + metadata),
        erases: blocks,
    }
}

#[test]
fn random_and_sequential_writes_cost_what_arithmetic_on_merges_says() {
    for spare in [true, false] {
        let metadata = if spare { 0.0 } else { 2.0 };
        let mut bench = Bench::filled(disk(spare));
        let costs = costs(bench.disk.nand());
        let sectors = bench.disk.geometry().sectors();
        let places = u64::from(bench.disk.sectors_per_block());
        let (length, logical) = (places as f64, (sectors / places) as f64);

        let measured = bench.measure(sectors, |number, _| number);
        let formula = sequential(length, metadata);
        let in_order = compare("sequential", formula, measured, &costs);

        bench.write(4 * logical as u64, uniform(sectors));
        let measured = bench.measure(20_000, uniform(sectors));
        let formula = random(length, metadata, logical);
        let anywhere = compare("random", formula, measured, &costs);
        println!("  random against sequential: {:.1}", anywhere / in_order);
        assert!(anywhere / in_order > 50.0);
        let did = bench.disk.statistics();
        assert!(did.switch_merges >= 3 * logical as u64, "{did:?}");
        assert!(did.full_merges >= 19_000, "{did:?}");
    }
}

#[test]
fn writes_to_the_same_place_of_ever_other_blocks_cost_one_merge_each() {
    let mut bench = Bench::filled(disk(true));
    let costs = costs(bench.disk.nand());
    let logical = bench.disk.geometry().sectors() / 64;
    for offset in [0, 1, 31, 63] {
        // With L = 64: L - 1 copies, a program and an erase.
        let formula = Operations { reads: 63.0, programs: 64.0, erases: 1.0 };
        bench.write(2 * logical, |number, _| number % logical * 64 + offset);
        let measured = bench.measure(4 * logical, |number, _| number % logical * 64 + offset);
        compare(&format!("place {offset}"), formula, measured, &costs);
    }
}

#[test]
fn nothing_flushed_is_lost_in_ten_thousand_power_cuts_with_a_spare_area() {
    let did = storms::storm("block-map", 16, "--test block_map with_a_spare_area");
    storms::assert_merges(&did);
}

#[test]
fn nothing_flushed_is_lost_in_ten_thousand_power_cuts_without_a_spare_area() {
    let did = storms::storm("block-map", 0, "--test block_map without_a_spare_area");
    storms::assert_merges(&did);
}
