//! Blocks that nothing needs, though they were not erased, as a record of a checkpoint names them.
//!
//! ```text
//!  | runs u32 | each: first u32, blocks u32 |        or, where that is shorter,
//!  | 2^31 + bytes u32 | a bit a block, from the lowest of the first byte on |
//! ```

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use device::Block;

use super::blocks::Blocks;
use crate::bytes::Reader;

/// Marks a bit a block.
const IS_BITS: u32 = 1 << 31;

const RUN_BYTES: usize = 8;

/// Blocks that nothing needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    /// The first of a run, and how many.
    Runs(Vec<(Block, u32)>),
    /// A bit a block.
    Bits(Vec<u8>),
}

impl Stale {
    /// Bytes of those of a chip of so many blocks, at most, but for their number.
    pub(super) fn bytes_most(blocks: u32) -> usize {
        blocks.div_ceil(8) as usize
    }

    /// Those of `blocks`, as whatever is shorter: so a checkpoint takes little memory on any chip.
    pub(super) fn of(blocks: &Blocks) -> Self {
        let all = || (0..blocks.count()).map(Block).filter(|block| blocks.is_stale(*block));
        let begins = |block: &Block| block.0 == 0 || !blocks.is_stale(Block(block.0 - 1));
        let runs = all().filter(begins).count();
        if runs * RUN_BYTES > Stale::bytes_most(blocks.count()) {
            let mut bits = vec![0; Stale::bytes_most(blocks.count())];
            all().for_each(|block| bits[block.0 as usize / 8] |= 1 << (block.0 % 8));
            return Stale::Bits(bits);
        }
        let mut list: Vec<(Block, u32)> = Vec::with_capacity(runs);
        for block in all() {
            match list.last_mut() {
                Some((first, blocks)) if first.0 + *blocks == block.0 => *blocks += 1,
                _ => list.push((block, 1)),
            }
        }
        Stale::Runs(list)
    }

    /// Bytes in a record.
    pub(super) fn bytes(&self) -> usize {
        4 + match self {
            Stale::Runs(runs) => runs.len() * RUN_BYTES,
            Stale::Bits(bits) => bits.len(),
        }
    }

    /// Writes them to the end of `record`.
    pub(super) fn encode(&self, record: &mut Vec<u8>) {
        match self {
            Stale::Runs(runs) => {
                record.extend_from_slice(&(runs.len() as u32).to_le_bytes());
                for (first, blocks) in runs {
                    record.extend_from_slice(&first.0.to_le_bytes());
                    record.extend_from_slice(&blocks.to_le_bytes());
                }
            }
            Stale::Bits(bits) => {
                record.extend_from_slice(&(IS_BITS | bits.len() as u32).to_le_bytes());
                record.extend_from_slice(bits);
            }
        }
    }

    pub(super) fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let count = from.u32()?;
        if count & IS_BITS != 0 {
            return Some(Stale::Bits(from.bytes((count & !IS_BITS) as usize)?.to_vec()));
        }
        let mut runs = Vec::new();
        for _ in 0..count {
            runs.push((Block(from.u32()?), from.u32()?));
        }
        Some(Stale::Runs(runs))
    }

    /// The runs of blocks below `limit`.
    pub(super) fn ranges(&self, limit: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let (runs, bits): (&[_], &[u8]) = match self {
            Stale::Runs(runs) => (runs, &[]),
            Stale::Bits(bits) => (&[], bits),
        };
        let runs = runs.iter().map(|(first, blocks)| (first.0, first.0.saturating_add(*blocks)));
        let is_set = move |block: &u32| bits[*block as usize / 8] >> (block % 8) & 1 == 1;
        let single = (0..bits.len().saturating_mul(8).min(limit as usize) as u32).filter(is_set);
        let all = runs.chain(single.map(|block| (block, block + 1)));
        all.map(move |(first, end)| first.min(limit)..end.min(limit))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use device::Block;

    use super::super::blocks::Blocks;
    use super::Stale;
    use crate::bytes::Reader;

    /// Of `count` blocks those are stale for which `is_free` says so.
    fn stale(count: u32, is_stale: impl Fn(u32) -> bool) -> (Stale, Vec<u32>) {
        let mut blocks = Blocks::new(count);
        for block in (0..count).filter(|block| is_stale(*block)) {
            blocks.set_free(Block(block));
        }
        (Stale::of(&blocks), (0..count).filter(|block| is_stale(*block)).collect())
    }

    #[test]
    fn stale_blocks_come_back_from_a_record_and_take_a_bit_each_at_most() {
        for count in [1, 7, 8, 65, 1000] {
            for (step, from) in [(1, 0), (2, 1), (3, 0), (97, 90), (5000, 4000)] {
                let (stale, expected) = stale(count, |block| block % step >= from);
                let mut bytes = Vec::new();
                stale.encode(&mut bytes);
                assert_eq!(bytes.len(), stale.bytes());
                assert!(bytes.len() <= 4 + Stale::bytes_most(count), "{count} {step} {from}");
                let read = Stale::decode(&mut Reader::new(&bytes)).unwrap();
                assert_eq!(read.ranges(count).flatten().collect::<Vec<_>>(), expected);
                assert_eq!(read, stale);
                let short = Stale::decode(&mut Reader::new(&bytes[..bytes.len() - 1]));
                assert!(bytes.len() == 4 || short.is_none());
            }
        }
    }
}
