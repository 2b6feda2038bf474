//! A view of the log by whole blocks, for trees that decide what stands where in a block.
//!
//! A block is taken, its pages are programmed wherever the chip allows it, in parts where it allows
//! that, and it is released as a whole. The first page of a block to be programmed has to be its
//! first one, for that tells at an opening whose the block is.
//!
//! Blocks of the last checkpoint are written on. So two things are up to the tree: to know which
//! pages of a block a checkpoint counts, and, if something came after the last checkpoint
//! ([`PageLog::has_rest`]), to write no more to blocks of that time, whose pages may be torn. That
//! something came is told by a page of the log's own, which goes before the first program behind a
//! checkpoint. The tree's pages have the sequence of the newest page of the log's own: an opening
//! sees no pages that were written to blocks begun earlier, so a sequence of their own could be
//! given to another page after it. After a power cut the block of that page is erased last. Where
//! it is the one free block, a further cut may find it erased and nothing told: so an opening that
//! finds no more than one free block takes it that something came.

use device::{Block, Cause, Page};

use super::stream::StreamOf;
use super::{PageKind, PageLog};
use crate::Result;

impl PageLog<'_> {
    /// Takes a free block, erased.
    ///
    /// # Errors
    /// There is none, or the chip failed.
    pub fn allocate_block(&mut self, cause: Cause) -> Result<Block> {
        let left = self.kept_back(self.own_reserve());
        self.own.pages.take_block(StreamOf::Tree, left, cause)
    }

    /// Says that `block` is in use, as the last checkpoint has it: an opening takes a block for a
    /// free one if no tag in it can be read.
    ///
    /// # Errors
    /// There is no such block.
    pub fn claim_block(&mut self, block: Block) -> Result<()> {
        self.geometry().check_block(block)?;
        if self.own.pages.blocks.is_free(block) {
            self.own.pages.blocks.set_used(block);
        }
        Ok(())
    }

    /// Gives back a block that was allocated since the last checkpoint and that the tree needs no
    /// more: no checkpoint needs it, so it is free at once. One that refused a program is released.
    pub fn give_back(&mut self, block: Block) {
        if self.own.pages.blocks.is_refused(block) || self.erases_at_once() {
            self.release(block);
        } else {
            self.own.pages.blocks.set_free(block);
        }
    }

    /// Programs `bytes`, a whole page whose content begins at [`PageLog::content_start`], at `page`
    /// of a block that was allocated.
    ///
    /// # Errors
    /// If the chip refused ([`is_refusal`](crate::Error::is_refusal)), the page's block can be
    /// read, but is to be programmed no more. A rule of the chip forbids it, or the chip failed.
    pub fn program_at(
        &mut self,
        page: Page,
        bytes: &mut [u8],
        kind: PageKind,
        cause: Cause,
    ) -> Result<()> {
        self.tell_rest()?;
        self.own.pages.program_beside(page, bytes, (kind, cause))
    }

    /// Programs `bytes` from byte `offset` of the content of `page` on, a page without a tag.
    ///
    /// # Errors
    /// As [`PageLog::program_at`].
    pub fn program_part(
        &mut self,
        page: Page,
        offset: u32,
        bytes: &[u8],
        cause: Cause,
    ) -> Result<()> {
        self.tell_rest()?;
        let offset = offset + self.content_start() as u32;
        self.own.pages.program_or_refuse(page, offset, (bytes, &[]), cause)
    }

    /// True if something came after the checkpoint that was opened, or may have come.
    #[must_use]
    pub const fn has_rest(&self) -> bool {
        self.journal.has_rest || self.may_be_untold
    }

    /// Tells an opening that something comes after the last checkpoint.
    fn tell_rest(&mut self) -> Result<()> {
        if self.journal.told_rest {
            return Ok(());
        }
        // The page in memory may hold a part of the journal, or one that is replayed.
        self.own.append_blank(Cause::Checkpoint)?;
        self.journal.told_rest = true;
        Ok(())
    }
}
