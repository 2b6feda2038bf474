//! What goes wrong on a disk.

use std::collections::BTreeSet;

use device::Error;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plan::{DiskFaultPlan, Trimmed};
use super::store::Store;
use super::timing::Direction;
use super::unflushed::{Fates, Pending};
use crate::faults::schedule::{Clock, Counts, RateClock, probability};
use crate::faults::{FaultKind, FaultLog};

/// The code in [`Error::Driver`] of a read or write that failed: an input/output error.
const IO_ERROR: i32 = 5;

/// What is wrong with a disk, and what will be.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    plan: DiskFaultPlan,
    random: ChaCha8Rng,
    events: RateClock,
    has_power: bool,
    pending: Pending,
    unreadable: BTreeSet<u64>,
    log: FaultLog,
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Proceed,
    Cut,
    Fail,
}

impl Faulty {
    pub(crate) fn new(plan: DiskFaultPlan) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
        let rate = probability(plan.failed_read_rate).max(probability(plan.failed_write_rate));
        let events = RateClock::new(rate, 0, &mut random);
        let unreadable = plan.unreadable.iter().map(|sector| sector.0).collect();
        Faulty {
            plan,
            random,
            events,
            has_power: true,
            pending: Pending::default(),
            unreadable,
            log: FaultLog::default(),
        }
    }

    /// Takes over what outlives a plan.
    pub(crate) fn follow(mut self, earlier: Option<&Faulty>) -> Self {
        if let Some(earlier) = earlier {
            self.has_power = earlier.has_power;
            self.log = earlier.log;
            self.unreadable.extend(&earlier.unreadable);
        }
        self
    }

    pub(crate) const fn has_power(&self) -> bool {
        self.has_power
    }

    pub(crate) const fn log(&self) -> FaultLog {
        self.log
    }

    /// The first operation that needs a closer look.
    pub(crate) fn next_event(&self, clock: &Clock) -> u64 {
        if !self.has_power {
            return 0;
        }
        self.events.next().min(clock.earliest(self.plan.power_cut))
    }

    /// What happens to the operation that was just counted.
    pub(crate) fn verdict(
        &mut self,
        direction: Option<Direction>,
        counts: Counts,
        clock: &Clock,
    ) -> Verdict {
        if clock.is_cut(self.plan.power_cut, counts) {
            self.plan.power_cut = None;
            return Verdict::Cut;
        }
        let rate = match direction {
            Some(Direction::Read) => self.plan.failed_read_rate,
            Some(Direction::Write) => self.plan.failed_write_rate,
            None => 0.0,
        };
        let hit = self.events.hit(clock.operations(), [probability(rate), 0.0], &mut self.random);
        if hit.is_some() { Verdict::Fail } else { Verdict::Proceed }
    }

    /// A read or a write that failed.
    pub(crate) fn failure(&mut self, kind: FaultKind) -> Error {
        self.log.note(kind);
        Error::Driver { code: IO_ERROR }
    }

    /// True if one of `count` sectors from `first` on can't be read.
    pub(crate) fn is_unreadable(&self, first: u64, count: u64) -> bool {
        self.unreadable.range(first..first + count).next().is_some()
    }

    /// Remembers a write before it is done.
    pub(crate) fn before_write(&mut self, store: &Store, first: u64, from: &[u8]) {
        for (sector, new) in (first..).zip(from.chunks(store.sector_bytes())) {
            self.unreadable.remove(&sector);
            self.pending.change(store, sector, new, &mut self.random);
        }
    }

    /// Says that the last write of `count` sectors from `first` on was not finished.
    pub(crate) fn tear(&mut self, first: u64, count: u64) {
        for sector in first..first + count {
            self.pending.tear(sector);
        }
    }

    /// Leaves of a write what its failure may leave.
    pub(crate) fn fail_write(&mut self, store: &mut Store, first: u64, count: u64) {
        let fates = self.fates();
        for sector in first..first + count {
            self.pending.fail(store, sector, &fates, &mut self.random);
        }
    }

    /// Does what a trim does to `count` sectors from `first` on.
    pub(crate) fn trim(&mut self, store: &mut Store, first: u64, count: u64) {
        let zeros = vec![0; store.sector_bytes()];
        for sector in store.held(first, count) {
            let is_kept = match self.plan.trimmed {
                Trimmed::Zeros => false,
                Trimmed::Kept => true,
                Trimmed::Any => self.random.random(),
            };
            if !is_kept {
                self.pending.change(store, sector, &zeros, &mut self.random);
                store.put_sector(sector, &zeros);
            }
        }
    }

    /// Makes all that was changed durable.
    pub(crate) fn flush(&mut self) {
        self.pending.clear();
    }

    pub(crate) fn lose_power(&mut self, store: &mut Store) -> Error {
        self.has_power = false;
        self.log.note(FaultKind::PowerCut);
        let fates = self.fates();
        self.pending.settle(store, &fates, &mut self.random, &mut self.log);
        Error::PowerCut
    }

    pub(crate) fn regain_power(&mut self) {
        self.has_power = true;
    }

    const fn fates(&self) -> Fates {
        Fates { unflushed: self.plan.unflushed, atomic_sectors: self.plan.atomic_sectors }
    }
}
