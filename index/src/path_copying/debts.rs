//! What nodes would take that have become too large for the pages that are written now.
//!
//! Where pages name their own division ([`Division::Even`]), a node that was written earlier may
//! have no room in a page beside the nodes above it, which have grown since. Whoever moves it, or
//! deletes from it, has to write more than one page. What that takes has to be known when puts are
//! let in, for deletes and collection must never lack it. So the nodes are counted by the room that
//! they need. The counts are in memory alone: they follow every change, and after an opening, a
//! rollback or a load a walk over all nodes counts again, once the tree may fill its chip.
//!
//! # Invariants
//! Where a chip is nearly full, no node is split that need not be. A leaf that has no room beside
//! the nodes above it **stands alone** in a page of its own, as large as it was, and the nodes
//! above it follow in a page of theirs; so do inner nodes that are too large. So deletes and moves
//! make no node more, unless the tree has no more pages to find for it. Let there be
//!
//! - `L` leaves and `I` inner nodes; `m` of the latter are **misfits**: larger than any inner node
//!   of the present height can be;
//! - `q`, the largest share of a leaf beside which every inner node, but for misfits, has room;
//! - `D` leaves that are larger than `q` allows: these may have to stand alone;
//! - `x` live pages in which no leaf is; `y` is `I` where `D` or `m` is not 0, and otherwise `x`;
//! - `M`, what misfits cost: `3m` where the root has room for all that they may fall into, and no
//!   more than a page for each node below a misfit, for each misfit above it, and for each misfit
//!   ([`super::misfits`]).
//!
//! Then the tree never has more than `E = L + y + D + M + 1` pages to find, whatever is deleted
//! and moved:
//!
//! - Each live page has a lowest node of its own: so at most `I` have no leaf. More of them come
//!   only from leaves that stand alone.
//! - To move a leaf costs a page, and one more if it stands alone: all blocks together cost at
//!   most `L + y + D`. So while `E` and what has to be free are less than the pages of the chip,
//!   there is a block that costs less than it has pages; collection looks for the one that costs
//!   least.
//! - A misfit falls apart when it is written next: two parts, and one of its parent's, at the
//!   most. Where the root is full, or the tree would have more to find after it, it stays: it is
//!   the highest node of a page, and those above it follow in another. So a move takes a page more
//!   for each misfit on its way.
//! - A delete, a move, or a put that splits nothing raises neither `L` nor `I`, and does not
//!   lower `q`; only such a put raises `D`, by one.
//! - The page that is one more is the root's, where a batch ends with it alone.
//!
//! Admission keeps `E`, what one update writes in the worst case and the reserve of collection
//! below the pages of the chip. The share with which pages are divided next is not in it.

use alloc::boxed::Box;
use alloc::vec;

use device::Cause;

use store::node;

use super::PathTree;
use super::grid::{Grid, grid};
use super::layout::{Division, HEIGHT_MOST, Share};
use super::misfits::{Misfits, Price};
use super::policy::Policy;
use crate::Result;

/// Nodes by the share of a leaf at which they have room: leaves in it, inner nodes beside it.
///
/// Share number `n` is alpha less `n` times delta. A leaf of class 0 is larger than alpha allows,
/// one of class `c` has room in share `(c - 1) * step`, and one of the last class in any. An inner
/// node of class `c` has room beside share `c * step`; one of the last class is a misfit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    leaves: Box<[u32]>,
    inner: Box<[u32]>,
    /// The sums of both.
    all: [u32; 2],
    /// Leaves of the classes up to `largest`.
    alone: u32,
    /// The class of the largest inner node that is no misfit; 0 if there is none.
    largest: u8,
    misfits: Misfits,
}

/// The counts, and what is known of them.
#[derive(Debug)]
pub(super) struct Debts {
    grid: Grid,
    /// Without any classes where pages are not divided in this way.
    pub(super) counts: Counts,
    is_known: bool,
    /// Bytes that the root uses.
    root_used: u32,
    price: Price,
    /// Nodes that would be misfits in a tree that is one level higher.
    above: Misfits,
    /// What misfits above the second lowest level cost for good, or more.
    deep: u32,
    /// True while changes are tried that are taken back: they are not counted.
    pub(super) is_trial: bool,
    /// The tree nearly fills its chip: nothing is split that need not be.
    pub(super) is_filled: bool,
}

