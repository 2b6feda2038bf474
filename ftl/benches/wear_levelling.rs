//! How evenly page mapping wears a chip most of whose data never change:
//! `cargo bench -p flashtree-ftl --bench wear_levelling`.
//!
//! A disk is filled; then one fifth of its sectors is overwritten at random, until as many sectors
//! were written as the disk has, a hundred times over. The figures are the erases of the chip's
//! own books: the most of any block over the mean of all.

#![allow(clippy::expect_used, reason = "a benchmark may stop")]

use device::{Cause, Geometry, NandCosts, Sector, Sectors};
use flashtree_ftl::{Levelling, Options, PageMap};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

const TURNOVERS: u64 = 100;
const SEED: u64 = 1;

fn main() {
    let mut worst: f64 = 0.0;
    println!("{TURNOVERS} turnovers, 80 % of the data never change, seed {SEED}:");
    for (spare_bytes, place) in [(16, "spare area"), (0, "no spare area")] {
        for (name, levelling) in Levelling::ALL {
            let run = wear(spare_bytes, levelling);
            let statistics = run.statistics();
            let erases = run.meter().expect("the simulator keeps books").erases();
            let most = erases.iter().max().copied().unwrap_or(0);
            let mean = erases.iter().sum::<u32>() as f64 / erases.len() as f64;
            let amplification = statistics.write_amplification().unwrap_or(0.0);
            let ratio = f64::from(most) / mean;
            if levelling == Levelling::Static {
                worst = worst.max(ratio);
            }
            println!(
                "{place}, levelling={name}: most over mean {ratio:.3} (most {most}, mean \
                 {mean:.1}, \
                 static moves {}, write amplification {amplification:.3})",
                statistics.static_moves,
            );
        }
    }
    println!("most over mean with static levelling: {worst:.3}");
}

fn wear(spare_bytes: u32, levelling: Levelling) -> PageMap<SimulatedNand> {
    let geometry = Geometry::new(512, 32, 256)
        .and_then(|geometry| geometry.with_spare(spare_bytes))
        .expect("the numbers are in their bounds");
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let options = Options::default().with_levelling(levelling);
    let mut disk = PageMap::format(chip, options).expect("the chip is large enough");
    let sectors = disk.geometry().sectors();
    for sector in 0..sectors {
        disk.write(Sector(sector), &[1; 512], Cause::Load).expect("there is room");
    }
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..TURNOVERS * sectors {
        let sector = Sector(random.random_range(0..sectors / 5));
        disk.write(sector, &[2; 512], Cause::Update).expect("there is room");
    }
    disk
}
