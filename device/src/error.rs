//! The one error of the lower layers: facts in numbers, `Copy`, at most 32 bytes.

use core::fmt;

use crate::{Block, Page, Sector};

/// A result of this layer.
pub type Result<T> = core::result::Result<T, Error>;

/// What went wrong on a device, with the facts that a reader needs to act.
///
/// Translation layers report in it too; drivers put their own code into [`Error::Driver`]. Upper
/// layers wrap it and give it back as their `source()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The numbers of a geometry do not make a device.
    Geometry(GeometryFault),
    /// A page that the chip does not have.
    NoSuchPage {
        /// The page asked for.
        page: Page,
        /// How many pages the chip has.
        pages: u32,
    },
    /// A block that the chip does not have.
    NoSuchBlock {
        /// The block asked for.
        block: Block,
        /// How many blocks the chip has.
        blocks: u32,
    },
    /// Sectors beyond the end of the disk.
    NoSuchSector {
        /// The first sector of the request that does not exist.
        sector: Sector,
        /// How many sectors the disk has.
        sectors: u64,
    },
    /// A request whose bytes do not lie inside the page, its spare area, or whole sectors.
    BadLength {
        /// Where the request starts, in bytes.
        offset: u32,
        /// How many bytes it is long.
        length: u32,
        /// The bytes that there are, or that the length must be a multiple of.
        limit: u32,
    },
    /// Programming bytes that were programmed since the last erase of their block.
    NotErased {
        /// The page.
        page: Page,
        /// The first byte of it that is still erased (the page's length if none is).
        erased_from: u32,
    },
    /// Programming a page before an earlier page of the same block, on a chip that forbids it.
    OutOfOrder {
        /// The page asked for.
        page: Page,
        /// The lowest page of the block that may still be programmed.
        lowest: Page,
    },
    /// Programming a page more often than the chip allows between two erases.
    TooManyPrograms {
        /// The page.
        page: Page,
        /// Programs that the chip allows.
        limit: u16,
    },
    /// Using a block that is marked bad.
    BadBlock {
        /// The block.
        block: Block,
    },
    /// The chip refused to program a page; the block should be retired.
    ProgramRefused {
        /// The page.
        page: Page,
    },
    /// The chip refused to erase a block; the block should be retired.
    EraseRefused {
        /// The block.
        block: Block,
    },
    /// The chip refused this many programs and erases in a row, and did nothing in between. It is
    /// not changed any more until it is opened again. None of these blocks is marked bad.
    Failing {
        /// How many there were.
        refusals: u32,
    },
    /// More flipped bits than the chip's code can correct.
    Uncorrectable {
        /// The page.
        page: Page,
    },
    /// Content that was read does not have the checksum written with it.
    Checksum {
        /// The sector or page.
        address: u64,
        /// The checksum stored there.
        expected: u32,
        /// The checksum of what was read.
        found: u32,
    },
    /// No room: every sector that can be kept is in use, or too many blocks went bad.
    Full {
        /// Blocks that can still be programmed.
        blocks_free: u32,
        /// Blocks that are needed.
        blocks_needed: u32,
    },
    /// The device holds nothing that this layer wrote, or a version that it can't read.
    NotFormatted {
        /// The mark or version that was expected.
        expected: u32,
        /// What stands there.
        found: u32,
    },
    /// The disk is too small for what is asked of it.
    TooSmall {
        /// Sectors that there are.
        have: u64,
        /// Sectors that are needed.
        need: u64,
    },
    /// The chip has too few good blocks for what is asked of it.
    TooFewBlocks {
        /// Blocks that there are.
        have: u32,
        /// Blocks that are needed.
        need: u32,
    },
    /// The blocks of the chip have too few pages for what is asked of it.
    TooFewPages {
        /// Pages that a block has.
        have: u32,
        /// Pages that are needed.
        need: u32,
    },
    /// The power went away; nothing works until the device is opened again.
    PowerCut,
    /// A write failed before: nothing more is written until the device is opened again.
    AfterFailedWrite,
    /// A flush failed before: nothing is read or written until the device is opened again.
    AfterFailedFlush,
    /// A failure that a driver reports by a code of its own.
    Driver {
        /// The driver's code.
        code: i32,
    },
}

/// Why the numbers of a geometry are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryFault {
    /// Page bytes are no power of two from 64 to 65,536.
    PageBytes(u32),
    /// Spare bytes exceed the page's.
    SpareBytes(u32),
    /// Pages a block are 0 or more than 65,535.
    PagesPerBlock(u32),
    /// Blocks are 0.
    Blocks(u32),
    /// The chip would have more pages than 32 bits can count.
    Pages(u64),
    /// Programs a page are 0.
    ProgramsPerPage(u16),
    /// Sector bytes are no power of two from 64 to 1 MiB.
    SectorBytes(u32),
    /// Sectors are 0, or their bytes exceed 63 bits.
    Sectors(u64),
    /// The buffer alignment is no power of two.
    Alignment(u32),
    /// A solid-state drive can't be made of its figures: what does not fit.
    SolidState(&'static str),
}

