//! Power cuts, and what they leave of a program and of an erase.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod common;

use common::{Content, PAGE, SPARE, chip, erase, fill, full, program, read, with_seeds};
use device::{Block, Cause, Error, Nand, Page};
use flashtree_sim::{Cut, FaultKind, FaultPlan, SimulatedNand, TornErase, TornProgram};

#[test]
fn everything_from_the_cut_on_is_refused_until_the_power_is_back() {
    let mut chip = chip(FaultPlan::cut(1, Cut::Operation(3)));
    program(&mut chip, 0, 1).unwrap();
    assert_eq!(read(&mut chip, 0), full(1));
    assert_eq!(read(&mut chip, 0), Err(Error::PowerCut));
    assert!(chip.is_without_power());
    let meter = chip.meter().unwrap().clone();
    // Even what a rule forbids: the chip can't tell.
    for _ in 0..3 {
        assert_eq!(program(&mut chip, 0, 1), Err(Error::PowerCut));
        assert_eq!(program(&mut chip, 99, 1), Err(Error::PowerCut));
        assert_eq!(read(&mut chip, 0), Err(Error::PowerCut));
        assert_eq!(erase(&mut chip, 9), Err(Error::PowerCut));
        assert_eq!(erase(&mut chip, 0), Err(Error::PowerCut));
        assert_eq!(chip.is_bad(Block(0)), Err(Error::PowerCut));
        assert_eq!(chip.mark_bad(Block(0)), Err(Error::PowerCut));
    }
    assert_eq!(chip.meter().unwrap(), &meter, "an operation without power was booked");
    assert_eq!((chip.operations(), chip.changes()), (3, 1));
    chip.restore_power();
    assert_eq!(read(&mut chip, 0), full(1));
    assert_eq!(chip.is_bad(Block(0)), Ok(false));
    program(&mut chip, 1, 2).unwrap();
    assert_eq!(chip.faults().count(FaultKind::PowerCut), 1);
    assert_eq!(chip.faults().total(), 1, "a read can't be torn");
}

#[test]
fn a_cut_can_be_set_at_a_change_of_the_medium() {
    for reads in 0..4_u32 {
        let mut chip = chip(FaultPlan::cut(1, Cut::Change(3)));
        for change in 0..4 {
            for _ in 0..reads {
                assert_eq!(read(&mut chip, 31).is_err(), change > 2);
            }
            let done =
                if change == 1 { erase(&mut chip, 2) } else { program(&mut chip, change, 7) };
            assert_eq!(done.is_err(), change >= 2, "change {change}");
        }
        assert_eq!((chip.operations(), chip.changes()), (3 + 3 * u64::from(reads), 3));
    }
}

#[test]
fn what_a_rule_forbids_does_not_count() {
    let mut chip = chip(FaultPlan::cut(1, Cut::Operation(2)));
    program(&mut chip, 5, 1).unwrap();
    for _ in 0..9 {
        assert!(matches!(program(&mut chip, 0, 1), Err(Error::OutOfOrder { .. })));
        assert!(matches!(program(&mut chip, 5, 1), Err(Error::NotErased { .. })));
        assert!(matches!(read(&mut chip, 99), Err(Error::NoSuchPage { .. })));
    }
    assert_eq!(chip.operations(), 1);
    assert_eq!(program(&mut chip, 6, 1), Err(Error::PowerCut));
}

#[test]
fn the_power_can_be_cut_between_two_operations() {
    let mut chip = SimulatedNand::new(common::shape(), common::costs());
    program(&mut chip, 0, 1).unwrap();
    chip.cut_power();
    assert_eq!(read(&mut chip, 0), Err(Error::PowerCut));
    chip.arm(FaultPlan::seeded(4));
    assert_eq!(read(&mut chip, 0), Err(Error::PowerCut), "a plan brings no power");
    chip.restore_power();
    assert_eq!(read(&mut chip, 0), full(1));
}

/// A chip whose page 2 was torn while `byte` was programmed to it; page 1 is full.
fn with_torn_program(seed: u64, torn: TornProgram, byte: u8) -> SimulatedNand {
    let plan = FaultPlan { torn_program: torn, ..FaultPlan::cut(seed, Cut::Change(2)) };
    let mut chip = chip(plan);
    program(&mut chip, 1, 1).unwrap();
    assert_eq!(program(&mut chip, 2, byte), Err(Error::PowerCut));
    chip.restore_power();
    assert_eq!(read(&mut chip, 1), full(1), "a torn program touched another page");
    assert_eq!(read(&mut chip, 3), full(0xFF), "a torn program touched another page");
    chip
}

