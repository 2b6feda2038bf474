//! Nodes: one codec for a sorted run of entries in a page.
//!
//! Every node begins with eight bytes, so that a page of 2 KiB holds 170 entries of 12 bytes:
//!
//! ```text
//!  0        4       6       7      8
//!  +--------+-------+-------+------+----------------------------------+
//!  | check- | count | level | kind | entries, packed or with slots    |
//!  | sum    | u16   | u8    | u8   |                                  |
//!  +--------+-------+-------+------+----------------------------------+
//! ```
//!
//! Numbers are little-endian. The checksum is the page file's; a codec never touches it. Level 0
//! is a leaf. Where key and value have fixed lengths, entries are packed one behind the other
//! (`packed.rs`); otherwise the node has slots, and stores the prefix that its keys share once
//! (`slotted`). Nodes that are written once need no slots where lengths are alike (`dense.rs`).
//!
//! Invariant: trees see keys and values as slices and never know which form they are in.
//!
//! A codec may be handed any bytes: [`Codec::validate`] must accept a page before anything else
//! is called on it, and after that no call panics.

mod dense;
mod packed;
mod slotted;

use core::cmp::Ordering;
use core::ops::Range;

use crate::{OverflowValue, Width};
use dense::Dense;
use packed::Packed;
use slotted::Slotted;

/// Bytes at the start of every node: checksum, count, level, kind.
pub const HEADER_BYTES: usize = 8;

/// The smallest node, in bytes.
pub const NODE_BYTES_LEAST: u32 = 128;

/// The smallest node that is a part of a page, in bytes.
const PART_BYTES_LEAST: u32 = 40;

/// The fewest entries of fixed length that a node must hold.
const ENTRIES_LEAST: usize = 4;

/// The largest node, in bytes: offsets in it are 16 bits.
pub const NODE_BYTES_MOST: u32 = 32_768;

const COUNT: usize = 4;
const LEVEL: usize = 6;

/// A key in a node: what all keys of the node share, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeKey<'n> {
    /// The part that all keys of the node share; empty in packed nodes.
    pub prefix: &'n [u8],
    /// The rest of it.
    pub suffix: &'n [u8],
}

impl NodeKey<'_> {
    /// The key's length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }

    /// True if the key has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares the key with `other` byte by byte.
    #[must_use]
    pub fn compare(&self, other: &[u8]) -> Ordering {
        let shared = self.prefix.len().min(other.len());
        match self.prefix[..shared].cmp(&other[..shared]) {
            Ordering::Equal if shared < self.prefix.len() => Ordering::Greater,
            Ordering::Equal => self.suffix.cmp(&other[shared..]),
            unequal => unequal,
        }
    }

    /// Replaces the contents of `into` with the key.
    pub fn copy_to(&self, into: &mut alloc::vec::Vec<u8>) {
        into.clear();
        into.extend_from_slice(self.prefix);
        into.extend_from_slice(self.suffix);
    }

    /// The bytes of the key.
    pub fn bytes(self) -> impl Iterator<Item = u8> {
        self.prefix.iter().chain(self.suffix).copied()
    }
}

/// How many bytes `one` and `other` begin with alike.
fn shared_prefix(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(left, right)| left == right).count()
}

/// Finds `key` among `count` keys that begin with `prefix`, the rest of each being `suffix` of its
/// place; else the place where it belongs.
#[inline]
fn search_suffixes<'n>(
    (prefix, count): (&[u8], usize),
    key: &[u8],
    suffix: impl Fn(usize) -> &'n [u8],
) -> Result<usize, usize> {
    let shared = prefix.len().min(key.len());
    let (start, rest) = key.split_at(shared);
    match prefix[..shared].cmp(start) {
        Ordering::Less => return Err(count),
        Ordering::Equal if shared == prefix.len() => {}
        Ordering::Equal | Ordering::Greater => return Err(0),
    }
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = usize::midpoint(low, high);
        match suffix(middle).cmp(rest) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Ok(middle),
        }
    }
    Err(low)
}

/// A value as it stands in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'n> {
    bytes: &'n [u8],
    is_long: bool,
}

impl<'n> Stored<'n> {
    /// A value that stands in the node itself.
    #[must_use]
    #[inline]
    pub const fn inline(bytes: &'n [u8]) -> Self {
        Stored { bytes, is_long: false }
    }

