//! One test for each rule of the chip, and for what the simulator keeps and charges.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use device::{
    Block, Cause, Charge, Cost, Error, Geometry, Linear, Nand, NandCosts, Operation, Page,
    ProgramOrder, Tally,
};
use flashtree_sim::SimulatedNand;

const FLUSH: Cause = Cause::Flush;

fn costs() -> NandCosts {
    let cost = |fixed, per_byte_thousandths| Cost {
        time: Linear { fixed, per_byte_thousandths, per_page: 0 },
        energy: Some(Linear { fixed: fixed / 10, per_byte_thousandths: 500, per_page: 0 }),
    };
    NandCosts { read: cost(1000, 2000), program: cost(5000, 3000), erase: cost(90_000, 0) }
}

/// 4 blocks of 8 pages of 64 bytes with 16 spare bytes, one program a page, ascending.
fn shape() -> Geometry {
    Geometry::new(64, 8, 4).unwrap().with_spare(16).unwrap()
}

fn chip() -> SimulatedNand {
    SimulatedNand::new(shape(), costs())
}

fn program(chip: &mut SimulatedNand, page: u32, byte: u8) -> Result<(), Error> {
    chip.program(Page(page), 0, &[byte; 64], &[byte; 16], FLUSH)
}

fn content(chip: &mut SimulatedNand, page: u32) -> Content {
    let (mut data, mut spare) = ([0; 64], [0; 16]);
    assert_eq!(chip.read(Page(page), 0, &mut data, &mut spare, Cause::Lookup), Ok(0));
    (data, spare)
}

type Content = ([u8; 64], [u8; 16]);

/// Everything that can be seen of a chip: its books and its contents.
fn all(chip: &mut SimulatedNand) -> (device::Meter, Vec<Content>) {
    let meter = chip.meter().unwrap().clone();
    (meter, (0..chip.geometry().pages()).map(|page| content(chip, page)).collect())
}

/// Does what must be refused with `error`, and checks that it changed and cost nothing.
fn refused<T: std::fmt::Debug + PartialEq>(
    chip: &mut SimulatedNand,
    error: Error,
    act: impl FnOnce(&mut SimulatedNand) -> Result<T, Error>,
) {
    let before = all(chip).1;
    let meter = chip.meter().unwrap().clone();
    assert_eq!(act(chip), Err(error));
    assert_eq!(chip.meter().unwrap(), &meter, "a refused operation was booked");
    assert_eq!(all(chip).1, before, "a refused operation changed something");
}

#[test]
fn a_page_is_programmed_only_after_an_erase() {
    let mut chip = chip();
    program(&mut chip, 7, 1).unwrap();
    refused(&mut chip, Error::NotErased { page: Page(7), erased_from: 64 }, |chip| {
        program(chip, 7, 2)
    });
    chip.erase(Block(0), Cause::Reclamation).unwrap();
    program(&mut chip, 7, 2).unwrap();
    assert_eq!(content(&mut chip, 7), ([2; 64], [2; 16]));
}

#[test]
fn what_was_not_programmed_reads_as_ones() {
    let mut chip = chip();
    chip.program(Page(3), 10, &[5; 20], &[], FLUSH).unwrap();
    let (data, spare) = content(&mut chip, 3);
    assert_eq!((data[9], data[10], data[29], data[30], spare), (0xFF, 5, 5, 0xFF, [0xFF; 16]));
    assert_eq!(content(&mut chip, 2), ([0xFF; 64], [0xFF; 16]));
    chip.program(Page(4), 0, &[5; 64], &[6; 3], FLUSH).unwrap();
    let spare = content(&mut chip, 4).1;
    assert_eq!((spare[2], spare[3]), (6, 0xFF));
    chip.erase(Block(0), Cause::Reclamation).unwrap();
    chip.program(Page(3), 40, &[7; 2], &[], FLUSH).unwrap();
    let data = content(&mut chip, 3).0;
    assert_eq!((data[10], data[39], data[40], data[42]), (0xFF, 0xFF, 7, 0xFF));
    assert_eq!(content(&mut chip, 4), ([0xFF; 64], [0xFF; 16]));
}

