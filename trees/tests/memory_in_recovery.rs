//! The memory budget is hard in recovery, too: while updates are journalled, while checkpoints are
//! made, with names and without, after a power cut in the middle of updates, while images are put
//! back and the journal is replayed, long values among it, while that is cut off and done again,
//! and while a rollback goes on, cut off itself and finished.
//!
//! Every allocation counts, except those of the device below. The budgets are the least memory of
//! each tree, twice and sixteen times that, and 1 MiB; the durabilities are all under which
//! something comes back.
//!
//! `cargo test -p flashtree-trees --test memory_in_recovery -- --nocapture` prints what was
//! tried; `FLASHTREE_CASE` asks for the cases alone whose names contain it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use contract::{sample, share};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use allocation_counter::{measure, opt_out};
use contract::tree::{Case, Stand, Storage, cases};
use device::{Cause, Error, Medium, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use index::MediumShape;
use index::{CheckpointId, Durability, Index, KeyRange, Update, Width};

/// What the budget may be exceeded by: the tree's own struct, a cursor's, and a checkpoint's state.
const SLACK_BYTES: u64 = 4096;

/// Entries of the index.
const KEYS: u32 = 1600;

/// Bytes of a value that is far longer than a node.
const LONG_BYTES: usize = 12_000;

/// When the power is cut: after so many more writes of a cause. Pages that are written back count
/// once images were flushed: before that, there would be nothing to put back.
struct Plan {
    cause: Cause,
    writes_left: AtomicI64,
    counts: AtomicBool,
}

impl Plan {
    fn never() -> Arc<Self> {
        Plan::after(i64::MAX, Cause::Flush)
    }

    fn after(writes: i64, cause: Cause) -> Arc<Self> {
        let counts = AtomicBool::new(cause != Cause::Flush);
        Arc::new(Plan { cause, writes_left: AtomicI64::new(writes), counts })
    }

    /// A checkpoint was made: there are no images.
    fn begin(&self) {
        self.counts.store(false, Ordering::Relaxed);
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
        if cause == self.plan.cause && self.plan.counts.load(Ordering::Relaxed) {
            self.plan.writes_left.fetch_sub(1, Ordering::Relaxed);
        }
        written
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.with_power(|disk| disk.trim(first, count, cause))
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        if cause == Cause::Checkpoint {
            self.plan.counts.store(true, Ordering::Relaxed);
        }
        self.with_power(|disk| disk.flush(cause))
    }
}

/// A case with its device.
struct Life {
    case: Case,
    storage: Storage,
    budget: u64,
    /// Bytes of the tables that the index told of last.
    tables: u64,
}

impl Life {
    fn new(case: Case) -> Self {
        let storage = case.storage(8 << 20);
        let Storage::Ram(disk) = &storage else { panic!("{} stands on no disk", case.name()) };
        let budget = case.options(MediumShape::Sectors(disk.geometry())).memory_bytes;
        Life { case, storage, budget, tables: 0 }
    }

    fn has_long_values(&self) -> bool {
        self.case.entry.long_values && self.case.shape.shape.value == Width::Variable
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
            let mut index = self.case.index_over(&mut self.storage, open, |disk| {
                Box::new(Cutting { disk, plan: Arc::clone(plan) })
            });
            work(&mut *index, &mut writes);
            tables = index.statistics().memory.tables;
        });
        self.tables = tables;
        self.check_peak(taken.bytes_max);
    }

    fn check_peak(&self, peak: u64) {
        let Life { budget, tables, .. } = *self;
        let (name, limit) = (self.case.name(), budget + tables + SLACK_BYTES);
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

    /// As [`put`](Writes::put), until the power is off; how many updates returned.
    fn put_until_cut(&mut self, index: &mut dyn Index, plan: &Plan, byte: u8) -> u32 {
        self.value.fill(byte);
        for number in 0..KEYS {
            self.set_key(number);
            let updated = index.update(&[Update::Put { key: &self.key, value: &self.value }]);
            assert!(updated.is_ok() || plan.is_off(), "{updated:?}");
            if updated.is_err() {
                return number;
            }
        }
        KEYS
    }

    fn set_key(&mut self, number: u32) {
        self.key[..4].copy_from_slice(&number.wrapping_mul(0x9E37_79B9).to_be_bytes());
    }

    fn put_long(&self, index: &mut dyn Index) {
        index.update(&[Update::Put { key: b"long", value: &self.long }]).unwrap();
    }

    /// How many entries from the first on have a value of `byte`; every other has a value of what
    /// `else_byte` says of its number.
    fn updated(&mut self, index: &mut dyn Index, byte: u8, else_byte: impl Fn(u32) -> u8) -> u32 {
        let (mut into, mut updated) = ([0; 8], 0);
        for number in 0..KEYS {
            self.set_key(number);
            let length = index.get(&self.key, 0, &mut into).unwrap();
            assert_eq!(length, Some(self.value.len() as u32));
            let found = &into[..self.value.len()];
            if updated == number && found.iter().all(|found| *found == byte) {
                updated += 1;
            } else {
                let expected = else_byte(number);
                assert!(found.iter().all(|found| *found == expected), "{number}: {found:?}");
            }
        }
        updated
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
    let each = on_disk.flat_map(move |case| {
        durabilities.clone().map(move |durability| Case { durability, ..case.clone() })
    });
    let wanted = std::env::var("FLASHTREE_CASE").unwrap_or_default();
    let step = if wanted.is_empty() { 5 } else { 1 };
    sample(step, each.filter(move |case| case.name().contains(&wanted))).map(Life::new)
}

/// How many cases a test has to have seen: all, unless some were asked for.
fn cases_wanted(most: u64) -> u64 {
    if std::env::var_os("FLASHTREE_CASE").is_some() { 1 } else { most / share(5) as u64 }
}

/// Makes the index: an old state that is kept, a newer one, and updates in the journal behind it.
/// The power is cut after `pages` pages were overwritten by the updates after these. Returns how
/// many of the last returned, and the checkpoint before those in the journal.
fn make_and_cut(life: &mut Life, pages: i64) -> (u32, CheckpointId) {
    let (long, journal) = (life.has_long_values(), life.case.durability.has_journal());
    let plan = Plan::after(i64::MAX, Cause::Flush);
    let (name, mut returned, mut last) = (life.case.name(), 0, CheckpointId(0));
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
        last = index.checkpoint(None).unwrap();
        plan.begin();
        writes.put(index, (0..KEYS).step_by(40), if journal { 4 } else { 3 });
        if long && journal {
            writes.put_long(index);
        }
        if journal {
            index.sync().unwrap();
        }
        plan.writes_left.store(pages, Ordering::Relaxed);
        returned = writes.put_until_cut(index, &plan, 5);
        if !plan.is_off() {
            // All pages are in the cache: the next checkpoint overwrites them.
            let cut = index.checkpoint(Some("never"));
            assert!(cut.is_err() && plan.is_off(), "{name}: the checkpoint has less to write");
        }
    });
    (returned, last)
}

