//! Every operation of a disk failing in turn. What failed was refused or makes the index read-only
//! until it is opened again; what it reads meanwhile is right; and then it holds what was
//! acknowledged.
//!
//! A flush that fails drops all that was written since the last good one and succeeds from then
//! on, as that of an operating system may. In the end everything that was not flushed is gone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod failing_play;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use contract::share;
use contract::tree::{Case, MemoryLevel, Stand, Storage, cases};
use device::{Cause, Error as Refused, Request, Result, Sector, SectorGeometry, Sectors};
use failing_play::{KEYS, Play, STEPS, read_all, update};
use flashtree_trees::TREES;
use index::Durability;

/// What the disk does, and when it fails.
#[derive(Default)]
struct Plan {
    done: u32,
    /// The operation that fails, counted from 1; 0 for none.
    fails: u32,
    /// What sectors held when they were flushed last, if they were written since.
    unflushed: BTreeMap<u64, Vec<u8>>,
    has_failed: Option<Operation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Trim,
    Flush,
    Resize,
}

/// A disk one of whose operations fails.
struct Failing<S> {
    below: S,
    plan: Arc<Mutex<Plan>>,
}

impl<S: Sectors> Failing<S> {
    /// True if this operation is the one that fails.
    fn fails(&self, operation: Operation) -> bool {
        let mut plan = self.plan.lock().unwrap();
        plan.done += 1;
        if plan.done == plan.fails {
            plan.has_failed = Some(operation);
        }
        plan.done == plan.fails
    }

    /// Keeps what `count` sectors from `first` on hold, unless they were written since the flush.
    fn keep(&mut self, first: Sector, count: usize) {
        let bytes = self.below.geometry().sector_bytes() as usize;
        for sector in (first.0..).take(count) {
            if self.plan.lock().unwrap().unflushed.contains_key(&sector) {
                continue;
            }
            let mut old = vec![0; bytes];
            let read = Request { first: Sector(sector), offset: 0, into: &mut old };
            self.below.read(&mut [read], Cause::Recovery).unwrap();
            self.plan.lock().unwrap().unflushed.insert(sector, old);
        }
    }

    /// Brings back what was flushed last.
    fn drop_unflushed(&mut self) {
        let unflushed = core::mem::take(&mut self.plan.lock().unwrap().unflushed);
        for (sector, old) in unflushed {
            self.below.write(Sector(sector), &old, Cause::Recovery).unwrap();
        }
    }
}

impl<S: Sectors> Sectors for Failing<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        if self.fails(Operation::Read) {
            return Err(Refused::Driver { code: 5 });
        }
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        let sector = self.below.geometry().sector_bytes() as usize;
        self.keep(first, from.len() / sector);
        if self.fails(Operation::Write) {
            // Half of it is there.
            let half = from.len() / sector / 2 * sector;
            self.below.write(first, &from[..half], cause)?;
            return Err(Refused::Driver { code: 5 });
        }
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.keep(first, count as usize);
        if self.fails(Operation::Trim) {
            return Err(Refused::Driver { code: 5 });
        }
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        if self.fails(Operation::Flush) {
            self.drop_unflushed();
            return Err(Refused::Driver { code: 5 });
        }
        self.plan.lock().unwrap().unflushed.clear();
        self.below.flush(cause)
    }

    fn sectors_held(&self) -> Option<u64> {
        self.below.sectors_held()
    }

    fn resize(&mut self, sectors: u64, cause: Cause) -> Result<()> {
        if self.fails(Operation::Resize) {
            return Err(Refused::Driver { code: 28 });
        }
        self.plan.lock().unwrap().unflushed.retain(|sector, _| *sector < sectors);
        self.below.resize(sectors, cause)
    }
}

/// Plays the history with operation `fails` failing; returns how many operations there were, and
/// which one failed.
fn play(case: &Case, fails: u32) -> (u32, Option<Operation>) {
    let name = format!("{}: operation {fails} fails", case.name());
    // Without durability a case has a quarter of the room.
    let bytes = if case.durability == Durability::None { 256 << 10 } else { 64 << 10 };
    let mut storage = case.storage(bytes);
    let plan = Arc::new(Mutex::new(Plan::default()));
    let wrap = |plan: &Arc<Mutex<Plan>>| {
        let plan = plan.clone();
        move |below| Box::new(Failing { below, plan }) as Box<dyn Sectors + '_>
    };
    let mut index = case.index_over(&mut storage, false, wrap(&plan));
    {
        let mut plan = plan.lock().unwrap();
        plan.fails = if fails > 0 { plan.done + fails } else { 0 };
    }
    let mut play = Play::new(case.durability, name);
    for step in 0..STEPS {
        play.step(&mut *index, step);
        let failed = plan.lock().unwrap().has_failed;
        let is_broken = failed == Some(Operation::Flush) && play.refused > 0;
        if failed.is_some() {
            play.read(&mut *index, Play::keys_behind(step), true, is_broken);
        }
        if failed == Some(Operation::Flush) {
            assert!(update(&mut *index, &[]).is_err(), "{}: an update is taken", play.name);
            assert!(index.checkpoint(Some("late")).is_err(), "{}: a checkpoint", play.name);
        }
    }
    play.read(&mut *index, 0..KEYS, fails > 0, false);
    let is_closed = case.durability == Durability::None && play.close(&mut *index);
    drop(index);
    let (done, failed) = {
        let plan = plan.lock().unwrap();
        (plan.done, plan.has_failed)
    };
    // The power goes: nothing that was not flushed is there.
    let Storage::Ram(disk) = &mut storage else { panic!("it stands on a disk in memory") };
    Failing { below: &mut *disk, plan: plan.clone() }.drop_unflushed();
    plan.lock().unwrap().fails = 0;
    let found = case.try_index_over(&mut storage, true, |below| below);
    play.name = format!("{}, a {failed:?}", play.name);
    play.end(found.and_then(|mut index| read_all(&mut *index)), is_closed);
    (done, failed)
}

fn wanted() -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram | Stand::Growing)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && matches!(case.memory, MemoryLevel::Least | MemoryLevel::Sixteenfold)
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| Durability::ALL.map(|durability| Case { durability, ..case.clone() }))
}

#[test]
fn whichever_operation_fails_what_was_acknowledged_is_there() {
    let mut failed = BTreeMap::new();
    for (place, case) in wanted().enumerate() {
        let (operations, _) = play(&case, 0);
        // All of a short history, and some of a long one; by turns others, where all is a sample.
        let step = operations.div_ceil(400) as usize * share(6);
        for fails in (1 + place as u32 % step as u32..operations).step_by(step) {
            let (_, operation) = play(&case, fails);
            *failed.entry(format!("{} {operation:?}", case.entry.name)).or_insert(0) += 1;
        }
    }
    println!("operations that failed, by tree: {failed:?}");
    for kind in ["Read", "Write", "Flush"] {
        let tried: i32 =
            failed.iter().filter(|(name, _)| name.contains(kind)).map(|(_, times)| times).sum();
        assert!(tried > 50, "{kind}: {failed:?}");
    }
}
