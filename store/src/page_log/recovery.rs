//! The page log as what an index recovers by.

use alloc::vec::Vec;

use super::PageLog;
use super::checkpoint::NAMES_MOST;
use crate::canary::Canary;
use crate::journal_record;
use crate::recovery::check_checkpoint_name;
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
        let is_full =
            self.options.has_journal() && self.journal_is_full_for(journal_record::bytes(batch))?;
        // Blocks that only wait for a checkpoint are made free before they are missed.
        let is_short = self.released_blocks() > 0 && self.free_pages() < pages;
        Ok(is_full || is_short)
    }

    fn needs_checkpoint_before(&self, name: &str) -> Result<bool> {
        check_checkpoint_name(name, self.checkpoints.names(), NAMES_MOST)?;
        // The record of a named checkpoint pins the log's own blocks that it stands in. What is
        // kept back for records must be there without them, or nothing could be forgotten again.
        let blocks = self.record_blocks();
        let is_kept_anyway = self.own.present().is_some_and(|block| self.blocks.is_pinned(block))
            && self.own.room(self.geometry) > 2 * self.record_pages();
        if is_kept_anyway || self.free_blocks() >= blocks {
            return Ok(false);
        }
        if self.blocks.next_released(0).is_some() {
            return Ok(true);
        }
        Err(Error::Kept { kept: self.kept_bytes() })
    }

    fn record(&mut self, batch: &[Update<'_>]) -> Result<()> {
        if !self.options.has_journal() {
            return Ok(());
        }
        self.append_record(batch)?;
        if self.options.durability == Durability::Every
            && !self.mistake.is(Canary::AcknowledgedBeforeFlush)
        {
            self.sync_journal()?;
        }
        Ok(())
    }

    fn delta(&mut self, delta: &[u8]) -> Result<bool> {
        if !self.options.has_journal() || self.journal.is_replayed() {
            return Ok(true);
        }
        self.append_delta(delta)
    }

    fn sync(&mut self) -> Result<()> {
        if self.options.has_journal() && !self.mistake.is(Canary::AcknowledgedBeforeFlush) {
            self.sync_journal()?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, root: &[u8], name: Option<&str>) -> Result<CheckpointId> {
        #[cfg(feature = "canaries")]
        let root = &self.root_to_record(root)[..];
        self.make_checkpoint(root, name, true)
    }

    fn checkpoint_within(&mut self, root: &[u8], _made: Option<u32>) -> Result<()> {
        // A batch is replayed from its beginning: what was made of it is made again.
        self.make_checkpoint_within(root)
    }

    fn close(&mut self, root: &[u8]) -> Result<()> {
        self.make_checkpoint(root, None, true).map(|_| ())
    }

    fn reopen(&mut self) -> Result<()> {
        // Any page that is newer than the checkpoint tells that it is not the last state.
        Ok(())
    }

    fn position(&self) -> u64 {
        self.sequence
    }

    fn roll_back(&mut self, name: &str) -> Result<Vec<u8>> {
        self.go_back(name)
    }

    fn forget(&mut self, name: &str) -> Result<()> {
        self.forget_name(name)
    }

    fn checkpoints(&self) -> &[Savepoint] {
        self.checkpoints.names()
    }

    fn next_replayed<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<Replayed<'b>>> {
        if self.options.has_journal() { self.next_in_journal(buffer) } else { Ok(None) }
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
        Some(self.wear_of_chip())
    }
}
