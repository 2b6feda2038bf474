//! The lazy-adaptive tree where it is full: one delete after the other is taken until the tree is
//! empty, whatever its puts came to, and then it takes puts again.

use contract::RamDisk;
use contract::share;
use device::{Geometry, Medium, NandCosts, SectorGeometry};
use index::parameters::Settings;
use index::{Durability, EntryShape, Error, Index, KeyRange, Update, Width};
use index::{MediumShape, Options, TreeDescriptor};
use sim::SimulatedNand;

/// Puts that are refused before it counts as full.
const REFUSALS: u32 = 8;

const SHAPES: [EntryShape; 3] =
    [EntryShape::fixed(4, 4), EntryShape::fixed(8, 8), EntryShape::VARIABLE];

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("la-tree").unwrap()
}

/// What a tree stands on.
#[derive(Clone)]
enum Storage {
    Chip(Box<SimulatedNand>),
    Disk(RamDisk),
}

impl Storage {
    fn chip((page, pages_per_block, blocks): (u32, u32, u32)) -> Self {
        let chip = Geometry::new(page, pages_per_block, blocks).unwrap();
        let chip = SimulatedNand::new(chip.with_spare(16).unwrap(), NandCosts::default());
        Storage::Chip(Box::new(chip))
    }

    fn disk(sector: u32, sectors: u64) -> Self {
        Storage::Disk(RamDisk::new(SectorGeometry::new(sector, sectors).unwrap()))
    }

    fn shape(&self) -> MediumShape {
        use device::{Nand, Sectors};
        match self {
            Storage::Chip(chip) => MediumShape::Nand(chip.geometry()),
            Storage::Disk(disk) => MediumShape::Sectors(disk.geometry()),
        }
    }

    fn medium(&mut self) -> Medium<'_> {
        match self {
            Storage::Chip(chip) => Medium::Nand(Box::new(chip)),
            Storage::Disk(disk) => Medium::Sectors(Box::new(disk)),
        }
    }
}

/// How a tree is made, and what for.
#[derive(Clone, Debug)]
struct Case {
    settings: Vec<(&'static str, &'static str)>,
    shape: EntryShape,
    durability: Durability,
    /// Times the least memory.
    memory: u64,
}

/// Steps between scattered numbers.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Case {
    fn options(&self, storage: &Storage) -> index::Result<Options> {
        let pairs = self.settings.iter().copied();
        let settings = Settings::parse("la-tree", entry().parameters, pairs).unwrap();
        let mut options =
            Options { durability: Some(self.durability), ..Options::new(self.shape, 0, settings) };
        options.memory_bytes = self.memory * entry().least_memory(&options, storage.shape())?;
        Ok(options)
    }

    fn make<'g>(&self, storage: &'g mut Storage, open: bool) -> index::Result<Box<dyn Index + 'g>> {
        let options = self.options(storage)?;
        let make = if open { entry().open } else { entry().create };
        make(storage.medium(), &options)
    }

    /// The key and the value with this number.
    fn entry(&self, number: u64) -> (Vec<u8>, Vec<u8>) {
        let mixed = mixed(number).to_be_bytes();
        let bytes = |width, varied: u8| match width {
            Width::Fixed(bytes) => bytes.into(),
            Width::Variable => 8 + usize::from(varied % 33),
        };
        let (mut key, mut value) = (mixed.to_vec(), mixed.to_vec());
        key.resize(bytes(self.shape.key, mixed[5]), b'k');
        value.resize(bytes(self.shape.value, mixed[6]), b'v');
        (key, value)
    }

    /// Puts, `batch` at once, until some are refused; returns the numbers that went in.
    fn fill(&self, index: &mut dyn Index, (from, batch): (u64, u64)) -> Vec<u64> {
        let (mut taken, mut refused, mut next) = (Vec::new(), 0, from);
        while refused < REFUSALS {
            // In the end the room is taken one by one.
            let many = if refused < REFUSALS / 2 { batch } else { 1 };
            let entries: Vec<_> = (next..next + many).map(|number| self.entry(number)).collect();
            let puts: Vec<_> =
                entries.iter().map(|(key, value)| Update::Put { key, value }).collect();
            match index.update(&puts) {
                Ok(()) => taken.extend(next..next + many),
                Err(error) if is_full(&error) => refused += 1,
                Err(error) => panic!("{self:?}: {error}"),
            }
            next += many;
        }
        taken
    }

    /// Deletes each of these; now and then many at once, which may be refused.
    fn delete(&self, index: &mut dyn Index, numbers: &[u64], many: usize) {
        for (place, chunk) in numbers.chunks(many).enumerate() {
            let keys: Vec<_> = chunk.iter().map(|number| self.entry(*number).0).collect();
            let deletes: Vec<_> = keys.iter().map(|key| Update::Delete { key }).collect();
            match index.update(&deletes) {
                Ok(()) if place % 2 == 0 => continue,
                Err(error) if many > 1 => assert!(is_full(&error), "{self:?}: {error}"),
                _ => {}
            }
            for delete in deletes {
                if let Err(error) = index.update(&[delete]) {
                    let live = index.statistics().live_pages;
                    let all = numbers.len();
                    panic!("{self:?}: delete {place} x {many} of {all}, {live} live: {error}");
                }
            }
        }
    }

    /// Fills a new tree, empties it, and fills it again; returns what it took.
    fn play(&self, mut storage: Storage, (batch, reopen): (u64, bool)) -> (usize, usize) {
        let mut index = self.make(&mut storage, false).unwrap();
        let mut taken = self.fill(&mut *index, (0, batch));
        taken.sort_by_key(|number| if reopen { *number } else { mixed(*number) });
        if reopen {
            index.close().unwrap();
            drop(index);
            index = self.make(&mut storage, true).unwrap();
        } else if self.durability != Durability::None {
            index.checkpoint(None).unwrap();
        }
        let (first, rest) = taken.split_at(taken.len() / 2);
        self.delete(&mut *index, first, 1);
        index.close().unwrap();
        drop(index);
        let mut index = self.make(&mut storage, true).unwrap();
        self.delete(&mut *index, rest, batch as usize);
        assert!(index.range(KeyRange::ALL).unwrap().next().unwrap().is_none(), "{self:?}");
        let again = self.fill(&mut *index, (0, batch));
        index.check(&mut |finding| panic!("{self:?}: {finding}")).unwrap();
        self.delete(&mut *index, &again, 1);
        index.close().unwrap();
        (taken.len(), again.len())
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Store(store::Error::Full { .. }))
}

