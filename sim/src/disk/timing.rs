//! How long a request takes.

use device::{Charge, DiskCosts};

use super::HardDisk;
use super::drive::Drive;
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
    Drive(Box<Drive>),
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
    pub(crate) fn costs(&self) -> Option<DiskCosts> {
        match self {
            Timing::FourNumbers(numbers) => Some(numbers.costs),
            Timing::Mechanics(_) => None,
            Timing::Drive(drive) => Some(drive.costs()),
        }
    }

    pub(crate) fn energy_known(&self) -> bool {
        match self {
            Timing::FourNumbers(numbers) => numbers.costs.energy_known(),
            Timing::Mechanics(_) | Timing::Drive(_) => false,
        }
    }

    /// Charges a request of a call that began at device time `issued_ns`, when it is `now_ns`:
    /// later, if the call had others before it.
    pub(crate) fn charge(
        &mut self,
        direction: Direction,
        run: Run,
        issued_ns: u64,
        now_ns: u64,
    ) -> Charge {
        let time_ns = match self {
            Timing::FourNumbers(numbers) => return numbers.charge(direction, run),
            Timing::Mechanics(mechanics) => {
                mechanics.serve(direction, run.start, run.bytes, now_ns)
            }
            Timing::Drive(drive) => {
                let end = match direction {
                    Direction::Read => drive.read(run, issued_ns),
                    Direction::Write => drive.write(run, issued_ns),
                };
                end.saturating_sub(now_ns)
            }
        };
        Charge { time_ns, energy_pj: 0 }
    }

    /// Charges a flush at device time `now_ns`.
    pub(crate) fn charge_flush(&mut self, now_ns: u64) -> Charge {
        let end = match self {
            Timing::FourNumbers(_) | Timing::Mechanics(_) => now_ns,
            Timing::Drive(drive) => drive.flush(now_ns),
        };
        Charge { time_ns: end.saturating_sub(now_ns), energy_pj: 0 }
    }

    /// The drive whose flash can be seen, if there is one.
    pub(crate) fn drive(&mut self) -> Option<&mut Drive> {
        match self {
            Timing::Drive(drive) => Some(drive),
            Timing::FourNumbers(_) | Timing::Mechanics(_) => None,
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
