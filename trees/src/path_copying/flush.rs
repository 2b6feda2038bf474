//! What waits in the operation buffer goes to the tree: the oldest to make way, or all of it.
//!
//! A change rewrites the whole path to its leaf. In the operation buffer of the mu*-Tree's paper
//! (4.3.3) updates of one key coalesce, and each key that makes way is an operation of the tree of
//! its own: that is [`Flush::Entry`]. With [`Flush::Leaf`] what waits for the same leaf goes with
//! it, so a path is written once for all of these.
//!
//! # Invariants
//! - The leaf with its neighbours is one that updates could have made one by one, each without a
//!   split: so what is known of the room of one change holds of all together.
//! - Nothing leaves the buffer before it is in the tree.

use core::ops::Range;

use device::Cause;

use super::PathTree;
use super::layout::Division;
use index::Result;
use index::parameters::{Kind, Parameter};

/// What goes to the tree with an update that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Nothing.
    Entry,
    /// All that waits for the same leaf, and has room in it.
    Leaf,
}

impl Flush {
    /// What a tree does of which nothing else is asked: mu and mu-star what their paper says.
    pub(super) const fn usual(division: Division) -> Self {
        match division {
            Division::Halves | Division::Even => Flush::Entry,
            Division::Whole => Flush::Leaf,
        }
    }

    /// What is written for it in the settings of a tree.
    const fn word(self) -> &'static str {
        match self {
            Flush::Entry => "entry",
            Flush::Leaf => "leaf",
        }
    }

    /// What the word of a setting says.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        [Flush::Entry, Flush::Leaf].into_iter().find(|flush| flush.word() == word)
    }
}

/// The parameter of every tree that copies its paths: what goes to the tree together.
pub(crate) const fn parameter(division: Division) -> Parameter {
    Parameter {
        name: NAME,
        about: "what leaves the operation buffer together: an entry, or all of the same leaf",
        kind: Kind::Word(WORDS),
        default: Flush::usual(division).word(),
    }
}

/// The parameter's name.
pub(super) const NAME: &str = "flush";

const WORDS: &[&str] = &[Flush::Entry.word(), Flush::Leaf.word()];

impl PathTree<'_> {
    /// Writes the oldest entry of the operation buffer to the tree, and what goes with it; false if
    /// there is none.
    pub(super) fn write_oldest(&mut self) -> Result<bool> {
        let Some(place) = self.buffer.oldest_place() else {
            return Ok(false);
        };
        self.write_waiting(place)?;
        Ok(true)
    }

    /// Writes the first entry of the operation buffer in the order of keys, where neighbours share
    /// nodes, to the tree, and what goes with it.
    pub(super) fn write_next(&mut self) -> Result<()> {
        self.write_waiting(0)
    }

    /// Writes the entry at `place` of the operation buffer to the tree, and what goes with it.
    fn write_waiting(&mut self, place: usize) -> Result<()> {
        // What makes room moves pages, and leaves the buffer alone.
        self.make_room_for_one()?;
        let Some((key, value)) = self.buffer.at(place) else {
            return Ok(());
        };
        let is_put = value.is_some();
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value.unwrap_or_default());
        let (key, value) = (core::mem::take(&mut self.key), core::mem::take(&mut self.value));
        let written = self.write_at(place, (&key, is_put.then_some(value.as_slice())));
        (self.key, self.value) = (key, value);
        self.buffer.remove(written?);
        Ok(())
    }

    /// Makes the change that waits at `place`, and what goes with it; returns their places.
    fn write_at(
        &mut self,
        place: usize,
        (key, value): (&[u8], Option<&[u8]>),
    ) -> Result<Range<usize>> {
        let alone = place..place + 1;
        let Some(order) = self.order_of((key, value), Cause::Flush)? else {
            return Ok(alone);
        };
        let places = match self.flush {
            Flush::Entry => alone,
            Flush::Leaf => self.join_neighbours(alone, key),
        };
        self.rewrite(&order).map(|()| places)
    }

    /// Makes what waits beside `own` for the leaf of the path in the copy of it, so long as that
    /// has room, and lets the path go on to `key` there; returns the places of all.
    fn join_neighbours(&mut self, own: Range<usize>, key: &[u8]) -> Range<usize> {
        let mut places = own.clone();
        while places.start > 0 && self.joins(places.start - 1) {
            places.start -= 1;
        }
        while self.joins(places.end) {
            places.end += 1;
        }
        if places != own {
            self.path.seek(key);
        }
        places
    }

    /// Makes the change that waits at `place` in the copy of the leaf, if it belongs there and has
    /// room.
    fn joins(&mut self, place: usize) -> bool {
        let Some((key, value)) = self.buffer.at(place) else {
            return false;
        };
        let height = self.height();
        self.path.leads_to(key, height) && self.path.amend(key, value, &mut self.scratch.other)
    }
}
