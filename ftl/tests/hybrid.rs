//! What block mapping and FAST do beside being disks, which the suites in `contract` show.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod spoiled;

use device::{Cause, Error, Geometry, Nand, NandCosts, Page, Request, Sector, Sectors};
use flashtree_ftl::{Entry, Layer, Options, find};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultPlan, Flips, SimulatedNand};
use spoiled::Spoiled;

const PAGES: u32 = 16;
const BLOCKS: u32 = 64;

fn layers() -> [&'static Entry; 2] {
    ["block-map", "fast"].map(|name| find(name).unwrap())
}

fn chip(spare: u32) -> SimulatedNand {
    let geometry = Geometry::new(512, PAGES, BLOCKS).unwrap().with_spare(spare).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

/// Sectors of a logical block.
fn places(spare: u32) -> u64 {
    u64::from(PAGES) - if spare == 0 { 2 } else { 0 }
}

fn content(sector: u64, version: u8) -> [u8; 512] {
    let mut content = [version; 512];
    content[..8].copy_from_slice(&sector.to_le_bytes());
    content
}

fn read(disk: &mut dyn Layer, sector: u64) -> Result<[u8; 512], Error> {
    let mut found = [0; 512];
    let requests = &mut [Request { first: Sector(sector), offset: 0, into: &mut found }];
    disk.read(requests, Cause::Lookup)?;
    Ok(found)
}

fn fill(disk: &mut dyn Layer) {
    for sector in 0..disk.geometry().sectors() {
        disk.write(Sector(sector), &content(sector, 1), Cause::Update).unwrap();
    }
    disk.flush(Cause::Flush).unwrap();
}

fn make<'d>(entry: &Entry, nand: impl Nand + 'd) -> Box<dyn Layer + 'd> {
    (entry.create)(Box::new(nand), &Options::default()).unwrap()
}

fn open<'d>(entry: &Entry, nand: impl Nand + 'd) -> Result<Box<dyn Layer + 'd>, Error> {
    (entry.open)(Box::new(nand), &Options::default())
}

#[test]
fn the_tables_take_what_they_say_and_nothing_is_allocated_after_opening() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        // The simulated chip has memory for all its blocks then.
        let mut disk = make(entry, &mut chip);
        (0..4).for_each(|_| fill(&mut *disk));
        drop(disk);
        let mut opened = None;
        let counted = allocation_counter::measure(|| opened = Some(open(entry, &mut chip)));
        let mut disk = opened.unwrap().unwrap();
        // The tables, and the disk itself in its box.
        let (stated, taken) = (disk.table_bytes(), counted.bytes_current as u64);
        assert!((stated..stated + 1024).contains(&taken), "{taken} taken, {stated} stated");
        let own = u64::from(4 * BLOCKS + 13 * BLOCKS + 8 * BLOCKS.div_ceil(64) + 2 * 512);
        let logs = 8 * (48 + u64::from(PAGES) * (4 + 32 + 8)) + 8 * 64;
        assert!(stated <= own + logs, "{}: {stated} bytes", entry.name);

        let sectors = disk.geometry().sectors();
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let counted = allocation_counter::measure(|| {
            for _ in 0..3000 {
                let sector = random.random_range(0..sectors - 1);
                disk.write(Sector(sector), &[4; 1024], Cause::Update).unwrap();
                assert_eq!(read(&mut *disk, sector), Ok([4; 512]));
                if random.random_range(0..4) == 0 {
                    disk.flush(Cause::Flush).unwrap();
                }
            }
        });
        assert_eq!(counted.count_total, 0, "{} with {spare} spare bytes", entry.name);
    }
}

