//! Deliberate mistakes, which the torture tests must find: they show that these tests can fail.

/// A mistake in the mechanism of recovery. The feature `canaries` lets tests choose one; without
/// it there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "canaries"), expect(unreachable_pub, reason = "a test-only switch"))]
pub enum Canary {
    /// The superblock of a checkpoint is written before its pages.
    RecordBeforePages,
    /// A page is overwritten before its image is durable.
    UndoAfterOverwrite,
    /// A page that a named checkpoint needs is used again without an image.
    PinnedPageReused,
    /// A page that the last checkpoint needs is used again before the next.
    FreedPageReused,
    /// A sync returns before the device made anything durable.
    AcknowledgedBeforeFlush,
    /// The beginning of a batch is replayed though its end is missing.
    HalfBatchReplayed,
    /// After a checkpoint inside a batch the replay begins an update too late.
    UpdateSkipped,
    /// A torn page of the journal is taken for whole.
    TornPageAccepted,
    /// The journal of an earlier checkpoint is replayed.
    StaleJournalReplayed,
    /// A checkpoint carries the root record of the one before.
    WrongRootRecord,
    /// A page that the last checkpoint needs is trimmed when it is given back.
    TrimBeforeCheckpoint,
}

/// The mistake that is made, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mistake {
    #[cfg(feature = "canaries")]
    chosen: Option<Canary>,
}

impl Mistake {
    #[cfg(feature = "canaries")]
    pub(crate) fn new(chosen: Option<Canary>) -> Self {
        Mistake { chosen }
    }

    /// True if this mistake is to be made.
    #[inline]
    pub(crate) fn is(self, canary: Canary) -> bool {
        #[cfg(feature = "canaries")]
        return self.chosen == Some(canary);
        #[cfg(not(feature = "canaries"))]
        {
            let _ = canary;
            false
        }
    }
}
