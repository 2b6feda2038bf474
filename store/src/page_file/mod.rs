//! The page file: pages over sectors, read and written through a bounded cache.
//!
//! ```text
//!  sectors   0        1        base ...
//!            +--------+--------+--------+--------+--------+----
//!            | anchor | anchor | page 0 | page 1 | page 2 |
//!            +--------+--------+--------+--------+--------+----
//! ```
//!
//! A page is a whole number of sectors, or a whole fraction of one; then several share a sector,
//! reading one reads only its bytes, and writing one back writes the sector with every page of it
//! that is dirty. Pages are overwritten in place. Each begins with its checksum.
//!
//! Invariants: a page below `high_water` is in use, or named by exactly one free-list page, or is
//! one. A page that leaves the cache dirty is written first. Only [`PageFile::allocate`] gives out
//! pages.

mod anchor;
mod free_list;
mod layout;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Meter, Request, Sectors};

use crate::cache::Cache;
use crate::{Error, LogicalPage, Memory, Recovery, Result, checksum};
use anchor::{Anchor, State};
use free_list::FreeList;
use layout::Layout;

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

/// What is chosen when a page file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFileOptions {
    /// Bytes in a page: a multiple or a whole fraction of a sector.
    pub page_bytes: u32,
    /// Memory for the cache and the buffer of the page file together, in bytes.
    pub memory_bytes: u64,
}

/// Pages over sectors.
pub struct PageFile<'d> {
    disk: Box<dyn Sectors + 'd>,
    layout: Layout,
    cache: Cache,
    /// One sector: for the anchor, and for sectors that several pages share.
    sector: Vec<u8>,
    high_water: u32,
    free: FreeList,
    anchor: Anchor,
}

impl<'d> PageFile<'d> {
    /// The least memory for pages of `page_bytes` over `disk`, in bytes.
    ///
    /// # Errors
    /// [`Error::NodeSize`] if the disk can't have such pages.
    pub fn least_memory(disk: device::SectorGeometry, page_bytes: u32) -> Result<u64> {
        Layout::new(disk, page_bytes)?;
        let cache = Cache::bytes_for(FRAMES_LEAST, page_bytes, disk.alignment());
        Ok(cache + u64::from(disk.sector_bytes()))
    }

    /// How many pages of the memory `memory_bytes` are cached at once.
    ///
    /// # Errors
    /// [`Error::LittleMemory`] or [`Error::NodeSize`].
    pub fn frames(disk: device::SectorGeometry, options: PageFileOptions) -> Result<u32> {
        let need = Self::least_memory(disk, options.page_bytes)?;
        if options.memory_bytes < need {
            return Err(Error::LittleMemory { have: options.memory_bytes, need });
        }
        let cache = options.memory_bytes - u64::from(disk.sector_bytes());
        let frames = Cache::frames_in(cache, options.page_bytes, disk.alignment());
        // More frames than pages would be memory for nothing.
        let pages = Layout::new(disk, options.page_bytes)?.pages;
        Ok(frames.min(pages).max(FRAMES_LEAST))
    }

    /// Makes an empty page file on `disk`, whatever that held before.
    ///
    /// # Errors
    /// The sizes do not fit, the memory is too small, or the disk failed.
    pub fn create(disk: Box<dyn Sectors + 'd>, options: PageFileOptions) -> Result<Self> {
        let mut file = Self::over(disk, options)?;
        file.write_anchor(State::Open, &[])?;
        Ok(file)
    }

    /// Opens the page file on `disk` with `memory_bytes` of memory; returns it with its root
    /// record.
    ///
    /// # Errors
    /// There is none, it was not closed, the memory is too small, or the disk failed.
    pub fn open(mut disk: Box<dyn Sectors + 'd>, memory_bytes: u64) -> Result<(Self, Vec<u8>)> {
        let found = Anchor::read(&mut *disk)?;
        if found.anchor.state != State::Closed {
            return Err(Error::NotClosed);
        }
        let options = PageFileOptions { page_bytes: found.page_bytes, memory_bytes };
        let mut file = Self::over(disk, options)?;
        if found.high_water > file.layout.pages {
            return Err(Error::NotAnIndex { what: "it counts more pages than the device has" });
        }
        file.anchor = found.anchor;
        file.high_water = found.high_water;
        file.free = found.free;
        Ok((file, found.root))
    }

