//! The front of a disk: what a page file takes, before the pages of runs.
//!
//! The page file has a fixed length, which it finds in its superblock. What is behind can be read
//! and written through it, so that a failure of either stops both.

use alloc::boxed::Box;

use device::{Cause, DiskCosts, Meter, Request, Result, Sector, SectorGeometry, Sectors};

use crate::page_file::sectors_most;

/// A disk of which the first sectors alone are shown.
pub struct Front<'d> {
    disk: Box<dyn Sectors + 'd>,
    geometry: SectorGeometry,
}

impl<'d> Front<'d> {
    /// The first `sectors` sectors of `disk`; a disk that grows gets room for them.
    ///
    /// # Errors
    /// There are fewer, or there is no room.
    pub fn new(mut disk: Box<dyn Sectors + 'd>, sectors: u64) -> crate::Result<Self> {
        let whole = disk.geometry();
        if sectors > whole.sectors() {
            let (have, need) = (whole.sectors(), sectors);
            return Err(device::Error::TooSmall { have, need }.into());
        }
        if disk.sectors_held().is_some_and(|held| held < sectors) {
            disk.resize(sectors, Cause::Checkpoint)?;
        }
        let geometry = SectorGeometry::new(whole.sector_bytes(), sectors)?;
        Ok(Front { geometry: geometry.with_alignment(whole.alignment())?, disk })
    }

    /// The part of `disk` in which a page file stands.
    ///
    /// # Errors
    /// There is none, or the disk failed.
    pub fn find(mut disk: Box<dyn Sectors + 'd>) -> crate::Result<Self> {
        let mut sector = alloc::vec![0; disk.geometry().sector_bytes() as usize];
        let mut found = None;
        for slot in 0..2 {
            let request = Request { first: Sector(slot), offset: 0, into: &mut sector };
            disk.read(&mut [request], Cause::Recovery)?;
            found = found.or_else(|| sectors_most(&sector));
        }
        let what = "no superblock stands in its first two sectors";
        let sectors = found.ok_or(crate::Error::NotAnIndex { is_ours: false, what })?;
        match disk.sectors_held().unwrap_or(disk.geometry().sectors()) {
            held if held < sectors => {
                Err(crate::Error::OtherLength { expected: sectors, found: held })
            }
            _ => Front::new(disk, sectors),
        }
    }

    /// Sectors of the whole disk, and those that there is room for now, if it grows.
    #[must_use]
    pub fn whole(&self) -> (u64, Option<u64>) {
        (self.disk.geometry().sectors(), self.disk.sectors_held())
    }
}

impl Sectors for Front<'_> {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.disk.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.disk.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.disk.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.disk.flush(cause)
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        self.disk.resize(sectors, cause)
    }

    fn table_bytes(&self) -> u64 {
        self.disk.table_bytes()
    }

    fn meter(&self) -> Option<&Meter> {
        self.disk.meter()
    }

    fn costs(&self) -> Option<&DiskCosts> {
        self.disk.costs()
    }
}
