//! A tree of a comparison: what it stands on, and whether it fits.

use device::Medium;
use ftl::BadOption;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index};
use index::{Footprint, MediumShape, Options, TreeDescriptor};

use crate::error::{Error, Misfit, Result, Thing};
use crate::model::Model;
use crate::plan::MemoryLimit;
use spec::Spec;
use spec::near;

/// The translation layer that serves trees on sectors.
pub(crate) struct Layer {
    spec: String,
    entry: &'static ftl::Entry,
    options: ftl::Options,
}

impl Layer {
    /// Reads a translation layer's spec.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let spec = Spec::parse(text)?;
        let entry = ftl::find(spec.name).ok_or_else(|| Error::Unknown {
            thing: Thing::Ftl,
            name: spec.name.to_string(),
            near: near(spec.name, ftl::FTLS.iter().map(|entry| entry.name)),
            known: ftl::FTLS.iter().map(|entry| entry.name.to_string()).collect(),
        })?;
        let mut options = ftl::Options::default();
        for (name, value) in &spec.parameters {
            options = options.set(entry, name, value).map_err(|bad| match bad {
                BadOption::Value { expected } => Error::BadValue {
                    owner: entry.name.to_string(),
                    name: (*name).to_string(),
                    value: (*value).to_string(),
                    expected: expected.to_string(),
                },
                _ => unknown_parameter(name, entry.parameters.iter().map(|known| known.name)),
            })?;
        }
        Ok(Layer { spec: text.to_string(), entry, options })
    }
}

fn unknown_parameter<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Error {
    Error::Unknown {
        thing: Thing::Parameter,
        name: name.to_string(),
        near: near(name, known.clone()),
        known: known.map(String::from).collect(),
    }
}

/// What all trees of a comparison have in common.
pub(crate) struct Storage {
    pub(crate) model: Model,
    pub(crate) layer: Layer,
    pub(crate) shape: EntryShape,
    pub(crate) memory: MemoryLimit,
    pub(crate) durability: Durability,
    /// The most entries that there will be.
    pub(crate) entries: u64,
}

/// A tree and its parameters.
pub(crate) struct Candidate {
    pub(crate) spec: String,
    entry: &'static TreeDescriptor,
    parameters: Vec<(String, String)>,
}

/// How a tree stands on a storage that it fits.
pub(crate) struct Footing {
    pub(crate) options: Options,
    on_sectors: bool,
    /// The translation layer's spec, if there is one below.
    pub(crate) ftl: Option<String>,
    /// Bytes that the translation layer's mapping takes, if there is one.
    pub(crate) ftl_bytes: Option<u64>,
    /// How full bulk loading makes nodes.
    pub(crate) fill_percent: u8,
}

/// How full nodes are loaded where a tree has no parameter for it: as full as random updates
/// leave them.
const FILL_PERCENT: u8 = 70;

