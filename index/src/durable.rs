//! The only implementation of [`Index`]: a tree, and what makes its updates last.
//!
//! One update, from top to bottom: [`Tree::admit`] refuses what can't be taken, with nothing
//! changed; a checkpoint is made if the journal or the undo log is full; the batch goes to the
//! journal; [`Tree::apply`] makes the change. Where the undo log gets full in the midst of a batch,
//! a checkpoint is made there, and the journal keeps the rest. A batch that is longer than the
//! journal, or that has long values, may last by a checkpoint instead. Opening replays the journal
//! through [`Tree::apply`] and makes a checkpoint of the outcome.

mod room;

use alloc::boxed::Box;
use alloc::vec;
use core::fmt::Display;

use device::Meter;
use store::{CheckpointId, Durability, RecoveryStatistics, Replayed, Savepoint, Update, Wear};

use crate::{Cursor, Error, Index, KeyRange, Meanwhile, Read, Result, Resume, Statistics, Tree};
use room::{is_about_room, make_space, settle};

/// Whether the device holds all that the index holds; what comes later is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// The last checkpoint holds everything.
    Closed,
    /// Something came after the last checkpoint.
    Open,
    /// Something failed, so no more changes are taken; what is read is right.
    ReadOnly,
    /// A change was broken off in the middle: what was read would be half of it.
    Poisoned,
}

/// The least that an index is to have room for.
const ONE_PUT: Update<'_> = Update::Put { key: &[], value: &[] };

/// A tree with batches and durability.
pub struct Durable<T: Tree> {
    tree: T,
    durability: Durability,
    state: State,
}

impl<T: Tree> Durable<T> {
    /// A tree that was just made; where something lasts, its empty state does.
    ///
    /// # Errors
    /// The device failed, or is so small that not a single entry could be put.
    pub fn create(tree: T) -> Result<Self> {
        let durability = tree.recovery().durability();
        let mut index = Durable { tree, durability, state: State::Open };
        if durability != Durability::None {
            index.make_checkpoint(None)?;
            index.make_room_for_one()?;
        }
        Ok(index)
    }

    /// A tree that was just restored from the last checkpoint: what the journal holds is replayed.
    ///
    /// # Errors
    /// The device failed, or the journal is damaged.
    pub fn open(mut tree: T) -> Result<Self> {
        let durability = tree.recovery().durability();
        // What is replayed was let in beside what these keep.
        if !tree.recovery().checkpoints().is_empty() {
            tree.pin_savepoints()?;
        }
        let was_waiting = settle(&mut tree)?;
        let mut buffer = vec![0; tree.entry_bytes_most().max(tree.delta_bytes_most())];
        loop {
            // Before the next update is taken from the journal: a checkpoint behind that counts it
            // as made, and after another cut it would be replayed no more.
            let lacks_room =
                !tree.has_waiting() && tree.waits_for_checkpoint() && tree.wants_room();
            let is_due = lacks_room || tree.recovery().is_due_within(None);
            if tree.checkpoints_within() && is_due {
                checkpoint_within_batch(&mut tree, Some(0))?;
            }
            if tree.wants_flush() {
                flush_all(&mut tree)?;
            }
            match tree.recovery_mut().next_replayed(&mut buffer)? {
                // Pages of its value are in no tree yet: no checkpoint may come between. There is
                // room for it, as before any update.
                Some(Replayed::Update(update @ Update::PutStored { .. })) => {
                    tree.apply(&update).map_err(in_journal)?;
                }
                Some(Replayed::Update(update)) => {
                    // The journal counts it as made: a checkpoint before it is must not.
                    apply_in_steps(&mut tree, &update, None).map_err(in_journal)?;
                }
                Some(Replayed::Delta(delta)) => tree.apply_delta(delta)?,
                None => break,
            }
        }
        drop(buffer);
        // Even if only half a record stands in the journal, nothing may be written behind it.
        let has_journal = tree.recovery().statistics().journal_bytes > 0;
        let mut index = Durable { tree, durability, state: State::Closed };
        if has_journal || was_waiting {
            index.make_checkpoint(None)?;
        }
        Ok(index)
    }

    /// Takes a step that changes something. Any failure on the way makes the index read-only until
    /// it is opened again: what was refused was refused before the first step.
    fn change<R>(&mut self, step: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let taken = step(&mut self.tree);
        if taken.is_err() {
            self.fail(false);
        }
        taken
    }

    /// Takes no more changes, and is read no more if `is_half` a change was made.
    fn fail(&mut self, is_half: bool) {
        let is_half = is_half || self.tree.is_poisoned();
        self.state = self.state.max(if is_half { State::Poisoned } else { State::ReadOnly });
    }

