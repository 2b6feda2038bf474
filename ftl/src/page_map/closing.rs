//! The page that closes a group of data pages, on chips without a spare area.
//!
//! ```text
//! byte  0..4   "FTCL"
//!       4..8   entries
//!       8..16  base sequence
//!      16..24  sequence of the header of this block
//!      24..28  CRC-32C of bytes 0..24, the entries and the page's own address
//!      28..    entries of 8 bytes, in the order of the pages before: sector; sequence - base
//! ```
//!
//! The data pages of the group lie directly before this page. They need no checksum against torn
//! programs: this page was begun when all of them had been programmed, and without it they do
//! not count. The sequence of the block's header tells this page from an old image of it that a
//! user may have stored as data.

use device::Page;

use crate::bytes::{long, word};
use crate::checksum::checksum_of;
use crate::spare::is_sequence;

/// The first bytes.
pub(crate) const MAGIC: [u8; 4] = *b"FTCL";
const HEAD: usize = 28;
const ENTRY: usize = 8;

/// Entries that a page of `page_bytes` bytes has room for.
pub(crate) const fn capacity(page_bytes: u32) -> u32 {
    (page_bytes - HEAD as u32) / ENTRY as u32
}

/// One data page of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) sector: u32,
    /// Its sequence, less the base of its group.
    pub(crate) delta: u32,
}

/// Which group a page closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) base: u64,
    /// The sequence of the header of its block.
    pub(crate) header: u64,
    /// The page itself.
    pub(crate) page: Page,
}

/// Fills `page` with what closes a group of `members`, of which it has room for all.
pub(crate) fn encode(seal: Seal, members: &[Member], page: &mut [u8]) {
    page.fill(0xFF);
    page[..4].copy_from_slice(&MAGIC);
    page[4..8].copy_from_slice(&(members.len() as u32).to_le_bytes());
    page[8..16].copy_from_slice(&seal.base.to_le_bytes());
    page[16..24].copy_from_slice(&seal.header.to_le_bytes());
    let end = HEAD + members.len() * ENTRY;
    for (bytes, member) in page[HEAD..end].chunks_exact_mut(ENTRY).zip(members) {
        bytes[..4].copy_from_slice(&member.sector.to_le_bytes());
        bytes[4..].copy_from_slice(&member.delta.to_le_bytes());
    }
    let sum = checksum_of(&[&page[..24], &page[HEAD..end], &seal.page.0.to_le_bytes()]);
    page[24..28].copy_from_slice(&sum.to_le_bytes());
}

/// The base sequence and the members of the group that `bytes` closes as page `page` of a block
/// whose header has the sequence `header`; `None` if they close none.
pub(crate) fn decode(
    bytes: &[u8],
    page: Page,
    header: u64,
) -> Option<(u64, impl ExactSizeIterator<Item = Member>)> {
    if bytes[..4] != MAGIC || long(bytes, 16) != header {
        return None;
    }
    let (members, base) = (word(bytes, 4), long(bytes, 8));
    if members == 0 || !is_sequence(base) || members > capacity(bytes.len() as u32) {
        return None;
    }
    let end = HEAD + members as usize * ENTRY;
    let sum = checksum_of(&[&bytes[..24], &bytes[HEAD..end], &page.0.to_le_bytes()]);
    if sum != word(bytes, 24) {
        return None;
    }
    let entries = bytes[HEAD..end].chunks_exact(ENTRY);
    let members = entries.map(|entry| Member { sector: word(entry, 0), delta: word(entry, 4) });
    Some((base, members))
}

/// The sequence of the header of the block in which `bytes` close a group as page `page`; `None` if
/// they close none.
pub(crate) fn header(bytes: &[u8], page: Page) -> Option<u64> {
    let header = long(bytes, 16);
    decode(bytes, page, header).filter(|_| is_sequence(header)).map(|_| header)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use device::Page;

    use super::{Member, Seal, capacity, decode, encode};

    #[test]
    fn a_group_comes_back_as_it_was_and_only_on_its_own_page_of_its_own_block() {
        let members: Vec<Member> =
            (0..capacity(512)).map(|n| Member { sector: n * 7, delta: n }).collect();
        let seal = Seal { base: 1 << 40, header: 99, page: Page(5) };
        let mut page = [0; 512];
        encode(seal, &members, &mut page);
        let (base, found) = decode(&page, Page(5), 99).unwrap();
        assert_eq!((base, found.collect::<Vec<_>>()), (1 << 40, members));
        assert!(decode(&page, Page(6), 99).is_none());
        assert!(decode(&page, Page(5), 98).is_none());
        for byte in 0..508 {
            page[byte] ^= 0x10;
            assert!(decode(&page, Page(5), 99).is_none(), "byte {byte}");
            page[byte] ^= 0x10;
        }
        assert!(decode(&[0xFF; 512], Page(5), u64::MAX).is_none());
    }
}
