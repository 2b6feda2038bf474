//! Where the sectors of a log are: a hash table of a fixed size.

use alloc::boxed::Box;
use alloc::vec;

use device::Page;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    sector: u32,
    page: u32,
}

/// A table from sectors to pages, open and probed in order, at most half full.
///
/// Invariant: between the slot that a sector hashes to and the one that it stands in no slot is
/// empty.
pub(crate) struct Index {
    slots: Box<[Slot]>,
    shift: u32,
}

impl Index {
    /// A table for `most` sectors; 0 makes one that holds nothing.
    pub(crate) fn new(most: u32) -> Self {
        let slots = if most == 0 { 0 } else { most.next_power_of_two() as usize * 2 };
        let shift = 32 - slots.max(2).ilog2();
        Index { slots: vec![Slot { sector: NONE, page: 0 }; slots].into_boxed_slice(), shift }
    }

    /// Where `sector` is, if it is in the log.
    #[inline]
    pub(crate) fn get(&self, sector: u32) -> Option<Page> {
        let slot = self.slots.get(self.find(sector))?;
        (slot.sector == sector).then_some(Page(slot.page))
    }

    /// Says that `sector` is on `page` from now on.
    pub(crate) fn insert(&mut self, sector: u32, page: Page) {
        let at = self.find(sector);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { sector, page: page.0 };
        }
    }

    /// Says that `sector` is not in the log any more.
    pub(crate) fn remove(&mut self, sector: u32) {
        let mut hole = self.find(sector);
        if self.slots.get(hole).is_none_or(|slot| slot.sector != sector) {
            return;
        }
        // What stands behind closes up, unless it would come before the slot that it hashes to.
        let last = self.slots.len() - 1;
        let mut at = (hole + 1) & last;
        while self.slots[at].sector != NONE {
            let home = self.home(self.slots[at].sector);
            if at.wrapping_sub(home) & last >= at.wrapping_sub(hole) & last {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
            at = (at + 1) & last;
        }
        self.slots[hole].sector = NONE;
    }

    fn home(&self, sector: u32) -> usize {
        (sector.wrapping_mul(0x9E37_79B9) >> self.shift) as usize
    }

    /// The slot of `sector`, or the empty one where it would stand.
    fn find(&self, sector: u32) -> usize {
        let Some(last) = self.slots.len().checked_sub(1) else {
            return 0;
        };
        let mut at = self.home(sector);
        while self.slots[at].sector != sector && self.slots[at].sector != NONE {
            at = (at + 1) & last;
        }
        at
    }

    /// Bytes of memory that the table takes.
    pub(crate) fn memory(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use device::Page;

    use super::Index;

    #[test]
    fn the_table_holds_what_a_map_holds() {
        let mut index = Index::new(50);
        let mut map = BTreeMap::new();
        let mut state = 7_u32;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
            let sector = (state >> 16) % 90;
            if map.len() < 50 && state & 0x40 == 0 {
                index.insert(sector, Page(step));
                map.insert(sector, Page(step));
            } else {
                index.remove(sector);
                map.remove(&sector);
            }
            for sector in 0..90 {
                assert_eq!(index.get(sector), map.get(&sector).copied());
            }
        }
    }

    #[test]
    fn a_table_for_nothing_holds_nothing() {
        let mut index = Index::new(0);
        index.insert(3, Page(4));
        index.remove(3);
        assert_eq!((index.get(3), index.memory()), (None, 0));
    }
}
