//! The suite of power cuts: every translation layer keeps what was flushed, whatever a cut tears
//! and whatever the chip refuses.
//!
//! A **life** is one chip, from its first disk until the chip has lost more blocks than the layer
//! can spare, or until it saw enough cuts. Between two cuts is a **session**: the disk is opened,
//! all its sectors are compared with the model, and a random history goes on until the power goes
//! in the middle of a program, an erase, or between two operations. Meanwhile programs and erases
//! are refused, and bits flip that the chip corrects. In every other life most sectors are seldom
//! written, so that levelling has something to do.
//!
//! [`check_each`] cuts at every operation of one session in turn.

mod half_torn;

use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{
    Block, Cause, Error, Geometry, Nand, NandCosts, ProgramOrder, Request, Sector, Sectors,
};
use ftl::{Entry, Layer, Options, Statistics};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, Failure, FaultLog, FaultPlan, Flips, SimulatedNand};

use crate::nand::Hooked;
use crate::sector_model::{Model, pattern};
use half_torn::HalfTorn;

/// What a layer stands on, and how it is made.
#[derive(Clone)]
pub struct Storage {
    /// The layer.
    pub entry: &'static Entry,
    /// Its parameters, as text.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The shape of the chip.
    pub geometry: Geometry,
    /// Sectors that are written one after the other as often as not: the longest run.
    pub longest_run: u64,
}

impl Storage {
    fn options(&self) -> Options {
        self.parameters.iter().fold(Options::default(), |options, (name, value)| {
            options.set(self.entry, name, value).expect("the parameters are the layer's")
        })
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.geometry;
        let order = match shape.order() {
            ProgramOrder::Any => "any",
            ProgramOrder::Ascending => "ascending",
        };
        let (page, spare) = (shape.page_bytes(), shape.spare_bytes());
        let (pages, blocks) = (shape.pages_per_block(), shape.blocks());
        write!(f, "{}/{page}+{spare}/{pages}x{blocks}/{order}", self.entry.name)
    }
}

/// How many cuts, and where a failure is played again.
#[derive(Clone, Copy)]
pub struct Storm {
    /// Cuts in all lives together.
    pub cuts: u64,
    /// Cuts in one life.
    pub cuts_per_life: u64,
    /// The test of this crate that plays the storm.
    pub test: &'static str,
}

/// What happened, so that a test can see that the storm was one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Witness {
    /// Chips that were used.
    pub lives: u64,
    /// Chips that lost more blocks than the layer can spare.
    pub worn_out: u64,
    /// Cuts of the power.
    pub cuts: u64,
    /// Cuts while a disk was being opened.
    pub cuts_while_opening: u64,
    /// Programs of which the spare area was written and the data was torn.
    pub half_torn: u64,
    /// Sectors compared after a restart.
    pub compared: u64,
    /// Flushes that succeeded.
    pub flushes: u64,
    /// What the layer did, but for the operation that each cut interrupted.
    pub statistics: Statistics,
    /// What went wrong on the chips.
    pub faults: FaultLog,
}

impl AddAssign for Witness {
    fn add_assign(&mut self, life: Witness) {
        self.lives += life.lives;
        self.worn_out += life.worn_out;
        self.cuts += life.cuts;
        self.cuts_while_opening += life.cuts_while_opening;
        self.half_torn += life.half_torn;
        self.compared += life.compared;
        self.flushes += life.flushes;
        self.statistics += life.statistics;
        self.faults += life.faults;
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Witness { lives, worn_out, cuts, cuts_while_opening, compared, flushes, .. } = self;
        let did = &self.statistics;
        writeln!(f, "  {cuts} cuts ({cuts_while_opening} while opening) on {lives} chips")?;
        writeln!(f, "  {worn_out} chips used up, {} blocks replaced", did.blocks_retired)?;
        writeln!(f, "  {} sectors written, {flushes} flushes", did.sectors_written)?;
        writeln!(f, "  {compared} sectors compared after restarts")?;
        writeln!(
            f,
            "  {} switch, {} partial, {} full merges, {} collections",
            did.switch_merges, did.partial_merges, did.full_merges, did.collections
        )?;
        writeln!(
            f,
            "  {} blocks moved by static levelling, {} pages by scrubbing",
            did.static_moves, did.pages_scrubbed
        )?;
        writeln!(f, "  {} programs torn in their data alone", self.half_torn)?;
        writeln!(f, "  {} bits corrected, {} pages lost", did.bits_corrected, did.pages_lost)?;
        for (kind, count) in self.faults.iter() {
            writeln!(f, "  {count} {kind}")?;
        }
        Ok(())
    }
}