    fn over(disk: Box<dyn Sectors + 'd>, options: PageFileOptions) -> Result<Self> {
        let geometry = disk.geometry();
        let layout = Layout::new(geometry, options.page_bytes)?;
        let frames = Self::frames(geometry, options)?;
        Ok(PageFile {
            disk,
            layout,
            cache: Cache::new(frames, options.page_bytes, geometry.alignment()),
            sector: vec![0; geometry.sector_bytes() as usize],
            high_water: 0,
            free: FreeList::EMPTY,
            anchor: Anchor::NEW,
        })
    }

    /// The bytes of `page`.
    ///
    /// # Errors
    /// The page does not exist, is corrupt or refused by `check`, or the disk failed.
    #[inline]
    pub fn page(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &impl PageCheck,
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
        self.cache.set_dirty(frame, true);
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
        self.cache.set_dirty(one, true);
        self.cache.set_dirty(other, true);
        let same = Error::DamagedPage { page: pages.0, what: "it is its own neighbour" };
        self.cache.two_mut(one, other).ok_or(same)
    }

    /// The bytes of `page` without reading it: all zeros, to be filled.
    ///
    /// # Errors
    /// The page does not exist, or the disk failed to take the page that had to leave.
    pub fn fresh(&mut self, page: LogicalPage) -> Result<&mut [u8]> {
        self.check_exists(page)?;
        let frame = match self.cache.touch(page) {
            Some(frame) => frame,
            None => self.enter(page)?,
        };
        self.cache.set_dirty(frame, true);
        let bytes = self.cache.bytes_mut(frame);
        bytes.fill(0);
        Ok(bytes)
    }

    fn check_exists(&self, page: LogicalPage) -> Result<()> {
        if page.0 >= self.high_water {
            return Err(Error::DamagedPage { page, what: "it is named but was never allocated" });
        }
        Ok(())
    }

    #[inline]
    fn load(&mut self, page: LogicalPage, cause: Cause, check: &impl PageCheck) -> Result<u32> {
        match self.cache.touch(page) {
            Some(frame) if check.is_kind(self.cache.bytes(frame)) => Ok(frame),
            Some(_) => Err(Error::DamagedPage { page, what: "it is a page of another kind" }),
            None => self.fetch(page, cause, check),
        }
    }

    fn fetch(&mut self, page: LogicalPage, cause: Cause, check: &impl PageCheck) -> Result<u32> {
        self.check_exists(page)?;
        let frame = self.enter(page)?;
        let (first, offset) = self.layout.locate(page);
        let into = self.cache.bytes_mut(frame);
        let outcome = self
            .disk
            .read(&mut [Request { first, offset, into }], cause)
            .map_err(Error::from)
            .and_then(|()| checksum::verify(page, self.cache.bytes(frame)))
            .and_then(|()| {
                let damaged = |what| Error::DamagedPage { page, what };
                check.check(self.cache.bytes(frame)).map_err(damaged)
            });
        if outcome.is_err() {
            self.cache.forget(page);
        }
        outcome.map(|()| frame)
    }

    /// Gives `page` a frame; the page that has to leave is written back first if it is dirty.
    fn enter(&mut self, page: LogicalPage) -> Result<u32> {
        if let Some((victim, true)) = self.cache.victim() {
            self.write_back(victim)?;
        }
        Ok(self.cache.enter(page))
    }

    fn write_back(&mut self, page: LogicalPage) -> Result<()> {
        if self.layout.pages_per_sector > 1 {
            return self.write_back_shared(page);
        }
        let Some(frame) = self.cache.peek(page) else {
            return Ok(());
        };
        let (first, _) = self.layout.locate(page);
        let bytes = self.cache.bytes_mut(frame);
        checksum::seal(page, bytes);
        self.disk.write(first, bytes, Cause::Flush)?;
        self.cache.set_dirty(frame, false);
        Ok(())
    }

