//! What power cuts and failures leave on a simulated disk.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod common;

use std::collections::BTreeSet;

use common::with_seeds;
use device::{Cause, DiskCosts, Error, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_sim::{
    Cut, DiskFaultPlan, FaultKind, FaultLog, HardDisk, SimulatedDisk, Trimmed, Unflushed,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SECTOR: usize = 512;
const SECTORS: u64 = 32;

fn disk(plan: DiskFaultPlan) -> SimulatedDisk {
    let geometry = SectorGeometry::new(SECTOR as u32, SECTORS).unwrap();
    SimulatedDisk::new(geometry, DiskCosts::default()).with_faults(plan)
}

fn read(disk: &mut SimulatedDisk, sector: u64) -> Result<[u8; SECTOR]> {
    let mut into = [0; SECTOR];
    let request = Request { first: Sector(sector), offset: 0, into: &mut into };
    disk.read(&mut [request], Cause::Lookup)?;
    Ok(into)
}

fn write(disk: &mut SimulatedDisk, first: u64, count: usize, byte: u8) -> Result<()> {
    disk.write(Sector(first), &vec![byte; count * SECTOR], Cause::Flush)
}

fn flush(disk: &mut SimulatedDisk) -> Result<()> {
    disk.flush(Cause::Flush)
}

#[test]
fn everything_from_the_cut_on_is_refused_until_the_power_is_back() {
    let mut disk = disk(DiskFaultPlan::cut(1, Cut::Operation(4)));
    write(&mut disk, 0, 1, 1).unwrap();
    flush(&mut disk).unwrap();
    read(&mut disk, 0).unwrap();
    assert_eq!(read(&mut disk, 0), Err(Error::PowerCut));
    let meter = disk.meter().unwrap().clone();
    assert_eq!(read(&mut disk, 0), Err(Error::PowerCut));
    assert_eq!(read(&mut disk, 99), Err(Error::PowerCut));
    assert_eq!(write(&mut disk, 0, 1, 2), Err(Error::PowerCut));
    assert_eq!(disk.write(Sector(0), &[1], Cause::Flush), Err(Error::PowerCut));
    assert_eq!(disk.trim(Sector(0), 1, Cause::Flush), Err(Error::PowerCut));
    assert_eq!(disk.trim(Sector(99), 1, Cause::Flush), Err(Error::PowerCut));
    assert_eq!(flush(&mut disk), Err(Error::PowerCut));
    assert_eq!(disk.meter().unwrap(), &meter);
    assert_eq!((disk.operations(), disk.changes()), (4, 2));
    assert!(disk.is_without_power());
    disk.restore_power();
    assert_eq!(read(&mut disk, 0), Ok([1; SECTOR]));
    assert_eq!(disk.faults().count(FaultKind::PowerCut), 1);
}

#[test]
fn a_cut_at_a_change_passes_over_reads() {
    for (at, survived) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let mut disk = disk(DiskFaultPlan::cut(1, Cut::Change(at)));
        let mut done = 0;
        for change in 0..4 {
            for _ in 0..3 {
                let _ = read(&mut disk, 0);
            }
            done += u64::from(match change {
                0 => write(&mut disk, 0, 1, 1).is_ok(),
                1 => disk.trim(Sector(5), 1, Cause::Flush).is_ok(),
                2 => flush(&mut disk).is_ok(),
                _ => write(&mut disk, 1, 1, 1).is_ok(),
            });
        }
        assert_eq!(done, survived);
    }
}

#[test]
fn what_was_flushed_stays_and_what_was_not_may_be_lost_or_kept() {
    with_seeds("disk_faults", "may_be_lost_or_kept", 20, |seed| {
        for (unflushed, byte, kind) in [
            (Unflushed::Lost, 1, FaultKind::SectorLost),
            (Unflushed::Kept, 3, FaultKind::SectorKept),
        ] {
            let mut disk = disk(DiskFaultPlan { unflushed, ..DiskFaultPlan::seeded(seed) });
            write(&mut disk, 0, 8, 1).unwrap();
            flush(&mut disk).unwrap();
            write(&mut disk, 0, 4, 2).unwrap();
            write(&mut disk, 0, 4, 3).unwrap();
            disk.cut_power();
            disk.restore_power();
            for sector in 0..4 {
                assert_eq!(read(&mut disk, sector), Ok([byte; SECTOR]));
            }
            for sector in 4..8 {
                assert_eq!(read(&mut disk, sector), Ok([1; SECTOR]));
            }
            assert_eq!(disk.faults().count(kind), 4);
            // What the first cut left, the second leaves too.
            disk.cut_power();
            disk.restore_power();
            assert_eq!(read(&mut disk, 0), Ok([byte; SECTOR]));
        }
    });
}

#[test]
fn a_sector_may_hold_any_version_since_the_flush_or_be_torn() {
    for atomic_sectors in [true, false] {
        let mut versions = [0; 5];
        for seed in 0..300 {
            let unflushed = Unflushed::Mixed;
            let mut disk =
                disk(DiskFaultPlan { unflushed, atomic_sectors, ..DiskFaultPlan::seeded(seed) });
            write(&mut disk, 0, 1, 0).unwrap();
            flush(&mut disk).unwrap();
            for byte in 1..=3 {
                write(&mut disk, 0, 1, byte).unwrap();
            }
            disk.cut_power();
            disk.restore_power();
            let left = read(&mut disk, 0).unwrap();
            let whole = left.iter().all(|byte| *byte == left[0]);
            versions[if whole { usize::from(left[0].min(4)) } else { 4 }] += 1;
        }
        assert!(versions[..4].iter().all(|count| *count > 10), "{versions:?}");
        assert_eq!(versions[4] == 0, atomic_sectors, "{versions:?}");
    }
}

#[test]
fn a_write_that_is_cut_leaves_each_of_its_sectors_old_new_or_torn() {
    let mut kinds = FaultLog::default();
    for seed in 0..50 {
        for unflushed in [Unflushed::Lost, Unflushed::Kept] {
            let plan = DiskFaultPlan { unflushed, ..DiskFaultPlan::cut(seed, Cut::Change(2)) };
            let mut disk = disk(plan);
            write(&mut disk, 0, 4, 1).unwrap();
            assert_eq!(write(&mut disk, 8, 8, 2), Err(Error::PowerCut));
            disk.restore_power();
            let byte = if unflushed == Unflushed::Kept { 1 } else { 0 };
            for sector in 0..4 {
                assert_eq!(read(&mut disk, sector), Ok([byte; SECTOR]), "seed {seed}");
            }
            assert_eq!(read(&mut disk, 16), Ok([0; SECTOR]), "seed {seed}");
            kinds += disk.faults();
        }
    }
    for kind in [FaultKind::SectorLost, FaultKind::SectorKept, FaultKind::SectorTorn] {
        assert!(kinds.count(kind) > 150, "{kinds:?}");
    }
}

#[test]
fn a_flush_that_is_cut_promised_nothing() {
    let mut left = BTreeSet::new();
    for seed in 0..50 {
        let mut disk = disk(DiskFaultPlan::cut(seed, Cut::Change(2)));
        write(&mut disk, 0, 1, 1).unwrap();
        assert_eq!(flush(&mut disk), Err(Error::PowerCut));
        disk.restore_power();
        left.insert(read(&mut disk, 0).unwrap()[..8].to_vec());
    }
    assert!(left.contains(&vec![0; 8]) && left.contains(&vec![1; 8]), "{left:?}");
}

#[test]
fn a_trimmed_sector_may_keep_what_it_held() {
    let kept_of = |trimmed| {
        let mut disk = disk(DiskFaultPlan { trimmed, ..DiskFaultPlan::seeded(1) });
        write(&mut disk, 0, 32, 1).unwrap();
        flush(&mut disk).unwrap();
        disk.trim(Sector(0), 32, Cause::Flush).unwrap();
        let count = (0..32).filter(|sector| read(&mut disk, *sector) == Ok([1; SECTOR])).count();
        write(&mut disk, 3, 1, 2).unwrap();
        assert_eq!(read(&mut disk, 3), Ok([2; SECTOR]));
        count
    };
    assert_eq!((kept_of(Trimmed::Zeros), kept_of(Trimmed::Kept)), (0, 32));
    assert!((5..28).contains(&kept_of(Trimmed::Any)));
}

#[test]
fn a_trim_that_was_not_flushed_may_be_undone() {
    let unflushed = Unflushed::Lost;
    let mut disk = disk(DiskFaultPlan { unflushed, ..DiskFaultPlan::seeded(1) });
    write(&mut disk, 0, 2, 1).unwrap();
    flush(&mut disk).unwrap();
    disk.trim(Sector(0), 32, Cause::Flush).unwrap();
    assert_eq!(read(&mut disk, 0), Ok([0; SECTOR]));
    disk.cut_power();
    disk.restore_power();
    assert_eq!(read(&mut disk, 0), Ok([1; SECTOR]));
}

#[test]
fn reads_and_writes_fail_at_their_rates() {
    let mut disk = disk(DiskFaultPlan {
        failed_read_rate: 0.1,
        failed_write_rate: 0.02,
        ..DiskFaultPlan::seeded(5)
    });
    let (mut reads, mut writes) = (0, 0);
    for round in 0..10_000 {
        let sector = round % SECTORS;
        let written = write(&mut disk, sector, 1, 7);
        let found = read(&mut disk, sector);
        reads += u64::from(found.is_err());
        writes += u64::from(written.is_err());
        if written.is_ok() {
            assert!(found == Ok([7; SECTOR]) || found == Err(Error::Driver { code: 5 }));
        }
    }
    assert!((900..=1100).contains(&reads), "{reads}");
    assert!((160..=240).contains(&writes), "{writes}");
    assert_eq!(disk.faults().count(FaultKind::SectorUnreadable), reads);
    assert_eq!(disk.faults().count(FaultKind::FailedWrite), writes);
}

#[test]
fn chosen_sectors_cannot_be_read_until_they_are_written() {
    let unreadable = vec![Sector(3), Sector(4), Sector(9999)];
    let mut disk = disk(DiskFaultPlan { unreadable, ..DiskFaultPlan::seeded(5) });
    let failed = Err(Error::Driver { code: 5 });
    assert_eq!(read(&mut disk, 2), Ok([0; SECTOR]));
    assert_eq!((read(&mut disk, 3), read(&mut disk, 4)), (failed, failed));
    write(&mut disk, 3, 1, 1).unwrap();
    assert_eq!((read(&mut disk, 3), read(&mut disk, 4)), (Ok([1; SECTOR]), failed));
}

/// Plays operations drawn by `seed`; returns what they answered.
fn play(disk: &mut SimulatedDisk, seed: u64) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut answers = Vec::new();
    for _ in 0..1000 {
        let first = random.random_range(0..SECTORS - 4);
        answers.push(match random.random_range(0..10) {
            0 => format!("{:?}", disk.trim(Sector(first), 3, Cause::Flush)),
            1 => format!("{:?}", flush(disk)),
            2..6 => format!("{:?}", write(disk, first, random.random_range(0..5), random.random())),
            _ => format!("{:?}", read(disk, first)),
        });
        if disk.is_without_power() && random.random() {
            disk.restore_power();
        }
    }
    answers
}

