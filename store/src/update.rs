//! What a user asks an index to change.

use crate::LogicalPage;

/// One change. A put is a blind upsert; the delete of an absent key changes nothing and is fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'b> {
    /// Let `key` have `value`.
    Put {
        /// The key.
        key: &'b [u8],
        /// Its value from now on.
        value: &'b [u8],
    },
    /// Let `key` have a value that stands in pages of its own already: what a replay makes of a
    /// value that is too long for memory.
    Adopt {
        /// The key.
        key: &'b [u8],
        /// Its value from now on.
        value: LongValue,
    },
    /// Let `key` be absent.
    Delete {
        /// The key.
        key: &'b [u8],
    },
}

impl<'b> Update<'b> {
    /// The key that changes.
    #[must_use]
    pub const fn key(&self) -> &'b [u8] {
        match self {
            Update::Put { key, .. } | Update::Adopt { key, .. } | Update::Delete { key } => key,
        }
    }
}

/// Where a value stands that is too long for a node: only what keeps such values makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongValue {
    /// The first page that names its pages.
    pub(crate) first: LogicalPage,
    /// Its length in bytes.
    pub(crate) bytes: u32,
}

impl LongValue {
    /// The value's length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }
}
