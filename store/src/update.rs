//! What a user asks an index to change.

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
            Update::Put { key, .. } | Update::Delete { key } => key,
        }
    }
}
