//! That every page in use is the one that was written last.
//!
//! A damaged page fails its own checksum. An older one does not: it is there because the device
//! lost a write, or put it elsewhere. So the page file keeps the **digest** of its pages: the sum
//! of a mark of each page in use, made of its address and its checksum as the device should have
//! it. It goes with every checkpoint and costs no write of its own; [`PageFile::check_pages`] adds
//! the marks up again. It says that a page is not the newest, not which.
//!
//! # Invariants
//! - A frame knows the checksum that its page has on the device, if that is in the digest. A page
//!   that was not written since it was allocated is not in it, nor is one that was given back.
//! - Whoever comes back to a checkpoint has the pages that were in use then, and its digest.

use core::fmt::Display;

use device::{Cause, Request, Sectors};

use super::PageFile;
use crate::checksum::BYTES;
use crate::{LogicalPage, Result};

/// Pages whose checksums are read at once.
const AT_ONCE: usize = 32;

/// The mark of a page with this checksum: numbers that differ little have marks that differ much.
fn mark(page: LogicalPage, checksum: u32) -> u64 {
    let mut mark = u64::from(page.0) << 32 | u64::from(checksum);
    for factor in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        mark = (mark ^ mark >> 30).wrapping_mul(factor);
    }
    mark ^ mark >> 31
}

/// The checksum in a page's first bytes.
fn checksum_of(page: &[u8]) -> u32 {
    page.first_chunk::<BYTES>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

impl PageFile<'_> {
    /// The page in `frame` stands on the device as it is there, and is in the digest.
    pub(super) fn know_device(&mut self, frame: u32) {
        let checksum = checksum_of(self.cache.bytes(frame));
        self.cache.set_on_device(frame, Some(checksum));
    }

    /// The page in `frame` was written.
    pub(super) fn note_written(&mut self, page: LogicalPage, frame: u32) {
        self.strike_frame(page, frame);
        self.know_device(frame);
        let checksum = checksum_of(self.cache.bytes(frame));
        self.digest = self.digest.wrapping_add(mark(page, checksum));
    }

    /// Takes the page in `frame` out of the digest.
    pub(super) fn strike_frame(&mut self, page: LogicalPage, frame: u32) {
        if let Some(checksum) = self.cache.on_device(frame) {
            self.digest = self.digest.wrapping_sub(mark(page, checksum));
            self.cache.set_on_device(frame, None);
        }
    }

    /// Takes `page`, which is given back, out of the digest.
    pub(super) fn strike(&mut self, page: LogicalPage, cause: Cause) -> Result<()> {
        match self.cache.peek(page) {
            Some(frame) => self.strike_frame(page, frame),
            None => self.digest = self.digest.wrapping_sub(self.marks([page], cause)?),
        }
        Ok(())
    }

    /// The sum of the marks of pages as they stand on the device.
    pub(super) fn marks<const N: usize>(
        &mut self,
        pages: [LogicalPage; N],
        cause: Cause,
    ) -> Result<u64> {
        let mut checksums = [[0; BYTES]; N];
        let (places, mut next) = (pages.map(|page| self.layout.locate(page)), 0);
        let mut requests = checksums.each_mut().map(|into| {
            let (first, offset) = places[next];
            next += 1;
            Request { first, offset, into }
        });
        self.disk.read(&mut requests, cause)?;
        let marks = pages.iter().zip(&checksums).map(|(page, it)| mark(*page, checksum_of(it)));
        Ok(marks.fold(0, u64::wrapping_add))
    }

    /// The sum of the marks of all pages below high water, used or not.
    fn marks_of_all(&mut self, cause: Cause) -> Result<u64> {
        let (mut sum, mut next) = (0u64, 0);
        while let left = self.high_water - next
            && left > 0
        {
            let page = |place: usize| LogicalPage(next + place as u32);
            let (marks, pages) = match left as usize >= AT_ONCE {
                true => (self.marks::<AT_ONCE>(core::array::from_fn(page), cause)?, AT_ONCE),
                false => (self.marks([page(0)], cause)?, 1),
            };
            sum = sum.wrapping_add(marks);
            next += pages as u32;
        }
        Ok(sum)
    }

    /// Verifies what holds of all pages together: that the free lists name as many as they should,
    /// and that those in use are the ones that were written last.
    ///
    /// # Errors
    /// The free list is damaged, or the disk failed.
    pub fn check_pages(&mut self, finding: &mut dyn FnMut(&dyn Display)) -> Result<()> {
        let (used, high_water) = self.pages_used();
        let (counted, known) = (self.count_free(Cause::Lookup)?, high_water - used);
        if counted != known {
            finding(&format_args!("{counted} pages are on the free list, not {known}"));
        } else if !self.is_newest(Cause::Lookup)? {
            finding(&"a page is not the one that was written last: the device lost a write");
        }
        Ok(())
    }

    /// True if the pages in use are those that were written last. What is free may read as
    /// anything, but twice as the same.
    fn is_newest(&mut self, cause: Cause) -> Result<bool> {
        // A page that left the cache between two reads would be another one, and what was not
        // written yet may stand on the device as anything.
        self.write_back_all()?;
        let mut sum = self.marks_of_all(cause)?;
        for list in [self.free, self.freed] {
            sum = sum.wrapping_sub(self.marks_of_named(list, cause)?);
        }
        Ok(sum == self.digest)
    }
}
