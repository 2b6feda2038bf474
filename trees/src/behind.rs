//! Where reading goes on behind damage, found on the way that damage ends.

use alloc::vec::Vec;

use store::node::{self, Codec};

use index::Behind;

/// A way down for a key, or for the lowest one. The lowest separator above the key on it ends the
/// subtree that can't be read.
pub(crate) struct Way<'k> {
    key: Option<&'k [u8]>,
    behind: Behind,
}

impl<'k> Way<'k> {
    pub(crate) fn new(key: Option<&'k [u8]>) -> Self {
        Self { key, behind: Behind::End }
    }

    /// Goes through an inner node: returns the place of the child, `None` if there are no children.
    pub(crate) fn through(&mut self, codec: &Codec, inner: &[u8]) -> Option<usize> {
        let children = node::count(inner);
        let place = self.key.map_or(0, |key| {
            codec.search(inner, key).unwrap_or_else(|place| place.saturating_sub(1))
        });
        if place + 1 < children {
            let mut separator = Vec::new();
            codec.key(inner, place + 1).copy_to(&mut separator);
            self.behind = Behind::From(separator);
        }
        (place < children).then_some(place)
    }

    /// What stands behind the subtree that the way ended at.
    pub(crate) fn behind(self) -> Behind {
        self.behind
    }
}
