//! Entries in the order of their keys, in nodes in memory: updates that wait for their leaves.
//!
//! A node that is full first gives entries to a neighbour, then is split, so nodes are nearly full.
//! Several lists may stand in nodes of one length and share what is left of them.
//!
//! Invariants: no node is empty; all nodes together are never more than were allowed; `heads` has
//! what the first key of each node begins with, so a search reads one node, and seldom two.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use index::Direction;
use store::node::{self, Codec, NodeKey, Shift, Stored};
use store::{EntryShape, Width};

/// Bytes of memory of a node beside its own: what points to it from each list, and its head in two.
pub(crate) const NODE_BYTES_BESIDE: usize = 3 * size_of::<Box<[u8]>>() + 2 * size_of::<Head>();

/// A neighbour takes entries over if the two have so much of a node free, and two nodes are joined
/// if so much of the one is free.
const FREE_PART: usize = 32;
const JOINT_FREE_PART: usize = 8;

/// How often room is made for one entry.
const ATTEMPTS_MOST: usize = 8;

/// How far from a full node room is looked for, and how much of a node that is at least.
const DISTANCE_MOST: usize = 16;
const ROOM_PART: usize = 8;

/// The codec of updates of entries of `shape`, whose values have a byte in front.
pub(crate) fn update_codec(shape: EntryShape, node_bytes: u32) -> Option<Codec> {
    let value = match shape.value {
        Width::Fixed(bytes) => Width::Fixed(bytes.checked_add(1)?),
        Width::Variable => Width::Variable,
    };
    Codec::new(node_bytes, shape.key, value)
}

/// Makes `into` the value of an update: `kind` in front, and a delete's padded to the width.
pub(crate) fn set_update(into: &mut Vec<u8>, kind: u8, value: &[u8], width: Width) {
    into.clear();
    into.push(kind);
    into.extend_from_slice(value);
    if let Width::Fixed(bytes) = width {
        into.resize(usize::from(bytes) + 1, 0);
    }
}

/// Nodes that are not in use. They take memory once they are needed first.
#[derive(Debug)]
pub(crate) struct Spare {
    nodes: Vec<Box<[u8]>>,
    /// Nodes that were never needed.
    unused: usize,
    /// As long as a node.
    pub(crate) scratch: Box<[u8]>,
}

impl Spare {
    pub(crate) fn new(nodes: usize, bytes: usize) -> Self {
        let scratch = vec![0; if nodes > 0 { bytes } else { 0 }].into_boxed_slice();
        Spare { nodes: Vec::with_capacity(nodes), unused: nodes, scratch }
    }

    pub(crate) fn len(&self) -> usize {
        self.unused + self.nodes.len()
    }

    fn take(&mut self) -> Option<Box<[u8]>> {
        let node = self.nodes.pop();
        node.or_else(|| {
            self.unused = self.unused.checked_sub(1)?;
            Some(vec![0; self.scratch.len()].into_boxed_slice())
        })
    }
}

/// The first bytes of a key, in the order of keys.
type Head = u64;

fn head(mut bytes: impl Iterator<Item = u8>) -> Head {
    Head::from_be_bytes([0; size_of::<Head>()].map(|none| bytes.next().unwrap_or(none)))
}

/// Where an entry stands: its node, and the place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    node: usize,
    place: usize,
}

/// Sorted entries.
#[derive(Debug)]
pub(crate) struct Sorted {
    codec: Codec,
    /// Its entries have one length.
    is_packed: bool,
    nodes: Vec<Box<[u8]>>,
    heads: Vec<Head>,
    /// Nodes that it may have.
    pub(crate) nodes_most: usize,
    len: usize,
}

impl Sorted {
    pub(crate) fn new((codec, is_packed): (Codec, bool), nodes_most: usize) -> Self {
        let nodes = Vec::with_capacity(nodes_most);
        let heads = Vec::with_capacity(nodes_most);
        Sorted { codec, is_packed, nodes, heads, nodes_most, len: 0 }
    }

