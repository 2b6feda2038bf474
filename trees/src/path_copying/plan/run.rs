//! Which entries a node is to have, and where they come from.

use core::ops::Range;

/// The entries that a node is to have: those of the old node, of which `removed` from `from` on are
/// replaced by `added` new ones.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::path_copying) struct Run {
    pub(super) old: usize,
    pub(super) from: usize,
    pub(super) removed: usize,
    pub(super) added: usize,
}

/// Where an entry of a run comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::path_copying) enum Source {
    /// The old node, at this place.
    Old(usize),
    /// The new ones, in their order.
    New(usize),
}

impl Run {
    pub(in crate::path_copying) fn len(&self) -> usize {
        self.old + self.added - self.removed
    }

    /// Where the first of `places`, and as many behind it as stand together, are in the old node.
    pub(in crate::path_copying) fn old_run(&self, places: Range<usize>) -> Range<usize> {
        match self.source(places.start) {
            Source::New(_) => 0..0,
            Source::Old(place) if places.start < self.from => {
                place..place + places.end.min(self.from) - places.start
            }
            Source::Old(place) => place..place + places.len(),
        }
    }

    pub(in crate::path_copying) fn source(&self, place: usize) -> Source {
        if place < self.from {
            Source::Old(place)
        } else if place < self.from + self.added {
            Source::New(place - self.from)
        } else {
            Source::Old(place + self.removed - self.added)
        }
    }
}
