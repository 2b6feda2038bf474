//! The front of a disk: what a page file takes that has something behind it.
//!
//! Such a page file has a fixed length, a power of two of sectors. What is behind is read and
//! written through it, so that a failure of either stops both.

use alloc::boxed::Box;

use device::{Cause, DiskCosts, Meter, Request, Result, Sector, SectorGeometry, Sectors};

/// A disk of which the first sectors alone are shown.
pub(super) struct Front<'d> {
    disk: Box<dyn Sectors + 'd>,
    geometry: SectorGeometry,
}

/// The first two to the power of `front` sectors of `disk`.
pub(super) fn front_of(disk: SectorGeometry, front: u8) -> crate::Result<SectorGeometry> {
    let sectors = 1u64.checked_shl(front.into()).unwrap_or(u64::MAX);
    if sectors > disk.sectors() {
        return Err(device::Error::TooSmall { have: disk.sectors(), need: sectors }.into());
    }
    let front = SectorGeometry::new(disk.sector_bytes(), sectors)?;
    Ok(front.with_alignment(disk.alignment())?)
}

impl<'d> Front<'d> {
    /// The first two to the power of `front` sectors of `disk`.
    pub(super) fn new(disk: Box<dyn Sectors + 'd>, front: u8) -> crate::Result<Self> {
        Ok(Front { geometry: front_of(disk.geometry(), front)?, disk })
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

    fn costs(&self) -> Option<DiskCosts> {
        self.disk.costs()
    }
}
