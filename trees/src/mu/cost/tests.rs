use std::println;

use device::Geometry;
use store::EntryShape;

use super::{predict_mu, predict_mu_star};
use crate::mu::{MU_PARAMETERS, MU_STAR_PARAMETERS, name};
use crate::path_copying::layout::Division;
use index::parameters::Settings;
use index::{MediumShape, Options, Prediction, Profile};

use crate::find;

fn chip(blocks: u32) -> MediumShape {
    MediumShape::Nand(Geometry::new(4096, 128, blocks).unwrap())
}

fn options(memory_bytes: u64) -> Options {
    let tree = name(Division::Even);
    let settings = Settings::parse(tree, MU_STAR_PARAMETERS, []).unwrap();
    Options::new(EntryShape::fixed(4, 4), memory_bytes, settings)
}

fn profile(entries: u64, lookups: f64) -> Profile {
    Profile { entries, lookups, inserts: 0.0, overwrites: 1.0 - lookups, deletes: 0.0 }
}

fn mu_star(entries: u64, lookups: f64, memory_bytes: u64) -> Prediction {
    predict_mu_star(&profile(entries, lookups), &options(memory_bytes), chip(128)).unwrap()
}

#[test]
fn an_update_without_a_cache_reads_the_height_and_writes_one_page_on_a_large_chip() {
    let least =
        |blocks| options(find("mu-star").unwrap().least_memory(&options(0), chip(blocks)).unwrap());
    let cost =
        |blocks| predict_mu_star(&profile(100_000, 0.0), &least(blocks), chip(blocks)).unwrap();
    let prediction = cost(64);
    assert_eq!(prediction.height, 3);
    assert!((prediction.page_reads - 3.0).abs() < 0.01, "{prediction:?}");
    assert!((prediction.page_writes - 1.0).abs() < 0.01, "{prediction:?}");
    // A table of the live pages would be more than a small part of the memory: as many are read to
    // see that a page is dead.
    let prediction = cost(4096);
    assert!((prediction.page_reads - 6.0).abs() < 0.01, "{prediction:?}");
    assert!((prediction.page_writes - 1.0).abs() < 0.01, "{prediction:?}");
}

#[test]
fn more_memory_reads_less_and_a_fuller_chip_writes_more() {
    let few = mu_star(400_000, 0.5, 32 << 10);
    let more = mu_star(400_000, 0.5, 256 << 10);
    assert!(more.page_reads < few.page_reads, "{more:?} {few:?}");
    let all = mu_star(400_000, 1.0, 1 << 30);
    assert!(all.page_reads < 1e-9 && all.page_writes < 1e-9, "{all:?}");
    let small = mu_star(100_000, 0.0, 32 << 10);
    let large = mu_star(800_000, 0.0, 32 << 10);
    assert!(large.page_writes > small.page_writes, "{large:?} {small:?}");
}

/// Figure 13 in the model: a smaller leaf fills the chip earlier, and moves more.
#[test]
fn mu_star_writes_less_than_mu_the_more_records_there_are() {
    let mut before = 0.0;
    for entries in [100_000, 200_000, 300_000, 400_000] {
        let cost = |it: Prediction| it.page_reads * 165.6 + it.page_writes * 905.8;
        let settings = Settings::parse(name(Division::Halves), MU_PARAMETERS, []).unwrap();
        let halves = Options { settings, ..options(0) };
        let options = options(0);
        let chip = MediumShape::Nand(Geometry::new(4096, 128, 32).unwrap());
        let mu = cost(predict_mu(&profile(entries, 0.0), &halves, chip).unwrap());
        let star = cost(predict_mu_star(&profile(entries, 0.0), &options, chip).unwrap());
        let ahead = mu / star - 1.0;
        println!("{entries} records in 16 MiB: mu {mu:.0} us, mu* {star:.0} us, {ahead:.2} ahead");
        assert!(ahead > before, "{ahead}");
        before = ahead;
    }
}

#[test]
fn what_the_tree_cannot_hold_or_stand_on_is_refused() {
    let disk = MediumShape::Sectors(device::SectorGeometry::new(4096, 1024).unwrap());
    assert!(predict_mu(&profile(100, 0.5), &options(0), disk).is_err());
    let tiny = MediumShape::Nand(Geometry::new(512, 32, 64).unwrap());
    assert!(predict_mu_star(&profile(10_000_000, 0.5), &options(0), tiny).is_err());
}
