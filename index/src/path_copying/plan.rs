//! What an update writes, decided before anything is written.
//!
//! An update takes the nodes on the way from a leaf to the root, changes the leaf, fits each node
//! to the present layout, and writes them as one page. A node that does not fit falls into k parts
//! in k pages. Only numbers are decided here; [`super::assembly`] makes the bytes.
//!
//! Which page holds what, for a leaf that falls into three and a parent that falls into two:
//!
//! ```text
//!  page 0            page 1            page 2                 page 3
//!  +----------+      +----------+      +----------+-------+   +-------+------+
//!  | leaf a   |      | leaf b   |      | leaf c   | P,    |   | P,    | root |
//!  |          |      |          |      |          | c's   |   | other |      |
//!  +----------+      +----------+      +----------+-------+   +-------+------+
//! ```
//!
//! Where a node has a page to itself ([`Division::Whole`]), each level begins in the page behind
//! the last of the level below.
//!
//! Two nodes of one level never share a page. The parents stand in the last page with the last
//! part (4.3.2); where a parent falls into parts too, the one that points to the last part stands
//! with it, and the others take pages of their own behind it.
//!
//! # Invariants
//! - A page points only to itself and to pages before it: whatever was cut, nothing that is on
//!   flash points to something that is not.
//! - In a page, every node but the highest is a child of the one above it. So a page is live if
//!   and only if its lowest node is, which makes it one question for collection, and makes the
//!   number of live pages something that can be counted.
//! - The last page has the root.
//! - In an inner node that is written, the first key is the separator that its parent has for it.
//!   Where the first child of a node went, the node after it may begin above its separator, until
//!   it is written again.

pub(super) mod capacity;
mod cuts;
mod keys;
mod run;
pub(super) mod worst;

use alloc::vec;
use alloc::vec::Vec;

use store::Width;
use store::node::{self, Codec};

use super::layout::{Division, Layout, Pages};
use super::policy::{Policy, Splits};
use capacity::{Smallest, Top};
pub(super) use run::{Run, Source};

/// A node on the way, as it stands on flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'p> {
    pub(super) codec: Codec,
    pub(super) node: &'p [u8],
    /// The child that the way goes on with; in the lowest node, where the edit is made.
    pub(super) place: usize,
    /// True if no node below it is in its page.
    pub(super) is_lowest_of_page: bool,
}

/// What happens to the lowest node of the way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Edit<'e> {
    /// Nothing: its page is moved.
    Keep,
    /// A new entry before the step's place.
    Insert {
        /// Its key.
        key: &'e [u8],
        /// Its value.
        value: &'e [u8],
    },
    /// A new value for the entry at the step's place.
    Replace {
        /// The value.
        value: &'e [u8],
    },
    /// The entry at the step's place goes.
    Remove,
    /// Nothing, but it is a new node: its parent gets a child more, behind the way's.
    Append,
}

/// A change of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite<'r> {
    /// The way, from the lowest node that is rewritten up to the root.
    pub(super) steps: &'r [Step<'r>],
    /// The level of the first step.
    pub(super) base: u8,
    pub(super) edit: Edit<'r>,
}

impl<'r> Rewrite<'r> {
    /// Levels of the tree as it stands.
    pub(super) fn height(&self) -> u8 {
        self.base + self.steps.len() as u8
    }

    /// The node of `level`, unless that is above the root as it stands.
    pub(super) fn step(&self, level: u8) -> Option<&Step<'r>> {
        self.steps.get(usize::from(level.checked_sub(self.base)?))
    }

    /// True if `level` is above a new node, behind all others.
    fn appends_above(&self, level: u8) -> bool {
        matches!(self.edit, Edit::Append) && level > self.base
    }

    /// Pages that hold nothing live when this is written.
    pub(super) fn pages_given_up(&self) -> u32 {
        self.steps.iter().filter(|step| step.is_lowest_of_page).count() as u32
    }
}

/// One level of a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    pub(super) run: Run,
    /// Nodes that the level falls into; 0 if its node has no entries left.
    pub(super) parts: usize,
    /// True if the node keeps its size and takes one edit: its bytes are copied.
    pub(super) is_copied: bool,
    /// Where the first entries of its parts begin in the list of cuts.
    cuts: usize,
    /// The page of the part that stands with the last part of the level below.
    first_page: u32,
    /// That part.
    with_child: usize,
}

