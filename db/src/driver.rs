//! What takes memory below the tree.

use crate::options::MemoryLimit;

/// Bytes that a transfer in flight takes, at most, with usual file systems.
const TRANSFER_BYTES: u64 = 32 << 10;

/// Bytes that an open file takes beside its buffers, at most: half of them for the runs of small
/// writes that are gathered.
const HANDLE_BYTES: u64 = 2 << 10;

/// What takes memory below the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// So many bytes, whatever there is.
    Fixed(u64),
    /// A file, which takes a part of the memory, and whose length follows from that, too, if
    /// `is_new` and no other was chosen.
    File { is_new: bool },
}

/// Transfers in flight that suit a memory budget.
pub(crate) fn in_flight(memory: MemoryLimit) -> u32 {
    match memory {
        // An eighth of it.
        MemoryLimit::Total(bytes) => (bytes / 8 / TRANSFER_BYTES).clamp(1, 16) as u32,
        MemoryLimit::CachesAndBuffers(_) => 4,
    }
}

/// Bytes of memory that the driver of a file takes.
pub(crate) fn bytes_of_file(memory: MemoryLimit, alignment: u32) -> u64 {
    // The buffers lie at a multiple of their alignment somewhere in a longer one.
    let slack = u64::from(alignment) + HANDLE_BYTES;
    u64::from(in_flight(memory)) * TRANSFER_BYTES + slack
}
