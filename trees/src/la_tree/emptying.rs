//! The order in which a buffer is emptied, in one scan (section 2.3).
//!
//! A buffer that fits memory is read as a whole and sorted; with a batch from above it nearly
//! always does, for it was within U before. Where it does not (it had more memory when it was
//! filled, or could not be emptied in time), it is read several times, and each time the lowest
//! keys that fit are taken.
//!
//! For each key only the newest entry goes on; it stands for all older ones.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::stream::{Damage, Form, Pending};

mod places;

use places::{At, Places};

/// That entries do not fit the memory for sorting.
pub(super) const FULL: Damage = "a buffer has more entries than its record says";

/// Entries of a stream whose places are found at once, so that the newest is taken first.
const AT_ONCE: usize = 64;

/// Marks the place of a delete.
const DELETE: u32 = 0x8000_0000;

/// Entries of a buffer in memory, to be sorted.
///
/// Streams are loaded from the newest to the oldest, each in front of the one before, so an entry
/// at a higher place is newer.
#[derive(Debug)]
pub(super) struct Sorter {
    form: Form,
    /// Streams, from `first` on.
    bytes: Vec<u8>,
    first: usize,
    /// Where the entries begin.
    places: Places,
    entries_most: usize,
    /// No entry with this key or a higher one is selected, if `is_cut`.
    upper: Vec<u8>,
    is_cut: bool,
}

impl Sorter {
    /// A sorter for at most `bytes` bytes of streams and `entries` entries; all memory is taken
    /// here.
    pub(super) fn new(form: Form, bytes: u32, entries: usize) -> Self {
        let bytes = bytes.min(DELETE - 1);
        let (places, bytes) = (Places::new(bytes, entries), bytes as usize);
        Sorter {
            form,
            bytes: alloc::vec![0; bytes],
            first: bytes,
            places,
            entries_most: entries,
            upper: Vec::new(),
            is_cut: false,
        }
    }

    /// Bytes of the memory budget that a sorter takes for so many bytes and entries.
    pub(super) const fn bytes_of(bytes: u32, entries: usize) -> u64 {
        bytes as u64 + Places::each(bytes) * entries as u64
    }

    #[cfg(test)]
    /// Bytes of the memory budget that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.places.memory_bytes()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.first = self.bytes.len();
        self.places.truncate(0);
        self.is_cut = false;
    }

    /// True if what was selected is not all: entries with higher keys found no room.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
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

    /// Selects the entries of `stream` with keys above `after`; where there is no room for all,
    /// those with the highest keys, of this stream or those before, are left out. Streams come from
    /// the newest to the oldest.
    ///
    /// # Errors
    /// The stream is damaged, or has an entry that memory was not made for.
    pub(super) fn select(&mut self, stream: &[u8], after: Option<&[u8]>) -> Result<(), Damage> {
        let mut entries = 0;
        let mut reader = self.form.reader(stream);
        while reader.next()?.is_some() {
            entries += 1;
        }
        while entries > 0 {
            let first = (entries - 1) / AT_ONCE * AT_ONCE;
            let mut places = [0; AT_ONCE];
            let mut reader = self.form.reader(stream);
            for place in 0..entries {
                if let Some((entry, at)) = reader.next()?.filter(|_| place >= first) {
                    let mark = if entry.value.is_none() { DELETE } else { 0 };
                    places[place - first] = at as u32 | mark;
                }
            }
            for at in places[..entries - first].iter().rev() {
                let bytes = stream.get((at & !DELETE) as usize..).unwrap_or_default();
                let (entry, _) = self.form.read(bytes, at & DELETE != 0)?;
                if after.is_none_or(|after| entry.key > after) {
                    self.hold(&entry)?;
                }
            }
            entries = first;
        }
        Ok(())
    }

    /// Holds `entry`, which is older than all others, unless its key is too high.
    fn hold(&mut self, entry: &Pending<'_>) -> Result<(), Damage> {
        let bytes = self.form.bytes(entry);
        loop {
            if self.is_cut && entry.key >= self.upper.as_slice() {
                return Ok(());
            }
            if self.places.len() < self.entries_most && self.first >= bytes {
                break;
            }
            if self.places.len() == 0 {
                return Err(FULL);
            }
            if !self.leave_out(entry.key) {
                return Ok(());
            }
        }
        self.first -= bytes;
        let mut at = self.first;
        let into = &mut self.bytes;
        self.form.write(entry, &mut |piece| {
            into[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        });
        let is_delete = entry.value.is_none();
        self.places.push(At { byte: self.first as u32, is_delete });
        Ok(())
    }

    /// Makes room by leaving out older entries of the same keys, or else the higher half of the
    /// keys; `key` comes next: false if the only entry that is held is for it.
    fn leave_out(&mut self, key: &[u8]) -> bool {
        let before = self.places.len();
        self.sort();
        let count = self.places.len();
        if 2 * count > before {
            let lowest = self.get(0).map_or(&[][..], |entry| entry.key);
            let keep = match lowest.cmp(key) {
                Ordering::Equal if count == 1 => return false,
                Ordering::Less if count == 1 => 1,
                _ => count / 2,
            };
            let mut upper = core::mem::take(&mut self.upper);
            upper.clear();
            upper.extend_from_slice(self.get(keep).map_or(key, |entry| entry.key));
            (self.upper, self.is_cut) = (upper, true);
            self.places.truncate(keep);
        }
        self.compact();
        true
    }

    /// Moves the entries together, at the end of the memory, in the same order.
    fn compact(&mut self) {
        let mut places = core::mem::take(&mut self.places);
        places.sort(|one, other| other.byte.cmp(&one.byte));
        self.first = self.bytes.len();
        places.replace(|at| {
            let (from, bytes) = (at.byte as usize, self.form.bytes(&self.at(at)));
            self.first -= bytes;
            self.bytes.copy_within(from..from + bytes, self.first);
            At { byte: self.first as u32, ..at }
        });
        self.places = places;
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
