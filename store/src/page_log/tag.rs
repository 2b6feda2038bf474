//! The tag of a page: what the log knows a page by.
//!
//! ```text
//!  0          4          9              12           16
//!  +----------+----------+--------------+------------+
//!  | checksum | sequence | erases 20    | checkpoint |
//!  | u32      | 40 bits  | + kind 4 bits| u32        |
//!  +----------+----------+--------------+------------+
//! ```
//!
//! It stands in the spare area, or, on a chip whose spare area is shorter, in the first bytes of
//! the page. Numbers are little-endian. The checksum covers the page's address and the tag: not
//! what the page holds, which each kind of page guards by itself, so that parts of it can be read.
//!
//! A page of the log's own may have its tag a second time, in the middle of the page.

use device::Page;

/// Bytes of a tag.
pub(super) const BYTES: usize = 16;

/// Sequences are below this: at one page in a microsecond it is reached after twelve days of
/// nothing but programming, which no chip outlives.
const SEQUENCES: u64 = 1 << 40;

/// Erase counts are kept up to this.
pub(super) const ERASES_MOST: u32 = (1 << 20) - 1;

/// The page of the last checkpoint, where there is none.
const NO_PAGE: u32 = u32::MAX;

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// A page of the tree; what the number means is the tree's affair. It is below 8, and 7 is for
    /// pages that are written apart.
    Tree(u8),
    /// A page of the journal.
    Journal,
    /// A piece of a checkpoint's record.
    Piece,
    /// The last piece of a checkpoint's record: with it the checkpoint is made.
    Checkpoint,
}

/// How many kinds of its own a tree has.
pub const TREE_KINDS: u8 = 8;

/// The kind of pages that a tree writes apart from others.
pub(super) const APART_KIND: u8 = TREE_KINDS - 1;

impl PageKind {
    const fn number(self) -> u8 {
        match self {
            PageKind::Tree(number) => number & (TREE_KINDS - 1),
            PageKind::Journal => TREE_KINDS,
            PageKind::Piece => TREE_KINDS + 1,
            PageKind::Checkpoint => TREE_KINDS + 2,
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            0..TREE_KINDS => Some(PageKind::Tree(number)),
            8 => Some(PageKind::Journal),
            9 => Some(PageKind::Piece),
            10 => Some(PageKind::Checkpoint),
            _ => None,
        }
    }
}

/// What a page's tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its place in the order in which pages were programmed.
    pub sequence: u64,
    /// What the page is for.
    pub kind: PageKind,
    /// How often its block was erased.
    pub(super) erases: u32,
    /// The page of the last checkpoint that was made before it.
    pub(super) checkpoint: Option<Page>,
}

/// What was found where a tag belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing was programmed there.
    Blank,
    /// A tag of this page.
    Tag(Tag),
    /// Something else: a torn page, or one of another life of the chip.
    Damaged,
}

/// Where a tag stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the spare area, or in the page's first bytes.
    First,
    /// In the middle of the page.
    Middle,
}

impl Tag {
    /// The bytes of this tag on `page`; `None` if no further page can be told from others.
    pub(super) fn encode(&self, page: Page, place: Place) -> Option<[u8; BYTES]> {
        if self.sequence >= SEQUENCES {
            return None;
        }
        let mut bytes = [0; BYTES];
        let erases = self.erases.min(ERASES_MOST) | u32::from(self.kind.number()) << 20;
        bytes[4..9].copy_from_slice(&self.sequence.to_le_bytes()[..5]);
        bytes[9..12].copy_from_slice(&erases.to_le_bytes()[..3]);
        bytes[12..].copy_from_slice(&self.checkpoint.map_or(NO_PAGE, |page| page.0).to_le_bytes());
        let checksum = checksum(page, place, &bytes);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        Some(bytes)
    }

    /// What `bytes`, which stand where the tag of `page` belongs, say.
    pub(super) fn decode(page: Page, place: Place, bytes: &[u8; BYTES]) -> Found {
        if bytes.iter().all(|byte| *byte == 0xFF) {
            return Found::Blank;
        }
        let [c0, c1, c2, c3, s0, s1, s2, s3, s4, e0, e1, e2, p0, p1, p2, p3] = *bytes;
        let erases = u32::from_le_bytes([e0, e1, e2, 0]);
        let kind = PageKind::from_number((erases >> 20) as u8);
        let is_whole = u32::from_le_bytes([c0, c1, c2, c3]) == checksum(page, place, bytes);
        let Some(kind) = kind.filter(|_| is_whole) else {
            return Found::Damaged;
        };
        let checkpoint = u32::from_le_bytes([p0, p1, p2, p3]);
        Found::Tag(Tag {
            sequence: u64::from_le_bytes([s0, s1, s2, s3, s4, 0, 0, 0]),
            kind,
            erases: erases & ERASES_MOST,
            checkpoint: (checkpoint != NO_PAGE).then_some(Page(checkpoint)),
        })
    }
}

fn checksum(page: Page, place: Place, bytes: &[u8; BYTES]) -> u32 {
    // One piece costs less than three.
    let mut piece = [0; 7 + BYTES - 4];
    piece[..3].copy_from_slice(match place {
        Place::First => b"tag",
        Place::Middle => b"mid",
    });
    piece[3..7].copy_from_slice(&page.0.to_le_bytes());
    piece[7..].copy_from_slice(&bytes[4..]);
    device::checksum(&[&piece])
}

#[cfg(test)]
mod tests {
    use device::Page;

    use super::{BYTES, ERASES_MOST, Found, PageKind, Place, SEQUENCES, Tag};

    const KINDS: [PageKind; 5] = [
        PageKind::Tree(0),
        PageKind::Tree(7),
        PageKind::Journal,
        PageKind::Piece,
        PageKind::Checkpoint,
    ];

    #[test]
    fn a_tag_says_what_was_written_into_it() {
        for kind in KINDS {
            for (sequence, erases, checkpoint) in
                [(0, 0, None), (77, 1000, Some(Page(5))), (SEQUENCES - 1, ERASES_MOST, None)]
            {
                let tag = Tag { sequence, kind, erases, checkpoint };
                for (place, other) in [(Place::First, Place::Middle), (Place::Middle, Place::First)]
                {
                    let bytes = tag.encode(Page(9), place).unwrap();
                    assert_eq!(Tag::decode(Page(9), place, &bytes), Found::Tag(tag));
                    assert_eq!(Tag::decode(Page(8), place, &bytes), Found::Damaged);
                    assert_eq!(Tag::decode(Page(9), other, &bytes), Found::Damaged);
                }
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found_and_an_erased_page_is_blank() {
        let tag = Tag { sequence: 12, kind: PageKind::Journal, erases: 3, checkpoint: None };
        let bytes = tag.encode(Page(9), Place::First).unwrap();
        for bit in 0..BYTES * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Tag::decode(Page(9), Place::First, &changed), Found::Damaged, "bit {bit}");
        }
        assert_eq!(Tag::decode(Page(9), Place::First, &[0xFF; BYTES]), Found::Blank);
    }

    #[test]
    fn no_page_is_tagged_beyond_the_last_sequence() {
        let tag = Tag { sequence: SEQUENCES, kind: PageKind::Journal, erases: 3, checkpoint: None };
        assert_eq!(tag.encode(Page(9), Place::First), None);
    }
}
