//! What can go wrong while a device file is made or opened.

use std::io;
use std::path::{Path, PathBuf};

/// A result of making or opening a device file.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a device file was not made or opened. Once it is open, errors are [`device::Error`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{}: there is no such file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else, or another handle of this program, has it open.
    #[error("{}: it is in use{}", path.display(), by(*holder))]
    InUse {
        /// The file or block device.
        path: PathBuf,
        /// The process that has locked it, where the system tells.
        holder: Option<u32>,
    },
    /// It exists, and existing files were not to be replaced.
    #[error("{}: it exists already", path.display())]
    Exists {
        /// The file or block device.
        path: PathBuf,
    },
    /// It exists and holds something that is not recognised as ours.
    #[error("{}: it exists and holds something else, which is not overwritten", path.display())]
    NotOurs {
        /// The file or block device.
        path: PathBuf,
    },
    /// A folder, a pipe, a terminal: neither a regular file nor a block device.
    #[error("{}: it is neither a regular file nor a block device", path.display())]
    NotAFile {
        /// What the path names.
        path: PathBuf,
    },
    /// NAND is imitated in regular files only.
    #[error("{}: NAND is imitated in regular files, and this is a block device", path.display())]
    NotRegular {
        /// The block device.
        path: PathBuf,
    },
    /// Its length, or the length asked for, is not a whole number of sectors, or none.
    #[error("{bytes} bytes are not a whole number of sectors of {unit} bytes, and at least one")]
    Length {
        /// The length in bytes.
        bytes: u64,
        /// Bytes of a sector.
        unit: u32,
    },
    /// A block device is smaller than what was asked for.
    #[error("{}: it has {have} bytes, {need} are asked for", path.display())]
    TooSmall {
        /// The block device.
        path: PathBuf,
        /// Bytes that it has.
        have: u64,
        /// Bytes that were asked for.
        need: u64,
    },
    /// The number of transfers in flight is out of its bounds.
    #[error("{asked} transfers in flight: it must be 1 to {most}")]
    InFlight {
        /// The number asked for.
        asked: u32,
        /// The most that is possible.
        most: u32,
    },
    /// Direct I/O was required, and is not to be had.
    #[error("{}: no direct I/O: {reason}", path.display())]
    NotDirect {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: crate::Buffered,
    },
    /// io_uring was required, and the kernel does not give it.
    #[error("io_uring is not to be had")]
    NoRing(#[source] io::Error),
    /// The header of a NAND file can't be used.
    #[error("{}: {fault}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: HeaderFault,
    },
    /// The numbers do not make a device.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The operating system refused.
    #[error("{}: can't {action} it", path.display())]
    Io {
        /// What was tried: "open", "lock", ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

fn by(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |process| format!(" by process {process}"))
}

impl Error {
    /// Says what was tried with `path` when the system refused.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Error {
        move |source| Error::Io { action, path: path.to_owned(), source: source.into() }
    }
}

/// What is wrong with the header of a NAND file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderFault {
    /// It is not a NAND file.
    #[error("it is no NAND file")]
    Magic,
    /// It has another version of the format.
    #[error("it has version {found} of the format, not {expected}")]
    Version {
        /// The version that this program reads.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// The header is damaged.
    #[error("its header is damaged: checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The checksum stored in the header.
        expected: u32,
        /// The checksum of what was read.
        found: u32,
    },
    /// The header's numbers do not make a chip.
    #[error("its header describes no chip: {0}")]
    Geometry(device::Error),
    /// A number in the header has no meaning.
    #[error("its header says {found} for the order of programming")]
    Order {
        /// The number.
        found: u32,
    },
    /// The file is shorter or longer than its chip needs.
    #[error("it is {found} bytes long, its chip takes {expected}")]
    Length {
        /// The length that the geometry needs.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// The chip takes more memory than it was given.
    #[error("a chip that takes {need} bytes of memory, and may take {have}")]
    Memory {
        /// Bytes that it may take.
        have: u64,
        /// Bytes that it takes.
        need: u64,
    },
    /// The chip is larger than what can be imitated.
    #[error("a chip of {pages} pages: at most {most} can be imitated")]
    Pages {
        /// Pages of the chip.
        pages: u32,
        /// The most that is possible.
        most: u32,
    },
}
