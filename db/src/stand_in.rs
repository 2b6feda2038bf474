//! A device of any size that holds nothing: on it a tree is made to learn how much memory its
//! tables take.

use device::{
    Block, Cause, Geometry, Nand, Page, Request, Result, Sector, SectorGeometry, Sectors,
};

/// A disk of zeros, or an erased chip, that forgets what is written to it.
pub(crate) struct StandIn<G>(pub(crate) G);

impl Nand for StandIn<Geometry> {
    fn geometry(&self) -> Geometry {
        self.0
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        _: Cause,
    ) -> Result<u16> {
        self.0.check_page(page)?;
        self.0.check_bytes(offset, into.len(), spare.len())?;
        into.fill(0xFF);
        spare.fill(0xFF);
        Ok(0)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        _: Cause,
    ) -> Result<()> {
        self.0.check_page(page)?;
        self.0.check_bytes(offset, data.len(), spare.len())
    }

    fn erase(&mut self, block: Block, _: Cause) -> Result<()> {
        self.0.check_block(block)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.0.check_block(block).map(|()| false)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.0.check_block(block)
    }
}

impl Sectors for StandIn<SectorGeometry> {
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
