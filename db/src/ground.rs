//! What a database stands on: a device, perhaps a translation layer, and the memory left for the
//! tree.

use device::{Medium, Nand, Sectors};
use index::registry::{Description, Options as IndexOptions};
use index::{EntryShape, Index};

use crate::error::WRITE_REFUSED;
use crate::health::{SharedHealth, Watched};
use crate::label::Label;
use crate::options::MemoryLimit;
use crate::read_only::ReadOnly;
use crate::spec::{LayerChoice, TreeChoice};
use crate::{Error, OpenOptions, Options, Result};

/// A device for a tree.
pub(crate) struct Ground<'d> {
    medium: Medium<'d>,
    /// Bytes of memory that the device's driver takes.
    driver_bytes: u64,
    /// Bytes of memory that a translation layer's mapping takes.
    layer_bytes: u64,
    pub(crate) health: Option<SharedHealth>,
}

/// An index that was made or opened, with what the database keeps of it.
pub(crate) struct Standing<'d> {
    pub(crate) index: Box<dyn Index + 'd>,
    pub(crate) tree: &'static str,
    pub(crate) page_bytes: u32,
    pub(crate) shape: EntryShape,
    pub(crate) label: Label,
    pub(crate) driver_bytes: u64,
    pub(crate) health: Option<SharedHealth>,
}

impl<'d> Ground<'d> {
    /// A device whose driver takes `driver_bytes` bytes of memory.
    pub(crate) const fn new(medium: Medium<'d>, driver_bytes: u64) -> Self {
        Ground { medium, driver_bytes, layer_bytes: 0, health: None }
    }

    /// The same device, on which nothing can be changed.
    pub(crate) fn read_only(mut self) -> Self {
        self.medium = match self.medium {
            Medium::Nand(chip) => Medium::Nand(Box::new(ReadOnly(chip))),
            Medium::Sectors(disk) => Medium::Sectors(Box::new(ReadOnly(disk))),
        };
        self
    }

