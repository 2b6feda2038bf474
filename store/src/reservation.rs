//! Room that is counted before an update is taken, so that nothing has to be proved afterwards.
//!
//! A tree says what it is made of ([`Demand`]) and what of it finds room (a function of its own of
//! the [`Growth`] that is to come). How many puts fit is computed once, at a *base*: the last
//! checkpoint, from which a replay begins, or, where nothing lasts, any moment. From then on a put
//! is a subtraction.
//!
//! # Invariants
//! - In whatever order the puts since the base are made, and however many of them wait in memory,
//!   the tree never has more nodes than the base has and [`Demand::growth`] says.
//! - Deletes and moves add no node; a split that no put asked for, as one that resizes a node, is
//!   made only if there is room for it beside the puts that were taken.

/// The most levels of a tree that room is counted for.
pub const LEVELS_MOST: usize = 16;

/// The nodes of a tree, as far as its room depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Nodes a level, leaves first.
    pub levels: [u32; LEVELS_MOST],
    /// Puts after which a leaf that was just split may be split again; at least 1.
    pub puts_a_leaf: u32,
    /// Children after which an inner node that was just split may be split again; at least 1.
    pub children_a_node: u32,
    /// Leaves that one put may add: 1, or 2 where a leaf falls into as few as hold its entries and
    /// their lengths vary.
    pub leaves_a_put: u32,
}

/// Nodes that puts may add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Leaves.
    pub leaves: u64,
    /// Nodes above them.
    pub inner: u64,
    /// Levels.
    pub levels: u8,
}

impl Demand {
    /// Leaves.
    #[must_use]
    pub const fn leaves(&self) -> u64 {
        self.levels[0] as u64
    }

    /// Nodes above the leaves.
    #[must_use]
    pub fn inner(&self) -> u64 {
        self.levels[1..].iter().map(|nodes| u64::from(*nodes)).sum()
    }

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        self.leaves() + self.inner()
    }

    /// The most nodes that `puts` puts may add, in any order.
    ///
    /// Every node may be full, and split at the first entry that comes. Its halves then take some
    /// puts, or children, before they split again.
    #[must_use]
    pub fn growth(&self, puts: u64) -> Growth {
        let mut splits = puts.saturating_mul(self.leaves_a_put.into());
        let mut growth = Growth::default();
        let top = self.levels.iter().rposition(|nodes| *nodes > 0).unwrap_or(0);
        for (level, nodes) in self.levels[..=top].iter().enumerate() {
            let refill = if level == 0 { self.puts_a_leaf } else { self.children_a_node };
            let again = splits / u64::from(refill.max(1));
            splits = splits.min(u64::from(*nodes).saturating_add(again));
            if level == 0 {
                growth.leaves = splits;
            } else {
                growth.inner = growth.inner.saturating_add(splits);
            }
        }
        // New roots, and what they fall into.
        while splits > 0 {
            splits /= u64::from(self.children_a_node.max(2));
            growth.inner = growth.inner.saturating_add(1 + splits);
            growth.levels += 1;
        }
        growth
    }
}

/// How many puts, or bytes of puts, were admitted since the base, and how many more have room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reservation {
    taken: u64,
    left: u64,
}

/// The most puts that are counted ahead.
const AHEAD_MOST: u64 = 1 << 32;

impl Reservation {
    /// A reservation from a tree as it is `now`, with so many puts that wait in memory; `fits` says
    /// whether there is room for a growth of it.
    #[must_use]
    pub fn new(now: &Demand, pending: u64, fits: impl Fn(Growth) -> bool) -> Self {
        let has_room = |puts: u64| fits(now.growth(pending.saturating_add(puts)));
        if !has_room(0) {
            return Reservation { taken: pending, left: 0 };
        }
        let (mut fit, mut beyond) = (0, 1);
        while beyond < AHEAD_MOST && has_room(beyond) {
            (fit, beyond) = (beyond, beyond * 2);
        }
        while beyond - fit > 1 {
            let middle = fit + (beyond - fit) / 2;
            if has_room(middle) {
                fit = middle;
            } else {
                beyond = middle;
            }
        }
        Reservation { taken: pending, left: fit }
    }

    /// A reservation of a tree that is bytes and no nodes, in which a put takes its own: of
    /// `capacity` bytes so many live, so many wait in memory, and so many are kept for moving them.
    /// What it counts are bytes then.
    #[must_use]
    pub const fn of_bytes(capacity: u64, (live, pending, reserve): (u64, u64, u64)) -> Self {
        let kept = live.saturating_add(pending).saturating_add(reserve);
        Reservation { taken: pending, left: capacity.saturating_sub(kept) }
    }

    /// Admits `puts` puts, if there is room for all of them.
    #[must_use]
    pub fn take(&mut self, puts: u64) -> bool {
        let Some(left) = self.left.checked_sub(puts) else {
            return false;
        };
        self.left = left;
        self.taken += puts;
        true
    }

    /// Puts that still have room.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Puts that were admitted since the base, or waited then.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, Growth, Reservation};

    fn demand(levels: &[u32]) -> Demand {
        let mut demand =
            Demand { puts_a_leaf: 8, children_a_node: 4, leaves_a_put: 1, ..Demand::default() };
        demand.levels[..levels.len()].copy_from_slice(levels);
        demand
    }

    #[test]
    fn a_put_may_split_every_node_on_its_way_and_the_root() {
        // A leaf, an inner node, the root, and a new root above its two parts.
        assert_eq!(demand(&[100, 10, 1]).growth(1), Growth { leaves: 1, inner: 3, levels: 1 });
        assert_eq!(demand(&[100, 10, 1]).growth(0), Growth::default());
    }

    #[test]
    fn many_puts_split_each_node_once_and_then_as_they_are_filled() {
        let growth = demand(&[100, 10, 1]).growth(800);
        assert_eq!(growth.leaves, 100 + 800 / 8);
        // 200 leaves more: each inner node once, and one for every four; and so on.
        assert_eq!(growth.inner, (10 + 50) + (1 + 15) + (1 + 4) + (1 + 1) + 1);
    }

    #[test]
    fn what_is_taken_never_exceeds_what_fits() {
        let fits = |growth: Growth| growth.leaves + growth.inner <= 40;
        let mut room = Reservation::new(&demand(&[100, 10, 1]), 0, fits);
        let all = room.left();
        assert!(all > 0 && fits(demand(&[100, 10, 1]).growth(all)));
        assert!(!fits(demand(&[100, 10, 1]).growth(all + 1)));
        assert!(room.take(all) && !room.take(1) && room.left() == 0);
        // Bytes are puts of one.
        let mut room = Reservation::of_bytes(100, (40, 10, 20));
        assert!(room.take(30) && !room.take(1) && room.taken() == 40);
        assert_eq!(Reservation::of_bytes(100, (90, 10, 20)).left(), 0);
        // What waits at the base counts as taken.
        assert_eq!(Reservation::new(&demand(&[100, 10, 1]), all, fits).left(), 0);
    }
}
