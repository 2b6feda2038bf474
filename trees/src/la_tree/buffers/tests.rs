use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use device::{Cause, Geometry, NandCosts};
use sim::SimulatedNand;
use store::{EntryShape, PageLog, PageLogOptions};

use super::{BufferSizes, Buffers, LISTED_MOST, Wanted};
use crate::la_tree::buffer_pool::PoolSize;
use crate::la_tree::layout::{Owner, PageShape};
use crate::la_tree::storage::Storage;
use crate::la_tree::stream::{Form, Pending};

const CAUSE: Cause = Cause::Update;

pub(in super::super) const SHAPE: EntryShape = EntryShape::fixed(4, 4);

fn geometry() -> Geometry {
    Geometry::new(512, 32, 64).unwrap()
}

/// An empty chip.
pub(in super::super) fn chip() -> Storage<'static> {
    let chip = Box::new(SimulatedNand::new(geometry(), NandCosts::default()));
    Storage::Chip(PageLog::create(chip, &PageLogOptions::default()).unwrap())
}

/// No buffers yet, for that chip, with a pool of so many bytes.
pub(in super::super) fn none(pool: u64) -> Buffers {
    none_with_fences(pool, 0)
}

/// The same, which know so many fragments.
fn none_with_fences(pool: u64, fences: usize) -> Buffers {
    let pages = PageShape::new(&geometry(), 128).unwrap();
    let pool = PoolSize::fixed(pool);
    let sizes = BufferSizes { pool, entry_most: 12, entry_least: 4, fences };
    Buffers::new(Form::new(SHAPE), pages, &sizes)
}

/// So many buffers, every other one of a leaf subtree, over a small pool on a chip.
fn parts(count: u32) -> (Storage<'static>, Buffers) {
    let (log, mut buffers) = (chip(), none(3000));
    for number in 0..count {
        buffers.begin(&log, number, number % 2 == 0).unwrap();
    }
    (log, buffers)
}

type Entry = Option<[u8; 4]>;
type Entries = BTreeMap<(u32, [u8; 4]), Entry>;

/// Puts and deletes of some keys over and over, in all buffers.
fn fill(log: &mut Storage<'_>, buffers: &mut Buffers, updates: u32) -> Entries {
    let count = buffers.records.len() as u32;
    let mut newest = Entries::new();
    for number in 0..updates {
        let (buffer, key) =
            (number % count, (number.wrapping_mul(0x9E37_79B1) >> 25).to_be_bytes());
        let value = (number % 3 > 0).then_some(number.to_be_bytes());
        let entry = Pending { key: &key, value: value.as_ref().map(|value| &value[..]) };
        buffers.append(log, buffer, &entry, CAUSE).unwrap();
        newest.insert((buffer, key), value);
    }
    newest
}

fn value(entry: &Pending<'_>) -> Entry {
    entry.value.map(|value| value.try_into().unwrap())
}

/// The newest entry of each key of a buffer, of all that a scan hands over.
fn scanned(log: &mut Storage<'_>, buffers: &mut Buffers, number: u32) -> BTreeMap<[u8; 4], Entry> {
    let mut newest = BTreeMap::<[u8; 4], (u64, Entry)>::new();
    let take = &mut |entry: &Pending<'_>, age: u64| {
        let found = newest.entry(entry.key.try_into().unwrap()).or_insert((age, value(entry)));
        if age >= found.0 {
            *found = (age, value(entry));
        }
    };
    buffers.scan(log, number, take).unwrap();
    newest.into_iter().map(|(key, (_, value))| (key, value)).collect()
}

#[test]
fn the_newest_entry_of_a_key_is_found_whether_it_is_in_the_pool_or_on_flash() {
    let (mut log, mut buffers) = parts(4);
    let newest = fill(&mut log, &mut buffers, 2000);
    let held: u32 = (0..4).map(|number| buffers.pool.held(super::BufferId(number)).entries).sum();
    assert!(held > 20 && held < 1000, "{held} entries of 2,000 are in the pool");
    for ((buffer, key), expected) in &newest {
        let found = buffers.find(&mut log, *buffer, key, &mut value).unwrap();
        assert_eq!(found, Some(*expected), "{key:?} in {buffer}");
    }
    assert_eq!(buffers.find(&mut log, 0, &[9; 4], &mut value).unwrap(), None);
    for number in 0..4 {
        let of_this = newest.iter().filter(|(at, _)| at.0 == number);
        let expected: BTreeMap<_, _> = of_this.map(|(at, value)| (at.1, *value)).collect();
        assert_eq!(scanned(&mut log, &mut buffers, number), expected);
    }
}

