//! Deletes on a full chip of raw flash: whatever its puts came to, one delete after the other is
//! taken until the tree is empty, and what was deleted is room again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod full_chips;

use contract::tree::Model;
use contract::{sample, share};
use device::{Geometry, Medium, Nand, NandCosts};
use full_chips::Pair;
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{Cut, FaultPlan, SimulatedNand};

/// A tree on a chip that is so much larger than the smallest.
#[derive(Clone, Debug)]
struct Case {
    tree: &'static str,
    page_bytes: u32,
    pages_per_block: u32,
    more_blocks: u32,
    shape: EntryShape,
    durability: Durability,
    /// With no more memory than it needs.
    has_least: bool,
}

impl Case {
    fn chip(&self, blocks: u32) -> SimulatedNand {
        let chip = Geometry::new(self.page_bytes, self.pages_per_block, blocks).unwrap();
        SimulatedNand::new(chip.with_spare(16).unwrap(), NandCosts::default())
    }

    fn make<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        open: bool,
    ) -> index::Result<Box<dyn Index + 'c>> {
        let entry = flashtree_trees::find(self.tree).unwrap();
        let settings = Settings::parse(self.tree, entry.parameters, []).unwrap();
        let options = Options::new(self.shape, 1 << 17, settings);
        let mut options = Options { durability: Some(self.durability), ..options };
        if self.has_least {
            let medium = MediumShape::Nand(chip.geometry());
            options.memory_bytes = entry.least_memory(&options, medium).unwrap();
        }
        let make = if open { entry.open } else { entry.create };
        make(Medium::Nand(Box::new(chip)), &options)
    }

    fn blocks(&self) -> u32 {
        full_chips::blocks_needed(self.make(&mut self.chip(1), false), self) + self.more_blocks
    }

    fn entry(&self, number: u64) -> Pair {
        // At random: keys that came evenly would fill all nodes at the same time.
        let mixed = ChaCha8Rng::seed_from_u64(number).random::<[u8; 8]>();
        full_chips::entry(self.shape, mixed, [5, 6])
    }

    fn bytes(&self, number: u64) -> usize {
        let (key, value) = self.entry(number);
        key.len() + value.len()
    }

    fn put(&self, index: &mut dyn Index, number: u64) -> index::Result<()> {
        full_chips::put(index, &self.entry(number))
    }

    fn fill(&self, index: &mut dyn Index) -> Vec<u64> {
        full_chips::fill(index, self, &|number| self.entry(number))
    }

    fn delete(&self, index: &mut dyn Index, numbers: &[u64]) {
        full_chips::delete(index, self, &|number| self.entry(number), numbers);
    }

    fn play(&self) {
        let mut chip = self.chip(self.blocks());
        let mut index = self.make(&mut chip, false).unwrap();
        let taken = self.fill(&mut *index);
        let held = index.statistics().live_pages;
        // Half of it as it is, the rest after it was opened again.
        let (first, rest) = taken.split_at(taken.len() / 2);
        self.delete(&mut *index, first);
        index.close().unwrap();
        drop(index);
        let mut index = self.make(&mut chip, true).unwrap();
        self.delete(&mut *index, rest);
        assert!(index.range(KeyRange::ALL).unwrap().next().unwrap().is_none(), "{self:?}");
        let again = self.fill(&mut *index).len();
        let told = (taken.len(), held, again, index.statistics().live_pages);
        assert!(again * 3 >= taken.len() * 2, "{self:?}: {told:?}");
    }
}

fn empties(tree: &'static str) {
    let chips = [(512, 4), (512, 16), (1024, 4), (1024, 16), (2048, 16)];
    let mut cases = Vec::new();
    for (page_bytes, pages_per_block) in chips {
        for shape in [EntryShape::fixed(8, 8), EntryShape::fixed(20, 30), EntryShape::VARIABLE] {
            for durability in Durability::ALL {
                for (more_blocks, has_least) in [(0, false), (0, true), (8, false), (21, true)] {
                    cases.push(Case {
                        tree,
                        page_bytes,
                        pages_per_block,
                        more_blocks,
                        shape,
                        durability,
                        has_least,
                    });
                }
            }
        }
    }
    sample(23, cases).for_each(|case| case.play());
}

