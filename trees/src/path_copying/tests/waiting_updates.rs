//! Updates that wait in the operation buffer of a tree whose height is bounded: they fill their
//! share of memory, and all of them can be written, wherever their keys are and whatever was loaded
//! and deleted before.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use contract::sample;
use contract::tree::Model;
use device::{Cause, Geometry, Medium, NandCosts};
use index::Options;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use sim::SimulatedNand;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// How the tree comes to be that updates wait for.
#[derive(Clone, Copy, Debug)]
enum Start {
    Empty,
    /// Loaded with full nodes.
    Loaded,
    /// Loaded with full nodes, of which all but each seventh entry was deleted: the pages are
    /// divided otherwise then, and its nodes are nearly empty.
    Thinned,
    /// Grown by puts and thinned twice.
    Grown,
}

/// Where keys come.
#[derive(Clone, Copy, Debug)]
enum Order {
    Random,
    Ascending,
    Descending,
    /// In turn into one gap after the other of those that were there.
    Round,
    /// All into one gap, from both ends.
    Narrow,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    tree: &'static str,
    page_bytes: u32,
    blocks: u32,
    lengths: Lengths,
    /// What leaves the operation buffer together, if it is not as the tree has it.
    flush: Option<&'static str>,
    durability: Durability,
    start: Start,
    order: Order,
    loaded: u64,
}

/// The least and the most bytes of keys, and those of values.
type Lengths = [[u64; 2]; 2];

const FIXED: Lengths = [[8, 8], [8, 8]];
const SHORT: Lengths = [[8, 20], [8, 20]];
const LONG: Lengths = [[16, 16], [0, 100]];

fn options(case: &Case, memory: u64) -> Options {
    let entry = flashtree_trees::find(case.tree).unwrap();
    let given = case.flush.map(|flush| ("flush", flush));
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let shape = if case.lengths == FIXED { EntryShape::fixed(8, 8) } else { EntryShape::VARIABLE };
    let options = Options::new(shape, memory, settings);
    Options { durability: Some(case.durability), ..options }
}

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// The keys that are there before updates wait are a gap apart.
const GAP: u64 = 1 << 32;

/// The number of a new key.
fn new_number(case: &Case, number: u64) -> u64 {
    let gaps = case.loaded.max(1);
    match case.order {
        Order::Random => (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (gaps * GAP)) | 1,
        Order::Ascending => (gaps + 1) * GAP + number,
        Order::Descending => (gaps + 1) * GAP - 2 * number - 1,
        Order::Round => (number * 7 % gaps) * GAP + 1 + number / gaps,
        Order::Narrow if number.is_multiple_of(2) => gaps / 2 * GAP + 1 + number,
        Order::Narrow => (gaps / 2 + 1) * GAP - 1 - number,
    }
}

/// The entry of so large a key, of lengths that are drawn by another number, too.
fn entry_of(case: &Case, number: u64, other: u64) -> (Vec<u8>, Vec<u8>) {
    let mixed = (number ^ other).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8;
    let length = |[least, most]: [u64; 2], mixed: u64| least + mixed % (most - least + 1);
    let [keys, values] = case.lengths;
    let (mut key, mut value) = (key(number), key(other));
    // What stands in the middle makes separators long; one key has one length.
    let more = length(keys, number >> 1) as usize - key.len();
    key.splice(4..4, vec![7; more]);
    value.resize(length(values, mixed) as usize, 7);
    (key, value)
}

fn new_entry(case: &Case, number: u64) -> (Vec<u8>, Vec<u8>) {
    entry_of(case, new_number(case, number), number)
}

fn start(index: &mut dyn Index, case: &Case, map: &mut Map) {
    let model = Model {
        entries: (0..case.loaded).map(|number| entry_of(case, number * GAP, number)).collect(),
    };
    match case.start {
        Start::Empty => {}
        Start::Loaded | Start::Thinned => match index.load(&mut model.cursor(), 100) {
            Ok(_) => map.extend(model.entries.clone()),
            Err(error) => panic!("{case:?}: a load: {error}"),
        },
        Start::Grown => {
            for round in 0..2 {
                for (key, value) in &model.entries {
                    index.update(&[Update::Put { key, value }]).unwrap();
                }
                map.extend(model.entries.clone());
                if round == 0 {
                    thin(index, map);
                }
            }
        }
    }
    if matches!(case.start, Start::Thinned | Start::Grown) {
        thin(index, map);
    }
}

