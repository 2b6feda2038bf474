//! Changing pages and writing them back, so that the last checkpoint stays within reach.

use device::{Cause, Request, Sectors};

use super::PageFile;
use crate::canary::Canary;
use crate::{LogicalPage, Result, checksum};

impl PageFile<'_> {
    /// Makes the page in `frame` dirty; what its unit held at the last checkpoint goes to the undo
    /// run first.
    #[inline]
    pub(super) fn begin_change(&mut self, page: LogicalPage, frame: u32) -> Result<()> {
        if !self.cache.is_dirty(frame) {
            if self.undo.is_some() {
                self.save_image(page, frame)?;
            }
            self.cache.set_dirty(frame, true);
        }
        Ok(())
    }

    pub(super) fn save_image(&mut self, page: LogicalPage, frame: u32) -> Result<()> {
        let unit = self.layout.unit_of(page);
        let Some(undo) = self.undo.as_mut().filter(|undo| undo.needs(unit)) else {
            return Ok(());
        };
        let image = if self.layout.pages_per_sector > 1 {
            let first = self.layout.sector_of(unit);
            let into = &mut self.sector[..];
            self.disk.read(&mut [Request { first, offset: 0, into }], Cause::Checkpoint)?;
            (&self.sector[..], None)
        } else {
            (self.cache.bytes(frame), self.cache.on_device(frame))
        };
        undo.save(&mut self.disk, unit, image, self.high_water)
    }

    /// True if the last checkpoint needs what `page` holds on the disk.
    #[must_use]
    pub fn is_needed(&self, page: LogicalPage) -> bool {
        let unit = self.layout.unit_of(page);
        !self.mistake.is(Canary::FreedPageReused)
            && self.undo.as_ref().is_some_and(|undo| undo.needs(unit))
    }

    /// Makes the images of pages durable before `page` is overwritten.
    pub(super) fn flush_undo(&mut self, page: LogicalPage) -> Result<()> {
        let unit = self.layout.unit_of(page);
        match &mut self.undo {
            Some(undo) if undo.is_waiting(unit) => {
                if self.mistake.is(Canary::UndoAfterOverwrite) {
                    return Ok(());
                }
                undo.flush(&mut self.disk)
            }
            _ => Ok(()),
        }
    }

    /// Says that the last checkpoint does not need what `page`, which was free, holds.
    pub(super) fn let_change(&mut self, page: LogicalPage) {
        let unit = self.layout.unit_of(page);
        let are_kept = self.checkpoints.are_kept() && !self.mistake.is(Canary::PinnedPageReused);
        if let Some(undo) = &mut self.undo
            && self.layout.pages_per_sector == 1
            && !(are_kept && undo.names_may_need(unit))
        {
            undo.let_change(unit);
        }
    }

    pub(super) fn write_back(&mut self, page: LogicalPage) -> Result<()> {
        self.flush_undo(page)?;
        if self.layout.pages_per_sector > 1 {
            return self.write_back_shared(page);
        }
        let Some(frame) = self.cache.peek(page) else {
            return Ok(());
        };
        let (first, _) = self.layout.locate(page);
        let bytes = self.cache.bytes_mut(frame);
        checksum::seal(self.superblock.identity, page, bytes);
        self.disk.write(first, bytes, Cause::Flush)?;
        self.cache.set_dirty(frame, false);
        self.note_written(page, frame);
        Ok(())
    }

    /// Writes back the sector of `page` with every dirty page in it.
    pub(super) fn write_back_shared(&mut self, page: LogicalPage) -> Result<()> {
        let (first, _) = self.layout.locate(page);
        let pages = self.layout.sharing(page);
        let unknown =
            |page: &u32| *page < self.high_water && self.cache.peek(LogicalPage(*page)).is_none();
        if pages.clone().any(|page| unknown(&page)) {
            let into = &mut self.sector[..];
            self.disk.read(&mut [Request { first, offset: 0, into }], Cause::Flush)?;
        } else {
            self.sector.fill(0);
        }
        let page_bytes = self.layout.page_bytes as usize;
        for (page, part) in pages.clone().zip(self.sector.chunks_exact_mut(page_bytes)) {
            let page = LogicalPage(page);
            if let Some(frame) = self.cache.peek(page) {
                checksum::seal(self.superblock.identity, page, self.cache.bytes_mut(frame));
                device::copy(part, self.cache.bytes(frame));
            }
        }
        self.disk.write(first, &self.sector, Cause::Flush)?;
        for page in pages.map(LogicalPage) {
            if let Some(frame) = self.cache.peek(page) {
                self.cache.set_dirty(frame, false);
                self.note_written(page, frame);
            }
        }
        Ok(())
    }

    /// Writes back every dirty page, in the order of their addresses.
    ///
    /// # Errors
    /// The disk failed; pages not yet written stay dirty.
    pub fn write_back_all(&mut self) -> Result<()> {
        self.cache.sort_dirty();
        let mut place = 0;
        while let Some(page) = self.cache.dirty_page(place) {
            if let Some(page) = page {
                self.write_back(page)?;
            }
            place += 1;
        }
        Ok(())
    }
}
