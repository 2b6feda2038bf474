//! A disk of any size that holds nothing: on it a tree is made to learn how much memory its tables
//! take.

use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};

/// A disk of zeros that forgets what is written to it.
pub(crate) struct StandIn(pub(crate) SectorGeometry);

impl Sectors for StandIn {
    fn geometry(&self) -> SectorGeometry {
        self.0
    }

    fn read(&mut self, requests: &mut [Request<'_>], _: Cause) -> Result<()> {
        for request in requests {
            self.0.check_bytes(request.first, request.offset, request.into.len())?;
            request.into.fill(0);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _: Cause) -> Result<()> {
        self.0.check_run(first, from.len())
    }

    fn trim(&mut self, _: Sector, _: u64, _: Cause) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self, _: Cause) -> Result<()> {
        Ok(())
    }
}
