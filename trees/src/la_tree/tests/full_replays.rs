//! The lazy-adaptive tree on full chips after its journal was replayed: what had gone down to the
//! leaves may wait in buffers then, and still one delete after the other is taken.

use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

/// Puts that are refused before it counts as full.
const REFUSALS: u32 = 8;

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

/// A tree on a chip of pages of 512 bytes, with the least memory or more.
#[derive(Clone, Debug)]
struct Case {
    settings: &'static [(&'static str, &'static str)],
    shape: EntryShape,
    durability: Durability,
    pages_per_block: u32,
    /// Blocks beside those of the smallest chip.
    more_blocks: u32,
}

impl Case {
    fn chip(&self, blocks: u32) -> SimulatedNand {
        let chip = Geometry::new(512, self.pages_per_block, blocks).unwrap();
        SimulatedNand::new(chip.with_spare(16).unwrap(), NandCosts::default())
    }

    fn make<'c>(
        &self,
        chip: &'c mut SimulatedNand,
        (is_new, times): (bool, u64),
    ) -> index::Result<Box<dyn Index + 'c>> {
        use device::Nand;
        let pairs = self.settings.iter().copied();
        let settings = Settings::parse("la-tree", entry().parameters, pairs).unwrap();
        let mut options =
            Options { durability: Some(self.durability), ..Options::new(self.shape, 0, settings) };
        let shape = MediumShape::Nand(chip.geometry());
        options.memory_bytes = times * entry().least_memory(&options, shape)?;
        let make = if is_new { entry().create } else { entry().open };
        make(Medium::Nand(Box::new(chip)), &options)
    }

    /// The smallest chip that the tree takes, and some blocks.
    fn small_chip(&self) -> SimulatedNand {
        match self.make(&mut self.chip(1), (true, 1)).map(drop) {
            Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks {
                need, ..
            }))) => self.chip(need + self.more_blocks),
            other => panic!("{self:?}, one block: {other:?}"),
        }
    }

    /// The key with this number: scattered, and as long as all.
    fn key(&self, number: u64) -> Vec<u8> {
        let mut key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        key.resize(self.key_bytes(), b'k');
        key
    }

    fn key_bytes(&self) -> usize {
        match self.shape.key {
            index::Width::Fixed(bytes) => bytes.into(),
            index::Width::Variable => 12,
        }
    }

    fn put(&self, index: &mut dyn Index, number: u64) -> bool {
        let key = self.key(number);
        let value = match self.shape.value {
            index::Width::Fixed(bytes) => vec![7; bytes.into()],
            index::Width::Variable => vec![7; number as usize % 40],
        };
        match index.update(&[Update::Put { key: &key, value: &value }]) {
            Ok(()) => true,
            Err(Error::Store(store::Error::Full { .. })) => false,
            Err(error) => panic!("{self:?}: {error}"),
        }
    }

    fn delete(&self, index: &mut dyn Index, number: u64) {
        if let Err(error) = index.update(&[Update::Delete { key: &self.key(number) }]) {
            let live = index.statistics().live_pages;
            panic!("{self:?}: a delete with {live} pages live: {error}");
        }
    }

    /// Fills a tree, puts and deletes until power is cut, and empties it after the replay; returns
    /// what it took.
    fn play(&self, times: [u64; 2]) -> usize {
        let mut chip = self.small_chip();
        let mut index = self.make(&mut chip, (true, times[0])).unwrap();
        let (mut held, mut refused, mut next) = (Vec::new(), 0, 0);
        while refused < REFUSALS {
            match self.put(&mut *index, next) {
                true => held.push(next),
                false => refused += 1,
            }
            next += 1;
        }
        let first = held.len();
        for turn in 0..400 {
            if turn % 3 > 0 {
                let number = held.swap_remove(turn * 31 % held.len());
                self.delete(&mut *index, number);
            }
            if turn % 3 < 2 && self.put(&mut *index, next) {
                held.push(next);
            }
            next += 1;
        }
        index.sync().unwrap();
        drop(index);
        let mut index = self.make(&mut chip, (false, times[1])).unwrap();
        for _ in 0..4 {
            // What is refused settles what waits, as far as it can be.
            if self.put(&mut *index, next) {
                held.push(next);
            }
            next += 1;
        }
        for number in held {
            self.delete(&mut *index, number);
        }
        assert!(index.range(KeyRange::ALL).unwrap().next().unwrap().is_none(), "{self:?}");
        index.check(&mut |finding| panic!("{self:?}: {finding}")).unwrap();
        first
    }
}

#[test]
fn deletes_are_taken_after_a_replay_that_left_much_in_buffers() {
    let settings: [&[_]; 5] = [
        &[("k", "3")],
        &[("k", "8"), ("buffer", "40000"), ("share", "shared")],
        &[("k", "1")],
        &[("k", "4"), ("fanout", "12"), ("buffer", "5000")],
        &[("k", "2"), ("buffer", "300")],
    ];
    let shapes = [EntryShape::fixed(20, 0), EntryShape::fixed(8, 8), EntryShape::VARIABLE];
    let (mut turn, mut total) = (0, 0);
    for settings in settings {
        for shape in shapes {
            for durability in [Durability::Batch, Durability::Every] {
                let pages_per_block = [8, 8, 16][turn % 3];
                let more_blocks = [0, 2, 8][turn / 2 % 3];
                let case = Case { settings, shape, durability, pages_per_block, more_blocks };
                total += case.play([[1, 1], [4, 1], [1, 8]][turn % 3]);
                turn += 1;
            }
        }
    }
    println!("{total} entries on {turn} chips");
}

#[test]
fn a_full_tree_without_buffers_can_be_replayed_with_the_least_memory() {
    const NONE: (&str, &str) = ("buffer", "none");
    let settings: [&[_]; 3] =
        [&[("k", "4"), NONE], &[NONE, ("pool", "0.9")], &[("fanout", "12"), NONE]];
    for (turn, settings) in settings.into_iter().enumerate() {
        for shape in [EntryShape::VARIABLE, EntryShape::fixed(20, 0)] {
            let (durability, pages_per_block) = (Durability::Batch, [8, 8, 16][turn]);
            Case { settings, shape, durability, pages_per_block, more_blocks: 0 }.play([7, 1]);
        }
    }
}
