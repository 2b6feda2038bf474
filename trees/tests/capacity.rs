//! How much trees on raw flash hold: chips that are filled, emptied and filled again, in changing
//! orders, lose nothing of what they took, refuse no delete, and hold as much in every round.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod full_chips;

use device::{Geometry, Medium, NandCosts};
use full_chips::Pair;
use index::Options;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use sim::SimulatedNand;

/// A chip: bytes of a page, pages of a block, blocks.
const CHIPS: [(u32, u32, u32); 3] = [(512, 16, 256), (2048, 32, 64), (2048, 64, 32)];

/// Keys come in each order once, and in the whole suite in the first of them once more.
fn rounds_played() -> u64 {
    if contract::share(2) == 1 { 4 } else { 3 }
}

/// A tree on a chip.
#[derive(Clone, Copy, Debug)]
struct Case {
    tree: &'static str,
    chip: (u32, u32, u32),
    shape: EntryShape,
    durability: Durability,
}

impl Case {
    fn medium(&self) -> SimulatedNand {
        let (page, pages, blocks) = self.chip;
        let chip = Geometry::new(page, pages, blocks).unwrap().with_spare(16).unwrap();
        SimulatedNand::new(chip, NandCosts::default())
    }

    fn options(&self) -> Options {
        let entry = flashtree_trees::find(self.tree).unwrap();
        let settings = Settings::parse(self.tree, entry.parameters, []).unwrap();
        let options = Options::new(self.shape, 128 << 10, settings);
        Options { durability: Some(self.durability), ..options }
    }

    fn create<'c>(&self, chip: &'c mut SimulatedNand) -> Box<dyn Index + 'c> {
        let entry = flashtree_trees::find(self.tree).unwrap();
        (entry.create)(Medium::Nand(Box::new(chip)), &self.options()).unwrap()
    }

    fn open<'c>(&self, chip: &'c mut SimulatedNand) -> index::Result<Box<dyn Index + 'c>> {
        let entry = flashtree_trees::find(self.tree).unwrap();
        (entry.open)(Medium::Nand(Box::new(chip)), &self.options())
    }

    /// Keys come scattered, ascending and descending by turns.
    fn entry(&self, round: u64, number: u64) -> Pair {
        let key = match round % 3 {
            0 => number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            1 => number << 32,
            _ => !(number << 32),
        };
        full_chips::entry(self.shape, key.to_be_bytes(), [7 - round as usize % 2 * 7, 3])
    }

    /// Two such keys differ in their last byte alone: what tells their leaves apart is as long.
    fn long_key(&self, bytes: u64, number: u64) -> Vec<u8> {
        let mut key = vec![b'k'; bytes as usize];
        key[..8].copy_from_slice(&self.entry(0, number / 2).0[..8]);
        key[bytes as usize - 1] = 1 - (number % 2) as u8;
        key
    }

    /// Fills the chip and empties it; returns the entries that it took, and its pages in use.
    fn round(&self, index: &mut dyn Index, round: u64) -> (usize, u64) {
        let taken = full_chips::fill(index, self, &|number| self.entry(round, number));
        let pages = index.statistics().live_pages;
        let mut held = 0;
        let mut cursor = index.range(KeyRange::ALL).unwrap();
        while cursor.next().unwrap().is_some() {
            held += 1;
        }
        drop(cursor);
        assert_eq!(held, taken.len(), "{self:?}, round {round}");
        full_chips::delete(index, self, &|number| self.entry(round, number), &taken);
        assert!(index.range(KeyRange::ALL).unwrap().next().unwrap().is_none(), "{self:?}");
        (held, pages)
    }
}

