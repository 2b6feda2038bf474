//! Flips, refusals, operations that silently do nothing, bad and worn blocks: one test for each.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod common;

use common::{PAGE, chip, costs, erase, fill, full, program, read, shape, with_seeds};
use device::{Block, Cause, Error, Geometry, Nand, Page};
use flashtree_sim::{
    Failure, FaultKind, FaultPlan, Flips, Growth, SimulatedNand, WeakPage, WearOut,
};

fn bits_of(chip: &mut SimulatedNand, page: u32) -> Result<u16, Error> {
    chip.read(Page(page), 0, &mut [0; PAGE], &mut [], Cause::Lookup)
}

fn flipping(seed: u64, flips: Flips) -> SimulatedNand {
    let mut chip = chip(FaultPlan { flips, ..FaultPlan::seeded(seed) });
    fill(&mut chip, 0);
    chip
}

#[test]
fn flips_within_the_code_are_corrected_and_counted() {
    let mut chip =
        flipping(1, Flips { ecc_bits: Some(4), corrected_rate: 1.0, ..Flips::default() });
    let (mut sum, mut seen) = (0, [0; 5]);
    for _ in 0..100 {
        let (mut data, mut spare) = ([0; PAGE], [0; 16]);
        let bits = chip.read(Page(3), 0, &mut data, &mut spare, Cause::Lookup).unwrap();
        assert_eq!((data, spare), ([3; PAGE], [3; 16]));
        sum += u64::from(bits);
        seen[usize::from(bits)] += 1;
    }
    assert_eq!(chip.meter().unwrap().bits_corrected(), sum);
    assert_eq!(chip.faults().count(FaultKind::CorrectedRead), 100);
    assert!(seen[0] == 0 && seen[1..].iter().all(|count| *count > 10), "{seen:?}");
}

#[test]
fn flips_beyond_the_code_are_reported_and_pass() {
    let flips = Flips { uncorrectable_rate: 0.5, ..Flips::default() };
    let mut chip = flipping(2, flips);
    let mut failures = 0;
    for _ in 0..1000 {
        match read(&mut chip, 3) {
            Err(error) => {
                assert_eq!(error, Error::Uncorrectable { page: Page(3) });
                failures += 1;
            }
            content => assert_eq!(content, full(3)),
        }
    }
    assert!((440..=560).contains(&failures), "{failures}");
    assert_eq!(chip.faults().count(FaultKind::UncorrectableRead), failures);
    assert_eq!(chip.meter().unwrap().bits_corrected(), 0);
    assert_eq!(chip.meter().unwrap().tally(Cause::Lookup).page_reads, 1000);
}

#[test]
fn weak_pages_flip_at_every_read() {
    let weak = |page, bits| WeakPage { page: Page(page), bits };
    let weak_pages = vec![weak(1, 3), weak(2, 4), weak(3, 5), weak(9999, 1)];
    let mut chip = flipping(3, Flips { ecc_bits: Some(4), weak_pages, ..Flips::default() });
    for round in 0..3 {
        assert_eq!(bits_of(&mut chip, 0), Ok(0));
        assert_eq!(bits_of(&mut chip, 1), Ok(3));
        assert_eq!(bits_of(&mut chip, 2), Ok(4));
        assert_eq!(bits_of(&mut chip, 3), Err(Error::Uncorrectable { page: Page(3) }));
        assert_eq!(chip.meter().unwrap().bits_corrected(), 7 * (round + 1));
        erase(&mut chip, 0).unwrap();
        fill(&mut chip, 0);
    }
}

#[test]
fn without_a_code_only_the_reader_can_notice_flips() {
    let flips = Flips { ecc_bits: None, uncorrectable_rate: 1.0, ..Flips::default() };
    let mut chip = flipping(4, flips);
    let mut wrong = 0;
    for _ in 0..100 {
        let (data, _) = read(&mut chip, 3).unwrap();
        let bits: u32 = data.iter().map(|byte| (byte ^ 3).count_ones()).sum();
        assert!(bits <= 2, "{bits}");
        wrong += u32::from(bits > 0);
    }
    assert!(wrong > 90, "{wrong}");
    assert_eq!(chip.faults().count(FaultKind::UnseenFlips), 100);
    assert_eq!(chip.meter().unwrap().bits_corrected(), 0);
}

