//! How the keys of a keyspace stand in the tree.
//!
//! ```text
//! key    number of the keyspace | the user's key         1 is the unnamed keyspace
//!        0 u8 | 1 u8 | name          number u32 | type of the keys | type of the values
//! ```
//!
//! What has a number without a name was dropped, and is going to be deleted. The number before a
//! key is one byte up to 239, else a byte of 240 and a big-endian u32; the other is little-endian.
//! A database that was made without keyspaces has none of this: its keys are the user's.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use index::{EntryShape, KeyRange, Update, Width};

use crate::encoding::Type;
use crate::inside::Bounds;
use crate::range::behind_prefix;
use crate::{Error, Result};

/// The most bytes before a key.
const PREFIX_BYTES: usize = 5;

/// The first byte of a number that has five.
const LONG_NUMBER: u8 = 240;

/// The number of the unnamed keyspace.
pub(super) const UNNAMED: u32 = 1;

/// What is known of a keyspace.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) key: Type,
    pub(crate) value: Type,
    /// True once it was dropped, or may have been.
    pub(crate) is_gone: AtomicBool,
}

/// Where keys of one keyspace stand.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    prefix: [u8; PREFIX_BYTES],
    length: u8,
    /// Of keys and values; the index knows it where there is no prefix.
    shape: EntryShape,
    space: Option<Arc<Space>>,
}

impl Scope {
    /// All keys of the tree, as they are.
    pub(crate) const WHOLE: Scope =
        Scope { prefix: [0; PREFIX_BYTES], length: 0, shape: EntryShape::VARIABLE, space: None };

    /// The keyspace without a name, where there are others.
    pub(crate) fn unnamed(key: &Type, value: &Type) -> Self {
        Scope::numbered(UNNAMED, key, value)
    }

    pub(crate) fn of(space: &Arc<Space>) -> Self {
        let scope = Scope::numbered(space.number, &space.key, &space.value);
        Scope { space: Some(Arc::clone(space)), ..scope }
    }

    pub(super) fn numbered(number: u32, key: &Type, value: &Type) -> Self {
        let shape = EntryShape { key: key.width(), value: value.width() };
        let mut prefix = [0; PREFIX_BYTES];
        let length = match u8::try_from(number) {
            Ok(byte) if byte < LONG_NUMBER => {
                prefix[0] = byte;
                1
            }
            _ => {
                prefix[0] = LONG_NUMBER;
                prefix[1..].copy_from_slice(&number.to_be_bytes());
                PREFIX_BYTES as u8
            }
        };
        Scope { prefix, length, shape, space: None }
    }

    /// What stands before a key of the tree: the number of its keyspace, and its length.
    pub(crate) fn split(key: &[u8]) -> Option<(u32, usize)> {
        match *key {
            [LONG_NUMBER, a, b, c, d, ..] => Some((u32::from_be_bytes([a, b, c, d]), PREFIX_BYTES)),
            [byte, ..] if byte < LONG_NUMBER => Some((byte.into(), 1)),
            _ => None,
        }
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        self.prefix.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The first key that may stand behind all of the keyspace's; `None` if none can.
    pub(super) fn behind(&self) -> Option<Vec<u8>> {
        match behind_prefix(self.prefix()) {
            Bound::Excluded(key) | Bound::Included(key) => Some(key),
            Bound::Unbounded => None,
        }
    }

    /// Refuses a keyspace that was dropped. It is asked under the lock, under which one is dropped.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.space {
            Some(space) if space.is_gone.load(Ordering::Relaxed) => {
                Err(Error::NoKeyspace { name: space.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a key of a wrong length, as the index does where all keys have one length.
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.shape.key {
            Width::Fixed(bytes) if usize::from(bytes) != key.len() => {
                let (expected, found) = (bytes.into(), key.len() as u64);
                Err(Error::Index(index::Error::KeyLength { expected, found }))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a value of a wrong length.
    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        match self.shape.value {
            Width::Fixed(bytes) if usize::from(bytes) != value.len() => {
                let (expected, found) = (bytes.into(), value.len() as u64);
                Err(Error::Index(index::Error::ValueLength { expected, found }))
            }
            _ => Ok(()),
        }
    }

    /// The tree's key of a user's, in `buffer` if anything stands before it.
    pub(crate) fn join<'k>(&self, key: &'k [u8], buffer: &'k mut Vec<u8>) -> &'k [u8] {
        if self.length == 0 {
            return key;
        }
        buffer.clear();
        buffer.extend_from_slice(self.prefix());
        buffer.extend_from_slice(key);
        buffer
    }

    /// Where the entries of a range of the user's stand.
    ///
    /// # Errors
    /// A bound has another length than all keys.
    pub(crate) fn bounds(&self, range: KeyRange<'_>) -> Result<Bounds> {
        let whole = |bound: Bound<&[u8]>, end: Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => {
                self.check_key(key)?;
                Ok::<_, Error>(bound.map(|key| [self.prefix(), key].concat()))
            }
            Bound::Unbounded => Ok(end),
        };
        let (first, behind) = match self.length {
            0 => (Bound::Unbounded, Bound::Unbounded),
            _ => (Bound::Included(self.prefix().to_vec()), behind_prefix(self.prefix())),
        };
        Ok((whole(range.from, first)?, whole(range.to, behind)?))
    }

    /// An error about a key of the tree, as the user's key has it.
    pub(crate) fn without(&self, error: index::Error) -> index::Error {
        use index::Error::{EntryTooLong, KeyTooLong};
        let less = |bytes: u64| bytes.saturating_sub(self.length.into());
        match error {
            KeyTooLong { found, limit } => KeyTooLong { found: less(found), limit: less(limit) },
            EntryTooLong { found, limit } => {
                EntryTooLong { found: less(found), limit: less(limit) }
            }
            other => other,
        }
    }
}

/// The update of the tree, whose key is `key`, of a user's in a keyspace.
///
/// # Errors
/// The key or the value is of a wrong length.
pub(crate) fn under<'u>(scope: &Scope, key: &'u [u8], update: &Update<'u>) -> Result<Update<'u>> {
    scope.check_key(update.key())?;
    match *update {
        Update::Put { value, .. } => {
            scope.check_value(value)?;
            Ok(Update::Put { key, value })
        }
        // A database never puts what is stored already.
        Update::Delete { .. } | Update::PutStored { .. } => Ok(Update::Delete { key }),
    }
}

#[cfg(test)]
mod tests {
    use super::Scope;
    use crate::encoding::Type;

    #[test]
    fn numbers_are_read_as_they_were_written_and_stand_in_their_order() {
        let mut before = Vec::new();
        for number in [1, 2, 239, 240, 241, 255, 256, 70_000, u32::MAX] {
            let scope = Scope::numbered(number, &Type::Bytes, &Type::Bytes);
            let key = [scope.prefix(), b"key"].concat();
            assert_eq!(Scope::split(&key), Some((number, scope.prefix().len())));
            assert!(before < key, "{number}");
            before = key;
        }
        assert_eq!(Scope::split(b""), None);
        assert_eq!(Scope::split(&[240, 1, 2, 3]), None);
        assert_eq!(Scope::split(&[241, 1, 2, 3, 4, 5]), None);
    }
}