/// Fills and empties chips; of the pages of a chip, at least the share that `least` tells in
/// percent is in use in each round.
fn rounds(tree: &'static str, least: [u64; 3]) {
    let mut cases = Vec::new();
    for (chip, least) in CHIPS.into_iter().zip(least) {
        for shape in [EntryShape::fixed(8, 8), EntryShape::VARIABLE] {
            let each = Durability::ALL.map(|durability| Case { tree, chip, shape, durability });
            cases.extend(each.map(|case| (case, least)));
        }
    }
    for (case, least) in contract::sample(7, cases) {
        let Case { chip, shape, durability, .. } = case;
        let mut medium = case.medium();
        let (_, pages, blocks) = chip;
        let mut index = case.create(&mut medium);
        let each: Vec<_> =
            (0..rounds_played()).map(|round| case.round(&mut *index, round)).collect();
        let shares: Vec<_> =
            each.iter().map(|(_, held)| held * 100 / u64::from(pages * blocks)).collect();
        println!("{tree} {chip:?} {shape:?} {durability}: {each:?} {shares:?} %");
        assert!(shares.iter().all(|share| *share >= least), "{case:?}: {shares:?} %");
    }
}

#[test]
fn flat_tree_holds_as_much_in_every_round() {
    // What is not its runs are gaps in blocks, ends of bottoms, and room for moves and a merge.
    rounds("flat-tree", [80, 69, 62]);
}

#[test]
fn ipl_holds_as_much_in_every_round() {
    // Half of the pages are log pages.
    rounds("ipl", [43, 38, 32]);
}

#[test]
fn la_tree_holds_as_much_in_every_round() {
    // Half of the chip is for reclamation: of the other, 80 % of many blocks, and 60 % of few.
    rounds("la-tree", [43, 38, 31]);
}

/// Where keys are so long that a page holds four or five of them, a tree is full because the chip
/// is, and opens with the memory that it was made with.
#[test]
fn long_keys_fill_the_chip_and_not_the_height() {
    let (tree, durability) = ("b-plus", Durability::Batch);
    for bytes in [400, 490] {
        let case = Case { tree, chip: CHIPS[2], shape: EntryShape::VARIABLE, durability };
        let entry = |round: u64, number: u64| {
            let mut key = vec![b'k'; bytes];
            key[..8].copy_from_slice(&case.entry(round, number).0[..8]);
            (key, Vec::new())
        };
        let mut medium = case.medium();
        let mut index = case.create(&mut medium);
        for round in 0..rounds_played() {
            let taken = full_chips::fill(&mut *index, &case, &|number| entry(round, number));
            let (_, pages, blocks) = case.chip;
            let share = index.statistics().live_pages * 100 / u64::from(pages * blocks);
            println!("keys of {bytes}, round {round}: {} entries, {share} %", taken.len());
            assert!(share >= 60, "keys of {bytes}, round {round}: {share} %");
            index.close().unwrap();
            drop(index);
            index = case.open(&mut medium).unwrap();
            full_chips::delete(&mut *index, &case, &|number| entry(round, number), &taken);
        }
    }
}

