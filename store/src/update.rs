//! What a user asks an index to change.

use crate::LogicalPage;

/// One change. A put inserts or replaces; the delete of an absent key changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'b> {
    /// Insert or replace `key`.
    Put {
        /// The key.
        key: &'b [u8],
        /// Its value from now on.
        value: &'b [u8],
    },
    /// Insert or replace `key` with a value that already stands in pages of its own. A replay makes
    /// this of a value that is too long for memory.
    PutStored {
        /// The key.
        key: &'b [u8],
        /// Its value from now on.
        value: OverflowValue,
    },
    /// Delete `key`.
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
            Update::Put { key, .. } | Update::PutStored { key, .. } | Update::Delete { key } => key,
        }
    }
}

/// Where a value stands that is too long for a node. Only the store of such values makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverflowValue {
    /// The first page that names its pages.
    pub(crate) first: LogicalPage,
    /// Its length in bytes.
    pub(crate) bytes: u32,
}

impl OverflowValue {
    /// Bytes of [`OverflowValue::to_bytes`].
    pub const ENCODED_BYTES: usize = 8;

    /// The bytes that stand for this value in a node or a journal: its first page and its length,
    /// little-endian.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; OverflowValue::ENCODED_BYTES] {
        (self.first.0 as u64 | (self.bytes as u64) << 32).to_le_bytes()
    }

    /// The value that `bytes` stand for. Reading it tells whether it exists.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; OverflowValue::ENCODED_BYTES]) -> Self {
        let number = u64::from_le_bytes(bytes);
        OverflowValue { first: LogicalPage(number as u32), bytes: (number >> 32) as u32 }
    }

    /// The value's length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }
}
