//! Where everything lies in a NAND file, and its header.
//!
//! ```text
//!  0        4096          (multiples of 4096)
//!  +--------+-----------+-------------+--------------------------------------------------
//!  | header | bad marks | page states | pages: data and spare area of one after the other
//!  |        | 1 B/block | 8 B/page    |
//!  +--------+-----------+-------------+--------------------------------------------------
//!
//!  header, little-endian:
//!  0       8         12     16      20       24       28         30      34        4092
//!  +-------+---------+------+-------+--------+--------+----------+-------+---------+----------+
//!  | magic | version | page | spare | pages/ | blocks | programs | order | zeros   | checksum |
//!  |       | u32     | u32  | u32   | block  | u32    | u16      | u32   |         | u32      |
//!  +-------+---------+------+-------+--------+--------+----------+-------+---------+----------+
//! ```
//!
//! A bad mark is any byte but 0. So bytes that are all zeros after the header are a chip on which
//! nothing was done.

use crc::{CRC_32_ISCSI, Crc};
use device::{Block, Geometry, Page, ProgramOrder};

use super::state::PageState;
use crate::HeaderFault;

/// Bytes of the header, and what the parts are aligned to.
pub(super) const HEADER_BYTES: usize = 4096;

/// The version of these bytes.
const VERSION: u32 = 1;

/// The most pages that a chip in a file may have: their states are kept in memory, 8 bytes each.
pub(super) const PAGES_MOST: u32 = 1 << 26;

