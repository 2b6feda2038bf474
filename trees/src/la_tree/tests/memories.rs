//! The lazy-adaptive tree on a chip that is nearly full, in lives of different memories that end
//! with power cuts: what was acknowledged stays, and all of it can be deleted.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Result, Update, Value};
use index::{MediumShape, Options, TreeDescriptor};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultPlan, SimulatedNand};

/// The most memory of a life, as a multiple of the least with which the tree works.
const TIMES_MOST: u64 = 40;

/// Pages of a chip and its spare bytes, its blocks, and how many keys there are: some chips get
/// full, on others most updates find their key.
const CHIPS: [(u32, u32, u32, u32); 5] = [
    (512, 16, 56, 4000),
    (512, 16, 56, 6600),
    (2048, 0, 40, 12_000),
    (512, 0, 56, 100_000),
    (512, 16, 56, 100_000),
];

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Change = (Vec<u8>, Option<Vec<u8>>);

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap_or_else(|| panic!("there is no la-tree"))
}

fn apply(entries: &mut Entries, (key, value): &Change) {
    match value {
        Some(value) => drop(entries.insert(key.clone(), value.clone())),
        None => drop(entries.remove(key)),
    }
}

fn update(index: &mut dyn Index, (key, value): &Change) -> Result<()> {
    index.update(&[match value {
        Some(value) => Update::Put { key, value },
        None => Update::Delete { key },
    }])
}

const fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Store(store::Error::Device(device::Error::PowerCut)))
}

/// A chip with a tree that has another memory in each life.
struct Lives {
    chip: SimulatedNand,
    options: Options,
    least: u64,
    random: ChaCha8Rng,
    /// What lasts, and what came since, of which a cut leaves the first so many.
    lasting: Entries,
    since: Vec<Change>,
}

impl Lives {
    fn new((page, spare, blocks, _): (u32, u32, u32, u32), seed: u64) -> Self {
        let chip = Geometry::new(page, 16, blocks).unwrap().with_spare(spare).unwrap();
        let settings = Settings::parse("la-tree", entry().parameters, []).unwrap();
        // No memory yet: it was not made.
        let options = Options {
            durability: Some(Durability::Batch),
            journal_bytes: Some(u64::from(page) * 64),
            ..Options::new(EntryShape::fixed(4, 4), 0, settings)
        };
        let least = entry().least_memory(&options, MediumShape::Nand(chip)).unwrap();
        Lives {
            chip: SimulatedNand::new(chip, NandCosts::default()),
            options,
            least,
            random: ChaCha8Rng::seed_from_u64(seed),
            lasting: Entries::new(),
            since: Vec::new(),
        }
    }

    /// A change of one of `keys` keys.
    fn change(&mut self, keys: u32) -> Change {
        let key = self.random.random_range(0..keys).wrapping_mul(0x9E37_79B9).to_be_bytes();
        let is_delete = self.random.random_range(0..100) < 5;
        let value = self.random.next_u32().to_be_bytes();
        (key.to_vec(), (!is_delete).then(|| value.to_vec()))
    }

    /// Deletes of all keys that there are, in any order.
    fn deletes(&mut self) -> Vec<Change> {
        let mut deletes: Vec<Change> = self.lasting.keys().map(|key| (key.clone(), None)).collect();
        deletes.shuffle(&mut self.random);
        deletes
    }

    /// A life of `times` the least memory in which `changes` are made, and which ends at change
    /// `cut` of the chip, or after them; returns how many puts were refused.
    fn live(&mut self, times: u64, changes: &[Change], cut: Option<u64>) -> u64 {
        let is_new = self.options.memory_bytes == 0;
        self.options.memory_bytes = times * self.least;
        self.chip.restore_power();
        self.chip.arm(FaultPlan { power_cut: cut.map(Cut::Change), ..FaultPlan::default() });
        let make = if is_new { entry().create } else { entry().open };
        let mut index = match make(Medium::Nand(Box::new(&mut self.chip)), &self.options) {
            Ok(index) => index,
            Err(error) if is_cut(&error) => return 0,
            Err(error) => panic!("{times} times the least memory: {error}"),
        };
        let found = entries(&mut *index);
        // What is found is what lasted, and a first part of what came since.
        let mut since = self.since.drain(..);
        while self.lasting != found {
            let change = since.next().expect("what is found was there at no time");
            apply(&mut self.lasting, &change);
        }
        drop(since);
        let mut refused = 0;
        for (place, change) in changes.iter().enumerate() {
            let outcome = update(&mut *index, change);
            let is_full = matches!(outcome, Err(Error::Store(store::Error::Full { .. })));
            if is_full && change.1.is_some() {
                refused += 1;
                continue;
            }
            // The one that is cut off may last, too.
            self.since.push(change.clone());
            let synced = outcome.and_then(|()| match place % 200 {
                199 => index.sync().map(|()| true),
                _ => Ok(false),
            });
            match synced {
                Ok(true) => make_lasting(&mut self.lasting, &mut self.since),
                Ok(false) => {}
                Err(error) if is_cut(&error) => return refused,
                Err(error) => panic!("{times} times the least memory, change {place}: {error}"),
            }
        }
        match index.sync() {
            Ok(()) => make_lasting(&mut self.lasting, &mut self.since),
            Err(error) => assert!(is_cut(&error), "{error}"),
        }
        refused
    }
}

