//! The adaptive page layout: what share of a page its leaf has, and how high the tree is.
//!
//! A pure state machine. At the end of each update, [`Policy::next`] is told what the root looks
//! like and how often nodes were split, and says how the pages after this one are divided.
//!
//! Algorithm 1 as it is printed contradicts the two sections that explain it, and it thrashes: it
//! enlarges the leaf after *every* update that leaves the root half empty, and raises the height
//! whenever the leaf can't shrink. Right after the height was raised the root is half empty and the
//! leaf at its largest, so the next update lowers the height, which fills the root, and so on. What
//! is built here is the algorithm as sections 4.2.2 and 4.2.3 say it:
//!
//! - after a put, if the root is full or `Split(I) / Split(L) > (1 - p1) / p1`, the leaf shrinks by
//!   delta; where that would take it below beta, the height is raised, and the leaf starts from
//!   alpha again, **only if the root is full**;
//! - **only after a delete**, if less than half of the root is used, the leaf grows by delta; where
//!   that would take it above alpha, the height is lowered, and the leaf starts from beta, **only
//!   if the root has one entry**.
//!
//! In short: p1 shrinks on inserts; the height is raised only where the root is full and
//! p1 - delta < beta; p1 grows only on deletes; the height is lowered only where the root has one
//! entry. A test plays both readings. With alpha = beta the layout is static.
//!
//! # What the paper leaves open
//! - A put counts as an insertion also where the key was there: resizing splits nodes either way.
//! - A node that is split counts once, in however many parts.
//! - Alpha is bounded by the height ("alpha cannot be increased beyond a certain value since the
//!   fanout of index nodes should be able to accommodate new entries", 5.3.2): to the share at
//!   which a root of the height below, full at beta, falls into fewer parts than a root holds.
//! - Where the root would be split (4.3.2: "the height grows"), which is a full root, the same rule
//!   holds before the height grows: smaller leaves are tried down to beta
//!   ([`Policy::after_overflow`]). That is so for deletes as well, whose resized nodes can
//!   overflow: it is the only case in which a delete shrinks the leaf.
//! - With both counts 0 the second condition does not hold.

use alloc::vec;
use alloc::vec::Vec;

use store::Width;

use super::layout::{
    CHILD_BYTES, Division, HEIGHT_MOST, Layout, Pages, SHARED_MOST, SLOT_BYTES_MOST, Share,
};
use index::bounds::EntryLimits;
use index::{Error, Result};

/// What an update was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A key was put.
    Put,
    /// A key was deleted.
    Delete,
    /// A page was rewritten because its block is reclaimed: the layout stays.
    Move,
}

/// How often nodes were split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Splits {
    /// `Split(I)`: inner nodes.
    pub(crate) inner: u32,
    /// `Split(L)`: leaves.
    pub(crate) leaf: u32,
}

impl Splits {
    /// Both counts with those of an update added. Where one would overflow, both are halved, which
    /// keeps their ratio.
    pub(crate) fn plus(self, more: Splits) -> Splits {
        let add = |count: Splits| {
            Some(Splits {
                inner: count.inner.checked_add(more.inner)?,
                leaf: count.leaf.checked_add(more.leaf)?,
            })
        };
        let half = Splits { inner: self.inner / 2, leaf: self.leaf / 2 };
        add(self).or_else(|| add(half)).unwrap_or(half)
    }

    /// The second condition of 4.2.2: `Split(I) / Split(L) > (1 - p1) / p1`.
    fn exceed(self, leaf: Share) -> bool {
        let (inner, leaves) = (u64::from(self.inner), u64::from(self.leaf));
        inner * u64::from(leaf.bits()) > leaves * u64::from(leaf.rest().bits())
    }
}

/// What the policy remembers; every page with a root keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// How the next page is divided.
    pub(crate) layout: Layout,
    /// Splits since the tree was made.
    pub(crate) splits: Splits,
}