impl fmt::Display for GeometryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            GeometryFault::PageBytes(bytes) => {
                write!(f, "a page of {bytes} bytes: it must be a power of two from 64 to 65536")
            }
            GeometryFault::SpareBytes(bytes) => {
                write!(f, "a spare area of {bytes} bytes: it can't be larger than the page")
            }
            GeometryFault::PagesPerBlock(pages) => {
                write!(f, "{pages} pages a block: there must be 1 to 65535")
            }
            GeometryFault::Blocks(blocks) => write!(f, "{blocks} blocks: there must be at least 1"),
            GeometryFault::Pages(pages) => {
                write!(f, "{pages} pages in all: at most 4294967295 can be addressed")
            }
            GeometryFault::ProgramsPerPage(programs) => {
                write!(f, "{programs} programs a page: there must be at least 1")
            }
            GeometryFault::SectorBytes(bytes) => {
                write!(f, "a sector of {bytes} bytes: it must be a power of two from 64 to 1048576")
            }
            GeometryFault::Sectors(sectors) => {
                write!(f, "{sectors} sectors: there must be at least 1, in less than 2^63 bytes")
            }
            GeometryFault::Alignment(bytes) => {
                write!(f, "an alignment of {bytes} bytes: it must be a power of two")
            }
            GeometryFault::SolidState(fault) => write!(f, "a solid-state drive: {fault}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Geometry(fault) => fault.fmt(f),
            Error::NoSuchPage { page, pages } => write!(f, "no {page}: the chip has {pages} pages"),
            Error::NoSuchBlock { block, blocks } => {
                write!(f, "no {block}: the chip has {blocks} blocks")
            }
            Error::NoSuchSector { sector, sectors } => {
                write!(f, "no {sector}: the disk has {sectors} sectors")
            }
            Error::BadLength { offset, length, limit } => {
                write!(f, "{length} bytes at offset {offset} do not fit a unit of {limit} bytes")
            }
            Error::NotErased { page, erased_from } => {
                write!(f, "{page} is programmed up to byte {erased_from} and was not erased since")
            }
            Error::OutOfOrder { page, lowest } => {
                write!(f, "{page} is out of order: its block may be programmed from {lowest} on")
            }
            Error::TooManyPrograms { page, limit } => {
                write!(f, "{page} was programmed {limit} times, which is the chip's limit")
            }
            Error::BadBlock { block } => write!(f, "{block} is bad"),
            Error::ProgramRefused { page } => write!(f, "the chip refused to program {page}"),
            Error::EraseRefused { block } => write!(f, "the chip refused to erase {block}"),
            Error::Failing { refusals } => write!(
                f,
                "the chip is failing: it refused {refusals} programs or erases in a row; none of \
                 their blocks was marked bad"
            ),
            Error::Uncorrectable { page } => {
                write!(f, "{page} has more flipped bits than its code can correct")
            }
            Error::Checksum { address, expected, found } => {
                write!(f, "address {address}: checksum {found:#010x}, expected {expected:#010x}")
            }
            Error::Full { blocks_free, blocks_needed } => write!(
                f,
                "the device is full or worn out: {blocks_free} blocks are free, {blocks_needed} \
                 are needed"
            ),
            Error::NotFormatted { expected, found } => {
                write!(f, "not formatted by this layer: found {found:#010x}, not {expected:#010x}")
            }
            Error::TooSmall { have, need } => {
                write!(f, "the device is too small: it has {have} sectors, {need} are needed")
            }
            Error::TooFewBlocks { have, need } => {
                write!(f, "the chip is too small: it has {have} good blocks, {need} are needed")
            }
            Error::TooFewPages { have, need } => {
                write!(f, "the chip's blocks have {have} pages, {need} are needed")
            }
            Error::PowerCut => f.write_str("the power was cut"),
            Error::AfterFailedWrite => f.write_str(
                "an earlier write failed: nothing is written until the device is opened again",
            ),
            Error::AfterFailedFlush => f.write_str(
                "an earlier flush failed: what was written since the flush before may be lost, and \
                 nothing is read or written until the device is opened again",
            ),
            Error::Driver { code } => write!(f, "the driver reports error {code}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<GeometryFault> for Error {
    fn from(fault: GeometryFault) -> Self {
        Error::Geometry(fault)
    }
}

// Errors travel through every hot path by value.
const _: () = assert!(size_of::<Error>() <= 32);
