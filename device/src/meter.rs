//! What a device was made to do: counts, bytes, time and energy by cause, erases by block.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::{AddAssign, Sub};

use crate::{Block, Cause, Charge};

/// The three things that flash does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Pages were read.
    Read,
    /// Pages were programmed.
    Program,
    /// Blocks were erased.
    Erase,
}

/// Sums over some operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pages read; a part of a page counts as 1, a request of n pages as n.
    pub page_reads: u64,
    /// Pages programmed, counted in the same way.
    pub page_programs: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// Bytes read, spare areas included.
    pub bytes_read: u64,
    /// Bytes programmed, spare areas included.
    pub bytes_programmed: u64,
    /// Device time, in nanoseconds.
    pub time_ns: u64,
    /// Energy, in picojoules; 0 where the device's energy is not known.
    pub energy_pj: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.page_reads += other.page_reads;
        self.page_programs += other.page_programs;
        self.block_erases += other.block_erases;
        self.bytes_read += other.bytes_read;
        self.bytes_programmed += other.bytes_programmed;
        self.time_ns += other.time_ns;
        self.energy_pj += other.energy_pj;
    }
}

impl Sub for Tally {
    type Output = Tally;

    fn sub(self, earlier: Tally) -> Tally {
        Tally {
            page_reads: self.page_reads - earlier.page_reads,
            page_programs: self.page_programs - earlier.page_programs,
            block_erases: self.block_erases - earlier.block_erases,
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_programmed: self.bytes_programmed - earlier.bytes_programmed,
            time_ns: self.time_ns - earlier.time_ns,
            energy_pj: self.energy_pj - earlier.energy_pj,
        }
    }
}

/// Bytes that the flash inside a disk moved, spare areas not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashBytes {
    /// Bytes read, for the host and for moving.
    pub read: u64,
    /// Bytes programmed.
    pub programmed: u64,
}

/// The books of one device, kept by the device itself.
///
/// Invariant: every operation is booked once, under one cause; so the tallies of all causes add
/// up to what the device did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    tallies: [Tally; Cause::COUNT],
    time_ns: u64,
    erases: Box<[u32]>,
    energy_known: bool,
    bits_corrected: u64,
    flash: Option<FlashBytes>,
}

impl Meter {
    /// An empty meter for a device of `blocks` erase blocks (0 where they can't be seen).
    #[must_use]
    pub fn new(blocks: u32, energy_known: bool) -> Self {
        Meter {
            tallies: [Tally::default(); Cause::COUNT],
            time_ns: 0,
            erases: vec![0; blocks as usize].into_boxed_slice(),
            energy_known,
            bits_corrected: 0,
            flash: None,
        }
    }

    /// Counts bytes that the flash inside a disk moved. From the first call on they are known.
    #[inline]
    pub fn book_flash(&mut self, moved: FlashBytes) {
        let flash = self.flash.get_or_insert_default();
        flash.read += moved.read;
        flash.programmed += moved.programmed;
    }

    /// What the flash inside a disk moved, where it can be seen.
    #[must_use]
    pub const fn flash(&self) -> Option<FlashBytes> {
        self.flash
    }

    /// Books an operation on `pages` pages (or blocks, for an erase) that moved `bytes` bytes.
    #[inline]
    pub fn book(
        &mut self,
        operation: Operation,
        cause: Cause,
        pages: u64,
        bytes: u64,
        charge: Charge,
    ) {
        let tally = &mut self.tallies[cause as usize];
        match operation {
            Operation::Read => {
                tally.page_reads += pages;
                tally.bytes_read += bytes;
            }
            Operation::Program => {
                tally.page_programs += pages;
                tally.bytes_programmed += bytes;
            }
            Operation::Erase => tally.block_erases += pages,
        }
        tally.time_ns += charge.time_ns;
        tally.energy_pj += charge.energy_pj;
        self.time_ns += charge.time_ns;
    }

    /// Counts one more erase of `block`.
    #[inline]
    pub fn wear(&mut self, block: Block) {
        if let Some(erases) = self.erases.get_mut(block.0 as usize) {
            *erases += 1;
        }
    }

    /// Counts bits that the device's code corrected.
    #[inline]
    pub fn corrected(&mut self, bits: u64) {
        self.bits_corrected += bits;
    }

    /// What was booked under `cause`.
    #[must_use]
    pub const fn tally(&self, cause: Cause) -> &Tally {
        &self.tallies[cause as usize]
    }

    /// What was booked under all causes.
    #[must_use]
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in &self.tallies {
            total += *tally;
        }
        total
    }

    /// Device time booked so far, in nanoseconds.
    #[must_use]
    #[inline]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Erases of each block; empty where they can't be seen.
    #[must_use]
    pub const fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// True if the energies are real sums, false if the device's energy is not known.
    #[must_use]
    pub const fn energy_known(&self) -> bool {
        self.energy_known
    }

    /// Bits that the device's code has corrected.
    #[must_use]
    pub const fn bits_corrected(&self) -> u64 {
        self.bits_corrected
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, Operation, Tally};
    use crate::{Block, Cause, Charge};

    #[test]
    fn costs_are_booked_under_the_cause_that_was_passed() {
        let mut meter = Meter::new(4, true);
        let charge = Charge { time_ns: 10, energy_pj: 3 };
        meter.book(Operation::Read, Cause::Lookup, 2, 100, charge);
        meter.book(Operation::Program, Cause::Flush, 1, 50, charge);
        meter.book(Operation::Erase, Cause::Reclamation, 1, 0, charge);
        meter.wear(Block(3));
        assert_eq!(meter.tally(Cause::Lookup).page_reads, 2);
        assert_eq!(meter.tally(Cause::Lookup).bytes_read, 100);
        assert_eq!(meter.tally(Cause::Flush).page_programs, 1);
        assert_eq!(meter.tally(Cause::Reclamation).block_erases, 1);
        assert_eq!(*meter.tally(Cause::Update), Tally::default());
        assert_eq!(meter.total().time_ns, 30);
        assert_eq!(meter.time_ns(), 30);
        assert_eq!(meter.total().energy_pj, 9);
        assert_eq!(meter.erases(), [0, 0, 0, 1]);
    }
}
