//! The memory budget is hard: the heap that a tree takes never exceeds it.
//!
//! Every allocation is counted, except those of the device below, which is told apart by a wrapper.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod heap;

use allocation_counter::measure;
use contract::on_all_cores;
use contract::tree::{Case, Stand, Storage, cases};
use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use heap::uncounted;
use index::MediumShape;
use index::{Cursor, Index, KeyRange, KeyValue, Update, Value, Width, read_piece};

/// What the budget may be exceeded by: the tree's own struct and a cursor's.
const SLACK_BYTES: u64 = 4096;

/// A disk whose own allocations don't count.
struct Uncounted<S>(S);

impl<S: Sectors> Sectors for Uncounted<S> {
    fn geometry(&self) -> SectorGeometry {
        self.0.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        uncounted(|| self.0.read(requests, cause))
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        uncounted(|| self.0.write(first, from, cause))
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        uncounted(|| self.0.trim(first, count, cause))
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        uncounted(|| self.0.flush(cause))
    }
}

/// The bytes of tables that the index states beside its budget.
fn tables(index: &dyn Index) -> u64 {
    uncounted(|| index.statistics().memory.tables)
}

/// Some work of every kind: puts, gets, ranges, deletes, in an order that splits and merges.
/// Returns the most bytes that the index stated for its tables.
fn work(index: &mut dyn Index, case: &Case) -> u64 {
    let mut most = tables(index);
    let mut key = vec![0; bytes(case.shape.shape.key)];
    let value = vec![7; bytes(case.shape.shape.value)];
    let set = |key: &mut Vec<u8>, number: u32| {
        key[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    };
    for number in 0..3000 {
        set(&mut key, number);
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        set(&mut key, number / 2);
        let mut into = [0; 8];
        assert!(index.get(&key, 0, &mut into).unwrap().is_some());
        most = most.max(tables(index));
    }
    let mut cursor = index.range(KeyRange::ALL.reversed()).unwrap();
    let mut entries = 0;
    while cursor.next().unwrap().is_some() {
        entries += 1;
    }
    assert_eq!(entries, 3000);
    drop(cursor);
    index.check(&mut |finding| panic!("{finding}")).unwrap();
    for number in 0..3000 {
        set(&mut key, number);
        index.update(&[Update::Delete { key: &key }]).unwrap();
    }
    let has_long_values = case.has_long_values();
    if has_long_values {
        work_with_a_long_value(index);
    }
    let mut ascending = Ascending { next: 0, key, value, has_long_values };
    assert_eq!(index.load(&mut ascending, 80), Ok(2000));
    most = most.max(tables(index));
    index.close().unwrap();
    most
}

/// Bytes of a value that is far longer than the memory.
const LONG_BYTES: usize = 1 << 20;

/// Bytes that are read of a long value at a time.
const PIECE_BYTES: usize = 512;

fn long_byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9E37_79B9) >> 11) as u8
}

/// Puts, overwrites, reads and deletes a value of 1 MiB, alone in the index.
fn work_with_a_long_value(index: &mut dyn Index) {
    // The value itself is the caller's.
    let value: Vec<u8> = uncounted(|| (0..LONG_BYTES).map(long_byte).collect());
    index.update(&[Update::Put { key: b"long", value: &value[..70_000] }]).unwrap();
    index.update(&[Update::Put { key: b"long", value: &value }]).unwrap();
    uncounted(|| drop(value));
    index.check(&mut |finding| panic!("{finding}")).unwrap();
    let mut into = [0; PIECE_BYTES];
    for offset in (0..LONG_BYTES).step_by(PIECE_BYTES) {
        let found = index.get(b"long", offset as u32, &mut into).unwrap();
        assert_eq!(found, Some(LONG_BYTES as u32));
        assert!(into.iter().enumerate().all(|(at, byte)| *byte == long_byte(offset + at)));
    }
    let mut cursor = index.range(KeyRange::ALL).unwrap();
    assert_eq!(cursor.next(), Ok(Some((&b"long"[..], Value::Long(LONG_BYTES as u32)))));
    for offset in (0..LONG_BYTES).step_by(PIECE_BYTES) {
        assert_eq!(cursor.read_value(offset as u32, &mut into), Ok(LONG_BYTES as u32));
        assert!(into.iter().enumerate().all(|(at, byte)| *byte == long_byte(offset + at)));
    }
    assert_eq!(cursor.next(), Ok(None));
    drop(cursor);
    index.update(&[Update::Delete { key: b"long" }]).unwrap();
}

