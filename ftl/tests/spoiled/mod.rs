//! A chip on which chosen pages cannot be read until their blocks are erased.

use std::collections::BTreeSet;

use contract::nand::{Hook, Hooked, Read};
use device::{Block, Cause, Error, Nand, Page, Result};
use sim::SimulatedNand;

/// The pages.
pub(crate) struct Spoiled(BTreeSet<Page>);

impl Spoiled {
    /// Spoils every page whose data is `chosen`.
    pub(crate) fn pages(
        mut chip: SimulatedNand,
        chosen: impl Fn(&[u8]) -> bool,
    ) -> Hooked<SimulatedNand, Self> {
        let mut pages = BTreeSet::new();
        let mut data = vec![0; chip.geometry().page_bytes() as usize];
        for page in (0..chip.geometry().pages()).map(Page) {
            chip.read(page, 0, &mut data, &mut [], Cause::Lookup).unwrap();
            if chosen(&data) {
                pages.insert(page);
            }
        }
        assert!(!pages.is_empty(), "there is no such page");
        Hooked { chip, hook: Spoiled(pages) }
    }

    /// Spoils the last page of each block that a full merge filled.
    pub(crate) fn last_pages(mut chip: SimulatedNand) -> Hooked<SimulatedNand, Self> {
        let geometry = chip.geometry();
        let mut pages = BTreeSet::new();
        let mut metadata = vec![0; geometry.spare_bytes() as usize];
        for block in (0..geometry.blocks()).map(Block) {
            let first = geometry.first_page(block);
            let mut data = [0; 32];
            chip.read(first, 0, &mut data, &mut metadata, Cause::Lookup).unwrap();
            // The kind of the page: see `own` and `spare` in the source.
            let merged = match metadata.get(15) {
                Some(byte) => byte >> 4 == 6,
                None => data[29] == 3,
            };
            if merged {
                pages.insert(Page(first.0 + geometry.pages_per_block() - 1));
            }
        }
        Hooked { chip, hook: Spoiled(pages) }
    }

    /// How many pages cannot be read.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl Hook<SimulatedNand> for Spoiled {
    fn read(&mut self, chip: &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        let page = read.page;
        let bits = read.on(chip);
        if self.0.contains(&page) { Err(Error::Uncorrectable { page }) } else { bits }
    }

    fn erase(&mut self, chip: &mut SimulatedNand, block: Block, cause: Cause) -> Result<()> {
        let geometry = chip.geometry();
        self.0.retain(|page| geometry.block_of(*page) != block);
        chip.erase(block, cause)
    }
}
