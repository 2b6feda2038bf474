//! A disk in a file keeps the contract of disks, whatever moves its bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::PathBuf;

use common::{Scratch, is_wanted, play, ways};
use contract::sectors::{Storage, check};
use device::{Cause, Error, Request, Sector, Sectors};
use flashtree_file::{Direct, DiskOptions, EngineChoice, FileDisk, Transfer};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SECTORS: u64 = 200;

struct InFile {
    path: PathBuf,
    options: DiskOptions,
}

impl Storage for InFile {
    fn create(&mut self) -> Result<Box<dyn Sectors + '_>, Error> {
        let bytes = SECTORS * u64::from(self.options.sector_bytes);
        Ok(Box::new(FileDisk::create(&self.path, bytes, &self.options).unwrap()))
    }

    fn open(&mut self) -> Result<Box<dyn Sectors + '_>, Error> {
        Ok(Box::new(FileDisk::open(&self.path, &self.options).unwrap()))
    }
}

fn name(options: &DiskOptions) -> String {
    let DiskOptions { sector_bytes, engine, direct, gathers, .. } = options;
    let gathered = if *gathers { "/gathered" } else { "" };
    format!("{engine:?}/{direct:?}/{sector_bytes}{gathered}")
}

#[test]
fn a_file_is_a_disk_over_both_engines_with_and_without_direct_transfers() {
    for way in ways() {
        for (seed, sector_bytes) in [(1, 512), (2, 4096), (3, 16_384)] {
            let options = DiskOptions { sector_bytes, ..way };
            let case = format!("{}/seed{seed}", name(&options));
            if is_wanted(&case) {
                let scratch = Scratch::new();
                let mut file = InFile { path: scratch.path("disk"), options };
                let witness = play(&case, "disk", || check(&mut file, seed, 5));
                assert!(witness.writes >= 5 * SECTORS && witness.reads > 100, "{witness:?}");
                assert!(witness.trims > 50 && witness.flushes > 5, "{case}: {witness:?}");
            }
        }
    }
}

/// A disk with its content in memory beside it.
struct Pair {
    disk: FileDisk,
    model: Vec<u8>,
    random: ChaCha8Rng,
    memory: Vec<u8>,
}

/// Where a request goes in the disk and in memory.
struct Span {
    at: usize,
    length: usize,
    memory: usize,
}

impl Pair {
    const BYTES: usize = 8 << 20;

    fn new(path: PathBuf, options: &DiskOptions, seed: u64) -> Self {
        let disk = FileDisk::create(&path, Self::BYTES as u64, options).unwrap();
        let memory = vec![0; 3 * Self::BYTES];
        let random = ChaCha8Rng::seed_from_u64(seed);
        Pair { disk, model: vec![0; Self::BYTES], random, memory }
    }

    fn sector(&self) -> usize {
        self.disk.geometry().sector_bytes() as usize
    }

    /// A write of a few sectors or of many, from an address that is aligned or not.
    fn write(&mut self) {
        let sector = self.sector();
        let sectors = Self::BYTES / sector;
        let first = self.random.random_range(0..sectors);
        let most = if self.random.random_range(0..4) == 0 { sectors } else { 8 };
        let count = self.random.random_range(0..=most.min(sectors - first));
        let start = self.address();
        let from = &mut self.memory[start..start + count * sector];
        self.random.fill_bytes(from);
        self.disk.write(Sector(first as u64), from, Cause::Update).unwrap();
        self.model[first * sector..(first + count) * sector].copy_from_slice(from);
    }

    /// A place in memory: half of them aligned.
    fn address(&mut self) -> usize {
        let crooked = self.random.random_range(0..1 << 16);
        let aligned = self.memory.as_ptr().addr().wrapping_neg() & 0xFFFF;
        if self.random.random_range(0..2) == 0 { aligned } else { crooked }
    }

    /// Up to 100 requests at any places, of any lengths, into any addresses.
    fn spans(&mut self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut memory = self.address();
        for _ in 0..self.random.random_range(1..100) {
            let at = match self.random.random_range(0..2) {
                0 => self.random.random_range(0..Self::BYTES),
                _ => self.random.random_range(0..Self::BYTES / 4096) * 4096,
            };
            let most = if self.random.random_range(0..50) == 0 { 4 << 20 } else { 20_000 };
            let mut length = self.random.random_range(0..=most.min(Self::BYTES - at));
            if self.random.random_range(0..2) == 0 {
                length &= !4095;
                memory = memory.next_multiple_of(4096);
            }
            if memory + length <= self.memory.len() {
                spans.push(Span { at, length, memory });
                memory += length;
            }
        }
        spans
    }

