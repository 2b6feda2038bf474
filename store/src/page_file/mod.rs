//! The page file: pages over sectors, read and written through a bounded cache.
//!
//! Where everything lies is told in `layout.rs`. A page is a whole number of sectors, or a whole
//! fraction of one; then several share a sector, reading one reads only its bytes, and writing one
//! back writes the sector with every page of it that is dirty. Pages are overwritten in place. Each
//! begins with its checksum.
//!
//! Where something is to last, `checkpoint.rs` keeps the way back: a page goes to the undo log
//! before its first change after a checkpoint, and that run is flushed before the page is
//! overwritten (`write_back.rs`).
//!
//! Invariants: a page below `high_water` is in use, or named by exactly one free-list page, or is
//! one. A page that leaves the cache dirty is written first. Only [`PageFile::allocate`] gives out
//! pages. What the last checkpoint needs is on the disk, or in a flushed part of the undo log.

mod bring;
mod checkpoint;
mod digest;
mod free_list;
mod front;
mod growth;
mod guarded;
mod journal;
mod kept;
mod layout;
mod lazy;
mod long;
mod opening;
mod read_ahead;
mod roll_back;
mod shortening;
mod state;
mod superblock;
mod undo;
mod write_back;

use alloc::vec::Vec;

use device::{Cause, Meter, Request, Sectors};

use crate::cache::Cache;
use crate::canary::Mistake;
use crate::recovery::NAMES_MOST;
use crate::{Error, LogicalPage, Memory, Result, checksum};
use free_list::FreeList;
use guarded::Guarded;
use journal::Journal;
use kept::Checkpoints;
use layout::Layout;
pub use long::LongWriter;
pub use opening::{PageFileDescription, PageFileOptions};
use shortening::Shortening;
use state::STATE_BYTES_MOST;
use superblock::Superblock;
pub use superblock::sectors_most;
use undo::Undo;

/// The fewest frames that a page file works with: two pages that are changed together, and one of
/// the free list.
pub const FRAMES_LEAST: u32 = 3;

/// What a tree expects of a page that was just read from the device.
pub trait PageCheck {
    /// Refuses bytes that are no well-formed page of the tree, with a word on what is wrong. The
    /// checksum has been verified.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str>;

    /// True if a page that was checked before, when it came into the cache or was made, is one that
    /// [`check`](PageCheck::check) is for. A damaged pointer may lead to a page of another kind.
    fn is_kind(&self, page: &[u8]) -> bool;
}

/// Pages over sectors.
pub struct PageFile<'d> {
    disk: Guarded<'d>,
    layout: Layout,
    cache: Cache,
    /// One sector: for the superblock, and for sectors that several pages share.
    sector: Vec<u8>,
    high_water: u32,
    free: FreeList,
    /// Pages given back that the last checkpoint needs, and the last page of their list.
    freed: FreeList,
    freed_tail: Option<LogicalPage>,
    /// The sum of the marks of the pages in use.
    digest: u64,
    superblock: Superblock,
    undo: Option<Undo>,
    journal: Option<Journal>,
    checkpoints: Checkpoints,
    /// Pages that the batch which was let in may allocate.
    promised: u32,
    shortening: Shortening,
    mistake: Mistake,
}

impl<'d> PageFile<'d> {
    /// The bytes of `page`.
    ///
    /// # Errors
    /// The page does not exist, is corrupt or refused by `check`, or the disk failed.
    #[inline]
    pub fn page(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &(impl PageCheck + ?Sized),
    ) -> Result<&[u8]> {
        let frame = self.load(page, cause, check)?;
        Ok(self.cache.bytes(frame))
    }

    /// The bytes of `page`, to be changed.
    ///
    /// # Errors
    /// As [`PageFile::page`].
    #[inline]
    pub fn page_mut(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &impl PageCheck,
    ) -> Result<&mut [u8]> {
        let frame = self.load(page, cause, check)?;
        self.begin_change(page, frame)?;
        Ok(self.cache.bytes_mut(frame))
    }

    /// The bytes of two different pages, to be changed together.
    ///
    /// # Errors
    /// As [`PageFile::page`], or the two are the same page.
    pub fn two_pages_mut(
        &mut self,
        pages: (LogicalPage, LogicalPage),
        cause: Cause,
        check: &impl PageCheck,
    ) -> Result<(&mut [u8], &mut [u8])> {
        let one = self.load(pages.0, cause, check)?;
        let other = self.load(pages.1, cause, check)?;
        self.begin_change(pages.0, one)?;
        self.begin_change(pages.1, other)?;
        let same = Error::DamagedPage { page: pages.0, what: "it is its own neighbour" };
        self.cache.two_mut(one, other).ok_or(same)
    }

