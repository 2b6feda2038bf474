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

use super::layout::Division;
use super::recent::{Entry, Recent};
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

    /// The places of what leaves `buffer` with the entry at `place`: neighbours that `joins` made
    /// in the copy of the same leaf.
    pub(super) fn places_with(
        self,
        (buffer, place): (&Recent, usize),
        mut joins: impl FnMut(Entry<'_>) -> bool,
    ) -> Range<usize> {
        let mut places = place..place + 1;
        if self == Flush::Leaf {
            while places.start > 0 && buffer.at(places.start - 1).is_some_and(&mut joins) {
                places.start -= 1;
            }
            while buffer.at(places.end).is_some_and(&mut joins) {
                places.end += 1;
            }
        }
        places
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

#[cfg(test)]
mod tests;