const MAGIC: [u8; 8] = *b"flshnand";
const CHECKSUM: usize = HEADER_BYTES - 4;
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Tells from the first bytes of a file whether it imitates NAND.
#[must_use]
pub fn is_nand_file(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// A header that can be written or was read.
pub(super) type Header = [u8; HEADER_BYTES];

/// The header for a chip of this geometry.
pub(super) fn encode(geometry: &Geometry) -> Header {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    let order = match geometry.order() {
        ProgramOrder::Any => 0,
        ProgramOrder::Ascending => 1,
    };
    let numbers = [
        (8, VERSION),
        (12, geometry.page_bytes()),
        (16, geometry.spare_bytes()),
        (20, geometry.pages_per_block()),
        (24, geometry.blocks()),
        (30, order),
    ];
    for (at, number) in numbers {
        header[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    header[28..30].copy_from_slice(&geometry.programs_per_page().to_le_bytes());
    let checksum = CRC.checksum(&header[..CHECKSUM]);
    header[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Reads a header.
pub(super) fn decode(header: &Header) -> Result<Geometry, HeaderFault> {
    if !is_nand_file(header) {
        return Err(HeaderFault::Magic);
    }
    let number = |at: usize| {
        header[at..].first_chunk().map_or(0, |bytes: &[u8; 4]| u32::from_le_bytes(*bytes))
    };
    if number(8) != VERSION {
        return Err(HeaderFault::Version { expected: VERSION, found: number(8) });
    }
    let (expected, found) = (number(CHECKSUM), CRC.checksum(&header[..CHECKSUM]));
    if expected != found {
        return Err(HeaderFault::Checksum { expected, found });
    }
    let order = match number(30) {
        0 => ProgramOrder::Any,
        1 => ProgramOrder::Ascending,
        found => return Err(HeaderFault::Order { found }),
    };
    let programs = u16::from_le_bytes([header[28], header[29]]);
    let geometry = Geometry::new(number(12), number(20), number(24))
        .and_then(|geometry| geometry.with_spare(number(16)))
        .and_then(|geometry| geometry.with_programs(programs))
        .map_err(HeaderFault::Geometry)?;
    Ok(geometry.with_order(order))
}

/// Where the parts of a file begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    states: u64,
    pages: u64,
    page_stride: u64,
    /// The length of the file.
    pub(super) bytes: u64,
}

impl Layout {
    /// Where the bad marks begin.
    pub(super) const MARKS: u64 = HEADER_BYTES as u64;

    /// The places for a chip of this geometry.
    ///
    /// # Errors
    /// It has too many pages.
    pub(super) fn new(geometry: &Geometry) -> Result<Self, HeaderFault> {
        let pages = geometry.pages();
        if pages > PAGES_MOST {
            return Err(HeaderFault::Pages { pages, most: PAGES_MOST });
        }
        let unit = HEADER_BYTES as u64;
        let states = (Self::MARKS + u64::from(geometry.blocks())).next_multiple_of(unit);
        let state_bytes = u64::from(pages) * PageState::BYTES as u64;
        let first = (states + state_bytes).next_multiple_of(unit);
        // At most 2^26 pages of 2^17 bytes, so nothing here overflows.
        let page_stride = u64::from(geometry.page_bytes() + geometry.spare_bytes());
        let bytes = first + u64::from(pages) * page_stride;
        Ok(Layout { states, pages: first, page_stride, bytes })
    }

    /// Where the mark of `block` is.
    pub(super) const fn mark(&self, block: Block) -> u64 {
        Self::MARKS + block.0 as u64
    }

    /// Where the state of `page` is; those of the pages after it follow.
    pub(super) const fn state(&self, page: Page) -> u64 {
        self.states + page.0 as u64 * PageState::BYTES as u64
    }

    /// Where the data of `page` begin; its spare area follows.
    pub(super) const fn page(&self, page: Page) -> u64 {
        self.pages + page.0 as u64 * self.page_stride
    }
}

#[cfg(test)]
mod tests {
    use super::{CRC, HEADER_BYTES, Layout, PAGES_MOST, decode, encode};
    use crate::HeaderFault;
    use device::{Block, Geometry, GeometryFault, Page, ProgramOrder};

    fn chip() -> Geometry {
        let chip = Geometry::new(2048, 64, 100).unwrap().with_spare(64).unwrap();
        chip.with_programs(4).unwrap().with_order(ProgramOrder::Any)
    }

    #[test]
    fn a_header_says_what_was_put_in() {
        assert_eq!(decode(&encode(&chip())), Ok(chip()));
        let plain = Geometry::new(512, 1, 1).unwrap();
        assert_eq!(decode(&encode(&plain)), Ok(plain));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let good = encode(&chip());
        for bit in 0..HEADER_BYTES * 8 {
            let mut header = good;
            header[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&header).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_header_with_a_good_checksum_and_bad_numbers_is_refused() {
        let with = |at: usize, number: u32| {
            let mut header = encode(&chip());
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
            let checksum = CRC.checksum(&header[..HEADER_BYTES - 4]);
            header[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
            decode(&header)
        };
        let bad = |fault: GeometryFault| Err(HeaderFault::Geometry(fault.into()));
        assert_eq!(with(8, 2), Err(HeaderFault::Version { expected: 1, found: 2 }));
        assert_eq!(with(12, 1000), bad(GeometryFault::PageBytes(1000)));
        assert_eq!(with(16, 4096), bad(GeometryFault::SpareBytes(4096)));
        assert_eq!(with(20, 0), bad(GeometryFault::PagesPerBlock(0)));
        assert_eq!(with(24, u32::MAX), bad(GeometryFault::Pages(64 * u64::from(u32::MAX))));
        assert_eq!(with(28, 0x1_0000), bad(GeometryFault::ProgramsPerPage(0)));
        assert_eq!(with(30, 7), Err(HeaderFault::Order { found: 7 }));
    }

    #[test]
    fn the_parts_of_a_file_do_not_overlap() {
        let layout = Layout::new(&chip()).unwrap();
        assert_eq!(layout.mark(Block(99)), 4096 + 99);
        assert_eq!(layout.state(Page(0)), 8192);
        assert_eq!(layout.state(Page(6399)), 8192 + 51_200 - 8);
        assert_eq!(layout.page(Page(0)), 61_440);
        assert_eq!(layout.page(Page(1)), 61_440 + 2112);
        assert_eq!(layout.bytes, layout.page(Page(6400)));
    }

    #[test]
    fn a_chip_with_too_many_pages_is_refused() {
        let large = Geometry::new(512, 64, PAGES_MOST / 64 + 1).unwrap();
        assert!(matches!(Layout::new(&large), Err(HeaderFault::Pages { .. })));
    }
}
