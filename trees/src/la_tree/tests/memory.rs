//! The memory of the lazy-adaptive tree: the heap that it takes stays within its budget, the tables
//! that it states, and the slack of all trees.

use allocation_counter::measure;
use device::{Geometry, NandCosts};
use index::parameters::Settings;
use index::{Cursor, Durability, EntryShape, Error, Index, KeyRange, KeyValue, Update, Value};
use index::{MediumShape, Options};
use sim::SimulatedNand;

/// What the budget may be exceeded by: a cursor, and what recording updates takes.
const SLACK_BYTES: u64 = 1024;

/// Some work of every kind; returns the most bytes of tables that the tree stated.
fn work(index: &mut dyn Index) -> u64 {
    let key = |number: u32| number.wrapping_mul(0x9E37_79B9).to_be_bytes();
    let mut tables = 0;
    for number in 0..3000 {
        index.update(&[Update::Put { key: &key(number), value: &[7; 4] }]).unwrap();
        let mut into = [0; 8];
        assert!(index.get(&key(number / 2), 0, &mut into).unwrap().is_some());
        tables = tables.max(index.statistics().memory.tables);
    }
    for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
        let mut cursor = index.range(range).unwrap();
        let mut entries = 0;
        while cursor.next().unwrap().is_some() {
            entries += 1;
        }
        assert_eq!(entries, 3000);
    }
    for number in 0..2000 {
        index.update(&[Update::Delete { key: &key(number) }]).unwrap();
    }
    tables
}

/// Lookups of all keys that are there, which want nodes, and updates with lookups of a few keys,
/// which want the pool, in turns.
fn alternate(index: &mut dyn Index) {
    let mut random: u32 = 5;
    let mut draw = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 4).wrapping_mul(0x9E37_79B9)
    };
    let mut into = [0; 8];
    for round in 0..4 {
        for step in 0..6000 {
            if round % 2 == 0 || step % 50 == 0 {
                index
                    .update(&[Update::Put { key: &draw().to_be_bytes(), value: &[7; 4] }])
                    .unwrap();
            }
            let key = if round % 2 == 0 { step % 4 } else { draw() };
            index.get(&key.to_be_bytes(), 0, &mut into).unwrap();
        }
    }
}

#[test]
fn the_heap_taken_never_exceeds_the_budget_and_the_stated_tables() {
    for (page, times) in [(512, 1), (512, 4), (2048, 1), (2048, 2), (4096, 1), (4096, 8)] {
        for durability in Durability::ALL {
            stay_within_budget(page, times, durability, "fixed");
        }
    }
}

#[test]
fn memory_that_is_shared_is_lent_without_exceeding_the_budget() {
    let mut moved = [0, 0];
    for (page, times) in [(512, 1), (512, 4), (512, 8), (2048, 2), (4096, 4)] {
        for durability in [Durability::None, Durability::Batch] {
            let [to_nodes, to_pool] = stay_within_budget(page, times, durability, "shared");
            moved[0] += to_nodes;
            moved[1] += to_pool;
        }
    }
    assert!(moved.iter().all(|moved| *moved > 0), "moved {moved:?} times");
}

/// Keys in their order, 16 apart.
struct Sorted {
    next: u32,
    entries: u32,
    key: [u8; 4],
}

impl Cursor for Sorted {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        if self.next == self.entries {
            return Ok(None);
        }
        self.key = (16 * self.next).to_be_bytes();
        self.next += 1;
        Ok(Some((&self.key, Value::Inline(&[7; 4]))))
    }

    fn read_value(&mut self, _: u32, _: &mut [u8]) -> index::Result<u32> {
        Ok(0)
    }
}

