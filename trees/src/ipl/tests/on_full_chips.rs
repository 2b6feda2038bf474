//! `ipl` on a full chip: whatever its puts came to, one delete after the other is taken until the
//! tree is empty, also behind a checkpoint and an opening with other memory, and what was deleted
//! is room again; and what was acknowledged can be opened with the least memory after a power cut.

use crate::full_chips;
use crate::full_chips::Pair;
use contract::sample;
use device::{Block, Geometry, Medium, Nand, NandCosts, ProgramOrder};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options};
use sim::{Cut, Failure, FaultPlan, SimulatedNand};

const TREE: &str = "ipl";

/// Memory beyond which all nodes of these chips are in the cache.
const LARGE_MEMORY: u64 = 1 << 20;

/// A tree on a chip.
#[derive(Clone, Copy, Debug)]
struct Case {
    page_bytes: u32,
    pages_per_block: u32,
    /// So many more than the smallest chip that is taken has.
    more_blocks: u32,
    programs: u16,
    order: ProgramOrder,
    shape: EntryShape,
    durability: Durability,
    /// Memory in the first session, and in the next: the least, or plenty.
    has_least: [bool; 2],
    /// Keys that come in their order, not scattered.
    is_ascending: bool,
}

impl Case {
    fn chip(&self, blocks: u32) -> SimulatedNand {
        let chip = Geometry::new(self.page_bytes, self.pages_per_block, blocks).unwrap();
        let chip = chip.with_spare(16).unwrap().with_programs(self.programs).unwrap();
        SimulatedNand::new(chip.with_order(self.order), NandCosts::default())
    }

    fn create<'c>(&self, chip: &'c mut SimulatedNand) -> index::Result<Box<dyn Index + 'c>> {
        self.make(chip, flashtree_trees::find(TREE).unwrap().create, 0)
    }

    /// Opens the tree with the memory of a session.
    fn open<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        session: usize,
    ) -> index::Result<Box<dyn Index + 'c>> {
        self.make(chip, flashtree_trees::find(TREE).unwrap().open, session)
    }

    fn make<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        make: fn(Medium<'c>, &Options) -> index::Result<Box<dyn Index + 'c>>,
        session: usize,
    ) -> index::Result<Box<dyn Index + 'c>> {
        let entry = flashtree_trees::find(TREE).unwrap();
        let settings = Settings::parse(TREE, entry.parameters, []).unwrap();
        let options = Options::new(self.shape, LARGE_MEMORY, settings);
        let mut options = Options { durability: Some(self.durability), ..options };
        if self.has_least[session] {
            let medium = MediumShape::Nand(chip.geometry());
            options.memory_bytes = entry.least_memory(&options, medium).unwrap();
        }
        make(Medium::Nand(Box::new(chip)), &options)
    }

    fn blocks(&self) -> u32 {
        full_chips::blocks_needed(self.create(&mut self.chip(1)), self) + self.more_blocks
    }

    fn entry(&self, number: u64) -> Pair {
        let number = if self.is_ascending { number << 32 } else { number };
        let factor = if self.is_ascending { 1 } else { 0x9E37_79B9_7F4A_7C15 };
        full_chips::entry(self.shape, number.wrapping_mul(factor).to_be_bytes(), [3, 2])
    }

    fn fill(&self, index: &mut dyn Index) -> Vec<u64> {
        full_chips::fill(index, self, &|number| self.entry(number))
    }

    fn delete(&self, index: &mut dyn Index, numbers: &[u64]) {
        full_chips::delete(index, self, &|number| self.entry(number), numbers);
    }

    fn is_empty(&self, index: &mut dyn Index) -> bool {
        index.range(KeyRange::ALL).unwrap().next().unwrap().is_none()
    }

    /// Fills the chip, empties it, a part of it after it was opened again, and fills it again.
    fn empty(&self, first_part: usize) {
        let mut chip = self.chip(self.blocks());
        let mut index = self.create(&mut chip).unwrap();
        let taken = self.fill(&mut *index);
        let held = index.statistics().live_pages;
        let (first, rest) = taken.split_at(taken.len() * first_part / 2);
        self.delete(&mut *index, first);
        index.close().unwrap();
        drop(index);
        let mut index = self.open(&mut chip, 1).unwrap();
        self.delete(&mut *index, rest);
        assert!(self.is_empty(&mut *index), "{self:?}");
        let again = self.fill(&mut *index).len();
        let held_again = index.statistics().live_pages;
        let told = (taken.len(), held, again, held_again);
        assert!(again * 4 >= taken.len() * 3 && held_again * 4 >= held * 3, "{self:?}: {told:?}");
    }

    /// Fills the chip, changes it until the power is cut, opens it with other memory and empties
    /// it.
    fn cut(&self, changes: u64, seed: u64) {
        let mut chip = self.chip(self.blocks());
        let mut index = self.create(&mut chip).unwrap();
        let taken = self.fill(&mut *index);
        index.close().unwrap();
        drop(index);
        chip.arm(FaultPlan::cut(seed, Cut::Change(changes)));
        let mut index = self.open(&mut chip, 0).unwrap();
        let mut number = 0;
        loop {
            let place = (seed + number).wrapping_mul(0x9E37_79B9) as usize % taken.len();
            let (key, value) = self.entry(taken[place]);
            // Values change; every seventh entry goes, and comes back.
            let value = vec![number as u8; value.len()];
            let update = match number % 7 {
                6 => Update::Delete { key: &key },
                _ => Update::Put { key: &key, value: &value },
            };
            match index.update(&[update]) {
                Ok(()) | Err(Error::Store(store::Error::Full { .. })) => {}
                Err(_) => break,
            }
            number += 1;
        }
        drop(index);
        chip.restore_power();
        chip.arm(FaultPlan::seeded(seed));
        let opened = self.open(&mut chip, 1);
        let mut index = opened.unwrap_or_else(|error| panic!("{self:?}, {changes}: {error}"));
        self.delete(&mut *index, &taken);
        assert!(self.is_empty(&mut *index), "{self:?}");
    }
}