#[test]
fn users_writes_are_booked_under_their_cause_and_merges_as_reclamation() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        let mut disk = make(entry, &mut chip);
        let sectors = disk.geometry().sectors();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..5000 {
            let sector = Sector(random.random_range(0..sectors));
            disk.write(sector, &[2; 512], Cause::Update).unwrap();
        }
        let did = *disk.statistics();
        let meter = disk.meter().unwrap();
        let (update, merges) = (meter.tally(Cause::Update), meter.tally(Cause::Reclamation));
        assert_eq!((update.page_reads, update.block_erases), (0, 0));
        assert!((5000..=5000 + did.pages_of_metadata).contains(&update.page_programs));
        assert_eq!(merges.block_erases, did.blocks_erased);
        // Each block was erased once to make the disk.
        let (erases, known) = (disk.meter().unwrap().erases(), did.erases.unwrap());
        assert_eq!(known.total, did.blocks_erased + u64::from(BLOCKS));
        assert_eq!((known.least, known.blocks), (*erases.iter().min().unwrap(), BLOCKS));
        // The first one was erased once more.
        assert!((known.most..=known.most + 1).contains(erases.iter().max().unwrap()));
        assert!(merges.page_reads > 5000 && merges.page_programs > 10_000, "{merges:?}");
        let programmed = 5000 + did.pages_moved + did.pages_of_metadata;
        assert_eq!(did.pages_programmed, programmed);
        assert!(did.write_amplification().unwrap() > 4.0, "{did:?}");
        assert_eq!(disk.table_bytes(), disk.table_bytes());
    }
}

#[test]
fn opening_reads_two_pages_of_a_block_and_the_log() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        let mut disk = make(entry, &mut chip);
        fill(&mut *disk);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let sectors = disk.geometry().sectors();
        for _ in 0..500 {
            let sector = random.random_range(0..sectors);
            disk.write(Sector(sector), &content(sector, 2), Cause::Update).unwrap();
        }
        drop(disk);
        let before = *chip.meter().unwrap().tally(Cause::Recovery);
        drop(open(entry, &mut chip).unwrap());
        let opening = *chip.meter().unwrap().tally(Cause::Recovery) - before;
        // Of eight blocks that were being filled or are of the log, all pages.
        let most = u64::from(2 * BLOCKS + 10 * PAGES);
        assert!(opening.page_reads <= most, "{}: {} reads", entry.name, opening.page_reads);
        assert_eq!((opening.page_programs, opening.block_erases), (0, 0));
    }
}

#[test]
fn a_page_that_is_lost_costs_its_own_sector_until_that_is_written() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        fill(&mut *make(entry, &mut chip));
        let lost = places(spare) * 3 + 5;
        let mut chip = Spoiled::pages(chip, |data| data == content(lost, 1));
        let mut disk = open(entry, &mut chip).unwrap();
        assert!(matches!(read(&mut *disk, lost), Err(Error::Uncorrectable { .. })));
        // The other sectors of its logical block are written, and merged several times.
        let sectors = disk.geometry().sectors();
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let near = places(spare) * 3..places(spare) * 4;
        for version in 2..=6 {
            for sector in (0..sectors).rev().filter(|sector| *sector != lost) {
                if near.contains(&sector) || random.random_range(0..4) == 0 {
                    let data = content(sector, version);
                    disk.write(Sector(sector), &data, Cause::Update).unwrap();
                }
            }
            disk.flush(Cause::Flush).unwrap();
            assert!(matches!(read(&mut *disk, lost), Err(Error::Uncorrectable { .. })));
            assert!(disk.statistics().pages_lost > 0, "{}", entry.name);
            drop(disk);
            disk = open(entry, &mut chip).unwrap();
            for sector in 0..sectors {
                match read(&mut *disk, sector) {
                    Ok(found) => assert_eq!(found, content(sector, found[8])),
                    Err(error) => assert_eq!((sector, is_lost(error)), (lost, true)),
                }
                if near.contains(&sector) && sector != lost {
                    assert_eq!(read(&mut *disk, sector), Ok(content(sector, version)));
                }
            }
            assert!(read(&mut *disk, lost).is_err(), "{}", entry.name);
            // Since opening nothing was merged.
            disk.write(Sector(near.start), &content(near.start, version), Cause::Update).unwrap();
        }
        disk.write(Sector(lost), &content(lost, 9), Cause::Update).unwrap();
        assert_eq!(read(&mut *disk, lost), Ok(content(lost, 9)));
        disk.flush(Cause::Flush).unwrap();
        drop(disk);
        let mut disk = open(entry, &mut chip).unwrap();
        assert_eq!(read(&mut *disk, lost), Ok(content(lost, 9)));
    }
}

const fn is_lost(error: Error) -> bool {
    matches!(error, Error::Uncorrectable { .. })
}

