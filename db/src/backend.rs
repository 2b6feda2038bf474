//! What a database stands on: a device, perhaps a translation layer, and the memory left for the
//! tree.

use device::{Medium, Nand, Sectors};
use index::{Description, Footprint, MediumShape, Options as IndexOptions, TreeDescriptor};
use index::{EntryShape, Index};

use crate::choice::{LayerChoice, TreeChoice};
use crate::driver::{self, Driver};
use crate::error::WRITE_REFUSED;
use crate::health::{SharedHealth, Watched};
use crate::label::Label;
use crate::long_values::{LongValues, shape_below};
use crate::options::{MemoryLimit, SECTOR_BYTES, Sharing};
use crate::read_only::ReadOnly;
use crate::sufficing::{little_room, room_that_suffices, sufficing};
use crate::{Error, OpenOptions, Options, Result};

/// The most memory with which a database is opened to learn how much it needs.
const MEMORY_MOST: u64 = 256 << 20;

/// A device for a tree.
pub(crate) struct Backend<'d> {
    medium: Medium<'d>,
    driver: Driver,
    /// Bytes of memory that a translation layer's mapping takes, or what keeps long values.
    layer_bytes: u64,
    pub(crate) health: Option<SharedHealth>,
}

/// An index that was made or opened, with what the database keeps of it.
pub(crate) struct Standing<'d> {
    pub(crate) index: Box<dyn Index + 'd>,
    pub(crate) about: About,
}

/// What is known of a database, and does not change while it is open.
pub(crate) struct About {
    pub(crate) tree: &'static str,
    pub(crate) page_bytes: u32,
    /// Bytes in a page, or a sector, of the device.
    pub(crate) unit_bytes: u32,
    pub(crate) shape: EntryShape,
    pub(crate) label: Label,
    pub(crate) driver_bytes: u64,
    pub(crate) memory: MemoryLimit,
    pub(crate) health: Option<SharedHealth>,
    /// True if the tree is on the chip itself, without a translation layer.
    pub(crate) is_raw: bool,
    /// How many bytes a file can grow to that grows.
    pub(crate) grows_to: Option<u64>,
    pub(crate) sharing: Sharing,
}

impl<'d> Backend<'d> {
    pub(crate) const fn new(medium: Medium<'d>, driver: Driver) -> Self {
        Backend { medium, driver, layer_bytes: 0, health: None }
    }

    /// The same device, on which nothing can be changed.
    pub(crate) fn read_only(mut self) -> Self {
        self.medium = match self.medium {
            Medium::Nand(chip) => Medium::Nand(Box::new(ReadOnly(chip))),
            Medium::Sectors(disk) => Medium::Sectors(Box::new(ReadOnly(disk))),
        };
        self
    }

