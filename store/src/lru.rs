//! The order in which the slots of a table were used: a list that is linked both ways through them.

/// The number of a slot, in as many bytes as the table needs.
pub trait SlotNumber: Copy + Eq {
    /// No slot.
    const NONE: Self;

    /// The slot's place in the table.
    fn place(self) -> usize;
}

impl SlotNumber for u16 {
    const NONE: Self = u16::MAX;

    #[inline]
    fn place(self) -> usize {
        usize::from(self)
    }
}

impl SlotNumber for u32 {
    const NONE: Self = u32::MAX;

    #[inline]
    fn place(self) -> usize {
        self as usize
    }
}

/// Neighbours of a slot in the order of use.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<N> {
    older: N,
    newer: N,
}

impl<N: SlotNumber> Neighbours<N> {
    /// Those of a slot that is not in the order.
    pub const NONE: Neighbours<N> = Neighbours { older: N::NONE, newer: N::NONE };

    /// The slot that was used next later, or [`SlotNumber::NONE`].
    #[inline]
    #[must_use]
    pub const fn newer(&self) -> N {
        self.newer
    }
}

/// The slot used longest ago, and the one used last. The slots hold the list, so all calls are to
/// be given the same.
#[derive(Debug)]
pub struct Lru<N> {
    oldest: N,
    newest: N,
}

impl<N: SlotNumber> Lru<N> {
    /// No slot is in the order.
    pub const EMPTY: Lru<N> = Lru { oldest: N::NONE, newest: N::NONE };

    /// The slot that was used longest ago.
    #[inline]
    pub fn oldest(&self) -> Option<N> {
        (self.oldest != N::NONE).then_some(self.oldest)
    }

    /// Takes `slot` out of the order.
    #[inline]
    pub fn unlink<S: AsMut<Neighbours<N>>>(&mut self, slots: &mut [S], slot: N) {
        let Neighbours { older, newer } = *slots[slot.place()].as_mut();
        match slots.get_mut(older.place()) {
            Some(older) => older.as_mut().newer = newer,
            None => self.oldest = newer,
        }
        match slots.get_mut(newer.place()) {
            Some(newer) => newer.as_mut().older = older,
            None => self.newest = older,
        }
    }

    /// Makes `slot`, which is not in the order, the one used last.
    #[inline]
    pub fn link_newest<S: AsMut<Neighbours<N>>>(&mut self, slots: &mut [S], slot: N) {
        let older = self.newest;
        *slots[slot.place()].as_mut() = Neighbours { older, newer: N::NONE };
        match slots.get_mut(older.place()) {
            Some(older) => older.as_mut().newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    /// Makes `slot`, which is not in the order, the one used longest ago.
    pub fn link_oldest<S: AsMut<Neighbours<N>>>(&mut self, slots: &mut [S], slot: N) {
        let newer = self.oldest;
        *slots[slot.place()].as_mut() = Neighbours { older: N::NONE, newer };
        match slots.get_mut(newer.place()) {
            Some(newer) => newer.as_mut().older = slot,
            None => self.newest = slot,
        }
        self.oldest = slot;
    }

    /// Makes `slot` the one used last.
    #[inline]
    pub fn touch<S: AsMut<Neighbours<N>>>(&mut self, slots: &mut [S], slot: N) {
        if slot != self.newest {
            self.unlink(slots, slot);
            self.link_newest(slots, slot);
        }
    }
}
