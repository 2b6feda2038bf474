//! The disk of a page file, which is left alone once it failed.
//!
//! After a failed write the sectors may hold anything, and what is in memory is all there is of a
//! page: nothing more is written, and reads go on. After a failed flush nothing can be trusted that
//! was written since the last good one: what is read may be older than what was written, with a
//! good checksum. So nothing is read either. Opening again finds what the last good flush left.

use alloc::boxed::Box;

use device::{Cause, DiskCosts, Error, Meter, Request, Result, Sector, SectorGeometry, Sectors};

/// A disk that refuses what can't be trusted after a failure.
pub(super) struct Guarded<'d> {
    disk: Box<dyn Sectors + 'd>,
    failure: Option<Error>,
}

impl<'d> Guarded<'d> {
    pub(super) fn new(disk: Box<dyn Sectors + 'd>) -> Self {
        Guarded { disk, failure: None }
    }

    /// Why nothing more is written, if that is so: [`Error::AfterFailedWrite`],
    /// [`Error::AfterFailedFlush`] or [`Error::PowerCut`].
    pub(super) const fn failure(&self) -> Option<Error> {
        self.failure
    }

    fn refuse_writes(&self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }

    /// Remembers a failure.
    fn note(&mut self, outcome: Result<()>, failure: Error) -> Result<()> {
        match outcome {
            Ok(()) => {}
            Err(Error::PowerCut) => self.failure = Some(Error::PowerCut),
            Err(_) => self.failure = Some(failure),
        }
        outcome
    }
}

impl Sectors for Guarded<'_> {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        match self.failure {
            Some(failure @ (Error::AfterFailedFlush | Error::PowerCut)) => Err(failure),
            _ => self.disk.read(requests, cause),
        }
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.refuse_writes()?;
        let written = self.disk.write(first, from, cause);
        self.note(written, Error::AfterFailedWrite)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.refuse_writes()?;
        let trimmed = self.disk.trim(first, count, cause);
        self.note(trimmed, Error::AfterFailedWrite)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.refuse_writes()?;
        let flushed = self.disk.flush(cause);
        self.note(flushed, Error::AfterFailedFlush)
    }

    fn sectors_held(&self) -> Option<u64> {
        self.disk.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        self.refuse_writes()?;
        // A refusal changes nothing: what is written next is not touched by it.
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
