//! What an operation costs: four kinds of cost function in one form.
//!
//! A cost is linear: a fixed part, a part for each byte moved, a part for each page of a request
//! that spans several. For disks it may differ between random and sequential requests. That
//! covers every device that the papers use:
//!
//! | kind | parts that are not zero | a device |
//! |---|---|---|
//! | whole page | fixed | a chip with read 80 us, program 200 us |
//! | fixed + per byte | fixed, byte | a chip with partial reads and programs, a serial bus |
//! | fixed + per page of a request | fixed, page | a CF or SD card |
//! | four numbers | fixed or page, random apart from sequential | an SSD |
//!
//! All sums are integers, in nanoseconds and picojoules, so that a run adds up to the same
//! figures on every machine.

/// Time and energy that an operation took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Time in nanoseconds.
    pub time_ns: u64,
    /// Energy in picojoules; 0 where the device's energy is not known.
    pub energy_pj: u64,
}

/// One linear function of the bytes and pages of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// What every operation costs, in nanoseconds or picojoules.
    pub fixed: u64,
    /// What each byte adds, in thousandths of that unit (picoseconds or femtojoules).
    pub per_byte_thousandths: u64,
    /// What each page of a request adds, in the unit of `fixed`.
    pub per_page: u64,
}

impl Linear {
    /// A function with a fixed part only.
    #[must_use]
    pub const fn fixed(fixed: u64) -> Self {
        Linear { fixed, per_byte_thousandths: 0, per_page: 0 }
    }

    /// The value for an operation that moves `bytes` bytes on `pages` pages.
    #[must_use]
    pub const fn at(&self, bytes: u64, pages: u64) -> u64 {
        self.fixed + self.per_byte_thousandths * bytes / 1000 + self.per_page * pages
    }
}

/// Time and energy of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time, in nanoseconds.
    pub time: Linear,
    /// Energy, in picojoules; `None` where it is not known.
    pub energy: Option<Linear>,
}

impl Cost {
    /// The charge for an operation that moves `bytes` bytes on `pages` pages.
    #[must_use]
    pub fn charge(&self, bytes: u64, pages: u64) -> Charge {
        Charge {
            time_ns: self.time.at(bytes, pages),
            energy_pj: self.energy.map_or(0, |energy| energy.at(bytes, pages)),
        }
    }
}

/// What the three operations of a NAND chip cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NandCosts {
    /// Reading a page or a part of it.
    pub read: Cost,
    /// Programming a page or its next part.
    pub program: Cost,
    /// Erasing a block.
    pub erase: Cost,
}

impl NandCosts {
    /// True if the energy of every operation is known.
    #[must_use]
    pub fn energy_known(&self) -> bool {
        [self.read, self.program, self.erase].iter().all(|cost| cost.energy.is_some())
    }
}

/// What requests of a disk cost that is made of a chip, page by page, wherever its pages stand.
impl From<&NandCosts> for DiskCosts {
    fn from(chip: &NandCosts) -> Self {
        let for_each_page = |linear: Linear| Linear {
            fixed: 0,
            per_page: linear.fixed + linear.per_page,
            ..linear
        };
        let access = |cost: &Cost| {
            let cost =
                Cost { time: for_each_page(cost.time), energy: cost.energy.map(for_each_page) };
            Access { random: cost, sequential: cost }
        };
        DiskCosts { read: access(&chip.read), write: access(&chip.program) }
    }
}

/// Costs of a request that follows the previous one of its kind, and of one that does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// A request that starts somewhere else.
    pub random: Cost,
    /// A request that starts where the previous one of its kind ended.
    pub sequential: Cost,
}

/// What the requests of a disk cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCosts {
    /// Reading.
    pub read: Access,
    /// Writing.
    pub write: Access,
}

impl DiskCosts {
    /// True if the energy of every request is known.
    #[must_use]
    pub fn energy_known(&self) -> bool {
        [self.read.random, self.read.sequential, self.write.random, self.write.sequential]
            .iter()
            .all(|cost| cost.energy.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, DiskCosts, Linear, NandCosts};

    #[test]
    fn a_request_of_four_pages_costs_a_disk_of_a_chip_four_of_the_chips_operations() {
        let cost = |fixed| Cost {
            time: Linear { fixed, per_byte_thousandths: 25_000, per_page: 0 },
            energy: Some(Linear::fixed(fixed)),
        };
        let chip = NandCosts { read: cost(1000), program: cost(9000), erase: cost(1) };
        let disk = DiskCosts::from(&chip);
        for (of_disk, of_chip) in [(disk.read, chip.read), (disk.write, chip.program)] {
            let four = of_chip.charge(2048, 1);
            for way in [of_disk.random, of_disk.sequential] {
                assert_eq!(way.charge(4 * 2048, 4).time_ns, 4 * four.time_ns);
                assert_eq!(way.charge(4 * 2048, 4).energy_pj, 4 * four.energy_pj);
            }
        }
    }

    #[test]
    fn a_cost_adds_its_fixed_part_its_bytes_and_its_pages() {
        let toshiba_program = Cost {
            time: Linear { fixed: 274_000, per_byte_thousandths: 1_500_000, per_page: 0 },
            energy: Some(Linear {
                fixed: 24_000_000,
                per_byte_thousandths: 90_000_000,
                per_page: 0,
            }),
        };
        let charge = toshiba_program.charge(512, 1);
        assert_eq!(charge.time_ns, 274_000 + 1500 * 512);
        assert_eq!(charge.energy_pj, 24_000_000 + 90_000 * 512);

        let card_read = Linear { fixed: 2_884_530, per_byte_thousandths: 0, per_page: 92_410 };
        assert_eq!(card_read.at(4096, 8), 2_884_530 + 8 * 92_410);
    }
}
