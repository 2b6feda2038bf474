//! What a database stands on: a device, perhaps a translation layer, and the memory left for the
//! tree.

use device::{Medium, Nand, Sectors};
use index::registry::{Description, Entry, MediumShape, Options as IndexOptions};
use index::{EntryShape, Index};

use crate::error::WRITE_REFUSED;
use crate::health::{SharedHealth, Watched};
use crate::label::Label;
use crate::long_values::{LongValues, shape_below};
use crate::options::MemoryLimit;
use crate::read_only::ReadOnly;
use crate::spec::{LayerChoice, TreeChoice};
use crate::stand_in::StandIn;
use crate::trial::{Follows, Trial};
use crate::{Error, OpenOptions, Options, Result};

/// The most openings that look for the memory that suffices, and the most memory that they take.
const TRIES: u32 = 16;
const MEMORY_MOST: u64 = 256 << 20;

/// A device for a tree.
pub(crate) struct Ground<'d> {
    medium: Medium<'d>,
    /// Bytes of memory that the device's driver takes.
    driver_bytes: u64,
    /// Bytes of memory that a translation layer's mapping takes, or what keeps long values.
    layer_bytes: u64,
    /// What follows from the options when a database is made.
    follows: Follows,
    pub(crate) health: Option<SharedHealth>,
}

/// An index that was made or opened, with what the database keeps of it.
pub(crate) struct Standing<'d> {
    pub(crate) index: Box<dyn Index + 'd>,
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
}

impl<'d> Ground<'d> {
    /// A device whose driver takes `driver_bytes` bytes of memory.
    pub(crate) const fn new(medium: Medium<'d>, driver_bytes: u64) -> Self {
        let follows = Follows::Nothing;
        Ground { medium, driver_bytes, layer_bytes: 0, follows, health: None }
    }

    /// The same device, of which so much follows from the options.
    pub(crate) const fn following(mut self, follows: Follows) -> Self {
        self.follows = follows;
        self
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
        let (driver_bytes, follows) = (self.driver_bytes, self.follows);
        let trial = Trial { shape: self.shape(), driver_bytes, follows };
        self.make(options).map_err(|error| trial.sufficing(options, error))
    }

