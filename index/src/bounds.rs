//! What entries an index takes, and where a range begins and ends as its reader comes to it: what
//! all trees ask.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use store::{EntryShape, Update, Width};

use crate::{Cursor, Direction, Error, KeyRange, Result, Value, read_piece_of};

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

/// What the entries of an index are that has each whole in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryLimits {
    /// The lengths of keys and values.
    pub shape: EntryShape,
    /// The most bytes of a key, where lengths vary.
    pub key: usize,
    /// The most bytes of a key and its value together.
    pub entry: usize,
}

impl EntryLimits {
    /// # Errors
    /// No entry can have that key.
    pub fn check_key(&self, key: &[u8]) -> Result<()> {
        let found = key.len() as u64;
        match self.shape.key {
            Width::Fixed(bytes) if u64::from(bytes) != found => {
                Err(Error::KeyLength { expected: bytes.into(), found })
            }
            Width::Fixed(_) => Ok(()),
            Width::Variable => key_size(key.len(), self.key),
        }
    }

    /// # Errors
    /// There can be no entry of that key and a value of `value` bytes.
    pub fn check_entry(&self, key: &[u8], value: usize) -> Result<()> {
        self.check_key(key)?;
        match self.shape.value {
            Width::Fixed(bytes) if usize::from(bytes) != value => {
                Err(Error::ValueLength { expected: bytes.into(), found: value as u64 })
            }
            _ => entry_size(key.len() + value, self.entry),
        }
    }

    /// # Errors
    /// An update of `batch` is of no entry that there can be, or puts a value that is kept apart.
    pub fn check_batch(&self, batch: &[Update<'_>]) -> Result<()> {
        batch.iter().try_for_each(|update| match update {
            Update::Put { key, value } => self.check_entry(key, value.len()),
            Update::Delete { key } => self.check_key(key),
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        })
    }

    /// Hands the entries of `sorted` to `take`, values whole, and checks them first; returns how
    /// many. Of memory it takes what a key and a long value have.
    ///
    /// # Errors
    /// An entry can't be one or comes out of order; those before it are taken. Or `sorted` or
    /// `take` failed.
    pub fn take_sorted(
        &self,
        sorted: &mut dyn Cursor,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (mut key, mut long, mut taken) = (Vec::new(), Vec::new(), 0);
        while let Some((next, value)) = sorted.next()? {
            self.check_entry(next, value.len() as usize)?;
            if taken > 0 && next <= key.as_slice() {
                return Err(Error::NotSorted { position: taken });
            }
            key.clear();
            key.extend_from_slice(next);
            match value {
                Value::Inline(value) => take(&key, value)?,
                Value::Long(bytes) => {
                    // Another index has smaller nodes than this one.
                    long.resize(bytes as usize, 0);
                    read_piece_of(sorted, bytes, 0, &mut long)?;
                    take(&key, &long)?;
                }
            }
            taken += 1;
        }
        Ok(taken)
    }
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
