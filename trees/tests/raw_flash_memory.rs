//! The memory budget is hard on raw flash, too: in use, while checkpoints are made, after an
//! opening with a journal, after a power cut, in openings that are cut themselves, and while a
//! rollback goes on. So is a bound on all memory, tables included.
//!
//! Every allocation counts, except those of the chip.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "heap/chip.rs"]
mod chip;
mod heap;

use contract::{sample, share};
use std::panic::{AssertUnwindSafe, catch_unwind};

use allocation_counter::measure;
use contract::tree::{Case, MemoryLevel, Stand, Storage, cases};
use device::Nand;
use flashtree_trees::TREES;
use index::MediumShape;
use index::{Durability, Index, KeyRange, Update, Width};
use sim::{Cut, FaultPlan, SimulatedNand};

/// What the budget may be exceeded by: the tree's own struct, a cursor's, and a checkpoint's state.
const SLACK_BYTES: u64 = 4096;

/// Entries of the index: few enough for every tree on small pages.
const KEYS: u32 = 20;

/// How often all of them are put.
const ROUNDS: u8 = 40;

/// Bytes that tables which grow may take, where all memory is bounded.
const TABLES_MOST: u64 = 48 << 10;

/// A case with its chip.
struct Life {
    case: Case,
    chip: Box<SimulatedNand>,
    budget: u64,
    /// Bytes of the tables of an index without entries: beside the budget, what a bound on all
    /// memory counts.
    tables_at_first: Option<u64>,
    /// What tables that grow may take, if that is bounded.
    tables_most: Option<u64>,
    /// Bytes of the tables that the index told of last.
    tables: u64,
}

impl Life {
    fn new(case: Case, bytes: u64) -> Self {
        let Storage::Nand(chip) = case.storage(bytes) else { panic!("it stands on a chip") };
        let budget = case.options(MediumShape::Nand(chip.geometry())).memory_bytes;
        Life { case, chip, budget, tables_at_first: None, tables_most: None, tables: 0 }
    }

    /// Makes or opens the index, works with it, and lets go of it; no more memory may be taken than
    /// the budget and the tables that the index tells, nor more in all than the budget and the
    /// tables that it told of when it was made.
    fn session(&mut self, open: bool, work: impl FnOnce(&mut dyn Index, &mut Writes)) {
        let opened = self.try_session(open, work);
        assert_eq!(opened, Ok(()), "{}", self.case.name());
    }

    /// As [`Life::session`], where the opening may fail.
    fn try_session(
        &mut self,
        open: bool,
        work: impl FnOnce(&mut dyn Index, &mut Writes),
    ) -> index::Result<()> {
        let mut options = self.case.options(MediumShape::Nand(self.chip.geometry()));
        options.tables_bytes = self.tables_most;
        let make = if open { self.case.entry.open } else { self.case.entry.create };
        let mut writes = Writes::new(&self.case);
        let (mut tables, mut opened) = ([None; 2], Ok(()));
        let taken = measure(|| {
            let made = make(chip::uncounted_chip(&mut self.chip), &options);
            let mut index = match made {
                Ok(index) => index,
                Err(error) => {
                    opened = Err(error);
                    return;
                }
            };
            tables[0] = Some(index.statistics().memory.tables);
            work(&mut *index, &mut writes);
            // A rollback may leave smaller ones than there were.
            tables[1] = Some(index.statistics().memory.tables.max(writes.tables));
        });
        self.tables_at_first = self.tables_at_first.or(tables[0]);
        self.tables = tables[1].unwrap_or(self.tables);
        self.check_peak(taken.bytes_max, open);
        opened
    }

