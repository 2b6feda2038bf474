//! The memory budget is hard: the heap that a tree takes never exceeds it.
//!
//! Every allocation is counted, except those of the device below, which is told apart by a wrapper.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use device::{Cause, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_contract::tree::{Case, Ground, Stand, cases};
use index::registry::{MediumShape, TREES};
use index::{Cursor, Index, KeyRange, Update, Width};

/// What the budget may be exceeded by: the tree's own struct and a cursor's.
const SLACK_BYTES: i64 = 4096;

thread_local! {
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static TAKEN: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64) {
    if COUNTING.get() {
        TAKEN.set(TAKEN.get() + bytes);
        PEAK.set(PEAK.get().max(TAKEN.get()));
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts what `work` allocates, or does not.
fn counted<R>(counting: bool, work: impl FnOnce() -> R) -> R {
    let before = COUNTING.replace(counting);
    let outcome = work();
    COUNTING.set(before);
    outcome
}

/// A disk whose own allocations don't count.
struct Uncounted<S>(S);

impl<S: Sectors> Sectors for Uncounted<S> {
    fn geometry(&self) -> SectorGeometry {
        self.0.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        counted(false, || self.0.read(requests, cause))
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        counted(false, || self.0.write(first, from, cause))
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        counted(false, || self.0.trim(first, count, cause))
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        counted(false, || self.0.flush(cause))
    }
}

/// Some work of every kind: puts, gets, ranges, deletes, in an order that splits and merges.
fn work(index: &mut dyn Index, case: &Case) {
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
    let mut ascending = Ascending { next: 0, key, value };
    assert_eq!(index.load(&mut ascending, 80), Ok(2000));
    index.close().unwrap();
}

/// Entries in ascending order, for loading.
struct Ascending {
    next: u32,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Cursor for Ascending {
    fn next(&mut self) -> index::Result<Option<(&[u8], &[u8])>> {
        if self.next == 2000 {
            return Ok(None);
        }
        self.next += 1;
        self.key[..4].copy_from_slice(&self.next.to_be_bytes());
        Ok(Some((&self.key, &self.value)))
    }
}

#[test]
fn the_heap_taken_never_exceeds_the_budget_and_the_stated_tables() {
    let mut tried = 0;
    for case in TREES.iter().flat_map(|entry| cases(entry)) {
        if !matches!(case.stand, Stand::Ram) {
            continue;
        }
        let mut ground = case.ground(1 << 20);
        for open in [false, true] {
            TAKEN.set(0);
            PEAK.set(0);
            let budget = budget_bytes(&case, &ground);
            let mut tables = 0;
            counted(true, || {
                let mut index =
                    case.index_over(&mut ground, open, |disk| Box::new(Uncounted(disk)));
                tables = index.statistics().memory.tables as i64;
                if open {
                    let absent = [0; 8];
                    let key = &absent[..bytes(case.shape.shape.key)];
                    assert_eq!(index.get(key, 0, &mut []), Ok(None));
                    index.check(&mut |finding| panic!("{finding}")).unwrap();
                    index.update(&[Update::Delete { key }]).unwrap();
                    index.close().unwrap();
                } else {
                    work(&mut *index, &case);
                }
            });
            let peak = PEAK.get();
            let name = case.name();
            let limit = budget + tables + SLACK_BYTES;
            assert!(peak <= limit, "{name}: {peak} bytes of a budget of {budget}");
            tried += 1;
        }
        assert!(PEAK.get() > 1000, "{}: nothing was counted", case.name());
    }
    assert!(tried > 100, "{tried} runs");
}

/// The memory that the case gives its tree.
fn budget_bytes(case: &Case, ground: &Ground) -> i64 {
    let Ground::Ram(disk) = ground else { panic!("{} stands on no disk", case.name()) };
    case.options(MediumShape::Sectors(disk.geometry())).memory_bytes as i64
}

fn bytes(width: Width) -> usize {
    match width {
        Width::Fixed(bytes) => usize::from(bytes),
        Width::Variable => 8,
    }
}
