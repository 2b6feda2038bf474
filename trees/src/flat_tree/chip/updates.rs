//! Updates on their way into the memory, and the work that is owed before.

use index::Result;
use store::Update;
use store::runs::{Kind, Which};

use super::ChipTree;

impl ChipTree<'_> {
    /// Does a step of what is owed; false if nothing is, or there is no room for it.
    pub(super) fn work(&mut self) -> Result<bool> {
        let Some(at) = self.due else {
            return Ok(false);
        };
        let has_room =
            self.has_room_to_merge(at) || self.may_erase() && self.make_room_to_merge(at)?;
        if !has_room {
            return Ok(false);
        }
        self.merge(at).map(|()| true)
    }

    /// Takes an update into the memory, or makes room there: then it is false.
    pub(super) fn take(&mut self, update: &Update<'_>) -> Result<bool> {
        let (key, kind, value): (_, _, &[u8]) = match update {
            Update::Put { key, value } => (*key, Kind::Put, value),
            Update::Delete { key } => (*key, Kind::Delete, &[]),
            Update::PutStored { .. } => return Err(store::Error::AdoptedTwice.into()),
        };
        if !self.memtable.takes(1, (key.len() + value.len()) as u64) && self.has_waiting_updates() {
            return self.flush_some().map(|()| false);
        }
        let before = self.memtable.held(Which::Active).0;
        if !self.memtable.put(key, kind, value) {
            self.is_poisoned = true;
            let what = "its memory of updates has no room for one";
            return Err(index::Error::Unsupported { what });
        }
        self.policy.mix.note_update();
        let at = self.directory.find(key);
        if let Some(part) = self.directory.parts.get_mut(at) {
            part.waiting += (self.memtable.held(Which::Active).0 - before) as u32;
        }
        Ok(true)
    }

    pub(super) fn has_waiting_updates(&self) -> bool {
        self.memtable.held(Which::Active).0 > 0
    }
}
