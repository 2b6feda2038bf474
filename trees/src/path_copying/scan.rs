//! Ranges in both directions: from leaf to leaf through the parents, merged with what the operation
//! buffer holds.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use device::{Cause, Page};
use store::node;

use super::PathTree;
use super::ground::child;
use super::layout::HEIGHT_MOST;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

/// A range that is being read. The tree can't change meanwhile, so its way stays right.
pub(super) struct Scan<'t, 'd> {
    tree: &'t mut PathTree<'d>,
    direction: Direction,
    /// Where it ends.
    limit: Bound<Vec<u8>>,
    /// Leaves that there may be yet.
    leaves_left: u32,
    /// The inner nodes above the leaf, by level, and the children that the way goes on with.
    way: [(Page, usize); HEIGHT_MOST as usize],
    /// Entries of the leaf.
    count: usize,
    /// The place in the leaf of the next entry; descending, one above it.
    place: usize,
    /// The place in the operation buffer of the next entry; descending, one above it.
    buffered: usize,
    ended: bool,
    last: Option<Last>,
    key: Vec<u8>,
}

/// Where the entry stands that was returned last.
#[derive(Clone, Copy, Debug)]
enum Last {
    Leaf(usize),
    Buffer(usize),
}

/// Where a way down goes.
#[derive(Clone, Copy)]
enum Toward<'k> {
    Key(&'k [u8]),
    First,
    Last,
}

impl<'t, 'd> Scan<'t, 'd> {
    pub(super) fn new(tree: &'t mut PathTree<'d>, range: KeyRange<'_>) -> Result<Self> {
        let range = range.within_length(|key| tree.check_key(key))?;
        let (start, limit) = match range.direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        let root = (tree.root, 0);
        let leaves_left = tree.ground.log.geometry().pages();
        let mut scan = Scan {
            tree,
            direction: range.direction,
            limit: limit.map(<[u8]>::to_vec),
            leaves_left,
            way: [root; HEIGHT_MOST as usize],
            count: 0,
            place: 0,
            buffered: 0,
            ended: false,
            last: None,
            key: Vec::new(),
        };
        scan.start(start)?;
        Ok(scan)
    }