/// The root as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootUse {
    pub(crate) entries: usize,
    /// `R.entry = R.max`: it has no room for one more child.
    pub(crate) is_full: bool,
    /// `R.entry < R.max / 2`.
    pub(crate) is_below_half: bool,
}

/// How pages are divided as the tree grows and shrinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pages: Pages,
    alpha: Share,
    /// The largest leaf share by height, the first for a height of 1; as many as levels share a
    /// page.
    most: Vec<Share>,
    /// The most levels of a tree.
    height_most: u8,
    /// Beta.
    least: Share,
    /// Delta.
    step: Share,
    key_bytes_most: usize,
}

/// Alpha, beta and delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) alpha: Share,
    pub(crate) beta: Share,
    pub(crate) delta: Share,
}

/// Where the leaf's share never changes.
pub(crate) const HALVES: Bounds =
    Bounds { alpha: Share::HALF, beta: Share::HALF, delta: Share::HALF };

impl Policy {
    /// The policy of mu-Tree, which has no choice but the height.
    pub(crate) fn halves(pages: Pages) -> Self {
        let most =
            heights(|height| pages.are_worth_sharing(Share::HALF, height).then_some(Share::HALF));
        Policy::new(pages, most, HALVES)
    }

    /// The policy of the B+-tree that wanders.
    pub(crate) fn whole(pages: Pages) -> Self {
        Policy::new(pages, vec![Share::HALF], HALVES)
    }

    /// The same for trees of at most `height` levels, but no fewer than share a page.
    pub(crate) fn up_to(mut self, height: u8) -> Self {
        self.height_most = height.clamp(self.pages.together, HEIGHT_MOST);
        self
    }

    /// The policy of mu*-Tree.
    ///
    /// # Errors
    /// Beta is above alpha.
    pub(crate) fn adaptive(pages: Pages, bounds: Bounds) -> Result<Self> {
        if bounds.beta > bounds.alpha {
            let expected = "it must be at most alpha".into();
            let value = alloc::format!("{}", bounds.beta);
            return Err(Error::BadParameter { name: "beta", value, expected });
        }
        let most = heights(|height| {
            let is_worth = pages.are_worth_sharing(bounds.beta, height);
            largest_leaf(&pages, bounds, height).filter(|_| is_worth)
        });
        Ok(Policy::new(pages, most, bounds))
    }

    /// Refuses bounds with which some node has no room for an entry of the shape, or for a key of
    /// a byte.
    pub(crate) fn check_room(&self) -> Result<()> {
        if self.has_room() {
            return Ok(());
        }
        if self.pages.division != Division::Even {
            let (bytes, what) = (self.pages.page_bytes(), "a page can't hold a tree's nodes");
            return Err(store::Error::NodeSize { bytes, what }.into());
        }
        let value = alloc::format!("{}", self.least);
        let hundredths = (1..100).filter_map(|parts| Share::from_ratio(f64::from(parts) / 100.0));
        let larger = hundredths.filter(|beta| *beta > self.least);
        let mut possible = larger.filter(|beta| {
            let bounds = Bounds { alpha: self.alpha.max(*beta), beta: *beta, ..self.bounds() };
            Policy::adaptive(self.pages, bounds).is_ok_and(|policy| policy.has_room())
        });
        let expected = match possible.next() {
            Some(beta) => alloc::format!(
                "a leaf of that share of a page has no room for entries: at least {:.2} has",
                beta.ratio()
            ),
            None => "no share of a page has room for entries".into(),
        };
        Err(Error::BadParameter { name: "beta", value, expected: expected.into() })
    }

