use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Request, Result as DeviceResult, Sector, SectorGeometry, Sectors};

use super::{PageCheck, PageFile, PageFileOptions};
use crate::{Durability, Error, LogicalPage, Recovery};

/// A disk in memory that counts what it is asked for.
pub(super) struct Ram {
    geometry: SectorGeometry,
    bytes: Vec<u8>,
    reads: u32,
    writes: u32,
    trims: u32,
    /// The most requests that came at once.
    together: usize,
}

impl Ram {
    pub(super) fn new(sector_bytes: u32, sectors: u64) -> Self {
        let geometry = SectorGeometry::new(sector_bytes, sectors).unwrap();
        let bytes = vec![0; geometry.bytes() as usize];
        Ram { geometry, bytes, reads: 0, writes: 0, trims: 0, together: 0 }
    }
}

impl Sectors for Ram {
    fn geometry(&self) -> SectorGeometry {
        self.geometry
    }

    fn read(&mut self, requests: &mut [Request<'_>], _cause: Cause) -> DeviceResult<()> {
        self.together = self.together.max(requests.len());
        for request in requests {
            self.geometry.check_bytes(request.first, request.offset, request.into.len())?;
            let start = request.first.0 * u64::from(self.geometry.sector_bytes());
            let start = start as usize + request.offset as usize;
            request.into.copy_from_slice(&self.bytes[start..start + request.into.len()]);
            self.reads += 1;
        }
        Ok(())
    }

    fn write(&mut self, first: Sector, from: &[u8], _cause: Cause) -> DeviceResult<()> {
        self.geometry.check_run(first, from.len())?;
        let start = (first.0 * u64::from(self.geometry.sector_bytes())) as usize;
        self.bytes[start..start + from.len()].copy_from_slice(from);
        self.writes += 1;
        Ok(())
    }

    fn trim(&mut self, _first: Sector, _count: u64, _cause: Cause) -> DeviceResult<()> {
        self.trims += 1;
        Ok(())
    }

    fn flush(&mut self, _cause: Cause) -> DeviceResult<()> {
        Ok(())
    }
}

pub(super) struct Any;

impl PageCheck for Any {
    fn check(&self, _page: &[u8]) -> Result<(), &'static str> {
        Ok(())
    }

    fn is_kind(&self, _page: &[u8]) -> bool {
        true
    }
}

const CAUSE: Cause = Cause::Update;

pub(super) fn options(page_bytes: u32, frames: u64) -> PageFileOptions {
    PageFileOptions::new(page_bytes, 2048 + frames * (u64::from(page_bytes) + 40))
}

fn write(file: &mut PageFile<'_>, page: LogicalPage, mark: u32) {
    let bytes = file.page_mut(page, CAUSE, &Any).unwrap();
    bytes[20..24].copy_from_slice(&mark.to_le_bytes());
}

fn read(file: &mut PageFile<'_>, page: LogicalPage) -> u32 {
    let bytes = file.page(page, CAUSE, &Any).unwrap();
    u32::from_le_bytes(*bytes[20..].first_chunk().unwrap())
}

