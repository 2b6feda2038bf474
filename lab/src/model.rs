//! From a device's spec to a model of it, or to a real file.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use chips::{CatalogueError, Chip, Device, Disk, DiskTiming, Overrides};
use device::{Block, DiskCosts, Medium, Nand, SectorGeometry};
use file::{DiskOptions, Existing, FileDisk, NandFile, NandOptions, Transfer};
use sim::{FaultPlan, Flips, SimulatedDisk, SimulatedNand, WearOut};

use crate::error::{Error, InputFault, Result, Thing};
use crate::in_file::Home;
use crate::outcome::Clock;
use crate::plan::{DEFAULT_CHIP, Plan};
use spec::{Spec, parse_count};

/// The parameters that a device has in its spec.
const PARAMETERS: [&str; 6] = ["blocks", "spare", "programs", "bad", "endurance", "ecc"];

/// The most bytes of a `.toml` file that are read: more than any entry has.
const MOST_FILE_BYTES: u64 = 1 << 20;

/// The size of a disk in a file, if none is given.
const DISK_BYTES: u64 = 256 << 20;

/// The sectors of a disk in a file.
const SECTOR_BYTES: u32 = 4096;

/// What direct I/O may want of buffers, as far as trees are fitted before a file is opened.
const ALIGNMENT: u32 = 4096;

/// A device that can be made, fresh, any number of times.
#[derive(Debug)]
pub(crate) enum Model {
    /// A simulated chip.
    Chip(ChipModel),
    /// A simulated disk.
    Disk(Disk),
    /// A disk in a real file or block device.
    File { home: Home<FileDisk>, geometry: SectorGeometry },
    /// A chip imitated in a real file.
    NandFile { home: Home<NandFile>, chip: ChipModel },
}

/// A chip of the catalogue, and what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChipModel {
    chip: Chip,
    bad_blocks: u32,
    wears_out: bool,
    seed: u64,
}

impl Model {
    /// Reads the device's spec in `plan`, whose seed decides what a fault leaves open. No file of
    /// a device is touched.
    pub(crate) fn read(plan: &Plan) -> Result<Self> {
        if let Some(path) = path_after("nand-file", &plan.device)? {
            let chip = plan.chip.as_deref().unwrap_or(DEFAULT_CHIP);
            let chip = ChipModel::in_file(chip, plan)?;
            return Ok(Model::NandFile { home: Home::new(path, plan.overwrite), chip });
        }
        if plan.chip.is_some() {
            return Err(Error::ChipNotWanted { device: plan.device.clone() });
        }
        match path_after("file", &plan.device)? {
            Some(path) => {
                let geometry = sectors_in_file(plan)?;
                Ok(Model::File { home: Home::new(path, plan.overwrite), geometry })
            }
            None => Entry::read(&plan.device, plan)?.model(plan.seed),
        }
    }

    /// Bytes that the device holds.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Model::Chip(chip) | Model::NandFile { chip, .. } => chip.chip.geometry.bytes(),
            Model::Disk(Disk { geometry, .. }) | Model::File { geometry, .. } => geometry.bytes(),
        }
    }

    /// True for raw flash, false for a disk.
    pub(crate) const fn is_chip(&self) -> bool {
        matches!(self, Model::Chip(_) | Model::NandFile { .. })
    }

    /// True if there can be only one device at a time.
    pub(crate) const fn is_in_file(&self) -> bool {
        matches!(self, Model::File { .. } | Model::NandFile { .. })
    }

    /// The clock of its times.
    pub(crate) const fn clock(&self) -> Clock {
        match self {
            Model::File { .. } => Clock::Wall,
            _ => Clock::Model,
        }
    }

    /// A device of this shape in memory, to try out what fits.
    pub(crate) fn stand_in(&self) -> device::Result<Medium<'static>> {
        Ok(match self {
            Model::Chip(chip) | Model::NandFile { chip, .. } => Medium::Nand(Box::new(chip.make())),
            Model::Disk(disk) => Medium::Sectors(Box::new(simulated(disk)?)),
            Model::File { geometry, .. } => {
                let free = DiskCosts::default();
                Medium::Sectors(Box::new(SimulatedDisk::new(*geometry, free)))
            }
        })
    }

    /// Makes sure that the device can be made, and keeps it for the first who wants it; returns
    /// what there is to say about it.
    pub(crate) fn prepare(&self) -> file::Result<Option<String>> {
        match self {
            Model::Chip(_) | Model::Disk(_) => Ok(None),
            Model::File { home, geometry } => {
                let disk = home.make(|path, existing| disk_in_file(path, *geometry, existing))?;
                let transfer = disk.transfer();
                home.keep(disk);
                Ok(match transfer {
                    Transfer::Direct { .. } => None,
                    Transfer::Buffered(reason) => Some(format!(
                        "{}: no direct I/O, for {reason}: the times are those of the page cache",
                        home.path().display()
                    )),
                })
            }
            Model::NandFile { home, chip } => {
                let made = home.make(|path, existing| chip.make_in(path, existing))?;
                home.keep(made);
                Ok(None)
            }
        }
    }

    /// A new device.
    pub(crate) fn make(&self) -> file::Result<Medium<'static>> {
        match self {
            Model::Chip(_) | Model::Disk(_) => Ok(self.stand_in()?),
            Model::File { home, geometry } => home
                .make(|path, existing| disk_in_file(path, *geometry, existing))
                .map(|disk| Medium::Sectors(disk)),
            Model::NandFile { home, chip } => home
                .make(|path, existing| chip.make_in(path, existing))
                .map(|chip| Medium::Nand(chip)),
        }
    }

    /// Takes away what a run that failed left, if it was not there before.
    pub(crate) fn discard(&self) {
        match self {
            Model::Chip(_) | Model::Disk(_) => {}
            Model::File { home, .. } => home.discard(),
            Model::NandFile { home, .. } => home.discard(),
        }
    }

    /// The file that stays after a comparison.
    pub(crate) fn file_that_stays(&self) -> Option<&Path> {
        match self {
            Model::Chip(_) | Model::Disk(_) => None,
            Model::File { home, .. } => home.has_file().then(|| home.path()),
            Model::NandFile { home, .. } => home.has_file().then(|| home.path()),
        }
    }
}