    fn read(&mut self) {
        let sector = self.sector();
        let spans = self.spans();
        self.memory.fill(0xEE);
        let mut rest = &mut self.memory[..];
        let mut start = 0;
        let mut requests = Vec::new();
        for span in &spans {
            let (_, after) = rest.split_at_mut(span.memory - start);
            let (into, after) = after.split_at_mut(span.length);
            (rest, start) = (after, span.memory + span.length);
            let first = Sector((span.at / sector) as u64);
            requests.push(Request { first, offset: (span.at % sector) as u32, into });
        }
        self.disk.read(&mut requests, Cause::Lookup).unwrap();
        let mut end = 0;
        for Span { at, length, memory } in spans {
            let untouched = &self.memory[end..memory];
            assert!(untouched.iter().all(|byte| *byte == 0xEE), "a byte between requests");
            end = memory + length;
            let same = self.memory[memory..end] == self.model[at..at + length];
            assert!(same, "{length} bytes at {at} into address {memory}");
        }
    }
}

#[test]
fn any_requests_into_any_memory_come_back_right() {
    for way in ways() {
        for (seed, in_flight, sector_bytes) in [(1, 32, 4096), (2, 3, 512), (3, 64, 1 << 20)] {
            let options = DiskOptions { sector_bytes, in_flight, ..way };
            let case = format!("{}/flight{in_flight}/seed{seed}", name(&options));
            if !is_wanted(&case) {
                continue;
            }
            let scratch = Scratch::new();
            play(&case, "disk", || {
                let mut pair = Pair::new(scratch.path("disk"), &options, seed);
                for _ in 0..30 {
                    pair.write();
                    pair.read();
                }
            });
        }
    }
}

#[test]
fn a_request_that_is_not_on_the_disk_moves_nothing() {
    for options in ways() {
        let scratch = Scratch::new();
        let mut disk = FileDisk::create(&scratch.path("disk"), 8192, &options).unwrap();
        disk.write(Sector(0), &[7; 8192], Cause::Update).unwrap();
        let before = disk.meter().unwrap().clone();
        let (mut good, mut bad) = ([1; 100], [2; 100]);
        let mut requests = [
            Request { first: Sector(0), offset: 0, into: &mut good },
            Request { first: Sector(1), offset: 4000, into: &mut bad },
        ];
        let beyond = Err(Error::NoSuchSector { sector: Sector(2), sectors: 2 });
        assert_eq!(disk.read(&mut requests, Cause::Lookup), beyond);
        assert_eq!((good, bad), ([1; 100], [2; 100]));
        assert_eq!(disk.write(Sector(1), &[0; 8192], Cause::Update), beyond);
        let part = Err(Error::BadLength { offset: 0, length: 100, limit: 4096 });
        assert_eq!(disk.write(Sector(1), &[0; 100], Cause::Update), part);
        assert_eq!(disk.trim(Sector(1), 2, Cause::Update), beyond);
        assert!(disk.trim(Sector(u64::MAX), u64::MAX, Cause::Update).is_err());
        assert_eq!(disk.meter().unwrap(), &before, "a refused request was booked");
        let mut all = [0; 8192];
        let whole = Request { first: Sector(0), offset: 0, into: &mut all };
        disk.read(&mut [whole], Cause::Lookup).unwrap();
        assert_eq!(all, [7; 8192]);
    }
}

#[test]
fn a_file_that_is_cut_off_under_us_is_an_error_of_the_driver() {
    for options in ways() {
        let scratch = Scratch::new();
        let path = scratch.path("disk");
        let mut disk = FileDisk::create(&path, 64 * 4096, &options).unwrap();
        let other = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        other.set_len(10 * 4096).unwrap();
        let mut memory = vec![0; 64 * 4096];
        let mut pieces: Vec<Request<'_>> = (0..64)
            .zip(memory.chunks_mut(4096))
            .map(|(sector, into)| Request { first: Sector(sector), offset: 0, into })
            .collect();
        let cut = Err(Error::Driver { code: 5 });
        assert_eq!(disk.read(&mut pieces, Cause::Lookup), cut, "many at once: {disk:?}");
        assert_eq!(disk.read(&mut pieces[20..21], Cause::Lookup), cut, "one: {disk:?}");
        assert_eq!(disk.read(&mut pieces[3..9], Cause::Lookup), Ok(()), "what is there");
    }
}