#[test]
fn pages_of_every_size_keep_what_was_written_through_reopening() {
    for page_bytes in [128, 256, 512, 1024, 4096] {
        let mut disk = Ram::new(512, 600);
        let mut model = BTreeMap::new();
        let mut random = 7u32;
        for round in 0..4 {
            let mut file = if round == 0 {
                PageFile::create(Box::new(&mut disk), &options(page_bytes, 5)).unwrap()
            } else {
                let options = options(page_bytes, 5);
                let (mut file, root) = PageFile::open(Box::new(&mut disk), &options).unwrap();
                assert_eq!(root, b"root record");
                file.reopen().unwrap();
                file
            };
            for step in 0..400u32 {
                random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                let pick = (random >> 8) as usize % model.len().max(1);
                match (random >> 4) % 8 {
                    0..3 => {
                        let Ok(page) = file.allocate(CAUSE) else { continue };
                        assert!(!model.contains_key(&page), "{page} is in use");
                        file.fresh(page).unwrap();
                        write(&mut file, page, step);
                        model.insert(page, step);
                    }
                    3..5 => {
                        let Some((&page, _)) = model.iter().nth(pick) else { continue };
                        file.free(page, CAUSE).unwrap();
                        model.remove(&page);
                    }
                    5 => {
                        let Some((&page, _)) = model.iter().nth(pick) else { continue };
                        write(&mut file, page, step + 1000);
                        model.insert(page, step + 1000);
                    }
                    _ => {
                        let Some((&page, &mark)) = model.iter().nth(pick) else { continue };
                        assert_eq!(read(&mut file, page), mark, "{page}");
                    }
                }
                assert_eq!(file.pages_used().0 as usize, model.len());
            }
            assert_eq!(file.count_free(CAUSE).unwrap(), file.free.pages);
            for (&page, &mark) in &model {
                assert_eq!(read(&mut file, page), mark, "{page}");
            }
            file.close(b"root record").unwrap();
        }
    }
}

#[test]
fn a_file_that_was_not_closed_is_refused() {
    let mut disk = Ram::new(512, 100);
    let options = options(512, 5);
    assert!(matches!(
        PageFile::open(Box::new(&mut disk), &options).err(),
        Some(Error::NotAnIndex { .. })
    ));
    let mut file = PageFile::create(Box::new(&mut disk), &options).unwrap();
    file.allocate(CAUSE).unwrap();
    drop(file);
    assert_eq!(PageFile::open(Box::new(&mut disk), &options).err(), Some(Error::NotClosed));
}

