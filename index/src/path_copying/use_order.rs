//! The order in which the slots of a table were used: a list that is linked both ways through them.

/// No slot.
pub(super) const NONE: u16 = u16::MAX;

/// Neighbours of a slot in the order of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours {
    older: u16,
    newer: u16,
}

impl Neighbours {
    pub(super) const NONE: Neighbours = Neighbours { older: NONE, newer: NONE };
}

/// The slot used longest ago, and the one used last.
#[derive(Debug)]
pub(super) struct UseOrder {
    oldest: u16,
    newest: u16,
}

impl UseOrder {
    pub(super) const EMPTY: UseOrder = UseOrder { oldest: NONE, newest: NONE };

    /// The slot that was used longest ago.
    pub(super) fn oldest(&self) -> Option<u16> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Takes `slot` out of the order.
    pub(super) fn unlink<S: AsMut<Neighbours>>(&mut self, slots: &mut [S], slot: u16) {
        let Neighbours { older, newer } = *slots[usize::from(slot)].as_mut();
        match slots.get_mut(usize::from(older)) {
            Some(older) => older.as_mut().newer = newer,
            None => self.oldest = newer,
        }
        match slots.get_mut(usize::from(newer)) {
            Some(newer) => newer.as_mut().older = older,
            None => self.newest = older,
        }
    }

    /// Makes `slot`, which is not in the order, the one used last.
    pub(super) fn link_newest<S: AsMut<Neighbours>>(&mut self, slots: &mut [S], slot: u16) {
        let older = self.newest;
        *slots[usize::from(slot)].as_mut() = Neighbours { older, newer: NONE };
        match slots.get_mut(usize::from(older)) {
            Some(older) => older.as_mut().newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    /// Makes `slot` the one used last.
    pub(super) fn touch<S: AsMut<Neighbours>>(&mut self, slots: &mut [S], slot: u16) {
        if slot != self.newest {
            self.unlink(slots, slot);
            self.link_newest(slots, slot);
        }
    }
}
