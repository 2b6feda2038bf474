//! What a tree takes for certain before it is as high as it can be and its root is full, whatever
//! the keys are and in whatever order they come.
//!
//! Room is counted in **units**: where lengths are fixed an entry or a child is one, and where they
//! vary it takes as many as it has bytes. A node that falls apart leaves at least `m` units in each
//! part: half of what the smallest node of its level holds, rounded up, for there is one too many;
//! where lengths vary, rounded down, and less what one entry may be long. So nodes that are there,
//! of at most `K` units each, and `a` units that are added come to at most `(K - m + a) / m` more
//! nodes for each that is touched. Every node of the tree as it stands may be full, but no more of
//! them are touched than there are nodes, nor more than updates. Deletes take units away, and
//! nodes; they add nothing.
//!
//! From the leaves up this bounds the children that the root gets; above the root, where the tree
//! becomes higher, the nodes of each new level.
//!
//! The lower the tree stays, the larger are its smallest nodes. So each height is tried as a
//! **ceiling**: if a tree whose nodes are those of trees up to that height gets no root that has no
//! room there, it never becomes higher. The ceiling that takes most counts.
//!
//! Where lengths vary, a prefix that all keys of a node share counts only where it stands, so a key
//! that does not share it may cut a node worse than by half. Then what is counted is an estimate,
//! and in a tree that one update could make as high as it can be, the ceiling is its own height: a
//! level is left where the estimate fails.

use store::node::{self, Codec};

use super::super::layout::{CHILD_BYTES, Division, HEIGHT_MOST};
use super::super::policy::Policy;
use super::worst::{Room, room};

/// What the root of a tree holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Top {
    pub(crate) entries: u16,
    /// Bytes in use.
    pub(crate) bytes: u16,
}

impl Top {
    /// What `node` holds; no node is above 32 KiB.
    pub(crate) fn of(codec: &Codec, node: &[u8]) -> Self {
        Top { entries: node::count(node) as u16, bytes: codec.used_bytes(node) as u16 }
    }
}

/// As many units as are promised at once, at the most.
const UNITS_MOST: u64 = 1 << 31;

/// The least that an entry takes where lengths vary: a slot, and two lengths.
const ENTRY_LEAST: u64 = 6;

/// The most levels of any tree.
const LEVELS: usize = HEIGHT_MOST as usize;

/// What is in trees that are never above a height.
#[derive(Debug)]
struct Ceiling {
    height: u8,
    /// What nodes of each level hold that are no root, or the root of the highest tree.
    rooms: [Room; LEVELS],
    /// Units that the root of the highest tree may have.
    root: u64,
}

impl Ceiling {
    fn room(&self, level: u8) -> Room {
        self.rooms.get(usize::from(level)).copied().unwrap_or(Room { least: 0, most: 0 })
    }
}

/// What trees of a policy take.
#[derive(Debug)]
pub(crate) struct Capacity<'p> {
    policy: &'p Policy,
    /// Units that a child takes at the most.
    child: u64,
}

impl<'p> Capacity<'p> {
    /// Children take so many bytes at the most, where lengths vary.
    pub(crate) fn new(policy: &'p Policy, child: usize) -> Self {
        let child = if policy.pages().is_variable() { child as u64 } else { 1 };
        Capacity { policy, child }
    }

    /// Units that a child takes at the most.
    pub(crate) fn child_units(&self) -> u64 {
        self.child
    }

    fn is_variable(&self) -> bool {
        self.policy.pages().is_variable()
    }

    /// True if a node may fall apart because it is written again.
    fn is_resized(&self) -> bool {
        self.policy.pages().division == Division::Even
    }

    /// What nodes are in trees of at most `height` levels.
    fn ceiling(&self, height: u8) -> Ceiling {
        let header = if self.is_variable() { node::HEADER_BYTES as u64 } else { 0 };
        let mut ceiling = Ceiling { height, rooms: [Room { least: 0, most: 0 }; LEVELS], root: 0 };
        for (level, held) in (0..height).zip(&mut ceiling.rooms) {
            let is_below_root = level + 1 < height;
            let Room { least, most } = room(self.policy, height, level, is_below_root);
            *held = Room { least: least.saturating_sub(header), most: most.saturating_sub(header) };
        }
        // Where deletes and moves may split, too, they are left a quarter.
        let is_exact = !self.is_variable() && !self.is_resized();
        let room = self.room_of_root(height);
        ceiling.root = if is_exact { room } else { room * 3 / 4 };
        ceiling
    }

    /// Units that each part of a node has at the least.
    fn part_least(&self, ceiling: &Ceiling, level: u8) -> u64 {
        let least = ceiling.room(level).least;
        if !self.is_variable() {
            return least.div_ceil(2).max(1);
        }
        let entry = if level == 0 { least / 4 } else { self.child.min(least / 4) };
        (least / 2).saturating_sub(entry).max(1)
    }

    /// Units that a full root holds of a tree that can't become higher, in the layout in which it
    /// is largest.
    pub(crate) fn root_room(&self) -> u64 {
        self.room_of_root(self.policy.height_most())
    }

