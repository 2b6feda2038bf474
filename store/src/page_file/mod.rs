//! The page file: pages over sectors, read and written through a bounded cache.
//!
//! Where everything lies is told in `layout.rs`. A page is a whole number of sectors, or a whole
//! fraction of one; then several share a sector, reading one reads only its bytes, and writing one
//! back writes the sector with every page of it that is dirty. Pages are overwritten in place. Each
//! begins with its checksum.
//!
//! Where something is to last, [`checkpoint`] keeps the way back: a page goes to the undo run
//! before its first change after a checkpoint, and that run is flushed before the page is
//! overwritten.
//!
//! Invariants: a page below `high_water` is in use, or named by exactly one free-list page, or is
//! one. A page that leaves the cache dirty is written first. Only [`PageFile::allocate`] gives out
//! pages. What the last checkpoint needs is on the disk, or in a flushed part of the undo run.

mod anchor;
mod bytes;
mod checkpoint;
mod free_list;
mod journal;
mod layout;
mod long;
mod state;
mod undo;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Meter, Request, Sectors};

use crate::cache::Cache;
use crate::canary::{Canary, Mistake};
use crate::recovery::NAMES_MOST;
use crate::{Durability, Error, LogicalPage, Memory, Result, checksum};
use anchor::{Anchor, LABEL_BYTES_MOST, State};
use checkpoint::Checkpoints;
use free_list::FreeList;
use journal::Journal;
use layout::Layout;
pub use long::LongWriter;
use state::{CheckpointState, STATE_BYTES_MOST};
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

/// What is chosen when a page file is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFileOptions {
    /// Bytes in a page: a multiple or a whole fraction of a sector.
    pub page_bytes: u32,
    /// Memory for the cache and the buffers of the page file together, in bytes.
    pub memory_bytes: u64,
    /// How much lasts through a power cut.
    pub durability: Durability,
    /// Bytes of the journal; `None` for one that suits the disk.
    pub journal_bytes: Option<u64>,
    /// Bytes of the user's own, at most 64.
    pub label: Vec<u8>,
    /// A mistake to be made.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl PageFileOptions {
    /// Pages of `page_bytes` bytes in so much memory, and nothing lasts that was not closed.
    #[must_use]
    pub const fn new(page_bytes: u32, memory_bytes: u64) -> Self {
        PageFileOptions {
            page_bytes,
            memory_bytes,
            durability: Durability::None,
            journal_bytes: None,
            label: Vec::new(),
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }

    fn mistake(&self) -> Mistake {
        #[cfg(feature = "canaries")]
        return Mistake::new(self.canary);
        #[cfg(not(feature = "canaries"))]
        Mistake::default()
    }
}

/// What a page file says of itself before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFileDescription {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// How much lasts through a power cut.
    pub durability: Durability,
    /// Bytes of the user's own.
    pub label: Vec<u8>,
    /// The first bytes of the root record, at most 64.
    pub root_head: Vec<u8>,
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
    /// Pages given back that the last checkpoint needs, and the last page of their list.
    freed: FreeList,
    freed_tail: Option<LogicalPage>,
    anchor: Anchor,
    undo: Option<Undo>,
    journal: Option<Journal>,
    checkpoints: Checkpoints,
    mistake: Mistake,
}

impl<'d> PageFile<'d> {
    /// The least memory for pages of `page_bytes` over `disk`, in bytes.
    ///
    /// # Errors
    /// [`Error::NodeSize`] if the disk can't have such pages.
    pub fn least_memory(
        disk: device::SectorGeometry,
        page_bytes: u32,
        durability: Durability,
    ) -> Result<u64> {
        Layout::new(disk, page_bytes, 0)?;
        let cache = Cache::bytes_for(FRAMES_LEAST, page_bytes, disk.alignment());
        Ok(cache + Self::buffer_bytes(disk, durability))
    }

    fn buffer_bytes(disk: device::SectorGeometry, durability: Durability) -> u64 {
        let sector = disk.sector_bytes();
        let mut bytes = u64::from(sector);
        if durability != Durability::None {
            bytes += Undo::buffer_bytes(sector);
        }
        if durability.has_journal() {
            bytes += Journal::buffer_bytes(sector);
        }
        bytes
    }

