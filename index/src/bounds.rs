//! Where a range begins and ends, as its reader comes to it: what the scans of all trees ask.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use crate::Direction;

impl Direction {
    /// What `order` is to who reads in this direction.
    pub(crate) const fn order(self, order: Ordering) -> Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }

    /// True if a key lies behind `limit`, where a range ends that is read in this direction;
    /// `compare` tells how the key stands to another.
    pub(crate) fn is_beyond(
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

    /// The place among `count` sorted entries at which reading from `start` begins, of which
    /// `search` tells where a key stands or belongs: ascending, that of the first entry;
    /// descending, one more than that.
    pub(crate) fn first_place(
        self,
        start: Bound<&[u8]>,
        count: usize,
        search: impl FnOnce(&[u8]) -> Result<usize, usize>,
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
