//! A disk in memory: the simplest device that keeps the contract of [`Sectors`].

use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};

/// A disk in memory.
#[derive(Clone)]
pub struct RamDisk {
    geometry: SectorGeometry,
    bytes: Vec<u8>,
}

impl RamDisk {
    /// A disk of zeros.
    #[must_use]
    pub fn new(geometry: SectorGeometry) -> Self {
        RamDisk { geometry, bytes: vec![0; geometry.bytes() as usize] }
    }

    /// All its bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn start(&self, sector: Sector) -> usize {
        (sector.0 * u64::from(self.geometry.sector_bytes())) as usize
    }
}

impl Sectors for RamDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _cause: Cause) -> Result<()> {
        for request in requests {
            self.geometry.check_bytes(request.first, request.offset, request.into.len())?;
            let start = self.start(request.first) + request.offset as usize;
            request.into.copy_from_slice(&self.bytes[start..start + request.into.len()]);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _cause: Cause) -> Result<()> {
        self.geometry.check_run(first, from.len())?;
        let start = self.start(first);
        self.bytes[start..start + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        let bytes = count * u64::from(self.geometry.sector_bytes());
        self.geometry.check_bytes(first, 0, bytes as usize)?;
        // Whoever reads what it trimmed must not find what it hoped for.
        let start = self.start(first);
        self.bytes[start..start + bytes as usize].fill(0xA5);
        Ok(())
    }

    fn flush(&mut self, _cause: Cause) -> Result<()> {
        Ok(())
    }
}