fn simulated(disk: &Disk) -> device::Result<SimulatedDisk> {
    match disk.timing {
        DiskTiming::Costs(costs) => Ok(SimulatedDisk::new(disk.geometry, costs)),
        DiskTiming::SolidState(drive) => SimulatedDisk::solid_state(disk.geometry, drive),
    }
}

/// The path of a device in a file: all that follows the first colon.
fn path_after<'s>(kind: &'static str, spec: &'s str) -> Result<Option<&'s str>> {
    match spec.strip_prefix(kind).map(|rest| rest.strip_prefix(':').unwrap_or(rest)) {
        Some("") => Err(Error::NoPath { kind }),
        Some(path) if spec.as_bytes().get(kind.len()) == Some(&b':') => Ok(Some(path)),
        _ => Ok(None),
    }
}

fn sectors_in_file(plan: &Plan) -> Result<SectorGeometry> {
    let size_bytes = plan.size_bytes.unwrap_or(DISK_BYTES);
    let least_bytes = u64::from(SECTOR_BYTES);
    let device = || plan.device.clone();
    if size_bytes < least_bytes {
        let small = CatalogueError::SizeTooSmall { device: device(), size_bytes, least_bytes };
        return Err(small.into());
    }
    let geometry = SectorGeometry::new(SECTOR_BYTES, size_bytes / least_bytes)
        .and_then(|geometry| geometry.with_alignment(ALIGNMENT));
    Ok(geometry.map_err(|fault| CatalogueError::Geometry { device: device(), fault })?)
}

fn disk_in_file(
    path: &Path,
    geometry: SectorGeometry,
    existing: Existing,
) -> file::Result<FileDisk> {
    let options =
        DiskOptions { sector_bytes: geometry.sector_bytes(), existing, ..DiskOptions::default() };
    FileDisk::create(path, geometry.bytes(), &options)
}

impl ChipModel {
    /// The chip `spec` of `plan`, to be imitated in a file.
    fn in_file(spec: &str, plan: &Plan) -> Result<Self> {
        let entry = Entry::read(spec, plan)?;
        let Overrides { endurance, ecc, .. } = entry.overrides;
        for (name, given) in [("endurance", endurance.is_some()), ("ecc", ecc.is_some())] {
            if given {
                return Err(Error::NoFaultsInFile { name });
            }
        }
        entry.chip(plan.seed)
    }

    /// A new simulated chip. It wears out only if that was asked for.
    fn make(&self) -> SimulatedNand {
        let Chip { geometry, costs, endurance, ecc_bits, .. } = self.chip;
        let chip =
            SimulatedNand::new(geometry, costs).with_random_bad_blocks(self.seed, self.bad_blocks);
        if !self.wears_out {
            return chip;
        }
        // The first block fails when the chip's erases are used up, the last a tenth later.
        let wear_out = endurance.map(|endurance| WearOut {
            endurance,
            certain: endurance.saturating_add(endurance / 10 + 1),
        });
        let flips = Flips { ecc_bits, ..Flips::default() };
        chip.with_faults(FaultPlan { wear_out, flips, ..FaultPlan::seeded(self.seed) })
    }

    /// A new chip in the file at `path`, whose bad blocks are those of the simulated one.
    fn make_in(&self, path: &Path, existing: Existing) -> file::Result<NandFile> {
        let Chip { geometry, costs, .. } = self.chip;
        let options = NandOptions { costs: Some(costs), existing, ..NandOptions::default() };
        let mut chip = NandFile::create(path, geometry, &options)?;
        if self.bad_blocks > 0 {
            let mut pattern = self.make();
            for block in (0..geometry.blocks()).map(Block) {
                if pattern.is_bad(block)? {
                    chip.mark_bad(block)?;
                }
            }
        }
        Ok(chip)
    }
}

