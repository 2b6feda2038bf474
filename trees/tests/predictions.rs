//! A tree's cost model against the tree itself, for random keys.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::tree::{Case, MemoryLevel, Stand, Storage, cases};
use contract::{on_all_cores, sample, share};
use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use index::{Durability, Index, Update};
use index::{MediumShape, Profile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What the model may be off by.
const TOLERANCE: f64 = 0.15;

/// What it may be off by in writes where there are two heads and few updates: it counts pages of a
/// full head that lookups push out of memory twice.
const TOLERANCE_TWO_HEADS: f64 = 0.35;

const PAGE_BYTES: u64 = 2048;

/// Entries in the tree: about 340 leaves of 2 KiB.
const ENTRIES: u32 = 60_000;

/// Updates that are counted at least, after as many that are not: the model is of a steady state,
/// and where updates wait, thousands of them wait for one that changes nodes.
const UPDATES: u32 = 40_000;

/// Updates that are counted for each byte of memory. Where updates wait until they fill a sixteenth
/// of the memory, [`UPDATES`] would empty a buffer of leaves six times: too few to measure by.
const UPDATES_PER_BYTE: f64 = 0.2;

/// Updates that are counted where they wait in a head of 20,000 entries: some 15 merges.
const UPDATES_OF_HEADS: u32 = 300_000;

#[derive(Clone, Default)]
struct Counts {
    reads: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

struct Counted<S> {
    below: S,
    counts: Counts,
}

impl<S: Sectors> Sectors for Counted<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        let pages = |request: &Request<'_>| (request.into.len() as u64).div_ceil(PAGE_BYTES);
        self.counts.reads.fetch_add(requests.iter().map(pages).sum(), Ordering::Relaxed);
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        // Neighbours may be written at once, but the model tells pages.
        let pages = (from.len() as u64).div_ceil(PAGE_BYTES);
        self.counts.writes.fetch_add(pages, Ordering::Relaxed);
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.below.flush(cause)
    }
}

/// Keys as good as random, none of them twice. (Multiples of the golden ratio alone are spread so
/// evenly that all leaves get full at the same time: no model of random keys tells their number.)
fn key(number: u32) -> [u8; 4] {
    let mixed = (number ^ number >> 16).wrapping_mul(0x85EB_CA6B);
    let mixed = (mixed ^ mixed >> 13).wrapping_mul(0xC2B2_AE35);
    (mixed ^ mixed >> 16).to_be_bytes()
}

/// Pages read and written an operation, where `lookups` of the operations are lookups and the
/// others puts of keys that are there.
fn measure(case: &Case, storage: &mut Storage, (lookups, memory): (f64, u64)) -> (f64, f64) {
    let counts = Counts::default();
    let wrapped = counts.clone();
    let mut index =
        case.index_over(storage, false, |below| Box::new(Counted { below, counts: wrapped }));
    for number in 0..ENTRIES {
        index.update(&[Update::Put { key: &key(number), value: b"four" }]).unwrap();
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    play(&mut *index, &mut random, (lookups, UPDATES));
    let before = [&counts.reads, &counts.writes].map(|count| count.load(Ordering::Relaxed));
    let has_head = case.entry.parameters.iter().any(|it| it.name == "head");
    let least = if has_head { UPDATES_OF_HEADS } else { UPDATES };
    let counted = least.max((memory as f64 * UPDATES_PER_BYTE) as u32);
    let operations = play(&mut *index, &mut random, (lookups, counted));
    let after = [&counts.reads, &counts.writes].map(|count| count.load(Ordering::Relaxed));
    let each = |place: usize| (after[place] - before[place]) as f64 / operations as f64;
    (each(0), each(1))
}

/// Plays lookups and so many puts; returns how many operations these were.
fn play(index: &mut dyn Index, random: &mut ChaCha8Rng, (lookups, puts): (f64, u32)) -> u64 {
    let (mut updates, mut operations) = (0, 0);
    while updates < puts {
        operations += 1;
        let key = key(random.random_range(0..ENTRIES));
        if random.random_bool(lookups) {
            assert_eq!(index.get(&key, 0, &mut [0; 4]), Ok(Some(4)));
        } else {
            // Not always the same value: that may change nothing.
            let value = u32::to_le_bytes(updates);
            index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
            updates += 1;
        }
    }
    operations
}

/// Compares what is predicted of so many lookups among the operations with what they cost.
fn compare(case: &Case, lookups: f64) {
    let mut storage = case.storage(4 << 20);
    let Storage::Ram(disk) = &storage else { panic!("it stands on a disk") };
    let medium = MediumShape::Sectors(disk.geometry());
    let profile = Profile {
        entries: u64::from(ENTRIES),
        lookups,
        inserts: 0.0,
        overwrites: 1.0 - lookups,
        deletes: 0.0,
    };
    let options = case.options(medium);
    let predicted = (case.entry.predict)(&profile, &options, medium).unwrap();
    let given = (lookups, options.memory_bytes);
    let (reads, writes) = measure(case, &mut storage, given);
    let name = case.name();
    let with_few_updates = !case.parameters.is_empty() && lookups > 0.5;
    for (what, predicted, measured) in
        [("reads", predicted.page_reads, reads), ("writes", predicted.page_writes, writes)]
    {
        println!("{name}, {lookups} lookups: {what} {predicted:.3} against {measured:.3}");
        let off = (predicted - measured).abs() / measured;
        let most =
            if what == "writes" && with_few_updates { TOLERANCE_TWO_HEADS } else { TOLERANCE };
        assert!(off < most, "{name}: {what} {predicted} against {measured}");
    }
}

/// The case, and the same with a second head where a merge may be made in steps.
fn with_second_heads(case: Case) -> Vec<Case> {
    let steps = case.entry.parameters.iter().find(|it| it.name == "deamortized");
    let other = steps.map(|it| Case { parameters: vec![(it.name, "on".into())], ..case.clone() });
    [case].into_iter().chain(other).collect()
}

#[test]
fn predictions_are_near_what_random_operations_cost() {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram)
            && u64::from(case.page_bytes) == PAGE_BYTES
            && case.shape.name == "4+4"
            && matches!(case.memory, MemoryLevel::Least | MemoryLevel::Sixteenfold)
            && case.parameters.is_empty()
    };
    let wanted: Vec<_> = TREES
        .iter()
        // What flat-tree's updates do to its cache is not in its model: its own tests compare.
        .filter(|entry| entry.name != "flat-tree")
        .flat_map(|entry| cases(entry))
        .filter(is_wanted)
        .flat_map(with_second_heads)
        // The models know of no journal and of no images, as the papers' don't.
        .map(|case| Case { durability: Durability::None, ..case })
        .flat_map(|case| [0.1, 0.5, 0.9].map(|lookups| (case.clone(), lookups)))
        .collect();
    let wanted: Vec<_> = sample(2, wanted).collect();
    assert!(wanted.len() * share(2) >= 6, "{} comparisons", wanted.len());
    on_all_cores(&wanted, |(case, lookups)| compare(case, *lookups));
}