impl Case {
    /// Fills the chip and empties it, while a program and an erase are refused: two blocks get bad.
    fn fail(&self, at: u64) {
        let mut chip = self.chip(self.blocks());
        let mut index = self.create(&mut chip).unwrap();
        let taken = self.fill(&mut *index);
        index.close().unwrap();
        drop(index);
        let (refused_program, refused_erase) = (Failure::at(at), Failure::at(3 * at));
        chip.arm(FaultPlan { refused_program, refused_erase, ..FaultPlan::seeded(at) });
        let mut index = self.open(&mut chip, 1).unwrap();
        self.delete(&mut *index, &taken);
        assert!(self.is_empty(&mut *index), "{self:?}");
        drop(index);
        let bad = (0..chip.geometry().blocks()).filter(|block| chip.is_bad(Block(*block)).unwrap());
        assert_eq!(bad.count(), 2, "{self:?}, {at}");
    }
}

const SHAPES: [EntryShape; 3] =
    [EntryShape::fixed(4, 4), EntryShape::fixed(8, 8), EntryShape::VARIABLE];

fn sweep(durability: Durability) {
    let mut cases = Vec::new();
    for chip in [
        (512, 8, 0),
        (512, 16, 0),
        (512, 16, 9),
        (512, 64, 3),
        (1024, 16, 5),
        (1024, 64, 0),
        (2048, 8, 0),
        (2048, 8, 24),
    ] {
        for (place, shape) in SHAPES.into_iter().enumerate() {
            cases.extend([[false, true], [true, false]].map(|least| (chip, place, shape, least)));
        }
    }
    for ((page_bytes, pages_per_block, more_blocks), place, shape, has_least) in sample(5, cases) {
        let mut case = Case {
            page_bytes,
            pages_per_block,
            more_blocks,
            programs: 1,
            order: ProgramOrder::Ascending,
            shape,
            durability,
            has_least,
            is_ascending: place == 1,
        };
        case.empty(usize::from(has_least[0]));
        (case.programs, case.order) = (2, ProgramOrder::Any);
        case.empty(usize::from(!has_least[0]));
    }
}

#[test]
fn a_full_ipl_is_emptied_by_deletes_where_nothing_lasts() {
    sweep(Durability::None);
}

#[test]
fn a_full_ipl_is_emptied_by_deletes_where_checkpoints_last() {
    sweep(Durability::Checkpoint);
}

#[test]
fn a_full_ipl_is_emptied_by_deletes_where_batches_last() {
    sweep(Durability::Batch);
}

#[test]
fn a_full_ipl_is_emptied_by_deletes_where_every_update_lasts() {
    sweep(Durability::Every);
}

#[test]
fn what_was_written_with_plenty_of_memory_is_opened_with_the_least_after_a_cut() {
    let mut cases = Vec::new();
    for (page_bytes, pages_per_block, more_blocks) in
        [(512, 8, 0), (512, 16, 20), (512, 64, 12), (1024, 64, 20), (2048, 8, 9)]
    {
        for shape in SHAPES {
            for (durability, has_least) in
                [(Durability::Batch, [false, true]), (Durability::Every, [true, true])]
            {
                for (seed, changes) in [15, 60, 250, 700].into_iter().enumerate() {
                    let case = Case {
                        page_bytes,
                        pages_per_block,
                        more_blocks,
                        programs: 1 + seed as u16 % 2,
                        order: ProgramOrder::Ascending,
                        shape,
                        durability,
                        has_least,
                        is_ascending: false,
                    };
                    cases.push((case, changes, seed as u64));
                }
            }
        }
    }
    sample(7, cases).for_each(|(case, changes, seed)| case.cut(changes, seed));
}

#[test]
fn a_full_ipl_is_emptied_by_deletes_though_two_blocks_get_bad() {
    let mut cases = Vec::new();
    for (page_bytes, pages_per_block, more_blocks) in [(512, 16, 0), (1024, 64, 0), (2048, 8, 9)] {
        for (place, shape) in SHAPES.into_iter().enumerate() {
            for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
                let case = Case {
                    page_bytes,
                    pages_per_block,
                    more_blocks,
                    programs: 1,
                    order: ProgramOrder::Ascending,
                    shape,
                    durability,
                    has_least: [false, place == 0],
                    is_ascending: false,
                };
                cases.extend([3, 20, 90].map(|at| (case, at)));
            }
        }
    }
    sample(4, cases).for_each(|(case, at)| case.fail(at));
}