/// Opens the index while the power is cut again, after `writes` writes of the recovery; true if
/// there were so many.
fn cut_while_opening(life: &mut Life, writes: i64) -> bool {
    let plan = Plan::after(writes, Cause::Recovery);
    let Life { case, storage, .. } = life;
    let Storage::Ram(disk) = storage else { panic!("{} stands on no disk", case.name()) };
    let options = case.options(MediumShape::Sectors(disk.geometry()));
    let mut was_cut = false;
    let taken = measure(|| {
        let disk = Box::new(Cutting { disk, plan: Arc::clone(&plan) });
        was_cut = (case.entry.open)(Medium::Sectors(disk), &options).is_err();
    });
    life.check_peak(taken.bytes_max);
    was_cut && plan.is_off()
}

/// Rolls back to the old state while the power is cut, after `pages` writes of the rollback; true
/// if there were so many.
fn cut_while_rolling_back(life: &mut Life, pages: i64) -> bool {
    let plan = Plan::after(i64::MAX, Cause::Recovery);
    let mut was_cut = false;
    life.session(true, &plan, |index, _| {
        plan.writes_left.store(pages, Ordering::Relaxed);
        was_cut = index.roll_back("old").is_err();
    });
    was_cut
}

#[test]
fn an_index_comes_back_inside_its_budget() {
    let (mut tried, mut restored, mut replayed, mut beyond, mut cut_again) = (0, 0, 0, 0, 0);
    for mut life in lives() {
        let (returned, last) = make_and_cut(&mut life, 2);
        let (long, journal) = (life.has_long_values(), life.case.durability.has_journal());
        let every = life.case.durability == Durability::Every;
        let name = life.case.name();
        cut_again += u64::from(cut_while_opening(&mut life, 1));
        life.session(true, &Plan::never(), |index, writes| {
            let recovery = index.recovery();
            restored += u64::from(recovery.restored > 0);
            let is_replayed = recovery.replayed > 0;
            replayed += u64::from(is_replayed);
            // This one writes elsewhere, where nothing is needed, and may make a checkpoint of its
            // own behind the last, which leaves nothing to replay.
            let is_elsewhere = name.starts_with("flat-tree");
            let is_behind = is_elsewhere && recovery.checkpoint != last;
            assert!(recovery.restored > 0 || is_elsewhere, "{name}");
            assert!(if journal { is_replayed || is_behind } else { !is_replayed }, "{name}");
            assert!(index.checkpoints().iter().all(|kept| kept.name == "old"), "{name}");
            let before = |number: u32| if journal && number.is_multiple_of(40) { 4 } else { 3 };
            let updated = writes.updated(index, 5, before);
            assert!(updated >= if every { returned } else { 0 }, "{name}: {updated}, {returned}");
            assert!(updated <= if journal { returned + 1 } else { 0 }, "{name}: {updated}");
            beyond += u64::from(updated > 0);
            writes.put(index, 0..KEYS, 6);
            writes.compare(index, 6, long && journal);
        });
        tried += 1;
    }
    println!(
        "openings inside the budget: {tried}; of them {restored} put images back, {replayed} \
         replayed a journal, {beyond} with updates after the last sync, and {cut_again} were cut \
         off before"
    );
    assert!(tried >= cases_wanted(400) && restored * 20 >= tried * 19 && cut_again == restored);
    // Two of three durabilities have a journal, but for those whose tree made a checkpoint; a
    // sample may end with the third.
    assert!((replayed + 1) * 20 >= tried * 13 && beyond * 3 + 3 >= tried);
}