impl Level {
    /// The number of the page that `part` stands in.
    fn page(&self, part: usize) -> u32 {
        match part.cmp(&self.with_child) {
            core::cmp::Ordering::Equal => self.first_page,
            core::cmp::Ordering::Less => self.first_page + 1 + part as u32,
            core::cmp::Ordering::Greater => self.first_page + part as u32,
        }
    }

    fn last_page(&self) -> u32 {
        self.first_page + (self.parts as u32).saturating_sub(1)
    }

    /// The part in the last page.
    fn last_part(&self) -> usize {
        (0..self.parts).rev().find(|part| self.page(*part) == self.last_page()).unwrap_or(0)
    }
}

/// Room for a key, and, where lengths vary, for trying out nodes.
#[derive(Debug)]
pub(super) struct Scratch {
    /// A node that is filled to see what it holds; empty if lengths are fixed.
    node: Vec<u8>,
    /// What the node codec works in; empty if lengths are fixed.
    pub(super) other: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl Scratch {
    /// Room for trees that `policy` shapes.
    pub(super) fn new(policy: &Policy) -> Self {
        let bytes = if policy.pages().is_variable() { policy.pages().area() as usize } else { 0 };
        let key = Vec::with_capacity(policy.limits().key);
        Scratch { node: vec![0; bytes], other: vec![0; bytes], key }
    }

    fn is_fixed(&self) -> bool {
        self.node.is_empty()
    }
}

/// What a change writes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) layout: Layout,
    base: u8,
    /// From the base up to the new root.
    levels: Vec<Level>,
    /// The first entries of all parts but the first of each level, level by level.
    cuts: Vec<usize>,
    pub(super) pages: u32,
    /// Nodes that are split.
    pub(super) splits: Splits,
    /// Entries that each part of an inner node has at the least, while a change is planned
    /// sparingly where lengths vary: the smallest nodes below a root are alike.
    part_least: Option<u16>,
    /// True if no entry is left: an empty leaf is written.
    pub(super) is_empty: bool,
    /// The lowest key there is.
    pub(super) lowest_key: Vec<u8>,
}

impl Plan {
    /// Room for plans of trees that `policy` shapes.
    pub(super) fn new(policy: &Policy) -> Self {
        let pages = policy.pages();
        let lowest_key = match pages.shape.key {
            Width::Fixed(bytes) => vec![0; usize::from(bytes)],
            Width::Variable => Vec::new(),
        };
        Plan {
            layout: pages.lone_leaf(),
            base: 0,
            levels: Vec::with_capacity(usize::from(policy.height_most())),
            cuts: Vec::new(),
            pages: 0,
            splits: Splits::default(),
            part_least: None,
            is_empty: false,
            lowest_key,
        }
    }

    /// Plans `change` in pages of `layout`, or of the first that has room after it. False if the
    /// tree can't be as high as it would have to be; nothing is planned then.
    pub(super) fn make(
        &mut self,
        policy: &Policy,
        change: &Rewrite<'_>,
        layout: Layout,
        scratch: &mut Scratch,
    ) -> bool {
        let mut layouts = Some(layout);
        while let Some(layout) = layouts {
            if self.try_layout(policy.pages(), change, layout, scratch) {
                return true;
            }
            layouts = policy.after_overflow(layout, change.height());
        }
        false
    }

    /// Plans the move of nodes that stand in a page of `old` layout, so that they take no more
    /// pages than before if there is any layout of the present height that allows it; else as
    /// [`Plan::make`].
    pub(super) fn make_move(
        &mut self,
        policy: &Policy,
        change: &Rewrite<'_>,
        (present, old): (Layout, Layout),
        scratch: &mut Scratch,
    ) -> bool {
        let levels = u32::from(present.height - change.base.min(present.height));
        let least = if present.division == Division::Whole { levels } else { 1 };
        let old = Some(old.leaf).filter(|_| old.height == present.height);
        let shares = [Some(present.leaf), old].into_iter().flatten();
        for leaf in shares.chain(policy.leaves(present.height)) {
            let layout = Layout { leaf, ..present };
            if self.try_layout(policy.pages(), change, layout, scratch) && self.pages <= least {
                return true;
            }
        }
        self.make(policy, change, present, scratch)
    }