/// What a change does to the counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    pub(super) leaves: u64,
    pub(super) inner: u64,
    /// Live pages.
    pub(super) pages: u64,
    /// Leaves that may come to stand alone.
    pub(super) alone: u64,
    /// The class of the largest inner node that is made.
    pub(super) class: usize,
    /// Children that the root gets more.
    pub(super) root: u64,
    /// Misfits that fall apart.
    pub(super) fallen: u64,
    /// What these would cost for good, or less.
    pub(super) saved: u64,
    /// What misfits above the second lowest level come to if the tree is raised, if that was found.
    pub(super) deep: Option<u64>,
}

impl Counts {
    fn new(grid: &Grid) -> Self {
        let classes = grid.classes as usize;
        let empty = || vec![0; classes].into_boxed_slice();
        Counts { leaves: empty(), inner: empty(), ..Counts::default() }
    }

    fn clear(&mut self) {
        self.leaves.fill(0);
        self.inner.fill(0);
        (self.all, self.alone, self.largest) = ([0; 2], 0, 0);
        self.misfits.clear();
    }

    fn of(&mut self, level: u8) -> (&mut [u32], &mut u32) {
        let [leaves, inner] = &mut self.all;
        if level == 0 { (&mut self.leaves, leaves) } else { (&mut self.inner, inner) }
    }

    fn add(&mut self, level: u8, class: usize) {
        let (counts, all) = self.of(level);
        let Some(count) = counts.get_mut(class) else {
            return;
        };
        *count += 1;
        *all += 1;
        let largest = usize::from(self.largest);
        if level == 0 {
            self.alone += u32::from(class <= largest);
        } else if class > largest && class + 1 < self.inner.len() {
            self.alone += self.leaves[largest + 1..=class].iter().sum::<u32>();
            self.largest = class as u8;
        }
    }

    /// False if there is none to remove.
    fn remove(&mut self, level: u8, class: usize) -> bool {
        let (counts, all) = self.of(level);
        let Some(count) = counts.get_mut(class) else {
            return true;
        };
        if *count == 0 {
            return false;
        }
        *count -= 1;
        *all -= 1;
        let (is_last, largest) = (*count == 0, usize::from(self.largest));
        if level == 0 {
            self.alone -= u32::from(class <= largest);
        } else if is_last && class == largest {
            let below = self.inner[..class].iter().rposition(|count| *count > 0).unwrap_or(0);
            self.alone = self.leaves[..=below].iter().sum();
            self.largest = below as u8;
        }
        true
    }

    /// Leaves of the classes up to `class`.
    fn leaves_up_to(&self, class: usize) -> u64 {
        let largest = usize::from(self.largest);
        let (known, from) = if class >= largest { (self.alone, largest + 1) } else { (0, 0) };
        let more = self.leaves.get(from..(class + 1).min(self.leaves.len())).unwrap_or_default();
        u64::from(known) + more.iter().map(|count| u64::from(*count)).sum::<u64>()
    }
}

impl Debts {
    /// Bytes of memory that they take.
    pub(super) fn bytes_of(policy: &Policy) -> u64 {
        if policy.pages().division == Division::Even { grid(policy).bytes() } else { 0 }
    }

    /// No node is counted.
    pub(super) fn new(policy: &Policy) -> Self {
        let grid = grid(policy);
        let is_even = policy.pages().division == Division::Even;
        let counts = if is_even { Counts::new(&grid) } else { Counts::default() };
        Debts {
            grid,
            counts,
            is_known: false,
            root_used: 0,
            price: Price {
                child_bytes: u16::try_from(policy.child_bytes_most()).unwrap_or(u16::MAX),
                is_variable: policy.pages().is_variable(),
            },
            above: Misfits::default(),
            deep: 0,
            is_trial: false,
            is_filled: false,
        }
    }

    /// False where pages are not divided in this way: no node is counted then.
    pub(super) fn counts_any(&self) -> bool {
        !self.counts.leaves.is_empty()
    }

