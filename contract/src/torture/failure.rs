//! What a torture run can find.

use super::truth::Mismatch;

/// Why a session failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The index could not be made.
    #[error("the index can't be made: {0}")]
    Make(index::Error),
    /// The index can't be opened after a cut.
    #[error("the index can't be opened: {0}")]
    Open(index::Error),
    /// What the index holds after it was opened is not what it may hold.
    #[error("opened again, {0}")]
    Lost(Mismatch),
    /// What the index holds without a cut is not what it should.
    #[error("after {after}, {mismatch}")]
    Wrong {
        /// What was done last.
        after: &'static str,
        /// The difference.
        mismatch: Mismatch,
    },
    /// The index has more entries than there are keys.
    #[error("it gives more than {most} entries: a range of it does not end")]
    Endless {
        /// The most that there can be.
        most: usize,
    },
    /// A value has another length when it is read than when it is announced.
    #[error("a value of {announced} bytes has {found} when it is read")]
    ValueLength {
        /// The length that the cursor told.
        announced: u32,
        /// The length that reading it told.
        found: u32,
    },
    /// Invariants of the index are broken.
    #[error("invariants are broken: {}", .0.join("; "))]
    Findings(Vec<String>),
    /// An operation failed in another way than by the cut.
    #[error("{action} failed: {error}")]
    Broken {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        error: index::Error,
    },
    /// A value that was read alone is another than it should be.
    #[error("a get of a key returns another value than the index should have")]
    Get,
    /// The device failed too early: too few of its blocks are bad.
    #[error("the device is full, though only {bad} of its {blocks} blocks are bad")]
    Full {
        /// Bad blocks.
        bad: u32,
        /// All blocks.
        blocks: u32,
    },
    /// An update was taken after one that the device broke off.
    #[error("an update was taken, though an earlier one was broken off: {0:?}")]
    TakenThereafter(index::Result<()>),
    /// The history is too tame: it does not come to what it has to contain.
    #[error("after {actions} actions the history has none of: {}", .lacks.join(", "))]
    Tame {
        /// How long it got.
        actions: u32,
        /// What it has none of.
        lacks: Vec<&'static str>,
    },
    /// The code panicked.
    #[error("panicked: {0}")]
    Panic(String),
    /// The device can't be made.
    #[error("the device can't be made: {0}")]
    Device(#[from] device::Error),
    /// The file can't be made.
    #[error("the file can't be made: {0}")]
    File(#[from] file::Error),
    /// The file can't be made.
    #[error("the folder for files can't be made: {0}")]
    Folder(std::io::Error),
}
