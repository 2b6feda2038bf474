//! How many operations of each kind a workload has.

use super::parameters::{Chosen, MOST};
use crate::error::{Error, Result};

/// A kind of operation, before it is known which key it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A get of a key that is there.
    Hit,
    /// A get of a key that was never there.
    Miss,
    /// A range.
    Range,
    /// A put of the next entry.
    Insert,
    /// A delete of a key that is there.
    Delete,
    /// A put of a key that is there, or, by rank, of any.
    Update,
}

const DEEDS: [Deed; 6] =
    [Deed::Hit, Deed::Miss, Deed::Range, Deed::Insert, Deed::Delete, Deed::Update];

/// The operations of each kind that are left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts([u64; DEEDS.len()]);

/// Operations of a mix where no total is given.
const MIX_OPERATIONS: u64 = 100_000;

/// What the counts follow from, beside the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The total that `--ops` sets.
    pub(super) operations: Option<u64>,
    /// The updates where neither parameter nor total says.
    pub(super) default_updates: u64,
    /// True if puts go to drawn keys instead of new ones.
    pub(super) by_rank: bool,
}

impl Counts {
    /// Counts from the parameters.
    ///
    /// # Errors
    /// Nothing would be done, or too much to be counted.
    pub(super) fn plan(chosen: &Chosen, frame: Frame) -> Result<Self> {
        let mut counts = Counts::default();
        if chosen.updates == Some(0) && frame.operations.is_some() {
            return Err(Error::NoOperations { why: "updates=0 and --ops contradict each other" });
        }
        let lookups = match chosen.mix {
            Some(mix) => counts.plan_mix(mix, frame),
            None => counts.plan_updates(chosen, frame),
        };
        let ranges = share(lookups, chosen.ranges);
        let hits = share(lookups - ranges, chosen.hits);
        counts.set(Deed::Range, ranges);
        counts.set(Deed::Hit, hits);
        counts.set(Deed::Miss, lookups - ranges - hits);
        if counts.total() == 0 {
            return Err(Error::NoOperations { why: "updates and --ops come to 0" });
        }
        if counts.total() > MOST {
            return Err(Error::TooManyOperations { operations: counts.total(), most: MOST });
        }
        Ok(counts)
    }

    /// A run of `operations` operations that rows ask for.
    pub(super) fn scripted(operations: u64) -> Self {
        let mut counts = Counts::default();
        counts.set(Deed::Hit, operations);
        counts
    }

    /// Updates, and lookups per 100 of them; returns the lookups.
    fn plan_updates(&mut self, chosen: &Chosen, frame: Frame) -> u64 {
        let (updates, lookups) = match frame.operations {
            Some(total) => {
                let updates = (total as f64 * 100.0 / (100.0 + chosen.ltu)).round() as u64;
                let updates = updates.min(total);
                (updates, total - updates)
            }
            None => {
                let updates = chosen.updates.unwrap_or(frame.default_updates);
                (updates, (updates as f64 * chosen.ltu / 100.0).round() as u64)
            }
        };
        let deletes = share(updates, chosen.deletes);
        let puts = if frame.by_rank { Deed::Update } else { Deed::Insert };
        self.set(Deed::Delete, deletes);
        self.set(puts, updates - deletes);
        lookups
    }

    /// Search, insert, delete, update in percent; returns the searches. Rounding the running sum
    /// makes the parts add up.
    fn plan_mix(&mut self, mix: [f64; 4], frame: Frame) -> u64 {
        let total = frame.operations.unwrap_or(MIX_OPERATIONS);
        let mut parts = [0; 4];
        let (mut percent, mut done) = (0.0, 0);
        for (part, share_of_all) in parts.iter_mut().zip(mix) {
            percent += share_of_all;
            let sum = share(total, percent);
            *part = sum - done;
            done = sum;
        }
        let [search, insert, delete, update] = parts;
        self.set(Deed::Insert, insert);
        self.set(Deed::Delete, delete);
        self.set(Deed::Update, update);
        search
    }

    fn set(&mut self, deed: Deed, count: u64) {
        self.0[deed as usize] = count;
    }

    /// How many of `deed` are left.
    pub(super) fn of(&self, deed: Deed) -> u64 {
        self.0[deed as usize]
    }

    /// How many are left in all.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Takes the one at `place` of all that are left, which is below `total`.
    pub(super) fn take(&mut self, mut place: u64) -> Deed {
        for (count, deed) in self.0.iter_mut().zip(DEEDS) {
            if place < *count {
                *count -= 1;
                return deed;
            }
            place -= *count;
        }
        Deed::Miss
    }

    /// Takes one of `wanted` and puts `back` back; returns false if none of `wanted` is left.
    pub(super) fn exchange(&mut self, wanted: Deed, back: Deed) -> bool {
        if self.of(wanted) == 0 {
            return false;
        }
        self.0[wanted as usize] -= 1;
        self.0[back as usize] += 1;
        true
    }
}

/// `percent` of `total`, rounded, and never more than all.
fn share(total: u64, percent: f64) -> u64 {
    ((total as f64 * percent / 100.0).round() as u64).min(total)
}

#[cfg(test)]
mod tests {
    use super::{Chosen, Counts, Deed, Frame};

    const FRAME: Frame = Frame { operations: None, default_updates: 211_061, by_rank: false };

    fn of(counts: &Counts) -> [u64; 6] {
        super::DEEDS.map(|deed| counts.of(deed))
    }

    #[test]
    fn lookups_come_per_hundred_updates() {
        let chosen = Chosen { ltu: 10.0, ..Chosen::default() };
        let counts = Counts::plan(&chosen, FRAME).unwrap();
        assert_eq!(of(&counts), [21_106, 0, 0, 211_061, 0, 0]);
        let given = Frame { operations: Some(1_000_000), ..FRAME };
        let counts = Counts::plan(&chosen, given).unwrap();
        assert_eq!(counts.total(), 1_000_000);
        assert_eq!(counts.of(Deed::Insert), 909_091);
    }

    #[test]
    fn deletes_hits_and_ranges_are_shares() {
        let chosen = Chosen {
            updates: Some(1000),
            ltu: 200.0,
            deletes: 10.0,
            hits: 75.0,
            ranges: 20.0,
            ..Chosen::default()
        };
        let counts = Counts::plan(&chosen, FRAME).unwrap();
        assert_eq!(of(&counts), [1200, 400, 400, 900, 100, 0]);
    }

    #[test]
    fn a_mix_adds_up_whatever_its_rounding() {
        let chosen = Chosen { mix: Some([33.3, 33.3, 16.7, 16.7]), ..Chosen::default() };
        for operations in [1, 2, 3, 7, 10, 999, 1000] {
            let frame = Frame { operations: Some(operations), ..FRAME };
            assert_eq!(Counts::plan(&chosen, frame).unwrap().total(), operations);
        }
        assert_eq!(Counts::plan(&chosen, FRAME).unwrap().total(), 100_000);
    }

    #[test]
    fn nothing_to_do_is_refused() {
        let chosen = Chosen { updates: Some(0), ltu: 10.0, ..Chosen::default() };
        assert!(Counts::plan(&chosen, FRAME).is_err());
    }
}
