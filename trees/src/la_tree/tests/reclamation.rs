//! The lazy-adaptive tree while it reclaims half of the chip, its tables take memory of pool and
//! cache, or it merges leaves on a full chip: the power is cut at every change that the chip makes
//! meanwhile, and then at every change of each recovery.

use std::collections::BTreeMap;

use contract::tree::{figure, findings};
use contract::{on_all_cores, sample, share};
use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::{
    Durability, EntryShape, Error, GENERATIONS_RECLAIMED, Index, KeyRange, NODES_MERGED, Result,
    Update, Value,
};
use index::{MediumShape, Options, TreeDescriptor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultPlan, SimulatedNand};

/// Keys that there are.
const KEYS: u32 = 3000;

/// Keys of a batch.
const BATCH: u32 = 24;

/// Entries that are put, then deleted but for two of five, where leaves are merged.
const FILLED: u32 = 6000;

/// Keys of a batch there.
const LARGE_BATCH: u32 = 100;

/// What is cut: a batch in which something happens, behind so many others in which it did.
#[derive(Clone, Copy)]
struct Subject {
    happens: fn(Reached) -> bool,
    earlier: u32,
    /// The changes of the batch with a number.
    batch: fn(u32, &mut ChaCha8Rng) -> Vec<Change>,
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Change = (Vec<u8>, Option<Vec<u8>>);

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap_or_else(|| panic!("there is no la-tree"))
}

/// A chip with a tree on it.
struct Storage {
    chip: SimulatedNand,
    options: Options,
}

impl Storage {
    fn new(chip: Geometry, durability: Durability) -> Self {
        let settings = Settings::parse("la-tree", entry().parameters, []).unwrap();
        let mut options = Options {
            durability: Some(durability),
            ..Options::new(EntryShape::fixed(4, 4), 0, settings)
        };
        let least = entry().least_memory(&options, MediumShape::Nand(chip)).unwrap();
        options.memory_bytes = least * 5 / 4;
        Storage { chip: SimulatedNand::new(chip, NandCosts::default()), options }
    }

    /// The same, where pool and cache lend memory to the tables, which have many buffers.
    fn lending(geometry: Geometry, durability: Durability) -> Self {
        let Storage { chip, mut options } = Self::new(geometry, durability);
        let given = [("share", "shared"), ("k", "1")];
        options.settings = Settings::parse("la-tree", entry().parameters, given).unwrap();
        let medium = MediumShape::Nand(geometry);
        let needs = (entry().footprint)(&options, medium).unwrap();
        options.memory_bytes = needs.memory_least * 3;
        options.tables_bytes = Some(needs.tables);
        Storage { chip, options }
    }

    fn index(&mut self, is_new: bool) -> Result<Box<dyn Index + '_>> {
        let make = if is_new { entry().create } else { entry().open };
        make(Medium::Nand(Box::new(&mut self.chip)), &self.options)
    }

    /// What the tree holds, after a recovery; also how many changes of the chip that took.
    fn recovered(&mut self) -> (Entries, u64) {
        self.chip.restore_power();
        self.chip.arm(FaultPlan::default());
        let mut entries = Entries::new();
        let mut index = self.index(false).unwrap();
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        let mut cursor = index.range(KeyRange::ALL).unwrap();
        while let Some((key, value)) = cursor.next().unwrap() {
            let Value::Inline(value) = value else { panic!("it is short") };
            entries.insert(key.to_vec(), value.to_vec());
        }
        drop(cursor);
        drop(index);
        (entries, self.chip.changes())
    }

    /// Cuts the power at change `at` of what comes next.
    fn cut_at(&mut self, at: u64) {
        self.chip.restore_power();
        self.chip.arm(FaultPlan { power_cut: Some(Cut::Change(at)), ..FaultPlan::seeded(at) });
    }
}

/// How far a session came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    /// The batch was taken.
    updated: bool,
    /// A checkpoint was made after it.
    settled: bool,
    /// A generation of pages was reclaimed.
    reclaimed: bool,
    /// Tables took memory of pool and cache.
    lent: bool,
    /// Many leaves were merged.
    merged: bool,
}

