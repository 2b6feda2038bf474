//! Updates on their way into the memory, and the work that is owed before.
//!
//! A value too long for a page stands in pages of its own, and the entry tells where. What an entry
//! hid is found when both are merged: so the pages of long values are given back then, one value a
//! step.

use alloc::vec::Vec;

use device::Cause;
use index::bounds::entry_size;
use index::{Error, Meanwhile, Result};
use store::runs::{Kind, Source as _, Way, Which};
use store::{OverflowValue, Recovery, Update, Width};

use super::FlatTree;
use super::admission::More;
use super::policy::{Due, Why};
use super::runs::{Held, LONG};

impl FlatTree<'_> {
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        self.runs.forms.check_key(key)
    }

    pub(super) fn has_long_values(&self) -> bool {
        self.runs.forms.shape().value == Width::Variable
    }

    /// True if a value of `value` bytes does not fit a page beside a key of `key` bytes.
    pub(super) fn is_long(&self, key: usize, value: u64) -> bool {
        self.has_long_values() && key as u64 + value > self.runs.forms.entry_most() as u64
    }

    /// Refuses an update that the tree can't make.
    pub(super) fn check_update(&self, update: &Update<'_>) -> Result<()> {
        match update {
            Update::Put { key, value } => self.check_entry(key, value.len() as u64),
            Update::PutStored { key, value } => self.check_entry(key, value.bytes().into()),
            Update::Delete { key } => self.check_stored_key(key),
        }
    }

    /// Refuses an entry that the tree can't hold.
    pub(super) fn check_entry(&self, key: &[u8], value: u64) -> Result<()> {
        self.check_key(key)?;
        if let Width::Fixed(bytes) = self.runs.forms.shape().value {
            if value != u64::from(bytes) {
                return Err(Error::ValueLength { expected: bytes.into(), found: value });
            }
            return entry_size(key.len() + value as usize, self.runs.forms.entry_most());
        }
        self.check_stored_key(key)?;
        if u32::try_from(value).is_err() {
            return Err(Error::ValueTooLong { found: value, limit: u64::from(u32::MAX) });
        }
        Ok(())
    }

    /// Refuses a key that no entry can have: there is nothing to delete, and a replay of the
    /// journal has no room for it.
    fn check_stored_key(&self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let beside = match self.runs.forms.shape().value {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => OverflowValue::ENCODED_BYTES,
        };
        let limit = self.runs.forms.entry_most().saturating_sub(beside);
        if key.len() > limit {
            return Err(Error::KeyTooLong { found: key.len() as u64, limit: limit as u64 });
        }
        Ok(())
    }

    /// Does a step of what is owed; false if nothing is, or there is no room for it. A step may be
    /// to ask for a checkpoint that makes room, where `may_ask` says that someone listens.
    pub(super) fn work(&mut self, may_ask: bool) -> Result<bool> {
        self.lacks_room = false;
        if self.is_kept() {
            return Ok(false);
        }
        // Each is a step, with a checkpoint behind it where that is due.
        if may_ask && self.give_back_garbage()? {
            return Ok(true);
        }
        if self.due.is_some_and(|due| self.is_pressing(due, self.memtable.percent_used())) {
            return self.merge_due(may_ask, &mut |_| {});
        }
        Ok(false)
    }

    /// How full the memory is with a batch, in hundredths, and a little more.
    fn percent_with(&self, batch: &[Update<'_>]) -> u32 {
        let percent = 200 * More::of(self, batch).bytes() / self.memtable.memory().max(1) + 2;
        self.memtable.percent_used().saturating_add(u32::try_from(percent).unwrap_or(100)).min(100)
    }

    /// True if merging, or a flush, would come inside a batch.
    pub(super) fn is_due_before(&self, batch: &[Update<'_>]) -> bool {
        // Where keys are random, most leaves split at about the same time.
        let is_full = !self.memtable.has_room(2 * More::of(self, batch).bytes());
        let is_pressing = |due| self.is_pressing(due, self.percent_with(batch));
        !self.is_kept()
            && (is_full && self.has_waiting_updates() || self.due.is_some_and(is_pressing))
    }

    /// Does a step of that; false if there is no room for it.
    pub(super) fn prepare(
        &mut self,
        batch: &[Update<'_>],
        meanwhile: Meanwhile<'_, '_>,
    ) -> Result<bool> {
        self.lacks_room = false;
        let percent = self.percent_with(batch);
        if self.due.is_some_and(|due| self.is_pressing(due, percent)) {
            let is_made = self.merge_due(true, meanwhile)?;
            self.joined_at = self.joined_at.map(|at| at.max(percent));
            return Ok(is_made);
        }
        self.flush_waiting(!self.is_unrecorded, meanwhile).map(|()| true)
    }

    /// Merges what is due, or asks for a checkpoint that makes room for it.
    pub(super) fn merge_due(
        &mut self,
        may_ask: bool,
        meanwhile: Meanwhile<'_, '_>,
    ) -> Result<bool> {
        let Some(Due { at, why }) = self.due.filter(|_| !self.is_kept()) else {
            return Ok(false);
        };
        if self.has_room_to_merge(at) {
            if why == Why::Small {
                self.joined_at = Some(self.memtable.percent_used());
            }
            return self.merge(at, meanwhile).map(|()| true);
        }
        let has_journal = self.runs.store.file.durability().has_journal();
        self.lacks_room = may_ask && has_journal && index::Tree::waits_for_checkpoint(self);
        Ok(self.lacks_room)
    }

    /// Gives back the pages of a long value that nothing names; false if there is none.
    pub(super) fn give_back_garbage(&mut self) -> Result<bool> {
        let Some(value) = self.directory.garbage.pop() else {
            return Ok(false);
        };
        self.is_poisoned = true;
        self.note_freed();
        self.runs.store.file.free_long(value, Cause::Merge)?;
        self.is_poisoned = false;
        Ok(true)
    }

    /// Takes an update into the memory, or makes room there: then it is false. Who asks `may_wait`
    /// for a checkpoint between.
    pub(super) fn take(&mut self, update: &Update<'_>, may_wait: bool) -> Result<bool> {
        let key = update.key();
        let (kind, bytes) = match update {
            Update::Put { value, .. } if !self.is_long(key.len(), value.len() as u64) => {
                (Kind::Put, value.len())
            }
            Update::Put { .. } | Update::PutStored { .. } => (LONG, OverflowValue::ENCODED_BYTES),
            Update::Delete { .. } => (Kind::Delete, 0),
        };
        if !self.memtable.takes(1, (key.len() + bytes) as u64) && self.has_waiting_updates() {
            return self.flush_waiting(may_wait, &mut |_| {}).map(|()| false);
        }
        let long;
        let value: &[u8] = match update {
            Update::Put { value, .. } if kind == LONG => {
                let written = self.runs.store.file.write_long(value, Cause::Update)?;
                self.directory.longest = self.directory.longest.max(written.bytes());
                long = written.to_bytes();
                &long
            }
            Update::Put { value, .. } => value,
            Update::PutStored { value, .. } => {
                self.directory.longest = self.directory.longest.max(value.bytes());
                long = value.to_bytes();
                &long
            }
            Update::Delete { .. } => &[],
        };
        let before = self.memtable.get(Which::Active, key).and_then(|it| Held::waiting(it).long());
        if !self.memtable.put(key, kind, value) {
            self.is_poisoned = true;
            let what = "its memory of updates has no room for one";
            return Err(Error::Unsupported { what });
        }
        self.directory.garbage.extend(before);
        Ok(true)
    }

    pub(super) fn has_waiting_updates(&self) -> bool {
        self.memtable.held(Which::Active).0 > 0
    }

    /// The long values of updates that wait.
    pub(super) fn long_values_waiting(&self) -> Vec<OverflowValue> {
        let mut values = Vec::new();
        if !self.has_long_values() || !self.has_waiting_updates() {
            return values;
        }
        let mut cursor = self.memtable.cursor(Which::Active, [Vec::new(), Vec::new()]);
        while cursor.advance(Way::Up) {
            if let Some(entry) = cursor.head(Way::Up) {
                values.extend(Held::waiting((entry.kind, entry.value)).long());
            }
            cursor.step(Way::Up);
        }
        values
    }

    /// Pages in use now that writing the long values of `batch` may change.
    pub(super) fn pages_changed_by_values(&self, batch: &[Update<'_>]) -> u64 {
        let (file, mut changed) = (&self.runs.store.file, 0);
        for update in batch {
            if let Update::Put { key, value } = update
                && self.is_long(key.len(), value.len() as u64)
            {
                changed += u64::from(file.pages_changed_to_write_long(value.len() as u32));
            }
        }
        changed
    }
}
