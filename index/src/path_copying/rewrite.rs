//! One change of the tree: planned, written page by page, and with the last page made.

use device::Cause;
use store::node::{self, Stored};

use super::PathTree;
use super::assembly::{Stamp, write_page};
use super::choice::{Apart, WITHOUT_WAY, Way, steps_of};
use super::debts::Debts;
use super::ground::Ground;
use super::layout::{HEIGHT_MOST, Layout};
use super::page::Header;
use super::plan::capacity::Top;
use super::plan::{Edit, Rewrite};
use super::policy::Change;
use crate::Result;

/// A change of the nodes that the way holds from a level on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'o> {
    /// The level.
    pub(super) base: u8,
    pub(super) edit: Edit<'o>,
    pub(super) change: Change,
    pub(super) cause: Cause,
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
        match self.plan_order(order)?.way {
            Way::Together(change) => {
                let written = self.write_plan(order, change);
                if written.is_err() {
                    // Some of the change is counted, which is not made.
                    self.debts.forget();
                }
                written
            }
            Way::Apart(apart) => self.write_apart(order, apart),
            Way::Above => self.write_above(order),
        }
    }

    /// Writes what was planned.
    fn write_plan(&mut self, order: &Order<'_>, counts_as: Change) -> Result<()> {
        let height = self.standing.layout.height;
        let (state, nodes) = (self.standing.next, self.debts.nodes());
        let log = &mut self.ground.log;
        let sequence = log.reserve(self.plan.pages, &mut self.addresses, order.cause)?;
        self.discount_way(order.base);
        let steps = steps_of(&self.way, (order.base, height));
        let (steps, count) = steps.ok_or(super::damage(self.root, WITHOUT_WAY))?;
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
            self.ground.forget_node(self.way.spot(level).page, level);
        }
        let (mut last, mut top) = (None, None);
        for number in 0..self.plan.pages {
            let target = (self.ground.content(), &mut self.scratch);
            let header = write_page(&self.policy, (&self.plan, &change), number, &stamp, target)
                .map_err(|what| super::damage(self.root, what))?;
            let Some(address) = stamp.addresses.get(number as usize) else {
                return Err(super::damage(self.root, "a page has no address"));
            };
            count_nodes(&mut self.debts, &mut self.ground, &header);
            top = top_of(&mut self.ground, &header);
            self.ground.program(*address, &header, order.cause)?;
            last = Some((*address, header));
        }
        for level in order.base..height {
            let spot = self.way.spot(level);
            if spot.brief.lowest == level {
                self.live.remove(spot.page);
            }
        }
        self.addresses.iter().for_each(|page| self.live.add(*page));
        self.debts.note_growth((nodes, height));
        self.emptied += self.plan.nodes_emptied();
        if let Some((page, header)) = last.filter(|(_, header)| header.has_root) {
            self.stand_on(page, header);
            self.promise.top = top;
        }
        Ok(())
    }

    /// Counts the nodes of the way from `base` on no more: they are given up.
    fn discount_way(&mut self, base: u8) {
        let height = self.standing.layout.height;
        if !self.debts.counts_any() {
            return;
        }
        for level in base..height {
            let spot = self.way.spot(level);
            let is_new = matches!(spot.brief.lowest.cmp(&level), core::cmp::Ordering::Greater);
            if let Some(codec) = spot.codec()
                && !is_new
            {
                let node = self.way.node(level);
                self.debts.remove((level, height), codec.used_bytes(node), node::count(node));
            }
        }
        if self.plan.layout.height != height {
            self.debts.forget_inner();
        }
    }

    /// Writes the lowest nodes of the change into a page of their own, as large as they were, or a
    /// leaf larger, and the nodes above them behind that. Until these are written, nothing leads to
    /// them.
    fn write_apart(&mut self, order: &Order<'_>, apart: Apart) -> Result<()> {
        let Apart { layout, top } = apart;
        let (base, height) = (order.base, self.height());
        self.ground.content().fill(0xFF);
        let used = self.copy_apart(order, layout)?;
        for level in base + 1..=top {
            self.copy_apart(&Order { base: level, edit: Edit::Keep, ..*order }, layout)?;
        }
        let header =
            Header { layout, lowest: base, highest: top, has_root: false, ..self.standing };
        let pages = self.ground.pages;
        let mut is_linked = true;
        let mut other = core::mem::take(&mut self.scratch.other);
        let places: [usize; HEIGHT_MOST as usize] =
            core::array::from_fn(|level| self.way.spot(level as u8).place());
        let made = self.write_made_with((header, order.cause), &mut |page, content| {
            for level in base + 1..=top {
                if let Some((range, codec)) = pages.place_of(&layout, level) {
                    let child = page.0.to_le_bytes();
                    let room = other.get_mut(..codec.node_bytes()).unwrap_or_default();
                    let place = places[usize::from(level)];
                    let node = &mut content[range];
                    is_linked &= codec.replace(node, place, Stored::inline(&child), room);
                }
            }
        });
        self.scratch.other = other;
        let (page, _) = made?;
        if !is_linked {
            return Err(super::damage(page, "a node without its child"));
        }
        let edit = Edit::Replace { value: &page.0.to_le_bytes() };
        let above = Order { base: top + 1, edit, change: Change::Move, ..*order };
        self.rewrite_above(&above, (base, 1))?;
        for level in base..=top {
            let (used, entries) = if level == base { used } else { self.way_used(level) };
            self.debts.add((level, height), used, entries);
        }
        self.live.add(page);
        Ok(())
    }

    /// Copies the node of the order's level to the page that is made, with its edit; returns the
    /// bytes that it uses, and its entries.
    pub(super) fn copy_apart(
        &mut self,
        order: &Order<'_>,
        layout: Layout,
    ) -> Result<(usize, usize)> {
        let level = order.base;
        let spot = *self.way.spot(level);
        let no_node = super::damage(spot.page, "a node that is none");
        let old_codec = *spot.codec().ok_or(no_node.clone())?;
        let (range, codec) = self.ground.pages.place_of(&layout, level).ok_or(no_node.clone())?;
        let (node, from) = (&mut self.ground.content()[range], self.way.node(level));
        let is_copied = if codec == old_codec {
            let kept = codec.kept_bytes(from);
            device::copy(&mut node[..kept], &from[..kept]);
            true
        } else {
            codec.initialise(node, level);
            codec.append(node, (&old_codec, from), 0..node::count(from))
        };
        let other = self.scratch.other.get_mut(..codec.node_bytes()).unwrap_or_default();
        let is_edited = is_copied
            && match order.edit {
                Edit::Keep => true,
                Edit::Append => false,
                Edit::Insert { key, value } => {
                    codec.insert(node, spot.place(), key, Stored::inline(value), other)
                }
                Edit::Replace { value } => {
                    codec.replace(node, spot.place(), Stored::inline(value), other)
                }
                Edit::Remove => {
                    codec.remove(node, spot.place());
                    true
                }
            };
        if !is_edited {
            return Err(no_node);
        }
        Ok((codec.used_bytes(node), node::count(node)))
    }

    /// Bytes that the node of the way of `level` uses, and its entries.
    pub(super) fn way_used(&self, level: u8) -> (usize, usize) {
        let node = self.way.node(level);
        let used = self.way.spot(level).codec().map_or(0, |codec| codec.used_bytes(node));
        (used, node::count(node))
    }

    /// Gives up the lowest node of the change, whose only entry goes: so the node above loses a
    /// child.
    fn write_above(&mut self, order: &Order<'_>) -> Result<()> {
        self.rewrite_above(&Order { base: order.base + 1, ..*order }, (order.base, 0))?;
        self.emptied += 1;
        Ok(())
    }

    /// Makes a change that begins above nodes of the way, from a base on, which are given up, and
    /// for which so many pages were written.
    fn rewrite_above(&mut self, above: &Order<'_>, (base, written): (u8, u32)) -> Result<()> {
        let height = self.height();
        // Other nodes of a page may live on.
        let is_given_up = |tree: &Self, level: u8| tree.way.spot(level).brief.lowest == level;
        let given_up = (base..above.base).filter(|level| is_given_up(self, *level)).count();
        let live_pages = self.standing.live_pages;
        self.standing.live_pages = (live_pages + written).saturating_sub(given_up as u32);
        if let Err(error) = self.rewrite(above) {
            self.standing.live_pages = live_pages;
            return Err(error);
        }
        for level in base..above.base {
            let (used, entries) = self.way_used(level);
            self.debts.remove((level, height), used, entries);
            let page = self.way.spot(level).page;
            self.ground.forget_node(page, level);
            if is_given_up(self, level) {
                self.live.remove(page);
            }
        }
        Ok(())
    }
}

/// What the root holds in the page that is made.
pub(super) fn top_of(ground: &mut Ground<'_>, header: &Header) -> Option<Top> {
    let (range, codec) = ground.pages.place_of(&header.layout, header.highest)?;
    let node = &ground.content()[range];
    Some(Top::of(&codec, node))
}

/// Counts the nodes of the page that is made.
fn count_nodes(debts: &mut Debts, ground: &mut Ground<'_>, header: &Header) {
    if !debts.counts_any() {
        return;
    }
    let pages = ground.pages;
    for level in header.lowest..=header.highest {
        if let Some((range, codec)) = pages.place_of(&header.layout, level) {
            let used = codec.used_bytes(&ground.content()[range.clone()]);
            let entries = node::count(&ground.content()[range]);
            debts.add((level, header.layout.height), used, entries);
        }
    }
}
