//! The lazy-update pool: requests that wait for their leaves, in the order of their keys.
//!
//! A request is a key, a value and its kind. The last request for a key wins. A put whose key is
//! known to be absent from the tree and the delete that comes for it cancel each other out: both
//! are gone. That a key is absent is known where its leaf was in the cache when the put came.
//!
//! Invariant: a key stands here once; `puts` counts the puts.

use alloc::vec::Vec;
use core::ops::Bound;

use store::node::{Codec, NodeKey};
use store::{EntryShape, Width};

use crate::btree::{Overlay, Place, Puts, Sorted, Spare, set_update};
use index::Direction;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Delete,
    Put,
    /// A put of a key that the tree does not hold.
    FreshPut,
}

impl Kind {
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Kind::Delete,
            1 => Kind::Put,
            2 => Kind::FreshPut,
            _ => return None,
        })
    }

    const fn byte(self) -> u8 {
        match self {
            Kind::Delete => 0,
            Kind::Put => 1,
            Kind::FreshPut => 2,
        }
    }

    pub(super) const fn is_put(self) -> bool {
        !matches!(self, Kind::Delete)
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It waits, and none of its key did.
    New,
    /// It waits in place of one.
    Replaced(Kind),
    /// It and the one that waited cancelled each other out.
    Cancelled,
    /// There is no room.
    Full,
}

/// The requests.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) requests: Sorted,
    value_width: Width,
    /// A value with its kind in front.
    value: Vec<u8>,
    pub(super) puts: Puts,
    /// False if puts of absent keys may have been made since.
    pub(super) trusts_fresh: bool,
}

fn split_value(stored: &[u8]) -> (Kind, &[u8]) {
    match stored.split_first() {
        Some((kind, value)) => (Kind::from_byte(*kind).unwrap_or(Kind::Delete), value),
        None => (Kind::Delete, &[]),
    }
}

impl Pool {
    pub(super) fn new(shape: EntryShape, codec: Codec, nodes_most: usize) -> Self {
        let value = Vec::with_capacity(codec.entry_bytes_most() + 1);
        let is_packed = matches!((shape.key, shape.value), (Width::Fixed(_), Width::Fixed(_)));
        let requests = Sorted::new((codec, is_packed), nodes_most);
        Pool {
            requests,
            value_width: shape.value,
            value,
            puts: Puts::default(),
            trusts_fresh: true,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.requests.len()
    }

    /// True if a request of a key and a value of so many bytes fits a node.
    pub(super) fn takes(&self, key: usize, value: usize) -> bool {
        key + value < self.requests.codec().entry_bytes_most()
    }

    pub(super) fn clear(&mut self, spare: &mut Spare) {
        self.requests.clear(spare);
        self.puts = Puts::default();
    }

    /// The request at `place`: its key, kind and value.
    pub(super) fn request(&self, place: Place) -> Option<(NodeKey<'_>, Kind, &[u8])> {
        let (key, stored) = self.requests.at(place)?;
        let (kind, value) = split_value(stored);
        let kind = if kind.is_put() && !self.trusts_fresh { Kind::Put } else { kind };
        Some((key, kind, value))
    }

    /// The request of `key`.
    pub(super) fn get(&self, key: &[u8]) -> Option<(Kind, &[u8])> {
        if self.len() == 0 {
            return None;
        }
        let (_, kind, value) = self.request(self.requests.search(key).ok()?)?;
        Some((kind, value))
    }

    /// The first request whose key is not below `key`.
    pub(super) fn from(&self, key: &[u8]) -> Option<Place> {
        let (Ok(place) | Err(place)) = self.requests.search(key);
        self.requests.here_or_behind(place)
    }

    /// The first request from `place` on whose key is not below `key`.
    pub(super) fn skip_to(&self, mut place: Option<Place>, key: &[u8]) -> Option<Place> {
        let is_below =
            |place| self.requests.at(place).is_some_and(|(it, _)| it.compare(key).is_lt());
        while let Some(at) = place.filter(|at| is_below(*at)) {
            place = self.requests.next(at);
        }
        place
    }

    /// Takes a request, in place of one that waits for the same key.
    pub(super) fn take(
        &mut self,
        spare: &mut Spare,
        key: &[u8],
        (kind, value): (Kind, &[u8]),
    ) -> Taken {
        let found = self.requests.search(key).ok();
        let before = found.and_then(|place| self.request(place));
        let before = before.map(|(_, kind, value)| (kind, value.len()));
        if let (Some(place), Some((Kind::FreshPut, _)), Kind::Delete) = (found, before, kind) {
            self.remove(spare, place);
            return Taken::Cancelled;
        }
        // What the tree does not hold it still does not.
        let kind = if let Some((Kind::FreshPut, _)) = before { Kind::FreshPut } else { kind };
        set_update(&mut self.value, kind.byte(), value, self.value_width);
        if !self.requests.insert(spare, key, &self.value) {
            return Taken::Full;
        }
        if kind.is_put() {
            self.puts = self.puts.and(Puts::one(key.len() + value.len()));
        }
        match before {
            None => Taken::New,
            Some((before, bytes)) => {
                if before.is_put() {
                    self.puts = self.puts.less(Puts::one(key.len() + bytes));
                }
                Taken::Replaced(before)
            }
        }
    }

    /// The request at `place` waits no more.
    pub(super) fn remove(&mut self, spare: &mut Spare, place: Place) {
        if let Some((key, kind, value)) = self.request(place) {
            let one = Puts::one(key.len() + value.len());
            if kind.is_put() {
                self.puts = self.puts.less(one);
            }
            self.requests.remove(spare, place);
        }
    }

    /// Counts the puts anew, after nodes were appended.
    pub(super) fn count_puts(&mut self) {
        let mut puts = Puts::default();
        let mut next = self.requests.first();
        while let Some((place, (key, kind, value))) =
            next.and_then(|place| Some((place, self.request(place)?)))
        {
            if kind.is_put() {
                puts = puts.and(Puts::one(key.len() + value.len()));
            }
            next = self.requests.next(place);
        }
        self.puts = puts;
    }
}

impl Overlay for Pool {
    type Place = Place;

    fn at(&self, place: Place) -> Option<(NodeKey<'_>, Option<&[u8]>)> {
        let (key, kind, value) = self.request(place)?;
        Some((key, kind.is_put().then_some(value)))
    }

    fn first(&self, start: Bound<&[u8]>, direction: Direction) -> Option<Place> {
        self.requests.start(start, direction)
    }

    fn next(&self, place: Place, direction: Direction) -> Option<Place> {
        self.requests.step(place, direction)
    }
}
