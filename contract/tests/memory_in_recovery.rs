//! The memory budget is hard in recovery, too: while updates are journalled, while checkpoints are
//! made, with names and without, after a power cut, while images are put back and the journal is
//! replayed, long values among it, and while a rollback goes on, cut off itself and finished.
//!
//! Every allocation counts, except those of the device below.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use allocation_counter::{measure, opt_out};
use device::{Cause, Error, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_contract::tree::{Case, Ground, MemoryLevel, Stand, cases};
use index::registry::{MediumShape, TREES};
use index::{Durability, Index, KeyRange, Update, Width};

/// What the budget may be exceeded by: the tree's own struct, a cursor's, and a checkpoint's state.
const SLACK_BYTES: u64 = 4096;

/// Entries of the index.
const KEYS: u32 = 1600;

/// Bytes of a value that is far longer than a node.
const LONG_BYTES: usize = 12_000;

/// When the power is cut: after so many more writes of a cause.
struct Plan {
    cause: Cause,
    writes_left: AtomicI64,
}

impl Plan {
    fn never() -> Arc<Self> {
        Plan::after(i64::MAX, Cause::Flush)
    }

    fn after(writes: i64, cause: Cause) -> Arc<Self> {
        Arc::new(Plan { cause, writes_left: AtomicI64::new(writes) })
    }

    fn is_off(&self) -> bool {
        self.writes_left.load(Ordering::Relaxed) <= 0
    }
}

/// A disk whose power is cut, and whose own allocations don't count.
struct Cutting<S> {
    disk: S,
    plan: Arc<Plan>,
}

impl<S: Sectors> Cutting<S> {
    fn with_power<R>(&mut self, work: impl FnOnce(&mut S) -> Result<R>) -> Result<R> {
        if self.plan.is_off() {
            return Err(Error::Driver { code: 5 });
        }
        let mut outcome = Err(Error::Driver { code: 5 });
        opt_out(|| outcome = work(&mut self.disk));
        outcome
    }
}

impl<S: Sectors> Sectors for Cutting<S> {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        self.with_power(|disk| disk.read(requests, cause))
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        let written = self.with_power(|disk| disk.write(first, from, cause));
        if cause == self.plan.cause {
            self.plan.writes_left.fetch_sub(1, Ordering::Relaxed);
        }
        written
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.with_power(|disk| disk.trim(first, count, cause))
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.with_power(|disk| disk.flush(cause))
    }
}

/// A case with its device.
struct Life {
    case: Case,
    ground: Ground,
    budget: u64,
}

impl Life {
    fn new(case: Case) -> Self {
        let ground = case.ground(8 << 20);
        let Ground::Ram(disk) = &ground else { panic!("{} stands on no disk", case.name()) };
        let budget = case.options(MediumShape::Sectors(disk.geometry())).memory_bytes;
        Life { case, ground, budget }
    }

    fn has_long_values(&self) -> bool {
        self.case.shape.shape.value == Width::Variable
    }

    /// Makes or opens the index, works with it, and lets go of it without closing it; no more
    /// memory may be taken than the budget, and the tables that the index tells.
    fn session(
        &mut self,
        open: bool,
        plan: &Arc<Plan>,
        work: impl FnOnce(&mut dyn Index, &mut Writes),
    ) {
        let mut tables = 0;
        let mut writes = Writes::new(&self.case);
        let taken = measure(|| {
            let mut index = self.case.index_over(&mut self.ground, open, |disk| {
                Box::new(Cutting { disk, plan: Arc::clone(plan) })
            });
            work(&mut *index, &mut writes);
            tables = index.statistics().memory.tables;
        });
        let (peak, budget) = (taken.bytes_max, self.budget);
        let limit = budget + tables + SLACK_BYTES;
        let name = self.case.name();
        assert!(peak <= limit, "{name}: {peak} bytes of {budget}, and tables of {tables}");
        assert!(peak > 1000, "{name}: nothing was counted");
    }
}

/// What is written: memory of the caller.
struct Writes {
    key: Vec<u8>,
    value: Vec<u8>,
    long: Vec<u8>,
}

impl Writes {
    fn new(case: &Case) -> Self {
        let bytes = |width| match width {
            Width::Fixed(bytes) => usize::from(bytes),
            Width::Variable => 8,
        };
        let long = (0..LONG_BYTES).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 11) as u8).collect();
        let shape = case.shape.shape;
        Writes { key: vec![0; bytes(shape.key)], value: vec![0; bytes(shape.value)], long }
    }

    /// Lets every entry of `numbers` have a value of `byte`.
    fn put(&mut self, index: &mut dyn Index, numbers: impl Iterator<Item = u32>, byte: u8) {
        self.value.fill(byte);
        for number in numbers {
            self.set_key(number);
            index.update(&[Update::Put { key: &self.key, value: &self.value }]).unwrap();
        }
    }

    fn set_key(&mut self, number: u32) {
        self.key[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    }

    fn put_long(&self, index: &mut dyn Index) {
        index.update(&[Update::Put { key: b"long", value: &self.long }]).unwrap();
    }

    /// Every entry has the value of `byte`, and the long value is there if `long`.
    fn compare(&mut self, index: &mut dyn Index, byte: u8, long: bool) {
        let mut into = [0; 8];
        for number in 0..KEYS {
            self.set_key(number);
            let length = index.get(&self.key, 0, &mut into).unwrap();
            assert_eq!(length, Some(self.value.len() as u32));
            assert!(into[..self.value.len()].iter().all(|found| *found == byte));
        }
        let mut entries = 0;
        let mut cursor = index.range(KeyRange::ALL).unwrap();
        while cursor.next().unwrap().is_some() {
            entries += 1;
        }
        drop(cursor);
        assert_eq!(entries, KEYS + u32::from(long));
        if long {
            let mut piece = [0; 500];
            for offset in (0..LONG_BYTES).step_by(piece.len()) {
                let length = index.get(b"long", offset as u32, &mut piece).unwrap();
                assert_eq!(length, Some(LONG_BYTES as u32));
                assert_eq!(piece, self.long[offset..offset + piece.len()]);
            }
        }
        index.check(&mut |finding| panic!("{finding}")).unwrap();
    }
}

