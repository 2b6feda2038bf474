//! Dense nodes: entries whose lengths are all alike, which stand once, one behind the other.
//!
//! ```text
//!  0        8       10      12      14  16
//!  +--------+-------+-------+-------+---+--------+-----------+-----------+------
//!  | header | prefix| suffix| value | 0 | prefix | suffix, v | suffix, v | free
//!  |        | bytes | bytes | bytes |   |        |           |           |
//!  +--------+-------+-------+-------+---+--------+-----------+-----------+------
//! ```
//!
//! An entry of other lengths makes a slotted node of it, if there is room for one; else it belongs
//! to the next node. So a dense node holds whatever a slotted one holds, and six bytes an entry
//! are spared where keys and values could have any length. A value that stands in pages of its own
//! stands in slotted nodes only.
//!
//! This form is for nodes that are written in the order of their keys: it is never joined.

use super::slotted::Slotted;
use super::{
    NodeKey, Shift, Stored, count, read_u16, search_suffixes, set_count, shared_prefix, write_u16,
};
use crate::{OverflowValue, Width, page_kind};

const PREFIX: usize = 8;
const SUFFIX: usize = 10;
const VALUE: usize = 12;
const START: usize = 16;

/// Nodes that are dense where that is possible, else slotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dense(pub(super) Slotted);

/// The lengths that stand at the start of a dense node.
#[derive(Clone, Copy)]
struct Lengths {
    prefix: usize,
    suffix: usize,
    value: usize,
}

impl Lengths {
    #[inline]
    fn of(node: &[u8]) -> Self {
        let at = |place| usize::from(read_u16(node, place));
        Lengths { prefix: at(PREFIX), suffix: at(SUFFIX), value: at(VALUE) }
    }

    fn write(self, node: &mut [u8]) {
        write_u16(node, PREFIX, self.prefix);
        write_u16(node, SUFFIX, self.suffix);
        write_u16(node, VALUE, self.value);
    }

    /// The same keys, of which the first `prefix` bytes stand once.
    const fn with_prefix(self, prefix: usize) -> Self {
        Lengths { prefix, suffix: self.prefix + self.suffix - prefix, ..self }
    }

    #[inline]
    const fn stride(self) -> usize {
        self.suffix + self.value
    }

    /// Where the entry at `place` begins.
    #[inline]
    const fn at(self, place: usize) -> usize {
        START + self.prefix + place * self.stride()
    }
}

/// How an entry finds room in a dense node.
enum Fit {
    /// As it is, with these lengths.
    Dense(Lengths),
    /// As a slotted one, with a prefix of so many bytes.
    Slotted(usize),
}

#[inline]
fn is_dense(node: &[u8]) -> bool {
    node[page_kind::AT] == page_kind::DENSE
}

#[inline]
fn prefix(node: &[u8]) -> &[u8] {
    &node[START..START + Lengths::of(node).prefix]
}

#[inline]
fn suffix(node: &[u8], place: usize) -> &[u8] {
    let lengths = Lengths::of(node);
    &node[lengths.at(place)..][..lengths.suffix]
}

/// What every codec can do.
impl Dense {
    #[inline]
    pub(super) fn node_bytes(&self) -> usize {
        self.0.node_bytes()
    }

    pub(super) fn entry_bytes_most(&self) -> usize {
        self.0.entry_bytes_most()
    }

    /// Of entries of these lengths alone.
    pub(super) fn capacity(&self, key: usize, value: usize) -> usize {
        self.entries_room() / (key + value).max(1)
    }

    /// The most: those in a slotted node.
    pub(super) fn entry_bytes(&self, key: usize, value: usize) -> usize {
        self.0.entry_bytes(key, value)
    }

    pub(super) fn entries_room(&self) -> usize {
        self.0.entries_room()
    }

    pub(super) fn is_kind(node: &[u8]) -> bool {
        is_dense(node) || Slotted::is_kind(node)
    }

    pub(super) fn initialise(&self, node: &mut [u8]) {
        node[page_kind::AT] = page_kind::DENSE;
        node[PREFIX..START].fill(0);
    }

