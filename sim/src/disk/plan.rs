//! What shall go wrong on a disk: every knob by its name.

use device::Sector;

use crate::faults::Cut;

/// What shall go wrong on a simulated disk.
///
/// Nothing does in the default plan. All that a plan leaves open is decided by its seed, as in a
/// [`FaultPlan`](crate::FaultPlan) of a chip; rates are the same too.
///
/// Operations are counted from 1 on, since the plan was armed: each request of a read, each write,
/// trim and flush that reaches the disk. Writes, trims and flushes are changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFaultPlan {
    /// Decides all that the plan leaves open.
    pub seed: u64,
    /// When the power is cut.
    pub power_cut: Option<Cut>,
    /// What becomes of writes that were not flushed when the power is cut.
    pub unflushed: Unflushed,
    /// True if a cut leaves each sector as it was before some write, never in between.
    pub atomic_sectors: bool,
    /// What a trimmed sector reads as.
    pub trimmed: Trimmed,
    /// Reads that fail with [`Driver`](device::Error::Driver); another try may succeed.
    pub failed_read_rate: f64,
    /// Writes that fail with [`Driver`](device::Error::Driver); each of their sectors holds what a
    /// power cut could have left in it.
    pub failed_write_rate: f64,
    /// Sectors that can't be read until they are written again, as far as the disk has them.
    pub unreadable: Vec<Sector>,
}

impl DiskFaultPlan {
    /// A plan in which nothing goes wrong yet, with the seed that decides the rest.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        DiskFaultPlan { seed, ..DiskFaultPlan::default() }
    }

    /// A plan in which the power is cut once.
    #[must_use]
    pub fn cut(seed: u64, at: Cut) -> Self {
        DiskFaultPlan { power_cut: Some(at), ..DiskFaultPlan::seeded(seed) }
    }
}

/// What becomes of the sectors that were written since the last flush, when the power is cut. A
/// write that the cut itself hits is always mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unflushed {
    /// Any of the others, by the seed.
    #[default]
    Any,
    /// All hold what they held at the last flush.
    Lost,
    /// All hold what was written last.
    Kept,
    /// Each holds what it held at the last flush, or anything written to it since, or is torn
    /// between these, unless sectors are atomic.
    Mixed,
}

/// What a trimmed sector reads as until it is written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trimmed {
    /// Zeros.
    #[default]
    Zeros,
    /// What it held.
    Kept,
    /// Either, by the seed.
    Any,
}