#[test]
fn flips_grow_with_reads_and_fall_back_with_an_erase() {
    let growth = Growth { per_read: 0.01, per_erase: 0.0, most: 50.0 };
    let mut chip = flipping(5, Flips { corrected_rate: 0.01, growth, ..Flips::default() });
    let hits_in = |chip: &mut SimulatedNand, reads: u32| -> u32 {
        (0..reads).map(|_| u32::from(bits_of(chip, 3).unwrap() > 0)).sum()
    };
    // The factor grows from 1 to 11, then to 50, where it stays.
    let fresh = hits_in(&mut chip, 1000);
    assert!((40..=85).contains(&fresh), "{fresh}");
    hits_in(&mut chip, 5000);
    let worn = hits_in(&mut chip, 1000);
    assert!((440..=560).contains(&worn), "{worn}");
    let mut other = 0;
    fill(&mut chip, 1);
    for _ in 0..100 {
        other += bits_of(&mut chip, 8).unwrap();
    }
    assert!(other < 10, "reads of one block disturbed another: {other}");
    erase(&mut chip, 0).unwrap();
    let again = hits_in(&mut chip, 1000);
    assert!((40..=85).contains(&again), "{again}");
}

#[test]
fn flips_grow_with_wear() {
    let growth = Growth { per_read: 0.0, per_erase: 1.0, most: 1000.0 };
    let mut chip = flipping(6, Flips { corrected_rate: 0.001, growth, ..Flips::default() });
    for _ in 0..300 {
        erase(&mut chip, 2).unwrap();
    }
    let hits = |chip: &mut SimulatedNand, page| -> u32 {
        (0..2000).map(|_| u32::from(bits_of(chip, page).unwrap() > 0)).sum()
    };
    let (fresh, worn) = (hits(&mut chip, 0), hits(&mut chip, 16));
    assert!(fresh <= 8, "{fresh}");
    assert!((520..=690).contains(&worn), "{worn}");
}

#[test]
fn a_refused_program_leaves_the_earlier_pages_and_no_block_to_program() {
    with_seeds("faults", "a_refused_program", 50, |seed| {
        let refused_program = Failure::at(4);
        let mut chip = chip(FaultPlan { refused_program, ..FaultPlan::seeded(seed) });
        program(&mut chip, 0, 1).unwrap();
        program(&mut chip, 1, 2).unwrap();
        // The fault waits for the first program from operation 4 on.
        for _ in 0..5 {
            read(&mut chip, 0).unwrap();
        }
        assert_eq!(program(&mut chip, 2, 3), Err(Error::ProgramRefused { page: Page(2) }));
        assert_eq!(program(&mut chip, 3, 3), Err(Error::ProgramRefused { page: Page(3) }));
        assert_eq!((read(&mut chip, 0), read(&mut chip, 1)), (full(1), full(2)));
        assert_eq!(read(&mut chip, 4), full(0xFF));
        let closed = program(&mut chip, 3, 3);
        assert!(matches!(closed, Err(Error::NotErased { .. })), "{closed:?}");
        erase(&mut chip, 0).unwrap();
        assert_eq!(program(&mut chip, 0, 3), Err(Error::ProgramRefused { page: Page(0) }));
        assert_eq!(chip.is_bad(Block(0)), Ok(false), "only its user marks a block");
        fill(&mut chip, 1);
        assert_eq!(chip.faults().count(FaultKind::RefusedProgram), 3);
    });
}

#[test]
fn a_refused_erase_leaves_anything_and_no_block_to_erase() {
    let mut untouched = 0;
    for seed in 0..50 {
        let refused_erase = Failure::at(9);
        let mut chip = chip(FaultPlan { refused_erase, ..FaultPlan::seeded(seed) });
        fill(&mut chip, 1);
        assert_eq!(erase(&mut chip, 1), Err(Error::EraseRefused { block: Block(1) }));
        untouched += u32::from((8..16).all(|page| read(&mut chip, page) == full(page as u8)));
        let closed = program(&mut chip, 8, 1);
        assert!(matches!(closed, Err(Error::NotErased { .. })), "seed {seed}: {closed:?}");
        assert_eq!(erase(&mut chip, 1), Err(Error::EraseRefused { block: Block(1) }));
        erase(&mut chip, 0).unwrap();
        assert_eq!(chip.faults().count(FaultKind::RefusedErase), 2);
        assert_eq!(chip.meter().unwrap().erases(), [1, 2, 0, 0]);
    }
    assert!((2..40).contains(&untouched), "{untouched}");
}

