//! Packed nodes: entries of one length, one behind the other, in the order of their keys.
//!
//! ```text
//!  0        8      8+s    8+2s
//!  +--------+------+------+------+-----------
//!  | header | k v  | k v  | k v  | free
//!  +--------+------+------+------+-----------
//! ```

use crate::page_kind;

use super::{HEADER_BYTES, NodeKey, Shift, Stored, count, set_count};

/// The fewest entries that a node must hold, so that splitting leaves it fewer.
const ENTRIES_LEAST: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    bytes: u16,
    key: u16,
    stride: u16,
}

impl Packed {
    #[inline]
    pub(super) fn new(bytes: usize, key: usize, value: usize) -> Option<Self> {
        if key == 0 {
            return None;
        }
        // Trees keep a codec for each node on their way: it is small.
        let stride = u16::try_from(key + value).ok()?;
        let packed =
            Packed { bytes: u16::try_from(bytes).ok()?, key: u16::try_from(key).ok()?, stride };
        packed.has_room_for(ENTRIES_LEAST).then_some(packed)
    }

    #[inline]
    pub(super) fn node_bytes(&self) -> usize {
        usize::from(self.bytes)
    }

    #[inline]
    fn key_bytes(&self) -> usize {
        usize::from(self.key)
    }

    #[inline]
    fn stride(&self) -> usize {
        usize::from(self.stride)
    }

    pub(super) fn entry_bytes_most(&self) -> usize {
        self.stride()
    }

    pub(super) fn capacity(&self, key: usize, value: usize) -> usize {
        self.entries_room() / self.entry_bytes(key, value)
    }

    pub(super) fn entry_bytes(&self, _key: usize, _value: usize) -> usize {
        self.stride()
    }

    pub(super) fn entries_room(&self) -> usize {
        self.node_bytes() - HEADER_BYTES
    }

    /// Trees make codecs with every read and ask this of them: so it multiplies where the capacity
    /// takes a division.
    #[inline]
    fn has_room_for(&self, entries: usize) -> bool {
        self.at(entries) <= self.node_bytes()
    }

