//! The suite that every disk passes: random writes, trims, reads, flushes and restarts, compared
//! with a plain model of the contract on [`device::Sectors`].

use device::{Cause, Error, Request, Sector, SectorGeometry, Sectors};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use crate::sector_model::{Model, pattern};

/// A place where a disk is made once and opened any number of times.
pub trait Storage {
    /// Makes an empty disk.
    ///
    /// # Errors
    /// What went wrong.
    fn create(&mut self) -> Result<Box<dyn Sectors + '_>, Error>;

    /// Opens the disk.
    ///
    /// # Errors
    /// What went wrong.
    fn open(&mut self) -> Result<Box<dyn Sectors + '_>, Error>;
}

/// What a history was made of, so that a test can see that it was not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Sectors of the disk.
    pub sectors: u64,
    /// Sectors written.
    pub writes: u64,
    /// Sectors trimmed.
    pub trims: u64,
    /// Reads of any length.
    pub reads: u64,
    /// Flushes.
    pub flushes: u64,
    /// Times that the disk was opened again after a flush.
    pub restarts: u64,
    /// Times that it was opened again without one.
    pub unflushed_restarts: u64,
}

/// Plays a history on `storage`: the disk is filled to its last sector and then overwritten
/// `turnovers` times.
///
/// # Panics
/// The disk differs from the model.
pub fn check(storage: &mut dyn Storage, seed: u64, turnovers: u64) -> Witness {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut witness = Witness::default();
    let mut model = {
        let mut disk = storage.create().expect("a disk can be made");
        let model = Model::new(disk.geometry());
        let mut run = Run { disk: &mut *disk, model, random: &mut random, witness: &mut witness };
        run.refuse_nonsense();
        run.fill();
        run.flush();
        run.model
    };
    let writes = turnovers * model.geometry().sectors();
    while witness.writes < writes {
        let mut disk = storage.open().expect("the disk can be opened");
        let flushed = model.is_flushed();
        let mut run = Run { disk: &mut *disk, model, random: &mut random, witness: &mut witness };
        run.compare_all();
        let sessions_end = run.witness.writes + run.random.random_range(1..=writes / 8 + 1);
        while run.witness.writes < sessions_end {
            run.step();
        }
        if run.random.random_range(0..3) > 0 {
            run.flush();
        }
        run.count_restart(flushed);
        model = run.model;
    }
    let mut disk = storage.open().expect("the disk can be opened");
    Run { disk: &mut *disk, model, random: &mut random, witness: &mut witness }.compare_all();
    witness
}

/// A disk in use.
struct Run<'r> {
    disk: &'r mut dyn Sectors,
    model: Model,
    random: &'r mut ChaCha8Rng,
    witness: &'r mut Witness,
}