/// Whatever a torn page looks like, it takes no program before an erase, and any after it.
fn is_closed_until_erased(chip: &mut SimulatedNand) {
    let closed = program(chip, 2, 9);
    assert!(matches!(closed, Err(Error::NotErased { page: Page(2), .. })), "{closed:?}");
    let part = chip.program(Page(2), 60, &[0; 4], &[], Cause::Flush);
    assert!(matches!(part, Err(Error::NotErased { page: Page(2), .. })), "{part:?}");
    program(chip, 3, 3).unwrap();
    erase(chip, 0).unwrap();
    assert_eq!(read(chip, 2), full(0xFF));
    program(chip, 2, 9).unwrap();
    assert_eq!(read(chip, 2), full(9));
}

#[test]
fn a_torn_program_may_leave_the_page_untouched_or_complete() {
    with_seeds("power", "untouched_or_complete", 20, |seed| {
        for (torn, byte) in [(TornProgram::Untouched, 0xFF), (TornProgram::Complete, 5)] {
            let mut chip = with_torn_program(seed, torn, 5);
            assert_eq!(read(&mut chip, 2), full(byte));
            is_closed_until_erased(&mut chip);
        }
    });
}

#[test]
fn a_torn_program_may_write_the_first_bytes_only() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let mut chip = with_torn_program(seed, TornProgram::Prefix, 0);
        let (data, spare) = read(&mut chip, 2).unwrap();
        let bytes: Vec<u8> = data.into_iter().chain(spare).collect();
        let written = bytes.iter().take_while(|byte| **byte == 0).count();
        assert!(bytes[written..].iter().all(|byte| *byte == 0xFF), "seed {seed}: {bytes:?}");
        lengths.insert(written);
        is_closed_until_erased(&mut chip);
    }
    assert_eq!(lengths.first(), Some(&0));
    assert_eq!(lengths.last(), Some(&(PAGE + SPARE - 1)), "all but the last byte");
    assert!(lengths.len() > 70, "{lengths:?}");
}

#[test]
fn a_torn_program_may_leave_each_byte_erased_written_or_neither() {
    let mut kinds = [0; 3];
    for seed in 0..100 {
        let mut chip = with_torn_program(seed, TornProgram::Scrambled, 0);
        let (data, spare) = read(&mut chip, 2).unwrap();
        for byte in data.into_iter().chain(spare) {
            kinds[match byte {
                0xFF => 0,
                0 => 1,
                _ => 2,
            }] += 1;
        }
        assert_eq!(read(&mut chip, 2), Ok((data, spare)), "a torn page changed by itself");
        is_closed_until_erased(&mut chip);
    }
    assert!(kinds.iter().all(|count| *count > 2000), "{kinds:?}");
}

#[test]
fn a_torn_program_may_leave_a_page_that_cannot_be_read() {
    with_seeds("power", "cannot_be_read", 50, |seed| {
        let mut chip = with_torn_program(seed, TornProgram::Unreadable, 0);
        for _ in 0..3 {
            assert_eq!(read(&mut chip, 2), Err(Error::Uncorrectable { page: Page(2) }));
        }
        assert_eq!(chip.faults().count(FaultKind::UncorrectableRead), 3);
        is_closed_until_erased(&mut chip);
    });
}

#[test]
fn a_torn_part_may_take_the_earlier_parts_of_its_page_with_it() {
    let mut suffered = 0;
    for seed in 0..100 {
        let torn_program = TornProgram::Scrambled;
        let mut chip = chip(FaultPlan { torn_program, ..FaultPlan::cut(seed, Cut::Change(2)) });
        chip.program(Page(0), 0, &[5; 32], &[], Cause::Flush).unwrap();
        let torn = chip.program(Page(0), 32, &[6; 32], &[], Cause::Flush);
        assert_eq!(torn, Err(Error::PowerCut));
        chip.restore_power();
        suffered += u32::from(read(&mut chip, 0).unwrap().0[..32] != [5; 32]);
    }
    assert!((15..75).contains(&suffered), "{suffered}");
}

/// A chip whose block 1 was torn in an erase; blocks 0 and 1 were full.
fn with_torn_erase(seed: u64, torn: TornErase) -> SimulatedNand {
    let mut chip = chip(FaultPlan::seeded(seed));
    fill(&mut chip, 0);
    fill(&mut chip, 1);
    chip.arm(FaultPlan { torn_erase: torn, ..FaultPlan::cut(seed, Cut::Change(1)) });
    assert_eq!(erase(&mut chip, 1), Err(Error::PowerCut));
    chip.restore_power();
    for page in 0..8 {
        assert_eq!(read(&mut chip, page), full(page as u8), "a torn erase touched another block");
    }
    chip
}

