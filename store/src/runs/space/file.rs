//! Runs behind a page file: a tree may have pages in place in front, with images, and runs behind.
//!
//! ```text
//!  sectors  0                        front     base
//!           +------------------------+----+----+--------+--------+-----
//!           | page file, its journal |    | page 0 | page 1 | ...
//!           +------------------------+----+--------+--------+-----
//! ```
//!
//! The page file has a fixed length; on a disk that grows what is behind grows and shrinks with the
//! runs. A page of runs is a whole number of sectors, of any size: it is the least that is given
//! out, and a whole number of units.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Cause, Request, Sector, Sectors};

use super::extents::Extents;
use super::{Extent, PageRequest, Reserved, Space};
use crate::{Error, LogicalPage, PageCheck, PageFile, PageFileOptions, Recovery, Result};

/// Requests that go to the disk at once.
const AT_ONCE: usize = 32;

/// By how many bytes a file grows at least, and the part of its pages by which it does.
const STEP_BYTES: u32 = 256 << 10;
const STEP_PART: u32 = 16;

/// Runs in the sectors behind a page file.
pub struct FileSpace<'d> {
    file: PageFile<'d>,
    extents: Extents,
    page_bytes: u32,
    sectors_per_page: u64,
    /// The sector where page 0 begins.
    base: u64,
    alignment: u32,
    /// Pages that the disk has room for now, if it grows.
    held: Option<u32>,
    /// Pages that loads may still take.
    promised: u32,
    /// Pages read and written.
    moved: u64,
}

impl<'d> FileSpace<'d> {
    /// An empty space of pages of `page_bytes` bytes, behind a page file that takes the front of
    /// `disk` ([`PageFileOptions::front`]).
    ///
    /// # Errors
    /// The sizes do not fit, the memory is too small, or the disk failed.
    pub fn create(
        disk: Box<dyn Sectors + 'd>,
        page_bytes: u32,
        options: &PageFileOptions,
    ) -> Result<Self> {
        let whole = disk.geometry().sectors();
        let grows = disk.sectors_held().is_some();
        let file = PageFile::create(disk, options)?;
        let held = file.front_sectors().filter(|_| grows);
        Self::behind(file, (whole, held), page_bytes)
    }

    /// The space behind the page file on `disk`, with pages of `page_bytes` bytes as when it was
    /// made, and the root record. What is in use is to be claimed.
    ///
    /// # Errors
    /// As [`PageFile::open`], or there is nothing behind the page file.
    pub fn open(
        disk: Box<dyn Sectors + 'd>,
        page_bytes: u32,
        options: &PageFileOptions,
    ) -> Result<(Self, Vec<u8>)> {
        let (whole, held) = (disk.geometry().sectors(), disk.sectors_held());
        let (file, root) = PageFile::open(disk, options)?;
        Ok((Self::behind(file, (whole, held), page_bytes)?, root))
    }

    fn behind(
        mut file: PageFile<'d>,
        (whole, held): (u64, Option<u64>),
        page_bytes: u32,
    ) -> Result<Self> {
        let what = "its page file has nothing behind it";
        let none = Error::NotAnIndex { is_ours: true, what };
        let front = file.front_sectors().ok_or(none)?;
        let disk = file.disk_mut().geometry();
        let sector = disk.sector_bytes();
        if page_bytes == 0 || !page_bytes.is_multiple_of(sector) {
            let what = "a page of runs is a multiple of the device's page";
            return Err(Error::NodeSize { bytes: page_bytes, what });
        }
        let sectors_per_page = u64::from(page_bytes / sector);
        let base = front.next_multiple_of(sectors_per_page);
        let pages = |sectors: u64| {
            let pages = sectors.saturating_sub(base) / sectors_per_page;
            u32::try_from(pages).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
        };
        Ok(FileSpace {
            file,
            extents: Extents::new(pages(whole)),
            page_bytes,
            sectors_per_page,
            base,
            alignment: disk.alignment(),
            held: held.map(pages),
            promised: 0,
            moved: 0,
        })
    }

