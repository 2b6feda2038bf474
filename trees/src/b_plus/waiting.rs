//! Updates that wait in memory for their leaves, in the order of their keys.
//!
//! A random update reads a leaf and writes it, with its image: hundreds of times its bytes. Updates
//! that wait until several belong to one leaf share that. The journal has them, and every
//! checkpoint after which it begins anew comes behind all of them.
//!
//! They stand in nodes in memory, whose values have a byte in front: 1 of a put, 0 of a delete.
//! What makes way goes in the order of the keys, from where it stopped, so the leaf of the last one
//! is often that of the next.

use alloc::vec::Vec;
use core::ops::Bound;

use store::node::NodeKey;
use store::{EntryShape, Width};

use crate::btree::{NODE_BYTES_BESIDE, Overlay, Place, Sorted, Spare, set_update, update_codec};
use index::Direction;

/// The first byte of the value of a put; that of a delete is 0.
const PUT: u8 = 1;

/// Nodes below which waiting gains nothing.
const NODES_LEAST: usize = 4;

/// Updates in the order of their keys.
#[derive(Debug)]
pub(super) struct Waiting {
    /// None where nothing may wait.
    updates: Option<Sorted>,
    spare: Spare,
    value_width: Width,
    /// A value with its first byte.
    value: Vec<u8>,
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
        let codec = update_codec(shape, node_bytes).filter(|_| nodes_most >= NODES_LEAST);
        let is_packed = matches!((shape.key, shape.value), (Width::Fixed(_), Width::Fixed(_)));
        Waiting {
            updates: codec.map(|codec| Sorted::new((codec, is_packed), nodes_most)),
            spare: Spare::new(if codec.is_some() { nodes_most } else { 0 }, node),
            value_width: shape.value,
            value: Vec::new(),
            sweep: Vec::new(),
        }
    }

    /// Updates that wait.
    pub(super) fn len(&self) -> usize {
        self.updates.as_ref().map_or(0, Sorted::len)
    }

    /// Bytes of memory that it may take.
    pub(super) fn memory_bytes(&self) -> u64 {
        let node = self.spare.scratch.len() + NODE_BYTES_BESIDE;
        self.updates.as_ref().map_or(0, |updates| ((updates.nodes_most + 2) * node) as u64)
    }

    /// True if an update of a key and a value of so many bytes can wait.
    pub(super) fn takes(&self, key: usize, value: usize) -> bool {
        let updates = self.updates.as_ref();
        updates.is_some_and(|updates| key + value < updates.codec().entry_bytes_most())
    }

    /// Nothing waits any more.
    pub(super) fn clear(&mut self) {
        if let Some(updates) = &mut self.updates {
            updates.clear(&mut self.spare);
        }
        self.sweep.clear();
    }

    /// The update of `key`: its value, or `None` for a delete.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let updates = self.updates.as_ref().filter(|updates| updates.len() > 0)?;
        let place = updates.search(key).ok()?;
        self.at(place).map(|(_, value)| value)
    }

    /// Lets the update of `key` wait, in place of one that does; false if there is no room.
    pub(super) fn insert(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let Waiting { updates: Some(updates), spare, value: stored, .. } = self else {
            return false;
        };
        let kind = if value.is_some() { PUT } else { 0 };
        set_update(stored, kind, value.unwrap_or_default(), self.value_width);
        updates.insert(spare, key, stored)
    }

    /// The update of `key` waits no more.
    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some(updates) = self.updates.as_mut().filter(|updates| updates.len() > 0)
            && let Ok(place) = updates.search(key)
        {
            updates.remove(&mut self.spare, place);
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
}

impl Overlay for Waiting {
    type Place = Place;

    fn at(&self, place: Place) -> Option<(NodeKey<'_>, Option<&[u8]>)> {
        let (key, stored) = self.updates.as_ref()?.at(place)?;
        let value = stored.split_first().filter(|(kind, _)| **kind == PUT);
        Some((key, value.map(|(_, value)| value)))
    }

    fn first(&self, start: Bound<&[u8]>, direction: Direction) -> Option<Place> {
        self.updates.as_ref()?.start(start, direction)
    }

    fn next(&self, place: Place, direction: Direction) -> Option<Place> {
        self.updates.as_ref()?.step(place, direction)
    }
}

#[cfg(test)]
mod tests;
