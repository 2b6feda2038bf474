//! What a damaged page costs: the sectors that stand on it, and they say so.
//!
//! A disk is used, closed, and opened once for each page of its chip with this page alone damaged.
//! Only the last page of a block may be taken for a torn one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use contract::nand::{Hook, Hooked, Read};
use device::{Cause, Error, Geometry, Nand, NandCosts, Page, Request, Result, Sector};
use flashtree_ftl::{Entry, FTLS, Layer, Options, find};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultPlan, SimulatedNand};

const PAGES: u32 = 16;
const BLOCKS: u32 = 32;

/// What of a page cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Data,
    Spare,
    All,
}

/// A page a part of which cannot be read.
struct Damage {
    page: Page,
    part: Part,
}

impl Hook<SimulatedNand> for Damage {
    fn read(&mut self, chip: &mut SimulatedNand, read: Read<'_>) -> Result<u16> {
        let page = read.page;
        let hit = match self.part {
            Part::Data => !read.into.is_empty(),
            Part::Spare => !read.spare.is_empty(),
            Part::All => true,
        };
        let bits = read.on(chip);
        if hit && page == self.page { Err(Error::Uncorrectable { page }) } else { bits }
    }
}

fn chip(spare: u32) -> SimulatedNand {
    let geometry = Geometry::new(512, PAGES, BLOCKS).unwrap().with_spare(spare).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

fn content(sector: u64, version: u8) -> [u8; 512] {
    let mut content = [version; 512];
    content[..8].copy_from_slice(&sector.to_le_bytes());
    content
}

fn read(disk: &mut dyn Layer, sector: u64) -> Result<[u8; 512]> {
    let mut found = [0; 512];
    let requests = &mut [Request { first: Sector(sector), offset: 0, into: &mut found }];
    disk.read(requests, Cause::Lookup)?;
    Ok(found)
}

fn open<'d>(entry: &Entry, nand: impl Nand + 'd) -> Result<Box<dyn Layer + 'd>> {
    (entry.open)(Box::new(nand), &Options::default())
}

/// A disk that was used and closed, and the version of each of its sectors.
fn used(entry: &Entry, spare: u32) -> (SimulatedNand, Vec<u8>) {
    let mut chip = chip(spare);
    let mut disk = (entry.create)(Box::new(&mut chip), &Options::default()).unwrap();
    let sectors = disk.geometry().sectors();
    let mut versions = vec![1; sectors as usize];
    for sector in 0..sectors {
        disk.write(Sector(sector), &content(sector, 1), Cause::Update).unwrap();
    }
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for number in 0..sectors {
        let sector = random.random_range(0..sectors);
        versions[sector as usize] += 1;
        let data = content(sector, versions[sector as usize]);
        disk.write(Sector(sector), &data, Cause::Update).unwrap();
        if number % 9 == 0 {
            disk.flush(Cause::Flush).unwrap();
        }
    }
    disk.flush(Cause::Flush).unwrap();
    drop(disk);
    (chip, versions)
}

fn is_blank(chip: &mut SimulatedNand, page: Page) -> bool {
    let mut data = [0; 512];
    chip.read(page, 0, &mut data, &mut [], Cause::Lookup).unwrap();
    data == [0xFF; 512]
}

/// What opening with one damaged page cost.
#[derive(Debug, Default)]
struct Cost {
    /// Sectors that tell that they cannot be read.
    told: u32,
    /// Sectors that have what they had before.
    older: u32,
    pages_damaged: u64,
}

fn cost(entry: &Entry, chip: &mut SimulatedNand, versions: &[u8], hook: Damage) -> Cost {
    let mut disk = open(entry, Hooked { chip: chip.clone(), hook }).unwrap();
    let mut cost = Cost { pages_damaged: disk.statistics().pages_damaged, ..Cost::default() };
    for (sector, version) in (0..).zip(versions) {
        match read(&mut *disk, sector) {
            Ok(found) => cost.older += u32::from(found != content(sector, *version)),
            Err(_) => cost.told += 1,
        }
    }
    cost
}

