//! The device under a cell: it can be saved, brought back, and its power can be cut.

use device::{
    Block, Cause, DiskCosts, Geometry, Medium, Nand, NandCosts, ProgramOrder, SectorGeometry,
    Sectors,
};
use index::Index;
use index::MediumShape;
use sim::{Cut, DiskFaultPlan, Failure as Refusal, FaultLog, FaultPlan, Flips, SimulatedDisk};
use sim::{SimulatedNand, Trimmed};

use super::cell::{Cell, Loss, Stand};
use super::failure::Failure;
use super::held_back::HeldBack;
use super::seeds::chance;
use super::session::lower;

/// A device.
pub(super) enum Device {
    Chip(Box<SimulatedNand>),
    Disk(Box<SimulatedDisk>, Loss),
    File(Box<HeldBack>),
}

/// A device as it was.
pub(super) enum Saved {
    Chip(Box<SimulatedNand>),
    Disk(Box<SimulatedDisk>),
    File(Vec<u8>),
}

/// What goes wrong with a device in a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    /// Decides all that is left open.
    pub(super) seed: u64,
    /// When the power is cut.
    pub(super) cut: Option<Cut>,
    /// True if the power goes when a file is made shorter, unless it went before.
    pub(super) cut_shrinking: bool,
    /// How often programs and erases of a chip are refused, and requests of a disk fail; 0 for
    /// never.
    pub(super) refusals: f64,
}

/// The choice of a size.
const SIZE: u64 = u64::MAX;

/// How much room there is, and how many keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// A few leaves, on a device with room for all that recovery may come to need.
    Usual,
    /// Many keys, and room for them.
    Large,
    /// Many keys, and room for some of them: the device is full at times.
    Tight,
}

impl Size {
    /// The size of the device on which the history with this seed is played.
    pub(super) fn of(cell: &Cell, seed: u64) -> Self {
        match chance(cell, seed, SIZE) % 5 {
            0 | 1 => Size::Large,
            2 => Size::Tight,
            _ => Size::Usual,
        }
    }

    /// Keys of the histories of `cell`.
    pub(super) fn keys(self, cell: &Cell) -> u32 {
        match self {
            // All of it is read once for each windowful of keys.
            _ if cell.is_list() => cell.keys(),
            Size::Usual => cell.keys(),
            Size::Large | Size::Tight => (cell.keys() * 6).min(3000),
        }
    }
}

/// Whether an index is made or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Make,
    Open,
}

/// Sectors that a tight device has beside what it takes to make the tree, where that has to be
/// asked for.
const TIGHT_BESIDE: u32 = 16;

/// Pages in a block.
const PAGES_PER_BLOCK: u32 = 16;

/// Pages, or sectors, that `cell` gets.
fn sectors(cell: &Cell, size: Size) -> u32 {
    // Units of writing: nodes, or pages where nodes are smaller. There must be room for the images
    // that recovery may come to need. On a large disk more happens between two checkpoints: they
    // are due when the images of one unit in 32 were saved.
    let units = match (size, cell.stand) {
        (Size::Tight, _) => 220,
        (Size::Large, Stand::Disk(_)) => 6000,
        (_, Stand::Disk(_)) => 1200,
        (Size::Usual, _) => 450,
        (Size::Large, _) => 700,
    };
    units * (cell.node_bytes() / cell.page_bytes).max(1)
}

impl Device {
    /// A new device for `cell`.
    pub(super) fn new(cell: &Cell, seed: u64) -> Result<Self, Failure> {
        let size = Size::of(cell, seed);
        let mut pages = sectors(cell, size);
        let mut device = Self::with_pages(cell, seed, pages)?;
        let on_nand = matches!(cell.stand, Stand::Nand { .. });
        while (size == Size::Tight || on_nand)
            && let Some(missing) = device.missing(cell)
        {
            // Beside what it takes to make the tree, there is to be room for some keys. On raw
            // flash there is.
            pages += missing + if on_nand { 0 } else { TIGHT_BESIDE };
            device = Self::with_pages(cell, seed, pages)?;
        }
        Ok(device)
    }

