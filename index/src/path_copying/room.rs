//! What the chip has room for: one inequality over the nodes of the tree.
//!
//! Every live page has a lowest node of its own, so there are never more of them than nodes, `w`.
//! Of `N` blocks of `B` pages that the tree can use, `E` are kept free. When fewer are, the other
//! `N - E` are in use, and if
//!
//! ```text
//! w <= (1 - s) ((N - E) B - W)        with s = (u + 1) / (E B)
//! ```
//!
//! the `E` emptiest of them hold `E (1 - s) B` live pages at the most. A sweep of these writes what
//! lives there, each of the `u` nodes above once, and the root: less than the `E B` pages that it
//! frees. So collection always gains something, whatever was put and deleted before: deletes and
//! moves add no node, and all that was taken finds room. `W` is what one change writes. `E` is
//! chosen so that `w` may be largest, near `sqrt((u + 1) N / B)`; no smaller reserve stands against
//! garbage that is spread evenly.
//!
//! Where what lives in a page is moved with its whole way in one page, nothing above is written of
//! its own, and `u` is 0. Then one page in [`DEAD_PART`] may be dead all the same: with fewer,
//! moving would cost much.
//!
//! Free blocks are counted whole, for a power cut closes the block that is being filled; and as
//! many as may still go bad are left alone by sweeps.

use device::Geometry;
use store::{Demand, Growth};

use super::PathTree;
use super::layout::{Division, HEIGHT_MOST, Layout};
use super::plan::Added;
use super::plan::worst::{change_pages, way_pages};
use super::policy::Policy;

/// Blocks that are used, but not by the tree's pages alone: the one that is being filled, and the
/// one that was when the log was opened.
pub(super) const BLOCKS_BEGUN: u32 = 2;

/// One in so many pages of a full tree is dead.
const DEAD_PART: u64 = 10;

/// Blocks that may go bad before a tree holds less: two, or one in so many.
const SPARE_PART: u32 = 64;

/// Blocks that are kept for those that go bad, of so many.
pub(super) fn spare_blocks(good: u32) -> u32 {
    (good / SPARE_PART).max(2)
}

/// So many parts more than two a root falls into, which is larger than any node below one.
pub(super) const PARTS_MORE: u64 = 2;

/// Nodes of each level, leaves first.
pub(super) type Nodes = [u32; HEIGHT_MOST as usize];

/// What a tree takes on a chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room<'p> {
    policy: &'p Policy,
    /// Blocks that the tree can use.
    blocks: u64,
    /// Pages of a block.
    block: u64,
    /// Levels of the tree.
    height: u8,
}

impl<'p> Room<'p> {
    /// What a tree of so many levels takes on `chip` with so many blocks that are neither bad nor
    /// kept, of which the page log needs `own`.
    pub(super) fn of(
        policy: &'p Policy,
        height: u8,
        chip: Geometry,
        (blocks, own): (u32, u32),
    ) -> Self {
        let blocks = blocks.saturating_sub(own + BLOCKS_BEGUN + spare_blocks(blocks)).into();
        Room { policy, blocks, block: chip.pages_per_block().into(), height }
    }

    /// Levels of the tree with so many more, as far as it can have them.
    fn height_after(&self, levels: u8) -> u8 {
        self.height.saturating_add(levels).min(self.policy.height_most())
    }

    /// Nodes that a sweep may write beside what lives in its victims.
    fn above(&self, inner: u64) -> u64 {
        let pages = self.policy.pages();
        let is_shared = pages.division == Division::Halves && self.height < pages.together;
        if is_shared { 0 } else { inner }
    }

    /// Blocks for what one change writes.
    fn change_blocks(&self) -> u64 {
        change_pages(self.policy, self.height).div_ceil(self.block)
    }

    /// Pages that may live if so many blocks are kept free for sweeps.
    fn lives_beside(&self, kept: u64, inner: u64) -> u64 {
        let used = self.blocks.saturating_sub(kept + self.change_blocks()) * self.block;
        let free = kept * self.block;
        let dead = (self.above(inner) + 1).min(free);
        let evenly = u128::from(used) * u128::from(free - dead) / u128::from(free.max(1));
        evenly.min(u128::from(used - used / DEAD_PART)) as u64
    }

