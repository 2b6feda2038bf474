//! What a tree takes for certain before it is as high as it can be and its root is full, whatever
//! the keys are and in whatever order they come.
//!
//! # Where lengths are fixed
//! Let the tree never have more than `H` levels. A **smallest** leaf, and the inner nodes beside
//! it, are those of pages of `H` levels with the smallest leaf that the policy makes; `m` is half
//! of what such a node of a level holds, rounded up. A change is **sparing** if each part of a node
//! that falls apart has `m` entries or more, and if the parts of a leaf need no more smallest
//! leaves than the leaf itself. In mu-Tree every change is, and so is every change in pages with
//! the smallest leaf and no more than `H` levels. In mu*-Tree, whose inner nodes are smaller beside
//! a larger leaf, others are not: one is made only if what is promised fits the tree after it for
//! certain, too; if not, the change is made in pages with the smallest leaf instead
//! ([`super::Plan::make_sparing`]). So it is enough to say what sparing changes come to. They make
//! nodes only where nodes fall apart. Let `c` be how many a level gets in this way from now on, by
//! whatever updates and moves, `a` how many updates are to come, `e` the entries of a node, and `K`
//! the most that one has:
//!
//! - *Leaves.* Take for each leaf how many smallest leaves its entries fill, less one. An update
//!   raises the sum by one at the most, and a split lowers it by the leaves that it makes: so `c`
//!   is at most the sum and `a`. It is also at most `(sum of (e - m) + a) / m`, as below.
//! - *Inner nodes.* Take the sum of `e - m` over all nodes that have more than `m`. Each node that
//!   the level below gets raises it by one at the most, a split into `k` parts lowers it by
//!   `(k - 1) m`, and nothing else raises it: so `c` is at most that sum with the `c` of the level
//!   below, divided by `m`. The sum is at most `K - m` for each node, and at most the nodes that
//!   the level below has. Above the root each level counts as a node with one child.
//! - *The root* of the highest tree gets as many children as the level below it nodes. If it has
//!   room for them, the tree takes `a` updates. In mu*-Tree a quarter of it is left.
//!
//! How many nodes a level has follows from the entries of the root and `K`; and no page has two of
//! a level, so they are no more than live pages. What is deleted only lowers the sums. Where nodes
//! keep their size, none falls apart but for a child that it takes: so below the root no level gets
//! more nodes than the one below it, and each `H` up to the greatest height may be tried.
//!
//! # Where lengths vary and nodes name their own division
//! In mu*-Tree the same is said of the entries of inner nodes, whatever they are in bytes. Let no
//! key be longer than `l`; no separator is, then. `h` entries with keys of `l` bytes have room in
//! the smallest inner node, and `m` is half of `h`, rounded up. However keys share prefixes, `h`
//! entries always have room: a prefix stands once instead of in each. So no node falls apart that
//! has no more than `h`, and a change is sparing if
//!
//! - each part of an inner node that falls apart has `m` entries or more, and
//! - no leaf falls apart because it is moved.
//!
//! Any other is made only if what is promised fits after it. If not, it is made in pages with the
//! smallest leaf, where inner nodes fall into full parts. Each of these but the last has `h`
//! entries or more; if the last has fewer than `m`, it takes from the one before it what it lacks,
//! and both have `m`, for together they have more than `h`. These are as few parts as the entries
//! fill, so admission counts no page more for it. A leaf that is moved is put into one page of
//! another division instead, or stands alone, as large as it is ([`super::super::debts`]).
//!
//! So every leaf that is more comes from one of the `a` updates, deletes among them. One cuts a
//! leaf of any size into no more parts than [`worst`](super::worst) says, `s`: at most `a (s - 1)`
//! leaves are more. From there up all is as above, with the `h` and `m` of the greatest height, and
//! with as many entries in a node at the most as have room there with keys of a byte or none. The
//! root is full if its entries, each as long as can be, are more than three quarters of it. If a
//! longer key comes, what waits is written first, by the `h` that it was promised for, and then
//! nothing is promised yet.
//!
//! This is the worst case of all orders and all keys, not an estimate: long separators of few
//! children each, where every level is about to fall apart. So a tree one level below the greatest
//! height mostly takes nothing for certain, however short its separators are at present.
//!
//! # Where lengths vary and nodes keep their size
//! Room is counted in bytes. A node that falls apart leaves at least `m` in each part: half of what
//! the smallest node of its level holds, less what one entry may be long. So nodes that are there,
//! of at most `K` bytes each, and `a` bytes that are added come to at most `(K - m + a) / m` more
//! nodes for each that is touched. Every node of the tree as it stands may be full, but no more of
//! them are touched than there are nodes, nor more than updates. From the leaves up this bounds the
//! children that the root gets; above the root, where the tree becomes higher, the nodes of each
//! new level.
//!
//! The lower the tree stays, the larger are its smallest nodes. So each height is tried as a
//! **ceiling**: if a tree whose nodes are those of trees up to that height gets no root that has no
//! room there, it never becomes higher. The ceiling that takes most counts.
//!
//! A prefix that all keys of a node share counts only where it stands, so a key that does not share
//! it may cut a node worse than by half. Then what is counted is an estimate, and in a tree that
//! one update could make as high as it can be, the ceiling is its own height: a level is left where
//! the estimate fails.