    fn check_peak(&self, peak: u64, open: bool) {
        let Life { budget, tables, .. } = *self;
        let grows = self.case.entry.tables_grow();
        let at_first = self.tables_at_first.filter(|_| !grows).unwrap_or(tables);
        let at_first = self.tables_most.unwrap_or(at_first);
        let name = format!("{}, open: {open}", self.case.name());
        assert!(
            peak <= budget + tables + SLACK_BYTES,
            "{name}: {peak} bytes of {budget}, and tables of {tables}"
        );
        assert!(
            peak <= budget + at_first + SLACK_BYTES,
            "{name}: {peak} bytes, of {budget} and tables of {at_first} in all"
        );
        assert!(peak > 1000, "{name}: nothing was counted");
    }
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

/// Plays every `step`th of `cases` and fails with the names of all that failed; returns how many
/// there were.
fn each(step: usize, cases: impl Iterator<Item = Case>, mut play: impl FnMut(Case)) -> u64 {
    let (mut tried, mut failed) = (0, Vec::new());
    for case in sample(step, cases) {
        let name = case.name();
        tried += 1;
        if catch_unwind(AssertUnwindSafe(|| play(case))).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{} of {tried} failed\n{}", failed.len(), failed.join("\n"));
    tried
}

#[test]
fn the_heap_taken_on_raw_flash_never_exceeds_the_budget_and_the_stated_tables() {
    let tried = each(23, wanted(), |case| {
        let lasts = case.durability != Durability::None;
        let mut life = Life::new(case, 2 << 20);
        life.session(false, |index, writes| {
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
        life.session(true, |index, writes| {
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
    });
    println!("indexes on raw flash inside the budget in use: {tried}");
    assert!(tried * share(23) as u64 >= 960, "{tried} cases");
}

/// Opens the index while the power is cut at change `at`, be it in the opening or in what is put
/// then; true if that was in the opening.
fn cut_at(life: &mut Life, at: u64) -> bool {
    life.chip.restore_power();
    life.chip.arm(FaultPlan::cut(life.case.seed ^ at, Cut::Change(at)));
    let opened = life.try_session(true, |index, writes| {
        writes.value.fill(60);
        for number in (0..KEYS).cycle().take(4000) {
            writes.set_key(number);
            let put = Update::Put { key: &writes.key, value: &writes.value };
            // Where updates wait in memory a checkpoint brings them to the chip.
            let is_due = number + 1 == KEYS;
            if index.update(&[put]).is_err() || is_due && index.checkpoint(None).is_err() {
                break;
            }
        }
    });
    assert!(life.chip.is_without_power(), "{}: {at} changes were not made", life.case.name());
    life.chip.restore_power();
    life.chip.arm(FaultPlan::default());
    opened.is_err()
}

#[test]
fn an_index_on_raw_flash_comes_back_inside_its_budget() {
    let (mut cut_opening, mut replayed) = (0, 0);
    let lasting = wanted().filter(|case| case.durability != Durability::None);
    let tried = each(23, lasting, |case| {
        let mut life = Life::new(case, 2 << 20);
        life.session(false, |index, writes| {
            writes.put_all(index, 1);
            index.checkpoint(Some("old")).unwrap();
            (2..12).for_each(|round| writes.put_all(index, round));
            index.checkpoint(None).unwrap();
            (12..14).for_each(|round| writes.put_all(index, round));
            index.sync().unwrap();
        });
        for at in [1, 2, 3, 9] {
            cut_opening += u64::from(cut_at(&mut life, at));
        }
        life.session(true, |index, writes| {
            replayed += u64::from(index.recovery().replayed > 0);
            let mut into = [0; 16];
            for number in 0..KEYS {
                writes.set_key(number);
                let found = index.get(&writes.key, 0, &mut into);
                assert_eq!(found, Ok(Some(writes.value.len() as u32)));
                let value = &into[..writes.value.len()];
                let is = |byte: u8| value.iter().all(|found| *found == byte);
                assert!(is(13) || is(60), "{}: {value:?}", writes.case);
            }
            index.check(&mut |finding| panic!("{finding}")).unwrap();
            writes.put_all(index, 61);
            index.roll_back("old").unwrap();
            writes.value.fill(1);
            writes.compare(index, 1);
            index.close().unwrap();
        });
    });
    println!(
        "openings on raw flash inside the budget: {tried}; of them {replayed} replayed a journal; \
         {cut_opening} openings before were cut"
    );
    assert!(
        tried * share(23) as u64 >= 576 && replayed * 4 >= tried && cut_opening > tried,
        "{tried} {replayed}"
    );
}

/// Puts of an index that does not get full before.
const PUTS_MOST: u32 = 200_000;

/// What is given in all is what is taken in all, however much is put in: tables don't grow beyond
/// what they were stated to take when the index was made, or what they may.
#[test]
fn a_bound_on_all_memory_holds_on_a_chip_that_gets_full() {
    let is_wanted = |case: &Case| case.memory == MemoryLevel::Double && case.shape.name == "4+4";
    let mut full = 0;
    let tried = each(17, wanted().filter(is_wanted), |case| {
        let lasts = case.durability != Durability::None;
        let mut life = Life::new(case, if lasts { 384 << 10 } else { 1536 << 10 });
        life.tables_most = life.case.entry.tables_grow().then_some(TABLES_MOST);
        life.session(false, |index, writes| {
            let mut refused = 0;
            for number in 0..PUTS_MOST {
                writes.set_key(number);
                let put = Update::Put { key: &writes.key, value: &writes.value };
                refused += u32::from(index.update(&[put]).is_err());
                assert!(refused == 0 || number > 1000, "{}: {number}", writes.case);
                if refused > 3 {
                    full += 1;
                    break;
                }
            }
            if lasts { index.sync().unwrap() } else { index.close().unwrap() }
        });
        life.session(true, |index, writes| {
            writes.set_key(0);
            assert!(index.get(&writes.key, 0, &mut [0; 16]).unwrap().is_some());
            index.close().unwrap();
        });
    });
    println!("indexes on raw flash inside a bound on all memory: {tried}, of them {full} got full");
    assert!(tried * share(17) as u64 >= 60 && full * 2 >= tried, "{full} of {tried}");
}