fn thin(index: &mut dyn Index, map: &mut Map) {
    let keys: Vec<_> = map.keys().cloned().collect();
    for (_, key) in keys.iter().enumerate().filter(|(place, _)| place % 7 > 0) {
        index.update(&[Update::Delete { key }]).unwrap();
        map.remove(key);
    }
}

fn holds(index: &mut dyn Index, map: &Map, case: &Case) {
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    for (key, value) in map {
        let (found, held) = cursor.next().unwrap().unwrap_or_else(|| panic!("{case:?}"));
        assert_eq!((found, held.whole()), (&key[..], Some(&value[..])), "{case:?}");
    }
    assert!(cursor.next().unwrap().is_none(), "{case:?}");
}

/// Puts so many keys, or until the tree refuses some; true if it did.
fn put(index: &mut dyn Index, case: &Case, numbers: std::ops::Range<u64>, map: &mut Map) -> bool {
    let mut refused = 0;
    for number in numbers {
        let (key, value) = new_entry(case, number);
        match index.update(&[Update::Put { key: &key, value: &value }]) {
            Ok(()) => drop(map.insert(key, value)),
            Err(Error::Store(store::Error::Full { .. })) => refused += 1,
            Err(error) => panic!("{case:?}: {error}"),
        }
        if refused == 8 {
            return true;
        }
    }
    false
}

/// Plays a case; true if the tree was full.
fn play(case: &Case, puts: u64) -> bool {
    let geometry = Geometry::new(case.page_bytes, 64, case.blocks).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let entry = flashtree_trees::find(case.tree).unwrap();
    let mut map = Map::new();
    let mut was_full = false;
    let memories = [1 << 20, 1 << 17, 1 << 20];
    for (round, memory) in memories.into_iter().enumerate() {
        let options = options(case, memory);
        let make = if round == 0 { entry.create } else { entry.open };
        let mut index = make(Medium::Nand(Box::new(&mut chip)), &options)
            .unwrap_or_else(|error| panic!("{case:?}: {error}"));
        if round == 0 {
            start(&mut *index, case, &mut map);
        }
        holds(&mut *index, &map, case);
        let numbers = round as u64 * puts..(round as u64 + 1) * puts;
        was_full |= put(&mut *index, case, numbers, &mut map);
        if case.durability.has_journal() {
            // What is in the journal alone is replayed.
            index.sync().unwrap();
        } else {
            index.close().unwrap_or_else(|error| panic!("{case:?}: {error}"));
        }
    }
    let mut index = (entry.open)(Medium::Nand(Box::new(&mut chip)), &options(case, 1 << 17))
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    holds(&mut *index, &map, case);
    let mut findings = Vec::new();
    index.check(&mut |finding| findings.push(finding.to_string())).unwrap();
    assert!(findings.is_empty(), "{case:?}: {findings:?}");
    was_full
}

/// Plays every start, order and durability; at least so many trees come to be full.
fn keeps(
    (tree, flush, lengths): (&'static str, Option<&'static str>, Lengths),
    page_bytes: u32,
    (loaded, puts): (u64, u64),
    full: u32,
) {
    let blocks = if full > 0 { 40 } else { 600 };
    let mut cases = Vec::new();
    for durability in Durability::ALL {
        for start in [Start::Empty, Start::Loaded, Start::Thinned, Start::Grown] {
            for order in
                [Order::Random, Order::Ascending, Order::Descending, Order::Round, Order::Narrow]
            {
                cases.push(Case {
                    tree,
                    flush,
                    page_bytes,
                    blocks,
                    lengths,
                    durability,
                    start,
                    order,
                    loaded,
                });
            }
        }
    }
    let (mut played, mut filled, mut failed) = (0, 0, Vec::new());
    for case in sample(11, cases) {
        played += 1;
        match catch_unwind(|| play(&case, puts)) {
            Ok(was_full) => filled += u32::from(was_full),
            Err(_) => failed.push(case),
        }
    }
    println!("{tree}, {page_bytes}: {filled} of {played} trees were full");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(filled * 80 >= full * played, "{filled} of {played} trees were full");
}

#[test]
fn all_that_waits_for_mu_star_can_be_written_wherever_its_keys_are() {
    keeps(("mu-star", None, FIXED), 512, (1_000, 6_000), 40);
    keeps(("mu-star", None, FIXED), 1024, (6_000, 9_000), 0);
}

