//! Bringing several pages into the cache at once.

use device::{Cause, Request, Sector, Sectors as _};

use super::{PageCheck, PageFile};
use crate::{LogicalPage, Result, checksum};

/// The most pages that are read at once, each in a request of its own.
pub(super) const BROUGHT_MOST: usize = 32;

impl PageFile<'_> {
    /// The most pages that [`bring`](PageFile::bring) brings: they take a quarter of the cache.
    #[must_use]
    pub fn brought_most(&self) -> usize {
        BROUGHT_MOST.min(self.cache.frames() as usize / 4)
    }

    /// Reads the first of `pages` that are not in the cache into it, all at once, as many as
    /// [`brought_most`](PageFile::brought_most). What can't be read, or is damaged, is left to
    /// whoever reads that page.
    ///
    /// # Errors
    /// A changed page had to leave the cache, and its write failed.
    pub fn bring(
        &mut self,
        pages: &[LogicalPage],
        cause: Cause,
        check: &impl PageCheck,
    ) -> Result<()> {
        // What can't be written back stays: a page that was just brought might have to leave then.
        if self.disk.failure().is_some() {
            return Ok(());
        }
        let mut brought = [(0, LogicalPage(0)); BROUGHT_MOST];
        let (most, mut count) = (self.brought_most(), 0);
        for &page in pages {
            if page.0 >= self.high_water || self.is_cached(page) || count == most {
                continue;
            }
            match self.enter(page) {
                Ok(frame) => brought[count] = (frame, page),
                Err(error) => {
                    self.forget_brought(&brought[..count]);
                    return Err(error);
                }
            }
            count += 1;
        }
        let brought = &mut brought[..count];
        // In the order of their frames, which lie one behind the other.
        brought.sort_unstable();
        if self.read_brought(brought, cause).is_err() {
            self.forget_brought(brought);
            return Ok(());
        }
        for &(frame, page) in &*brought {
            let bytes = self.cache.bytes(frame);
            let is_good = checksum::verify(self.superblock.identity, page, bytes).is_ok()
                && check.check(bytes).is_ok();
            match is_good {
                true => self.know_device(frame),
                false => self.cache.forget(page),
            }
        }
        Ok(())
    }

    fn read_brought(&mut self, brought: &[(u32, LogicalPage)], cause: Cause) -> device::Result<()> {
        let mut frames = self.cache.several_mut(brought.iter().map(|(frame, _)| *frame));
        let mut pages = brought.iter().map(|(_, page)| self.layout.locate(*page));
        let mut requests: [Request<'_>; BROUGHT_MOST] =
            core::array::from_fn(|_| match (pages.next(), frames.next()) {
                (Some((first, offset)), Some(into)) => Request { first, offset, into },
                _ => Request { first: Sector(0), offset: 0, into: &mut [] },
            });
        match requests.get_mut(..brought.len()) {
            Some(requests) if !requests.is_empty() => self.disk.read(requests, cause),
            _ => Ok(()),
        }
    }

    fn forget_brought(&mut self, brought: &[(u32, LogicalPage)]) {
        for (_, page) in brought {
            self.cache.forget(*page);
        }
    }
}