    /// Refuses changes after a failure.
    fn check_whole(&self) -> Result<()> {
        if let Some(failure) = self.tree.recovery().failure() {
            return Err(store::Error::Device(failure).into());
        }
        match self.state {
            State::Open | State::Closed => Ok(()),
            State::ReadOnly | State::Poisoned => Err(Error::Unsupported {
                what: "an earlier update failed midway: the index is read-only until it is opened \
                       again",
            }),
        }
    }

    /// Refuses to read half a change; without durability there is nothing else to be had. And to
    /// read what may be older than what was written.
    #[inline]
    fn check_readable(&self) -> Result<()> {
        if let Some(failure @ device::Error::AfterFailedFlush) = self.tree.recovery().failure() {
            return Err(store::Error::Device(failure).into());
        }
        if self.state == State::Poisoned && self.durability != Durability::None {
            let what = "an earlier update failed midway: nothing is read until the index is opened \
                        again, and what was acknowledged is there then";
            return Err(Error::Unsupported { what });
        }
        Ok(())
    }

    /// Prepares for a change.
    fn begin(&mut self) -> Result<()> {
        self.check_whole()?;
        if self.state == State::Closed {
            self.change(|tree| Ok(tree.recovery_mut().reopen()?))?;
            self.state = State::Open;
        }
        Ok(())
    }

    /// Gets back the room that was given back at closing.
    fn widen(&mut self) -> Result<()> {
        let recovery = self.tree.recovery_mut();
        if recovery.is_closed() || recovery.lasts_by_checkpoint(&[ONE_PUT], false) {
            recovery.extend()?;
        }
        Ok(())
    }

    /// Gives back room, while nothing is let in that was not made, where a checkpoint is worth it.
    fn give_back(&mut self) -> Result<()> {
        // A file that was closed has no room for one yet.
        if self.state == State::Open
            && self.tree.recovery().is_long()
            && let Some(pages) = self.tree.pages_promised()
            && self.tree.recovery_mut().shorten(pages)
        {
            self.make_checkpoint(None)?;
        }
        Ok(())
    }