#[test]
fn chosen_blocks_refuse_from_the_start() {
    let mut chip = chip(FaultPlan {
        refused_program: Failure::of(&[Block(1), Block(77)]),
        refused_erase: Failure::of(&[Block(2)]),
        ..FaultPlan::seeded(1)
    });
    fill(&mut chip, 2);
    assert_eq!(program(&mut chip, 8, 1), Err(Error::ProgramRefused { page: Page(8) }));
    assert_eq!(erase(&mut chip, 2), Err(Error::EraseRefused { block: Block(2) }));
    erase(&mut chip, 1).unwrap();
    fill(&mut chip, 0);
    // A plan ends, what it did to the medium does not.
    chip.arm(FaultPlan::default());
    assert_eq!(program(&mut chip, 8, 1), Err(Error::ProgramRefused { page: Page(8) }));
}

#[test]
fn refusals_and_silence_come_at_their_rates() {
    let geometry = Geometry::new(64, 4, 10_000).unwrap();
    let mut chip = SimulatedNand::new(geometry, costs()).with_faults(FaultPlan {
        refused_program: Failure::with_rate(0.05),
        silent_program: Failure::with_rate(0.1),
        refused_erase: Failure::with_rate(0.2),
        silent_erase: Failure::with_rate(0.02),
        ..FaultPlan::seeded(9)
    });
    let (mut refused, mut silent) = ([0; 2], 0);
    for block in 0..10_000 {
        refused[0] += u32::from(chip.erase(Block(block), Cause::Reclamation).is_err());
        let page = Page(block * 4);
        match chip.program(page, 0, &[0; 64], &[], Cause::Flush) {
            Ok(()) => {
                let mut data = [1; 64];
                chip.read(page, 0, &mut data, &mut [], Cause::Lookup).unwrap();
                silent += u32::from(data == [0xFF; 64]);
            }
            Err(Error::ProgramRefused { .. }) => refused[1] += 1,
            // The refused erase closed it.
            Err(error) => assert!(matches!(error, Error::NotErased { .. }), "{error}"),
        }
    }
    assert!((1880..=2120).contains(&refused[0]), "{refused:?}");
    assert!((330..=470).contains(&refused[1]), "{refused:?}");
    assert!((720..=880).contains(&silent), "{silent}");
    let log = chip.faults();
    assert!((150..=250).contains(&log.count(FaultKind::SilentErase)), "{log:?}");
    assert_eq!(log.count(FaultKind::SilentProgram), u64::from(silent));
}

#[test]
fn a_silent_program_says_that_it_did_and_did_not() {
    let mut chip = chip(FaultPlan { silent_program: Failure::at(2), ..FaultPlan::seeded(1) });
    chip.program(Page(0), 0, &[1; 32], &[], Cause::Flush).unwrap();
    chip.program(Page(0), 32, &[2; 32], &[2; 16], Cause::Flush).unwrap();
    program(&mut chip, 1, 3).unwrap();
    let (data, spare) = read(&mut chip, 0).unwrap();
    assert_eq!((&data[..32], &data[32..], spare), (&[1; 32][..], &[0xFF; 32][..], [0xFF; 16]));
    assert_eq!(read(&mut chip, 1), full(3));
    assert!(matches!(program(&mut chip, 0, 4), Err(Error::OutOfOrder { .. })), "it is programmed");
    assert_eq!(chip.faults().count(FaultKind::SilentProgram), 1);
    erase(&mut chip, 0).unwrap();
    fill(&mut chip, 0);
    assert_eq!(read(&mut chip, 0), full(0));
}

