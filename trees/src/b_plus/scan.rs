//! Ranges in both directions, from leaf to leaf through the parents.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use device::Cause;
use store::node;

use super::BPlus;
use super::descent::Toward;
use super::values::handed_out;
use super::waiting::Place;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

/// A range that is being read. The tree can't change meanwhile, so its way stays right.
pub(super) struct Scan<'t, 'd> {
    tree: &'t mut BPlus<'d>,
    direction: Direction,
    /// Where it ends.
    limit: Bound<Vec<u8>>,
    /// Leaves that there may be yet.
    leaves_left: u32,
    /// The place in the leaf of the next entry; descending, one above it.
    place: usize,
    /// The place of the next update that waits.
    waiting: Option<Place>,
    ended: bool,
    /// Where the entry is that was returned last.
    last: Option<Last>,
    key: Vec<u8>,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// At this place in the leaf.
    Leaf(usize),
    /// It waits for its leaf.
    Waiting(Place),
}

impl<'t, 'd> Scan<'t, 'd> {
    pub(super) fn new(tree: &'t mut BPlus<'d>, range: KeyRange<'_>) -> Result<Self> {
        let (start, limit) = match range.direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        for bound in [start, limit] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                tree.nodes.check_key(key)?;
            }
        }
        let (_, leaves_left) = tree.file.pages_used();
        let mut scan = Scan {
            tree,
            direction: range.direction,
            limit: limit.map(<[u8]>::to_vec),
            leaves_left,
            place: 0,
            waiting: None,
            ended: false,
            last: None,
            key: Vec::new(),
        };
        scan.waiting = scan.tree.waiting.first(start, range.direction);
        scan.place = scan.start(start)?;
        Ok(scan)
    }

    /// Goes to the leaf of the first entry; returns the place there.
    fn start(&mut self, start: Bound<&[u8]>) -> Result<usize> {
        let toward = match (start, self.direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) => Toward::Key(key),
            (Bound::Unbounded, Direction::Ascending) => Toward::First,
            (Bound::Unbounded, Direction::Descending) => Toward::Last,
        };
        let leaf = self.tree.descend_toward(toward, Cause::Lookup)?;
        let node = self.tree.file.page(leaf, Cause::Lookup, &self.tree.nodes)?;
        let search = |key: &[u8]| self.tree.nodes.leaf.search(node, key);
        Ok(self.direction.first_place(start, node::count(node), search))
    }

    /// Goes on to a leaf that has an entry at the scan's place; false if there is none.
    fn find_leaf(&mut self) -> Result<bool> {
        loop {
            let leaf = self.tree.path.at(0).page;
            let node = self.tree.file.page(leaf, Cause::Lookup, &self.tree.nodes)?;
            let here = match self.direction {
                Direction::Ascending => self.place < node::count(node),
                Direction::Descending => self.place > 0,
            };
            if here {
                return Ok(true);
            }
            if !self.next_leaf()? {
                return Ok(false);
            }
        }
    }

    /// Goes to the neighbouring leaf; false if this is the last.
    fn next_leaf(&mut self) -> Result<bool> {
        let tree = &mut *self.tree;
        for level in 1..tree.height {
            let step = tree.path.at(level);
            let node = tree.file.page(step.page, Cause::Lookup, &tree.nodes)?;
            let (place, toward) = match self.direction {
                Direction::Ascending if step.place + 1 < node::count(node) => {
                    (step.place + 1, Toward::First)
                }
                Direction::Descending if step.place > 0 => (step.place - 1, Toward::Last),
                _ => continue,
            };
            // Damaged nodes may share children, and theirs theirs: there would be no end.
            let what = "it and those before it have more children than there are pages";
            let damaged = Error::Store(store::Error::DamagedPage { page: step.page, what });
            self.leaves_left = self.leaves_left.checked_sub(1).ok_or(damaged)?;
            let child = tree.nodes.child(node, place);
            tree.path.set(level, step.page, place);
            let leaf = tree.descend_from(level - 1, child, toward, Cause::Lookup)?;
            let node = tree.file.page(leaf, Cause::Lookup, &tree.nodes)?;
            self.place = match self.direction {
                Direction::Ascending => 0,
                Direction::Descending => node::count(node),
            };
            return Ok(true);
        }
        Ok(false)
    }

    /// The place of the next entry, whose key goes to `self.key`; `None` at the end.
    fn advance(&mut self) -> Result<Option<Last>> {
        loop {
            let in_leaf = self.find_leaf()?;
            let place = match self.direction {
                Direction::Ascending => self.place,
                Direction::Descending => self.place.wrapping_sub(1),
            };
            let waiting = self.waiting.and_then(|at| self.tree.waiting.at(at));
            let order = if in_leaf {
                let leaf = self.tree.path.at(0).page;
                let node = self.tree.file.page(leaf, Cause::Lookup, &self.tree.nodes)?;
                let key = self.tree.nodes.leaf.key(node, place);
                key.copy_to(&mut self.key);
                // Which of them comes first.
                waiting.map_or(Ordering::Less, |(next, _)| {
                    self.direction.order(next.compare(&self.key).reverse())
                })
            } else {
                Ordering::Greater
            };
            if order != Ordering::Less {
                let Some((next, _)) = waiting else {
                    return Ok(None);
                };
                next.copy_to(&mut self.key);
            }
            if self.direction.is_beyond(&self.limit, |limit| self.key.as_slice().cmp(limit)) {
                return Ok(None);
            }
            if order != Ordering::Greater {
                self.place = match self.direction {
                    Direction::Ascending => place + 1,
                    Direction::Descending => place,
                };
            }
            if order == Ordering::Less {
                return Ok(Some(Last::Leaf(place)));
            }
            let is_put = waiting.is_some_and(|(_, value)| value.is_some());
            let here = self.waiting;
            self.waiting = here.and_then(|at| self.tree.waiting.next(at, self.direction));
            if let Some(here) = here.filter(|_| is_put) {
                return Ok(Some(Last::Waiting(here)));
            }
        }
    }
}

impl Cursor for Scan<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if self.ended {
            return Ok(None);
        }
        // Until an entry was found, the range counts as ended: so it does after an error.
        self.ended = true;
        self.last = None;
        let Some(last) = self.advance()? else {
            return Ok(None);
        };
        self.ended = false;
        self.last = Some(last);
        let value = match last {
            Last::Leaf(place) => {
                let leaf = self.tree.path.at(0).page;
                let node = self.tree.file.page(leaf, Cause::Lookup, &self.tree.nodes)?;
                handed_out(self.tree.nodes.leaf.value(node, place))
            }
            Last::Waiting(place) => Value::Whole(self.value_of(place)),
        };
        Ok(Some((&self.key, value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        match self.last.ok_or(Error::NoEntry)? {
            Last::Leaf(place) => {
                let leaf = self.tree.path.at(0).page;
                self.tree.read_stored(leaf, place, offset, into)
            }
            Last::Waiting(place) => Ok(read_piece(self.value_of(place), offset, into)),
        }
    }
}

impl Scan<'_, '_> {
    /// The value of a put that waits.
    fn value_of(&self, place: Place) -> &[u8] {
        let waiting = self.tree.waiting.at(place);
        waiting.and_then(|(_, value)| value).unwrap_or_default()
    }
}