    fn room_of_root(&self, height: u8) -> u64 {
        let pages = self.policy.pages();
        let layouts = self.policy.extremes().filter(|layout| layout.height == height);
        let holds = layouts.map(|layout| {
            if self.is_variable() {
                let part = layout.part(pages.area(), height.saturating_sub(1));
                let bytes = part.map_or(0, |part| u64::from(part.bytes));
                return bytes.saturating_sub(node::HEADER_BYTES as u64);
            }
            pages.capacity(&layout, height.saturating_sub(1)) as u64
        });
        holds.max().unwrap_or(0)
    }

    /// Units that are in use of a root.
    pub(crate) fn root_used(&self, top: Top) -> u64 {
        if !self.is_variable() {
            return u64::from(top.entries);
        }
        u64::from(top.bytes).saturating_sub(node::HEADER_BYTES as u64)
    }

    /// Units that a tree of `height` levels takes for certain, in so many live pages.
    pub(crate) fn units_that_fit(&self, height: u8, top: Top, live: u64) -> u64 {
        let most = self.policy.height_most();
        // A level is left where the estimate fails.
        let is_next = self.is_variable() && height + 1 >= most;
        let highest = if is_next { most.saturating_sub(1) } else { most };
        let below = |ceiling| self.units_below(&self.ceiling(ceiling), (height, top), live);
        (height..=highest).map(below).max().unwrap_or(0)
    }

    /// Units with which a tree never becomes higher than a ceiling.
    fn units_below(&self, ceiling: &Ceiling, tree: (u8, Top), live: u64) -> u64 {
        let (mut fit, mut too_many) = (0, UNITS_MOST);
        while too_many - fit > 1 {
            let middle = u64::midpoint(fit, too_many);
            if self.fits(ceiling, middle, tree, live) {
                fit = middle;
            } else {
                too_many = middle;
            }
        }
        fit
    }

    /// The nodes of each level below the root, at the most, the lowest first.
    fn nodes_below(&self, ceiling: &Ceiling, (height, top): (u8, Top), live: u64) -> [u64; LEVELS] {
        let mut nodes = [0; LEVELS];
        let mut above = u64::from(top.entries);
        for level in (0..height.saturating_sub(1)).rev() {
            // No page has two nodes of a level.
            nodes[usize::from(level)] = above.min(live);
            let most = ceiling.room(level).most;
            let least = ENTRY_LEAST + u64::from(CHILD_BYTES);
            let entries = if self.is_variable() { most / least } else { most };
            above = above.saturating_mul(entries);
        }
        nodes
    }

    /// The most levels that a tree has after so many updates, of so many units each at the most.
    pub(crate) fn height_after(
        &self,
        (updates, each): (u64, u64),
        (height, top): (u8, Top),
        live: u64,
    ) -> u8 {
        let ceiling = self.ceiling(self.policy.height_most());
        let added = self.added_to_root(&ceiling, (updates, updates * each), (height, top), live);
        let mut root = self.root_used(top).saturating_add(added);
        let mut after = height;
        while after < self.policy.height_most() && root > self.room_of_root(after) {
            let parts = root.div_ceil(self.part_least(&ceiling, after.saturating_sub(1)));
            root = parts.saturating_mul(self.child);
            after += 1;
        }
        after
    }

    /// Units that the root gets by so many updates, of so many units in all.
    fn added_to_root(
        &self,
        ceiling: &Ceiling,
        (updates, units): (u64, u64),
        (height, top): (u8, Top),
        live: u64,
    ) -> u64 {
        let nodes = self.nodes_below(ceiling, (height, top), live);
        // What the level takes in, by number and in units.
        let (mut taken, mut added) = (updates, units);
        for level in 0..height.saturating_sub(1) {
            let (least, most) = (self.part_least(ceiling, level), ceiling.room(level).most);
            let writes = if self.is_resized() { updates } else { taken };
            let touched = writes.min(nodes[usize::from(level)]);
            let full = touched.saturating_mul(most.saturating_sub(least));
            let mut more = full.saturating_add(added) / least;
            if !self.is_resized() {
                // What is before a new key, and what is behind it, stays together.
                more = more.min(taken.saturating_mul(if self.is_variable() { 2 } else { 1 }));
            }
            (taken, added) = (more, more.saturating_mul(self.child));
        }
        added
    }

    fn fits(&self, ceiling: &Ceiling, units: u64, (height, top): (u8, Top), live: u64) -> bool {
        let updates = if self.is_variable() { units / ENTRY_LEAST } else { units };
        let added = self.added_to_root(ceiling, (updates, units), (height, top), live);
        let root = self.root_used(top).saturating_add(added);
        if height >= ceiling.height {
            return root <= ceiling.root;
        }
        let (mut level, mut below) = (height.saturating_sub(1), root);
        loop {
            let count = below.div_ceil(self.part_least(ceiling, level));
            level += 1;
            if count <= 1 {
                return true;
            }
            below = count.saturating_mul(self.child);
            if level + 1 >= ceiling.height {
                return below <= ceiling.root;
            }
        }
    }
}

#[cfg(test)]
mod tests;
