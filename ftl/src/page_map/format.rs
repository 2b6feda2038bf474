//! Making a new disk.

use alloc::vec;

use device::{Block, Nand, Result};

use super::PageMap;
use super::frontier::program_header;
use super::header::{FORMATTING, Header};
use super::shape::Shape;
use crate::Options;
use crate::erase::erase_all;

impl<N: Nand> PageMap<N> {
    /// Makes an empty disk on `nand`; whatever the chip holds is erased. Every good block is
    /// erased once (the first one twice), under [`Cause::Recovery`](device::Cause::Recovery).
    ///
    /// If the power is cut before this returns, the chip holds no disk, and opening it says so.
    ///
    /// # Errors
    /// The chip is too small, or it failed.
    pub fn format(mut nand: N, options: Options) -> Result<Self> {
        let shape = Shape::new(nand.geometry())?;
        let blocks = erase_all(&mut nand, |nand, block| program_guard(nand, &shape, block))?;
        let disk = shape.disk(blocks.free_count(), &options)?;
        let mut disk = Self::assemble(nand, shape, disk, blocks);
        disk.open_first_block()?;
        Ok(disk)
    }
}

/// Programs the header that says that the chip is being formatted: the newest there can be.
fn program_guard<N: Nand>(nand: &mut N, shape: &Shape, block: Block) -> Result<()> {
    let mut buffer = vec![0; shape.geometry.page_bytes() as usize];
    let header = Header { sequence: FORMATTING, sectors: 0 };
    let list = core::iter::empty();
    program_header(nand, shape, block, (header, list), &mut buffer).map(|_| ())
}
