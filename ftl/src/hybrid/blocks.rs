//! Free blocks, and chips that refuse.

use device::{Block, Cause, Error, Nand, Result};

use super::Core;
use crate::blocks::Role;

impl<N: Nand> Core<N> {
    /// Takes the block that was freed first, erased.
    pub(super) fn take_block(&mut self) -> Result<Block> {
        loop {
            let full = Error::Full { blocks_free: self.blocks.free_count(), blocks_needed: 1 };
            let (block, role) = self.blocks.next_free().ok_or(full)?;
            let erased = role == Role::Erased || self.erase(block)?;
            self.blocks.take(block, Role::Open);
            if erased {
                self.set_flawed(block, false);
                return Ok(block);
            }
            self.retire(block)?;
        }
    }

    /// Erases a block; returns false if the chip refused.
    fn erase(&mut self, block: Block) -> Result<bool> {
        match self.nand.erase(block, Cause::Reclamation) {
            Ok(()) => {
                self.statistics.blocks_erased += 1;
                self.wear.erased(block);
                self.statistics.erases = Some(self.wear.summary());
                Ok(true)
            }
            Err(Error::EraseRefused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Says that a block holds nothing that counts; one that refused a program is `worn`.
    pub(super) fn discard(&mut self, block: Block, worn: bool) -> Result<()> {
        if worn {
            return self.retire(block);
        }
        self.blocks.release(block, Role::Dirty);
        Ok(())
    }

    fn retire(&mut self, block: Block) -> Result<()> {
        self.blocks.set(block, Role::Bad);
        self.wear.retire(block);
        self.statistics.erases = Some(self.wear.summary());
        self.statistics.blocks_retired += 1;
        self.nand.mark_bad(block)
    }

    /// Gives up a block in which nothing counts after `error`; succeeds if the chip refused, so
    /// that it can be tried again with another block.
    pub(super) fn give_up(&mut self, block: Block, error: Error) -> Result<()> {
        match error {
            Error::ProgramRefused { .. } => self.discard(block, true),
            error => {
                self.discard(block, false)?;
                Err(error)
            }
        }
    }
}