    pub(crate) const fn codec(&self) -> &Codec {
        &self.codec
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The nodes, in the order of their keys.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &[u8]> {
        self.nodes.iter().map(|node| &**node)
    }

    pub(crate) fn clear(&mut self, spare: &mut Spare) {
        spare.nodes.append(&mut self.nodes);
        self.heads.clear();
        self.len = 0;
    }

    /// The first entry of a node is another.
    fn note_head(&mut self, node: usize) {
        if let (Some(bytes), Some(place)) = (self.nodes.get(node), self.heads.get_mut(node))
            && node::count(bytes) > 0
        {
            *place = head(self.codec.key(bytes, 0).bytes());
        }
    }

    /// Takes a node out whose entries are gone.
    fn take_node(&mut self, spare: &mut Spare, node: usize) {
        spare.nodes.push(self.nodes.remove(node));
        self.heads.remove(node);
    }

    /// Appends a node behind all others, if one is spare: `fill` gives its bytes.
    pub(crate) fn append_node<E>(
        &mut self,
        spare: &mut Spare,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some(mut node) = spare.take() else {
            return Ok(false);
        };
        let filled = fill(&mut node);
        if filled.is_ok() && node::count(&node) > 0 {
            self.len += node::count(&node);
            self.nodes.push(node);
            self.heads.push(0);
            self.note_head(self.nodes.len() - 1);
        } else {
            spare.nodes.push(node);
        }
        filled.map(|()| true)
    }

    /// Where `key` stands, or belongs.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> Result<Place, Place> {
        let is_before = |node: &[u8]| self.codec.key(node, 0).compare(key) != Ordering::Greater;
        let first = head(key.iter().copied());
        let low = self.heads.partition_point(|head| *head < first);
        let high = low + self.heads[low..].partition_point(|head| *head == first);
        let same = self.nodes.get(low..high).unwrap_or_default();
        let node = (low + same.partition_point(|node| is_before(node))).saturating_sub(1);
        let found = self.nodes.get(node).map_or(Err(0), |bytes| self.codec.search(bytes, key));
        match found {
            Ok(place) => Ok(Place { node, place }),
            Err(place) => Err(Place { node, place }),
        }
    }

    /// The last entry whose key is not above `key`.
    pub(crate) fn at_or_before(&self, key: &[u8]) -> Option<Place> {
        self.search(key).map_or_else(|place| self.before(place), Some)
    }

    /// The entry at `place`: its key and its value.
    #[inline]
    pub(crate) fn at(&self, place: Place) -> Option<(NodeKey<'_>, &[u8])> {
        let node = self.nodes.get(place.node).filter(|node| place.place < node::count(node))?;
        Some((self.codec.key(node, place.place), self.codec.value(node, place.place).bytes()))
    }

    /// Copies the key at `place` into `into`; false if there is none.
    pub(crate) fn copy_key(&self, place: Place, into: &mut Vec<u8>) -> bool {
        self.at(place).map(|(key, _)| key.copy_to(into)).is_some()
    }

    /// The place itself if an entry is there, or else that of the next entry.
    pub(crate) fn here_or_behind(&self, place: Place) -> Option<Place> {
        let count = self.nodes.get(place.node).map(|node| node::count(node))?;
        if place.place < count {
            return Some(place);
        }
        (place.node + 1 < self.nodes.len()).then_some(Place { node: place.node + 1, place: 0 })
    }

    pub(crate) fn first(&self) -> Option<Place> {
        (!self.nodes.is_empty()).then_some(Place { node: 0, place: 0 })
    }

    pub(crate) fn last(&self) -> Option<Place> {
        let node = self.nodes.len().checked_sub(1)?;
        Some(Place { node, place: node::count(self.nodes.get(node)?).checked_sub(1)? })
    }

    pub(crate) fn next(&self, place: Place) -> Option<Place> {
        self.here_or_behind(Place { place: place.place + 1, ..place })
    }

    pub(crate) fn before(&self, place: Place) -> Option<Place> {
        if place.place > 0 {
            return Some(Place { place: place.place - 1, ..place });
        }
        let node = place.node.checked_sub(1)?;
        Some(Place { node, place: node::count(self.nodes.get(node)?).checked_sub(1)? })
    }

