//! A chip in a file keeps every rule, over closings, kills and damage.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
mod cut_file;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Scratch, is_wanted, other_part, other_process, play};
use contract::nand::{Case, Fault, Hook, Hooked, Sound, cases, cases_with, check_all};
use cut_file::{CutFile, close, open};
use device::{
    Block, Cause, Cost, Error, Geometry, Linear, Meter, Nand, NandCosts, Page, ProgramOrder, Result,
};
use flashtree_file::{Durability, Error as FileError, HeaderFault, NandFile, NandOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// The command that plays a case of `test` again.
fn command(test: &str) -> String {
    format!("cargo test -p flashtree-file --test nand_file {test}")
}

fn create(path: &Path, geometry: Geometry) -> NandFile {
    NandFile::create(path, geometry, &NandOptions::default()).unwrap()
}

#[test]
fn a_chip_in_a_file_keeps_every_rule() {
    let scratch = Scratch::new();
    check_all(&cases(), &command("a_chip_in_a_file"), |case| {
        Sound(create(&scratch.path("chip"), case.geometry))
    });
}

/// Closes a chip and opens it again, at every seventh operation.
struct Restless {
    path: PathBuf,
    operations: u32,
}

impl Hook<Box<dyn Nand>> for Restless {
    fn before(&mut self, chip: &mut Box<dyn Nand>) -> Result<()> {
        self.operations += 1;
        if self.operations.is_multiple_of(7) {
            close(chip);
            *chip = Box::new(open(&self.path));
        }
        Ok(())
    }

    /// A file that was opened again has new books.
    fn meter<'n>(&self, _chip: &'n Box<dyn Nand>) -> Option<&'n Meter> {
        None
    }
}

#[test]
fn closing_and_opening_changes_nothing() {
    let scratch = Scratch::new();
    check_all(&cases(), &command("closing_and_opening"), |case| {
        let path = scratch.path("chip");
        let chip: Box<dyn Nand> = Box::new(create(&path, case.geometry));
        Sound(Hooked { chip, hook: Restless { path, operations: 0 } })
    });
}

/// Plays the cases of the faults that are `chosen` and that a file can have, in `test`.
fn suite(test: &str, chosen: impl Fn(Fault) -> bool) {
    let scratch = Scratch::new();
    let chosen = |fault: &Fault| cut_file::is_possible(*fault) && chosen(*fault);
    let faults = Fault::all().into_iter().filter(chosen);
    let mut cases: Vec<Case> = faults.flat_map(cases_with).collect();
    // Making a file takes long.
    cases.retain(|case| match case.fault {
        Fault::CutAt(_) => case.geometry.page_bytes() == 512 && case.geometry.spare_bytes() > 0,
        Fault::FactoryBad => true,
        _ => case.seed == 1,
    });
    check_all(&cases, &command(test), |case| CutFile::new(scratch.path("chip"), case.geometry));
}

#[test]
fn a_torn_program_harms_its_page_only() {
    suite("a_torn_program", |fault| matches!(fault, Fault::TornProgram(_)));
}

#[test]
fn a_torn_erase_harms_its_block_only() {
    suite("a_torn_erase", |fault| matches!(fault, Fault::TornErase(_)));
}

#[test]
fn a_cut_at_any_operation_harms_only_what_was_under_way() {
    suite("a_cut_at_any", |fault| matches!(fault, Fault::PowerCut | Fault::CutAt(_)));
}

#[test]
fn blocks_that_were_bad_from_the_start_stay_bad() {
    suite("blocks_that_were_bad", |fault| fault == Fault::FactoryBad);
}

