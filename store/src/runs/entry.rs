//! An entry of a run, and the order in which entries stand.

use core::cmp::Ordering;

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The key has this value.
    #[default]
    Put,
    /// The key is absent, whatever older runs say.
    Delete,
    /// A fence whose key is that of a unit of the run below: its value is the unit's number.
    Fence,
    /// A fence that a unit begins with where no other does.
    InnerFence,
}

impl Kind {
    /// True for fences, which are no part of what an index holds.
    #[must_use]
    #[inline]
    pub const fn is_fence(self) -> bool {
        matches!(self, Kind::Fence | Kind::InnerFence)
    }

    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    pub(super) const fn from_number(number: u8) -> Self {
        match number & 3 {
            0 => Kind::Put,
            1 => Kind::Delete,
            2 => Kind::Fence,
            _ => Kind::InnerFence,
        }
    }
}

/// Which kinds of entries a run has: fewer take fewer bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// Puts only.
    Puts,
    /// Puts and deletes.
    Deletes,
    /// Fences as well.
    Fences,
}

impl Kinds {
    /// Bits of an entry.
    pub(super) const fn bits(self) -> usize {
        self as usize
    }

    /// True if such a run can have entries of `kind`.
    #[must_use]
    pub const fn allow(self, kind: Kind) -> bool {
        match self {
            Kinds::Puts => matches!(kind, Kind::Put),
            Kinds::Deletes => !kind.is_fence(),
            Kinds::Fences => true,
        }
    }

    pub(super) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Kinds::Puts),
            1 => Some(Kinds::Deletes),
            2 => Some(Kinds::Fences),
            _ => None,
        }
    }
}

/// An entry of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'b> {
    /// Its key.
    pub key: &'b [u8],
    /// What it is.
    pub kind: Kind,
    /// Its value; of a fence the number of a unit, little-endian; of a delete nothing, or zeros
    /// where values have a fixed length.
    pub value: &'b [u8],
}

impl<'b> Entry<'b> {
    /// The key has this value.
    #[must_use]
    pub const fn put(key: &'b [u8], value: &'b [u8]) -> Self {
        Entry { key, kind: Kind::Put, value }
    }

    /// The key is absent.
    #[must_use]
    pub const fn delete(key: &'b [u8]) -> Self {
        Entry { key, kind: Kind::Delete, value: &[] }
    }

    /// The unit that a fence names.
    #[must_use]
    pub fn unit(&self) -> Option<u32> {
        let number = self.value.first_chunk::<4>().filter(|_| self.kind.is_fence())?;
        Some(u32::from_le_bytes(*number))
    }

    /// The order of entries in a run: of one key fences come first, so whoever goes back from the
    /// last entry that is not above a key finds the entry itself before its fence.
    #[must_use]
    #[inline]
    pub fn order(&self, other: &Entry<'_>) -> Ordering {
        let is_fence = |kind: Kind| !kind.is_fence();
        self.key.cmp(other.key).then_with(|| is_fence(self.kind).cmp(&is_fence(other.kind)))
    }

    /// Bytes of key and value.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}