    /// A value that stands in pages of its own, given by the bytes of its [`OverflowValue`]. Only
    /// nodes with values of variable length hold such values.
    #[must_use]
    #[inline]
    pub const fn long(bytes: &'n [u8; OverflowValue::ENCODED_BYTES]) -> Self {
        Stored { bytes, is_long: true }
    }

    /// The bytes in the node: the value, or the bytes of its [`OverflowValue`].
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> &'n [u8] {
        self.bytes
    }

    /// Where the value stands, if it stands in pages of its own.
    #[must_use]
    #[inline]
    pub fn as_long(&self) -> Option<OverflowValue> {
        let bytes = self.bytes.first_chunk().filter(|_| self.is_long)?;
        Some(OverflowValue::from_bytes(*bytes))
    }
}

/// Entries that go from one node to its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The entries of the left node from this place on go to the right one.
    Right(usize),
    /// This many entries of the right node go to the left one.
    Left(usize),
}

/// Reads and writes nodes of one size and one shape of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Packed(Packed),
    Slotted(Slotted),
    Dense(Dense),
}

/// Calls the same method on whichever form the codec has.
macro_rules! either {
    ($codec:expr, $form:ident => $call:expr) => {
        match &$codec.form {
            Form::Packed($form) => $call,
            Form::Slotted($form) => $call,
            Form::Dense($form) => $call,
        }
    };
}

impl Codec {
    /// A codec for nodes of `bytes` bytes; `None` if such a node could not hold four entries.
    #[must_use]
    pub fn new(bytes: u32, key: Width, value: Width) -> Option<Self> {
        if !(NODE_BYTES_LEAST..=NODE_BYTES_MOST).contains(&bytes) {
            return None;
        }
        let codec = Codec::new_part(bytes, key, value)?;
        match codec.form {
            Form::Packed(packed) if packed.capacity(0, 0) < ENTRIES_LEAST => None,
            _ => Some(codec),
        }
    }

    /// A codec for nodes of `bytes` bytes that are only a part of a page, and so may be smaller
    /// than others where key and value have fixed lengths; `None` if such a node could not hold
    /// three entries.
    #[must_use]
    #[inline]
    pub fn new_part(bytes: u32, key: Width, value: Width) -> Option<Self> {
        if !(PART_BYTES_LEAST..=NODE_BYTES_MOST).contains(&bytes) {
            return None;
        }
        let form = match (key, value) {
            (Width::Fixed(key), Width::Fixed(value)) => {
                let packed = Packed::new(bytes as usize, key as usize, value as usize)?;
                Form::Packed(packed)
            }
            _ if bytes < NODE_BYTES_LEAST => return None,
            _ => Form::Slotted(Slotted::new(bytes as usize, key, value)?),
        };
        Some(Codec { form })
    }

    /// The same, but what keys share stands with each of them when a node is rebuilt. So an entry
    /// that comes takes its own bytes, and no more: it never lengthens the others.
    #[must_use]
    #[inline]
    pub const fn without_prefixes(self) -> Self {
        match self.form {
            Form::Slotted(form) => Codec { form: Form::Slotted(form.without_prefixes()) },
            Form::Packed(_) | Form::Dense(_) => self,
        }
    }

    /// The same, for nodes that are written in the order of their keys and are never joined: where
    /// the lengths in a node are all alike, they stand once, and there are no slots.
    #[must_use]
    pub const fn dense(self) -> Self {
        match self.form {
            Form::Slotted(form) => Codec { form: Form::Dense(Dense(form)) },
            Form::Packed(_) | Form::Dense(_) => self,
        }
    }

    /// The most bytes that a key and its value may have together in the node.
    #[must_use]
    pub fn entry_bytes_most(&self) -> usize {
        either!(self, form => form.entry_bytes_most())
    }

    /// Entries with `key` and `value` bytes that a node holds for certain.
    #[must_use]
    pub fn capacity(&self, key: usize, value: usize) -> usize {
        either!(self, form => form.capacity(key, value))
    }

    /// Bytes that an entry with `key` and `value` bytes takes in a node, of those for entries; no
    /// more where keys have a prefix in common, which then stands once.
    #[must_use]
    pub fn entry_bytes(&self, key: usize, value: usize) -> usize {
        either!(self, form => form.entry_bytes(key, value))
    }