/// Opens the disk with each page damaged in turn, by whether it is the last one of its block.
fn costs(entry: &Entry, spare: u32, part: Part) -> Vec<(Page, bool, Cost)> {
    let (mut chip, versions) = used(entry, spare);
    let whole = cost(entry, &mut chip, &versions, Damage { page: Page(u32::MAX), part });
    assert_eq!((whole.told, whole.older, whole.pages_damaged), (0, 0, 0), "{}", entry.name);
    let mut costs = Vec::new();
    for page in (0..PAGES * BLOCKS).map(Page) {
        if is_blank(&mut chip, page) {
            continue;
        }
        let behind = Page(page.0 + 1);
        let is_last = behind.0.is_multiple_of(PAGES) || is_blank(&mut chip, behind);
        let cost = cost(entry, &mut chip, &versions, Damage { page, part });
        costs.push((page, is_last, cost));
    }
    assert!(costs.len() > 300, "{} pages", costs.len());
    costs
}

#[test]
fn a_damaged_page_costs_its_own_sector_which_says_so() {
    for entry in FTLS {
        for part in [Part::Data, Part::Spare, Part::All] {
            let mut told = 0;
            for (page, is_last, cost) in costs(entry, 32, part) {
                let case = format!("{} {part:?} {page:?} {cost:?}", entry.name);
                assert!(cost.told + cost.older <= 1, "{case}");
                assert!(cost.older == 0 || is_last, "{case}");
                told += cost.told;
            }
            assert!(told > 100 || part == Part::Spare, "{} {part:?}: {told} are told", entry.name);
        }
    }
}

#[test]
fn a_damaged_page_that_nothing_tells_is_counted_and_costs_one_sector() {
    for entry in FTLS {
        for (page, is_last, cost) in costs(entry, 16, Part::All) {
            let case = format!("{} {page:?} {cost:?}", entry.name);
            assert!(cost.told + cost.older <= 1, "{case}");
            assert!(cost.older == 0 || is_last || cost.pages_damaged == 1, "{case}");
        }
    }
}

#[test]
fn without_a_spare_area_a_damaged_page_costs_at_most_its_group() {
    for entry in FTLS {
        let (mut most, mut counted) = (0, 0);
        let mut headers = BTreeMap::new();
        for (page, is_last, cost) in costs(entry, 0, Part::All) {
            let case = format!("{} {page:?} {cost:?}", entry.name);
            assert!(cost.told <= 1, "{case}");
            assert!(cost.older == 0 || is_last || cost.pages_damaged == 1, "{case}");
            if page.0.is_multiple_of(PAGES) {
                headers.insert(page, cost.told + cost.older);
            }
            most = most.max(cost.older);
            counted += cost.pages_damaged;
        }
        assert!(headers.values().all(|lost| *lost == 0), "{}: {headers:?}", entry.name);
        println!("{}: at most {most} sectors, {counted} pages counted", entry.name);
    }
}

#[test]
fn a_full_blocks_last_page_is_not_taken_for_a_torn_one() {
    for name in ["page-map", "dac"] {
        let entry = find(name).unwrap();
        let mut chip = chip(16);
        let mut disk = (entry.create)(Box::new(&mut chip), &Options::default()).unwrap();
        for version in [1, 2] {
            for sector in 0..60 {
                disk.write(Sector(sector), &content(sector, version), Cause::Update).unwrap();
            }
        }
        drop(disk);
        for page in (0..PAGES * BLOCKS).map(Page) {
            let mut data = [0; 512];
            chip.read(page, 0, &mut data, &mut [], Cause::Lookup).unwrap();
            let is_end = (page.0 + 1).is_multiple_of(PAGES);
            if let Some(sector) = (0..60).find(|sector| data == content(*sector, 2))
                && is_end
            {
                let hook = Damage { page, part: Part::Data };
                let mut disk = open(entry, Hooked { chip: chip.clone(), hook }).unwrap();
                assert_eq!(read(&mut *disk, sector), Err(Error::Uncorrectable { page }), "{name}");
            }
        }
    }
}

#[test]
fn what_a_cut_tore_is_not_counted_as_damage() {
    for (entry, spare) in FTLS.iter().flat_map(|entry| [(entry, 0), (entry, 16), (entry, 32)]) {
        let (mut chip, versions) = used(entry, spare);
        let sectors = versions.len() as u64;
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for cut in 1..300 {
            chip.arm(FaultPlan {
                power_cut: Some(Cut::Change(1 + cut % 23)),
                ..FaultPlan::seeded(cut)
            });
            if let Ok(mut disk) = open(entry, &mut chip) {
                assert_eq!(disk.statistics().pages_damaged, 0, "{} {spare}, {cut}", entry.name);
                while disk
                    .write(Sector(random.random_range(0..sectors)), &[9; 512], Cause::Update)
                    .is_ok()
                {}
            }
            chip.restore_power();
        }
    }
}
