//! Scrubbing: pages in which bits flip are moved before more bits flip than can be corrected.

use device::{Cause, Error, Nand, Page, Result};

use super::PageMap;
use super::collect::CAUSE;
use super::frontier::Write;
use crate::reading::{read_patiently, readable};

/// Sectors that should be moved. One that finds no room is met again when it is read again.
#[derive(Default)]
pub(super) struct Suspects {
    sectors: [u32; 8],
    count: usize,
}

impl Suspects {
    fn push(&mut self, sector: u32) {
        if let Some(place) = self.sectors.get_mut(self.count) {
            *place = sector;
            self.count += 1;
        }
    }

    fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        Some(self.sectors[self.count])
    }
}

impl<N: Nand> PageMap<N> {
    /// Reads a page; counts the bits that were corrected, and returns how many.
    pub(super) fn read_page(
        &mut self,
        page: Page,
        offset: u32,
        (into, spare): (&mut [u8], &mut [u8]),
        cause: Cause,
    ) -> Result<u16> {
        let bits = read_patiently(&mut self.nand, page, offset, (into, spare), cause)?;
        self.statistics.bits_corrected += u64::from(bits);
        Ok(bits)
    }

    /// Remembers that so many bits had flipped on the page of `sector`.
    pub(super) fn suspect(&mut self, sector: u32, bits: u16) {
        if self.scrub_from > 0 && bits >= self.scrub_from {
            self.suspects.push(sector);
        }
    }

    /// Moves the sectors that were remembered, as far as there is room.
    pub(super) fn scrub(&mut self) -> Result<()> {
        while let Some(sector) = self.suspects.pop() {
            if self.broken.is_some() {
                continue;
            }
            match self.scrub_sector(sector) {
                Ok(()) | Err(Error::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn scrub_sector(&mut self, sector: u32) -> Result<()> {
        let Some(page) = self.map.page_of(sector) else { return Ok(()) };
        let block = self.shape.geometry.block_of(page);
        let stream = self.placement.of_collected(self.notes[block.0 as usize].region);
        self.make_room(stream)?;
        if self.map.page_of(sector) != Some(page) {
            // Collection was quicker.
            return Ok(());
        }
        let mut data = core::mem::take(&mut self.buffers.moved);
        let fetched = if self.shape.has_groups() {
            readable(self.read_page(page, 0, (&mut data, &mut []), CAUSE))
                .map(|whole| whole.then_some(None))
        } else {
            self.fetch(page, &mut data).map(|found| found.map(|found| Some(found.data)))
        };
        let moved = match fetched {
            Ok(Some(check)) => {
                self.append(stream, Write { sector, data: &data, check }, CAUSE).map(Some)
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        self.buffers.moved = data;
        if let Some(copy) = moved? {
            if let Some(died) = self.map.place(sector, copy) {
                self.page_died(self.shape.geometry.block_of(died));
            }
            self.statistics.pages_scrubbed += 1;
        }
        Ok(())
    }
}