    /// Plans `change` in pages with the smallest leaf, of a tree that is as low as it can be: what
    /// falls apart is as large then as ever. No key is longer than so many bytes. False if the tree
    /// can't be as high as it would have to be.
    pub(super) fn make_sparing(
        &mut self,
        (policy, key_bytes): (&Policy, usize),
        change: &Rewrite<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        if policy.pages().is_variable() {
            let smallest = Smallest::up_to(policy, policy.height_most(), key_bytes);
            self.part_least = Some(u16::try_from(smallest.part(1)).unwrap_or(u16::MAX));
        }
        let is_made = (change.height()..=policy.height_most()).any(|height| {
            let layout = policy.pages().layout(policy.bounds().beta, height);
            self.try_layout(policy.pages(), change, layout, scratch)
        });
        self.part_least = None;
        is_made
    }

    /// True if what falls apart does so sparingly ([`capacity`]), in trees of any height with keys
    /// of so many bytes at the most.
    pub(super) fn is_sparing(&self, policy: &Policy, key_bytes: usize) -> bool {
        if self.splits == Splits::default() {
            return true;
        }
        let smallest = Smallest::up_to(policy, policy.height_most(), key_bytes);
        let is_variable = policy.pages().is_variable();
        let mut levels = (self.base..).zip(&self.levels);
        levels.all(|(number, level)| match level.parts {
            0 | 1 => true,
            parts if is_variable => {
                let least = smallest.part(number);
                number == 0 || (0..parts).all(|part| self.part(number, part).len() as u64 >= least)
            }
            parts => smallest.is_sparing(number, (level.run.len() as u64, parts as u64)),
        })
    }

    /// True if the leaf falls apart.
    pub(super) fn splits_leaf(&self) -> bool {
        self.splits.leaf > 0
    }

    /// What the new root holds, but for its bytes.
    pub(super) fn top(&self) -> Top {
        let entries = self.levels.last().map_or(0, |level| level.run.len());
        Top { entries: entries as u16, bytes: 0 }
    }

    /// Plans `change` in pages of `layout`; false if the root would have to be split.
    pub(super) fn try_layout(
        &mut self,
        pages: &Pages,
        change: &Rewrite<'_>,
        layout: Layout,
        scratch: &mut Scratch,
    ) -> bool {
        self.layout = layout;
        self.base = change.base;
        self.levels.clear();
        self.cuts.clear();
        self.pages = 1;
        self.splits = Splits::default();
        self.is_empty = false;
        for level in change.base..layout.height {
            let Some(codec) = pages.codec(&layout, level) else {
                return false;
            };
            if !self.add_level(change, level, &codec, scratch) {
                return false;
            }
        }
        self.finish(pages, change)
    }

    fn add_level(
        &mut self,
        change: &Rewrite<'_>,
        level: u8,
        codec: &Codec,
        scratch: &mut Scratch,
    ) -> bool {
        let run = self.run(change, level);
        let cuts = self.cuts.len();
        let is_copied = self.is_copied(change, level, codec, &run);
        self.levels.push(Level { run, is_copied, cuts, ..Level::default() });
        let Some(parts) = self.cut(change, level, codec, scratch) else {
            return false;
        };
        self.place(level, parts);
        if parts > 1 && level == 0 {
            self.splits.leaf += 1;
        } else if parts > 1 {
            self.splits.inner += 1;
        }
        true
    }

    /// Nodes that go, for they have no entries left.
    pub(super) fn nodes_emptied(&self) -> u64 {
        self.levels.iter().filter(|level| level.parts == 0).count() as u64
    }

    /// True if the new root is one node and nothing is above it; then the plan is complete.
    fn finish(&mut self, pages: &Pages, change: &Rewrite<'_>) -> bool {
        let Some(top) = self.levels.last().copied() else {
            return false;
        };
        let above = change.steps.get(self.levels.len()..).unwrap_or_default();
        if above.iter().any(|step| node::count(step.node) != 1) {
            return false;
        }
        if top.parts == 0 {
            self.is_empty = true;
            self.base = 0;
            self.pages = 1;
            self.layout = pages.lone_leaf();
        } else {
            self.pages = top.last_page() + 1;
        }
        top.parts <= 1
    }

