//! The memory budget is hard on raw flash, too: in use, while checkpoints are made, after an
//! opening with a journal, and while a rollback goes on.
//!
//! Every allocation counts, except those of the chip.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use allocation_counter::{measure, opt_out};
use device::{Block, Cause, Geometry, Medium, Nand, Page, Result};
use flashtree_contract::tree::{Case, Ground, Stand, cases};
use index::registry::{MediumShape, TREES};
use index::{Durability, Index, KeyRange, Update, Width};
use sim::SimulatedNand;

/// What the budget may be exceeded by: the tree's own struct, a cursor's, and a checkpoint's state.
const SLACK_BYTES: u64 = 4096;

/// Entries of the index: few enough for every tree on small pages.
const KEYS: u32 = 20;

/// How often all of them are put.
const ROUNDS: u8 = 40;

/// A chip whose own allocations don't count.
struct Uncounted<'n>(&'n mut SimulatedNand);

impl Uncounted<'_> {
    fn uncounted<R>(&mut self, work: impl FnOnce(&mut SimulatedNand) -> R) -> R {
        let mut outcome = None;
        opt_out(|| outcome = Some(work(self.0)));
        outcome.unwrap()
    }
}

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
        self.uncounted(|chip| chip.read(page, offset, into, spare, cause))
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        self.uncounted(|chip| chip.program(page, offset, data, spare, cause))
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.uncounted(|chip| chip.erase(block, cause))
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.uncounted(|chip| chip.is_bad(block))
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.uncounted(|chip| chip.mark_bad(block))
    }
}

/// Makes or opens the index of `case`, works with it, and lets go of it; no more memory may be
/// taken than the budget, and the tables that the index tells.
fn session(
    case: &Case,
    chip: &mut SimulatedNand,
    open: bool,
    work: impl FnOnce(&mut dyn Index, &mut Writes),
) {
    let options = case.options(MediumShape::Nand(chip.geometry()));
    let make = if open { case.entry.open } else { case.entry.create };
    let mut writes = Writes::new(case);
    let mut tables = 0;
    let taken = measure(|| {
        let mut index = make(Medium::Nand(Box::new(Uncounted(chip))), &options).unwrap();
        work(&mut *index, &mut writes);
        // A rollback may leave smaller ones than there were.
        tables = index.statistics().memory.tables.max(writes.tables);
    });
    let (peak, budget, name) = (taken.bytes_max, options.memory_bytes, case.name());
    assert!(
        peak <= budget + tables + SLACK_BYTES,
        "{name}, open: {open}: {peak} bytes of {budget}, and tables of {tables}"
    );
    assert!(peak > 1000, "{name}: nothing was counted");
}

/// What is written: memory of the caller.
struct Writes {
    case: String,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The most bytes of tables that the index told.
    tables: u64,
}

impl Writes {
    fn new(case: &Case) -> Self {
        let bytes = |width| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => 12,
        };
        let shape = case.shape.shape;
        let (key, value) = (vec![0; bytes(shape.key)], vec![0; bytes(shape.value)]);
        Writes { case: case.name(), key, value, tables: 0 }
    }

    fn set_key(&mut self, number: u32) {
        self.key[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    }

    fn put_all(&mut self, index: &mut dyn Index, byte: u8) {
        self.value.fill(byte);
        for number in 0..KEYS {
            self.set_key(number);
            let put = index.update(&[Update::Put { key: &self.key, value: &self.value }]);
            assert_eq!(put, Ok(()), "{}, key {number}", self.case);
            self.tables = self.tables.max(index.statistics().memory.tables);
        }
    }

    fn compare(&mut self, index: &mut dyn Index, byte: u8) {
        let mut into = [0; 16];
        for number in 0..KEYS {
            self.set_key(number);
            assert_eq!(index.get(&self.key, 0, &mut into), Ok(Some(self.value.len() as u32)));
            assert!(into[..self.value.len()].iter().all(|found| *found == byte));
        }
        for range in [KeyRange::ALL, KeyRange::ALL.reversed()] {
            let mut cursor = index.range(range).unwrap();
            let mut entries = 0;
            while cursor.next().unwrap().is_some() {
                entries += 1;
            }
            assert_eq!(entries, KEYS);
        }
        index.check(&mut |finding| panic!("{finding}")).unwrap();
    }
}

fn wanted() -> impl Iterator<Item = Case> {
    let on_flash = TREES.iter().flat_map(|entry| cases(entry));
    let on_flash = on_flash.filter(|case| matches!(case.stand, Stand::Nand));
    on_flash.flat_map(|case| {
        Durability::ALL.into_iter().map(move |durability| Case { durability, ..case.clone() })
    })
}

#[test]
fn the_heap_taken_on_raw_flash_never_exceeds_the_budget_and_the_stated_tables() {
    let mut tried = 0;
    for case in wanted() {
        let Ground::Nand(mut chip) = case.ground(2 << 20) else { panic!("it stands on a chip") };
        let lasts = case.durability != Durability::None;
        session(&case, &mut chip, false, |index, writes| {
            for round in 0..ROUNDS {
                writes.put_all(index, round);
                if lasts && round == 1 {
                    index.checkpoint(Some("old")).unwrap();
                }
            }
            writes.compare(index, ROUNDS - 1);
            if lasts {
                index.sync().unwrap();
            } else {
                index.close().unwrap();
            }
        });
        session(&case, &mut chip, true, |index, writes| {
            writes.value.fill(ROUNDS - 1);
            writes.compare(index, ROUNDS - 1);
            writes.put_all(index, 77);
            if lasts {
                index.roll_back("old").unwrap();
                writes.value.fill(1);
                writes.compare(index, 1);
                writes.put_all(index, 78);
                index.checkpoint(None).unwrap();
            }
            for number in 0..KEYS {
                writes.set_key(number);
                index.update(&[Update::Delete { key: &writes.key }]).unwrap();
            }
            index.close().unwrap();
        });
        tried += 1;
    }
    assert!(tried >= 192, "{tried} cases");
}
