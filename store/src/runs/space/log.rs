//! Runs in a page log: their pages are programmed one behind the other, a block at a time.
//!
//! A run has an extent in each block that it is in, and a block is free as soon as no run has a
//! page in it. So the table beside the log's is two bytes a block: how many pages of it are in use.
//!
//! A run is named by a delta behind the last checkpoint, so blocks that the log takes for unused at
//! an opening, since they are newer, come back when the delta claims them. Nothing is taken before
//! that: see the third invariant of [runs](super::super).

use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Geometry, Page};

use super::{Extent, PageRequest, Reserved, Space};
use crate::{Error, PageKind, PageLog, Recovery, Result};

/// The kind of the pages of runs.
const KIND: PageKind = PageKind::Tree(6);

/// Runs in a page log.
pub struct LogSpace<'d> {
    log: PageLog<'d>,
    chip: Geometry,
    /// Pages in use, of each block.
    live: Vec<u16>,
    /// Pages that were reserved and not programmed.
    reserved: u32,
    identity: u64,
    /// A page, where the tag stands in front of what is programmed.
    page: Vec<u8>,
    /// The address of the next page.
    next: Vec<Page>,
    /// The block of the page that was programmed last.
    present: Option<Block>,
}

impl<'d> LogSpace<'d> {
    /// A space in a log that was just made, or opened; then what is in use is to be claimed.
    /// Checksums of units are those of `identity`.
    #[must_use]
    pub fn new(log: PageLog<'d>, identity: u64) -> Self {
        let chip = log.geometry();
        let page = if log.content_start() > 0 { chip.page_bytes() } else { 0 };
        LogSpace {
            chip,
            live: vec![0; chip.blocks() as usize],
            reserved: 0,
            identity,
            page: vec![0xFF; page as usize],
            next: Vec::with_capacity(1),
            present: None,
            log,
        }
    }

    /// The log.
    #[must_use]
    pub const fn log(&self) -> &PageLog<'d> {
        &self.log
    }

    /// Bytes of memory of such a space on such a chip, beside those of the log.
    #[must_use]
    pub fn memory_on(chip: Geometry) -> u64 {
        let page =
            crate::page_log::content_start(chip).min(1) as u64 * u64::from(chip.page_bytes());
        u64::from(chip.blocks()) * 2 + page
    }

    /// Pages of runs in `block` that are in use.
    #[must_use]
    pub fn live_pages(&self, block: Block) -> u32 {
        self.live.get(block.0 as usize).copied().unwrap_or(0).into()
    }

    /// The block with the fewest pages in use, though some are, that is not being filled: moving
    /// these gives it back.
    #[must_use]
    pub fn emptiest(&self) -> Option<Block> {
        let blocks = (0..self.chip.blocks()).map(Block);
        let some = blocks.filter(|block| self.live_pages(*block) > 0);
        let can = some.filter(|block| self.log.may_be_victim(*block));
        can.min_by_key(|block| self.live_pages(*block))
    }

    /// The parts of `extent` in its blocks.
    fn in_blocks(chip: Geometry, extent: Extent) -> impl Iterator<Item = (Block, u32)> {
        let mut page = extent.first;
        core::iter::from_fn(move || {
            let block = Block(page / chip.pages_per_block());
            let end = ((block.0 + 1) * chip.pages_per_block()).min(extent.end());
            let pages = end.checked_sub(page).filter(|pages| *pages > 0)?;
            page = end;
            Some((block, pages))
        })
    }

    /// Gives `block` back if nothing of it is in use, and nothing more goes to it.
    fn give_back_empty(&mut self, block: Block) {
        if self.live_pages(block) == 0 && self.log.may_be_victim(block) {
            self.log.give_back(block);
        }
    }

    fn program(&mut self, bytes: &mut [u8], cause: Cause) -> Result<Page> {
        loop {
            if self.log.erases_at_once() && self.log.free_pages() == 0 {
                self.log.erase_released(cause)?;
            }
            self.log.reserve(1, &mut self.next, cause)?;
            let full = Error::Full { pages: u64::from(self.log.usable_pages()) };
            let page = *self.next.first().ok_or(full)?;
            let programmed = if self.page.is_empty() {
                self.log.program(page, bytes, KIND, cause)
            } else {
                let start = self.log.content_start();
                device::copy(&mut self.page[start..], bytes);
                self.log.program(page, &mut self.page, KIND, cause)
            };
            match programmed {
                Err(error) if error.is_refusal() => {}
                other => return other.map(|()| page),
            }
        }
    }
}