/// A load fills no buffer, so what is known of each comes later: with the updates, and with the
/// deletes, which are always taken. A load of `entries` leaves little room for that.
fn tables_stay_within(page: u32, entries: u32, tables_most: u64) -> bool {
    let entry = flashtree_trees::find("la-tree").unwrap();
    let chip = Geometry::new(page, 32, (64 << 20) / page / 32).unwrap();
    let settings = Settings::parse("la-tree", entry.parameters, []).unwrap();
    let mut options = Options::new(EntryShape::fixed(4, 4), 0, settings);
    options.memory_bytes = 4 * entry.least_memory(&options, MediumShape::Nand(chip)).unwrap();
    options.tables_bytes = Some(tables_most);
    let nand = SimulatedNand::new(chip, NandCosts::default());
    let mut index = (entry.create)(device::Medium::Nand(Box::new(nand)), &options).unwrap();
    let name = format!("{page} bytes a page, {entries} entries, {tables_most} bytes of tables");
    let all = options.memory_bytes + tables_most;
    let check = |index: &dyn Index, doing: &str| {
        let memory = index.statistics().memory;
        let taken = memory.cache + memory.buffers + memory.tables;
        assert!(taken <= all, "{name}: {taken} of {all} after {doing}");
    };
    let loaded = index.load(&mut Sorted { next: 0, entries, key: [0; 4] }, 70);
    check(&*index, "the load");
    let mut refused = loaded.is_err();
    for number in 0..20_000u32 {
        let key = (number.wrapping_mul(0x9E37_79B9) % (16 * entries)).to_be_bytes();
        let deletes = number % 2 == 0;
        let update = match deletes {
            true => Update::Delete { key: &key },
            false => Update::Put { key: &key, value: &[7; 4] },
        };
        let updated = index.update(&[update]);
        assert!(updated.is_ok() || !deletes, "{name}: {updated:?}");
        refused |= updated.is_err();
        check(&*index, "an update");
    }
    index.close().unwrap();
    check(&*index, "closing it");
    refused
}

#[test]
fn all_memory_stays_within_its_bound_after_a_load() {
    let mut refused = 0;
    for (page, of) in [(512, 120_000), (2048, 400_000)] {
        for entries in (1..=8).map(|eighths| of * eighths / 8) {
            refused += u32::from(tables_stay_within(page, entries, 96 << 10));
        }
    }
    assert!((4..16).contains(&refused), "{refused} of 16 were refused something");
}

#[test]
fn nodes_are_larger_where_tables_would_leave_too_little_of_all_memory() {
    let entry = flashtree_trees::find("la-tree").unwrap();
    let tables = |spare, all: u64, entries, fanout: Option<&'static str>| {
        let chip = Geometry::new(512, 32, 1024).unwrap().with_spare(spare).unwrap();
        let given = fanout.map(|fanout| ("fanout", fanout));
        let settings = Settings::parse("la-tree", entry.parameters, given).unwrap();
        let options = Options {
            entries: Some(entries),
            tables_bytes: Some(all / 4),
            ..Options::new(EntryShape::fixed(4, 4), all / 4 * 3, settings)
        };
        (entry.footprint)(&options, MediumShape::Nand(chip)).unwrap().tables
    };
    for (spare, kib, entries, fanout) in [
        (16, 1024, 400_000, "16"),
        (16, 512, 150_000, "16"),
        (16, 256, 400_000, "32"),
        (16, 128, 400_000, "64"),
        // None leaves enough.
        (16, 64, 400_000, "16"),
        // A page has 496 bytes for nodes.
        (0, 256, 400_000, "30"),
        (0, 128, 400_000, "62"),
    ] {
        let chosen = tables(spare, kib << 10, entries, None);
        let given = tables(spare, kib << 10, entries, Some(fanout));
        assert_eq!(chosen, given, "{entries} in {kib} KiB");
    }
}

/// Puts until the tables have no memory left, and lookups; returns how many keys there are, and
/// the most bytes of tables.
fn fill_tables(index: &mut dyn Index, durability: Durability) -> (u32, u64) {
    let key = |number: u32| number.wrapping_mul(0x9E37_79B9).to_be_bytes();
    let (mut into, mut tables) = ([0; 8], 0);
    for number in 0..200_000 {
        let update = Update::Put { key: &key(number), value: &number.to_le_bytes() };
        match index.update(&[update]) {
            Ok(()) => {}
            Err(Error::Store(store::Error::LittleTables { .. })) => return (number, tables),
            Err(error) => panic!("{error}"),
        }
        assert!(index.get(&key(number / 2), 0, &mut into).unwrap().is_some());
        tables = tables.max(index.statistics().memory.tables);
        if number % 5_000 == 0 && durability.has_journal() {
            index.sync().unwrap();
        }
    }
    panic!("tables of {tables} bytes were never too large");
}