#[test]
fn a_silent_erase_says_that_it_did_and_did_not() {
    let mut chip = chip(FaultPlan { silent_erase: Failure::at(9), ..FaultPlan::seeded(1) });
    fill(&mut chip, 1);
    erase(&mut chip, 1).unwrap();
    assert_eq!(read(&mut chip, 9), full(9), "it did nothing");
    // A chip can't know; its code finds the mixture.
    program(&mut chip, 8, 8).unwrap();
    program(&mut chip, 9, 0xF0).unwrap();
    assert_eq!(read(&mut chip, 8), full(8), "the same bits");
    assert_eq!(read(&mut chip, 9), Err(Error::Uncorrectable { page: Page(9) }));
    assert_eq!(read(&mut chip, 10), full(10));
    erase(&mut chip, 1).unwrap();
    assert_eq!(read(&mut chip, 9), full(0xFF));
    fill(&mut chip, 1);
    assert_eq!(chip.faults().count(FaultKind::SilentErase), 1);
    assert_eq!(chip.meter().unwrap().erases(), [0, 2, 0, 0]);
}

#[test]
fn a_block_may_always_do_nothing() {
    let silent_erase = Failure::of(&[Block(0)]);
    let mut chip = chip(FaultPlan { silent_erase, ..FaultPlan::seeded(1) });
    fill(&mut chip, 0);
    for _ in 0..3 {
        erase(&mut chip, 0).unwrap();
        assert_eq!(read(&mut chip, 7), full(7));
    }
    assert_eq!(chip.faults().count(FaultKind::SilentErase), 3);
}

#[test]
fn blocks_are_bad_from_the_factory() {
    let geometry = Geometry::new(64, 4, 1000).unwrap();
    let bad = |seed| {
        let mut chip = SimulatedNand::new(geometry, costs()).with_faults(FaultPlan {
            bad_blocks: vec![Block(3), Block(3), Block(5000)],
            random_bad_blocks: 20,
            ..FaultPlan::seeded(seed)
        });
        assert_eq!(chip.faults().count(FaultKind::FactoryBad), 21);
        let refused = chip.erase(Block(3), Cause::Load);
        assert_eq!(refused, Err(Error::BadBlock { block: Block(3) }));
        (0..1000).filter(|block| chip.is_bad(Block(*block)).unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(bad(1).len(), 21);
    assert_eq!(bad(1), bad(1));
    assert_ne!(bad(1), bad(2));
}

#[test]
fn blocks_wear_out_after_their_endurance_more_and_more() {
    let geometry = Geometry::new(64, 1, 400).unwrap();
    let mut chip = SimulatedNand::new(geometry, costs()).with_faults(FaultPlan {
        wear_out: Some(WearOut { endurance: 100, certain: 200 }),
        ..FaultPlan::seeded(1)
    });
    let mut lives = Vec::new();
    let mut by_program = 0;
    for block in 0..400 {
        let life = (1..).find(|_| {
            let erased = chip.erase(Block(block), Cause::Reclamation);
            let programmed =
                erased.and_then(|()| chip.program(Page(block), 0, &[0; 64], &[], Cause::Flush));
            by_program += u32::from(matches!(programmed, Err(Error::ProgramRefused { .. })));
            programmed.is_err()
        });
        lives.push(life.unwrap());
    }
    lives.sort_unstable();
    assert!(lives[0] > 100 && lives[399] <= 200, "{} to {}", lives[0], lives[399]);
    // P(alive after k more) is about exp(-k^2 / 200): half are gone after 12.
    assert!((107..=116).contains(&lives[200]), "{}", lives[200]);
    assert!((150..=250).contains(&by_program), "{by_program}");
    assert_eq!(chip.faults().count(FaultKind::WornOut), 400);
}

#[test]
fn a_plan_may_find_blocks_that_are_worn_already() {
    let mut chip = SimulatedNand::new(shape(), costs());
    for _ in 0..10 {
        erase(&mut chip, 1).unwrap();
    }
    let wear_out = Some(WearOut { endurance: 10, certain: 10 });
    chip.arm(FaultPlan { wear_out, ..FaultPlan::seeded(1) });
    let refused = erase(&mut chip, 1).and_then(|()| program(&mut chip, 8, 1));
    assert!(refused.is_err());
    erase(&mut chip, 0).unwrap();
}