/// Opens the index, changes it and makes a checkpoint, as far as the power lasts.
fn session(storage: &mut Storage, changes: &[Change]) -> Reached {
    let mut reached = Reached::default();
    let outcome = go(storage, changes, &mut reached);
    if let Err(error) = outcome {
        let is_cut = matches!(error, Error::Store(store::Error::Device(device::Error::PowerCut)));
        assert!(is_cut, "{error}");
    }
    reached
}

fn go(storage: &mut Storage, changes: &[Change], reached: &mut Reached) -> Result<()> {
    let batch: Vec<Update<'_>> = changes
        .iter()
        .map(|(key, value)| match value {
            Some(value) => Update::Put { key, value },
            None => Update::Delete { key },
        })
        .collect();
    let mut index = storage.index(false)?;
    let lent = |index: &dyn Index| figure(index, "bytes that tables may take");
    let before = lent(&*index);
    let updated = index.update(&batch);
    reached.lent = lent(&*index) > before;
    reached.merged = figure(&*index, NODES_MERGED) > 100;
    index.metrics(&mut |name, count| {
        reached.reclaimed |= name == GENERATIONS_RECLAIMED && count > 0;
    });
    updated?;
    reached.updated = true;
    index.checkpoint(None)?;
    reached.settled = true;
    Ok(())
}

fn with(mut entries: Entries, changes: &[Change]) -> Entries {
    for (key, value) in changes {
        match value {
            Some(value) => drop(entries.insert(key.clone(), value.clone())),
            None => drop(entries.remove(key)),
        }
    }
    entries
}

/// A batch of keys side by side.
fn batch(_: u32, random: &mut ChaCha8Rng) -> Vec<Change> {
    let first = random.random_range(0..KEYS - BATCH);
    let is_delete = random.random_range(0..8) == 0;
    let value = |number: u32| (!is_delete).then(|| number.to_le_bytes().to_vec());
    (first..first + BATCH).map(|key| (key.to_be_bytes().to_vec(), value(random.random()))).collect()
}

/// Batches that nearly fill a chip, then delete three of five entries, and then put others side by
/// side.
fn refilling_batch(number: u32, _: &mut ChaCha8Rng) -> Vec<Change> {
    let first = number * LARGE_BATCH;
    let key = |number: u32| number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec();
    let numbers = first..first + LARGE_BATCH;
    match number * LARGE_BATCH / FILLED {
        0 => numbers.map(|number| (key(number), Some(key(number)))).collect(),
        1 => {
            let numbers = numbers.map(|number| number - FILLED).filter(|number| number % 5 < 3);
            numbers.map(|number| (key(number), None)).collect()
        }
        _ => numbers.map(|number| (number.to_be_bytes().to_vec(), Some(key(number)))).collect(),
    }
}

/// Changes the index until `earlier` batches and one more were what is to be cut; the chip is as it
/// was before that.
fn until_due(
    storage: &mut Storage,
    random: &mut ChaCha8Rng,
    subject: Subject,
) -> (Entries, Vec<Change>) {
    let (mut entries, mut number) = (Entries::new(), 0);
    drop(storage.index(true).unwrap());
    for events in 0..=subject.earlier {
        loop {
            let changes = (subject.batch)(number, random);
            number += 1;
            let before = storage.chip.clone();
            storage.chip.arm(FaultPlan::default());
            let reached = session(storage, &changes);
            assert!(reached.settled);
            if (subject.happens)(reached) && events == subject.earlier {
                storage.chip = before;
                return (entries, changes);
            }
            entries = with(entries, &changes);
            if (subject.happens)(reached) {
                break;
            }
        }
    }
    unreachable!("the last event returns")
}