#[test]
fn a_full_b_plus_is_emptied_by_deletes() {
    empties("b-plus");
}

#[test]
fn a_full_flat_tree_is_emptied_by_deletes() {
    empties("flat-tree");
}

#[test]
fn a_full_mu_is_emptied_by_deletes() {
    empties("mu");
}

#[test]
fn a_full_mu_star_is_emptied_by_deletes() {
    empties("mu-star");
}

/// What named checkpoints kept is room again when they are forgotten: names come and go while
/// entries are overwritten, and then the chip is filled and emptied.
#[test]
fn a_full_chip_whose_names_were_forgotten_is_emptied_by_deletes() {
    for (tree, durability) in [
        ("flat-tree", Durability::Every),
        ("flat-tree", Durability::Batch),
        ("flat-tree", Durability::Checkpoint),
        ("b-plus", Durability::Batch),
        ("mu-star", Durability::Batch),
        ("la-tree", Durability::Batch),
        ("ipl", Durability::Batch),
    ] {
        let shape = EntryShape::fixed(8, 8);
        let (page_bytes, pages_per_block, more_blocks) = (512, 16, 40);
        let case = Case {
            tree,
            page_bytes,
            pages_per_block,
            more_blocks,
            shape,
            durability,
            has_least: false,
        };
        let mut new = case.chip(case.blocks());
        let first = case.fill(&mut *case.make(&mut new, false).unwrap());
        let mut chip = case.chip(case.blocks());
        let mut index = case.make(&mut chip, false).unwrap();
        let rest = &first[..first.len() / 8];
        rest.iter().for_each(|number| case.put(&mut *index, *number).unwrap());
        let (mut kept, mut rounds) = (Vec::new(), 0);
        for round in 0..200 {
            let name = format!("round {round}");
            let is_kept = index.checkpoint(Some(&name)).is_ok();
            if is_kept {
                kept.push(name);
                rounds += 1;
            }
            // One that leaves no room for another goes, too.
            if kept.len() > 1 || !is_kept && !kept.is_empty() {
                index.forget(&kept.remove(0)).unwrap();
            }
            for number in rest.iter().skip(round % 7).step_by(7) {
                if case.put(&mut *index, *number).is_err() {
                    break;
                }
            }
        }
        assert!(rounds > 20, "{case:?}: {rounds}");
        for name in kept {
            index.forget(&name).unwrap();
        }
        let more = case.fill(&mut *index);
        let held = index.statistics().live_pages;
        case.delete(&mut *index, rest);
        case.delete(&mut *index, &more);
        let again = case.fill(&mut *index).len();
        let told = (first.len(), rest.len(), more.len(), held, again);
        println!("{tree}, {durability}: {told:?}");
        assert!(again * 10 >= first.len() * 8, "{case:?}: {told:?}");
    }
}

/// How a chip is filled before everything is deleted from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum History {
    /// By a load, until that has no room.
    Loaded,
    /// By puts, and others after some were deleted.
    Churned,
    /// By puts, and then the power is cut again and again, while it is opened and deleted from.
    Cut,
}

/// A small chip of any geometry, and what happens to it.
#[derive(Clone, Debug)]
struct Small {
    case: Case,
    history: History,
    spare: u32,
    settings: Vec<(&'static str, &'static str)>,
    random: ChaCha8Rng,
}

const SHAPES: [EntryShape; 6] = [
    EntryShape::fixed(4, 4),
    EntryShape::fixed(8, 8),
    EntryShape::fixed(16, 0),
    EntryShape::fixed(20, 30),
    EntryShape::fixed(8, 4),
    EntryShape::VARIABLE,
];

