//! A chip for the simulator, out of the figures of an entry.

use device::{Cost, Geometry, Linear, NandCosts, ProgramOrder};

use crate::{CatalogueError, Device};

/// What a user may set apart from the catalogue: the part of a device's spec after its name, and
/// the bound on its size. Numbers are checked when they are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `blocks=N`: blocks of the chip.
    pub blocks: Option<u64>,
    /// `spare=on|off`: whether the chip has its spare area.
    pub spare: Option<bool>,
    /// `programs=N`: programs of a page between two erases.
    pub programs: Option<u64>,
    /// `bad=N`: the most blocks that may be bad.
    pub bad: Option<u64>,
    /// `endurance=N`: erases that a block lasts.
    pub endurance: Option<u64>,
    /// `ecc=N`: bits that are corrected; only the number changes, not the time of a read.
    pub ecc: Option<u64>,
    /// `--size`: the most bytes of the device that may be used; whole blocks or sectors of it are.
    pub size_bytes: Option<u64>,
}

/// What the simulator needs of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The shape. Where on-chip error correction takes a part of the spare area, only the rest
    /// counts (`spare_free_bytes`). Without figures, a page takes one program and the pages of a
    /// block are programmed in ascending order, which is right on every chip.
    pub geometry: Geometry,
    /// The costs.
    pub costs: NandCosts,
    /// The most blocks that may be bad, in proportion if only a part of the chip is used.
    pub bad_blocks_most: Option<u32>,
    /// Erases that a block lasts.
    pub endurance: Option<u32>,
    /// Bits that are corrected, in each unit of the chip's code.
    pub ecc_bits: Option<u16>,
}

/// The figures a chip needs, each either one of a pair or a single one.
const CHIP_NEEDS: [&str; 3] = ["page_bytes", "pages_per_block", "blocks"];
const CHIP_TIMES: [(&str, &str, &str); 3] = [
    ("read_typical", "read_most", "read_typical or read_most"),
    ("program_typical", "program_most", "program_typical or program_most"),
    ("erase_typical", "erase_most", "erase_typical or erase_most"),
];
const DISK_NEEDS: [&str; 6] = [
    "sector_bytes",
    "capacity",
    "random_read",
    "sequential_read",
    "random_write",
    "sequential_write",
];

/// What a disk needs whose times follow from its flash, beside its sectors and capacity.
const DRIVE_NEEDS: [&str; 17] = [
    "sector_bytes",
    "capacity",
    "flash_capacity",
    "channels",
    "chips_per_channel",
    "flash_page_bytes",
    "flash_spare_bytes",
    "flash_pages_per_block",
    "flash_read",
    "flash_program",
    "flash_erase",
    "flash_bus",
    "mapping_unit",
    "write_cache",
    "command",
    "link",
    "queue_depth",
];

/// The figures that a simulation needs and that are not known.
pub(crate) fn lacking(device: &Device) -> Vec<&'static str> {
    let unknown = |name: &&'static str| device.figure(name).is_none();
    if device.is_solid_state() {
        return DRIVE_NEEDS.into_iter().filter(unknown).collect();
    }
    if !device.kind.is_chip() {
        return DISK_NEEDS.into_iter().filter(unknown).collect();
    }
    let times = CHIP_TIMES
        .into_iter()
        .filter(|(typical, most, _)| unknown(typical) && unknown(most))
        .map(|(_, _, either)| either);
    CHIP_NEEDS.into_iter().filter(unknown).chain(times).collect()
}

impl Device {
    /// The chip that this entry describes, with `overrides`.
    ///
    /// **Which times are charged**, decided here and nowhere else: the typical time where it is
    /// known, else the most; a time for each byte on top, which is the operation's own where it
    /// is known, else the bus cycle, else nothing. A chip's energy is known only if that of all
    /// three operations is.
    ///
    /// # Errors
    /// The device is a disk; figures are missing (all are named); an override is out of its
    /// bounds or makes no chip.
    pub fn nand(&self, overrides: &Overrides) -> Result<Chip, CatalogueError> {
        if !self.kind.is_chip() {
            return Err(self.not("a chip"));
        }
        let mut lacking = lacking(self);
        lacking.retain(|figure| *figure != "blocks" || overrides.blocks.is_none());
        if !lacking.is_empty() {
            return Err(self.lacks(lacking));
        }
        let geometry = self.geometry(overrides)?;
        Ok(Chip {
            geometry,
            costs: self.nand_costs()?,
            bad_blocks_most: self.bad_blocks_most(overrides, geometry.blocks())?,
            endurance: self
                .overridden("endurance", overrides.endurance, 1, u64::from(u32::MAX))?
                .or_else(|| self.amount("endurance_cycles"))
                .and_then(|cycles| u32::try_from(cycles).ok()),
            ecc_bits: self
                .overridden("ecc", overrides.ecc, 0, u64::from(u16::MAX))?
                .or_else(|| self.amount("ecc_bits"))
                .and_then(|bits| u16::try_from(bits).ok()),
        })
    }

    pub(crate) fn not(&self, wanted: &'static str) -> CatalogueError {
        CatalogueError::WrongKind { device: self.name.clone(), kind: self.kind, wanted }
    }

    pub(crate) fn lacks(&self, figures: Vec<&'static str>) -> CatalogueError {
        CatalogueError::Lacks { device: self.name.clone(), figures }
    }

