//! Devices that refuse to be changed.

use std::fs::File;
use std::os::unix::fs::FileExt;

use device::{
    Block, Cause, Error as DeviceError, Geometry, Meter, Nand, Page, Request,
    Result as DeviceResult, Sector, SectorGeometry, Sectors,
};

use crate::error::{WRITE_REFUSED, wrong_length};
use crate::{Error, Result};

/// A device on which nothing is written, erased or trimmed: that is refused.
pub(crate) struct ReadOnly<D>(pub(crate) D);

impl<D: Sectors> Sectors for ReadOnly<D> {
    fn geometry(&self) -> SectorGeometry {
        self.0.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> DeviceResult<()> {
        self.0.read(requests, cause)
    }

    fn write(&mut self, _: Sector, _: &[u8], _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn trim(&mut self, _: Sector, _: u64, _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    /// There is nothing to make durable.
    fn flush(&mut self, _: Cause) -> DeviceResult<()> {
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.0.sectors_held()
    }

    fn resize(&mut self, _: u64, _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn table_bytes(&self) -> u64 {
        self.0.table_bytes()
    }

    fn meter(&self) -> Option<&Meter> {
        self.0.meter()
    }
}

impl<D: Nand> Nand for ReadOnly<D> {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> DeviceResult<u16> {
        self.0.read(page, offset, into, spare, cause)
    }

    fn program(&mut self, _: Page, _: u32, _: &[u8], _: &[u8], _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn erase(&mut self, _: Block, _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn is_bad(&mut self, block: Block) -> DeviceResult<bool> {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, _: Block) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn meter(&self) -> Option<&Meter> {
        self.0.meter()
    }
}

/// A disk in a file that is opened for reading only, so that a file that can't be written can be
/// read, and by several at once. Its lock keeps those who write away.
pub(crate) struct FileReader {
    file: File,
    geometry: SectorGeometry,
    /// The same with the sectors that the file has.
    room: SectorGeometry,
    /// True if it can grow, though it may be as long as it can be.
    grows: bool,
}

impl FileReader {
    /// Takes the locked `file`, which has `bytes` bytes and may grow to `sectors_most` sectors.
    pub(crate) fn new(
        file: File,
        bytes: u64,
        sector_bytes: u32,
        sectors_most: Option<u64>,
    ) -> Result<Self> {
        let sectors = bytes / u64::from(sector_bytes);
        if sectors == 0 || !bytes.is_multiple_of(u64::from(sector_bytes)) {
            let what = wrong_length(bytes, sector_bytes.into());
            return Err(Error::NotADatabase { path: None, is_ours: false, what });
        }
        let geometry = SectorGeometry::new(sector_bytes, sectors_most.unwrap_or(sectors))?;
        let room = SectorGeometry::new(sector_bytes, sectors)?;
        Ok(FileReader { file, geometry, room, grows: sectors_most.is_some() })
    }
}

impl Sectors for FileReader {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _: Cause) -> DeviceResult<()> {
        for request in requests.iter() {
            self.room.check_bytes(request.first, request.offset, request.into.len())?;
        }
        let sector = u64::from(self.geometry.sector_bytes());
        for request in requests {
            let at = request.first.0 * sector + u64::from(request.offset);
            self.file.read_exact_at(request.into, at).map_err(|error| {
                // A file that was cut off under us has no code: it is an error of input, EIO.
                DeviceError::Driver { code: error.raw_os_error().unwrap_or(5) }
            })?;
        }
        Ok(())
    }

    fn write(&mut self, _: Sector, _: &[u8], _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn trim(&mut self, _: Sector, _: u64, _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }

    fn flush(&mut self, _: Cause) -> DeviceResult<()> {
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.grows.then_some(self.room.sectors())
    }

    fn resize(&mut self, _: u64, _: Cause) -> DeviceResult<()> {
        Err(WRITE_REFUSED)
    }
}