/// Blocks of the smallest chip that `case` finds room on.
fn smallest_chip(case: &Case, (page, pages_per_block): (u32, u32)) -> u32 {
    match case.make(&mut Storage::chip((page, pages_per_block, 1)), false).map(drop) {
        Err(Error::Store(store::Error::Device(device::Error::TooFewBlocks { need, .. }))) => need,
        other => panic!("{case:?}, one block: {other:?}"),
    }
}

#[test]
fn deletes_are_taken_on_full_chips_of_any_geometry() {
    let chips = [(512, 8), (512, 16), (1024, 8), (2048, 8), (512, 64)];
    let settings: [&[_]; 3] =
        [&[("k", "1")], &[("k", "3"), ("pool", "0.9")], &[("k", "8"), ("share", "shared")]];
    let (mut turn, mut total) = (0, 0);
    for chip in chips {
        for settings in settings {
            for durability in Durability::ALL {
                turn += 1;
                if turn % share(5) > 0 {
                    continue;
                }
                let case = Case {
                    settings: settings.to_vec(),
                    shape: SHAPES[turn % 3],
                    durability,
                    memory: [1, 1, 4][turn / 3 % 3],
                };
                let blocks = smallest_chip(&case, chip) + [0, 3, 12, 20][turn / 2 % 4];
                let storage = Storage::chip((chip.0, chip.1, blocks));
                let (first, again) = case.play(storage, ([1, 70, 13][turn % 3], turn % 2 == 0));
                assert!(again * 10 >= first * 6, "{chip:?} x {blocks}, {case:?}: {first}, {again}");
                total += first;
            }
        }
    }
    println!("{total} entries on chips");
}

#[test]
fn deletes_are_taken_on_full_disks_with_a_page_in_a_sector_or_more() {
    let (mut turn, mut total) = (0, 0);
    for (page, sector) in [("4096", 4096), ("2048", 512), ("512", 512), ("1024", 512)] {
        for bytes in [1 << 20, 3 << 19, 700 << 10] {
            for durability in Durability::ALL {
                turn += 1;
                if turn % share(7) > 0 {
                    continue;
                }
                let case = Case {
                    settings: vec![("node", page)],
                    shape: SHAPES[turn % 3],
                    durability,
                    memory: [1, 8][turn / 2 % 2],
                };
                let storage = Storage::disk(sector, bytes / u64::from(sector));
                let (first, again) = case.play(storage, ([1, 70, 13][turn % 3], turn % 2 == 0));
                assert!(again * 10 >= first * 6, "{bytes} in {sector}, {case:?}: {first}, {again}");
                total += first;
            }
        }
    }
    println!("{total} entries on disks");
}