    pub(super) fn validate(&self, node: &[u8]) -> Result<(), &'static str> {
        if node.len() != self.node_bytes() {
            return Err("it has another size than this index's nodes");
        }
        if !Self::is_kind(node) {
            return Err("it is no node with entries of fixed length");
        }
        if !self.has_room_for(count(node)) {
            return Err("it counts more entries than a node can hold");
        }
        let entry_bytes = &node[HEADER_BYTES..self.at(count(node))];
        let entries = entry_bytes.chunks_exact(self.stride());
        let sorted = match (self.key_bytes(), self.stride()) {
            // The most usual one; a length that is known spares half of the time.
            (4, 8) => are_ascending(entry_bytes.as_chunks::<8>().0.iter().map(|it| word_u32(it))),
            (4, _) => are_ascending(entries.map(word_u32)),
            (8, _) => is_ascending(entries.map(word_u64)),
            _ => {
                entries.is_sorted_by(|one, next| one[..self.key_bytes()] < next[..self.key_bytes()])
            }
        };
        if !sorted {
            return Err("its keys are not in ascending order");
        }
        Ok(())
    }

    pub(super) fn is_kind(node: &[u8]) -> bool {
        node[page_kind::AT] == page_kind::PACKED
    }

    pub(super) fn initialise(&self, node: &mut [u8]) {
        node[page_kind::AT] = page_kind::PACKED;
    }

    #[inline]
    fn at(&self, place: usize) -> usize {
        HEADER_BYTES + place * self.stride()
    }

    #[inline]
    pub(super) fn key<'n>(&self, node: &'n [u8], place: usize) -> NodeKey<'n> {
        let at = self.at(place);
        NodeKey { prefix: &[], suffix: &node[at..at + self.key_bytes()] }
    }

    #[inline]
    pub(super) fn value<'n>(&self, node: &'n [u8], place: usize) -> Stored<'n> {
        let at = self.at(place);
        Stored::inline(&node[at + self.key_bytes()..at + self.stride()])
    }

    #[inline]
    pub(super) fn search(&self, node: &[u8], key: &[u8]) -> Result<usize, usize> {
        let entries = &node[HEADER_BYTES..self.at(count(node))];
        match (self.key_bytes(), key.len()) {
            (4, 4) => search_words(entries, self.stride(), word_u32(key), word_u32),
            (8, 8) => search_words(entries, self.stride(), word_u64(key), word_u64),
            _ => search_words(entries, self.stride(), key, |entry| &entry[..self.key_bytes()]),
        }
    }

    pub(super) fn insert(
        &self,
        node: &mut [u8],
        place: usize,
        key: &[u8],
        value: Stored<'_>,
        _scratch: &mut [u8],
    ) -> bool {
        let entries = count(node);
        if !self.has_room_for(entries + 1) {
            return false;
        }
        let (at, end) = (self.at(place), self.at(entries));
        node.copy_within(at..end, at + self.stride());
        node[at..at + self.key_bytes()].copy_from_slice(key);
        node[at + self.key_bytes()..at + self.stride()].copy_from_slice(value.bytes);
        set_count(node, entries + 1);
        true
    }

    /// Puts the entries at `places` of `from`, a node of `other`, behind those of `node`; false,
    /// and nothing changed, if there is no room for them or they are of another shape.
    pub(super) fn append(
        &self,
        node: &mut [u8],
        (other, from): (&Packed, &[u8]),
        places: core::ops::Range<usize>,
    ) -> bool {
        let entries = count(node);
        let is_alike = (self.key_bytes(), self.stride()) == (other.key_bytes(), other.stride());
        if !is_alike || !self.has_room_for(entries + places.len()) {
            return false;
        }
        let bytes = &from[other.at(places.start)..other.at(places.end)];
        let at = self.at(entries);
        device::copy(&mut node[at..at + bytes.len()], bytes);
        set_count(node, entries + places.len());
        true
    }

    pub(super) fn replace(
        &self,
        node: &mut [u8],
        place: usize,
        value: Stored<'_>,
        _scratch: &mut [u8],
    ) -> bool {
        let at = self.at(place);
        node[at + self.key_bytes()..at + self.stride()].copy_from_slice(value.bytes);
        true
    }

    pub(super) fn remove(&self, node: &mut [u8], place: usize) {
        let entries = count(node);
        node.copy_within(self.at(place + 1)..self.at(entries), self.at(place));
        set_count(node, entries - 1);
    }

    pub(super) fn split_off(
        &self,
        node: &mut [u8],
        place: usize,
        fresh: &mut [u8],
        _scratch: &mut [u8],
    ) {
        let entries = count(node);
        let tail = &node[self.at(place)..self.at(entries)];
        device::copy(&mut fresh[HEADER_BYTES..HEADER_BYTES + tail.len()], tail);
        set_count(fresh, entries - place);
        set_count(node, place);
    }

    pub(super) fn join(&self, left: &mut [u8], right: &mut [u8], _scratch: &mut [u8]) {
        let (entries, more) = (count(left), count(right));
        left[self.at(entries)..self.at(entries + more)]
            .copy_from_slice(&right[HEADER_BYTES..self.at(more)]);
        set_count(left, entries + more);
        set_count(right, 0);
    }

    pub(super) fn middle(&self, node: &[u8]) -> usize {
        count(node) / 2
    }

    #[inline]
    pub(super) fn used_bytes(&self, node: &[u8]) -> usize {
        self.at(count(node))
    }

    pub(super) fn joint_bytes(&self, left: &[u8], right: &[u8]) -> usize {
        self.at(count(left) + count(right))
    }

    pub(super) fn shift(&self, left: &[u8], right: &[u8]) -> Option<Shift> {
        let (left, right) = (count(left), count(right));
        let half = usize::midpoint(left, right);
        match left.cmp(&half) {
            core::cmp::Ordering::Greater => Some(Shift::Right(half)),
            core::cmp::Ordering::Less => Some(Shift::Left(half - left)),
            core::cmp::Ordering::Equal => None,
        }
    }

    pub(super) fn apply_shift(
        &self,
        left: &mut [u8],
        right: &mut [u8],
        shift: Shift,
        _scratch: &mut [u8],
    ) {
        let (lefts, rights) = (count(left), count(right));
        match shift {
            Shift::Right(place) => {
                let moved = lefts - place;
                right.copy_within(HEADER_BYTES..self.at(rights), self.at(moved));
                right[HEADER_BYTES..self.at(moved)]
                    .copy_from_slice(&left[self.at(place)..self.at(lefts)]);
                set_count(left, place);
                set_count(right, rights + moved);
            }
            Shift::Left(moved) => {
                left[self.at(lefts)..self.at(lefts + moved)]
                    .copy_from_slice(&right[HEADER_BYTES..self.at(moved)]);
                right.copy_within(self.at(moved)..self.at(rights), HEADER_BYTES);
                set_count(left, lefts + moved);
                set_count(right, rights - moved);
            }
        }
    }

    pub(super) fn is_filled(&self, node: &[u8], percent: usize) -> bool {
        self.is_filled_from(node, 0, percent)
    }

    pub(super) fn is_filled_from(&self, node: &[u8], place: usize, percent: usize) -> bool {
        count(node).saturating_sub(place) * 100 >= self.capacity(0, 0) * percent
    }

    pub(super) fn is_underfull(&self, node: &[u8]) -> bool {
        count(node) < self.capacity(0, 0) / 2
    }

    pub(super) fn has_room(&self, node: &[u8], _key: &[u8], _value: usize) -> bool {
        self.has_room_for(count(node) + 1)
    }
}