/// Plays lives until there were enough cuts. `FLASHTREE_SEED` plays one life alone.
///
/// # Panics
/// A sector held what the contract does not allow, or the layer failed in another way than by the
/// cut or because too many blocks went bad. The message has the command that plays it again.
pub fn check(storage: &Storage, storm: Storm) -> Witness {
    let mut witness = Witness::default();
    if let Ok(seed) = std::env::var("FLASHTREE_SEED") {
        let seed = seed.parse().expect("FLASHTREE_SEED is a number");
        return play(storage, seed, storm.cuts_per_life);
    }
    for seed in 1.. {
        if witness.cuts >= storm.cuts {
            break;
        }
        let run = || play(storage, seed, storm.cuts_per_life);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(life) => witness += life,
            Err(_) => panic!(
                "{storage}: the life with seed {seed} failed; play it again with\n  \
                 FLASHTREE_SEED={seed} cargo test -p flashtree-contract {}",
                storm.test
            ),
        }
    }
    println!("{storage}\n{witness}");
    witness
}

/// Cuts the power at each of the first `operations` operations of one session in turn, reads
/// among them, and at each of as many programs and erases, after a life of `cuts` cuts.
///
/// # Panics
/// As [`check`] does; the seed is 1.
pub fn check_each(storage: &Storage, cuts: u64, operations: u64) -> Witness {
    let mut before = Life::begin(storage, 1);
    while before.witness.cuts < cuts && before.session() == Outcome::PowerCut {}
    let mut witness = before.witness;
    let kinds: [fn(u64) -> Cut; 2] = [Cut::Operation, Cut::Change];
    for (at, kind) in (1..=operations).flat_map(|at| kinds.map(|kind| (at, kind))) {
        let mut life = before.clone();
        life.witness = Witness::default();
        let run = || {
            life.session_with(FaultPlan::cut(at, kind(at)), None);
            life.end()
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(life) => witness += life,
            Err(_) => panic!("{storage}: the session failed in which {:?} was torn", kind(at)),
        }
    }
    println!("{storage}, each of {operations} operations: {} cuts", witness.cuts);
    witness
}

fn play(storage: &Storage, seed: u64, cuts: u64) -> Witness {
    let mut life = Life::begin(storage, seed);
    while life.witness.cuts < cuts && life.session() == Outcome::PowerCut {}
    life.end()
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    PowerCut,
    /// Too many blocks went bad.
    Full,
}

/// One chip and what its disk should hold.
#[derive(Clone)]
struct Life<'g> {
    storage: &'g Storage,
    chip: SimulatedNand,
    model: Model,
    random: ChaCha8Rng,
    /// By how much programs and erases are refused more often than on other chips.
    refusals: f64,
    /// True if most sectors are seldom written.
    skewed: bool,
    witness: Witness,
}