    /// Sectors that the device lacks for the tree of `cell`, as the tree itself says when it is
    /// made there, which is undone then. Other refusals are met again later.
    fn missing(&mut self, cell: &Cell) -> Option<u32> {
        let saved = self.save().ok()?;
        let made = self.index(cell, How::Make, 1).err();
        self.go_back(&saved).ok()?;
        match made.as_ref().and_then(lower)? {
            device::Error::TooSmall { have, need } => u32::try_from(need - have).ok(),
            device::Error::TooFewBlocks { have, need } => {
                Some(((need - have) * PAGES_PER_BLOCK * 6).div_ceil(10))
            }
            _ => None,
        }
    }

    fn with_pages(cell: &Cell, seed: u64, pages: u32) -> Result<Self, Failure> {
        let sectors = SectorGeometry::new(cell.page_bytes, pages.into())?;
        Ok(match cell.stand {
            Stand::Nand { spare, .. } | Stand::Ftl { spare, .. } => {
                let parts = matches!(cell.stand, Stand::Nand { parts: true, .. });
                let geometry = chip(cell.page_bytes, pages, (spare, parts))?;
                let chip = SimulatedNand::new(geometry, NandCosts::default());
                Device::Chip(Box::new(chip.with_random_bad_blocks(seed, 2)))
            }
            Stand::Disk(loss) => {
                let disk = SimulatedDisk::new(sectors, DiskCosts::default());
                Device::Disk(Box::new(disk), loss)
            }
            Stand::File => Device::File(Box::new(HeldBack::new(sectors)?)),
        })
    }

    pub(super) fn save(&mut self) -> Result<Saved, Failure> {
        Ok(match self {
            Device::Chip(chip) => Saved::Chip(chip.clone()),
            Device::Disk(disk, _) => Saved::Disk(disk.clone()),
            Device::File(held) => Saved::File(held.bytes()?),
        })
    }

    /// Brings back what was saved of this device.
    pub(super) fn go_back(&mut self, saved: &Saved) -> Result<(), Failure> {
        match (self, saved) {
            (Device::Chip(chip), Saved::Chip(saved)) => chip.clone_from(saved),
            (Device::Disk(disk, _), Saved::Disk(saved)) => disk.clone_from(saved),
            (Device::File(held), Saved::File(bytes)) => held.set_bytes(bytes)?,
            // A device gives only its own kind to be saved.
            _ => {}
        }
        Ok(())
    }

    /// Gives the power back, for a session with this fate.
    pub(super) fn start(&mut self, fate: &Fate) {
        let Fate { seed, cut, cut_shrinking, refusals } = *fate;
        match self {
            Device::Chip(chip) => {
                chip.restore_power();
                chip.arm(FaultPlan {
                    power_cut: cut,
                    refused_program: Refusal::with_rate(refusals),
                    refused_erase: Refusal::with_rate(refusals * 2.0),
                    flips: Flips { ecc_bits: Some(4), corrected_rate: 1e-3, ..Flips::default() },
                    ..FaultPlan::seeded(seed)
                });
            }
            Device::Disk(disk, loss) => {
                let (unflushed, atomic_sectors) = loss.fates();
                disk.restore_power();
                disk.arm(DiskFaultPlan {
                    power_cut: cut,
                    unflushed,
                    atomic_sectors,
                    trimmed: Trimmed::Any,
                    failed_read_rate: refusals,
                    failed_write_rate: refusals * 2.0,
                    ..DiskFaultPlan::seeded(seed)
                });
            }
            Device::File(held) => held.start(seed, cut, cut_shrinking),
        }
    }

    /// Cuts the power between two operations, unless it is cut already.
    pub(super) fn cut_power(&mut self) -> Result<(), Failure> {
        if self.is_without_power() {
            return Ok(());
        }
        match self {
            Device::Chip(chip) => chip.cut_power(),
            Device::Disk(disk, _) => disk.cut_power(),
            Device::File(held) => held.cut_power(&[])?,
        }
        Ok(())
    }

    pub(super) fn is_without_power(&self) -> bool {
        match self {
            Device::Chip(chip) => chip.is_without_power(),
            Device::Disk(disk, _) => disk.is_without_power(),
            Device::File(held) => held.is_without_power(),
        }
    }

    /// Operations since the session began, and changes among them.
    pub(super) fn operations(&self) -> (u64, u64) {
        match self {
            Device::Chip(chip) => (chip.operations(), chip.changes()),
            Device::Disk(disk, _) => (disk.operations(), disk.changes()),
            Device::File(held) => (held.operations(), held.changes()),
        }
    }