    /// Bytes of a node for entries.
    #[must_use]
    pub fn entries_room(&self) -> usize {
        either!(self, form => form.entries_room())
    }

    /// Refuses a page that is not a well-formed node of this codec.
    ///
    /// # Errors
    /// What is wrong.
    pub fn validate(&self, node: &[u8]) -> core::result::Result<(), &'static str> {
        either!(self, form => form.validate(node))
    }

    /// True if a well-formed page is a node of this codec's kind.
    #[must_use]
    #[inline]
    pub fn is_kind(&self, page: &[u8]) -> bool {
        match &self.form {
            Form::Packed(_) => Packed::is_kind(page),
            Form::Slotted(_) => Slotted::is_kind(page),
            Form::Dense(_) => Dense::is_kind(page),
        }
    }

    /// Makes `node` an empty node at `level`.
    pub fn initialise(&self, node: &mut [u8], level: u8) {
        node[COUNT..LEVEL].fill(0);
        node[LEVEL] = level;
        either!(self, form => form.initialise(node));
    }

    /// The key at `place`.
    #[must_use]
    #[inline]
    pub fn key<'n>(&self, node: &'n [u8], place: usize) -> NodeKey<'n> {
        either!(self, form => form.key(node, place))
    }

    /// The value at `place`.
    #[must_use]
    #[inline]
    pub fn value<'n>(&self, node: &'n [u8], place: usize) -> Stored<'n> {
        either!(self, form => form.value(node, place))
    }

    /// Finds `key`: `Ok` with its place, or `Err` with the place where it belongs.
    ///
    /// # Errors
    /// The key is absent; the place where it belongs.
    #[inline]
    pub fn search(&self, node: &[u8], key: &[u8]) -> core::result::Result<usize, usize> {
        either!(self, form => form.search(node, key))
    }

    /// Inserts an entry at `place`. Returns false, and changes nothing, if there is no room.
    /// `scratch` is as long as a node.
    #[must_use]
    pub fn insert(
        &self,
        node: &mut [u8],
        place: usize,
        key: &[u8],
        value: Stored<'_>,
        scratch: &mut [u8],
    ) -> bool {
        either!(self, form => form.insert(node, place, key, value, scratch))
    }

    /// Appends the entries at `places` of `from`, a node of `other`, to `node`, whose keys must all
    /// be lower. Returns false, and changes nothing, if there is no room or if lengths vary or
    /// differ.
    #[must_use]
    pub fn append(
        &self,
        node: &mut [u8],
        (other, from): (&Codec, &[u8]),
        places: core::ops::Range<usize>,
    ) -> bool {
        match (&self.form, &other.form) {
            (Form::Packed(form), Form::Packed(other)) => form.append(node, (other, from), places),
            _ => false,
        }
    }

    /// Replaces the value at `place`. Returns false, and changes nothing, if there is no room.
    #[must_use]
    pub fn replace(
        &self,
        node: &mut [u8],
        place: usize,
        value: Stored<'_>,
        scratch: &mut [u8],
    ) -> bool {
        either!(self, form => form.replace(node, place, value, scratch))
    }

    /// Removes the entry at `place`.
    pub fn remove(&self, node: &mut [u8], place: usize) {
        either!(self, form => form.remove(node, place));
    }

    /// Moves the entries from `place` on to the empty node `fresh`.
    pub fn split_off(&self, node: &mut [u8], place: usize, fresh: &mut [u8], scratch: &mut [u8]) {
        either!(self, form => form.split_off(node, place, fresh, scratch));
    }

    /// Moves all entries of `right` behind those of `left`; [`Codec::joint_bytes`] must have said
    /// that they fit.
    pub fn join(&self, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]) {
        either!(self, form => form.join(left, right, scratch));
    }

    /// What to move between two neighbours that do not fit one node, so that both use about the
    /// same; `None` if there is nothing to move, or if it would not fit.
    #[must_use]
    pub fn shift(&self, left: &[u8], right: &[u8]) -> Option<Shift> {
        either!(self, form => form.shift(left, right))
    }

    /// Moves what [`Codec::shift`] said.
    pub fn apply_shift(&self, left: &mut [u8], right: &mut [u8], shift: Shift, scratch: &mut [u8]) {
        either!(self, form => form.apply_shift(left, right, shift, scratch));
    }

    /// True if the node uses at least `percent` percent of its room for entries.
    #[must_use]
    pub fn is_filled(&self, node: &[u8], percent: u8) -> bool {
        either!(self, form => form.is_filled(node, usize::from(percent)))
    }

    /// True if the entries from `place` on would use at least `percent` percent of that room in a
    /// node of their own.
    #[must_use]
    pub fn is_filled_from(&self, node: &[u8], place: usize, percent: u8) -> bool {
        either!(self, form => form.is_filled_from(node, place, usize::from(percent)))
    }

    /// The place at which splitting leaves half of the bytes on each side, with at least one
    /// entry on each. The node has two entries or more.
    #[must_use]
    pub fn middle(&self, node: &[u8]) -> usize {
        either!(self, form => form.middle(node)).clamp(1, count(node).max(2) - 1)
    }

    /// The place at which splitting leaves five eighths of a node or less on each side: as
    /// [`Codec::middle`], and before a long entry there if that is nearer to half.
    #[must_use]
    pub fn nearest_middle(&self, node: &[u8]) -> usize {
        let place = match &self.form {
            Form::Slotted(form) => form.nearest_middle(node),
            _ => self.middle(node),
        };
        place.clamp(1, count(node).max(2) - 1)
    }

    /// True if a put of `key`, with a value that takes `value` bytes, certainly finds room in a
    /// node of its own beside the entries at `places`.
    #[must_use]
    pub fn part_has_room(
        &self,
        node: &[u8],
        places: Range<usize>,
        key: &[u8],
        value: usize,
    ) -> bool {
        match &self.form {
            Form::Slotted(form) => form.part_has_room(node, places, key, value),
            // What keys share stands with each.
            Form::Packed(_) | Form::Dense(_) => places.len() < count(node),
        }
    }

    /// Bytes of the node in use, its header included.
    #[must_use]
    #[inline]
    pub fn used_bytes(&self, node: &[u8]) -> usize {
        either!(self, form => form.used_bytes(node))
    }

    /// How many bytes from the node's start on must be kept. The bytes behind them mean nothing.
    #[must_use]
    #[inline]
    pub fn kept_bytes(&self, node: &[u8]) -> usize {
        match &self.form {
            Form::Packed(form) => form.used_bytes(node),
            Form::Slotted(form) => form.node_bytes(),
            Form::Dense(form) => form.kept_bytes(node),
        }
    }

    /// Bytes that the entries of both nodes would use in one node.
    #[must_use]
    pub fn joint_bytes(&self, left: &[u8], right: &[u8]) -> usize {
        either!(self, form => form.joint_bytes(left, right))
    }

    /// True if the node uses less than half of its room for entries.
    #[must_use]
    pub fn is_underfull(&self, node: &[u8]) -> bool {
        either!(self, form => form.is_underfull(node))
    }

    /// True if a put of `key`, with a value that takes `value` bytes in the node, certainly finds
    /// room.
    #[must_use]
    pub fn has_room(&self, node: &[u8], key: &[u8], value: usize) -> bool {
        either!(self, form => form.has_room(node, key, value))
    }

    /// Bytes in a node.
    #[must_use]
    pub fn node_bytes(&self) -> usize {
        either!(self, form => form.node_bytes())
    }
}

/// Entries in a node.
#[must_use]
#[inline]
pub fn count(node: &[u8]) -> usize {
    usize::from(read_u16(node, COUNT))
}

/// The node's level; 0 is a leaf.
#[must_use]
#[inline]
pub fn level(node: &[u8]) -> u8 {
    node[LEVEL]
}

#[inline]
fn set_count(node: &mut [u8], count: usize) {
    write_u16(node, COUNT, count);
}

#[inline]
fn read_u16(node: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([node[at], node[at + 1]])
}

/// Writes `number`, which a node's size keeps below 65,536.
#[inline]
fn write_u16(node: &mut [u8], at: usize, number: usize) {
    debug_assert!(number <= usize::from(u16::MAX), "{number} does not fit a node");
    node[at..at + 2].copy_from_slice(&(number as u16).to_le_bytes());
}

#[cfg(test)]
mod tests;
