//! Room of a tree of runs, counted in bytes before it is promised.
//!
//! One inequality: `live + pending + dead + reserve <= capacity`. Whatever is merged comes out no
//! longer than it went in, but for ends of pages and footers, which are in the reserve. So nothing
//! is tried, and nothing has to be taken back.

/// Bytes of a tree of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// What there is in all.
    pub(super) capacity: u64,
    /// Of runs.
    pub(super) live: u64,
    /// Of updates that stand in no run yet, as they will stand there.
    pub(super) pending: u64,
    /// Of runs that are gone, but whose pages wait for a delta, a reader or a named checkpoint.
    pub(super) dead: u64,
    /// What has to stay free: outcomes of merges under way and of the largest to come, the journal,
    /// the snapshot.
    pub(super) reserve: u64,
}

impl Room {
    /// Bytes that updates may still take.
    #[must_use]
    pub(super) const fn left(&self) -> u64 {
        let taken = self.live.saturating_add(self.pending).saturating_add(self.dead);
        self.capacity.saturating_sub(taken.saturating_add(self.reserve))
    }

    /// Takes room for updates of so many bytes, if there is room for all.
    #[must_use]
    pub(super) const fn take(&mut self, bytes: u64) -> bool {
        let is_taken = bytes <= self.left();
        if is_taken {
            self.pending += bytes;
        }
        is_taken
    }

    /// Deletes free room in the end: they are taken from the reserve, down to its `part`th part.
    #[must_use]
    pub(super) fn take_delete(&mut self, bytes: u64, part: u64) -> bool {
        let kept = self.reserve.checked_div(part).unwrap_or(self.reserve);
        let is_taken = bytes <= Room { reserve: kept, ..*self }.left();
        if is_taken {
            self.pending += bytes;
        }
        is_taken
    }

    /// Updates of `pending` bytes, and runs of `read` bytes, became runs of `written` bytes.
    pub(super) const fn merged(&mut self, pending: u64, read: u64, written: u64) {
        self.pending = self.pending.saturating_sub(pending);
        self.live = self.live.saturating_sub(read).saturating_add(written);
        self.dead = self.dead.saturating_add(read);
    }

    /// Room of so many bytes of what is gone can be used again.
    pub(super) const fn freed(&mut self, bytes: u64) {
        self.dead = self.dead.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn what_is_taken_stays_below_the_capacity_and_comes_back_with_what_is_freed() {
        let mut room = Room { capacity: 100, reserve: 20, ..Room::default() };
        assert!(room.take(50) && !room.take(31) && room.take(30));
        assert_eq!(room.left(), 0);
        // A delete is taken from the reserve.
        assert!(!room.take(1) && room.take_delete(10, 2) && !room.take_delete(1, 2));
        room.merged(90, 0, 70);
        assert_eq!((room.live, room.pending, room.left()), (70, 0, 10));
        room.merged(0, 70, 40);
        assert_eq!((room.live, room.dead, room.left()), (40, 70, 0));
        room.freed(70);
        assert_eq!(room.left(), 40);
    }
}
