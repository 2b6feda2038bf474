//! A disk in a real file whose power can be cut.
//!
//! Writes and trims are kept back in memory until a flush sends them to the file. A cut lets each
//! sector that is kept back go to the file as it was, as it is, or torn between both. The file
//! itself is not flushed: whether that helps can't be seen without cutting the real power.

use std::collections::BTreeMap;

use device::{Cause, Error, Request, Result, Sector, SectorGeometry, Sectors};
use file::{Direct, DiskOptions, FileDisk};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, Unflushed};
use tempfile::TempDir;

use super::failure::Failure;

/// Bytes in a piece of a torn sector.
const PIECE_BYTES: usize = 64;

/// Sectors that the file has at first.
const SECTORS_LEAST: u64 = 2;

/// A disk in a file of its own, which grows, and which goes with it.
pub(super) struct HeldBack {
    disk: FileDisk,
    // Behind the disk, so that the file is closed when its folder is removed.
    _folder: TempDir,
    /// Sectors that the file had at the last flush.
    flushed: u64,
    /// What the file does not hold yet.
    pending: BTreeMap<u64, Box<[u8]>>,
    random: ChaCha8Rng,
    cut: Option<Cut>,
    cut_shrinking: bool,
    operations: u64,
    changes: u64,
    has_power: bool,
    /// Cuts while the file was made longer, and while it was made shorter.
    cuts_resizing: [u64; 2],
}

impl HeldBack {
    /// A disk of zeros that grows to `geometry`.
    pub(super) fn new(geometry: SectorGeometry) -> std::result::Result<Self, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::Folder)?;
        let options = DiskOptions {
            sector_bytes: geometry.sector_bytes(),
            in_flight: 4,
            // The system's own cache is as good a file, and quicker.
            direct: Direct::Never,
            ..DiskOptions::default()
        };
        let path = folder.path().join("disk");
        drop(FileDisk::create(
            &path,
            SECTORS_LEAST * u64::from(geometry.sector_bytes()),
            &options,
        )?);
        let grows_to = Some(geometry.bytes());
        let disk = FileDisk::open(&path, &DiskOptions { grows_to, ..options })?;
        Ok(HeldBack {
            disk,
            flushed: SECTORS_LEAST,
            _folder: folder,
            pending: BTreeMap::new(),
            random: ChaCha8Rng::seed_from_u64(0),
            cut: None,
            cut_shrinking: false,
            operations: 0,
            changes: 0,
            has_power: true,
            cuts_resizing: [0; 2],
        })
    }

    /// Gives the power back, and cuts it again at `cut`, or when the file is made shorter if
    /// `cut_shrinking` says so; `seed` decides what the cut leaves.
    pub(super) fn start(&mut self, seed: u64, cut: Option<Cut>, cut_shrinking: bool) {
        self.has_power = true;
        self.random = ChaCha8Rng::seed_from_u64(seed);
        self.cut = cut;
        self.cut_shrinking = cut_shrinking;
        self.operations = 0;
        self.changes = 0;
    }

    /// Changes since the last start.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Operations since the last start.
    pub(super) const fn operations(&self) -> u64 {
        self.operations
    }

    /// Cuts while the file was made longer, and while it was made shorter.
    pub(super) const fn cuts_resizing(&self) -> [u64; 2] {
        self.cuts_resizing
    }

    pub(super) const fn is_without_power(&self) -> bool {
        !self.has_power
    }

    /// All bytes of the file.
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        let sector_bytes = u64::from(self.disk.geometry().sector_bytes());
        let mut bytes = vec![0; (self.held() * sector_bytes) as usize];
        let request = Request { first: Sector(0), offset: 0, into: &mut bytes };
        self.disk.read(&mut [request], Cause::Load)?;
        Ok(bytes)
    }

    /// Replaces all bytes of the file.
    pub(super) fn set_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.clear();
        self.flushed = bytes.len() as u64 / u64::from(self.disk.geometry().sector_bytes());
        self.disk.resize(self.flushed, Cause::Load)?;
        self.disk.write(Sector(0), bytes, Cause::Load)
    }

    fn held(&self) -> u64 {
        self.disk.sectors_held().unwrap_or_default()
    }

    fn check_held(&self, first: Sector, count: u64) -> Result<()> {
        let sectors = self.held();
        match first.0.checked_add(count).is_some_and(|end| end <= sectors) {
            true => Ok(()),
            false => Err(Error::NoSuchSector { sector: Sector(sectors), sectors }),
        }
    }

    /// Cuts the power: what is left of the sectors kept back goes to the file.
    pub(super) fn cut_power(&mut self, torn: &[u64]) -> Result<()> {
        self.has_power = false;
        let fates = [Unflushed::Lost, Unflushed::Kept, Unflushed::Mixed];
        let fate = fates[self.random.random_range(0..fates.len())];
        // Nor is the length of the file there before a flush.
        if self.held() != self.flushed && self.random.random() {
            self.disk.resize(self.flushed, Cause::Load)?;
            self.pending.retain(|sector, _| *sector < self.flushed);
        }
        for (sector, bytes) in std::mem::take(&mut self.pending) {
            let is_torn = torn.contains(&sector);
            let left = match fate {
                Unflushed::Lost if !is_torn => continue,
                Unflushed::Kept if !is_torn => bytes,
                _ => match self.random.random_range(0..3) {
                    0 => continue,
                    1 => bytes,
                    _ => self.tear(sector, bytes)?,
                },
            };
            self.disk.write(Sector(sector), &left, Cause::Load)?;
        }
        Ok(())
    }

    /// A sector that is partly as the file has it, partly `bytes`, and partly neither.
    fn tear(&mut self, sector: u64, mut bytes: Box<[u8]>) -> Result<Box<[u8]>> {
        let mut old = vec![0; bytes.len()];
        let request = Request { first: Sector(sector), offset: 0, into: &mut old };
        self.disk.read(&mut [request], Cause::Load)?;
        for (piece, old) in bytes.chunks_mut(PIECE_BYTES).zip(old.chunks(PIECE_BYTES)) {
            match self.random.random_range(0..5) {
                0 | 1 => piece.copy_from_slice(old),
                2 | 3 => {}
                _ => self.random.fill_bytes(piece),
            }
        }
        Ok(bytes)
    }

    /// Counts an operation; true if it is the one that is cut.
    fn count(&mut self, is_change: bool) -> Result<bool> {
        if !self.has_power {
            return Err(Error::PowerCut);
        }
        self.operations += 1;
        self.changes += u64::from(is_change);
        Ok(match self.cut {
            Some(Cut::Operation(at)) => at == self.operations,
            Some(Cut::Change(at)) => is_change && at == self.changes,
            None => false,
        })
    }

    fn lose_power(&mut self, torn: &[u64]) -> Error {
        self.cut_power(torn).err().unwrap_or(Error::PowerCut)
    }

    fn hold(&mut self, first: Sector, sectors: impl Iterator<Item = Box<[u8]>>) -> Vec<u64> {
        let mut held = Vec::new();
        for (sector, bytes) in (first.0..).zip(sectors) {
            self.pending.insert(sector, bytes);
            held.push(sector);
        }
        held
    }

    /// Puts what is kept back over what was read from the file.
    fn overlay(&self, request: &mut Request<'_>) {
        let unit = u64::from(self.disk.geometry().sector_bytes());
        let start = request.first.0 * unit + u64::from(request.offset);
        let end = start + request.into.len() as u64;
        for (sector, bytes) in self.pending.range(start / unit..end.div_ceil(unit)) {
            let from = (sector * unit).max(start);
            let to = ((sector + 1) * unit).min(end);
            let source = &bytes[(from - sector * unit) as usize..(to - sector * unit) as usize];
            request.into[(from - start) as usize..(to - start) as usize].copy_from_slice(source);
        }
    }
}

