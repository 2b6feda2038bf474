//! A sorted map of bounded size that knows which of its entries was used longest ago: what the
//! operation buffer of 4.3.3 is.
//!
//! It maps keys to puts and deletes that the tree has not seen. Every operation passes it; one
//! whose key is there changes the entry, or is answered by it. When it is full, the oldest goes to
//! the tree.
//!
//! ```text
//!  arena:  | slot u16, bytes u16, key, value, rest | ... dead ... | ... | free
//!  slots:  where the entry begins, lengths, and the neighbours in the order of use
//!  order:  the slots in the order of their keys
//! ```
//!
//! Invariant: all memory is taken when it is made. An entry that does not fit is refused, with
//! nothing changed: the caller makes room by [`Recent::remove`].

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Bound, Range};

use store::node::NodeKey;

use crate::btree::Overlay;
use index::Direction;
use store::lru::{Lru, Neighbours, SlotNumber};

/// No slot.
const NONE: u16 = <u16 as SlotNumber>::NONE;

/// The length of the value of an entry that has none.
const NO_VALUE: u16 = u16::MAX;

const HEAD_BYTES: usize = 4;

/// What is moved together for an entry is at most so many times what was dropped.
const SLACK: usize = 4;

/// So many free slots are looked at for the room of a dropped entry that fits a new one.
const LOOKED_AT: usize = 8;

/// Stands instead of the length of the value in a slot that is free: no entry has so long a value.
const FREE: u16 = NO_VALUE - 1;

/// The place of no room.
const NOWHERE: u32 = u32::MAX;

/// Bytes that an entry takes beside its key and value.
pub(super) const ENTRY_BYTES: usize = HEAD_BYTES + TABLES_BYTES;

/// What the tables take for it.
const TABLES_BYTES: usize = size_of::<Slot>() + size_of::<u32>() + size_of::<u16>();

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Where the entry begins; of a free slot, where the last one did, whose room an entry that is
    /// not much smaller takes, and what is behind it in there stays unused until it goes.
    start: u32,
    /// Bytes of the key; of a free slot, the next free one.
    key: u16,
    value: u16,
    uses: Neighbours<u16>,
}

impl Slot {
    fn value_bytes(&self) -> usize {
        if self.value == NO_VALUE { 0 } else { usize::from(self.value) }
    }

    fn bytes(&self) -> usize {
        HEAD_BYTES + usize::from(self.key) + self.value_bytes()
    }
}

impl AsMut<Neighbours<u16>> for Slot {
    fn as_mut(&mut self) -> &mut Neighbours<u16> {
        &mut self.uses
    }
}

/// True if an entry of so many bytes may take a place of `room` bytes.
fn is_hole_for(room: usize, bytes: usize) -> bool {
    room >= bytes && room - bytes <= bytes / SLACK
}

fn prefix(key: &[u8]) -> u32 {
    if let Some(first) = key.first_chunk() {
        return u32::from_be_bytes(*first);
    }
    let mut bytes = [0; 4];
    bytes[..key.len()].copy_from_slice(key);
    u32::from_be_bytes(bytes)
}

/// An entry: its key, and its value if it has one.
pub(super) type Entry<'e> = (&'e [u8], Option<&'e [u8]>);

/// The map.
#[derive(Debug)]
pub(super) struct Recent {
    arena: Vec<u8>,
    /// Bytes of the arena in use, dead ones included.
    end: usize,
    dead: usize,
    slots: Vec<Slot>,
    /// By slot, the first bytes of the key, as a number in the same order: they decide most
    /// comparisons, and a search reads little else.
    prefixes: Vec<u32>,
    free: u16,
    order: Vec<u16>,
    uses: Lru<u16>,
}

