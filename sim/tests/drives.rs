//! Simulated solid-state drives: what their requests cost, what their flash does, what they hold.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use device::{Cause, Error, GeometryFault, Meter, Request, Sector, SectorGeometry, Sectors};
use device::{FlashBytes, SolidState};
use flashtree_sim::{Cut, DiskFaultPlan, SimulatedDisk, Unflushed};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SECTOR: usize = 2048;
const MIB: u64 = 1 << 20;

/// 4 channels of 2 chips, whose times are round; units of 64 KiB, half a block of each chip. A
/// page crosses a channel in 50 us and the link in 10 us.
const DRIVE: SolidState = SolidState {
    drive_bytes: 64 * MIB,
    flash_bytes: 66 * MIB,
    channels: 4,
    chips_per_channel: 2,
    page_bytes: 2048,
    spare_bytes: 0,
    pages_per_block: 8,
    read_ns: 30_000,
    program_ns: 200_000,
    erase_ns: 1_000_000,
    bus_ps_per_byte: 50_000_000 / 2048,
    mapping_unit_bytes: 64 << 10,
    write_cache_bytes: 16 * (64 << 10),
    command_ns: 20_000,
    link_ps_per_byte: 10_000_000 / 2048,
    queue_depth: 32,
};

/// Sectors of a mapping unit.
const UNIT: u64 = 32;

fn drive_of(drive: SolidState, bytes: u64) -> SimulatedDisk {
    let geometry = SectorGeometry::new(SECTOR as u32, bytes / SECTOR as u64).unwrap();
    SimulatedDisk::solid_state(geometry, drive).unwrap()
}

fn drive() -> SimulatedDisk {
    drive_of(DRIVE, 32 * MIB)
}

fn meter(disk: &SimulatedDisk) -> &Meter {
    disk.meter().unwrap()
}

fn flash(disk: &SimulatedDisk) -> FlashBytes {
    meter(disk).flash().unwrap()
}

fn time_of(disk: &mut SimulatedDisk, act: impl FnOnce(&mut SimulatedDisk)) -> u64 {
    let before = meter(disk).time_ns();
    act(disk);
    meter(disk).time_ns() - before
}

fn write(disk: &mut SimulatedDisk, first: u64, sectors: u64) -> u64 {
    let bytes = vec![7; sectors as usize * SECTOR];
    time_of(disk, |disk| disk.write(Sector(first), &bytes, Cause::Flush).unwrap())
}

/// Reads `sectors` sectors at each of `places` in one call.
fn read(disk: &mut SimulatedDisk, places: &[u64], sectors: u64) -> u64 {
    let mut buffers = vec![vec![0; sectors as usize * SECTOR]; places.len()];
    let mut requests: Vec<Request<'_>> = places
        .iter()
        .zip(&mut buffers)
        .map(|(first, into)| Request { first: Sector(*first), offset: 0, into })
        .collect();
    time_of(disk, |disk| disk.read(&mut requests, Cause::Lookup).unwrap())
}

/// What a time in microseconds is, with a microsecond for rounding.
#[track_caller]
fn assert_us(time_ns: u64, us: u64) {
    assert!(time_ns.abs_diff(us * 1000) < 1000, "{time_ns} ns, not {us} us");
}

#[test]
fn a_read_takes_command_chip_channel_and_link() {
    let mut disk = drive();
    assert_us(read(&mut disk, &[1000], 1), 20 + 30 + 50 + 10);
    // Eight pages are on eight chips, of which two share a channel: the last of them is there after
    // two crossings, while the link moves the others.
    assert_us(read(&mut disk, &[0], 8), 20 + 30 + 2 * 50 + 4 * 10);
    assert_eq!(flash(&disk), FlashBytes { read: 9 * SECTOR as u64, programmed: 0 });
}

#[test]
fn requests_of_one_call_use_all_channels_as_far_as_commands_are_queued() {
    // The sectors 0 to 7 of units are on the eight chips in turn.
    let places: Vec<u64> = (0..8).map(|place| place * UNIT + place).collect();
    let at_once = read(&mut drive(), &places, 1);
    let mut single = drive();
    let one_by_one: u64 = places.iter().map(|place| read(&mut single, &[*place], 1)).sum();
    assert_us(one_by_one, 8 * 110);
    // The controller takes a command each 20 us, and the last one is served.
    assert_us(at_once, 7 * 20 + 110);
    let mut unqueued = drive_of(SolidState { queue_depth: 1, ..DRIVE }, 32 * MIB);
    assert_us(read(&mut unqueued, &places, 1), 8 * 110);
    // All on one chip take turns.
    let same: Vec<u64> = (0..8).map(|place| place * UNIT).collect();
    assert_us(read(&mut drive(), &same, 1), 20 + 8 * (30 + 50) + 10);
}

