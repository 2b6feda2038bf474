//! A disk: the trait, for any scheme.

use core::marker::PhantomData;

use device::{
    Cause, DiskCosts, Error, Meter, Nand, Request, Result, Sector, SectorGeometry, Sectors,
};

use super::{Core, Kind};
use crate::{Layer, Options, Statistics};

/// Where writes go.
pub trait Scheme: Send {
    /// What tells the layer from others.
    const KIND: Kind;

    /// Writes `data` to `sector`, both of which exist.
    ///
    /// # Errors
    /// No room, or the chip failed.
    fn write<N: Nand>(core: &mut Core<N>, sector: u32, data: &[u8], cause: Cause) -> Result<()>;
}

/// A disk out of a raw NAND chip on which whole blocks are mapped.
pub struct Hybrid<N, S> {
    core: Core<N>,
    scheme: PhantomData<S>,
}

impl<N: Nand, S: Scheme> Hybrid<N, S> {
    /// Makes an empty disk on `nand`; whatever the chip holds is erased. Every good block is
    /// erased once (the first one twice), under [`Cause::Recovery`].
    ///
    /// If the power is cut before this returns, the chip holds no disk, and opening it says so;
    /// unless it was cut before the second operation was done: then an old disk may be there still,
    /// without its first good block.
    ///
    /// # Errors
    /// The chip is too small, or it failed.
    pub fn format(nand: N, options: Options) -> Result<Self> {
        let core = Core::format(nand, S::KIND, &options)?;
        Ok(Hybrid { core, scheme: PhantomData })
    }

    /// Opens the disk on `nand`. Its size and its log blocks are what it was made with. Nothing is
    /// written. Of each block two pages are read, of each block of the log all spare areas (or the
    /// pages that name others).
    ///
    /// # Errors
    /// [`Error::NotFormatted`] if the chip holds no disk of this layer and version, or the chip
    /// failed.
    pub fn open(nand: N, _options: Options) -> Result<Self> {
        Ok(Hybrid { core: Core::open(nand, S::KIND)?, scheme: PhantomData })
    }

    /// What the disk did since it was made or opened.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.core.statistics
    }

    /// The chip, whose content is the disk; what was not flushed may be lost.
    #[must_use]
    pub fn into_nand(self) -> N {
        self.core.nand.into_chip()
    }

    /// The chip.
    #[must_use]
    pub const fn nand(&self) -> &N {
        self.core.nand.chip()
    }

    /// Sectors of a logical block: as many as are copied by a merge.
    #[must_use]
    pub const fn sectors_per_block(&self) -> u32 {
        self.core.shape.sectors_per_block()
    }
}

impl<N: Nand> Core<N> {
    const fn check_working(&self) -> Result<()> {
        match self.broken {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads the part of `request` that lies on one sector after the other.
    fn read_one(&mut self, request: &mut Request<'_>, cause: Cause) -> Result<()> {
        let sector_bytes = self.disk.sector_bytes() as usize;
        let skipped = request.offset as usize / sector_bytes;
        let mut sector = request.first.0 as u32 + skipped as u32;
        let mut offset = request.offset as usize % sector_bytes;
        let mut into = &mut *request.into;
        while !into.is_empty() {
            let (piece, rest) = into.split_at_mut(into.len().min(sector_bytes - offset));
            self.read_piece(sector, offset as u32, piece, cause)?;
            (into, sector, offset) = (rest, sector + 1, 0);
        }
        Ok(())
    }

    fn read_piece(
        &mut self,
        sector: u32,
        offset: u32,
        piece: &mut [u8],
        cause: Cause,
    ) -> Result<()> {
        let Some(page) = self.page_of(sector) else {
            piece.fill(0);
            return Ok(());
        };
        if !self.is_flawed(self.shape.geometry.block_of(page)) {
            return self.read(page, offset, (piece, &mut []), cause).map(|_| ());
        }
        let mut data = core::mem::take(&mut self.buffers.copy);
        let read = self.read(page, 0, (&mut data, &mut []), cause);
        let lost = read.is_ok() && self.is_lost(page, &data);
        let from = offset as usize;
        piece.copy_from_slice(&data[from..from + piece.len()]);
        self.buffers.copy = data;
        if lost { Err(Error::Uncorrectable { page }) } else { read.map(|_| ()) }
    }
}

impl<N: Nand, S: Scheme> Layer for Hybrid<N, S> {
    fn statistics(&self) -> &Statistics {
        &self.core.statistics
    }
}

impl<N: Nand, S: Scheme> Sectors for Hybrid<N, S> {
    fn geometry(&self) -> SectorGeometry {
        self.core.disk
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        for request in requests.iter() {
            self.core.disk.check_bytes(request.first, request.offset, request.into.len())?;
        }
        requests.iter_mut().try_for_each(|request| self.core.read_one(request, cause))
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.core.disk.check_run(first, from.len())?;
        self.core.check_working()?;
        let sector_bytes = self.core.disk.sector_bytes() as usize;
        for (sector, data) in (first.0 as u32..).zip(from.chunks(sector_bytes)) {
            S::write(&mut self.core, sector, data, cause)?;
            self.core.statistics.sectors_written += 1;
        }
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        let sectors = self.core.disk.sectors();
        if first.0.checked_add(count).is_none_or(|end| end > sectors) {
            return Err(Error::NoSuchSector { sector: Sector(first.0.max(sectors)), sectors });
        }
        Ok(())
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.core.check_working()?;
        self.core.flush(cause)
    }

    fn table_bytes(&self) -> u64 {
        self.core.memory()
    }

    fn meter(&self) -> Option<&Meter> {
        self.core.nand.meter()
    }

    /// Those of the chip: what collection adds depends on what is written.
    fn costs(&self) -> Option<DiskCosts> {
        self.core.nand.costs().map(DiskCosts::from)
    }
}