#[test]
fn what_waits_is_counted_by_kinds_of_subtrees_and_in_bytes() {
    let (mut log, mut buffers) = parts(4);
    fill(&mut log, &mut buffers, 2000);
    buffers.begin_anew(&log, 2).unwrap();
    buffers.end(1);
    let all: Vec<_> = buffers.records.iter().copied().collect();
    let of = |is_leaf| {
        let records = all.iter().filter(|record| record.is_leaf() == is_leaf);
        records.map(|record| u64::from(record.entries())).sum::<u64>()
    };
    assert_eq!(buffers.pending, [of(false), of(true)]);
    assert_eq!(buffers.pending, [500, 500], "one of each kind has nothing now");
    assert_eq!(buffers.pending_bytes, all.iter().map(|record| u64::from(record.bytes)).sum());
    buffers.forget();
    assert_eq!((buffers.pending, buffers.pending_bytes), ([0; 2], 0));
}

#[test]
fn a_buffer_that_begins_anew_reads_none_of_its_old_fragments() {
    let (mut log, mut buffers) = parts(2);
    let newest = fill(&mut log, &mut buffers, 600);
    buffers.evict(&mut log, 0, CAUSE).unwrap();
    let before = buffers.record(0);
    assert!(before.is_chained() && before.entries() == 300);
    buffers.begin_anew(&log, 0).unwrap();
    let after = buffers.record(0);
    assert!(!after.is_chained() && after.entries() == 0 && after.owner != before.owner);
    assert_eq!(scanned(&mut log, &mut buffers, 0), BTreeMap::new());
    for (buffer, key) in newest.keys() {
        let found = buffers.find(&mut log, *buffer, key, &mut value).unwrap();
        assert_eq!(found.is_some(), *buffer == 1);
    }
}

#[test]
fn lookups_are_told_what_lookups_pay_and_ranges_what_ranges_do() {
    let (mut log, mut buffers) = (chip(), none_with_fences(3000, 64));
    buffers.begin(&log, 0, true).unwrap();
    fill(&mut log, &mut buffers, 2000);
    let paid = |buffers: &Buffers| [false, true].map(|range| buffers.paid_of(1000, range));
    scanned(&mut log, &mut buffers, 0);
    assert_eq!(paid(&buffers), [1000; 2], "nothing was measured");
    let all = Wanted::all(0..=u64::MAX);
    for _ in 0..2 {
        buffers.scan_chain(&mut log, 0, &all, &mut |_, _| ()).unwrap();
    }
    assert_eq!(paid(&buffers), [1000; 2], "ranges read all that they came to");
    for _ in 0..50 {
        assert_eq!(buffers.find(&mut log, 0, &[9; 4], &mut value).unwrap(), None);
    }
    assert_eq!(paid(&buffers), [0, 1000], "lookups passed all by");
}

#[test]
fn a_fragment_of_another_owner_is_damage() {
    let (mut log, mut buffers) = parts(2);
    fill(&mut log, &mut buffers, 200);
    buffers.evict(&mut log, 0, CAUSE).unwrap();
    let mut record = buffers.record(0);
    record.owner = Owner(record.owner.0 + 7);
    buffers.set_record(0, record);
    assert!(buffers.find(&mut log, 0, &[9; 4], &mut value).is_err());
    assert!(buffers.scan(&mut log, 0, &mut |_, _| ()).is_err());
}

#[test]
fn buffers_to_be_emptied_are_listed_once_and_each_has_its_turn() {
    let count = 3 * LISTED_MOST as u32;
    let (_, mut buffers) = parts(count);
    let order: Vec<u32> = (0..count).map(|number| number * 5 % count).collect();
    for number in order.iter().chain(&order) {
        buffers.list(*number);
    }
    assert!(order.iter().all(|number| buffers.is_listed(*number)));
    let mut taken: Vec<u32> = core::iter::from_fn(|| buffers.take_listed()).collect();
    assert_eq!(taken[..LISTED_MOST], order[..LISTED_MOST], "the first are listed in their order");
    taken.sort_unstable();
    assert_eq!(taken, (0..count).collect::<Vec<_>>());
    assert!(!order.iter().any(|number| buffers.is_listed(*number)));
}
