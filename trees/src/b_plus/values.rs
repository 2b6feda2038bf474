//! Values too long for a leaf: they stand in pages of their own, and the entry tells where.
//!
//! A value is long if the leaf could not hold it beside its key; so [`Codecs::is_long`] alone
//! decides, and every key leaves room for a long value's place. A long value is written before its
//! entry is, and the pages of the value that the entry had before are given back after.

use device::Cause;
use store::node::Stored;
use store::{OverflowValue, Update, Width};

use super::BPlus;
use crate::btree::{Codecs, copy_long};
use index::{
    Cursor, Error, Result,
    bounds::{entry_size, key_size},
};

impl Codecs {
    /// True if a value of `value` bytes does not fit a leaf beside a key of `key` bytes.
    #[inline]
    pub(super) fn is_long(&self, key: usize, value: u32) -> bool {
        self.has_long_values() && key as u64 + u64::from(value) > self.entry_bytes_most()
    }

    fn entry_bytes_most(&self) -> u64 {
        self.leaf.entry_bytes_most() as u64
    }

    /// Refuses an update that the tree can't make.
    #[inline]
    pub(super) fn check_update(&self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => self.check_entry(key, value.len()),
            Update::PutStored { key, value } if self.has_long_values() => {
                self.check_entry(key, value.bytes() as usize)
            }
            Update::PutStored { key, value } => {
                self.check_key(key)?;
                self.check_value(value.bytes() as usize)
            }
            Update::Delete { key } => self.check_stored_key(key),
        }
    }

    /// Refuses an entry that the tree can't hold.
    #[inline]
    pub(super) fn check_entry(&self, key: &[u8], value_bytes: usize) -> Result<()> {
        self.check_stored_key(key)?;
        self.check_value(value_bytes)?;
        if !self.has_long_values() {
            return entry_size(key.len() + value_bytes, self.leaf.entry_bytes_most());
        }
        if u32::try_from(value_bytes).is_err() {
            let (found, limit) = (value_bytes as u64, u64::from(u32::MAX));
            return Err(Error::ValueTooLong { found, limit });
        }
        Ok(())
    }

    /// Refuses a key that no entry can have: there is nothing to delete, and a replay of the
    /// journal has no room for it.
    pub(super) fn check_stored_key(&self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let beside = match self.shape.value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => OverflowValue::ENCODED_BYTES,
        };
        let beside_value = self.leaf.entry_bytes_most().saturating_sub(beside);
        let limit = beside_value.min(self.key_bytes_most());
        key_size(key.len(), limit)
    }
}

impl BPlus<'_> {
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.store.codecs.is_long(key.len(), value.len() as u32) {
            let before = self.btree.put(&mut self.store, key, Stored::inline(value))?;
            return self.drop_value(before);
        }
        let long = self.store.file.write_long(value, Cause::Update)?;
        self.adopt_value(key, long)
    }

    /// Lets `key` have a value whose pages are written already; if that changes nothing, they are
    /// given back.
    pub(super) fn adopt_value(&mut self, key: &[u8], value: OverflowValue) -> Result<()> {
        match self.btree.put(&mut self.store, key, Stored::long(&value.to_bytes())) {
            Ok(before) => {
                self.longest_value = self.longest_value.max(value.bytes());
                self.drop_value(before)
            }
            Err(error) => {
                if !self.btree.is_poisoned {
                    // What failed first is told: a disk that failed takes nothing back, either.
                    let _ = self.drop_value(Some(value));
                }
                Err(error)
            }
        }
    }

    /// Gives back the pages of the value that an entry had, if it was long.
    pub(super) fn drop_value(&mut self, value: Option<OverflowValue>) -> Result<()> {
        if let Some(value) = value {
            self.btree.is_poisoned = true;
            self.store.file.free_long(value, Cause::Update)?;
            self.btree.is_poisoned = false;
        }
        Ok(())
    }

    /// Pages that the long values of `batch` take.
    pub(super) fn pages_for_values(&self, batch: &[Update<'_>]) -> u64 {
        let lengths = batch.iter().filter_map(|update| self.long_bytes(update));
        lengths.map(|bytes| u64::from(self.store.file.pages_for_long(bytes))).sum()
    }

    /// The length of the long value that `update` makes.
    fn long_bytes(&self, update: &Update<'_>) -> Option<u32> {
        let Update::Put { key, value } = update else {
            return None;
        };
        let bytes = value.len() as u32;
        self.store.codecs.is_long(key.len(), bytes).then_some(bytes)
    }

    /// Pages in use now that writing the long values of `batch` may change, and giving back those
    /// that its keys had: no key's value can be longer than the longest that there ever was.
    pub(super) fn pages_changed_by_values(&self, batch: &[Update<'_>]) -> u64 {
        let mut longest = self.longest_value;
        let mut changed = 0;
        for bytes in batch.iter().filter_map(|update| self.long_bytes(update)) {
            longest = longest.max(bytes);
            changed += u64::from(self.store.file.pages_changed_to_write_long(bytes));
        }
        if longest > 0 {
            let freeing = u64::from(self.store.file.pages_changed_to_free_long(longest));
            changed += batch.len() as u64 * freeing;
        }
        changed
    }

    /// Copies a long value out of the entry at which `sorted` stands.
    pub(super) fn load_long(
        &mut self,
        sorted: &mut dyn Cursor,
        bytes: u32,
    ) -> Result<OverflowValue> {
        // Nothing else needs the scratch node until the value is written.
        copy_long(&mut self.store.file, sorted, bytes, &mut self.store.scratch)
    }
}
