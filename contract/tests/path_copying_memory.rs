//! The heap that the trees take which copy their paths, on raw flash. Every allocation is counted,
//! except those of the chip below.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use device::{Block, Cause, Geometry, Medium, Nand, NandCosts, Page, Result};
use index::parameters::Settings;
use index::registry::{Entry, MediumShape, Options, find};
use index::{Durability, EntryShape, Index, KeyRange, Update};
use sim::SimulatedNand;

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

/// A chip whose own allocations don't count.
struct Uncounted<'n>(&'n mut SimulatedNand);

impl Nand for Uncounted<'_> {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16> {
        counted(false, || self.0.read(page, offset, into, spare, cause))
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        counted(false, || self.0.program(page, offset, data, spare, cause))
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        counted(false, || self.0.erase(block, cause))
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        counted(false, || self.0.mark_bad(block))
    }
}

/// Some work of every kind; `value` bytes a value.
fn work(index: &mut dyn Index, records: u32, (key_bytes, value): (usize, usize)) {
    let mut key = vec![0; key_bytes];
    let value = vec![7; value];
    let mut set = |number: u32| {
        key[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
        key.clone()
    };
    for number in 0..records {
        let key = counted(false, || set(number));
        index.update(&[Update::Put { key: &key, value: &value }]).unwrap();
        let mut into = [0; 8];
        assert!(index.get(&key, 0, &mut into).unwrap().is_some());
        counted(false, || drop(key));
    }
    let mut cursor = index.range(KeyRange::ALL.reversed()).unwrap();
    let mut entries = 0;
    let mut before: Option<Vec<u8>> = None;
    while let Some((key, _)) = cursor.next().unwrap() {
        entries += 1;
        counted(false, || {
            assert!(
                before.as_deref().is_none_or(|before| before > key),
                "{key:?} after {before:?}"
            );
            let number = u32::from_be_bytes(*key.first_chunk().unwrap());
            let number = number.wrapping_mul(0x144C_BC89);
            assert!(number < records && key[4..].iter().all(|byte| *byte == 0), "{key:?} {number}");
            before = Some(key.to_vec());
        });
    }
    drop(cursor);
    assert_eq!(entries, records);
    index.check(&mut |finding| panic!("{finding}")).unwrap();
    for number in (0..records).step_by(2) {
        let key = counted(false, || set(number));
        index.update(&[Update::Delete { key: &key }]).unwrap();
        counted(false, || drop(key));
    }
    index.close().unwrap();
}

/// The most bytes that the tree takes while it is made and used, and while it is opened and used.
fn peaks(
    (entry, options): (&Entry, &Options),
    chip: Geometry,
    records: u32,
    entry_bytes: (usize, usize),
) -> [i64; 2] {
    let mut nand = SimulatedNand::new(chip, NandCosts::default());
    [entry.create, entry.open].map(|make| {
        TAKEN.set(0);
        PEAK.set(0);
        counted(true, || {
            let nand = Box::new(Uncounted(&mut nand));
            let mut index = make(Medium::Nand(nand), options).unwrap();
            work(&mut *index, records, entry_bytes);
        });
        PEAK.get()
    })
}

#[test]
fn mu_star_runs_in_16_kib_in_all_with_pages_of_2_kib() {
    const ALL: i64 = 16 << 10;
    let entry = find("mu-star").unwrap();
    let mut most = 0;
    // 128 MiB, as small SPI NAND chips have: 4 KiB of the memory are the table of blocks.
    let chip = Geometry::new(2048, 64, 1024).unwrap().with_spare(64).unwrap();
    for (key, value) in [(4, 4), (8, 8)] {
        for durability in Durability::ALL {
            let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
            let shape = EntryShape::fixed(key, value);
            let mut options = Options::new(shape, 0, settings);
            options.durability = Some(durability);
            options.journal_bytes = Some(16 << 10);
            let least = (entry.least_memory)(&options, MediumShape::Nand(chip)).unwrap();
            // What the tree itself and a cursor take, and a checkpoint's record, are not in it.
            options.memory_bytes = least;
            let bytes = (usize::from(key), usize::from(value));
            let peaks = peaks((entry, &options), chip, 12_000, bytes);
            println!("{shape}, {durability}: {peaks:?} bytes, with a budget of {least}");
            assert!(peaks.iter().all(|peak| *peak <= ALL), "{shape}, {durability}: {peaks:?}");
            most = peaks.into_iter().chain([most]).max().unwrap_or(most);
        }
    }
    println!("mu-star took at most {most} bytes");
}

#[test]
fn the_heap_taken_on_raw_flash_never_exceeds_the_budget_and_the_stated_tables() {
    let mut tried = 0;
    for tree in ["b-plus", "mu", "mu-star"] {
        for page_bytes in [2048, 4096] {
            for (spare, factor) in [(0, 1), (64, 2), (0, 16)] {
                for durability in Durability::ALL {
                    let entry = find(tree).unwrap();
                    let chip = Geometry::new(page_bytes, 16, 256).unwrap();
                    let chip = chip.with_spare(spare).unwrap();
                    let settings = Settings::parse(entry.name, entry.parameters, []).unwrap();
                    let shape =
                        if factor == 2 { EntryShape::VARIABLE } else { EntryShape::fixed(8, 4) };
                    let mut options = Options::new(shape, 0, settings);
                    options.durability = Some(durability);
                    let medium = MediumShape::Nand(chip);
                    let least = (entry.least_memory)(&options, medium).unwrap();
                    options.memory_bytes = least * factor;
                    println!("{tree}, {page_bytes}, {spare}, {factor}, {durability}");
                    let peaks = peaks((entry, &options), chip, 3_000, (8, 4));
                    // Tables: four bytes a block.
                    let limit = (options.memory_bytes + 4 * 256 + 4096) as i64;
                    let name = format!("{tree}, {page_bytes} B, {durability}, {factor} x least");
                    assert!(peaks.iter().all(|it| *it <= limit), "{name}: {peaks:?} of {limit}");
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 72);
}
