//! What is let in: only what has room in the worst case, with all that is buffered before it.
//!
//! Room is counted in pages of all blocks that are neither bad nor pinned. Of these the tree's live
//! pages are taken; then what the updates write in the worst case, since nothing can be reclaimed
//! while a batch is made; and a reserve: to move a whole block, and for one that the chip may
//! refuse. Puts leave a second reserve, on which deletes draw. Where only that is left, a put is
//! taken by itself if it makes no page more live, and what would split a node because it is resized
//! leaves it as large as it is: so what was deleted is room again, and deletes never lack any: one
//! alone is taken if room can be made for it, whatever is counted. What deletes need of a higher
//! tree is asked for before a put may raise it; where only that is short, a put is planned, and
//! taken by itself if it leaves as much. The page log keeps back what journal and checkpoints take,
//! and finds as much room for a replay as there was.
//!
//! Where pages name their own division, the tree may come to more pages than live, without any put:
//! [`super::debts`] says to how many, and these are taken instead of the live ones.
//!
//! # Invariants
//! - What the tree has to find, what one update writes and the reserve are never more than there
//!   is. No delete and no move raises the first; a put is let in only if that holds after it, and
//!   after all that is buffered before it.
//! - An update that is refused has changed nothing, but for what was buffered, which may be in the
//!   tree then.

use device::Cause;
use store::Update;

use super::choice::{Chosen, Way};
use super::debts::Growth;
use super::layout::Division;
use super::plan::capacity::Top;
use super::plan::worst::{self, Worst};
use super::policy::Change;
use super::rewrite::Order;
use super::{Durably, PathTree};
use crate::Result;

/// Blocks that are used, but not by the tree's pages alone: the one that is being filled, the one
/// that was when the log was opened, and the page log's own.
pub(super) const BLOCKS_BEGUN: u32 = 3;

/// In trees of up to so many nodes, all are looked at before a put that raises them is refused.
const NODES_LOOKED_AT: u64 = 1024;

/// What is known of the worst case at the present height, so that it is not computed each time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    height: u8,
    /// The most pages that one update writes.
    pub(super) pages_each: u64,
    /// So many more in a tree that is one level higher.
    more_if_raised: u32,
    fitting: Fitting,
}

/// So many updates fit a tree of so many live pages and such a root, on a chip of at least so many
/// pages.
#[derive(Clone, Copy, Debug, Default)]
struct Fitting {
    updates: u64,
    live: u32,
    pages: u32,
    /// What they write at the most.
    written: u64,
    /// How high the tree becomes depends on its root.
    top: Option<Top>,
}

impl Fitting {
    /// So many updates, which write so much, fit a tree of `live` of so many pages: of which a chip
    /// has no more than a u32 counts.
    fn new((updates, written): (u64, u64), (live, pages): (u64, u64), top: Option<Top>) -> Self {
        let count = |pages| u32::try_from(pages).unwrap_or(u32::MAX);
        Fitting { updates, live: count(live), pages: count(pages), written, top }
    }

    /// True if it holds of a tree with a root that holds no more.
    fn holds_of(&self, top: Option<Top>) -> bool {
        match (self.top, top) {
            (Some(known), Some(top)) => top.entries <= known.entries && top.bytes <= known.bytes,
            _ => false,
        }
    }
}

/// What was asked last of the worst of updates, by height, live pages and updates, and the answer:
/// each update asks the same several times, and the next one mostly, too. No tree has no level.
pub(super) type Answer = ((u8, u32, u64), Worst);

/// What a batch asks for.
#[derive(Clone, Copy, Debug)]
struct Wish {
    updates: u64,
    puts: u64,
}

/// Pages that moving so many pages of a tree of `height` levels takes, splits aside.
pub(super) const fn moved_pages(division: Division, height: u8, pages: u64) -> u64 {
    match division {
        Division::Whole => pages * height as u64,
        Division::Even | Division::Halves => pages,
    }
}

/// What live pages take, of pages that can be reclaimed at all: where every page is moved with
/// all above it, blocks that are too full cost more than they give.
pub(super) const fn held_pages(division: Division, height: u8, live: u64) -> u64 {
    match division {
        Division::Whole => live * height as u64 * 9 / 8,
        Division::Even | Division::Halves => live,
    }
}

/// Puts leave one in so many pages free.
pub(super) const fn margin_part(durably: Durably) -> u64 {
    match durably {
        Durably::ByCheckpoints => 16,
        Durably::Not => 32,
    }
}

