//! That what is acknowledged can be written: a tree that can't become higher takes no more children
//! in its root, and whether a put makes it need another one is seen only when it is made.
//!
//! So long as the tree takes all that waits, whatever the keys are ([`Capacity`]), updates wait in
//! the operation buffer and the journal. What it takes for certain is computed once for many
//! updates, which are only counted. Where it may not take as many, nothing waits: what was
//! buffered goes to the tree, each batch is tried before it is taken, and only that is refused
//! which has no room.
//!
//! Where nodes name their own division, that holds so long as changes are sparing; one that is not
//! is made only if what waits, and what a journal may hold, fits after it, too
//! ([`PathTree::keeps_promise`]).
//!
//! # Replay
//! A replay begins with the tree of the last checkpoint, and buffers as it has memory. So what
//! stands in the journal fits that tree in any order, or it was made one by one, without the
//! buffer, and the replay does the same. A batch for which neither holds lasts by a checkpoint.

use device::Cause;
use store::{Recovery, Update};

use super::layout::{CHILD_BYTES, Division, SLOT_BYTES_MOST};
use super::plan::capacity::{Capacity, Top};
use super::rewrite::Order;
use super::{Durably, PathTree};
use crate::Result;

/// Where not even so many updates fit for certain, none are buffered.
const UPDATES_LEAST: u64 = 64;

/// Longest keys are remembered in steps of so many bytes: each step ends what was promised.
const KEY_STEP: usize = 16;

/// The same where nodes name their own division: what is promised is counted in longest keys.
const KEY_STEP_ADAPTIVE: usize = 4;

/// What the tree is known to take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promise {
    mode: Mode,
    /// Units that fit for certain beside those that wait.
    left: u32,
    /// Units made since the last checkpoint.
    since: u32,
    /// Units that fitted the tree of the last checkpoint, if that is known.
    at_checkpoint: Option<u32>,
    /// Units of the batch at hand that are not made yet.
    batch: u32,
    /// The batch at hand goes to the tree at once.
    is_direct: bool,
    /// It was tried, and nothing may be moved before it is made.
    pub(super) is_tried: bool,
    /// The height at which nothing fitted for certain; 0 if there was none.
    vain_height: u8,
    /// Bytes of the longest key there is, or more; 0 if all are alike.
    pub(super) key_bytes: u16,
    /// The root as it stands, if that is known.
    pub(super) top: Option<Top>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Not known yet.
    #[default]
    Unknown,
    /// Updates wait in the operation buffer, if there is one.
    Buffered,
    /// Each is made at once.
    Direct,
}

impl Promise {
    /// All is in the tree, and on flash.
    pub(super) fn begin_anew(&mut self) {
        (self.mode, self.left, self.since, self.vain_height) = (Mode::Unknown, 0, 0, 0);
        self.at_checkpoint = None;
    }

    /// The longest key that a root record tells of.
    pub(super) fn restore(&mut self, key_bytes: u16) {
        *self = Promise { key_bytes, ..Promise::default() };
    }
}

