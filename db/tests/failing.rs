//! A device that fails in the middle: what was acknowledged is there when the database is opened
//! again, and until then nothing wrong is read and nothing more is taken.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod storage;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use device::{Cause, Request, Sector};
use flashtree::{
    Batch, Database, Durability, Error, Medium, OpenOptions, Options, SectorGeometry, Sectors,
};
use storage::{Model, SharedDisk, content};

/// What a device fails at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// One operation, and all those behind it.
    FromThere,
    /// One operation.
    Once,
    /// Every write and flush from one on; what is there can be read.
    Writes,
}

/// A disk that fails when its countdown is over.
struct FailingDisk {
    disk: SharedDisk,
    left: Arc<AtomicI64>,
    fault: Fault,
}

/// The code with which it fails: an error of input or output.
const CODE: i32 = 5;

impl FailingDisk {
    fn fail(&self, is_read: bool) -> device::Result<()> {
        if is_read && self.fault == Fault::Writes {
            return Ok(());
        }
        match (self.left.fetch_sub(1, Ordering::Relaxed), self.fault) {
            (1.., _) => Ok(()),
            (..=-1, Fault::Once) => Ok(()),
            _ => Err(device::Error::Driver { code: CODE }),
        }
    }
}

impl Sectors for FailingDisk {
    fn geometry(&self) -> SectorGeometry {
        self.disk.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> device::Result<()> {
        self.fail(true)?;
        self.disk.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> device::Result<()> {
        self.fail(false)?;
        self.disk.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> device::Result<()> {
        self.fail(false)?;
        self.disk.trim(first, count, cause)
    }

    fn flush(&mut self, _: Cause) -> device::Result<()> {
        self.fail(false)
    }
}

/// A batch of each kind: puts, deletes, a long value now and then.
fn batch(number: u32) -> Batch {
    let mut batch = Batch::new();
    let key = |number: u32| (number.wrapping_mul(0x9E37_79B9) % 500).to_be_bytes();
    batch.put(key(number), [number as u8; 30]).put(key(number + 7), [number as u8; 3]);
    batch.delete(key(number.wrapping_mul(3)));
    if number.is_multiple_of(20) {
        batch.put(b"long", vec![number as u8; 2000]);
    }
    batch
}

fn apply(model: &mut Model, number: u32) {
    let key = |number: u32| (number.wrapping_mul(0x9E37_79B9) % 500).to_be_bytes().to_vec();
    model.insert(key(number), vec![number as u8; 30]);
    model.insert(key(number + 7), vec![number as u8; 3]);
    model.remove(&key(number.wrapping_mul(3)));
    if number.is_multiple_of(20) {
        model.insert(b"long".to_vec(), vec![number as u8; 2000]);
    }
}

/// What came of failing once.
struct Failed {
    /// Batches that were acknowledged.
    acknowledged: u32,
    /// Whether any failed.
    is_failed: bool,
}

/// Writes until the device fails; reads are looked at on the way.
fn write(database: &mut Database<'_>, states: &[Model], when: &str) -> Failed {
    for number in 0..states.len() as u32 - 1 {
        let Err(error) = database.write_batch(&batch(number)) else {
            continue;
        };
        assert!(!matches!(error, Error::Damaged { .. }), "{when}: {error:?}");
        look_at_failed(database, &states[number as usize..][..2], when);
        return Failed { acknowledged: number, is_failed: true };
    }
    Failed { acknowledged: states.len() as u32 - 1, is_failed: false }
}

/// After an error that broke a batch off, what can be read is right: all of it or nothing of it,
/// unless nothing is read at all.
fn look_at_failed(database: &mut Database<'_>, states: &[Model], when: &str) {
    let mut possible: Vec<_> = states.iter().collect();
    for key in states.iter().flat_map(Model::keys) {
        if let Ok(value) = database.get(key) {
            possible.retain(|state| state.get(key) == value.as_ref());
        }
    }
    assert!(!possible.is_empty(), "{when}: keys read after the failure are not right");
    if let Ok(found) = content(database) {
        assert!(possible.contains(&&found), "{when}: the range read after the failure");
    }
}

#[test]
fn whatever_the_device_fails_at_acknowledged_updates_stay_and_nothing_wrong_is_read() {
    const BATCHES: u32 = 120;
    let mut states = vec![Model::new()];
    for number in 0..BATCHES {
        let mut next = states.last().unwrap().clone();
        apply(&mut next, number);
        states.push(next);
    }
    for (tree, memory) in [("b-plus", 9 << 10), ("flat-tree", 16 << 10)] {
        let mut failures = 0;
        for fault in [Fault::FromThere, Fault::Once, Fault::Writes] {
            for durability in [Durability::Checkpoint, Durability::Batch, Durability::Every] {
                let options = Options::new().tree(tree).memory(memory).durability(durability);
                failures += failures_of(&options.journal_bytes(16 << 10), fault, &states);
            }
        }
        println!("{tree}: {failures} failures");
        assert!(failures > 100);
    }
}

/// Fails at every seventh operation in turn; returns how many failures an update met.
fn failures_of(options: &Options, fault: Fault, states: &[Model]) -> u32 {
    let mut failures = 0;
    for operation in (0..).step_by(7) {
        let when = format!("{options:?}, {fault:?} at operation {operation}");
        let disk = SharedDisk::new(512, 1024);
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let failing = FailingDisk { disk: disk.clone(), left: Arc::clone(&left), fault };
        let medium = Medium::Sectors(Box::new(failing));
        let mut database = Database::create_on(medium, options).unwrap();
        let durability = database.stats().unwrap().recovery.durability;
        left.store(operation, Ordering::Relaxed);
        let Failed { acknowledged, is_failed } = write(&mut database, states, &when);
        failures += u32::from(is_failed);
        let is_closed = database.close().is_ok();
        let mut opened = Database::open_on(disk.medium(), &OpenOptions::new()).expect(&when);
        let found = content(&mut opened).expect(&when);
        let place = states.iter().position(|state| *state == found);
        let place = place.unwrap_or_else(|| panic!("{when}: no such state")) as u32;
        assert!(place <= acknowledged + 1, "{when}: {place} of {acknowledged}");
        if durability == Durability::Every || is_closed {
            assert!(place >= acknowledged, "{when}: {place} of {acknowledged}");
        }
        assert_eq!(opened.check().unwrap(), [""; 0], "{when}");
        if !is_failed && is_closed {
            break;
        }
    }
    failures
}
