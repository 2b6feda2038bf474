//! Changes that a tree makes by itself last as its updates do: whole, in their order, none missing;
//! and a tree that counts bytes is as full as it says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod piles;

use std::collections::BTreeMap;

use device::{Geometry, NandCosts};
use index::{Durability, Durable, Error, Index, KeyRange, Read, Tree, Update};
use piles::{CAPACITY, GROUPS, MERGES, Piles, ROOT_BYTES_MOST};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, DiskFaultPlan, FaultPlan, SimulatedDisk, SimulatedNand};
use store::{PageFile, PageFileOptions, PageLog, PageLogOptions};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the piles stand on.
#[derive(Clone)]
enum Storage {
    Disk(SimulatedDisk),
    Chip(SimulatedNand),
}

impl Storage {
    fn all() -> [Storage; 2] {
        let disk = device::SectorGeometry::new(512, 2000).unwrap();
        let chip = Geometry::new(512, 16, 64).unwrap();
        [
            Storage::Disk(SimulatedDisk::new(disk, device::DiskCosts::default())),
            Storage::Chip(SimulatedNand::new(chip, NandCosts::default())),
        ]
    }

    fn name(&self) -> &'static str {
        match self {
            Storage::Disk(_) => "disk",
            Storage::Chip(_) => "chip",
        }
    }

    /// Lets the power go at change `at` from now on; never, if there is none.
    fn arm(&mut self, at: Option<u64>) {
        let (seed, power_cut) = (at.unwrap_or(0), at.map(Cut::Change));
        match self {
            Storage::Disk(disk) => {
                disk.restore_power();
                disk.arm(DiskFaultPlan { power_cut, ..DiskFaultPlan::seeded(seed) });
            }
            Storage::Chip(chip) => {
                chip.restore_power();
                chip.arm(FaultPlan { power_cut, ..FaultPlan::seeded(seed) });
            }
        }
    }

    fn is_cut(&self) -> bool {
        match self {
            Storage::Disk(disk) => disk.is_without_power(),
            Storage::Chip(chip) => chip.is_without_power(),
        }
    }

    fn create(&mut self) -> Durable<Piles<'_>> {
        let durability = Durability::Every;
        let piles = match self {
            Storage::Disk(disk) => {
                let options = PageFileOptions { durability, ..PageFileOptions::new(512, 1 << 20) };
                Piles::over(Box::new(PageFile::create(Box::new(disk), &options).unwrap()))
            }
            Storage::Chip(chip) => {
                let options = PageLogOptions { durability, ..PageLogOptions::default() };
                let mut log = PageLog::create(Box::new(chip), &options).unwrap();
                log.expect_root(ROOT_BYTES_MOST);
                Piles::over(Box::new(log))
            }
        };
        Durable::create(piles).unwrap()
    }

    fn open(&mut self) -> index::Result<Durable<Piles<'_>>> {
        let (mut piles, root) = match self {
            Storage::Disk(disk) => {
                let options = PageFileOptions::new(512, 1 << 20);
                let (file, root) = PageFile::open(Box::new(disk), &options)?;
                (Piles::over(Box::new(file)), root)
            }
            Storage::Chip(chip) => {
                let (mut log, root) = PageLog::open(Box::new(chip))?;
                log.expect_root(ROOT_BYTES_MOST);
                (Piles::over(Box::new(log)), root)
            }
        };
        piles.restore(&root)?;
        Durable::open(piles)
    }
}

fn entries(index: &mut impl Index) -> Model {
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    let mut entries = Model::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        entries.insert(key.to_vec(), value.whole().unwrap().to_vec());
    }
    entries
}

fn merges(index: &impl Read) -> u64 {
    let mut merges = 0;
    index.metrics(&mut |name, figure| merges = if name == MERGES { figure } else { merges });
    merges
}

