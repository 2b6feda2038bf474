//! The lazy-adaptive tree on full chips beside named checkpoints: what they keep may leave no room
//! to reclaim the present half, and a put that is refused for that changes nothing.

use std::collections::BTreeSet;

use device::{Geometry, Medium, NandCosts};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

type Setting = (&'static str, &'static str);

/// How a tree is made.
#[derive(Clone, Debug)]
struct Case {
    settings: Vec<Setting>,
    durability: Durability,
    /// Bytes of a page, pages of a block, and blocks beside those that it takes at the least.
    chip: (u32, u32, u32),
    times: u64,
}

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

/// Keys without values are the shortest entries: many of them wait in buffers.
const SHAPE: EntryShape = EntryShape::fixed(16, 0);

fn key(number: u64) -> Vec<u8> {
    let mut key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
    key.resize(16, 7);
    key
}

/// True if it is refused for lack of room, which leaves everything as it was.
fn is_refused(done: index::Result<()>) -> bool {
    match done {
        Ok(()) => false,
        Err(Error::Store(store::Error::Full { .. } | store::Error::Kept { .. })) => true,
        Err(error) => panic!("{error}"),
    }
}

/// A tree and what it holds.
struct Played<'i> {
    case: &'i Case,
    index: &'i mut dyn Index,
    held: BTreeSet<Vec<u8>>,
    next: u64,
    refused: usize,
}

impl Played<'_> {
    fn compare(&mut self, when: &str) {
        let case = self.case;
        let cursor = self.index.range(KeyRange::ALL);
        let mut cursor = cursor.unwrap_or_else(|error| panic!("{case:?}, {when}: {error}"));
        let mut held = self.held.iter();
        while let Some((key, _)) = cursor.next().unwrap() {
            assert_eq!(Some(key), held.next().map(Vec::as_slice), "{case:?}, {when}");
        }
        assert_eq!(held.next(), None, "{case:?}, {when}");
    }

    /// Puts until `refusals` were refused; after each the tree is as it was.
    fn fill(&mut self, refusals: usize) {
        let mut refused = 0;
        while refused < refusals {
            let key = key(self.next);
            self.next += 1;
            if is_refused(self.index.update(&[Update::Put { key: &key, value: &[] }])) {
                (refused, self.refused) = (refused + 1, self.refused + 1);
                self.compare("after a put was refused");
            } else {
                self.held.insert(key);
            }
        }
    }

    /// Deletes every `step`th, as far as names leave room.
    fn thin(&mut self, step: usize) {
        let keys: Vec<_> = self.held.iter().step_by(step).cloned().collect();
        for key in keys {
            if is_refused(self.index.update(&[Update::Delete { key: &key }])) {
                return self.compare("after a delete was refused");
            }
            self.held.remove(&key);
        }
    }
}

impl Case {
    fn make<'c>(&self, chip: &'c mut SimulatedNand) -> index::Result<Box<dyn Index + 'c>> {
        let settings = Settings::parse("la-tree", entry().parameters, self.settings.clone());
        let options = Options::new(SHAPE, 0, settings.unwrap());
        let mut options = Options { durability: Some(self.durability), ..options };
        let least =
            entry().least_memory(&options, MediumShape::Nand(device::Nand::geometry(chip)))?;
        options.memory_bytes = self.times * least;
        (entry().create)(Medium::Nand(Box::new(chip)), &options)
    }

    fn chip(&self, blocks: u32) -> SimulatedNand {
        let chip = Geometry::new(self.chip.0, self.chip.1, blocks).unwrap();
        SimulatedNand::new(chip.with_spare(16).unwrap(), NandCosts::default())
    }

    /// The smallest chip that the tree takes, and some blocks.
    fn small_chip(&self) -> SimulatedNand {
        match self.make(&mut self.chip(1)).map(drop) {
            Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks {
                need, ..
            }))) => self.chip(need + self.chip.2),
            other => panic!("{self:?}, one block: {other:?}"),
        }
    }

    fn play(&self) -> usize {
        let mut chip = self.small_chip();
        let mut index = self.make(&mut chip).unwrap();
        let index = &mut *index;
        let mut played = Played { case: self, index, held: BTreeSet::new(), next: 0, refused: 0 };
        for round in 0..4 {
            played.fill(2);
            played.thin(3 + round);
            let name = ["a", "b", "c", "d"][round];
            let kept = played.held.clone();
            if is_refused(played.index.checkpoint(Some(name)).map(drop)) {
                played.compare("after a name was refused");
                continue;
            }
            for step in [2, 5] {
                played.fill(4);
                played.thin(step);
            }
            if round % 2 == 0 {
                played.index.roll_back(name).unwrap();
                played.held = kept;
                played.compare("after a rollback");
                played.fill(2);
            }
        }
        for name in ["a", "b", "c", "d"] {
            if played.index.checkpoints().iter().any(|kept| kept.name == name) {
                played.index.forget(name).unwrap();
            }
        }
        played.thin(1);
        assert!(played.held.is_empty(), "{self:?}: {} left", played.held.len());
        played.refused
    }
}

#[test]
fn a_put_that_is_refused_beside_named_checkpoints_leaves_the_tree_usable() {
    let settings: [&[Setting]; 5] = [
        &[("fanout", "24"), ("k", "4"), ("buffer", "40000"), ("pool", "0.99")],
        &[("k", "3")],
        &[("k", "4"), ("buffer", "none"), ("share", "shared")],
        &[("k", "1"), ("share", "shared")],
        &[("k", "1"), ("buffer", "1024"), ("pool", "0.5"), ("share", "shared")],
    ];
    let chips = [((512, 16, 0), 1), ((512, 8, 8), 4), ((1024, 8, 2), 1), ((512, 32, 8), 7)];
    let (mut turn, mut refused) = (0, 0);
    for settings in settings {
        for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
            for (chip, times) in chips {
                let settings = settings.to_vec();
                let case = Case { settings, durability, chip, times };
                refused += case.play();
                turn += 1;
            }
        }
    }
    let settings = settings[4].to_vec();
    let (durability, chip) = (Durability::Checkpoint, (512, 16, 5));
    refused += Case { settings, durability, chip, times: 4 }.play();
    println!("{refused} puts refused on {} chips", turn + 1);
}