use core::cmp::Ordering;
use core::ops::RangeInclusive;

use store::Width;
use store::node::{self, Codec};

use super::super::layout::{CHILD_BYTES, Division, HEIGHT_MOST, Layout, Pages, SLOT_BYTES_MOST};
use super::super::policy::Policy;
use super::worst::{Room, leaf_parts_most, room};

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

/// The least that a child takes where keys vary in length: a slot, a length, and its page.
const CHILD_LEAST: u64 = 4 + CHILD_BYTES as u64;

/// The most levels of any tree.
const LEVELS: usize = HEIGHT_MOST as usize;

/// What is in trees that are never above a height.
#[derive(Debug)]
struct Ceiling {
    height: u8,
    /// What nodes of each level hold that are no root, or the root of the highest tree.
    rooms: [Room; LEVELS],
    /// Where changes are sparing, what the smallest node of each level holds.
    smallest: [u64; LEVELS],
    /// The most parts into which an update cuts a leaf, where lengths vary.
    leaf_parts: u64,
    /// Units that the root of the highest tree may have.
    root: u64,
}

impl Ceiling {
    fn room(&self, level: u8) -> Room {
        self.rooms.get(usize::from(level)).copied().unwrap_or(Room { least: 0, most: 0 })
    }

    /// What the smallest node of `level` holds.
    fn smallest(&self, level: u8) -> u64 {
        self.smallest.get(usize::from(level)).copied().unwrap_or(1)
    }

    /// What each part has at the least of a node that sparingly falls apart.
    fn part(&self, level: u8) -> u64 {
        self.smallest(level).div_ceil(2)
    }
}

/// The nodes in pages of a height with the smallest leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smallest<'p> {
    pages: &'p Pages,
    layout: Layout,
    /// No key is longer; nothing if all are alike.
    key_bytes: usize,
}

impl<'p> Smallest<'p> {
    pub(super) fn up_to(policy: &'p Policy, height: u8, key_bytes: usize) -> Self {
        let pages = policy.pages();
        Smallest { pages, layout: pages.layout(policy.bounds().beta, height), key_bytes }
    }

    /// Entries that such a node holds; where lengths vary it is an inner one, and these are as long
    /// as can be.
    pub(super) fn holds(&self, level: u8) -> u64 {
        if !self.pages.is_variable() {
            return self.pages.capacity(&self.layout, level).max(1) as u64;
        }
        let codec = self.pages.codec(&self.layout, level);
        let holds = codec.map_or(0, |it| it.capacity(self.key_bytes, CHILD_BYTES.into()));
        holds.max(1) as u64
    }

    /// What each part has at the least of a node that sparingly falls apart.
    pub(super) fn part(&self, level: u8) -> u64 {
        self.holds(level).div_ceil(2)
    }

    /// True if a node of so many entries sparingly falls into so many parts, alike in size.
    pub(super) fn is_sparing(&self, level: u8, (entries, parts): (u64, u64)) -> bool {
        let (each, larger) = (entries / parts, entries % parts);
        let holds = self.holds(level);
        let filled = (parts - larger) * each.div_ceil(holds) + larger * (each + 1).div_ceil(holds);
        each >= self.part(level) && (level > 0 || filled <= entries.div_ceil(holds))
    }
}

/// Leaves that sparing changes make at the most, so many updates among them, where smallest leaves
/// hold `holds` and parts have `part`, of so many leaves of at most `most` entries.
fn leaves_made((holds, part): (u64, u64), (leaves, most): (u64, u64), updates: u64) -> u64 {
    let by_number = leaves.saturating_mul(most.div_ceil(holds).saturating_sub(1));
    let by_entries = leaves.saturating_mul(most.saturating_sub(part));
    by_number.saturating_add(updates).min(by_entries.saturating_add(updates) / part)
}

/// What trees of a policy take.
#[derive(Debug)]
pub(crate) struct Capacity<'p> {
    policy: &'p Policy,
    /// Units that a child takes at the most.
    child: u64,
}

impl<'p> Capacity<'p> {
    /// Children take so many bytes at the most, with a slot and two lengths, where lengths vary.
    pub(crate) fn new(policy: &'p Policy, child: usize) -> Self {
        let child = if policy.pages().is_variable() { child as u64 } else { 1 };
        Capacity { policy, child }
    }

    /// Units that a child takes at the most.
    pub(crate) fn child_units(&self) -> u64 {
        self.child
    }

