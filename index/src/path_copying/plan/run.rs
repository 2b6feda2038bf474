//! Which entries a node is to have, and where they come from.

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
