//! A disk that fails: what was refused changed nothing, what was broken off makes the index
//! read-only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use contract::tree::{Case, MemoryLevel, Stand, cases};
use device::{Cause, Error, Request, Result, Sector, SectorGeometry, Sectors};
use flashtree_trees::TREES;
use index::{Index, Update};

const FAILURE: Error = Error::Driver { code: 5 };

/// Which requests fail.
#[derive(Clone, Default)]
struct Switches {
    reads: Arc<AtomicBool>,
    /// Writes until all fail; 0 for never.
    writes_left: Arc<AtomicU32>,
}

struct Failing<S> {
    below: S,
    switches: Switches,
}

impl<S: Sectors> Sectors for Failing<S> {
    fn geometry(&self) -> SectorGeometry {
        self.below.geometry()
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        if self.switches.reads.load(Ordering::Relaxed) {
            return Err(FAILURE);
        }
        self.below.read(requests, cause)
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        match self.switches.writes_left.load(Ordering::Relaxed) {
            0 => {}
            1 => return Err(FAILURE),
            left => self.switches.writes_left.store(left - 1, Ordering::Relaxed),
        }
        self.below.write(first, from, cause)
    }

    fn trim(&mut self, first: Sector, count: u64, cause: Cause) -> Result<()> {
        self.below.trim(first, count, cause)
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.below.flush(cause)
    }
}

fn wanted() -> impl Iterator<Item = Case> {
    TREES.iter().flat_map(|entry| cases(entry)).filter(|case| {
        matches!(case.stand, Stand::Ram)
            && case.shape.name == "4+4"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Least
    })
}

fn put(index: &mut dyn Index, number: u32) -> index::Result<()> {
    let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
    index.update(&[Update::Put { key: &key, value: &number.to_be_bytes() }])
}

#[test]
fn an_update_that_could_not_read_changed_nothing_and_the_next_works() {
    // Where updates wait, most read nothing, and what one reads it reads for many others.
    for case in wanted().filter(|case| !matches!(case.entry.name, "flat-tree" | "la-tree")) {
        let mut storage = case.storage(1 << 20);
        let switches = Switches::default();
        let mine = switches.clone();
        let mut index = case
            .index_over(&mut storage, false, |below| Box::new(Failing { below, switches: mine }));
        // So many leave no leaf at half, whatever a node's header takes: a delete whose leaf is
        // cached and whose neighbour is not would be broken off after its first change.
        for number in 0..2600 {
            put(&mut *index, number).unwrap();
        }
        let mut failed = 0;
        for number in 0..200 {
            switches.reads.store(true, Ordering::Relaxed);
            let key = number_key(number);
            failed += u32::from(index.update(&[Update::Delete { key: &key }]).is_err());
            switches.reads.store(false, Ordering::Relaxed);
            put(&mut *index, number).expect("nothing was broken off");
        }
        assert!(failed > 100, "{}: {failed} reads failed", case.name());
        index.close().expect("it closes");
    }
}

fn number_key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

#[test]
fn an_update_broken_off_midway_makes_the_index_read_only() {
    let mut read_only = 0;
    for case in wanted() {
        for writes in 3..400 {
            let mut storage = case.storage(1 << 20);
            let switches = Switches::default();
            switches.writes_left.store(writes, Ordering::Relaxed);
            let mine = switches.clone();
            let mut index = case.index_over(&mut storage, false, |below| {
                Box::new(Failing { below, switches: mine })
            });
            let failed = (0..2000).find(|number| put(&mut *index, *number).is_err());
            // Some trees write little: the disk takes all that they write.
            let Some(failed) = failed else {
                assert!(writes > 30, "{}: {writes} writes are enough", case.name());
                break;
            };
            switches.writes_left.store(0, Ordering::Relaxed);
            if put(&mut *index, failed).is_err() {
                read_only += 1;
                assert!(index.close().is_err(), "half a change must not be closed");
                assert!(put(&mut *index, 1).is_err(), "it stays read-only");
            } else {
                for number in 0..=failed {
                    let found = index.get(&number_key(number), 0, &mut [0; 4]);
                    assert_eq!(found, Ok(Some(4)), "{}: key {number}", case.name());
                }
            }
        }
    }
    assert!(read_only > 5, "{read_only} updates were broken off midway");
}

/// Giving back the pages of a long value that could not be put meets the same disk.
#[test]
fn what_failed_first_is_told_though_nothing_can_be_given_back_then() {
    let is_wanted = |case: &Case| {
        matches!(case.stand, Stand::Ram)
            && case.entry.long_values
            && case.shape.name == "variable"
            && case.page_bytes == 512
            && case.parameters.is_empty()
            && case.memory == MemoryLevel::Least
    };
    let cases: Vec<_> = TREES.iter().flat_map(|entry| cases(entry)).filter(is_wanted).collect();
    assert!(cases.len() > 1);
    for case in cases {
        for writes in (2..300).step_by(7) {
            let mut storage = case.storage(1 << 20);
            let switches = Switches::default();
            let mine = switches.clone();
            let mut index = case.index_over(&mut storage, false, |below| {
                Box::new(Failing { below, switches: mine })
            });
            switches.writes_left.store(writes, Ordering::Relaxed);
            let value = [7; 3000];
            let error = (0..200_u32).find_map(|number| {
                let key = number_key(number);
                index.update(&[Update::Put { key: &key, value: &value }]).err()
            });
            let told = index::Error::Store(store::Error::Device(FAILURE));
            assert_eq!(error, Some(told), "{}, write {writes}", case.name());
        }
    }
}
