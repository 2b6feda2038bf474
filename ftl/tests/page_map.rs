//! What the page-mapped disk does beside being a disk, which the suite in `contract` shows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use device::{Block, Cause, Error, Geometry, Nand, NandCosts, Page, Request, Sector, Sectors};
use flashtree_ftl::{Dac, Levelling, Options, PageMap, Victim};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, Failure, FaultPlan, SimulatedNand};

fn chip(spare: u32) -> SimulatedNand {
    let geometry = Geometry::new(512, 16, 64).and_then(|shape| shape.with_spare(spare)).unwrap();
    SimulatedNand::new(geometry, NandCosts::default())
}

fn format(spare: u32) -> PageMap<SimulatedNand> {
    PageMap::format(chip(spare), Options::default()).unwrap()
}

/// Fills a disk, then writes `writes` sectors at random, under [`Cause::Update`].
fn work(disk: &mut PageMap<SimulatedNand>, writes: u32) {
    let sectors = disk.geometry().sectors();
    for sector in 0..sectors {
        disk.write(Sector(sector), &[1; 512], Cause::Update).unwrap();
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..writes {
        let sector = Sector(random.random_range(0..sectors));
        disk.write(sector, &[2; 512], Cause::Update).unwrap();
    }
}

#[test]
fn users_writes_are_booked_under_their_cause_and_collection_under_its_own() {
    for spare in [0, 16] {
        let mut disk = format(spare);
        work(&mut disk, 5000);
        let meter = disk.meter().unwrap();
        let (update, reclamation) = (meter.tally(Cause::Update), meter.tally(Cause::Reclamation));
        let statistics = disk.statistics();
        let written = 5000 + disk.geometry().sectors();
        assert_eq!(statistics.sectors_written, written);
        assert!(update.page_programs >= written, "{update:?}");
        assert!(update.page_programs <= written + statistics.pages_of_metadata, "{update:?}");
        assert_eq!((update.page_reads, update.block_erases), (0, 0));
        assert!(reclamation.page_reads >= statistics.pages_moved, "{reclamation:?}");
        assert_eq!(reclamation.block_erases, statistics.blocks_erased);
        assert!(statistics.pages_moved > 1000 && statistics.collections > 100, "{statistics:?}");
        let programmed = statistics.pages_programmed;
        assert_eq!(programmed, written + statistics.pages_moved + statistics.pages_of_metadata);
        let amplification = statistics.write_amplification().unwrap();
        assert!((1.7..8.0).contains(&amplification), "{amplification}");
    }
}

#[test]
fn writing_in_order_moves_nothing() {
    let mut disk = format(16);
    for _ in 0..10 {
        for sector in 0..disk.geometry().sectors() {
            disk.write(Sector(sector), &[3; 512], Cause::Update).unwrap();
        }
    }
    let statistics = disk.statistics();
    assert_eq!(statistics.pages_moved, 0);
    assert!(statistics.write_amplification().unwrap() < 1.02, "{statistics:?}");
}

#[test]
fn erases_spread_over_all_blocks_when_all_sectors_are_written() {
    let mut disk = format(16);
    work(&mut disk, 40_000);
    let erases = disk.meter().unwrap().erases();
    let most = f64::from(*erases.iter().max().unwrap());
    let mean = erases.iter().sum::<u32>() as f64 / erases.len() as f64;
    assert!(most < 1.5 * mean, "{most} over {mean}");
}

#[test]
fn nothing_is_allocated_after_opening() {
    for spare in [0, 16] {
        let mut disk = format(spare);
        work(&mut disk, 1000);
        let sectors = disk.geometry().sectors();
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let mut found = [0; 700];
        let counted = allocation_counter::measure(|| {
            for _ in 0..2000 {
                let first = Sector(random.random_range(0..sectors - 2));
                disk.write(first, &[4; 1024], Cause::Update).unwrap();
                let requests = &mut [Request { first, offset: 100, into: &mut found }];
                disk.read(requests, Cause::Lookup).unwrap();
                disk.trim(first, 1, Cause::Update).unwrap();
                disk.flush(Cause::Flush).unwrap();
            }
        });
        assert_eq!(counted.count_total, 0, "with {spare} spare bytes");
    }
}

#[test]
fn the_tables_keep_their_stated_bound_and_take_what_they_say() {
    for (spare, block, group) in [(16, 35, 0), (0, 35, 14)] {
        let mut made = None;
        let counted = allocation_counter::measure(|| made = Some(format(spare)));
        let disk = made.unwrap();
        let shape = disk.nand().geometry();
        let own = u64::from(shape.pages().div_ceil(64) * 8)
            + 4 * disk.geometry().sectors()
            + u64::from(block * shape.blocks())
            + u64::from(8 * (shape.pages_per_block() + 1))
            + u64::from(2 * shape.page_bytes())
            + 32 * group;
        assert_eq!(disk.table_bytes(), own);
        let chip = disk.nand().resident_bytes() + u64::from(shape.blocks()) * 20 + 4096;
        assert!(counted.bytes_current as u64 <= own + chip, "{counted:?} where {own} are stated");
    }
}

#[test]
fn a_chip_that_holds_no_disk_is_refused() {
    for spare in [0, 16] {
        let blank = PageMap::open(chip(spare), Options::default());
        let found = 0xFFFF_FFFF;
        assert!(matches!(blank, Err(Error::NotFormatted { found: f, .. }) if f == found));
        let mut foreign = chip(spare);
        for page in 0..foreign.geometry().pages() {
            let spare = vec![0x33; spare as usize];
            foreign.program(Page(page), 0, &[0x77; 512], &spare, Cause::Load).unwrap();
        }
        let opened = PageMap::open(&mut foreign, Options::default()).map(|_| ());
        let found = 0x7777_7777;
        assert!(matches!(opened, Err(Error::NotFormatted { found: f, .. }) if f == found));
        PageMap::format(&mut foreign, Options::default()).unwrap();
        PageMap::open(&mut foreign, Options::default()).unwrap();
    }
}

#[test]
fn a_chip_whose_formatting_was_cut_off_holds_no_disk() {
    for spare in [0, 16] {
        // The newest header stands in one of the last blocks.
        let mut old = format(spare);
        let sectors = old.geometry().sectors();
        for number in 0..sectors + sectors / 2 {
            old.write(Sector(number % sectors), &[1; 512], Cause::Update).unwrap();
        }
        let old = old.into_nand();
        for cut in 1..66 {
            let mut chip = old.clone();
            chip.arm(FaultPlan::cut(cut, Cut::Change(cut)));
            let formatted = PageMap::format(&mut chip, Options::default()).map(|_| ());
            assert_eq!(formatted, Err(Error::PowerCut), "cut {cut}");
            chip.restore_power();
            let opened = PageMap::open(&mut chip, Options::default()).map(|_| ());
            // The second operation is the mark that the chip is being formatted; before that the
            // old disk may still be there, but for its first block.
            let expected = cut <= 2 || matches!(opened, Err(Error::NotFormatted { .. }));
            assert!(expected, "cut {cut}: {opened:?}");
        }
    }
}

#[test]
fn a_disk_keeps_the_size_that_it_was_made_with() {
    let mut chip = chip(16);
    let sectors = |disk: &dyn Sectors| disk.geometry().sectors();
    let few = Options::default().with_over_provision(0.5).unwrap();
    let made = sectors(&PageMap::format(&mut chip, few).unwrap());
    chip.mark_bad(Block(63)).unwrap();
    let opened = sectors(&PageMap::open(&mut chip, Options::default()).unwrap());
    assert_eq!(opened, made);
    let whole = sectors(&PageMap::format(&mut chip, Options::default()).unwrap());
    assert!(whole > made + 300, "{whole}, {made}");
}

#[test]
fn opening_reads_spare_areas_or_one_page_a_group() {
    for spare in [0, 16] {
        let mut disk = format(spare);
        work(&mut disk, 5000);
        disk.flush(Cause::Flush).unwrap();
        let before = *disk.meter().unwrap().tally(Cause::Recovery);
        let disk = PageMap::open(disk.into_nand(), Options::default()).unwrap();
        let read = *disk.meter().unwrap().tally(Cause::Recovery) - before;
        let (blocks, pages) = (64, 64 * 16);
        if spare == 0 {
            // For a full block its header and the page that closes its only group; more where
            // groups were closed early, and a few bytes of each page behind the last group.
            assert!(read.page_reads <= 4 * blocks, "{read:?}");
            assert!(read.bytes_read <= 3 * blocks * 512, "{read:?}");
        } else {
            // One spare area a page, and one more for each block's first page; the headers, and
            // the data of the last page of each block.
            assert!(read.page_reads <= pages + 4 * blocks, "{read:?}");
            assert!(read.bytes_read <= (pages + 2 * blocks) * 16 + 2 * blocks * 512, "{read:?}");
        }
    }
}

#[test]
fn a_disk_of_one_layer_is_none_of_another() {
    let mut chip = chip(16);
    PageMap::format(&mut chip, Options::default()).unwrap();
    let opened = Dac::open(&mut chip, Options::default()).map(|_| ());
    assert!(matches!(opened, Err(Error::NotFormatted { .. })), "{opened:?}");
    Dac::format(&mut chip, Options::default()).unwrap();
    let opened = PageMap::open(&mut chip, Options::default()).map(|_| ());
    assert!(matches!(opened, Err(Error::NotFormatted { .. })), "{opened:?}");
}

#[test]
fn a_disk_that_is_opened_with_other_policies_keeps_its_contents() {
    let content = |sector: u64| [sector as u8; 512];
    for spare in [0, 16] {
        let one = Options::default().with_frontiers(1).unwrap();
        let mut disk = PageMap::format(chip(spare), one).unwrap();
        let sectors = disk.geometry().sectors();
        for round in 0..12 {
            for sector in (0..sectors).chain((0..sectors).step_by(3)) {
                disk.write(Sector(sector), &content(sector + round), Cause::Update).unwrap();
            }
            disk.flush(Cause::Flush).unwrap();
            let (_, victim) = Victim::ALL[round as usize % 3];
            let (_, levelling) = Levelling::ALL[round as usize / 3 % 3];
            let options = Options::default().with_victim(victim).with_levelling(levelling);
            disk = PageMap::open(disk.into_nand(), options).unwrap();
            for sector in 0..sectors {
                let mut found = [0; 512];
                let requests =
                    &mut [Request { first: Sector(sector), offset: 0, into: &mut found }];
                disk.read(requests, Cause::Lookup).unwrap();
                assert_eq!(found, content(sector + round), "sector {sector}");
            }
        }
    }
}

#[test]
fn a_chip_that_is_too_small_is_refused() {
    let format = |pages, blocks, spare| {
        let shape = Geometry::new(512, pages, blocks).and_then(|shape| shape.with_spare(spare));
        let chip = SimulatedNand::new(shape.unwrap(), NandCosts::default());
        PageMap::format(chip, Options::default()).map(|disk| disk.geometry().sectors())
    };
    assert_eq!(format(16, 11, 16), Err(Error::TooFewBlocks { have: 11, need: 12 }));
    assert_eq!(format(16, 12, 16), Ok(15));
    assert_eq!(format(4, 64, 0), Err(Error::TooFewPages { have: 4, need: 8 }));
    assert_eq!(format(2, 64, 16), Err(Error::TooFewPages { have: 2, need: 4 }));
}

#[test]
fn a_disk_whose_blocks_went_bad_is_full_and_keeps_its_contents() {
    let mut disk = format(16);
    let sectors = disk.geometry().sectors();
    for sector in 0..sectors {
        disk.write(Sector(sector), &[sector as u8; 512], Cause::Update).unwrap();
    }
    // From now on the chip refuses a fifth of everything; more in a row would be a failing chip.
    let mut chip = disk.into_nand();
    chip.arm(FaultPlan {
        refused_program: Failure::with_rate(0.2),
        refused_erase: Failure::with_rate(0.2),
        ..FaultPlan::seeded(1)
    });
    let mut disk = PageMap::open(chip, Options::default()).unwrap();
    let full = (0..sectors).find_map(|sector| {
        let content = [sector as u8; 512];
        disk.write(Sector(sector), &content, Cause::Update).err()
    });
    assert!(matches!(full, Some(Error::Full { .. })), "{full:?}");
    for sector in 0..sectors {
        let mut found = [0; 512];
        let requests = &mut [Request { first: Sector(sector), offset: 0, into: &mut found }];
        disk.read(requests, Cause::Lookup).unwrap();
        assert_eq!(found, [sector as u8; 512]);
    }
}

/// A chip that refuses every program, and whose driver fails at every read, while that is wanted.
struct Failing {
    chip: SimulatedNand,
    fails: Arc<AtomicBool>,
}

impl Failing {
    fn or(&self, error: Error) -> Result<(), Error> {
        if self.fails.load(Ordering::Relaxed) { Err(error) } else { Ok(()) }
    }
}

impl Nand for Failing {
    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16, Error> {
        self.or(Error::Driver { code: 5 })?;
        self.chip.read(page, offset, into, spare, cause)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), Error> {
        self.or(Error::ProgramRefused { page })?;
        self.chip.program(page, offset, data, spare, cause)
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<(), Error> {
        self.chip.erase(block, cause)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool, Error> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<(), Error> {
        self.chip.mark_bad(block)
    }
}

#[test]
fn after_a_flush_that_lost_what_users_wrote_the_disk_can_only_be_read() {
    let fails = Arc::new(AtomicBool::new(false));
    let chip = Failing { chip: chip(0), fails: Arc::clone(&fails) };
    let mut disk = PageMap::format(chip, Options::default()).unwrap();
    disk.write(Sector(0), &[7; 512 * 3], Cause::Update).unwrap();
    fails.store(true, Ordering::Relaxed);
    let failure = Err(Error::Driver { code: 5 });
    assert_eq!(disk.flush(Cause::Flush), failure);
    fails.store(false, Ordering::Relaxed);
    assert_eq!(disk.flush(Cause::Flush), failure, "what was lost was called durable");
    assert_eq!(disk.write(Sector(9), &[8; 512], Cause::Update), failure);
    let mut found = [0; 512];
    let request = Request { first: Sector(1), offset: 0, into: &mut found };
    assert_eq!(disk.read(&mut [request], Cause::Lookup), Ok(()));
    assert_eq!(found, [7; 512]);
}
