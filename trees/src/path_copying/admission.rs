//! What is let in: as many puts as the tree has room for, whatever their keys are.
//!
//! How many these are is computed from the tree as it is and counted down ([`store::Reservation`]).
//! Where there is a journal it is counted from the last checkpoint, too, for a replay begins there,
//! with other memory, and makes the same puts in another order. A put for which nothing is left is
//! made at once, with nothing that waits, if it adds no node: where entries went, their nodes have
//! room, though the chip has none for more nodes.
//!
//! Where updates last, what they write has to be free before they are taken, for nothing can be
//! reclaimed between two checkpoints.
//!
//! # Invariants
//! - A put that is taken finds room in the tree, with all that wait; a delete always does.
//! - An update that is refused has changed nothing.
//! - A tree that a named checkpoint has left no room lets nothing wait: what is refused then is one
//!   update that was not recorded, and never a checkpoint.

use device::Cause;
use store::{Growth, Recovery, Reservation, Update};

use super::plan::Added;
use super::room::{adds_none, growth_of};
use super::{Durably, PathTree};
use index::Result;

/// The longest key is counted in steps of so many bytes: a longer one costs a checkpoint.
const KEY_STEP: usize = 16;

/// What was let in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admission {
    /// From the tree as it is.
    now: Reservation,
    /// From the tree of the last checkpoint.
    replay: Reservation,
    /// Puts that were let in and not made.
    puts: u64,
    /// True if longer keys came than the promises since the last checkpoint are for.
    pub(super) lacks_base: bool,
    /// Pages that were to be free when a batch was refused; 0 if it was not for that.
    pub(super) wanted: u64,
}

impl Admission {
    /// An update is made.
    pub(super) fn count_made(&mut self, is_put: bool) {
        self.puts = self.puts.saturating_sub(is_put.into());
    }

    /// The tree has more nodes than was counted.
    pub(super) fn note_splits(&mut self) {
        self.now = Reservation::default();
    }
}

impl PathTree<'_> {
    /// Refuses a batch that has no room.
    pub(super) fn admit_updates(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.admit_keys(batch);
        // With a journal room is made between the steps of a batch. But named checkpoints may keep
        // so much that nothing can be made free there.
        let log = &self.store.log;
        let is_made_within = log.durability().has_journal() && log.pinned_blocks() == 0;
        let needed =
            if is_made_within { self.reserve_pages() } else { self.pages_for(batch.len() as u64) };
        let is_short = u64::from(self.store.log.free_pages()) < needed;
        if is_short && self.durably != Durably::Not && !is_made_within {
            self.admission.wanted = needed;
            return Err(self.no_room());
        }
        self.admission.wanted = 0;
        if batch.len() > 1 && self.is_cramped() {
            return Err(self.no_room());
        }
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. })).count();
        self.admission.puts = 0;
        if self.takes(puts as u64) {
            self.admission.puts = puts as u64;
        } else if self.admission.replay.taken() > 0 && self.admission.now.left() >= puts as u64 {
            // From a checkpoint on there is room again, at less than reading the path of each put.
            return Err(self.no_room());
        } else if !self.fits_directly(batch)? {
            return Err(self.no_room());
        }
        if self.durably != Durably::Not {
            self.collect_lazily(needed)?;
        }
        Ok(())
    }

    /// Counts with keys as long as those of `batch`, where they vary. What was promised since the
    /// last checkpoint was for shorter ones: so the next has to come first.
    fn admit_keys(&mut self, batch: &[Update<'_>]) {
        let puts = batch.iter().filter(|update| !matches!(update, Update::Delete { .. }));
        let longest = puts.map(|put| put.key().len()).max().unwrap_or(0);
        if self.note_key(longest) {
            self.admission.now = Reservation::default();
            self.admission.replay = Reservation::default();
            self.admission.lacks_base = self.store.log.durability().has_journal();
        }
    }

    /// Notes that keys have so many bytes; true if all were shorter.
    pub(super) fn note_key(&mut self, bytes: usize) -> bool {
        let is_longer = bytes > self.longest_key && self.store.pages.counts_keys();
        if is_longer {
            self.longest_key = bytes.next_multiple_of(KEY_STEP).min(self.limits.key);
            self.growth = growth_of(&self.policy, self.longest_key);
        }
        is_longer
    }

    /// Pages that have to be free before so many updates are taken, beside those that wait.
    pub(super) fn pages_for(&self, updates: u64) -> u64 {
        // What one update writes is in the reserve.
        let more = (self.buffer.len() as u64 + updates).saturating_sub(1);
        self.written_most(more) + self.reserve_pages()
    }

    /// Takes so many puts, if there is room for them.
    fn takes(&mut self, puts: u64) -> bool {
        if self.admission.now.left() < puts {
            let waiting = self.buffer.len() as u64;
            self.admission.now = Reservation::new(&self.demand(), waiting, self.has_room());
        }
        let has_journal = self.store.log.durability().has_journal();
        if self.admission.now.left() < puts || has_journal && self.admission.replay.left() < puts {
            return false;
        }
        self.admission.now.take(puts) && (!has_journal || self.admission.replay.take(puts))
    }

    /// From the tree as it is now, a replay begins, and nothing waits.
    pub(super) fn begin_replay(&mut self) {
        self.admission.now = Reservation::default();
        self.admission.lacks_base = false;
        if self.store.log.durability().has_journal() {
            self.admission.replay = Reservation::new(&self.demand(), 0, self.has_room());
        }
    }

    /// True if what is planned, which adds these nodes, has room beside the puts that wait.
    pub(super) fn may_split(&self, added: &Added) -> bool {
        self.has_room_after(added, self.buffer.len() as u64 + self.admission.puts)
    }

    /// True if a batch is one put that adds no node, and nothing waits.
    fn fits_directly(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let [Update::Put { key, value }] = batch else {
            return Ok(false);
        };
        if self.buffer.len() > 0 {
            return Ok(false);
        }
        let Some(order) = self.order_of((key, Some(value)), Cause::Update)? else {
            return Ok(true);
        };
        Ok(self.plan_sparing(&order)?.is_some_and(|added| adds_none(&added)))
    }

    /// True if named checkpoints keep so much that not even the tree as it is has room for sure.
    fn is_cramped(&self) -> bool {
        self.store.log.pinned_blocks() > 0 && !self.has_room()(Growth::default())
    }

    /// True if an update may wait in memory. A replayed one was let in before: if that was for it
    /// adds no node to the tree as it is, this is found again.
    pub(super) fn lets_wait(&mut self, is_put: bool) -> bool {
        if self.is_cramped() {
            return false;
        }
        if is_put && self.admission.puts == 0 && self.takes(1) {
            self.admission.puts = 1;
        }
        !is_put || self.admission.puts > 0
    }
}
