//! One change of the tree: planned, written page by page, and with the last page made.

use device::Cause;
use store::Update;

use super::assembly::{Stamp, write_page};
use super::plan::{Edit, Rewrite};
use super::policy::Change;
use super::{Durably, PathTree};
use crate::Result;

/// A change of the nodes that the way holds from a level on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'o> {
    /// The level.
    pub(super) base: u8,
    pub(super) edit: Edit<'o>,
    pub(super) change: Change,
    /// True if a batch ends with it.
    pub(super) closes: bool,
    pub(super) cause: Cause,
}

impl PathTree<'_> {
    /// Puts `value` under `key`, or takes the key away; false if there was nothing to change.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        closes: bool,
        cause: Cause,
    ) -> Result<bool> {
        let is_found = self.descend(key, 0, cause)?;
        let (edit, change) = match (value, is_found) {
            (Some(value), true) => (Edit::Replace { value }, Change::Put),
            (Some(value), false) => (Edit::Insert { key, value }, Change::Put),
            (None, true) => (Edit::Remove, Change::Delete),
            (None, false) => return Ok(false),
        };
        self.rewrite(&Order { base: 0, edit, change, closes, cause })?;
        Ok(true)
    }

    /// True if `batch` is one put that makes no page more live than there are. Nothing is buffered.
    pub(super) fn fits_its_node(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let [Update::Put { key, value }] = batch else {
            return Ok(false);
        };
        let is_found = self.descend(key, 0, Cause::Update)?;
        let edit = if is_found { Edit::Replace { value } } else { Edit::Insert { key, value } };
        let mut steps = [None; super::layout::HEIGHT_MOST as usize];
        let count = self.way.steps(&self.ground.pages, 0, self.standing.layout.height, &mut steps);
        let Some(first) = steps[0] else {
            return Err(super::damage(self.root, "a change without a way"));
        };
        let steps = steps.map(|step| step.unwrap_or(first));
        let change = Rewrite { steps: &steps[..count], base: 0, edit };
        let layouts = (self.standing.next.layout, self.way.spot(0).brief.layout);
        let is_planned = self.plan.make_move(&self.policy, &change, layouts, &mut self.scratch);
        Ok(is_planned && self.plan.pages <= change.pages_given_up())
    }

    /// Writes the root again, so that a batch ends with it.
    pub(super) fn close_batch(&mut self) -> Result<()> {
        let base = self.standing.layout.height - 1;
        self.descend(&[], base, Cause::Update)?;
        let (edit, change) = (Edit::Keep, Change::Move);
        self.rewrite(&Order { base, edit, change, closes: true, cause: Cause::Update })
    }

    /// Makes the change of the way. Where the chip refuses a page, it is planned again, elsewhere:
    /// what was written before names addresses that are not to be had.
    ///
    /// # Errors
    /// There is no room, the tree can't be high enough, or the chip failed: nothing is changed.
    pub(super) fn rewrite(&mut self, order: &Order<'_>) -> Result<()> {
        self.learn_worst();
        loop {
            match self.try_rewrite(order) {
                Err(crate::Error::Store(error)) if error.is_refusal() => {}
                other => return other,
            }
        }
    }

    fn try_rewrite(&mut self, order: &Order<'_>) -> Result<()> {
        let height = self.standing.layout.height;
        let pages = self.ground.pages;
        let mut steps = [None; super::layout::HEIGHT_MOST as usize];
        let count = self.way.steps(&pages, order.base, height, &mut steps);
        let Some(first) = steps[0] else {
            return Err(super::damage(self.root, "a change without a way"));
        };
        let steps = steps.map(|step| step.unwrap_or(first));
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        let state = self.standing.next;
        let old = self.way.spot(order.base).brief.layout;
        let mut counts_as = order.change;
        let mut is_planned = counts_as != Change::Move
            && self.plan.make(&self.policy, &change, state.layout, &mut self.scratch);
        if is_planned && !matches!(order.edit, Edit::Append) {
            let growth = self.plan.pages.saturating_sub(change.pages_given_up());
            if growth > 0 && self.is_tight(growth, order.change) {
                // A node that need not fall apart stays as large as it is.
                (is_planned, counts_as) = (false, Change::Move);
            }
        }
        if counts_as == Change::Move {
            let layouts = (state.layout, old);
            is_planned = self.plan.make_move(&self.policy, &change, layouts, &mut self.scratch);
        }
        if !is_planned {
            return Err(self.policy.tree_full());
        }
        if matches!(order.edit, Edit::Append) {
            // A leaf that was loaded counts as one that was split off.
            self.plan.splits.leaf += 1;
        }
        let log = &mut self.ground.log;
        let sequence = log.reserve(self.plan.pages, &mut self.addresses, order.cause)?;
        let stamp = Stamp {
            addresses: &self.addresses,
            sequence,
            live_pages: self.standing.live_pages,
            closes_batch: order.closes && self.durably == Durably::ByItself,
            state,
            change: counts_as,
        };
        let mut last = None;
        for number in 0..self.plan.pages {
            let target = (self.ground.content(), &mut self.scratch);
            let header = write_page(&self.policy, (&self.plan, &change), number, &stamp, target)
                .map_err(|what| super::damage(self.root, what))?;
            let Some(address) = stamp.addresses.get(number as usize) else {
                return Err(super::damage(self.root, "a page has no address"));
            };
            self.ground.program(*address, &header, order.cause)?;
            last = Some((*address, header));
        }
        for level in order.base..height {
            let spot = self.way.spot(level);
            self.ground.forget_node(spot.page, level);
            if spot.brief.lowest == level {
                self.live.remove(spot.page);
            }
        }
        self.addresses.iter().for_each(|page| self.live.add(*page));
        if let Some((page, header)) = last.filter(|(_, header)| header.has_root) {
            self.stand_on(page, header);
        }
        Ok(())
    }
}