impl PathTree<'_> {
    /// Refuses a batch that has no room; where it lasts, room is made for it.
    pub(super) fn admit_updates(&mut self, batch: &[Update<'_>], puts: usize) -> Result<()> {
        let wish = Wish { updates: batch.len() as u64, puts: puts as u64 };
        self.learn_worst();
        let fits = self.promise(batch)?;
        self.learn_if_near(wish.updates)?;
        self.top()?;
        let mut is_alone = false;
        // What is buffered takes less room in the tree than it may take in the worst case.
        while !self.has_room(&wish) {
            if self.write_oldest()? {
                continue;
            }
            if !self.has_room_alone(batch, &wish)? {
                return Err(self.no_room());
            }
            is_alone = true;
            break;
        }
        if self.durably != Durably::Not {
            let most = |tree: &Self| match is_alone {
                true => tree.worst.pages_each + tree.reserve_pages(),
                false => tree.pages_for(&wish),
            };
            let mut pages = most(self);
            if self.durably == Durably::ByCheckpoints
                && u64::from(self.ground.log.free_pages()) < pages
                && (self.buffer.len() > 0 || self.ground.log.released_blocks() > 0)
            {
                // Then nothing is buffered, and what was released is free.
                self.checkpoint_now()?;
                self.worst.fitting = Fitting::default();
                pages = most(self);
            }
            self.make_space(pages)?;
            self.collect_lazily(pages)?;
        }
        if !fits {
            self.try_batch(batch, self.pages_for(&wish))?;
        }
        Ok(())
    }

    /// True if a batch that has no room in the worst case is one update that has room as it is.
    /// Nothing is buffered.
    ///
    /// Where entries went, their nodes have room, though the chip has none for more nodes: so a put
    /// that splits nothing draws on what other puts leave free.
    fn has_room_alone(&mut self, batch: &[Update<'_>], wish: &Wish) -> Result<bool> {
        let [update] = batch else {
            return Ok(false);
        };
        let all = self.pages_all();
        let (value, most) = match update {
            Update::Delete { .. } => return Ok(self.has_room(wish)),
            Update::Adopt { .. } => return Ok(false),
            Update::Put { value, .. } => (Some(*value), all.saturating_sub(self.kept_free())),
        };
        let Some(order) = self.order_of((update.key(), value), Cause::Update)? else {
            return Ok(true);
        };
        if self.ground.pages.division != Division::Even {
            let filling = Wish { puts: 0, ..*wish };
            if !self.has_room(&filling) {
                return Ok(false);
            }
            return Ok(self.adds_no_page(&order)? || self.leaves_enough(&order, wish)?);
        }
        let chosen = match self.plan_order(&order) {
            Err(crate::Error::TreeFull { .. }) => return Ok(true),
            other => other?,
        };
        let kept = most.saturating_sub(self.pages_of_a_block());
        let most = if chosen.splits { self.pages_for_puts() } else { kept };
        Ok(chosen.pages <= most || self.fits_when_raised(&order, &chosen, most)?)
    }

    /// True if the change that is planned raises the tree, and so many pages suffice when all
    /// misfits are looked at that there are then: what is known of them is a bound.
    fn fits_when_raised(&mut self, order: &Order<'_>, chosen: &Chosen, most: u64) -> Result<bool> {
        let is_raised = self.plan.layout.height > self.height();
        let is_small = self.debts.nodes() <= NODES_LOOKED_AT;
        if !matches!(chosen.way, Way::Together(_)) || !is_raised || !is_small {
            return Ok(false);
        }
        let (growth, _) = self.chosen_growth(order)?;
        let deep = Some(self.deep_if_raised()?);
        Ok(self.pages_to_find((&Growth { deep, ..growth }, is_raised)) <= most)
    }

    /// True if the change, as it is, leaves deletes what they need, and what puts leave them.
    fn leaves_enough(&mut self, order: &Order<'_>, wish: &Wish) -> Result<bool> {
        match self.plan_order(order) {
            Err(crate::Error::TreeFull { .. }) => Ok(false),
            Err(error) => Err(error),
            Ok(_) => {
                let (growth, height) = self.planned(order.base);
                let live = u64::from(self.standing.live_pages) + u64::from(growth);
                let needed = self.needed_by_deletes(height, live) + self.left_by(wish);
                Ok(needed <= self.pages_all())
            }
        }
    }

    /// Pages that deletes and collection need, one after the other, of a tree of so many live pages
    /// and so many levels.
    fn needed_by_deletes(&self, height: u8, live: u64) -> u64 {
        let (division, block) = (self.ground.pages.division, self.pages_of_a_block());
        let each = match height.saturating_sub(self.height()) {
            0 => self.worst.pages_each,
            1 => self.worst.pages_each + u64::from(self.worst.more_if_raised),
            _ => {
                worst::pages_most(&self.policy, (height + 1).min(self.policy.height_most())).into()
            }
        };
        let reserve = moved_pages(division, height, block) + each + block;
        held_pages(division, height, live) + each + reserve
    }

    /// True if so many updates leave deletes what they need, of a tree that may be higher then;
    /// where it is known what nodes need, a plan says it.
    pub(super) fn leaves_deletes_enough(&self, updates: u64) -> bool {
        let live = u64::from(self.standing.live_pages);
        self.debts.is_known() || self.is_enough_after(updates, live)
    }

    fn is_enough_after(&self, updates: u64, live: u64) -> bool {
        let (height, growth) = (self.height_after(updates), self.growth_most(updates, live));
        self.needed_by_deletes(height, live + growth) <= self.pages_all()
    }

    /// Pages that the tree never has to find, so that one update has room after every delete, and
    /// a block can be collected.
    pub(super) fn kept_free(&self) -> u64 {
        self.worst.pages_each + self.reserve_pages()
    }

    /// Pages that the tree has to find at the most after a put.
    pub(super) fn pages_for_puts(&self) -> u64 {
        let wish = Wish { updates: 1, puts: 1 };
        self.pages_all().saturating_sub(self.worst.pages_each + self.margin(&wish))
    }

    /// True if nodes may be split that need not be, by a change after which the tree has to find so
    /// many pages.
    pub(super) fn may_split(&mut self, pages: u64) -> bool {
        if pages > self.pages_for_puts() / 8 * 7 {
            self.debts.is_filled = true;
        }
        !self.debts.is_filled
    }

    /// Pages that the tree has to find at the most after a change that adds so much, and whether it
    /// is higher then.
    pub(super) fn pages_to_find(&self, (growth, is_raised): (&Growth, bool)) -> u64 {
        let live = u64::from(self.standing.live_pages);
        if self.debts.is_known() {
            // Every update may write more then, and as much has to be free after it.
            let more = if is_raised { 2 * u64::from(self.worst.more_if_raised) } else { 0 };
            self.debts.pages(live, self.height(), (growth, is_raised)) + more
        } else {
            self.held_pages(live + growth.pages)
        }
    }

    /// Counts the nodes if they are not, and the tree may fill the chip.
    fn learn_if_near(&mut self, updates: u64) -> Result<()> {
        if self.is_near(updates) { self.learn_debts() } else { Ok(()) }
    }

    /// True if the tree may fill the chip after so many updates, and what nodes need is not known.
    pub(super) fn is_near(&self, updates: u64) -> bool {
        if self.debts.is_known() {
            return false;
        }
        let live = u64::from(self.standing.live_pages);
        let updates = updates + self.buffer.len() as u64;
        let nodes = live + self.growth_most(updates, live);
        // Every node of the way to each leaf may be its own, and a misfit.
        nodes * 3 * u64::from(self.height() + 1) > self.pages_for_puts()
    }

    /// Room for one change of the tree, where nothing lasts; otherwise it was made beforehand.
    pub(super) fn make_room_for_one(&mut self) -> Result<()> {
        if self.durably != Durably::Not {
            return Ok(());
        }
        self.learn_worst();
        self.learn_if_near(1)?;
        let pages = self.kept_free();
        self.make_space(pages)?;
        self.collect_lazily(pages)
    }

    pub(super) fn learn_worst(&mut self) {
        let height = self.height();
        if self.worst.height == height {
            return;
        }
        let most = self.policy.height_most();
        let pages_of = |height: u8| worst::pages_most(&self.policy, height.min(most));
        let pages_each = pages_of(height + 1);
        self.worst = Known {
            height,
            pages_each: pages_each.into(),
            more_if_raised: pages_of(height + 2).saturating_sub(pages_each),
            fitting: Fitting::default(),
        };
    }

    /// What has to be free beside what updates write.
    fn margin(&self, wish: &Wish) -> u64 {
        self.reserve_pages() + self.left_by(wish)
    }

    /// What puts leave free, for deletes to draw on.
    fn left_by(&self, wish: &Wish) -> u64 {
        let part = margin_part(self.durably);
        if wish.puts > 0 { self.pages_of_a_block() + self.pages_all() / part } else { 0 }
    }

    /// True if a batch has room, with all that is buffered before it.
    fn has_room(&mut self, wish: &Wish) -> bool {
        let updates = wish.updates + self.buffer.len() as u64;
        let live = u64::from(self.standing.live_pages);
        let all = self.pages_all();
        let known = self.worst.fitting;
        // Puts left a delete room: it is taken if that can be made.
        let is_delete = wish.puts == 0 && updates == 1;
        if self.debts.is_known() {
            return self.has_room_beside_debts(wish, updates) || is_delete;
        }
        if is_delete {
            return true;
        }
        let is_covered = updates <= known.updates && live <= known.live.into();
        if is_covered && all >= known.pages.into() && known.holds_of(self.promise.top) {
            return true;
        }
        let (more, higher) = (updates + updates / 4, live + live / 64);
        if wish.puts > 0 && self.fits(wish, more, higher) {
            let written = self.written_by(more, higher);
            self.worst.fitting = Fitting::new((more, written), (higher, all), self.promise.top);
            return true;
        }
        self.worst.fitting = Fitting::default();
        let fits = self.fits(wish, updates, live);
        if fits && wish.puts > 0 {
            let written = self.written_by(updates, live);
            self.worst.fitting = Fitting::new((updates, written), (live, all), self.promise.top);
        }
        fits
    }

    /// As [`PathTree::has_room`], where it is known what nodes need.
    fn has_room_beside_debts(&mut self, wish: &Wish, updates: u64) -> bool {
        let live = u64::from(self.standing.live_pages);
        let now = self.pages_to_find((&Growth::default(), false));
        if now < self.pages_for_puts() / 2 {
            self.debts.is_filled = false;
        }
        self.worst.fitting = Fitting::default();
        self.fits(wish, updates, live)
    }

    fn fits(&self, wish: &Wish, updates: u64, live: u64) -> bool {
        let all = self.pages_all();
        if self.debts.is_known() {
            let needed = self.pages_to_find_after(updates) + self.worst.pages_each;
            if needed + self.margin(wish) > all {
                return false;
            }
            if self.durably == Durably::Not {
                return true;
            }
        } else if !self.is_enough_after(updates, live) {
            return false;
        }
        let needed = match self.durably {
            // Blocks can be made free after each update.
            Durably::Not => {
                let growth = self.growth_most(updates, live);
                self.held_after(updates, live + growth) + self.worst.pages_each
            }
            Durably::ByCheckpoints => {
                let growth = self.held_after(updates, live).saturating_sub(self.held_pages(live));
                self.pages_held(live) + growth + self.written_by(updates, live)
            }
        };
        needed + self.margin(wish) <= all
    }

    /// What live pages take, with what they may come to take.
    fn pages_held(&self, live: u64) -> u64 {
        let more = live.saturating_sub(u64::from(self.standing.live_pages));
        if self.debts.is_known() {
            self.pages_to_find((&Growth::default(), false)) + more
        } else {
            self.held_pages(live)
        }
    }

    /// Pages that the tree has to find after so many updates, at the most.
    fn pages_to_find_after(&self, updates: u64) -> u64 {
        let live = u64::from(self.standing.live_pages);
        let pages = self.growth_most(updates, live);
        let children = self.worst_of(updates, live).root_children;
        let root = self.debts.root_used() + children * self.policy.child_bytes_most() as u64;
        let class = self.debts.inner_class(root, self.height());
        // Each page more has a node more that is its lowest, of whatever level.
        let growth = Growth {
            leaves: pages,
            pages,
            alone: updates,
            class,
            root: children,
            ..Growth::default()
        };
        self.pages_to_find((&growth, self.debts.is_misfit(class)))
    }

    /// True if a change that adds so many live pages, and comes to so many levels, would leave less
    /// than what deletes after it draw on, or, if it is a put, less than what puts leave them.
    pub(super) fn is_tight(&self, (growth, height): (u32, u8), change: Change) -> bool {
        let is_put = u64::from(change == Change::Put);
        let live = u64::from(self.standing.live_pages) + u64::from(growth);
        let left = self.left_by(&Wish { updates: 1, puts: is_put });
        self.needed_by_deletes(height, live) + left > self.pages_all()
    }

    /// Pages that have to be free before a batch that has room.
    fn pages_for(&self, wish: &Wish) -> u64 {
        let updates = wish.updates + self.buffer.len() as u64;
        let known = self.worst.fitting;
        let written = match known.updates {
            0 => self.written_most(updates),
            // What is known is of more updates, which may be far more.
            _ => known.written.min(updates * self.worst.pages_each),
        };
        written + self.reserve_pages()
    }
}
