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

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use device::{Cause, Error as Refused, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_contract::torture::truth::{Bytes, Change, Event, Found, Truth};
use flashtree_contract::tree::{Case, Ground, MemoryLevel, Stand, cases};
use index::registry::TREES;
use index::{Durability, Error, Index, KeyRange, Update, Value};

/// Steps of a history.
const STEPS: u32 = 90;

/// Keys of an index.
const KEYS: u32 = 40;

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
}

/// A history that is played on a failing disk.
struct Play {
    truth: Truth,
    durability: Durability,
    /// The event of an update that failed, which may have happened.
    open: Option<Event>,
    /// Calls that were refused since.
    refused: u32,
    name: String,
}

fn key(number: u32) -> Bytes {
    (number % KEYS).wrapping_mul(0x9E37_79B9).to_be_bytes().into()
}

impl Play {
    /// Books what came of a call that changes something.
    fn book(&mut self, event: Event, outcome: &index::Result<()>) {
        if let Err(error) = outcome {
            let is_possible = match error {
                Error::Store(store::Error::Device(_)) | Error::Unsupported { .. } => true,
                // What was kept when the index failed is not known.
                Error::Store(store::Error::NoCheckpoint | store::Error::CheckpointName { .. }) => {
                    self.refused > 0
                }
                _ => false,
            };
            assert!(is_possible, "{}: {event:?}: {error:?}", self.name);
            self.refused += 1;
            if self.open.is_none() {
                self.truth.begin(event.clone());
                self.open = Some(event);
            }
            return;
        }
        if self.open.take().is_some() {
            // Something came after it: so it was refused with nothing changed.
            self.truth.refuse();
        }
        self.truth.begin(event.clone());
        let lasts = match event {
            Event::Batch(_) => self.durability == Durability::Every,
            Event::Keep(_) | Event::RollBack(_) | Event::Forget(_) => true,
        };
        if lasts {
            self.truth.acknowledge();
        }
    }

    fn step(&mut self, index: &mut dyn Index, step: u32) {
        let name = |number: u32| -> std::rc::Rc<str> { format!("kept {number}").into() };
        match step % 30 {
            11 => {
                let made = index.checkpoint(Some(&name(step))).map(|_| ());
                self.book(Event::Keep(name(step)), &made);
            }
            19 => {
                let gone = index.roll_back(&name(step - 8));
                self.book(Event::RollBack(name(step - 8)), &gone);
            }
            23 => {
                let forgotten = index.forget(&name(step - 12));
                self.book(Event::Forget(name(step - 12)), &forgotten);
            }
            5 | 17 | 27 => {
                let lasts = match self.durability {
                    Durability::Checkpoint => index.checkpoint(None).map(|_| ()),
                    _ => index.sync(),
                };
                if lasts.is_ok() && self.open.is_none() {
                    self.truth.acknowledge();
                }
                assert!(lasts.is_err() || self.open.is_none(), "{}: synced", self.name);
            }
            _ => {
                let changes: Vec<Change> = (0..1 + step % 3)
                    .map(|part| {
                        let number = step.wrapping_mul(7) + part * 13;
                        let value =
                            (!number.is_multiple_of(5)).then(|| number.to_le_bytes().into());
                        Change { key: key(number), value }
                    })
                    .collect();
                let updated = update(index, &changes);
                self.book(Event::Batch(changes), &updated);
            }
        }
    }

    /// What is read is right or refused.
    fn read(&self, index: &mut dyn Index, failed: Option<Operation>, is_broken: bool) {
        for number in 0..KEYS {
            let key = key(number);
            let mut into = [0; 4];
            match index.get(&key, 0, &mut into) {
                Ok(found) => {
                    assert!(!is_broken, "{}: a flush failed, and it is read", self.name);
                    let is_open = match &self.open {
                        None => false,
                        Some(Event::Batch(changes)) => {
                            changes.iter().any(|change| change.key == key)
                        }
                        Some(_) => true,
                    };
                    let wanted = self.truth.latest().entries.get(&key);
                    let value = found.map(|bytes| &into[..bytes as usize]);
                    let is_right = value == wanted.map(|value| &value[..]);
                    assert!(is_open || is_right, "{}: key {number} reads {value:?}", self.name);
                }
                Err(Error::Store(store::Error::Device(_)) | Error::Unsupported { .. }) => {
                    assert!(failed.is_some(), "{}: nothing failed", self.name);
                }
                Err(error) => panic!("{}: a get: {error:?}", self.name),
            }
        }
    }
}

