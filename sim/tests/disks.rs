//! What a simulated disk holds, and what its requests cost.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use device::{
    Access, Cause, Cost, DiskCosts, Error, Linear, Request, Sector, SectorGeometry, Sectors, Tally,
};
use flashtree_sim::{HardDisk, SimulatedDisk};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SECTOR: usize = 512;

fn shape(sectors: u64) -> SectorGeometry {
    SectorGeometry::new(SECTOR as u32, sectors).unwrap()
}

/// Random reads 1000 + 10 a page, sequential ones 10 a page; writes ten times that.
fn costs() -> DiskCosts {
    let cost = |fixed: u64, per_page| Cost {
        time: Linear { fixed, per_byte_thousandths: 0, per_page },
        energy: Some(Linear::fixed(fixed + 1)),
    };
    let access = |factor: u64| Access {
        random: cost(1000 * factor, 10 * factor),
        sequential: cost(0, 10 * factor),
    };
    DiskCosts { read: access(1), write: access(10) }
}

fn disk() -> SimulatedDisk {
    SimulatedDisk::new(shape(1000), costs())
}

/// Reads and returns the time that it took.
fn read(disk: &mut SimulatedDisk, first: u64, offset: u32, bytes: usize) -> u64 {
    let before = disk.meter().unwrap().time_ns();
    let mut into = vec![0; bytes];
    let request = Request { first: Sector(first), offset, into: &mut into };
    disk.read(&mut [request], Cause::Lookup).unwrap();
    disk.meter().unwrap().time_ns() - before
}

/// Writes whole sectors and returns the time that it took.
fn write(disk: &mut SimulatedDisk, first: u64, sectors: usize) -> u64 {
    let before = disk.meter().unwrap().time_ns();
    disk.write(Sector(first), &vec![7; sectors * SECTOR], Cause::Flush).unwrap();
    disk.meter().unwrap().time_ns() - before
}

#[test]
fn a_request_is_sequential_if_it_follows_the_one_before_of_its_kind() {
    let mut disk = disk();
    assert_eq!(read(&mut disk, 0, 0, SECTOR), 1010, "the first request of all");
    assert_eq!(read(&mut disk, 1, 0, 2 * SECTOR), 20);
    assert_eq!(write(&mut disk, 3, 1), 10_100, "the first write");
    assert_eq!(read(&mut disk, 3, 0, SECTOR), 10, "a write between does not matter");
    assert_eq!(write(&mut disk, 4, 3), 300, "a read between does not matter");
    assert_eq!(read(&mut disk, 3, 0, SECTOR), 1010, "the same again");
    assert_eq!(read(&mut disk, 5, 0, SECTOR), 1010, "one was left out");
    assert_eq!(read(&mut disk, 4, 0, SECTOR), 1010, "backwards");
    disk.flush(Cause::Flush).unwrap();
    disk.trim(Sector(9), 1, Cause::Flush).unwrap();
    assert_eq!(read(&mut disk, 5, 0, SECTOR), 10, "flushes and trims do not matter");
}

#[test]
fn parts_of_sectors_count_as_whole_ones_and_may_follow_each_other() {
    let mut disk = disk();
    assert_eq!(read(&mut disk, 0, 100, 100), 1010);
    assert_eq!(read(&mut disk, 0, 200, 112), 10, "it goes on in the same sector");
    assert_eq!(read(&mut disk, 1, 0, 10), 10, "it goes on with the next sector");
    assert_eq!(read(&mut disk, 1, 500, 100), 1020, "a part of each of two sectors");
    assert_eq!(read(&mut disk, 0, 900, 10), 1010, "an offset may go beyond the sector");
}

#[test]
fn the_requests_of_a_read_are_charged_one_by_one() {
    let mut disk = disk();
    let mut buffers = [[0; SECTOR]; 4];
    let places = [5, 6, 100, 101];
    let mut requests: Vec<Request<'_>> = buffers
        .iter_mut()
        .zip(places)
        .map(|(into, first)| Request { first: Sector(first), offset: 0, into })
        .collect();
    disk.read(&mut requests, Cause::Merge).unwrap();
    disk.write(Sector(5), &[0; SECTOR], Cause::Load).unwrap();
    let meter = disk.meter().unwrap();
    let merge = Tally {
        page_reads: 4,
        bytes_read: 4 * SECTOR as u64,
        time_ns: 2 * 1010 + 2 * 10,
        energy_pj: 2 * 1001 + 2,
        ..Tally::default()
    };
    assert_eq!(*meter.tally(Cause::Merge), merge);
    assert_eq!(meter.tally(Cause::Load).page_programs, 1);
    assert_eq!(meter.tally(Cause::Load).bytes_programmed, SECTOR as u64);
    assert!(meter.erases().is_empty() && meter.energy_known());
}

#[test]
fn what_is_not_on_the_disk_is_refused_and_nothing_happens() {
    let mut disk = disk();
    write(&mut disk, 999, 1);
    let meter = disk.meter().unwrap().clone();
    let (mut good, mut bad) = ([9; SECTOR], [9; SECTOR]);
    let mut requests = [
        Request { first: Sector(999), offset: 0, into: &mut good },
        Request { first: Sector(999), offset: 1, into: &mut bad },
    ];
    let beyond = Error::NoSuchSector { sector: Sector(1000), sectors: 1000 };
    assert_eq!(disk.read(&mut requests, Cause::Lookup), Err(beyond));
    assert_eq!(good, [9; SECTOR], "nothing was read");
    assert_eq!(disk.write(Sector(999), &[1; 2 * SECTOR], Cause::Flush), Err(beyond));
    let odd = disk.write(Sector(0), &[1; 100], Cause::Flush);
    assert_eq!(odd, Err(Error::BadLength { offset: 0, length: 100, limit: SECTOR as u32 }));
    assert_eq!(disk.trim(Sector(1), 1000, Cause::Flush), Err(beyond));
    assert!(disk.trim(Sector(u64::MAX), u64::MAX, Cause::Flush).is_err());
    assert!(disk.trim(Sector(0), u64::MAX, Cause::Flush).is_err());
    assert_eq!(disk.meter().unwrap(), &meter);
    assert_eq!(disk.operations(), 1);
}

