//! The chip of the paper, a tree on it with or without a cache, and what its pages say of its
//! layout.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use contract::nand::{Hook, Hooked, Program};
use device::{Medium, Nand, Result};
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, Update};
use index::{MediumShape, Options};
use sim::SimulatedNand;
use trees::find;

/// The trees that are compared.
pub(crate) const TREES: [&str; 3] = ["b-plus", "mu", "mu-star"];

/// A tree, and how it is made.
pub(crate) struct Stage {
    /// Its name.
    pub(crate) tree: &'static str,
    /// Its parameters.
    pub(crate) given: Vec<(&'static str, &'static str)>,
    /// Lengths of keys and values.
    pub(crate) shape: EntryShape,
    /// How much of it lasts, if it is not as the registry has it.
    pub(crate) durability: Option<Durability>,
    /// Bytes of the chip.
    pub(crate) chip_bytes: u64,
    /// Bytes beside what it needs at the least: the table of live pages, if that is no part of the
    /// least, and what is left caches nodes.
    pub(crate) cache_bytes: u64,
}

/// How the newest page with a root is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    /// The leaf's share.
    pub(crate) leaf: f64,
    /// Levels of the tree.
    pub(crate) height: u8,
}

impl Layout {
    /// Levels of the tree.
    pub(crate) fn height(it: &Layout) -> u8 {
        it.height
    }
}

/// Reads the header of every page with a root, as FORMAT.md says.
#[derive(Clone, Default)]
pub(crate) struct Witness(Arc<Mutex<Option<Layout>>>);

impl Hook<SimulatedNand> for Witness {
    fn program(&mut self, chip: &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        let header = program.data;
        if header.len() > 36 && header[29] & 1 != 0 {
            let leaf = u16::from_le_bytes([header[24], header[25]]);
            let layout = Layout { leaf: f64::from(leaf) / 65_536.0, height: header[26] };
            *self.0.lock().unwrap() = Some(layout);
        }
        program.on(chip)
    }
}

impl Witness {
    /// The newest layout.
    pub(crate) fn layout(&self) -> Option<Layout> {
        *self.0.lock().unwrap()
    }
}

impl Stage {
    /// The paper's setting: a chip of so many bytes, entries of 8 bytes, no cache.
    pub(crate) fn paper(tree: &'static str, chip_bytes: u64) -> Self {
        let given = vec![("cache", "1")];
        let (shape, durability) = (EntryShape::fixed(4, 4), None);
        Stage { tree, given, shape, durability, chip_bytes, cache_bytes: 0 }
    }

    /// The same with so many bytes of nodes cached, and a bit for each page of the chip, by which
    /// collection knows what lives. For figures that count pages and heights: neither changes what
    /// is programmed, and what is not read takes no time. Each tree gets the same.
    pub(crate) fn caching(self, node_bytes: u64) -> Self {
        let geometry = self.chip().geometry;
        let table = u64::from(geometry.pages()).div_ceil(8);
        Stage { cache_bytes: table + node_bytes, ..self }
    }

    /// The same without a cache, but with the bit for each page also where that is no part of the
    /// least memory, as in mu-Tree on a chip of 64 MB: so all trees know alike what lives.
    pub(crate) fn knowing_what_lives(self) -> Self {
        let cache_bytes = self.cache_bytes;
        let more = self.caching(0);
        let is_in_the_least = more.make().0.statistics().memory.cache > 0;
        if is_in_the_least { Stage { cache_bytes, ..more } } else { more }
    }

    /// The chip.
    pub(crate) fn chip(&self) -> chips::Chip {
        let size_bytes = Some(self.chip_bytes);
        let overrides = chips::Overrides { size_bytes, ..chips::Overrides::default() };
        chips::find("samsung-k9gag08u0m").unwrap().nand(&overrides).unwrap()
    }

    /// Makes the tree.
    pub(crate) fn make(&self) -> (Box<dyn Index>, Witness) {
        let entry = find(self.tree).unwrap();
        let chip = self.chip();
        let given = self.given.iter().copied();
        let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
        let mut options =
            Options { durability: self.durability, ..Options::new(self.shape, 0, settings) };
        let shape = MediumShape::Nand(chip.geometry);
        options.memory_bytes = entry.least_memory(&options, shape).unwrap() + self.cache_bytes;
        let witness = Witness::default();
        let simulated = SimulatedNand::new(chip.geometry, chip.costs);
        assert_eq!(simulated.geometry().page_bytes(), 4096);
        let nand = Hooked { chip: simulated, hook: witness.clone() };
        let index = (entry.create)(Medium::Nand(Box::new(nand)), &options).unwrap();
        (index, witness)
    }
}