    fn has_room(&self) -> bool {
        if self.pages.division != Division::Whole && self.pages.together < 2 {
            return false;
        }
        let limits = self.limits();
        let least = |width, varied| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => varied,
        };
        let key = least(self.pages.shape.key, 1);
        limits.key >= key && limits.entry >= key + least(self.pages.shape.value, 0)
    }

    fn new(mut pages: Pages, most: Vec<Share>, bounds: Bounds) -> Self {
        let Bounds { alpha, beta: least, delta: step } = bounds;
        pages.together = (most.len() as u8).max(1);
        let height_most = HEIGHT_MOST;
        let mut policy = Policy { pages, alpha, most, height_most, least, step, key_bytes_most: 0 };
        policy.key_bytes_most = match pages.shape.key {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => policy.limits().key,
        };
        policy
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Alpha, beta and delta.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { alpha: self.alpha, beta: self.least, delta: self.step }
    }

    /// The most levels that the tree can have.
    pub(crate) fn height_most(&self) -> u8 {
        self.height_most
    }

    /// The leaf shares of this height, the largest first.
    pub(crate) fn leaves(&self, height: u8) -> impl Iterator<Item = Share> + '_ {
        let shared = height.min(self.pages.together);
        let most = self.most.get(usize::from(shared).wrapping_sub(1)).copied();
        let smaller = core::iter::successors(most, |leaf| leaf.minus(self.step));
        let above = smaller.take_while(|leaf| *leaf > self.least);
        above.chain(most.map(|_| self.least))
    }

    /// Every height with the largest and with the smallest leaf.
    pub(crate) fn extremes(&self) -> impl Iterator<Item = Layout> + '_ {
        (1..=self.height_most).flat_map(|height| {
            let most = self.largest(height);
            [most, self.least].map(|leaf| self.pages.layout(leaf, height))
        })
    }

    /// The smallest leaf share of this height in which a leaf of so many bytes has room.
    pub(crate) fn share_for(&self, height: u8, bytes: usize) -> Option<Share> {
        let area = self.pages.area();
        self.leaves(height).take_while(|share| share.of(area) as usize >= bytes).last()
    }

    /// The page that has the most room for a node of `level` that stands alone in it, below a root.
    pub(crate) fn roomiest(&self, level: u8) -> Layout {
        let height = (level + 2).min(HEIGHT_MOST);
        let leaf = if level == 0 { self.largest(height) } else { self.least };
        self.pages.layout(leaf, height)
    }

    /// How long keys and values can be: as long as every node that the policy makes can take.
    pub(crate) fn limits(&self) -> EntryLimits {
        self.pages.entry_limits(self.extremes())
    }

    /// The most bytes that one more child takes in an inner node.
    pub(crate) fn child_bytes_most(&self) -> usize {
        let slot = if self.pages.is_variable() { SLOT_BYTES_MOST } else { 0 };
        self.key_bytes_most + usize::from(CHILD_BYTES) + slot
    }

    /// Entries that the tree holds where every node of its best layout is full.
    pub(crate) fn entries_most(&self) -> u64 {
        self.extremes().map(|layout| self.pages.entries_most(&layout)).max().unwrap_or(0)
    }

    /// What is said where the tree can't have another level.
    pub(crate) fn tree_full(&self) -> Error {
        Error::TreeFull {
            page_bytes: self.pages.page_bytes(),
            height: self.height_most(),
            entries: (!self.pages.is_variable()).then(|| self.entries_most()),
        }
    }

    /// How the tree is divided before its first update.
    pub(crate) fn first(&self) -> State {
        let leaf = self.most.first().copied().unwrap_or(Share::HALF);
        State { layout: self.pages.layout(leaf, 1), splits: Splits::default() }
    }

    /// How the pages after an update are divided, which was written in pages of `state`'s layout.
    pub(crate) fn next(&self, state: &State, change: Change, root: RootUse) -> Layout {
        let now = state.layout;
        if now.height == 1 {
            return now;
        }
        match (self.pages.division, change) {
            (_, Change::Move) => now,
            (Division::Halves | Division::Whole, _) if root.entries == 1 => {
                Layout { height: now.height - 1, ..now }
            }
            (Division::Halves | Division::Whole, _) => now,
            (Division::Even, Change::Put) => self.after_put(state, root),
            (Division::Even, Change::Delete) => self.after_delete(now, root),
        }
    }

    fn after_put(&self, state: &State, root: RootUse) -> Layout {
        let now = state.layout;
        // No leaf's share gives room to a root that has pages to itself.
        let is_full = root.is_full && now.height <= self.pages.together;
        if !is_full && !state.splits.exceed(now.leaf) {
            return now;
        }
        match now.leaf.minus(self.step).filter(|leaf| *leaf >= self.least) {
            Some(leaf) => Layout { leaf, ..now },
            None if is_full => self.raised(now).unwrap_or(now),
            None => now,
        }
    }

    fn after_delete(&self, now: Layout, root: RootUse) -> Layout {
        if !root.is_below_half {
            return now;
        }
        match now.leaf.plus(self.step).filter(|leaf| *leaf <= self.largest(now.height)) {
            Some(leaf) => Layout { leaf, ..now },
            None if root.entries == 1 => self.lowered(now),
            None => now,
        }
    }

    /// One level less, with the smallest leaf, unless the page is divided as before.
    fn lowered(&self, now: Layout) -> Layout {
        let is_shared = now.height <= self.pages.together;
        let leaf = if is_shared { self.least } else { now.leaf };
        Layout { leaf, height: now.height - 1, ..now }
    }

    fn largest(&self, height: u8) -> Share {
        let shared = height.min(self.pages.together);
        self.most.get(usize::from(shared).wrapping_sub(1)).copied().unwrap_or(self.least)
    }

    /// One level more, with the largest leaf, unless the page is divided as before; `None` if the
    /// tree can't be higher.
    pub(crate) fn raised(&self, layout: Layout) -> Option<Layout> {
        if layout.height >= self.height_most {
            return None;
        }
        let leaf = self.most.get(usize::from(layout.height)).copied().unwrap_or(layout.leaf);
        Some(Layout { leaf, height: layout.height + 1, ..layout })
    }

    /// The next layout to try for a change of a tree of `height` levels that `layout` has no room
    /// for, because its root would be split: a smaller leaf, by steps, for the height is to grow as
    /// late as possible; then a higher tree, and, if even that has no room, the smallest leaf at
    /// that height; `None` if none is left.
    pub(crate) fn after_overflow(&self, layout: Layout, height: u8) -> Option<Layout> {
        if layout.leaf <= self.least || layout.height > self.pages.together {
            return self.raised(layout);
        }
        let smaller = layout.leaf.minus(self.step).filter(|leaf| *leaf >= self.least);
        let leaf = smaller.filter(|_| layout.height <= height).unwrap_or(self.least);
        Some(Layout { leaf, ..layout })
    }
}