    /// The first entry of those that begin at `start` and go in this direction.
    pub(crate) fn start(&self, start: Bound<&[u8]>, direction: Direction) -> Option<Place> {
        let found = match start {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(self.search(key)),
        };
        let is_included = matches!(start, Bound::Included(_));
        match (direction, found) {
            (Direction::Ascending, None) => self.first(),
            (Direction::Ascending, Some(Ok(place))) if !is_included => self.next(place),
            (Direction::Ascending, Some(Ok(place) | Err(place))) => self.here_or_behind(place),
            (Direction::Descending, None) => self.last(),
            (Direction::Descending, Some(Ok(place))) if is_included => Some(place),
            (Direction::Descending, Some(Ok(place) | Err(place))) => self.before(place),
        }
    }

    pub(crate) fn step(&self, place: Place, direction: Direction) -> Option<Place> {
        match direction {
            Direction::Ascending => self.next(place),
            Direction::Descending => self.before(place),
        }
    }

    /// Inserts or replaces an entry; false, with nothing lost, if there is no room.
    pub(crate) fn insert(&mut self, spare: &mut Spare, key: &[u8], value: &[u8]) -> bool {
        if self.nodes.is_empty() && !self.add_node(spare, 0) {
            return false;
        }
        let value = Stored::inline(value);
        // Where lengths vary, entries might go to and fro.
        for _ in 0..ATTEMPTS_MOST {
            let found = self.search(key);
            let (Ok(Place { node, place }) | Err(Place { node, place })) = found;
            let bytes = &mut self.nodes[node];
            let is_done = match found {
                Ok(_) => self.codec.replace(bytes, place, value, &mut spare.scratch),
                Err(_) => self.codec.insert(bytes, place, key, value, &mut spare.scratch),
            };
            if is_done {
                self.len += usize::from(found.is_err());
                if place == 0 {
                    self.note_head(node);
                }
                return true;
            }
            if !self.make_room(spare, node) {
                break;
            }
        }
        if self.len == 0 {
            // An entry that fits no node left the first one empty.
            spare.nodes.append(&mut self.nodes);
            self.heads.clear();
        }
        false
    }

    /// Gives entries of a full node to others.
    fn make_room(&mut self, spare: &mut Spare, node: usize) -> bool {
        let right = (node + 1 < self.nodes.len()).then_some(node);
        [right, node.checked_sub(1)].into_iter().flatten().any(|left| self.even_out(spare, left))
            || self.split(spare, node)
            || self.pass_on(spare, node)
    }

    /// Passes entries on, from the full `node` to the nearest that has room, node by node.
    fn pass_on(&mut self, spare: &mut Spare, node: usize) -> bool {
        let bytes = self.codec.node_bytes();
        let used =
            |at: &usize| self.nodes.get(*at).map_or(bytes, |node| self.codec.used_bytes(node));
        let before = used(&node);
        let mut far = (1..DISTANCE_MOST).flat_map(|far| [Some(node + far), node.checked_sub(far)]);
        let found = far.find_map(|at| at.filter(|at| used(at) + bytes / ROOM_PART <= bytes));
        let Some(room) = found else {
            return false;
        };
        let mut at = room;
        while at != node {
            let left = if at > node { at - 1 } else { at };
            if self.is_packed {
                self.pass(spare, left, at > node);
            } else {
                self.shift(spare, left);
            }
            at = if at > node { at - 1 } else { at + 1 };
        }
        self.codec.used_bytes(&self.nodes[node]) < before
    }

    /// Passes so many entries that there is room for from a node to its right neighbour, or back.
    fn pass(&mut self, spare: &mut Spare, left: usize, is_right: bool) {
        let Ok([one, other]) = self.nodes.get_disjoint_mut([left, left + 1]) else {
            return;
        };
        let (mut from, mut into) = (node::count(one), node::count(other));
        if !is_right {
            core::mem::swap(&mut from, &mut into);
        }
        let capacity = self.codec.capacity(0, 0);
        let moved = capacity / (2 * ROOM_PART);
        if moved == 0 || moved >= from || into + moved > capacity {
            return;
        }
        let shift = if is_right { Shift::Right(from - moved) } else { Shift::Left(moved) };
        self.codec.apply_shift(one, other, shift, &mut spare.scratch);
        self.note_head(left + 1);
    }

    fn shift(&mut self, spare: &mut Spare, left: usize) -> bool {
        let Ok([one, other]) = self.nodes.get_disjoint_mut([left, left + 1]) else {
            return false;
        };
        let shift = self.codec.shift(one, other);
        if let Some(shift) = shift {
            self.codec.apply_shift(one, other, shift, &mut spare.scratch);
            self.note_head(left + 1);
        }
        shift.is_some()
    }

