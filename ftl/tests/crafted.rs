//! Chips whose metadata was made up: every checksum is right, what it covers makes no sense. A disk
//! is refused, or works as well as it can; nothing panics, nothing runs on for ever.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{
    Block, Cause, Error, Geometry, Nand, NandCosts, Page, Request, Result, Sector, Sectors,
};
use flashtree_ftl::{Entry, FTLS, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

const PAGE: usize = 512;
const BLOCKS: u32 = 40;

/// A chip of bytes that anyone may have written. It gives up after many operations.
#[derive(Clone)]
struct Bytes {
    geometry: Geometry,
    pages: Vec<(Vec<u8>, Vec<u8>)>,
    bad: Vec<bool>,
    operations_left: u32,
}

impl Bytes {
    fn of(chip: &mut SimulatedNand) -> Self {
        let geometry = chip.geometry();
        let page = |number| {
            let mut data = vec![0; PAGE];
            let mut spare = vec![0; geometry.spare_bytes() as usize];
            chip.read(Page(number), 0, &mut data, &mut spare, Cause::Lookup).unwrap();
            (data, spare)
        };
        let pages = (0..geometry.pages()).map(page).collect();
        let bad = vec![false; geometry.blocks() as usize];
        Bytes { geometry, pages, bad, operations_left: 2_000_000 }
    }

    fn count(&mut self) {
        assert!(self.operations_left > 0, "the layer never ends");
        self.operations_left -= 1;
    }
}

impl Nand for Bytes {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        _cause: Cause,
    ) -> Result<u16> {
        self.count();
        self.geometry.check_page(page)?;
        self.geometry.check_bytes(offset, into.len(), spare.len())?;
        let (data, area) = &self.pages[page.0 as usize];
        into.copy_from_slice(&data[offset as usize..][..into.len()]);
        spare.copy_from_slice(&area[..spare.len()]);
        Ok(0)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        _cause: Cause,
    ) -> Result<()> {
        self.count();
        self.geometry.check_page(page)?;
        self.geometry.check_bytes(offset, data.len(), spare.len())?;
        let (bytes, area) = &mut self.pages[page.0 as usize];
        bytes[offset as usize..][..data.len()].copy_from_slice(data);
        area[..spare.len()].copy_from_slice(spare);
        Ok(())
    }

    fn erase(&mut self, block: Block, _cause: Cause) -> Result<()> {
        self.count();
        self.geometry.check_block(block)?;
        let first = self.geometry.first_page(block).0 as usize;
        for (data, spare) in &mut self.pages[first..][..self.geometry.pages_per_block() as usize] {
            data.fill(0xFF);
            spare.fill(0xFF);
        }
        Ok(())
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        Ok(self.bad[block.0 as usize])
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.bad[block.0 as usize] = true;
        Ok(())
    }
}

/// Metadata that can be made up: see FORMAT.md.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A header of page mapping.
    Header,
    /// A page that closes a group.
    Closing,
    /// A page of metadata of a layer that maps blocks.
    Own,
    /// A spare area.
    Spare,
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

/// What stands on a page that can be made up.
fn places(data: &[u8], spare: &[u8]) -> Vec<Place> {
    let own = match &data[..4] {
        b"FTPM" | b"FTDC" => Some(Place::Header),
        b"FTCL" => Some(Place::Closing),
        b"FTBM" | b"FTFA" => Some(Place::Own),
        _ => None,
    };
    let spare = spare.iter().any(|byte| *byte != 0xFF).then_some(Place::Spare);
    own.into_iter().chain(spare).collect()
}

/// Numbers that are likely to hurt.
fn number(random: &mut ChaCha8Rng, bytes: usize) -> u64 {
    let all = u64::MAX >> (64 - 8 * bytes.min(8));
    match random.random_range(0..6) {
        0 => 0,
        1 => all,
        2 => all - random.random_range(0..4),
        3 => 1 << random.random_range(0..8 * bytes),
        4 => random.random_range(0..64),
        _ => random.random::<u64>() & all,
    }
}

/// Where the numbers of a piece of metadata are: first byte and length.
fn fields(place: Place, random: &mut ChaCha8Rng) -> (usize, usize) {
    let list: &[(usize, usize)] = match place {
        Place::Header => {
            &[(8, 8), (16, 4), (20, 4), (24, 1), (25, 1), (26, 2), (32, 4), (36, 4), (92, 8)]
        }
        Place::Closing => &[(4, 4), (8, 8), (28, 4), (32, 4), (36, 8), (60, 4)],
        Place::Own => &[
            (8, 8),
            (16, 8),
            (24, 4),
            (29, 1),
            (30, 2),
            (32, 2),
            (34, 2),
            (36, 4),
            (40, 4),
            (44, 8),
            (52, 4),
            (56, 4),
        ],
        Place::Spare => &[(0, 4), (4, 6)],
    };
    list[random.random_range(0..list.len())]
}

