//! What a user chooses when a device file is made or opened, and what the device then says of
//! itself.

use std::fmt;

use device::NandCosts;

/// The most transfers that can be in flight at once.
pub const IN_FLIGHT_MOST: u32 = 64;

/// What happens to a file or block device that exists where a new one is to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays as it is, whatever it holds.
    Keep,
    /// It is replaced if it is recognised as ours, and stays as it is otherwise.
    #[default]
    ReplaceOurs,
    /// It is replaced, whatever it holds.
    Overwrite,
}

/// Whether transfers go past the operating system's page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direct {
    /// Where the file system can do that; [`FileDisk::transfer`](crate::FileDisk::transfer) says.
    #[default]
    IfPossible,
    /// They do, or the file is not opened.
    Required,
    /// They do not.
    Never,
}

/// What keeps several transfers in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring where the kernel gives it, threads otherwise.
    #[default]
    Any,
    /// io_uring, or the file is not opened.
    IoUring,
    /// Threads.
    Threads,
}

/// The choices for a [`FileDisk`](crate::FileDisk).
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Bytes of a sector: a power of two from 64 to 1 MiB.
    pub sector_bytes: u32,
    /// Transfers in flight at once, from 1 to [`IN_FLIGHT_MOST`]. Each has 32 KiB of memory (or
    /// one unit of the file system, if that is larger) for buffers that are not aligned.
    pub in_flight: u32,
    /// Whether transfers go past the page cache.
    pub direct: Direct,
    /// What keeps several transfers in flight.
    pub engine: EngineChoice,
    /// Whether small writes are gathered in the memory of half of the transfers, up to 256 KiB of
    /// it, and written together: as one where they follow each other on the disk. With a single
    /// transfer in flight none are. What is gathered is written before a flush, a trim and what it
    /// does not fit, and read as if it had been; an error of the system comes then. The end of the
    /// process loses it.
    pub gathers: bool,
    /// Whether a single sector of a journal ([`Cause::Journal`](device::Cause::Journal)) goes to
    /// the page cache at once, be the others gathered or direct: so the end of the process does
    /// not lose it, and it takes no transfer to the disk before the flush.
    pub journal_cached: bool,
    /// How many bytes a regular file that is opened can grow to, in steps: the disk has so many,
    /// and room for those that the file has. `None` for a file that stays as long as it is.
    pub grows_to: Option<u64>,
    /// What happens to a file that exists, when one is made.
    pub existing: Existing,
    /// Tells from the first bytes of a file or block device (1 MiB and 4 KiB, or all if it is
    /// shorter) whether it is ours.
    pub recognises: fn(head: &[u8]) -> bool,
}

impl Default for DiskOptions {
    /// Sectors of 4 KiB, 32 transfers in flight, direct where possible; replaces page files only.
    fn default() -> Self {
        DiskOptions {
            sector_bytes: 4096,
            in_flight: 32,
            direct: Direct::default(),
            engine: EngineChoice::default(),
            gathers: false,
            journal_cached: false,
            grows_to: None,
            existing: Existing::default(),
            recognises: crate::is_page_file,
        }
    }
}

/// What an operation on a NAND file survives once it has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however it ends. If the machine itself loses its power, operations
    /// since the last [`NandFile::sync`](crate::NandFile::sync) may be lost in any combination.
    #[default]
    Process,
    /// A power cut of the machine too, as a real chip's operations do. Each program and erase
    /// then waits for the disk.
    Power,
}

/// The choices for a [`NandFile`](crate::NandFile).
#[derive(Clone, Copy, Debug)]
pub struct NandOptions {
    /// What the meter charges for each operation: these costs, as a simulated chip does; or,
    /// without costs, the time that the operation took by the clock.
    pub costs: Option<NandCosts>,
    /// What an operation survives once it has returned.
    pub durability: Durability,
    /// What happens to a file that exists, when one is made.
    pub existing: Existing,
    /// Tells from the first bytes of a file whether it is ours.
    pub recognises: fn(head: &[u8]) -> bool,
    /// The most bytes of memory that the chip may take:
    /// [`NandFile::memory_bytes`](crate::NandFile::memory_bytes).
    pub memory_most: u64,
}

impl Default for NandOptions {
    /// Measured by the clock, safe against the end of the process; replaces NAND files only.
    fn default() -> Self {
        NandOptions {
            costs: None,
            durability: Durability::default(),
            existing: Existing::default(),
            recognises: crate::is_nand_file,
            memory_most: u64::MAX,
        }
    }
}

/// How bytes go between memory and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Past the page cache.
    Direct {
        /// Places in the file and lengths are multiples of this many bytes.
        offset_alignment: u32,
        /// Addresses in memory are multiples of this many bytes.
        memory_alignment: u32,
    },
    /// Through the page cache.
    Buffered(Buffered),
}

/// Why transfers go through the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffered {
    /// The user wanted it.
    Asked,
    /// The file system or the operating system has no direct I/O.
    FileSystem,
    /// Sectors are smaller than the unit of the file system's direct I/O.
    Sectors {
        /// That unit in bytes.
        unit: u32,
    },
}

impl fmt::Display for Buffered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Buffered::Asked => f.write_str("it was not asked for"),
            Buffered::FileSystem => f.write_str("the file system does not have it"),
            Buffered::Sectors { unit } => {
                write!(f, "sectors are smaller than the file system's unit of {unit} bytes")
            }
        }
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transfer::Direct { offset_alignment, memory_alignment } => {
                write!(f, "direct, in units of {offset_alignment} bytes at addresses that are ")?;
                write!(f, "multiples of {memory_alignment}")
            }
            Transfer::Buffered(reason) => write!(f, "through the page cache: {reason}"),
        }
    }
}

/// What keeps several transfers of an open disk in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// io_uring.
    IoUring,
    /// Threads.
    Threads,
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::IoUring => "io_uring",
            EngineKind::Threads => "threads",
        })
    }
}