#[test]
fn the_parts_of_a_page_follow_one_another() {
    let mut chip = SimulatedNand::new(shape().with_programs(3).unwrap(), costs());
    chip.program(Page(0), 0, &[1; 16], &[], FLUSH).unwrap();
    refused(&mut chip, Error::NotErased { page: Page(0), erased_from: 16 }, |chip| {
        chip.program(Page(0), 15, &[2; 8], &[], FLUSH)
    });
    chip.program(Page(0), 20, &[2; 8], &[], FLUSH).unwrap();
    refused(&mut chip, Error::NotErased { page: Page(0), erased_from: 28 }, |chip| {
        chip.program(Page(0), 16, &[3; 4], &[], FLUSH)
    });
    let data = content(&mut chip, 0).0;
    assert_eq!((data[15], data[16], data[20], data[28]), (1, 0xFF, 2, 0xFF));
}

#[test]
fn a_page_takes_no_more_programs_than_its_chip_allows() {
    let mut chip = SimulatedNand::new(shape().with_programs(2).unwrap(), costs());
    chip.program(Page(0), 0, &[1; 16], &[], FLUSH).unwrap();
    chip.program(Page(0), 16, &[2; 16], &[], FLUSH).unwrap();
    refused(&mut chip, Error::TooManyPrograms { page: Page(0), limit: 2 }, |chip| {
        chip.program(Page(0), 32, &[3; 16], &[], FLUSH)
    });
    refused(&mut chip, Error::TooManyPrograms { page: Page(0), limit: 2 }, |chip| {
        chip.program(Page(0), 0, &[], &[3; 16], FLUSH)
    });
}

#[test]
fn an_ascending_chip_is_programmed_in_order() {
    let mut chip = SimulatedNand::new(shape().with_programs(2).unwrap(), costs());
    chip.program(Page(9), 0, &[1; 16], &[], FLUSH).unwrap();
    program(&mut chip, 12, 1).unwrap();
    for page in [8, 9, 11] {
        let error = Error::OutOfOrder { page: Page(page), lowest: Page(12) };
        refused(&mut chip, error, |chip| chip.program(Page(page), 16, &[1; 16], &[], FLUSH));
    }
    program(&mut chip, 4, 1).unwrap();
    program(&mut chip, 15, 1).unwrap();
    chip.erase(Block(1), Cause::Reclamation).unwrap();
    program(&mut chip, 8, 1).unwrap();
}

#[test]
fn a_chip_without_an_order_is_programmed_anyhow() {
    let mut chip = SimulatedNand::new(shape().with_order(ProgramOrder::Any), costs());
    for page in [12, 8, 15, 9] {
        program(&mut chip, page, page as u8).unwrap();
    }
    assert_eq!(content(&mut chip, 8), ([8; 64], [8; 16]));
}

#[test]
fn a_spare_area_is_programmed_once() {
    let mut chip = SimulatedNand::new(shape().with_programs(4).unwrap(), costs());
    chip.program(Page(0), 0, &[1; 16], &[], FLUSH).unwrap();
    chip.program(Page(0), 16, &[1; 16], &[9; 4], FLUSH).unwrap();
    refused(&mut chip, Error::NotErased { page: Page(0), erased_from: 32 }, |chip| {
        chip.program(Page(0), 32, &[1; 16], &[8; 4], FLUSH)
    });
    chip.program(Page(0), 32, &[1; 16], &[], FLUSH).unwrap();
    chip.program(Page(1), 0, &[], &[7; 16], FLUSH).unwrap();
    assert_eq!(content(&mut chip, 1), ([0xFF; 64], [7; 16]));
}

#[test]
fn a_bad_block_can_be_read_and_nothing_else() {
    let mut chip = chip();
    program(&mut chip, 8, 3).unwrap();
    chip.mark_bad(Block(1)).unwrap();
    assert_eq!(chip.is_bad(Block(1)), Ok(true));
    assert_eq!(chip.is_bad(Block(0)), Ok(false));
    refused(&mut chip, Error::BadBlock { block: Block(1) }, |chip| program(chip, 9, 1));
    refused(&mut chip, Error::BadBlock { block: Block(1) }, |chip| {
        chip.erase(Block(1), Cause::Reclamation)
    });
    assert_eq!(content(&mut chip, 8), ([3; 64], [3; 16]));
}