/// With little memory paths find no room beyond some height. A put that might need more is refused
/// before it is recorded: nothing that was taken is lost, and the index opens again.
#[test]
fn with_little_memory_a_put_is_refused_before_a_level_too_many() {
    let trees = ["b-plus", "mu", "mu-star"];
    let mut cases = Vec::new();
    for more in [0, 700, 1_400, 3_000, 10_000, 250_000] {
        for tree in trees {
            cases.extend(Durability::ALL.map(|durability| (tree, durability, more)));
        }
    }
    for (tree, durability, more) in contract::sample(5, cases) {
        let shape = EntryShape::VARIABLE;
        let case = Case { tree, chip: CHIPS[0], shape, durability };
        let entry = flashtree_trees::find(tree).unwrap();
        let mut medium = case.medium();
        let options = |memory_bytes| Options { memory_bytes, ..case.options() };
        let least = match (entry.create)(Medium::Nand(Box::new(&mut medium)), &options(0)) {
            Err(Error::Store(store::Error::LittleMemory { need, .. })) => need,
            other => panic!("{case:?}: {:?}", other.err()),
        };
        let options = options(least + more);
        let mut index = (entry.create)(Medium::Nand(Box::new(&mut medium)), &options).unwrap();
        let longest = match index.update(&[Update::Put { key: &[7; 600], value: b"" }]) {
            Err(Error::KeyTooLong { limit, .. } | Error::EntryTooLong { limit, .. }) => limit,
            other => panic!("{case:?}: {other:?}"),
        };
        let pair = |number: u64| (case.long_key(longest, number), Vec::new());
        let mut taken = Vec::new();
        for session in 0..4 {
            for number in session * 800..(session + 1) * 800 {
                match full_chips::put(&mut *index, &pair(number)) {
                    Ok(()) => taken.push(number),
                    Err(Error::TreeFull { .. } | Error::Store(store::Error::Full { .. })) => {}
                    Err(error) => panic!("{case:?}, {more} more, put {number}: {error}"),
                }
            }
            index.close().unwrap();
            drop(index);
            index = (entry.open)(Medium::Nand(Box::new(&mut medium)), &options).unwrap();
        }
        println!("{case:?}: {} keys of {longest} with {least} + {more} bytes", taken.len());
        for number in &taken {
            assert!(index.get(&pair(*number).0, 0, &mut []).unwrap().is_some(), "{case:?}");
        }
        full_chips::delete(&mut *index, &case, &pair, &taken);
    }
}

/// What waits in memory for a tree of long keys makes it several levels higher when it is written.
#[test]
fn what_waits_makes_a_tree_of_long_keys_as_high_as_it_gets() {
    for durability in Durability::ALL {
        let chip = (2048, 64, 1024);
        let case = Case { tree: "b-plus", chip, shape: EntryShape::VARIABLE, durability };
        let entry = flashtree_trees::find(case.tree).unwrap();
        let options = Options { memory_bytes: 8 << 20, ..case.options() };
        let mut medium = case.medium();
        let mut index = (entry.create)(Medium::Nand(Box::new(&mut medium)), &options).unwrap();
        let key = |number: u64| {
            let mut key = vec![b'k'; 462];
            key.extend_from_slice(&case.entry(0, number).0[..8]);
            key
        };
        let keys: Vec<_> = (0..600).map(key).collect();
        let puts: Vec<_> = keys.iter().map(|key| Update::Put { key, value: b"v" }).collect();
        puts.chunks(200).for_each(|batch| index.update(batch).unwrap());
        index.close().unwrap();
        drop(index);
        index = (entry.open)(Medium::Nand(Box::new(&mut medium)), &options).unwrap();
        for key in &keys {
            assert!(index.get(key, 0, &mut [0]).unwrap().is_some(), "{case:?}");
        }
    }
}

/// Of a tree with more levels than a byte has bits, collection loses no way to what it moves.
#[test]
fn a_tree_of_more_than_eight_levels_is_collected_whole() {
    for durability in contract::sample(2, [Durability::Checkpoint, Durability::Batch]) {
        let chip = (512, 16, 1500);
        let case = Case { tree: "b-plus", chip, shape: EntryShape::VARIABLE, durability };
        let mut medium = case.medium();
        let mut index = case.create(&mut medium);
        let pair = |number: u64| (case.long_key(107, number), Vec::new());
        let taken = full_chips::fill(&mut *index, &case, &pair);
        let height = index.statistics().height;
        assert!(height > 8, "{case:?}: {height} levels, {} keys", taken.len());
        let mut findings = Vec::new();
        index.check(&mut |finding| findings.push(finding.to_string())).unwrap();
        assert_eq!(findings, Vec::<String>::new(), "{case:?}");
        index.close().unwrap();
        drop(index);
        index = case.open(&mut medium).unwrap();
        for number in taken.iter().step_by(7) {
            assert!(index.get(&pair(*number).0, 0, &mut []).unwrap().is_some(), "{case:?}");
        }
    }
}
