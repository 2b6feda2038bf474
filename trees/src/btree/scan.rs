//! Ranges in both directions: the entries of the leaves, merged with updates that wait above them.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use device::Cause;
use index::{Cursor, Direction, Error, KeyRange, KeyValue, Result, Value, read_piece};
use store::node::NodeKey;

use super::position::Position;
use super::{At, NodeSource, read_stored};

/// An update that waits: its key, and its value if it is a put.
pub(crate) type Waiting<'w> = (NodeKey<'w>, Option<&'w [u8]>);

/// Updates that wait in memory, in the order of their keys: each hides the entry of its key.
pub(crate) trait Overlay {
    type Place: Copy;

    /// The place of the first update from `start` on, in `direction`.
    fn first(&self, start: Bound<&[u8]>, direction: Direction) -> Option<Self::Place>;

    /// The place behind `place`, in `direction`.
    fn next(&self, place: Self::Place, direction: Direction) -> Option<Self::Place>;

    /// The update at `place`.
    fn at(&self, place: Self::Place) -> Option<Waiting<'_>>;
}

/// Nothing waits.
impl Overlay for () {
    type Place = ();

    fn first(&self, _: Bound<&[u8]>, _: Direction) -> Option<()> {
        None
    }

    fn next(&self, (): (), _: Direction) -> Option<()> {
        None
    }

    fn at(&self, (): ()) -> Option<Waiting<'_>> {
        None
    }
}

/// A range that is being read. The tree can't change meanwhile, so its position stays right.
pub(crate) struct Scan<'t, S: NodeSource, O: Overlay> {
    source: &'t mut S,
    overlay: &'t O,
    position: Position<S::Id>,
    /// The place of the next update that waits.
    waiting: Option<O::Place>,
    direction: Direction,
    /// Where it ends.
    limit: Bound<Vec<u8>>,
    ended: bool,
    /// Where the entry is that was returned last.
    last: Option<Last<O::Place>>,
    key: Vec<u8>,
}

/// Where an entry is.
#[derive(Clone, Copy)]
enum Last<P> {
    /// At this place in the leaf.
    Leaf(usize),
    /// It waits for its leaf.
    Waiting(P),
}

impl<'t, S: NodeSource, O: Overlay> Scan<'t, S, O> {
    /// Begins to read `range`, whose bounds can be keys.
    ///
    /// # Errors
    /// A node is damaged, or the device failed.
    pub(crate) fn new(
        source: &'t mut S,
        overlay: &'t O,
        root: At<S::Id>,
        range: KeyRange<'_>,
    ) -> Result<Self> {
        let direction = range.direction;
        let (start, limit) = match direction {
            Direction::Ascending => (range.from, range.to),
            Direction::Descending => (range.to, range.from),
        };
        Ok(Scan {
            position: Position::seek(source, root, (start, direction), Cause::Lookup)?,
            waiting: overlay.first(start, direction),
            source,
            overlay,
            direction,
            limit: limit.map(<[u8]>::to_vec),
            ended: false,
            last: None,
            key: Vec::new(),
        })
    }

    /// Finds the next entry, whose key goes to `self.key`; `None` at the end.
    fn advance(&mut self) -> Result<Option<Last<O::Place>>> {
        loop {
            let place = self.position.peek(self.source, self.direction)?;
            let waiting = self.waiting.and_then(|at| self.overlay.at(at));
            let order = match place {
                Some(place) => {
                    let leaf = At::leaf(self.position.leaf());
                    self.source.node(leaf, Cause::Lookup)?.key(place).copy_to(&mut self.key);
                    // Which of them comes first.
                    waiting.map_or(Ordering::Less, |(next, _)| {
                        self.direction.order(next.compare(&self.key).reverse())
                    })
                }
                None => Ordering::Greater,
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
            if let Some(place) = place.filter(|_| order != Ordering::Greater) {
                self.position.pass(self.direction);
                if order == Ordering::Less {
                    return Ok(Some(Last::Leaf(place)));
                }
            }
            let is_put = waiting.is_some_and(|(_, value)| value.is_some());
            let here = self.waiting;
            self.waiting = here.and_then(|at| self.overlay.next(at, self.direction));
            if let Some(here) = here.filter(|_| is_put) {
                return Ok(Some(Last::Waiting(here)));
            }
        }
    }

    /// The value of a put that waits.
    fn waiting_value(&self, place: O::Place) -> &[u8] {
        self.overlay.at(place).and_then(|(_, value)| value).unwrap_or_default()
    }
}

impl<S: NodeSource + Send, O: Overlay + Sync> Cursor for Scan<'_, S, O> {
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
                let leaf = At::leaf(self.position.leaf());
                let value = self.source.node(leaf, Cause::Lookup)?.value(place);
                match value.as_long() {
                    Some(long) => Value::Long(long.bytes()),
                    None => Value::Inline(value.bytes()),
                }
            }
            Last::Waiting(place) => Value::Inline(self.waiting_value(place)),
        };
        Ok(Some((&self.key, value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> Result<u32> {
        match self.last.ok_or(Error::NoEntry)? {
            Last::Leaf(place) => {
                read_stored(self.source, self.position.leaf(), place, (offset, into))
            }
            Last::Waiting(place) => Ok(read_piece(self.waiting_value(place), offset, into)),
        }
    }
}
