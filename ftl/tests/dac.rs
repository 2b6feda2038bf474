//! What clustering saves: DAC against page mapping on the same chip, with the same data.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use device::{Cause, Geometry, NandCosts, Sector};
use flashtree_ftl::{Layer, Options, find};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// Makes a layer by its spec: a name, a colon and parameters.
fn make(spec: &str, spare_bytes: u32) -> Box<dyn Layer> {
    let geometry = Geometry::new(512, 32, 512).and_then(|shape| shape.with_spare(spare_bytes));
    let chip = SimulatedNand::new(geometry.unwrap(), NandCosts::default());
    let (name, parameters) = spec.split_once(':').unwrap();
    let entry = find(name).unwrap();
    let options = parameters.split(',').fold(Options::default(), |options, parameter| {
        let (name, value) = parameter.split_once('=').unwrap();
        options.set(entry, name, value).unwrap()
    });
    (entry.create)(Box::new(chip), &options).unwrap()
}

/// A workload: which share of the writes goes to which share of the sectors, hottest first.
type Tiers = &'static [(f64, f64)];

/// Nine writes in ten go to a tenth of the sectors.
const TWO: Tiers = &[(0.9, 0.1), (0.1, 0.9)];

/// Four kinds of sectors, each a third as hot as the one before.
const FOUR: Tiers = &[(0.6, 0.05), (0.25, 0.15), (0.1, 0.3), (0.05, 0.5)];

fn choose(tiers: Tiers, sectors: u64, random: &mut ChaCha8Rng) -> u64 {
    let mut share = random.random::<f64>();
    let mut first = 0.0;
    for (writes, size) in tiers {
        if share < *writes || first + size >= 0.999 {
            let within = first + size * random.random::<f64>();
            return ((within * sectors as f64) as u64).min(sectors - 1);
        }
        share -= writes;
        first += size;
    }
    0
}

/// Programs for each write, when the disk has settled.
fn amplification(spec: &str, spare_bytes: u32, sectors: u64, tiers: Tiers) -> f64 {
    let mut disk = make(spec, spare_bytes);
    for sector in 0..sectors {
        disk.write(Sector(sector), &[1; 512], Cause::Load).unwrap();
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut write = |disk: &mut dyn Layer, times: u64| {
        for _ in 0..times * sectors {
            let sector = Sector(choose(tiers, sectors, &mut random));
            disk.write(sector, &[2; 512], Cause::Update).unwrap();
        }
    };
    write(&mut *disk, 5);
    let before = *disk.statistics();
    write(&mut *disk, 10);
    let after = disk.statistics();
    let programs = after.pages_programmed - before.pages_programmed;
    programs as f64 / (after.sectors_written - before.sectors_written) as f64
}

/// Measures both on the same chip with as many sectors as both have, 98 % of DAC's; prints the
/// figures and returns DAC's amplification over page mapping's.
fn compare(page_map: &str, dac: &str, spare_bytes: u32, tiers: Tiers) -> f64 {
    let sectors = make(dac, spare_bytes).geometry().sectors() * 98 / 100;
    let [plain, clustered] =
        [page_map, dac].map(|spec| amplification(spec, spare_bytes, sectors, tiers));
    println!(
        "{} tiers, {spare_bytes} spare bytes: {plain:.3} with {page_map}, {clustered:.3} with \
         {dac}",
        tiers.len()
    );
    clustered / plain
}

#[test]
fn dac_writes_less_than_page_mapping_with_one_frontier_on_skewed_workloads() {
    for (spare, tiers, most) in [(16, TWO, 0.7), (16, FOUR, 0.85), (0, TWO, 0.7), (0, FOUR, 0.85)] {
        let ratio = compare("page-map:frontiers=1", "dac:regions=4", spare, tiers);
        assert!(ratio < most, "{ratio:.3} of what page mapping writes");
    }
}

#[test]
fn that_is_not_the_victims_merit_alone() {
    for (tiers, most) in [(TWO, 0.85), (FOUR, 0.92)] {
        let plain = "page-map:frontiers=1,victim=cost-benefit";
        let ratio = compare(plain, "dac:regions=4", 16, tiers);
        assert!(ratio < most, "{ratio:.3} of what page mapping writes");
    }
}

#[test]
fn more_regions_cluster_better() {
    let two = compare("dac:regions=1", "dac:regions=2", 16, TWO);
    let four = compare("dac:regions=2", "dac:regions=4", 16, TWO);
    assert!(two < 0.98 && four < 0.95, "{two:.3}, {four:.3}");
}
