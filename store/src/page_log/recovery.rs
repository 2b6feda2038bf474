//! The page log as what an index recovers by.

use alloc::vec::Vec;

use device::{Block, Cause, Page};

use super::PageLog;
use super::record::Epoch;
use crate::canary::Canary;
use crate::journal_record;
use crate::{
    CheckpointId, Durability, Error, Recovery, RecoveryStatistics, Replayed, Result, Savepoint,
    Update, Wear,
};

impl Recovery for PageLog<'_> {
    fn durability(&self) -> Durability {
        self.options.durability
    }

    fn needs_checkpoint(&self, batch: &[Update<'_>], pages: u32) -> Result<bool> {
        if self.erases_at_once() {
            return Ok(false);
        }
        let is_full = self.options.has_journal()
            && self.journal.is_full_for(&self.own, journal_record::bytes(batch))?;
        // Blocks that only wait for a checkpoint are made free before they are missed.
        let is_short = self.released_blocks() > 0 && self.free_pages() < pages;
        Ok(is_full || is_short)
    }

    fn needs_checkpoint_before(&self, name: &str) -> Result<bool> {
        self.checkpoints.check_name(name)?;
        // The record of a named checkpoint pins the log's own blocks that it stands in. What is
        // kept back for records must be there without them, or nothing could be forgotten again.
        let blocks = self.record_blocks();
        let own = &self.own.stream;
        let is_kept_anyway = own.present().is_some_and(|block| self.blocks().is_pinned(block))
            && own.room(self.geometry()) > 2 * self.record_pages();
        if is_kept_anyway || self.free_blocks() >= blocks {
            return Ok(false);
        }
        if self.blocks().next_released(0).is_some() {
            return Ok(true);
        }
        Err(Error::Kept { kept: self.kept_bytes() })
    }

    fn record(&mut self, batch: &[Update<'_>]) -> Result<()> {
        if !self.options.has_journal() {
            return Ok(());
        }
        self.journal.append_record(&mut self.own, batch)?;
        if self.options.durability == Durability::Every
            && !self.own.pages.mistake.is(Canary::AcknowledgedBeforeFlush)
        {
            self.journal.sync(&mut self.own)?;
        }
        Ok(())
    }

    fn delta(&mut self, delta: &[u8]) -> Result<bool> {
        if !self.options.has_journal() || self.journal.is_replayed() {
            return Ok(true);
        }
        self.journal.append_delta(&mut self.own, delta)
    }

    fn sync(&mut self) -> Result<()> {
        if self.options.has_journal() && !self.own.pages.mistake.is(Canary::AcknowledgedBeforeFlush)
        {
            self.journal.sync(&mut self.own)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, root: &[u8], name: Option<&str>) -> Result<CheckpointId> {
        #[cfg(feature = "canaries")]
        let root = &self.root_to_record(root)[..];
        self.make_checkpoint(root, name, true)
    }

    fn checkpoint_within(&mut self, root: &[u8], _made: Option<u32>) -> Result<()> {
        // A batch is replayed from its beginning, over the tree as it is now, which comes to the
        // same.
        let is_replayed = self.journal.is_replayed();
        if !is_replayed {
            self.journal.sync(&mut self.own)?;
        }
        self.release_records()?;
        let before = self.own.pages.sequence;
        self.write_record(root, false, Some(self.journal.epoch))?;
        self.journal.note_record((self.own.pages.sequence - before) as u32);
        if is_replayed {
            self.journal.read_again(&mut self.own)?;
        }
        self.own.pages.erase_released(Cause::Checkpoint)?;
        Ok(())
    }

    fn close(&mut self, root: &[u8]) -> Result<()> {
        self.make_checkpoint(root, None, true).map(|_| ())
    }

    fn reopen(&mut self) -> Result<()> {
        // Any page that is newer than the checkpoint tells that it is not the last state.
        Ok(())
    }

    fn position(&self) -> u64 {
        self.own.pages.sequence
    }

    fn roll_back(&mut self, name: &str) -> Result<Vec<u8>> {
        let record = self.checkpoints.read(&mut self.own, name)?;
        self.checkpoints.go_back(name, &record);
        // What lived then lives again.
        let blocks = &mut self.own.pages.blocks;
        blocks.take_back_pinned();
        if self.gives_back {
            self.tree.end();
            blocks.release_unpinned();
        }
        self.make_checkpoint(&record.root, None, true)?;
        Ok(record.root)
    }

    fn forget(&mut self, name: &str) -> Result<()> {
        self.checkpoints.forget(name)
    }

    fn checkpoints(&self) -> &[Savepoint] {
        self.checkpoints.names()
    }

    fn next_replayed<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<Replayed<'b>>> {
        if self.options.has_journal() {
            self.journal.next_replayed(&mut self.own, buffer)
        } else {
            Ok(None)
        }
    }

    fn statistics(&self) -> RecoveryStatistics {
        let page = self.content_bytes() as u64;
        let rest = u64::from(self.journal.has_rest);
        RecoveryStatistics {
            durability: self.options.durability,
            checkpoint: self.checkpoints.id(),
            journal_bytes: (u64::from(self.journal.pages()) * page).max(rest),
            journal_bytes_most: u64::from(self.journal.pages_most()) * page,
            kept_bytes: self.kept_bytes(),
            replayed: self.journal.replayed,
            resumed: 0,
            within: self.journal.within,
            ..RecoveryStatistics::default()
        }
    }

    fn wear(&self) -> Option<Wear> {
        Some(self.own.pages.wear())
    }
}

impl PageLog<'_> {
    /// Writes the record of a checkpoint, whose root record is `root`.
    pub(super) fn make_checkpoint(
        &mut self,
        root: &[u8],
        name: Option<&str>,
        is_closed: bool,
    ) -> Result<CheckpointId> {
        if let Some(name) = name {
            self.checkpoints.check_name(name)?;
        }
        // Own pages are needed from the block on in which the record begins. Nothing is erased
        // before it stands.
        self.own.pages.blocks.release_own(self.own.stream.present());
        let page = self.write_record(root, is_closed, None)?;
        let id = self.checkpoints.id();
        if let Some(name) = name {
            self.checkpoints.keep(&mut self.own, name, page)?;
            // The name is in the next record only: so that is made at once.
            return self.make_checkpoint(root, None, is_closed).map(|_| id);
        }
        let pages = &mut self.own.pages;
        self.journal.begin(Epoch { id: id.0, since: pages.sequence - 1 });
        pages.erase_released(Cause::Checkpoint)?;
        Ok(id)
    }

    fn write_record(
        &mut self,
        root: &[u8],
        is_closed: bool,
        journal: Option<Epoch>,
    ) -> Result<Page> {
        let of_log = (&self.options, self.journal.pages_most());
        self.checkpoints.write(&mut self.own, of_log, (root, is_closed), journal)
    }

    /// Releases the log's own blocks that were begun behind the journal: records stand in them that
    /// the next one takes the place of.
    fn release_records(&mut self) -> Result<()> {
        let (present, end) = (self.own.stream.present(), self.journal.end);
        let pages = &mut self.own.pages;
        for block in (0..pages.blocks.count()).map(Block) {
            if pages.blocks.is_own(block)
                && !pages.blocks.is_free(block)
                && Some(block) != present
                && pages.first_tag(block)?.is_some_and(|tag| tag.sequence > end)
            {
                pages.blocks.set_released(block);
            }
        }
        Ok(())
    }

    /// The root record that the next checkpoint gets: a mistake may put the one before there.
    #[cfg(feature = "canaries")]
    fn root_to_record(&mut self, root: &[u8]) -> Vec<u8> {
        let before = core::mem::replace(&mut self.root_before, root.to_vec());
        let is_wrong = self.own.pages.mistake.is(Canary::WrongRootRecord) && !before.is_empty();
        if is_wrong { before } else { root.to_vec() }
    }
}