    pub(super) fn forget(&mut self) {
        self.is_known &= self.is_trial;
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// There is no node yet, and what is added is all.
    pub(super) fn begin(&mut self) {
        self.counts.clear();
        self.above.clear();
        self.deep = 0;
        self.is_known = self.counts_any();
    }

    /// Bytes that the root uses.
    pub(super) fn root_used(&self) -> u64 {
        u64::from(self.root_used)
    }

    fn class(&self, (level, height): (u8, u8), used: usize) -> usize {
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        if level == 0 { self.grid.leaf_class(used) } else { self.grid.inner_class(used, height) }
    }

    /// True for an inner node that uses so many bytes and is a misfit in a tree of `height` levels.
    pub(super) fn is_misfit_of(&self, (level, height): (u8, u8), used: usize) -> bool {
        let is_below_root = level > 0 && level + 1 < height;
        is_below_root && self.is_misfit(self.class((level, height), used))
    }

    /// True for one that would be in a tree that is one level higher; the root would be written
    /// again.
    fn is_misfit_above(&self, (level, height): (u8, u8), used: usize) -> bool {
        level + 1 < height && self.is_misfit_of((level, height + 1), used)
    }

    /// Counts a node of a level, in a tree of a height, that uses so many bytes and has so many
    /// entries.
    pub(super) fn add(&mut self, (level, height): (u8, u8), used: usize, entries: usize) {
        if self.is_trial || !self.counts_any() {
            return;
        }
        let class = self.class((level, height), used);
        self.counts.add(level, class);
        if level + 1 == height {
            self.root_used = u32::try_from(used).unwrap_or(u32::MAX);
        }
        let entries = entries as u32;
        if self.is_misfit_of((level, height), used) {
            self.counts.misfits.add(level, entries);
        }
        if self.is_misfit_above((level, height), used) {
            self.above.add(level, entries);
        }
    }

    /// Counts a node no more.
    pub(super) fn remove(&mut self, (level, height): (u8, u8), used: usize, entries: usize) {
        if self.is_trial || !self.counts_any() {
            return;
        }
        let class = self.class((level, height), used);
        if !self.counts.remove(level, class) {
            self.is_known = false;
        }
        let entries = entries as u32;
        if self.is_misfit_of((level, height), used) {
            self.counts.misfits.remove(level, entries);
        }
        if self.is_misfit_above((level, height), used) {
            self.above.remove(level, entries);
        }
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> u64 {
        self.counts.all.map(u64::from).iter().sum()
    }

    /// So many nodes came since there were `before`: each may be below misfits.
    pub(super) fn note_growth(&mut self, (before, height): (u64, u8)) {
        if !self.is_trial {
            let more = self.nodes().saturating_sub(before);
            let more = more * self.price.deepest(&self.counts.misfits, height);
            self.deep = self.deep.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        }
    }

    /// The tree's height is another: what inner nodes need is, too, and they were counted for the
    /// old one.
    pub(super) fn forget_inner(&mut self) {
        if self.counts.all[1] > 0 {
            self.forget();
        }
    }

    /// The class of inner nodes that all have room for, but misfits.
    pub(super) fn inner_class(&self, used: u64, height: u8) -> usize {
        self.grid.inner_class(u32::try_from(used).unwrap_or(u32::MAX), height)
    }

    /// True for the class of misfits.
    pub(super) fn is_misfit(&self, class: usize) -> bool {
        class + 1 >= self.grid.classes as usize
    }

    /// The class that makes every leaf that is larger than beta allows stand alone.
    pub(super) fn class_of_beta(&self) -> usize {
        self.grid.classes as usize - 2
    }

    /// The class of the largest inner node that is no misfit.
    fn largest_inner(&self) -> usize {
        usize::from(self.counts.largest)
    }

    fn alone(&self, inner: usize) -> u64 {
        self.counts.leaves_up_to(inner)
    }

    /// The largest share of a leaf beside which every inner node has room that is no misfit.
    pub(super) fn share_beside_all(&self) -> Option<Share> {
        let number = self.is_known.then(|| self.largest_inner() as u32)?;
        Share::from_bits(self.grid.share(number) as u16)
    }

    /// True if a leaf that uses so many bytes may have to stand alone.
    pub(super) fn may_stand_alone(&self, used: usize) -> bool {
        let all = if self.has_misfits() { self.class_of_beta() } else { self.largest_inner() };
        self.class((0, 1), used) <= all
    }

    /// True if some leaf may have to stand alone, or there are misfits.
    pub(super) fn has_any(&self) -> bool {
        self.has_misfits() || self.alone(self.largest_inner()) > 0
    }

    pub(super) fn has_misfits(&self) -> bool {
        self.counts.misfits.count() > 0
    }

    /// Pages more that a move from `level` on up takes for a misfit there, or above.
    pub(super) fn price_of_misfit(&self, level: u8) -> u64 {
        self.price.each(level)
    }

    /// What misfits come to in a tree of so many nodes, after a change.
    fn misfits_cost(&self, nodes: u64, height: u8, (more, is_raised): (&Growth, bool)) -> u64 {
        let misfits = if is_raised { &self.above } else { &self.counts.misfits };
        let count = misfits.count();
        if count == 0 {
            return 0;
        }
        let deep = if is_raised { more.deep } else { Some(self.deep.into()) };
        let after = height + u8::from(is_raised);
        let stay = self.price.stay(misfits, (nodes, after), deep).saturating_sub(more.saved);
        let room = u64::from(self.grid.inner_bytes(self.class_of_beta(), after));
        let child = u64::from(self.price.child_bytes);
        let new = more.root * child;
        let used = if is_raised { new.max(2 * child) } else { self.root_used() };
        let held = if is_raised { used } else { used + new };
        let root = (held, room.saturating_sub(held + node::HEADER_BYTES as u64));
        if self.price.is_taken_by(misfits, root) {
            stay.min(3 * count.saturating_sub(more.fallen))
        } else {
            stay
        }
    }

    /// The pages that the tree has to find at the most, `E`, of so many live ones, in a tree of
    /// `height` levels, after a change that may raise it.
    pub(super) fn pages(&self, live: u64, height: u8, (more, is_raised): (&Growth, bool)) -> u64 {
        let [leaves, inner] = self.counts.all.map(u64::from);
        let inner = inner + more.inner;
        let leaves = leaves + more.leaves;
        let misfits = self.misfits_cost(leaves + inner, height, (more, is_raised));
        // Each live page has a lowest node of its own.
        let without_leaf = (live + more.pages).saturating_sub(leaves).min(inner);
        let class = if misfits > 0 || is_raised {
            self.class_of_beta()
        } else {
            self.largest_inner().max(more.class.min(self.class_of_beta()))
        };
        let alone = self.alone(class) + more.alone;
        let above = if alone + misfits > 0 { inner } else { without_leaf };
        // A batch may end with a page in which nothing but the root is.
        leaves + above + alone + misfits + 1
    }
}

impl PathTree<'_> {
    /// Counts all nodes if they are not counted. Damage on the way leaves them unknown.
    pub(super) fn learn_debts(&mut self) -> Result<()> {
        if self.debts.is_known || self.ground.pages.division != Division::Even {
            return Ok(());
        }
        let counts = core::mem::take(&mut self.debts.counts);
        let mut debts = Debts { counts, is_trial: false, is_filled: false, ..self.debts };
        debts.begin();
        let height = self.height();
        let mut deep = [0; HEIGHT_MOST as usize];
        let walked =
            self.walk_pages((self.root, height), Cause::Reclamation, |tree, page, level| {
                let (used, entries) =
                    tree.ground.visit((page, level), Cause::Reclamation, |_, codec, node| {
                        (codec.used_bytes(node), node::count(node))
                    })?;
                debts.add((level, height), used, entries);
                let is_misfit = level > 1 && debts.is_misfit_of((level, height), used);
                deep[usize::from(level)] = if is_misfit { debts.price.each(level) } else { 0 };
                let more = deep[usize::from(level)..].iter().sum::<u64>();
                debts.deep = debts.deep.saturating_add(more as u32);
                Ok(())
            });
        debts.is_known = false;
        self.debts = debts;
        match walked {
            Err(crate::Error::Store(error)) if error.is_damage() => Ok(()),
            other => {
                self.debts.is_known = other.is_ok();
                other
            }
        }
    }

    /// What misfits above the second lowest level would cost for good in a tree that is one level
    /// higher: nodes are looked at for it, but no leaf.
    pub(super) fn deep_if_raised(&mut self) -> Result<u64> {
        let (height, mut sum) = (self.height(), 0);
        let mut deep = [0; HEIGHT_MOST as usize];
        self.walk_pages((self.root, height), Cause::Update, |tree, page, level| {
            deep[usize::from(level)] = 0;
            if level > 1 {
                let used = tree
                    .ground
                    .visit((page, level), Cause::Update, |_, codec, node| codec.used_bytes(node))?;
                if tree.debts.is_misfit_above((level, height), used) {
                    deep[usize::from(level)] = tree.debts.price.each(level);
                }
            }
            sum += deep[usize::from(level)..].iter().sum::<u64>();
            Ok(())
        })?;
        Ok(sum)
    }
}
