//! What entries the tree takes. On a disk values may be too long for a leaf: such a value stands in
//! pages of its own, and the entry tells where.

use store::{EntryShape, OverflowValue, Update, Width};

use index::bounds::{EntryLimits, key_size};
use index::{Error, Result};

/// The limits of a tree's entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    entries: EntryLimits,
    /// The most bytes of a key that an entry has.
    key: usize,
    is_disk: bool,
}

impl Limits {
    /// Those of leaves that take entries of `entry` bytes, and inner nodes keys of `key`.
    pub(super) const fn new(shape: EntryShape, key: usize, entry: usize, is_disk: bool) -> Self {
        // On a disk a key that no entry can have is just absent, as in all trees there.
        let looked_up = if is_disk { usize::MAX } else { key };
        Limits { entries: EntryLimits { shape, key: looked_up, entry }, key, is_disk }
    }

    /// Refuses an update that no tree of this shape can have.
    pub(super) fn check_update(&self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => self.check_entry(key, value.len()),
            Update::Delete { key } => self.check_stored_key(key),
            Update::PutStored { key, .. } if self.has_long_values() => self.check_stored_key(key),
            // In a replay a journal says so: nothing that was written here does.
            Update::PutStored { .. } => Err(store::Error::AdoptedTwice.into()),
        }
    }

    /// Refuses a key that can't be looked up.
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        self.entries.check_key(key)
    }

    /// Refuses a key that no entry can have.
    fn check_stored_key(&self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let beside = match self.entries.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable if self.is_disk => OverflowValue::ENCODED_BYTES,
            Width::Variable => 0,
        };
        let beside_value = self.entries.entry.saturating_sub(beside);
        match self.entries.shape.key {
            Width::Fixed(_) => key_size(key.len(), beside_value),
            Width::Variable => key_size(key.len(), self.key.min(beside_value)),
        }
    }

    pub(super) fn check_entry(&self, key: &[u8], value: usize) -> Result<()> {
        self.check_stored_key(key)?;
        match u32::try_from(value) {
            _ if !self.has_long_values() => self.entries.check_entry(key, value),
            Ok(_) => Ok(()),
            Err(_) => Err(Error::ValueTooLong { found: value as u64, limit: u64::from(u32::MAX) }),
        }
    }

    /// True if a value may be too long for a leaf, and the tree takes it all the same.
    pub(super) fn has_long_values(&self) -> bool {
        self.is_disk && self.entries.shape.value == Width::Variable
    }

    /// True if a value of `value` bytes does not fit a leaf beside a key of `key` bytes.
    pub(super) fn is_long(&self, key: usize, value: u64) -> bool {
        self.has_long_values() && key as u64 + value > self.entries.entry as u64
    }

    /// The length of the long value that `update` makes.
    pub(super) fn long_bytes(&self, update: &Update<'_>) -> Option<u32> {
        let Update::Put { key, value } = update else {
            return None;
        };
        self.is_long(key.len(), value.len() as u64).then_some(value.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use store::{EntryShape, Width};

    use super::Limits;

    #[test]
    fn a_value_is_long_where_it_does_not_fit_a_leaf_on_a_disk_only() {
        let shape = EntryShape { key: Width::Variable, value: Width::Variable };
        let on = |is_disk| Limits::new(shape, if is_disk { 95 } else { 40 }, 100, is_disk);
        assert!(!on(true).is_long(20, 80) && on(true).is_long(20, 81));
        assert!(on(true).check_entry(&[0; 20], 1000).is_ok());
        assert!(!on(false).is_long(20, 81) && on(false).check_entry(&[0; 20], 81).is_err());
        // A long value's place stands in the leaf beside its key.
        assert!(on(true).check_entry(&[0; 92], 1000).is_ok());
        assert!(on(true).check_entry(&[0; 93], 1).is_err());
        assert!(on(true).check_key(&[0; 200]).is_ok() && on(false).check_key(&[0; 41]).is_err());
        // An inner node has to have room for the key, too.
        let without_value = EntryShape { value: Width::Fixed(0), ..shape };
        let on_disk = Limits::new(without_value, 95, 100, true);
        assert!(on_disk.check_entry(&[0; 95], 0).is_ok());
        assert!(on_disk.check_entry(&[0; 96], 0).is_err());
    }
}
