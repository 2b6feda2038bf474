//! Lazy insert and delete (figures 2(a) and 2(b)): an update goes to the root's buffer and no
//! further.
//!
//! On a disk an entry with a value too long for a leaf does not wait in buffers: writing the value
//! takes pages anyway, and so every long value is named by exactly one leaf. An older entry for the
//! key may still wait in a buffer above the leaf: it is taken out first.

use device::{Cause, Page};
use store::OverflowValue;

use super::LaTree;
use super::nodes::damaged;
use super::policy::{Buffering, Decision};
use super::stream::Pending;
use index::Result;

impl LaTree<'_> {
    /// Puts `value`, or the delete of `key`, into the root's buffer; without buffers into its leaf,
    /// if nothing stands against that.
    pub(super) fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let entry = Pending { key, value };
        let bytes = self.buffers.form.bytes(&entry) as u32 + 1;
        if self.plan.buffering == Buffering::None {
            if self.buffers.pending != [0; 2] {
                // The tree had buffers when it was used before, or updates had to wait.
                self.empty_all(Cause::Flush)?;
            }
            // A leaf must not be newer than a buffer above it, and takes a step of the way back.
            if self.buffers.pending == [0; 2] && self.may_step() && self.has_room_for_one() {
                self.note_gone_down(bytes);
                return self.put_down(&entry, false);
            }
        }
        if core::mem::take(&mut self.room.is_direct) {
            return self.put_down(&entry, false);
        }
        let number = self.bare.root.buffer();
        let number = number.ok_or(damaged(Page(0), "the root has no buffer"))?;
        self.buffers.append(&mut self.bare.log, number, &entry, Cause::Flush)?;
        self.counters.put_estimated += self.estimator.entries(bytes);
        // In a replay, no checkpoint makes room for emptying again once a half was reclaimed.
        let is_full = self.buffers.at_update(&self.policy, number) == Decision::Empty;
        if is_full && !self.generation.is_waiting {
            self.buffers.list(number);
            self.empty_listed(Cause::Flush)?;
        }
        Ok(())
    }

    /// Puts `value`, if it is long, at its place; false if it is not.
    pub(super) fn put_long(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        if !self.limits.is_long(key.len(), value.len() as u64) {
            return Ok(false);
        }
        let Some(disk) = self.bare.log.disk_mut() else {
            return Ok(false);
        };
        let written = disk.file.write_long(value, Cause::Update);
        // What was written of it was given back.
        self.is_poisoned = !matches!(written, Err(store::Error::Full { .. }));
        let long = written?;
        self.adopt_value(key, long)?;
        Ok(true)
    }

    /// Lets `key` have a value whose pages are written already.
    pub(super) fn adopt_value(&mut self, key: &[u8], value: OverflowValue) -> Result<()> {
        let Some(disk) = self.bare.log.disk_mut() else {
            return Err(store::Error::AdoptedTwice.into());
        };
        disk.longest_value = disk.longest_value.max(value.bytes());
        self.take_out(key)?;
        self.put_down(&Pending { key, value: Some(&value.to_bytes()) }, true)
    }

    /// Takes every entry for `key` out of the buffers on its way.
    fn take_out(&mut self, key: &[u8]) -> Result<()> {
        for level in (0..self.bare.height).rev() {
            let Some(number) = self.bare.descend(level, key, Cause::Update)?.buffer() else {
                continue;
            };
            let found = self.buffers.find(&mut self.bare.log, number, key, &mut |_| ())?;
            if found.is_none() {
                continue;
            }
            self.take_off(number, Cause::Update)?;
            self.hand_back(level, Some(key), Cause::Update)?;
        }
        Ok(())
    }

    /// Makes the change of `entry` in its leaf, with nothing else that goes down.
    fn put_down(&mut self, entry: &Pending<'_>, is_long: bool) -> Result<()> {
        self.flight.take_single(entry, is_long);
        self.top.begin(self.bare.leaf_subtree_level());
        self.distribute_to_leaves(Cause::Update)?;
        self.rebalance_lean(Cause::Update)?;
        self.lower_root(Cause::Update)
    }
}
