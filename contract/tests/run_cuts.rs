//! A tree of sorted runs comes back wherever the power goes, and room is used again no earlier than
//! what frees it lasts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod run_tree;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use device::{Geometry, NandCosts};
use index::{Durability, Durable, Index, KeyRange, Read, Tree, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use run_tree::{DELTAS, FREED, Mistake, ROOT_BYTES_MOST, RunTree};
use sim::{Cut, DiskFaultPlan, FaultPlan, SimulatedDisk, SimulatedNand};
use store::runs::{FileSpace, LogSpace, Space};
use store::{PageFileOptions, PageLog, PageLogOptions};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the runs stand on, and how much lasts.
#[derive(Clone)]
struct Case {
    stand: Stand,
    durability: Durability,
    mistake: Mistake,
}

#[derive(Clone)]
enum Stand {
    Disk(SimulatedDisk),
    Chip(SimulatedNand),
}

impl Case {
    fn new(is_disk: bool, durability: Durability, mistake: Mistake) -> Self {
        // Just so long that room is used again.
        let disk = device::SectorGeometry::new(512, 128 + 90).unwrap();
        let chip = Geometry::new(512, 4, 56).unwrap().with_spare(16).unwrap();
        let stand = match is_disk {
            true => Stand::Disk(SimulatedDisk::new(disk, device::DiskCosts::default())),
            false => Stand::Chip(SimulatedNand::new(chip, NandCosts::default())),
        };
        Case { stand, durability, mistake }
    }

    fn name(&self) -> String {
        let medium = if matches!(self.stand, Stand::Disk(_)) { "disk" } else { "chip" };
        format!("{medium}, {}", self.durability)
    }

    /// Lets the power go at change `at` from now on; never, if there is none.
    fn arm(&mut self, at: Option<u64>) {
        let (seed, power_cut) = (at.unwrap_or(0), at.map(Cut::Change));
        match &mut self.stand {
            Stand::Disk(disk) => {
                disk.restore_power();
                disk.arm(DiskFaultPlan { power_cut, ..DiskFaultPlan::seeded(seed) });
            }
            Stand::Chip(chip) => {
                chip.restore_power();
                chip.arm(FaultPlan { power_cut, ..FaultPlan::seeded(seed) });
            }
        }
    }

    fn is_cut(&self) -> bool {
        match &self.stand {
            Stand::Disk(disk) => disk.is_without_power(),
            Stand::Chip(chip) => chip.is_without_power(),
        }
    }

    fn file_options(&self) -> PageFileOptions {
        PageFileOptions {
            durability: self.durability,
            journal_bytes: Some(12 << 10),
            front: Some(7),
            ..PageFileOptions::new(512, 1 << 20)
        }
    }

    fn create(&mut self) -> Durable<RunTree<'_>> {
        let (durability, mistake) = (self.durability, self.mistake);
        let options = self.file_options();
        let space: Box<dyn Space> = match &mut self.stand {
            Stand::Disk(disk) => {
                Box::new(FileSpace::create(Box::new(disk), 512, &options).unwrap())
            }
            Stand::Chip(chip) => {
                let journal_bytes = Some(12 << 10);
                let options =
                    PageLogOptions { durability, journal_bytes, ..PageLogOptions::default() };
                let mut log = PageLog::create(Box::new(chip), &options).unwrap();
                log.expect_root(ROOT_BYTES_MOST);
                Box::new(LogSpace::new(log, 0))
            }
        };
        Durable::create(RunTree::over(space, mistake)).unwrap()
    }

    fn open(&mut self) -> index::Result<Durable<RunTree<'_>>> {
        let (mistake, options) = (self.mistake, self.file_options());
        let (space, root): (Box<dyn Space>, _) = match &mut self.stand {
            Stand::Disk(disk) => {
                let (space, root) = FileSpace::open(Box::new(disk), 512, &options)?;
                (Box::new(space), root)
            }
            Stand::Chip(chip) => {
                let (mut log, root) = PageLog::open(Box::new(chip))?;
                log.expect_root(ROOT_BYTES_MOST);
                (Box::new(LogSpace::new(log, 0)), root)
            }
        };
        let mut tree = RunTree::over(space, mistake);
        tree.restore(&root)?;
        Durable::open(tree)
    }
}

fn entries(index: &mut impl Index, range: KeyRange<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = index.range(range).unwrap();
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        entries.push((key.to_vec(), value.whole().unwrap().to_vec()));
    }
    entries
}

fn figure(index: &impl Read, name: &str) -> u64 {
    let mut found = 0;
    index.metrics(&mut |other, figure| found = if name == other { figure } else { found });
    found
}

/// A batch of puts and deletes of few keys.
fn batch(random: &mut ChaCha8Rng) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let update = |_| {
        let key = vec![random.random_range(0..3), random.random_range(0..40)];
        (key, random.random_bool(0.8).then(|| vec![random.random(); 20]))
    };
    (0..5).map(update).collect()
}

