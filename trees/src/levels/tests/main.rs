//! What fd-tree and lsm do by themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and reports"
)]

mod damage;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use contract::RamDisk;
use contract::tree::{Model, figure, findings};
use device::{Cause, DiskCosts, Medium, SectorGeometry, Sectors};
use flashtree_trees::find;
use index::parameters::Settings;
use index::{Durability, EntryShape, Index, MediumShape, Options, Update, Width};
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

#[test]
fn upper_levels_stay_in_memory_where_they_fit() {
    const LOOKUPS: u32 = 10_000;
    for name in ["fd-tree", "lsm"] {
        let disk = SectorGeometry::new(512, 20_000).unwrap();
        let mut disk = SimulatedDisk::new(disk, DiskCosts::default());
        let entry = find(name).unwrap();
        let given = [("ratio", "4"), ("head", "8192")];
        let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
        let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
        let shape = MediumShape::Sectors(disk.geometry());
        // Pages for all levels but the last one, which has 800 and more, and for some of that.
        options.memory_bytes = entry.least_memory(&options, shape).unwrap() + 150 * 600;
        let mut index = (entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        for number in 0..50_000 {
            index.update(&[Update::Put { key: &key(number), value: &key(number) }]).unwrap();
        }
        assert!(figure(&*index, "levels") >= 2, "{name}");
        let mut before = 0;
        for number in 0..2 * LOOKUPS {
            if number == LOOKUPS {
                before = index.meter().unwrap().total().page_reads;
            }
            let found = index.get(&key(number * 7919 % 50_000), 0, &mut [0; 4]);
            assert_eq!(found, Ok(Some(4)));
        }
        let read = index.meter().unwrap().total().page_reads - before;
        println!("{name}: {read} pages for {LOOKUPS} lookups");
        assert!(read <= LOOKUPS.into(), "{name}: {read} pages for {LOOKUPS} lookups");
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
fn a_file_is_as_long_as_what_was_loaded_and_gets_shorter_when_it_is_closed() {
    let varying = EntryShape { key: Width::Variable, value: Width::Variable };
    for name in ["fd-tree", "lsm"] {
        let entry = find(name).unwrap();
        let mut disk = RamDisk::growing(SectorGeometry::new(4096, 100_000).unwrap());
        let settings = Settings::parse(entry.name, entry.parameters, [("head", "65536")]).unwrap();
        let mut options = Options::new(varying, 4 << 20, settings);
        options.durability = Some(Durability::Batch);
        let mut index = (entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        index.close().unwrap();
        drop(index);
        let held = |disk: &RamDisk| disk.sectors_held().unwrap() * 4096;
        let empty = held(&disk);
        let mut model = Model::default();
        for number in 0..100_000_u32 {
            model.entries.insert(key(number).to_vec(), b"a value".to_vec());
        }
        let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        assert_eq!(index.load(&mut model.cursor(), 100), Ok(100_000));
        index.close().unwrap();
        drop(index);
        // Eleven bytes an entry, and five that tell how long it is.
        let loaded = held(&disk) - empty;
        assert!(loaded < 100_000 * 18, "{name}: {loaded} bytes");
        let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        for number in 0..20_000 {
            index.update(&[Update::Delete { key: &key(number) }]).unwrap();
        }
        drop(index);
        let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        // What a name kept is given back by the next checkpoint, and not before.
        index.checkpoint(Some("name")).unwrap();
        for number in 20_000..40_000 {
            index.update(&[Update::Put { key: &key(number), value: b"another" }]).unwrap();
        }
        index.forget("name").unwrap();
        index.close().unwrap();
        drop(index);
        let kept = held(&disk);
        let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
        assert_eq!(findings(&mut *index), Vec::<String>::new());
        index.update(&[Update::Delete { key: &key(50_000) }]).unwrap();
        index.close().unwrap();
        drop(index);
        assert!(held(&disk) < kept, "{name}: {kept} bytes before");
        (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    }
}

#[test]
fn a_file_opens_once_its_checkpoint_was_forgotten_and_it_was_closed() {
    let varying = EntryShape { key: Width::Variable, value: Width::Variable };
    for (name, many) in ["fd-tree", "lsm"].into_iter().flat_map(|it| (1..9).map(move |n| (it, n))) {
        let entry = find(name).unwrap();
        let mut disk = RamDisk::growing(SectorGeometry::new(4096, 20_000).unwrap());
        let settings = Settings::parse(entry.name, entry.parameters, [("head", "65536")]).unwrap();
        let mut options = Options::new(varying, 4 << 20, settings);
        options.durability = Some(Durability::Batch);
        drop((entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap());
        let mut session = |work: &dyn Fn(&mut dyn Index)| {
            let mut index = (entry.open)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
            assert_eq!(findings(&mut *index), Vec::<String>::new(), "{name}, {many}");
            work(&mut *index);
            index.close().unwrap();
        };
        let put = |index: &mut dyn Index, number: u32| {
            index.update(&[Update::Put { key: &key(number), value: &[7; 300] }]).unwrap();
        };
        session(&|index| (0..many * 400).for_each(|number| put(index, number)));
        session(&|index| {
            index.checkpoint(Some("name")).unwrap();
        });
        session(&|index| (0..many * 100).for_each(|number| put(index, number)));
        session(&|index| index.forget("name").unwrap());
        session(&|_| {});
    }
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

/// The versions of keys in a run: true for a put, false for a delete.
type Versions = BTreeMap<[u8; 4], bool>;

/// What merges count, told by nothing but which updates there were and when a merge ended.
#[derive(Default)]
struct Expected {
    /// The head that takes updates, and one whose merge has begun.
    head: Versions,
    full: Option<Versions>,
    /// Those of levels 1, 2, ...; none where nothing is.
    levels: Vec<Versions>,
    merges: [u64; 5],
    entries: u64,
    filters_met: u64,
}

impl Expected {
    /// The head is merged from now on.
    fn begin(&mut self) {
        assert!(self.full.is_none(), "a merge ends before the next one begins");
        self.full = Some(core::mem::take(&mut self.head));
    }

    /// The merge has ended in `level`, all levels down to it in one pass; returns how many entries
    /// it took in, and how many it left.
    fn end(&mut self, level: usize) -> (u64, u64) {
        let mut newest = self.full.take().expect("a merge has begun");
        let mut met: BTreeSet<[u8; 4]> = BTreeSet::new();
        if self.levels.len() < level {
            self.levels.resize(level, Versions::new());
        }
        let mut taken = newest.len();
        for older in self.levels[..level].iter_mut().map(core::mem::take) {
            taken += older.len();
            for (key, is_put) in older {
                match newest.entry(key) {
                    Entry::Vacant(place) => {
                        place.insert(is_put);
                    }
                    Entry::Occupied(_) => {
                        met.insert(key);
                    }
                }
            }
        }
        self.filters_met += met.iter().filter(|key| !newest[*key]).count() as u64;
        if self.levels[level..].iter().all(Versions::is_empty) {
            newest.retain(|_, is_put| *is_put);
        }
        self.entries += newest.len() as u64;
        self.merges[level.min(5) - 1] += 1;
        let left = newest.len();
        self.levels[level - 1] = newest;
        (taken as u64, left as u64)
    }
}

/// The figures of merges by the level that they ended in.
const MERGES_INTO: [&str; 5] = [
    "merges into level 1",
    "merges into level 2",
    "merges into level 3",
    "merges into level 4",
    "merges into deeper levels",
];

/// Entries of 8 bytes and 2 bits in a page of 512 bytes, at most.
const ENTRIES_A_PAGE: u64 = 61;

/// Every figure that merges have, against a model of sets: a merge goes to the first level with
/// room for it, and its entries and the deletes that met something are those of the sets.
fn merges_count_what_they_did(name: &str, deamortized: &str) {
    let mut disk =
        SimulatedDisk::new(SectorGeometry::new(512, 40_000).unwrap(), DiskCosts::default());
    let entry = find(name).unwrap();
    let given = [("ratio", "4"), ("head", "8192"), ("deamortized", deamortized)];
    let settings = Settings::parse(entry.name, entry.parameters, given).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 1 << 20, settings);
    options.durability = Some(Durability::None);
    let mut index = (entry.create)(Medium::Sectors(Box::new(&mut disk)), &options).unwrap();
    let into = |index: &dyn Index| MERGES_INTO.map(|name| figure(index, name));
    let mut expected = Expected::default();
    for number in 0..60_000 {
        // Keys come again a little later, and much later.
        let key = key(if number % 3 == 0 { number / 2 } else { number % 20_000 });
        let is_put = number % 5 != 2;
        let update = if is_put {
            Update::Put { key: &key, value: &key }
        } else {
            Update::Delete { key: &key }
        };
        let before = into(&*index);
        index.update(&[update]).unwrap();
        let (after, merges) = (into(&*index), figure(&*index, "merges"));
        let is_under_way = figure(&*index, index::MERGES_BROKEN_OFF) > 0;
        if expected.full.is_none() && after != before {
            expected.begin();
        }
        if let Some(place) = (0..after.len()).find(|place| after[*place] != before[*place]) {
            assert_eq!(after.iter().sum::<u64>(), before.iter().sum::<u64>() + 1, "{name}");
            let (taken, left) = expected.end(place + 1);
            let capacity = |level: usize| 16 * 4_u64.pow(level as u32);
            assert!(left <= capacity(place + 1) * ENTRIES_A_PAGE, "{name}: {left} in {place}");
            if place > 0 {
                // With fences and ends of pages nine tenths are entries, and levels above had some.
                let had_room = taken * 10 < capacity(place) * ENTRIES_A_PAGE * 6;
                assert!(!had_room, "{name}: {taken} entries went to level {}", place + 1);
            }
            let found =
                ["entries written by merges", "deletes that met an older version in merges"];
            let found = found.map(|name| figure(&*index, name));
            assert_eq!(found, [expected.entries, expected.filters_met], "{name}, merge {merges}");
            let there = expected.levels.iter().filter(|level| !level.is_empty()).count();
            assert_eq!(figure(&*index, "levels"), there as u64);
            assert_eq!((merges, after), (expected.merges.iter().sum(), expected.merges));
        }
        if is_under_way && expected.full.is_none() {
            expected.begin();
        }
        expected.head.insert(key, is_put);
    }
    assert!(expected.merges[..3].iter().all(|merges| *merges > 2), "{:?}", expected.merges);
    assert!(expected.filters_met > 2000, "{}", expected.filters_met);
    let tally = *index.meter().unwrap().tally(Cause::Merge);
    let units = ["units read by merges", "units written by merges"].map(|it| figure(&*index, it));
    // Runs of fences end with the run below them, and a run has a footer: those are no units of
    // entries, and a run that goes may have had fences that were not read.
    for (units, pages) in units.into_iter().zip([tally.page_reads, tally.page_programs]) {
        let off = (units as f64 / pages as f64 - 1.0).abs();
        assert!(off < 0.05, "{name}, {deamortized}: {units} units and {pages} pages");
    }
}

#[test]
fn merges_count_their_levels_entries_and_filters() {
    for name in ["fd-tree", "lsm"] {
        for deamortized in ["off", "on"] {
            merges_count_what_they_did(name, deamortized);
        }
    }
}
