//! Pages that hold only metadata.
//!
//! ```text
//! byte  0..4   the layer's mark
//!       4..8   CRC-32C of all that follows and of the page's own address
//!       8..16  sequence: of this block, or of the header of the block that this page stands in
//!      16..24  base: in a log's header the sequence of the oldest log block that counts, in a
//!              state the sequence from which members count
//!      24..28  number: in a log's header the logical blocks of the disk, in the header of another
//!              block and in its last page the logical block
//!      28      format version
//!      29      kind
//!      30..32  in a log's header: `logs`, as the disk was made; in a block's last page: 1 if a
//!              page of the block was lost
//!      32..34  blocks that are being filled in order
//!      34..36  members
//!      36..    blocks that are being filled, 20 bytes each: block, places that are durable (and
//!              in the top bit whether one was lost), sequence of the block, logical block; then
//!              members of 8 bytes, in the order of the pages before this one: sector,
//!              sequence - base
//! ```
//!
//! Members are the sectors on the pages directly before a state. They need no checksum against
//! torn programs: the state was begun when all of them had been programmed, and without it they
//! do not count. The sequence of the block's header tells a page from an old image of it that a
//! user may have stored as data.

use device::{Block, Page};

use crate::bytes::{long, word};
use crate::checksum::checksum_of;
use crate::spare::{FORMATTING, is_sequence};

pub(crate) const VERSION: u8 = 2;
const HEAD: usize = 36;
const STATE: usize = 20;
const MEMBER: usize = 8;
const FLAWED: u32 = 1 << 31;

/// What a page of metadata is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first page of a log block.
    Log = 1,
    /// The first page of a block that counts from its first page on.
    InOrder = 2,
    /// The first page of a block that counts when it is full.
    Merged = 3,
    /// The last page of a full block.
    Complete = 4,
    /// A page of a log that makes what was written before durable.
    State = 5,
    /// Stands where a page was lost.
    Lost = 6,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        let all = [Kind::Log, Kind::InOrder, Kind::Merged, Kind::Complete, Kind::State, Kind::Lost];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The fixed part of a page of metadata; what the fields mean depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) sequence: u64,
    pub(crate) base: u64,
    pub(crate) number: u32,
    pub(crate) flags: u16,
}

/// A block that is being filled in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) block: Block,
    /// Places that are durable.
    pub(crate) filled: u32,
    /// True if one of them was lost.
    pub(crate) flawed: bool,
    /// The sequence of the block.
    pub(crate) sequence: u64,
    /// Which logical block it is filled for.
    pub(crate) logical: u32,
}

/// A sector on a page of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) sector: u32,
    /// Its sequence, less the base of its group.
    pub(crate) delta: u32,
}

/// What stands on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Metadata.
    Page(Head),
    /// Metadata of another format version.
    OtherVersion(u8),
    /// Something else.
    Nothing,
}

/// Blocks being filled that a page of `page_bytes` bytes has room for beside one member.
pub(crate) const fn most_states(page_bytes: u32) -> u32 {
    (page_bytes - HEAD as u32) / STATE as u32
}

/// Members that a page has room for beside `states` blocks being filled.
pub(crate) const fn most_members(page_bytes: u32, states: u32) -> u32 {
    (page_bytes - HEAD as u32 - states * STATE as u32) / MEMBER as u32
}

