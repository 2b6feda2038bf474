//! Making a new disk.

use alloc::vec;

use device::{Block, Geometry, Nand, Result, SectorGeometry, Watched};

use super::frontier::program_header;
use super::header::Header;
use super::placement::Kind;
use super::shape::Shape;
use super::spare::FORMATTING;
use super::{PageMap, Plan};
use crate::Options;
use crate::blocks::Role;
use crate::erase::erase_all;
use crate::wear::Wear;

impl<N: Nand> PageMap<N> {
    /// Makes an empty disk on `nand`; whatever the chip holds is erased. Every good block is
    /// erased once (the first one twice), under [`Cause::Recovery`](device::Cause::Recovery).
    ///
    /// If the power is cut before this returns, the chip holds no disk, and opening it says so;
    /// unless it was cut before the second operation was done: then an old disk may be there still,
    /// without its first good block.
    ///
    /// # Errors
    /// The chip is too small, or it failed.
    pub fn format(nand: N, options: Options) -> Result<Self> {
        Self::format_kind(nand, Kind::PageMap, &options)
    }

    /// Makes an empty disk of `kind`.
    pub(super) fn format_kind(nand: N, kind: Kind, options: &Options) -> Result<Self> {
        let mut nand = Watched::new(nand);
        let shape = Shape::new(nand.geometry(), kind.frontiers(options))?;
        let mark = kind.mark();
        let blocks = erase_all(&mut nand, |nand, block| program_guard(nand, &shape, block, mark))?;
        let disk = shape.disk(blocks.free_count(), options)?;
        let is_good = |block| blocks.role(block) == Role::Erased;
        let wear = Wear::of(shape.geometry.blocks(), |block| is_good(block).then_some(1));
        let mut disk = Self::assemble(nand, Plan { kind, shape, disk }, (blocks, wear), options);
        disk.open_first_block()?;
        Ok(disk)
    }
}

/// The disk of `kind` on a chip without bad blocks.
pub(crate) fn disk_on(kind: Kind, chip: Geometry, options: &Options) -> Result<SectorGeometry> {
    Shape::new(chip, kind.frontiers(options))?.disk(chip.blocks(), options)
}

/// Programs the header that says that the chip is being formatted: the newest there can be.
fn program_guard<N: Nand>(nand: &mut N, shape: &Shape, block: Block, mark: [u8; 4]) -> Result<()> {
    let mut buffer = vec![0; shape.geometry.page_bytes() as usize];
    let frontiers = shape.frontiers;
    let header = Header { mark, sequence: FORMATTING, sectors: 0, frontiers };
    let contents = (header, core::iter::empty(), &Wear::new(shape.geometry.blocks()));
    program_header(nand, shape, block, contents, &mut buffer).map(|_| ())
}
