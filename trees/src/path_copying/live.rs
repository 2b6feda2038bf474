//! Which pages hold a node that lives: one bit a page, where the memory is enough for it.
//!
//! Then collection reads only what it moves, which is what the paper's equations 6 and 9 charge.
//! Without it, a page lives if the path to its lowest node leads to it. The table is in memory
//! alone: after an opening, a rollback or a load it is not known until collection walks over the
//! inner nodes.

use alloc::vec;
use alloc::vec::Vec;

use device::Page;
use index::Result;

/// The table is at most such a part of what is in memory: a half. A node cache of as many bytes
/// would spare far fewer reads where memory is so short: while four million random entries are put
/// on a chip of 208 MB, mu-Tree reads 15 million pages with the table and 28 million without.
const PART: u64 = 2;

/// One bit a page.
#[derive(Debug)]
pub(super) struct LivePages {
    /// Empty if there is no memory for it.
    bits: Vec<u8>,
    is_known: bool,
}

impl LivePages {
    /// Bytes that the table of a chip of so many pages takes, of `left` bytes that are not worked
    /// in; 0 if that is too much.
    pub(super) fn bytes_of(pages: u32, (working, left): (u64, u64)) -> u64 {
        let bytes = u64::from(pages).div_ceil(8);
        let is_small = bytes <= left && bytes.saturating_mul(PART) <= working.saturating_add(left);
        if is_small { bytes } else { 0 }
    }

    /// A table of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        LivePages { bits: vec![0; bytes as usize], is_known: false }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.bits.len() as u64
    }

    /// Nothing is known of any page until the next walk.
    pub(super) fn forget(&mut self) {
        self.is_known = false;
    }

    /// Fills the table by `walk`, which adds all pages that live, if it is not known. Damage on the
    /// way leaves it unknown: collection then goes by the path to each page.
    pub(super) fn learn(&mut self, walk: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.is_known || self.bits.is_empty() {
            return Ok(());
        }
        self.bits.fill(0);
        match walk(self) {
            Err(index::Error::Store(error)) if error.is_damage() => Ok(()),
            other => {
                self.is_known = other.is_ok();
                other
            }
        }
    }

    fn change(&mut self, page: Page, change: impl FnOnce(u8, u8) -> u8) {
        if let Some(byte) = self.bits.get_mut(page.0 as usize / 8) {
            *byte = change(*byte, 1 << (page.0 % 8));
        }
    }

    /// A node in `page` lives from now on.
    pub(super) fn add(&mut self, page: Page) {
        self.change(page, |byte, bit| byte | bit);
    }

    /// No node in `page` lives any more.
    pub(super) fn remove(&mut self, page: Page) {
        self.change(page, |byte, bit| byte & !bit);
    }

    /// True if a node in `page` lives; `None` if that is not known.
    pub(super) fn is_live(&self, page: Page) -> Option<bool> {
        let byte = self.bits.get(page.0 as usize / 8).filter(|_| self.is_known)?;
        Some(byte & (1 << (page.0 % 8)) != 0)
    }

    /// True if it is known of every page whether it lives.
    pub(super) fn is_known(&self) -> bool {
        self.is_known && !self.bits.is_empty()
    }

    /// How many of `pages` live.
    pub(super) fn count_in(&self, pages: core::ops::Range<u32>) -> u16 {
        let lives = pages.filter(|page| self.is_live(Page(*page)) == Some(true)).count();
        u16::try_from(lives).unwrap_or(u16::MAX)
    }

    /// How many pages live, if that is known.
    pub(super) fn count(&self) -> Option<u64> {
        let known = self.is_known.then_some(&self.bits)?;
        Some(known.iter().map(|byte| u64::from(byte.count_ones())).sum())
    }
}

#[cfg(test)]
mod tests;
