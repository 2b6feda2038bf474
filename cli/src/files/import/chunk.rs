//! Rows that are sorted before they are put.

use db::Batch;

use super::Entry;

/// Entries, at most as many as there is memory for, or one that is longer.
pub(super) struct Chunk {
    bytes: Vec<u8>,
    places: Vec<Place>,
    bytes_most: usize,
}

/// Where an entry stands in the bytes: the value behind the key.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    key: u32,
    value: u32,
    line: u64,
}

impl Chunk {
    /// A chunk that is full with about `bytes_most` bytes of memory.
    pub(super) const fn new(bytes_most: usize) -> Self {
        Chunk { bytes: Vec::new(), places: Vec::new(), bytes_most }
    }

    /// Adds an entry behind the others.
    pub(super) fn add(&mut self, entry: &Entry) {
        let place = Place {
            start: self.bytes.len(),
            // A line is far shorter than 4 GiB.
            key: entry.key.len() as u32,
            value: entry.value.len() as u32,
            line: entry.line,
        };
        self.bytes.extend_from_slice(&entry.key);
        self.bytes.extend_from_slice(&entry.value);
        self.places.push(place);
    }

    /// True if no more should be added.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes.len() + self.places.len() * size_of::<Place>() >= self.bytes_most
    }

    /// Sorts by key. Of several entries with one key only the last stays.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |place: &Place| &bytes[place.start..place.start + place.key as usize];
        // The last one comes first, and is what stays. Of those that begin at the same place all
        // but the last have no bytes.
        let place = |place: &Place| (place.start, place.value);
        self.places.sort_unstable_by(|a, b| key(a).cmp(key(b)).then(place(b).cmp(&place(a))));
        self.places.dedup_by(|a, b| key(a) == key(b));
    }

    /// The number of entries.
    pub(super) const fn len(&self) -> usize {
        self.places.len()
    }

    /// Key, value and line of an entry.
    pub(super) fn entry(&self, place: usize) -> (&[u8], &[u8], u64) {
        let Place { start, key, value, line } = self.places[place];
        let (key, value) = (key as usize, value as usize);
        let bytes = &self.bytes[start..start + key + value];
        (&bytes[..key], &bytes[key..], line)
    }

    /// Replaces what is in `batch` by entries from `first` on, one at least, and otherwise at most
    /// as many and as long as `most` says; returns where it ended.
    pub(super) fn fill(&self, first: usize, most: (usize, usize), batch: &mut Batch) -> usize {
        batch.clear();
        let mut place = first;
        while place < self.len() && batch.len() < most.0 {
            let (key, value, _) = self.entry(place);
            if !batch.is_empty() && batch.byte_len() + key.len() + value.len() > most.1 {
                break;
            }
            batch.put(key, value);
            place += 1;
        }
        place
    }

    /// Takes all entries out.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use db::Batch;

    use super::{Chunk, Entry};

    fn chunk(rows: &[(&str, &str)]) -> Chunk {
        let mut chunk = Chunk::new(1000);
        for (line, (key, value)) in rows.iter().enumerate() {
            let (key, value) = (key.as_bytes().to_vec(), value.as_bytes().to_vec());
            chunk.add(&Entry { key, value, line: line as u64 });
        }
        chunk.sort();
        chunk
    }

    #[test]
    fn entries_are_sorted_and_the_last_of_a_key_stays() {
        let chunk = chunk(&[("b", "1"), ("a", "2"), ("b", "3"), ("ab", "4"), ("b", "5")]);
        let entries: Vec<_> = (0..chunk.len()).map(|place| chunk.entry(place)).collect();
        let expected = [(&b"a"[..], &b"2"[..], 1), (b"ab", b"4", 3), (b"b", b"5", 4)];
        assert_eq!(entries, expected);
    }

    #[test]
    fn the_last_of_a_key_stays_where_key_and_value_may_be_empty() {
        for (rows, last) in [
            (&[("", ""), ("", "x")][..], "x"),
            (&[("", "x"), ("", "")], ""),
            (&[("", ""), ("", ""), ("", "y"), ("", "")], ""),
            (&[("", ""), ("", "x"), ("", ""), ("", "z")], "z"),
        ] {
            let chunk = chunk(rows);
            assert_eq!(chunk.len(), 1);
            assert_eq!(chunk.entry(0).1, last.as_bytes(), "{rows:?}");
        }
    }

    #[test]
    fn batches_are_short_and_have_one_entry_at_least() {
        let chunk = chunk(&[("a", "1"), ("b", "2"), ("c", "long enough"), ("d", "4")]);
        let mut batch = Batch::new();
        let mut ends = Vec::new();
        let mut first = 0;
        while first < chunk.len() {
            first = chunk.fill(first, (10, 5), &mut batch);
            ends.push(first);
        }
        assert_eq!(ends, [2, 3, 4]);
        assert_eq!(chunk.fill(0, (1, 100), &mut batch), 1);
    }
}
