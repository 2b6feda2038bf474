//! How a change is written: with the whole way in the present layout, or, where the chip is nearly
//! full, so that no node is split that need not be.

use device::Cause;
use store::{Update, node};

use super::debts::Growth;
use super::descent;
use super::layout::{Division, HEIGHT_MOST, Layout, Share};
use super::plan::{Edit, Rewrite, Step};
use super::policy::Change;
use super::rewrite::Order;
use super::{PathTree, damage, full};
use crate::Result;

pub(super) const WITHOUT_WAY: &str = "a change without a way";

/// Where a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As was planned. The policy is told that it was this.
    Together(Change),
    /// The lowest nodes into a page of their own, the nodes above them behind it.
    Apart(Apart),
    /// The lowest node goes with its only entry: the node above loses a child.
    Above,
}

/// A page for the lowest nodes of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    pub(super) layout: Layout,
    /// The highest level in it, which is not the root's.
    pub(super) top: u8,
}

/// What was chosen for a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) way: Way,
    /// Pages that the tree has to find after it, at the most.
    pub(super) pages: u64,
    /// True if there are more nodes after it.
    pub(super) splits: bool,
}

/// The steps of a rewrite from a level on up to the root of a tree of a height.
#[inline]
pub(super) fn steps_of<'w>(
    way: &'w descent::Way,
    (base, height): (u8, u8),
) -> Option<([Step<'w>; HEIGHT_MOST as usize], usize)> {
    if base >= height {
        return None;
    }
    let mut steps = [way.step(base)?; HEIGHT_MOST as usize];
    let mut count = 1;
    for level in base + 1..height {
        let Some(step) = way.step(level) else {
            break;
        };
        steps[count] = step;
        count += 1;
    }
    Some((steps, count))
}

impl PathTree<'_> {
    /// Plans the change of the way, and says how it is to be written.
    ///
    /// # Errors
    /// The tree can't be as high as it would have to be, or what is loaded would leave deletes less
    /// than they need: nothing is planned.
    pub(super) fn plan_order(&mut self, order: &Order<'_>) -> Result<Chosen> {
        let chosen = self.plan_freely(order)?;
        let is_append = matches!(order.edit, Edit::Append);
        if is_append || !matches!(chosen.way, Way::Together(_)) || self.keeps_promise(order) {
            return Ok(chosen);
        }
        if self.is_leaf_moved(order) {
            return self.plan_unsplit(order);
        }
        match self.plan_sparingly(order)? {
            Some(chosen) => Ok(chosen),
            None => self.plan_freely(order),
        }
    }

    /// Plans the change so that the tree takes as many more for certain as before it, or one less.
    /// `None` if the tree can't be so high, and nothing was promised.
    fn plan_sparingly(&mut self, order: &Order<'_>) -> Result<Option<Chosen>> {
        let span = (order.base, self.height());
        let steps = steps_of(&self.way, span);
        let (steps, count) = steps.ok_or(damage(self.root, WITHOUT_WAY))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        let key_bytes = usize::from(self.promise.key_bytes);
        if !self.plan.make_sparing((&self.policy, key_bytes), &change, &mut self.scratch) {
            return Ok(None);
        }
        let growth = self.chosen_growth(order)?;
        Ok(Some(self.choose(Way::Together(order.change), growth)))
    }

    /// True if a leaf is moved where lengths vary: it is none of the updates for which it is
    /// counted that a leaf falls apart.
    pub(super) fn is_leaf_moved(&self, order: &Order<'_>) -> bool {
        order.change == Change::Move && order.base == 0 && self.policy.pages().is_variable()
    }

    /// Plans the move of a leaf so that nothing falls apart: in one page, whatever its division, or
    /// with the leaf in a page of its own, as large as it is.
    fn plan_unsplit(&mut self, order: &Order<'_>) -> Result<Chosen> {
        let standing = Layout { height: self.height(), ..self.standing.next.layout };
        let mut number = 0;
        loop {
            let share = self.policy.leaves(standing.height).nth(number);
            let Some(leaf) = share else {
                break;
            };
            number += 1;
            if self.plan_in(order, Layout { leaf, ..standing })? && self.plan.pages == 1 {
                let growth = self.chosen_growth(order)?;
                return Ok(self.choose(Way::Together(Change::Move), growth));
            }
        }
        let Some(apart) = self.apart(order, false) else {
            return self.plan_freely(order);
        };
        let growth = Growth { pages: 1, alone: self.comes_alone(order), ..Growth::default() };
        Ok(self.choose(Way::Apart(apart), (growth, false)))
    }

    /// As [`PathTree::plan_order`], whatever is promised.
    fn plan_freely(&mut self, order: &Order<'_>) -> Result<Chosen> {
        let is_append = matches!(order.edit, Edit::Append);
        let is_even = self.ground.pages.division == Division::Even;
        if (is_append || order.change != Change::Move) && self.plan_usual(order)? {
            let splits = self.chosen_growth(order)?;
            let chosen = self.choose(Way::Together(order.change), splits);
            if is_append {
                if chosen.pages + self.kept_free() > self.pages_all() {
                    return Err(full(self.ground.log.usable_pages().into()));
                }
                // A leaf that was loaded counts as one that was split off.
                self.plan.splits.leaf += 1;
                return Ok(chosen);
            }
            let is_taken = if is_even {
                !chosen.splits || self.may_split(chosen.pages)
            } else {
                let planned = self.planned(order.base);
                planned.0 == 0 || !self.is_tight(planned, order.change)
            };
            if is_taken {
                return Ok(chosen);
            }
        } else if is_append {
            return Err(self.policy.tree_full());
        }
        if is_even { self.plan_small(order) } else { self.plan_move(order) }
    }

    /// True if an update may make the tree higher.
    pub(super) fn may_raise(&mut self, update: &Update<'_>) -> Result<bool> {
        let value = match update {
            Update::Put { value, .. } => Some(*value),
            Update::Adopt { .. } | Update::Delete { .. } => None,
        };
        let Some(order) = self.order_of((update.key(), value), Cause::Update)? else {
            return Ok(false);
        };
        match self.plan_order(&order) {
            Ok(Chosen { way: Way::Together(_), .. }) => Ok(self.plan.layout.height > self.height()),
            Ok(_) | Err(crate::Error::TreeFull { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Plans the change in the present layout, or in the first that has room after it; false if the
    /// tree can't be so high.
    fn plan_usual(&mut self, order: &Order<'_>) -> Result<bool> {
        let present = self.standing.next.layout;
        let span = (order.base, self.height());
        let steps = steps_of(&self.way, span);
        let (steps, count) = steps.ok_or(damage(self.root, WITHOUT_WAY))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        Ok(self.plan.make(&self.policy, &change, present, &mut self.scratch))
    }

    /// Plans the change so that it makes no page more live, if there is any way to that.
    fn plan_move(&mut self, order: &Order<'_>) -> Result<Chosen> {
        let layouts = (self.standing.next.layout, self.way.spot(order.base).brief.layout);
        let span = (order.base, self.height());
        let steps = steps_of(&self.way, span);
        let (steps, count) = steps.ok_or(damage(self.root, WITHOUT_WAY))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        if !self.plan.make_move(&self.policy, &change, layouts, &mut self.scratch) {
            return Err(self.policy.tree_full());
        }
        let growth = self.chosen_growth(order)?;
        Ok(self.choose(Way::Together(Change::Move), growth))
    }

    /// Pages that the plan makes more live, and the levels that the tree has after it.
    pub(super) fn planned(&self, base: u8) -> (u32, u8) {
        let growth = self.plan.pages.saturating_sub(self.pages_given_up(base));
        (growth, self.plan.layout.height)
    }

    /// True if the change makes no page more live than there are, or can be made so.
    pub(super) fn adds_no_page(&mut self, order: &Order<'_>) -> Result<bool> {
        match self.plan_move(order) {
            Err(crate::Error::TreeFull { .. }) => Ok(false),
            Err(error) => Err(error),
            Ok(_) => Ok(self.plan.pages <= self.pages_given_up(order.base)),
        }
    }

    /// Plans the change in pages that name their own division, so that no node falls apart that
    /// need not: in one page, whatever its division; with the leaf alone; or so that the tree has
    /// the fewest pages to find.
    fn plan_small(&mut self, order: &Order<'_>) -> Result<Chosen> {
        let old = self.way.spot(order.base).brief.layout;
        let standing = Layout { height: self.height(), ..self.standing.next.layout };
        let most = self.policy.leaves(standing.height).next();
        let beside_all = self.debts.share_beside_all();
        let few = [beside_all, Some(standing.leaf), Some(old.leaf)]
            .map(|leaf| leaf.zip(most).map(|(leaf, most)| leaf.min(most)));
        let mut number = 0;
        loop {
            let leaf = match few.get(number) {
                Some(leaf) => *leaf,
                None => match self.policy.leaves(standing.height).nth(number - few.len()) {
                    Some(leaf) => Some(leaf),
                    None => break,
                },
            };
            number += 1;
            let Some(leaf) = leaf else {
                continue;
            };
            if self.plan_in(order, Layout { leaf, ..standing })? && self.plan.pages == 1 {
                let growth = self.chosen_growth(order)?;
                return Ok(self.choose(Way::Together(Change::Move), growth));
            }
        }
        if order.change == Change::Move && self.plan_usual(order)? {
            let growth = self.chosen_growth(order)?;
            let chosen = self.choose(Way::Together(Change::Move), growth);
            if self.may_split(chosen.pages) {
                return Ok(chosen);
            }
        }
        let has_misfits = (order.base..self.height()).any(|level| self.is_misfit_at(level));
        if has_misfits && self.plan_apart_from(order, few, standing)? {
            let growth = self.chosen_growth(order)?;
            return Ok(self.choose(Way::Together(Change::Move), growth));
        }
        let without_splits = match has_misfits {
            true => self.way_without_splits(order),
            false if order.base == 0 && self.height() > 1 => {
                self.apart(order, false).map(Way::Apart)
            }
            false => None,
        };
        if let Some(way) = without_splits {
            let growth = Growth { pages: 1, alone: self.comes_alone(order), ..Growth::default() };
            return Ok(self.choose(way, (growth, false)));
        }
        self.plan_least(order, few, standing)
    }

    /// Plans the change so that misfits fall apart, if the tree has no more pages to find than
    /// before, or deletes have what they need all the same.
    fn plan_apart_from(
        &mut self,
        order: &Order<'_>,
        few: [Option<Share>; 3],
        standing: Layout,
    ) -> Result<bool> {
        let now = self.pages_to_find((&Growth::default(), false));
        let most = now.max(self.pages_all().saturating_sub(self.kept_free()));
        let Some(layout) = self.layout_of_least(order, few, (standing, most))? else {
            return Ok(false);
        };
        self.plan_in(order, layout)
    }

    /// Plans the change with the share of `few` with which the tree has the fewest pages to find;
    /// as usual if none has room.
    fn plan_least(
        &mut self,
        order: &Order<'_>,
        few: [Option<Share>; 3],
        standing: Layout,
    ) -> Result<Chosen> {
        let least = self.layout_of_least(order, few, (standing, u64::MAX))?;
        let is_planned = match least {
            Some(layout) => self.plan_in(order, layout)?,
            None => self.plan_usual(order)?,
        };
        if !is_planned {
            if let Some(way) = self.way_without_splits(order) {
                let growth = Growth { pages: 1, ..Growth::default() };
                return Ok(self.choose(way, (growth, false)));
            }
            return Err(self.policy.tree_full());
        }
        let growth = self.chosen_growth(order)?;
        let counts_as = if least.is_some() { Change::Move } else { order.change };
        Ok(self.choose(Way::Together(counts_as), growth))
    }

    /// The layout, with a share of `few`, in which the tree has the fewest pages to find, if they
    /// are so many at the most.
    fn layout_of_least(
        &mut self,
        order: &Order<'_>,
        few: [Option<Share>; 3],
        (standing, most): (Layout, u64),
    ) -> Result<Option<Layout>> {
        let mut least: Option<(u64, Layout)> = None;
        for leaf in few.into_iter().flatten() {
            let layout = Layout { leaf, ..standing };
            if self.plan_in(order, layout)? {
                let growth = self.chosen_growth(order)?;
                let pages = self.pages_to_find((&growth.0, growth.1));
                if pages <= most && least.is_none_or(|(fewest, _)| pages < fewest) {
                    least = Some((pages, layout));
                }
            }
        }
        Ok(least.map(|(_, layout)| layout))
    }

    /// Plans the change in pages of `layout`; false if the root would have to be split.
    fn plan_in(&mut self, order: &Order<'_>, layout: Layout) -> Result<bool> {
        let span = (order.base, self.height());
        let steps = steps_of(&self.way, span);
        let (steps, count) = steps.ok_or(damage(self.root, WITHOUT_WAY))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        Ok(self.plan.try_layout(self.policy.pages(), &change, layout, &mut self.scratch))
    }

    fn choose(&self, way: Way, (growth, is_raised): (Growth, bool)) -> Chosen {
        let splits = growth.leaves > 0 || growth.inner > 0;
        let pages = self.pages_to_find((&growth, is_raised));
        Chosen { way, pages, splits }
    }

    /// Pages that hold nothing live when the way is written from `base` on.
    fn pages_given_up(&self, base: u8) -> u32 {
        let levels = (base..self.height()).filter(|level| {
            let spot = self.way.spot(*level);
            spot.brief.lowest == *level
        });
        levels.count() as u32
    }

    /// Leaves that the change may bring to stand alone, and that are not counted among those.
    fn comes_alone(&self, order: &Order<'_>) -> u64 {
        if order.change != Change::Put || order.base > 0 {
            // Then the way has no leaf: what was one may be half overwritten.
            return 0;
        }
        let (spot, pages) = (self.way.spot(0), &self.ground.pages);
        let is_new = matches!(order.edit, Edit::Append);
        let codec = spot.codec().filter(|_| !is_new);
        let used = codec.map(|codec| codec.used_bytes(self.way.node(0)));
        if used.is_some_and(|used| self.debts.may_stand_alone(used)) {
            return 0;
        }
        match (used, order.edit) {
            (Some(used), Edit::Insert { key, value }) if !pages.is_variable() => {
                u64::from(self.debts.may_stand_alone(used + key.len() + value.len()))
            }
            (Some(_), Edit::Replace { .. }) if !pages.is_variable() => 0,
            // A prefix that is shorter than before makes every entry longer.
            _ => 1,
        }
    }

    /// What the plan adds to the tree, and whether the tree is higher then.
    pub(super) fn chosen_growth(&self, order: &Order<'_>) -> Result<(Growth, bool)> {
        let (height, plan) = (self.height(), &self.plan);
        let given_up = self.pages_given_up(order.base);
        let mut growth = Growth {
            pages: u64::from(plan.pages.saturating_sub(given_up)),
            alone: self.comes_alone(order),
            ..Growth::default()
        };
        for level in order.base..plan.layout.height {
            let Some(planned) = plan.level(level) else {
                break;
            };
            let is_new = level >= height || matches!(order.edit, Edit::Append) && level == 0;
            let more = (planned.parts as u64).saturating_sub(u64::from(!is_new));
            if level == 0 {
                growth.leaves += more;
                continue;
            }
            growth.inner += more;
            if level < height && self.is_misfit_at(level) {
                growth.fallen += 1;
                growth.saved += self.saved_by(level);
            }
            let (added, removed) = planned.run.change();
            if level + 1 == plan.layout.height {
                growth.root =
                    if level < height { added.saturating_sub(removed) } else { added } as u64;
            }
            if added > removed || planned.parts > 1 {
                let class = self.class_of_inner(level, (added, level < height));
                growth.class = growth.class.max(class);
            }
        }
        Ok((growth, plan.layout.height > height))
    }

    /// What the misfit of the way of `level` costs for good, or less.
    fn saved_by(&self, level: u8) -> u64 {
        let children = if level == 1 { node::count(self.way.node(1)) as u64 } else { 0 };
        (children + 1) * self.debts.price_of_misfit(level)
    }

    /// The class of an inner node of the plan, which takes so many new children; whether it is on
    /// the way.
    fn class_of_inner(&self, level: u8, (added, is_old): (usize, bool)) -> usize {
        let (pages, layout) = (&self.ground.pages, &self.plan.layout);
        let part = layout.part(pages.area(), level).map_or(0, |part| u64::from(part.bytes));
        let spot = self.way.spot(level);
        let old = spot.codec().filter(|_| is_old);
        let used = old.map_or(node::HEADER_BYTES, |codec| codec.used_bytes(self.way.node(level)));
        let more = added as u64 * self.policy.child_bytes_most() as u64;
        self.debts.inner_class(part.min(used as u64 + more), layout.height)
    }
}
