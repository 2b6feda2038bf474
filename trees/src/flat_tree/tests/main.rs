//! What flat-tree promises beside what every tree does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::nand::{Hook, Hooked, Read};
use contract::share;
use contract::torture::{Plan, Witness, assert_clean, cells, torture};
use device::{Cause, DiskCosts, Geometry, Medium, Nand, NandCosts, SectorGeometry};
use index::Update;
use index::parameters::Settings;
use index::{
    Durability, EntryShape, Index, KeyRange, Lookup, MediumShape, Options, Profile, TreeDescriptor,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::{SimulatedDisk, SimulatedNand};

fn entry() -> &'static TreeDescriptor {
    flashtree_trees::find("flat-tree").unwrap()
}

fn disk(sectors: u64) -> SimulatedDisk {
    SimulatedDisk::new(SectorGeometry::new(4096, sectors).unwrap(), DiskCosts::default())
}

fn make<'d>(
    disk: &'d mut SimulatedDisk,
    given: &[(&str, &str)],
    memory: u64,
) -> Box<dyn Index + 'd> {
    let settings = Settings::parse("flat-tree", entry().parameters, given.iter().copied()).unwrap();
    let options = Options::new(EntryShape::fixed(8, 8), memory, settings);
    (entry().create)(Medium::Sectors(Box::new(disk)), &options).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn put(index: &mut dyn Index, number: u64, value: u64) {
    let put = Update::Put { key: &key(number), value: &value.to_be_bytes() };
    index.update(&[put]).unwrap();
}

fn figure(index: &dyn Index, name: &str) -> u64 {
    let mut found = 0;
    index.metrics(&mut |told, figure| found = if told == name { figure } else { found });
    found
}

