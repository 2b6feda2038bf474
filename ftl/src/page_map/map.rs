//! Where each sector is, and which pages are live.

use alloc::boxed::Box;
use alloc::vec;

use device::{Block, Geometry, Page};

/// No page: geometry bounds pages below it.
const NOWHERE: u32 = u32::MAX;

/// The map from sectors to pages: 4 bytes a sector, a bit a page, 4 bytes a block.
///
/// Invariant: a page is live if and only if exactly one sector is mapped to it; `live_pages`
/// counts the live pages of each block.
pub(crate) struct Map {
    geometry: Geometry,
    pages: Box<[u32]>,
    live: Box<[u64]>,
    live_pages: Box<[u32]>,
}

impl Map {
    /// A map of `sectors` sectors that are nowhere.
    pub(crate) fn new(geometry: Geometry, sectors: u32) -> Self {
        let words = geometry.pages().div_ceil(64) as usize;
        Map {
            geometry,
            pages: vec![NOWHERE; sectors as usize].into_boxed_slice(),
            live: vec![0; words].into_boxed_slice(),
            live_pages: vec![0; geometry.blocks() as usize].into_boxed_slice(),
        }
    }

    /// Where `sector` is, if it has content.
    #[inline]
    pub(crate) fn page_of(&self, sector: u32) -> Option<Page> {
        match self.pages.get(sector as usize) {
            None | Some(&NOWHERE) => None,
            Some(&page) => Some(Page(page)),
        }
    }

    pub(crate) fn is_live(&self, page: Page) -> bool {
        self.live[page.0 as usize / 64] >> (page.0 % 64) & 1 == 1
    }

    /// Live pages of `block`.
    pub(crate) fn live_pages(&self, block: Block) -> u32 {
        self.live_pages[block.0 as usize]
    }

    /// Says that `sector` is on `page` from now on; returns the page that died.
    pub(crate) fn place(&mut self, sector: u32, page: Page) -> Option<Page> {
        let died = self.remove(sector);
        self.pages[sector as usize] = page.0;
        self.live[page.0 as usize / 64] |= 1 << (page.0 % 64);
        self.live_pages[self.geometry.block_of(page).0 as usize] += 1;
        died
    }

    /// Says that `sector` has no content; returns the page that died.
    pub(crate) fn remove(&mut self, sector: u32) -> Option<Page> {
        let page = self.page_of(sector)?;
        self.pages[sector as usize] = NOWHERE;
        self.live[page.0 as usize / 64] &= !(1 << (page.0 % 64));
        self.live_pages[self.geometry.block_of(page).0 as usize] -= 1;
        Some(page)
    }

    /// Bytes of memory that the tables take.
    pub(crate) fn memory(&self) -> u64 {
        let tables = size_of_val(&*self.pages) + size_of_val(&*self.live);
        (tables + size_of_val(&*self.live_pages)) as u64
    }
}
