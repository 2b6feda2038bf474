//! The lazy-adaptive tree in place with a pool of thousands of entries: buffers leave it whole and
//! in the order of their keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use contract::on_all_cores;
use contract::tree::{Model, figure, findings};
use device::{DiskCosts, Medium, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Options, Update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, DiskFaultPlan, SimulatedDisk};

const ENTRIES: u64 = 100_000;
const UPDATES: u64 = 150_000;
const GETS: u64 = 2000;
const RANGES: usize = 200;

/// Updates of a batch, and of one during which the power is cut.
const BATCH: u64 = 16;
const CUT_BATCH: u64 = 200;

/// So often the power is cut, at one of so many changes of the disk.
const CUTS: u64 = 400;
const CHANGES: u64 = 150;

type Change = ([u8; 8], Option<[u8; 8]>);

pub(super) fn options(durability: Durability) -> Options {
    let entry = flashtree_trees::find("la-tree").unwrap();
    let settings = Settings::parse("la-tree", entry.parameters, [("buffer", "65536")]).unwrap();
    let mut options = Options::new(EntryShape::fixed(8, 8), 2 << 20, settings);
    options.durability = Some(durability);
    options
}

pub(super) fn new_disk() -> SimulatedDisk {
    SimulatedDisk::new(SectorGeometry::new(512, 60_000).unwrap(), DiskCosts::default())
}

pub(super) fn made<'m>(
    disk: &'m mut SimulatedDisk,
    options: &Options,
    model: &mut Model,
) -> Box<dyn Index + 'm> {
    let entry = flashtree_trees::find("la-tree").unwrap();
    let mut index = (entry.create)(Medium::Sectors(Box::new(disk)), options).unwrap();
    for number in 0..ENTRIES {
        model.entries.insert(number.to_be_bytes().to_vec(), vec![1; 8]);
    }
    index.load(&mut model.cursor(), 100).unwrap();
    index
}

fn opened<'m>(
    disk: &'m mut SimulatedDisk,
    options: &Options,
) -> index::Result<Box<dyn Index + 'm>> {
    let entry = flashtree_trees::find("la-tree").unwrap();
    (entry.open)(Medium::Sectors(Box::new(disk)), options)
}

/// A batch of changes of random keys.
fn changes(random: &mut ChaCha8Rng, count: u64) -> Vec<Change> {
    let change = |_| {
        let (key, value): (u64, u64) = (random.random_range(0..ENTRIES), random.random());
        (key.to_be_bytes(), (value % 16 > 0).then_some(value.to_be_bytes()))
    };
    (0..count).map(change).collect()
}

fn update(index: &mut dyn Index, changes: &[Change]) -> index::Result<()> {
    let mut batch = Vec::new();
    for (key, value) in changes {
        batch.push(match value {
            Some(value) => Update::Put { key, value },
            None => Update::Delete { key },
        });
    }
    index.update(&batch)
}

fn learn(model: &mut Model, changes: &[Change]) {
    for (key, value) in changes {
        match value {
            Some(value) => model.entries.insert(key.to_vec(), value.to_vec()),
            None => model.entries.remove(key.as_slice()),
        };
    }
}

/// Changes random keys.
pub(super) fn change(
    index: &mut dyn Index,
    model: &mut Model,
    random: &mut ChaCha8Rng,
    updates: u64,
) {
    for _ in 0..updates / BATCH {
        let changes = changes(random, BATCH);
        update(index, &changes).unwrap();
        learn(model, &changes);
    }
}

#[test]
fn what_leaves_a_large_pool_is_found_where_its_keys_lie() {
    let options = options(Durability::Checkpoint);
    let (mut disk, mut model) = (new_disk(), Model::default());
    let mut index = made(&mut disk, &options, &mut model);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    change(&mut *index, &mut model, &mut random, UPDATES);

    let written = figure(&*index, "fragments written leaf");
    let read = figure(&*index, "fragments read leaf");
    for _ in 0..GETS {
        let key = random.random_range(0..ENTRIES).to_be_bytes();
        let found = index.get(&key, 0, &mut [0; 8]).unwrap().is_some();
        assert_eq!(found, model.entries.contains_key(key.as_slice()));
    }
    let read = figure(&*index, "fragments read leaf") - read;
    let buffers = figure(&*index, "buffers of leaf subtrees");
    println!("{written} fragments of {buffers} buffers, {read} read in {GETS} gets");
    assert!(written > 10 * buffers, "{written} fragments of {buffers} buffers");
    assert!(read < GETS, "{read} fragments are read in {GETS} gets");
    for number in 0..RANGES {
        let bound = random.random_range(0..ENTRIES).to_be_bytes();
        let range = match number % 2 {
            0 => KeyRange { from: Bound::Included(&bound), ..KeyRange::ALL },
            _ => KeyRange { to: Bound::Excluded(&bound), ..KeyRange::ALL.reversed() },
        };
        model.compare_range(&mut *index, range, 1 + number * 4);
    }
    model.compare_all(&mut *index);
    assert_eq!(findings(&mut *index), Vec::<String>::new());

    // Nothing is known of the fragments then.
    index.checkpoint(None).unwrap();
    drop(index);
    let mut index = opened(&mut disk, &options).unwrap();
    model.compare_all(&mut *index);
    change(&mut *index, &mut model, &mut random, UPDATES / 4);
    model.compare_all(&mut *index);
    assert_eq!(findings(&mut *index), Vec::<String>::new());
}