#[test]
fn a_full_merge_whose_last_page_cannot_be_read_keeps_its_other_sectors() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        let mut disk = make(entry, &mut chip);
        fill(&mut *disk);
        // One write to each logical block in turn.
        let (sectors, step) = (disk.geometry().sectors(), places(spare));
        for sector in (3..12).flat_map(|place| (place..sectors).step_by(step as usize)) {
            disk.write(Sector(sector), &content(sector, 2), Cause::Update).unwrap();
        }
        disk.flush(Cause::Flush).unwrap();
        let merges = disk.statistics().full_merges;
        assert!(merges > 50, "{}: {merges} full merges", entry.name);
        drop(disk);
        // Of every full merge the last page; without a spare area that is the layer's own.
        let mut chip = Spoiled::last_pages(chip);
        let last = chip.hook.count();
        if entry.name == "fast" {
            assert!(last > 20, "{last} pages");
        }
        let mut disk = open(entry, &mut chip).unwrap();
        for sector in 0..sectors {
            let wanted = content(sector, if (3..12).contains(&(sector % step)) { 2 } else { 1 });
            match read(&mut *disk, sector) {
                Ok(found) => assert_eq!(found, wanted, "{} {sector}", entry.name),
                Err(error) => assert_eq!((sector % step, is_lost(error)), (step - 1, true)),
            }
        }
    }
}

#[test]
fn flips_that_come_and_go_do_no_harm() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        fill(&mut *make(entry, &mut chip));
        let flips = Flips { uncorrectable_rate: 2e-3, corrected_rate: 2e-2, ..Flips::default() };
        chip.arm(FaultPlan { flips, ..FaultPlan::seeded(3) });
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut corrected = 0;
        for version in 2..10 {
            let mut disk = open(entry, &mut chip).unwrap();
            let sectors = disk.geometry().sectors();
            for _ in 0..200 {
                let sector = random.random_range(0..sectors);
                disk.write(Sector(sector), &content(sector, version), Cause::Update).unwrap();
                assert_eq!(read(&mut *disk, sector), Ok(content(sector, version)));
            }
            disk.flush(Cause::Flush).unwrap();
            for sector in 0..sectors {
                let found = read(&mut *disk, sector).unwrap();
                assert_eq!(found, content(sector, found[8]));
            }
            assert_eq!(disk.statistics().pages_lost, 0);
            corrected += disk.statistics().bits_corrected;
        }
        let log = chip.faults();
        assert!(log.count(sim::FaultKind::UncorrectableRead) > 20, "{log:?}");
        assert!(corrected > 100, "{corrected}");
    }
}

#[test]
fn a_chip_that_holds_no_disk_or_another_layers_is_refused() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let blank = open(entry, chip(spare)).map(|_| ());
        assert!(matches!(blank, Err(Error::NotFormatted { found: 0xFFFF_FFFF, .. })), "{blank:?}");
        for other in ["block-map", "dac", "fast", "page-map"].map(|name| find(name).unwrap()) {
            let mut chip = chip(spare);
            fill(&mut *make(other, &mut chip));
            let opened = open(entry, &mut chip).map(|_| ());
            let same = other.name == entry.name;
            assert_eq!(opened.is_ok(), same, "{} as {}: {opened:?}", other.name, entry.name);
        }
        let mut garbage = chip(spare);
        for page in 0..garbage.geometry().pages() {
            let spare = vec![0x33; spare as usize];
            garbage.program(Page(page), 0, &[0x77; 512], &spare, Cause::Load).unwrap();
        }
        let opened = open(entry, garbage).map(|_| ());
        assert!(matches!(opened, Err(Error::NotFormatted { .. })), "{opened:?}");
    }
}

#[test]
fn a_chip_whose_formatting_was_cut_off_holds_no_disk() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        // The newest header stands in another block than the first.
        let mut old = chip(spare);
        let mut disk = make(entry, &mut old);
        fill(&mut *disk);
        let sectors = disk.geometry().sectors();
        for number in 0..2 * sectors {
            let sector = Sector(number * 37 % sectors);
            disk.write(sector, &[2; 512], Cause::Update).unwrap();
            disk.flush(Cause::Flush).unwrap();
        }
        drop(disk);
        let mut refused = 0;
        for change in 3..=u64::from(BLOCKS) {
            let mut chip = old.clone();
            chip.arm(FaultPlan::cut(change, Cut::Change(change)));
            let made = (entry.create)(Box::new(&mut chip), &Options::default()).map(|_| ());
            assert_eq!(made, Err(Error::PowerCut));
            chip.restore_power();
            let opened = open(entry, &mut chip).map(|_| ());
            refused += u32::from(matches!(opened, Err(Error::NotFormatted { .. })));
        }
        assert_eq!(refused, BLOCKS - 2, "{} with {spare} spare bytes", entry.name);
    }
}

