//! The way back to a named checkpoint: first every image is verified, then a superblock says that
//! pages are on their way back, then they are put back; an opening goes on with it.

use super::PageFile;
use super::state::CheckpointState;
use super::undo::End;
use crate::Result;

impl PageFile<'_> {
    /// Applies the undo log up to position `end` to come back to the superblock's checkpoint.
    pub(super) fn finish_roll_back(&mut self, end: u32) -> Result<()> {
        self.begin_epoch();
        self.put_back(self.superblock.checkpoint.undo_start, End::At(end))?;
        self.begin_next_epoch(false)
    }

    /// Verifies every image that going back to `target` needs. Once the superblock says that pages
    /// are on their way back, an opening can only go on with it: a damaged image would cost
    /// everything.
    pub(super) fn rehearse_roll_back(
        &mut self,
        target: &CheckpointState,
        undo_end: u32,
    ) -> Result<()> {
        // The frames of the cache are needed.
        self.write_back_all()?;
        self.cache.forget_all();
        let Some(undo) = &mut self.undo else {
            return Ok(());
        };
        let mut buffer = self.cache.spare_frames();
        if buffer.len() < self.layout.unit_bytes() {
            buffer = &mut self.sector;
        }
        undo.begin(self.superblock.undo_epoch, target.high_water, target.undo_start);
        undo.rehearse(&mut self.disk, target.undo_start, End::At(undo_end), buffer)
    }
}
