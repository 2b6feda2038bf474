//! How long a request takes.

use device::{Charge, DiskCosts};

use super::HardDisk;
use super::hard::Mechanics;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The bytes of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The first byte, counted from the start of the disk.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Sectors that it touches.
    pub(crate) sectors: u64,
}

/// What decides the time of a request, and what it depends on.
#[derive(Clone, Debug)]
pub(crate) enum Timing {
    FourNumbers(FourNumbers),
    Mechanics(Mechanics),
}

impl Timing {
    pub(crate) fn of_costs(costs: DiskCosts, sector_bytes: u32) -> Self {
        let sector_bytes = u64::from(sector_bytes);
        Timing::FourNumbers(FourNumbers {
            costs,
            sector_bytes,
            after_read: None,
            after_write: None,
        })
    }

    pub(crate) fn of_hard_disk(disk: HardDisk) -> Self {
        Timing::Mechanics(Mechanics::new(disk))
    }

    /// The four numbers, if those are what decides.
    pub(crate) fn costs(&self) -> Option<&DiskCosts> {
        match self {
            Timing::FourNumbers(numbers) => Some(&numbers.costs),
            Timing::Mechanics(_) => None,
        }
    }

    pub(crate) fn energy_known(&self) -> bool {
        match self {
            Timing::FourNumbers(numbers) => numbers.costs.energy_known(),
            Timing::Mechanics(_) => false,
        }
    }

    /// Charges a request that begins at device time `now_ns`.
    pub(crate) fn charge(&mut self, direction: Direction, run: Run, now_ns: u64) -> Charge {
        match self {
            Timing::FourNumbers(numbers) => numbers.charge(direction, run),
            Timing::Mechanics(mechanics) => Charge {
                time_ns: mechanics.serve(direction, run.start, run.bytes, now_ns),
                energy_pj: 0,
            },
        }
    }
}

/// Costs that differ between a request that follows the one before of its kind and one that does
/// not.
#[derive(Clone, Debug)]
pub(crate) struct FourNumbers {
    costs: DiskCosts,
    sector_bytes: u64,
    /// The byte after the last one read.
    after_read: Option<u64>,
    /// The byte after the last one written.
    after_write: Option<u64>,
}

impl FourNumbers {
    fn charge(&mut self, direction: Direction, run: Run) -> Charge {
        let (access, after) = match direction {
            Direction::Read => (&self.costs.read, &mut self.after_read),
            Direction::Write => (&self.costs.write, &mut self.after_write),
        };
        // The disk moves whole sectors: after a part of one, the next one follows too.
        let follows = after.is_some_and(|after| {
            run.start == after || run.start == after.next_multiple_of(self.sector_bytes)
        });
        *after = Some(run.start + run.bytes);
        let cost = if follows { &access.sequential } else { &access.random };
        cost.charge(run.bytes, run.sectors)
    }
}
