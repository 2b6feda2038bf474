//! Room: pages and images that updates and the pool may need, before an update is let in.
//!
//! Whatever waits was let in as if it were put into full nodes only, in any order. The pool itself
//! takes pages at every checkpoint, and gives back those of the one before; room for all that it
//! can hold is always kept free.

use store::{Durability, OverflowValue, Recovery, Update};

use super::LazyUpdate;
use super::root::damaged;
use crate::btree::Puts;
use device::Cause;
use index::{Error, Result};
use store::node;

/// Leaves that a commit may add: with entries of one length those of two leaves, and with others
/// those that hold half a leaf more.
const LEAVES_ADDED: [u32; 2] = [3, 7];

/// Where the pool stands on the disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    pub(super) pool: Option<OverflowValue>,
    /// Of a pool that has no room in memory: the node and the place there of the next request that
    /// is to be made.
    pub(super) unread: Option<(u32, usize)>,
}

impl LazyUpdate<'_> {
    /// Puts that a replay of everything would make, or that wait where there is none.
    pub(super) fn puts_before(&self) -> Puts {
        match self.store.file.durability().has_journal() {
            true => self.puts,
            false => self.waiting.pool.puts,
        }
    }

    /// Bytes of the fullest pool.
    fn saved_bytes_most(&self) -> u32 {
        self.bytes_of(self.waiting.pool.requests.nodes_most)
    }

    fn bytes_of(&self, nodes: usize) -> u32 {
        u32::try_from(nodes * self.store.codecs.leaf.node_bytes()).unwrap_or(u32::MAX)
    }

    /// How many nodes the pool may have, with `puts` let in: all that there are, if there is room
    /// on the disk to write them, or those that it has. Where there is a journal it never gets less
    /// between two checkpoints: a replay fills as many.
    pub(super) fn nodes_for(&self, puts: &Puts) -> usize {
        let (all, now) = (self.waiting.division.nodes, self.waiting.pool.requests.nodes().count());
        // Twice: the pages of the last stay until a checkpoint has the next.
        let pool = self.pages_for(self.bytes_of(all)).saturating_mul(2);
        let pages = self.store.pages_needed(puts, &self.btree).saturating_add(pool);
        let saved = self.saved.pool.map_or(0, |pool| self.pages_for(pool.bytes()));
        let free = u64::from(self.store.file.pages_free()) + saved;
        let has_room = !self.is_tight && pages <= free;
        if has_room { all } else { now }
    }

    /// Pages that the pool may take at a checkpoint.
    pub(super) fn pages_of_pool(&self) -> u64 {
        self.pages_for(self.saved_bytes_most())
    }

    fn pages_for(&self, bytes: u32) -> u64 {
        match bytes {
            0 => 0,
            bytes => self.store.file.pages_for_long(bytes).into(),
        }
    }

    /// Bytes of puts that one commit takes.
    pub(super) fn commit_bytes(&self) -> usize {
        let node = self.store.codecs.leaf.node_bytes();
        if self.store.codecs.is_variable() { node / 2 } else { node }
    }

    /// Pages that one commit changes, and an update after it.
    fn pages_of_step(&self) -> u32 {
        let added = LEAVES_ADDED[usize::from(self.store.codecs.is_variable())];
        2 * self.btree.pages_of_one() + added * (1 + u32::from(self.btree.height()))
    }

    /// Pages that change when the pool is written at a checkpoint: of free lists, and where names
    /// keep what free pages hold, or pages share sectors, those that it takes.
    fn pages_of_saving(&self) -> u32 {
        let file = &self.store.file;
        let freed = self.saved.pool.map_or(0, |pool| pool.bytes());
        let is_written = !self.waiting.is_empty() || self.is_waiting_allowed;
        let bytes = match is_written && self.saved.unread.is_none() {
            true => self.saved_bytes_most(),
            false => 0,
        };
        if bytes == 0 && freed == 0 {
            return 0;
        }
        let reused = match file.checkpoints().is_empty() {
            true => 0,
            false => file.pages_for_long(bytes),
        };
        reused + file.pages_changed_to_write_long(bytes) + file.pages_changed_to_free_long(freed)
    }

    /// Decides whether the updates of a batch may wait: on a disk that is nearly full there may be
    /// no room for the images of a commit, but there is for those of an update.
    pub(super) fn allow_waiting(&mut self, updates: usize) {
        self.is_waiting_allowed = self.waiting.division.nodes > 0;
        if self.is_waiting_allowed {
            let pages = self.pages_changed_by(updates.max(1));
            let file = &self.store.file;
            self.is_waiting_allowed = match file.needs_checkpoint(&[], pages) {
                Ok(false) => true,
                // Else it is known only behind that checkpoint whether there is room.
                Ok(true) => file.may_grow() || file.takes_within(self.pages_changed_by(1)),
                Err(_) => false,
            };
        }
    }

    /// True if an update may wait. While checkpoints are kept by name none does: what changes then
    /// has its images taken before it is let in.
    pub(super) fn lets_wait(&self, key: usize, value: usize) -> bool {
        self.waiting.division.nodes > 0
            && self.waiting.pool.takes(key, value)
            && self.is_waiting_allowed
            && self.store.file.checkpoints().is_empty()
            && (!self.store.file.durability().has_journal() || self.has_images())
    }

    /// True if one commit at most may come before an update: no checkpoint falls between, for a
    /// replay takes an update from the journal whole.
    pub(super) fn is_bounded(&self) -> bool {
        self.store.file.durability() != Durability::None
    }

    /// Pages that `updates` updates may change, with a checkpoint after them.
    pub(super) fn pages_changed_by(&self, updates: usize) -> u32 {
        let is_bulk = self.is_waiting_allowed && self.saved.unread.is_none();
        let each = if is_bulk { self.pages_of_step() } else { self.btree.pages_of_one() };
        let steps = u64::from(each) * updates as u64;
        let pages = steps + u64::from(self.pages_of_saving());
        u32::try_from(pages).unwrap_or(u32::MAX)
    }

    /// True if there is room for the images of another commit, beside those of the batch.
    pub(super) fn has_images_beside_batch(&self) -> bool {
        let pages = self.pages_changed_by(1 + self.batch_updates);
        matches!(self.store.file.needs_checkpoint(&[], pages), Ok(false))
    }

    /// True if there is room for the images of another commit.
    pub(super) fn has_images(&self) -> bool {
        matches!(self.store.file.needs_checkpoint(&[], self.pages_changed_by(1)), Ok(false))
    }

    /// Writes the pool to pages of its own, and gives back those that it had.
    pub(super) fn save_pool(&mut self) -> Result<()> {
        let file = &mut self.store.file;
        if let Some(before) = self.saved.pool.take() {
            self.btree.is_poisoned = true;
            file.free_long(before, Cause::Checkpoint)?;
            self.btree.is_poisoned = false;
        }
        let requests = &self.waiting.pool.requests;
        if requests.len() == 0 {
            return Ok(());
        }
        let bytes = requests.nodes().count() * requests.codec().node_bytes();
        let mut writer = file.start_long(bytes as u32, Cause::Checkpoint)?;
        for node in requests.nodes() {
            if let Err(error) = file.append_long(&mut writer, node, Cause::Checkpoint) {
                // What failed first is told.
                let _ = file.abandon_long(writer);
                return Err(error.into());
            }
        }
        self.saved.pool = Some(file.finish_long(writer)?);
        Ok(())
    }

    /// Reads the pool from where it stands.
    pub(super) fn read_pool(&mut self, pool: OverflowValue) -> Result<()> {
        let waiting = &mut self.waiting;
        let node = waiting.pool.requests.codec().node_bytes() as u32;
        let count = (pool.bytes() / node) as usize;
        if !pool.bytes().is_multiple_of(node) {
            return Err(damaged().into());
        }
        if count > waiting.spare.len() {
            // The index had more memory before: these are made at once.
            self.saved.unread = Some((0, 0));
            return Ok(());
        }
        let codec = *waiting.pool.requests.codec();
        let file = &mut self.store.file;
        let mut last = alloc::vec::Vec::new();
        for place in 0..count as u32 {
            waiting.pool.requests.append_node(&mut waiting.spare, |into| -> Result<()> {
                file.read_long(pool, place * node, into, Cause::Recovery)?;
                let is_sound = node::level(into) == 0
                    && codec.validate(into).is_ok()
                    && node::count(into) > 0
                    && (place == 0 || codec.key(into, 0).compare(&last).is_gt());
                if !is_sound {
                    return Err(damaged().into());
                }
                codec.key(into, node::count(into) - 1).copy_to(&mut last);
                Ok(())
            })?;
        }
        waiting.pool.count_puts();
        self.check_pool().map_err(|()| Error::from(damaged()))
    }

    /// Makes the next request of a pool that has no room in memory.
    pub(super) fn make_next_unread(&mut self) -> Result<()> {
        let (Some(pool), Some((number, place))) = (self.saved.pool, self.saved.unread) else {
            return Ok(());
        };
        // A file that was closed gets its room back.
        self.store.file.has_pages(self.btree.pages_of_one().into())?;
        let codec = *self.waiting.pool.requests.codec();
        let node = &mut self.store.scratch;
        let bytes = codec.node_bytes() as u32;
        self.store.file.read_long(pool, number * bytes, node, Cause::Recovery)?;
        let is_sound = node::level(node) == 0 && codec.validate(node).is_ok();
        if !is_sound || place >= node::count(node) {
            return Err(damaged().into());
        }
        let [mut key, mut value] = [0, 3].map(|at| core::mem::take(&mut self.waiting.buffers[at]));
        codec.key(node, place).copy_to(&mut key);
        value.clear();
        value.extend_from_slice(codec.value(node, place).bytes());
        let is_last = place + 1 == node::count(node);
        let made = self.make_stored(&key, &value);
        (self.waiting.buffers[0], self.waiting.buffers[3]) = (key, value);
        made?;
        self.saved.unread = match is_last {
            false => Some((number, place + 1)),
            true => ((number + 1) * bytes < pool.bytes()).then_some((number + 1, 0)),
        };
        Ok(())
    }

    /// Makes a request, whose value has its kind in front.
    fn make_stored(&mut self, key: &[u8], stored: &[u8]) -> Result<()> {
        let update = request(key, stored).ok_or(damaged())?;
        self.limits().check_batch(&[update])?;
        let (key, value) = Self::split(&update)?;
        self.make_at_once(key, value)
    }

    /// Every request is one that could have been let in.
    fn check_pool(&self) -> core::result::Result<(), ()> {
        let (requests, limits) = (&self.waiting.pool.requests, self.limits());
        let (mut next, mut key) = (requests.first(), alloc::vec::Vec::new());
        while let Some(place) = next {
            let (bytes, stored) = requests.at(place).ok_or(())?;
            bytes.copy_to(&mut key);
            let update = request(&key, stored).ok_or(())?;
            limits.check_batch(&[update]).map_err(drop)?;
            next = requests.next(place);
        }
        Ok(())
    }
}

/// The request of `key`, whose value has its kind in front.
fn request<'r>(key: &'r [u8], stored: &'r [u8]) -> Option<Update<'r>> {
    let (kind, value) = stored.split_first()?;
    Some(match super::pool::Kind::from_byte(*kind)?.is_put() {
        true => Update::Put { key, value },
        false => Update::Delete { key },
    })
}

#[cfg(test)]
mod tests;
