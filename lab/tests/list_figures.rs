//! Figure 9 of FlashDB's paper (Nath and Kansal, MSR-TR-2006-168), beside ours: when is an index
//! worth its energy, and when an archive?
//!
//! B+-tree(ST) is `flashdb` over page mapping. LABDATA is not at hand: the data are the paper's
//! other two, random and sequential, between which the cost of real data should be.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "the figures of mu* use more of it")]
#[path = "mu_figures/claims.rs"]
mod claims;

use std::ops::Bound;

use claims::Claims;
use device::{Medium, Tally};
use index::parameters::Settings;
use index::{EntryShape, Index, KeyRange, Update};
use index::{MediumShape, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;
use trees::find;

/// Data points; 16 bytes each.
const POINTS: u32 = 30_000;

/// Data points that a query asks for.
const RANGE: u32 = 10;

/// Bytes of the chip: more than anything here fills.
const CHIP: u64 = 32 << 20;

/// What table 1 of the paper charges for a page, in microjoules; it has nothing for erases.
#[derive(Clone, Copy)]
struct Device {
    name: &'static str,
    read: f64,
    write: f64,
}

const DEVICES: [Device; 2] = [
    Device { name: "samsung-k9k1g08r0b", read: 0.74, write: 9.9 },
    Device { name: "capsule", read: 57.83, write: 73.79 },
];

impl Device {
    fn microjoules(&self, total: &Tally) -> f64 {
        total.page_reads as f64 * self.read + total.page_programs as f64 * self.write
    }
}

/// An empty index with the least memory, as the paper's has no node cache.
fn make(tree: &str, device: &str) -> Box<dyn Index> {
    let overrides = chips::Overrides { size_bytes: Some(CHIP), ..chips::Overrides::default() };
    let chip = chips::find(device).unwrap().nand(&overrides).unwrap();
    let nand = Box::new(SimulatedNand::new(chip.geometry, chip.costs));
    let (medium, shape) = if tree == "list" {
        (Medium::Nand(nand), MediumShape::Nand(chip.geometry))
    } else {
        let layer = ftl::find("page-map").unwrap();
        let disk = (layer.create)(nand, &ftl::Options::default()).unwrap();
        let shape = MediumShape::Sectors(disk.geometry());
        (Medium::Sectors(Box::new(disk)), shape)
    };
    let entry = find(tree).unwrap();
    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
    let mut options = Options::new(EntryShape::fixed(8, 8), 0, settings);
    options.memory_bytes = entry.least_memory(&options, shape).unwrap();
    (entry.create)(medium, &options).unwrap()
}

/// The energy to build an index over the points, and of a query after that, in microjoules.
fn cost(tree: &str, device: Device, order: &[u32], queries: u32) -> [f64; 2] {
    let mut index = make(tree, device.name);
    for (time, point) in order.iter().enumerate() {
        let (key, value) = (u64::from(*point).to_be_bytes(), (time as u64).to_le_bytes());
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
    }
    let energy = |index: &dyn Index| device.microjoules(&index.meter().unwrap().total());
    let built = energy(&*index);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    for _ in 0..queries {
        let low = random.random_range(0..POINTS - RANGE);
        let [from, to] = [low, low + RANGE].map(|point| u64::from(point).to_be_bytes());
        let range =
            KeyRange { from: Bound::Included(&from), to: Bound::Excluded(&to), ..KeyRange::ALL };
        let mut cursor = index.range(range).unwrap();
        let mut found = 0;
        while cursor.next().unwrap().is_some() {
            found += 1;
        }
        assert_eq!(found, RANGE);
    }
    [built, (energy(&*index) - built) / f64::from(queries)]
}

/// At how many queries the list has taken as much as a tree that takes so much to build and for a
/// query.
fn crossing(list: [f64; 2], tree: [f64; 2]) -> f64 {
    (tree[0] - list[0]) / (list[1] - tree[1])
}

fn figure_9(queries: u32) {
    let mut claims = Claims::of("db-9");
    let sequential: Vec<u32> = (0..POINTS).collect();
    let mut strewn = sequential.clone();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for place in (1..strewn.len()).rev() {
        strewn.swap(place, random.random_range(0..=place));
    }
    for device in DEVICES {
        let crossings = [("sequential", &sequential), ("random", &strewn)].map(|(data, order)| {
            let [list, tree] = ["list", "flashdb"].map(|tree| cost(tree, device, order, queries));
            let at = crossing(list, tree);
            println!(
                "  {}, {data}: list {:.1} mJ and {:.3} mJ a query, tree {:.1} mJ and {:.4} mJ: as \
                 much after {at:.0} queries",
                device.name,
                list[0] / 1e3,
                list[1] / 1e3,
                tree[0] / 1e3,
                tree[1] / 1e3
            );
            let cheaper = list[0] < tree[0] && list[1] > tree[1];
            let name = format!("{}, {data} data", device.name);
            claims.holds(&format!("{name}: the list is cheaper to build, dearer to ask"), cheaper);
            at
        });
        let [low, high] = crossings;
        let what = format!(
            "{}: LABDATA's queries are between those of sequential and of random data",
            device.name
        );
        let measured = format!("{low:.0} to {high:.0}");
        if !claims.told(&what, "300", &measured, low < 300.0 && 300.0 < high) {
            println!("  cause? a read is {:.2} of a write there", device.read / device.write);
            println!("  cause? which device the second one of figure 9 is, its text does not say");
        }
    }
    claims.end();
}

#[test]
#[ignore = "it takes seconds: run it in a release build"]
fn db_9_when_an_index_is_worth_its_energy() {
    figure_9(500);
}