    /// Writes back the sector of `page` with every dirty page in it.
    fn write_back_shared(&mut self, page: LogicalPage) -> Result<()> {
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
                checksum::seal(page, self.cache.bytes_mut(frame));
                part.copy_from_slice(self.cache.bytes(frame));
            }
        }
        self.disk.write(first, &self.sector, Cause::Flush)?;
        for page in pages {
            if let Some(frame) = self.cache.peek(LogicalPage(page)) {
                self.cache.set_dirty(frame, false);
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

    /// A page that nobody uses; [`PageFile::fresh`] gives its bytes.
    ///
    /// # Errors
    /// [`Error::Full`], or a page of the free list can't be read.
    pub fn allocate(&mut self, cause: Cause) -> Result<LogicalPage> {
        if let Some(page) = self.take_free(cause)? {
            return Ok(page);
        }
        if self.high_water >= self.layout.pages {
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
        self.cache.forget(page);
        self.add_free(page, cause)
    }

    fn trim(&mut self, page: LogicalPage, cause: Cause) -> Result<()> {
        if self.layout.pages_per_sector > 1 {
            return Ok(());
        }
        let (first, _) = self.layout.locate(page);
        Ok(self.disk.trim(first, u64::from(self.layout.sectors_per_page), cause)?)
    }

    /// Pages that can still be allocated.
    #[must_use]
    pub fn pages_free(&self) -> u32 {
        self.layout.pages - self.high_water + self.free.pages
    }

    /// Pages that can be in use in all.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.layout.pages
    }

    /// Pages in use, and pages that are or were: those not in use among them are on the free list.
    #[must_use]
    pub fn pages_used(&self) -> (u32, u32) {
        (self.high_water - self.free.pages, self.high_water)
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
            buffers: self.sector.len() as u64,
            tables: 0,
            ftl: self.disk.table_bytes(),
        }
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

    fn write_anchor(&mut self, state: State, root: &[u8]) -> Result<()> {
        let next = self.anchor.next(state);
        next.encode(&self.layout, (self.high_water, self.free), root, &mut self.sector)?;
        self.disk.write(next.sector(), &self.sector, Cause::Checkpoint)?;
        self.disk.flush(Cause::Checkpoint)?;
        self.anchor = next;
        Ok(())
    }
}

impl Recovery for PageFile<'_> {
    fn durability(&self) -> crate::Durability {
        crate::Durability::None
    }
    fn needs_checkpoint(&self, _batch: &[crate::Update<'_>], _pages: u32) -> Result<bool> {
        Ok(false)
    }
    fn record(&mut self, _batch: &[crate::Update<'_>]) -> Result<()> {
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn checkpoint(&mut self, root: &[u8], _name: Option<&str>) -> Result<crate::CheckpointId> {
        self.close(root)?;
        Ok(crate::CheckpointId(0))
    }
    fn roll_back(&mut self, _name: &str) -> Result<Vec<u8>> {
        Err(Error::NoCheckpoint)
    }
    fn forget(&mut self, _name: &str) -> Result<()> {
        Err(Error::NoCheckpoint)
    }
    fn checkpoints(&self) -> &[crate::NamedCheckpoint] {
        &[]
    }
    fn next_replayed<'b>(&mut self, _buffer: &'b mut [u8]) -> Result<Option<crate::Update<'b>>> {
        Ok(None)
    }
    fn statistics(&self) -> crate::RecoveryStatistics {
        crate::RecoveryStatistics::default()
    }

    fn close(&mut self, root: &[u8]) -> Result<()> {
        self.write_back_all()?;
        if self.anchor.state == State::Closed {
            return Ok(());
        }
        self.disk.flush(Cause::Checkpoint)?;
        self.write_anchor(State::Closed, root)
    }

    fn reopen(&mut self) -> Result<()> {
        match self.anchor.state {
            State::Open => Ok(()),
            State::Closed => self.write_anchor(State::Open, &[]),
        }
    }
}

#[cfg(test)]
mod tests;