    /// The amount of a figure that is needed.
    pub(crate) fn needed(&self, name: &'static str) -> Result<u64, CatalogueError> {
        self.amount(name).ok_or_else(|| self.lacks(vec![name]))
    }

    /// A needed amount that fits 32 bits by the bounds of its figure.
    pub(crate) fn needed_u32(&self, name: &'static str) -> Result<u32, CatalogueError> {
        u32::try_from(self.needed(name)?).map_err(|_| self.lacks(vec![name]))
    }

    pub(crate) fn no_geometry(&self, fault: device::Error) -> CatalogueError {
        CatalogueError::Geometry { device: self.name.clone(), fault }
    }

    fn overridden(
        &self,
        name: &'static str,
        value: Option<u64>,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, CatalogueError> {
        match value {
            Some(value) if !(least..=most).contains(&value) => {
                let device = self.name.clone();
                Err(CatalogueError::Override { device, name, value, least, most })
            }
            value => Ok(value),
        }
    }

    fn geometry(&self, overrides: &Overrides) -> Result<Geometry, CatalogueError> {
        let page_bytes = self.needed_u32("page_bytes")?;
        let pages_per_block = self.needed_u32("pages_per_block")?;
        let blocks = self.blocks(overrides, u64::from(page_bytes) * u64::from(pages_per_block))?;
        let programs = self
            .overridden("programs", overrides.programs, 1, u64::from(u16::MAX))?
            .or_else(|| self.amount("programs_per_page"))
            .and_then(|programs| u16::try_from(programs).ok())
            .unwrap_or(1);
        let order = match self.word("program_order") {
            Some("any") => ProgramOrder::Any,
            _ => ProgramOrder::Ascending,
        };
        let spare_bytes = self.spare_bytes(overrides)?;
        Geometry::new(page_bytes, pages_per_block, blocks)
            .and_then(|geometry| geometry.with_spare(spare_bytes))
            .and_then(|geometry| geometry.with_programs(programs))
            .map(|geometry| geometry.with_order(order))
            .map_err(|fault| self.no_geometry(fault))
    }

    fn blocks(&self, overrides: &Overrides, block_bytes: u64) -> Result<u32, CatalogueError> {
        let most = u64::from(u32::MAX);
        let whole = match self.overridden("blocks", overrides.blocks, 1, most)? {
            Some(blocks) => blocks,
            None => self.needed("blocks")?,
        };
        let most_bytes = whole.saturating_mul(block_bytes);
        let blocks = match overrides.size_bytes {
            Some(size_bytes) if size_bytes > most_bytes => {
                let device = self.name.clone();
                return Err(CatalogueError::SizeTooLarge { device, size_bytes, most_bytes });
            }
            Some(size_bytes) => whole.min(size_bytes / block_bytes.max(1)),
            None => whole,
        };
        if blocks == 0 {
            return Err(CatalogueError::SizeTooSmall {
                device: self.name.clone(),
                size_bytes: overrides.size_bytes.unwrap_or(0),
                least_bytes: block_bytes,
            });
        }
        u32::try_from(blocks).map_err(|_| self.lacks(vec!["blocks"]))
    }

    /// Bytes of the spare area that are free for the chip's user.
    fn spare_bytes(&self, overrides: &Overrides) -> Result<u32, CatalogueError> {
        let known = self.amount("spare_free_bytes").or_else(|| self.amount("spare_bytes"));
        let free = known.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        match overrides.spare {
            Some(false) => Ok(0),
            Some(true) if free == 0 => Err(CatalogueError::NoSpare { device: self.name.clone() }),
            _ => Ok(free),
        }
    }

    fn bad_blocks_most(
        &self,
        overrides: &Overrides,
        blocks: u32,
    ) -> Result<Option<u32>, CatalogueError> {
        let most = u64::from(blocks) - 1;
        let bad = match self.overridden("bad", overrides.bad, 0, most)? {
            Some(bad) => Some(bad),
            None => self.amount("bad_blocks_most").map(|bad| {
                let whole = self.amount("blocks").unwrap_or(u64::from(blocks)).max(1);
                bad.saturating_mul(u64::from(blocks)).div_ceil(whole).min(most)
            }),
        };
        Ok(bad.and_then(|bad| u32::try_from(bad).ok()))
    }

    fn nand_costs(&self) -> Result<NandCosts, CatalogueError> {
        let energies = ["read_energy", "program_energy", "erase_energy"];
        let energy_known = energies.into_iter().all(|name| self.amount(name).is_some());
        let cost = |times: usize, per_byte: Option<&str>, energy: &str, energy_per_byte: &str| {
            let (typical, most, either) = CHIP_TIMES[times];
            let time = self.amount(typical).or_else(|| self.amount(most));
            Ok(Cost {
                time: Linear {
                    fixed: time.ok_or_else(|| self.lacks(vec![either]))?,
                    per_byte_thousandths: per_byte
                        .and_then(|own| self.amount(own).or_else(|| self.amount("bus")))
                        .unwrap_or(0),
                    per_page: 0,
                },
                energy: self.amount(energy).filter(|_| energy_known).map(|fixed| Linear {
                    fixed,
                    per_byte_thousandths: self.amount(energy_per_byte).unwrap_or(0),
                    per_page: 0,
                }),
            })
        };
        Ok(NandCosts {
            read: cost(0, Some("read_per_byte"), energies[0], "read_energy_per_byte")?,
            program: cost(1, Some("program_per_byte"), energies[1], "program_energy_per_byte")?,
            erase: cost(2, None, energies[2], "")?,
        })
    }
}
