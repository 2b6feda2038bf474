//! The order in which a buffer is emptied, in one scan (section 2.3).
//!
//! A buffer that fits memory is read as a whole and sorted. Where batches from above made it too
//! large, only X, what was there before the last batch, is: X fits, for it was within U. The last
//! batch Y came sorted, and is merged with X while it is read.
//!
//! Fragments are linked from the newest to the oldest, so Y comes back in the opposite of the order
//! in which it came: the buffer is emptied in that direction.
//!
//! For each key only the newest entry goes on; it stands for all older ones.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::stream::{Damage, Form, Pending};

/// Marks the place of a delete.
const DELETE: u32 = 0x8000_0000;

/// In which order the entries of a buffer go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The lowest key first.
    Ascending,
    /// The highest key first.
    Descending,
}

impl Order {
    /// The order in which a batch comes back that came in this one.
    pub(super) const fn reversed(self) -> Self {
        match self {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        }
    }

    fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        match self {
            Order::Ascending => one.cmp(other),
            Order::Descending => other.cmp(one),
        }
    }
}

/// Entries of a buffer in memory, to be sorted: X.
///
/// Streams are loaded from the newest to the oldest, each in front of the one before, so an entry
/// at a higher place is newer.
#[derive(Debug)]
pub(super) struct Sorter {
    form: Form,
    /// Streams, from `first` on.
    bytes: Vec<u8>,
    first: usize,
    /// Where the entries begin; a delete's place is marked.
    places: Vec<u32>,
    entries_most: usize,
}

impl Sorter {
    /// A sorter for at most `bytes` bytes of streams and `entries` entries; all memory is taken
    /// here.
    pub(super) fn new(form: Form, bytes: u32, entries: usize) -> Self {
        let bytes = bytes.min(DELETE - 1) as usize;
        Sorter {
            form,
            bytes: alloc::vec![0; bytes],
            first: bytes,
            places: Vec::with_capacity(entries),
            entries_most: entries,
        }
    }

    #[cfg(test)]
    /// Bytes of the memory budget that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.bytes.len() + self.places.capacity() * 4) as u64
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.first = self.bytes.len();
        self.places.clear();
    }

    #[cfg(test)]
    /// Entries that are loaded; after sorting, those that are newest for their key.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Room for the next older stream of `bytes` bytes, to be filled and then loaded; `None` if
    /// there is not so much.
    pub(super) fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let first = self.first.checked_sub(bytes)?;
        self.bytes.get_mut(first..self.first)
    }

    /// Loads the stream that was put into the [`room`](Sorter::room) for `bytes` bytes.
    ///
    /// # Errors
    /// The stream is damaged, or there are more entries than room for them; nothing changed.
    pub(super) fn load(&mut self, bytes: usize) -> Result<usize, Damage> {
        const FULL: Damage = "a buffer has more entries than its record says";
        let first = self.first.checked_sub(bytes).ok_or(FULL)?;
        let before = self.places.len();
        if let Err(damage) = self.load_from(first) {
            self.places.truncate(before);
            return Err(damage);
        }
        self.first = first;
        Ok(self.places.len() - before)
    }

    fn load_from(&mut self, first: usize) -> Result<(), Damage> {
        let mut reader = self.form.reader(&self.bytes[first..self.first]);
        while let Some((entry, at)) = reader.next()? {
            if self.places.len() == self.entries_most {
                return Err("a buffer has more entries than its record says");
            }
            let mark = if entry.value.is_none() { DELETE } else { 0 };
            self.places.push((first + at) as u32 | mark);
        }
        Ok(())
    }

    /// Sorts what was loaded and keeps the newest entry of each key.
    pub(super) fn sort(&mut self, order: Order) {
        let mut places = core::mem::take(&mut self.places);
        places.sort_unstable_by(|one, other| {
            let (one_key, other_key) = (self.at(*one).key, self.at(*other).key);
            let newest_first = (other & !DELETE).cmp(&(one & !DELETE));
            order.compare(one_key, other_key).then(newest_first)
        });
        places.dedup_by(|later, kept| self.at(*later).key == self.at(*kept).key);
        self.places = places;
    }

    /// The entry at `place`, in sorted order.
    pub(super) fn get(&self, place: usize) -> Option<Pending<'_>> {
        self.places.get(place).map(|at| self.at(*at))
    }

    /// The entry that was loaded from `at`.
    fn at(&self, at: u32) -> Pending<'_> {
        let bytes = self.bytes.get((at & !DELETE) as usize..).unwrap_or_default();
        // It was read once when it was loaded, and did not change since.
        let read = self.form.read(bytes, at & DELETE != 0);
        read.map_or(Pending { key: &[], value: None }, |(entry, _)| entry)
    }
}

/// Which of two sorted runs goes on next, when the older and the newer are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The older run's entry.
    Older,
    /// The newer run's entry.
    Newer,
    /// The newer run's entry, and the older run's is dropped: they have the same key.
    NewerForBoth,
}

/// The step of merging X, the older run, with Y: `None` if both are at their end.
pub(super) fn next(older: Option<&[u8]>, newer: Option<&[u8]>, order: Order) -> Option<Next> {
    match (older, newer) {
        (None, None) => None,
        (Some(_), None) => Some(Next::Older),
        (None, Some(_)) => Some(Next::Newer),
        (Some(older), Some(newer)) => Some(match order.compare(older, newer) {
            Ordering::Less => Next::Older,
            Ordering::Equal => Next::NewerForBoth,
            Ordering::Greater => Next::Newer,
        }),
    }
}

#[cfg(test)]
mod tests;