    /// The entries that the node of `level` is to have.
    fn run(&self, change: &Rewrite<'_>, level: u8) -> Run {
        let below = self.levels.last().map(|below| below.parts);
        let Some(step) = change.step(level) else {
            return Run { added: below.unwrap_or(0), ..Run::default() };
        };
        let old = node::count(step.node);
        let (from, removed, added) = match (below, change.edit) {
            (Some(parts), Edit::Append) if level == change.base + 1 => (step.place + 1, 0, parts),
            (Some(parts), _) => (step.place, 1, parts),
            (None, Edit::Keep | Edit::Append) => (0, 0, 0),
            (None, Edit::Insert { .. }) => (step.place, 0, 1),
            (None, Edit::Replace { .. }) => (step.place, 1, 1),
            (None, Edit::Remove) => (step.place, 1, 0),
        };
        Run { old, from: from.min(old), removed: removed.min(old), added }
    }

    /// True if the node can be copied as it is and then edited once.
    fn is_copied(&self, change: &Rewrite<'_>, level: u8, codec: &Codec, run: &Run) -> bool {
        let Some(step) = change.step(level).filter(|step| step.codec == *codec) else {
            return false;
        };
        let gets_child = level == change.base + 1 && change.appends_above(level);
        if run.len() == 0 || run.added > 1 || gets_child {
            return false;
        }
        if let (Edit::Insert { key, value }, true) = (change.edit, level == change.base)
            && !codec.has_room(step.node, key, value.len())
        {
            return false;
        }
        if level > 0 {
            let keeps_first = step.place > 0 || run.added == run.removed;
            let first = codec.key(step.node, 0);
            return keeps_first && keys::are_equal(first, self.bound(change, level));
        }
        match change.edit {
            Edit::Replace { value } => {
                value.len() <= codec.value(step.node, step.place).bytes().len()
            }
            Edit::Keep | Edit::Append | Edit::Remove | Edit::Insert { .. } => true,
        }
    }

    /// Says in which pages the parts of `level`, the last that was added, stand.
    fn place(&mut self, level: u8, parts: usize) {
        let mut first_page = 0;
        let mut with_child = 0;
        let below = level.checked_sub(1).and_then(|below| self.level(below)).copied();
        if let Some(below) = below.filter(|below| below.parts > 0) {
            if self.layout.division == Division::Whole {
                first_page = below.last_page() + 1;
            } else {
                first_page = below.last_page();
                let above = self.levels.last().copied().unwrap_or_default();
                let pointer = above.run.from + below.last_part();
                let cuts = &self.cuts[above.cuts..];
                with_child = cuts.iter().filter(|cut| **cut <= pointer).count();
            }
        }
        if let Some(level) = self.levels.last_mut() {
            *level = Level { parts, first_page, with_child, ..*level };
        }
    }

    /// The plan of `level`, if anything is written of it.
    pub(super) fn level(&self, level: u8) -> Option<&Level> {
        self.levels.get(usize::from(level.checked_sub(self.base)?))
    }

    /// The entries of a part.
    pub(super) fn part(&self, level: u8, part: usize) -> core::ops::Range<usize> {
        let Some(planned) = self.level(level) else {
            return 0..0;
        };
        let cuts = self.cuts.get(planned.cuts..).unwrap_or_default();
        let cut = |part: usize| if part == 0 { 0 } else { cuts[part - 1] };
        let end = if part + 1 < planned.parts { cut(part + 1) } else { planned.run.len() };
        cut(part)..end
    }

    /// The part of `level` in the page of this number.
    pub(super) fn part_in(&self, level: u8, page: u32) -> Option<usize> {
        let planned = self.level(level)?;
        (0..planned.parts).find(|part| planned.page(*part) == page)
    }

    /// The number of the page in which a part stands.
    pub(super) fn page_of(&self, level: u8, part: usize) -> u32 {
        self.level(level).map_or(0, |level| level.page(part))
    }
}

#[cfg(test)]
mod tests;
