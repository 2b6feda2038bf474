//! Sorting a buffer (section 2.3): of each key the newest entry goes on, and stands for all older
//! ones.
//!
//! A buffer with a batch from above nearly always fits the memory for sorting. Where it does not,
//! its oldest fragments that fit go down first, and then the next ones: what comes later is newer.

use super::stream::{Damage, Form, Pending};
use alloc::vec::Vec;

mod places;

use places::{At, Places};

/// That entries do not fit the memory for sorting.
pub(super) const FULL: Damage = "a buffer has more entries than its record says";

/// Marks the place of a delete.
const DELETE: u32 = 0x8000_0000;

/// The most bytes of a buffer that is sorted at once, where U is `limit`: what a batch from above
/// adds finds room, too.
pub(super) const fn sorted_most(limit: u32) -> u32 {
    let batch = if limit / 4 > 1024 { limit / 4 } else { 1024 };
    limit.saturating_add(if batch < limit { batch } else { limit })
}

/// Entries of a buffer in memory, to be sorted.
///
/// Streams are loaded from the newest to the oldest, each in front of the one before, so an entry
/// at a higher place is newer.
#[derive(Debug)]
pub(super) struct Sorter {
    form: Form,
    /// Streams, from `first` on. It is empty while its memory is lent.
    bytes: Vec<u8>,
    first: usize,
    /// Where the entries begin.
    places: Places,
    bytes_most: u32,
    entries_most: usize,
}

impl Sorter {
    /// A sorter for at most `bytes` bytes of streams and `entries` entries; all memory is taken
    /// here.
    pub(super) fn new(form: Form, bytes: u32, entries: usize) -> Self {
        let bytes_most = bytes.min(DELETE - 1);
        let places = Places::default();
        let mut sorter =
            Sorter { form, bytes: Vec::new(), first: 0, places, bytes_most, entries_most: entries };
        sorter.clear();
        sorter
    }

    /// Gives its memory back until it is [`clear`](Sorter::clear)ed: a range holds entries in it.
    pub(super) fn lend(&mut self) {
        (self.bytes, self.places, self.first) = (Vec::new(), Places::default(), 0);
    }

    /// Bytes of the memory budget that a sorter takes for so many bytes and entries.
    pub(super) const fn bytes_of(bytes: u32, entries: usize) -> u64 {
        bytes as u64 + Places::each(bytes) * entries as u64
    }

    /// Bytes of streams that find room in it.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes_most as usize
    }

    /// Forgets everything, and takes memory that was lent back.
    pub(super) fn clear(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = alloc::vec![0; self.bytes()];
            self.places = Places::new(self.bytes_most, self.entries_most);
        }
        self.first = self.bytes.len();
        self.places.truncate(0);
    }

    /// Room for the next older stream of `bytes` bytes, to be filled and then loaded; `None` if
    /// there is not so much.
    pub(super) fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let first = self.first.checked_sub(bytes)?;
        self.bytes.get_mut(first..self.first)
    }

    /// Loads the stream that was put into the [`room`](Sorter::room) for `bytes` bytes; an error
    /// changes nothing.
    pub(super) fn load(&mut self, bytes: usize) -> Result<usize, Damage> {
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
                return Err(FULL);
            }
            let is_delete = entry.value.is_none();
            self.places.push(At { byte: (first + at) as u32, is_delete });
        }
        Ok(())
    }

    /// Loads the next older `stream`; false if there is no room for it. Then, and after an error,
    /// nothing changed.
    pub(super) fn load_older(&mut self, stream: &[u8]) -> Result<bool, Damage> {
        let Some(room) = self.room(stream.len()) else {
            return Ok(false);
        };
        room.copy_from_slice(stream);
        match self.load(stream.len()) {
            Err(FULL) => Ok(false),
            loaded => loaded.map(|_| true),
        }
    }

    /// Sorts what was loaded and keeps the newest entry of each key.
    pub(super) fn sort(&mut self) {
        let mut places = core::mem::take(&mut self.places);
        places.sort(|one, other| {
            let newest_first = other.byte.cmp(&one.byte);
            self.at(one).key.cmp(self.at(other).key).then(newest_first)
        });
        places.dedup(|later, kept| self.at(later).key == self.at(kept).key);
        self.places = places;
    }

    /// The entry at `place`, in sorted order.
    pub(super) fn get(&self, place: usize) -> Option<Pending<'_>> {
        self.places.get(place).map(|at| self.at(at))
    }

    /// The entry that was loaded from `at`.
    fn at(&self, at: At) -> Pending<'_> {
        let bytes = self.bytes.get(at.byte as usize..).unwrap_or_default();
        // It was read once when it was loaded, and did not change since.
        let read = self.form.read(bytes, at.is_delete);
        read.map_or(Pending { key: &[], value: None }, |(entry, _)| entry)
    }
}

#[cfg(test)]
mod tests;
