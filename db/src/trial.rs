//! What suffices: where a database can't be made, trials on devices of nothing find the memory or
//! the room with which it can, so that one figure is named and no row of them.

use device::{Geometry, Medium, SectorGeometry};
use index::registry::MediumShape;

use crate::files::{self, SECTOR_BYTES};
use crate::ground::Ground;
use crate::options::MemoryLimit;
use crate::stand_in::StandIn;
use crate::{Error, Options, Result};

/// The most trials for one figure.
const TRIES: u32 = 64;

/// The most memory that a trial takes, in bytes.
const MEMORY_MOST: u64 = 256 << 20;

/// What follows from the options of the device that a database is made on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing: it is as it is.
    #[default]
    Nothing,
    /// The memory that its driver takes.
    Driver,
    /// That, and its length.
    DriverAndLength,
}

/// The device on which a database is to be made, without what it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) shape: MediumShape,
    pub(crate) driver_bytes: u64,
    pub(crate) follows: Follows,
}

impl Trial {
    /// The refusal `error` of a database with `options`, with a figure that suffices.
    pub(crate) fn sufficing(self, options: &Options, error: Error) -> Error {
        match error {
            Error::LittleMemory { have, need } => {
                Error::LittleMemory { have, need: self.memory(options, need) }
            }
            error if is_about_room(&error) => self.little_room(options, &error),
            other => other,
        }
    }

    /// Memory that suffices; `need` bytes are needed at the least. Tables may grow with a file, and
    /// a file with the memory.
    fn memory(self, options: &Options, mut need: u64) -> u64 {
        for _ in 0..TRIES {
            let memory = of_bytes(options.memory, need);
            if need > MEMORY_MOST {
                break;
            }
            match self.make(&Options { memory, ..options.clone() }) {
                Err(Error::LittleMemory { need: more, .. }) if more > need => need = more,
                _ => break,
            }
        }
        need
    }

    /// That there is too little room, with how much suffices.
    fn little_room(mut self, options: &Options, error: &Error) -> Error {
        let (have, unit) = self.units();
        let mut low = have;
        let told = told(error, self.shape).filter(|need| *need > have);
        let mut high = told.unwrap_or(have.saturating_add(1));
        self.follows = match self.follows {
            Follows::DriverAndLength => Follows::Driver,
            other => other,
        };
        let mut tries = TRIES;
        let is_enough = |units: u64, tries: &mut u32| {
            *tries = tries.saturating_sub(1);
            self.with_units(units).is_ok_and(|trial| trial.has_room(options))
        };
        while !is_enough(high, &mut tries) {
            if tries == 0 {
                return Error::LittleRoom { bytes: have * unit, need: None, blocks: None };
            }
            (low, high) = (high, high.saturating_add((high / 4).max(1)));
        }
        while low + 1 < high && tries > 0 {
            let middle = u64::midpoint(low, high);
            match is_enough(middle, &mut tries) {
                true => high = middle,
                false => low = middle,
            }
        }
        let blocks = matches!(self.shape, MediumShape::Nand(_)).then_some(high);
        Error::LittleRoom {
            bytes: have.saturating_mul(unit),
            need: Some(high.saturating_mul(unit)),
            blocks: blocks.and_then(|blocks| u32::try_from(blocks).ok()),
        }
    }

    /// True if there is room for a database with `options`, with as much memory as that takes: one
    /// that lacks memory does not tell whether there is.
    fn has_room(self, options: &Options) -> bool {
        let mut options = options.clone();
        for _ in 0..2 {
            match self.make(&options) {
                Err(Error::LittleMemory { need, .. }) if need <= MEMORY_MOST => {
                    let need = self.memory(&options, need);
                    options.memory = of_bytes(options.memory, need);
                }
                Err(error) => return !is_about_room(&error),
                Ok(()) => return true,
            }
        }
        self.make(&options).is_ok()
    }

    /// Sectors of the disk, or blocks of the chip, and bytes of one.
    const fn units(&self) -> (u64, u64) {
        match self.shape {
            MediumShape::Sectors(disk) => (disk.sectors(), disk.sector_bytes() as u64),
            MediumShape::Nand(chip) => (chip.blocks() as u64, chip.block_bytes()),
        }
    }

    fn with_units(self, units: u64) -> Result<Trial> {
        let shape = match self.shape {
            MediumShape::Sectors(disk) => MediumShape::Sectors(disk_like(disk, units)?),
            MediumShape::Nand(chip) => {
                let blocks = u32::try_from(units).unwrap_or(u32::MAX);
                let like = Geometry::new(chip.page_bytes(), chip.pages_per_block(), blocks)?;
                let like = like.with_spare(chip.spare_bytes())?;
                let like = like.with_programs(chip.programs_per_page())?;
                MediumShape::Nand(like.with_order(chip.order()))
            }
        };
        Ok(Trial { shape, ..self })
    }

    /// Makes a database with `options` on a device of nothing, or learns why that can't be.
    fn make(self, options: &Options) -> Result<()> {
        let (mut shape, mut driver_bytes) = (self.shape, self.driver_bytes);
        if let (MediumShape::Sectors(disk), true) = (shape, self.follows != Follows::Nothing) {
            driver_bytes = files::driver_bytes(options.memory, disk.alignment());
            if self.follows == Follows::DriverAndLength {
                let sectors = options.checked_capacity()? / u64::from(SECTOR_BYTES);
                shape = MediumShape::Sectors(disk_like(disk, sectors)?);
            }
        }
        let medium: Medium<'static> = match shape {
            MediumShape::Sectors(geometry) => Medium::Sectors(Box::new(StandIn(geometry))),
            MediumShape::Nand(geometry) => Medium::Nand(Box::new(StandIn(geometry))),
        };
        Ground::new(medium, driver_bytes).make(options).map(drop)
    }
}

/// A limit like this, of `bytes` bytes.
const fn of_bytes(limit: MemoryLimit, bytes: u64) -> MemoryLimit {
    match limit {
        MemoryLimit::Total(_) => MemoryLimit::Total(bytes),
        MemoryLimit::CachesAndBuffers(_) => MemoryLimit::CachesAndBuffers(bytes),
    }
}

fn disk_like(disk: SectorGeometry, sectors: u64) -> Result<SectorGeometry> {
    Ok(SectorGeometry::new(disk.sector_bytes(), sectors)?.with_alignment(disk.alignment())?)
}

/// Sectors or blocks that are needed at the least, as a layer says that knows no other's needs.
fn told(error: &Error, shape: MediumShape) -> Option<u64> {
    use device::Error::{TooFewBlocks, TooSmall};
    match (of_device(error)?, shape) {
        (TooSmall { need, .. }, MediumShape::Sectors(_)) => Some(need),
        (TooFewBlocks { need, .. }, MediumShape::Nand(_)) => Some(need.into()),
        _ => None,
    }
}

const fn of_device(error: &Error) -> Option<device::Error> {
    match error {
        Error::Index(index::Error::Store(store::Error::Device(error))) => Some(*error),
        _ => None,
    }
}

/// True if more room may be all that lacks: what is full before anything was put in is too small.
fn is_about_room(error: &Error) -> bool {
    use device::Error::{TooFewBlocks, TooSmall};
    matches!(error, Error::Full { .. })
        || matches!(of_device(error), Some(TooSmall { .. } | TooFewBlocks { .. }))
}
