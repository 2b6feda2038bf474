//! What an index needs, by arithmetic: nothing is made to learn it.
//!
//! The figures come of the functions that trees are made with, so what a tree says that it needs is
//! what making it asks for. A tree that was made is opened whatever went bad since.

use alloc::boxed::Box;

use device::{Error as Device, Geometry, Medium, Nand, SectorGeometry};
use store::EntryShape;

use crate::random_keys::average_bytes;
use crate::{Error, Result};

/// What an empty index needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The least memory budget that works, in bytes.
    pub memory_least: u64,
    /// Bytes of tables beside the budget. If they grow, this includes room for the first entry.
    pub tables: u64,
    /// Good blocks, or sectors, that suffice on a device of this length. The number may depend on
    /// the length, as the journal does.
    pub units_least: u64,
}

/// The shape of the medium that a tree is to stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumShape {
    /// Raw flash.
    Nand(Geometry),
    /// A disk.
    Sectors(SectorGeometry),
}

/// The chip of `medium`, for `tree`, which stands on raw flash alone.
///
/// # Errors
/// It is a disk.
pub fn raw_flash<'d>(medium: Medium<'d>, tree: &'static str) -> Result<Box<dyn Nand + 'd>> {
    match medium {
        Medium::Nand(chip) => Ok(chip),
        Medium::Sectors(_) => Err(Error::WrongMedium { tree, medium: "a disk" }),
    }
}

impl MediumShape {
    /// The chip, for `tree`, which stands on raw flash alone.
    ///
    /// # Errors
    /// It is a disk.
    pub const fn chip(self, tree: &'static str) -> Result<Geometry> {
        match self {
            MediumShape::Nand(chip) => Ok(chip),
            MediumShape::Sectors(_) => Err(Error::WrongMedium { tree, medium: "a disk" }),
        }
    }

    /// Blocks of the chip, or sectors of the disk.
    #[must_use]
    pub const fn units(&self) -> u64 {
        match self {
            MediumShape::Nand(chip) => chip.blocks() as u64,
            MediumShape::Sectors(disk) => disk.sectors(),
        }
    }

    /// The same medium with `units` units.
    ///
    /// # Errors
    /// No such medium exists.
    pub fn with_units(self, units: u64) -> Result<Self> {
        Ok(match self {
            MediumShape::Nand(chip) => {
                MediumShape::Nand(chip.with_blocks(u32::try_from(units).unwrap_or(u32::MAX))?)
            }
            MediumShape::Sectors(disk) => MediumShape::Sectors(disk.with_sectors(units)?),
        })
    }

    /// Bytes of the medium.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self {
            MediumShape::Nand(chip) => chip.bytes(),
            MediumShape::Sectors(disk) => disk.bytes(),
        }
    }

    /// The units with which such a medium has as many as `least` demands of it.
    ///
    /// # Errors
    /// As `least`.
    pub fn units_that_suffice(self, least: impl Fn(Self) -> Result<u64>) -> Result<u64> {
        let mut units = least(self)?;
        while let Ok(like) = self.with_units(units) {
            match least(like)? {
                more if more > units => units = more,
                _ => break,
            }
        }
        Ok(units)
    }

    /// Refuses a medium of which `have` units are good if `footprint` demands more. The error names
    /// a number that suffices.
    ///
    /// # Errors
    /// There are too few units.
    pub fn check_units(
        self,
        have: impl Into<u64>,
        footprint: impl Fn(Self) -> Result<Footprint>,
    ) -> Result<()> {
        let (have, least) = (have.into(), |like| Ok(footprint(like)?.units_least));
        if have >= least(self)? {
            return Ok(());
        }
        let need = self.units_that_suffice(least)?;
        let blocks = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
        Err(Error::from(match self {
            MediumShape::Nand(_) => Device::TooFewBlocks { have: blocks(have), need: blocks(need) },
            MediumShape::Sectors(_) => Device::TooSmall { have, need },
        }))
    }
}

/// Entries whose keys and values fill an erase block. The smallest chip takes this many.
pub fn entries_of_a_block(chip: Geometry, shape: EntryShape) -> u64 {
    let bytes = u64::from(average_bytes(shape.key)) + u64::from(average_bytes(shape.value));
    chip.block_bytes().div_ceil(bytes.max(1))
}

#[cfg(test)]
mod tests {
    use device::{Error as Device, Geometry};

    use super::{Footprint, MediumShape};

    #[test]
    fn a_number_that_grows_with_the_chip_is_named_as_it_is_on_a_chip_that_suffices() {
        let chip = MediumShape::Nand(Geometry::new(512, 16, 8).unwrap());
        let footprint = |units_least| Ok(Footprint { memory_least: 0, tables: 0, units_least });
        let refused = chip.check_units(8_u32, |chip| footprint(16 + chip.units() / 4));
        assert_eq!(refused, Err(Device::TooFewBlocks { have: 8, need: 21 }.into()));
        assert_eq!(chip.check_units(8_u32, |_| footprint(8)), Ok(()));
    }
}
