//! Ranges in both directions, from leaf to leaf through the parents.

use alloc::vec::Vec;
use core::ops::Bound;

use device::Cause;
use store::node;

use super::Ipl;
use super::ground::bad_node;
use super::tree::{Step, Toward};
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};

/// A range that is being read. The tree can't change meanwhile, so its way stays right.
pub(super) struct Scan<'t, 'd> {
    tree: &'t mut Ipl<'d>,
    direction: Direction,
    limit: Bound<Vec<u8>>,
    /// Leaves that there may be yet.
    leaves_left: u32,
    /// The place in the leaf of the next entry; descending, one above it.
    place: usize,
    ended: bool,
    last: Option<usize>,
    key: Vec<u8>,
}

impl<'t, 'd> Scan<'t, 'd> {
    pub(super) fn new(tree: &'t mut Ipl<'d>, range: KeyRange<'_>) -> Result<Self> {
        let range = range.within_length(|key| tree.check_key(key))?;
        let (start, limit) = match range.direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        let direction = range.direction;
        let place = first_place(tree, start, direction)?;
        let limit = limit.map(<[u8]>::to_vec);
        let (leaves_left, key) = (tree.ground.table.live(), Vec::new());
        Ok(Scan { tree, direction, limit, leaves_left, place, ended: false, last: None, key })
    }

    /// Goes to the neighbouring leaf; false if this is the last.
    fn next_leaf(&mut self) -> Result<bool> {
        let Scan { tree, direction, .. } = self;
        for level in 1..tree.height {
            let step = tree.way[usize::from(level)];
            let forms = tree.ground.forms;
            let bytes = tree.ground.node(step.node, Cause::Lookup)?;
            let place = match direction {
                Direction::Ascending if step.place + 1 < node::count(bytes) => step.place + 1,
                Direction::Descending if step.place > 0 => step.place - 1,
                _ => continue,
            };
            // Damaged nodes may share children, and theirs theirs: there would be no end.
            let what = "it and those before it have more children than there are nodes";
            let left = self.leaves_left.checked_sub(1);
            self.leaves_left = left.ok_or(bad_node(step.node, what))?;
            let child = forms.child(bytes, place);
            tree.way[usize::from(level)] = Step { node: step.node, place };
            let leaf = tree.descend(child, level - 1, Toward::Edge(*direction), Cause::Lookup)?;
            self.place = match direction {
                Direction::Ascending => 0,
                Direction::Descending => node::count(tree.ground.node(leaf, Cause::Lookup)?),
            };
            return Ok(true);
        }
        Ok(false)
    }

    /// The place of the next entry, whose key goes to `self.key`; `None` at the end.
    fn advance(&mut self) -> Result<Option<usize>> {
        loop {
            let leaf = self.tree.way[0].node;
            let codec = self.tree.ground.forms.leaf;
            let bytes = self.tree.ground.node(leaf, Cause::Lookup)?;
            let place = match self.direction {
                Direction::Ascending => Some(self.place).filter(|at| *at < node::count(bytes)),
                Direction::Descending => self.place.checked_sub(1),
            };
            let Some(place) = place else {
                if self.next_leaf()? {
                    continue;
                }
                return Ok(None);
            };
            let key = codec.key(bytes, place);
            if self.direction.is_beyond(&self.limit, |limit| key.compare(limit)) {
                return Ok(None);
            }
            key.copy_to(&mut self.key);
            self.place = place + usize::from(self.direction == Direction::Ascending);
            return Ok(Some(place));
        }
    }
}

/// Goes to the leaf of the first entry; the place there.
fn first_place(tree: &mut Ipl<'_>, start: Bound<&[u8]>, direction: Direction) -> Result<usize> {
    let toward = match start {
        Bound::Included(key) | Bound::Excluded(key) => Toward::Key(key),
        Bound::Unbounded => Toward::Edge(direction),
    };
    let leaf = tree.descend_to(toward, Cause::Lookup)?;
    let codec = tree.ground.forms.leaf;
    let bytes = tree.ground.node(leaf, Cause::Lookup)?;
    Ok(direction.first_place(start, node::count(bytes), |key| codec.search(bytes, key)))
}

impl Cursor for Scan<'_, '_> {
    fn next(&mut self) -> Result<Option<KeyValue<'_>>> {
        if self.ended {
            return Ok(None);
        }
        // Until an entry was found, the range counts as ended: so it does after an error.
        self.ended = true;
        self.last = None;
        let Some(place) = self.advance()? else {
            return Ok(None);
        };
        self.ended = false;
        self.last = Some(place);
        let codec = self.tree.ground.forms.leaf;
        let leaf = self.tree.way[0].node;
        let bytes = self.tree.ground.node(leaf, Cause::Lookup)?;
        Ok(Some((&self.key, Value::Whole(codec.value(bytes, place).bytes()))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        let place = self.last.ok_or(Error::NoEntry)?;
        let codec = self.tree.ground.forms.leaf;
        let leaf = self.tree.way[0].node;
        let bytes = self.tree.ground.node(leaf, Cause::Lookup)?;
        Ok(read_piece(codec.value(bytes, place).bytes(), offset, into))
    }
}
