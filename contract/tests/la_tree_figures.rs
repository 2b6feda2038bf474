//! The uniform workload of the LA-Tree's paper (section 6) on the chip of its table 2.
//!
//! 200,000 keys are loaded; then a million updates, two thirds of them insertions and the others
//! deletions, are mixed with lookups. What is printed is the chip's time an operation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use device::{Cause, Medium};
use index::parameters::Settings;
use index::registry::{Entry, Options};
use index::{Cursor, EntryShape, Index, KeyValue, Update, Value, read_piece};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// What is run.
#[derive(Clone, Copy)]
struct Cell<'c> {
    given: &'c [(&'c str, &'c str)],
    /// Lookups for a hundred updates.
    lookups: u32,
    updates: u32,
    loaded: usize,
    fill: u8,
    value_bytes: u16,
    memory_bytes: u64,
    /// Keys are drawn from so many; `None`: from all there are.
    keys: Option<u32>,
}

const USUAL: Cell<'static> = Cell {
    given: &[],
    lookups: 10,
    updates: 1_000_000,
    loaded: 200_000,
    fill: 67,
    value_bytes: 4,
    memory_bytes: 128 << 10,
    keys: None,
};

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
        Ok(Some((&self.key, Value::Whole(&self.value))))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        Ok(read_piece(&self.value, offset, into))
    }
}

fn entry() -> &'static Entry {
    index::registry::find("la-tree").unwrap()
}

/// A key, and the same for a deletion where the keys are few.
fn draw(random: &mut ChaCha8Rng, cell: &Cell<'_>) -> u32 {
    match cell.keys {
        Some(keys) => random.random_range(0..keys).wrapping_mul(0x9E37_79B9),
        None => random.next_u32(),
    }
}

fn operate(index: &mut dyn Index, cell: &Cell<'_>, keys: &mut Vec<u32>, seed: u64) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut operations, mut owed, mut into) = (0, 0, [0; 4]);
    let value = [7; 8];
    for _ in 0..cell.updates {
        owed += cell.lookups;
        while owed >= 100 {
            owed -= 100;
            operations += 1;
            let key = draw(&mut random, cell);
            index.get(&key.to_be_bytes(), 0, &mut into).unwrap();
        }
        operations += 1;
        if random.random_range(0..100) < 66 {
            let key = draw(&mut random, cell);
            let value = &value[..usize::from(cell.value_bytes)];
            index.update(&[Update::Put { key: &key.to_be_bytes(), value }]).unwrap();
            keys.push(key);
        } else {
            let at = random.random_range(0..keys.len());
            let key = match cell.keys {
                Some(_) => draw(&mut random, cell),
                None => keys.swap_remove(at),
            };
            index.update(&[Update::Delete { key: &key.to_be_bytes() }]).unwrap();
        }
    }
    operations
}

/// A chip with a tree that was loaded.
fn on_loaded<T>(cell: &Cell<'_>, then: impl FnOnce(&mut dyn Index, &mut Vec<u32>) -> T) -> T {
    let chip = chips::find("toshiba-tc58dvg02a1ft00").unwrap();
    let chip = chip.nand(&chips::Overrides::default()).unwrap();
    let mut nand = SimulatedNand::new(chip.geometry, chip.costs);
    let settings = Settings::parse("la-tree", entry().parameters, cell.given.iter().copied());
    let shape = EntryShape::fixed(4, cell.value_bytes);
    let options = Options::new(shape, cell.memory_bytes, settings.unwrap());
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut nand)), &options).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut keys: Vec<u32> = (0..cell.loaded).map(|_| draw(&mut random, cell)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let value = vec![7; usize::from(cell.value_bytes)];
    let mut cursor = Sorted { keys: sorted.iter(), key: [0; 4], value };
    index.load(&mut cursor, cell.fill).unwrap();
    then(&mut *index, &mut keys)
}

/// The figures of the tree's own.
fn figures(index: &dyn Index) -> BTreeMap<&'static str, u64> {
    let mut figures = BTreeMap::new();
    index.figures(&mut |name, number| {
        figures.insert(name, number);
    });
    figures
}

/// Plays a cell; returns microseconds of the chip an operation.
fn play(cell: &Cell<'_>) -> f64 {
    play_and_read(cell).0
}