#[test]
fn a_corrupt_page_is_named() {
    let mut disk = Ram::new(512, 100);
    let mut file = PageFile::create(Box::new(&mut disk), &options(512, 5)).unwrap();
    let page = file.allocate(CAUSE).unwrap();
    file.fresh(page).unwrap();
    write(&mut file, page, 9);
    file.close(&[]).unwrap();
    drop(file);
    disk.bytes[2 * 512 + 20] ^= 1;
    let options = options(512, 5);
    let (mut file, _) = PageFile::open(Box::new(&mut disk), &options).unwrap();
    match file.page(page, CAUSE, &Any).err() {
        Some(Error::CorruptPage { page: named, expected, found }) => {
            assert_eq!(named, page);
            assert_ne!(expected, found);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_superblocks_never_panic() {
    let mut disk = Ram::new(512, 100);
    let mut file = PageFile::create(Box::new(&mut disk), &options(512, 5)).unwrap();
    file.close(b"root").unwrap();
    drop(file);
    let options = options(512, 5);
    let whole = disk.bytes.clone();
    for byte in 0..1024 {
        for flip in [0x01, 0x80, 0xFF] {
            disk.bytes[byte] ^= flip;
            // The other copy says the same.
            let (_, root) = PageFile::open(Box::new(&mut disk), &options).unwrap();
            assert_eq!(root, b"root", "byte {byte}");
            disk.bytes.copy_from_slice(&whole);
        }
    }
}

#[test]
fn an_superblock_that_opening_finds_once_stands_twice_again() {
    for damaged in [0, 1] {
        let mut ram = Ram::new(512, 200);
        let mut file = PageFile::create(Box::new(&mut ram), &options(512, 8)).unwrap();
        file.close(b"root").unwrap();
        drop(file);
        ram.bytes[damaged * 512..][..512].fill(0x55);
        drop(PageFile::open(Box::new(&mut ram), &options(512, 8)).unwrap());
        // The other one is damaged after that.
        ram.bytes[(1 - damaged) * 512..][..512].fill(0x55);
        let (_, root) = PageFile::open(Box::new(&mut ram), &options(512, 8)).unwrap();
        assert_eq!(root, b"root");
    }
}

#[test]
fn a_full_file_refuses_and_takes_again_what_was_given_back() {
    let mut disk = Ram::new(512, 12);
    let mut file = PageFile::create(Box::new(&mut disk), &options(512, 5)).unwrap();
    let pages: Vec<_> = (0..10).map(|_| file.allocate(CAUSE).unwrap()).collect();
    for page in &pages {
        file.fresh(*page).unwrap();
    }
    assert_eq!(file.allocate(CAUSE), Err(Error::Full { pages: 10 }));
    file.free(pages[3], CAUSE).unwrap();
    file.free(pages[7], CAUSE).unwrap();
    assert_eq!(file.pages_free(), 2);
    let mut again = [file.allocate(CAUSE).unwrap(), file.allocate(CAUSE).unwrap()];
    again.sort_unstable();
    assert_eq!(again, [pages[3], pages[7]]);
    assert!(file.allocate(CAUSE).is_err());
    drop(file);
    // The first page given back names the second, which the disk is told of.
    assert_eq!(disk.trims, 1);
}

#[test]
fn pages_that_share_a_sector_are_written_together() {
    let mut disk = Ram::new(512, 100);
    let mut file = PageFile::create(Box::new(&mut disk), &options(128, 8)).unwrap();
    for mark in 0..4 {
        let page = file.allocate(CAUSE).unwrap();
        file.fresh(page).unwrap();
        write(&mut file, page, mark);
    }
    file.close(&[]).unwrap();
    drop(file);
    // One write of the four pages, and two copies of the superblock: open at first, closed at the
    // end.
    assert_eq!(disk.writes, 5);
    // Of whatever was there before.
    assert_eq!(disk.reads, 2);
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let disk = SectorGeometry::new(2048, 100).unwrap();
    for bytes in [0, 64, 100, 3000, 65_536, u32::MAX] {
        let refused = PageFile::least_memory(disk, bytes, Durability::None);
        assert!(matches!(refused, Err(Error::NodeSize { .. })), "{bytes}");
    }
    let least = PageFile::least_memory(disk, 2048, Durability::None).unwrap();
    let little = PageFileOptions::new(2048, least - 1);
    assert_eq!(
        PageFile::frames(disk, &little),
        Err(Error::LittleMemory { have: least - 1, need: least })
    );
    let enough = PageFileOptions::new(2048, least);
    assert_eq!(PageFile::frames(disk, &enough), Ok(3));
}

#[test]
fn pages_are_brought_together_and_what_is_damaged_or_changed_stays_what_it_is() {
    let mut disk = Ram::new(512, 300);
    let pages: Vec<_> = (0..100).map(LogicalPage).collect();
    let mut file = PageFile::create(Box::new(&mut disk), &options(512, 40)).unwrap();
    for page in &pages {
        assert_eq!(file.allocate(CAUSE), Ok(*page));
        file.fresh(*page).unwrap();
        write(&mut file, *page, page.0);
    }
    file.close(&[]).unwrap();
    drop(file);
    disk.bytes[(2 + 5) * 512 + 20] ^= 1;
    let (mut file, _) = PageFile::open(Box::new(&mut disk), &options(512, 40)).unwrap();
    file.reopen().unwrap();
    write(&mut file, pages[4], 1000);
    assert_eq!(file.brought_most(), 10);
    let beyond = [LogicalPage(100), LogicalPage(u32::MAX)];
    let wanted: Vec<_> =
        pages[..8].iter().rev().chain(&beyond).chain(&pages[..60]).copied().collect();
    for _ in 0..3 {
        file.bring(&wanted, CAUSE, &Any).unwrap();
    }
    assert!(pages[..8].iter().all(|page| file.is_cached(*page) == (page.0 != 5)));
    assert!(file.page(pages[5], CAUSE, &Any).is_err());
    for page in pages.iter().filter(|page| page.0 != 5) {
        let mark = if page.0 == 4 { 1000 } else { page.0 };
        assert_eq!(read(&mut file, *page), mark);
    }
    drop(file);
    assert_eq!(disk.together, 10);
}
