//! Slotted nodes: entries of any length, found through slots in the order of their keys.
//!
//! ```text
//!  0        8       10     12       14      16
//!  +--------+-------+------+--------+-------+-------+-------+------+-------+--------+
//!  | header | prefix| heap | garbage| 0     | slots | free  | cells        | prefix |
//!  |        | bytes | start| bytes  |       | u16.. |       |              |        |
//!  +--------+-------+------+--------+-------+-------+-------+------+-------+--------+
//!                                            grow ->         <- grow
//!
//!  cell: suffix bytes u16 (if keys vary) | value bytes u16 (if values vary) | suffix | value
//! ```
//!
//! The top bit of a value's length marks a value that stands in pages of its own; the bytes in the
//! cell then are those of its [`OverflowValue`]. No value in a node is so long that its length has
//! that bit.
//!
//! The bytes that all keys share stand once, at the end of the page; cells hold the rest of each
//! key. The prefix is taken as long as it can be whenever the node is rebuilt: when it runs out of
//! room, and when it is split or joined. A key that does not begin with it shortens it.

mod moving;

use super::{
    NodeKey, Stored, count, read_u16, search_suffixes, set_count, shared_prefix, write_u16,
};
use crate::{OverflowValue, Width, page_kind};
use core::ops::Range;

const PREFIX: usize = 8;
const HEAP: usize = 10;
const GARBAGE: usize = 12;
const SLOTS: usize = 16;
const SLOT_BYTES: usize = 2;

/// The bit of a value's length that marks a long value.
const LONG: u16 = 1 << 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slotted {
    bytes: u16,
    key: Width,
    value: Width,
    /// True if the bytes that all keys share stand once.
    shares: bool,
}

/// Where the parts of a cell lie.
struct Cell {
    suffix: usize,
    value: usize,
    end: usize,
    is_long: bool,
}