impl<'g> Life<'g> {
    /// Makes a disk and writes every sector.
    fn begin(storage: &'g Storage, seed: u64) -> Self {
        let mut chip = SimulatedNand::new(storage.geometry, NandCosts::default())
            .with_random_bad_blocks(seed, 2);
        let made = (storage.entry.create)(Box::new(&mut chip), &storage.options());
        let mut disk = made.expect("a disk can be made");
        let mut model = Model::new(disk.geometry());
        for sector in 0..disk.geometry().sectors() {
            write(&mut *disk, &mut model, sector, 1).expect("there is room");
        }
        disk.flush(Cause::Flush).expect("a flush succeeds");
        model.flush();
        drop(disk);
        let random = ChaCha8Rng::seed_from_u64(seed);
        let witness = Witness { lives: 1, ..Witness::default() };
        let refusals = if seed.is_multiple_of(4) { 20.0 } else { 1.0 };
        let skewed = seed % 2 == 1;
        Life { storage, chip, model, random, refusals, skewed, witness }
    }

    /// What shall go wrong in the next session, and the program that is torn in its data alone,
    /// if the power goes in that way.
    fn plan(&mut self) -> (FaultPlan, Option<u64>) {
        let most = [3, 30, 100, 400][self.random.random_range(0..4)];
        let at = self.random.random_range(1..=most);
        let (power_cut, half_torn) = match self.random.random_range(0..8) {
            0 => (Some(Cut::Operation(at * 2)), None),
            1 | 2 => (None, Some(at)),
            _ => (Some(Cut::Change(at)), None),
        };
        let flips = Flips { ecc_bits: Some(4), corrected_rate: 1e-3, ..Flips::default() };
        let plan = FaultPlan {
            power_cut,
            refused_program: Failure::with_rate(2e-4 * self.refusals),
            refused_erase: Failure::with_rate(5e-4 * self.refusals),
            flips,
            ..FaultPlan::seeded(self.random.random())
        };
        (plan, half_torn)
    }

    /// Opens the disk, compares it, and uses it until the power goes.
    fn session(&mut self) -> Outcome {
        let (plan, programs_left) = self.plan();
        let outcome = self.session_with(plan, programs_left);
        if outcome == Outcome::Full {
            self.assert_worn();
        }
        outcome
    }

    fn session_with(&mut self, plan: FaultPlan, programs_left: Option<u64>) -> Outcome {
        self.chip.restore_power();
        self.chip.arm(plan);
        let random = ChaCha8Rng::seed_from_u64(self.random.random());
        let chip = Hooked { chip: &mut self.chip, hook: HalfTorn { programs_left, random } };
        let opened = (self.storage.entry.open)(Box::new(chip), &self.storage.options());
        let mut disk = match opened {
            Ok(disk) => disk,
            Err(Error::PowerCut) => {
                self.witness.cuts_while_opening += 1;
                self.witness.cuts += 1;
                return Outcome::PowerCut;
            }
            Err(error) => panic!("the disk can't be opened: {error}"),
        };
        let mut run = Run {
            disk: &mut *disk,
            model: &mut self.model,
            random: &mut self.random,
            witness: &mut self.witness,
            longest_run: self.storage.longest_run,
            skewed: self.skewed,
        };
        let error = run.until_error();
        self.witness.statistics += *disk.statistics();
        match error {
            Error::PowerCut => {
                self.witness.cuts += 1;
                self.witness.half_torn += u64::from(programs_left.is_some());
                Outcome::PowerCut
            }
            Error::Full { .. } => Outcome::Full,
            error => panic!("{error}"),
        }
    }

    /// Only a chip that lost many blocks may be full: every sector was written before.
    fn assert_worn(&mut self) {
        let blocks = self.storage.geometry.blocks();
        let is_bad = |block: &Block| self.chip.is_bad(*block).expect("the block exists");
        let lost = (0..blocks).map(Block).filter(is_bad).count();
        assert!(lost >= blocks as usize / 6, "full, though only {lost} of {blocks} blocks are bad");
    }