impl PathTree<'_> {
    /// What an update takes: where lengths vary and nodes keep their size its bytes, otherwise one.
    fn units_of(&self, update: &Update<'_>) -> u64 {
        let value = match update {
            Update::Put { value, .. } => Some(value.len()),
            Update::Adopt { .. } | Update::Delete { .. } => None,
        };
        if self.counts_bytes() {
            return (update.key().len() + value.unwrap_or(0) + SLOT_BYTES_MOST) as u64;
        }
        // Where nodes keep their size, a delete splits none.
        u64::from(value.is_some() || self.is_adaptive())
    }

    /// True where an update's units are its bytes.
    fn counts_bytes(&self) -> bool {
        self.ground.pages.is_variable() && !self.is_adaptive()
    }

    fn units_least(&self) -> u64 {
        let pages = &self.ground.pages;
        if !self.counts_bytes() {
            return UPDATES_LEAST;
        }
        let entry = crate::random_keys::average_bytes(pages.shape.key)
            + crate::random_keys::average_bytes(pages.shape.value);
        UPDATES_LEAST * (u64::from(entry) + SLOT_BYTES_MOST as u64)
    }

    /// Units of what is buffered.
    fn units_waiting(&self) -> u64 {
        match self.counts_bytes() {
            true => (self.buffer.live_bytes() + 2 * self.buffer.len()) as u64,
            false => self.buffer.len() as u64,
        }
    }

    /// Counts an update that is made.
    pub(super) fn count_made(&mut self, update: &Update<'_>) {
        let units = bounded(self.units_of(update));
        self.promise.since = self.promise.since.saturating_add(units);
        match self.promise.batch.checked_sub(units) {
            Some(rest) => self.promise.batch = rest,
            // A replay asks for no admission.
            None => self.promise.left = self.promise.left.saturating_sub(units),
        }
    }

    /// True if an update goes to the tree at once.
    pub(super) fn goes_directly(&mut self) -> Result<bool> {
        self.know_mode()?;
        let has_buffer = self.buffer.memory_bytes() > 0;
        Ok(!has_buffer || self.promise.is_direct || self.promise.mode == Mode::Direct)
    }

    /// Chooses a mode where nothing waits: after a checkpoint, or for a replay.
    fn know_mode(&mut self) -> Result<()> {
        if self.promise.mode == Mode::Unknown {
            let fits = self.units_that_fit()?;
            self.set_mode(fits, self.promise.batch.into());
        }
        Ok(())
    }

    fn set_mode(&mut self, fits: u64, taken: u64) {
        let is_low = fits < self.units_least();
        self.promise.mode = if is_low { Mode::Direct } else { Mode::Buffered };
        self.promise.left = if is_low { 0 } else { bounded(fits.saturating_sub(taken)) };
        self.promise.vain_height = if is_low { self.height() } else { 0 };
    }

    /// True where how nodes are split is up to what is promised.
    fn is_adaptive(&self) -> bool {
        self.ground.pages.division == Division::Even
    }

    /// True if what is promised fits the tree for certain after the change that is planned.
    pub(super) fn keeps_promise(&mut self, order: &Order<'_>) -> bool {
        let is_sparing = |tree: &Self| {
            let key_bytes = usize::from(tree.promise.key_bytes);
            let is_counted = !tree.is_leaf_moved(order) || !tree.plan.splits_leaf();
            is_counted && tree.plan.is_sparing(&tree.policy, key_bytes)
        };
        if !self.is_adaptive() || is_sparing(self) {
            return true;
        }
        let (growth, height) = self.planned(order.base);
        let live = u64::from(self.standing.live_pages) + u64::from(growth);
        let tree = (height, self.plan.top());
        let has_room = |units| units == 0 || self.capacity().is_room_for(units, tree, live);
        let waiting = self.units_waiting() + u64::from(self.promise.batch);
        if has_room(waiting + u64::from(self.promise.left)) {
            return true;
        }
        // Nothing has drawn yet on what is left, but what a replay is to make.
        let is_bound =
            self.has_journal() && self.promise.mode == Mode::Buffered && !self.promise.is_direct;
        let is_kept = !is_bound && has_room(waiting);
        if is_kept {
            self.promise.left = 0;
        }
        is_kept
    }

    /// True if the batch fits for certain, with all that waits; else nothing waits any more, and
    /// it has to be tried.
    pub(super) fn promise(&mut self, batch: &[Update<'_>]) -> Result<bool> {
        let units: u64 = batch.iter().map(|update| self.units_of(update)).sum();
        // Nothing is promised to it yet.
        self.promise.batch = 0;
        (self.promise.is_direct, self.promise.is_tried) = (false, false);
        self.note_keys(batch)?;
        let is_promised = self.is_promised(units)?;
        if is_promised {
            self.promise.batch = bounded(units);
            return Ok(true);
        }
        (self.promise.is_direct, self.promise.left) = (true, 0);
        self.is_bounded(batch.len() as u64)
    }

    /// True if so many units fit for certain, with all that waits; else nothing waits any more.
    fn is_promised(&mut self, units: u64) -> Result<bool> {
        if self.promise.mode != Mode::Unknown && units <= self.promise.left.into() {
            self.promise.left -= bounded(units);
            return Ok(true);
        }
        if self.promise.vain_height != self.height() && self.is_proven(units)? {
            return Ok(true);
        }
        if self.promise.mode == Mode::Buffered && !self.has_journal() {
            // Those that were not used for longest make way: 4.3.3.
            for _ in 0..self.buffer.len().div_ceil(4) {
                self.write_oldest()?;
            }
            if self.is_proven(units)? {
                return Ok(true);
            }
        }
        if self.promise.mode != Mode::Direct || self.buffer.len() > 0 {
            self.write_all()?;
            return self.is_proven(units);
        }
        Ok(false)
    }

    /// True if so many updates, made at once, leave a quarter of the root free of a tree that can't
    /// become higher, whatever they are. Where lengths vary nothing is promised for many updates,
    /// but for a few this says it.
    fn is_bounded(&mut self, updates: u64) -> Result<bool> {
        if !self.ground.pages.is_variable() || self.policy.height_most() == 1 {
            return Ok(false);
        }
        // The root of a tree that becomes higher is the first child of the next.
        let is_highest = self.height() == self.policy.height_most();
        let children = if is_highest { u64::from(self.top()?.entries) } else { 1 };
        let live = u64::from(self.standing.live_pages);
        let children = children.saturating_add(self.worst_of(updates, live).root_children);
        let capacity = self.capacity();
        Ok(children.saturating_mul(capacity.child_units()) <= capacity.root_room() * 3 / 4)
    }

    /// True if the batch at hand was tried, and a replay may have no room for it.
    pub(super) fn settles(&mut self) -> Result<bool> {
        if !self.has_journal() || !self.promise.is_direct {
            return Ok(false);
        }
        self.know_mode()?;
        Ok(self.promise.mode == Mode::Buffered || self.is_replay_open()?)
    }

    /// Writes what waits to the tree; where there is a journal, the tree to flash.
    fn write_all(&mut self) -> Result<()> {
        if self.has_journal() {
            if self.promise.since > 0 || self.buffer.len() > 0 {
                self.checkpoint_now()?;
            }
            return Ok(());
        }
        self.write_buffer()
    }

    fn has_journal(&self) -> bool {
        self.ground.log.durability().has_journal()
    }

    /// True if a replay, which moves nothing, might have no room for what has room now.
    fn is_replay_open(&mut self) -> Result<bool> {
        let is_adaptive = self.ground.pages.division == Division::Even;
        Ok(is_adaptive && self.height() == self.policy.height_most() && self.is_root_half_used()?)
    }

    /// Notes the longest key of `batch`.
    fn note_keys(&mut self, batch: &[Update<'_>]) -> Result<()> {
        if !self.ground.pages.is_variable() {
            return Ok(());
        }
        let longest = batch.iter().map(|update| update.key().len()).max().unwrap_or(0);
        if longest <= self.promise.key_bytes.into() {
            return Ok(());
        }
        // What waits was promised room among shorter keys.
        self.write_buffer()?;
        self.know_key(longest);
        if self.has_journal() {
            // The next replay must find it in the root record.
            self.checkpoint_now()?;
        }
        (self.promise.mode, self.promise.left) = (Mode::Unknown, 0);
        Ok(())
    }

    /// Notes that there is a key of so many bytes.
    pub(super) fn know_key(&mut self, bytes: usize) {
        if bytes > self.promise.key_bytes.into() && self.ground.pages.is_variable() {
            let step = if self.is_adaptive() { KEY_STEP_ADAPTIVE } else { KEY_STEP };
            let known = bytes.next_multiple_of(step).min(self.limits.key);
            self.promise.key_bytes = u16::try_from(known).unwrap_or(u16::MAX);
        }
    }

    /// Sees whether so many units fit for certain beside what waits, and some more.
    fn is_proven(&mut self, units: u64) -> Result<bool> {
        if self.has_journal() && self.promise.since > 0 {
            // A replay begins where the last checkpoint was.
            return Ok(false);
        }
        let (fits, waiting) = (self.units_that_fit()?, self.units_waiting());
        if waiting == 0 {
            self.set_mode(fits, units);
        }
        let is_proven = fits >= waiting + units
            && fits >= self.units_least()
            && (waiting == 0 || fits - waiting - units >= self.units_least());
        if is_proven {
            self.set_mode(fits, waiting + units);
        }
        Ok(is_proven)
    }

    /// Units that the tree takes, whatever the keys are; where nodes name their own division, half
    /// of them: meanwhile the tree may grow as its policy says, which is not always sparing.
    fn units_that_fit(&mut self) -> Result<u64> {
        let top = self.top()?;
        let live = u64::from(self.standing.live_pages);
        let fits = self.capacity().units_that_fit(self.height(), top, live);
        let fits = if self.is_adaptive() { fits / 2 } else { fits };
        if !self.has_journal() {
            return Ok(fits);
        }
        // A replay begins there.
        let then = *self.promise.at_checkpoint.get_or_insert(bounded(fits));
        Ok(fits.min(then.into()))
    }

    /// Learns what fits the tree of the last checkpoint, before anything of it is moved.
    pub(super) fn learn_what_fits(&mut self) -> Result<()> {
        if self.has_journal() && self.promise.at_checkpoint.is_none() {
            self.units_that_fit()?;
        }
        Ok(())
    }

    /// The most levels that the tree has after so many updates, or after one if its root is not
    /// known.
    pub(super) fn height_after(&self, updates: u64) -> u8 {
        let is_variable = self.ground.pages.is_variable();
        let each = if is_variable { self.limits.entry + SLOT_BYTES_MOST } else { 1 };
        let (height, live) = (self.height(), u64::from(self.standing.live_pages));
        let updates = (updates.min(u32::MAX.into()), each as u64);
        let after = |top| self.capacity().height_after(updates, (height, top), live);
        let raised = (height + 1).min(self.policy.height_most());
        self.promise.top.map_or(raised, after)
    }

    fn capacity(&self) -> Capacity<'_> {
        let key = usize::from(self.promise.key_bytes);
        Capacity::new(&self.policy, key + usize::from(CHILD_BYTES) + SLOT_BYTES_MOST)
    }

    /// What the root holds.
    pub(super) fn top(&mut self) -> Result<Top> {
        if let Some(top) = self.promise.top {
            return Ok(top);
        }
        let root = (self.root, self.height() - 1);
        let top = self.ground.visit(root, Cause::Update, |_, codec, node| Top::of(codec, node))?;
        self.promise.top = Some(top);
        Ok(top)
    }

    /// True if more than half of the root of a tree that can't become higher is in use.
    fn is_root_half_used(&mut self) -> Result<bool> {
        let top = self.top()?;
        let capacity = Capacity::new(&self.policy, self.policy.child_bytes_most());
        Ok(capacity.root_used(top) * 2 > capacity.root_room())
    }

    /// Refuses a batch that the tree has no room for. It is made, and the tree stands where it
    /// stood, unless it is one update, for which a plan says the same.
    pub(super) fn try_batch(&mut self, batch: &[Update<'_>], pages: u64) -> Result<()> {
        if let [update] = batch
            && self.is_known_to_fit(update)?
        {
            return Ok(());
        }
        // Nothing may be moved between the trial and the batch: there has to be room for both.
        if !self.is_room_left_by(batch, pages)? && !self.is_room_left_by(batch, 2 * pages)? {
            return Err(self.no_room());
        }
        Ok(())
    }

    /// Makes a batch for which so many pages are to be free, and takes it back; true if what it
    /// wrote has room once more.
    fn is_room_left_by(&mut self, batch: &[Update<'_>], pages: u64) -> Result<bool> {
        self.make_space(pages)?;
        let free = self.ground.log.free_pages();
        let (root, standing, top) = (self.root, self.standing, self.promise.top);
        let emptied = self.emptied;
        self.debts.is_trial = true;
        let outcome = batch.iter().try_for_each(|update| {
            self.change(update.key(), value_of(update), Cause::Update).map(|_| ())
        });
        self.debts.is_trial = false;
        self.live.forget();
        self.stand_on(root, standing);
        (self.promise.top, self.emptied) = (top, emptied);
        self.promise.is_tried = outcome.is_ok();
        outcome?;
        let left = self.ground.log.free_pages();
        let written = free.saturating_sub(left);
        Ok(u64::from(left) >= u64::from(written) + self.reserve_pages())
    }

    /// True if what is planned is what is done, and deletes split nothing.
    fn is_exactly_planned(&self) -> bool {
        !self.ground.pages.is_variable() && self.ground.pages.division != Division::Even
    }

    /// True if a look at the way says that the update has room.
    ///
    /// # Errors
    /// It has none.
    fn is_known_to_fit(&mut self, update: &Update<'_>) -> Result<bool> {
        let (height, most) = (self.height(), self.policy.height_most());
        if height + 1 < most || height < most && self.durably == Durably::Not {
            // One update makes a tree one level higher at the most; and where nothing lasts, it is
            // refused when it is made.
            return Ok(true);
        }
        if !self.is_exactly_planned() {
            return Ok(height < most && !self.may_raise(update)?);
        }
        if let Some(order) = self.order_of((update.key(), value_of(update)), Cause::Update)? {
            self.plan_order(&order)?;
        }
        Ok(true)
    }
}

/// No more than is promised at once.
fn bounded(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}

fn value_of<'u>(update: &Update<'u>) -> Option<&'u [u8]> {
    match update {
        Update::Put { value, .. } => Some(*value),
        Update::Adopt { .. } | Update::Delete { .. } => None,
    }
}
