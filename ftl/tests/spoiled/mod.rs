//! A chip on which chosen pages cannot be read until their blocks are erased.

use std::collections::BTreeSet;

use device::{Block, Cause, Error, Geometry, Meter, Nand, Page, Result};
use sim::SimulatedNand;

pub(crate) struct Spoiled {
    chip: SimulatedNand,
    pages: BTreeSet<Page>,
}

impl Spoiled {
    pub(crate) fn new(chip: SimulatedNand) -> Self {
        Spoiled { chip, pages: BTreeSet::new() }
    }

    /// Spoils every page whose data is `chosen`.
    pub(crate) fn spoil(&mut self, chosen: impl Fn(&[u8]) -> bool) {
        let mut data = vec![0; self.chip.geometry().page_bytes() as usize];
        for page in (0..self.chip.geometry().pages()).map(Page) {
            self.chip.read(page, 0, &mut data, &mut [], Cause::Lookup).unwrap();
            if chosen(&data) {
                self.pages.insert(page);
            }
        }
        assert!(!self.pages.is_empty(), "there is no such page");
    }

    /// Spoils the last page of each block that a full merge filled; returns how many.
    pub(crate) fn spoil_last_pages(&mut self, spare: u32) -> usize {
        let geometry = self.chip.geometry();
        for block in (0..geometry.blocks()).map(Block) {
            let first = geometry.first_page(block);
            let last = Page(first.0 + geometry.pages_per_block() - 1);
            let mut data = [0; 32];
            let mut metadata = vec![0; spare as usize];
            self.chip.read(first, 0, &mut data, &mut metadata, Cause::Lookup).unwrap();
            // The kind of the page: see `own` and `spare` in the source.
            let merged = if spare == 0 { data[29] == 3 } else { metadata[15] >> 4 == 6 };
            if merged {
                self.pages.insert(last);
            }
        }
        self.pages.len()
    }
}

impl Nand for Spoiled {
    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16> {
        let read = self.chip.read(page, offset, into, spare, cause);
        if self.pages.contains(&page) { Err(Error::Uncorrectable { page }) } else { read }
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        self.chip.program(page, offset, data, spare, cause)
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        let geometry = self.chip.geometry();
        self.pages.retain(|page| geometry.block_of(*page) != block);
        self.chip.erase(block, cause)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.chip.mark_bad(block)
    }

    fn meter(&self) -> Option<&Meter> {
        self.chip.meter()
    }
}