#[test]
fn sequential_writes_need_no_merge() {
    let mut disk = drive();
    let sectors = disk.geometry().sectors();
    for round in 0..4 {
        for first in (0..sectors).step_by(4) {
            write(&mut disk, first, 4);
        }
        let programmed = (round + 1) * 32 * MIB;
        assert_eq!(flash(&disk), FlashBytes { read: 0, programmed });
    }
    disk.flush(Cause::Flush).unwrap();
    assert_eq!(flash(&disk).programmed, 4 * 32 * MIB, "every unit was whole");
    // 1024 stripes of 128 KiB were filled. 16 are spare, of which one is open and two stay free.
    let erased: u64 = meter(&disk).erases().iter().map(|erases| u64::from(*erases)).sum();
    assert_eq!(erased, 1024 - 16 + 2);
    assert_eq!(meter(&disk).total().block_erases, erased * 8);
    let most = meter(&disk).erases().iter().max().unwrap();
    assert!(*most <= 4, "all stripes take turns, and none was erased {most} times");
    // All chips program at the same time: 8 pages each 250 us, and a block each 8 pages of a chip.
    let time = write(&mut disk, 0, 4096)
        + time_of(&mut disk, |disk| {
            disk.flush(Cause::Flush).unwrap();
        });
    assert!(time.abs_diff(4096 / 8 * (250_000 + 1_000_000 / 8)) < 3_000_000, "{time} ns");
}

#[test]
fn a_random_write_rewrites_its_unit() {
    // With little spare flash, other units have to be moved as often.
    let mut disk = drive_of(SolidState { flash_bytes: 96 * MIB, ..DRIVE }, 32 * MIB);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut next = || random.random_range(0..16_384);
    for _ in 0..1000 {
        write(&mut disk, next(), 1);
    }
    let (before, start) = (flash(&disk), meter(&disk).time_ns());
    let erased = meter(&disk).total().block_erases;
    for _ in 0..1000 {
        write(&mut disk, next(), 1);
    }
    let programmed = flash(&disk).programmed - before.programmed;
    let read = flash(&disk).read - before.read;
    let moved = programmed / (64 << 10);
    // Nearly each write is to a unit that is not in the cache; some units are moved, too.
    assert!((900..1400).contains(&moved), "{moved} units were programmed");
    // All of its pages but one are read.
    assert!(read > programmed * 30 / 32 && read < programmed, "{read} of {programmed}");
    let erased = meter(&disk).total().block_erases - erased;
    assert!(erased.abs_diff(moved / 2 * 8) <= 64, "{erased} blocks for {moved} units");
    // Each chip reads and programs 4 pages a unit, 330 us each, and erases for each two units.
    let time = meter(&disk).time_ns() - start;
    let work = moved * 4 * 330_000 + erased / 8 * 1_000_000;
    assert!(time.abs_diff(work) < work / 20, "{time} ns for {work} ns of work");
}

#[test]
fn random_writes_in_what_the_cache_holds_cost_what_sequential_ones_do() {
    let mut disk = drive();
    let sequential: u64 = (0..1000).map(|place| write(&mut disk, place, 1)).sum();
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let cached: u64 =
        (0..1000).map(|_| write(&mut disk, 500 + random.random_range(0..12 * UNIT), 1)).sum();
    assert!(cached.abs_diff(sequential) < sequential / 20, "{cached} ns, {sequential} ns");
}

#[test]
fn what_is_in_the_cache_is_read_from_there() {
    let mut disk = drive();
    write(&mut disk, 5 * UNIT, 3);
    assert_us(read(&mut disk, &[5 * UNIT], 3), 20 + 3 * 10);
    assert_eq!(flash(&disk), FlashBytes::default());
    assert_us(read(&mut disk, &[5 * UNIT + 3], 1), 110);
}