#[test]
fn an_index_is_rolled_back_inside_its_budget() {
    let (mut tried, mut cut_off) = (0, 0);
    for mut life in lives() {
        make_and_cut(&mut life, 2);
        life.session(true, &Plan::never(), |index, writes| {
            writes.put(index, 0..KEYS / 2, 5);
            index.roll_back("old").unwrap();
            writes.compare(index, 1, false);
            writes.put(index, 0..KEYS, 6);
            index.checkpoint(None).unwrap();
            writes.put(index, 0..KEYS / 2, 7);
        });
        // The second rollback is cut off while it puts images back. Where all updates wait in
        // memory, a single write puts back all that checkpoints changed: then behind that one.
        let is_cut_off = cut_while_rolling_back(&mut life, 2) || {
            life.session(true, &Plan::never(), |index, writes| {
                writes.put(index, 0..KEYS, 6);
                index.checkpoint(None).unwrap();
                writes.put(index, 0..KEYS / 2, 7);
            });
            cut_while_rolling_back(&mut life, 1)
        };
        cut_off += u64::from(is_cut_off);
        life.session(true, &Plan::never(), |index, writes| {
            assert_eq!(index.checkpoints().len(), 1);
            writes.compare(index, 1, false);
            writes.put(index, 0..KEYS, 8);
            writes.compare(index, 8, false);
        });
        tried += 1;
    }
    println!("rollbacks inside the budget: {tried}; of them {cut_off} were cut off and finished");
    assert!(tried >= cases_wanted(400) && cut_off == tried);
}

#[test]
fn as_many_checkpoints_as_can_be_kept_stay_inside_the_budget() {
    let (mut tried, mut kept_most) = (0, 0);
    let names: Vec<String> = (0..64).map(|number| format!("{number:064}")).collect();
    for mut life in lives() {
        let name = life.case.name();
        let mut kept = 0;
        life.session(false, &Plan::never(), |index, writes| {
            for (number, name) in (0..).zip(&names) {
                writes.put(index, number..number + 2, 1);
                match index.checkpoint(Some(name)) {
                    Ok(_) => kept += 1,
                    // There is no memory for more, or no room on the disk.
                    Err(index::Error::Store(
                        store::Error::CheckpointName { .. } | store::Error::Kept { .. },
                    )) => break,
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        });
        assert!(kept >= 4, "{name}: {kept}");
        life.session(true, &Plan::never(), |index, _| {
            assert!(index.checkpoints().iter().map(|kept| &kept.name).eq(&names[..kept]), "{name}");
            index.forget(&names[1]).unwrap();
        });
        life.session(true, &Plan::never(), |index, writes| {
            assert_eq!(index.checkpoints().len(), kept - 1, "{name}");
            writes.put(index, 100..110, 2);
            index.roll_back(&names[kept / 2]).unwrap();
            // What was forgotten stays so.
            assert_eq!(index.checkpoints().len(), kept / 2, "{name}");
        });
        tried += 1;
        kept_most = kept_most.max(kept);
    }
    println!("{tried} indexes with as many checkpoints as can be kept, up to {kept_most}");
    assert!(tried >= cases_wanted(400) && kept_most == 64);
}