    /// Makes a database with `options`. Where memory or room are too little, what suffices is told.
    pub(crate) fn create(self, options: &Options) -> Result<Standing<'d>> {
        let mut tree = self.choose(options)?;
        tree.take(&options.settings)?;
        let (shape, needs_layer) = (options.entry_shape(), self.needs_layer(&tree, options));
        // On raw flash nothing keeps values that are longer than a node.
        let is_short = !tree.entry.long_values || self.is_raw() && !needs_layer;
        let below = shape_below(shape).filter(|_| is_short);
        let label = label(options, &tree, below.is_some());
        let device = self.shape();
        let layer = match needs_layer {
            true => {
                Some(options.ftl.as_deref().map_or_else(LayerChoice::usual, LayerChoice::read)?)
            }
            false => None,
        };
        let below = below.unwrap_or(shape);
        let mut choices = IndexOptions::new(below, 0, tree.settings.clone());
        choices.durability = Some(options.durability);
        choices.journal_through = matches!(self.driver, Driver::File { .. });
        choices.label = label.encode()?;
        choices.identity = identity(options.identity, getrandom::u64)?;
        let lacking = |choices: &IndexOptions, error| {
            let least = || room_that_suffices(device, layer.as_ref(), tree.entry, choices, options);
            little_room(error, device, least)
        };
        let mut backend = self;
        if let Some(layer) = &layer {
            let over = backend.over(layer.entry.create, layer);
            backend = over.map_err(|error| lacking(&choices, error))?;
        }
        backend = backend.with_health()?;
        let (page_bytes, unit_bytes) = (backend.page_bytes(&tree), backend.unit_bytes());
        backend.reserve_for_pieces(&label);
        choices.journal_bytes = Some(options.journal_for(backend.shape().bytes()));
        if let Err(error) = backend.split(options.memory, tree.entry, &mut choices) {
            let needed = |memory| {
                let options = Options { memory, ..options.clone() };
                backend.memory_needed(tree.entry, &choices, &options)
            };
            return Err(sufficing(error, options.memory, needed));
        }
        let (is_raw, grows_to) = (backend.is_raw(), backend.grows_to());
        let driver_bytes = backend.driver_bytes(options.memory);
        let Backend { medium, health, .. } = backend;
        let made = (tree.entry.create)(medium, &choices).map_err(Error::from);
        let mut index = made.map_err(|error| lacking(&choices, error))?;
        if label.in_pieces {
            index = Box::new(LongValues::above(index, below));
        }
        // What was made is there even if nothing is ever put in; without durability only then.
        index.close()?;
        let about = About {
            tree: tree.entry.name,
            page_bytes,
            unit_bytes,
            shape,
            label,
            driver_bytes,
            memory: options.memory,
            health,
            is_raw,
            grows_to,
            sharing: options.sharing,
        };
        Ok(Standing { index, about })
    }

    /// Opens the database that is here.
    pub(crate) fn open(self, options: &OpenOptions) -> Result<Standing<'d>> {
        let mut backend = self.with_layer(options.ftl.as_deref())?.with_health()?;
        let found = backend.describe()?;
        let label = Label::decode(&found.label)?;
        backend.reserve_for_pieces(&label);
        // On raw flash nodes follow from the chip's pages and the tree's own record.
        let page_bytes = (!backend.is_raw()).then_some(found.page_bytes);
        let tree = TreeChoice::of(&found.tree, page_bytes, &label)?;
        let mut choices = IndexOptions::new(found.shape, 0, tree.settings);
        choices.durability = Some(found.durability);
        choices.journal_through = matches!(backend.driver, Driver::File { .. });
        choices.journal_bytes = found.journal_bytes;
        choices.made = Some(found.root);
        if let Err(error) = backend.split(options.memory, tree.entry, &mut choices) {
            let needed = |limit| backend.memory_to_open(tree.entry, &choices, limit);
            return Err(sufficing(error, options.memory, needed));
        }
        choices.durability = options.durability.or(choices.durability);
        let (is_raw, unit_bytes) = (backend.is_raw(), backend.unit_bytes());
        let (grows_to, driver_bytes) = (backend.grows_to(), backend.driver_bytes(options.memory));
        let Backend { medium, health, .. } = backend;
        let mut index = open_tree(medium, tree.entry, &choices, (options.memory, driver_bytes))?;
        let (made, wanted) = (index.recovery().durability, options.durability);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != made) {
            return Err(Error::Index(store::Error::Durability { made, wanted }.into()));
        }
        let mut shape = found.shape;
        if label.in_pieces {
            shape = LongValues::shape_above(shape);
            index = Box::new(LongValues::open(index, found.shape)?);
        }
        let about = About {
            tree: tree.entry.name,
            page_bytes: found.page_bytes,
            unit_bytes,
            shape,
            label,
            driver_bytes,
            memory: options.memory,
            health,
            is_raw,
            grows_to,
            sharing: options.sharing,
        };
        Ok(Standing { index, about })
    }

    /// Memory that a database with `options` takes: tables may grow with a file, and a file with
    /// the memory.
    fn memory_needed(
        &self,
        tree: &TreeDescriptor,
        choices: &IndexOptions,
        options: &Options,
    ) -> Result<u64> {
        let mut device = self.shape();
        if self.driver == (Driver::File { is_new: true }) && options.capacity.is_none() {
            let sectors = options.checked_capacity()? / u64::from(SECTOR_BYTES);
            device = device.with_units(sectors)?;
        }
        Ok(self.least(&(tree.footprint)(choices, device)?, options.memory))
    }

    /// Memory that what is here takes inside `limit`. Tables that grow with the entries may have
    /// grown: how far, opening tells.
    fn memory_to_open(
        &mut self,
        tree: &TreeDescriptor,
        choices: &IndexOptions,
        limit: MemoryLimit,
    ) -> Result<u64> {
        let mut choices = choices.clone();
        let mut opened = self.split(limit, tree, &mut choices);
        if opened.is_ok() && tree.tables_grow() && choices.memory_bytes <= MEMORY_MOST {
            let driver_bytes = self.driver_bytes(limit);
            let medium: Medium<'_> = match &mut self.medium {
                Medium::Nand(chip) => Medium::Nand(Box::new(&mut **chip)),
                Medium::Sectors(disk) => Medium::Sectors(Box::new(&mut **disk)),
            };
            opened = open_tree(medium, tree, &choices, (limit, driver_bytes)).map(drop);
        }
        match opened {
            Err(Error::LittleMemory { need, .. }) => Ok(need),
            other => other.map(|()| 0),
        }
    }

    /// The tree of `options`.
    ///
    /// # Errors
    /// It does not exist, or can't stand here as the options say.
    fn choose(&self, options: &Options) -> Result<TreeChoice> {
        let on_chip = self.is_raw();
        let spec = options.tree_spec(on_chip);
        let tree = TreeChoice::read(spec, None, options.fill_percent)?;
        if !on_chip && options.ftl.is_some() {
            let what = "a translation layer belongs on a chip, and this is a disk".to_owned();
            return Err(Error::Misplaced { option: "ftl", what });
        }
        let needs_layer = self.needs_layer(&tree, options);
        if on_chip && needs_layer && !tree.entry.sectors {
            let tree = tree.entry.name;
            let what = format!("{tree} owns the chip and stands on no translation layer");
            return Err(Error::Misplaced { option: "ftl", what });
        }
        match (&self.medium, options.page_bytes) {
            (Medium::Nand(chip), Some(asked)) if !needs_layer => {
                let page = chip.geometry().page_bytes();
                if asked != page {
                    let what = format!("on raw flash pages are the chip's, of {page} bytes");
                    return Err(Error::Misplaced { option: "page bytes", what });
                }
                Ok(tree)
            }
            (_, None) => Ok(tree),
            // A chip's sectors are its pages: they decide, if nothing else does.
            (_, asked) => TreeChoice::read(spec, asked, options.fill_percent),
        }
    }

    /// True if a translation layer comes between a chip and the tree.
    fn needs_layer(&self, tree: &TreeChoice, options: &Options) -> bool {
        self.is_raw() && (!tree.entry.nand || tree.over_ftl || options.ftl.is_some())
    }

    /// What the device is like.
    fn shape(&self) -> MediumShape {
        match &self.medium {
            Medium::Sectors(disk) => MediumShape::Sectors(disk.geometry()),
            Medium::Nand(chip) => MediumShape::Nand(chip.geometry()),
        }
    }

    /// Bytes in a page of a tree that is to be made: its node, or a page of the device.
    fn page_bytes(&self, tree: &TreeChoice) -> u32 {
        let node = tree.settings.number("node").map(u32::try_from);
        node.and_then(std::result::Result::ok).unwrap_or_else(|| self.unit_bytes())
    }

    /// Bytes in a page, or a sector, of the device.
    fn unit_bytes(&self) -> u32 {
        match &self.medium {
            Medium::Sectors(disk) => disk.geometry().sector_bytes(),
            Medium::Nand(chip) => chip.geometry().page_bytes(),
        }
    }

    const fn is_raw(&self) -> bool {
        matches!(self.medium, Medium::Nand(_))
    }

    /// A raw chip tells how it is, as one under a translation layer does.
    fn with_health(mut self) -> Result<Self> {
        if let Medium::Nand(chip) = &mut self.medium {
            self.health = Some(SharedHealth::of(&mut **chip)?);
        }
        Ok(self)
    }

    /// How many bytes a file can grow to that grows.
    fn grows_to(&self) -> Option<u64> {
        match &self.medium {
            Medium::Sectors(disk) => disk.sectors_held().map(|_| disk.geometry().bytes()),
            Medium::Nand(_) => None,
        }
    }

    /// Memory for long values in pieces comes out of the budget, too.
    fn reserve_for_pieces(&mut self, label: &Label) {
        if label.in_pieces {
            self.layer_bytes += LongValues::memory_bytes(self.unit_bytes());
        }
    }

    /// True if an index stands here that has a label, as those of databases have.
    pub(crate) fn has_label(self) -> Result<bool> {
        Ok(!self.with_layer(None)?.describe()?.label.is_empty())
    }

    fn describe(&mut self) -> Result<Description> {
        match &mut self.medium {
            Medium::Sectors(disk) => Ok(index::describe(&mut **disk)?),
            Medium::Nand(chip) => Ok(index::describe_chip(&mut **chip)?),
        }
    }

    /// Puts the translation layer that a chip has between it and the tree.
    fn with_layer(mut self, spec: Option<&str>) -> Result<Self> {
        let Medium::Nand(chip) = &mut self.medium else {
            return Ok(self);
        };
        let layer = match spec {
            Some(spec) => LayerChoice::read(spec)?,
            // Making a layer erases the whole chip, making a tree on raw flash does not: so where
            // there is a tree, a layer is what it replaced.
            None if is_raw(&mut **chip)? => return Ok(self),
            None => match find_layer(&mut **chip)? {
                Some(layer) => layer,
                // It says what is missing.
                None => return Ok(self),
            },
        };
        self.over(layer.entry.open, &layer)
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

    /// Divides the memory: caches and buffers get what driver, mapping and tables leave. Tables
    /// that grow may take a part of what is beyond the least.
    fn split(
        &self,
        limit: MemoryLimit,
        tree: &TreeDescriptor,
        choices: &mut IndexOptions,
    ) -> Result<()> {
        let footprint = (tree.footprint)(choices, self.shape())?;
        let need = self.least(&footprint, limit);
        let (MemoryLimit::Total(have) | MemoryLimit::CachesAndBuffers(have)) = limit;
        let Some(rest) = have.checked_sub(need) else {
            return Err(Error::LittleMemory { have, need });
        };
        let is_total = matches!(limit, MemoryLimit::Total(_));
        let part = if is_total { (tree.tables_part)(self.is_raw()) } else { 0 };
        let growth = rest.checked_div(part).unwrap_or(0);
        choices.memory_bytes = footprint.memory_least + rest - growth;
        store::check_memory(choices.memory_bytes).map_err(index::Error::from)?;
        choices.tables_bytes = is_total.then_some(footprint.tables + growth);
        Ok(())
    }

    /// Bytes of memory that such an index takes at the least, of what `limit` bounds.
    fn least(&self, footprint: &Footprint, limit: MemoryLimit) -> u64 {
        let beside = self.driver_bytes(limit) + self.layer_bytes + footprint.tables;
        match limit {
            MemoryLimit::CachesAndBuffers(_) => footprint.memory_least,
            MemoryLimit::Total(_) => footprint.memory_least + beside,
        }
    }

    /// Bytes of memory that the driver takes inside `limit`, and a range beside the tree.
    fn driver_bytes(&self, limit: MemoryLimit) -> u64 {
        let driver = match (self.driver, &self.medium) {
            (Driver::Fixed(bytes), _) => bytes,
            (_, Medium::Sectors(disk)) => driver::bytes_of_file(limit, disk.geometry().alignment()),
            (_, Medium::Nand(_)) => 0,
        };
        driver + limit.bytes_ahead_reserved()
    }
}

