//! Chips with a database whose tree stands on the raw flash, damaged.

use std::collections::{BTreeMap, BTreeSet};

use db::{Batch, Database, OpenOptions, Options};
use device::{Geometry, Medium, NandCosts};
use index::Durability;
use index::TreeDescriptor;
use proptest::prelude::*;
use proptest::sample::Index as Choice;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;
use trees::TREES;

use super::databases;
use crate::OPERATIONS_MOST;
use crate::chip::ImageChip;
use crate::damage::{Number, numbers};
use crate::outcome::Outcome;
use crate::reach::Reach;
use crate::structure::{number, set_number};

/// Pages in a block, and blocks.
const SHAPE: (u32, u32) = (8, 96);

const PAGE_BYTES: u32 = 2048;

/// Bytes of a spare area, where there is one.
const SPARE: u32 = 16;

/// Bytes of a tag.
const TAG: usize = 16;

/// Keys of a database.
const KEYS: u32 = 120;

/// Bytes of memory for caches and buffers.
const MEMORY: u64 = 96 << 10;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A chip, and what the database on it held.
pub struct Seed {
    name: String,
    chip: ImageChip,
    /// What it held after each change, the last at the end.
    states: Vec<Entries>,
    /// The tag is in the page.
    in_page: bool,
}

/// `count` chips, with every tree on raw flash in turn.
///
/// # Panics
/// A tree fails.
pub fn seeds(runner: &mut TestRunner, count: usize) -> Vec<Seed> {
    let trees: Vec<&TreeDescriptor> = TREES.iter().copied().filter(|entry| entry.nand).collect();
    let made = |place: usize| {
        let (tree, rest) = (trees[place % trees.len()], place / trees.len());
        let durability = Durability::ALL[rest % 4];
        let spare = if rest / 4 % 2 == 0 { SPARE } else { 0 };
        let seed = any::<u64>().new_tree(runner).map(|tree| tree.current());
        (tree.name, durability, spare, seed.unwrap_or_default())
    };
    (0..count)
        .map(made)
        .map(|(tree, durability, spare, seed)| live(tree, durability, spare, seed))
        .collect()
}

/// A database that was used, and closed.
fn live(tree: &str, durability: Durability, spare: u32, seed: u64) -> Seed {
    let geometry = Geometry::new(PAGE_BYTES, SHAPE.0, SHAPE.1).expect("it is a chip");
    let geometry = geometry.with_spare(spare).expect("its pages are larger than that");
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let options = Options::new().tree(tree).durability(durability).memory(MEMORY).identity(7);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut states = vec![Entries::new()];
    let database = Database::create_on(Medium::Nand(Box::new(&mut chip)), &options);
    let database = database.expect("the chip suits every tree");
    for step in 0..random.random_range(20..300) {
        let changes = change(&mut random);
        let mut batch = Batch::new();
        let mut state = states.last().cloned().unwrap_or_default();
        for (key, value) in &changes {
            match value {
                Some(value) => {
                    batch.put(key, value);
                    state.insert(key.clone(), value.clone());
                }
                None => {
                    batch.delete(key);
                    state.remove(key);
                }
            }
        }
        database.write_batch(&batch).expect("it has room");
        states.push(state);
        if step % 40 == 39 && durability != Durability::None {
            database.sync().expect("it can be synced");
            if step == 39 {
                database.checkpoint("kept").expect("it can be made");
            }
        }
    }
    database.close().expect("it can be closed");
    let name = format!("{tree}/{durability}/{spare}");
    Seed { name, chip: ImageChip::of(&mut chip), states, in_page: spare == 0 }
}

fn change(random: &mut ChaCha8Rng) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let keys = random.random_range(1..4);
    let one = |_| {
        let key = random.random_range(0..KEYS).to_be_bytes().to_vec();
        let is_put = random.random_bool(0.8);
        (key, is_put.then(|| vec![random.random(); random.random_range(0..12)]))
    };
    (0..keys).map(one).collect()
}

/// What is done to a page.
#[derive(Clone, Debug)]
pub enum Change {
    /// A bit of it flips, or of the spare area.
    Flip(bool, u16, u8),
    /// More bits flip than can be corrected.
    Spoil,
    /// All bytes become this one.
    Fill(u8),
    /// What stands on another page stands here too.
    Copy(Choice),
    /// A number in it becomes another, and the checksum of the log's own pages is repaired.
    Number(u16, Number),
    /// A number of the tag becomes another, and its checksum is repaired.
    Tag(bool, Number),
    /// The block is marked bad.
    Condemn,
}

/// A chip, changes of its pages, and what is done with what is left.
pub type Case = (Choice, Vec<(Choice, Change)>, Vec<Choice>);