impl Recent {
    /// A map that takes at most `bytes` bytes of memory, for entries of about `entry` bytes.
    pub(super) fn new(bytes: usize, entry: usize) -> Self {
        let count = (bytes / (ENTRY_BYTES + entry.max(1))).min(usize::from(NONE));
        let tables = count * TABLES_BYTES;
        let slots = (0..count)
            .map(|slot| {
                let next = if slot + 1 < count { slot as u16 + 1 } else { NONE };
                Slot { start: NOWHERE, key: next, value: FREE, uses: Neighbours::NONE }
            })
            .collect();
        Recent {
            arena: vec![0; bytes.saturating_sub(tables).min(u32::MAX as usize)],
            end: 0,
            dead: 0,
            slots,
            prefixes: vec![0; count],
            free: if count > 0 { 0 } else { NONE },
            order: Vec::with_capacity(count),
            uses: Lru::EMPTY,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.arena.len() + self.slots.len() * TABLES_BYTES
    }

    /// Where `key` stands in the order of keys, or belongs.
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let wanted = prefix(key);
        let of_slot = |slot: u16| self.prefixes[usize::from(slot)];
        let first = self.order.partition_point(|slot| of_slot(*slot) < wanted);
        let rest = &self.order[first..];
        if rest.first().is_none_or(|slot| of_slot(*slot) != wanted) {
            return Err(first);
        }
        let alike = match rest.get(1) {
            Some(slot) if of_slot(*slot) == wanted => {
                rest.partition_point(|slot| of_slot(*slot) == wanted)
            }
            _ => 1,
        };
        match rest[..alike].binary_search_by(|slot| self.entry(*slot).0.cmp(key)) {
            Ok(place) => Ok(first + place),
            Err(place) => Err(first + place),
        }
    }

