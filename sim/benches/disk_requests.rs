//! How many requests a second the simulated disk serves, on one core:
//! `cargo bench -p flashtree-sim --bench disk_requests`. The figure is the column of items a
//! second.

#![allow(clippy::expect_used, reason = "a benchmark may stop")]

use device::{Cause, DiskCosts, Request, Sector, SectorGeometry, Sectors};
use divan::counter::ItemsCount;
use flashtree_sim::{Cut, DiskFaultPlan, HardDisk, SimulatedDisk};

const SECTORS: u64 = 1 << 15;

fn main() {
    divan::main();
}

fn geometry() -> SectorGeometry {
    SectorGeometry::new(2048, SECTORS).expect("the numbers are in their bounds")
}

/// A random read for each random write, of 2 KiB each.
fn requests(bencher: divan::Bencher<'_, '_>, mut disk: SimulatedDisk) {
    let mut page = vec![0x5A; 2048];
    let mut somewhere = 1_u64;
    let mut next = move || {
        somewhere = somewhere.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Sector((somewhere >> 33) % SECTORS)
    };
    bencher.counter(ItemsCount::new(1000_u64)).bench_local(|| {
        for _ in 0..500 {
            disk.write(next(), &page, Cause::Flush).expect("the sector exists");
            let mut request = [Request { first: next(), offset: 0, into: &mut page }];
            disk.read(&mut request, Cause::Lookup).expect("the sector exists");
        }
        disk.flush(Cause::Flush).expect("there is power");
    });
}

#[divan::bench]
fn four_numbers(bencher: divan::Bencher<'_, '_>) {
    requests(bencher, SimulatedDisk::new(geometry(), DiskCosts::default()));
}

#[divan::bench]
fn hard_disk(bencher: divan::Bencher<'_, '_>) {
    requests(bencher, SimulatedDisk::hard(geometry(), HardDisk::SATA_7200));
}

#[divan::bench]
fn armed(bencher: divan::Bencher<'_, '_>) {
    let plan = DiskFaultPlan::cut(1, Cut::Change(1 << 50));
    requests(bencher, SimulatedDisk::new(geometry(), DiskCosts::default()).with_faults(plan));
}