#[test]
fn tables_that_outgrow_their_own_memory_take_of_pool_and_cache() {
    let entry = flashtree_trees::find("la-tree").unwrap();
    for (durability, memory_bytes) in
        [(Durability::None, 80 << 10), (Durability::Batch, 96 << 10), (Durability::None, 128 << 10)]
    {
        let tables_most = 24 << 10;
        let chip = Geometry::new(512, 32, 2048).unwrap();
        let settings = Settings::parse("la-tree", entry.parameters, []).unwrap();
        let options = Options {
            durability: Some(durability),
            tables_bytes: Some(tables_most),
            ..Options::new(EntryShape::fixed(4, 4), memory_bytes, settings)
        };
        let mut nand = SimulatedNand::new(chip, NandCosts::default());
        let (mut keys, mut tables) = (0, 0);
        let name = format!("{durability}, {memory_bytes} bytes and {tables_most} of tables");
        for is_new in [true, false] {
            let taken = measure(|| {
                let make = if is_new { entry.create } else { entry.open };
                let mut index = make(crate::chip::uncounted_chip(&mut nand), &options).unwrap();
                if is_new {
                    (keys, tables) = fill_tables(&mut *index, durability);
                }
                let mut into = [0; 8];
                for number in (1..keys).step_by(3) {
                    let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
                    assert_eq!(index.get(&key, 0, &mut into).unwrap(), Some(4), "{name}");
                    assert_eq!(into[..4], number.to_le_bytes(), "{name}");
                }
                for number in (0..keys).step_by(3) {
                    let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
                    index.update(&[Update::Delete { key: &key }]).unwrap();
                    index.update(&[Update::Put { key: &key, value: &number.to_le_bytes() }]).ok();
                }
                index.close().unwrap();
            });
            let (peak, all) = (taken.bytes_max, memory_bytes + tables_most);
            println!("{name}, new {is_new}: {keys} keys, {tables} of tables, {peak} in all");
            assert!(tables > tables_most + memory_bytes / 8, "{name}: {tables} of tables");
            assert!(peak <= all + SLACK_BYTES, "{name}: {peak} of {all}");
        }
    }
}

/// Holds a tree to the least memory so many times, and opens it with the least; returns how often
/// memory moved to nodes and to the pool.
fn stay_within_budget(page: u32, times: u64, durability: Durability, share: &str) -> [u64; 2] {
    let entry = flashtree_trees::find("la-tree").unwrap();
    let chip = Geometry::new(page, 16, (6 << 20) / page / 16).unwrap();
    let settings = Settings::parse("la-tree", entry.parameters, [("share", share)]).unwrap();
    let mut options = Options {
        durability: Some(durability),
        ..Options::new(EntryShape::fixed(4, 4), 0, settings)
    };
    let least = entry.least_memory(&options, MediumShape::Nand(chip)).unwrap();
    options.memory_bytes = least * times;
    let mut nand = SimulatedNand::new(chip, NandCosts::default());
    let (mut tables, mut moved) = (0, [0, 0]);
    for is_new in [true, false] {
        if !is_new {
            // However much it had before.
            options.memory_bytes = least;
        }
        let taken = measure(|| {
            let make = if is_new { entry.create } else { entry.open };
            let mut index = make(crate::chip::uncounted_chip(&mut nand), &options).unwrap();
            if is_new {
                tables = work(&mut *index);
                if share == "shared" {
                    alternate(&mut *index);
                    tables = tables.max(index.statistics().memory.tables);
                }
                index.metrics(&mut |name, number| match name {
                    "memory moved to nodes" => moved[0] = number,
                    "memory moved to the pool" => moved[1] = number,
                    _ => {}
                });
            } else {
                tables = tables.max(index.statistics().memory.tables);
                // With less memory buffers are smaller, so this may send much to the leaves.
                index.update(&[Update::Delete { key: &[0; 4] }]).unwrap();
                tables = tables.max(index.statistics().memory.tables);
            }
            index.close().unwrap();
        });
        let (peak, budget) = (taken.bytes_max, options.memory_bytes);
        println!(
            "{page} bytes a page, {durability}, {share}, new {is_new}: {peak} bytes of {budget} \
             and {tables} of tables"
        );
        assert!(peak > budget / 2, "nothing was counted");
        assert!(peak <= budget + tables + SLACK_BYTES, "{peak} of {budget} + {tables}");
    }
    moved
}