fn pages(chip: &mut SimulatedNand) -> Vec<Content> {
    (8..16).map(|page| read(chip, page)).collect()
}

fn must_be_erased_again(chip: &mut SimulatedNand) {
    for page in 8..16 {
        let closed = program(chip, page, 1);
        assert!(matches!(closed, Err(Error::NotErased { .. })), "page {page}: {closed:?}");
    }
    erase(chip, 1).unwrap();
    assert_eq!(pages(chip), vec![full(0xFF); 8]);
    fill(chip, 1);
    assert_eq!(read(chip, 15), full(15));
}

#[test]
fn a_torn_erase_may_leave_the_block_untouched_or_looking_erased() {
    with_seeds("power", "untouched_or_looking_erased", 20, |seed| {
        let mut chip = with_torn_erase(seed, TornErase::Untouched);
        assert_eq!(pages(&mut chip), (8..16).map(full).collect::<Vec<_>>());
        must_be_erased_again(&mut chip);
        let mut chip = with_torn_erase(seed, TornErase::Erased);
        assert_eq!(pages(&mut chip), vec![full(0xFF); 8]);
        must_be_erased_again(&mut chip);
    });
}

#[test]
fn a_torn_erase_may_leave_each_page_as_it_was_erased_or_damaged() {
    let mut kinds = [0; 4];
    for seed in 0..100 {
        let mut chip = with_torn_erase(seed, TornErase::Partial);
        let left = pages(&mut chip);
        for (page, content) in (8..).zip(&left) {
            kinds[match content {
                content if *content == full(page) => 0,
                content if *content == full(0xFF) => 1,
                Ok(_) => 2,
                Err(_) => 3,
            }] += 1;
        }
        assert_eq!(pages(&mut chip), left, "seed {seed}: a torn page changed by itself");
        must_be_erased_again(&mut chip);
    }
    assert!(kinds.iter().all(|count| *count > 60), "{kinds:?}");
}

#[test]
fn a_torn_erase_may_leave_a_block_that_reads_as_erased_only_most_of_the_time() {
    with_seeds("power", "only_most_of_the_time", 20, |seed| {
        let mut chip = with_torn_erase(seed, TornErase::Unstable);
        let reads: Vec<Content> = (0..20).flat_map(|_| pages(&mut chip)).collect();
        let erased = reads.iter().filter(|content| **content == full(0xFF)).count();
        let failed = reads.iter().filter(|content| content.is_err()).count();
        assert!((60..110).contains(&erased), "{erased}");
        assert!((20..65).contains(&failed), "{failed}");
        assert!(160 - erased - failed > 15, "{erased} {failed}");
        must_be_erased_again(&mut chip);
    });
}

#[test]
fn a_torn_erase_may_leave_garbage() {
    with_seeds("power", "may_leave_garbage", 50, |seed| {
        let mut chip = with_torn_erase(seed, TornErase::Garbage);
        for (page, content) in (8..).zip(pages(&mut chip)) {
            assert!(content != full(page) && content != full(0xFF), "page {page}");
        }
        must_be_erased_again(&mut chip);
    });
}

#[test]
fn the_seed_chooses_among_all_that_a_cut_can_leave() {
    let mut log = flashtree_sim::FaultLog::default();
    for seed in 0..200 {
        log += with_torn_program(seed, TornProgram::Any, 3).faults();
        log += with_torn_erase(seed, TornErase::Any).faults();
    }
    for kind in [
        FaultKind::TornProgramUntouched,
        FaultKind::TornProgramComplete,
        FaultKind::TornProgramPrefix,
        FaultKind::TornProgramScrambled,
        FaultKind::TornProgramUnreadable,
        FaultKind::TornEraseUntouched,
        FaultKind::TornErasePartial,
        FaultKind::TornEraseErased,
        FaultKind::TornEraseUnstable,
        FaultKind::TornEraseGarbage,
    ] {
        assert!(log.count(kind) > 20, "{kind}: {}", log.count(kind));
    }
}

#[test]
fn torn_pages_in_a_torn_block_are_gone_after_one_erase() {
    let mut chip = with_torn_program(1, TornProgram::Scrambled, 0);
    chip.arm(FaultPlan { torn_erase: TornErase::Untouched, ..FaultPlan::cut(1, Cut::Change(1)) });
    let torn = read(&mut chip, 2);
    assert_eq!(erase(&mut chip, 0), Err(Error::PowerCut));
    chip.restore_power();
    assert_eq!(read(&mut chip, 2), torn, "an erase that did nothing changed a page");
    erase(&mut chip, 0).unwrap();
    fill(&mut chip, 0);
    assert_eq!(read(&mut chip, 2), full(2));
}