    /// Blocks to be kept free for sweeps, so that most may live.
    fn kept_blocks(&self, inner: u64) -> u64 {
        let nodes = (self.above(inner) + 1).saturating_mul(self.blocks) / self.block;
        let less = nodes.isqrt().max(1);
        let is_less = self.lives_beside(less, inner) >= self.lives_beside(less + 1, inner);
        if is_less { less } else { less + 1 }
    }

    /// Blocks that are to be free before a change of a tree with so many inner nodes, beside those
    /// that are spare.
    pub(super) fn reserve(&self, inner: u64) -> u64 {
        let after = inner.saturating_add(self.height.into()).saturating_add(1);
        self.kept_blocks(after) + self.change_blocks()
    }

    /// True if a tree of so many nodes has room.
    pub(super) fn fits(&self, nodes: u64, inner: u64) -> bool {
        nodes <= self.lives_beside(self.kept_blocks(inner), inner)
    }

    /// True if a tree has room when it has grown so much.
    pub(super) fn fits_grown(&self, now: &Demand, growth: Growth) -> bool {
        let inner = growth.inner.saturating_add(PARTS_MORE * u64::from(growth.levels));
        let nodes = now.nodes().saturating_add(growth.leaves).saturating_add(inner);
        let higher = Room { height: self.height_after(growth.levels), ..*self };
        higher.fits(nodes, now.inner().saturating_add(inner))
    }

    /// Pages that moving what lives in a block takes at the most, whatever lives there.
    pub(super) fn pages_to_collect(&self) -> u64 {
        let (policy, height) = (self.policy, self.height);
        self.block * way_pages(policy, height) + change_pages(policy, height)
    }

    /// Pages of which fewer are free when collection in turn begins: the share `collect` of all,
    /// but before `needed` ones are touched, for only the emptiest blocks are emptied then, and
    /// what is never changed would never move. In a tree that fills its chip, so many can't be
    /// free.
    pub(super) fn free_wanted(&self, collect: f64, (live, needed): (u64, u64)) -> u64 {
        let most = needed + self.pages().saturating_sub(live + needed) / 4;
        let share = (self.pages() as f64 * collect) as u64;
        share.max(needed + 2 * self.pages_to_collect()).min(most)
    }

    /// Pages of the blocks that the tree can use.
    pub(super) fn pages(&self) -> u64 {
        self.blocks * self.block
    }
}

/// How nodes of trees that `policy` shapes grow. What falls apart is larger than it can be
/// anywhere: so it takes half of that before it does again.
pub(super) fn growth_of(policy: &Policy) -> Demand {
    let pages = policy.pages();
    if pages.is_variable() {
        return Demand { puts_a_leaf: 1, children_a_node: 1, leaves_a_put: 2, ..Demand::default() };
    }
    let half = |layout: Layout, level: u8| (pages.capacity(&layout, level) as u32 / 2).max(1);
    let smallest = pages.layout(policy.bounds().beta, 2);
    let inner = (1..HEIGHT_MOST - 1).map(|level| half(policy.roomiest(level), level)).min();
    Demand {
        puts_a_leaf: half(smallest, 0),
        children_a_node: inner.unwrap_or(1),
        leaves_a_put: 1,
        ..Demand::default()
    }
}

/// True if no level gets a node more.
pub(super) fn adds_none(added: &Added) -> bool {
    added.iter().all(|nodes| *nodes <= 0)
}

/// Nodes of each level when these came and went.
pub(super) fn nodes_after(nodes: &Nodes, added: &Added) -> Nodes {
    core::array::from_fn(|level| {
        u32::try_from(i64::from(nodes[level]) + added[level]).unwrap_or_default()
    })
}