/// The label of a database that is made.
fn label(options: &Options, tree: &TreeChoice, in_pieces: bool) -> Label {
    Label {
        fill_percent: tree.fill_percent,
        key: options.key.clone().unwrap_or_default(),
        value: options.value.clone().unwrap_or_default(),
        settings: tree.packed(),
        in_pieces,
        keyspaces: options.keyspaces,
    }
}

/// The identity that was chosen, or one that is drawn: two databases with the same could take each
/// other's pages for their own.
fn identity(
    chosen: Option<u64>,
    draw: impl FnOnce() -> std::result::Result<u64, getrandom::Error>,
) -> Result<u64> {
    chosen.map_or_else(|| draw().map_err(Error::NoRandomNumber), Ok)
}

/// Opens a tree inside `limit`, of which the driver takes `driver_bytes`.
fn open_tree<'d>(
    medium: Medium<'d>,
    tree: &TreeDescriptor,
    choices: &IndexOptions,
    (limit, driver_bytes): (MemoryLimit, u64),
) -> Result<Box<dyn Index + 'd>> {
    use store::Error::LittleTables;
    // What is given more is divided: where tables grow, they get as much.
    let times = (tree.tables_part)(matches!(medium, Medium::Nand(_))).max(1);
    let in_all = |error| match (error, limit) {
        (
            Error::LittleMemory { have, need }
            | Error::Index(index::Error::Store(LittleTables { have, need })),
            MemoryLimit::Total(total),
        ) => {
            let more = need.saturating_sub(have).saturating_mul(times);
            Error::LittleMemory { have: total, need: total.saturating_add(more) }
        }
        (other, _) => other,
    };
    let index = (tree.open)(medium, choices).map_err(|error| in_all(error.into()))?;
    let memory = index.statistics().memory;
    let need = memory.cache + memory.buffers + memory.tables + memory.ftl + driver_bytes;
    match limit {
        MemoryLimit::Total(have) if have < need => Err(in_all(Error::LittleMemory { have, need })),
        _ => Ok(index),
    }
}

/// True if a tree stands on the raw flash of `chip`, damaged or not. Nothing is changed.
fn is_raw(chip: &mut dyn Nand) -> Result<bool> {
    match index::describe_chip(chip) {
        Ok(_) => Ok(true),
        Err(index::Error::Store(store::Error::NotAnIndex { is_ours: false, .. })) => Ok(false),
        Err(error) => Err(error.into()),
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
        device::Error::NotFormatted { .. } => Error::NotADatabase {
            path: None,
            is_ours: false,
            what: format!("on its chip: {error}"),
        },
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::identity;
    use crate::Error;

    #[test]
    fn without_a_random_number_no_identity_is_made_up() {
        let none = || Err(getrandom::Error::UNSUPPORTED);
        assert!(matches!(identity(None, none), Err(Error::NoRandomNumber(_))));
        assert_eq!(identity(Some(7), none).unwrap(), 7);
        assert_eq!(identity(None, || Ok(9)).unwrap(), 9);
    }
}
