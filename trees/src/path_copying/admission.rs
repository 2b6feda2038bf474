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

use store::Reservation;

use super::census::Census;
use super::room::Room;

/// What room is counted for: a tree, what it takes, and how many updates wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now<'n> {
    pub(super) census: &'n Census,
    pub(super) room: Room<'n>,
    pub(super) waiting: u64,
    /// True if what was let in since the last checkpoint is made again by a replay.
    pub(super) is_replayed: bool,
}

impl Now<'_> {
    /// A reservation from the tree as it is, for which so many updates wait.
    fn reservation(&self, waiting: u64) -> Reservation {
        let demand = &self.census.demand;
        Reservation::new(demand, waiting, self.room.has_room(demand))
    }
}

/// What was let in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admission {
    /// From the tree as it was when it had grown so often.
    now: Reservation,
    growths: u64,
    /// From the tree of the last checkpoint.
    replay: Reservation,
    /// Puts that were let in and not made.
    pub(super) puts: u64,
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

    /// Keys are longer than what was promised was counted for. If a replay makes that again, the
    /// next checkpoint has to come first.
    pub(super) fn note_longer_keys(&mut self, is_replayed: bool) {
        self.now = Reservation::default();
        self.replay = Reservation::default();
        self.lacks_base = is_replayed;
    }

    /// From the tree as it is now, a replay begins, and nothing waits.
    pub(super) fn begin_replay(&mut self, now: &Now<'_>) {
        self.now = Reservation::default();
        self.lacks_base = false;
        if now.is_replayed {
            self.replay = now.reservation(0);
        }
    }

    /// Lets the puts of a batch in, if there is room for them.
    pub(super) fn admit(&mut self, puts: u64, now: &Now<'_>) -> bool {
        let is_let_in = self.takes(puts, now);
        self.puts = if is_let_in { puts } else { 0 };
        is_let_in
    }

    /// True if puts that were refused have room from the next checkpoint on.
    pub(super) fn has_room_after_checkpoint(&self, puts: u64) -> bool {
        self.replay.taken() > 0 && self.now.left() >= puts
    }

    /// Takes so many puts, if there is room for them.
    fn takes(&mut self, puts: u64, now: &Now<'_>) -> bool {
        if self.growths != now.census.growths {
            self.now = Reservation::default();
        }
        if self.now.left() < puts {
            self.now = now.reservation(now.waiting);
            self.growths = now.census.growths;
        }
        if self.now.left() < puts || now.is_replayed && self.replay.left() < puts {
            return false;
        }
        self.now.take(puts) && (!now.is_replayed || self.replay.take(puts))
    }
}

#[cfg(test)]
mod tests;
