//! What fd-tree and lsm do by themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::tree::{cases, figure, findings, run};
use contract::{RamDisk, on_all_cores};
use device::{DiskCosts, Medium, SectorGeometry, Sectors};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{EntryShape, Index, MediumShape, Options, Update};
use sim::SimulatedDisk;

#[test]
fn it_agrees_with_an_ordered_map_in_every_case() {
    let trees = ["fd-tree", "lsm"].map(|name| find(name).unwrap());
    let cases: Vec<_> = trees.into_iter().flat_map(cases).collect();
    on_all_cores(&cases, run);
}

/// An index on a disk of `sectors` sectors of 512 bytes, with so much memory.
fn index(disk: &mut RamDisk, memory: u64) -> Box<dyn Index + '_> {
    index_of("fd-tree", disk, memory)
}

fn index_of<'d>(name: &str, disk: &'d mut RamDisk, memory: u64) -> Box<dyn Index + 'd> {
    let entry = find(name).unwrap();
    let given = [("ratio", "4"), ("head", "8192")];
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let options = Options::new(EntryShape::fixed(4, 4), memory, settings);
    (entry.create)(Medium::Sectors(Box::new(disk)), &options).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

#[test]
fn fences_of_every_level_hold_both_invariants() {
    let mut disk = RamDisk::new(SectorGeometry::new(512, 20_000).unwrap());
    let mut index = index(&mut disk, 1 << 20);
    let (mut merges, mut levels) = (0, 0);
    for number in 0..60_000 {
        let key = key(number % 40_000);
        let update = match number % 7 {
            3 => Update::Delete { key: &key },
            _ => Update::Put { key: &key, value: &key },
        };
        index.update(&[update]).unwrap();
        let now = figure(&*index, "merges");
        if now > merges {
            merges = now;
            levels = levels.max(figure(&*index, "levels"));
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "after {merges} merges");
        }
    }
    assert!(merges > 60 && levels >= 3, "{merges} merges, {levels} levels");
}

#[test]
fn what_a_last_level_of_one_page_holds_is_found_below_larger_keys() {
    for name in ["fd-tree", "lsm"] {
        let mut disk = RamDisk::new(SectorGeometry::new(512, 20_000).unwrap());
        let mut index = index_of(name, &mut disk, 1 << 20);
        let low = |number: u32| number.to_be_bytes();
        let high = |number: u32| (number.wrapping_mul(0x9E37_79B1) | 1 << 31).to_be_bytes();
        for number in 0..10 {
            index.update(&[Update::Put { key: &low(number), value: b"low " }]).unwrap();
        }
        for number in 0..30_000 {
            index.update(&[Update::Put { key: &high(number), value: b"high" }]).unwrap();
        }
        // All but these few go again, and so the last level gets short; above it come others that
        // have larger keys only.
        for number in 0..90_000 {
            index.update(&[Update::Delete { key: &high(number) }]).unwrap();
            if number % 16 == 0 {
                let found = index.get(&low(number % 10), 0, &mut [0; 4]);
                assert_eq!(found, Ok(Some(4)), "{name}, after {number} deletes");
                assert_eq!(index.get(&low(100), 0, &mut [0; 4]), Ok(None));
            }
        }
        assert_eq!(findings(&mut *index), Vec::<String>::new());
    }
}

#[test]
fn a_search_reads_at_most_one_page_a_level() {
    let disk = SectorGeometry::new(512, 20_000).unwrap();
    let mut disk = SimulatedDisk::new(disk, DiskCosts::default());
    let entry = find("fd-tree").unwrap();
    let settings =
        Settings::parse(entry.name, entry.parameters, [("ratio", "4"), ("head", "8192")]).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    let shape = MediumShape::Sectors(disk.geometry());
    options.memory_bytes = entry.least_memory(&options, shape).unwrap();
    let mut index = (entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    for number in 0..50_000 {
        index.update(&[Update::Put { key: &key(number), value: &key(number) }]).unwrap();
    }
    assert!(figure(&*index, "levels") >= 2);
    for number in (0..50_000).step_by(97) {
        let before = index.meter().unwrap().total().page_reads;
        assert_eq!(index.get(&key(number), 0, &mut [0; 4]), Ok(Some(4)));
        let read = index.meter().unwrap().total().page_reads - before;
        assert!(read <= u64::from(index.statistics().height), "{read} pages");
    }
}