/// Cuts everything; returns how many cuts were made in sessions, and in recoveries.
fn cut_everything(storage: &mut Storage, seed: u64, subject: Subject) -> (u64, u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (before, changes) = until_due(storage, &mut random, subject);
    let after = with(before.clone(), &changes);
    let durability = storage.options.durability.unwrap();
    let is_right = |reached: Reached, found: &Entries| {
        let lasts = reached.settled || reached.updated && durability == Durability::Every;
        *found == after || !lasts && *found == before
    };
    let saved = storage.chip.clone();
    storage.chip.arm(FaultPlan::default());
    let reached = session(storage, &changes);
    assert!(reached.settled && (subject.happens)(reached), "{reached:?}");
    let all = storage.chip.changes();
    let (mut cuts, mut again) = (0, 0);
    for at in sample(5, 1..=all) {
        storage.chip = saved.clone();
        storage.cut_at(at);
        let reached = session(storage, &changes);
        let left = storage.chip.clone();
        let (found, recovery) = storage.recovered();
        assert!(is_right(reached, &found), "cut {at} of {all}: {reached:?}");
        cuts += 1;
        for at_recovery in sample(5, 1..=recovery) {
            storage.chip = left.clone();
            storage.cut_at(at_recovery);
            drop(storage.index(false));
            let found = storage.recovered().0;
            assert!(is_right(reached, &found), "cut {at} of {all}, then {at_recovery}");
            again += 1;
        }
        // What was recovered is gone on with.
        let next = [(vec![0; 4], Some(vec![7; 4]))];
        let reached = session(storage, &next);
        assert!(reached.settled, "cut {at}");
        assert_eq!(storage.recovered().0, with(found, &next), "cut {at}");
    }
    (cuts, again)
}

/// Cuts everything on chips of several shapes, with each durability that lasts; returns how many
/// cuts were made in sessions, and in recoveries.
fn cut_on_all(
    stands: [(u32, u32); 4],
    new: fn(Geometry, Durability) -> Storage,
    subject: Subject,
) -> (u64, u64) {
    let durabilities = [Durability::Checkpoint, Durability::Batch, Durability::Every];
    let cases: Vec<_> = (0..)
        .zip(durabilities)
        .flat_map(|(place, durability)| {
            [stands[place], stands[3 - place]].map(|stand| (place, durability, stand))
        })
        .collect();
    let each = on_all_cores(&cases, |&(place, durability, (page, spare))| {
        let chip = Geometry::new(page, 16, 80).unwrap().with_spare(spare).unwrap();
        let (one, two) = cut_everything(&mut new(chip, durability), place as u64, subject);
        println!("{durability}, {page} + {spare}: {one} cuts, and {two} of recoveries");
        (one, two)
    });
    each.iter().fold((0, 0), |(cuts, again), (one, two)| (cuts + one, again + two))
}

const STANDS: [(u32, u32); 4] = [(512, 16), (512, 0), (2048, 64), (2048, 0)];

#[test]
fn a_reclamation_and_each_recovery_of_it_are_cut_at_every_operation() {
    let subject = Subject { happens: |reached| reached.reclaimed, earlier: 5, batch };
    let (cuts, again) = cut_on_all(STANDS, Storage::new, subject);
    println!("reclamations cut at every operation: {cuts} cuts, and {again} of recoveries");
    let share = share(5) as u64;
    assert!(
        cuts * share > 200 && again * share * share > 300,
        "{cuts} cuts, {again} of recoveries"
    );
}

#[test]
fn an_update_whose_tables_take_memory_of_the_pool_is_cut_at_every_operation() {
    let subject = Subject { happens: |reached| reached.lent, earlier: 2, batch };
    let (cuts, again) = cut_on_all(STANDS, Storage::lending, subject);
    println!("memory lent to tables: {cuts} cuts, and {again} of recoveries");
    let share = share(5) as u64;
    assert!(cuts * share > 60 && again * share * share > 100, "{cuts} cuts, {again} of recoveries");
}

#[test]
fn a_put_that_has_leaves_merged_is_cut_at_every_operation() {
    let happens = |reached: Reached| reached.merged;
    let subject = Subject { happens, earlier: 0, batch: refilling_batch };
    let (cuts, again) =
        cut_on_all([(512, 16), (512, 0), (512, 16), (512, 0)], Storage::new, subject);
    println!("merging leaves: {cuts} cuts, and {again} of recoveries");
    let share = share(5) as u64;
    assert!(cuts * share > 60 && again * share * share > 100, "{cuts} cuts, {again} of recoveries");
}