impl Small {
    fn new(tree: &'static str, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        fn pick<T: Copy>(random: &mut ChaCha8Rng, of: &[T]) -> T {
            of[random.random_range(0..of.len())]
        }
        let durability = pick(&mut random, &Durability::ALL);
        let histories = match durability {
            Durability::None => &[History::Loaded, History::Churned][..],
            Durability::Every => &[History::Loaded, History::Churned, History::Cut, History::Cut],
            _ => &[History::Loaded, History::Churned, History::Cut],
        };
        let mut settings = Vec::new();
        if tree == "mu-star" && random.random_bool(0.4) {
            settings.extend([("alpha", "0.86"), ("beta", "0.31"), ("delta", "0.03")]);
        }
        let case = Case {
            tree,
            page_bytes: pick(&mut random, &[512, 512, 512, 512, 1024, 2048]),
            pages_per_block: pick(&mut random, &[4, 8, 8, 16, 16, 32, 64]),
            more_blocks: pick(&mut random, &[0, 0, 1, 3, 8, 20]),
            shape: pick(&mut random, &SHAPES),
            durability,
            has_least: random.random_bool(0.3),
        };
        let history = pick(&mut random, histories);
        Small { case, history, spare: pick(&mut random, &[0, 16, 16, 64]), settings, random }
    }

    fn chip(&self, blocks: u32) -> SimulatedNand {
        let (page, pages) = (self.case.page_bytes, self.case.pages_per_block);
        let chip = Geometry::new(page, pages, blocks).unwrap().with_spare(self.spare).unwrap();
        SimulatedNand::new(chip, NandCosts::default())
    }

    fn make<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        open: bool,
    ) -> index::Result<Box<dyn Index + 'c>> {
        let entry = flashtree_trees::find(self.case.tree).unwrap();
        let settings = self.settings.iter().copied();
        let settings = Settings::parse(entry.name, entry.parameters, settings).unwrap();
        let options = Options::new(self.case.shape, 1 << 17, settings);
        let mut options = Options { durability: Some(self.case.durability), ..options };
        if self.case.has_least {
            let medium = MediumShape::Nand(chip.geometry());
            options.memory_bytes = entry.least_memory(&options, medium).unwrap();
        }
        let make = if open { entry.open } else { entry.create };
        make(Medium::Nand(Box::new(chip)), &options)
    }

    /// Plays the history; false if there is no such tree on any chip.
    fn play(&mut self) -> bool {
        let blocks = match self.make(&mut self.chip(1), false).map(|_| ()) {
            Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks {
                need, ..
            }))) => need + self.case.more_blocks,
            _ => return false,
        };
        if blocks * self.case.pages_per_block * self.case.page_bytes > BYTES_MOST {
            return false;
        }
        let longest = (0..500).max_by_key(|number| self.case.bytes(*number)).unwrap();
        if let Err(Error::EntryTooLong { .. } | Error::KeyTooLong { .. }) =
            self.case.put(&mut *self.make(&mut self.chip(blocks), false).unwrap(), longest)
        {
            return false;
        }
        let mut chip = self.chip(blocks);
        let mut index = self.make(&mut chip, false).unwrap();
        let mut present = match self.history {
            History::Loaded => self.load(&mut *index),
            History::Churned | History::Cut => self.case.fill(&mut *index),
        };
        if self.history == History::Churned {
            self.churn(&mut *index, &mut present);
        }
        index.close().unwrap();
        drop(index);
        if self.history == History::Cut {
            self.cut_again_and_again(&mut chip, &present);
        }
        chip.arm(FaultPlan::seeded(1));
        let mut index = self.make(&mut chip, true).unwrap();
        self.case.delete(&mut *index, &present);
        assert!(index.range(KeyRange::ALL).unwrap().next().unwrap().is_none(), "{self:?}");
        true
    }

    fn load(&self, index: &mut dyn Index) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..20_000).collect();
        numbers.sort_by_key(|number| self.case.entry(*number).0);
        let mut model = Model::default();
        for number in &numbers {
            let (key, value) = self.case.entry(*number);
            model.entries.insert(key, value);
        }
        let all = index.load(&mut model.cursor(), 70).is_ok();
        let mut present = Vec::new();
        let mut value = [0; 64];
        for number in numbers {
            let is_there = index.get(&self.case.entry(number).0, 0, &mut value).unwrap().is_some();
            if is_there {
                present.push(number);
            }
        }
        assert!(!all || present.len() == 20_000, "{self:?}");
        present
    }

    /// Deletes some, and puts until some more were refused, a few times.
    fn churn(&mut self, index: &mut dyn Index, present: &mut Vec<u64>) {
        let mut number = 1 << 32;
        for _ in 0..3 {
            for _ in 0..present.len() / 8 {
                let gone = present.swap_remove(self.random.random_range(0..present.len()));
                self.case.delete(index, &[gone]);
            }
            let mut refused = 0;
            while refused < full_chips::REFUSALS {
                number += 1;
                match self.case.put(index, number) {
                    Ok(()) => present.push(number),
                    Err(_) => refused += 1,
                }
            }
        }
    }

    /// Opens the chip and deletes, or puts what is there, until the power is cut.
    fn cut_again_and_again(&mut self, chip: &mut SimulatedNand, present: &[u64]) {
        for round in 0..CUTS {
            chip.restore_power();
            let at = Cut::Change(self.random.random_range(1..=if round % 3 == 0 { 60 } else { 6 }));
            chip.arm(FaultPlan::cut(self.random.random(), at));
            if let Ok(mut index) = self.make(chip, true) {
                self.delete_and_put(&mut *index, present);
            }
            chip.restore_power();
        }
    }

    /// Deletes every fourth, and puts the others again, until the power is cut: so what is deleted
    /// may be there or not.
    fn delete_and_put(&self, index: &mut dyn Index, present: &[u64]) {
        for (place, number) in present.iter().enumerate() {
            let is_delete = place % 4 == 0;
            let done = match is_delete {
                true => index.update(&[Update::Delete { key: &self.case.entry(*number).0 }]),
                false => self.case.put(index, *number),
            };
            match done {
                Ok(()) => {}
                Err(Error::Store(store::Error::Device(device::Error::PowerCut))) => break,
                Err(Error::Store(store::Error::Full { .. }) | Error::TreeFull { .. })
                    if !is_delete => {}
                Err(error) => panic!("{self:?}: {error}"),
            }
        }
    }
}

/// No larger chips: they take long to fill.
const BYTES_MOST: u32 = 1 << 20;

/// How often the power is cut.
const CUTS: u32 = 24;

fn empties_small(tree: &'static str, seeds: std::ops::Range<u64>) {
    let played = sample(7, seeds).filter(|seed| Small::new(tree, *seed).play()).count();
    assert!(played * share(7) > 20, "{played} were played");
}

#[test]
fn small_chips_that_are_full_of_b_plus_take_every_delete_whatever_happened() {
    empties_small("b-plus", 0..60);
}

#[test]
fn small_chips_that_are_full_of_mu_take_every_delete_whatever_happened() {
    empties_small("mu", 0..100);
}

#[test]
fn small_chips_that_are_full_of_mu_star_take_every_delete_whatever_happened() {
    empties_small("mu-star", 0..120);
}

#[test]
fn small_chips_that_are_full_of_ipl_take_every_delete_whatever_happened() {
    empties_small("ipl", 0..120);
}

#[test]
fn small_chips_that_are_full_of_flat_tree_take_every_delete_whatever_happened() {
    empties_small("flat-tree", 0..120);
}