#[test]
fn all_that_waits_for_mu_can_be_written_wherever_its_keys_are() {
    keeps(("mu", None, FIXED), 512, (500, 4_000), 40);
    keeps(("mu", None, FIXED), 1024, (3_000, 5_000), 0);
}

#[test]
fn all_that_waits_for_mu_star_can_be_written_wherever_its_keys_are_and_however_long() {
    keeps(("mu-star", None, SHORT), 1024, (1_000, 2_000), 0);
    keeps(("mu-star", None, LONG), 2048, (3_000, 3_000), 0);
    keeps(("mu-star", None, SHORT), 4096, (6_000, 6_000), 0);
}

/// As above, where all that waits for a leaf is written at once.
#[test]
fn all_that_waits_can_be_written_leaf_by_leaf_wherever_its_keys_are() {
    keeps(("mu-star", Some("leaf"), FIXED), 512, (1_000, 6_000), 40);
    keeps(("mu", Some("leaf"), FIXED), 512, (500, 4_000), 40);
    keeps(("mu-star", Some("leaf"), SHORT), 1024, (1_000, 2_000), 0);
}

/// Updates a tree of 100,000 entries on and on in so many of them; returns the pages that 4,000 of
/// these write, and the height.
fn pages_written(case: &Case, memory: u64, updated: u64) -> (u64, u32) {
    let geometry = Geometry::new(case.page_bytes, 64, 1024).unwrap();
    let mut chip = SimulatedNand::new(geometry, NandCosts::default());
    let create = flashtree_trees::find(case.tree).unwrap().create;
    let made = create(Medium::Nand(Box::new(&mut chip)), &options(case, memory));
    let mut index = made.unwrap();
    for number in 0..100_000 {
        let (key, value) = new_entry(case, number);
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
    }
    let programs = |index: &dyn Index| -> u64 {
        let of = |cause| index.meter().unwrap().tally(cause).page_programs;
        of(Cause::Update) + of(Cause::Flush)
    };
    let before = programs(&*index);
    for number in 0..4_000 {
        let (key, value) = entry_of(case, new_number(case, number % updated), number);
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
    }
    (programs(&*index) - before, index.statistics().height)
}

const OF_100_000: Case = Case {
    tree: "mu-star",
    page_bytes: 2048,
    blocks: 1024,
    lengths: FIXED,
    flush: None,
    durability: Durability::None,
    start: Start::Empty,
    order: Order::Random,
    loaded: 1 << 20,
};

/// The operation buffer of 4.3.3 has its share of memory in a plain tree of a microcontroller, too:
/// what is put again and again is written no more than it has room for.
#[test]
fn updates_wait_in_32_kib_for_a_tree_of_100_000_entries_in_pages_of_2_kib() {
    for (tree, durability) in ["mu", "mu-star"]
        .into_iter()
        .flat_map(|tree| [Durability::None, Durability::Batch].map(|it| (tree, it)))
    {
        let case = Case { tree, durability, ..OF_100_000 };
        let (written, height) = pages_written(&case, 32 << 10, 80);
        println!("{tree}, {durability}, height {height}: {written} pages for 4,000 updates");
        assert!(written < 500 && height == 4, "{tree}, {durability}: {written} pages");
    }
}

/// As above, where lengths vary.
#[test]
fn updates_of_any_length_wait_for_a_tree_of_100_000_entries_in_pages_of_4_kib() {
    let memories = [(48 << 10, 24), (64 << 10, 80), (128 << 10, 240)];
    let cases = [SHORT, LONG].into_iter().flat_map(|lengths| {
        [Durability::None, Durability::Batch]
            .into_iter()
            .flat_map(move |it| memories.map(|memory| (lengths, it, memory)))
    });
    for (lengths, durability, (memory, updated)) in sample(5, cases) {
        let case = Case { page_bytes: 4096, lengths, durability, ..OF_100_000 };
        // With a journal, a checkpoint is made when that is full.
        let (updated, most) = match durability.has_journal() {
            true => (updated.min(80), 1_200),
            false => (updated, 500),
        };
        let (written, height) = pages_written(&case, memory, updated);
        println!("{lengths:?}, {durability}, {memory}, height {height}: {written} pages");
        assert!(written < most && height == 3, "{case:?}, {memory}: {written} pages");
    }
}
