//! Room: how large the tree may get, and what stays free while buffers are emptied.
//!
//! On raw flash generations share the good blocks that no name keeps, but for those that the log
//! keeps back, one that it begins beside them, and the ends of two blocks: the last of a generation
//! and the last of the next. One generation has to fit beside the next, so of their pages
//! `2 (N + 2 T + 3 W) + R` may be taken at most:
//!
//! - `N`: the nodes, and those that the puts which wait may add ([`Demand::growth`]);
//! - `T`: the tables, where they stand and where the next checkpoint writes them;
//! - `W`: the bytes that wait: where they stand, in a checkpoint, and where what is left of a
//!   buffer that is emptied leaf by leaf is put back;
//! - `R`: the reserve, of each half a sixteenth and at least two blocks. Half of it is for bytes
//!   that wait: so a delete is always taken when nothing else waits. The rest is for what emptying
//!   a leaf writes, and for blocks that get bad.
//!
//! Where a journal is replayed, this is counted from the last checkpoint, for a replay with other
//! memory may let anything wait that came since. What does not fit is refused until buffers were
//! emptied and a checkpoint was made; then one put alone is also taken if its leaf has room for it,
//! and goes there at once.
//!
//! # Invariants
//! - But for a new generation that is begun, the pages that are free suffice for one into which
//!   buffers are copied instead of emptied. Before a buffer is emptied, that is asked; and again
//!   before each leaf: what there is no room for is put back, and goes down behind a reclamation.
//!   What the log keeps back is no free page: nothing is added for it.
//! - Once all names are forgotten, which there is always room for, that is so again.
//! - Counting is arithmetic: nothing is written to see whether it fits.

use store::{Demand, Reservation};

use super::census::{Census, Part, WAITING};
use super::compaction::Compaction;

/// What the tree is made of, and what was taken since the base: the last checkpoint, or, where
/// nothing is replayed, any moment.
#[derive(Debug, Default)]
pub(super) struct Room {
    base: Demand,
    puts: Reservation,
    /// Bytes that wait, those of the base included, and how many more may come.
    waiting: u64,
    bytes_left: u64,
    /// Puts and bytes of the batch that was admitted last: a checkpoint may come before it.
    admitted: (u64, u64),
    /// True if the put that was admitted goes to its leaf at once.
    pub(super) is_direct: bool,
    pub(super) compaction: Compaction,
    /// What has to stay free while a buffer is emptied leaf by leaf.
    pub(super) part: Option<Part>,
}

impl Room {
    /// Takes room for an admitted batch of so many puts, and bytes of all; false if there is none.
    pub(super) fn take(&mut self, puts: u64, bytes: u64) -> bool {
        let is_taken = bytes <= self.bytes_left && self.puts.take(puts);
        if is_taken {
            self.admitted = (puts, bytes);
            self.bytes_left -= bytes;
            self.waiting += bytes;
        }
        is_taken
    }

    /// A batch is to be admitted: nothing of it is yet.
    pub(super) const fn begin_batch(&mut self) {
        (self.is_direct, self.admitted) = (false, (0, 0));
    }

    /// Counts anew what may come, from now on if this `is_base`: of the pages that are left half
    /// are for nodes and half for what waits, until they are counted again.
    pub(super) fn count(&mut self, now: &Census<'_>, is_base: bool) {
        let (mut base, mut taken, mut waiting) = (self.base, self.puts.taken(), self.waiting);
        if is_base {
            (base, taken, waiting) = (now.demand(), now.waiting(), now.bytes_waiting());
        }
        let (most, reserve) = now.capacity();
        let grown = now.pages_grown(&base, base.growth(taken));
        if now.chip.pinned_blocks > 0 && grown > most + reserve {
            // Names leave no room for a new generation.
            self.forget();
            return;
        }
        let waiting_pages = WAITING * now.waiting_pages(waiting);
        let free = most.saturating_sub(grown + waiting_pages);
        let for_waiting = (waiting_pages + free / 2).max(reserve / 2);
        let bytes_left = (for_waiting / WAITING * now.room_of_page()).saturating_sub(waiting);
        let fits = |growth| now.pages_grown(&base, growth) <= grown + free - free / 2;
        let puts = Reservation::new(&base, taken, fits);
        (self.base, self.puts, self.waiting, self.bytes_left) = (base, puts, waiting, bytes_left);
    }

    /// Counts room from a checkpoint on, that of a batch which is to come after it included.
    pub(super) fn begin(&mut self, now: &Census<'_>) {
        let (puts, bytes) = self.admitted;
        self.count(now, true);
        if !self.take(puts, bytes) {
            self.waiting += bytes;
            self.bytes_left = 0;
        }
    }

    pub(super) fn forget(&mut self) {
        let compaction = core::mem::take(&mut self.compaction);
        *self = Room { compaction, ..Room::default() };
    }
}
