//! One change of the tree: planned, written page by page, and with the last page made.

use device::Cause;
use store::node::{self, Stored};

use super::assembly::{Stamp, write_page};
use super::choice::{WITHOUT_WAY, Way, steps_of};
use super::debts::Debts;
use super::ground::Ground;
use super::page::Header;
use super::plan::capacity::Top;
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
        let Some(order) = self.order_of((key, value), closes, cause)? else {
            return Ok(false);
        };
        self.rewrite(&order)?;
        Ok(true)
    }

    /// Goes to where `key` is or belongs, and says what there is to do; `None` if there is nothing.
    pub(super) fn order_of<'o>(
        &mut self,
        (key, value): (&'o [u8], Option<&'o [u8]>),
        closes: bool,
        cause: Cause,
    ) -> Result<Option<Order<'o>>> {
        let is_found = self.descend(key, 0, cause)?;
        let (edit, change) = match (value, is_found) {
            (Some(value), true) => (Edit::Replace { value }, Change::Put),
            (Some(value), false) => (Edit::Insert { key, value }, Change::Put),
            (None, true) => (Edit::Remove, Change::Delete),
            (None, false) => return Ok(None),
        };
        Ok(Some(Order { base: 0, edit, change, closes, cause }))
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
        match self.plan_order(order)?.way {
            Way::Together(change) => {
                let written = self.write_plan(order, change);
                if written.is_err() {
                    // Some of the change is counted, which is not made.
                    self.debts.forget();
                }
                written
            }
            Way::Alone => self.write_alone(order),
            Way::Above => self.write_above(order),
        }
    }

    /// Writes what was planned.
    fn write_plan(&mut self, order: &Order<'_>, counts_as: Change) -> Result<()> {
        let height = self.standing.layout.height;
        let state = self.standing.next;
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
            closes_batch: order.closes && self.durably == Durably::ByItself,
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
                self.debts.remove((level, height), codec.used_bytes(self.way.node(level)));
            }
        }
        if self.plan.layout.height != height {
            self.debts.forget_inner();
        }
    }

    /// Writes the lowest node of the change into a page of its own, as large as it was, or a leaf
    /// larger, and the nodes above it behind that. Until these are written, nothing leads to it.
    fn write_alone(&mut self, order: &Order<'_>) -> Result<()> {
        let level = order.base;
        let spot = *self.way.spot(level);
        let height = self.height();
        let no_node = super::damage(spot.page, "a node that is none");
        let pages = self.ground.pages;
        let layout = self.layout_alone((level, order.edit)).ok_or(no_node.clone())?;
        let old_codec = *spot.codec().ok_or(no_node.clone())?;
        let codec = pages.codec(&layout, level).ok_or(no_node.clone())?;
        let range = pages.bytes_of(&layout, level).ok_or(no_node.clone())?;
        self.ground.content().fill(0xFF);
        let (node, from) = (&mut self.ground.content()[range.clone()], self.way.node(level));
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
        let used = codec.used_bytes(node);
        let header = Header {
            layout,
            lowest: level,
            highest: level,
            has_root: false,
            closes_batch: false,
            ..self.standing
        };
        let (page, _) = self.write_made(header, order.cause)?;
        let edit = Edit::Replace { value: &page.0.to_le_bytes() };
        let above = Order { base: level + 1, edit, change: Change::Move, ..*order };
        self.rewrite_above(&above, 1)?;
        self.debts.add((level, height), used);
        self.live.add(page);
        Ok(())
    }

    /// Gives up the lowest node of the change, whose only entry goes: so the node above loses a
    /// child.
    fn write_above(&mut self, order: &Order<'_>) -> Result<()> {
        self.rewrite_above(&Order { base: order.base + 1, ..*order }, 0)?;
        self.emptied += 1;
        Ok(())
    }

    /// Makes a change that begins above a node of the way which is given up, and for which so many
    /// pages were written.
    fn rewrite_above(&mut self, above: &Order<'_>, written: u32) -> Result<()> {
        let (level, height) = (above.base - 1, self.height());
        let spot = *self.way.spot(level);
        let codec = spot.codec().ok_or(super::damage(spot.page, "a node that is none"))?;
        let old_used = codec.used_bytes(self.way.node(level));
        // Other nodes of its page may live on.
        let is_given_up = spot.brief.lowest == level;
        let live_pages = self.standing.live_pages;
        let live_now = (live_pages + written).saturating_sub(u32::from(is_given_up));
        self.standing.live_pages = live_now;
        if let Err(error) = self.rewrite(above) {
            self.standing.live_pages = live_pages;
            return Err(error);
        }
        self.debts.remove((level, height), old_used);
        self.ground.forget_node(spot.page, level);
        if is_given_up {
            self.live.remove(spot.page);
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
            let used = codec.used_bytes(&ground.content()[range]);
            debts.add((level, header.layout.height), used);
        }
    }
}