/// What cuts came to.
#[derive(Clone, Copy, Debug, Default)]
struct Witness {
    /// While a buffer left the pool.
    in_spills: u64,
    /// While the index was opened again.
    in_recovery: u64,
    /// Buffers that left the pool again when the journal was replayed.
    replayed: u64,
}

fn is_cut<T>(outcome: &index::Result<T>) -> bool {
    matches!(outcome, Err(Error::Store(store::Error::Device(device::Error::PowerCut))))
}

fn entries(index: &mut dyn Index) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut entries, mut range) = (BTreeMap::new(), index.range(KeyRange::ALL).unwrap());
    while let Some((key, value)) = range.next().unwrap() {
        entries.insert(key.to_vec(), value.whole().unwrap().to_vec());
    }
    entries
}

/// Cuts the power while batches come to a disk, and for another time while the index is opened
/// again, and compares what is there then.
fn cut(seed: u64, disk: &SimulatedDisk, model: &Model) -> Witness {
    let options = options(Durability::Every);
    let (mut disk, mut model) = (disk.clone(), model.clone());
    let (mut witness, mut random) = (Witness::default(), ChaCha8Rng::seed_from_u64(seed));
    disk.arm(DiskFaultPlan::cut(seed, Cut::Change(random.random_range(1..=CHANGES))));
    let mut index = opened(&mut disk, &options).unwrap();
    let cut_off = loop {
        let changes = changes(&mut random, CUT_BATCH);
        let updated = update(&mut *index, &changes);
        if is_cut(&updated) {
            break changes;
        }
        updated.unwrap();
        learn(&mut model, &changes);
    };
    witness.in_spills = figure(&*index, "buffers written sorted in part");
    drop(index);
    disk.restore_power();
    disk.arm(DiskFaultPlan::cut(!seed, Cut::Change(random.random_range(1..=CHANGES))));
    let second = opened(&mut disk, &options).map(drop);
    match is_cut(&second) {
        true => witness.in_recovery += 1,
        false => second.unwrap(),
    }
    disk.restore_power();
    disk.arm(DiskFaultPlan::default());
    let mut index = opened(&mut disk, &options).unwrap();
    witness.replayed = figure(&*index, "buffers written sorted");
    let found = entries(&mut *index);
    // The batch that was cut off may be there, as a whole.
    if found != model.entries {
        learn(&mut model, &cut_off);
        assert!(found == model.entries, "seed {seed}: entries are lost");
    }
    assert_eq!(findings(&mut *index), Vec::<String>::new(), "seed {seed}");
    change(&mut *index, &mut model, &mut random, 1000);
    assert!(entries(&mut *index) == model.entries, "seed {seed}: entries are lost later");
    witness
}

#[test]
fn what_was_acknowledged_lasts_when_the_power_goes_while_a_buffer_leaves_the_pool() {
    let options = options(Durability::Every);
    let (mut disk, mut model) = (new_disk(), Model::default());
    let mut index = made(&mut disk, &options, &mut model);
    let mut random = ChaCha8Rng::seed_from_u64(2);
    while figure(&*index, "buffers written sorted") < 3 {
        change(&mut *index, &mut model, &mut random, BATCH);
    }
    index.checkpoint(None).unwrap();
    drop(index);
    let seeds: Vec<u64> = contract::sample(20, 0..CUTS).collect();
    let all = on_all_cores(&seeds, |seed| cut(*seed, &disk, &model));
    let sum = |of: fn(&Witness) -> u64| all.iter().map(of).sum::<u64>();
    let cuts = all.len() as u64;
    let (in_spills, in_recovery) = (sum(|one| one.in_spills), sum(|one| one.in_recovery));
    let replayed = sum(|one| one.replayed);
    println!(
        "of {cuts} cuts {in_spills} inside spills, {in_recovery} more in recovery, {replayed} \
         buffers written again in replays"
    );
    assert!(in_spills > cuts / 10, "{in_spills} of {cuts} cuts came inside spills");
    assert!(in_recovery > cuts / 2, "{in_recovery} of {cuts} came in recovery");
    assert!(replayed > cuts / 4, "{replayed} buffers were written again after {cuts} cuts");
}