fn bytes_written(index: &dyn Index) -> u64 {
    index.meter().unwrap().total().bytes_programmed
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_is_cut() {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let cuts = 100_000 / share(40) as u64;
    let rows = torture(&Plan { cells: cells(&[entry()]), cuts, seed: 3, jobs }, &());
    let mut all = Witness::default();
    rows.iter().for_each(|row| all += row.witness);
    assert_clean(&rows);
    println!("{all}");
    assert!(all.cuts >= cuts && all.merges > 0 && all.splits > 0, "{all}");
    assert!(all.cuts_in_merges > 0, "{all}");
}

#[test]
fn random_overwrites_write_few_bytes_and_gets_read_one_page() {
    const KEYS: u64 = 200_000;
    let mut disk = disk(4000);
    let mut index = make(&mut disk, &[], 1 << 20);
    for number in 0..KEYS {
        put(&mut *index, number, number);
    }
    let before = bytes_written(&*index);
    for number in 0..KEYS {
        put(&mut *index, number * 7919 % KEYS, number);
    }
    let written = bytes_written(&*index) - before;
    let amplification = written as f64 / (KEYS * 16) as f64;
    let before = index.meter().unwrap().total().page_reads;
    for number in 0..10_000 {
        let mut into = [0; 8];
        let number = number * 104_729 % KEYS;
        assert_eq!(index.get(&key(number), 0, &mut into), Ok(Some(8)));
    }
    let reads = (index.meter().unwrap().total().page_reads - before) as f64 / 10_000.0;
    println!("write amplification {amplification:.2}, {reads:.2} reads a get");
    assert!(amplification < 9.0 && reads < 1.2, "{amplification} {reads}");
    index.check(&mut |finding| panic!("{finding}")).unwrap();
}

#[test]
fn partitions_are_split_as_data_come_and_joined_as_they_go() {
    const KEYS: u64 = 60_000;
    let mut disk = disk(2000);
    let mut index = make(&mut disk, &[("partition", "64KiB")], 1 << 20);
    for number in 0..KEYS {
        put(&mut *index, number, number);
    }
    let most = figure(&*index, "partitions");
    assert!(most > 8 && figure(&*index, "nodes split") >= most - 1, "{most} partitions");
    for number in 100..KEYS {
        index.update(&[Update::Delete { key: &key(number) }]).unwrap();
    }
    let left = figure(&*index, "partitions");
    assert!(left < most && figure(&*index, "nodes merged") > 0, "{left} of {most} partitions");
    index.check(&mut |finding| panic!("{finding}")).unwrap();
    let mut found = BTreeMap::new();
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    while let Some((key, value)) = cursor.next().unwrap() {
        found.insert(key.to_vec(), value.whole().unwrap().to_vec());
    }
    let expected = (0..100_u64).map(|number| (key(number).to_vec(), number.to_be_bytes().to_vec()));
    assert_eq!(found, expected.collect());
}

#[test]
fn merges_are_spread_over_the_updates_that_fill_the_memory() {
    const KEYS: u64 = 300_000;
    let mut disk = disk(8000);
    let mut index = make(&mut disk, &[("partition", "64KiB")], 1 << 20);
    let overwrite = |index: &mut dyn Index, number: u64| {
        put(index, number * 7919 % KEYS, number);
    };
    (0..2 * KEYS).for_each(|number| overwrite(&mut *index, number));
    let (mut before, mut most) = (figure(&*index, "partitions merged"), 0);
    let all = before;
    for number in 0..KEYS {
        overwrite(&mut *index, number);
        let merged = figure(&*index, "partitions merged");
        most = most.max(merged - before);
        before = merged;
    }
    assert!(before - all > 100 && most <= 2, "{most} of {} merges for one put", before - all);
}

/// In the memory of a small database.
#[test]
fn merges_and_flushes_come_before_a_batch_and_keys_are_looked_up_in_their_midst() {
    const KEYS: u64 = 100_000;
    const BATCH: u64 = 50;
    let mut disk = disk(4000);
    let mut index = make(&mut disk, &[], 1 << 20);
    let mut values: BTreeMap<u64, u64> = BTreeMap::new();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut looked_up, mut within, mut written) = (0_u64, 0, 0);
    for round in 0..4 * KEYS / BATCH {
        let keys: Vec<u64> = (0..BATCH).map(|_| random.random_range(0..KEYS)).collect();
        let entries: Vec<_> =
            keys.iter().map(|number| (key(*number), round.to_be_bytes())).collect();
        let batch: Vec<_> = entries.iter().map(|(key, value)| Update::Put { key, value }).collect();
        let mut look_up = |index: &mut dyn Lookup| {
            let number = random.random_range(0..KEYS);
            let mut value = [0; 8];
            let found = index.get(&key(number), 0, &mut value).unwrap();
            let found = found.map(|_| u64::from_be_bytes(value));
            assert_eq!(found, values.get(&number).copied(), "of {number}");
            looked_up += 1;
        };
        while index.prepare(&batch, &mut look_up).unwrap() {}
        let before = (bytes_written(&*index), figure(&*index, "partitions merged"));
        index.update(&batch).unwrap();
        within += figure(&*index, "partitions merged") - before.1;
        written = written.max(bytes_written(&*index) - before.0);
        values.extend(keys.into_iter().map(|number| (number, round)));
    }
    let merged = figure(&*index, "partitions merged");
    println!("{looked_up} lookups, {merged} merges, {within} of them and {written} bytes within");
    assert!(looked_up > 10 * merged && merged > 40, "{looked_up} lookups, {merged} merges");
    assert!(within * 20 <= merged, "{within} of {merged} merges inside a batch");
}