    /// The entry at `place` in the order of keys.
    pub(super) fn at(&self, place: usize) -> Option<Entry<'_>> {
        self.order.get(place).map(|slot| self.entry(*slot))
    }

    /// The entry of `key`, which becomes the newest.
    pub(super) fn get(&mut self, key: &[u8]) -> Option<Entry<'_>> {
        let slot = self.order[self.search(key).ok()?];
        self.uses.touch(&mut self.slots, slot);
        Some(self.entry(slot))
    }

    /// Makes `value` the value of `key`, and it the newest; false, and nothing changed, if there is
    /// no room.
    #[must_use]
    pub(super) fn insert(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        let found = self.search(key);
        let value_bytes = value.map_or(0, <[u8]>::len);
        if key.len() >= usize::from(NONE) || value_bytes >= usize::from(NO_VALUE) {
            return false;
        }
        let bytes = HEAD_BYTES + key.len() + value_bytes;
        if bytes > usize::from(u16::MAX) {
            return false;
        }
        let given_up = found.map_or(0, |place| self.room_of(self.order[place]));
        let live = self.end - self.dead - given_up;
        let needs_slot = found.is_err();
        if bytes > self.arena.len() - live || needs_slot && self.free == NONE {
            return false;
        }
        let is_tight = bytes > self.arena.len() - self.end;
        let has_place = || is_hole_for(given_up, bytes) || self.free_slot(bytes).1.is_some();
        if is_tight && self.dead < self.arena.len() / SLACK && live > 0 && !has_place() {
            // Moving all together for so little would cost more than what else has to go.
            return false;
        }
        if let Ok(place) = found {
            self.drop_at(place);
        }
        let place = found.unwrap_or_else(|place| place);
        let (before, hole) = self.free_slot(bytes);
        let slot = self.take_free(before);
        if let Some((start, room)) = hole {
            self.dead -= room;
            self.write((start, room), slot, (key, value));
        } else {
            if is_tight {
                self.compact();
            }
            self.write((self.end, bytes), slot, (key, value));
            self.end += bytes;
        }
        self.order.insert(place, slot);
        self.uses.link_newest(&mut self.slots, slot);
        true
    }

    /// Takes the entries at `places` in the order of keys away.
    pub(super) fn remove(&mut self, places: Range<usize>) {
        for place in places.rev() {
            self.drop_at(place);
        }
    }

    /// Where the entry that was used longest ago stands in the order of keys.
    pub(super) fn oldest_place(&self) -> Option<usize> {
        self.uses.oldest().and_then(|slot| self.search(self.entry(slot).0).ok())
    }

    fn entry(&self, slot: u16) -> Entry<'_> {
        let slot = &self.slots[usize::from(slot)];
        let entry = &self.arena[slot.start as usize..][..slot.bytes()][HEAD_BYTES..];
        let (key, value) = entry.split_at(usize::from(slot.key));
        (key, (slot.value != NO_VALUE).then_some(value))
    }

    /// The free slot for an entry of so many bytes, as the one before it, and the smallest room
    /// that fits, where it begins and its bytes. Without such a room it is the first one.
    fn free_slot(&self, bytes: usize) -> (u16, Option<(usize, usize)>) {
        let (mut before, mut slot) = (NONE, self.free);
        let mut best = (NONE, None);
        for _ in 0..LOOKED_AT {
            let Some(free) = self.slots.get(usize::from(slot)) else {
                break;
            };
            if free.start != NOWHERE {
                let room = self.room_of(slot);
                if is_hole_for(room, bytes) && best.1.is_none_or(|(_, least)| room < least) {
                    best = (before, Some((free.start as usize, room)));
                }
                if room == bytes {
                    break;
                }
            }
            (before, slot) = (slot, free.key);
        }
        best
    }

    /// Takes the free slot behind `before`, or the first.
    fn take_free(&mut self, before: u16) -> u16 {
        let first = if before == NONE { self.free } else { self.slots[usize::from(before)].key };
        let next = self.slots[usize::from(first)].key;
        match before {
            NONE => self.free = next,
            before => self.slots[usize::from(before)].key = next,
        }
        first
    }

    /// Bytes of the arena that are this entry's.
    fn room_of(&self, slot: u16) -> usize {
        self.field(self.slots[usize::from(slot)].start as usize + 2)
    }

    fn field(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.arena[at], self.arena[at + 1]]))
    }

    fn write(&mut self, (start, room): (usize, usize), slot: u16, (key, value): Entry<'_>) {
        let entry = &mut self.slots[usize::from(slot)];
        self.prefixes[usize::from(slot)] = prefix(key);
        entry.start = start as u32;
        entry.key = key.len() as u16;
        entry.value = value.map_or(NO_VALUE, |value| value.len() as u16);
        let room = (room as u16).to_le_bytes();
        let mut at = start;
        for part in [&slot.to_le_bytes()[..], &room, key, value.unwrap_or_default()] {
            device::copy(&mut self.arena[at..at + part.len()], part);
            at += part.len();
        }
    }

    fn drop_at(&mut self, place: usize) {
        let slot = self.order.remove(place);
        self.uses.unlink(&mut self.slots, slot);
        let room = self.room_of(slot);
        self.dead += room;
        let entry = &mut self.slots[usize::from(slot)];
        (entry.key, entry.value) = (self.free, FREE);
        self.free = slot;
    }

    /// Moves the live entries together.
    fn compact(&mut self) {
        let (mut from, mut to) = (0, 0);
        while from < self.end {
            let (slot, room) = (self.field(from), self.field(from + 2));
            if self.slots[slot].start as usize != from {
                // The slot has its entry elsewhere.
            } else if self.slots[slot].value == FREE {
                self.slots[slot].start = NOWHERE;
            } else {
                let bytes = self.slots[slot].bytes();
                self.arena.copy_within(from..from + bytes, to);
                self.arena[to + 2..to + 4].copy_from_slice(&(bytes as u16).to_le_bytes());
                self.slots[slot].start = to as u32;
                to += bytes;
            }
            from += room;
        }
        self.end = to;
        self.dead = 0;
    }
}

impl Overlay for Recent {
    type Place = usize;

    fn first(&self, start: Bound<&[u8]>, direction: Direction) -> Option<usize> {
        let place = direction.first_place(start, self.len(), |key| self.search(key));
        match direction {
            Direction::Ascending => Some(place),
            Direction::Descending => place.checked_sub(1),
        }
    }

    fn next(&self, place: usize, direction: Direction) -> Option<usize> {
        match direction {
            Direction::Ascending => Some(place + 1),
            Direction::Descending => place.checked_sub(1),
        }
    }

    fn at(&self, place: usize) -> Option<(NodeKey<'_>, Option<&[u8]>)> {
        let (key, value) = Recent::at(self, place)?;
        Some((NodeKey { prefix: &[], suffix: key }, value))
    }
}

#[cfg(test)]
mod tests;