/// Entries in ascending order, for loading.
struct Ascending {
    next: u32,
    key: Vec<u8>,
    value: Vec<u8>,
    /// True if every hundredth value is a long one.
    has_long_values: bool,
}

impl Ascending {
    fn is_long(&self) -> bool {
        self.has_long_values && self.next.is_multiple_of(100)
    }
}

/// Bytes of a long value that is loaded.
const LOADED_BYTES: u32 = 20_000;

impl Cursor for Ascending {
    fn next(&mut self) -> index::Result<Option<KeyValue<'_>>> {
        if self.next == 2000 {
            return Ok(None);
        }
        self.next += 1;
        self.key[..4].copy_from_slice(&self.next.to_be_bytes());
        let value = match self.is_long() {
            true => Value::Long(LOADED_BYTES),
            false => Value::Inline(&self.value),
        };
        Ok(Some((&self.key, value)))
    }

    fn read_value(&mut self, offset: u32, into: &mut [u8]) -> index::Result<u32> {
        if self.is_long() {
            let left = LOADED_BYTES.saturating_sub(offset) as usize;
            let length = left.min(into.len());
            into[..length].fill(9);
            return Ok(LOADED_BYTES);
        }
        Ok(read_piece(&self.value, offset, into))
    }
}

/// Makes the index, works with it, and opens it again: the heap taken stays inside the budget.
fn check_heap(case: &Case) {
    // A journal has a share of the disk, and a long value has to fit it.
    let has_long_values = case.has_long_values();
    let mut storage = case.storage(if has_long_values { 64 << 20 } else { 1 << 20 });
    let mut peak = 0;
    for open in [false, true] {
        let budget = budget_bytes(case, &storage);
        let mut tables = 0;
        let taken = measure(|| {
            let mut index = case.index_over(&mut storage, open, |disk| Box::new(Uncounted(disk)));
            tables = self::tables(&*index);
            if open {
                let absent = [0; 8];
                let key = &absent[..bytes(case.shape.shape.key)];
                assert_eq!(index.get(key, 0, &mut []), Ok(None));
                index.check(&mut |finding| panic!("{finding}")).unwrap();
                index.update(&[Update::Delete { key }]).unwrap();
                index.close().unwrap();
            } else {
                tables = work(&mut *index, case);
            }
        });
        peak = taken.bytes_max;
        let name = case.name();
        let limit = budget + tables + SLACK_BYTES;
        assert!(peak <= limit, "{name}: {peak} bytes, {budget} and {tables} for tables");
    }
    assert!(peak > 1000, "{}: nothing was counted", case.name());
}

#[test]
fn the_heap_taken_never_exceeds_the_budget_and_the_stated_tables() {
    let all = TREES.iter().flat_map(|entry| cases(entry));
    let on_disk: Vec<_> = all.filter(|case| matches!(case.stand, Stand::Ram)).collect();
    assert!(on_disk.len() > 50, "{} cases", on_disk.len());
    on_all_cores(&on_disk, check_heap);
}

/// The memory that the case gives its tree.
fn budget_bytes(case: &Case, storage: &Storage) -> u64 {
    let Storage::Ram(disk) = storage else { panic!("{} stands on no disk", case.name()) };
    case.options(MediumShape::Sectors(disk.geometry())).memory_bytes
}

fn bytes(width: Width) -> usize {
    match width {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => 8,
    }
}