impl PathTree<'_> {
    pub(super) fn room(&self) -> Room<'_> {
        let log = &self.ground.log;
        let blocks = log.good_blocks().saturating_sub(log.pinned_blocks());
        let blocks = (blocks, log.own_reserve());
        Room::of(&self.policy, self.height(), log.geometry(), blocks)
    }

    /// What the tree is now, as far as room matters.
    pub(super) fn demand(&self) -> Demand {
        self.demand_of(&self.nodes)
    }

    /// What a tree like it of so many nodes is.
    fn demand_of(&self, nodes: &Nodes) -> Demand {
        let mut demand = self.growth;
        demand.levels[..nodes.len()].copy_from_slice(nodes);
        demand
    }

    /// True if what is planned, which adds these nodes, has room, and what so many puts add then:
    /// with more inner nodes, or levels, there is room for fewer leaves.
    pub(super) fn has_room_after(&self, added: &Added, puts: u64) -> bool {
        let after = self.demand_of(&nodes_after(&self.nodes, added));
        let room = Room { height: self.plan.layout.height, ..self.room() };
        room.fits_grown(&after, after.growth(puts))
    }

    /// Whether the tree has room when it has grown so much.
    pub(super) fn has_room(&self) -> impl Fn(Growth) -> bool + '_ {
        let (demand, room) = (self.demand(), self.room());
        move |growth| room.fits_grown(&demand, growth)
    }

    /// Nodes above the leaves.
    pub(super) fn inner_nodes(&self) -> u64 {
        self.nodes[1..].iter().map(|nodes| u64::from(*nodes)).sum()
    }

    /// Blocks that are left alone by sweeps.
    pub(super) fn spare_blocks(&self) -> u32 {
        let log = &self.ground.log;
        spare_blocks(log.good_blocks().saturating_sub(log.pinned_blocks()))
    }

    /// Blocks that are to be free before a change.
    pub(super) fn reserve_blocks(&self) -> u64 {
        self.room().reserve(self.inner_nodes()) + u64::from(self.spare_blocks())
    }

    /// Pages of them.
    pub(super) fn reserve_pages(&self) -> u64 {
        self.reserve_blocks() * self.pages_of_a_block()
    }

    /// Pages that so many updates write at the most.
    pub(super) fn written_most(&self, updates: u64) -> u64 {
        let growth = self.demand().growth(updates);
        let height = self.room().height_after(growth.levels);
        let ways = updates.saturating_mul(way_pages(&self.policy, height));
        ways.saturating_add(growth.leaves).saturating_add(growth.inner)
    }

    pub(super) fn pages_of_a_block(&self) -> u64 {
        self.ground.log.geometry().pages_per_block().into()
    }
}

#[cfg(test)]
mod tests {
    use device::Geometry;
    use store::EntryShape;

    use super::super::model::{mu, star};
    use super::Room;

    #[test]
    fn more_live_the_fewer_nodes_a_sweep_writes_beside_them() {
        let chip = Geometry::new(2048, 64, 256).unwrap();
        let shape = EntryShape::fixed(4, 4);
        let most = |policy: &super::Policy, inner_part: u64| {
            let room = Room::of(policy, 3, chip, (256, 4));
            let fits = |nodes: &u64| room.fits(*nodes, nodes / inner_part);
            (1..chip.pages().into()).take_while(fits).last().unwrap() * 100
                / u64::from(chip.pages())
        };
        assert_eq!(most(&mu(2048, shape), 40), 85);
        let shares = [120, 40, 15].map(|part| most(&star(2048, shape), part));
        assert_eq!(shares, [79, 71, 60]);
    }

    #[test]
    fn a_sweep_of_the_reserve_gains_something_however_even_the_garbage_is() {
        let policy = star(2048, EntryShape::fixed(4, 4));
        for (block, blocks) in [(8, 40), (16, 100), (64, 32), (64, 1024)] {
            let chip = Geometry::new(2048, block, blocks).unwrap();
            let room = Room::of(&policy, 3, chip, (blocks, 3));
            for part in [4, 15, 40, 120] {
                let inner_of = |nodes: u64| nodes / part;
                let full = (1..).take_while(|nodes| room.fits(*nodes, inner_of(*nodes))).last();
                let Some(full) = full else { continue };
                let kept = room.kept_blocks(inner_of(full));
                // Every block that is in use has as much dead in it as any other.
                let used = room.blocks - kept - room.change_blocks();
                let lives = (full * kept).div_ceil(used);
                let written = lives + inner_of(full) + 1;
                assert!(written <= kept * room.block + kept, "{chip:?}, {part}: {written}");
            }
        }
    }
}
