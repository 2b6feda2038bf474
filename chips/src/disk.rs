//! A disk for the simulator, out of the figures of an entry.

use device::{Access, Cost, DiskCosts, Linear, SectorGeometry, SolidState};

use crate::{CatalogueError, Device, Overrides};

/// What the simulator needs of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The shape. A sector is the page that the figures are for.
    pub geometry: SectorGeometry,
    /// How long its requests take.
    pub timing: DiskTiming,
}

/// What decides how long the requests of a disk take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTiming {
    /// Costs of a request.
    Costs(DiskCosts),
    /// The flash in it.
    SolidState(SolidState),
}

/// The figures of reading or of writing.
struct Direction {
    random: &'static str,
    sequential: &'static str,
    next_page: &'static str,
    per_byte: &'static str,
    energy: &'static str,
    energy_per_page: &'static str,
    energy_per_byte: &'static str,
}

const READ: Direction = Direction {
    random: "random_read",
    sequential: "sequential_read",
    next_page: "read_next_page",
    per_byte: "read_per_byte",
    energy: "read_energy",
    energy_per_page: "read_energy_per_page",
    energy_per_byte: "read_energy_per_byte",
};

const WRITE: Direction = Direction {
    random: "random_write",
    sequential: "sequential_write",
    next_page: "write_next_page",
    per_byte: "write_per_byte",
    energy: "write_energy",
    energy_per_page: "write_energy_per_page",
    energy_per_byte: "write_energy_per_byte",
};

impl Device {
    /// The disk that this entry describes, with `overrides` (of which only the size means
    /// something for a disk). If it has figures of flash, its times follow from them; else:
    ///
    /// **What a request of several pages is charged**, decided here and nowhere else: the time of
    /// a request of one page, and for each page after it the time of a next page. That is
    /// `read_next_page` or `write_next_page` where it is known, else the sequential time; but
    /// never more than the first page took. Energies are the paper's form: a fixed part and a
    /// part for each page. They are known only if those of reading and writing are.
    ///
    /// # Errors
    /// The device is a chip; figures are missing (all are named); an override means nothing for a
    /// disk, or the size leaves no sector.
    pub fn disk(&self, overrides: &Overrides) -> Result<Disk, CatalogueError> {
        if self.kind.is_chip() {
            return Err(self.not("a disk"));
        }
        self.refuse_chip_overrides(overrides)?;
        if !self.missing.is_empty() {
            return Err(self.lacks(self.missing()));
        }
        let geometry = self.sector_geometry(overrides)?;
        let timing = if self.is_solid_state() {
            DiskTiming::SolidState(self.solid_state(&geometry)?)
        } else {
            DiskTiming::Costs(DiskCosts { read: self.access(&READ)?, write: self.access(&WRITE)? })
        };
        Ok(Disk { geometry, timing })
    }

    /// True if this is a disk of which it is known how it is made of flash.
    pub(crate) fn is_solid_state(&self) -> bool {
        self.figure("mapping_unit").is_some()
    }

    fn solid_state(&self, sectors: &SectorGeometry) -> Result<SolidState, CatalogueError> {
        let drive = SolidState {
            drive_bytes: self.needed("capacity")?,
            flash_bytes: self.needed("flash_capacity")?,
            channels: self.needed_u32("channels")?,
            chips_per_channel: self.needed_u32("chips_per_channel")?,
            page_bytes: self.needed_u32("flash_page_bytes")?,
            spare_bytes: self.needed_u32("flash_spare_bytes")?,
            pages_per_block: self.needed_u32("flash_pages_per_block")?,
            read_ns: self.needed("flash_read")?,
            program_ns: self.needed("flash_program")?,
            erase_ns: self.needed("flash_erase")?,
            bus_ps_per_byte: self.needed("flash_bus")?,
            mapping_unit_bytes: self.needed("mapping_unit")?,
            write_cache_bytes: self.needed("write_cache")?,
            command_ns: self.needed("command")?,
            link_ps_per_byte: self.needed("link")?,
            queue_depth: self.needed_u32("queue_depth")?,
        };
        drive.check(sectors).map_err(|fault| self.no_geometry(fault))?;
        Ok(drive)
    }

    fn refuse_chip_overrides(&self, overrides: &Overrides) -> Result<(), CatalogueError> {
        let given = [
            ("blocks", overrides.blocks.is_some()),
            ("spare", overrides.spare.is_some()),
            ("programs", overrides.programs.is_some()),
            ("bad", overrides.bad.is_some()),
            ("endurance", overrides.endurance.is_some()),
            ("ecc", overrides.ecc.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => {
                Err(CatalogueError::OverrideNotForDisk { device: self.name.clone(), name })
            }
            None => Ok(()),
        }
    }

    fn sector_geometry(&self, overrides: &Overrides) -> Result<SectorGeometry, CatalogueError> {
        let sector_bytes = self.needed_u32("sector_bytes")?;
        let capacity = self.needed("capacity")?;
        let bytes = overrides.size_bytes.unwrap_or(capacity);
        if bytes > capacity {
            let (device, size_bytes) = (self.name.clone(), bytes);
            return Err(CatalogueError::SizeTooLarge { device, size_bytes, most_bytes: capacity });
        }
        let sectors = bytes / u64::from(sector_bytes.max(1));
        if sectors == 0 {
            return Err(CatalogueError::SizeTooSmall {
                device: self.name.clone(),
                size_bytes: bytes,
                least_bytes: u64::from(sector_bytes),
            });
        }
        SectorGeometry::new(sector_bytes, sectors).map_err(|fault| self.no_geometry(fault))
    }

    fn access(&self, direction: &Direction) -> Result<Access, CatalogueError> {
        let random = self.needed(direction.random)?;
        let sequential = self.needed(direction.sequential)?;
        let next_page = self.amount(direction.next_page).unwrap_or(sequential);
        let per_byte_thousandths = self.amount(direction.per_byte).unwrap_or(0);
        let energy = self.disk_energy(direction);
        let cost = |first: u64| {
            let per_page = next_page.min(first);
            let time = Linear { fixed: first - per_page, per_byte_thousandths, per_page };
            Cost { time, energy }
        };
        Ok(Access { random: cost(random), sequential: cost(sequential) })
    }

    fn disk_energy(&self, direction: &Direction) -> Option<Linear> {
        let known = |name: &str| self.amount(name).is_some();
        let fixed = self.amount(direction.energy)?;
        (known(READ.energy) && known(WRITE.energy)).then(|| Linear {
            fixed,
            per_byte_thousandths: self.amount(direction.energy_per_byte).unwrap_or(0),
            per_page: self.amount(direction.energy_per_page).unwrap_or(0),
        })
    }
}