fn make_lasting(entries: &mut Entries, since: &mut Vec<Change>) {
    for change in since.drain(..) {
        apply(entries, &change);
    }
}

fn entries(index: &mut dyn Index) -> Entries {
    let mut entries = Entries::new();
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    while let Some((key, value)) = cursor.next().unwrap() {
        let Value::Inline(value) = value else { panic!("it is short") };
        entries.insert(key.to_vec(), value.to_vec());
    }
    entries
}

/// With one memory the chip is filled, and with others it is emptied again.
fn fill_and_empty(seed: u64) -> u64 {
    let chip = CHIPS[seed as usize % CHIPS.len()];
    let writes = 1 + seed % TIMES_MOST;
    let mut lives = Lives::new(chip, seed);
    let fill: Vec<Change> = (0..7000).map(|_| lives.change(chip.3)).collect();
    let mut refused = lives.live(writes, &fill, None);
    for round in 0..2 {
        let times = if round == 0 { writes } else { lives.random.random_range(1..=TIMES_MOST) };
        let cut = lives.random.random_range(1..400);
        let more: Vec<Change> = (0..900).map(|_| lives.change(chip.3)).collect();
        refused += lives.live(times, &more, Some(cut));
    }
    let times = lives.random.random_range(1..=TIMES_MOST);
    let (deletes, cut) = (lives.deletes(), lives.random.random_range(1..1500));
    lives.live(times, &deletes, Some(cut));
    let times = lives.random.random_range(1..=TIMES_MOST);
    // What the cuts left is known when the index is opened.
    lives.live(times, &[], None);
    let deletes = lives.deletes();
    let times = lives.random.random_range(1..=TIMES_MOST);
    lives.live(times, &deletes, None);
    assert_eq!(lives.lasting, Entries::new());
    let put = [(vec![1; 4], Some(vec![2; 4]))];
    assert_eq!(lives.live(1, &put, None), 0);
    assert_eq!(lives.lasting.len(), 1);
    refused
}

#[test]
fn whatever_memory_a_nearly_full_chip_was_left_with_all_of_it_can_be_deleted() {
    let seeds: Vec<u64> = match std::env::var("SEEDS") {
        Ok(seeds) => seeds.split(',').map(|seed| seed.parse().unwrap()).collect(),
        Err(_) => contract::sample(3, 0..TIMES_MOST).collect(),
    };
    let (mut failed, mut refused) = (0, 0);
    for seed in seeds {
        match catch_unwind(|| fill_and_empty(seed)) {
            Ok(puts) => refused += puts,
            Err(_) => {
                println!(
                    "play it again with SEEDS={seed} cargo test -p flashtree-trees \
                          --test la_tree memories::"
                );
                failed += 1;
            }
        }
    }
    println!("{refused} puts refused");
    assert_eq!(failed, 0);
}

/// Puts a block of entries, as long as they can be or short ones, with the least memory.
fn fill_with_the_least_memory((page, spare): (u32, u32), shape: EntryShape, share: &str) {
    let chip = Geometry::new(page, 16, 64).unwrap().with_spare(spare).unwrap();
    let given = [("pool", share)];
    let settings = Settings::parse("la-tree", entry().parameters, given).unwrap();
    let mut options = Options::new(shape, 0, settings);
    options.memory_bytes = entry().least_memory(&options, MediumShape::Nand(chip)).unwrap();
    let mut nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut nand)), &options).unwrap();
    let mut entries = Entries::new();
    for number in 0..600_u32 {
        let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec();
        let value = vec![7; if shape == EntryShape::VARIABLE { number as usize % 50 } else { 4 }];
        let put = (key, Some(value));
        update(&mut *index, &put)
            .unwrap_or_else(|error| panic!("{page}+{spare}, pool={share}, {number}: {error}"));
        apply(&mut entries, &put);
    }
    assert_eq!(self::entries(&mut *index), entries, "{page}+{spare}, pool={share}");
}

#[test]
fn the_smallest_share_of_the_least_memory_suffices_for_the_pool() {
    for page in [(512, 0), (512, 16), (2048, 0), (4096, 128)] {
        for shape in [EntryShape::VARIABLE, EntryShape::fixed(4, 4)] {
            for share in ["0.01", "0.05", "0.25", "0.99"] {
                fill_with_the_least_memory(page, shape, share);
            }
        }
    }
}