impl Slotted {
    /// `None` if keys of a fixed length leave no room for a value, or a long value's place.
    pub(super) fn new(bytes: usize, key: Width, value: Width) -> Option<Self> {
        debug_assert!(bytes > SLOTS, "no room for slots");
        let form = Slotted { bytes: u16::try_from(bytes).ok()?, key, value, shares: true };
        let least = |width, varying| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => varying,
        };
        let entry = least(key, 0) + least(value, OverflowValue::ENCODED_BYTES);
        (entry <= form.entry_bytes_most()).then_some(form)
    }

    pub(super) const fn without_prefixes(self) -> Self {
        Slotted { shares: false, ..self }
    }

    #[inline]
    pub(super) fn node_bytes(&self) -> usize {
        usize::from(self.bytes)
    }

    pub(super) const fn widths(&self) -> (Width, Width) {
        (self.key, self.value)
    }

    /// Bytes of lengths in front of every cell.
    fn length_bytes(&self) -> usize {
        let bytes = |width| if matches!(width, Width::Variable) { 2 } else { 0 };
        bytes(self.key) + bytes(self.value)
    }

    pub(super) fn entry_bytes_most(&self) -> usize {
        (self.node_bytes() - SLOTS) / 4 - SLOT_BYTES - self.length_bytes()
    }

    pub(super) fn capacity(&self, key: usize, value: usize) -> usize {
        self.entries_room() / self.entry_bytes(key, value)
    }

    pub(super) fn entry_bytes(&self, key: usize, value: usize) -> usize {
        SLOT_BYTES + self.length_bytes() + key + value
    }

    pub(super) fn entries_room(&self) -> usize {
        self.node_bytes() - SLOTS
    }

    pub(super) fn validate(&self, node: &[u8]) -> Result<(), &'static str> {
        if node.len() != self.node_bytes() {
            return Err("it has another size than this index's nodes");
        }
        if !Self::is_kind(node) {
            return Err("it is no node with entries of variable length");
        }
        let slots_end = SLOTS + count(node) * SLOT_BYTES;
        let heap = self.heap(node);
        if heap < slots_end
            || heap > self.node_bytes()
            || self.prefix_bytes(node) > self.node_bytes() - heap
        {
            return Err("its slots, cells and prefix overlap");
        }
        if matches!(self.key, Width::Fixed(bytes) if self.prefix_bytes(node) > usize::from(bytes)) {
            return Err("its prefix is longer than a key");
        }
        let cells = heap..self.node_bytes() - self.prefix_bytes(node);
        let mut live = 0;
        for place in 0..count(node) {
            let start = usize::from(read_u16(node, SLOTS + place * SLOT_BYTES));
            if start < cells.start || start + self.length_bytes() > cells.end {
                return Err("a slot points outside its cells");
            }
            let cell = self.cell_at(node, start);
            if cell.end > cells.end || cell.value > cell.end {
                return Err("a cell ends outside the cells");
            }
            if cell.is_long && cell.end - cell.value != OverflowValue::ENCODED_BYTES {
                return Err("what tells of a long value has another length");
            }
            live += cell.end - start;
            if place > 0 && self.suffix(node, place - 1) >= self.suffix(node, place) {
                return Err("its keys are not in ascending order");
            }
        }
        if live + usize::from(read_u16(node, GARBAGE)) != cells.len() {
            return Err("its cells do not add up");
        }
        Ok(())
    }

    pub(super) fn is_kind(node: &[u8]) -> bool {
        node[page_kind::AT] == page_kind::SLOTTED
    }

    pub(super) fn initialise(&self, node: &mut [u8]) {
        node[page_kind::AT] = page_kind::SLOTTED;
        node[PREFIX..SLOTS].fill(0);
        write_u16(node, HEAP, self.node_bytes());
    }

    fn prefix_bytes(&self, node: &[u8]) -> usize {
        usize::from(read_u16(node, PREFIX))
    }

    fn heap(&self, node: &[u8]) -> usize {
        usize::from(read_u16(node, HEAP))
    }

    fn prefix<'n>(&self, node: &'n [u8]) -> &'n [u8] {
        &node[self.node_bytes() - self.prefix_bytes(node)..]
    }

    fn cell(&self, node: &[u8], place: usize) -> Cell {
        self.cell_at(node, usize::from(read_u16(node, SLOTS + place * SLOT_BYTES)))
    }

    #[inline]
    fn cell_at(&self, node: &[u8], start: usize) -> Cell {
        let mut at = start;
        let mut length = |width| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => {
                at += 2;
                usize::from(read_u16(node, at - 2))
            }
        };
        let key = length(self.key);
        let value = length(self.value);
        let is_long = matches!(self.value, Width::Variable) && value & usize::from(LONG) != 0;
        let value_bytes = if is_long { value - usize::from(LONG) } else { value };
        let suffix_bytes = match self.key {
            Width::Fixed(_) => key.saturating_sub(self.prefix_bytes(node)),
            Width::Variable => key,
        };
        let value = at + suffix_bytes;
        Cell { suffix: at, value, end: value + value_bytes, is_long }
    }

    #[inline]
    fn suffix<'n>(&self, node: &'n [u8], place: usize) -> &'n [u8] {
        let cell = self.cell(node, place);
        &node[cell.suffix..cell.value]
    }

    #[inline]
    pub(super) fn key<'n>(&self, node: &'n [u8], place: usize) -> NodeKey<'n> {
        NodeKey { prefix: self.prefix(node), suffix: self.suffix(node, place) }
    }

    #[inline]
    pub(super) fn value<'n>(&self, node: &'n [u8], place: usize) -> Stored<'n> {
        let cell = self.cell(node, place);
        Stored { bytes: &node[cell.value..cell.end], is_long: cell.is_long }
    }

    pub(super) fn search(&self, node: &[u8], key: &[u8]) -> Result<usize, usize> {
        search_suffixes((self.prefix(node), count(node)), key, |place| self.suffix(node, place))
    }

    fn free_bytes(&self, node: &[u8]) -> usize {
        self.heap(node) - SLOTS - count(node) * SLOT_BYTES
    }

    /// Bytes of live cells.
    fn cell_bytes(&self, node: &[u8]) -> usize {
        self.node_bytes()
            - self.heap(node)
            - self.prefix_bytes(node)
            - usize::from(read_u16(node, GARBAGE))
    }

    /// Bytes that the node's live cells would take with a prefix of `prefix` bytes, the prefix
    /// itself included.
    fn rebuilt_bytes(&self, node: &[u8], prefix: usize) -> usize {
        let whole = self.cell_bytes(node) + count(node) * self.prefix_bytes(node);
        prefix + whole - count(node) * prefix
    }

    /// How many bytes all keys from one to the other share.
    fn shared(&self, first: &NodeKey<'_>, last: &NodeKey<'_>) -> usize {
        if self.shares { shared_prefix(first.bytes(), last.bytes()) } else { 0 }
    }

    /// How many bytes all keys of the node share, and `key` too if one is given.
    fn longest_prefix(&self, node: &[u8], key: Option<&[u8]>) -> usize {
        let entries = count(node);
        if !self.shares {
            return 0;
        }
        if entries == 0 {
            return key.map_or(0, <[u8]>::len);
        }
        let (first, last) = (self.key(node, 0), self.key(node, entries - 1));
        let among = self.shared(&first, &last);
        key.map_or(among, |key| among.min(shared_prefix(first.bytes(), key.iter().copied())))
    }

    fn new_cell_bytes(&self, suffix: usize, value: usize) -> usize {
        self.length_bytes() + suffix + value
    }

    /// The prefix with which the node has room for the entry, if there is one: the present one if
    /// the cell fits as things are, else the longest.
    fn prefix_for(&self, node: &[u8], key: &[u8], value: usize) -> Option<usize> {
        let present = self.prefix(node);
        if key.starts_with(present) {
            let cell = self.new_cell_bytes(key.len() - present.len(), value);
            if cell + SLOT_BYTES <= self.free_bytes(node) {
                return Some(present.len());
            }
        }
        let prefix = self.longest_prefix(node, Some(key));
        let cell = self.new_cell_bytes(key.len() - prefix, value);
        let slots = SLOTS + (count(node) + 1) * SLOT_BYTES;
        (slots + self.rebuilt_bytes(node, prefix) + cell <= self.node_bytes()).then_some(prefix)
    }

    pub(super) fn has_room(&self, node: &[u8], key: &[u8], value: usize) -> bool {
        self.prefix_for(node, key, value).is_some()
    }

    pub(super) fn insert(
        &self,
        node: &mut [u8],
        place: usize,
        key: &[u8],
        value: Stored<'_>,
        scratch: &mut [u8],
    ) -> bool {
        let Some(prefix) = self.prefix_for(node, key, value.bytes.len()) else {
            return false;
        };
        let cell = self.new_cell_bytes(key.len() - prefix, value.bytes.len());
        if prefix != self.prefix_bytes(node) || cell + SLOT_BYTES > self.free_bytes(node) {
            let new_prefix = if count(node) == 0 { Some(&key[..prefix]) } else { None };
            self.rebuild(node, prefix, new_prefix, scratch);
        }
        self.place_cell(node, place, (&[], &key[prefix..]), value);
        true
    }

    /// Writes a cell, whose key's rest is given in two parts, and its slot; there is room.
    pub(super) fn place_cell(
        &self,
        node: &mut [u8],
        place: usize,
        suffix: (&[u8], &[u8]),
        value: Stored<'_>,
    ) {
        debug_assert!(
            !value.is_long || matches!(self.value, Width::Variable),
            "where values have one length, none is long"
        );
        let entries = count(node);
        let suffix_bytes = suffix.0.len() + suffix.1.len();
        let start = self.heap(node) - self.new_cell_bytes(suffix_bytes, value.bytes.len());
        let mut at = start;
        if matches!(self.key, Width::Variable) {
            write_u16(node, at, suffix_bytes);
            at += 2;
        }
        if matches!(self.value, Width::Variable) {
            write_u16(node, at, value_length(value));
            at += 2;
        }
        for part in [suffix.0, suffix.1, value.bytes] {
            node[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        write_u16(node, HEAP, start);
        let slot = SLOTS + place * SLOT_BYTES;
        node.copy_within(slot..SLOTS + entries * SLOT_BYTES, slot + SLOT_BYTES);
        write_u16(node, slot, start);
        set_count(node, entries + 1);
    }

    /// Writes the node anew without garbage, with a prefix of `prefix` bytes: those of `bytes`, or
    /// else of its first key.
    fn rebuild(&self, node: &mut [u8], prefix: usize, bytes: Option<&[u8]>, scratch: &mut [u8]) {
        device::copy(scratch, node);
        let old: &[u8] = scratch;
        self.initialise(node);
        self.set_prefix(node, prefix, bytes, old);
        set_count(node, 0);
        self.append(node, old, 0..count(old));
    }

    /// Gives the node without cells a prefix: `prefix` bytes of `bytes`, or of the first key of
    /// `old`.
    pub(super) fn set_prefix(
        &self,
        node: &mut [u8],
        prefix: usize,
        bytes: Option<&[u8]>,
        old: &[u8],
    ) {
        let start = self.node_bytes() - prefix;
        match bytes {
            Some(bytes) => node[start..].copy_from_slice(&bytes[..prefix]),
            None if count(old) > 0 => {
                for (to, from) in node[start..].iter_mut().zip(self.key(old, 0).bytes()) {
                    *to = from;
                }
            }
            None => debug_assert_eq!(prefix, 0, "an empty node has no prefix"),
        }
        write_u16(node, PREFIX, prefix);
        write_u16(node, HEAP, start);
    }

    /// Appends entries of `from`, all of which begin with the node's prefix.
    fn append(&self, node: &mut [u8], from: &[u8], places: Range<usize>) {
        let prefix = self.prefix_bytes(node);
        for place in places {
            let key = self.key(from, place);
            let cut = prefix.min(key.prefix.len());
            let suffix = (&key.prefix[cut..], &key.suffix[prefix - cut..]);
            self.place_cell(node, count(node), suffix, self.value(from, place));
        }
    }

    pub(super) fn replace(
        &self,
        node: &mut [u8],
        place: usize,
        value: Stored<'_>,
        scratch: &mut [u8],
    ) -> bool {
        let cell = self.cell(node, place);
        if cell.end - cell.value == value.bytes.len() {
            node[cell.value..cell.end].copy_from_slice(value.bytes);
            if matches!(self.value, Width::Variable) {
                // The length stands directly before the key's rest.
                write_u16(node, cell.suffix - 2, value_length(value));
            }
            return true;
        }
        let old_bytes = cell.end - cell.suffix + self.length_bytes();
        let new_bytes = self.new_cell_bytes(cell.value - cell.suffix, value.bytes.len());
        let used = SLOTS + count(node) * SLOT_BYTES + self.prefix_bytes(node);
        if used + self.cell_bytes(node) - old_bytes + new_bytes > self.node_bytes() {
            return false;
        }
        device::copy(scratch, node);
        let old: &[u8] = scratch;
        if count(old) > 1 && new_bytes <= self.free_bytes(node) {
            self.remove(node, place);
        } else {
            self.initialise(node);
            self.set_prefix(node, self.prefix_bytes(old), None, old);
            set_count(node, 0);
            self.append(node, old, 0..place);
            self.append(node, old, place + 1..count(old));
        }
        let suffix = self.suffix(scratch, place);
        self.place_cell(node, place, (&[], suffix), value);
        true
    }

    pub(super) fn remove(&self, node: &mut [u8], place: usize) {
        let entries = count(node);
        if entries == 1 {
            // An empty node must not keep the prefix of keys that are gone.
            self.initialise(node);
            set_count(node, 0);
            return;
        }
        let cell = self.cell(node, place);
        let dead = cell.end - cell.suffix + self.length_bytes();
        let garbage = usize::from(read_u16(node, GARBAGE));
        write_u16(node, GARBAGE, garbage + dead);
        let slot = SLOTS + place * SLOT_BYTES;
        node.copy_within(slot + SLOT_BYTES..SLOTS + entries * SLOT_BYTES, slot);
        set_count(node, entries - 1);
    }

    pub(super) fn is_filled(&self, node: &[u8], percent: usize) -> bool {
        // What counts is what would be in use with the prefix that the next rebuilding takes.
        let prefix = self.longest_prefix(node, None);
        let used = count(node) * SLOT_BYTES + self.rebuilt_bytes(node, prefix);
        used * 100 >= (self.node_bytes() - SLOTS) * percent
    }

    pub(super) fn middle(&self, node: &[u8]) -> usize {
        let half = self.cell_bytes(node) / 2;
        let mut bytes = 0;
        for place in 0..count(node) {
            let cell = self.cell(node, place);
            bytes += cell.end - cell.suffix + self.length_bytes();
            if bytes >= half {
                return place + 1;
            }
        }
        count(node)
    }

    pub(super) fn nearest_middle(&self, node: &[u8]) -> usize {
        let half = (self.cell_bytes(node) + count(node) * SLOT_BYTES) / 2;
        let mut before = 0;
        for place in 0..count(node) {
            let cell = self.cell(node, place);
            let behind = before + cell.end - cell.suffix + self.length_bytes() + SLOT_BYTES;
            if behind >= half {
                return if half - before < behind - half { place } else { place + 1 };
            }
            before = behind;
        }
        count(node)
    }

    pub(super) fn part_has_room(
        &self,
        node: &[u8],
        mut places: Range<usize>,
        key: &[u8],
        value: usize,
    ) -> bool {
        let present = self.prefix(node).iter().copied();
        let prefix = shared_prefix(present, key.iter().copied());
        let cells =
            places.try_fold(self.new_cell_bytes(key.len() - prefix, value), |all, place| {
                let all = all + SLOT_BYTES + self.whole_cell_bytes(node, place) - prefix;
                (all <= self.node_bytes()).then_some(all)
            });
        cells.is_some_and(|cells| SLOTS + SLOT_BYTES + prefix + cells <= self.node_bytes())
    }

    pub(super) fn used_bytes(&self, node: &[u8]) -> usize {
        SLOTS + count(node) * SLOT_BYTES + self.prefix_bytes(node) + self.cell_bytes(node)
    }

    pub(super) fn is_underfull(&self, node: &[u8]) -> bool {
        self.used_bytes(node) - SLOTS < (self.node_bytes() - SLOTS) / 2
    }
}

/// What stands in a cell as the length of `value`.
fn value_length(value: Stored<'_>) -> usize {
    let mark = if value.is_long { LONG } else { 0 };
    value.bytes.len() | usize::from(mark)
}
