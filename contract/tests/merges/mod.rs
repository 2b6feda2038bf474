//! What merges cost on a chip from the catalogue: counts and device time of writes, beside what
//! arithmetic says of them.

use std::sync::atomic::{AtomicU64, Ordering};

use chips::Overrides;
use device::{Cause, Nand, NandCosts, Sector};
use ftl::Layer;
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// The farthest that a measurement was from its formula, in thousandths of a percent.
static FARTHEST: AtomicU64 = AtomicU64::new(0);

/// What the formula and the measurement may differ by.
const TOLERANCE: f64 = 0.02;

/// The chip of the lazy-update B+-tree paper: 64 pages of 2 KiB a block, read 80 us, program
/// 200 us, erase 1.5 ms; 512 of its blocks.
pub(crate) fn chip(spare: bool) -> SimulatedNand {
    let overrides = Overrides { blocks: Some(512), spare: Some(spare), ..Overrides::default() };
    let chip = chips::find("samsung-k9wag08u1a").unwrap().nand(&overrides).unwrap();
    SimulatedNand::new(chip.geometry, chip.costs)
}

/// Operations of the chip for each sector written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operations {
    pub(crate) reads: f64,
    pub(crate) programs: f64,
    pub(crate) erases: f64,
}

impl Operations {
    /// Device time in microseconds.
    pub(crate) fn time_us(&self, costs: &NandCosts) -> f64 {
        let parts = [
            (self.reads, costs.read.charge(2048, 1)),
            (self.programs, costs.program.charge(2048, 1)),
            (self.erases, costs.erase.charge(0, 1)),
        ];
        parts.iter().map(|(count, charge)| count * charge.time_ns as f64 / 1000.0).sum()
    }
}

/// A disk in use.
pub(crate) struct Bench<D> {
    pub(crate) disk: D,
    pub(crate) random: ChaCha8Rng,
    page: Vec<u8>,
}

impl<D: Layer> Bench<D> {
    /// A disk of which every sector was written twice: none of the blocks that were erased when
    /// it was made is left.
    pub(crate) fn filled(disk: D) -> Self {
        let page = vec![0x5A; 2048];
        let mut bench = Bench { disk, random: ChaCha8Rng::seed_from_u64(1), page };
        let sectors = bench.disk.geometry().sectors();
        bench.write(2 * sectors, |number, _| number % sectors);
        bench
    }

    /// Writes `count` sectors, which `choose` chooses.
    pub(crate) fn write(&mut self, count: u64, choose: impl Fn(u64, &mut ChaCha8Rng) -> u64) {
        for number in 0..count {
            let sector = choose(number, &mut self.random);
            self.disk.write(Sector(sector), &self.page, Cause::Update).unwrap();
        }
    }

    /// Writes `count` sectors; returns what they cost each, with the time in microseconds.
    pub(crate) fn measure(
        &mut self,
        count: u64,
        choose: impl Fn(u64, &mut ChaCha8Rng) -> u64,
    ) -> (Operations, f64) {
        let before = self.disk.meter().unwrap().total();
        self.write(count, choose);
        let total = self.disk.meter().unwrap().total() - before;
        let each = |sum: u64| sum as f64 / count as f64;
        let operations = Operations {
            reads: each(total.page_reads),
            programs: each(total.page_programs),
            erases: each(total.block_erases),
        };
        (operations, each(total.time_ns) / 1000.0)
    }
}

/// Any sector of `sectors`.
pub(crate) fn uniform(sectors: u64) -> impl Fn(u64, &mut ChaCha8Rng) -> u64 {
    move |_, random| random.random_range(0..sectors)
}

/// Prints both and compares them; returns the measured time in microseconds.
pub(crate) fn compare(
    what: &str,
    formula: Operations,
    (measured, time_us): (Operations, f64),
    costs: &NandCosts,
) -> f64 {
    let expected_us = formula.time_us(costs);
    println!("{what}: {expected_us:.1} us by the formula, {time_us:.1} us measured");
    for (unit, expected, found) in [
        ("us", expected_us, time_us),
        ("reads", formula.reads, measured.reads),
        ("programs", formula.programs, measured.programs),
        ("erases", formula.erases, measured.erases),
    ] {
        println!("  {unit}: {expected:.4} against {found:.4}");
        // A disk is not filled in whole blocks at every moment.
        let slack = TOLERANCE * expected + 0.001;
        assert!((expected - found).abs() <= slack, "{what}: {expected} {unit} against {found}");
        // Thousandths of a percent, of what there is enough of.
        let off = 1e5 * ((expected - found).abs() - 0.001).max(0.0) / expected.max(f64::EPSILON);
        FARTHEST.fetch_max(off as u64, Ordering::Relaxed);
    }
    let farthest = FARTHEST.load(Ordering::Relaxed) as f64 / 1000.0;
    println!("merges are off the formulas by {farthest:.3} % at most");
    time_us
}

/// The costs of a chip.
pub(crate) fn costs(chip: &SimulatedNand) -> NandCosts {
    assert_eq!(chip.geometry().pages_per_block(), 64);
    *chip.costs()
}