    /// Makes a database with `options`, or tells what is the first thing that lacks.
    pub(crate) fn make(self, options: &Options) -> Result<Standing<'d>> {
        let mut tree = self.choose(options)?;
        tree.take(&options.settings)?;
        let (shape, needs_layer) = (options.entry_shape(), self.needs_layer(&tree, options));
        // On raw flash nothing keeps values that are longer than a node.
        let below = shape_below(shape).filter(|_| self.is_raw() && !needs_layer);
        let label = Label {
            fill_percent: tree.fill_percent,
            key: options.key.clone().unwrap_or_default(),
            value: options.value.clone().unwrap_or_default(),
            settings: tree.packed(),
            in_pieces: below.is_some(),
        };
        let mut ground = self;
        if needs_layer {
            let layer =
                options.ftl.as_deref().map_or_else(LayerChoice::usual, LayerChoice::read)?;
            ground = ground.over(layer.entry.create, &layer)?;
        }
        ground = ground.with_health()?;
        let (page_bytes, unit_bytes) = (ground.page_bytes(&tree), ground.unit_bytes());
        ground.reserve_for_pieces(&label);
        let below = below.unwrap_or(shape);
        let mut choices = IndexOptions::new(below, 0, tree.settings);
        choices.durability = Some(options.durability);
        let bytes = ground.bytes();
        choices.journal_bytes = Some(options.journal_for(bytes));
        choices.label = label.encode()?;
        choices.identity = identity(options.identity, getrandom::u64)?;
        ground.split(options.memory, tree.entry, &mut choices)?;
        let (is_raw, grows_to) = (ground.is_raw(), ground.grows_to());
        let Ground { medium, driver_bytes, health, .. } = ground;
        let made = (tree.entry.create)(medium, &choices).map_err(Error::from);
        let mut index = made.map_err(in_all(options.memory, tree.entry.tables_grow))?;
        if label.in_pieces {
            index = Box::new(LongValues::above(index, below));
        }
        check_total(&*index, driver_bytes, options.memory)?;
        // What was made is there even if nothing is ever put in; without durability only then.
        index.close()?;
        Ok(Standing {
            index,
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
        })
    }

    /// Opens the database that is here.
    pub(crate) fn open(self, options: &OpenOptions) -> Result<Standing<'d>> {
        let mut ground = self.with_layer(options.ftl.as_deref())?.with_health()?;
        let found = ground.describe()?;
        let label = Label::decode(&found.label)?;
        ground.reserve_for_pieces(&label);
        // On raw flash nodes follow from the chip's pages and the tree's own record.
        let page_bytes = (!ground.is_raw()).then_some(found.page_bytes);
        let tree = TreeChoice::of(&found.tree, page_bytes, &label)?;
        let mut choices = IndexOptions::new(found.shape, 0, tree.settings);
        choices.durability = Some(found.durability);
        choices.journal_bytes = found.journal_bytes;
        choices.made = Some(found.root);
        if let Err(error) = ground.split(options.memory, tree.entry, &mut choices) {
            return Err(ground.sufficing_now(tree.entry, &choices, error));
        }
        choices.durability = options.durability.or(choices.durability);
        let (is_raw, unit_bytes) = (ground.is_raw(), ground.unit_bytes());
        let grows_to = ground.grows_to();
        let Ground { medium, driver_bytes, health, .. } = ground;
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
        Ok(Standing {
            index,
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
        })
    }

    /// The refusal `error` of memory that is too little for the tree that is here, with what
    /// suffices now. Tables that grow with the entries may have grown: how far, opening tells.
    fn sufficing_now(mut self, tree: &Entry, choices: &IndexOptions, error: Error) -> Error {
        let Error::LittleMemory { have, mut need } = error else {
            return error;
        };
        for _ in 0..TRIES {
            if !tree.tables_grow || need > MEMORY_MOST {
                break;
            }
            let limit = MemoryLimit::Total(need);
            let mut choices = choices.clone();
            let opened = self.split(limit, tree, &mut choices).and_then(|()| {
                let medium: Medium<'_> = match &mut self.medium {
                    Medium::Nand(chip) => Medium::Nand(Box::new(&mut **chip)),
                    Medium::Sectors(disk) => Medium::Sectors(Box::new(&mut **disk)),
                };
                open_tree(medium, tree, &choices, (limit, self.driver_bytes))
            });
            match opened {
                Err(Error::LittleMemory { need: more, .. }) if more > need => need = more,
                _ => break,
            }
        }
        Error::LittleMemory { have, need }
    }

    /// The tree of `options`.
    ///
    /// # Errors
    /// It does not exist, or can't stand here as the options say.
    fn choose(&self, options: &Options) -> Result<TreeChoice> {
        let tree = TreeChoice::read(&options.tree, None, options.fill_percent)?;
        let on_chip = self.is_raw();
        if !on_chip && options.ftl.is_some() {
            let what = "a translation layer belongs on a chip, and this is a disk".to_owned();
            return Err(Error::BadOption { option: "ftl", what });
        }
        let needs_layer = self.needs_layer(&tree, options);
        if on_chip && needs_layer && !tree.entry.sectors {
            let what = format!(
                "{} owns the chip itself and stands on no translation layer: leave it away",
                tree.entry.name
            );
            return Err(Error::BadOption { option: "ftl", what });
        }
        match (&self.medium, options.page_bytes) {
            (Medium::Nand(chip), Some(asked)) if !needs_layer => {
                let page = chip.geometry().page_bytes();
                if asked != page {
                    let what = format!(
                        "on raw flash pages are the chip's, of {page} bytes: leave it away, or \
                         choose a chip with other pages{}",
                        if tree.entry.sectors { ", or over=ftl" } else { "" }
                    );
                    return Err(Error::BadOption { option: "page bytes", what });
                }
                Ok(tree)
            }
            (_, None) => Ok(tree),
            // A chip's sectors are its pages: they decide, if nothing else does.
            (_, asked) => TreeChoice::read(&options.tree, asked, options.fill_percent),
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

    /// Bytes of the device.
    fn bytes(&self) -> u64 {
        match &self.medium {
            Medium::Sectors(disk) => disk.geometry().bytes(),
            Medium::Nand(chip) => chip.geometry().bytes(),
        }
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
            Medium::Sectors(disk) => Ok(index::registry::describe(&mut **disk)?),
            Medium::Nand(chip) => Ok(index::registry::describe_chip(&mut **chip)?),
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
    /// that grow may take half of what is beyond the least.
    fn split(&self, limit: MemoryLimit, tree: &Entry, choices: &mut IndexOptions) -> Result<()> {
        let shape = self.shape();
        let least = (tree.least_memory)(choices, shape)?;
        let (tables, have) = match limit {
            MemoryLimit::CachesAndBuffers(bytes) => (None, bytes),
            MemoryLimit::Total(total) => (Some(tables(tree, choices, shape, least)?), total),
        };
        let beside = tables.map_or(0, |bytes| self.driver_bytes + self.layer_bytes + bytes);
        let need = least + beside;
        let Some(rest) = have.checked_sub(need) else {
            return Err(Error::LittleMemory { have, need });
        };
        let growth = if tree.tables_grow && tables.is_some() { rest / 2 } else { 0 };
        choices.memory_bytes = least + rest - growth;
        choices.tables_bytes = tables.map(|bytes| bytes + growth);
        Ok(())
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
    tree: &Entry,
    choices: &IndexOptions,
    (limit, driver_bytes): (MemoryLimit, u64),
) -> Result<Box<dyn Index + 'd>> {
    let of_all = in_all(limit, tree.tables_grow);
    let index = (tree.open)(medium, choices).map_err(|error| of_all(error.into()))?;
    check_total(&*index, driver_bytes, limit).map_err(|error| match (error, limit) {
        // What is given more is divided.
        (Error::LittleMemory { need, .. }, MemoryLimit::Total(have)) => {
            of_all(Error::LittleMemory { have, need })
        }
        (other, _) => other,
    })?;
    Ok(index)
}

/// What caches and buffers lack is lacking in all, too; where tables grow, they get as much.
fn in_all(limit: MemoryLimit, tables_grow: bool) -> impl Fn(Error) -> Error {
    use store::Error::LittleTables;
    move |error| match (error, limit) {
        (
            Error::LittleMemory { have, need }
            | Error::Index(index::Error::Store(LittleTables { have, need })),
            MemoryLimit::Total(total),
        ) => {
            let more = need.saturating_sub(have).saturating_mul(if tables_grow { 2 } else { 1 });
            Error::LittleMemory { have: total, need: total.saturating_add(more) }
        }
        (other, _) => other,
    }
}

/// Bytes of memory that the tables of a tree on such a device take.
fn tables(tree: &Entry, choices: &IndexOptions, shape: MediumShape, least: u64) -> Result<u64> {
    // Without a journal there is the most room for pages: so the figure is the same for a database
    // that is made and for one that is opened, whose journal is not known yet.
    let mut choices =
        IndexOptions { memory_bytes: least, journal_bytes: Some(0), ..choices.clone() };
    choices.tables_bytes = tree.tables_grow.then_some(0);
    choices.is_stand_in = true;
    let medium: Medium<'_> = match shape {
        MediumShape::Sectors(geometry) => Medium::Sectors(Box::new(StandIn(geometry))),
        MediumShape::Nand(geometry) => Medium::Nand(Box::new(StandIn(geometry))),
    };
    let mut made = (tree.create)(medium, &choices)?;
    let tables = made.statistics().memory.tables;
    if !tree.tables_grow {
        return Ok(tables);
    }
    // Those that grow do so with the first entry, for which there has to be room.
    let short = index::registry::tables_short_of(&mut *made, choices.shape);
    Ok(short.map_or(tables, |(_, need)| need.max(tables)))
}

/// Refuses an index that takes more memory than it may.
fn check_total(index: &dyn Index, driver_bytes: u64, limit: MemoryLimit) -> Result<()> {
    let memory = index.statistics().memory;
    let need = memory.cache + memory.buffers + memory.tables + memory.ftl + driver_bytes;
    match limit {
        MemoryLimit::Total(have) if have < need => Err(Error::LittleMemory { have, need }),
        _ => Ok(()),
    }
}

/// True if a tree stands on the raw flash of `chip`, damaged or not. Nothing is changed.
fn is_raw(chip: &mut dyn Nand) -> Result<bool> {
    match index::registry::describe_chip(chip) {
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