#[test]
fn blocks_are_bad_from_the_factory() {
    let mut named = chip().with_bad_blocks(&[Block(2), Block(99)]);
    let bad: Vec<u32> = (0..4).filter(|block| named.is_bad(Block(*block)).unwrap()).collect();
    assert_eq!(bad, [2]);
    let geometry = Geometry::new(64, 8, 1000).unwrap();
    let bad_of = |seed, count| {
        let mut chip = SimulatedNand::new(geometry, costs()).with_random_bad_blocks(seed, count);
        (0..1000).filter(|block| chip.is_bad(Block(*block)).unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(bad_of(1, 20).len(), 20);
    assert_eq!(bad_of(1, 20), bad_of(1, 20));
    assert_ne!(bad_of(1, 20), bad_of(2, 20));
    assert_eq!(bad_of(1, 5000).len(), 1000);
}

#[test]
fn pages_blocks_and_bytes_must_exist() {
    let mut chip = chip();
    let no_page = Error::NoSuchPage { page: Page(32), pages: 32 };
    refused(&mut chip, no_page, |chip| program(chip, 32, 1));
    refused(&mut chip, no_page, |chip| chip.read(Page(32), 0, &mut [], &mut [], FLUSH));
    let no_block = Error::NoSuchBlock { block: Block(4), blocks: 4 };
    refused(&mut chip, no_block, |chip| chip.erase(Block(4), FLUSH));
    refused(&mut chip, no_block, |chip| chip.is_bad(Block(4)));
    refused(&mut chip, no_block, |chip| chip.mark_bad(Block(4)));
    refused(&mut chip, Error::BadLength { offset: 60, length: 5, limit: 64 }, |chip| {
        chip.program(Page(0), 60, &[1; 5], &[], FLUSH)
    });
    refused(&mut chip, Error::BadLength { offset: 0, length: 17, limit: 16 }, |chip| {
        chip.read(Page(0), 0, &mut [], &mut [0; 17], FLUSH)
    });
}

#[test]
fn a_program_of_nothing_is_refused() {
    refused(&mut chip(), Error::BadLength { offset: 0, length: 0, limit: 64 }, |chip| {
        chip.program(Page(0), 0, &[], &[], FLUSH)
    });
}

#[test]
fn every_operation_is_charged_and_booked_under_its_cause() {
    let mut chip = chip();
    chip.program(Page(0), 0, &[1; 64], &[2; 16], Cause::Update).unwrap();
    chip.read(Page(0), 60, &mut [0; 4], &mut [], Cause::Lookup).unwrap();
    chip.erase(Block(3), Cause::Reclamation).unwrap();
    let meter = chip.meter().unwrap();
    let update = Tally {
        page_programs: 1,
        bytes_programmed: 80,
        time_ns: 5000 + 3 * 80,
        energy_pj: 500 + 40,
        ..Tally::default()
    };
    let lookup = Tally {
        page_reads: 1,
        bytes_read: 4,
        time_ns: 1000 + 2 * 4,
        energy_pj: 100 + 2,
        ..Tally::default()
    };
    let erase = Tally { block_erases: 1, time_ns: 90_000, energy_pj: 9000, ..Tally::default() };
    assert_eq!(*meter.tally(Cause::Update), update);
    assert_eq!(*meter.tally(Cause::Lookup), lookup);
    assert_eq!(*meter.tally(Cause::Reclamation), erase);
    assert_eq!(meter.erases(), [0, 0, 0, 1]);
    assert!(meter.energy_known());
    let mut twice = meter.clone();
    twice.book(Operation::Erase, Cause::Load, 1, 0, Charge::default());
    assert_ne!(&twice, meter, "meters can be told apart");
}

#[test]
fn memory_is_taken_only_for_blocks_that_hold_data_and_used_again() {
    let geometry = Geometry::new(2048, 64, 65_536).unwrap();
    let mut chip = SimulatedNand::new(geometry, costs());
    assert_eq!(chip.resident_bytes(), 0);
    for block in 0..500 {
        let first = geometry.first_page(Block(block));
        chip.program(first, 0, &[1; 2048], &[], FLUSH).unwrap();
        chip.erase(Block(block), Cause::Reclamation).unwrap();
        assert!(chip.resident_bytes() < 2 * geometry.block_bytes());
    }
}
