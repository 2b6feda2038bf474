//! The records of a journal: one a batch, whatever medium it stands on.
//!
//! ```text
//!  record  bytes u32 | updates, each: kind u8 (0 put, 1 delete), key bytes u16, value bytes u32,
//!                      key, value
//!                    | or a delta of the tree's: 2 u8, 0 u16, bytes u32, delta
//! ```
//!
//! Numbers are little-endian; `bytes` counts what follows it.

use crate::{Error, Replayed, Result, Update};

/// Bytes before a record's updates.
pub(crate) const RECORD_HEADER: usize = 4;

/// Bytes of an update before its key.
pub(crate) const UPDATE_HEADER: usize = 7;

const PUT: u8 = 0;
const DELETE: u8 = 1;
const DELTA: u8 = 2;

/// Bytes of the record of `batch`.
pub(crate) fn bytes(batch: &[Update<'_>]) -> u64 {
    let bytes = |update: &Update<'_>| match update {
        Update::Put { key, value } => UPDATE_HEADER + key.len() + value.len(),
        Update::PutStored { key, .. } | Update::Delete { key } => UPDATE_HEADER + key.len(),
    };
    RECORD_HEADER as u64 + batch.iter().map(|update| bytes(update) as u64).sum::<u64>()
}

/// Bytes of those values of `batch` that are longer than `page` bytes.
pub(crate) fn long_bytes(batch: &[Update<'_>], page: usize) -> u64 {
    let bytes = batch.iter().map(|update| match update {
        Update::Put { value, .. } if value.len() > page => value.len() as u64,
        _ => 0,
    });
    bytes.sum()
}

/// Hands the record of `batch` to `put`, piece by piece.
pub(crate) fn write(batch: &[Update<'_>], put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let length = bytes(batch) - RECORD_HEADER as u64;
    put(&(length as u32).to_le_bytes())?;
    for update in batch {
        let (kind, value) = match update {
            Update::Put { value, .. } => (PUT, *value),
            Update::Delete { .. } => (DELETE, &[][..]),
            Update::PutStored { .. } => return Err(Error::AdoptedTwice),
        };
        let key = update.key();
        let mut head = [0; UPDATE_HEADER];
        head[0] = kind;
        head[1..3].copy_from_slice(&(key.len() as u16).to_le_bytes());
        head[3..].copy_from_slice(&(value.len() as u32).to_le_bytes());
        put(&head)?;
        put(key)?;
        put(value)?;
    }
    Ok(())
}

/// Bytes of the record of a delta of so many bytes.
pub(crate) const fn delta_bytes(delta: usize) -> u64 {
    (RECORD_HEADER + UPDATE_HEADER + delta) as u64
}

/// Hands the record of a tree's `delta` to `put`, piece by piece.
pub(crate) fn write_delta(delta: &[u8], put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    put(&((UPDATE_HEADER + delta.len()) as u32).to_le_bytes())?;
    put(&[DELTA, 0, 0])?;
    put(&(delta.len() as u32).to_le_bytes())?;
    put(delta)
}

/// What an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Delete,
    Delta,
}

impl Kind {
    /// What is replayed, of a key and a value.
    pub(crate) const fn replayed<'b>(self, key: &'b [u8], value: &'b [u8]) -> Replayed<'b> {
        match self {
            Kind::Put => Replayed::Update(Update::Put { key, value }),
            Kind::Delete => Replayed::Update(Update::Delete { key }),
            Kind::Delta => Replayed::Delta(value),
        }
    }
}

/// What stands before the key of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpdateHead {
    pub(crate) kind: Kind,
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: u32,
}

impl UpdateHead {
    /// `None` if these bytes are no head of an update.
    pub(crate) fn decode(head: [u8; UPDATE_HEADER]) -> Option<Self> {
        let [kind, key_low, key_high, value @ ..] = head;
        let value_bytes = u32::from_le_bytes(value);
        let key_bytes = usize::from(u16::from_le_bytes([key_low, key_high]));
        let kind = match kind {
            PUT => Kind::Put,
            DELETE if value_bytes == 0 => Kind::Delete,
            DELTA if key_bytes == 0 => Kind::Delta,
            _ => return None,
        };
        Some(UpdateHead { kind, key_bytes, value_bytes })
    }
}
