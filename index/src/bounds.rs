//! Where a range begins and ends, as its reader comes to it: what the scans of all trees ask.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use crate::{Direction, Error, KeyRange, Result};

/// Refuses a key of `found` bytes if nodes take at most `limit`.
///
/// # Errors
/// The key is longer.
pub fn key_size(found: usize, limit: usize) -> Result<()> {
    if found > limit {
        return Err(Error::KeyTooLong { found: found as u64, limit: limit as u64 });
    }
    Ok(())
}

/// Refuses an entry of `found` bytes if nodes take at most `limit`.
///
/// # Errors
/// The entry is longer.
pub fn entry_size(found: usize, limit: usize) -> Result<()> {
    if found > limit {
        return Err(Error::EntryTooLong { found: found as u64, limit: limit as u64 });
    }
    Ok(())
}

/// The most bytes of a key where one was found too long; `None` if it is not, or for any other
/// error.
///
/// # Errors
/// The key can't be one of the index for another reason.
fn limit_of(checked: Result<()>) -> Result<Option<usize>> {
    match checked {
        Ok(()) => Ok(None),
        Err(Error::KeyTooLong { limit, .. } | Error::EntryTooLong { limit, .. }) => {
            Ok(Some(usize::try_from(limit).unwrap_or(usize::MAX)))
        }
        Err(error) => Err(error),
    }
}

/// True if an entry may have the key that was `checked`. A key that is too long is merely absent.
///
/// # Errors
/// The key has another length than all keys.
pub fn can_be(checked: Result<()>) -> Result<bool> {
    Ok(limit_of(checked)?.is_none())
}

impl<'k> KeyRange<'k> {
    /// The same range with bounds that `check` accepts. A bound that is longer than any key is
    /// replaced by its first bytes: a shorter key lies below the bound if and only if it lies below
    /// these, or equals them.
    ///
    /// # Errors
    /// All keys have one length, and a bound has another.
    pub fn within_length(mut self, check: impl Fn(&[u8]) -> Result<()>) -> Result<KeyRange<'k>> {
        let shortened = |bound: Bound<&'k [u8]>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => {
                Ok::<_, Error>(limit_of(check(key))?.and_then(|limit| key.get(..limit)))
            }
            Bound::Unbounded => Ok(None),
        };
        if let Some(key) = shortened(self.from)? {
            self.from = Bound::Excluded(key);
        }
        if let Some(key) = shortened(self.to)? {
            self.to = Bound::Included(key);
        }
        Ok(self)
    }
}

impl Direction {
    /// Reverses `order` if reading descends.
    pub const fn order(self, order: Ordering) -> Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }

    /// True if a key lies beyond `limit`, where reading in this direction ends. `compare` compares
    /// the key with another.
    pub fn is_beyond(
        self,
        limit: &Bound<Vec<u8>>,
        compare: impl FnOnce(&[u8]) -> Ordering,
    ) -> bool {
        match limit {
            Bound::Unbounded => false,
            Bound::Included(limit) => self.order(compare(limit)) == Ordering::Greater,
            Bound::Excluded(limit) => self.order(compare(limit)) != Ordering::Less,
        }
    }

    /// The place among `count` sorted entries at which reading from `start` begins. `search` finds
    /// the place of a key. Ascending it is the place of the first entry, descending one more.
    pub fn first_place(
        self,
        start: Bound<&[u8]>,
        count: usize,
        search: impl FnOnce(&[u8]) -> core::result::Result<usize, usize>,
    ) -> usize {
        match (start, self) {
            (Bound::Unbounded, Direction::Ascending) => 0,
            (Bound::Unbounded, Direction::Descending) => count,
            // Ascending from a key, or descending from just below it, starts where it belongs.
            (Bound::Included(key), Direction::Ascending)
            | (Bound::Excluded(key), Direction::Descending) => search(key).unwrap_or_else(|at| at),
            (Bound::Excluded(key), Direction::Ascending)
            | (Bound::Included(key), Direction::Descending) => {
                search(key).map_or_else(|at| at, |at| at + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::ops::Bound;

    use crate::Direction;

    /// The keys that are read, found by trying each.
    fn read(keys: &[u8], from: Bound<u8>, to: Bound<u8>, direction: Direction) -> Vec<u8> {
        let bytes = |bound: Bound<u8>| bound.map(|key| Vec::from([key]));
        let (start, limit) = match direction {
            Direction::Ascending => (bytes(from), bytes(to)),
            Direction::Descending => (bytes(to), bytes(from)),
        };
        let start = start.as_ref().map(Vec::as_slice);
        let search = |key: &[u8]| keys.binary_search(&key[0]);
        let first = direction.first_place(start, keys.len(), search);
        let ahead: Vec<u8> = match direction {
            Direction::Ascending => keys[first..].to_vec(),
            Direction::Descending => keys[..first].iter().rev().copied().collect(),
        };
        let is_within = |key: &u8| !direction.is_beyond(&limit, |limit| [*key][..].cmp(limit));
        ahead.into_iter().take_while(is_within).collect()
    }

    #[test]
    fn a_range_is_what_the_bounds_leave_in_either_direction() {
        let keys = [2, 4, 6];
        let bounds: Vec<Bound<u8>> = (1..=7)
            .flat_map(|key| [Bound::Included(key), Bound::Excluded(key)])
            .chain([Bound::Unbounded])
            .collect();
        for from in &bounds {
            for to in &bounds {
                let is_within = |key: &u8| {
                    let is_above = match from {
                        Bound::Unbounded => true,
                        Bound::Included(bound) => key >= bound,
                        Bound::Excluded(bound) => key > bound,
                    };
                    let is_below = match to {
                        Bound::Unbounded => true,
                        Bound::Included(bound) => key <= bound,
                        Bound::Excluded(bound) => key < bound,
                    };
                    is_above && is_below
                };
                let mut expected: Vec<u8> = keys.iter().copied().filter(is_within).collect();
                assert_eq!(read(&keys, *from, *to, Direction::Ascending), expected);
                expected.reverse();
                assert_eq!(read(&keys, *from, *to, Direction::Descending), expected);
            }
        }
    }
}