#[test]
fn a_request_of_nothing_costs_nothing() {
    let mut disk = disk();
    assert_eq!(read(&mut disk, 5, 0, 0) + write(&mut disk, 5, 0), 0);
    assert_eq!((disk.operations(), disk.meter().unwrap().total()), (0, Tally::default()));
}

#[test]
fn a_disk_holds_what_was_written_like_an_array_of_bytes() {
    for seed in 0..20 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut disk = SimulatedDisk::new(shape(200), costs());
        let mut model = vec![0; 200 * SECTOR];
        for _ in 0..300 {
            let first = random.random_range(0..200);
            let count = random.random_range(1..=(200 - first).min(70));
            let (start, end) = (first * SECTOR, (first + count) * SECTOR);
            match random.random_range(0..4) {
                0 => {
                    disk.trim(Sector(first as u64), count as u64, Cause::Flush).unwrap();
                    model[start..end].fill(0);
                }
                1 => {
                    let bytes = vec![random.random(); end - start];
                    disk.write(Sector(first as u64), &bytes, Cause::Flush).unwrap();
                    model[start..end].copy_from_slice(&bytes);
                }
                _ => {
                    let offset = random.random_range(0..SECTOR);
                    let mut into = vec![1; end - start - offset];
                    let request = Request {
                        first: Sector(first as u64),
                        offset: offset as u32,
                        into: &mut into,
                    };
                    disk.read(&mut [request], Cause::Lookup).unwrap();
                    assert_eq!(into, &model[start + offset..end], "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn memory_is_taken_only_for_sectors_that_hold_data() {
    let mut disk = SimulatedDisk::new(shape(1 << 40), costs());
    assert_eq!(disk.resident_bytes(), 0);
    for place in 0..100 {
        write(&mut disk, place << 30, 1);
    }
    assert!(disk.resident_bytes() <= 100 << 14);
    read(&mut disk, 5 << 20, 0, 100_000);
    disk.trim(Sector(0), 1 << 40, Cause::Flush).unwrap();
    assert_eq!(disk.resident_bytes(), 0);
}

fn hard() -> SimulatedDisk {
    SimulatedDisk::hard(SectorGeometry::new(2048, 1 << 22).unwrap(), HardDisk::SATA_7200)
}

fn time_of(disk: &mut SimulatedDisk, act: impl FnOnce(&mut SimulatedDisk)) -> u64 {
    let before = disk.meter().unwrap().time_ns();
    act(disk);
    disk.meter().unwrap().time_ns() - before
}

#[test]
fn a_hard_disk_reads_a_long_run_at_its_transfer_rate() {
    let mut disk = hard();
    let mut into = vec![0; 512 << 10];
    let mut run = |disk: &mut SimulatedDisk, place: u64| {
        time_of(disk, |disk| {
            let request = Request { first: Sector(place * 256), offset: 0, into: &mut into };
            disk.read(&mut [request], Cause::Merge).unwrap();
        })
    };
    for place in 0..16 {
        // 50 us and 524,288 bytes at 64.8 MB/s.
        assert_eq!(run(&mut disk, place), 50_000 + 524_288 * 15_432 / 1000);
    }
    let back = run(&mut disk, 0);
    assert!(back > 50_000 + 8_090_812 + 800_000, "a seek: {back}");
}

#[test]
fn a_hard_disk_takes_a_seek_and_half_a_rotation_for_a_random_request() {
    let geometry = SectorGeometry::new(2048, 500_000_000_000 / 2048).unwrap();
    let mean = |act: &dyn Fn(&mut SimulatedDisk, Sector)| {
        let mut disk = SimulatedDisk::hard(geometry, HardDisk::SATA_7200);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut next = || Sector(random.random_range(0..geometry.sectors()));
        (0..20_000).map(|_| time_of(&mut disk, |disk| act(disk, next()))).sum::<u64>() / 20_000
    };
    let read = mean(&|disk, first| {
        let request = Request { first, offset: 0, into: &mut [0; 2048] };
        disk.read(&mut [request], Cause::Lookup).unwrap();
    });
    // 0.05 + 8.5 + 8.33 / 2 + 2048 bytes at 64.8 MB/s, in ms.
    assert!(read.abs_diff(12_748_000) < 100_000, "{read} ns");
    let write = mean(&|disk, first| disk.write(first, &[1; 2048], Cause::Flush).unwrap());
    assert!(write.abs_diff(13_748_000) < 100_000, "{write} ns");
}

#[test]
fn a_hard_disk_takes_the_same_time_in_every_run() {
    let run = || {
        let mut disk = hard();
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..1000 {
            write_at(&mut disk, random.random_range(0..1 << 22));
        }
        disk.meter().unwrap().clone()
    };
    assert_eq!(run(), run());
    assert!(!run().energy_known());
}

fn write_at(disk: &mut SimulatedDisk, sector: u64) {
    disk.write(Sector(sector), &[1; 2048], Cause::Flush).unwrap();
}
