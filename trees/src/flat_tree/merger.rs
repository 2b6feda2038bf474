//! Sorted sources as one: of each key the entry of the first that has it, which is the newest.

use alloc::vec::Vec;
use core::cmp::Ordering;

use index::{Direction, Result};
use store::runs::Way;

/// The most sources: each has a bit.
const SOURCES_MOST: usize = u64::BITS as usize;

/// True if so many runs, and what waits in memory, can be merged.
pub(super) const fn takes(runs: usize) -> bool {
    runs < SOURCES_MOST
}

/// Entries in the order of their keys.
pub(super) trait Sorted {
    /// The key of the entry that was loaded.
    fn key(&self, direction: Direction) -> Option<&[u8]>;

    /// Gives up the entry that was loaded.
    fn pass(&mut self, direction: Direction);
}

/// Entries that are read from a `G`.
pub(super) trait Load<G>: Sorted {
    /// Loads the next entry, where none is loaded; false if there is none.
    ///
    /// # Errors
    /// The device failed, or a page is damaged.
    fn load(&mut self, storage: &mut G, direction: Direction) -> Result<bool>;
}

/// The way of a cursor over what waits in memory.
pub(super) const fn way(direction: Direction) -> Way {
    match direction {
        Direction::Ascending => Way::Up,
        Direction::Descending => Way::Down,
    }
}

/// Sources as one, which [`takes`] so many.
pub(super) struct Merger<S> {
    sources: Vec<S>,
    pub(super) direction: Direction,
    /// The sources that stand at the present key, a bit each.
    present: u64,
}

impl<S: Sorted> Merger<S> {
    pub(super) const fn new(sources: Vec<S>, direction: Direction) -> Self {
        Merger { sources, direction, present: 0 }
    }

    /// Goes to the next key; false behind the last.
    pub(super) fn advance<G>(&mut self, storage: &mut G) -> Result<bool>
    where
        S: Load<G>,
    {
        let direction = self.direction;
        for (place, source) in self.sources.iter_mut().enumerate() {
            if self.present >> place & 1 == 1 {
                source.pass(direction);
            }
            source.load(storage, direction)?;
        }
        self.present = 0;
        let mut first: Option<&[u8]> = None;
        for (place, source) in self.sources.iter().enumerate() {
            let Some(key) = source.key(direction) else {
                continue;
            };
            let order = first.map_or(Ordering::Less, |first| direction.order(key.cmp(first)));
            if order.is_lt() {
                (first, self.present) = (Some(key), 1 << place);
            } else if order.is_eq() {
                self.present |= 1 << place;
            }
        }
        Ok(self.present != 0)
    }

    /// The source of the newest entry of the present key.
    pub(super) fn newest(&self) -> Option<&S> {
        self.sources.get(self.present.trailing_zeros() as usize)
    }

    /// The sources of the older ones.
    pub(super) fn older(&self) -> impl Iterator<Item = &S> {
        let places =
            self.sources.iter().enumerate().skip(self.present.trailing_zeros() as usize + 1);
        places.filter(|(place, _)| self.present >> place & 1 == 1).map(|(_, source)| source)
    }
}