    /// Blocks that were erased to be used again, since the device was made. On raw flash every
    /// block is erased once before its first use, too.
    pub(super) fn reclaimed(&self, stand: Stand) -> u64 {
        let Device::Chip(chip) = self else { return 0 };
        let Some(meter) = chip.meter() else { return 0 };
        match stand {
            Stand::Nand { .. } => {
                meter.erases().iter().map(|erases| u64::from(erases.saturating_sub(1))).sum()
            }
            _ => meter.tally(Cause::Reclamation).block_erases,
        }
    }

    /// Cuts while a file was made longer, and while it was made shorter.
    pub(super) fn cuts_resizing(&self) -> [u64; 2] {
        match self {
            Device::File(file) => file.cuts_resizing(),
            Device::Chip(_) | Device::Disk(..) => [0; 2],
        }
    }

    /// Bad blocks, and all blocks.
    pub(super) fn bad_blocks(&mut self) -> (u32, u32) {
        let Device::Chip(chip) = self else { return (0, 0) };
        chip.restore_power();
        let blocks = chip.geometry().blocks();
        let bad = (0..blocks).filter(|block| chip.is_bad(Block(*block)).unwrap_or(false));
        (bad.count() as u32, blocks)
    }

    /// What went wrong with it so far.
    pub(super) fn faults(&self) -> FaultLog {
        match self {
            Device::Chip(chip) => chip.faults(),
            Device::Disk(disk, _) => disk.faults(),
            Device::File(_) => FaultLog::default(),
        }
    }

    /// Makes or opens the index of `cell`, with `memory` times the least memory that it needs.
    pub(super) fn index<'d>(
        &'d mut self,
        cell: &Cell,
        how: How,
        memory: u64,
    ) -> index::Result<Box<dyn Index + 'd>> {
        let medium = self.medium(cell, how)?;
        let shape = match &medium {
            Medium::Nand(nand) => MediumShape::Nand(nand.geometry()),
            Medium::Sectors(disk) => MediumShape::Sectors(disk.geometry()),
        };
        let mut options = cell.options()?;
        options.memory_bytes = memory * cell.entry.least_memory(&options, shape)?;
        match how {
            How::Make => (cell.entry.create)(medium, &options),
            How::Open => (cell.entry.open)(medium, &options),
        }
    }

    fn medium<'d>(&'d mut self, cell: &Cell, how: How) -> index::Result<Medium<'d>> {
        Ok(match (self, cell.stand) {
            (Device::Chip(chip), Stand::Ftl { entry, .. }) => {
                let options = layer_options(entry);
                Medium::Sectors(match how {
                    How::Make => (entry.create)(Box::new(chip), &options)?,
                    How::Open => (entry.open)(Box::new(chip), &options)?,
                })
            }
            (Device::Chip(chip), _) => Medium::Nand(Box::new(chip)),
            (Device::Disk(disk, _), _) => Medium::Sectors(Box::new(disk)),
            (Device::File(held), _) => Medium::Sectors(Box::new(&mut **held)),
        })
    }
}

/// A small chip, so that its blocks are soon used again.
fn chip(page_bytes: u32, pages: u32, (spare, parts): (bool, bool)) -> device::Result<Geometry> {
    // Four in ten pages are the layer's own.
    let blocks = (pages * 10 / 6).div_ceil(PAGES_PER_BLOCK) + 8;
    let spare_bytes = if spare { page_bytes / 32 } else { 0 };
    let order = if spare { ProgramOrder::Any } else { ProgramOrder::Ascending };
    Ok(Geometry::new(page_bytes, PAGES_PER_BLOCK, blocks)?
        .with_spare(spare_bytes)?
        .with_programs(if parts { 4 } else { 1 })?
        .with_order(order))
}

/// A layer with much room of its own, so that it has some left when blocks went bad.
fn layer_options(entry: &'static ftl::Entry) -> ftl::Options {
    let given = [("over-provision", "0.3"), ("logs", "3")];
    given.iter().fold(ftl::Options::default(), |options, (name, value)| {
        // What a layer does not have is left out.
        options.set(entry, name, value).unwrap_or(options)
    })
}
