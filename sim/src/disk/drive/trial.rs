//! What requests of a drive cost on average: tried out, so that who asks learns what the drive
//! does.

use device::{Access, Cost, DiskCosts, Linear, Result, SectorGeometry, SolidState};

use super::{Drive, Run};

/// Bytes of a long request.
const LONG_BYTES: u64 = 512 << 10;

/// Long requests, and random writes once the cache is full.
const LONG: u64 = 32;
const RANDOM: u64 = 64;

/// Tries a drive of its own.
pub(super) fn costs(figures: SolidState, sectors: &SectorGeometry) -> Result<DiskCosts> {
    let mut trial = Trial { drive: Drive::bare(figures, sectors)?, now: 0, sectors: *sectors };
    let read = trial.random_reads();
    let read_page = trial.next_page(Drive::read, read);
    let write = trial.random_writes();
    trial.now = trial.drive.flush(trial.now);
    let write_page = trial.next_page(Drive::write, write);
    let command = figures.command_ns;
    let access = |random: u64, sequential: u64, page: u64| Access {
        random: cost(random, page),
        sequential: cost(sequential, page),
    };
    Ok(DiskCosts {
        // Nothing is read ahead, so a short read costs the same wherever it is.
        read: access(read, read, read_page),
        write: access(write, command + write_page, write_page),
    })
}

/// A first page, and others after it.
fn cost(first: u64, page: u64) -> Cost {
    let per_page = page.min(first);
    let time = Linear { fixed: first - per_page, per_byte_thousandths: 0, per_page };
    Cost { time, energy: None }
}

struct Trial {
    drive: Drive,
    now: u64,
    sectors: SectorGeometry,
}

impl Trial {
    /// A run of `sectors` sectors somewhere, far from that of another `number`.
    fn run(&self, number: u64, sectors: u64) -> Run {
        let sector_bytes = u64::from(self.sectors.sector_bytes());
        let places = (self.sectors.sectors() / sectors).max(1);
        // A multiplier without pattern spreads the numbers over all places.
        let place = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % places;
        let sectors = sectors.min(self.sectors.sectors());
        let bytes = sectors * sector_bytes;
        Run { start: place * bytes, bytes, sectors }
    }

    fn random_reads(&mut self) -> u64 {
        let start = self.now;
        for number in 0..RANDOM {
            self.now = self.drive.read(self.run(number, 1), self.now);
        }
        (self.now - start) / RANDOM
    }

    /// The mean random write of a sector, when the cache is full.
    fn random_writes(&mut self) -> u64 {
        let fill = 2 * u64::from(self.drive.shape.lines);
        let mut start = self.now;
        for number in 0..fill + RANDOM {
            if number == fill {
                start = self.now;
            }
            self.now = self.drive.write(self.run(number, 1), self.now);
        }
        (self.now - start) / RANDOM
    }

    /// What each page of long sequential requests costs.
    fn next_page(&mut self, act: fn(&mut Drive, Run, u64) -> u64, most: u64) -> u64 {
        let sector_bytes = u64::from(self.sectors.sector_bytes());
        let sectors = (LONG_BYTES / sector_bytes).clamp(1, self.sectors.sectors());
        let places = self.sectors.sectors() / sectors;
        let start = self.now;
        // The write cache takes the first of them: they don't count.
        let mut counted = start;
        for number in 0..2 * LONG {
            if number == LONG {
                counted = self.now;
            }
            let first = number % places * sectors * sector_bytes;
            let run = Run { start: first, bytes: sectors * sector_bytes, sectors };
            self.now = act(&mut self.drive, run, self.now);
        }
        ((self.now - counted) / (LONG * sectors)).min(most)
    }
}
