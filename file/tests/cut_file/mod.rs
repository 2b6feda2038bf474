//! A chip in a file whose power can be cut in the middle of an operation.
//!
//! The file is copied before and after the operation; of the bytes that changed, those reach the
//! file that a cut lets through.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use contract::nand::{Fault, Hook, Hooked, Program, Read, Subject};
use device::{Block, Cause, Error, Geometry, Meter, Nand, NandCosts, Result};
use flashtree_file::{NandFile, NandOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultKind, FaultPlan, SimulatedNand, TornErase, TornProgram};

pub(crate) fn open(path: &Path) -> NandFile {
    NandFile::open(path, &NandOptions::default()).unwrap()
}

/// Closes a file, which is locked while it is open; an empty chip stands in for it.
pub(crate) fn close(chip: &mut Box<dyn Nand>) {
    *chip = Box::new(SimulatedNand::new(chip.geometry(), NandCosts::default()));
}

/// True for the faults that can be made to happen to a chip in a file.
pub(crate) fn is_possible(fault: Fault) -> bool {
    match fault {
        Fault::PowerCut | Fault::CutAt(_) | Fault::TornProgram(_) | Fault::FactoryBad => true,
        Fault::TornErase(torn) => TORN_ERASES.contains(&torn),
        _ => false,
    }
}

/// What a torn erase may leave: it only clears what is known of the pages.
const TORN_ERASES: [TornErase; 3] = [TornErase::Untouched, TornErase::Partial, TornErase::Erased];

const TORN_PROGRAMS: [TornProgram; 5] = [
    TornProgram::Untouched,
    TornProgram::Complete,
    TornProgram::Prefix,
    TornProgram::Scrambled,
    TornProgram::Unreadable,
];

pub(crate) struct CutFile(Hooked<Box<dyn Nand>, Cutter>);

impl CutFile {
    pub(crate) fn new(path: PathBuf, geometry: Geometry) -> Self {
        let chip = NandFile::create(&path, geometry, &NandOptions::default()).unwrap();
        let hook = Cutter {
            path,
            states: 8192..8192 + 8 * geometry.pages() as usize,
            plan: FaultPlan::default(),
            random: ChaCha8Rng::seed_from_u64(0),
            operations: 0,
            changes: 0,
            is_without_power: false,
            counts: BTreeMap::new(),
        };
        CutFile(Hooked { chip: Box::new(chip), hook })
    }

    /// Marks `block` bad, unless it is.
    fn mark_bad(&mut self, block: Block) -> bool {
        let chip = &mut self.0.chip;
        let is_new = chip.is_bad(block) == Ok(false);
        if is_new {
            chip.mark_bad(block).unwrap();
            self.0.hook.note(FaultKind::FactoryBad);
        }
        is_new
    }
}

impl Subject for CutFile {
    type Chip = Hooked<Box<dyn Nand>, Cutter>;

    fn chip(&mut self) -> &mut Self::Chip {
        &mut self.0
    }

    fn arm(&mut self, plan: &FaultPlan) {
        let hook = &mut self.0.hook;
        (hook.operations, hook.changes) = (0, 0);
        hook.random = ChaCha8Rng::seed_from_u64(plan.seed);
        hook.plan = plan.clone();
        for block in &plan.bad_blocks {
            self.mark_bad(*block);
        }
        let mut left = plan.random_bad_blocks;
        let blocks = self.0.geometry().blocks();
        while left > 0 {
            let block = Block(self.0.hook.random.random_range(0..blocks));
            left -= u32::from(self.mark_bad(block));
        }
    }

    fn restore_power(&mut self) {
        self.0.chip = Box::new(open(&self.0.hook.path));
        self.0.hook.is_without_power = false;
    }

    fn count(&self, kind: FaultKind) -> u64 {
        self.0.hook.counts.get(&kind).copied().unwrap_or(0)
    }
}

/// Cuts the power as its plan says.
pub(crate) struct Cutter {
    path: PathBuf,
    /// Where the states of the pages are in the file; what follows are the pages.
    states: std::ops::Range<usize>,
    plan: FaultPlan,
    random: ChaCha8Rng,
    operations: u64,
    changes: u64,
    is_without_power: bool,
    counts: BTreeMap<FaultKind, u64>,
}

/// A place in the file, with the byte that stood there and the one that was to be written.
struct Change {
    place: usize,
    old: u8,
    new: u8,
}

impl Cutter {
    fn note(&mut self, kind: FaultKind) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// True if the next operation is the one at which the power goes.
    fn is_next(&self, is_change: bool) -> bool {
        match self.plan.power_cut {
            Some(Cut::Operation(at)) => self.operations + 1 == at,
            Some(Cut::Change(at)) => is_change && self.changes + 1 == at,
            None => false,
        }
    }

