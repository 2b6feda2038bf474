//! Updates that wait in memory for their leaves, in the order of their keys.
//!
//! A random update reads a leaf and writes it, with its image: hundreds of times its bytes. Updates
//! that wait until several belong to one leaf share that. The journal has them, and every
//! checkpoint after which it begins anew comes behind all of them.
//!
//! They stand in nodes in memory, whose values have a byte in front: 1 of a put, 0 of a delete.
//! What makes way goes in the order of the keys, from where it stopped, so the leaf of the last one
//! is often that of the next.
//!
//! Invariants: no node is empty; a key stands in one of them only; all nodes together are never
//! more than were allowed.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use store::node::{self, Codec, NodeKey, Stored};
use store::{EntryShape, Width};

use crate::btree::Overlay;
use index::Direction;

/// The first byte of the value of a put; that of a delete is 0.
const PUT: u8 = 1;

/// Bytes of memory of a node beside its own.
const NODE_BYTES_BESIDE: usize = size_of::<Box<[u8]>>();

/// Nodes below which waiting gains nothing.
const NODES_LEAST: usize = 4;

/// Where an update stands: its node, and the place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    node: usize,
    place: usize,
}

/// Updates in the order of their keys.
#[derive(Debug)]
pub(super) struct Waiting {
    codec: Option<Codec>,
    value_width: Width,
    nodes: Vec<Box<[u8]>>,
    /// Nodes that are not in use.
    spare: Vec<Box<[u8]>>,
    nodes_most: usize,
    len: usize,
    /// A value with its first byte.
    value: Vec<u8>,
    scratch: Vec<u8>,
    /// The key of the last one that made way.
    sweep: Vec<u8>,
}

impl Waiting {
    /// Room for updates of entries of `shape`, in `bytes` bytes of memory and nodes of
    /// `node_bytes` bytes.
    pub(super) fn new(shape: EntryShape, node_bytes: u32, bytes: u64) -> Self {
        let node = node_bytes as usize;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Beside the nodes there are the scratch node, a value and a key.
        let nodes_most = (bytes / (node + NODE_BYTES_BESIDE)).saturating_sub(2);
        let value = match shape.value {
            Width::Fixed(bytes) => bytes.checked_add(1).map(Width::Fixed),
            Width::Variable => Some(Width::Variable),
        };
        let codec = value.and_then(|value| Codec::new(node_bytes, shape.key, value));
        let codec = codec.filter(|_| nodes_most >= NODES_LEAST);
        let nodes_most = if codec.is_some() { nodes_most } else { 0 };
        Waiting {
            codec,
            value_width: value.unwrap_or(Width::Variable),
            nodes: Vec::with_capacity(nodes_most),
            spare: Vec::with_capacity(nodes_most),
            nodes_most,
            len: 0,
            value: Vec::new(),
            scratch: vec![0; if nodes_most > 0 { node } else { 0 }],
            sweep: Vec::new(),
        }
    }

