//! What block mapping and FAST cost the host that simulates them: `cargo bench -p flashtree-ftl
//! --bench hybrid`.
//!
//! `write_in_order` pays for no copies: it is the price of a write itself. `write_to_the_log` is
//! FAST's other path, where victims hold nothing that lives. `write_anywhere` pays for merges; the
//! pages that were copied stand below it.

#![allow(clippy::expect_used, reason = "a benchmark may stop")]

use device::{Cause, Geometry, NandCosts, Sector, Sectors};
use divan::counter::ItemsCount;
use flashtree_ftl::{Layer, Options, find};
use sim::SimulatedNand;

fn main() {
    divan::main();
}

const WRITES: u64 = 1000;

/// A full disk of 32 MiB.
fn disk(name: &str, page_bytes: u32, spare_bytes: u32) -> Box<dyn Layer> {
    let geometry = Geometry::new(page_bytes, 64, (32 << 20) / 64 / page_bytes)
        .and_then(|geometry| geometry.with_spare(spare_bytes))
        .expect("the numbers are in their bounds");
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let entry = find(name).expect("the layer exists");
    let mut disk = (entry.create)(Box::new(chip), &Options::default()).expect("it fits");
    let page = vec![0x5A; page_bytes as usize];
    for sector in (0..disk.geometry().sectors()).chain(0..disk.geometry().sectors()) {
        disk.write(Sector(sector), &page, Cause::Load).expect("there is room");
    }
    disk
}

fn write(
    bencher: divan::Bencher<'_, '_>,
    mut disk: Box<dyn Layer>,
    mut choose: impl FnMut(u64) -> u64,
) {
    let page = vec![0x5A; disk.geometry().sector_bytes() as usize];
    let before = *disk.statistics();
    bencher.counter(ItemsCount::new(WRITES)).bench_local(|| {
        for _ in 0..WRITES {
            let sector = Sector(choose(disk.geometry().sectors()));
            disk.write(sector, divan::black_box(&page), Cause::Update).expect("there is room");
        }
    });
    let did = disk.statistics();
    let written = (did.sectors_written - before.sectors_written).max(1);
    let copied = did.pages_moved - before.pages_moved;
    println!("copies a write: {:.2}", copied as f64 / written as f64);
}

#[divan::bench(args = [("block-map", 64), ("block-map", 0), ("fast", 64), ("fast", 0)])]
fn write_in_order(bencher: divan::Bencher<'_, '_>, (name, spare_bytes): (&str, u32)) {
    let mut next = 0;
    write(bencher, disk(name, 2048, spare_bytes), |sectors| {
        next = (next + 1) % sectors;
        next
    });
}

#[divan::bench(args = [64, 0])]
fn write_to_the_log(bencher: divan::Bencher<'_, '_>, spare_bytes: u32) {
    let mut next = 0;
    write(bencher, disk("fast", 2048, spare_bytes), |_| {
        next = (next + 1) % 60;
        1 + next
    });
}

#[divan::bench(args = [("block-map", 64), ("fast", 64), ("fast", 0)])]
fn write_anywhere(bencher: divan::Bencher<'_, '_>, (name, spare_bytes): (&str, u32)) {
    let mut state = 1_u64;
    write(bencher, disk(name, 2048, spare_bytes), |sectors| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state >> 33) % sectors
    });
}
