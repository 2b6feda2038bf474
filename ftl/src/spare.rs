//! The metadata of a page in its spare area, on chips that have one.
//!
//! ```text
//! byte  0..4   sector, little-endian
//!       4..10  sequence, 48 bits
//!      10..13  checksum of the page's data: the low 24 bits of its CRC-32C
//!      13..16  kind in the top 4 bits, then 20 bits of the CRC-32C of bytes 0..13, the kind and
//!              the page's own address
//!      16..32  the echo: the same of the page before in its block, where the area has room
//! ```
//!
//! Where the spare area of a page is damaged, the echo behind it tells what the page holds. Only
//! the last page of a block has none, and that page may be torn.
//!
//! The data has a checksum of its own so that a page which collection moves takes it along: the
//! data is checksummed once, when a user writes it, and whatever damages it later on its way is
//! found. The metadata can be checked alone, since opening reads only spare areas; for the one
//! page of a block that may be torn, the last, it reads the data too.

use device::{Geometry, Page};

use crate::checksum::checksum;

/// Bytes of metadata.
pub(crate) const BYTES: usize = 16;

/// Bytes of a spare area that has room for an echo.
pub(crate) const ECHOED: usize = 2 * BYTES;

/// The sequence of the header that stands on a chip while it is being formatted.
pub(crate) const FORMATTING: u64 = (1 << 48) - 1;

/// True for the sequences that a disk may have. No chip lives long enough to come near the end of
/// them, so that sums of sequences fit 48 bits; a higher one was made up.
pub(crate) const fn is_sequence(sequence: u64) -> bool {
    sequence < 1 << 47
}

/// What a page holds. Page mapping has the first two, layers that map blocks the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sector.
    Data = 1,
    /// A header of the disk.
    Header = 2,
    /// A sector in a log.
    Log = 3,
    /// The header of a log.
    LogHeader = 4,
    /// A sector at its place in a block that counts from its first page on.
    InOrder = 5,
    /// A sector at its place in a block that counts when it is full.
    Merged = 6,
    /// As `InOrder`; this page or one before it in the block was lost.
    InOrderFlawed = 7,
    /// As `Merged`; this page or one before it in the block was lost.
    MergedFlawed = 8,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Data,
        Kind::Header,
        Kind::Log,
        Kind::LogHeader,
        Kind::InOrder,
        Kind::Merged,
        Kind::InOrderFlawed,
        Kind::MergedFlawed,
    ];

    fn of(number: u32) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// The metadata of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) sector: u32,
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) data: DataCheck,
}

/// The checksum of a page's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataCheck(u32);

impl DataCheck {
    pub(crate) fn of(data: &[u8]) -> Self {
        DataCheck(checksum(data) & 0x00FF_FFFF)
    }
}

/// What a spare area says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was programmed.
    Blank,
    /// Something else than metadata of this page.
    Damaged,
    /// Metadata.
    Page(Metadata),
}

impl Metadata {
    pub(crate) fn encode(&self, page: Page) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.sector.to_le_bytes());
        bytes[4..10].copy_from_slice(&self.sequence.to_le_bytes()[..6]);
        bytes[10..13].copy_from_slice(&self.data.0.to_le_bytes()[..3]);
        let kind = self.kind as u32;
        let last = kind << 20 | check(&bytes[..13], kind, page);
        bytes[13..].copy_from_slice(&last.to_le_bytes()[..3]);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; BYTES], page: Page) -> Found {
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Found::Blank;
        }
        let last = number(&bytes[13..]) as u32;
        let Some(kind) = Kind::of(last >> 20) else {
            return Found::Damaged;
        };
        if check(&bytes[..13], kind as u32, page) != last & 0x000F_FFFF {
            return Found::Damaged;
        }
        let sequence = number(&bytes[4..10]);
        let is_guard = sequence == FORMATTING && matches!(kind, Kind::Header | Kind::LogHeader);
        if !is_sequence(sequence) && !is_guard {
            return Found::Damaged;
        }
        Found::Page(Metadata {
            sector: number(&bytes[..4]) as u32,
            sequence,
            kind,
            data: DataCheck(number(&bytes[10..13]) as u32),
        })
    }
}

/// What goes to the spare areas of pages that are programmed one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Trail {
    has_room: bool,
    /// The page that was programmed last, and its metadata.
    before: (Page, [u8; BYTES]),
}

impl Trail {
    pub(crate) const fn new(geometry: Geometry) -> Self {
        let has_room = geometry.spare_bytes() as usize >= ECHOED;
        Trail { has_room, before: (Page(u32::MAX), [0; BYTES]) }
    }

    /// The spare area of `page`, and how many bytes of it are programmed.
    pub(crate) fn area(&self, page: Page, own: &[u8; BYTES]) -> ([u8; ECHOED], usize) {
        let mut area = [0xFF; ECHOED];
        area[..BYTES].copy_from_slice(own);
        let (before, metadata) = &self.before;
        if !self.has_room || before.0.wrapping_add(1) != page.0 {
            return (area, BYTES);
        }
        area[BYTES..].copy_from_slice(metadata);
        (area, ECHOED)
    }

    /// Says that `page` was programmed with this metadata.
    pub(crate) const fn programmed(&mut self, page: Page, own: [u8; BYTES]) {
        self.before = (page, own);
    }
}

fn check(bytes: &[u8], kind: u32, page: Page) -> u32 {
    // In one piece: the checksum is fast on 16 bytes at a time.
    let mut covered = [0; 18];
    covered[..13].copy_from_slice(bytes);
    covered[13] = kind as u8;
    covered[14..].copy_from_slice(&page.0.to_le_bytes());
    checksum(&covered) >> 12
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use device::Page;

    use super::{DataCheck, FORMATTING, Found, Kind, Metadata};

    const METADATA: Metadata = Metadata {
        sector: 0x0102_0304,
        sequence: 0x7EDC_BA98_7654,
        kind: Kind::Data,
        data: DataCheck(0x00AB_CDEF),
    };

    #[test]
    fn metadata_comes_back_as_it_was_and_only_on_its_own_page() {
        let bytes = METADATA.encode(Page(77));
        assert_eq!(Metadata::decode(&bytes, Page(77)), Found::Page(METADATA));
        assert_eq!(Metadata::decode(&bytes, Page(78)), Found::Damaged);
        assert_eq!(Metadata::decode(&[0xFF; 16], Page(77)), Found::Blank);
        assert_eq!(Metadata::decode(&[0; 16], Page(77)), Found::Damaged);
    }

    #[test]
    fn a_sequence_that_no_disk_reaches_is_damage() {
        let found = |sequence, kind| {
            Metadata::decode(&Metadata { sequence, kind, ..METADATA }.encode(Page(7)), Page(7))
        };
        assert!(matches!(found((1 << 47) - 1, Kind::Data), Found::Page(_)));
        assert_eq!(found(1 << 47, Kind::Data), Found::Damaged);
        assert_eq!(found(FORMATTING, Kind::Log), Found::Damaged);
        assert!(matches!(found(FORMATTING, Kind::LogHeader), Found::Page(_)));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = METADATA.encode(Page(77));
        for bit in 0..128 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Metadata::decode(&flipped, Page(77)), Found::Damaged, "bit {bit}");
        }
    }
}
