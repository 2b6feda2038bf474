//! Nodes that stand apart from those above them, in a page of their own, where none may be split.

use store::node;

use super::PathTree;
use super::choice::{Apart, Way};
use super::layout::{Layout, Share};
use super::plan::Edit;
use super::rewrite::Order;

impl PathTree<'_> {
    /// True if the node of the way of `level` is larger than any of the present height can be.
    pub(super) fn is_misfit_at(&self, level: u8) -> bool {
        let codec = self.way.spot(level).codec();
        let used = codec.map(|codec| codec.used_bytes(self.way.node(level)));
        used.is_some_and(|used| self.debts.is_misfit_of((level, self.height()), used))
    }

    /// A page for the lowest node of a change, as it is or with the edit; with as many above it as
    /// have room, if `is_filled`, for these may have none beside those above them.
    pub(super) fn apart(&self, order: &Order<'_>, is_filled: bool) -> Option<Apart> {
        let (base, height) = (order.base, self.height());
        if base + 1 >= height {
            return None;
        }
        if is_filled && !self.ground.pages.is_variable() {
            let tops = (base + 1..height - 1).rev();
            let found = tops.clone().find_map(|top| {
                let layouts = (top + 2..=height).filter_map(|height| {
                    let leaf = self.leaf_share_for(order, height)?;
                    Some(Layout { leaf, height, ..self.standing.next.layout })
                });
                let mut fitting = layouts.filter(|layout| self.fit_apart((base, top), layout));
                fitting.next().map(|layout| Apart { layout, top })
            });
            if found.is_some() {
                return found;
            }
        }
        let layout = self.layout_alone((base, order.edit))?;
        Some(Apart { layout, top: base })
    }

    /// The smallest share in which the leaf of a change has room, in a tree of `height` levels;
    /// the smallest there is for a change that begins above the leaf.
    fn leaf_share_for(&self, order: &Order<'_>, height: u8) -> Option<Share> {
        let shares = self.policy.leaves(height);
        if order.base > 0 {
            let stays = matches!(order.edit, Edit::Keep | Edit::Replace { .. });
            return shares.last().filter(|_| stays);
        }
        let more = match order.edit {
            Edit::Insert { key, value } => key.len() + value.len(),
            Edit::Remove if node::count(self.way.node(0)) == 1 => return None,
            Edit::Append => return None,
            Edit::Keep | Edit::Replace { .. } | Edit::Remove => 0,
        };
        let codec = self.way.spot(0).codec()?;
        let used = codec.used_bytes(self.way.node(0)) + more;
        let area = self.ground.pages.area();
        shares.take_while(|share| share.of(area) as usize >= used).last()
    }

    /// True if the nodes of the way of these levels, the leaf aside, have room in a page of
    /// `layout`.
    fn fit_apart(&self, (base, top): (u8, u8), layout: &Layout) -> bool {
        let area = self.ground.pages.area();
        (base.max(1)..=top).all(|level| {
            let part = layout.part(area, level).map_or(0, |part| part.bytes as usize);
            let codec = self.way.spot(level).codec();
            codec.is_some_and(|codec| codec.used_bytes(self.way.node(level)) <= part)
        })
    }

    /// Where a change goes that splits no node, though nodes that were made when the tree was lower
    /// have no room beside each other, and the root none for more of their like. `None` if it adds
    /// something.
    pub(super) fn way_without_splits(&self, order: &Order<'_>) -> Option<Way> {
        if order.base + 1 >= self.height() {
            return None;
        }
        let goes =
            matches!(order.edit, Edit::Remove) && node::count(self.way.node(order.base)) == 1;
        if goes {
            return Some(Way::Above);
        }
        self.apart(order, true).map(Way::Apart)
    }

    /// How a page is divided in which the node of the way of a level stands alone: as its old one
    /// was, or with the largest leaf there is, if that one has no room for the edit. `None` if none
    /// has.
    pub(super) fn layout_alone(&self, (level, edit): (u8, Edit<'_>)) -> Option<Layout> {
        let spot = *self.way.spot(level);
        let (old, pages) = (spot.brief.layout, &self.ground.pages);
        let codec = spot.codec()?;
        let node = self.way.node(level);
        let stays = match edit {
            Edit::Keep => true,
            Edit::Insert { key, value } => codec.has_room(node, key, value.len()),
            Edit::Replace { value } => value.len() <= codec.value(node, spot.place()).bytes().len(),
            Edit::Remove => node::count(node) > 1,
            Edit::Append => false,
        };
        if stays || level > 0 {
            return stays.then_some(old);
        }
        // The lowest tree that has inner nodes has the largest leaves.
        let leaf = self.policy.leaves(2).next()?;
        let largest = Layout { leaf, height: 2, ..old };
        let is_insert = matches!(edit, Edit::Insert { .. }) && !pages.is_variable();
        let has_room = is_insert && node::count(node) < pages.capacity(&largest, 0);
        has_room.then_some(largest)
    }
}