/// Fills `bytes`, the content of `page`; there must be room for all.
pub(crate) fn encode(
    mark: [u8; 4],
    head: Head,
    (states, members): (impl Iterator<Item = State>, &[Member]),
    page: Page,
    bytes: &mut [u8],
) {
    bytes.fill(0xFF);
    let mut at = HEAD;
    let mut count = 0_u16;
    for state in states {
        let filled = state.filled | if state.flawed { FLAWED } else { 0 };
        bytes[at..at + 4].copy_from_slice(&state.block.0.to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&filled.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&state.sequence.to_le_bytes());
        bytes[at + 16..at + 20].copy_from_slice(&state.logical.to_le_bytes());
        at += STATE;
        count += 1;
    }
    for member in members {
        bytes[at..at + 4].copy_from_slice(&member.sector.to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&member.delta.to_le_bytes());
        at += MEMBER;
    }
    bytes[..4].copy_from_slice(&mark);
    bytes[8..16].copy_from_slice(&head.sequence.to_le_bytes());
    bytes[16..24].copy_from_slice(&head.base.to_le_bytes());
    bytes[24..28].copy_from_slice(&head.number.to_le_bytes());
    bytes[28..30].copy_from_slice(&[VERSION, head.kind as u8]);
    bytes[30..32].copy_from_slice(&head.flags.to_le_bytes());
    bytes[32..34].copy_from_slice(&count.to_le_bytes());
    bytes[34..36].copy_from_slice(&(members.len() as u16).to_le_bytes());
    let sum = checksum_of(&[&bytes[8..at], &page.0.to_le_bytes()]);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// Reads the content of `page`.
pub(crate) fn decode(mark: [u8; 4], page: Page, bytes: &[u8]) -> Found {
    let end = members_at(bytes) + count(bytes, 34) * MEMBER;
    if bytes[..4] != mark || end > bytes.len() {
        return Found::Nothing;
    }
    if checksum_of(&[&bytes[8..end], &page.0.to_le_bytes()]) != word(bytes, 4) {
        return Found::Nothing;
    }
    if bytes[28] != VERSION {
        return Found::OtherVersion(bytes[28]);
    }
    let Some(kind) = Kind::of(bytes[29]) else {
        return Found::Nothing;
    };
    let (sequence, base) = (long(bytes, 8), long(bytes, 16));
    let is_guard = (kind, sequence, base) == (Kind::Log, FORMATTING, FORMATTING);
    let possible = is_guard || (is_sequence(sequence) && is_sequence(base));
    if !possible {
        return Found::Nothing;
    }
    Found::Page(Head {
        kind,
        sequence,
        base,
        number: word(bytes, 24),
        flags: count(bytes, 30) as u16,
    })
}

/// The head of a page of the kind `wanted`.
pub(crate) fn decode_as(mark: [u8; 4], wanted: Kind, page: Page, bytes: &[u8]) -> Option<Head> {
    match decode(mark, page, bytes) {
        Found::Page(head) if head.kind == wanted => Some(head),
        _ => None,
    }
}

/// The blocks being filled that a page names, which [`decode`] found to be metadata.
pub(crate) fn states(bytes: &[u8]) -> impl Iterator<Item = State> {
    bytes[HEAD..members_at(bytes)].chunks_exact(STATE).map(|bytes| State {
        block: Block(word(bytes, 0)),
        filled: word(bytes, 4) & !FLAWED,
        flawed: word(bytes, 4) & FLAWED != 0,
        sequence: long(bytes, 8),
        logical: word(bytes, 16),
    })
}

/// The members that a page names, which [`decode`] found to be metadata.
pub(crate) fn members(bytes: &[u8]) -> impl ExactSizeIterator<Item = Member> {
    let start = members_at(bytes);
    bytes[start..start + count(bytes, 34) * MEMBER]
        .chunks_exact(MEMBER)
        .map(|bytes| Member { sector: word(bytes, 0), delta: word(bytes, 4) })
}

fn members_at(bytes: &[u8]) -> usize {
    HEAD + count(bytes, 32) * STATE
}

fn count(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[at]) | usize::from(bytes[at + 1]) << 8
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use device::{Block, Page};

    use super::{Found, Head, Kind, Member, State, decode, encode, members, states};

    const HEAD: Head =
        Head { kind: Kind::State, sequence: 1 << 41, base: 77, number: 5, flags: 0xABC };

    #[test]
    fn metadata_comes_back_as_it_was_and_only_on_its_own_page() {
        let sequence = 1 << 40;
        let filling = State { block: Block(4), filled: 9, flawed: true, sequence, logical: 3 };
        let named: Vec<Member> = (0..3).map(|n| Member { sector: n * 7, delta: n }).collect();
        let mut bytes = [0; 128];
        encode(*b"TEST", HEAD, ([filling; 2].into_iter(), &named), Page(3), &mut bytes);
        assert_eq!(decode(*b"TEST", Page(3), &bytes), Found::Page(HEAD));
        assert_eq!(states(&bytes).collect::<Vec<_>>(), [filling; 2]);
        assert_eq!(members(&bytes).collect::<Vec<_>>(), named);
        assert_eq!(decode(*b"TEST", Page(4), &bytes), Found::Nothing);
        assert_eq!(decode(*b"REST", Page(3), &bytes), Found::Nothing);
        for byte in 0..36 + 40 + 24 {
            bytes[byte] ^= 0x10;
            assert_eq!(decode(*b"TEST", Page(3), &bytes), Found::Nothing, "byte {byte}");
            bytes[byte] ^= 0x10;
        }
        assert_eq!(decode(*b"TEST", Page(3), &[0xFF; 64]), Found::Nothing);
        assert_eq!(decode([0; 4], Page(0), &[0; 64]), Found::Nothing);
    }
}