#[test]
fn a_disk_keeps_the_size_and_the_logs_that_it_was_made_with() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        let mut chip = chip(spare);
        let options = Options::default().with_logs(3).unwrap().with_over_provision(0.5).unwrap();
        let mut disk = (entry.create)(Box::new(&mut chip), &options).unwrap();
        fill(&mut *disk);
        let (shape, bytes) = (disk.geometry(), disk.table_bytes());
        drop(disk);
        let disk = open(entry, &mut chip).unwrap();
        assert_eq!((disk.geometry(), disk.table_bytes()), (shape, bytes));
    }
}

#[test]
fn a_chip_that_is_too_small_is_refused() {
    for (entry, spare) in layers().into_iter().flat_map(|entry| [(entry, 0), (entry, 16)]) {
        for (pages, blocks, fits) in [(1, 100, false), (4, 11, false), (4, 12, true)] {
            let geometry = Geometry::new(512, pages, blocks).unwrap().with_spare(spare).unwrap();
            let chip = SimulatedNand::new(geometry, NandCosts::default());
            let made = (entry.create)(Box::new(chip), &Options::default()).map(|_| ());
            let small = matches!(made, Err(Error::TooFewBlocks { .. } | Error::TooFewPages { .. }));
            assert_eq!((made.is_ok(), small), (fits, !fits), "{made:?}");
        }
    }
}

#[test]
fn a_newest_header_that_cannot_be_read_costs_nothing_that_was_flushed() {
    let entry = find("fast").unwrap();
    let mut chip = chip(16);
    let mut disk = make(entry, &mut chip);
    fill(&mut *disk);
    let sectors = disk.geometry().sectors();
    let mut versions = vec![1; sectors as usize];
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..1000 {
        let sector = random.random_range(0..sectors);
        versions[sector as usize] += 1;
        let content = content(sector, versions[sector as usize]);
        disk.write(Sector(sector), &content, Cause::Update).unwrap();
    }
    drop(disk);
    let mut page = [0; 512];
    let sequence = |page: &[u8]| u64::from_le_bytes(page[8..16].try_into().unwrap());
    let is_header = |page: &[u8]| page[..4] == *b"FTFA" && page[29] == 1;
    let mut newest = 0;
    for number in 0..PAGES * BLOCKS {
        chip.read(Page(number), 0, &mut page, &mut [], Cause::Lookup).unwrap();
        newest = newest.max(if is_header(&page) { sequence(&page) } else { 0 });
    }
    let mut chip = Spoiled::pages(chip, |page| is_header(page) && sequence(page) == newest);
    let mut disk = open(entry, &mut chip).unwrap();
    for (sector, version) in (0..).zip(versions) {
        assert_eq!(read(&mut *disk, sector), Ok(content(sector, version)), "sector {sector}");
    }
    fill(&mut *disk);
}

#[test]
fn the_replacement_block_that_was_written_longest_ago_is_merged_first() {
    let mut chip = chip(16);
    let entry = find("block-map").unwrap();
    let options = Options::default().with_logs(2).unwrap();
    let mut disk = (entry.create)(Box::new(&mut chip), &options).unwrap();
    fill(&mut *disk);
    let mut write = |sector: u64| {
        let before = disk.statistics().pages_programmed;
        disk.write(Sector(sector), &content(sector, 2), Cause::Update).unwrap();
        disk.statistics().pages_programmed - before
    };
    let length = u64::from(PAGES);
    let (one, other, third) = (0, length, 2 * length);
    assert_eq!([write(one), write(other), write(one + 1)], [1; 3]);
    // The other one was written once, so the rest of its places is copied.
    assert_eq!(write(third), length);
    assert_eq!([write(one + 2), write(third + 1)], [1; 2]);
}
