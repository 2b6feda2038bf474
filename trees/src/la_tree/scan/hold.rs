//! Entries of a buffer that a range holds, sorted, and what is left of the range.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::{Bound, RangeInclusive};

use super::super::stream::{Form, Pending, prefix};
use index::Direction;

/// Marks the place of a delete.
const DELETE: u32 = 0x8000_0000;

/// The most places for which a stable sort of the standard library needs only its stack.
const SORTED_IN_PLACE: usize = 4096 / size_of::<Place>();

/// An entry that is held: where it stands, and how new it is.
pub(super) type Place = (u32, u64);

/// The entries of a buffer that come next in a range, of those on flash or of those in the pool.
pub(super) struct Hold {
    /// The buffer, and the level of its node.
    pub(super) buffer: Option<u32>,
    pub(super) level: u8,
    /// False if nothing is known of the buffer.
    pub(super) is_known: bool,
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The next of the places.
    pub(super) next: usize,
    /// From this key on, in the range's direction, nothing is known.
    pub(super) end: Option<Vec<u8>>,
    /// How often it was filled from the same buffer.
    pub(super) fills: u32,
    /// Bytes that it takes now at most, and ever.
    pub(super) share: usize,
    pub(super) most: usize,
}

impl Hold {
    pub(super) fn new(level: u8, most: usize) -> Self {
        Hold {
            buffer: None,
            level,
            is_known: false,
            bytes: Vec::with_capacity(most / 2),
            places: Vec::with_capacity(most / 2 / size_of::<Place>()),
            next: 0,
            end: None,
            fills: 0,
            share: most,
            most,
        }
    }

    /// Forgets what it holds: entries of its buffer are to come.
    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.places.clear();
        (self.next, self.end) = (0, None);
        self.fills = self.fills.saturating_add(1);
    }

    fn entry(&self, form: Form, place: Place) -> Pending<'_> {
        let bytes = self.bytes.get((place.0 & !DELETE) as usize..).unwrap_or_default();
        let read = form.read(bytes, place.0 & DELETE != 0);
        // It was written by the same form.
        read.map_or(Pending { key: &[], value: None }, |(entry, _)| entry)
    }

    pub(super) fn peek(&self, form: Form) -> Option<Pending<'_>> {
        self.places.get(self.next).map(|place| self.entry(form, *place))
    }

    fn is_full(&self, bytes: usize) -> bool {
        let half = self.share / 2;
        self.bytes.len() + bytes > half || (self.places.len() + 1) * size_of::<Place>() > half
    }

    /// Takes an entry; where there is no room, those that come last are given up: then it returns
    /// true.
    pub(super) fn push(
        &mut self,
        form: Form,
        direction: Direction,
        entry: &Pending<'_>,
        age: u64,
    ) -> bool {
        let beyond = |end: &Vec<u8>| direction.order(entry.key.cmp(end)) != Ordering::Less;
        if self.end.as_ref().is_some_and(beyond) {
            return false;
        }
        let is_full = self.is_full(form.bytes(entry));
        if is_full {
            self.shrink(form, direction);
            if self.end.as_ref().is_some_and(beyond) {
                return true;
            }
        }
        let mark = if entry.value.is_none() { DELETE } else { 0 };
        self.places.push((self.bytes.len() as u32 | mark, age));
        form.write(entry, &mut |piece| self.bytes.extend_from_slice(piece));
        is_full
    }

    /// Sorts what is held and keeps the newest entry of each key.
    pub(super) fn sort(&mut self, form: Form, direction: Direction) {
        let mut places = core::mem::take(&mut self.places);
        let order = |one: &Place, other: &Place| {
            let (one_key, other_key) = (self.entry(form, *one).key, self.entry(form, *other).key);
            direction.order(one_key.cmp(other_key)).then(other.1.cmp(&one.1))
        };
        // What comes is sorted in parts, which a stable sort merges; that of few takes no memory.
        match places.len() > SORTED_IN_PLACE {
            true => places.sort_unstable_by(order),
            false => places.sort_by(order),
        }
        places.dedup_by(|later, kept| self.entry(form, *later).key == self.entry(form, *kept).key);
        self.places = places;
    }

    /// Makes room: drops what is outdated and, if that is little, the second half.
    fn shrink(&mut self, form: Form, direction: Direction) {
        self.sort(form, direction);
        let used: usize =
            self.places.iter().map(|place| form.bytes(&self.entry(form, *place))).sum();
        let half = self.share / 2;
        let many = self.places.len() * size_of::<Place>() > half * 3 / 4;
        if (many || used > half * 3 / 4) && self.places.len() > 1 {
            let kept = self.places.len() / 2;
            let key = self.entry(form, self.places[kept]).key.to_vec();
            self.end = Some(key);
            self.places.truncate(kept);
        }
        self.places.sort_unstable_by_key(|place| place.0 & !DELETE);
        let mut at = 0;
        for place in 0..self.places.len() {
            let old = self.places[place];
            let from = (old.0 & !DELETE) as usize;
            let bytes = form.bytes(&self.entry(form, old));
            self.bytes.copy_within(from..from + bytes, at);
            self.places[place].0 = at as u32 | old.0 & DELETE;
            at += bytes;
        }
        self.bytes.truncate(at);
    }
}

/// What is left of a range.
#[derive(PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) start: Bound<Vec<u8>>,
    pub(super) limit: Bound<Vec<u8>>,
    pub(super) direction: Direction,
}

impl Rest {
    pub(super) const NONE: Self =
        Rest { start: Bound::Unbounded, limit: Bound::Unbounded, direction: Direction::Ascending };

    /// True if `key` is not before the start.
    pub(super) fn is_ahead(&self, key: &[u8]) -> bool {
        match &self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => self.direction.order(key.cmp(start)) != Ordering::Less,
            Bound::Excluded(start) => self.direction.order(key.cmp(start)) == Ordering::Greater,
        }
    }

    /// True if `key` is behind the end.
    pub(super) fn is_beyond(&self, key: &[u8]) -> bool {
        self.direction.is_beyond(&self.limit, |limit| key.cmp(limit))
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.is_ahead(key) && !self.is_beyond(key)
    }

    /// The least and the greatest prefix of the keys that are left before `end`: most others are
    /// told from them by these.
    pub(super) fn prefixes(&self, end: Option<&[u8]>) -> RangeInclusive<u64> {
        let of_bound = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => Some(prefix(key)),
        };
        let (near, limit) = (of_bound(&self.start), of_bound(&self.limit));
        let ends = end.map(prefix).into_iter().chain(limit);
        match self.direction {
            Direction::Ascending => near.unwrap_or(0)..=ends.min().unwrap_or(u64::MAX),
            Direction::Descending => ends.max().unwrap_or(0)..=near.unwrap_or(u64::MAX),
        }
    }
}