    /// How many pages of the memory `memory_bytes` are cached at once.
    ///
    /// # Errors
    /// [`Error::LittleMemory`] or [`Error::NodeSize`].
    pub fn frames(disk: device::SectorGeometry, options: &PageFileOptions) -> Result<u32> {
        let need = Self::least_memory(disk, options.page_bytes, options.durability)?;
        if options.memory_bytes < need {
            return Err(Error::LittleMemory { have: options.memory_bytes, need });
        }
        let cache = options.memory_bytes - Self::buffer_bytes(disk, options.durability);
        let frames = Cache::frames_in(cache, options.page_bytes, disk.alignment());
        // More frames than pages would be memory for nothing.
        let pages = Layout::new(disk, options.page_bytes, 0)?.pages;
        Ok(frames.min(pages).max(FRAMES_LEAST))
    }

    /// Makes an empty page file on `disk`, whatever that held before.
    ///
    /// # Errors
    /// The sizes do not fit, the memory is too small, or the disk failed.
    pub fn create(mut disk: Box<dyn Sectors + 'd>, options: &PageFileOptions) -> Result<Self> {
        let label = options.label.len();
        if label > LABEL_BYTES_MOST {
            return Err(Error::Label { bytes: label as u64, limit: LABEL_BYTES_MOST as u64 });
        }
        let geometry = disk.geometry();
        let journal_sectors = match options.durability.has_journal() {
            true => Journal::sectors_for(options.journal_bytes, geometry),
            false => 0,
        };
        let anchor = Anchor {
            // What an index that was here before left must not be taken for this one's.
            sequence: Anchor::next_sequence(&mut *disk)?,
            page_bytes: options.page_bytes,
            state: State::Open,
            durability: options.durability,
            journal_sectors,
            journal_epoch: 0,
            label: options.label.clone(),
            checkpoint: CheckpointState::NEW,
        };
        let mut file = Self::over(disk, anchor, options)?;
        file.anchor.write(&mut *file.disk, &mut file.sector)?;
        file.begin_epoch();
        Ok(file)
    }

    /// What the page file on `disk` says of itself.
    ///
    /// # Errors
    /// There is none, or the disk failed.
    pub fn describe(disk: &mut dyn Sectors) -> Result<PageFileDescription> {
        let anchor = Anchor::read(disk)?;
        Ok(PageFileDescription {
            page_bytes: anchor.page_bytes,
            durability: anchor.durability,
            label: anchor.label,
            root_head: anchor.checkpoint.root_head,
        })
    }

    /// Opens the page file on `disk` with the memory of `options`, whose other fields but the
    /// durability are the file's own; the state of the last checkpoint comes back. Returns it with
    /// its root record.
    ///
    /// # Errors
    /// There is none, it was not closed, the memory is too small, or the disk failed.
    pub fn open(
        mut disk: Box<dyn Sectors + 'd>,
        options: &PageFileOptions,
    ) -> Result<(Self, Vec<u8>)> {
        let anchor = Anchor::secure(&mut *disk)?;
        if anchor.durability == Durability::None && anchor.state != State::Whole {
            return Err(Error::NotClosed);
        }
        if anchor.state == State::Open && anchor.durability != Durability::None {
            return Err(Error::NotAnIndex { what: "its making was broken off: make it anew" });
        }
        let mut options = options.clone();
        options.page_bytes = anchor.page_bytes;
        options.durability = anchor.durability;
        let mut file = Self::over(disk, anchor, &options)?;
        if file.anchor.checkpoint.high_water > file.layout.pages {
            return Err(Error::NotAnIndex { what: "it counts more pages than the device has" });
        }
        let root = file.recover()?;
        Ok((file, root))
    }

