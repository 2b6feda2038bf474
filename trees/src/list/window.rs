//! The window of a range: the entries that come first in its direction, in a bounded number of
//! bytes.
//!
//! Entries are put behind each other as they come. Only when there is no room are they sorted, and
//! then older entries of a key go, and what comes last in the direction: so an entry costs a
//! sort's share, and not a move of all the others.
//!
//! Invariants: entries come from the newest to the oldest; no entry is longer than a quarter of the
//! window, so that there is room for one after [`Window::prune`].

use alloc::vec::Vec;

use super::page::Item;
use index::Direction;

/// Bytes of the largest window: places in it are u16.
pub(super) const WINDOW_BYTES_MOST: u32 = 32_768;

/// Bytes of the smallest window.
pub(super) const WINDOW_BYTES_LEAST: u32 = 256;

/// Bytes of a window for each slot; slots take no more memory than bytes.
const BYTES_A_SLOT: usize = 8;
const _: () = assert!(size_of::<Slot>() <= BYTES_A_SLOT);

/// A window: first it takes entries, then it is sorted and read.
pub(super) struct Window {
    /// Entries, each of them a byte that tells a put from a delete, the key, and the value.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// Bytes, and slots, that are never exceeded.
    room: usize,
    slots_most: usize,
}

/// Where an entry stands; in the order of their places, entries get older.
#[derive(Clone, Copy, Debug)]
struct Slot {
    start: u16,
    key: u16,
    value: u16,
}

impl Slot {
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let start = usize::from(self.start) + 1;
        &bytes[start..start + usize::from(self.key)]
    }

    /// Never 0, so that no two slots have the same start.
    fn length(&self) -> usize {
        1 + usize::from(self.key) + usize::from(self.value)
    }
}

impl Window {
    pub(super) fn new(bytes: u32) -> Self {
        let room = bytes.clamp(WINDOW_BYTES_LEAST, WINDOW_BYTES_MOST) as usize;
        let slots_most = room / BYTES_A_SLOT;
        Window {
            bytes: Vec::with_capacity(room),
            slots: Vec::with_capacity(slots_most),
            room,
            slots_most,
        }
    }

    /// Bytes of memory of a window of `bytes` bytes with entries of at most `entry` bytes, and of a
    /// range that uses it: two bounds, a limit, and a key.
    pub(super) fn memory_bytes(bytes: u32, entry: usize) -> u64 {
        2 * u64::from(bytes) + 4 * (entry as u64 + 1)
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The key at `place` of a sorted window.
    pub(super) fn key(&self, place: usize) -> &[u8] {
        self.slots[place].key(&self.bytes)
    }

    /// The value at `place` of a sorted window; `None` if its key is absent.
    pub(super) fn value(&self, place: usize) -> Option<&[u8]> {
        let slot = &self.slots[place];
        let end = usize::from(slot.start) + slot.length();
        let is_put = self.bytes[usize::from(slot.start)] == 1;
        is_put.then(|| &self.bytes[end - usize::from(slot.value)..end])
    }

    /// Takes an entry that is older than all before and not beyond `limit`. Where there is no room,
    /// what comes last in `direction` goes, and its key is the new limit.
    pub(super) fn offer(
        &mut self,
        item: Item<'_>,
        direction: Direction,
        limit: &mut Option<Vec<u8>>,
    ) {
        let value = item.value.unwrap_or_default();
        let is_full = self.slots.len() == self.slots_most
            || self.bytes.len() + 1 + item.key.len() + value.len() > self.room;
        if is_full {
            self.prune(direction, limit);
            if is_beyond(item.key, direction, limit.as_deref()) {
                return;
            }
        }
        self.slots.push(Slot {
            start: self.bytes.len() as u16,
            key: item.key.len() as u16,
            value: value.len() as u16,
        });
        self.bytes.push(u8::from(item.value.is_some()));
        self.bytes.extend_from_slice(item.key);
        self.bytes.extend_from_slice(value);
    }

    /// Sorts the entries by key, and keeps only the newest of each.
    pub(super) fn sort(&mut self) {
        let Window { bytes, slots, .. } = self;
        slots.sort_unstable_by(|one, other| {
            one.key(bytes).cmp(other.key(bytes)).then(one.start.cmp(&other.start))
        });
        slots.dedup_by(|later, kept| later.key(bytes) == kept.key(bytes));
    }

    /// Leaves at most three quarters of all bytes and slots in use.
    fn prune(&mut self, direction: Direction, limit: &mut Option<Vec<u8>>) {
        self.sort();
        if direction == Direction::Descending {
            self.slots.reverse();
        }
        let (mut kept, mut used) = (0, 0);
        for slot in &self.slots {
            used += slot.length();
            if used > self.room / 4 * 3 || kept == self.slots_most / 4 * 3 {
                let limit = limit.get_or_insert_default();
                limit.clear();
                limit.extend_from_slice(slot.key(&self.bytes));
                break;
            }
            kept += 1;
        }
        self.slots.truncate(kept);
        self.close_gaps();
    }

    /// Moves what is kept to the front, in the order of arrival.
    fn close_gaps(&mut self) {
        let Window { bytes, slots, .. } = self;
        slots.sort_unstable_by_key(|slot| slot.start);
        let mut end = 0;
        for slot in slots {
            let start = usize::from(slot.start);
            bytes.copy_within(start..start + slot.length(), end);
            slot.start = end as u16;
            end += slot.length();
        }
        bytes.truncate(end);
    }
}

/// Whether `key` is at the limit or comes after it.
pub(super) fn is_beyond(key: &[u8], direction: Direction, limit: Option<&[u8]>) -> bool {
    limit.is_some_and(|limit| match direction {
        Direction::Ascending => key >= limit,
        Direction::Descending => key <= limit,
    })
}

#[cfg(test)]
mod tests;