/// Cases of this target.
pub fn cases() -> impl Strategy<Value = Case> {
    let change = prop_oneof![
        5 => (any::<bool>(), any::<u16>(), 0..8_u8)
            .prop_map(|(spare, at, bit)| Change::Flip(spare, at, bit)),
        3 => Just(Change::Spoil),
        1 => prop_oneof![Just(0), Just(0xFF), any::<u8>()].prop_map(Change::Fill),
        1 => any::<Choice>().prop_map(Change::Copy),
        4 => (any::<u16>(), numbers()).prop_map(|(at, new)| Change::Number(at, new)),
        2 => (any::<bool>(), numbers()).prop_map(|(first, new)| Change::Tag(first, new)),
        1 => Just(Change::Condemn),
    ];
    let hits = prop::collection::vec((any::<Choice>(), change), 1..4);
    (any::<Choice>(), hits, prop::collection::vec(any::<Choice>(), 0..6))
}

/// Damages the chip; true if checksums were repaired, or a whole page was put elsewhere.
fn damage(seed: &Seed, chip: &mut ImageChip, hits: &[(Choice, Change)]) -> bool {
    let used = chip.used_pages();
    let mut is_vouched_for = false;
    for (page, change) in hits {
        is_vouched_for |= hit(seed.in_page, chip, *page.get(&used), change, &used);
    }
    is_vouched_for
}

fn hit(in_page: bool, chip: &mut ImageChip, page: u32, change: &Change, used: &[u32]) -> bool {
    match change {
        Change::Flip(in_spare, at, bit) => {
            let (data, spare) = chip.page_mut(page);
            let bytes = if *in_spare && !in_page { spare } else { data };
            let at = usize::from(*at) % bytes.len();
            bytes[at] ^= 1 << bit;
            false
        }
        Change::Spoil => {
            chip.spoil(page);
            false
        }
        Change::Fill(byte) => {
            let (data, spare) = chip.page_mut(page);
            data.fill(*byte);
            spare.fill(*byte);
            false
        }
        Change::Copy(from) => {
            let (data, spare) = chip.page(*from.get(used));
            let (data, spare) = (data.to_vec(), spare.to_vec());
            let (to, area) = chip.page_mut(page);
            to.copy_from_slice(&data);
            area.copy_from_slice(&spare);
            false
        }
        Change::Number(at, new) => {
            let (data, _) = chip.page_mut(page);
            let content = if in_page { &mut data[TAG..] } else { data };
            let at = 4 + usize::from(*at) % (content.len() - 8);
            let old = number(content, at, 4);
            set_number(content, at, 4, new.of(old, 4, used.len()));
            let sum = device::checksum(&[&page.to_le_bytes(), &content[4..]]);
            set_number(content, 0, 4, u64::from(sum));
            true
        }
        Change::Tag(is_sequence, new) => {
            let (data, spare) = chip.page_mut(page);
            let tag = if in_page { &mut data[..TAG] } else { &mut spare[..TAG] };
            let (at, bytes) = if *is_sequence { (4, 5) } else { (12, 4) };
            let old = number(tag, at, bytes);
            set_number(tag, at, bytes, new.of(old, bytes, used.len()));
            let sum = device::checksum(&[b"tag", &page.to_le_bytes(), &tag[4..]]);
            set_number(tag, 0, 4, u64::from(sum));
            true
        }
        Change::Condemn => {
            chip.condemn(page / SHAPE.0);
            false
        }
    }
}

/// Damages a chip, and uses what is left.
///
/// # Panics
/// Wrong data, memory beyond the budget, a use of the chip without end.
pub fn play(seeds: &[Seed], (choice, hits, after): &Case, reach: &Reach) -> Outcome {
    let seed = choice.get(seeds);
    let mut chip = seed.chip.clone();
    let is_vouched_for = damage(seed, &mut chip, hits);
    chip.start();
    let medium = Medium::Nand(Box::new(&mut chip));
    let open = || Database::open_on(medium, &OpenOptions::new().memory(MEMORY));
    let found = databases::read_measured(open, MEMORY, 10 * KEYS as usize);
    assert!(!chip.is_endless(), "more than {OPERATIONS_MOST} operations of the chip");
    chip.start();
    if let Err(error) = databases::change(Medium::Nand(Box::new(&mut chip)), MEMORY, after) {
        reach.note_database(&error);
    }
    assert!(!chip.is_endless(), "more than {OPERATIONS_MOST} operations of the chip");
    let found = match found {
        Ok(found) => found.entries.into_iter().collect::<Entries>(),
        Err(error) => {
            reach.note_database(&error);
            return Outcome::Error;
        }
    };
    match seed.states.iter().rposition(|state| *state == found) {
        Some(place) if place + 1 == seed.states.len() => Outcome::Right,
        Some(_) => Outcome::Earlier,
        None => {
            assert!(is_vouched_for, "{}: wrong data: {}", seed.name, differences(seed, &found));
            Outcome::Believed
        }
    }
}

/// In what `found` differs from what the database held last.
fn differences(seed: &Seed, found: &Entries) -> String {
    let wanted = seed.states.last().cloned().unwrap_or_default();
    let keys: BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    let differing = keys.iter().filter(|key| wanted.get(**key) != found.get(**key)).count();
    format!("{} entries of {}, {differing} differ", found.len(), wanted.len())
}