fn storm(seed: u64) -> DiskFaultPlan {
    DiskFaultPlan {
        trimmed: Trimmed::Any,
        failed_read_rate: 0.01,
        failed_write_rate: 0.01,
        ..DiskFaultPlan::cut(seed, Cut::Operation(500))
    }
}

#[test]
fn the_same_seed_and_operations_give_the_same_faults_and_a_copy_goes_on_alike() {
    with_seeds("disk_faults", "a_copy_goes_on_alike", 30, |seed| {
        let (mut once, mut again) = (disk(storm(seed)), disk(storm(seed)));
        let answers = play(&mut once, seed);
        assert_eq!(play(&mut again, seed), answers);
        assert_eq!((once.meter(), once.faults()), (again.meter(), again.faults()));
        assert_ne!(play(&mut disk(storm(seed + 100)), seed), answers);
        let mut copy = once.clone();
        assert_eq!(play(&mut copy, seed + 1), play(&mut once, seed + 1));
    });
}

#[test]
fn an_idle_plan_changes_nothing() {
    with_seeds("disk_faults", "an_idle_plan", 10, |seed| {
        let geometry = SectorGeometry::new(SECTOR as u32, SECTORS).unwrap();
        let mut plain = SimulatedDisk::hard(geometry, HardDisk::SATA_7200);
        let mut armed = plain.clone().with_faults(DiskFaultPlan {
            failed_read_rate: 1e-15,
            ..DiskFaultPlan::cut(seed, Cut::Change(1 << 40))
        });
        assert_eq!(play(&mut armed, seed), play(&mut plain, seed));
        assert_eq!(armed.meter(), plain.meter());
        assert_eq!(armed.faults(), FaultLog::default());
        assert_eq!((armed.operations(), armed.changes()), (plain.operations(), plain.changes()));
    });
}

#[test]
fn without_a_plan_a_cut_loses_nothing() {
    let geometry = SectorGeometry::new(SECTOR as u32, SECTORS).unwrap();
    let mut disk = SimulatedDisk::new(geometry, DiskCosts::default());
    write(&mut disk, 1, 1, 4).unwrap();
    disk.cut_power();
    assert_eq!(read(&mut disk, 1), Err(Error::PowerCut));
    disk.restore_power();
    assert_eq!(read(&mut disk, 1), Ok([4; SECTOR]));
}

#[test]
fn a_new_plan_counts_anew_and_forgets_no_fault() {
    let mut disk = disk(DiskFaultPlan::cut(1, Cut::Change(1)));
    assert_eq!(flush(&mut disk), Err(Error::PowerCut));
    disk.arm(DiskFaultPlan::cut(2, Cut::Change(2)));
    assert_eq!(flush(&mut disk), Err(Error::PowerCut), "a plan brings no power");
    disk.restore_power();
    write(&mut disk, 0, 1, 1).unwrap();
    assert_eq!(flush(&mut disk), Err(Error::PowerCut));
    assert_eq!(disk.faults().count(FaultKind::PowerCut), 2);
    assert_eq!(disk.changes(), 2);
}