    pub(super) fn validate(&self, node: &[u8]) -> Result<(), &'static str> {
        if node.len() != self.node_bytes() || !is_dense(node) {
            return self.0.validate(node);
        }
        let (lengths, entries) = (Lengths::of(node), count(node));
        let Lengths { prefix, suffix: rest, value } = lengths;
        if prefix.max(rest).max(value) > node.len() || lengths.at(entries) > node.len() {
            return Err("it counts more entries than a node can hold");
        }
        let (keys, values) = self.0.widths();
        let is = |width, bytes| !matches!(width, Width::Fixed(all) if usize::from(all) != bytes);
        if entries > 0 && !(is(keys, prefix + rest) && is(values, value)) {
            return Err("its entries have other lengths than this index's");
        }
        if (1..entries).any(|place| suffix(node, place - 1) >= suffix(node, place)) {
            return Err("its keys are not in ascending order");
        }
        Ok(())
    }

    #[inline]
    pub(super) fn key<'n>(&self, node: &'n [u8], place: usize) -> NodeKey<'n> {
        match is_dense(node) {
            true => NodeKey { prefix: prefix(node), suffix: suffix(node, place) },
            false => self.0.key(node, place),
        }
    }

    #[inline]
    pub(super) fn value<'n>(&self, node: &'n [u8], place: usize) -> Stored<'n> {
        if !is_dense(node) {
            return self.0.value(node, place);
        }
        let lengths = Lengths::of(node);
        Stored::inline(&node[lengths.at(place) + lengths.suffix..][..lengths.value])
    }

    pub(super) fn search(&self, node: &[u8], key: &[u8]) -> Result<usize, usize> {
        if !is_dense(node) {
            return self.0.search(node, key);
        }
        let lengths = Lengths::of(node);
        let suffix = |place| &node[lengths.at(place)..][..lengths.suffix];
        search_suffixes((prefix(node), count(node)), key, suffix)
    }

    pub(super) fn has_room(&self, node: &[u8], key: &[u8], value: usize) -> bool {
        // It may be one that stands in pages of its own.
        let may_be_long = value == OverflowValue::ENCODED_BYTES;
        match is_dense(node) {
            true => self.fit(node, key, (value, may_be_long)).is_some(),
            false => self.0.has_room(node, key, value),
        }
    }

    pub(super) fn insert(
        &self,
        node: &mut [u8],
        place: usize,
        key: &[u8],
        value: Stored<'_>,
        scratch: &mut [u8],
    ) -> bool {
        if is_dense(node) {
            match self.fit(node, key, (value.bytes.len(), value.is_long)) {
                Some(Fit::Dense(lengths)) => {
                    insert(node, place, (key, value), (lengths, scratch));
                    return true;
                }
                Some(Fit::Slotted(prefix)) => self.make_slotted(node, prefix, scratch),
                None => return false,
            }
        }
        self.0.insert(node, place, key, value, scratch)
    }

    /// A dense node has no room for a value of another length.
    pub(super) fn replace(
        &self,
        node: &mut [u8],
        place: usize,
        value: Stored<'_>,
        scratch: &mut [u8],
    ) -> bool {
        if !is_dense(node) {
            return self.0.replace(node, place, value, scratch);
        }
        let lengths = Lengths::of(node);
        let is_alike = value.bytes.len() == lengths.value && !value.is_long;
        if is_alike {
            let at = lengths.at(place) + lengths.suffix;
            node[at..at + lengths.value].copy_from_slice(value.bytes);
        }
        is_alike
    }

    pub(super) fn remove(&self, node: &mut [u8], place: usize) {
        if !is_dense(node) {
            return self.0.remove(node, place);
        }
        let (lengths, entries) = (Lengths::of(node), count(node));
        node.copy_within(lengths.at(place + 1)..lengths.at(entries), lengths.at(place));
        set_count(node, entries - 1);
    }

    pub(super) fn split_off(
        &self,
        node: &mut [u8],
        place: usize,
        fresh: &mut [u8],
        scratch: &mut [u8],
    ) {
        if !is_dense(node) {
            return self.0.split_off(node, place, fresh, scratch);
        }
        let (lengths, entries) = (Lengths::of(node), count(node));
        lengths.write(fresh);
        device::copy(&mut fresh[START..lengths.at(0)], &node[START..lengths.at(0)]);
        let tail = &node[lengths.at(place)..lengths.at(entries)];
        device::copy(&mut fresh[lengths.at(0)..lengths.at(entries - place)], tail);
        set_count(fresh, entries - place);
        set_count(node, place);
    }

    pub(super) fn join(&self, left: &mut [u8], right: &mut [u8], scratch: &mut [u8]) {
        self.0.join(left, right, scratch);
    }

    /// None that is dense is joined.
    pub(super) fn joint_bytes(&self, left: &[u8], right: &[u8]) -> usize {
        match is_dense(left) || is_dense(right) {
            true => usize::MAX,
            false => self.0.joint_bytes(left, right),
        }
    }

    pub(super) fn shift(&self, left: &[u8], right: &[u8]) -> Option<Shift> {
        match is_dense(left) || is_dense(right) {
            true => None,
            false => self.0.shift(left, right),
        }
    }

    pub(super) fn apply_shift(
        &self,
        left: &mut [u8],
        right: &mut [u8],
        shift: Shift,
        scratch: &mut [u8],
    ) {
        self.0.apply_shift(left, right, shift, scratch);
    }

    pub(super) fn middle(&self, node: &[u8]) -> usize {
        if is_dense(node) { count(node) / 2 } else { self.0.middle(node) }
    }

    pub(super) fn is_filled(&self, node: &[u8], percent: usize) -> bool {
        match is_dense(node) {
            true => (self.used_bytes(node) - START) * 100 >= self.entries_room() * percent,
            false => self.0.is_filled(node, percent),
        }
    }

    pub(super) fn is_filled_from(&self, node: &[u8], place: usize, percent: usize) -> bool {
        if !is_dense(node) {
            return self.0.is_filled_from(node, place, percent);
        }
        let used = Lengths::of(node).at(count(node).saturating_sub(place)) - START;
        used * 100 >= self.entries_room() * percent
    }

    pub(super) fn is_underfull(&self, node: &[u8]) -> bool {
        self.used_bytes(node) - START < self.entries_room() / 2
    }

    pub(super) fn used_bytes(&self, node: &[u8]) -> usize {
        match is_dense(node) {
            true => Lengths::of(node).at(count(node)),
            false => self.0.used_bytes(node),
        }
    }

    /// How many bytes from the node's start on must be kept.
    pub(super) fn kept_bytes(&self, node: &[u8]) -> usize {
        if is_dense(node) { self.used_bytes(node) } else { self.node_bytes() }
    }
}

