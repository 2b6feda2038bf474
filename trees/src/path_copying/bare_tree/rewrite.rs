//! One change of the tree: planned, written page by page, and with the last page made.

use device::Cause;
use store::{Durability, Recovery};

use super::super::assembly::{Stamp, write_page};
use super::super::census::adds_none;
use super::super::layout::{Division, HEIGHT_MOST, Layout};
use super::super::page::damage;
use super::super::path::CopiedPath;
use super::super::plan::{Added, Edit, Rewrite, Step};
use super::super::policy::Change;
use super::BareTree;
use index::Result;

const WITHOUT_PATH: &str = "a change without a path";

/// A change of the nodes that the path holds from a level on.
#[derive(Clone, Copy, Debug)]
pub(in crate::path_copying) struct Order<'o> {
    /// The level.
    pub(in crate::path_copying) base: u8,
    pub(in crate::path_copying) edit: Edit<'o>,
    pub(in crate::path_copying) change: Change,
    pub(in crate::path_copying) cause: Cause,
}

impl Order<'_> {
    /// The move of the node of a level, with all above it.
    pub(in crate::path_copying) const fn move_of(base: u8) -> Self {
        Order { base, edit: Edit::Keep, change: Change::Move, cause: Cause::Reclamation }
    }
}

/// The steps of a rewrite from a level on up to the root of a tree of a height.
#[inline]
fn steps_of<'w>(
    path: &'w CopiedPath,
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

impl BareTree<'_> {
    /// Goes to where `key` is or belongs, and says what there is to do; `None` if there is nothing.
    pub(in crate::path_copying) fn order_of<'o>(
        &mut self,
        (key, value): (&'o [u8], Option<&'o [u8]>),
        cause: Cause,
    ) -> Result<Option<Order<'o>>> {
        let is_found = self.descend(0, (key, 0), cause)?;
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
    pub(in crate::path_copying) fn rewrite(&mut self, order: &Order<'_>) -> Result<()> {
        self.is_parted = false;
        loop {
            let (counts_as, added) = self.plan_order(order)?;
            match self.write_plan(order, counts_as, &added) {
                Err(index::Error::Store(error)) if error.is_refusal() => {}
                other => return other,
            }
        }
    }

    /// Plans the change of the path: as the paper says, or, where that would take room that is
    /// promised to others, so that no node falls apart that any page has room for. Returns what
    /// the policy is told that it was, and what nodes it adds.
    fn plan_order(&mut self, order: &Order<'_>) -> Result<(Change, Added)> {
        let usual = self.plan_in(Some(self.standing.next.layout), order)?;
        let may_be_spared =
            self.nodes.pages.division == Division::Even && !matches!(order.edit, Edit::Append);
        if matches!(order.edit, Edit::Append) {
            // A leaf that was loaded counts as one that was split off.
            self.plan.splits.leaf += 1;
            // It came by no put, so room was not counted for the nodes above that fall apart.
            if usual.is_some_and(|added| !self.has_room_after(&added, 0)) {
                return Err(self.nodes.no_room());
            }
        }
        if !may_be_spared || usual.is_some_and(|added| self.may_take(&added, order)) {
            let planned = usual.map(|added| (order.change, added));
            return planned.ok_or_else(|| self.policy.tree_full());
        }
        let sparing = self.plan_in(None, order)?.map(|added| (Change::Move, added));
        sparing.ok_or_else(|| self.policy.tree_full())
    }

    /// True if what is planned adds no node to any level, or the tree may get those that come, and
    /// what is free suffices to write it. Before an update so much is free as the largest needs:
    /// so how a tree grows does not depend on how far collection came.
    fn may_take(&self, added: &Added, order: &Order<'_>) -> bool {
        if adds_none(added) {
            return true;
        }
        let (log, pages) = (&self.nodes.log, u64::from(self.plan.pages));
        let durability = log.durability();
        let is_step = durability == Durability::None || durability.has_journal();
        let is_reserved = is_step && order.change != Change::Move;
        let left = u64::from(log.free_pages()).checked_sub(pages);
        let has_left = left.is_some_and(|left| left >= self.reserve_pages());
        (has_left || is_reserved && pages <= self.room().change_blocks() * self.nodes.block_pages())
            && self.has_room_after(added, self.promised)
    }

    /// True if what is planned, which adds these nodes, has room, and what so many puts add then:
    /// with more inner nodes, or levels, there is room for fewer leaves.
    fn has_room_after(&self, added: &Added, puts: u64) -> bool {
        let after = self.census.demand_after(added);
        let mut room = self.room();
        room.height = self.plan.layout.height;
        room.fits_grown(&after, after.growth(puts))
    }

    /// True if the change of the path can be made with no node more.
    pub(in crate::path_copying) fn can_add_none(&mut self, order: &Order<'_>) -> Result<bool> {
        Ok(self.plan_in(None, order)?.is_some_and(|added| adds_none(&added)))
    }

    /// Plans the change of the path in pages of `layout`, or so that no node falls apart that any
    /// page has room for; returns what nodes it adds, or `None` if the tree can't be so high.
    fn plan_in(&mut self, layout: Option<Layout>, order: &Order<'_>) -> Result<Option<Added>> {
        let steps = steps_of(&self.path, (order.base, self.standing.layout.height));
        let (steps, count) = steps.ok_or_else(|| damage(self.root, WITHOUT_PATH))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        let is_made = match layout {
            Some(layout) => self.plan.make(&self.policy, &change, layout, &mut self.scratch),
            None => self.plan.make_sparing(&self.policy, &change, &mut self.scratch),
        };
        Ok(is_made.then(|| self.plan.added(&change)))
    }

    /// Writes what was planned, which adds these nodes.
    fn write_plan(&mut self, order: &Order<'_>, counts_as: Change, added: &Added) -> Result<()> {
        let height = self.standing.layout.height;
        let log = &mut self.nodes.log;
        let sequence = log.reserve(self.plan.pages, &mut self.addresses, order.cause)?;
        let steps = steps_of(&self.path, (order.base, height));
        let (steps, count) = steps.ok_or_else(|| damage(self.root, WITHOUT_PATH))?;
        let change = Rewrite { steps: &steps[..count], base: order.base, edit: order.edit };
        let (addresses, before) = (&self.addresses, &self.standing);
        let stamp = Stamp { addresses, sequence, before, change: counts_as };
        // Before the new ones come: these take their rooms.
        for level in order.base..height {
            self.nodes.forget_node(self.path.spot(level).page, level);
        }
        let mut last = None;
        for (number, address) in (0..).zip(stamp.addresses) {
            let target = (self.nodes.content(), &mut self.scratch);
            let header = write_page(&self.policy, (&self.plan, &change), number, &stamp, target)
                .map_err(|what| damage(self.root, what))?;
            self.nodes.program(*address, &header, order.cause)?;
            last = Some((*address, header));
        }
        self.census.count(added);
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
}
