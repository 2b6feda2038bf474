//! How the device below is, where it knows.

use std::sync::{Arc, Mutex, PoisonError};

use device::{
    Cause, Meter, Nand, Request, Result as DeviceResult, Sector, SectorGeometry, Sectors,
};
use ftl::{Erases, Layer, Statistics};
use index::Wear;

/// The state of the chip below a database.
///
/// ```
/// # use flashtree::{Database, Geometry, Options};
/// # fn main() -> flashtree::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let chip = Geometry::new(2048, 64, 64)?.with_spare(64)?;
/// let options = Options::new().chip(chip).ftl("page-map");
/// let fruit = Database::create(folder.path().join("fruit.nand"), &options)?;
/// let health = fruit.stats()?.health.expect("a chip knows");
/// assert_eq!((health.blocks, health.bad_blocks), (64, 0));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Blocks of the chip.
    pub blocks: u32,
    /// Blocks of it that are bad.
    pub bad_blocks: u32,
    /// What the translation layer did since the database was opened, with the spread of erases; on
    /// raw flash only that, for the tree's log counts it.
    pub layer: Statistics,
}

impl Health {
    /// The same with what the log of a tree on raw flash knows.
    pub(crate) fn with_wear(mut self, wear: Option<Wear>) -> Self {
        if let Some(Wear { least, most, all: total, good_blocks: blocks, bad_blocks }) = wear {
            self.bad_blocks = bad_blocks;
            self.layer.erases = Some(Erases { least, most, total, blocks });
        }
        self
    }
}

/// A health that is kept up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedHealth(Arc<Mutex<Health>>);

impl SharedHealth {
    pub(crate) fn get(&self) -> Health {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, layer: &Statistics, bad_at_opening: u32) {
        let mut health = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        health.layer = *layer;
        let retired = u32::try_from(layer.blocks_retired).unwrap_or(u32::MAX);
        health.bad_blocks = bad_at_opening.saturating_add(retired);
    }

    /// Counts the bad blocks of a chip.
    pub(crate) fn of(chip: &mut dyn Nand) -> DeviceResult<Self> {
        let blocks = chip.geometry().blocks();
        let mut bad_blocks = 0;
        for block in 0..blocks {
            bad_blocks += u32::from(chip.is_bad(device::Block(block))?);
        }
        let health = Health { blocks, bad_blocks, ..Health::default() };
        Ok(SharedHealth(Arc::new(Mutex::new(health))))
    }
}

/// A translation layer whose statistics are told to a health after each operation.
pub(crate) struct Watched<'d> {
    layer: Box<dyn Layer + 'd>,
    health: SharedHealth,
    bad_at_opening: u32,
}

impl<'d> Watched<'d> {
    pub(crate) fn new(layer: Box<dyn Layer + 'd>, health: SharedHealth) -> Self {
        let bad_at_opening = health.get().bad_blocks;
        health.set(layer.statistics(), bad_at_opening);
        Watched { layer, health, bad_at_opening }
    }

    fn tell<T>(&self, outcome: DeviceResult<T>) -> DeviceResult<T> {
        self.health.set(self.layer.statistics(), self.bad_at_opening);
        outcome
    }
}

impl Sectors for Watched<'_> {
    fn geometry(&self) -> SectorGeometry {
        self.layer.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> DeviceResult<()> {
        let outcome = self.layer.read(requests, cause);
        self.tell(outcome)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> DeviceResult<()> {
        let outcome = self.layer.write(first, from, cause);
        self.tell(outcome)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> DeviceResult<()> {
        let outcome = self.layer.trim(first, count, cause);
        self.tell(outcome)
    }

    fn flush(&mut self, cause: Cause) -> DeviceResult<()> {
        let outcome = self.layer.flush(cause);
        self.tell(outcome)
    }

    fn table_bytes(&self) -> u64 {
        self.layer.table_bytes()
    }

    fn meter(&self) -> Option<&Meter> {
        self.layer.meter()
    }
}
