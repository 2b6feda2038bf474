//! The header page: what the disk is, and which blocks hold nothing.
//!
//! ```text
//! byte  0..4   "FTPM"
//!       4..8   format version
//!       8..16  sequence
//!      16..20  sectors of the disk; 0 while the chip is being formatted
//!      20..24  blocks in the list
//!      24..28  CRC-32C of bytes 0..24, the list and the page's own address
//!      28..    list of blocks, 4 bytes each
//! ```
//!
//! A header stands only on the first page of a block. Without a spare area every block begins
//! with one; with a spare area some blocks do. The newest one counts.
//!
//! The list names blocks that hold nothing: what stands in them from before this header is void.
//! A block is erased only when a header names it. So a torn erase, which may leave anything, is
//! harmless, even where a sector was trimmed and an old version of it is the newest there is.

use device::{Block, Page};

use crate::bytes::{long, word};
use crate::checksum::checksum_of;

const MAGIC: [u8; 4] = *b"FTPM";
pub(crate) const VERSION: u32 = 1;
const HEAD: usize = 28;

/// The sequence of the header that stands on a chip while it is being formatted.
pub(crate) const FORMATTING: u64 = (1 << 48) - 1;

/// The magic as a number, for errors.
pub(crate) const MARK: u32 = u32::from_le_bytes(MAGIC);

/// Blocks that the list of a header of `page_bytes` bytes has room for.
pub(crate) const fn capacity(page_bytes: u32) -> usize {
    (page_bytes as usize - HEAD) / 4
}

/// What a header says beside its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    pub(crate) sectors: u32,
}

/// What stands where a header may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A header.
    Header(Header),
    /// A header of another format version.
    OtherVersion(u32),
    /// Something else.
    Nothing,
}

impl Header {
    /// Fills `bytes` with the header and as much of `list` as there is room for; returns how many
    /// blocks it names.
    pub(crate) fn encode(
        &self,
        page: Page,
        list: impl Iterator<Item = Block>,
        bytes: &mut [u8],
    ) -> u32 {
        bytes.fill(0xFF);
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sectors.to_le_bytes());
        let mut listed = 0_u32;
        for (place, block) in bytes[HEAD..].chunks_exact_mut(4).zip(list) {
            place.copy_from_slice(&block.0.to_le_bytes());
            listed += 1;
        }
        bytes[20..24].copy_from_slice(&listed.to_le_bytes());
        let end = HEAD + listed as usize * 4;
        let sum = checksum_of(&[&bytes[..24], &bytes[HEAD..end], &page.0.to_le_bytes()]);
        bytes[24..28].copy_from_slice(&sum.to_le_bytes());
        listed
    }

    pub(crate) fn decode(bytes: &[u8], page: Page) -> Found {
        let listed = word(bytes, 20) as usize;
        if bytes[..4] != MAGIC || listed > capacity(bytes.len() as u32) {
            return Found::Nothing;
        }
        let end = HEAD + listed * 4;
        let sum = checksum_of(&[&bytes[..24], &bytes[HEAD..end], &page.0.to_le_bytes()]);
        if sum != word(bytes, 24) {
            return Found::Nothing;
        }
        match word(bytes, 4) {
            VERSION => Found::Header(Header { sequence: long(bytes, 8), sectors: word(bytes, 16) }),
            version => Found::OtherVersion(version),
        }
    }

    /// The blocks that a header names, which [`Header::decode`] found to be one.
    pub(crate) fn list(bytes: &[u8]) -> impl Iterator<Item = Block> {
        let listed = word(bytes, 20) as usize;
        bytes[HEAD..].chunks_exact(4).take(listed).map(|bytes| Block(word(bytes, 0)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use device::{Block, Page};

    use super::{Found, Header, capacity};

    #[test]
    fn a_header_comes_back_as_it_was_and_only_on_its_own_page() {
        let header = Header { sequence: 1 << 41, sectors: 1000 };
        let mut bytes = [0; 64];
        assert_eq!(capacity(64), 9);
        assert_eq!(header.encode(Page(3), (0..20).map(Block), &mut bytes), 9);
        assert_eq!(Header::decode(&bytes, Page(3)), Found::Header(header));
        assert_eq!(Header::decode(&bytes, Page(4)), Found::Nothing);
        let blocks: Vec<Block> = Header::list(&bytes).collect();
        assert_eq!(blocks, (0..9).map(Block).collect::<Vec<_>>());
        for byte in 0..64 {
            bytes[byte] ^= 0x80;
            assert_eq!(Header::decode(&bytes, Page(3)), Found::Nothing, "byte {byte}");
            bytes[byte] ^= 0x80;
        }
        assert_eq!(Header::decode(&[0xFF; 64], Page(3)), Found::Nothing);
        assert_eq!(Header::decode(&[0; 64], Page(0)), Found::Nothing);
    }
}