fn word_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

fn word_u64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_be_bytes(*word))
}

/// True if every word is above the one before it. Most nodes are sound, so it does not stop at the
/// first that is not.
#[inline]
fn is_ascending<W: Ord + Copy>(mut words: impl Iterator<Item = W>) -> bool {
    let Some(mut before) = words.next() else {
        return true;
    };
    words.fold(true, |is_ascending, word| {
        let is_above = before < word;
        before = word;
        is_ascending & is_above
    })
}

/// The same of words of four bytes, in two thirds of the time: what one word is above the one
/// before it, less 1, is negative if it is not above it.
#[inline]
fn are_ascending(words: impl Iterator<Item = u32>) -> bool {
    // Any first word is above this.
    let mut before = u64::MAX;
    let signs = words.fold(0, |signs, word| {
        let word = u64::from(word);
        let above = word.wrapping_sub(before).wrapping_sub(1);
        before = word;
        signs | above
    });
    signs >> 63 == 0
}

/// Binary search over entries of `stride` bytes, whose keys `word` turns into something ordered.
/// The loop halves without branching on the comparison, which the processor can't predict.
#[inline]
fn search_words<'n, W: Ord>(
    entries: &'n [u8],
    stride: usize,
    wanted: W,
    word: impl Fn(&'n [u8]) -> W,
) -> Result<usize, usize> {
    let at = |place: usize| word(&entries[place * stride..]);
    let count = entries.len() / stride;
    if count == 0 {
        return Err(0);
    }
    let (mut base, mut size) = (0, count);
    while size > 1 {
        let half = size / 2;
        base = if at(base + half) <= wanted { base + half } else { base };
        size -= half;
    }
    match at(base).cmp(&wanted) {
        core::cmp::Ordering::Equal => Ok(base),
        core::cmp::Ordering::Less => Err(base + 1),
        core::cmp::Ordering::Greater => Err(base),
    }
}

#[cfg(test)]
mod tests {
    use super::{are_ascending, is_ascending};

    #[test]
    fn words_ascend_if_each_is_above_the_one_before_it() {
        let words = [0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 1, u32::MAX];
        assert!(are_ascending(words.into_iter()) && is_ascending(words.into_iter()));
        assert!(are_ascending([].into_iter()) && are_ascending([u32::MAX].into_iter()));
        for one in words {
            for next in words {
                let pair = [one, next];
                assert_eq!(are_ascending(pair.into_iter()), one < next, "{pair:?}");
                assert_eq!(is_ascending(pair.into_iter()), one < next, "{pair:?}");
            }
        }
    }
}
