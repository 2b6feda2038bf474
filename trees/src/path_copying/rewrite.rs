//! One change of the tree: planned, written page by page, and with the last page made.

use device::Cause;
use store::Recovery;

use super::assembly::{Stamp, write_page};
use super::descent;
use super::layout::{Division, HEIGHT_MOST, Layout};
use super::plan::{Added, Edit, Rewrite, Step};
use super::policy::Change;
use super::room::{adds_none, nodes_after};
use super::{Durably, PathTree};
use index::Result;

const WITHOUT_PATH: &str = "a change without a path";

/// A change of the nodes that the path holds from a level on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'o> {
    /// The level.
    pub(super) base: u8,
    pub(super) edit: Edit<'o>,
    pub(super) change: Change,
    pub(super) cause: Cause,
}

impl Order<'_> {
    /// The move of the node of a level, with all above it.
    pub(super) const fn move_of(base: u8) -> Self {
        Order { base, edit: Edit::Keep, change: Change::Move, cause: Cause::Reclamation }
    }
}

/// The steps of a rewrite from a level on up to the root of a tree of a height.
#[inline]
fn steps_of<'w>(
    path: &'w descent::CopiedPath,
    (base, height): (u8, u8),
) -> Option<([Step<'w>; HEIGHT_MOST as usize], usize)> {
    if base >= height {
        return None;
    }
    let mut steps = [path.step(base)?; HEIGHT_MOST as usize];
    let mut count = 1;
    for level in base + 1..height {
        let Some(step) = path.step(level) else {
            break;
        };
        steps[count] = step;
        count += 1;
    }
    Some((steps, count))
}

impl PathTree<'_> {
    /// Puts `value` under `key`, or takes the key away; false if there was nothing to change.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        cause: Cause,
    ) -> Result<bool> {
        let Some(order) = self.order_of((key, value), cause)? else {
            return Ok(false);
        };
        self.rewrite(&order)?;
        Ok(true)
    }

    /// Goes to where `key` is or belongs, and says what there is to do; `None` if there is nothing.
    pub(super) fn order_of<'o>(
        &mut self,
        (key, value): (&'o [u8], Option<&'o [u8]>),
        cause: Cause,
    ) -> Result<Option<Order<'o>>> {
        let is_found = self.descend(key, 0, cause)?;
        let (edit, change) = match (value, is_found) {
            (Some(value), true) => (Edit::Replace { value }, Change::Put),
            (Some(value), false) => (Edit::Insert { key, value }, Change::Put),
            (None, true) => (Edit::Remove, Change::Delete),
            (None, false) => return Ok(None),
        };
        Ok(Some(Order { base: 0, edit, change, cause }))
    }

    /// Makes the change of the path. Where the chip refuses a page, it is planned again, elsewhere:
    /// what was written before names addresses that are not to be had.
    ///
    /// # Errors
    /// There is no room, the tree can't be high enough, or the chip failed: nothing is changed.
    pub(super) fn rewrite(&mut self, order: &Order<'_>) -> Result<()> {
        self.is_parted = false;
        loop {
            let counts_as = self.plan_order(order)?;
            match self.write_plan(order, counts_as) {
                Err(index::Error::Store(error)) if error.is_refusal() => {}
                other => return other,
            }
        }
    }

    /// Plans the change of the path: as the paper says, or, where that would take room that is
    /// promised to others, so that no node falls apart that any page has room for. Returns what
    /// the policy is told that it was.
    fn plan_order(&mut self, order: &Order<'_>) -> Result<Change> {
        let usual = self.plan_in(Some(self.standing.next.layout), order)?;
        let may_be_spared =
            self.store.pages.division == Division::Even && !matches!(order.edit, Edit::Append);
        if matches!(order.edit, Edit::Append) {
            // A leaf that was loaded counts as one that was split off.
            self.plan.splits.leaf += 1;
            // It came by no put, so room was not counted for the nodes above that fall apart.
            if usual.is_some_and(|added| !self.has_room_after(&added, 0)) {
                return Err(self.no_room());
            }
        }
        if !may_be_spared || usual.is_some_and(|added| self.may_take(&added, order)) {
            return usual.map(|_| order.change).ok_or_else(|| self.policy.tree_full());
        }
        let sparing = self.plan_sparing(order)?;
        sparing.map(|_| Change::Move).ok_or_else(|| self.policy.tree_full())
    }

    /// True if what is planned adds no node to any level, or the tree may get those that come, and
    /// what is free suffices to write it. Before an update so much is free as the largest needs:
    /// so how a tree grows does not depend on how far collection came.
    fn may_take(&self, added: &Added, order: &Order<'_>) -> bool {
        if adds_none(added) {
            return true;
        }
        let pages = u64::from(self.plan.pages);
        let is_step = self.durably == Durably::Not || self.store.log.durability().has_journal();
        let is_reserved = is_step && order.change != Change::Move;
        let left = u64::from(self.store.log.free_pages()).checked_sub(pages);
        let has_left = left.is_some_and(|left| left >= self.reserve_pages());
        (has_left || is_reserved && pages <= self.room().change_room()) && self.may_split(added)
    }

    /// Plans the change of the path so that no node falls apart that any page has room for; returns
    /// what nodes it adds, or `None` if the tree can't be so high.
    pub(super) fn plan_sparing(&mut self, order: &Order<'_>) -> Result<Option<Added>> {
        self.plan_in(None, order)
    }

    /// Plans the change of the path in pages of `layout`, or sparingly; returns what nodes it adds,
    /// if it has room.
    fn plan_in(&mut self, layout: Option<Layout>, order: &Order<'_>) -> Result<Option<Added>> {
        let steps = steps_of(&self.path, (order.base, self.standing.layout.height));
        let (steps, count) = steps.ok_or(super::damage(self.root, WITHOUT_PATH))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        let is_made = match layout {
            Some(layout) => self.plan.make(&self.policy, &change, layout, &mut self.scratch),
            None => self.plan.make_sparing(&self.policy, &change, &mut self.scratch),
        };
        Ok(is_made.then(|| self.plan.added(&change)))
    }

    /// Writes what was planned.
    fn write_plan(&mut self, order: &Order<'_>, counts_as: Change) -> Result<()> {
        let height = self.standing.layout.height;
        let state = self.standing.next;
        let log = &mut self.store.log;
        let sequence = log.reserve(self.plan.pages, &mut self.addresses, order.cause)?;
        let steps = steps_of(&self.path, (order.base, height));
        let (steps, count) = steps.ok_or(super::damage(self.root, WITHOUT_PATH))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        let stamp = Stamp {
            addresses: &self.addresses,
            sequence,
            live_pages: self.standing.live_pages,
            state,
            change: counts_as,
        };
        // Before the new ones come: these take their rooms.
        for level in order.base..height {
            self.store.forget_node(self.path.spot(level).page, level);
        }
        let mut last = None;
        for number in 0..self.plan.pages {
            let target = (self.store.content(), &mut self.scratch);
            let header = write_page(&self.policy, (&self.plan, &change), number, &stamp, target)
                .map_err(|what| super::damage(self.root, what))?;
            let Some(address) = stamp.addresses.get(number as usize) else {
                return Err(super::damage(self.root, "a page has no address"));
            };
            self.store.program(*address, &header, order.cause)?;
            last = Some((*address, header));
        }
        let added = self.plan.added(&change);
        self.nodes = nodes_after(&self.nodes, &added);
        if !adds_none(&added) {
            self.admission.note_splits();
        }
        for level in order.base..height {
            let spot = self.path.spot(level);
            if spot.brief.lowest == level {
                self.live.remove(spot.page);
            }
        }
        self.addresses.iter().for_each(|page| self.live.add(*page));
        self.emptied += self.plan.nodes_emptied();
        if let Some((page, header)) = last.filter(|(_, header)| header.has_root) {
            self.stand_on(page, header);
        }
        Ok(())
    }

    /// Copies the node of `level` of the path as it is to the page that is made, which is divided
    /// like the one it stands in.
    pub(super) fn copy_node_of_path(&mut self, level: u8) -> Result<()> {
        let spot = *self.path.spot(level);
        let no_node = super::damage(spot.page, "a node that is none");
        let place = self.store.pages.place_of(&spot.brief.layout, level);
        let (range, codec) = place.ok_or(no_node)?;
        let (node, from) = (&mut self.store.content()[range], self.path.node(level));
        let kept = codec.kept_bytes(from);
        device::copy(&mut node[..kept], &from[..kept]);
        Ok(())
    }
}
