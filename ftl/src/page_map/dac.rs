//! DAC: page mapping whose frontiers are regions; see `placement`.

use device::{Cause, DiskCosts, Meter, Nand, Request, Result, Sector, SectorGeometry, Sectors};

use super::PageMap;
use super::placement::Kind;
use crate::{Layer, Options, Statistics};

/// A disk out of a raw NAND chip, by page mapping that clusters sectors by how often they are
/// updated (Chiang, Lee, Chang: "Using data clustering to improve cleaning performance for flash
/// memory", 1999).
pub struct Dac<N>(PageMap<N>);

impl<N: Nand> Dac<N> {
    /// Makes an empty disk on `nand`, as [`PageMap::format`] does.
    ///
    /// # Errors
    /// The chip is too small, or it failed.
    pub fn format(nand: N, options: Options) -> Result<Self> {
        PageMap::format_kind(nand, Kind::Dac, &options).map(Dac)
    }

    /// Opens the disk on `nand`, as [`PageMap::open`] does. It has no more regions than it was
    /// made with. All sectors are in the coldest region then.
    ///
    /// # Errors
    /// [`NotFormatted`](device::Error::NotFormatted) if the chip holds no disk of this layer and
    /// version, or the chip failed.
    pub fn open(nand: N, options: Options) -> Result<Self> {
        PageMap::open_kind(nand, Kind::Dac, &options).map(Dac)
    }

    /// What the disk did since it was made or opened.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        self.0.statistics()
    }

    /// The chip, whose content is the disk; what was not flushed may be lost.
    #[must_use]
    pub fn into_nand(self) -> N {
        self.0.into_nand()
    }

    /// The chip.
    #[must_use]
    pub const fn nand(&self) -> &N {
        self.0.nand()
    }
}

impl<N: Nand> Layer for Dac<N> {
    fn statistics(&self) -> &Statistics {
        self.0.statistics()
    }
}

impl<N: Nand> Sectors for Dac<N> {
    fn geometry(&self) -> SectorGeometry {
        Sectors::geometry(&self.0)
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.0.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.0.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.0.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.0.flush(cause)
    }

    fn table_bytes(&self) -> u64 {
        self.0.table_bytes()
    }

    fn meter(&self) -> Option<&Meter> {
        self.0.meter()
    }

    fn costs(&self) -> Option<DiskCosts> {
        self.0.costs()
    }
}
