//! The checksum of this crate's metadata and of sectors' data.

/// The checksum of `bytes`.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    device::checksum(&[bytes])
}

/// The checksum of several pieces, one after the other.
pub(crate) fn checksum_of(pieces: &[&[u8]]) -> u32 {
    device::checksum(pieces)
}