    fn over(
        disk: Box<dyn Sectors + 'd>,
        anchor: Anchor,
        options: &PageFileOptions,
    ) -> Result<Self> {
        let geometry = disk.geometry();
        let layout = Layout::new(geometry, options.page_bytes, anchor.journal_sectors)?;
        let frames = Self::frames(geometry, options)?;
        let sector_bytes = geometry.sector_bytes();
        let durability = anchor.durability;
        let mistake = options.mistake();
        let journal =
            || Journal::new(layout.journal(), anchor.journal_sectors, sector_bytes, mistake);
        Ok(PageFile {
            disk,
            layout,
            cache: Cache::new(frames, options.page_bytes, geometry.alignment()),
            sector: vec![0; sector_bytes as usize],
            high_water: 0,
            free: FreeList::EMPTY,
            freed: FreeList::EMPTY,
            freed_tail: None,
            undo: (durability != Durability::None).then(|| Undo::new(layout, sector_bytes)),
            journal: durability.has_journal().then(journal),
            anchor,
            checkpoints: Checkpoints::default(),
            mistake,
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

    /// Gives `page` a frame, with what the disk holds of it only if the undo run needs that.
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

    /// Makes the page in `frame` dirty; what its unit held at the last checkpoint goes to the undo
    /// run first.
    #[inline]
    fn begin_change(&mut self, page: LogicalPage, frame: u32) -> Result<()> {
        if !self.cache.is_dirty(frame) {
            if self.undo.is_some() {
                self.save_image(page, frame)?;
            }
            self.cache.set_dirty(frame, true);
        }
        Ok(())
    }

    fn save_image(&mut self, page: LogicalPage, frame: u32) -> Result<()> {
        let unit = self.layout.unit_of(page);
        let Some(undo) = self.undo.as_mut().filter(|undo| undo.needs(unit)) else {
            return Ok(());
        };
        let image = if self.layout.pages_per_sector > 1 {
            let first = self.layout.sector_of(unit);
            let into = &mut self.sector[..];
            self.disk.read(&mut [Request { first, offset: 0, into }], Cause::Checkpoint)?;
            &self.sector
        } else {
            self.cache.bytes(frame)
        };
        undo.save(&mut *self.disk, unit, image, self.high_water)
    }

    /// True if the last checkpoint needs what `page` holds on the disk.
    fn is_needed(&self, page: LogicalPage) -> bool {
        let unit = self.layout.unit_of(page);
        !self.mistake.is(Canary::FreedPageReused)
            && self.undo.as_ref().is_some_and(|undo| undo.needs(unit))
    }

    /// Makes the images of pages durable before `page` is overwritten.
    fn flush_undo(&mut self, page: LogicalPage) -> Result<()> {
        let unit = self.layout.unit_of(page);
        match &mut self.undo {
            Some(undo) if undo.is_waiting(unit) => {
                if self.mistake.is(Canary::UndoAfterOverwrite) {
                    return Ok(());
                }
                undo.flush(&mut *self.disk)
            }
            _ => Ok(()),
        }
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
        self.flush_undo(page)?;
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

    /// Says that nobody needs what `page`, which was free, holds: no checkpoint but the last can.
    fn let_change(&mut self, page: LogicalPage) {
        let unit = self.layout.unit_of(page);
        let is_pinned = self.checkpoints.are_kept() && !self.mistake.is(Canary::PinnedPageReused);
        if let Some(undo) = &mut self.undo
            && self.layout.pages_per_sector == 1
            && !is_pinned
        {
            undo.let_change(unit);
        }
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

    /// Pages that trees can still allocate, beside those that recovery may come to need.
    #[must_use]
    pub fn pages_free(&self) -> u32 {
        let Some(undo) = &self.undo else {
            return self.layout.pages - self.high_water + self.free.pages;
        };
        let beside = undo.pages_beside().saturating_sub(self.high_water);
        (beside + self.free.pages).saturating_sub(self.checkpoint_pages())
    }

    /// Pages that the next checkpoint may need for itself.
    pub(super) fn checkpoint_pages(&self) -> u32 {
        let names = NAMES_MOST.min(self.checkpoints.count() + 2);
        let root = self.anchor.checkpoint.root.map_or(0, |root| root.bytes as usize);
        let bytes = names * STATE_BYTES_MOST + root;
        // One for each page that names others, of which two are enough in sensible sizes.
        3 + (bytes / (self.layout.page_bytes as usize - 64)) as u32
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
            buffers: Self::buffer_bytes(self.disk.geometry(), self.anchor.durability),
            tables: self.undo.as_ref().map_or(0, Undo::table_bytes),
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
}

#[cfg(test)]
mod tests;
