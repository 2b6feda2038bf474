//! Reading ahead, where sectors are read one after the other.

use device::{Cause, Meter, Request, Result, Sector, SectorGeometry, Sectors};

/// Sectors that are read at once at first; as long as all of them were wanted, the next time twice
/// as many.
const AT_FIRST: u64 = 4;

/// A disk of which reads of whole sectors are served out of a window, and anything else by the disk
/// itself. It is not to be written while it is read ahead.
pub(super) struct ReadAhead<'a> {
    disk: &'a mut dyn Sectors,
    window: &'a mut [u8],
    /// No sector from here on is read ahead.
    end: u64,
    /// The sectors in the window.
    held: core::ops::Range<u64>,
    /// How many sectors are read at once next.
    next: u64,
}

impl<'a> ReadAhead<'a> {
    /// Reads ahead up to sector `end`, through the memory of `window`.
    pub(super) fn new(disk: &'a mut dyn Sectors, window: &'a mut [u8], end: Sector) -> Self {
        let end = end.0.min(disk.geometry().sectors());
        ReadAhead { disk, window, end, held: 0..0, next: AT_FIRST }
    }

    fn sector_bytes(&self) -> usize {
        self.disk.geometry().sector_bytes() as usize
    }

    /// Fills the window with `wanted`, the sector before it and those behind it.
    fn fill(&mut self, wanted: Sector, cause: Cause) -> Result<()> {
        let first = Sector(wanted.0.saturating_sub(1));
        let most = (self.window.len() / self.sector_bytes()) as u64;
        let count = self.next.min(most).min(self.end.saturating_sub(first.0));
        let bytes = count as usize * self.sector_bytes();
        self.held = 0..0;
        let into = self.window.get_mut(..bytes).unwrap_or_default();
        if !into.is_empty() && wanted.0 < self.end {
            self.disk.read(&mut [Request { first, offset: 0, into }], cause)?;
            self.held = first.0..first.0 + count;
            self.next = self.next.saturating_mul(2);
        }
        Ok(())
    }

    /// What the window holds of `request`, which asks for one sector.
    fn find(&mut self, request: &Request<'_>, cause: Cause) -> Option<&[u8]> {
        let sector_bytes = self.sector_bytes();
        if request.offset != 0 || request.into.len() != sector_bytes {
            return None;
        }
        // What can't be read together may be readable alone.
        if !self.held.contains(&request.first.0) && self.fill(request.first, cause).is_err() {
            return None;
        }
        let place = request.first.0.checked_sub(self.held.start)?;
        let start = place as usize * sector_bytes;
        // Sectors from the end on never are.
        let is_held = self.held.contains(&request.first.0);
        self.window.get(start..start + sector_bytes).filter(|_| is_held)
    }
}

impl Sectors for ReadAhead<'_> {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        if let [request] = requests
            && let Some(found) = self.find(request, cause)
        {
            request.into.copy_from_slice(found);
            return Ok(());
        }
        self.disk.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.held = 0..0;
        self.disk.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.held = 0..0;
        self.disk.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.disk.flush(cause)
    }

    fn meter(&self) -> Option<&Meter> {
        self.disk.meter()
    }
}

#[cfg(test)]
mod tests {
    use super::ReadAhead;
    use alloc::vec;
    use device::{Cause, Error, Request, Result, Sector, SectorGeometry, Sectors};

    /// Sectors of 512 bytes that hold their numbers; it counts reads, and one sector is bad.
    struct Numbers {
        reads: u32,
        bad: Option<u64>,
    }

    impl Numbers {
        fn new() -> Self {
            Numbers { reads: 0, bad: None }
        }
    }

    impl Sectors for Numbers {
        fn geometry(&self) -> SectorGeometry {
            SectorGeometry::new(512, 100).unwrap()
        }

        fn read(&mut self, requests: &mut [Request<'_>], _: Cause) -> Result<()> {
            self.reads += 1;
            for request in requests {
                for (sector, into) in (request.first.0..).zip(request.into.chunks_mut(512)) {
                    if Some(sector) == self.bad {
                        return Err(Error::Driver { code: 5 });
                    }
                    into.fill(sector as u8);
                }
            }
            Ok(())
        }

        fn write(&mut self, _: Sector, _: &[u8], _: Cause) -> Result<()> {
            Ok(())
        }

        fn trim(&mut self, _: Sector, _: u64, _: Cause) -> Result<()> {
            Ok(())
        }

        fn flush(&mut self, _: Cause) -> Result<()> {
            Ok(())
        }
    }

    fn read(disk: &mut dyn Sectors, sector: u64) -> Result<u8> {
        let mut into = [0; 512];
        disk.read(
            &mut [Request { first: Sector(sector), offset: 0, into: &mut into }],
            Cause::Load,
        )?;
        assert!(into.iter().all(|byte| *byte == into[0]));
        Ok(into[0])
    }

    #[test]
    fn sectors_in_order_are_read_together() {
        let (mut disk, mut window) = (Numbers::new(), vec![0; 16 * 512 + 100]);
        let mut ahead = ReadAhead::new(&mut disk, &mut window, Sector(90));
        assert!((0..90).all(|sector| read(&mut ahead, sector) == Ok(sector as u8)));
        assert!(disk.reads < 10, "{} reads", disk.reads);
    }

    #[test]
    fn every_sector_is_what_it_is_on_the_disk_in_any_order() {
        let (mut disk, mut window) = (Numbers::new(), vec![0; 16 * 512]);
        disk.bad = Some(40);
        let mut ahead = ReadAhead::new(&mut disk, &mut window, Sector(90));
        for number in 0..1000 {
            let sector = number * 37 % 100 + number % 2;
            let expected = match sector {
                40 => Err(Error::Driver { code: 5 }),
                100 => continue,
                sector => Ok(sector as u8),
            };
            assert_eq!(read(&mut ahead, sector), expected);
        }
    }

    #[test]
    fn a_window_without_room_reads_each_sector_alone() {
        let (mut disk, mut window) = (Numbers::new(), vec![0; 100]);
        let mut ahead = ReadAhead::new(&mut disk, &mut window, Sector(90));
        assert!((0..40).all(|sector| read(&mut ahead, sector) == Ok(sector as u8)));
        assert_eq!(disk.reads, 40);
    }
}
