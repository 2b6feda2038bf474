//! Where pages lie on the disk.
//!
//! ```text
//!  sectors  0        1        base                             journal     end
//!           +--------+--------+--------+--------+-----+--------+-----------+
//!           | superblock | superblock | page 0 | page 1 | ... | images |  journal  |
//!           +--------+--------+--------+--------+-----+--------+-----------+
//!                              pages grow ->   <- the undo log grows
//! ```
//!
//! A **unit** is what is written at once: a page, or a sector that several pages share. The images
//! of the undo log are units too; they take the room of pages from the end.
//!
//! How many pages there is room for, and how long the journal is, changes (`growth.rs`), up to what
//! the disk has.

use core::ops::Range;

use device::{Sector, SectorGeometry};

use super::superblock;
use crate::node::{NODE_BYTES_LEAST, NODE_BYTES_MOST};
use crate::{Error, LogicalPage, Result};

/// The fewest pages.
const PAGES_LEAST: u64 = 4;

/// Where pages lie: after the superblocks, one behind the other, and the journal behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) page_bytes: u32,
    /// 1 if a page is a part of a sector.
    pub(super) sectors_per_page: u32,
    /// 1 if a page is a sector or more.
    pub(super) pages_per_sector: u32,
    /// Sectors of the journal.
    pub(super) journal_sectors: u32,
    /// The most sectors of the journal.
    pub(super) journal_most: u32,
    sector_bytes: u32,
    /// Sectors of the disk.
    sectors: u64,
    /// The sector where page 0 begins.
    base: u64,
    /// Pages that there is room for.
    pub(super) pages: u32,
    /// Pages that there can be room for: a whole number of units.
    pub(super) pages_most: u32,
}

impl Layout {
    /// The layout that takes all of `disk`, with a journal of `journal` sectors.
    pub(super) fn new(disk: SectorGeometry, page_bytes: u32, journal: u32) -> Result<Self> {
        let layout = Self::of_any(disk, page_bytes, journal)?;
        if u64::from(layout.pages) < PAGES_LEAST {
            let least = PAGES_LEAST.div_ceil(u64::from(layout.pages_per_sector));
            let need = least * u64::from(layout.sectors_per_page);
            let need = layout.base + u64::from(journal) + need;
            return Err(device::Error::TooSmall { have: disk.sectors(), need }.into());
        }
        Ok(layout)
    }

    /// The same, however few pages there is room for.
    pub(super) fn of_any(disk: SectorGeometry, page_bytes: u32, journal: u32) -> Result<Self> {
        let fault = |what| Error::NodeSize { bytes: page_bytes, what };
        if !(NODE_BYTES_LEAST..=NODE_BYTES_MOST).contains(&page_bytes) {
            return Err(fault("they must have 128 to 32768 bytes"));
        }
        let sector = disk.sector_bytes();
        if !page_bytes.is_multiple_of(sector) && !sector.is_multiple_of(page_bytes) {
            return Err(fault("they must be a multiple or a whole fraction of the device's page"));
        }
        let sectors_per_page = (page_bytes / sector).max(1);
        let pages_per_sector = (sector / page_bytes).max(1);
        let base = superblock::SLOTS.next_multiple_of(u64::from(sectors_per_page));
        let layout = Layout {
            page_bytes,
            sectors_per_page,
            pages_per_sector,
            journal_sectors: journal,
            journal_most: journal,
            sector_bytes: sector,
            sectors: disk.sectors(),
            base,
            pages: 0,
            pages_most: 0,
        };
        let pages = layout.beside(journal).pages_most;
        Ok(Layout { pages, pages_most: pages, ..layout })
    }

    /// The same where pages may take all of the disk but for so many sectors of a journal.
    pub(super) fn beside(self, journal: u32) -> Self {
        let units = self.sectors.saturating_sub(self.base + u64::from(journal))
            / u64::from(self.sectors_per_page);
        // The highest numbers mark "no page".
        let most = u64::from(u32::MAX) / u64::from(self.pages_per_sector) - 1;
        let pages = units.min(most) * u64::from(self.pages_per_sector);
        Layout { pages_most: u32::try_from(pages).unwrap_or(u32::MAX - 1), ..self }
    }

    /// The same disk with room for the units of `pages` pages, as far as there can be, and with a
    /// journal of `journal` sectors, as far as there is room for it then.
    pub(super) fn with(self, pages: u64, journal: u32) -> Self {
        let unit = u64::from(self.pages_per_sector);
        let pages = pages.next_multiple_of(unit).min(u64::from(self.pages_most)) as u32;
        let to = Layout { pages, ..self };
        let left = u32::try_from(self.sectors.saturating_sub(to.journal().0)).unwrap_or(u32::MAX);
        Layout { journal_sectors: journal.min(self.journal_most).min(left), ..to }
    }

    /// The sector in which `page` begins, and at which byte of it.
    #[inline]
    pub(super) fn locate(&self, page: LogicalPage) -> (Sector, u32) {
        let page = u64::from(page.0);
        let pages_per_sector = u64::from(self.pages_per_sector);
        let sector = self.base + page / pages_per_sector * u64::from(self.sectors_per_page);
        (Sector(sector), (page % pages_per_sector) as u32 * self.page_bytes)
    }

    /// The pages that share the sector of `page`.
    pub(super) fn sharing(&self, page: LogicalPage) -> Range<u32> {
        let first = page.0 / self.pages_per_sector * self.pages_per_sector;
        first..first + self.pages_per_sector
    }

    /// The first sector of the journal: behind the pages.
    pub(super) fn journal(&self) -> Sector {
        self.sector_of(self.units())
    }

    /// The sector behind all.
    pub(super) fn end(&self) -> Sector {
        Sector(self.journal().0 + u64::from(self.journal_sectors))
    }

    /// Units that there is room for.
    pub(super) fn units(&self) -> u32 {
        self.pages / self.pages_per_sector
    }

    /// Units that there can be room for.
    pub(super) fn units_most(&self) -> u32 {
        self.pages_most / self.pages_per_sector
    }

    /// Units that `bytes` bytes take.
    pub(super) fn units_for(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.unit_bytes() as u64)).unwrap_or(u32::MAX)
    }

    /// Bytes in a sector.
    pub(super) fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Bytes in a unit.
    pub(super) fn unit_bytes(&self) -> usize {
        self.page_bytes.max(self.sector_bytes) as usize
    }

    /// The unit in which `page` lies.
    #[inline]
    pub(super) fn unit_of(&self, page: LogicalPage) -> u32 {
        page.0 / self.pages_per_sector
    }

    /// The units that the first `pages` pages take.
    pub(super) fn units_of(&self, pages: u32) -> u32 {
        pages.div_ceil(self.pages_per_sector)
    }

    /// The sector where `unit` begins.
    pub(super) fn sector_of(&self, unit: u32) -> Sector {
        Sector(self.base + u64::from(unit) * u64::from(self.sectors_per_page))
    }
}