    /// The page file in front.
    #[must_use]
    pub const fn file(&self) -> &PageFile<'d> {
        &self.file
    }

    /// The page file in front, to be used.
    pub const fn file_mut(&mut self) -> &mut PageFile<'d> {
        &mut self.file
    }

    /// Lets all pages of runs be free: what is in use is to be claimed anew.
    pub fn begin_claims(&mut self) {
        self.extents = Extents::new(self.extents.most());
        self.promised = 0;
    }

    /// Pages of runs that were read and written since it was made or opened.
    #[must_use]
    pub const fn pages_moved(&self) -> u64 {
        self.moved
    }

    /// How many extents the free pages are.
    #[must_use]
    pub fn extents_free(&self) -> usize {
        self.extents.count()
    }

    /// Sectors that pages and page file take, up to the last page in use.
    #[must_use]
    pub fn sectors_used(&self) -> u64 {
        self.base + u64::from(self.extents.end()) * self.sectors_per_page
    }

    fn sector_of(&self, page: u32) -> Sector {
        Sector(self.base + u64::from(page) * self.sectors_per_page)
    }

    /// Sees to it that the disk has room for the pages up to `end`.
    fn hold(&mut self, end: u32, cause: Cause) -> Result<()> {
        let Some(held) = self.held.filter(|held| *held < end) else {
            return Ok(());
        };
        let step = (STEP_BYTES / self.page_bytes).max(held / STEP_PART);
        let wanted = end.max(held.saturating_add(step)).min(self.extents.most());
        let mut made = Ok(());
        // There may be room for less.
        for pages in [wanted, end] {
            let sectors = self.sector_of(pages).0;
            made = self.file.disk_mut().resize(sectors, cause);
            if made.is_ok() {
                self.held = Some(pages);
                break;
            }
        }
        Ok(made?)
    }

    /// Sees to it that the disk has room for so many free pages: what takes no more of them than
    /// that finds it, though the disk gets full meanwhile.
    ///
    /// # Errors
    /// The disk is full, or failed.
    pub fn hold_free(&mut self, pages: u64, cause: Cause) -> Result<()> {
        let Some(held) = self.held else {
            return Ok(());
        };
        let lacks = pages.saturating_sub(self.extents.free_below(held).into());
        let end = u64::from(held).saturating_add(lacks).min(self.extents.most().into());
        self.hold(end as u32, cause)
    }

    /// Takes some of the pages that were promised to a load, for `pages` that are written now and
    /// more that come: one behind the other, but where another run of the load took some between.
    fn take_promised(
        &mut self,
        reserved: &mut Reserved,
        written: &[Extent],
        pages: u32,
    ) -> Result<()> {
        let step = (STEP_BYTES / self.page_bytes).max(pages_in(written) / STEP_PART);
        let step = step.max(pages).min(reserved.pages);
        reserved.extents = self.extents.take(step).ok_or(self.full())?.extents;
        self.promised -= step;
        Ok(())
    }

    /// Gives room back to the system: all behind the last page in use. The last checkpoint must
    /// name nothing else, or an opening finds the end of the device before it.
    ///
    /// # Errors
    /// The device failed.
    pub fn shorten(&mut self) -> Result<()> {
        let end = self.extents.end();
        if self.held.is_some_and(|held| held > end) {
            let sectors = self.sector_of(end).0;
            self.file.disk_mut().resize(sectors, Cause::Checkpoint)?;
            self.held = Some(end);
        }
        Ok(())
    }

    fn full(&self) -> Error {
        Error::Full { pages: self.pages_most() }
    }
}

fn pages_in(extents: &[Extent]) -> u32 {
    extents.iter().map(|extent| extent.pages).sum()
}