/// How many entries an index holds, and a number that stands for all of them.
fn contents(index: &mut dyn Index) -> (u64, u64) {
    let (mut entries, mut sum) = (0, 0_u64);
    let mut cursor = index.range(index::KeyRange::ALL).unwrap();
    while let Some((key, value)) = cursor.next().unwrap() {
        let Value::Whole(value) = value else { panic!("no value is long") };
        entries += 1;
        for byte in key.iter().chain(value) {
            sum = sum.wrapping_mul(0x0100_0000_01B3) ^ u64::from(*byte);
        }
    }
    (entries, sum)
}

/// As [`play`], and what the index holds at the end.
fn play_and_read(cell: &Cell<'_>) -> (f64, (u64, u64)) {
    on_loaded(cell, |index, keys| {
        let before = index.meter().unwrap().time_ns();
        let tallies = Cause::ALL.map(|cause| *index.meter().unwrap().tally(cause));
        let earlier = figures(index);
        let operations = operate(index, cell, keys, 2);
        let per = |number: u64| number as f64 / f64::from(operations);
        let micros = per(index.meter().unwrap().time_ns() - before) / 1000.0;
        println!("{:?} {:4} %: {micros:7.1} us", cell.given, cell.lookups);
        for (cause, earlier) in Cause::ALL.into_iter().zip(tallies) {
            let tally = *index.meter().unwrap().tally(cause) - earlier;
            if tally.time_ns > 0 {
                println!(
                    "    {cause:12} {:7.1} us {:8.4} reads {:8.4} programs",
                    per(tally.time_ns) / 1000.0,
                    per(tally.page_reads),
                    per(tally.page_programs)
                );
            }
        }
        if std::env::var("FIGURES").is_ok() {
            for (name, number) in figures(index) {
                let number = number.wrapping_sub(earlier[name]);
                println!("    {name:28} {number:12} {:10.4}", per(number));
            }
        }
        (micros, contents(index))
    })
}

#[test]
#[ignore = "it takes a minute"]
fn the_published_cells() {
    for (lookups, published) in [(10, 113.0), (200, 254.0), (1000, 253.0)] {
        for fill in [67, 100] {
            for value_bytes in [4, 0] {
                let cell = Cell { lookups, fill, value_bytes, ..USUAL };
                let each = play(&cell);
                println!(
                    "  fill {fill}, record id {value_bytes}: {each:.1}, published {published}"
                );
                assert!(each < 20.0 * published, "{each} us");
            }
        }
    }
}

#[test]
#[ignore = "it takes a minute"]
fn a_tree_that_does_not_grow() {
    for lookups in [10, 200, 1000] {
        for value_bytes in [4, 0] {
            let updates = 3_000_000 / (10 + lookups);
            let cell = Cell { lookups, updates, value_bytes, keys: Some(300_000), ..USUAL };
            assert!(play(&cell) > 0.0);
        }
    }
}

type Given = &'static [(&'static str, &'static str)];

/// Buffers of fixed sizes, and none.
const FIXED: [Given; 3] = [&[("buffer", "8192")], &[("buffer", "128")], &[("buffer", "none")]];

/// By how many percent each of `adaptive` is above the best of [`FIXED`]. With every kind of
/// buffers the index holds the same.
fn compare<const N: usize>(cell: &Cell<'_>, adaptive: [Given; N]) -> [f64; N] {
    let mut contents = Vec::new();
    let mut run = |given| {
        let (micros, held) = play_and_read(&Cell { given, ..*cell });
        contents.push(held);
        micros
    };
    let best = FIXED.map(&mut run).into_iter().fold(f64::INFINITY, f64::min);
    let above = adaptive.map(|given| (run(given) / best - 1.0) * 100.0);
    assert!(contents.windows(2).all(|pair| pair[0] == pair[1]), "{contents:?}");
    above
}