fn update(index: &mut dyn Index, changes: &[Change]) -> index::Result<()> {
    let batch: Vec<Update<'_>> = changes
        .iter()
        .map(|Change { key, value }| match value {
            Some(value) => Update::Put { key, value },
            None => Update::Delete { key },
        })
        .collect();
    index.update(&batch)
}

fn read_all(index: &mut dyn Index) -> index::Result<Found> {
    let mut entries = Vec::new();
    let mut cursor = index.range(KeyRange::ALL)?;
    while let Some((key, value)) = cursor.next()? {
        let Value::Whole(value) = value else { panic!("no value is long") };
        entries.push((key.to_vec(), value.to_vec()));
    }
    drop(cursor);
    let names = index.checkpoints().iter().map(|kept| kept.name.clone()).collect();
    Ok(Found { entries, names })
}

/// Plays the history with operation `fails` failing; returns how many operations there were, and
/// which one failed.
fn play(case: &Case, fails: u32) -> (u32, Option<Operation>) {
    let name = format!("{}: operation {fails} fails", case.name());
    let mut ground = case.ground(64 << 10);
    let plan = Arc::new(Mutex::new(Plan::default()));
    let wrap = |plan: &Arc<Mutex<Plan>>| {
        let plan = plan.clone();
        move |below| Box::new(Failing { below, plan }) as Box<dyn Sectors + '_>
    };
    let mut index = case.index_over(&mut ground, false, wrap(&plan));
    {
        let mut plan = plan.lock().unwrap();
        plan.fails = if fails > 0 { plan.done + fails } else { 0 };
    }
    let durability = case.durability;
    let mut play = Play { truth: Truth::new(false), durability, open: None, refused: 0, name };
    for step in 0..STEPS {
        play.step(&mut *index, step);
        let failed = plan.lock().unwrap().has_failed;
        let is_broken = failed == Some(Operation::Flush) && play.refused > 0;
        if failed.is_some() {
            play.read(&mut *index, failed, is_broken);
        }
        if failed == Some(Operation::Flush) {
            assert!(update(&mut *index, &[]).is_err(), "{}: an update is taken", play.name);
            assert!(index.checkpoint(Some("late")).is_err(), "{}: a checkpoint", play.name);
        }
    }
    play.read(&mut *index, plan.lock().unwrap().has_failed, false);
    drop(index);
    let (done, failed) = {
        let plan = plan.lock().unwrap();
        (plan.done, plan.has_failed)
    };
    // The power goes: nothing that was not flushed is there.
    let Ground::Ram(disk) = &mut ground else { panic!("it stands on a disk in memory") };
    Failing { below: &mut *disk, plan: plan.clone() }.drop_unflushed();
    plan.lock().unwrap().fails = 0;
    let mut index = case.index_over(&mut ground, true, |below| below);
    let found = read_all(&mut *index).unwrap();
    if let Err(mismatch) = play.truth.learn(&found) {
        panic!("{}, a {failed:?}: {mismatch}", play.name);
    }
    (done, failed)
}

fn wanted() -> impl Iterator<Item = Case> {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && matches!(case.memory, MemoryLevel::Least | MemoryLevel::Sixteenfold)
    };
    let all = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted);
    all.flat_map(|case| {
        [Durability::Checkpoint, Durability::Batch, Durability::Every]
            .map(|durability| Case { durability, ..case.clone() })
    })
}

#[test]
fn whichever_operation_fails_what_was_acknowledged_is_there() {
    let mut failed = BTreeMap::new();
    for case in wanted() {
        let (operations, _) = play(&case, 0);
        // All of a short history, and some of a long one.
        for fails in (1..operations).step_by(operations.div_ceil(700) as usize) {
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