    /// The bytes of two different pages.
    ///
    /// # Errors
    /// As [`PageFile::two_pages_mut`].
    pub fn two_pages(
        &mut self,
        pages: (LogicalPage, LogicalPage),
        cause: Cause,
        check: &impl PageCheck,
    ) -> Result<(&[u8], &[u8])> {
        let one = self.load(pages.0, cause, check)?;
        let other = self.load(pages.1, cause, check)?;
        if one == other {
            return Err(Error::DamagedPage { page: pages.0, what: "it is its own neighbour" });
        }
        Ok((self.cache.bytes(one), self.cache.bytes(other)))
    }

    /// The bytes of `page` if it is in the cache, and nothing is touched. They were checked when it
    /// came there, as a page of any kind.
    #[must_use]
    pub fn peek(&self, page: LogicalPage) -> Option<&[u8]> {
        self.cache.peek(page).map(|frame| self.cache.bytes(frame))
    }

    /// Makes `page`, if it is in the cache, the next to leave.
    pub fn let_leave(&mut self, page: LogicalPage) {
        self.cache.let_leave(page);
    }

    /// Of the `most` pages that leave the cache next, if it is full, those that are dirty.
    pub fn leaving(&self, most: usize) -> impl Iterator<Item = (LogicalPage, &[u8])> {
        self.cache.leaving(most)
    }

    /// The bytes of `page` without reading it: all zeros, to be filled.
    ///
    /// # Errors
    /// The page does not exist, or the disk failed to take the page that had to leave.
    pub fn fresh(&mut self, page: LogicalPage) -> Result<&mut [u8]> {
        self.check_exists(page)?;
        let frame = match self.cache.touch(page) {
            Some(frame) => frame,
            None => self.enter_unread(page)?,
        };
        self.begin_change(page, frame)?;
        let bytes = self.cache.bytes_mut(frame);
        bytes.fill(0);
        Ok(bytes)
    }

    /// Gives `page` a frame, with what the disk holds of it only if the undo log needs that.
    fn enter_unread(&mut self, page: LogicalPage) -> Result<u32> {
        let frame = self.enter(page)?;
        let unit = self.layout.unit_of(page);
        if self.layout.pages_per_sector == 1
            && self.undo.as_ref().is_some_and(|undo| undo.needs(unit))
        {
            let (first, offset) = self.layout.locate(page);
            let into = self.cache.bytes_mut(frame);
            let read = self.disk.read(&mut [Request { first, offset, into }], Cause::Checkpoint);
            if let Err(error) = read {
                self.cache.forget(page);
                return Err(error.into());
            }
        }
        Ok(frame)
    }

    fn check_exists(&self, page: LogicalPage) -> Result<()> {
        if page.0 >= self.high_water {
            return Err(Error::DamagedPage { page, what: "it is named but was never allocated" });
        }
        Ok(())
    }

    #[inline]
    fn load(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &(impl PageCheck + ?Sized),
    ) -> Result<u32> {
        match self.cache.touch(page) {
            Some(frame) if check.is_kind(self.cache.bytes(frame)) => Ok(frame),
            Some(_) => Err(Error::DamagedPage { page, what: "it is a page of another kind" }),
            None => self.fetch(page, cause, check),
        }
    }

    fn fetch(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &(impl PageCheck + ?Sized),
    ) -> Result<u32> {
        self.check_exists(page)?;
        let frame = self.enter(page)?;
        let (first, offset) = self.layout.locate(page);
        let into = self.cache.bytes_mut(frame);
        let identity = self.superblock.identity;
        let outcome = self
            .disk
            .read(&mut [Request { first, offset, into }], cause)
            .map_err(Error::from)
            .and_then(|()| checksum::verify(identity, page, self.cache.bytes(frame)))
            .and_then(|()| {
                let damaged = |what| Error::DamagedPage { page, what };
                check.check(self.cache.bytes(frame)).map_err(damaged)
            });
        if let Err(error) = outcome {
            self.cache.forget(page);
            return Err(error);
        }
        self.know_device(frame);
        Ok(frame)
    }

    /// Gives `page` a frame; the page that has to leave is written back first if it is dirty. Once
    /// the disk failed only a clean page leaves.
    fn enter(&mut self, page: LogicalPage) -> Result<u32> {
        if let Some((victim, true)) = self.cache.victim() {
            match self.disk.failure() {
                None => self.write_back(victim)?,
                Some(failure) if !self.cache.let_clean_leave() => return Err(failure.into()),
                Some(_) => {}
            }
        }
        Ok(self.cache.enter(page))
    }

