//! Where runs stand: pages that are written once, in their order, and given back whole.
//!
//! The same trait over a page file ([`FileSpace`]) and a page log ([`LogSpace`]). Room is reserved
//! before a run is begun; where its pages went is told when they are written. Which room is in use
//! is written nowhere: whoever opens a space claims what its manifest names, and all else is free.
//! So what a run that was broken off had taken is free again without a word.
//!
//! Invariant: two runs never have a page in common, and a claim of what is in use is damage.

mod extents;
mod file;
mod log;

use alloc::vec::Vec;

use device::Cause;

use crate::{Error, LogicalPage, PageCheck, Recovery, Result};

pub use file::FileSpace;
pub use log::LogSpace;

/// Pages one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// The first of them.
    pub first: u32,
    /// How many there are.
    pub pages: u32,
}

impl Extent {
    /// Where a run has no pages any more.
    const HOLE: u32 = u32::MAX;

    /// So many pages of a run that were given back.
    pub(super) const fn hole(pages: u32) -> Self {
        Extent { first: Extent::HOLE, pages }
    }

    /// True if the pages were given back.
    #[must_use]
    pub const fn is_hole(&self) -> bool {
        self.first == Extent::HOLE
    }

    /// The page behind the last.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.first.saturating_add(self.pages)
    }

    /// True if both have a page in common.
    pub(super) const fn meets(self, other: Extent) -> bool {
        let is_hole = self.is_hole() || other.is_hole();
        !is_hole && self.first < other.end() && other.first < self.end()
    }

    /// Adds an extent to a list of them, joined to the last one if it goes on there.
    pub(super) fn push(self, to: &mut Vec<Extent>) {
        match to.last_mut() {
            _ if self.pages == 0 => {}
            Some(last) if last.is_hole() && self.is_hole() => last.pages += self.pages,
            Some(last) if last.end() == self.first && !last.is_hole() && !self.is_hole() => {
                last.pages += self.pages;
            }
            _ => to.push(self),
        }
    }
}

/// Bytes of a page, or of several one behind the other, to read.
#[derive(Debug)]
pub struct PageRequest<'b> {
    /// The page that `offset` counts from.
    pub page: u32,
    /// The first byte wanted.
    pub offset: u32,
    /// Where the bytes go.
    pub into: &'b mut [u8],
}

/// Pages that were reserved and not written yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Which, where that is known before.
    pub(super) extents: Vec<Extent>,
    /// How many.
    pub(super) pages: u32,
}

impl Reserved {
    /// How many pages are left.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages
    }
}

/// Where runs stand.
pub trait Space: Send {
    /// Bytes of a page.
    fn page_bytes(&self) -> u32;

    /// The alignment of memory that the device is fastest with, in bytes.
    fn alignment(&self) -> u32;

    /// A number that goes into every checksum.
    fn identity(&self) -> u64;

    /// Room for `pages` pages, one behind the other where that can be. A device that can grow has
    /// it from now on, but for a load, which takes pages there as it writes them.
    ///
    /// # Errors
    /// There is none, or the device failed.
    fn reserve(&mut self, pages: u32, cause: Cause) -> Result<Reserved>;

    /// Writes the whole pages in `bytes` to the next of `reserved`, past every cache and without
    /// an image, and adds where they went to `into`.
    ///
    /// # Errors
    /// Fewer pages were reserved, or the device failed.
    fn write(
        &mut self,
        reserved: &mut Reserved,
        bytes: &mut [u8],
        into: &mut Vec<Extent>,
        cause: Cause,
    ) -> Result<()>;

    /// Gives back what was reserved and not written.
    fn unreserve(&mut self, reserved: Reserved);

    /// Makes what was written last: before a delta that names it is recorded.
    ///
    /// # Errors
    /// The device failed.
    fn flush(&mut self, cause: Cause) -> Result<()>;

    /// Reads bytes of pages, all requests in one call.
    ///
    /// # Errors
    /// The bytes don't exist, or the device failed.
    fn read(&mut self, requests: &mut [PageRequest<'_>], cause: Cause) -> Result<()>;

    /// Says that pages are in use, as a manifest has it that an opening came to.
    ///
    /// # Errors
    /// They don't exist, or something else uses them.
    fn claim(&mut self, extents: &[Extent]) -> Result<()>;

    /// All that is in use was claimed: the rest is free.
    ///
    /// # Errors
    /// The device failed.
    fn end_claims(&mut self) -> Result<()>;

    /// Makes pages free at once: no manifest that an opening may come to names them.
    ///
    /// # Errors
    /// They were not in use.
    fn free(&mut self, extents: &[Extent]) -> Result<()>;

    /// Pages that can be reserved.
    fn pages_free(&self) -> u64;

    /// Pages that runs can have in all.
    fn pages_most(&self) -> u64;

    /// Bytes of memory that its own tables and buffers take, beside those of what it stands on.
    fn memory(&self) -> u64;

    /// A page of the page file in front, where there is one.
    ///
    /// # Errors
    /// There is none, or as [`PageFile::page`](crate::PageFile::page).
    fn front_page(
        &mut self,
        page: LogicalPage,
        cause: Cause,
        check: &dyn PageCheck,
    ) -> Result<&[u8]> {
        let _ = (cause, check);
        Err(Error::DamagedPage { page, what: "it is named, but no page file is in front" })
    }

    /// What makes the manifest last.
    fn recovery(&self) -> &dyn Recovery;

    /// What makes the manifest last, to be used.
    fn recovery_mut(&mut self) -> &mut dyn Recovery;
}
