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

use std::time::{Duration, Instant};

use device::{Cause, Medium};
use index::parameters::Settings;
use index::registry::{Entry, Options};
use index::{Cursor, EntryShape, Index, KeyValue, Update, Value, read_piece};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

const LOADED: usize = 200_000;

/// What is run.
#[derive(Clone, Copy)]
struct Cell<'c> {
    given: &'c [(&'c str, &'c str)],
    /// Lookups for a hundred updates.
    lookups: u32,
    updates: u32,
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

/// Plays a cell; returns microseconds of the chip an operation, and the time on the clock.
fn play(cell: &Cell<'_>) -> (f64, Duration) {
    let chip = chips::find("toshiba-tc58dvg02a1ft00").unwrap();
    let chip = chip.nand(&chips::Overrides::default()).unwrap();
    let mut nand = SimulatedNand::new(chip.geometry, chip.costs);
    let settings = Settings::parse("la-tree", entry().parameters, cell.given.iter().copied());
    let shape = EntryShape::fixed(4, cell.value_bytes);
    let options = Options::new(shape, cell.memory_bytes, settings.unwrap());
    let mut index = (entry().create)(Medium::Nand(Box::new(&mut nand)), &options).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut keys: Vec<u32> = (0..LOADED).map(|_| draw(&mut random, cell)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let value = vec![7; usize::from(cell.value_bytes)];
    let mut cursor = Sorted { keys: sorted.iter(), key: [0; 4], value };
    index.load(&mut cursor, cell.fill).unwrap();
    let before = index.meter().unwrap().time_ns();
    let tallies = Cause::ALL.map(|cause| *index.meter().unwrap().tally(cause));
    let start = Instant::now();
    let operations = operate(&mut *index, cell, &mut keys, 2);
    let wall = start.elapsed();
    let each = (index.meter().unwrap().time_ns() - before) as f64 / f64::from(operations) / 1000.0;
    print!("{:?} {:4} %: {each:7.1} us;", cell.given, cell.lookups);
    for (cause, earlier) in Cause::ALL.into_iter().zip(tallies) {
        let tally = *index.meter().unwrap().tally(cause) - earlier;
        if tally.time_ns > 0 {
            let per = |number: u64| number as f64 / f64::from(operations);
            print!(
                " {cause} {:.1} us ({:.3} reads, {:.4} programs)",
                per(tally.time_ns) / 1000.0,
                per(tally.page_reads),
                per(tally.page_programs)
            );
        }
    }
    println!("; wall {:.1} s, height {}", wall.as_secs_f64(), index.statistics().height);
    (each, wall)
}

#[test]
#[ignore = "it takes a minute"]
fn the_published_cells() {
    for (lookups, published) in [(10, 113.0), (200, 254.0), (1000, 253.0)] {
        for fill in [67, 100] {
            for value_bytes in [4, 0] {
                let cell = Cell { lookups, fill, value_bytes, ..USUAL };
                let (each, _) = play(&cell);
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
            assert!(play(&cell).0 > 0.0);
        }
    }
}

#[test]
#[ignore = "it takes a minute"]
fn adaptive_buffers_are_never_above_fixed_ones_or_none() {
    for lookups in [10, 50, 100, 200, 1000] {
        let updates = if lookups > 200 { 200_000 } else { 500_000 };
        let run = |given| play(&Cell { given, lookups, updates, ..USUAL }).0;
        let adaptive = run(&[]);
        for given in [&[("buffer", "8192")][..], &[("buffer", "128")], &[("buffer", "none")]] {
            let other = run(given);
            assert!(adaptive <= other, "{lookups} %: {adaptive} us, {given:?}: {other} us");
        }
    }
}
