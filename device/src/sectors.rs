//! A disk.

use alloc::boxed::Box;

use crate::{Cause, DiskCosts, Meter, Result, Sector, SectorGeometry};

/// One run of bytes to read: `into.len()` bytes from byte `offset` of sector `first` on, which may
/// go over several sectors.
#[derive(Debug)]
pub struct Request<'b> {
    /// The sector that `offset` counts from.
    pub first: Sector,
    /// The first byte wanted, counted from the start of `first`.
    pub offset: u32,
    /// Where the bytes go.
    pub into: &'b mut [u8],
}

/// A disk: sectors that are rewritten in place.
///
/// # The contract
///
/// - A sector that was never written reads as zeros.
/// - [`write`](Sectors::write) replaces whole sectors. The write of one sector is atomic on disks
///   made by our translation layers; on others a torn sector holds anything.
/// - Writes are **durable and ordered only by [`flush`](Sectors::flush)**. After a power cut each
///   sector holds what it held at the last flush, or something written to it after that.
/// - A write or a trim that **failed** may have changed any of its sectors. After a flush that
///   failed, nothing written since the last good one can be trusted: each such sector may read as
///   it was then, also after a later flush that succeeds. Who writes here must not read on: it
///   opens the disk again, which finds what the last good flush left.
/// - A write that was flushed is there, and nowhere else. Who stands on the disk tells most of what
///   breaks this, but not all at once: a page that is overwritten in place has a good checksum
///   even where it is an older one.
/// - [`trim`](Sectors::trim) says that a sector's content is not needed. What it reads as after
///   that is anything it ever held, or zeros, until it is written again; and the same each time, as
///   long as nothing at all is written.
/// - A [`read`](Sectors::read) of several requests may serve them in any order and all at once.
pub trait Sectors: Send {
    /// The shape of the disk.
    fn geometry(&self) -> SectorGeometry;

    /// Serves every request of `requests`.
    ///
    /// # Errors
    /// Bytes that are not on the disk (nothing was read), or a failure of the medium.
    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()>;

    /// Writes the whole sectors in `from`, the first of them to `first`.
    ///
    /// # Errors
    /// No whole sectors or not on the disk (nothing changed); no room; a failure of the medium.
    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()>;

    /// Tells the disk that the content of `count` sectors from `first` on is not needed.
    ///
    /// # Errors
    /// Sectors that are not on the disk, or a failure of the medium.
    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()>;

    /// Makes every write before it durable.
    ///
    /// # Errors
    /// A failure of the medium.
    fn flush(&mut self, cause: Cause) -> Result<()>;

    /// Sectors, from the first on, that there is room for now, if the disk grows. Those behind can
    /// be read and written once [`resize`](Sectors::resize) got room for them. `None` for a disk of
    /// a fixed size, which has room for all of its sectors.
    fn sectors_held(&self) -> Option<u64> {
        None
    }

    /// Makes room for the first `sectors` sectors, and no more, on a disk that grows.
    ///
    /// # Errors
    /// There is no room (nothing changed), or these are more than the disk can have.
    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        let _ = (sectors, cause);
        Ok(())
    }

    /// Bytes of memory that the disk's own tables take (a translation layer's mapping).
    fn table_bytes(&self) -> u64 {
        0
    }

    /// The meter of the device below, if it has one.
    fn meter(&self) -> Option<&Meter> {
        None
    }

    /// What the disk's operations cost, if it is known. Trees weigh reads against writes by it.
    fn costs(&self) -> Option<DiskCosts> {
        None
    }
}

macro_rules! forward_sectors {
    ($wrapper:ty) => {
        impl<S: Sectors + ?Sized> Sectors for $wrapper {
            fn geometry(&self) -> SectorGeometry {
                (**self).geometry()
            }

            fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
                (**self).read(requests, cause)
            }

            fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
                (**self).write(first, from, cause)
            }

            fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
                (**self).trim(first, count, cause)
            }

            fn flush(&mut self, cause: Cause) -> Result<()> {
                (**self).flush(cause)
            }

            fn sectors_held(&self) -> Option<u64> {
                (**self).sectors_held()
            }

            fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
                (**self).resize(sectors, cause)
            }

            fn table_bytes(&self) -> u64 {
                (**self).table_bytes()
            }

            fn meter(&self) -> Option<&Meter> {
                (**self).meter()
            }

            fn costs(&self) -> Option<DiskCosts> {
                (**self).costs()
            }
        }
    };
}

forward_sectors!(&mut S);
forward_sectors!(Box<S>);