#[test]
fn a_flush_waits_for_the_flash() {
    let mut disk = drive();
    assert_us(time_of(&mut disk, |disk| disk.flush(Cause::Flush).unwrap()), 20);
    write(&mut disk, 40, 1);
    let flushed = time_of(&mut disk, |disk| disk.flush(Cause::Journal).unwrap());
    // Four pages of each chip are programmed, and nearly all of them read before.
    assert!((4 * 250_000..4 * 330_000 + 120_000).contains(&flushed), "{flushed} ns");
    assert_eq!(flash(&disk), FlashBytes { read: 31 * SECTOR as u64, programmed: 64 << 10 });
    assert_eq!(meter(&disk).tally(Cause::Journal).time_ns, flushed);
}

#[test]
fn a_read_waits_for_a_page_of_the_drives_own_work_and_not_for_all_of_it() {
    let mut disk = drive();
    for place in 0..64 {
        write(&mut disk, place * UNIT, 1);
    }
    let waited = read(&mut disk, &[100 * UNIT], 1);
    assert!((109_000..110_000 + 250_000 + 50_000).contains(&waited), "{waited} ns");
}

#[test]
fn a_drive_is_the_same_in_every_run_and_as_a_copy() {
    let run = |mut disk: SimulatedDisk| {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..500 {
            write(&mut disk, random.random_range(0..16_000), 2);
            read(&mut disk, &[random.random_range(0..16_000)], 1);
        }
        meter(&disk).clone()
    };
    let disk = drive();
    assert_eq!(run(disk.clone()), run(disk));
    assert!(!run(drive()).energy_known());
}

#[test]
fn the_costs_that_trees_are_told_are_those_that_requests_have() {
    let mut disk = drive();
    let costs = disk.costs().unwrap();
    assert_us(costs.read.random.charge(0, 1).time_ns, 110);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut mean = |disk: &mut SimulatedDisk| {
        (0..2000).map(|_| write(disk, random.random_range(0..16_384), 1)).sum::<u64>() / 2000
    };
    mean(&mut disk);
    let (told, found) = (costs.write.random.charge(0, 1).time_ns, mean(&mut disk));
    assert!(told.abs_diff(found) < found * 3 / 10, "told {told} ns, found {found} ns");
    // On a drive whose stripes were filled at random, long writes have to move units, too.
    let mut disk = drive();
    let told = costs.write.sequential.charge(0, 256).time_ns;
    let found = (0..64).map(|place| write(&mut disk, place * 256, 256)).sum::<u64>() / 64;
    assert!(told.abs_diff(found) < found * 3 / 10, "told {told} ns, found {found} ns");
}

#[test]
fn a_drive_keeps_what_a_cut_has_to_leave() {
    let mut disk = drive();
    disk.arm(DiskFaultPlan {
        unflushed: Unflushed::Lost,
        ..DiskFaultPlan::cut(1, Cut::Operation(4))
    });
    write(&mut disk, 3, 1);
    disk.flush(Cause::Flush).unwrap();
    write(&mut disk, 4, 1);
    let mut into = [0; SECTOR];
    let mut request = [Request { first: Sector(3), offset: 0, into: &mut into }];
    assert_eq!(disk.read(&mut request, Cause::Lookup), Err(Error::PowerCut));
    disk.restore_power();
    for (sector, byte) in [(3, 7), (4, 0)] {
        let mut into = [1; SECTOR];
        let request = Request { first: Sector(sector), offset: 0, into: &mut into };
        disk.read(&mut [request], Cause::Lookup).unwrap();
        assert_eq!(into, [byte; SECTOR], "sector {sector}");
    }
}

#[test]
fn a_drive_of_gigabytes_takes_memory_for_what_was_written() {
    let bytes = 80_000_000_000 / 2048 * 2048;
    let large = SolidState { drive_bytes: bytes, flash_bytes: 80 << 30, ..DRIVE };
    let mut disk = drive_of(large, bytes);
    write(&mut disk, bytes / 2048 - 1, 1);
    assert!(disk.resident_bytes() <= 16 << 10, "{} bytes", disk.resident_bytes());
}

#[test]
fn figures_that_make_no_drive_are_refused() {
    let geometry = SectorGeometry::new(SECTOR as u32, 64).unwrap();
    let refused = SimulatedDisk::solid_state(geometry, SolidState { channels: 0, ..DRIVE });
    assert!(matches!(refused, Err(Error::Geometry(GeometryFault::SolidState(_)))));
}
