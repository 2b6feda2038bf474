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
    /// A page has a good checksum but contents that make no sense.
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
    /// The device is not as long as when the index was made.
    #[error(
        "the device is not as long as it was (it had room for pages: {expected}; now: {found})"
    )]
    OtherLength {
        /// Pages that there was room for.
        expected: u64,
        /// Pages that the device has room for.
        found: u64,
    },
    /// An index without durability was not closed, so its contents can't be trusted.
    #[error("the index was not closed, and it was made with durability none: make it anew")]
    NotClosed,
    /// The memory budget is too small.
    #[error("{have} bytes of memory are too few: at least {need} are needed")]
    LittleMemory {
        /// Bytes given.
        have: u64,
        /// The least that works, in bytes.
        need: u64,
    },
    /// What is to be put in makes tables grow beyond the memory that they may take.
    #[error(
        "{have} bytes of memory are too few for the tables, which may need {need}: open the index \
         with more memory"
    )]
    LittleTables {
        /// Bytes that they may take.
        have: u64,
        /// Bytes that they may need.
        need: u64,
    },
    /// There is less memory than the budget.
    #[error("the system has no {bytes} bytes of memory to give: choose a smaller budget")]
    NoMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// No page is free.
    #[error("full: all {pages} pages are in use")]
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
    #[error("a label of {bytes} bytes: at most {limit} are kept")]
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
    /// Only a replay makes updates that adopt stored values.
    #[error("an update that adopts a stored value can't be asked for")]
    AdoptedTwice,
    /// The pieces of a long value do not add up to its length.
    #[error("{bytes} bytes of a long value: {limit} were to come")]
    LongValuePieces {
        /// Bytes given.
        bytes: u64,
        /// Bytes that were to come.
        limit: u64,
    },
    /// A batch that the journal can't take, however empty it is.
    #[error("a batch of {bytes} bytes: the journal takes at most {limit} at a time")]
    LongBatch {
        /// Bytes of the batch in the journal.
        bytes: u64,
        /// The most that the journal takes.
        limit: u64,
    },
    /// A name that a checkpoint can't have.
    #[error("a checkpoint can't have that name: {what}")]
    CheckpointName {
        /// What is wrong with it.
        what: &'static str,
    },
    /// No checkpoint of that name is kept.
    #[error("no checkpoint of that name is kept")]
    NoCheckpoint,
    /// What named checkpoints keep leaves no room.
    #[error(
        "named checkpoints keep {kept} bytes, which leaves no room: forget one of them, or roll \
         back"
    )]
    Kept {
        /// Bytes of page images that they keep.
        kept: u64,
    },
    /// A durability that the index was not made for.
    #[error("the index was made with durability {made}, which can't become {wanted}")]
    Durability {
        /// What it was made with.
        made: crate::Durability,
        /// What was asked for.
        wanted: crate::Durability,
    },
}

impl Error {
    /// True if a chip refused to program a page, whose block is used no more.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Error::Device(device::Error::ProgramRefused { .. }))
    }

    /// True for a refusal that more room cures.
    #[must_use]
    pub const fn wants_room(&self) -> bool {
        matches!(self, Error::Full { .. } | Error::Kept { .. })
    }

    /// True if what stands on the device is damaged, in one place: what stands elsewhere can still
    /// be read.
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
