//! The uniform workload of section 6, and the devices of tables 2 and 5 with a loaded tree.

use std::collections::BTreeMap;

use device::{Cause, Medium, Nand, Sectors};
use index::parameters::Settings;
use index::{Cursor, EntryShape, Index, KeyValue, Update, Value, read_piece};
use index::{MediumShape, Options, TreeDescriptor};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{SimulatedDisk, SimulatedNand};
use trees::find;

/// What a tree stands on.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stand {
    /// The chip of table 2.
    Chip,
    /// So many bytes of it.
    SmallChip(u64),
    /// The chip below page mapping.
    PageMap,
    /// So many bytes of the SSD of table 5, with other random writes if they are given.
    Disk { size_bytes: u64, random_write_us: Option<u64> },
}

/// Which keys operations have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Keys {
    /// All of 2^32; what is deleted was inserted before.
    All,
    /// So many, scattered; two thirds of them stay in the tree, which so does not grow.
    Of(u32),
    /// So many side by side, of all 2^32 that were loaded: a small working set.
    Near(u32),
}

/// What is run.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'c> {
    pub(crate) tree: &'static str,
    pub(crate) stand: Stand,
    pub(crate) given: &'c [(&'c str, &'c str)],
    /// Lookups for a hundred updates.
    pub(crate) lookups: u32,
    pub(crate) updates: u32,
    /// Insertions of a hundred updates.
    pub(crate) insertions: u32,
    pub(crate) loaded: usize,
    pub(crate) fill: u8,
    pub(crate) value_bytes: u16,
    pub(crate) memory_bytes: u64,
    pub(crate) keys: Keys,
}

/// Memory in fixed parts, as section 4 divides it, of which ADAPT counts what is on flash.
pub(crate) const FIXED_PARTS: &[(&str, &str)] = &[("estimate", "measured"), ("share", "fixed")];

/// Section 6: a million updates of a tree of 200,000 keys, and 128 KiB.
pub(crate) const USUAL: Cell<'static> = Cell {
    tree: "la-tree",
    stand: Stand::Chip,
    given: &[],
    lookups: 10,
    updates: 1_000_000,
    insertions: 66,
    loaded: 200_000,
    fill: 67,
    value_bytes: 4,
    memory_bytes: 128 << 10,
    keys: Keys::All,
};

/// Updates of a cell of the paper's size: a million, but fewer where most operations are lookups.
pub(crate) fn in_full(lookups: u32) -> u32 {
    (3_000_000 / (100 + lookups) * 100).min(1_000_000)
}

/// Updates of a cell in short.
pub(crate) fn in_short(lookups: u32) -> u32 {
    in_full(lookups) / 20
}

struct Sorted<'k> {
    keys: std::slice::Iter<'k, u32>,
    key: [u8; 4],
    value: Vec<u8>,
}

impl Cursor for Sorted<'_> {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        let Some(key) = self.keys.next() else {
            return Ok(None);
        };
        self.key = key.to_be_bytes();
        Ok(Some((&self.key, Value::Inline(&self.value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        Ok(read_piece(&self.value, offset, into))
    }
}

/// A key, and the same for a deletion where the keys are few.
fn draw(random: &mut ChaCha8Rng, keys: Keys) -> u32 {
    match keys {
        Keys::Of(keys) => random.random_range(0..keys).wrapping_mul(0x9E37_79B9),
        Keys::Near(keys) => (1 << 30) + random.random_range(0..keys),
        Keys::All => random.next_u32(),
    }
}

/// Does the operations of a cell; returns how many they were. `keys` are those in the tree.
pub(crate) fn operate(
    index: &mut dyn Index,
    cell: &Cell<'_>,
    keys: &mut Vec<u32>,
    seed: u64,
) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut operations, mut owed, mut into) = (0, 0, [0; 4]);
    let value = [7; 8];
    for _ in 0..cell.updates {
        owed += cell.lookups;
        while owed >= 100 {
            owed -= 100;
            operations += 1;
            let key = draw(&mut random, cell.keys);
            index.get(&key.to_be_bytes(), 0, &mut into).unwrap();
        }
        operations += 1;
        if random.random_range(0..100) < cell.insertions {
            let key = draw(&mut random, cell.keys);
            let value = &value[..usize::from(cell.value_bytes)];
            index.update(&[Update::Put { key: &key.to_be_bytes(), value }]).unwrap();
            keys.push(key);
        } else {
            let at = random.random_range(0..keys.len());
            let key = match cell.keys {
                Keys::All => keys.swap_remove(at),
                few => draw(&mut random, few),
            };
            index.update(&[Update::Delete { key: &key.to_be_bytes() }]).unwrap();
        }
    }
    operations
}

/// What a cell's tree is made with.
pub(crate) fn options(cell: &Cell<'_>) -> (&'static TreeDescriptor, Options) {
    let entry = find(cell.tree).unwrap();
    let settings = Settings::parse(cell.tree, entry.parameters, cell.given.iter().copied());
    let shape = EntryShape::fixed(4, cell.value_bytes);
    (entry, Options::new(shape, cell.memory_bytes, settings.unwrap()))
}

/// The least memory of a cell's tree.
pub(crate) fn least_memory(cell: &Cell<'_>) -> u64 {
    let (entry, options) = options(cell);
    let shape = match medium(cell.stand) {
        Medium::Nand(chip) => MediumShape::Nand(chip.geometry()),
        Medium::Sectors(disk) => MediumShape::Sectors(disk.geometry()),
    };
    entry.least_memory(&options, shape).unwrap()
}