/// Dense nodes.
impl Dense {
    /// How an entry finds room, if it does.
    fn fit(&self, node: &[u8], key: &[u8], (value, is_long): (usize, bool)) -> Option<Fit> {
        let entries = count(node);
        let lengths = match entries {
            0 => Lengths { prefix: key.len(), suffix: 0, value },
            _ => Lengths::of(node),
        };
        let prefix = match entries {
            0 => key.len(),
            _ => shared_prefix(prefix(node).iter().copied(), key.iter().copied()),
        };
        let is_alike = key.len() == lengths.prefix + lengths.suffix && value == lengths.value;
        if is_alike && !is_long {
            let lengths = lengths.with_prefix(prefix);
            return (lengths.at(entries + 1) <= node.len()).then_some(Fit::Dense(lengths));
        }
        let each = self.entry_bytes(lengths.prefix + lengths.suffix - prefix, lengths.value);
        let fresh = self.entry_bytes(key.len() - prefix, value);
        let bytes = START + prefix + entries * each + fresh;
        (bytes <= node.len()).then_some(Fit::Slotted(prefix))
    }

    /// Makes it a slotted node whose keys share `prefix` bytes; it has room.
    fn make_slotted(&self, node: &mut [u8], shared: usize, scratch: &mut [u8]) {
        device::copy(scratch, node);
        let old: &[u8] = scratch;
        self.0.initialise(node);
        set_count(node, 0);
        if count(old) == 0 {
            return;
        }
        let whole = prefix(old);
        self.0.set_prefix(node, shared, Some(whole), old);
        for place in 0..count(old) {
            let suffix = (&whole[shared..], suffix(old, place));
            self.0.place_cell(node, place, suffix, self.value(old, place));
        }
    }
}

/// Inserts an entry, which has room with these lengths.
fn insert(
    node: &mut [u8],
    place: usize,
    (key, value): (&[u8], Stored<'_>),
    (lengths, scratch): (Lengths, &mut [u8]),
) {
    let entries = count(node);
    if entries == 0 {
        node[START..START + lengths.prefix].copy_from_slice(&key[..lengths.prefix]);
    } else if lengths.prefix != Lengths::of(node).prefix {
        shorten_prefix(node, lengths, scratch);
    }
    lengths.write(node);
    let (at, end) = (lengths.at(place), lengths.at(entries));
    node.copy_within(at..end, at + lengths.stride());
    node[at..at + lengths.suffix].copy_from_slice(&key[lengths.prefix..]);
    node[at + lengths.suffix..at + lengths.stride()].copy_from_slice(value.bytes);
    set_count(node, entries + 1);
}

/// Writes the entries with `lengths`, whose prefix is shorter.
fn shorten_prefix(node: &mut [u8], lengths: Lengths, scratch: &mut [u8]) {
    device::copy(scratch, node);
    let old = Lengths::of(scratch);
    let moved = &scratch[START + lengths.prefix..START + old.prefix];
    for place in 0..count(scratch) {
        let to = lengths.at(place);
        node[to..to + moved.len()].copy_from_slice(moved);
        let from = &scratch[old.at(place)..old.at(place + 1)];
        node[to + moved.len()..lengths.at(place + 1)].copy_from_slice(from);
    }
}
