//! The links between cells: the next cell, and a mark; two bytes each, or three in a large pool.

use alloc::boxed::Box;
use alloc::vec;

/// The end of a list of cells.
pub(super) const NO_CELL: u32 = u32::MAX;

/// The most cells with two bytes a link, and with three; one number stands for none.
const SHORT_MOST: u64 = 0x7FFF;
const LONG_MOST: u64 = 0x7F_FFFF;

/// The links of all cells.
#[derive(Debug)]
pub(super) struct Links {
    /// The low 16 bits; without high bits the top one is the mark.
    low: Box<[u16]>,
    /// The mark, and seven bits more; empty in a small pool.
    high: Box<[u8]>,
}

impl Links {
    /// How many cells of `cell_bytes` bytes fit into `memory_bytes` with their links; `None` if
    /// they could not be numbered.
    pub(super) fn fit(memory_bytes: u64, cell_bytes: usize) -> Option<usize> {
        let (short, long) =
            (memory_bytes / (cell_bytes as u64 + 2), memory_bytes / (cell_bytes as u64 + 3));
        let cells = if short <= SHORT_MOST { short } else { long.max(SHORT_MOST) };
        (cells <= LONG_MOST).then_some(cells as usize)
    }

    /// Links of `cells` cells, each to the one behind it.
    pub(super) fn new(cells: usize) -> Self {
        let is_long = cells as u64 > SHORT_MOST;
        let mut links = Links {
            low: vec![0; cells].into_boxed_slice(),
            high: vec![0; if is_long { cells } else { 0 }].into_boxed_slice(),
        };
        for cell in 0..cells as u32 {
            let next = if cell as usize + 1 == cells { NO_CELL } else { cell + 1 };
            links.set(cell, next, false);
        }
        links
    }

    pub(super) fn memory_bytes(&self) -> usize {
        2 * self.low.len() + self.high.len()
    }

    /// Bytes of a cell, if all have `bytes` together.
    pub(super) fn cell_bytes(&self, bytes: usize) -> usize {
        bytes / self.low.len().max(1)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.low.len()
    }

    fn raw(&self, cell: u32) -> u32 {
        let low = self.low.get(cell as usize).map_or(0, |low| u32::from(*low));
        match self.high.get(cell as usize) {
            Some(high) => u32::from(*high) << 16 | low,
            None => (low & 0x8000) << 8 | low & 0x7FFF,
        }
    }

    /// The cell behind `cell`.
    pub(super) fn next(&self, cell: u32) -> u32 {
        let next = self.raw(cell) & 0x7F_FFFF;
        let none = if self.high.is_empty() { SHORT_MOST } else { LONG_MOST };
        if u64::from(next) == none { NO_CELL } else { next }
    }

    /// True if `cell` is marked.
    pub(super) fn is_marked(&self, cell: u32) -> bool {
        self.raw(cell) & 0x80_0000 != 0
    }

    /// Lets `next` follow `cell`, which is marked or not.
    pub(super) fn set(&mut self, cell: u32, next: u32, is_marked: bool) {
        let Some(low) = self.low.get_mut(cell as usize) else {
            return;
        };
        match self.high.get_mut(cell as usize) {
            Some(high) => {
                *low = next as u16;
                *high = (next >> 16) as u8 & 0x7F | u8::from(is_marked) << 7;
            }
            None => *low = next as u16 & 0x7FFF | u16::from(is_marked) << 15,
        }
    }

    /// Lets `next` follow `cell`, which keeps its mark.
    pub(super) fn lead(&mut self, cell: u32, next: u32) {
        let is_marked = self.is_marked(cell);
        self.set(cell, next, is_marked);
    }
}
