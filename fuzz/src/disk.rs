//! A disk in memory whose bytes can be seen and changed, whose power can be cut, and which gives up
//! where it is used without end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use device::{Cause, Error, Request, Result, Sector, SectorGeometry, Sectors};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::OPERATIONS_MOST;

/// The code of the error with which a disk gives up.
const ENDLESS: i32 = -77;

/// Bytes in a piece of a torn sector.
const PIECE_BYTES: usize = 64;

/// Counts the operations of a disk.
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    /// Operations since the power came back.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The disk.
pub struct ImageDisk {
    geometry: SectorGeometry,
    bytes: Vec<u8>,
    /// What sectors that were written since the last flush held before; not kept where nothing will
    /// be cut, so that a disk takes no memory while it is used.
    before: Option<BTreeMap<u64, Box<[u8]>>>,
    operations: Arc<AtomicU64>,
    /// The operation at which the power goes.
    cut: Option<u64>,
    has_power: bool,
}

impl ImageDisk {
    /// A disk of zeros.
    #[must_use]
    pub fn new(geometry: SectorGeometry) -> Self {
        let before = Some(BTreeMap::new());
        ImageDisk { before, ..Self::of(geometry, vec![0; geometry.bytes() as usize]) }
    }

    /// A disk of these bytes, whose power is never cut.
    #[must_use]
    pub fn of(geometry: SectorGeometry, bytes: Vec<u8>) -> Self {
        ImageDisk {
            geometry,
            bytes,
            before: None,
            operations: Arc::default(),
            cut: None,
            has_power: true,
        }
    }

    /// All its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All its bytes, which are its no more.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Operations since the power came back, also for whoever lent the disk away.
    #[must_use]
    pub fn counter(&self) -> Counter {
        Counter(self.operations.clone())
    }

    /// True if it gave up.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.counter().get() > OPERATIONS_MOST
    }

    /// True if the power was cut.
    #[must_use]
    pub const fn is_without_power(&self) -> bool {
        !self.has_power
    }

    /// Gives the power back, and cuts it again at operation `cut`, counted from 1.
    pub fn start(&mut self, cut: Option<u64>) {
        self.has_power = true;
        self.operations.store(0, Ordering::Relaxed);
        self.cut = cut;
    }

    /// Decides by `fate` what is left of the sectors that were not flushed: what they held before,
    /// what they hold now, or a mixture. With fate 0 all is as it is now.
    pub fn settle(&mut self, fate: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(fate);
        for (sector, old) in self.before.replace(BTreeMap::new()).unwrap_or_default() {
            let start = self.start_of(sector);
            let now = &mut self.bytes[start..start + old.len()];
            match random.random_range(0..3) {
                _ if fate == 0 => {}
                0 => {}
                1 => now.copy_from_slice(&old),
                _ => tear(now, &old, &mut random),
            }
        }
    }

    fn start_of(&self, sector: u64) -> usize {
        (sector * u64::from(self.geometry.sector_bytes())) as usize
    }

    fn count(&mut self) -> Result<()> {
        if !self.has_power {
            return Err(Error::PowerCut);
        }
        let operation = self.operations.fetch_add(1, Ordering::Relaxed) + 1;
        if self.cut == Some(operation) {
            self.has_power = false;
            return Err(Error::PowerCut);
        }
        if self.is_endless() {
            return Err(Error::Driver { code: ENDLESS });
        }
        Ok(())
    }

    /// The bytes of some sectors, which are about to change.
    fn changing(&mut self, first: Sector, bytes: usize) -> &mut [u8] {
        let start = self.start_of(first.0);
        let sector_bytes = self.geometry.sector_bytes() as usize;
        let sectors = self.bytes[start..start + bytes].chunks_exact(sector_bytes);
        if let Some(before) = &mut self.before {
            for (sector, now) in (first.0..).zip(sectors) {
                before.entry(sector).or_insert_with(|| now.into());
            }
        }
        &mut self.bytes[start..start + bytes]
    }
}

fn tear(now: &mut [u8], old: &[u8], random: &mut ChaCha8Rng) {
    for (piece, old) in now.chunks_mut(PIECE_BYTES).zip(old.chunks(PIECE_BYTES)) {
        match random.random_range(0..5) {
            0 | 1 => piece.copy_from_slice(old),
            2 | 3 => {}
            _ => random.fill_bytes(piece),
        }
    }
}

impl Sectors for ImageDisk {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _cause: Cause) -> Result<()> {
        self.count()?;
        for request in requests {
            self.geometry.check_bytes(request.first, request.offset, request.into.len())?;
            let start = self.start_of(request.first.0) + request.offset as usize;
            request.into.copy_from_slice(&self.bytes[start..start + request.into.len()]);
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _cause: Cause) -> Result<()> {
        self.geometry.check_run(first, from.len())?;
        // What is written when the power goes is torn, or not there at all.
        let had_power = self.has_power;
        let counted = self.count();
        if had_power {
            self.changing(first, from.len()).copy_from_slice(from);
        }
        counted
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        self.count()?;
        let bytes = count.saturating_mul(u64::from(self.geometry.sector_bytes()));
        self.geometry.check_bytes(first, 0, bytes as usize)?;
        self.changing(first, bytes as usize).fill(0);
        Ok(())
    }

    fn flush(&mut self, _cause: Cause) -> Result<()> {
        self.count()?;
        if let Some(before) = &mut self.before {
            before.clear();
        }
        Ok(())
    }
}