    /// Evens out a node and its right neighbour, if that is worth it.
    fn even_out(&mut self, spare: &mut Spare, left: usize) -> bool {
        let bytes = self.codec.node_bytes();
        let Some(pair) = self.nodes.get(left..left + 2) else {
            return false;
        };
        let used: usize = pair.iter().map(|node| self.codec.used_bytes(node)).sum();
        used + bytes / FREE_PART <= 2 * bytes && self.shift(spare, left)
    }

    /// Splits a node; false if there is no room for one more.
    fn split(&mut self, spare: &mut Spare, node: usize) -> bool {
        if node::count(&self.nodes[node]) < 2 || !self.add_node(spare, node + 1) {
            return false;
        }
        let (left, right) = self.nodes.split_at_mut(node + 1);
        let (left, right) = (&mut left[node], &mut right[0]);
        self.codec.split_off(left, self.codec.middle(left), right, &mut spare.scratch);
        self.note_head(node + 1);
        true
    }

    fn add_node(&mut self, spare: &mut Spare, node: usize) -> bool {
        if self.nodes.len() >= self.nodes_most {
            return false;
        }
        let Some(mut fresh) = spare.take() else {
            return false;
        };
        fresh.fill(0);
        self.codec.initialise(&mut fresh, 0);
        self.nodes.insert(node, fresh);
        self.heads.insert(node, 0);
        true
    }

    /// Overwrites the value at `place` by one of the same length.
    pub(crate) fn set_value(&mut self, spare: &mut Spare, place: Place, value: &[u8]) {
        if let Some(node) = self.nodes.get_mut(place.node) {
            let (value, scratch) = (Stored::inline(value), &mut spare.scratch);
            let is_done = self.codec.replace(node, place.place, value, scratch);
            debug_assert!(is_done, "a value of the same length has room");
        }
    }

    pub(crate) fn remove(&mut self, spare: &mut Spare, place: Place) {
        let Some(node) = self.nodes.get_mut(place.node) else {
            return;
        };
        self.codec.remove(node, place.place);
        self.len -= 1;
        if node::count(node) == 0 {
            return self.take_node(spare, place.node);
        }
        let is_small = self.codec.used_bytes(node) < self.codec.node_bytes() / 2;
        if place.place == 0 {
            self.note_head(place.node);
        }
        if is_small {
            self.join(spare, place.node);
        }
    }

    /// Joins a node with a neighbour, if both fit one and leave something free.
    fn join(&mut self, spare: &mut Spare, node: usize) {
        for left in [node.checked_sub(1), Some(node)].into_iter().flatten() {
            let Ok([one, other]) = self.nodes.get_disjoint_mut([left, left + 1]) else {
                continue;
            };
            let bytes = self.codec.node_bytes();
            if self.codec.joint_bytes(one, other) <= bytes - bytes / JOINT_FREE_PART {
                self.codec.join(one, other, &mut spare.scratch);
                return self.take_node(spare, left + 1);
            }
        }
    }

    /// Gives each entry the value that `change` makes of its own, and takes out entries whose value
    /// is that of the entry before.
    pub(crate) fn unite(&mut self, spare: &mut Spare, mut change: impl FnMut([u8; 2]) -> [u8; 2]) {
        let (mut last, mut node) = (None, 0);
        while let Some(bytes) = self.nodes.get_mut(node) {
            let mut place = 0;
            while place < node::count(bytes) {
                let value = self.codec.value(bytes, place).bytes();
                let value = value.first_chunk().copied().unwrap_or_default();
                let changed = change(value);
                if last == Some(changed) {
                    self.codec.remove(bytes, place);
                    self.len -= 1;
                    continue;
                }
                if changed != value {
                    let value = Stored::inline(&changed);
                    let is_done = self.codec.replace(bytes, place, value, &mut spare.scratch);
                    debug_assert!(is_done, "a value of the same length has room");
                }
                last = Some(changed);
                place += 1;
            }
            if node::count(bytes) == 0 {
                self.take_node(spare, node);
            } else {
                self.note_head(node);
                node += 1;
            }
        }
    }
}
