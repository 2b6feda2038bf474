//! Where nodes and fragments live: on raw flash or, in place, on a disk (section 4.3).
//!
//! A page of fragments, of a table, or of the pool has an address only once it is reserved, and is
//! then programmed as a whole: so it is on raw flash, and so it is on a disk. Nodes differ:
//! [`super::nodes`] has both ways.
//!
//! What only raw flash needs does nothing on a disk: there are no generations of pages, none is
//! ever free or released, and nothing is pinned, for the page file keeps the way back by itself.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Cause, Meter, Page};
use store::{Memory, PageKind, PageLog, Recovery, Result};

use super::cost::UnitCosts;
use super::disk::Disk;
use super::layout::PageShape;

/// What a tree stands on.
#[expect(clippy::large_enum_variant, reason = "a tree has one, and asks it for every page")]
pub(super) enum Storage<'d> {
    /// Raw flash.
    Chip(PageLog<'d>),
    /// A disk.
    Disk(Box<Disk<'d>>),
}

impl<'d> Storage<'d> {
    /// The chip, if it is one.
    pub(super) const fn chip(&self) -> Option<&PageLog<'d>> {
        match self {
            Storage::Chip(log) => Some(log),
            Storage::Disk(_) => None,
        }
    }

    /// The chip, if it is one, to be changed.
    pub(super) const fn chip_mut(&mut self) -> Option<&mut PageLog<'d>> {
        match self {
            Storage::Chip(log) => Some(log),
            Storage::Disk(_) => None,
        }
    }

    /// The disk, if it is one.
    pub(super) fn disk(&self) -> Option<&Disk<'d>> {
        match self {
            Storage::Chip(_) => None,
            Storage::Disk(disk) => Some(disk),
        }
    }

    /// The disk, if it is one, to be changed.
    pub(super) fn disk_mut(&mut self) -> Option<&mut Disk<'d>> {
        match self {
            Storage::Chip(_) => None,
            Storage::Disk(disk) => Some(disk),
        }
    }

    pub(super) const fn is_disk(&self) -> bool {
        matches!(self, Storage::Disk(_))
    }

    /// Pages that there are.
    pub(super) fn pages(&self) -> u32 {
        match self {
            Storage::Chip(log) => log.geometry().pages(),
            Storage::Disk(disk) => disk.file.pages_most(),
        }
    }

    pub(super) fn usable_pages(&self) -> u32 {
        match self {
            Storage::Chip(log) => log.usable_pages(),
            Storage::Disk(disk) => disk.file.pages_most(),
        }
    }

    /// The byte of a page at which its content begins.
    pub(super) fn content_start(&self) -> usize {
        match self {
            Storage::Chip(log) => log.content_start(),
            Storage::Disk(_) => super::disk::PAGE_HEADER,
        }
    }

    /// Names the next `pages` pages that are to be programmed.
    pub(super) fn reserve(&mut self, pages: u32, into: &mut Vec<Page>, cause: Cause) -> Result<()> {
        match self {
            Storage::Chip(log) => log.reserve(pages, into, cause).map(drop),
            Storage::Disk(disk) => disk.reserve(pages, into, cause),
        }
    }

    /// Programs a page that was reserved; `content` is as long as a page.
    pub(super) fn program(
        &mut self,
        page: Page,
        content: &mut [u8],
        kind: PageKind,
        cause: Cause,
    ) -> Result<()> {
        match self {
            Storage::Chip(log) => log.program(page, content, kind, cause).map(drop),
            Storage::Disk(disk) => disk.program(page, content, kind),
        }
    }

    /// Reads what stands at byte `offset` of the content of `page`.
    pub(super) fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        cause: Cause,
    ) -> Result<()> {
        match self {
            Storage::Chip(log) => log.read(page, offset, into, cause),
            Storage::Disk(disk) => disk.read(page, offset, into, cause),
        }
    }

    /// Notes that a fragment in `page` is one of a buffer.
    pub(super) fn hold(&mut self, page: Page) {
        if let Storage::Disk(disk) = self {
            disk.hold(page);
        }
    }

    /// Notes that a fragment in `page` is no buffer's any more.
    pub(super) fn let_go(&mut self, page: Page, cause: Cause) -> Result<()> {
        match self {
            Storage::Chip(_) => Ok(()),
            Storage::Disk(disk) => disk.let_go(page, cause),
        }
    }

    /// What the accesses of section 3 cost here.
    pub(super) fn unit_costs(&self, pages: &PageShape) -> UnitCosts {
        match self {
            Storage::Chip(log) => match log.costs() {
                Some(costs) if costs.read.time.at(1, 1) > 0 => UnitCosts::on_nand(costs, pages),
                _ => UnitCosts::usual(pages),
            },
            Storage::Disk(disk) => match disk.file.costs() {
                Some(costs) if costs.read.random.time.at(1, 1) > 0 => {
                    UnitCosts::on_disk(&costs, pages.node_bytes())
                }
                _ => UnitCosts::usual_on_disk(pages.node_bytes()),
            },
        }
    }

    /// The memory in use of what is below.
    pub(super) fn memory(&self) -> Memory {
        match self {
            Storage::Chip(log) => {
                Memory { cache: 0, buffers: log.buffer_bytes(), tables: log.table_bytes(), ftl: 0 }
            }
            Storage::Disk(disk) => {
                let memory = disk.file.memory();
                Memory { tables: memory.tables + disk.table_bytes(), ..memory }
            }
        }
    }

    pub(super) fn meter(&self) -> Option<&Meter> {
        match self {
            Storage::Chip(log) => log.meter(),
            Storage::Disk(disk) => disk.file.meter(),
        }
    }

    /// The device's time so far, in nanoseconds.
    pub(super) fn time_ns(&self) -> u64 {
        self.meter().map_or(0, Meter::time_ns)
    }

    pub(super) fn recovery(&self) -> &(dyn Recovery + 'd) {
        match self {
            Storage::Chip(log) => log,
            Storage::Disk(disk) => &disk.file,
        }
    }

    pub(super) fn recovery_mut(&mut self) -> &mut (dyn Recovery + 'd) {
        match self {
            Storage::Chip(log) => log,
            Storage::Disk(disk) => &mut disk.file,
        }
    }

    /// Pins `page`, which a named checkpoint reaches.
    pub(super) fn pin(&mut self, page: Page) {
        if let Some(log) = self.chip_mut() {
            log.pin(page);
        }
    }

    /// True if `page` is of the generation that is being reclaimed.
    pub(super) fn is_old(&self, page: Page) -> bool {
        self.chip().is_some_and(|log| log.is_old(page))
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.chip().map_or(0, PageLog::next_sequence)
    }

    /// Blocks that the next checkpoint erases.
    pub(super) fn blocks_to_erase(&self) -> u32 {
        self.chip().map_or(0, |log| log.released_blocks().saturating_sub(log.blocks_only_kept()))
    }
}