/// Makes up a number, and the checksum for it.
fn make_up(place: Place, page: Page, data: &mut [u8], spare: &mut [u8], random: &mut ChaCha8Rng) {
    let (at, length) = fields(place, random);
    let new = number(random, length).to_le_bytes();
    let address = page.0.to_le_bytes();
    let metadata = if matches!(place, Place::Spare) { &mut *spare } else { &mut *data };
    metadata[at..at + length].copy_from_slice(&new[..length]);
    match place {
        Place::Header => {
            let sum = device::checksum(&[&data[..28], &data[32..], &address]);
            data[28..32].copy_from_slice(&sum.to_le_bytes());
        }
        Place::Closing => {
            let end = (28 + 8 * u64::from(word(&data[4..8]))).min(PAGE as u64) as usize;
            let sum = device::checksum(&[&data[..24], &data[28..end], &address]);
            data[24..28].copy_from_slice(&sum.to_le_bytes());
        }
        Place::Own => {
            let count = |at: usize| usize::from(data[at]) | usize::from(data[at + 1]) << 8;
            let end = (36 + 20 * count(32) + 8 * count(34)).min(PAGE);
            let sum = device::checksum(&[&data[8..end], &address]);
            data[4..8].copy_from_slice(&sum.to_le_bytes());
        }
        Place::Spare => {}
    }
    if spare.len() >= 16 && spare[..16] != [0xFF; 16] {
        let sum = device::checksum(&[data]).to_le_bytes();
        spare[10..13].copy_from_slice(&sum[..3]);
        let kind = spare[15] >> 4;
        let mut covered = spare[..13].to_vec();
        covered.push(kind);
        covered.extend(address);
        let last = u32::from(kind) << 20 | device::checksum(&[&covered]) >> 12;
        spare[13..16].copy_from_slice(&last.to_le_bytes()[..3]);
    }
}

/// A chip that was used, so that all kinds of metadata stand on it.
fn used(entry: &Entry, spare: u32) -> Bytes {
    let geometry = Geometry::new(PAGE as u32, 16, BLOCKS).unwrap().with_spare(spare).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let mut disk = (entry.create)(Box::new(&mut chip), &Options::default()).unwrap();
    let sectors = disk.geometry().sectors();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for number in 0..3 * sectors {
        let sector = if number < sectors { number } else { random.random_range(0..sectors) };
        disk.write(Sector(sector), &[number as u8; PAGE], Cause::Update).unwrap();
        if number % 13 == 0 {
            disk.flush(Cause::Flush).unwrap();
        }
    }
    disk.flush(Cause::Flush).unwrap();
    drop(disk);
    Bytes::of(&mut chip)
}

/// Uses what is on the chip, as far as that goes; true if there was a disk.
fn use_it(entry: &Entry, chip: Bytes, random: &mut ChaCha8Rng) -> bool {
    let Ok(mut disk) = (entry.open)(Box::new(chip), &Options::default()) else { return false };
    let sectors = disk.geometry().sectors();
    let mut found = [0; PAGE];
    for sector in 0..sectors.min(2000) {
        let request = Request { first: Sector(sector), offset: 0, into: &mut found };
        let _ = disk.read(&mut [request], Cause::Lookup);
    }
    for _ in 0..400 {
        let sector = random.random_range(0..sectors);
        if disk.write(Sector(sector), &[1; PAGE], Cause::Update).is_err() {
            break;
        }
    }
    disk.flush(Cause::Flush).is_ok() || sectors > 0
}

/// Makes up one chip by the seed and uses it; true if there was a disk on it.
fn play(entry: &Entry, good: &Bytes, seed: u64) -> bool {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut chip = good.clone();
    let holds = |(_, page): &(usize, &(Vec<u8>, Vec<u8>)), own: bool| {
        places(&page.0, &page.1).iter().any(|place| own != matches!(place, Place::Spare))
    };
    let pages = |own| {
        let found = good.pages.iter().enumerate().filter(|page| holds(page, own));
        found.map(|(number, _)| number).collect::<Vec<_>>()
    };
    // There are few headers among many spare areas.
    let groups = [pages(true), pages(false)];
    for _ in 0..random.random_range(1..6) {
        let group = &groups[random.random_range(0..2)];
        let group = if group.is_empty() { &groups[0] } else { group };
        let page = group[random.random_range(0..group.len())];
        let (data, spare) = &mut chip.pages[page];
        let places = places(data, spare);
        if !places.is_empty() {
            let place = places[random.random_range(0..places.len())];
            make_up(place, Page(page as u32), data, spare, &mut random);
        }
    }
    use_it(entry, chip, &mut random)
}

#[test]
fn metadata_that_was_made_up_never_stops_the_program() {
    let wanted = std::env::var("FLASHTREE_CASE").ok();
    for (entry, spare) in FTLS.iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let good = used(entry, spare);
        let mut disks = 0;
        for seed in 0..400 {
            let case = format!("{}/{spare}/{seed}", entry.name);
            if wanted.as_ref().is_some_and(|wanted| *wanted != case) {
                continue;
            }
            let played = catch_unwind(AssertUnwindSafe(|| play(entry, &good, seed)));
            disks += u32::from(played.unwrap_or_else(|_| {
                panic!(
                    "{case} failed; play it again with\n  FLASHTREE_CASE='{case}' \
                     cargo test -p flashtree-ftl --test crafted"
                )
            }));
        }
        println!("{}, spare {spare}: {disks} of 400 chips hold a disk", entry.name);
        assert!(wanted.is_some() || disks > 200, "{disks}");
    }
}

#[test]
fn the_chips_that_metadata_is_made_up_from_hold_disks() {
    for (entry, spare) in FTLS.iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let good = used(entry, spare);
        let opened = (entry.open)(Box::new(good), &Options::default());
        assert!(opened.is_ok(), "{:?}", opened.err().unwrap_or(Error::PowerCut));
    }
}