/// A batch of puts and deletes of few keys.
fn batch(random: &mut ChaCha8Rng) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let updates = random.random_range(1..5);
    let update = |_| {
        let key = vec![random.random_range(0..GROUPS), random.random_range(0..8)];
        (key, random.random_bool(0.7).then(|| vec![random.random(); 20]))
    };
    (0..updates).map(update).collect()
}

fn make(model: &mut Model, batch: &[(Vec<u8>, Option<Vec<u8>>)]) {
    for (key, value) in batch {
        match value {
            Some(value) => drop(model.insert(key.clone(), value.clone())),
            None => drop(model.remove(key)),
        }
    }
}

/// How an index stands after a batch: its entries, and the merges before it and since.
struct Moment {
    model: Model,
    before: u64,
    after: u64,
}

/// Updates and lookups, until the power goes; returns what was acknowledged, and the batch that was
/// under way.
fn play(index: &mut impl Index, random: &mut ChaCha8Rng) -> (Moment, Model) {
    let before = merges(index);
    let mut moment = Moment { model: entries(index), before, after: before };
    for step in 0..60 {
        let batch = batch(random);
        let updates: Vec<_> = batch
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Update::Put { key, value },
                None => Update::Delete { key },
            })
            .collect();
        let before = merges(index);
        let mut next = moment.model.clone();
        make(&mut next, &batch);
        if index.update(&updates).is_err() {
            moment.after = merges(index);
            return (moment, next);
        }
        moment = Moment { model: next, before, after: merges(index) };
        for _ in 0..random.random_range(0..3) {
            let key = [random.random_range(0..GROUPS), random.random_range(0..8)];
            let found = index.get(&key, 0, &mut []).unwrap();
            assert_eq!(found.is_some(), moment.model.contains_key(&key[..]));
        }
        if step % 25 == 24 && index.checkpoint(None).is_err() {
            break;
        }
    }
    let model = moment.model.clone();
    (moment, model)
}

#[test]
fn wherever_the_power_goes_no_change_of_the_tree_is_missing() {
    for made in Storage::all() {
        let mut made = made;
        made.create().close().unwrap();
        let (mut cuts, mut replayed) = (0, 0);
        for at in 1.. {
            let mut storage = made.clone();
            storage.arm(Some(at));
            let mut random = ChaCha8Rng::seed_from_u64(at % 5);
            let played = storage.open().ok().map(|mut index| play(&mut index, &mut random));
            if !storage.is_cut() {
                break;
            }
            cuts += 1;
            storage.arm(None);
            let mut index = storage.open().unwrap();
            let what = format!("{}, cut at change {at}", made.name());
            let (now, merges) = (entries(&mut index), merges(&index));
            match played {
                Some((moment, next)) => {
                    assert!(now == moment.model || now == next, "{what}");
                    assert!((moment.before..=moment.after).contains(&merges), "{what}");
                    replayed += merges;
                }
                None => assert!(now.is_empty() && merges == 0, "{what}"),
            }
        }
        assert!(cuts > 50 && replayed > 100, "{}: {cuts} cuts, {replayed}", made.name());
    }
}

#[test]
fn a_tree_that_counts_bytes_is_full_when_they_are_taken_and_takes_deletes() {
    for mut storage in Storage::all() {
        let mut index = storage.create();
        let mut taken = 0;
        let refused = loop {
            let key = [taken as u8 % GROUPS, taken as u8];
            match index.update(&[Update::Put { key: &key, value: &[1; 38] }]) {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Store(store::Error::Full { .. })), "{refused:?}");
        assert_eq!(taken, (CAPACITY - 200) / 40);
        for number in 0..10 {
            index.update(&[Update::Delete { key: &[number % GROUPS, number] }]).unwrap();
        }
        index.checkpoint(None).unwrap();
        index.update(&[Update::Put { key: &[0, 99], value: &[1; 38] }]).unwrap();
        assert_eq!(entries(&mut index).len() as u64, taken - 9);
    }
}
