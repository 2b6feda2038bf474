//! Inner nodes that are larger than any of the present height can be, and what they cost for good.
//!
//! A misfit falls apart when it is written next, so long as the root has room for what that may
//! come to. Where it has none, and above all where the tree is as high as it can be, a misfit stays
//! as it is: then every node below it takes one page more whenever it is moved, for what is above
//! stands in a page of its own. Where lengths vary, nodes are not copied into parts of another
//! size, so each level up to the misfit is one.
//!
//! So the highest trees of small pages, whose inner nodes hold three or four children, need a chip
//! of some times as many pages as they have; on a smaller one, the put is refused that would raise
//! the tree.

use super::layout::HEIGHT_MOST;

/// Misfits. The root is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Misfits {
    /// Those of the second lowest level, and their children.
    low: [u32; 2],
    /// Those of the levels above.
    deep: u32,
}

impl Misfits {
    pub(super) fn clear(&mut self) {
        *self = Misfits::default();
    }

    pub(super) fn add(&mut self, level: u8, children: u32) {
        if level == 1 {
            self.low = [self.low[0] + 1, self.low[1] + children];
        } else {
            self.deep += 1;
        }
    }

    pub(super) fn remove(&mut self, level: u8, children: u32) {
        if level == 1 {
            let [count, all] = self.low;
            self.low = [count.saturating_sub(1), all.saturating_sub(children)];
        } else {
            self.deep = self.deep.saturating_sub(1);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.low[0]) + u64::from(self.deep)
    }
}

/// What misfits cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub(super) child_bytes: u16,
    pub(super) is_variable: bool,
}

impl Price {
    /// Pages more that a node below a misfit of `level` takes, or such a misfit.
    pub(super) fn each(self, level: u8) -> u64 {
        if self.is_variable { u64::from(level) + 1 } else { 1 }
    }

    /// What a node costs that is below misfits of every level above the second lowest, in a tree
    /// of `height` levels that has any of them.
    pub(super) fn deepest(self, misfits: &Misfits, height: u8) -> u64 {
        let levels = if misfits.deep > 0 { 2..height.saturating_sub(1) } else { 0..0 };
        levels.map(|level| self.each(level)).sum()
    }

    /// The most that `misfits` may cost for good, in a tree of so many nodes and levels; those
    /// above the second lowest level `deep`, if that is known.
    pub(super) fn stay(
        self,
        misfits: &Misfits,
        (nodes, height): (u64, u8),
        deep: Option<u64>,
    ) -> u64 {
        let low = misfits.low.map(u64::from).iter().sum::<u64>() * self.each(1);
        let bound = nodes * self.deepest(misfits, height);
        low + deep.map_or(bound, |deep| deep.min(bound))
    }

    /// True if a root that holds so many bytes of children, and has room for so many more, takes
    /// all that `misfits` may fall into: no node falls apart before half of it was filled.
    pub(super) fn is_taken_by(self, misfits: &Misfits, (held, free): (u64, u64)) -> bool {
        let child = u64::from(self.child_bytes.max(1));
        let (children, slots) = (held / child, free / child);
        let parts = misfits.count() * u64::from(HEIGHT_MOST / 2);
        let spread = children + 2 * parts / (children + slots).max(1);
        parts.min(spread) <= slots
    }
}

#[cfg(test)]
mod tests {
    use super::{Misfits, Price};

    #[test]
    fn misfits_that_stay_cost_a_page_for_each_node_below_them() {
        let price = Price { child_bytes: 12, is_variable: false };
        let mut misfits = Misfits::default();
        assert_eq!(price.stay(&misfits, (100, 5), None), 0);
        misfits.add(1, 8);
        misfits.add(1, 5);
        assert_eq!(price.stay(&misfits, (100, 5), None), 15);
        misfits.add(3, 4);
        assert_eq!(price.stay(&misfits, (100, 5), None), 215);
        assert_eq!(price.stay(&misfits, (100, 5), Some(30)), 45);
        misfits.remove(1, 8);
        misfits.remove(3, 4);
        assert_eq!((misfits.count(), price.stay(&misfits, (100, 5), Some(30))), (1, 6));
    }

    #[test]
    fn a_root_takes_misfits_if_it_has_room_for_all_of_their_parts() {
        let price = Price { child_bytes: 10, is_variable: false };
        let mut misfits = Misfits::default();
        misfits.add(1, 8);
        assert!(price.is_taken_by(&misfits, (20, 40)));
        assert!(!price.is_taken_by(&misfits, (30, 30)));
        for _ in 0..100 {
            misfits.add(1, 8);
        }
        // Two children take 25 each before they fall apart, and so on.
        assert!(price.is_taken_by(&misfits, (20, 480)));
        assert!(!price.is_taken_by(&misfits, (20, 130)));
    }
}