#[test]
fn overwriting_and_lookups_cost_what_is_predicted() {
    const KEYS: u64 = 100_000;
    for memory in [512 << 10, 1 << 20] {
        let mut disk = disk(4000);
        let medium = MediumShape::Sectors(device::Sectors::geometry(&disk));
        let settings = Settings::parse("flat-tree", entry().parameters, []).unwrap();
        let options = Options::new(EntryShape::fixed(8, 8), memory, settings);
        let profile =
            Profile { entries: KEYS, lookups: 0.0, inserts: 0.0, overwrites: 1.0, deletes: 0.0 };
        let update = (entry().predict)(&profile, &options, medium).unwrap();
        let profile = Profile { lookups: 1.0, overwrites: 0.0, ..profile };
        let lookup = (entry().predict)(&profile, &options, medium).unwrap();
        let mut index = make(&mut disk, &[], memory);
        for number in 0..KEYS {
            put(&mut *index, number, 1);
        }
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut overwrite = |index: &mut dyn Index| {
            for _ in 0..3 * KEYS {
                put(index, random.random_range(0..KEYS), random.random());
            }
        };
        overwrite(&mut *index);
        let before = index.meter().unwrap().total();
        overwrite(&mut *index);
        let after = index.meter().unwrap().total();
        let writes = (after.page_programs - before.page_programs) as f64 / (3 * KEYS) as f64;
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for _ in 0..KEYS {
            index.get(&key(random.random_range(0..KEYS)), 0, &mut []).unwrap();
        }
        let read = index.meter().unwrap().total().page_reads - after.page_reads;
        let reads = read as f64 / KEYS as f64;
        println!("{memory}: writes {} against {writes}", update.page_writes);
        println!("{memory}: reads {} against {reads}", lookup.page_reads);
        for (predicted, measured) in [(update.page_writes, writes), (lookup.page_reads, reads)] {
            let off = (predicted - measured).abs() / measured;
            assert!(off < 0.2, "{memory}: {predicted} pages predicted, {measured} measured");
        }
    }
}

/// Reads nothing longer than a unit for a lookup.
struct BadNeighbours(Arc<AtomicU64>);

impl Hook<SimulatedNand> for BadNeighbours {
    fn read(&mut self, chip: &mut SimulatedNand, read: Read<'_>) -> device::Result<u16> {
        if read.cause == Cause::Lookup && read.into.len() > 100 {
            self.0.fetch_add(1, Ordering::Relaxed);
            return Err(device::Error::Uncorrectable { page: read.page });
        }
        read.on(chip)
    }
}

/// Overwrites keys on a chip until its blocks are used again, and looks them up between.
fn overwrite_and_look_up(chip: Box<dyn Nand + '_>) {
    let settings = Settings::parse("flat-tree", entry().parameters, []).unwrap();
    let mut options = Options::new(EntryShape::fixed(8, 8), 64 << 10, settings);
    // All that is looked up is held until its page is written anew.
    (options.tables_bytes, options.durability) = (Some(8 << 20), Some(Durability::Batch));
    let mut index = (entry().create)(Medium::Nand(chip), &options).unwrap();
    let (mut random, mut model) = (ChaCha8Rng::seed_from_u64(7), BTreeMap::new());
    for round in 0..60_000 {
        let number = random.random_range(0..4000);
        put(&mut *index, number, round);
        model.insert(number, round);
        let number = random.random_range(0..4000);
        let mut found = [0; 8];
        let length = index.get(&key(number), 0, &mut found).unwrap();
        let found = length.map(|_| u64::from_be_bytes(found));
        assert_eq!(found, model.get(&number).copied(), "round {round}, number {number}");
    }
    assert!(index.meter().unwrap().total().block_erases > 40);
}

#[test]
fn a_lookup_finds_what_stands_on_the_chip_though_pages_are_written_anew() {
    let geometry = Geometry::new(2048, 16, 48).unwrap();
    overwrite_and_look_up(Box::new(SimulatedNand::new(geometry, NandCosts::default())));
}

#[test]
fn a_lookup_does_without_neighbours_that_cannot_be_read() {
    let geometry = Geometry::new(2048, 16, 48).unwrap();
    let chip = SimulatedNand::new(geometry, NandCosts::default());
    let refused = Arc::new(AtomicU64::new(0));
    let hook = BadNeighbours(Arc::clone(&refused));
    overwrite_and_look_up(Box::new(Hooked { chip, hook }));
    assert!(refused.load(Ordering::Relaxed) > 100);
}
