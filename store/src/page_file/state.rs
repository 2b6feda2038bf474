//! What a checkpoint says: the state that a page file comes back to.
//!
//! ```text
//!  0    8       12     16      20      24        32      34     36      44       52     53
//!  +----+-------+------+-------+-------+---------+-------+------+-------+--------+-------+------+
//!  | id | high  | free | free  | undo  | direct- | root  | slot | root  | digest | name  | name |
//!  | u64| water | head | pages | start | ory     | bytes | u16  | pages | u64    | bytes |      |
//!  +----+-------+------+-------+-------+---------+-------+------+-------+--------+-------+------+
//! ```
//!
//! The head of the root record stands behind the name. It is all of it where that is short; a
//! longer one stands in pages.

use alloc::string::String;
use alloc::vec::Vec;

use super::free_list::{self, FreeList};
use super::layout::Layout;
use crate::bytes::{Reader, Writer};
use crate::recovery::{NAME_BYTES_MOST, NAMES_MOST};
use crate::{CheckpointId, LogicalPage, OverflowValue};

/// The most bytes of a root record that stand in the superblock.
pub(super) const ROOT_INLINE_MOST: usize = 64;

/// The most bytes that a checkpoint's state takes.
pub(super) const STATE_BYTES_MOST: usize = 53 + NAME_BYTES_MOST + ROOT_INLINE_MOST;

/// What a checkpoint says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckpointState {
    pub(super) id: CheckpointId,
    /// Pages that are or were in use.
    pub(super) high_water: u32,
    pub(super) free: FreeList,
    /// The position in the undo log from which the images of what came after stand.
    pub(super) undo_start: u32,
    /// The sum of the marks of the pages in use.
    pub(super) digest: u64,
    /// The checkpoints that were kept already when this one was made.
    pub(super) directory: Option<OverflowValue>,
    /// Where the root record stands, if it is longer than its head.
    pub(super) root: Option<OverflowValue>,
    /// The root record's first bytes.
    pub(super) root_head: Vec<u8>,
    /// Its name, if it is to be kept.
    pub(super) name: Option<String>,
    /// Its number among those that are kept: no two that are kept at a time have the same.
    pub(super) slot: u8,
}

impl CheckpointState {
    /// Before the first checkpoint.
    pub(super) const NEW: CheckpointState = CheckpointState {
        id: CheckpointId(0),
        high_water: 0,
        free: FreeList::EMPTY,
        undo_start: 0,
        digest: 0,
        directory: None,
        root: None,
        root_head: Vec::new(),
        name: None,
        slot: 0,
    };

    /// Bytes that the state takes.
    pub(super) fn encoded_bytes(&self) -> usize {
        STATE_BYTES_MOST - NAME_BYTES_MOST - ROOT_INLINE_MOST
            + self.name.as_deref().map_or(0, str::len)
            + self.root_head.len()
    }

    pub(super) fn encode(&self, to: &mut Writer<'_>) {
        to.u64(self.id.0);
        to.u32(self.high_water);
        to.u32(free_list::number(self.free.head));
        to.u32(self.free.pages);
        to.u32(self.undo_start);
        encode_long(self.directory, to);
        to.bytes(&[self.root_head.len() as u8, 0, self.slot, 0]);
        encode_long(self.root, to);
        to.u64(self.digest);
        let name = self.name.as_deref().unwrap_or("");
        to.bytes(&[name.len() as u8]);
        to.bytes(name.as_bytes());
        to.bytes(&self.root_head);
    }

    pub(super) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let id = CheckpointId(from.u64()?);
        let high_water = from.u32()?;
        let free = FreeList { head: free_list::link(from.u32()?), pages: from.u32()? };
        let undo_start = from.u32()?;
        let directory = decode_long(from)?;
        let [head_bytes, 0, slot, 0] = from.array()? else {
            return None;
        };
        let head_bytes = usize::from(head_bytes);
        let root = decode_long(from)?;
        let digest = from.u64()?;
        let [name_bytes] = from.array()?;
        // Whatever was read can be written again.
        if usize::from(name_bytes) > NAME_BYTES_MOST
            || head_bytes > ROOT_INLINE_MOST
            || usize::from(slot) >= NAMES_MOST
        {
            return None;
        }
        let name = from.bytes(usize::from(name_bytes))?;
        let name = core::str::from_utf8(name).ok()?;
        let root_head = from.bytes(head_bytes)?.to_vec();
        let name = (!name.is_empty()).then(|| name.into());
        Some(CheckpointState {
            id,
            high_water,
            free,
            undo_start,
            digest,
            directory,
            root,
            root_head,
            name,
            slot,
        })
    }

    /// False if its numbers can't be those of a page file with this layout, whose undo log has its
    /// first position at `base`.
    pub(super) fn is_possible(&self, layout: &Layout, base: u32) -> bool {
        self.high_water <= layout.pages
            && self.free.pages <= self.high_water
            && self.undo_start.saturating_sub(base) <= layout.units()
    }
}

fn encode_long(value: Option<OverflowValue>, to: &mut Writer<'_>) {
    let value = value.unwrap_or(OverflowValue { first: LogicalPage(u32::MAX), bytes: 0 });
    to.u32(value.first.0);
    to.u32(value.bytes);
}

fn decode_long(from: &mut Reader<'_>) -> Option<Option<OverflowValue>> {
    let value = OverflowValue { first: LogicalPage(from.u32()?), bytes: from.u32()? };
    Some((value.first.0 != u32::MAX).then_some(value))
}