    /// Looks at the disk a last time: a chip that is used up can still be read.
    fn end(mut self) -> Witness {
        let used_up = !self.chip.is_without_power();
        self.chip.restore_power();
        self.chip.arm(FaultPlan::default());
        let opened = (self.storage.entry.open)(Box::new(&mut self.chip), &self.storage.options());
        let mut disk = opened.expect("the disk can be opened");
        learn_all(&mut *disk, &mut self.model).expect("all sectors can be read");
        drop(disk);
        self.witness.worn_out += u64::from(used_up);
        self.witness.faults += self.chip.faults();
        self.witness
    }
}

fn write(disk: &mut dyn Sectors, model: &mut Model, first: u64, count: u64) -> Result<(), Error> {
    let bytes = model.geometry().sector_bytes() as usize;
    let mut data = vec![0; bytes * count as usize];
    for (sector, content) in (first..).zip(data.chunks_mut(bytes)) {
        pattern(sector, model.next_version(sector), content);
    }
    // Also a write that fails may have happened.
    model.write(first, count);
    disk.write(Sector(first), &data, Cause::Update)
}

/// Reads every sector; then the model knows what each holds.
fn learn_all(disk: &mut dyn Layer, model: &mut Model) -> Result<u64, Error> {
    let mut found = vec![0; model.geometry().sector_bytes() as usize];
    let sectors = model.geometry().sectors();
    for sector in 0..sectors {
        let (first, into) = (Sector(sector), &mut found[..]);
        disk.read(&mut [Request { first, offset: 0, into }], Cause::Lookup)?;
        model.learn(sector, &found);
    }
    Ok(sectors)
}

/// A disk in use.
struct Run<'r> {
    disk: &'r mut dyn Layer,
    model: &'r mut Model,
    random: &'r mut ChaCha8Rng,
    witness: &'r mut Witness,
    longest_run: u64,
    skewed: bool,
}

impl Run<'_> {
    fn until_error(&mut self) -> Error {
        match learn_all(self.disk, self.model) {
            Ok(compared) => self.witness.compared += compared,
            Err(error) => return error,
        }
        loop {
            if let Err(error) = self.step() {
                return error;
            }
        }
    }

    /// Any sector; in a skewed life mostly one of the first quarter.
    fn sector(&mut self) -> u64 {
        let sectors = self.model.geometry().sectors();
        let hot = self.skewed && self.random.random_range(0..64) > 0;
        self.random.random_range(0..if hot { sectors.div_ceil(4) } else { sectors })
    }

    fn step(&mut self) -> Result<(), Error> {
        let sectors = self.model.geometry().sectors();
        let first = self.sector();
        match self.random.random_range(0..20) {
            0 => {
                let count = self.random.random_range(0..8).min(sectors - first);
                self.model.trim(first, count);
                self.disk.trim(Sector(first), count, Cause::Update)
            }
            1..4 => {
                self.disk.flush(Cause::Flush)?;
                self.model.flush();
                self.witness.flushes += 1;
                Ok(())
            }
            4..6 => {
                let mut found = vec![0; self.model.geometry().sector_bytes() as usize * 3 / 2];
                let first = first.min(sectors.saturating_sub(3));
                let (offset, into) = (17, &mut found[..]);
                let request = Request { first: Sector(first), offset, into };
                self.disk.read(&mut [request], Cause::Lookup)?;
                self.model.compare(first, 17, &found);
                Ok(())
            }
            6..8 => self.run(first),
            _ => {
                let count = self.random.random_range(1..4).min(sectors - first);
                write(self.disk, self.model, first, count)
            }
        }
    }

    /// Writes sectors in order, from the start of a run on.
    fn run(&mut self, near: u64) -> Result<(), Error> {
        let sectors = self.model.geometry().sectors();
        let longest = self.longest_run.max(1);
        let first = near / longest * longest;
        let end = (first + self.random.random_range(1..=2 * longest)).min(sectors);
        for sector in first..end {
            write(self.disk, self.model, sector, 1)?;
            if self.random.random_range(0..16) == 0 {
                self.disk.flush(Cause::Flush)?;
                self.model.flush();
                self.witness.flushes += 1;
            }
        }
        Ok(())
    }
}