/// Every case on a disk, with every durability under which something comes back.
fn lives() -> impl Iterator<Item = Life> {
    let durabilities = Durability::ALL.into_iter().filter(|lasts| *lasts != Durability::None);
    let all = TREES.iter().flat_map(|entry| cases(entry));
    let on_disk = all.filter(|case| matches!(case.stand, Stand::Ram));
    on_disk.flat_map(move |case| {
        durabilities.clone().map(move |durability| Life::new(Case { durability, ..case.clone() }))
    })
}

/// Makes the index: an old state that is kept, a newer one, and updates in the journal behind it.
/// The power is cut while the checkpoint after these overwrites pages.
fn make_and_cut(life: &mut Life) {
    let (long, journal) = (life.has_long_values(), life.case.durability.has_journal());
    let plan = Plan::after(i64::MAX, Cause::Flush);
    life.session(false, &plan, |index, writes| {
        writes.put(index, 0..KEYS, 1);
        index.checkpoint(Some("old")).unwrap();
        if long {
            writes.put_long(index);
            index.update(&[Update::Delete { key: b"long" }]).unwrap();
        }
        writes.put(index, 0..KEYS, 2);
        index.checkpoint(Some("forgotten")).unwrap();
        index.forget("forgotten").unwrap();
        writes.put(index, 0..KEYS, 3);
        index.checkpoint(None).unwrap();
        writes.put(index, (0..KEYS).step_by(40), if journal { 4 } else { 3 });
        if long && journal {
            writes.put_long(index);
        }
        if journal {
            index.sync().unwrap();
        }
        plan.writes_left.store(2, Ordering::Relaxed);
        let cut = index.checkpoint(Some("never"));
        assert!(cut.is_err() && plan.is_off(), "the checkpoint has less to write");
    });
}

#[test]
fn an_index_comes_back_inside_its_budget() {
    let (mut tried, mut restored, mut replayed) = (0, 0, 0);
    for mut life in lives() {
        make_and_cut(&mut life);
        let (long, journal) = (life.has_long_values(), life.case.durability.has_journal());
        let name = life.case.name();
        life.session(true, &Plan::never(), |index, writes| {
            let recovery = index.recovery();
            restored += u64::from(recovery.restored > 0);
            replayed += u64::from(recovery.replayed > 0);
            assert_eq!(recovery.replayed > 0, journal, "{name}");
            assert!(index.checkpoints().iter().all(|kept| kept.name == "old"), "{name}");
            writes.put(index, (0..KEYS).filter(|number| number % 40 != 0 || !journal), 4);
            writes.compare(index, 4, long && journal);
        });
        tried += 1;
    }
    println!("{tried} openings: {restored} put images back, {replayed} replayed a journal");
    assert!(tried >= 400 && restored == tried && replayed * 3 >= tried * 2);
}

#[test]
fn an_index_is_rolled_back_inside_its_budget() {
    let (mut tried, mut cut_off) = (0, 0);
    for mut life in lives() {
        make_and_cut(&mut life);
        life.session(true, &Plan::never(), |index, writes| {
            writes.put(index, 0..KEYS / 2, 5);
            index.roll_back("old").unwrap();
            writes.compare(index, 1, false);
            writes.put(index, 0..KEYS, 6);
            index.checkpoint(None).unwrap();
            writes.put(index, 0..KEYS / 2, 7);
        });
        // The second rollback is cut off while it puts images back.
        let plan = Plan::after(i64::MAX, Cause::Recovery);
        life.session(true, &plan, |index, _| {
            plan.writes_left.store(2, Ordering::Relaxed);
            cut_off += u64::from(index.roll_back("old").is_err());
        });
        life.session(true, &Plan::never(), |index, writes| {
            assert_eq!(index.checkpoints().len(), 1);
            writes.compare(index, 1, false);
            writes.put(index, 0..KEYS, 8);
            writes.compare(index, 8, false);
        });
        tried += 1;
    }
    println!("{tried} rollbacks, {cut_off} of them cut off");
    assert!(tried >= 400 && cut_off == tried);
}

#[test]
fn as_many_checkpoints_as_can_be_kept_stay_inside_the_budget() {
    let mut tried = 0;
    for mut life in lives().filter(|life| life.case.memory == MemoryLevel::Least) {
        let names: Vec<String> = (0..64).map(|number| format!("{number:064}")).collect();
        let name = life.case.name();
        life.session(false, &Plan::never(), |index, writes| {
            for (number, name) in (0..).zip(&names) {
                writes.put(index, number..number + 2, 1);
                index.checkpoint(Some(name)).unwrap();
            }
        });
        life.session(true, &Plan::never(), |index, _| {
            assert!(index.checkpoints().iter().map(|kept| &kept.name).eq(&names), "{name}");
            index.forget(&names[7]).unwrap();
        });
        life.session(true, &Plan::never(), |index, writes| {
            assert_eq!(index.checkpoints().len(), 63, "{name}");
            writes.put(index, 100..110, 2);
            index.roll_back(&names[30]).unwrap();
            assert_eq!(index.checkpoints().len(), 30, "{name}");
        });
        tried += 1;
    }
    assert!(tried >= 100);
}
