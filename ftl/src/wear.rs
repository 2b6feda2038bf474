//! How often each block was erased.
//!
//! Layers that map blocks count from the opening of a disk on. In page mapping the counts survive
//! a restart: every header has a table with one byte for each block, which
//! counts from the erases that all blocks have at least. Only blocks that the newest header names
//! can have been erased since; if one was begun again it had one erase more. So nothing is lost
//! but the erase that a power cut interrupted, what exceeds a byte, and, on a chip with more
//! blocks than a page has room for, differences between neighbours, which share a byte.

use alloc::boxed::Box;
use alloc::vec;

use device::Block;

use crate::Erases;

/// Erases of each block.
///
/// Invariant: `erases` sums up what `counts` holds of good blocks.
pub(crate) struct Wear {
    /// [`BAD`] for a bad block.
    counts: Box<[u32]>,
    erases: Erases,
    /// Blocks that have the fewest erases.
    at_least: u32,
}

const BAD: u32 = u32::MAX;

/// How a table of bytes tells the erases of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The erases that a byte of 0 means.
    pub(crate) base: u32,
    /// A power of two: that many blocks share a byte.
    pub(crate) shift: u8,
}

impl Scale {
    /// Erases of `block` by a table of this scale.
    pub(crate) fn erases(self, table: &[u8], block: Block) -> u32 {
        let byte = block.0.checked_shr(self.shift.into()).and_then(|at| table.get(at as usize));
        self.base.saturating_add(byte.copied().unwrap_or(0).into())
    }
}

impl Wear {
    /// So many blocks, all of them bad until a count is set.
    pub(crate) fn new(blocks: u32) -> Self {
        let counts = vec![BAD; blocks as usize].into_boxed_slice();
        Wear { counts, erases: Erases::default(), at_least: 0 }
    }

    /// The counts of the blocks for which `known` has one.
    pub(crate) fn of(blocks: u32, known: impl Fn(Block) -> Option<u32>) -> Self {
        let mut wear = Wear::new(blocks);
        for (block, count) in (0..).map(Block).zip(&mut wear.counts) {
            *count = known(block).map_or(BAD, |erases| erases.min(BAD - 1));
        }
        wear.sum_up();
        wear
    }

    /// Erases of a good block.
    pub(crate) fn erases(&self, block: Block) -> u32 {
        self.counts[block.0 as usize]
    }

    /// The counts in sum.
    pub(crate) const fn summary(&self) -> Erases {
        self.erases
    }

    /// Counts an erase of `block`. All counts are looked at once for each erase that all blocks
    /// had.
    pub(crate) fn erased(&mut self, block: Block) {
        let count = &mut self.counts[block.0 as usize];
        let before = *count;
        *count = before.saturating_add(1).min(BAD - 1);
        self.erases.total += 1;
        self.erases.most = self.erases.most.max(*count);
        if before == self.erases.least {
            self.at_least -= 1;
            if self.at_least == 0 {
                self.sum_up();
            }
        }
    }

    /// Says that `block` went bad.
    pub(crate) fn retire(&mut self, block: Block) {
        self.counts[block.0 as usize] = BAD;
        self.sum_up();
    }

    fn good(&self) -> impl Iterator<Item = u32> {
        self.counts.iter().copied().filter(|count| *count != BAD)
    }

    fn sum_up(&mut self) {
        self.erases = Erases {
            least: self.good().min().unwrap_or(0),
            most: self.good().max().unwrap_or(0),
            total: self.good().map(u64::from).sum(),
            blocks: self.good().count() as u32,
        };
        self.at_least = self.good().filter(|count| *count == self.erases.least).count() as u32;
    }

    /// Fills `table` with the counts, neighbours that share a byte with their mean; returns how
    /// to read it.
    pub(crate) fn fill(&self, table: &mut [u8]) -> Scale {
        let blocks = self.counts.len();
        let mut shift = 0;
        while blocks.div_ceil(1 << shift) > table.len() {
            shift += 1;
        }
        let base = self.erases.least;
        if shift == 0 {
            for (byte, count) in table.iter_mut().zip(&self.counts) {
                // A bad block has the most.
                *byte = (count - base).min(u8::MAX.into()) as u8;
            }
            return Scale { base, shift };
        }
        for (byte, counts) in table.iter_mut().zip(self.counts.chunks(1 << shift)) {
            let good = || counts.iter().filter(|count| **count != BAD);
            let above: u64 = good().map(|count| u64::from(count - base)).sum();
            let shared = good().count().max(1) as u64;
            *byte = u8::try_from((above + shared / 2) / shared).unwrap_or(u8::MAX);
        }
        Scale { base, shift }
    }

    /// Bytes of memory that the table takes.
    pub(crate) fn memory(&self) -> u64 {
        size_of_val(&*self.counts) as u64
    }
}

#[cfg(test)]
mod tests {
    use device::Block;

    use super::{Scale, Wear};
    use crate::Erases;

    fn worn() -> Wear {
        Wear::of(8, |block| (block.0 != 3).then_some(100 + block.0))
    }

    #[test]
    fn erases_are_summed_up_over_good_blocks() {
        let mut wear = worn();
        let total = 100 * 7 + 28 - 3;
        assert_eq!(wear.summary(), Erases { least: 100, most: 107, total, blocks: 7 });
        wear.erased(Block(7));
        wear.erased(Block(0));
        assert_eq!(wear.summary(), Erases { least: 101, most: 108, total: total + 2, blocks: 7 });
        wear.retire(Block(7));
        let total = total + 2 - 108;
        assert_eq!(wear.summary(), Erases { least: 101, most: 106, total, blocks: 6 });
        assert_eq!(wear.summary().mean(), total as f64 / 6.0);
    }

    #[test]
    fn a_table_brings_the_counts_back_as_far_as_it_has_room() {
        let wear = worn();
        let mut table = [0xFF; 8];
        let scale = wear.fill(&mut table);
        assert_eq!(scale, Scale { base: 100, shift: 0 });
        for block in [0, 1, 2, 4, 5, 6, 7].map(Block) {
            assert_eq!(scale.erases(&table, block), wear.erases(block));
        }
        let scale = wear.fill(&mut table[..3]);
        assert_eq!(scale, Scale { base: 100, shift: 2 });
        assert_eq!(
            [0, 3, 4, 7].map(|block| scale.erases(&table, Block(block))),
            [101, 101, 106, 106]
        );
        assert_eq!(scale.erases(&table, Block(u32::MAX)), 100);
    }
}
