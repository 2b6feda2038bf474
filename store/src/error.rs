//! What can go wrong above the device.

use crate::LogicalPage;

/// A result of this layer.
pub type Result<T> = core::result::Result<T, Error>;

/// What went wrong, with the facts that a reader needs to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device below failed or refused.
    #[error("{0}")]
    Device(#[from] device::Error),
    /// A page does not have the checksum that was written with it.
    #[error("{page} is corrupt: its checksum is {found:#010x}, expected {expected:#010x}")]
    CorruptPage {
        /// The page.
        page: LogicalPage,
        /// The checksum stored in the page.
        expected: u32,
        /// The checksum of the bytes that were read.
        found: u32,
    },
    /// A page has a good checksum, but its contents are inconsistent.
    #[error("{page} is damaged: {what}")]
    DamagedPage {
        /// The page.
        page: LogicalPage,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A unit of a run does not have the checksum that was written with it.
    #[error(
        "unit {unit} of run {run} is corrupt: its checksum is {found:#x}, expected {expected:#x}"
    )]
    CorruptUnit {
        /// The run.
        run: u64,
        /// The unit, counted from 0.
        unit: u32,
        /// The checksum stored in the unit.
        expected: u32,
        /// The checksum of the bytes that were read.
        found: u32,
    },
    /// A unit of a run has a good checksum but contents that make no sense.
    #[error("unit {unit} of run {run} is damaged: {what}")]
    DamagedUnit {
        /// The run.
        run: u64,
        /// The unit, counted from 0.
        unit: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An entry that a run can't take.
    #[error("a run can't take an entry: {what}")]
    RunEntry {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The medium holds no index of this format, or one that can't be opened.
    #[error("{}: {what}", no_index(*is_ours))]
    NotAnIndex {
        /// True if there is an index, but what tells where it stands is damaged.
        is_ours: bool,
        /// What was expected and not found.
        what: &'static str,
    },
    /// The medium holds an index of another format version.
    #[error("format version {found}: this program reads version {expected}")]
    OtherVersion {
        /// The version that this program reads.
        expected: u32,
        /// The version found.
        found: u32,
    },
    /// The device has another length than when the index was made.
    #[error("the device had room for {expected} pages, and has room for {found} now")]
    OtherLength {
        /// Pages that there was room for.
        expected: u64,
        /// Pages that the device has room for.
        found: u64,
    },
    /// An index without durability was not closed, so its contents can't be trusted.
    #[error("the index was made with durability none and was not closed")]
    NotClosed,
    /// The memory budget is too small.
    #[error("{have} bytes of memory are too few: at least {need} are needed")]
    LittleMemory {
        /// Bytes given.
        have: u64,
        /// The least that works, in bytes.
        need: u64,
    },
    /// An update may make the tables grow beyond the memory that they may take.
    #[error("{have} bytes of memory are too few for the tables, which may need {need}")]
    LittleTables {
        /// Bytes that they may take.
        have: u64,
        /// Bytes that they may need.
        need: u64,
    },
    /// There is less memory than the budget.
    #[error("the system can't provide {bytes} bytes of memory")]
    NoMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// There is no room for an update, or not for certain.
    #[error("full: {pages} pages have no room for it")]
    Full {
        /// Pages that the page file can hold.
        pages: u64,
    },
    /// A node size that the medium or the entries do not allow.
    #[error("nodes of {bytes} bytes: {what}")]
    NodeSize {
        /// Bytes asked for.
        bytes: u32,
        /// Which sizes are possible.
        what: &'static str,
    },
    /// Sectors too small for a superblock.
    #[error("sectors of {limit} bytes are too small for a superblock")]
    Superblock {
        /// Bytes in a sector.
        limit: u64,
    },
    /// A label that is too long.
    #[error("a label of {bytes} bytes is too long: the most is {limit}")]
    Label {
        /// Its length.
        bytes: u64,
        /// The most that it can have.
        limit: u64,
    },
    /// The journal has a gap, or a record of it makes no sense.
    #[error("page {page} of the journal is damaged")]
    DamagedJournal {
        /// The page, counted from 0.
        page: u32,
    },
    /// The undo log has a gap.
    #[error("the undo log is damaged at position {position}")]
    DamagedUndo {
        /// Where a group of images should begin.
        position: u32,
    },
    /// An update with a stored value, which only a replay of the journal makes.
    #[error("only a replay of the journal makes updates with stored values")]
    AdoptedTwice,
    /// The pieces of a long value are shorter or longer than the value.
    #[error("long value truncated: got {bytes} of {limit} bytes")]
    LongValuePieces {
        /// Bytes given.
        bytes: u64,
        /// Bytes expected.
        limit: u64,
    },
    /// A batch that is longer than the whole journal.
    #[error("a batch of {bytes} bytes is too long: the journal takes at most {limit}")]
    LongBatch {
        /// Bytes of the batch in the journal.
        bytes: u64,
        /// The most that the journal takes.
        limit: u64,
    },
    /// A name that a checkpoint can't have.
    #[error("no checkpoint of this name can be made: {what}")]
    CheckpointName {
        /// What is wrong with it.
        what: &'static str,
    },
    /// No checkpoint of that name is kept.
    #[error("there is no checkpoint of that name")]
    NoCheckpoint,
    /// There is no room, because named checkpoints keep page images.
    #[error("full: named checkpoints keep {kept} bytes")]
    Kept {
        /// Bytes of page images that they keep.
        kept: u64,
    },
    /// A durability that the index was not made for.
    #[error("the index was made with durability {made}, not {wanted}")]
    Durability {
        /// What it was made with.
        made: crate::Durability,
        /// What was asked for.
        wanted: crate::Durability,
    },
}

impl Error {
    /// True if a chip refused to program a page. Its block is not used any more.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Error::Device(device::Error::ProgramRefused { .. }))
    }

    /// True if more room would avoid the error.
    #[must_use]
    pub const fn wants_room(&self) -> bool {
        matches!(self, Error::Full { .. } | Error::Kept { .. })
    }

    /// True if one place of the device is damaged. Everything else can still be read.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Error::CorruptPage { .. }
                | Error::DamagedPage { .. }
                | Error::CorruptUnit { .. }
                | Error::DamagedUnit { .. }
                | Error::Device(device::Error::Uncorrectable { .. })
        )
    }
}

/// What is said of a medium without an index that can be opened.
const fn no_index(is_ours: bool) -> &'static str {
    if is_ours { "this flashtree index can't be opened" } else { "this is no flashtree index" }
}
