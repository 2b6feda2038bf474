//! The header page: what the disk is, and which blocks hold nothing.
//!
//! ```text
//! byte  0..4   "FTPM", or "FTDC" if sectors are clustered
//!       4..8   format version
//!       8..16  sequence
//!      16..20  sectors of the disk; 0 while the chip is being formatted
//!      20..24  erases that every block had at least
//!      24      frontiers that the disk has room for
//!      25      blocks that share a byte of the table, as a power of two
//!      26..28  blocks in the list
//!      28..32  CRC-32C of all other bytes and of the page's own address
//!      32..    list of blocks, 4 bytes each; at most an eighth of the bytes from here on, or 4
//!      behind  the table of erases: see `wear`
//! ```
//!
//! A header stands only on the first page of a block. Without a spare area every block begins
//! with one; with a spare area some blocks do. The newest one counts.
//!
//! The list names blocks that hold nothing: what stands in them from before this header is void.
//! A block is erased only when a header names it. So a torn erase, which may leave anything, is
//! harmless, even where a sector was trimmed and an old version of it is the newest there is.

use device::{Block, Page};

use crate::Options;
use crate::bytes::{long, word};
use crate::checksum::checksum_of;
use crate::spare::{FORMATTING, is_sequence};
use crate::wear::{Scale, Wear};

pub(crate) const VERSION: u32 = 2;
const HEAD: usize = 32;

/// Blocks that the list of a header of `page_bytes` bytes has room for.
pub(crate) const fn capacity(page_bytes: usize) -> usize {
    let eighth = (page_bytes - HEAD) / 32;
    if eighth < 4 { 4 } else { eighth }
}

/// What a header says beside its list and its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The kind of disk.
    pub(crate) mark: [u8; 4],
    pub(crate) sequence: u64,
    pub(crate) sectors: u32,
    pub(crate) frontiers: u8,
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
    /// Fills `bytes` with the header, as much of `list` as there is room for, and the table of
    /// erases; returns how many blocks it names.
    pub(crate) fn encode(
        &self,
        page: Page,
        list: impl Iterator<Item = Block>,
        wear: &Wear,
        bytes: &mut [u8],
    ) -> u32 {
        bytes.fill(0xFF);
        let room = 4 * capacity(bytes.len());
        let (places, table) = bytes[HEAD..].split_at_mut(room);
        let mut listed = 0_u16;
        for (place, block) in places.chunks_exact_mut(4).zip(list) {
            place.copy_from_slice(&block.0.to_le_bytes());
            listed += 1;
        }
        let scale = wear.fill(table);
        bytes[..4].copy_from_slice(&self.mark);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sectors.to_le_bytes());
        bytes[20..24].copy_from_slice(&scale.base.to_le_bytes());
        bytes[24..26].copy_from_slice(&[self.frontiers, scale.shift]);
        bytes[26..28].copy_from_slice(&listed.to_le_bytes());
        let sum = check(bytes, page);
        bytes[28..32].copy_from_slice(&sum.to_le_bytes());
        listed.into()
    }

    /// The header of a disk with this mark, if there is one.
    pub(crate) fn decode(bytes: &[u8], page: Page, mark: [u8; 4]) -> Found {
        if bytes[..4] != mark || check(bytes, page) != word(bytes, 28) {
            return Found::Nothing;
        }
        let (sequence, frontiers) = (long(bytes, 8), bytes[24]);
        let possible = (1..=Options::REGIONS_MOST).contains(&frontiers)
            && (is_sequence(sequence) || sequence == FORMATTING);
        match word(bytes, 4) {
            VERSION if possible => {
                Found::Header(Header { mark, sequence, sectors: word(bytes, 16), frontiers })
            }
            VERSION => Found::Nothing,
            version => Found::OtherVersion(version),
        }
    }

    /// The blocks that a header names, which [`Header::decode`] found to be one.
    pub(crate) fn list(bytes: &[u8]) -> impl Iterator<Item = Block> {
        let listed = u16::from_le_bytes([bytes[26], bytes[27]]);
        let places = &bytes[HEAD..HEAD + 4 * capacity(bytes.len())];
        places.chunks_exact(4).take(listed.into()).map(|bytes| Block(word(bytes, 0)))
    }

    /// The erases of `block` by the table of a header, which [`Header::decode`] found to be one.
    pub(crate) fn erases(bytes: &[u8], block: Block) -> u32 {
        let scale = Scale { base: word(bytes, 20), shift: bytes[25] };
        scale.erases(&bytes[HEAD + 4 * capacity(bytes.len())..], block)
    }
}

fn check(bytes: &[u8], page: Page) -> u32 {
    checksum_of(&[&bytes[..28], &bytes[HEAD..], &page.0.to_le_bytes()])
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use device::{Block, Page};

    use super::{FORMATTING, Found, Header, capacity};
    use crate::wear::Wear;

    const MARK: [u8; 4] = *b"FTPM";

    #[test]
    fn a_header_with_numbers_that_no_disk_has_is_none() {
        let wear = Wear::of(20, |_| Some(7));
        let found = |sequence, frontiers| {
            let header = Header { mark: MARK, sequence, sectors: 1000, frontiers };
            let mut bytes = [0; 512];
            header.encode(Page(3), core::iter::empty(), &wear, &mut bytes);
            Header::decode(&bytes, Page(3), MARK) == Found::Header(header)
        };
        assert!(found((1 << 47) - 1, 8) && found(FORMATTING, 1));
        assert!(!found(1 << 47, 8) && !found(u64::MAX, 8));
        assert!(!found(1, 0) && !found(1, 9));
    }

    #[test]
    fn a_header_comes_back_as_it_was_and_only_on_its_own_page() {
        let header = Header { mark: MARK, sequence: 1 << 41, sectors: 1000, frontiers: 3 };
        let wear = Wear::of(20, |block| Some(500 + block.0 % 2));
        for (page_bytes, room) in [(64, 4), (512, 15)] {
            let mut bytes = [0; 512];
            let bytes = &mut bytes[..page_bytes];
            assert_eq!(capacity(page_bytes), room);
            assert_eq!(header.encode(Page(3), (0..20).map(Block), &wear, bytes), room as u32);
            let decode = |bytes: &[u8], page| Header::decode(bytes, page, MARK);
            assert_eq!(decode(bytes, Page(3)), Found::Header(header));
            assert_eq!(decode(bytes, Page(4)), Found::Nothing);
            assert_eq!(Header::decode(bytes, Page(3), *b"FTDC"), Found::Nothing);
            let blocks: Vec<u32> = Header::list(bytes).map(|block| block.0).collect();
            assert_eq!(blocks, (0..room as u32).collect::<Vec<_>>());
            let erases = [0, 1, 18, 19].map(|block| Header::erases(bytes, Block(block)));
            let shared = if page_bytes == 64 { [501, 501, 501, 501] } else { [500, 501, 500, 501] };
            assert_eq!(erases, shared);
            for byte in 0..page_bytes {
                bytes[byte] ^= 0x80;
                assert_eq!(decode(bytes, Page(3)), Found::Nothing, "byte {byte}");
                bytes[byte] ^= 0x80;
            }
        }
        assert_eq!(Header::decode(&[0xFF; 64], Page(3), MARK), Found::Nothing);
        assert_eq!(Header::decode(&[0; 64], Page(0), MARK), Found::Nothing);
    }
}
