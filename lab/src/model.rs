//! From a device's spec to a model of it.

use std::io::Read;
use std::path::{Path, PathBuf};

use chips::{CatalogueError, Chip, Device, Kind, Overrides};
use device::Geometry;
use sim::SimulatedNand;

use crate::error::{Error, InputFault, Result, Thing};
use crate::spec::{Spec, parse_count};

/// The parameters that a device has in its spec.
const PARAMETERS: [&str; 6] = ["blocks", "spare", "programs", "bad", "endurance", "ecc"];

/// The most bytes of a `.toml` file that are read: more than any entry has.
const MOST_FILE_BYTES: u64 = 1 << 20;

/// A chip that can be made, fresh, any number of times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    chip: Chip,
    bad_blocks: u32,
    seed: u64,
}

impl Model {
    /// Reads a device's spec; `size_bytes` bounds what is used of it, and the seed decides which
    /// blocks are bad.
    pub(crate) fn read(spec: &str, size_bytes: Option<u64>, seed: u64) -> Result<Self> {
        for (prefix, what) in [
            ("file:", "real files and block devices are not there yet"),
            ("nand-file:", "NAND imitated in a file is not there yet"),
        ] {
            if spec.starts_with(prefix) {
                return Err(Error::DeviceNotYet { device: spec.to_string(), what });
            }
        }
        let (name, path) = split(spec)?;
        let mut overrides = overrides(&name)?;
        overrides.size_bytes = size_bytes;
        let in_file = |path: &PathBuf, source| Error::DeviceFile { path: path.clone(), source };
        let chip = match &path {
            Some(path) => {
                let device = Device::from_toml(&text_of(path)?);
                let device = device.map_err(|source| in_file(path, source))?;
                chip(spec, &device, &overrides)?.map_err(|source| in_file(path, source))?
            }
            None => {
                let device = chips::find(name.name).ok_or_else(|| unknown(name.name))?;
                chip(spec, device, &overrides)??
            }
        };
        let bad_blocks = overrides.bad.and_then(|bad| u32::try_from(bad).ok()).unwrap_or(0);
        Ok(Model { chip, bad_blocks, seed })
    }

    /// The shape of the chip.
    pub(crate) fn geometry(&self) -> Geometry {
        self.chip.geometry
    }

    /// A new chip.
    pub(crate) fn make(&self) -> SimulatedNand {
        SimulatedNand::new(self.chip.geometry, self.chip.costs)
            .with_random_bad_blocks(self.seed, self.bad_blocks)
    }
}

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
        near: chips::near(name).into_iter().map(String::from).collect(),
        known: Vec::new(),
    }
}

fn chip(
    spec: &str,
    device: &Device,
    overrides: &Overrides,
) -> Result<std::result::Result<Chip, CatalogueError>> {
    if device.kind() == Kind::Disk {
        let what = "disks that are known by the costs of their requests can't be simulated yet";
        return Err(Error::DeviceNotYet { device: spec.to_string(), what });
    }
    Ok(device.nand(overrides))
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
        near: crate::near::near(name, PARAMETERS),
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
mod tests {
    use super::Model;
    use crate::error::Error;

    fn error_of(spec: &str) -> Error {
        Model::read(spec, None, 1).expect_err(spec)
    }

    #[test]
    fn a_chip_is_made_as_its_spec_says() {
        let model = Model::read("winbond-w25n01gv:blocks=64,programs=2", None, 1).unwrap();
        assert_eq!(model.geometry().blocks(), 64);
        assert_eq!(model.geometry().programs_per_page(), 2);
        let model = Model::read("winbond-w25n01gv", Some(1 << 20), 1).unwrap();
        assert_eq!(model.geometry().bytes(), 1 << 20);
    }

    #[test]
    fn bad_blocks_are_drawn_by_the_seed() {
        let bad = |seed| {
            let model = Model::read("winbond-w25n01gv:bad=7", None, seed).unwrap();
            let mut chip = model.make();
            let blocks = model.geometry().blocks();
            let bad = |block| device::Nand::is_bad(&mut chip, device::Block(block)).unwrap();
            (0..blocks).map(bad).collect::<Vec<bool>>()
        };
        assert_eq!(bad(1).iter().filter(|bad| **bad).count(), 7);
        assert_eq!(bad(1), bad(1));
        assert_ne!(bad(1), bad(2));
    }

    #[test]
    fn wrong_devices_are_refused_in_one_line_that_helps() {
        for (spec, part) in [
            ("winbond-w25n01gw", "winbond-w25n01gv"),
            ("no-such-thing-at-all", "flashtree devices"),
            ("winbond-w25n01gv:block=64", "blocks"),
            ("winbond-w25n01gv:blocks=0", "blocks"),
            ("winbond-w25n01gv:blocks=many", "whole number"),
            ("winbond-w25n01gv:spare=maybe", "on or off"),
            ("winbond-w25n01gv:blocks=1,blocks=2", "twice"),
            ("file:/dev/null", "not there yet"),
            ("nand-file:chip.img", "not there yet"),
            ("no/such/file.toml", "no/such/file.toml"),
            ("no/such:file.toml:blocks=4", "no/such:file.toml"),
            ("", "name is missing"),
        ] {
            let line = error_of(spec).to_string();
            assert!(line.contains(part), "{spec}: {line}");
            assert!(!line.contains('\n'), "{spec}: {line}");
        }
        assert!(Model::read("winbond-w25n01gv", Some(100), 1).is_err());
    }

    #[test]
    fn disks_are_not_simulated_yet_and_chips_need_their_figures() {
        let disk = chips::all().iter().find(|device| device.kind() == chips::Kind::Disk);
        let disk = disk.expect("a disk").name();
        assert!(matches!(error_of(disk), Error::DeviceNotYet { .. }));
        let lacking = chips::all()
            .iter()
            .find(|device| device.kind() != chips::Kind::Disk && !device.missing().is_empty());
        if let Some(device) = lacking {
            assert!(matches!(error_of(device.name()), Error::Catalogue(_)), "{}", device.name());
        }
    }

    #[test]
    fn a_chip_of_ones_own_is_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        std::fs::write(&path, "name = ").unwrap();
        let spec = path.to_str().unwrap();
        assert!(matches!(error_of(spec), Error::DeviceFile { .. }));
        std::fs::write(&path, [b'a', b'\n', 0xff]).unwrap();
        assert!(error_of(spec).to_string().contains("line 2"));
    }
}