/// The largest leaf of each height, from 1 on, up to the first height that has none.
fn heights(largest: impl Fn(u8) -> Option<Share>) -> Vec<Share> {
    (1..=SHARED_MOST).map_while(largest).collect()
}

/// The largest leaf share up to alpha, by steps of delta, that leaves inner nodes of this height
/// enough room.
fn largest_leaf(pages: &Pages, bounds: Bounds, height: u8) -> Option<Share> {
    let leaf_shares = core::iter::successors(Some(bounds.alpha), |leaf| leaf.minus(bounds.delta));
    let at_least = leaf_shares.take_while(|leaf| *leaf > bounds.beta);
    at_least.chain([bounds.beta]).find(|leaf| {
        let layout = pages.layout(*leaf, height);
        // Raising the height must have succeeded with some leaf, or smallest one will have to do.
        let is_roomy = *leaf == bounds.beta || takes_old_root(pages, bounds.beta, &layout);
        pages.is_feasible(&layout) && is_roomy
    })
}

/// True if the parts into which the root of the height below falls, full with the smallest leaf,
/// leave room in the root of `layout`.
fn takes_old_root(pages: &Pages, beta: Share, layout: &Layout) -> bool {
    if layout.height < 3 {
        return true;
    }
    let (old_top, top) = (layout.height - 2, layout.height - 1);
    let old = pages.capacity(&pages.layout(beta, layout.height - 1), old_top);
    let part = pages.capacity(layout, old_top);
    part > 0 && (old + 1).div_ceil(part) < pages.capacity(layout, top)
}

#[cfg(test)]
mod tests;