impl Space for FileSpace<'_> {
    fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    fn alignment(&self) -> u32 {
        self.alignment
    }

    fn identity(&self) -> u64 {
        self.file.identity()
    }

    fn reserve(&mut self, pages: u32, cause: Cause) -> Result<Reserved> {
        if u64::from(pages) > self.pages_free() {
            return Err(self.full());
        }
        if cause == Cause::Load && self.held.is_some() {
            // It does not know how much comes, and the disk grows as that is written.
            self.promised += pages;
            return Ok(Reserved { extents: Vec::new(), pages });
        }
        let reserved = self.extents.take(pages).ok_or(self.full())?;
        let end = reserved.extents.iter().map(Extent::end).max().unwrap_or(0);
        if let Err(error) = self.hold(end, cause) {
            self.free(&reserved.extents)?;
            // What the disk has room for already may suffice in parts.
            let held = self.held.unwrap_or(0);
            return self.extents.take_below(pages, held).ok_or(error);
        }
        Ok(reserved)
    }

    fn write(
        &mut self,
        reserved: &mut Reserved,
        mut bytes: &mut [u8],
        into: &mut Vec<Extent>,
        cause: Cause,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let full = self.full();
            let pages = (bytes.len() as u64 / u64::from(self.page_bytes)) as u32;
            if reserved.extents.is_empty() {
                self.take_promised(reserved, into, pages)?;
            }
            let next = reserved.extents.first_mut().ok_or(full)?;
            let part = Extent { first: next.first, pages: pages.min(next.pages) };
            if part.pages == 0 {
                return Err(full);
            }
            let length = part.pages as usize * self.page_bytes as usize;
            let (now, later) = core::mem::take(&mut bytes).split_at_mut(length);
            self.hold(part.end(), cause)?;
            let first = self.sector_of(part.first);
            self.file.disk_mut().write(first, now, cause)?;
            next.first += part.pages;
            next.pages -= part.pages;
            if next.pages == 0 {
                reserved.extents.remove(0);
            }
            reserved.pages -= part.pages;
            self.moved += u64::from(part.pages);
            part.push(into);
            bytes = later;
        }
        Ok(())
    }

    fn unreserve(&mut self, reserved: Reserved) {
        self.promised -= reserved.pages - pages_in(&reserved.extents);
        // What was reserved was taken from the free pages, so it can be given back.
        let given = self.free(&reserved.extents);
        debug_assert!(given.is_ok(), "reserved pages are in use");
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        Ok(self.file.disk_mut().flush(cause)?)
    }

    fn read(&mut self, requests: &mut [PageRequest<'_>], cause: Cause) -> Result<()> {
        let (base, sectors_per_page) = (self.base, self.sectors_per_page);
        let pages = requests.iter().map(|it| it.into.len().div_ceil(self.page_bytes as usize));
        self.moved += pages.sum::<usize>() as u64;
        for group in requests.chunks_mut(AT_ONCE) {
            let count = group.len();
            let mut left = group.iter_mut();
            let mut on_disk: [Request<'_>; AT_ONCE] = core::array::from_fn(|_| {
                let Some(request) = left.next() else {
                    return Request { first: Sector(base), offset: 0, into: &mut [] };
                };
                let first = Sector(base + u64::from(request.page) * sectors_per_page);
                Request { first, offset: request.offset, into: &mut *request.into }
            });
            self.file.disk_mut().read(&mut on_disk[..count], cause)?;
        }
        Ok(())
    }

    fn claim(&mut self, extents: &[Extent]) -> Result<()> {
        let held = self.held.unwrap_or(self.extents.most());
        if extents.iter().any(|extent| extent.end() > held) {
            let what = "its manifest names pages behind the end of the device";
            return Err(Error::NotAnIndex { is_ours: true, what });
        }
        extents.iter().try_for_each(|extent| self.extents.claim(*extent))
    }

    fn end_claims(&mut self) -> Result<()> {
        Ok(())
    }

    fn free(&mut self, extents: &[Extent]) -> Result<()> {
        extents.iter().try_for_each(|extent| self.extents.free(*extent))
    }

    fn pages_free(&self) -> u64 {
        (self.extents.pages() - self.promised).into()
    }

    fn pages_most(&self) -> u64 {
        self.extents.most().into()
    }

    fn memory(&self) -> u64 {
        self.extents.memory()
    }

    fn front_page(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &dyn PageCheck,
    ) -> Result<&[u8]> {
        self.file.page(page, cause, check)
    }

    fn recovery(&self) -> &dyn Recovery {
        &self.file
    }

    fn recovery_mut(&mut self) -> &mut dyn Recovery {
        &mut self.file
    }
}
