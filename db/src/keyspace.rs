//! Keyspaces: what the tree's keys begin with.

use std::ops::Bound;

use index::KeyRange;

use crate::Error;
use crate::inside::Bounds;

/// The most bytes of a prefix.
const PREFIX_BYTES: usize = 5;

/// What the tree's keys of one keyspace begin with; nothing, where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    bytes: [u8; PREFIX_BYTES],
    length: u8,
}

impl Prefix {
    /// That of keys that begin with nothing of ours.
    pub(crate) const NONE: Prefix = Prefix { bytes: [0; PREFIX_BYTES], length: 0 };

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The tree's key of a user's, in `buffer` if there is a prefix.
    pub(crate) fn join<'k>(&self, key: &'k [u8], buffer: &'k mut Vec<u8>) -> &'k [u8] {
        if self.length == 0 {
            return key;
        }
        buffer.clear();
        buffer.extend_from_slice(self.as_bytes());
        buffer.extend_from_slice(key);
        buffer
    }

    /// Where the entries of a range of the user's stand.
    pub(crate) fn bounds(&self, range: KeyRange<'_>) -> Bounds {
        let whole = |bound: Bound<&[u8]>| bound.map(|key| [self.as_bytes(), key].concat());
        (whole(range.from), whole(range.to))
    }

    /// An error about a key of the tree, as the user's key has it.
    pub(crate) fn without(&self, error: index::Error) -> Error {
        error.into()
    }
}