    /// Makes the changes of `batch`, which does not go to the journal, and then a checkpoint.
    fn update_by_checkpoint(&mut self, batch: &[Update<'_>]) -> Result<()> {
        // No checkpoint may fall inside it, and no older update come behind it.
        if self.tree.has_waiting() {
            self.make_checkpoint(None)?;
        }
        self.make_room(&[], self.tree.pages_changed(batch))?;
        self.begin()?;
        for (place, update) in batch.iter().enumerate() {
            let made = self.tree.apply(update);
            self.note_failure(made, place > 0)?;
        }
        // What waits of it is in no journal: a checkpoint before all is written would have a part.
        self.change(|tree| {
            while tree.has_waiting() {
                tree.flush()?;
            }
            Ok(())
        })?;
        self.make_checkpoint(None).map(drop)
    }

    /// Makes the changes of `batch`; with `pages_each`, with checkpoints between them.
    fn apply(&mut self, batch: &[Update<'_>], pages_each: Option<u32>) -> Result<()> {
        for (place, update) in batch.iter().enumerate() {
            let is_due = |pages| place > 0 && self.tree.recovery().is_due_within(Some(pages));
            let made = match pages_each.is_some_and(is_due) {
                true => checkpoint_within_batch(&mut self.tree, Some(place as u32)),
                false => Ok(()),
            };
            let made =
                made.and_then(|()| apply_in_steps(&mut self.tree, update, Some(place as u32)));
            self.note_failure(made, place > 0)?;
        }
        Ok(())
    }

    /// Notes that an update failed, before which others of its batch were made if it `is_inside`.
    fn note_failure(&mut self, made: Result<()>, is_inside: bool) -> Result<()> {
        if made.is_err() {
            // Half a change, or half a batch, must not be added to, nor closed as if it were
            // whole; nor must what the journal holds be left out. Without a journal, an update
            // that changed nothing is merely refused.
            let is_half = is_inside || self.tree.is_poisoned();
            if is_half || self.durability.has_journal() {
                self.fail(is_half);
            }
        }
        made
    }

    /// Makes a checkpoint; after an error the index is read-only.
    fn make_checkpoint(&mut self, name: Option<&str>) -> Result<CheckpointId> {
        let made = self.change(|tree| {
            flush_all(tree)?;
            let root = tree.root_record()?;
            let id = tree.recovery_mut().checkpoint(&root, name)?;
            tree.checkpointed()?;
            if name.is_some() {
                tree.pin_savepoints()?;
            }
            tree.rebase();
            Ok(id)
        })?;
        self.state = State::Closed;
        Ok(made)
    }

    /// Refuses what only a durable index can do.
    fn check_durable(&self) -> Result<()> {
        if self.durability == Durability::None {
            let what = "this index was made with durability none: nothing lasts until it is closed";
            return Err(Error::Unsupported { what });
        }
        self.check_whole()
    }

    /// Refuses to go back to, or to forget, what is not kept.
    fn check_kept(&self, name: &str) -> Result<()> {
        self.check_durable()?;
        match self.tree.recovery().checkpoints().iter().any(|kept| kept.name == name) {
            true => Ok(()),
            false => Err(store::Error::NoCheckpoint.into()),
        }
    }
}

/// Makes a checkpoint inside a batch of which `made` updates were made, or inside a replay; with
/// `None` all that the last checkpoint left to be replayed is left so.
fn checkpoint_within_batch(tree: &mut impl Tree, made: Option<u32>) -> Result<()> {
    let root = tree.root_record()?;
    // What waits is in the journal alone.
    let made = made.filter(|_| !tree.has_waiting());
    tree.recovery_mut().checkpoint_within(&root, made)?;
    tree.checkpointed()
}

/// Makes a change step by step, with room made before each; `made` updates of its batch came
/// before, and with `None` a checkpoint counts none as made.
fn apply_in_steps(tree: &mut impl Tree, update: &Update<'_>, made: Option<u32>) -> Result<()> {
    loop {
        make_space(tree, made)?;
        if tree.apply_step(update)? {
            return Ok(());
        }
    }
}

/// Writes all that no root record carries.
fn flush_all(tree: &mut impl Tree) -> Result<()> {
    while tree.has_waiting() {
        make_space(tree, Some(0))?;
        tree.flush()?;
    }
    Ok(())
}

/// True if an entry is to blame: no index like this one could hold it.
fn is_about_entry(error: &Error) -> bool {
    use Error::{EntryTooLong, KeyLength, KeyTooLong, ValueLength, ValueTooLong};
    matches!(
        error,
        KeyLength { .. }
            | ValueLength { .. }
            | EntryTooLong { .. }
            | KeyTooLong { .. }
            | ValueTooLong { .. }
    )
}

/// What a replay ends with if the journal, checksums and all, holds what was never admitted.
fn in_journal(error: Error) -> Error {
    if is_about_entry(&error) {
        let what = "its journal holds an entry that it can't hold";
        return store::Error::NotAnIndex { is_ours: true, what }.into();
    }
    error
}

impl<T: Tree> Read for Durable<T> {
    fn get(&mut self, key: &[u8], offset: u32, into: &mut [u8]) -> Result<Option<u32>> {
        self.check_readable()?;
        self.tree.get(key, offset, into)
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.check_readable()?;
        self.tree.prefetch(keys)
    }

    fn range<'c>(&'c mut self, range: KeyRange<'_>) -> Result<Box<dyn Cursor + 'c>> {
        self.check_readable()?;
        self.tree.range(range)
    }

    fn check(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        self.check_readable()?;
        self.tree.check(finding)
    }

    fn resume_after(&mut self, key: Option<&[u8]>) -> Result<Resume> {
        self.check_readable()?;
        self.tree.resume_after(key)
    }

    fn statistics(&self) -> Statistics {
        self.tree.statistics()
    }

    fn metrics(&self, tell: &mut dyn FnMut(&'static str, u64)) {
        self.tree.metrics(tell);
    }

    fn meter(&self) -> Option<&Meter> {
        self.tree.meter()
    }
}

impl<T: Tree> Index for Durable<T> {
    fn update(&mut self, batch: &[Update<'_>]) -> Result<()> {
        self.check_whole()?;
        if self.durability == Durability::None {
            let position = self.tree.recovery().position();
            if let Err(refused) = self.admit(batch) {
                if self.state == State::Closed && self.tree.recovery().position() != position {
                    // Draining wrote pages, which no opening may find behind the last checkpoint.
                    self.begin()?;
                    self.close()?;
                }
                return Err(refused);
            }
            self.begin()?;
            return self.apply(batch, None);
        }
        self.give_back()?;
        self.drain_before(batch)?;
        self.admit(batch)?;
        self.widen()?;
        if self.tree.recovery().lasts_by_checkpoint(batch, self.tree.is_drained()) {
            return self.update_by_checkpoint(batch);
        }
        self.make_space_before()?;
        let each = self.pages_each(batch);
        // What is refused leaves nothing that a checkpoint would have to write.
        self.make_room(batch, each.unwrap_or_else(|| self.tree.pages_changed(batch)))?;
        self.begin()?;
        self.change(|tree| Ok(tree.recovery_mut().record(batch)?))?;
        self.apply(batch, each)
    }

    fn prepare(&mut self, batch: &[Update<'_>], meanwhile: Meanwhile<'_, '_>) -> Result<bool> {
        self.check_whole()?;
        if !self.tree.is_due_before(batch) {
            return Ok(false);
        }
        let is_wanted = self.tree.wants_checkpoint(batch);
        match self.make_room(&[], self.tree.pages_changed(&[])) {
            // The batch asks for more, and is refused then.
            Err(error) if is_about_room(&error) => return Ok(false),
            made => made?,
        }
        self.begin()?;
        let tree = &mut self.tree;
        let is_made = match make_space(tree, Some(0)).and_then(|()| tree.prepare(batch, meanwhile))
        {
            Err(error) if is_about_room(&error) && !tree.is_poisoned() => return Ok(false),
            made => self.change(|_| made)?,
        };
        if is_wanted && !self.tree.has_waiting() {
            self.make_checkpoint(None)?;
        }
        Ok(is_made)
    }

    fn load(&mut self, sorted: &mut dyn Cursor, fill_percent: u8) -> Result<u64> {
        self.check_whole()?;
        // The root is changed before anything is allocated.
        self.make_room_for_one()?;
        self.begin()?;
        self.change(flush_all)?;
        self.drain_first()?;
        // A load is one step: what waits for a checkpoint gives it no room later.
        if self.durability != Durability::None && self.tree.waits_for_checkpoint() {
            self.make_checkpoint(None)?;
        }
        self.begin()?;
        let loaded = self.tree.load(sorted, fill_percent);
        match &loaded {
            Err(Error::NotEmpty) => {}
            // These are refused with a whole tree, which keeps what was loaded before.
            Err(error)
                if !matches!(error, Error::NotSorted { .. })
                    && !is_about_entry(error)
                    && !is_about_room(error) =>
            {
                self.fail(true);
            }
            _ => {
                // The journal knows nothing of it.
                if self.durability != Durability::None {
                    self.make_checkpoint(None)?;
                }
            }
        }
        loaded
    }

    fn sync(&mut self) -> Result<()> {
        self.check_durable()?;
        if !self.durability.has_journal() {
            return self.checkpoint(None).map(|_| ());
        }
        self.change(|tree| Ok(tree.recovery_mut().sync()?))
    }

    fn checkpoint(&mut self, name: Option<&str>) -> Result<CheckpointId> {
        self.check_durable()?;
        if self.state == State::Closed && name.is_none() {
            return Ok(self.tree.recovery().statistics().checkpoint);
        }
        if let Some(name) = name {
            self.drain_first()?;
            self.admit_savepoint(name)?;
        }
        self.make_checkpoint(name)
    }

    fn checkpoints(&self) -> &[Savepoint] {
        self.tree.recovery().checkpoints()
    }

    fn roll_back(&mut self, name: &str) -> Result<()> {
        self.check_kept(name)?;
        // Until it is done, what there is may be half of one state and half of another.
        self.state = State::Poisoned;
        let was_waiting = self.change(|tree| {
            let root = tree.recovery_mut().roll_back(name)?;
            tree.restore(&root)?;
            tree.pin_savepoints()?;
            settle(tree)
        })?;
        self.state = State::Closed;
        if was_waiting { self.make_checkpoint(None).map(drop) } else { Ok(()) }
    }

    fn forget(&mut self, name: &str) -> Result<()> {
        self.check_kept(name)?;
        // It changes pages. While nothing was given back there is room for that.
        self.widen()?;
        self.change(|tree| Ok(tree.recovery_mut().forget(name)?))?;
        self.make_checkpoint(None)?;
        // What was forgotten may come back before that one stands.
        if self.tree.recovery().gives_room_then() {
            self.make_checkpoint(None)?;
        }
        self.change(T::pin_savepoints)
    }

    fn recovery(&self) -> RecoveryStatistics {
        self.tree.recovery().statistics()
    }

    fn wear(&self) -> Option<Wear> {
        self.tree.recovery().wear()
    }

    fn entry_bytes_most(&self) -> usize {
        self.tree.entry_bytes_most()
    }

    fn key_bytes_most(&self) -> usize {
        self.tree.key_bytes_most()
    }

    fn close(&mut self) -> Result<()> {
        if self.state == State::Closed {
            return match self.tree.recovery().is_closed() {
                true => Ok(()),
                false => self.change(|tree| Ok(tree.recovery_mut().shut()?)),
            };
        }
        self.begin()?;
        self.change(|tree| {
            flush_all(tree)?;
            let root = tree.root_record()?;
            tree.recovery_mut().close(&root)?;
            tree.checkpointed()?;
            tree.rebase();
            tree.closed()
        })?;
        self.state = State::Closed;
        Ok(())
    }
}
