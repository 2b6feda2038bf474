//! Lazy insert and delete (figures 2(a) and 2(b)): an update goes to the root's buffer and no
//! further. What an update may be is checked here as well.

use device::{Cause, Page};
use store::{Update, Width};

use super::LaTree;
use super::nodes::{CHILD_BYTES, damaged};
use super::policy::{Buffering, Decision};
use super::stream::Pending;
use index::{Error, Result, bounds::entry_size};

impl LaTree<'_> {
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

    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.plan.shape.key {
            // On a disk a key that no entry can have is just absent, as in all trees there.
            Width::Variable if self.log.is_disk() => Ok(()),
            Width::Fixed(bytes) if key.len() != usize::from(bytes) => {
                Err(Error::KeyLength { expected: u64::from(bytes), found: key.len() as u64 })
            }
            Width::Variable => {
                let limit = self.nodes.codecs.inner.entry_bytes_most().min(self.plan.entry_most);
                let limit = limit.saturating_sub(usize::from(CHILD_BYTES));
                if key.len() > limit {
                    let (found, limit) = (key.len() as u64, limit as u64);
                    return Err(Error::KeyTooLong { found, limit });
                }
                Ok(())
            }
            Width::Fixed(_) => Ok(()),
        }
    }

    pub(super) fn check_entry(&self, key: &[u8], value_bytes: usize) -> Result<()> {
        self.check_stored_key(key)?;
        match self.plan.shape.value {
            Width::Variable if self.log.is_disk() => {
                let (found, limit) = (value_bytes as u64, u64::from(u32::MAX));
                if found > limit {
                    return Err(Error::ValueTooLong { found, limit });
                }
                Ok(())
            }
            Width::Fixed(bytes) if value_bytes != usize::from(bytes) => {
                Err(Error::ValueLength { expected: u64::from(bytes), found: value_bytes as u64 })
            }
            _ => entry_size(key.len() + value_bytes, self.plan.entry_most),
        }
    }

    /// Puts `value`, or the delete of `key`, into the root's buffer; without buffers into its leaf,
    /// if nothing stands against that.
    pub(super) fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let entry = Pending { key, value };
        if self.plan.buffering == Buffering::None {
            if self.buffers.pending != [0; 2] {
                // The tree had buffers when it was used before, or updates had to wait.
                self.empty_all(Cause::Flush)?;
            }
            // A leaf must not be newer than a buffer above it, and takes a step of the way back.
            if self.buffers.pending == [0; 2] && self.may_step() && self.has_room_for_one() {
                self.note_gone_down(self.buffers.form.bytes(&entry) as u32 + 1);
                return self.put_down(key, value, false);
            }
        }
        if core::mem::take(&mut self.room.is_direct) {
            return self.put_down(key, value, false);
        }
        let number = self.root.buffer().ok_or(damaged(Page(0), "the root has no buffer"))?;
        self.buffers.append(&mut self.log, number, &entry, Cause::Flush)?;
        let bytes = self.buffers.form.bytes(&entry) as u32 + 1;
        self.counters.put_estimated += self.estimator.entries(bytes);
        // In a replay, no checkpoint makes room for emptying again once a half was reclaimed.
        let is_full = self.buffers.at_update(&self.policy, number) == Decision::Empty;
        if is_full && !self.generation.is_waiting {
            self.buffers.list(number);
            self.empty_listed(Cause::Flush)?;
        }
        Ok(())
    }
}