/// Makes the tree of a cell on `medium` and loads it; returns it with the keys in it.
pub(crate) fn load<'d>(cell: &Cell<'_>, medium: Medium<'d>) -> (Box<dyn Index + 'd>, Vec<u32>) {
    let (entry, options) = options(cell);
    let mut index = (entry.create)(medium, &options).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let from = if let Keys::Near(_) = cell.keys { Keys::All } else { cell.keys };
    let keys: Vec<u32> = (0..cell.loaded).map(|_| draw(&mut random, from)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let value = vec![7; usize::from(cell.value_bytes)];
    let mut cursor = Sorted { keys: sorted.iter(), key: [0; 4], value };
    index.load(&mut cursor, cell.fill).unwrap();
    (index, keys)
}

/// The chip of table 2, or so many bytes of it.
pub(crate) fn chip(size_bytes: Option<u64>) -> SimulatedNand {
    let chip = chips::find("toshiba-tc58dvg02a1ft00").unwrap();
    let overrides = chips::Overrides { size_bytes, ..chips::Overrides::default() };
    let chip = chip.nand(&overrides).unwrap();
    SimulatedNand::new(chip.geometry, chip.costs)
}

/// An empty device.
pub(crate) fn medium(stand: Stand) -> Medium<'static> {
    match stand {
        Stand::Chip => Medium::Nand(Box::new(chip(None))),
        Stand::SmallChip(bytes) => Medium::Nand(Box::new(chip(Some(bytes)))),
        Stand::PageMap => {
            let layer = ftl::find("page-map").unwrap();
            let below = Box::new(chip(None));
            Medium::Sectors((layer.create)(below, &ftl::Options::default()).unwrap())
        }
        Stand::Disk { size_bytes, random_write_us } => {
            let size_bytes = Some(size_bytes);
            let overrides = chips::Overrides { size_bytes, ..chips::Overrides::default() };
            let disk = chips::find("mtron-msp-sata7525").unwrap().disk(&overrides).unwrap();
            let chips::DiskTiming::Costs(mut costs) = disk.timing else {
                unreachable!("its entry has four numbers")
            };
            if let Some(micros) = random_write_us {
                let time = &mut costs.write.random.time;
                time.fixed = micros * 1000 - time.per_page;
            }
            Medium::Sectors(Box::new(SimulatedDisk::new(disk.geometry, costs)))
        }
    }
}

/// A device with a tree that was loaded.
pub(crate) fn on_loaded<T>(
    cell: &Cell<'_>,
    then: impl FnOnce(&mut dyn Index, &mut Vec<u32>) -> T,
) -> T {
    let (mut index, mut keys) = load(cell, medium(cell.stand));
    then(&mut *index, &mut keys)
}

/// The figures of the tree's own.
pub(crate) fn figures(index: &dyn Index) -> BTreeMap<&'static str, u64> {
    let mut figures = BTreeMap::new();
    index.metrics(&mut |name, number| {
        figures.insert(name, number);
    });
    figures
}

/// What a cell measured.
pub(crate) struct Measured {
    /// Microseconds of the device an operation, without reclamation.
    pub(crate) micros: f64,
    /// Pages read and programmed, or sectors, an operation.
    pub(crate) reads: f64,
    pub(crate) writes: f64,
    /// The part of the time that lookups took, and what reclamation took besides.
    pub(crate) lookup_micros: f64,
    pub(crate) reclamation_micros: f64,
    /// Microjoules an operation, without reclamation.
    pub(crate) microjoules: f64,
    /// By how much each figure of the tree's own grew, an operation.
    figures: BTreeMap<&'static str, f64>,
}

impl Measured {
    /// By how much a figure of the tree's own grew, an operation.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(f64::NAN)
    }

    /// The mean of what one figure counts over another.
    pub(crate) fn mean(&self, sum: &str, of: &str) -> f64 {
        self.figure(sum) / self.figure(of)
    }
}

/// Plays a cell.
pub(crate) fn measure(cell: &Cell<'_>) -> Measured {
    on_loaded(cell, |index, keys| {
        let tallies = |index: &dyn Index| Cause::ALL.map(|it| *index.meter().unwrap().tally(it));
        let (before, earlier) = (tallies(index), figures(index));
        let operations = operate(index, cell, keys, 2);
        let each = |number: u64| number as f64 / f64::from(operations);
        let mut measured = Measured {
            micros: 0.0,
            reads: 0.0,
            writes: 0.0,
            lookup_micros: 0.0,
            reclamation_micros: 0.0,
            microjoules: 0.0,
            figures: BTreeMap::new(),
        };
        for ((cause, after), before) in Cause::ALL.into_iter().zip(tallies(index)).zip(before) {
            let tally = after - before;
            if cause != Cause::Reclamation {
                measured.micros += each(tally.time_ns) / 1000.0;
                measured.reads += each(tally.page_reads);
                measured.writes += each(tally.page_programs);
                measured.microjoules += each(tally.energy_pj) / 1e6;
            } else {
                measured.reclamation_micros = each(tally.time_ns) / 1000.0;
            }
            if cause == Cause::Lookup {
                measured.lookup_micros = each(tally.time_ns) / 1000.0;
            }
        }
        for (name, number) in figures(index) {
            measured.figures.insert(name, each(number.wrapping_sub(earlier[name])));
        }
        measured
    })
}

/// How many entries an index holds, and a number that stands for all of them.
pub(crate) fn contents(index: &mut dyn Index) -> (u64, u64) {
    let (mut entries, mut sum) = (0, 0_u64);
    let mut cursor = index.range(index::KeyRange::ALL).unwrap();
    while let Some((key, value)) = cursor.next().unwrap() {
        let Value::Inline(value) = value else { panic!("no value is long") };
        entries += 1;
        for byte in key.iter().chain(value) {
            sum = sum.wrapping_mul(0x0100_0000_01B3) ^ u64::from(*byte);
        }
    }
    (entries, sum)
}