/// Adaptive buffers beside fixed ones and none. The paper has adaptive ones lowest throughout;
/// where that fails is printed, and two ablations look for the cause, each with one assumption
/// changed:
///
/// - ADAPT's rule. In hindsight it waits until no adversary can make it cost twice the optimum;
///   here lookups come at random, and `rule=average` counts on that;
/// - memory: twice as much for all, so that fewer entries are written to be read by lookups.
///
/// The promise `la-tree-adaptive` is that the first brings adaptive buffers nearer to the best in
/// every cell: hindsight is a part of the cause. What the rest is, is not known.
fn compare_buffers(operations: u32) {
    let names = ["adaptive buffers", "averages instead of hindsight", "twice the memory"];
    let (mut lowest, mut most, mut nearer) = ([0; 3], [f64::MIN; 3], 0);
    for lookups in [10, 50, 100, 200, 1000] {
        let cell = Cell { lookups, updates: operations / (100 + lookups) * 100, ..USUAL };
        let [printed, average] = compare(&cell, [&[], &[("rule", "average")]]);
        let [large] = compare(&Cell { memory_bytes: 2 * cell.memory_bytes, ..cell }, [&[]]);
        nearer += u32::from(average < printed);
        for (place, above) in [printed, average, large].into_iter().enumerate() {
            let name = names[place];
            println!("{lookups} %: {name}: {above:+.1} % above the best of the others");
            most[place] = f64::max(most[place], above);
            lowest[place] += u32::from(above <= 0.0);
        }
    }
    match lowest[0] {
        5 => println!("the claim that adaptive buffers are never above the others holds"),
        _ => println!("the claim that adaptive buffers are never above the others FAILS"),
    }
    for place in 0..3 {
        let (name, lowest, most) = (names[place], lowest[place], most[place]);
        println!("{name}: the cheapest in {lowest} of 5 cells, {most:.2} % above at most");
    }
    println!("averages instead of hindsight: cheaper in {nearer} of 5 cells");
}

#[test]
fn adaptive_buffers_beside_fixed_ones_and_none() {
    compare_buffers(150_000);
}

#[test]
#[ignore = "it takes minutes"]
fn adaptive_buffers_beside_fixed_ones_and_none_in_full() {
    compare_buffers(1_100_000);
}

/// How far the sums of estimates are from those of actual costs, in percent: of scans, and of
/// emptying. Actual is what the chip was busy with for updates, splits and evictions included.
fn misses(cell: &Cell<'_>) -> [f64; 2] {
    on_loaded(cell, |index, keys| {
        // Rates are measured first.
        operate(index, cell, keys, 2);
        let earlier = figures(index);
        let busy = |index: &dyn Index| {
            let meter = index.meter().unwrap();
            meter.tally(Cause::Flush).time_ns + meter.tally(Cause::Update).time_ns
        };
        let before = busy(index);
        operate(index, cell, keys, 3);
        let actual = (busy(index) - before) as f64;
        let grown: BTreeMap<_, _> = figures(index)
            .into_iter()
            .map(|(name, number)| (name, (number as f64) - earlier[name] as f64))
            .collect();
        let off = |estimated: f64, actual: f64| (estimated / actual - 1.0) * 100.0;
        let put = grown["put estimated ns"];
        let scan = off(grown["scan estimated ns"], grown["scan actual ns"]);
        let emptying = off(grown["emptying estimated ns"] + put, actual);
        let printed = off(grown["emptying printed ns"] + put, actual);
        println!(
            "{} %: scans {scan:+.1} %, emptying {emptying:+.1} %, as printed {printed:+.0} %",
            cell.lookups
        );
        [scan, emptying]
    })
}

#[test]
fn estimates_are_within_8_percent_of_the_actual_costs() {
    let mut most = 0.0_f64;
    for (lookups, updates) in [(10, 200_000), (50, 120_000), (200, 60_000)] {
        for miss in misses(&Cell { lookups, updates, ..USUAL }) {
            most = most.max(miss.abs());
        }
    }
    println!("estimates miss the actual costs by {most:.1} % at most");
    assert!(most <= 8.0, "{most} %");
}

#[test]
#[ignore = "exploration"]
fn explore() {
    let var = |name: &str, or: &str| std::env::var(name).unwrap_or_else(|_| or.to_owned());
    let given: Vec<(String, String)> = var("GIVEN", "")
        .split_whitespace()
        .filter_map(|pair| pair.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())))
        .collect();
    let given: Vec<(&str, &str)> = given.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let cell = Cell {
        given: &given,
        lookups: var("LOOKUPS", "10").parse().unwrap(),
        updates: var("UPDATES", "1000000").parse().unwrap(),
        fill: var("FILL", "67").parse().unwrap(),
        value_bytes: var("VALUE", "4").parse().unwrap(),
        loaded: var("LOADED", "200000").parse().unwrap(),
        memory_bytes: var("MEMORY", "131072").parse().unwrap(),
        keys: var("KEYS", "0").parse().ok().filter(|keys| *keys > 0),
    };
    play(&cell);
}