#[test]
fn every_call_is_booked_once_with_sectors_bytes_and_time() {
    let scratch = Scratch::new();
    let options = DiskOptions { sector_bytes: 512, ..DiskOptions::default() };
    let mut disk = FileDisk::create(&scratch.path("disk"), 1 << 20, &options).unwrap();
    disk.write(Sector(4), &[1; 2048], Cause::Flush).unwrap();
    let (mut one, mut two, mut none) = ([0; 512], [0; 100], []);
    let mut requests = [
        Request { first: Sector(9), offset: 1, into: &mut one },
        Request { first: Sector(3), offset: 1000, into: &mut two },
        Request { first: Sector(3), offset: 0, into: &mut none },
    ];
    disk.read(&mut requests, Cause::Merge).unwrap();
    disk.flush(Cause::Checkpoint).unwrap();
    let meter = disk.meter().unwrap();
    let (written, read) = (meter.tally(Cause::Flush), meter.tally(Cause::Merge));
    assert_eq!((written.page_programs, written.bytes_programmed), (4, 2048));
    assert_eq!((read.page_reads, read.bytes_read), (2 + 2, 612));
    let flushed = meter.tally(Cause::Checkpoint);
    assert_eq!((flushed.page_programs, flushed.bytes_programmed), (0, 0));
    assert!([written, read, flushed].iter().all(|tally| tally.time_ns > 0), "{meter:?}");
    assert!(!meter.energy_known() && meter.erases().is_empty());
    assert_eq!(meter.total().block_erases, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn room_is_reserved_at_once_and_given_back_by_a_trim() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    let mut disk = FileDisk::create(&path, 4 << 20, &DiskOptions::default()).unwrap();
    let room = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(room() >= 4 << 20);
    disk.write(Sector(0), &vec![3; 4 << 20], Cause::Load).unwrap();
    disk.flush(Cause::Flush).unwrap();
    disk.trim(Sector(256), 512, Cause::Update).unwrap();
    disk.flush(Cause::Flush).unwrap();
    assert!(room() <= (2 << 20) + (64 << 10), "{} bytes are taken", room());
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 << 20);
    let mut content = vec![9; 4 << 20];
    let whole = Request { first: Sector(0), offset: 0, into: &mut content };
    disk.read(&mut [whole], Cause::Lookup).unwrap();
    assert!(content[..1 << 20].iter().all(|byte| *byte == 3));
    assert!(content[1 << 20..3 << 20].iter().all(|byte| *byte == 0));
    assert!(content[3 << 20..].iter().all(|byte| *byte == 3));
}

#[test]
fn the_disk_says_how_its_bytes_go() {
    let scratch = Scratch::new();
    let path = scratch.path("disk");
    for options in ways() {
        let disk = FileDisk::create(&path, 1 << 20, &options);
        let disk = match disk {
            Err(flashtree_file::Error::NotOurs { .. }) => FileDisk::open(&path, &options).unwrap(),
            other => other.unwrap(),
        };
        let expected = match options.engine {
            EngineChoice::IoUring => "io_uring",
            _ => "threads",
        };
        assert_eq!(disk.engine().to_string(), expected);
        match (options.direct, disk.transfer()) {
            (Direct::Never, transfer) => {
                assert_eq!(transfer.to_string(), "through the page cache: it was not asked for");
                assert_eq!(disk.geometry().alignment(), 1);
            }
            (_, Transfer::Direct { memory_alignment, .. }) => {
                assert_eq!(disk.geometry().alignment(), memory_alignment);
            }
            (_, Transfer::Buffered(reason)) => {
                let required = DiskOptions { direct: Direct::Required, ..options };
                drop(disk);
                let refused = FileDisk::open(&path, &required).unwrap_err().to_string();
                assert!(refused.ends_with(&format!("no direct I/O: {reason}")), "{refused}");
            }
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_system_in_memory_has_no_direct_transfers_and_says_so() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        println!("skipped: there is no /dev/shm");
        return;
    };
    let mut file = InFile { path: folder.path().join("disk"), options: DiskOptions::default() };
    let disk = FileDisk::create(&file.path, 1 << 20, &file.options).unwrap();
    let transfer = disk.transfer();
    drop(disk);
    std::fs::remove_file(&file.path).unwrap();
    let reason = "through the page cache: the file system does not have it";
    assert_eq!(transfer.to_string(), reason);
    assert!(check(&mut file, 4, 3).writes >= 3 * SECTORS);
}
