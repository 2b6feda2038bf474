//! Why a tree could not finish, how far it got, and what memory may suffice instead.

use std::fmt;

use hdrhistogram::CreationError;

use crate::error::file_line;
use crate::expected::{Mismatch, Stop};
use crate::plan::MemoryLimit;

/// Why a tree could not finish.
#[derive(Debug)]
pub(super) enum Failure {
    Cancelled,
    /// The device's file can't be made.
    Device(file::Error),
    Index(index::Error),
    Mismatch(Mismatch),
    /// Loading stopped before all was loaded.
    Lost {
        loaded: u64,
    },
    /// More memory was in use than the bound on all of it.
    Memory {
        used: u64,
        limit: u64,
    },
    Histogram(CreationError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Cancelled => f.write_str("ended from outside"),
            Failure::Device(error) => f.write_str(&file_line(error)),
            Failure::Index(error) if is_full(error) => {
                write!(f, "{error}; take a larger device or fewer entries")
            }
            Failure::Index(error) => error.fmt(f),
            Failure::Mismatch(mismatch) => mismatch.fmt(f),
            Failure::Lost { loaded } => write!(f, "the tree says that it loaded {loaded} entries"),
            Failure::Memory { used, limit } => {
                write!(f, "{used} bytes of memory were used, more than --memory-total {limit}")
            }
            Failure::Histogram(error) => write!(f, "quantiles can't be taken: {error}"),
        }
    }
}

fn is_full(error: &index::Error) -> bool {
    use index::Error::{Store, TreeFull};
    matches!(
        error,
        TreeFull { .. }
            | Store(store::Error::Full { .. } | store::Error::Device(device::Error::Full { .. }))
    )
}

impl From<file::Error> for Failure {
    fn from(error: file::Error) -> Self {
        Failure::Device(error)
    }
}

impl From<index::Error> for Failure {
    fn from(error: index::Error) -> Self {
        Failure::Index(error)
    }
}

impl From<Mismatch> for Failure {
    fn from(mismatch: Mismatch) -> Self {
        Failure::Mismatch(mismatch)
    }
}

impl From<CreationError> for Failure {
    fn from(error: CreationError) -> Self {
        Failure::Histogram(error)
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Mismatch(mismatch) => Failure::Mismatch(mismatch),
            Stop::Index(error) => Failure::Index(error),
        }
    }
}

/// What is done when operations are measured.
pub(super) const MEASURING: &str = "measuring";

/// A failure, and how far it got.
pub(super) struct Broken {
    pub(super) doing: &'static str,
    pub(super) done: u64,
    pub(super) planned: u64,
    pub(super) unit: &'static str,
    pub(super) failure: Failure,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { doing, done, planned, unit, failure } = self;
        write!(f, "{doing}, after {done} of {planned} {unit}: {failure}")
    }
}

impl Broken {
    /// The bound on all memory that may suffice, where tables that grow found it too little: they
    /// grow with what is done, give or take an eighth, and get half of what is added. So many
    /// entries are loaded before so many operations are measured.
    pub(super) fn total_needed(
        &self,
        limit: MemoryLimit,
        (loaded, measured): (u64, u64),
    ) -> Option<u64> {
        use store::Error::LittleTables;
        let (
            Failure::Index(index::Error::Store(LittleTables { have, need })),
            MemoryLimit::Total(total),
        ) = (&self.failure, limit)
        else {
            return None;
        };
        let done = if self.doing == MEASURING { loaded + self.done } else { self.done };
        let at_end = u128::from(*need) * u128::from(loaded + measured) / u128::from(done.max(1));
        let at_end = at_end + at_end / 8;
        let at_end = if done == 0 { *need } else { u64::try_from(at_end).ok()? };
        Some(total.saturating_add(at_end.max(*need).saturating_sub(*have).saturating_mul(2)))
    }
}
