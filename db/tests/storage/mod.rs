//! Shared by the tests: devices in memory whose bytes can be looked at, and a model.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

pub mod flipped;
pub mod outcomes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use device::{Cause, Request, Sector};
use flashtree::{Database, Medium, SectorGeometry, Sectors};

/// A folder of its own, and the name of a database in it.
pub fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fruit.db");
    (folder, path)
}

/// What a database should hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A disk in memory that several handles share: a copy of its bytes is what is left when a process
/// is killed.
#[derive(Clone)]
pub struct SharedDisk {
    geometry: SectorGeometry,
    pub bytes: Arc<Mutex<Vec<u8>>>,
    pub writes: Arc<Mutex<u64>>,
    /// If it grows: sectors that there is room for, and those that there could be now.
    pub held: Option<Arc<Mutex<(u64, u64)>>>,
}

impl SharedDisk {
    pub fn new(sector_bytes: u32, sectors: u64) -> Self {
        let geometry = SectorGeometry::new(sector_bytes, sectors).unwrap();
        SharedDisk::of(sector_bytes, vec![0; geometry.bytes() as usize])
    }

    pub fn of(sector_bytes: u32, bytes: Vec<u8>) -> Self {
        let sectors = bytes.len() as u64 / u64::from(sector_bytes);
        SharedDisk {
            geometry: SectorGeometry::new(sector_bytes, sectors).unwrap(),
            bytes: Arc::new(Mutex::new(bytes)),
            writes: Arc::default(),
            held: None,
        }
    }

    /// A disk of zeros that grows to so many sectors, and has two at first.
    pub fn growing(sector_bytes: u32, sectors: u64) -> Self {
        let held = Some(Arc::new(Mutex::new((2, sectors))));
        SharedDisk { held, ..SharedDisk::new(sector_bytes, sectors) }
    }

    /// Sectors that it has now.
    pub fn length(&self) -> u64 {
        self.held.as_ref().map_or(self.geometry.sectors(), |held| held.lock().unwrap().0)
    }

    /// Lets it grow to so many sectors and no more.
    pub fn leave_room(&self, sectors: u64) {
        if let Some(held) = &self.held {
            held.lock().unwrap().1 = sectors;
        }
    }

    fn check_room(&self, first: Sector, bytes: usize) {
        let end = first.0 + (bytes as u64).div_ceil(u64::from(self.geometry.sector_bytes()));
        assert!(end <= self.length(), "{first} is behind the end");
    }

    pub fn medium(&self) -> Medium<'static> {
        Medium::Sectors(Box::new(self.clone()))
    }

    /// What a process that is killed leaves, in a file that grows to so many sectors.
    pub fn killed(&self, sectors: u64) -> Self {
        let bytes = Arc::new(Mutex::new(self.bytes.lock().unwrap().clone()));
        let held = Some(Arc::new(Mutex::new((self.length(), sectors))));
        SharedDisk { bytes, held, ..SharedDisk::new(self.geometry.sector_bytes(), sectors) }
    }

    /// A disk with what this one holds now.
    pub fn copy(&self) -> Self {
        SharedDisk::of(self.geometry.sector_bytes(), self.bytes.lock().unwrap().clone())
    }

    fn start(&self, sector: Sector) -> usize {
        (sector.0 * u64::from(self.geometry.sector_bytes())) as usize
    }
}

impl Sectors for SharedDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _: Cause) -> device::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        for request in requests {
            self.geometry.check_bytes(request.first, request.offset, request.into.len())?;
            self.check_room(request.first, request.into.len());
            let start = self.start(request.first) + request.offset as usize;
            request.into.copy_from_slice(&bytes[start..start + request.into.len()]);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _: Cause) -> device::Result<()> {
        self.geometry.check_run(first, from.len())?;
        self.check_room(first, from.len());
        let start = self.start(first);
        self.bytes.lock().unwrap()[start..start + from.len()].copy_from_slice(from);
        *self.writes.lock().unwrap() += 1;
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, _: Cause) -> device::Result<()> {
        let length = count as usize * self.geometry.sector_bytes() as usize;
        let start = self.start(first);
        // Whoever reads what it trimmed must not find what it hoped for.
        self.bytes.lock().unwrap()[start..start + length].fill(0xA5);
        *self.writes.lock().unwrap() += 1;
        Ok(())
    }

    fn flush(&mut self, _: Cause) -> device::Result<()> {
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.lock().unwrap().0)
    }

    fn resize(&mut self, sectors: u64, _: Cause) -> device::Result<()> {
        if let Some(held) = &self.held {
            let mut held = held.lock().unwrap();
            if sectors > held.0.max(held.1) {
                return Err(device::Error::Driver { code: 28 });
            }
            held.0 = sectors;
        }
        Ok(())
    }
}

/// All entries of a database.
pub fn content(database: &mut Database<'_>) -> flashtree::Result<Model> {
    database.all()?.into_iter().collect()
}

/// Compares a database with the model: both directions, and no finding.
pub fn compare(database: &mut Database<'_>, model: &Model, when: &str) {
    assert_eq!(&content(database).unwrap(), model, "{when}");
    let backwards = database.all_descending().unwrap().into_iter();
    let backwards: Vec<_> = backwards.map(Result::unwrap).collect();
    let expected = model.iter().rev().map(|(key, value)| (key.clone(), value.clone()));
    assert!(backwards.into_iter().eq(expected), "{when}: backwards");
    assert_eq!(database.check().unwrap(), [""; 0], "{when}");
}