fn make(model: &mut Model, batch: &[(Vec<u8>, Option<Vec<u8>>)]) {
    for (key, value) in batch {
        match value {
            Some(value) => drop(model.insert(key.clone(), value.clone())),
            None => drop(model.remove(key)),
        }
    }
}

/// Batches until the power goes; returns the states that may be found then: the last that is sure
/// to last, and those behind it. And how many deltas there were.
fn play(index: &mut impl Index, random: &mut ChaCha8Rng, is_every: bool) -> (Vec<Model>, u64) {
    let mut states: Vec<Model> = vec![Model::new()];
    for step in 0..120 {
        let batch = batch(random);
        let updates: Vec<_> = batch
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Update::Put { key, value },
                None => Update::Delete { key },
            })
            .collect();
        let mut next = states.last().unwrap().clone();
        make(&mut next, &batch);
        states.push(next);
        if index.update(&updates).is_err() {
            break;
        }
        let lasts = match step {
            _ if is_every => true,
            40 | 90 => index.checkpoint(None).is_ok(),
            _ if step % 20 == 19 => index.sync().is_ok(),
            _ => false,
        };
        if lasts {
            states.drain(..states.len() - 1);
        }
    }
    (states, figure(index, DELTAS))
}

/// Plays with the power cut at every change; what was wrong first, if anything.
fn torture(made: &Case) -> Result<(u64, u64), String> {
    let mut made = made.clone();
    made.create().close().unwrap();
    let (mut cuts, mut deltas) = (0, 0);
    for at in 1.. {
        let mut case = made.clone();
        case.arm(Some(at));
        let mut random = ChaCha8Rng::seed_from_u64(at % 7);
        let is_every = made.durability == Durability::Every;
        let played = case.open().ok().map(|mut index| play(&mut index, &mut random, is_every));
        if !case.is_cut() {
            return Ok((cuts, deltas));
        }
        cuts += 1;
        case.arm(None);
        let (states, told) = played.unwrap_or((vec![Model::new()], 0));
        deltas += told;
        let checked = catch_unwind(AssertUnwindSafe(|| {
            let mut index = case.open().map_err(|error| error.to_string())?;
            index.check(&mut |finding| panic!("{finding}")).map_err(|error| error.to_string())?;
            let now: Model = entries(&mut index, KeyRange::ALL).into_iter().collect();
            let is_one = states.contains(&now);
            is_one.then_some(()).ok_or_else(|| String::from("it is none of the states"))
        }));
        let wrong = checked.unwrap_or_else(|_| Err(String::from("a panic")));
        wrong.map_err(|what| format!("{}, cut at change {at}: {what}", made.name()))?;
    }
    Ok((cuts, deltas))
}

#[test]
fn wherever_the_power_goes_what_was_acknowledged_is_there() {
    for is_disk in [true, false] {
        for durability in [Durability::Every, Durability::Batch] {
            let case = Case::new(is_disk, durability, Mistake::None);
            let (cuts, deltas) = torture(&case).unwrap();
            println!("{}: {cuts} cuts, {deltas} deltas", case.name());
            assert!(cuts > 80 && deltas > 2 * cuts, "{}: {cuts}, {deltas}", case.name());
        }
    }
}

#[test]
fn room_that_is_used_before_its_delta_lasts_is_found() {
    // A chip uses the block again that was erased least often, and so late that it does not show.
    let case = Case::new(true, Durability::Batch, Mistake::FreedTooEarly);
    let found = torture(&case);
    assert!(found.is_err(), "{}: {found:?}", case.name());
}

#[test]
fn a_long_life_gives_the_room_of_its_runs_back_and_is_read_both_ways() {
    for is_disk in [true, false] {
        let mut case = Case::new(is_disk, Durability::Batch, Mistake::None);
        case.create().close().unwrap();
        let (mut model, mut random) = (Model::new(), ChaCha8Rng::seed_from_u64(3));
        for _ in 0..5 {
            let mut index = case.open().unwrap();
            for _ in 0..200 {
                let batch = batch(&mut random);
                make(&mut model, &batch);
                for (key, value) in &batch {
                    let update = match value {
                        Some(value) => Update::Put { key, value },
                        None => Update::Delete { key },
                    };
                    index.update(&[update]).unwrap();
                }
                let key = [random.random_range(0..3), random.random_range(0..40)];
                let found = index.get(&key, 0, &mut []).unwrap();
                assert_eq!(found.is_some(), model.contains_key(&key[..]));
            }
            let expected: Vec<_> = model.clone().into_iter().collect();
            assert!(entries(&mut index, KeyRange::ALL) == expected);
            let mut down = entries(&mut index, KeyRange::ALL.reversed());
            down.reverse();
            assert!(down == expected);
            assert!(figure(&index, FREED) > 50, "{}", figure(&index, FREED));
            index.close().unwrap();
        }
    }
}
