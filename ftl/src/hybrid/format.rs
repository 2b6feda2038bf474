//! Making a new disk.

use alloc::vec;

use device::{Block, Cause, Geometry, Nand, Result, SectorGeometry, Watched};

use super::Core;
use super::own::{self, Head};
use super::shape::{Kind, Place, Shape};
use crate::Options;
use crate::erase::erase_all;
use crate::spare::{self, DataCheck, FORMATTING, Metadata};

impl<N: Nand> Core<N> {
    /// Makes an empty disk; see [`super::Hybrid::format`].
    pub(super) fn format(nand: N, kind: Kind, options: &Options) -> Result<Self> {
        let mut nand = Watched::new(nand);
        let shape = Shape::new(nand.geometry(), kind, options.logs())?;
        let blocks = erase_all(&mut nand, |nand, block| program_guard(nand, &shape, block))?;
        let disk = shape.disk(blocks.free_count(), options)?;
        let mut core = Self::assemble(nand, shape, disk, blocks);
        core.count_erases(1);
        core.rotate()?;
        Ok(core)
    }
}

/// The disk of `kind` on a chip without bad blocks.
pub(crate) fn disk_on(kind: Kind, chip: Geometry, options: &Options) -> Result<SectorGeometry> {
    Shape::new(chip, kind, options.logs())?.disk(chip.blocks(), options)
}

/// Programs the header that says that the chip is being formatted: the newest there can be.
fn program_guard<N: Nand>(nand: &mut N, shape: &Shape, block: Block) -> Result<()> {
    let mut buffer = vec![0; shape.geometry.page_bytes() as usize];
    let page = shape.geometry.first_page(block);
    let sequence = FORMATTING;
    let head = Head { kind: own::Kind::Log, sequence, base: sequence, number: 0, flags: 0 };
    own::encode(shape.kind.mark, head, (core::iter::empty(), &[]), page, &mut buffer);
    let data = DataCheck::of(&buffer);
    let kind = spare::Kind::LogHeader;
    let metadata = Metadata { sector: 0, sequence, kind, data }.encode(page);
    let spare = if shape.place == Place::Spare { &metadata[..] } else { &[] };
    nand.program(page, 0, &buffer, spare, Cause::Recovery)
}