impl Sectors for HeldBack {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        for request in requests {
            if self.count(false)? {
                return Err(self.lose_power(&[]));
            }
            let (first, offset) = (request.first, request.offset);
            self.disk.read(&mut [Request { first, offset, into: &mut *request.into }], cause)?;
            self.overlay(request);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _cause: Cause) -> Result<()> {
        let geometry = self.disk.geometry();
        geometry.check_run(first, from.len())?;
        self.check_held(first, from.len() as u64 / u64::from(geometry.sector_bytes()))?;
        let is_cut = self.count(true)?;
        let unit = geometry.sector_bytes() as usize;
        let held = self.hold(first, from.chunks(unit).map(Box::from));
        if is_cut { Err(self.lose_power(&held)) } else { Ok(()) }
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        let geometry = self.disk.geometry();
        let unit = geometry.sector_bytes() as usize;
        let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(unit);
        geometry.check_bytes(first, 0, bytes)?;
        self.check_held(first, count)?;
        let is_cut = self.count(true)?;
        let zeros = (0..count).map(|_| vec![0; unit].into_boxed_slice());
        let held = self.hold(first, zeros);
        if is_cut { Err(self.lose_power(&held)) } else { Ok(()) }
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        if self.count(true)? {
            return Err(self.lose_power(&[]));
        }
        for (sector, bytes) in std::mem::take(&mut self.pending) {
            self.disk.write(Sector(sector), &bytes, cause)?;
        }
        self.flushed = self.held();
        Ok(())
    }

