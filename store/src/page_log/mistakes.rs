//! The mistakes that tests make on purpose, as far as they need more than a condition.

use device::{Block, Cause, Nand, Page};

use super::pages::Pages;
use crate::Result;
use crate::canary::Canary;

impl Pages<'_> {
    /// Keeps a page of the tree back, so that the record of a checkpoint comes before it; the one
    /// that was kept back is programmed. False if that mistake is not to be made.
    pub(super) fn hold_back(&mut self, page: Page, (bytes, spare): (&[u8], &[u8])) -> Result<bool> {
        if !self.mistake.is(Canary::RecordBeforePages) {
            return Ok(false);
        }
        self.write_held()?;
        self.held = Some((page, bytes.to_vec(), spare.to_vec()));
        Ok(true)
    }

    /// Programs the page that was kept back.
    pub(super) fn write_held(&mut self) -> Result<()> {
        if let Some((page, bytes, spare)) = self.held.take() {
            self.nand.program(page, 0, &bytes, &spare, Cause::Update)?;
        }
        Ok(())
    }

    /// Reads the page that is kept back; false if it is another one.
    pub(super) fn read_held(&self, page: Page, offset: usize, into: &mut [u8]) -> bool {
        let held = self.held.as_ref().filter(|(held, ..)| *held == page);
        let bytes = held.and_then(|(_, bytes, _)| bytes.get(offset..offset + into.len()));
        bytes.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }

    /// Does to a block that was released what has to wait for the next checkpoint.
    pub(super) fn misuse_released(&mut self, block: Block) {
        if self.blocks.is_pinned(block) || self.blocks.is_refused(block) {
            return;
        }
        if self.mistake.is(Canary::FreedPageReused) {
            self.blocks.set_free(block);
            // The next one that is taken.
            self.blocks.set_erases(block, 0);
        }
        if self.mistake.is(Canary::TrimBeforeCheckpoint) {
            // Where the power is cut, the next operation tells.
            let _ = self.erase(block, Cause::Reclamation);
        }
    }
}