/// Another key for every number, in no order.
pub(crate) fn key(number: u32) -> [u8; 4] {
    let mut bits = number.wrapping_add(0x9E37_79B9);
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85EB_CA6B);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xC2B2_AE35);
    (bits ^ (bits >> 16)).to_be_bytes()
}

/// Layouts with the number of records from which on they were used.
pub(crate) type Course = Vec<(u32, Layout)>;

/// Puts so many records in; returns how the layout went, and pages and height at `points`.
pub(crate) fn grow(stage: &Stage, records: u32, points: &[u32]) -> (Course, Vec<(u64, u32)>) {
    grow_in_turn(stage, records, points, |_| ())
}

/// The same; `turn` is told how many records are in before each one.
pub(crate) fn grow_in_turn(
    stage: &Stage,
    records: u32,
    points: &[u32],
    turn: impl Fn(u32),
) -> (Course, Vec<(u64, u32)>) {
    let (mut index, witness) = stage.make();
    let mut course = Course::new();
    let mut sizes = Vec::new();
    for number in 0..records {
        turn(number);
        let value = number.to_le_bytes();
        index.update(&[Update::Put { key: &key(number), value: &value }]).unwrap();
        let now = witness.layout().unwrap();
        if course.last().is_none_or(|(_, last)| *last != now) {
            course.push((number + 1, now));
        }
        if points.contains(&(number + 1)) {
            let statistics = index.statistics();
            sizes.push((statistics.live_pages, statistics.height));
        }
    }
    (course, sizes)
}

/// Lets trees that do the same work advance alike: of more trees than processors, those that are
/// behind run, so that all end at the same time and no processor idles until the slowest ends.
pub(crate) struct Pace {
    /// How far each tree is.
    done: Mutex<Vec<(&'static str, u32)>>,
    moved: Condvar,
    processors: usize,
}

/// A tree's part in a [`Pace`]; it waits for no tree whose part is dropped.
pub(crate) struct Runner<'p> {
    pace: &'p Pace,
    tree: &'static str,
}

/// Records between two looks at how far the others are.
const STRIDE: u32 = 1 << 12;

impl Pace {
    /// No tree has done anything.
    pub(crate) fn of(trees: &[&'static str]) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let done = trees.iter().map(|tree| (*tree, 0)).collect();
        Pace { done: Mutex::new(done), moved: Condvar::new(), processors }
    }

    /// The part of `tree`.
    pub(crate) fn runner(&self, tree: &'static str) -> Runner<'_> {
        Runner { pace: self, tree }
    }
}

impl Runner<'_> {
    /// Waits while as many trees as there are processors have done less than `done`.
    pub(crate) fn turn(&self, done: u32) {
        if done.is_multiple_of(STRIDE) {
            let all = self.tell(done);
            let is_ahead = |all: &mut Vec<(&'static str, u32)>| {
                all.iter().filter(|(_, other)| *other < done).count() >= self.pace.processors
            };
            drop(self.pace.moved.wait_while(all, is_ahead).unwrap());
        }
    }

    fn tell(&self, done: u32) -> MutexGuard<'_, Vec<(&'static str, u32)>> {
        let mut all = self.pace.done.lock().unwrap();
        all.iter_mut().filter(|(tree, _)| *tree == self.tree).for_each(|(_, now)| *now = done);
        self.pace.moved.notify_all();
        all
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        drop(self.tell(u32::MAX));
    }
}

/// Runs `work` for every tree, all at the same time.
pub(crate) fn all<R: Send>(
    trees: &[&'static str],
    work: impl Fn(&'static str) -> R + Sync,
) -> Vec<R> {
    let left = Mutex::new(trees.iter().copied().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in trees {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((place, tree)) = next else { break };
                    let outcome = work(tree);
                    done.lock().unwrap().push((place, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The records at which each height was reached.
pub(crate) fn heights(course: &Course) -> Vec<(u8, u32)> {
    let mut heights: Vec<(u8, u32)> = Vec::new();
    for (records, layout) in course {
        if heights.last().is_none_or(|(height, _)| layout.height > *height) {
            heights.push((layout.height, *records));
        }
    }
    heights
}

/// The heights, in words.
pub(crate) fn show_heights(heights: &[(u8, u32)]) -> String {
    let each = heights.iter().skip(1);
    each.map(|(height, records)| format!("height {height} at {records}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// True if every height that `other` reached above 2, `one` reached later or never.
pub(crate) fn is_later(one: &[(u8, u32)], other: &[(u8, u32)]) -> bool {
    other.iter().filter(|(height, _)| *height > 2).all(|(height, records)| {
        one.iter().find(|(it, _)| it == height).is_none_or(|(_, later)| later > records)
    })
}