    fn sectors_held(&self) -> Option<u64> {
        self.disk.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        let shrinks = sectors < self.held();
        let is_cut = self.count(true)? || shrinks && self.cut_shrinking;
        if sectors != self.held() {
            self.cuts_resizing[usize::from(shrinks)] += u64::from(is_cut);
        }
        if !is_cut || self.random.random() {
            self.disk.resize(sectors, cause)?;
            self.pending.retain(|sector, _| *sector < sectors);
        }
        if is_cut { Err(self.lose_power(&[])) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use device::{Cause, Error, Request, Sector, SectorGeometry, Sectors};
    use sim::Cut;

    use super::HeldBack;

    fn disk() -> HeldBack {
        let mut disk = HeldBack::new(SectorGeometry::new(512, 32).unwrap()).unwrap();
        disk.resize(16, Cause::Load).unwrap();
        disk.flush(Cause::Load).unwrap();
        disk
    }

    fn read(disk: &mut HeldBack, sector: u64) -> u8 {
        let mut byte = [0];
        let request = Request { first: Sector(sector), offset: 9, into: &mut byte };
        disk.read(&mut [request], Cause::Lookup).unwrap();
        byte[0]
    }

    #[test]
    fn what_was_written_is_read_and_what_was_flushed_survives_every_cut() {
        let mut disk = disk();
        for seed in 0..20 {
            disk.start(seed, None, false);
            disk.write(Sector(3), &[seed as u8 + 1; 1024], Cause::Update).unwrap();
            assert_eq!(read(&mut disk, 4), seed as u8 + 1);
            disk.flush(Cause::Flush).unwrap();
            disk.cut_power(&[]).unwrap();
            assert_eq!(disk.flush(Cause::Flush), Err(Error::PowerCut));
            disk.start(seed, None, false);
            assert_eq!(read(&mut disk, 3), seed as u8 + 1);
        }
    }

    #[test]
    fn a_cut_may_lose_keep_or_tear_what_was_not_flushed() {
        let mut disk = disk();
        let (mut lost, mut kept, mut torn) = (0, 0, 0);
        for seed in 0..60 {
            disk.set_bytes(&vec![7; 16 * 512]).unwrap();
            disk.start(seed, Some(Cut::Change(2)), false);
            disk.write(Sector(3), &[8; 512], Cause::Update).unwrap();
            let cut = disk.write(Sector(5), &[9; 512], Cause::Update);
            assert_eq!(cut, Err(Error::PowerCut));
            let bytes = disk.bytes().unwrap();
            let sector = &bytes[3 * 512..4 * 512];
            lost += u32::from(sector.iter().all(|byte| *byte == 7));
            kept += u32::from(sector.iter().all(|byte| *byte == 8));
            torn += u32::from(sector.contains(&7) && sector.contains(&8));
            assert!(bytes[..3 * 512].iter().all(|byte| *byte == 7));
        }
        assert!(lost > 5 && kept > 5 && torn > 0, "{lost} {kept} {torn}");
    }

    #[test]
    fn a_cut_may_undo_a_new_length_that_was_not_flushed() {
        let (mut longer, mut as_before) = (0, 0);
        for seed in 0..20 {
            let mut disk = disk();
            disk.start(seed, None, false);
            disk.resize(24, Cause::Update).unwrap();
            disk.write(Sector(20), &[5; 512], Cause::Update).unwrap();
            assert!(disk.write(Sector(24), &[5; 512], Cause::Update).is_err());
            disk.cut_power(&[]).unwrap();
            match disk.sectors_held() {
                Some(24) => longer += 1,
                Some(16) => as_before += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(longer > 3 && as_before > 3, "{longer} {as_before}");
    }

    #[test]
    fn a_cut_may_wait_for_the_file_to_be_made_shorter() {
        let mut disk = disk();
        disk.start(1, None, true);
        disk.resize(24, Cause::Update).unwrap();
        disk.flush(Cause::Flush).unwrap();
        assert_eq!(disk.resize(20, Cause::Update), Err(Error::PowerCut));
        assert_eq!(disk.cuts_resizing(), [0, 1]);
    }

    #[test]
    fn a_trimmed_sector_reads_as_zeros() {
        let mut disk = disk();
        disk.start(1, None, false);
        disk.write(Sector(2), &[5; 512], Cause::Update).unwrap();
        disk.flush(Cause::Flush).unwrap();
        disk.trim(Sector(2), 1, Cause::Update).unwrap();
        assert_eq!(read(&mut disk, 2), 0);
        assert!(disk.trim(Sector(15), 2, Cause::Update).is_err());
        assert!(disk.trim(Sector(1), u64::MAX, Cause::Update).is_err());
    }
}