impl Run<'_> {
    fn geometry(&self) -> SectorGeometry {
        *self.model.geometry()
    }

    fn sector_bytes(&self) -> usize {
        self.geometry().sector_bytes() as usize
    }

    const fn count_restart(&mut self, flushed: bool) {
        if flushed {
            self.witness.restarts += 1;
        } else {
            self.witness.unflushed_restarts += 1;
        }
    }

    /// Requests beyond the disk and of broken sectors are refused.
    fn refuse_nonsense(&mut self) {
        let geometry = self.geometry();
        let (bytes, sectors) = (self.sector_bytes(), geometry.sectors());
        let missing = Error::NoSuchSector { sector: Sector(sectors), sectors };
        let mut page = vec![7; bytes * 2];
        assert_eq!(self.disk.write(Sector(sectors), &page[..bytes], Cause::Update), Err(missing));
        assert_eq!(self.disk.write(Sector(sectors - 1), &page, Cause::Update), Err(missing));
        let broken = self.disk.write(Sector(0), &page[..bytes - 1], Cause::Update);
        assert!(matches!(broken, Err(Error::BadLength { .. })), "{broken:?}");
        for (first, count) in [(sectors, 1), (0, sectors + 1), (1, u64::MAX), (u64::MAX, 2)] {
            let trimmed = self.disk.trim(Sector(first), count, Cause::Update);
            assert!(matches!(trimmed, Err(Error::NoSuchSector { .. })), "{trimmed:?}");
        }
        for (first, offset) in [(sectors, 0), (sectors - 1, 1), (0, u32::MAX), (u64::MAX, 0)] {
            let (first, into) = (Sector(first), &mut page[..bytes]);
            let read = self.disk.read(&mut [Request { first, offset, into }], Cause::Lookup);
            assert!(matches!(read, Err(Error::NoSuchSector { .. })), "{first} {offset}: {read:?}");
        }
        self.compare_all();
    }

    /// Writes every sector once.
    fn fill(&mut self) {
        let mut first = 0;
        while first < self.geometry().sectors() {
            let count = self.run_length(first, 9);
            self.write(first, count);
            first += count;
        }
    }

    fn run_length(&mut self, first: u64, most: u64) -> u64 {
        self.random.random_range(1..=most).min(self.geometry().sectors() - first)
    }

    /// A sector; the first eighth of the disk gets half of the choices.
    fn sector(&mut self) -> u64 {
        let sectors = self.geometry().sectors();
        let end = if self.random.random_range(0..2) == 0 { sectors.div_ceil(8) } else { sectors };
        self.random.random_range(0..end)
    }

    fn step(&mut self) {
        let first = self.sector();
        match self.random.random_range(0..100) {
            0..60 => {
                let count = self.run_length(first, 5);
                self.write(first, count);
            }
            60..65 => {
                let count = self.run_length(first, 20);
                self.disk.trim(Sector(first), count, Cause::Update).expect("a trim succeeds");
                self.model.trim(first, count);
                self.witness.trims += count;
            }
            65..68 => self.flush(),
            _ => self.read(),
        }
    }

    fn write(&mut self, first: u64, count: u64) {
        let bytes = self.sector_bytes();
        let mut data = vec![0; bytes * count as usize];
        for (sector, content) in (first..).zip(data.chunks_mut(bytes)) {
            pattern(sector, self.model.next_version(sector), content);
        }
        self.disk.write(Sector(first), &data, Cause::Update).expect("there is room");
        self.model.write(first, count);
        self.witness.writes += count;
    }

    fn flush(&mut self) {
        self.disk.flush(Cause::Flush).expect("a flush succeeds");
        self.model.flush();
        self.witness.flushes += 1;
    }

    /// Reads a few pieces, each of any length at any place, in one go.
    fn read(&mut self) {
        let bytes = self.sector_bytes();
        let sectors = self.geometry().sectors();
        let mut pieces: Vec<(u64, u32, Vec<u8>)> = Vec::new();
        for _ in 0..self.random.random_range(1..4) {
            let first = self.sector();
            let offset = self.random.random_range(0..bytes * 2);
            let left = ((sectors - first) as usize * bytes).saturating_sub(offset);
            let length = self.random.random_range(0..=left.min(bytes * 3));
            if left > 0 {
                pieces.push((first, offset as u32, vec![0xEE; length]));
            }
        }
        let mut requests: Vec<Request<'_>> = pieces
            .iter_mut()
            .map(|(first, offset, into)| Request { first: Sector(*first), offset: *offset, into })
            .collect();
        self.disk.read(&mut requests, Cause::Lookup).expect("a read succeeds");
        for (first, offset, found) in &pieces {
            self.model.compare(*first, *offset as usize, found);
        }
        self.witness.reads += pieces.len() as u64;
    }

    /// Reads and compares every sector; then the model knows which content each has.
    fn compare_all(&mut self) {
        let mut content = vec![0xEE; self.sector_bytes()];
        for sector in 0..self.geometry().sectors() {
            let (first, into) = (Sector(sector), &mut content[..]);
            let read = self.disk.read(&mut [Request { first, offset: 0, into }], Cause::Lookup);
            read.expect("a sector can be read");
            self.model.learn(sector, &content);
        }
    }
}