/// A device of the catalogue or of a `.toml` file, with what the user set apart from it.
struct Entry {
    device: Cow<'static, Device>,
    path: Option<PathBuf>,
    overrides: Overrides,
}

impl Entry {
    fn read(spec: &str, plan: &Plan) -> Result<Self> {
        let (name, path) = split(spec)?;
        let overrides = Overrides { size_bytes: plan.size_bytes, ..overrides(&name)? };
        let device = match &path {
            Some(path) => {
                let device = Device::from_toml(&text_of(path)?);
                let in_file = |source| Error::DeviceFile { path: path.clone(), source };
                Cow::Owned(device.map_err(in_file)?)
            }
            None => {
                let device = chips::find(name.name).ok_or_else(|| unknown(name.name))?;
                Cow::Borrowed(device)
            }
        };
        Ok(Entry { device, path, overrides })
    }

    fn model(&self, seed: u64) -> Result<Model> {
        if self.device.kind().is_chip() {
            return self.chip(seed).map(Model::Chip);
        }
        self.device.disk(&self.overrides).map(Model::Disk).map_err(|fault| self.refused(fault))
    }

    fn chip(&self, seed: u64) -> Result<ChipModel> {
        let chip = self.device.nand(&self.overrides).map_err(|fault| self.refused(fault))?;
        let pages = u64::from(chip.geometry.pages());
        if pages > PAGES_MOST {
            return Err(Error::TooManyPages { pages, most: PAGES_MOST });
        }
        let Overrides { bad, endurance, ecc, .. } = self.overrides;
        Ok(ChipModel {
            chip,
            bad_blocks: bad.and_then(|bad| u32::try_from(bad).ok()).unwrap_or(0),
            wears_out: endurance.is_some() || ecc.is_some(),
            seed,
        })
    }

    fn refused(&self, source: CatalogueError) -> Error {
        match &self.path {
            Some(path) => Error::DeviceFile { path: path.clone(), source },
            None => Error::Catalogue(source),
        }
    }
}

/// The most pages of a simulated chip: a translation layer maps them in 1 GiB of memory.
const PAGES_MOST: u64 = 1 << 28;

/// Splits a spec into name and parameters; a name that ends with `.toml` is a path, which may
/// hold colons.
fn split(spec: &str) -> Result<(Spec<'_>, Option<PathBuf>)> {
    const ENDING: &str = ".toml";
    if spec.ends_with(ENDING) {
        let whole = Spec::from_parts(spec, spec, None)?;
        return Ok((whole, Some(PathBuf::from(spec))));
    }
    match spec.rfind(".toml:") {
        Some(place) => {
            let (path, rest) = spec.split_at(place + ENDING.len());
            let parts = Spec::from_parts(spec, path, rest.strip_prefix(':'))?;
            Ok((parts, Some(PathBuf::from(path))))
        }
        None => Ok((Spec::parse(spec)?, None)),
    }
}

fn unknown(name: &str) -> Error {
    Error::Unknown {
        thing: Thing::Device,
        name: name.to_string(),
        near: chips::near(name),
        known: Vec::new(),
    }
}

fn overrides(spec: &Spec<'_>) -> Result<Overrides> {
    let mut overrides = Overrides::default();
    for (name, text) in &spec.parameters {
        let bad = |expected: &str| Error::BadValue {
            owner: spec.name.to_string(),
            name: (*name).to_string(),
            value: (*text).to_string(),
            expected: expected.to_string(),
        };
        let place = match *name {
            "blocks" => &mut overrides.blocks,
            "programs" => &mut overrides.programs,
            "bad" => &mut overrides.bad,
            "endurance" => &mut overrides.endurance,
            "ecc" => &mut overrides.ecc,
            "spare" => {
                overrides.spare = Some(match *text {
                    "on" => true,
                    "off" => false,
                    _ => return Err(bad("on or off")),
                });
                continue;
            }
            _ => return Err(unknown_parameter(name)),
        };
        *place = Some(parse_count(text).ok_or_else(|| bad("a whole number"))?);
    }
    Ok(overrides)
}

fn unknown_parameter(name: &str) -> Error {
    Error::Unknown {
        thing: Thing::Parameter,
        name: name.to_string(),
        near: spec::near(name, PARAMETERS),
        known: PARAMETERS.map(String::from).to_vec(),
    }
}

fn text_of(path: &Path) -> Result<String> {
    let wrong = |fault| Error::Input { path: path.to_path_buf(), fault };
    let file = std::fs::File::open(path).map_err(|error| wrong(InputFault::Unreadable(error)))?;
    let mut bytes = Vec::new();
    file.take(MOST_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(InputFault::Unreadable(error)))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count() as u64;
        wrong(InputFault::NotUtf8 { line })
    })
}

#[cfg(test)]
mod tests;
