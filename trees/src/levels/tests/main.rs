//! What fd-tree and lsm do by themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and reports"
)]

use contract::RamDisk;
use contract::tree::{figure, findings};
use device::{Cause, DiskCosts, Medium, SectorGeometry, Sectors};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, MediumShape, Options, Update};
use sim::SimulatedDisk;

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

/// What merges cost updates.
#[derive(Default)]
struct Costs {
    /// Pages of them all, and the most that one update had.
    pages: u64,
    most: u64,
    /// Of each merge: pages, updates while it was under way, and the most that one had.
    merges: Vec<(u64, u64, u64)>,
}

/// What the merges cost that overwriting `ENTRIES` entries makes, with a head of so many bytes.
fn costs_of_merges(deamortized: &str, head: &str) -> Costs {
    let mut disk =
        SimulatedDisk::new(SectorGeometry::new(512, 40_000).unwrap(), DiskCosts::default());
    let entry = find("fd-tree").unwrap();
    let given = [("ratio", "8"), ("head", head), ("deamortized", deamortized)];
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 4 << 20, settings);
    options.durability = Some(Durability::None);
    let mut index = (entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    let merged = |index: &dyn Index| {
        let tally = index.meter().unwrap().tally(Cause::Merge);
        (tally.page_reads + tally.page_programs, figure(index, "merges"))
    };
    let (mut costs, mut merge) = (Costs::default(), (0, 0, 0));
    for number in 0..2 * ENTRIES {
        let before = merged(&*index);
        index.update(&[Update::Put { key: &key(number), value: &key(number) }]).unwrap();
        let after = merged(&*index);
        let pages = after.0 - before.0;
        let is_end = after.1 > before.1;
        let is_under_way = is_end || figure(&*index, index::MERGES_BROKEN_OFF) > 0;
        merge = (merge.0 + pages, merge.1 + u64::from(is_under_way), merge.2.max(pages));
        if number >= ENTRIES {
            (costs.pages, costs.most) = (costs.pages + pages, costs.most.max(pages));
            costs.merges.extend(is_end.then_some(merge));
        }
        if is_end {
            merge = (0, 0, 0);
        }
    }
    assert_eq!(findings(&mut *index), Vec::<String>::new());
    costs
}

const ENTRIES: u32 = 100_000;

/// Pages that an update may cost where its share is below half as much: of a page there is no part,
/// and an entry may want one of two inputs, and end one of the run and one of the fences above it.
const PAGES_LEAST: f64 = 4.0;

#[test]
fn no_update_costs_more_than_twice_its_share_of_a_merge_and_the_mean_stays() {
    let (mut share, mut mean, mut less, mut whole) = (0_f64, 0_f64, f64::MAX, 0);
    for head in ["8192", "32768"] {
        let [at_once, steps] = ["off", "on"].map(|word| costs_of_merges(word, head));
        mean = mean.max(100.0 * steps.pages as f64 / at_once.pages as f64 - 100.0);
        less = less.min(at_once.most as f64 / steps.most as f64);
        for (pages, updates, most) in &steps.merges {
            let (once, most) = (*pages as f64 / *updates as f64, *most as f64);
            let allowed = (2.0 * once).max(PAGES_LEAST);
            assert!(most <= allowed, "{most} of {pages} in {updates}");
            share = share.max(2.0 * most / allowed);
            whole += u32::from(2.0 * once >= PAGES_LEAST);
        }
    }
    println!(
        "at most {share:.2} shares, {mean:.2} % more on average, {less:.0} times less at worst"
    );
    assert!(whole > 10, "only {whole} merges were so large");
    assert!(mean <= 5.0 && less >= 80.0);
}

#[test]
fn what_is_lost_of_a_merge_under_way_is_made_again() {
    for name in ["fd-tree", "lsm"] {
        let mut disk = RamDisk::new(SectorGeometry::new(512, 40_000).unwrap());
        let entry = find(name).unwrap();
        let given = [("ratio", "4"), ("head", "8192"), ("deamortized", "on")];
        let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
        let mut options = Options::new(EntryShape::fixed(4, 4), 1 << 20, settings);
        options.durability = Some(Durability::Every);
        let mut put = 0;
        let mut lost = 0;
        for life in 0..40 {
            let medium = Medium::Sectors(Box::new(&mut disk));
            let make = if life == 0 { entry.create } else { entry.open };
            let mut index = make(medium, &options).unwrap();
            for _ in 0..700 {
                index.update(&[Update::Put { key: &key(put), value: &key(put) }]).unwrap();
                put += 1;
            }
            lost += figure(&*index, index::MERGES_BROKEN_OFF);
            for number in (0..put).step_by(41) {
                let mut found = [0; 4];
                assert_eq!(
                    index.get(&key(number), 0, &mut found),
                    Ok(Some(4)),
                    "{name}, {number} in life {life}"
                );
                assert_eq!(found, key(number));
            }
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}, life {life}");
        }
        assert!(lost >= 5, "{name}: {lost} merges were under way");
    }
}
