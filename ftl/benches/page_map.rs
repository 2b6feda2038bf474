//! What a page-mapped disk costs the host that simulates it: `cargo bench -p flashtree-ftl`.
//!
//! `write` is a disk that is full to its last sector, at random, so that every write pays for
//! collection; the figure is the column of items a second. `checksum` is what the data's checksum
//! takes of it.

#![allow(clippy::expect_used, reason = "a benchmark may stop")]

use crc::{CRC_32_ISCSI, Crc, Table};
use device::{Cause, Geometry, NandCosts, Request, Sector, Sectors};
use divan::counter::{BytesCount, ItemsCount};
use flashtree_ftl::{Options, PageMap};
use sim::SimulatedNand;

fn main() {
    divan::main();
}

/// Counts on from a seed; good enough to choose sectors.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % end
    }
}

/// A full disk of 32 MiB that was overwritten three times.
fn disk(page_bytes: u32, spare_bytes: u32) -> (PageMap<SimulatedNand>, Numbers) {
    let geometry = Geometry::new(page_bytes, 64, (32 << 20) / 64 / page_bytes)
        .and_then(|geometry| geometry.with_spare(spare_bytes))
        .expect("the numbers are in their bounds");
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let mut disk = PageMap::format(chip, Options::default()).expect("the chip is large enough");
    let sectors = disk.geometry().sectors();
    let page = vec![0x5A; page_bytes as usize];
    for sector in 0..sectors {
        disk.write(Sector(sector), &page, Cause::Load).expect("there is room");
    }
    let mut numbers = Numbers(1);
    for _ in 0..3 * sectors {
        let sector = Sector(numbers.below(sectors));
        disk.write(sector, &page, Cause::Load).expect("there is room");
    }
    (disk, numbers)
}

#[divan::bench(args = [(512, 16), (512, 0), (2048, 64), (2048, 0)])]
fn write(bencher: divan::Bencher<'_, '_>, (page_bytes, spare_bytes): (u32, u32)) {
    let (mut disk, mut numbers) = disk(page_bytes, spare_bytes);
    let page = vec![0x5A; page_bytes as usize];
    let sectors = disk.geometry().sectors();
    let before = *disk.statistics();
    bencher.counter(ItemsCount::new(1000_u64)).bench_local(|| {
        for _ in 0..1000 {
            let sector = Sector(numbers.below(sectors));
            disk.write(sector, divan::black_box(&page), Cause::Update).expect("there is room");
        }
    });
    let after = disk.statistics();
    let written = (after.sectors_written - before.sectors_written).max(1);
    let programmed = after.pages_programmed - before.pages_programmed;
    println!("programs a write: {:.2}", programmed as f64 / written as f64);
}

#[divan::bench(args = [512, 2048])]
fn read(bencher: divan::Bencher<'_, '_>, page_bytes: u32) {
    let (mut disk, mut numbers) = disk(page_bytes, 64);
    let mut page = vec![0; page_bytes as usize];
    let sectors = disk.geometry().sectors();
    bencher.counter(ItemsCount::new(1000_u64)).bench_local(|| {
        for _ in 0..1000 {
            let first = Sector(numbers.below(sectors));
            let mut requests = [Request { first, offset: 0, into: &mut page }];
            disk.read(&mut requests, Cause::Lookup).expect("the sector exists");
        }
    });
}

#[divan::bench(args = [512, 2048])]
fn open(bencher: divan::Bencher<'_, '_>, page_bytes: u32) {
    let mut chip = disk(page_bytes, 64).0.into_nand();
    bencher.bench_local(|| {
        let disk = PageMap::open(&mut chip, Options::default()).expect("the disk is there");
        assert!(disk.table_bytes() > 0);
    });
}

#[divan::bench(args = [512, 2048])]
fn checksum_with_1_kib_table(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    static CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISCSI);
    let page = vec![0x5A; bytes];
    bencher.counter(BytesCount::new(bytes)).bench_local(|| CRC.checksum(divan::black_box(&page)));
}

#[divan::bench(args = [512, 2048])]
fn checksum_with_16_kib_table(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
    let page = vec![0x5A; bytes];
    bencher.counter(BytesCount::new(bytes)).bench_local(|| CRC.checksum(divan::black_box(&page)));
}