    /// Goes to the leaf of the first entry, and to its place.
    fn start(&mut self, start: Bound<&[u8]>) -> Result<()> {
        let toward = match (start, self.direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) => Toward::Key(key),
            (Bound::Unbounded, Direction::Ascending) => Toward::First,
            (Bound::Unbounded, Direction::Descending) => Toward::Last,
        };
        let top = self.tree.height() - 1;
        self.go_down(top, self.tree.root, toward)?;
        let codec = self.tree.ground.pages.codec(&self.tree.way.spot(0).brief.layout, 0);
        let codec = codec.ok_or(super::damage(self.tree.root, "a leaf that is none"))?;
        let leaf = self.tree.way.node(0);
        let buffer = &self.tree.buffer;
        self.place = self.direction.first_place(start, self.count, |key| codec.search(leaf, key));
        self.buffered = self.direction.first_place(start, buffer.len(), |key| buffer.search(key));
        Ok(())
    }

    /// Goes from the node of `level` in `page` down to a leaf.
    fn go_down(&mut self, level: u8, page: Page, toward: Toward<'_>) -> Result<()> {
        let mut page = page;
        for level in (1..=level).rev() {
            let visit = self.tree.ground.visit((page, level), Cause::Lookup, |_, codec, node| {
                let place = match toward {
                    Toward::Key(key) => {
                        codec.search(node, key).unwrap_or_else(|at| at.saturating_sub(1))
                    }
                    Toward::First => 0,
                    Toward::Last => node::count(node).saturating_sub(1),
                };
                (place, child(codec, node, place))
            });
            let (place, child) = visit?;
            self.way[usize::from(level)] = (page, place);
            page = child;
        }
        self.count = self.tree.copy_leaf(page, Cause::Lookup)?;
        Ok(())
    }

    /// Goes on to a leaf that has an entry at the scan's place; false if there is none.
    fn find_leaf(&mut self) -> Result<bool> {
        loop {
            let is_here = match self.direction {
                Direction::Ascending => self.place < self.count,
                Direction::Descending => self.place > 0,
            };
            if is_here {
                return Ok(true);
            }
            if !self.next_leaf()? {
                return Ok(false);
            }
        }
    }

    /// Goes to the neighbouring leaf; false if this is the last.
    fn next_leaf(&mut self) -> Result<bool> {
        for level in 1..self.tree.height() {
            let (page, place) = self.way[usize::from(level)];
            let direction = self.direction;
            let next = self.tree.ground.visit((page, level), Cause::Lookup, |_, codec, node| {
                let place = match direction {
                    Direction::Ascending => Some(place + 1).filter(|at| *at < node::count(node)),
                    Direction::Descending => place.checked_sub(1),
                };
                place.map(|place| (place, child(codec, node, place)))
            })?;
            let Some((place, child)) = next else {
                continue;
            };
            // Damaged nodes may share children, and theirs theirs: there would be no end.
            let left = self.leaves_left.checked_sub(1);
            self.leaves_left = left.ok_or(super::damage(page, super::SHARED))?;
            self.way[usize::from(level)].1 = place;
            let toward = match self.direction {
                Direction::Ascending => Toward::First,
                Direction::Descending => Toward::Last,
            };
            self.go_down(level - 1, child, toward)?;
            self.place = match self.direction {
                Direction::Ascending => 0,
                Direction::Descending => self.count,
            };
            return Ok(true);
        }
        Ok(false)
    }

    /// Finds the next entry; its key goes to `self.key`. `None` at the end.
    fn advance(&mut self) -> Result<Option<Last>> {
        loop {
            let in_leaf = self.find_leaf()?;
            let before = |place: usize| match self.direction {
                Direction::Ascending => place,
                Direction::Descending => place.wrapping_sub(1),
            };
            let codec = self.tree.ground.pages.codec(&self.tree.way.spot(0).brief.layout, 0);
            let leaf = self.tree.way.node(0);
            let from_leaf = codec.filter(|_| in_leaf).map(|it| it.key(leaf, before(self.place)));
            let from_buffer = self.tree.buffer.at(before(self.buffered));
            let order = match (from_leaf, from_buffer) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some((other, _))) => self.direction.order(one.compare(other)),
            };
            self.key.clear();
            let mut is_deleted = false;
            match (order, from_leaf, from_buffer) {
                (Ordering::Less, Some(key), _) => key.copy_to(&mut self.key),
                (_, _, Some((key, value))) => {
                    self.key.extend_from_slice(key);
                    is_deleted = value.is_none();
                }
                _ => return Ok(None),
            }
            if self.direction.is_beyond(&self.limit, |limit| self.key.as_slice().cmp(limit)) {
                return Ok(None);
            }
            let last = if order == Ordering::Less {
                Last::Leaf(before(self.place))
            } else {
                Last::Buffer(before(self.buffered))
            };
            let step = |place: usize| match self.direction {
                Direction::Ascending => place + 1,
                Direction::Descending => place - 1,
            };
            if order != Ordering::Greater {
                self.place = step(self.place);
            }
            if order != Ordering::Less {
                self.buffered = step(self.buffered);
            }
            if !is_deleted {
                return Ok(Some(last));
            }
        }
    }

    fn value(&self, last: Last) -> &[u8] {
        match last {
            Last::Leaf(place) => {
                let codec = self.tree.ground.pages.codec(&self.tree.way.spot(0).brief.layout, 0);
                codec.map_or(&[], |codec| codec.value(self.tree.way.node(0), place).bytes())
            }
            Last::Buffer(place) => {
                self.tree.buffer.at(place).and_then(|(_, value)| value).unwrap_or_default()
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
        Ok(Some((&self.key, Value::Whole(self.value(last)))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let last = self.last.ok_or(Error::NoEntry)?;
        Ok(read_piece(self.value(last), offset, into))
    }
}
