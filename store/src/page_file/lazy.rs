//! What trees need that change many pages at once, some time after they said that they would.

use device::{DiskCosts, SectorGeometry, Sectors};

use super::journal::Journal;
use super::layout::Layout;
use super::undo::Undo;
use super::{PageFile, PageFileOptions};
use crate::{Durability, LogicalPage, Result};

impl PageFile<'_> {
    /// True if `page` is in the cache.
    #[must_use]
    pub fn is_cached(&self, page: LogicalPage) -> bool {
        self.cache.peek(page).is_some()
    }

    /// Writes `page` now if it was changed, and not when it leaves the cache: so pages made one
    /// after the other are written in sequence.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write_now(&mut self, page: LogicalPage) -> Result<()> {
        match self.cache.peek(page) {
            Some(frame) if self.cache.is_dirty(frame) => self.write_back(page),
            _ => Ok(()),
        }
    }

    /// True while what the journal holds is replayed, until the checkpoint behind that.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_replayed)
    }

    /// True if what a page held that was free may have to be kept when it is used: where others
    /// share its sector, or named checkpoints need it.
    #[must_use]
    pub fn keeps_free_pages(&self) -> bool {
        self.undo.is_some() && (self.layout.pages_per_sector > 1 || self.checkpoints.are_kept())
    }

    /// Free pages that held something before, and whose images have to be kept when they are used
    /// again.
    #[must_use]
    pub fn pages_kept_free(&self) -> u32 {
        let reused = self.free.pages.saturating_add(self.freed.pages);
        match &self.undo {
            Some(undo) if self.layout.pages_per_sector == 1 => undo.names_need_of(reused),
            Some(_) => reused,
            None => 0,
        }
    }

    /// Pages that trees could allocate behind a checkpoint made now.
    #[must_use]
    pub fn pages_free_then(&self) -> u32 {
        let freed = if self.undo.is_some() { self.freed.pages } else { 0 };
        self.pages_free().saturating_add(freed)
    }

    /// True if the file may get more pages than it has room for now.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.layout.pages < self.layout.pages_most && self.disk.sectors_held().is_some()
    }

    /// Pages that can still be changed before a checkpoint, beside those of the checkpoint itself,
    /// where so many pages are promised, and `images` beside what names keep.
    #[must_use]
    pub fn changes_left(&self, promised: u64, images: u64) -> u32 {
        let Some(undo) = &self.undo else {
            return u32::MAX;
        };
        let own = self.checkpoint_pages(self.names_kept());
        let fresh = promised.saturating_sub(u64::from(self.free.pages));
        let fresh = u32::try_from(fresh).unwrap_or(u32::MAX);
        let in_use = self.high_water.saturating_add(own).saturating_add(fresh);
        let names = self.names_kept();
        let images = if names > 0 { u32::try_from(images).unwrap_or(u32::MAX) } else { 0 };
        let own = self.checkpoint_changes().saturating_add(images);
        undo.images_left(own, self.to_forget(names), in_use)
    }

    /// True if `pages` pages can be allocated when, before the next checkpoint, `images` pages
    /// have to be kept beside those that there is always room for; and if then all that is kept by
    /// name can be forgotten, `more` names included.
    #[must_use]
    pub fn has_room(&self, pages: u64, images: u64, more: usize) -> bool {
        let Some(undo) = &self.undo else {
            return pages <= u64::from(self.pages_free());
        };
        let images = u32::try_from(images).unwrap_or(u32::MAX);
        let names = self.names_kept() + more;
        let beside = undo.pages_beside_images(images, self.to_forget(names));
        let beside = beside.saturating_sub(self.high_water);
        let own = self.checkpoint_pages(names);
        // Free pages that named checkpoints need are no room for images.
        let free = beside.saturating_add(self.free.pages).saturating_sub(own);
        pages <= u64::from(free) && (images == 0 || beside > 0)
    }

    /// Says how many pages the batch that is let in may allocate, so that images leave them room.
    pub fn promise(&mut self, pages: u64) {
        self.promised = u32::try_from(pages).unwrap_or(u32::MAX);
    }

    /// True if so many pages are free, and what names need of them has room.
    #[must_use]
    pub fn has_pages_now(&self, pages: u64) -> bool {
        let images = match &self.undo {
            Some(undo) if self.keeps_free_pages() => {
                let pages = u32::try_from(pages).unwrap_or(u32::MAX);
                undo.images().saturating_add(self.pages_kept_free().min(pages))
            }
            _ => 0,
        };
        self.has_room(pages, images.into(), 0)
    }

    /// The sectors of a disk like this one on which a page file made with `options` has room for
    /// `pages` pages and `images` images, as [`PageFile::has_room`] says; no more than it has if it
    /// has room itself.
    ///
    /// # Errors
    /// It can't have such pages, or no disk is so large.
    pub fn sectors_least(
        disk: SectorGeometry,
        options: &PageFileOptions,
        pages: u64,
        images: u64,
    ) -> Result<u64> {
        let images = u32::try_from(images).unwrap_or(u32::MAX);
        let lacking = |sectors| -> Result<u64> {
            let disk = disk.with_sectors(sectors)?;
            let journal = Journal::sectors_of(options, disk);
            let layout = Layout::of_any(disk, options.page_bytes, journal)?;
            let (own, have) = match options.durability {
                Durability::None => (0, layout.pages),
                _ => {
                    let undo = Undo::without_table(layout, false);
                    let undo = undo.for_front(options.front.is_some());
                    let own = Self::checkpoint_pages_of(options.page_bytes, 0, 0);
                    (own, undo.pages_beside_images(images, (0, 0)))
                }
            };
            Ok((pages + u64::from(own)).saturating_sub(have.into()))
        };
        let mut sectors = if lacking(disk.sectors())? > 0 { disk.sectors() } else { 1 };
        loop {
            let bytes = lacking(sectors)?.saturating_mul(options.page_bytes.into());
            if bytes == 0 {
                return Ok(sectors);
            }
            sectors = sectors.saturating_add(bytes.div_ceil(disk.sector_bytes().into()));
        }
    }

    /// Checkpoints that forget `names` one by one, and the pages that each of them changes.
    fn to_forget(&self, names: usize) -> (u32, u32) {
        (names as u32, self.checkpoint_changes_with(names))
    }

    fn names_kept(&self) -> usize {
        self.checkpoints.count()
    }

    /// What the disk's operations cost, if it tells.
    #[must_use]
    pub fn costs(&self) -> Option<DiskCosts> {
        self.disk.costs()
    }
}