impl Candidate {
    /// Reads a tree's spec; its parameters are read when it is known what it stands on.
    pub(crate) fn read(text: &str, trees: &[&'static TreeDescriptor]) -> Result<Self> {
        let spec = Spec::parse(text)?;
        let entry = trees.iter().copied().find(|entry| entry.name == spec.name);
        let entry = entry.ok_or_else(|| Error::Unknown {
            thing: Thing::Tree,
            name: spec.name.to_string(),
            near: near(spec.name, trees.iter().map(|entry| entry.name)),
            known: trees.iter().map(|entry| entry.name.to_string()).collect(),
        })?;
        let owned = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
        let parameters = spec.parameters.iter().map(owned).collect();
        Ok(Candidate { spec: text.to_string(), entry, parameters })
    }

    /// A tree with its default parameters.
    pub(crate) fn plain(entry: &'static TreeDescriptor) -> Self {
        Candidate { spec: entry.name.to_string(), entry, parameters: Vec::new() }
    }

    /// Finds out how the tree stands on `storage`, by making it once on a device of its shape that
    /// is in memory.
    pub(crate) fn fit(&self, storage: &Storage) -> std::result::Result<Footing, Misfit> {
        let on_sectors = self.on_sectors(storage.model.is_chip())?;
        let settings = self.settings()?;
        let fill = settings.number("fill").and_then(|percent| u8::try_from(percent).ok());
        let given = match storage.memory {
            MemoryLimit::CachesAndBuffers(bytes) | MemoryLimit::Total(bytes) => bytes,
        };
        let mut footing = Footing {
            options: Options {
                durability: Some(storage.durability),
                ..Options::new(storage.shape, given, settings)
            },
            on_sectors,
            ftl: (on_sectors && storage.model.is_chip()).then(|| storage.layer.spec.clone()),
            ftl_bytes: None,
            fill_percent: fill.unwrap_or(FILL_PERCENT),
        };
        let (medium, ftl_bytes) = footing.place(storage.model.stand_in()?, storage)?;
        footing.ftl_bytes = ftl_bytes;
        let shape = shape_of(&medium);
        let footprint = (self.entry.footprint)(&footing.options, shape)?;
        let Footprint { memory_least: least, tables, .. } = footprint;
        if let MemoryLimit::Total(total) = storage.memory {
            let beside = ftl_bytes.unwrap_or(0) + tables;
            let Some(rest) = total.checked_sub(beside + least) else {
                return Err(Misfit::LittleTotal { have: total, need: least + beside });
            };
            footing.options.memory_bytes = least + rest;
            footing.options.tables_bytes = Some(tables);
            if self.entry.tables_grow() {
                self.divide(&mut footing.options, storage.entries, shape)?;
            }
        } else if given < least {
            return Err(Misfit::LittleMemory { have: given, need: least });
        }
        (self.entry.create)(medium, &footing.options)?;
        Ok(footing)
    }

    /// Gives tables that grow what `entries` entries need, and an eighth for what waits, within a
    /// part of what is beyond the least.
    fn divide(
        &self,
        options: &mut Options,
        entries: u64,
        shape: MediumShape,
    ) -> std::result::Result<(), Misfit> {
        options.entries = Some(entries);
        let at_first = options.tables_bytes.unwrap_or(0);
        let all = options.memory_bytes + at_first;
        let footprint = (self.entry.footprint)(options, shape)?;
        let most = all.saturating_sub(footprint.memory_least);
        let least = at_first + most.saturating_sub(at_first) / 4;
        let tables = (footprint.tables + footprint.tables / 8).max(least).min(most);
        options.memory_bytes = all - tables;
        options.tables_bytes = Some(tables);
        Ok(())
    }

    /// True if the tree could stand on a translation layer, too.
    pub(crate) fn can_stand_over_ftl(&self) -> bool {
        self.entry.sectors
    }

    /// Makes the tree, empty, on the new `device`.
    pub(crate) fn create(
        &self,
        device: Medium<'static>,
        storage: &Storage,
        footing: &Footing,
    ) -> index::Result<Box<dyn Index>> {
        let (medium, _) = footing.place(device, storage)?;
        (self.entry.create)(medium, &footing.options)
    }

    /// Raw flash is preferred where a tree can stand on both, unless `over=ftl` is given. A disk
    /// has no raw flash to show.
    fn on_sectors(&self, on_chip: bool) -> std::result::Result<bool, Misfit> {
        let over = self.parameters.iter().find(|(name, _)| name == "over");
        let nand = self.entry.nand && on_chip;
        match (over.map(|(_, value)| value.as_str()), nand, self.entry.sectors) {
            (Some("ftl"), ..) if !on_chip => Err(Misfit::OverDisk),
            (None, false, false) if !on_chip => Err(Misfit::WrongMedium { medium: "a disk" }),
            (Some("ftl"), _, true) | (None, false, true) => Ok(true),
            (Some("ftl"), _, false) => Err(Misfit::WrongMedium { medium: "sectors" }),
            (Some(other), ..) => Err(Misfit::Over(other.to_string())),
            (None, true, _) => Ok(false),
            (None, false, false) => Err(Misfit::WrongMedium { medium: "a chip" }),
        }
    }

    fn settings(&self) -> std::result::Result<Settings, Misfit> {
        let given = self.parameters.iter().filter(|(name, _)| name != "over");
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        let entry = self.entry;
        Settings::parse(entry.name, entry.parameters, given).map_err(|error| match error {
            index::Error::UnknownParameter { name, .. } => {
                let over = entry.has_choice().then_some("over");
                let known = || entry.parameters.iter().map(|parameter| parameter.name).chain(over);
                let near = near(&name, known());
                Misfit::UnknownParameter { name, near, known: known().map(String::from).collect() }
            }
            other => Misfit::Refused(other),
        })
    }
}

impl Footing {
    /// What the tree stands on, made of `device`, and the bytes of memory that a mapping takes.
    fn place(
        &self,
        device: Medium<'static>,
        storage: &Storage,
    ) -> device::Result<(Medium<'static>, Option<u64>)> {
        match device {
            Medium::Nand(chip) if self.on_sectors => {
                let disk = (storage.layer.entry.create)(chip, &storage.layer.options)?;
                let bytes = disk.table_bytes();
                Ok((Medium::Sectors(disk), Some(bytes)))
            }
            other => Ok((other, None)),
        }
    }
}

fn shape_of(medium: &Medium<'_>) -> MediumShape {
    match medium {
        Medium::Nand(chip) => MediumShape::Nand(chip.geometry()),
        Medium::Sectors(disk) => MediumShape::Sectors(disk.geometry()),
    }
}