    /// Updates that wait.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that it may take.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self.nodes_most {
            0 => 0,
            most => ((most + 2) * (self.scratch.len() + NODE_BYTES_BESIDE)) as u64,
        }
    }

    /// True if an update of a key and a value of so many bytes can wait.
    pub(super) fn takes(&self, key: usize, value: usize) -> bool {
        self.codec.is_some_and(|codec| key + value < codec.entry_bytes_most())
    }

    /// Nothing waits any more.
    pub(super) fn clear(&mut self) {
        self.spare.append(&mut self.nodes);
        self.len = 0;
        self.sweep.clear();
    }

    /// Where `key` stands, or belongs.
    fn search(&self, codec: &Codec, key: &[u8]) -> Result<Place, Place> {
        let is_before = |node: &[u8]| codec.key(node, 0).compare(key) != Ordering::Greater;
        let node = self.nodes.partition_point(|node| is_before(node)).saturating_sub(1);
        let found = self.nodes.get(node).map_or(Err(0), |bytes| codec.search(bytes, key));
        match found {
            Ok(place) => Ok(Place { node, place }),
            Err(place) => Err(Place { node, place }),
        }
    }

    /// The update of `key`: its value, or `None` for a delete.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        if self.len == 0 {
            return None;
        }
        let place = self.search(self.codec.as_ref()?, key).ok()?;
        self.at(place).map(|(_, value)| value)
    }

    /// Lets the update of `key` wait, in place of one that does; false if there is no room.
    pub(super) fn insert(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let Some(codec) = self.codec else {
            return false;
        };
        self.set_value(value);
        if self.nodes.is_empty() && !self.add_node(&codec, 0) {
            return false;
        }
        let value = core::mem::take(&mut self.value);
        let inserted = self.insert_stored(&codec, key, Stored::inline(&value));
        self.value = value;
        inserted
    }

    fn set_value(&mut self, value: Option<&[u8]>) {
        self.value.clear();
        self.value.push(if value.is_some() { PUT } else { 0 });
        self.value.extend_from_slice(value.unwrap_or_default());
        if let Width::Fixed(bytes) = self.value_width {
            self.value.resize(usize::from(bytes), 0);
        }
    }

    fn insert_stored(&mut self, codec: &Codec, key: &[u8], value: Stored<'_>) -> bool {
        loop {
            let found = self.search(codec, key);
            let (Ok(Place { node, place }) | Err(Place { node, place })) = found;
            let (bytes, scratch) = (&mut self.nodes[node], &mut self.scratch);
            let is_done = match found {
                Ok(_) => codec.replace(bytes, place, value, scratch),
                Err(_) => codec.insert(bytes, place, key, value, scratch),
            };
            if is_done {
                self.len += usize::from(found.is_err());
                return true;
            }
            if !self.split(codec, node) {
                return false;
            }
        }
    }

    /// Splits a node; false if there is no room for one more.
    fn split(&mut self, codec: &Codec, node: usize) -> bool {
        if node::count(&self.nodes[node]) < 2 || !self.add_node(codec, node + 1) {
            return false;
        }
        let (left, right) = self.nodes.split_at_mut(node + 1);
        let (left, right) = (&mut left[node], &mut right[0]);
        codec.split_off(left, codec.middle(left), right, &mut self.scratch);
        true
    }

    /// Puts an empty node at `node`; false if there is no room for it.
    fn add_node(&mut self, codec: &Codec, node: usize) -> bool {
        if self.nodes.len() >= self.nodes_most {
            return false;
        }
        let bytes = self.scratch.len();
        let mut fresh = self.spare.pop().unwrap_or_else(|| vec![0; bytes].into());
        fresh.fill(0);
        codec.initialise(&mut fresh, 0);
        self.nodes.insert(node, fresh);
        true
    }

    /// The update of `key` waits no more.
    pub(super) fn remove(&mut self, key: &[u8]) {
        let Some(codec) = self.codec.filter(|_| self.len > 0) else {
            return;
        };
        let Ok(Place { node, place }) = self.search(&codec, key) else {
            return;
        };
        codec.remove(&mut self.nodes[node], place);
        self.len -= 1;
        if node::count(&self.nodes[node]) == 0 {
            self.spare.push(self.nodes.remove(node));
        }
    }

    /// Copies the update that makes way next into `key` and `value`, and tells whether it is a put;
    /// `None` if nothing waits.
    pub(super) fn copy_next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Option<bool> {
        let behind = self.first(Bound::Excluded(&self.sweep), Direction::Ascending);
        let place = behind.or_else(|| self.first(Bound::Unbounded, Direction::Ascending))?;
        let (next, update) = self.at(place)?;
        next.copy_to(key);
        value.clear();
        value.extend_from_slice(update.unwrap_or_default());
        let is_put = update.is_some();
        self.sweep.clear();
        self.sweep.extend_from_slice(key);
        Some(is_put)
    }

    fn here_or_behind(&self, place: Place) -> Option<Place> {
        let count = self.nodes.get(place.node).map(|node| node::count(node))?;
        if place.place < count {
            return Some(place);
        }
        (place.node + 1 < self.nodes.len()).then_some(Place { node: place.node + 1, place: 0 })
    }

    fn before(&self, place: Place) -> Option<Place> {
        if place.place > 0 {
            return Some(Place { place: place.place - 1, ..place });
        }
        let node = place.node.checked_sub(1)?;
        Some(Place { node, place: node::count(self.nodes.get(node)?).checked_sub(1)? })
    }
}

impl Overlay for Waiting {
    type Place = Place;

    fn at(&self, place: Place) -> Option<(NodeKey<'_>, Option<&[u8]>)> {
        let codec = self.codec.as_ref()?;
        let node = self.nodes.get(place.node).filter(|node| place.place < node::count(node))?;
        let stored = codec.value(node, place.place).bytes();
        let value = stored.split_first().filter(|(kind, _)| **kind == PUT);
        Some((codec.key(node, place.place), value.map(|(_, value)| value)))
    }

    fn first(&self, start: Bound<&[u8]>, direction: Direction) -> Option<Place> {
        let codec = self.codec.as_ref().filter(|_| self.len > 0)?;
        let found = match start {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(self.search(codec, key)),
        };
        let is_included = matches!(start, Bound::Included(_));
        match (direction, found) {
            (Direction::Ascending, None) => Some(Place { node: 0, place: 0 }),
            (Direction::Ascending, Some(Ok(place))) if !is_included => self.next(place, direction),
            (Direction::Ascending, Some(Ok(place) | Err(place))) => self.here_or_behind(place),
            (Direction::Descending, None) => {
                let node = self.nodes.len() - 1;
                Some(Place { node, place: node::count(&self.nodes[node]) - 1 })
            }
            (Direction::Descending, Some(Ok(place))) if is_included => Some(place),
            (Direction::Descending, Some(Ok(place) | Err(place))) => self.before(place),
        }
    }

    fn next(&self, place: Place, direction: Direction) -> Option<Place> {
        match direction {
            Direction::Ascending => self.here_or_behind(Place { place: place.place + 1, ..place }),
            Direction::Descending => self.before(place),
        }
    }
}

#[cfg(test)]
mod tests;
