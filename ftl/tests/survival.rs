//! A page-mapped disk survives power cuts and chips that refuse: after it is opened again, each
//! sector holds its last flushed content or a later one that was written.
//!
//! `FLASHTREE_SEED` plays one history again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod fragile;

use std::panic::{AssertUnwindSafe, catch_unwind};

use contract::sectors::{Model, pattern};
use device::{Cause, Error, Geometry, NandCosts, Request, Sector, Sectors};
use flashtree_ftl::{Options, PageMap};
use fragile::Fragile;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// A chip whose shape the seed decides.
fn chip(seed: u64) -> Fragile {
    let spare = [16, 0, 64, 15][seed as usize % 4];
    let pages = [16, 32, 64][seed as usize / 4 % 3];
    let geometry = Geometry::new(512, pages, 30).and_then(|shape| shape.with_spare(spare)).unwrap();
    let chip = SimulatedNand::new(geometry, NandCosts::default()).with_random_bad_blocks(seed, 2);
    Fragile::new(chip, ChaCha8Rng::seed_from_u64(seed))
}

fn write(disk: &mut dyn Sectors, model: &mut Model, first: u64, count: u64) -> Result<(), Error> {
    let bytes = model.geometry().sector_bytes() as usize;
    let mut data = vec![0; bytes * count as usize];
    for (sector, content) in (first..).zip(data.chunks_mut(bytes)) {
        pattern(sector, model.next_version(sector), content);
    }
    // Also a write that fails may have happened.
    model.write(first, count);
    disk.write(Sector(first), &data, Cause::Update)
}

fn step(disk: &mut dyn Sectors, model: &mut Model, random: &mut ChaCha8Rng) -> Result<(), Error> {
    let sectors = model.geometry().sectors();
    let first = random.random_range(0..sectors);
    match random.random_range(0..20) {
        0 => {
            let count = random.random_range(0..8).min(sectors - first);
            model.trim(first, count);
            disk.trim(Sector(first), count, Cause::Update)
        }
        1..4 => {
            disk.flush(Cause::Flush)?;
            model.flush();
            Ok(())
        }
        4..6 => {
            let mut found = vec![0; 100];
            let (first, into) = (Sector(first), &mut found[..]);
            disk.read(&mut [Request { first, offset: 17, into }], Cause::Lookup)?;
            model.compare(first.0, 17, &found);
            Ok(())
        }
        _ => write(disk, model, first, random.random_range(1..4).min(sectors - first)),
    }
}

fn learn_all(disk: &mut dyn Sectors, model: &mut Model) {
    let mut found = vec![0; model.geometry().sector_bytes() as usize];
    for sector in 0..model.geometry().sectors() {
        let (first, into) = (Sector(sector), &mut found[..]);
        disk.read(&mut [Request { first, offset: 0, into }], Cause::Lookup).unwrap();
        model.learn(sector, &found);
    }
}

/// Makes a disk and writes every sector.
fn full_disk(chip: &mut Fragile) -> Model {
    let mut disk = PageMap::format(chip, Options::default()).unwrap();
    let mut model = Model::new(disk.geometry());
    for sector in 0..disk.geometry().sectors() {
        write(&mut disk, &mut model, sector, 1).unwrap();
    }
    disk.flush(Cause::Flush).unwrap();
    model.flush();
    model
}

/// Plays `history` for many seeds, or for the one that is asked for.
fn for_seeds(test: &str, seeds: u64, history: impl Fn(u64)) {
    let wanted = std::env::var("FLASHTREE_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    for seed in wanted.map_or(0..seeds, |seed| seed..seed + 1) {
        if catch_unwind(AssertUnwindSafe(|| history(seed))).is_err() {
            panic!(
                "seed {seed} failed; play it again with\n  FLASHTREE_SEED={seed} \
                 cargo test -p flashtree-ftl --test survival {test}"
            );
        }
    }
}

/// Cuts the power again and again while a disk is used; on a chip that refuses too, until it is
/// full. Returns how often it was cut.
fn cut_again_and_again(seed: u64, refuse: Option<u32>) -> u32 {
    let mut chip = chip(seed);
    let mut model = full_disk(&mut chip);
    chip.refuse = refuse;
    let mut random = ChaCha8Rng::seed_from_u64(seed + 1000);
    for cuts in 0..60 {
        let most = [3, 30, 300][random.random_range(0..3)];
        chip.power(Some(random.random_range(0..most)));
        let mut disk = PageMap::open(&mut chip, Options::default()).unwrap();
        learn_all(&mut disk, &mut model);
        let failed = loop {
            if let Err(error) = step(&mut disk, &mut model, &mut random) {
                break error;
            }
        };
        if refuse.is_some() && matches!(failed, Error::Full { .. }) {
            return cuts;
        }
        assert_eq!(failed, Error::PowerCut);
    }
    60
}

#[test]
fn nothing_flushed_is_lost_when_the_power_is_cut() {
    for_seeds("nothing_flushed", 72, |seed| assert_eq!(cut_again_and_again(seed, None), 60));
}

#[test]
fn nothing_flushed_is_lost_when_a_chip_refuses_and_the_power_is_cut() {
    for_seeds("when_a_chip_refuses_and", 72, |seed| {
        assert!(cut_again_and_again(seed, Some(400)) > 1, "full too early");
    });
}

#[test]
fn a_chip_that_refuses_loses_nothing_until_it_is_full() {
    for_seeds("a_chip_that_refuses", 72, |seed| {
        let mut chip = chip(seed);
        let mut model = full_disk(&mut chip);
        chip.refuse = Some(300);
        let mut random = ChaCha8Rng::seed_from_u64(seed + 2000);
        loop {
            let mut disk = PageMap::open(&mut chip, Options::default()).unwrap();
            learn_all(&mut disk, &mut model);
            let outcome = (0..500).try_for_each(|_| step(&mut disk, &mut model, &mut random));
            if let Err(error) = outcome {
                assert!(matches!(error, Error::Full { .. }), "{error}");
                break;
            }
        }
        assert!(chip.refused > 3, "{} refusals", chip.refused);
        let mut disk = PageMap::open(&mut chip, Options::default()).unwrap();
        learn_all(&mut disk, &mut model);
    });
}
