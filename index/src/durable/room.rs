//! Room for a change: a checkpoint, a collection or a longer device gives it, or it is refused.

use core::slice;

use store::{Durability, Update};

use super::{Durable, ONE_PUT, State, checkpoint_within_batch};
use crate::{Error, Result, Tree};

impl<T: Tree> Durable<T> {
    /// Refuses `batch` with nothing changed, or makes sure that nothing but the device can break
    /// it off. Pages that wait for a checkpoint to be free again may be what is missing.
    pub(super) fn admit(&mut self, batch: &[Update<'_>]) -> Result<()> {
        match self.admit_growing(batch)? {
            Some(refused) => self.admit_drained(batch, refused),
            None => Ok(()),
        }
    }

    /// Admits `batch`, as long as more room is to be had and is what it takes; else tells why it is
    /// refused.
    fn admit_growing(&mut self, batch: &[Update<'_>]) -> Result<Option<Error>> {
        loop {
            match self.tree.admit(batch) {
                Err(full) if self.tree.drains_before(batch) && lacks_pages(&full) => {
                    return Ok(Some(full));
                }
                Err(full) if lacks_pages(&full) => match self.extend(full) {
                    Ok(()) => {}
                    Err(refused) => return Ok(Some(refused)),
                },
                other => {
                    self.note_admitted(&other);
                    return other.map(|()| None);
                }
            }
        }
    }

    /// Notes that the tree failed to let a batch in: it may make room for it, and what broke that
    /// off may have left half a change.
    fn note_admitted(&mut self, admitted: &Result<()>) {
        let has_failed = |error: &Error| matches!(error, Error::Store(store::Error::Device(_)));
        let has_failed = self.durability.has_journal() && admitted.as_ref().is_err_and(has_failed);
        if has_failed || self.tree.is_poisoned() {
            self.fail(false);
        }
    }

    /// Gets more room for what was `refused` for lack of it, or refuses it.
    fn extend(&mut self, refused: Error) -> Result<()> {
        match lacks_pages(&refused) && self.tree.recovery_mut().extend()? {
            true => Ok(()),
            false => Err(refused),
        }
    }

    /// As [`admit`](Durable::admit), where there is no more room to be had, which is why the batch
    /// was `refused`.
    fn admit_drained(&mut self, batch: &[Update<'_>], mut refused: Error) -> Result<()> {
        let is_durable = self.durability != Durability::None;
        // A checkpoint gives back what waits for one.
        if is_durable && (self.state != State::Closed || self.tree.waits_for_checkpoint()) {
            self.make_checkpoint(None)?;
            // Where nothing has to be moved, the device may have more room.
            match self.admit_growing(batch)? {
                Some(again) => refused = again,
                None => return Ok(()),
            }
        }
        while self.drain()? {
            match self.admit_growing(batch)? {
                Some(again) => refused = again,
                None => return Ok(()),
            }
        }
        Err(refused)
    }

    /// Has pending work done, and the rest after a checkpoint; false if there is nothing to do.
    pub(super) fn drain(&mut self) -> Result<bool> {
        if self.tree.is_drained() {
            return Ok(false);
        }
        let is_durable = self.durability != Durability::None;
        self.make_room(&[], self.tree.pages_changed(&[]))?;
        let before = self.state;
        self.begin()?;
        if !self.change(T::drain)? {
            // Nothing was changed, so no checkpoint has anything to write.
            if is_durable {
                self.state = before;
            }
            return Ok(false);
        }
        if is_durable {
            self.make_checkpoint(None)?;
        }
        Ok(true)
    }

    /// Has pending work done that can't come beside `batch`, as far as there is room for it.
    pub(super) fn drain_before(&mut self, batch: &[Update<'_>]) -> Result<()> {
        while self.tree.drains_before(batch) {
            match self.make_room(&[], self.tree.pages_changed(&[])) {
                Err(error) if is_about_room(&error) => break,
                made => made?,
            }
            if !self.drain()? {
                break;
            }
        }
        Ok(())
    }

    /// Has all pending work done, where nothing may wait behind what comes.
    pub(super) fn drain_first(&mut self) -> Result<()> {
        while self.tree.drains_first() && self.drain()? {}
        Ok(())
    }

    /// Pages that any one update of `batch` may change, if a checkpoint can fall inside the batch.
    pub(super) fn pages_each(&self, batch: &[Update<'_>]) -> Option<u32> {
        if batch.len() < 2 || !self.tree.checkpoints_within() {
            return None;
        }
        let each = batch.iter().map(|update| self.tree.pages_changed(slice::from_ref(update)));
        each.max().filter(|pages| self.tree.recovery().takes_within(*pages))
    }

    /// Makes room for the first step of a batch, or refuses the batch: it is not recorded yet.
    pub(super) fn make_space_before(&mut self) -> Result<()> {
        if !self.tree.wants_room() {
            return Ok(());
        }
        self.begin()?;
        let made = make_space(&mut self.tree, Some(0));
        if made.as_ref().is_err_and(|error| !is_about_room(error)) {
            self.fail(false);
        }
        made
    }

    /// Makes a checkpoint if `batch` has no room in the journal, or the first `pages` pages that it
    /// changes have none in the undo log; or if the tree wants one.
    pub(super) fn make_room(&mut self, batch: &[Update<'_>], pages: u32) -> Result<()> {
        let mut was_made = false;
        let is_wanted = self.tree.wants_checkpoint(batch);
        loop {
            match self.tree.recovery().needs_checkpoint(batch, pages) {
                Ok(needs) if (needs || is_wanted) && !was_made => {
                    self.make_checkpoint(None)?;
                    self.begin()?;
                    was_made = true;
                }
                Ok(_) => return Ok(()),
                // What not even a checkpoint makes room for is refused.
                Err(error) => self.extend(error.into())?,
            }
        }
    }

    /// Refuses one more checkpoint that is kept, called `name`, where there is no room for it, or
    /// to forget it again.
    pub(super) fn admit_savepoint(&mut self, name: &str) -> Result<()> {
        let mut was_made = false;
        loop {
            let needs = match self.tree.recovery().needs_checkpoint_before(name) {
                Ok(needs) => needs,
                Err(error) => {
                    self.extend(error.into())?;
                    continue;
                }
            };
            let admitted = self.tree.admit_savepoint();
            // Else a checkpoint would write what stands already, and each time that it is refused.
            let gives = self.state != State::Closed || self.tree.waits_for_checkpoint();
            if was_made || !(needs || gives && admitted.is_err()) {
                return admitted;
            }
            self.make_checkpoint(None)?;
            was_made = true;
        }
    }

    pub(super) fn make_room_for_one(&mut self) -> Result<()> {
        self.widen()?;
        let pages = self.tree.pages_changed(&[ONE_PUT]);
        self.make_room(&[ONE_PUT], pages)
    }
}

/// Makes checkpoints inside a batch, of which `made` updates were made, until the next step has
/// room.
pub(super) fn make_space(tree: &mut impl Tree, made: Option<u32>) -> Result<()> {
    let mut waits = tree.waits_for_checkpoint();
    while tree.wants_room() {
        if !waits {
            tree.reclaim()?;
        }
        checkpoint_within_batch(tree, made)?;
        waits = false;
    }
    Ok(())
}

/// Makes what a tree that was just restored has waiting without room for it in memory, before
/// anything comes after it; returns whether there was something. A checkpoint is to follow.
pub(super) fn settle(tree: &mut impl Tree) -> Result<bool> {
    if !tree.has_waiting() {
        return Ok(false);
    }
    tree.recovery_mut().reopen()?;
    if tree.recovery().is_closed() {
        tree.recovery_mut().extend()?;
    }
    while tree.has_waiting() {
        let needs = loop {
            match tree.recovery().needs_checkpoint(&[], tree.pages_changed(&[])) {
                Ok(needs) => break needs,
                Err(error) if !tree.recovery_mut().extend()? => return Err(error.into()),
                Err(_) => {}
            }
        };
        if needs {
            let root = tree.root_record()?;
            if tree.recovery().durability().has_journal() {
                // All that is in the journal is replayed still.
                tree.recovery_mut().checkpoint_within(&root, None)?;
            } else {
                tree.recovery_mut().checkpoint(&root, None)?;
            }
            tree.checkpointed()?;
        }
        tree.flush()?;
    }
    Ok(true)
}

/// True if too few pages are free, which a checkpoint or a collection may change.
fn lacks_pages(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.wants_room())
}

/// True if there is no room for an entry, in the tree or in what it stands on.
pub(super) fn is_about_room(error: &Error) -> bool {
    use store::Error::{Full, Kept, LittleTables};
    matches!(
        error,
        Error::TreeFull { .. } | Error::Store(Full { .. } | Kept { .. } | LittleTables { .. })
    )
}