impl Space for LogSpace<'_> {
    fn page_bytes(&self) -> u32 {
        self.log.content_bytes() as u32
    }

    fn alignment(&self) -> u32 {
        1
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn reserve(&mut self, pages: u32, _: Cause) -> Result<Reserved> {
        if u64::from(pages) > self.pages_free() {
            return Err(Error::Full { pages: u64::from(self.log.usable_pages()) });
        }
        self.reserved += pages;
        Ok(Reserved { extents: Vec::new(), pages })
    }

    fn write(
        &mut self,
        reserved: &mut Reserved,
        bytes: &mut [u8],
        into: &mut Vec<Extent>,
        cause: Cause,
    ) -> Result<()> {
        for page_bytes in bytes.chunks_exact_mut(self.log.content_bytes()) {
            let full = Error::Full { pages: u64::from(self.log.usable_pages()) };
            reserved.pages = reserved.pages.checked_sub(1).ok_or(full)?;
            self.reserved -= 1;
            let page = self.program(page_bytes, cause)?;
            let block = self.chip.block_of(page);
            if let Some(live) = self.live.get_mut(block.0 as usize) {
                *live += 1;
            }
            Extent { first: page.0, pages: 1 }.push(into);
            if let Some(left) = self.present.replace(block).filter(|left| *left != block) {
                self.give_back_empty(left);
            }
        }
        Ok(())
    }

    fn unreserve(&mut self, reserved: Reserved) {
        self.reserved -= reserved.pages;
    }

    fn flush(&mut self, _: Cause) -> Result<()> {
        // What was programmed is there.
        Ok(())
    }

    fn read(&mut self, requests: &mut [PageRequest<'_>], cause: Cause) -> Result<()> {
        let page_bytes = self.log.content_bytes();
        for request in requests {
            let (mut page, mut offset) = (request.page, request.offset as usize);
            let mut into = &mut *request.into;
            while !into.is_empty() {
                (page, offset) = (page + (offset / page_bytes) as u32, offset % page_bytes);
                let length = into.len().min(page_bytes - offset);
                let (now, later) = into.split_at_mut(length);
                self.log.read(Page(page), offset as u32, now, cause)?;
                (into, offset) = (later, offset + length);
            }
        }
        Ok(())
    }

    fn claim(&mut self, extents: &[Extent]) -> Result<()> {
        let what = "its manifest names pages of a run twice, or none";
        let damaged = Error::NotAnIndex { is_ours: true, what };
        for extent in extents {
            if extent.end() > self.chip.pages() || extent.pages == 0 {
                return Err(damaged);
            }
            for (block, pages) in Self::in_blocks(self.chip, *extent) {
                let live = self.live.get_mut(block.0 as usize).ok_or(damaged)?;
                let sum = u32::from(*live) + pages;
                *live = u16::try_from(sum).map_err(|_| damaged)?;
                if sum > self.chip.pages_per_block() {
                    return Err(damaged);
                }
                self.log.claim_block(block)?;
            }
        }
        Ok(())
    }

    fn end_claims(&mut self) -> Result<()> {
        for block in (0..self.chip.blocks()).map(Block) {
            self.give_back_empty(block);
        }
        Ok(())
    }

    fn free(&mut self, extents: &[Extent]) -> Result<()> {
        let what = "it gives back pages of a run that are free";
        let damaged = Error::NotAnIndex { is_ours: true, what };
        for extent in extents {
            for (block, pages) in Self::in_blocks(self.chip, *extent) {
                let live = self.live.get_mut(block.0 as usize).ok_or(damaged)?;
                let left = u32::from(*live).checked_sub(pages).ok_or(damaged)?;
                *live = left as u16;
                self.give_back_empty(block);
            }
        }
        Ok(())
    }

    fn pages_free(&self) -> u64 {
        let released = if self.log.erases_at_once() { self.log.blocks_to_erase() } else { 0 };
        let pages = self.log.free_pages() + released * self.chip.pages_per_block();
        u64::from(pages.saturating_sub(self.reserved))
    }

    fn pages_most(&self) -> u64 {
        let blocks = self.log.good_blocks().saturating_sub(self.log.own_most() + 1);
        u64::from(blocks) * u64::from(self.chip.pages_per_block())
    }

    fn memory(&self) -> u64 {
        Self::memory_on(self.chip)
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.log
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.log
    }
}