    /// Does an operation that changes the file, and lets only a part of it through if the power
    /// goes: `left` says what a byte that changed is then.
    fn change(
        &mut self,
        chip: &mut Box<dyn Nand>,
        operation: impl FnOnce(&mut Box<dyn Nand>) -> Result<()>,
        left: impl FnOnce(&mut Self, &[Change]) -> Vec<u8>,
    ) -> Result<()> {
        let before = self.is_next(true).then(|| fs::read(&self.path).unwrap());
        operation(chip)?;
        self.operations += 1;
        self.changes += 1;
        let Some(before) = before else { return Ok(()) };
        close(chip);
        let after = fs::read(&self.path).unwrap();
        let changes: Vec<Change> = (0..after.len())
            .filter(|place| before[*place] != after[*place])
            .map(|place| Change { place, old: before[place], new: after[place] })
            .collect();
        let file = fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        for (change, byte) in changes.iter().zip(left(self, &changes)) {
            if byte != change.new {
                file.write_all_at(&[byte], change.place as u64).unwrap();
            }
        }
        Err(self.cut())
    }

    fn cut(&mut self) -> Error {
        self.plan.power_cut = None;
        self.is_without_power = true;
        self.note(FaultKind::PowerCut);
        Error::PowerCut
    }

    /// A program writes the page, then its state.
    fn tear_program(&mut self, changes: &[Change]) -> Vec<u8> {
        let torn = match self.plan.torn_program {
            TornProgram::Any => TORN_PROGRAMS[self.random.random_range(0..TORN_PROGRAMS.len())],
            torn => torn,
        };
        self.note(Fault::TornProgram(torn).kind().unwrap());
        let states = self.states.clone();
        let is_state = |change: &Change| states.contains(&change.place);
        let in_state = changes.iter().filter(|change| is_state(change)).count();
        let in_page = changes.len() - in_state;
        // States come first in the file.
        let through = self.random.random_range(0..=in_page);
        let state_through = match torn {
            TornProgram::Scrambled => [0, in_state][self.random.random_range(0..2)],
            TornProgram::Unreadable => self.random.random_range(1..in_state),
            _ => 0,
        };
        let mut left = Vec::new();
        for (number, Change { old, new, .. }) in changes.iter().enumerate() {
            let is_through = match number.checked_sub(in_state) {
                None => number < state_through,
                Some(number) => number < through || torn == TornProgram::Unreadable,
            };
            left.push(match torn {
                TornProgram::Untouched => *old,
                TornProgram::Any | TornProgram::Complete => *new,
                TornProgram::Scrambled if number >= in_state => {
                    [*old, *new, self.random.random()][self.random.random_range(0..3)]
                }
                _ if is_through => *new,
                _ => *old,
            });
        }
        left
    }

    /// An erase clears the states of the pages, one after the other.
    fn tear_erase(&mut self, changes: &[Change]) -> Vec<u8> {
        let torn = match self.plan.torn_erase {
            TornErase::Any => TORN_ERASES[self.random.random_range(0..TORN_ERASES.len())],
            torn => torn,
        };
        self.note(Fault::TornErase(torn).kind().unwrap());
        let through = match torn {
            TornErase::Untouched => 0,
            TornErase::Partial => self.random.random_range(0..=changes.len()),
            _ => changes.len(),
        };
        let byte = |(number, change): (usize, &Change)| {
            if number < through { change.new } else { change.old }
        };
        changes.iter().enumerate().map(byte).collect()
    }
}

impl Hook<Box<dyn Nand>> for Cutter {
    fn before(&mut self, _chip: &mut Box<dyn Nand>) -> Result<()> {
        if self.is_without_power { Err(Error::PowerCut) } else { Ok(()) }
    }

    fn read(&mut self, chip: &mut Box<dyn Nand>, read: Read<'_>) -> Result<u16> {
        let bits = read.on(chip);
        let uncorrectable = matches!(bits, Err(Error::Uncorrectable { .. }));
        if bits.is_ok() || uncorrectable {
            if self.is_next(false) {
                close(chip);
                return Err(self.cut());
            }
            self.operations += 1;
        }
        if uncorrectable {
            self.note(FaultKind::UncorrectableRead);
        }
        bits
    }

    fn program(&mut self, chip: &mut Box<dyn Nand>, program: Program<'_>) -> Result<()> {
        self.change(chip, |chip| program.on(chip), Self::tear_program)
    }

    fn erase(&mut self, chip: &mut Box<dyn Nand>, block: Block, cause: Cause) -> Result<()> {
        self.change(chip, |chip| chip.erase(block, cause), Self::tear_erase)
    }

    /// A file that was opened again has new books.
    fn meter<'n>(&self, _chip: &'n Box<dyn Nand>) -> Option<&'n Meter> {
        None
    }
}
