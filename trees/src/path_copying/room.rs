//! What the chip has room for: one inequality over the leaves of the tree.
//!
//! What moves writes all inner nodes above it again. Among leaves these copies would make every
//! block as full as any other, and moving would gain nothing. So a sweep that gains nothing
//! otherwise writes **all** inner nodes again, apart from leaves: into `U` blocks, enough for `u`
//! inner nodes. After one, nothing lives in any other block but leaves; after the next, nothing
//! lives in the `U` blocks of the one before. So each sweep but the first gains what is dead beside
//! leaves, however that is spread.
//!
//! Of `N` blocks of `B` pages that the tree can use, as many are free, or hold inner nodes apart,
//! as two sweeps need before anything is gained:
//!
//! ```text
//! R = 2 U + 1 + W        W: blocks for what one change writes
//! ```
//!
//! Those apart, `U` at the most, count as if they were free, for the next sweep makes them so. When
//! there are fewer, `N - R` others hold pages, beside the one that is being filled. A leaf is the
//! lowest node of its page, which lives as long as it does; so if
//!
//! ```text
//! leaves <= (1 - d) (N - R) B
//! ```
//!
//! one of them holds `(1 - d) B` leaves at the most, and emptying it gains `d B` pages: so
//! collection always gains something, whatever was put and deleted before. Deletes and moves add no
//! node, and all that was taken finds room. `d` ([`DEAD_PART`]) bounds what a gain costs. Sweeps of
//! another kind leave alone what stands apart, or the next one would find less room for it.
//!
//! Where what lives in a page is moved with its whole path in one page, nothing above is written of
//! its own, and `U` is 0.
//!
//! Free blocks are counted whole, for a power cut closes the block that is being filled; and as
//! many as may still go bad are left alone by sweeps.

use device::Geometry;
use store::{Demand, Growth};

use super::layout::{Division, HEIGHT_MOST};
use super::plan::worst::{PARTS_MORE, change_pages, inner_nodes_added, path_pages};
use super::policy::Policy;

/// One in so many pages beside the reserve is dead in a full tree, at least.
const DEAD_PART: u64 = 9;

/// Blocks that may go bad before a tree holds less: two, or one in so many.
const SPARE_PART: u32 = 64;

/// Leaves that puts which wait may add whether or not inner nodes could fall apart beside them.
const FEW_LEAVES: u64 = 16;

/// What a tree takes on a chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room<'p> {
    policy: &'p Policy,
    /// Blocks that the tree can use.
    blocks: u64,
    /// Pages of a block.
    block: u64,
    /// Levels of the tree, and the most that its memory has room for.
    pub(super) height: u8,
    pub(super) height_most: u8,
    /// Blocks that hold inner nodes apart.
    pub(super) apart: u64,
    /// Blocks that are left alone by sweeps.
    pub(super) spare_blocks: u32,
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
        let spare_blocks = (blocks / SPARE_PART).max(2);
        let blocks = blocks.saturating_sub(own + spare_blocks).into();
        let block = chip.pages_per_block().into();
        let height_most = HEIGHT_MOST;
        Room { policy, blocks, block, height, height_most, apart: 0, spare_blocks }
    }

    /// Levels of the tree with so many more, as far as it can have them.
    fn height_after(&self, levels: u8) -> u8 {
        self.height.saturating_add(levels).min(self.policy.height_most())
    }

    /// Blocks that a sweep writes inner nodes to that are apart, where there are so many of them,
    /// and those that one change may add.
    fn apart_blocks(&self, inner: u64) -> u64 {
        let pages = self.policy.pages();
        // A put may make it higher by one level.
        let is_shared = pages.division == Division::Halves && self.height < pages.together;
        let most = inner.saturating_add(inner_nodes_added(self.policy, self.height));
        if is_shared { 0 } else { most.div_ceil(self.block) }
    }

    /// Blocks for what one change writes.
    pub(super) fn change_blocks(&self) -> u64 {
        change_pages(self.policy, self.height).div_ceil(self.block)
    }

    /// Blocks that are to be free before a change of a tree with so many inner nodes, beside those
    /// that are spare, if none holds inner nodes apart.
    pub(super) fn reserve(&self, inner: u64) -> u64 {
        2 * self.apart_blocks(inner) + 1 + self.change_blocks()
    }

    /// Blocks that are to be free before a change of a tree with so many inner nodes.
    pub(super) fn reserve_blocks(&self, inner: u64) -> u64 {
        let apart = self.apart.min(self.apart_blocks(inner));
        self.reserve(inner) - apart + u64::from(self.spare_blocks)
    }

    /// Pages of them.
    pub(super) fn reserve_pages(&self, inner: u64) -> u64 {
        self.reserve_blocks(inner) * self.block
    }

    /// True if a tree of so many leaves and inner nodes has room.
    pub(super) fn fits(&self, leaves: u64, inner: u64) -> bool {
        let used = self.blocks.saturating_sub(self.reserve(inner)) * self.block;
        leaves <= used - used.div_ceil(DEAD_PART)
    }

    /// True if the tree's memory has room for the paths of one that has grown so much. An update
    /// adds one level at the most; of many no bound holds that would not refuse nearly all.
    pub(super) fn can_rise(&self, growth: Growth) -> bool {
        self.height + growth.levels.min(1) <= self.height_most
    }

    /// True if a tree has room when it has grown so much.
    pub(super) fn fits_grown(&self, now: &Demand, growth: Growth) -> bool {
        let more = PARTS_MORE * u64::from(growth.levels);
        let leaves = now.leaves().saturating_add(growth.leaves).saturating_add(more);
        let inner = now.inner().saturating_add(growth.inner).saturating_add(more);
        let higher = Room { height: self.height_after(growth.levels), ..*self };
        self.can_rise(growth) && higher.fits(leaves, inner)
    }

    /// Whether such a tree has room when it has grown so much. Where more than a few puts wait, all
    /// inner nodes may fall apart beside them, as they do once the height was raised: or what waits
    /// would decide how the tree grows.
    pub(super) fn has_room(&self, now: &Demand) -> impl Fn(Growth) -> bool {
        let is_resized = self.policy.pages().division == Division::Even;
        move |growth| {
            let is_many = is_resized && growth.leaves > FEW_LEAVES;
            let parts = if is_many { now.inner() } else { 0 };
            self.fits_grown(now, Growth { inner: growth.inner.saturating_add(parts), ..growth })
        }
    }

    /// Pages that so many updates of such a tree write at the most.
    pub(super) fn written_most(&self, now: &Demand, updates: u64) -> u64 {
        let growth = now.growth(updates);
        let paths = path_pages(self.policy, self.height_after(growth.levels));
        let paths = updates.saturating_mul(paths);
        paths.saturating_add(growth.leaves).saturating_add(growth.inner)
    }

    /// Pages that moving what lives in a block takes at the most, whatever lives there.
    pub(super) fn pages_to_collect(&self) -> u64 {
        let (policy, height) = (self.policy, self.height);
        self.block * path_pages(policy, height) + change_pages(policy, height)
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

#[cfg(test)]
mod tests;