// A process that is just being started holds a copy of every open file, locks included.
#[test]
fn a_chip_that_was_closed_can_be_opened_while_processes_are_started() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    used_chip(&path);
    let opened = std::thread::scope(|scope| {
        let starting = scope.spawn(|| {
            for _ in 0..60 {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        let mut opened = 0;
        while !starting.is_finished() {
            drop(open(&path));
            opened += 1;
        }
        opened
    });
    assert!(opened > 60, "opened {opened} times");
}

fn costs() -> NandCosts {
    let cost = |fixed| Cost {
        time: Linear { fixed, per_byte_thousandths: 25_000, per_page: 7 },
        energy: Some(Linear { fixed: fixed / 10, per_byte_thousandths: 500, per_page: 0 }),
    };
    NandCosts { read: cost(80_000), program: cost(200_000), erase: cost(1_500_000) }
}

/// One operation on both chips, which must answer alike.
fn same_step(random: &mut ChaCha8Rng, file: &mut dyn Nand, simulated: &mut dyn Nand) {
    let geometry = file.geometry();
    let page = Page(random.random_range(0..geometry.pages() + 1));
    let offset = random.random_range(0..5) * geometry.page_bytes() / 4;
    let length = random.random_range(0..=geometry.page_bytes() / 2) as usize;
    let spare = random.random_range(0..=geometry.spare_bytes()) as usize;
    let cause = Cause::ALL[random.random_range(0..Cause::COUNT)];
    let block = Block(random.random_range(0..geometry.blocks() + 1));
    match random.random_range(0..100) {
        0..50 => {
            let (data, spare) = (vec![page.0 as u8; length], vec![3; spare]);
            assert_eq!(
                file.program(page, offset, &data, &spare, cause),
                simulated.program(page, offset, &data, &spare, cause)
            );
        }
        50..90 => {
            let (mut one, mut one_spare) = (vec![1; length], vec![1; spare]);
            let (mut two, mut two_spare) = (one.clone(), one_spare.clone());
            assert_eq!(
                file.read(page, offset, &mut one, &mut one_spare, cause),
                simulated.read(page, offset, &mut two, &mut two_spare, cause)
            );
            assert_eq!((one, one_spare), (two, two_spare));
        }
        90..98 => assert_eq!(file.erase(block, cause), simulated.erase(block, cause)),
        98 => assert_eq!(file.is_bad(block), simulated.is_bad(block)),
        _ if block.0 < geometry.blocks() / 2 => {
            assert_eq!(file.mark_bad(block), simulated.mark_bad(block));
        }
        _ => {}
    }
}

#[test]
fn with_costs_a_chip_in_a_file_is_booked_like_the_simulated_one() {
    for seed in 0..8 {
        let case = format!("costs/seed{seed}");
        if !is_wanted(&case) {
            continue;
        }
        let scratch = Scratch::new();
        let order = [ProgramOrder::Any, ProgramOrder::Ascending][seed as usize % 2];
        let geometry = Geometry::new(256, 8, 12).unwrap().with_spare(32).unwrap();
        let geometry = geometry.with_programs(seed as u16 / 2 + 1).unwrap().with_order(order);
        let options = NandOptions { costs: Some(costs()), ..NandOptions::default() };
        let mut file = NandFile::create(&scratch.path("chip"), geometry, &options).unwrap();
        let mut simulated = SimulatedNand::new(geometry, costs());
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        play(&case, "nand_file", || {
            for _ in 0..5000 {
                same_step(&mut random, &mut file, &mut simulated);
            }
            assert_eq!(file.meter(), simulated.meter());
            assert!(file.meter().map(Meter::total).unwrap().block_erases > 20);
        });
    }
}

#[test]
fn with_power_durability_a_chip_is_the_same() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    let options = NandOptions { durability: Durability::Power, ..NandOptions::default() };
    let geometry = Geometry::new(512, 8, 4).unwrap().with_spare(16).unwrap();
    let mut chip = NandFile::create(&path, geometry, &options).unwrap();
    chip.program(Page(0), 0, &[1; 512], &[2; 16], Cause::Update).unwrap();
    chip.program(Page(9), 0, &[3; 512], &[], Cause::Update).unwrap();
    chip.erase(Block(0), Cause::Reclamation).unwrap();
    chip.mark_bad(Block(3)).unwrap();
    chip.sync().unwrap();
    drop(chip);
    let mut chip = open(&path);
    assert_eq!(content(&mut chip, 0), Ok([0xFF; 512]));
    assert_eq!(content(&mut chip, 9), Ok([3; 512]));
    assert_eq!(chip.is_bad(Block(3)), Ok(true));
}

fn content(chip: &mut NandFile, page: u32) -> Result<[u8; 512]> {
    let mut data = [0; 512];
    chip.read(Page(page), 0, &mut data, &mut [], Cause::Lookup).map(|_| data)
}

// Killing: another process does step after step and says so; it is killed; all that it said it
// had done must stand, and at most the next step may be in any state.

const PAGES: u32 = 8;
const BLOCKS: u32 = 4;

enum Step {
    Erase(Block),
    Program(Page, u8),
}

/// The steps, round after round: each block is erased, then its pages are programmed.
fn step(number: u32) -> Step {
    let (round, place) = (number / (PAGES + 1), number % (PAGES + 1));
    let block = round % BLOCKS;
    match place {
        0 => Step::Erase(Block(block)),
        _ => Step::Program(Page(block * PAGES + place - 1), (round % 251) as u8),
    }
}

fn work_until_killed(path: &Path) {
    let mut chip = open(path);
    for number in 0.. {
        match step(number) {
            Step::Erase(block) => chip.erase(block, Cause::Reclamation).unwrap(),
            Step::Program(page, byte) => {
                chip.program(page, 0, &[byte; 512], &[], Cause::Update).unwrap();
            }
        }
        println!("did {number}");
    }
}

/// Lets another process work for `steps` steps, kills it, and tells which step it did last.
fn kill_after(steps: usize, path: &Path) -> u32 {
    let mut worker = other_process("a_killed_process_harms_only_what_was_under_way", path);
    let mut worker = worker.spawn().unwrap();
    let mut output = BufReader::new(worker.stdout.take().unwrap());
    let mut line = String::new();
    let mut seen = 0;
    while seen < steps {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the worker ended by itself");
        seen += usize::from(line.starts_with("did "));
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole.lines().last().unwrap_or(line.trim_end());
    last.strip_prefix("did ").unwrap().parse().unwrap()
}

#[test]
fn a_killed_process_harms_only_what_was_under_way() {
    if let Some(path) = other_part() {
        work_until_killed(&path);
    }
    let scratch = Scratch::new();
    for kill in 0..12 {
        let path = scratch.path(&kill.to_string());
        let geometry = Geometry::new(512, PAGES, BLOCKS).unwrap();
        drop(NandFile::create(&path, geometry, &NandOptions::default()).unwrap());
        let last = kill_after(1 + kill * 37, &path);
        let mut expected = [0xFF; (PAGES * BLOCKS) as usize];
        for number in 0..=last {
            match step(number) {
                Step::Erase(Block(block)) => {
                    expected[(block * PAGES) as usize..][..PAGES as usize].fill(0xFF);
                }
                Step::Program(Page(page), byte) => expected[page as usize] = byte,
            }
        }
        let under_way = match step(last + 1) {
            Step::Erase(Block(block)) => block * PAGES..(block + 1) * PAGES,
            Step::Program(Page(page), _) => page..page + 1,
        };
        let mut chip = open(&path);
        for (page, byte) in (0..).zip(expected).filter(|(page, _)| !under_way.contains(page)) {
            assert_eq!(content(&mut chip, page), Ok([byte; 512]), "page {page} after {last}");
        }
        for block in (0..BLOCKS).map(Block) {
            chip.erase(block, Cause::Reclamation).unwrap();
            chip.program(Page(block.0 * PAGES), 0, &[1; 512], &[], Cause::Update).unwrap();
        }
    }
}

/// A chip of 16 pages with something on some of them.
fn used_chip(path: &Path) -> Geometry {
    let geometry = Geometry::new(512, 4, 4).unwrap().with_spare(16).unwrap();
    let mut chip = NandFile::create(path, geometry, &NandOptions::default()).unwrap();
    for page in [0, 1, 4, 5, 8] {
        chip.program(Page(page), 0, &[page as u8; 512], &[9; 16], Cause::Update).unwrap();
    }
    chip.mark_bad(Block(3)).unwrap();
    geometry
}

fn fault(path: &Path) -> HeaderFault {
    match NandFile::open(path, &NandOptions::default()) {
        Err(FileError::Header { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_header_or_a_suspicious_length_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    used_chip(&path);
    let good = fs::read(&path).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let fault = fault(&path);
        assert_eq!(fs::read(&path).unwrap(), bytes, "a file that was refused was changed");
        fault
    };
    assert_eq!(with(&|bytes| bytes[0] ^= 1), HeaderFault::Magic);
    assert_eq!(with(&|bytes| bytes[8] = 7), HeaderFault::Version { expected: 1, found: 7 });
    assert!(matches!(with(&|bytes| bytes[24] ^= 4), HeaderFault::Checksum { .. }));
    assert!(matches!(with(&|bytes| bytes[3000] = 1), HeaderFault::Checksum { .. }));
    let length = good.len() as u64;
    for change in [-1_i64, 1, -4096, 4096, 1 << 40] {
        let found = length.checked_add_signed(change).unwrap();
        fs::write(&path, &good).unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(found).unwrap();
        assert_eq!(fault(&path), HeaderFault::Length { expected: length, found });
    }
    for cut in [0, 1, 7, 4095] {
        fs::write(&path, &good[..cut]).unwrap();
        assert_eq!(fault(&path), HeaderFault::Magic, "{cut} bytes");
    }
}

#[test]
fn a_chip_that_takes_more_memory_than_it_may_is_refused_before_any_is_taken() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    used_chip(&path);
    let chip = open(&path);
    let need = NandFile::memory_bytes(chip.geometry());
    drop(chip);
    let options = |memory_most| NandOptions { memory_most, ..NandOptions::default() };
    assert!(NandFile::open(&path, &options(need)).is_ok());
    let have = need - 1;
    match NandFile::open(&path, &options(have)) {
        Err(FileError::Header { fault, .. }) => {
            assert_eq!(fault, HeaderFault::Memory { have, need });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_page_whose_state_is_damaged_stays_closed_until_its_block_is_erased() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    used_chip(&path);
    let mut bytes = fs::read(&path).unwrap();
    let states = 8192;
    bytes[states + 8 * 5] ^= 0x10;
    bytes[states + 8 * 10] = 1;
    fs::write(&path, &bytes).unwrap();
    let mut chip = open(&path);
    assert_eq!(chip.damaged_pages(), 2);
    for page in [5, 10] {
        let page = Page(page);
        assert_eq!(content(&mut chip, page.0), Err(Error::Uncorrectable { page }));
        let program = chip.program(page, 0, &[0; 8], &[], Cause::Update);
        assert_eq!(program, Err(Error::NotErased { page, erased_from: 512 }));
    }
    assert_eq!(content(&mut chip, 4), Ok([4; 512]));
    chip.erase(Block(1), Cause::Reclamation).unwrap();
    chip.program(Page(5), 0, &[7; 512], &[], Cause::Update).unwrap();
    drop(chip);
    let mut chip = open(&path);
    assert_eq!((chip.damaged_pages(), content(&mut chip, 5)), (1, Ok([7; 512])));
}

/// Does everything that can be done with a chip of which nobody knows what it holds.
fn use_all(chip: &mut NandFile) {
    let geometry = chip.geometry();
    let (mut data, mut spare) = ([0; 512], [0; 16]);
    for page in (0..geometry.pages()).map(Page) {
        let block = geometry.block_of(page);
        let read = chip.read(page, 0, &mut data, &mut spare, Cause::Lookup);
        assert!(matches!(read, Ok(0) | Err(Error::Uncorrectable { .. })), "{read:?}");
        // Either may be forbidden by what the damaged file says.
        let _ = chip.program(page, 100, &[1; 8], &[1; 4], Cause::Update);
        let bad = chip.is_bad(block).unwrap();
        assert_eq!(chip.erase(block, Cause::Reclamation).is_err(), bad);
        if !bad {
            chip.program(page, 0, &data, &spare, Cause::Update).unwrap();
            chip.erase(block, Cause::Reclamation).unwrap();
        }
    }
}

#[test]
fn random_damage_never_stops_the_program() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    used_chip(&path);
    let good = fs::read(&path).unwrap();
    let mut refused = 0;
    for seed in 0..300 {
        let case = format!("damage/seed{seed}");
        if !is_wanted(&case) {
            continue;
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = good.clone();
        for _ in 0..random.random_range(1..40) {
            let limit = [bytes.len(), 9000][random.random_range(0..2)];
            bytes[random.random_range(100..limit)] = random.random();
        }
        // The header is damaged in one case of four only.
        if seed % 4 != 0 {
            bytes[..4096].copy_from_slice(&good[..4096]);
        }
        fs::write(&path, &bytes).unwrap();
        play(&case, "nand_file", || match NandFile::open(&path, &NandOptions::default()) {
            Ok(mut chip) => use_all(&mut chip),
            Err(error) => {
                assert!(matches!(error, FileError::Header { .. }), "{error}");
                refused += 1;
            }
        });
    }
    assert!((1..=75).contains(&refused) || std::env::var("FLASHTREE_CASE").is_ok(), "{refused}");
}

#[test]
fn a_chip_that_is_too_large_is_refused_before_anything_is_touched() {
    let scratch = Scratch::new();
    let path = scratch.path("chip");
    let geometry = Geometry::new(512, 1024, 1 << 17).unwrap();
    let refused = NandFile::create(&path, geometry, &NandOptions::default());
    assert!(matches!(refused, Err(FileError::Header { fault: HeaderFault::Pages { .. }, .. })));
    assert!(!path.exists());
}