    /// A page that nobody uses; [`PageFile::fresh`] gives its bytes.
    ///
    /// # Errors
    /// [`Error::Full`], or a page of the free list can't be read.
    pub fn allocate(&mut self, cause: Cause) -> Result<LogicalPage> {
        if let Some(page) = self.take_free(cause)? {
            self.let_change(page);
            return Ok(page);
        }
        let most = self.undo.as_ref().map_or(self.layout.pages, Undo::pages_left);
        if self.high_water >= most {
            return Err(Error::Full { pages: u64::from(self.layout.pages) });
        }
        self.high_water += 1;
        Ok(LogicalPage(self.high_water - 1))
    }

    /// Gives back a page; its content is lost.
    ///
    /// # Errors
    /// A page of the free list can't be read or the disk failed.
    pub fn free(&mut self, page: LogicalPage, cause: Cause) -> Result<()> {
        self.check_exists(page)?;
        let digest = self.digest;
        self.strike(page, cause)?;
        self.cache.forget(page);
        let added = self.add_free(page, cause);
        if added.is_err() {
            // It is in use still, and may be given back again.
            self.digest = digest;
        }
        added
    }

    fn trim(&mut self, page: LogicalPage, cause: Cause) -> Result<()> {
        if self.layout.pages_per_sector > 1 {
            return Ok(());
        }
        let (first, _) = self.layout.locate(page);
        Ok(self.disk.trim(first, u64::from(self.layout.sectors_per_page), cause)?)
    }

    /// Pages that trees can still allocate, beside those that recovery may come to need.
    #[must_use]
    pub fn pages_free(&self) -> u32 {
        let Some(undo) = &self.undo else {
            let beside = self.layout.pages.saturating_sub(self.high_water);
            return beside.saturating_add(self.free.pages);
        };
        let beside = undo.pages_beside().saturating_sub(self.high_water);
        let own = self.checkpoint_pages(self.checkpoints.count());
        beside.saturating_add(self.free.pages).saturating_sub(own)
    }

    /// Pages that the next checkpoint may need for itself, where `names` are kept.
    pub(super) fn checkpoint_pages(&self, names: usize) -> u32 {
        let root = self.superblock.checkpoint.root.map_or(0, |root| u64::from(root.bytes));
        Self::checkpoint_pages_of(self.layout.page_bytes, names, root)
    }

    /// The same with pages of `page_bytes` bytes, where the root record in pages has `root` bytes.
    pub(super) fn checkpoint_pages_of(page_bytes: u32, names: usize, root: u64) -> u32 {
        let names = NAMES_MOST.min(names + 2);
        let bytes = (names * STATE_BYTES_MOST) as u64 + root;
        // One for each page that names others, of which two are enough in sensible sizes.
        3 + (bytes / (u64::from(page_bytes) - 64)) as u32
    }

    /// Pages that the next checkpoint makes free.
    #[must_use]
    pub fn pages_freed(&self) -> u32 {
        self.freed.pages
    }

    /// Pages that can be in use in all.
    #[must_use]
    pub fn pages_most(&self) -> u32 {
        self.layout.pages_most
    }

    /// Pages in use, and pages that are or were: those not in use among them are on a free list.
    #[must_use]
    pub fn pages_used(&self) -> (u32, u32) {
        let unused = self.free.pages.saturating_add(self.freed.pages);
        (self.high_water.saturating_sub(unused), self.high_water)
    }

    /// Sectors that the pages in use take.
    #[must_use]
    pub fn sectors_used(&self) -> u64 {
        let pages = u64::from(self.pages_used().0);
        (pages * u64::from(self.layout.sectors_per_page))
            .div_ceil(u64::from(self.layout.pages_per_sector))
    }

    /// Bytes in a page.
    #[must_use]
    pub fn page_bytes(&self) -> u32 {
        self.layout.page_bytes
    }

    /// The memory in use: the cache, the sector's buffer, and the disk's own tables.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory {
            cache: self.cache.memory(),
            buffers: Self::buffer_bytes(self.disk.geometry(), self.superblock.durability)
                + self.checkpoints.memory(),
            tables: self.undo.as_ref().map_or(0, Undo::table_bytes),
            ftl: self.disk.table_bytes(),
        }
    }

    /// The disk, for what stands behind the page file.
    pub(crate) fn disk_mut(&mut self) -> &mut dyn Sectors {
        &mut self.disk
    }

    /// Sectors that the page file takes, if it has a fixed length with something behind it.
    pub(crate) fn front_sectors(&self) -> Option<u64> {
        self.superblock.front.map(|_| self.disk.geometry().sectors())
    }

    /// The number that goes into every checksum.
    pub(crate) const fn identity(&self) -> u64 {
        self.superblock.identity
    }

    /// Frames of the cache.
    #[must_use]
    pub fn cache_frames(&self) -> u32 {
        self.cache.frames()
    }

    /// The books of the device below, if it keeps any.
    #[must_use]
    pub fn meter(&self) -> Option<&Meter> {
        self.disk.meter()
    }
}

#[cfg(test)]
mod tests;
