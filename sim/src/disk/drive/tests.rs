use std::collections::BTreeSet;

use device::{FlashBytes, SectorGeometry, SolidState};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Drive, Mapping, Run, Step};

/// Pages of two sectors, units of three pages, a cache of four units: one of them under way.
const DRIVE: SolidState = SolidState {
    drive_bytes: 24 * UNIT,
    flash_bytes: 48 * UNIT,
    channels: 2,
    chips_per_channel: 1,
    page_bytes: 1024,
    spare_bytes: 0,
    pages_per_block: 6,
    read_ns: 30,
    program_ns: 200,
    erase_ns: 1000,
    bus_ps_per_byte: 40,
    mapping_unit_bytes: UNIT,
    write_cache_bytes: 4 * UNIT,
    command_ns: 7,
    link_ps_per_byte: 10,
    queue_depth: 2,
};

const SECTOR: u64 = 512;
const UNIT: u64 = 3 * 1024;
const SECTORS: u64 = 24 * UNIT / SECTOR;

fn drive() -> Drive {
    Drive::bare(DRIVE, &SectorGeometry::new(SECTOR as u32, SECTORS).unwrap()).unwrap()
}

fn run(first: u64, sectors: u64) -> Run {
    Run { start: first * SECTOR, bytes: sectors * SECTOR, sectors }
}

/// The same write cache as a list of units with sets of sectors, the oldest first, over a mapping
/// that was tested by itself.
struct Plain {
    cache: Vec<(u32, BTreeSet<u64>)>,
    mapping: Mapping,
    moved: FlashBytes,
    erased: usize,
}

impl Plain {
    fn send(&mut self, place: usize) {
        let (unit, written) = self.cache.remove(place);
        let mut steps = Vec::new();
        self.mapping.write(unit, &mut steps);
        let moves = steps.iter().filter(|step| matches!(step, Step::Move { .. })).count();
        self.erased += steps.len() - moves;
        let whole = |page: &u64| [2 * page, 2 * page + 1].iter().all(|s| written.contains(s));
        let pages_read = (0..3).filter(|page| !whole(page)).count();
        self.moved.read += moves as u64 * UNIT + pages_read as u64 * 1024;
        self.moved.programmed += (moves as u64 + 1) * UNIT;
    }

    fn write(&mut self, first: u64, sectors: u64) {
        for unit in first / 6..(first + sectors).div_ceil(6) {
            let mut written = BTreeSet::new();
            if let Some(place) = self.cache.iter().position(|(held, _)| *held == unit as u32) {
                written = self.cache.remove(place).1;
            } else if self.cache.len() == 3 {
                self.send(0);
            }
            let sectors = first.max(unit * 6)..(first + sectors).min(unit * 6 + 6);
            written.extend(sectors.map(|sector| sector % 6));
            let is_whole = written.len() == 6;
            self.cache.push((unit as u32, written));
            if is_whole {
                self.send(self.cache.len() - 1);
            }
        }
    }

    /// Reads a sector: from flash unless it is cached.
    fn read(&mut self, sector: u64) {
        let unit = (sector / 6) as u32;
        let cached = |(held, written): &(u32, BTreeSet<u64>)| {
            *held == unit && written.contains(&(sector % 6))
        };
        if !self.cache.iter().any(cached) {
            self.moved.read += SECTOR;
        }
    }
}

#[test]
fn a_drive_moves_what_a_plain_one_does() {
    for seed in 0..40 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut drive = drive();
        let spare = DRIVE.stripes(&SectorGeometry::new(SECTOR as u32, SECTORS).unwrap()).1 as u32;
        let mapping = Mapping::new(24, 4, spare);
        let mut plain =
            Plain { cache: Vec::new(), mapping, moved: FlashBytes::default(), erased: 0 };
        let mut now = 0;
        for step in 0..800 {
            let first = random.random_range(0..SECTORS);
            let sectors = random.random_range(1..=(SECTORS - first).min(14));
            let end = match random.random_range(0..10) {
                0 => {
                    while !plain.cache.is_empty() {
                        plain.send(0);
                    }
                    drive.flush(now)
                }
                1..4 => {
                    plain.read(first);
                    drive.read(run(first, 1), now)
                }
                _ => {
                    plain.write(first, sectors);
                    drive.write(run(first, sectors), now)
                }
            };
            assert!(end > now, "seed {seed}, step {step}: no time passed");
            now = end;
            assert_eq!(drive.work.moved, plain.moved, "seed {seed}, step {step}");
            assert_eq!(drive.work.erased.len(), plain.erased, "seed {seed}, step {step}");
            for unit in 0..24 {
                let (found, expected) = (drive.mapping.slot(unit), plain.mapping.slot(unit));
                assert_eq!(found, expected, "seed {seed}, step {step}, unit {unit}");
            }
        }
    }
}
