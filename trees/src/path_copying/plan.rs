//! What an update writes, decided before anything is written.
//!
//! An update takes the nodes on the path from a leaf to the root, changes the leaf, fits each node
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
//! Where a node has a page to itself ([`Pages::stands_alone`]), its level begins in the page behind
//! the last of the level below, and so does the level above. A plan that is to spare nodes
//! ([`Plan::make_sparing`]) does the same with a node that is larger than its place: moves and
//! deletes then add no node, whatever pages were divided like when theirs were written.
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

mod cuts;
mod keys;
mod run;
pub(super) mod worst;

use alloc::vec;
use alloc::vec::Vec;

use store::Width;
use store::node::{self, Codec};

use super::layout::{HEIGHT_MOST, Layout, Pages, SLOT_BYTES_MOST};
use super::policy::{Policy, Splits};
pub(super) use run::{Run, Source};

/// A node on the path, as it stands on flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'p> {
    pub(super) codec: Codec,
    pub(super) node: &'p [u8],
    /// The child that the path goes on with; in the lowest node, where the edit is made.
    pub(super) place: usize,
    /// True if no node below it is in its page.
    pub(super) is_lowest_of_page: bool,
}

/// What happens to the lowest node of the path.
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
    /// Nothing, but it is a new node: its parent gets a child more, behind the path's.
    Append,
}

/// A change of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite<'r> {
    /// The path, from the lowest node that is rewritten up to the root.
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

    /// Bytes that the leaf uses with the edit, about; `None` if no leaf is rewritten.
    fn leaf_bytes(&self) -> Option<usize> {
        let step = self.steps.first().filter(|_| self.base == 0)?;
        let more = match self.edit {
            Edit::Insert { key, value } => key.len() + value.len() + SLOT_BYTES_MOST,
            Edit::Replace { value } => value.len(),
            Edit::Keep | Edit::Remove | Edit::Append => 0,
        };
        Some(step.codec.used_bytes(step.node) + more)
    }

    /// Pages that hold nothing live when this is written.
    pub(super) fn pages_given_up(&self) -> u32 {
        self.steps.iter().filter(|step| step.is_lowest_of_page).count() as u32
    }
}

/// Which nodes fall apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    /// Those that are larger than their place in the page.
    Usual,
    /// Those that are larger than they can be anywhere.
    Sparing,
}

/// One level of a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    pub(super) run: Run,
    /// Nodes that the level falls into; 0 if its node has no entries left.
    pub(super) parts: usize,
    /// True if the node keeps its size and takes one edit: its bytes are copied.
    pub(super) is_copied: bool,
    /// How the pages are divided in which the node stands alone, being larger than its place.
    alone: Option<Layout>,
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

/// Nodes that come to each level, or go; leaves first.
pub(super) type Added = [i64; HEIGHT_MOST as usize];

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
            if self.try_layout((policy, Sizes::Usual), change, layout, scratch) {
                return true;
            }
            layouts = policy.after_overflow(layout, change.height());
        }
        false
    }

    /// Plans `change` so that no node falls apart that any page has room for, and a tree that is as
    /// low as it can be. False if the tree can't be as high as it would have to be.
    ///
    /// All stands in one page if the inner nodes have room beside the leaf; otherwise what is
    /// larger than its place beside the smallest leaf stands alone.
    pub(super) fn make_sparing(
        &mut self,
        policy: &Policy,
        change: &Rewrite<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let height = change.height();
        let beside = change.leaf_bytes().and_then(|bytes| policy.share_for(height, bytes));
        if let Some(leaf) = beside {
            let layout = policy.pages().layout(leaf, height);
            if self.try_layout((policy, Sizes::Usual), change, layout, scratch)
                && self.levels.iter().all(|level| level.parts <= 1)
            {
                return true;
            }
        }
        (height..=policy.height_most()).any(|height| {
            let layout = policy.pages().layout(policy.bounds().beta, height);
            self.try_layout((policy, Sizes::Sparing), change, layout, scratch)
        })
    }

    /// Nodes of each level that `change` adds, or takes away.
    pub(super) fn added(&self, change: &Rewrite<'_>) -> Added {
        core::array::from_fn(|level| {
            let level = level as u8;
            let is_new = matches!(change.edit, Edit::Append) && level == change.base;
            let before = i64::from(level < change.height() && level >= change.base && !is_new);
            let after = match self.is_empty {
                true => i64::from(level == 0),
                false => self.level(level).map_or(0, |level| level.parts as i64),
            };
            after - before
        })
    }

    /// Plans `change` in pages of `layout`; false if the root would have to be split.
    fn try_layout(
        &mut self,
        by: (&Policy, Sizes),
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
            if !self.add_level(by, change, level, scratch) {
                return false;
            }
        }
        self.finish(by.0.pages(), change)
    }

    fn add_level(
        &mut self,
        (policy, sizes): (&Policy, Sizes),
        change: &Rewrite<'_>,
        level: u8,
        scratch: &mut Scratch,
    ) -> bool {
        let pages = policy.pages();
        let Some(parts) = self.cut_level(pages, change, (level, None), scratch) else {
            return false;
        };
        let is_below_root = level + 1 < self.layout.height;
        let may_stand_alone =
            sizes == Sizes::Sparing && is_below_root && !pages.stands_alone(level);
        let parts = if may_stand_alone && parts > 1 {
            let alone = Some(policy.roomiest(level));
            self.take_back_level();
            match self.cut_level(pages, change, (level, alone), scratch) {
                Some(fewer) if fewer < parts => fewer,
                _ => {
                    self.take_back_level();
                    let again = self.cut_level(pages, change, (level, None), scratch);
                    again.unwrap_or(parts)
                }
            }
        } else {
            parts
        };
        self.place(pages, level, parts);
        if parts > 1 && level == 0 {
            self.splits.leaf += 1;
        } else if parts > 1 {
            self.splits.inner += 1;
        }
        true
    }

    /// Adds a level, and cuts its node into parts; returns how many.
    fn cut_level(
        &mut self,
        pages: &Pages,
        change: &Rewrite<'_>,
        (level, alone): (u8, Option<Layout>),
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let codec = pages.codec(alone.as_ref().unwrap_or(&self.layout), level)?;
        let run = self.run(change, level);
        let cuts = self.cuts.len();
        let is_copied = self.is_copied(change, level, &codec, &run);
        self.levels.push(Level { run, is_copied, cuts, alone, ..Level::default() });
        self.cut(change, level, &codec, scratch)
    }

    /// Takes the level back that was added last.
    fn take_back_level(&mut self) {
        if let Some(level) = self.levels.pop() {
            self.cuts.truncate(level.cuts);
        }
    }

    /// How the page of this number is divided.
    pub(super) fn layout_of(&self, page: u32) -> Layout {
        let alone = |level: &Level| {
            let layout = level.alone?;
            (0..level.parts).any(|part| level.page(part) == page).then_some(layout)
        };
        self.levels.iter().find_map(alone).unwrap_or(self.layout)
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
    fn place(&mut self, pages: &Pages, level: u8, parts: usize) {
        let mut first_page = 0;
        let mut with_child = 0;
        let below = level.checked_sub(1).and_then(|below| self.level(below)).copied();
        let above = self.levels.last().copied().unwrap_or_default();
        if let Some(below) = below.filter(|below| below.parts > 0) {
            let is_alone = pages.stands_alone(level) || pages.stands_alone(level - 1);
            if is_alone || above.alone.is_some() || below.alone.is_some() {
                first_page = below.last_page() + 1;
            } else {
                first_page = below.last_page();
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
        if self.is_empty {
            return (level == 0).then_some(0);
        }
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