    /// Makes a database with `options`.
    pub(crate) fn create(self, options: &Options) -> Result<Standing<'d>> {
        let on_disk = matches!(self.medium, Medium::Sectors(_));
        // A chip's sectors are its pages: they decide, if nothing else does.
        let tree = TreeChoice::read(&options.tree, options.page_bytes, options.fill_percent)?;
        let label = Label {
            fill_percent: tree.fill_percent(),
            key: options.key.clone().unwrap_or_default(),
            value: options.value.clone().unwrap_or_default(),
        };
        if on_disk && options.ftl.is_some() {
            let what = "a translation layer belongs on a chip, and this is a disk".to_owned();
            return Err(Error::BadOption { option: "ftl", what });
        }
        let mut ground = self;
        if !tree.entry.nand || tree.over_ftl || options.ftl.is_some() {
            let layer =
                options.ftl.as_deref().map_or_else(LayerChoice::usual, LayerChoice::read)?;
            ground = ground.over(layer.entry.create, &layer)?;
        }
        let bytes = ground.left_of(options.memory)?;
        let page_bytes = ground.page_bytes(&tree);
        let mut choices = IndexOptions::new(options.entry_shape(), bytes, tree.settings);
        choices.durability = Some(options.durability);
        choices.journal_bytes = options.journal_bytes;
        choices.label = label.encode()?;
        let Ground { medium, driver_bytes, layer_bytes, health } = ground;
        let mut index = (tree.entry.create)(medium, &choices)
            .map_err(|error| with_all(error, options.memory, driver_bytes + layer_bytes))?;
        // What was made is there even if nothing is ever put in; without durability only then.
        index.close()?;
        let (tree, shape) = (tree.entry.name, choices.shape);
        Ok(Standing { index, tree, page_bytes, shape, label, driver_bytes, health })
    }

    /// Opens the database that is here.
    pub(crate) fn open(self, options: &OpenOptions) -> Result<Standing<'d>> {
        let mut ground = self.with_layer(options.ftl.as_deref())?;
        let found = ground.describe()?;
        let label = Label::decode(&found.label)?;
        let tree = TreeChoice::of(&found.tree, label.fill_percent)?;
        let bytes = ground.left_of(options.memory)?;
        let mut choices = IndexOptions::new(found.shape, bytes, tree.settings);
        choices.durability = options.durability.or(Some(found.durability));
        let Ground { medium, driver_bytes, layer_bytes, health } = ground;
        let index = (tree.entry.open)(medium, &choices)
            .map_err(|error| with_all(error, options.memory, driver_bytes + layer_bytes))?;
        let (made, wanted) = (index.recovery().durability, options.durability);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != made) {
            return Err(Error::Index(store::Error::Durability { made, wanted }.into()));
        }
        let (tree, page_bytes, shape) = (tree.entry.name, found.page_bytes, found.shape);
        Ok(Standing { index, tree, page_bytes, shape, label, driver_bytes, health })
    }

    /// Bytes in a page of a tree that is to be made: its node, or a page of the device.
    fn page_bytes(&self, tree: &TreeChoice) -> u32 {
        let device = match &self.medium {
            Medium::Sectors(disk) => disk.geometry().sector_bytes(),
            Medium::Nand(chip) => chip.geometry().page_bytes(),
        };
        let node = tree.settings.number("node").map(u32::try_from);
        node.and_then(std::result::Result::ok).unwrap_or(device)
    }

    fn describe(&mut self) -> Result<Description> {
        match &mut self.medium {
            Medium::Sectors(disk) => Ok(index::registry::describe(&mut **disk)?),
            Medium::Nand(_) => Err(Error::NotADatabase {
                what: "no translation layer stands on the chip".to_owned(),
            }),
        }
    }

    /// Puts the translation layer that a chip has between it and the tree.
    fn with_layer(mut self, spec: Option<&str>) -> Result<Self> {
        let Medium::Nand(chip) = &mut self.medium else {
            return Ok(self);
        };
        let layer = match spec {
            Some(spec) => Some(LayerChoice::read(spec)?),
            None => find_layer(&mut **chip)?,
        };
        match layer {
            Some(layer) => self.over(layer.entry.open, &layer),
            None => Ok(self),
        }
    }

    /// Puts a translation layer on a chip; a disk needs none.
    fn over(mut self, open: ftl::Open, layer: &LayerChoice) -> Result<Self> {
        self.medium = match self.medium {
            Medium::Sectors(disk) => Medium::Sectors(disk),
            Medium::Nand(mut chip) => {
                let health = SharedHealth::of(&mut *chip)?;
                let disk = open(chip, &layer.options).map_err(not_formatted)?;
                let disk = Box::new(Watched::new(disk, health.clone()));
                self.health = Some(health);
                self.layer_bytes = disk.table_bytes();
                Medium::Sectors(disk)
            }
        };
        Ok(self)
    }

    /// What is left of the memory for caches and buffers.
    fn left_of(&self, limit: MemoryLimit) -> Result<u64> {
        let beside = self.driver_bytes + self.layer_bytes;
        match limit {
            MemoryLimit::CachesAndBuffers(bytes) => Ok(bytes),
            // What the tree needs comes on top: with nothing, it says how much.
            MemoryLimit::Total(total) => Ok(total.saturating_sub(beside)),
        }
    }
}

/// The translation layer that stands on `chip`. Nothing is changed while it is looked for.
fn find_layer(chip: &mut dyn Nand) -> Result<Option<LayerChoice>> {
    for entry in ftl::FTLS {
        let layer = LayerChoice { entry, options: ftl::Options::default() };
        match (entry.open)(Box::new(ReadOnly(&mut *chip)), &layer.options).map(drop) {
            Err(device::Error::NotFormatted { .. }) => {}
            // One that has to mend something is the right one.
            Ok(()) | Err(WRITE_REFUSED) => return Ok(Some(layer)),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(None)
}

fn not_formatted(error: device::Error) -> Error {
    match error {
        device::Error::NotFormatted { .. } => {
            Error::NotADatabase { what: format!("on its chip: {error}") }
        }
        other => other.into(),
    }
}

/// Adds what comes beside caches and buffers to what is said of too little memory.
fn with_all(error: index::Error, limit: MemoryLimit, beside: u64) -> Error {
    match (Error::from(error), limit) {
        (Error::LittleMemory { need, .. }, MemoryLimit::Total(have)) => {
            Error::LittleMemory { have, need: need + beside }
        }
        (other, _) => other,
    }
}