    /// The longest key of a child, where lengths vary.
    fn key_bytes(&self) -> usize {
        (self.child as usize).saturating_sub(usize::from(CHILD_BYTES) + SLOT_BYTES_MOST)
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
        let rooms = [Room { least: 0, most: 0 }; LEVELS];
        let mut ceiling = Ceiling { height, rooms, smallest: [1; LEVELS], leaf_parts: 1, root: 0 };
        for (level, held) in (0..height).zip(&mut ceiling.rooms) {
            let is_below_root = level + 1 < height;
            let Room { least, most } = room(self.policy, height, level, is_below_root);
            *held = Room { least: least.saturating_sub(header), most: most.saturating_sub(header) };
        }
        // Each number of updates that is tried asks for all of them.
        if self.is_variable() && self.is_resized() {
            ceiling.leaf_parts = leaf_parts_most(self.policy);
        }
        if self.is_resized() || !self.is_variable() {
            let smallest = Smallest::up_to(self.policy, height, self.key_bytes());
            for (level, holds) in (0..height.saturating_sub(1)).zip(&mut ceiling.smallest) {
                *holds = smallest.holds(level);
            }
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
        self.ceilings(height).fold(0, |fit, ceiling| {
            self.units_below(&self.ceiling(ceiling), fit, (height, top), live)
        })
    }

    /// True if a tree of `height` levels takes so many units for certain, in so many live pages.
    pub(crate) fn is_room_for(&self, units: u64, (height, top): (u8, Top), live: u64) -> bool {
        let fits = |ceiling| self.fits(&self.ceiling(ceiling), units, (height, top), live);
        self.ceilings(height).any(fits)
    }

    /// The heights that a tree of `height` levels is never to be above.
    fn ceilings(&self, height: u8) -> RangeInclusive<u8> {
        let most = self.policy.height_most();
        match (self.is_variable(), self.is_resized()) {
            // What is sparing is so for the greatest height.
            (_, true) => most..=most,
            // A level is left where the estimate fails.
            (true, false) if height + 1 >= most => height..=most.saturating_sub(1),
            _ => height..=most,
        }
    }

    /// Units with which a tree never becomes higher than a ceiling, or `fit` if those are no more.
    fn units_below(&self, ceiling: &Ceiling, mut fit: u64, tree: (u8, Top), live: u64) -> u64 {
        let mut too_many = UNITS_MOST;
        if fit > 0 && !self.fits(ceiling, fit + 1, tree, live) {
            return fit;
        }
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
            above = above.saturating_mul(self.entries_most(ceiling, level));
        }
        nodes
    }

    /// Entries that a node of `level` has at the most that is no leaf.
    fn entries_most(&self, ceiling: &Ceiling, level: u8) -> u64 {
        let most = ceiling.room(level).most;
        match (self.is_variable(), self.policy.pages().shape.key) {
            (false, _) => most,
            (true, Width::Variable) => most / CHILD_LEAST,
            (true, Width::Fixed(bytes)) => most / u64::from(bytes + CHILD_BYTES),
        }
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

    fn fits(&self, ceiling: &Ceiling, units: u64, tree: (u8, Top), live: u64) -> bool {
        if self.is_variable() && !self.is_resized() {
            return self.fits_in_bytes(ceiling, units, tree, live);
        }
        self.fits_sparingly(ceiling, units, tree, live)
    }

    /// Leaves that sparing changes make at the most, so many updates among them.
    fn leaves_made(&self, ceiling: &Ceiling, leaves: u64, updates: u64) -> u64 {
        if self.is_variable() {
            return updates.saturating_mul(ceiling.leaf_parts - 1);
        }
        let leaf = (ceiling.smallest(0), ceiling.part(0));
        leaves_made(leaf, (leaves, ceiling.room(0).most), updates)
    }

    /// As [`Capacity::fits`] where changes are sparing.
    fn fits_sparingly(
        &self,
        ceiling: &Ceiling,
        updates: u64,
        (height, top): (u8, Top),
        live: u64,
    ) -> bool {
        let entries = u64::from(top.entries);
        let below_root = ceiling.height.saturating_sub(1);
        if below_root == 0 {
            return !self.is_variable() && entries.saturating_add(updates) <= ceiling.root;
        }
        let nodes = self.nodes_below(ceiling, (height, top), live);
        let mut made = match height {
            1 if !self.is_variable() => {
                leaves_made((ceiling.smallest(0), ceiling.part(0)), (1, entries), updates)
            }
            _ => self.leaves_made(ceiling, nodes[0], updates),
        };
        for level in 1..below_root {
            let part = ceiling.part(level);
            let spare = match (level + 1).cmp(&height) {
                Ordering::Greater => 0,
                Ordering::Equal => entries.saturating_sub(part),
                Ordering::Less => {
                    let each = self.entries_most(ceiling, level).saturating_sub(part);
                    let most = nodes[usize::from(level)].saturating_mul(each);
                    most.min(nodes[usize::from(level) - 1])
                }
            };
            let more = spare.saturating_add(made) / part;
            let is_one_each = !self.is_resized() && level + 1 < height;
            made = if is_one_each { more.min(made) } else { more };
        }
        let root = if height >= ceiling.height { entries } else { 1 };
        root.saturating_add(made).saturating_mul(self.child_units()) <= ceiling.root
    }

    /// As [`Capacity::fits`] where lengths vary and nodes keep their size.
    fn fits_in_bytes(
        &self,
        ceiling: &Ceiling,
        units: u64,
        (height, top): (u8, Top),
        live: u64,
    ) -> bool {
        let added = self.added_to_root(ceiling, (units / ENTRY_LEAST, units), (height, top), live);
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
