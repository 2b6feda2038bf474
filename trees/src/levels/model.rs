//! How many pages merges read and write, found by playing them with numbers only.
//!
//! The FD-Tree paper's Algorithm 5 counts what is read and written until the two lowest levels were
//! merged. So does this, with the merges that this engine makes: all levels down to the one that
//! has room become one in a single pass. Keys are random, and those that come again make room.

use alloc::vec::Vec;

use index::random_keys::touched;

use super::cost::FILL;

/// A tree in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// Entries in a unit of a run.
    pub(crate) unit: f64,
    /// Updates that a head takes between two merges.
    pub(crate) head: f64,
    /// Units that the head counts as, when levels are measured by it.
    pub(crate) head_units: f64,
    /// How many times as large a level is as the one above it.
    pub(crate) ratio: f64,
    /// True if fences stand in the levels.
    pub(crate) has_fences: bool,
    /// True if a full head is merged in steps, while another one takes updates.
    pub(crate) has_two: bool,
}

/// Sizes of the head that averages are taken over.
pub(super) const STEPS: u32 = 16;

/// The part of what a head takes by which the full one is merged: most of what it takes at least,
/// with half-full leaves.
pub(super) const MERGED: f64 = 7.0 / 16.0 / FILL;

impl Numbers {
    /// The part of the lookups of random keys that the head, which has taken so much of what it
    /// takes, does not answer.
    pub(super) fn beyond_first(&self, entries: f64, part: f64) -> f64 {
        1.0 - touched(entries, self.head * part) / entries
    }

    /// The part of them that no head answers.
    fn beyond_heads(&self, entries: f64) -> f64 {
        if !self.has_two {
            return self.beyond_first(entries, 0.5);
        }
        let beyond = |step| {
            let part = (f64::from(step) + 0.5) / f64::from(STEPS);
            let full = if part < MERGED { self.beyond_first(entries, 1.0) } else { 1.0 };
            full * self.beyond_first(entries, part)
        };
        (0..STEPS).map(beyond).sum::<f64>() / f64::from(STEPS)
    }
}

/// What happens with each update.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merged {
    /// Units read and written, runs of fences among them.
    pub(crate) read: f64,
    pub(crate) written: f64,
    /// Units of the runs that a lookup comes to, on average, and how many of the lookups come
    /// there: a key that stands above is looked for no further.
    pub(crate) units: Vec<(f64, f64)>,
    /// Units of the runs of fences above the first level, on average.
    pub(crate) above: f64,
}

/// The most merges that are played.
const MERGES_MOST: u32 = 20_000;

/// Units of runs of fences above a run of `units` units.
fn fences_above(mut units: f64, each: f64) -> f64 {
    let mut all = 0.0;
    while units > 1.0 {
        units = libm::ceil(units / each);
        all += units + 1.0;
    }
    all
}

/// Plays merges of a tree of `entries` keys, where each update changes a random one of them, or,
/// where it `grows`, adds another; from one merge into the last level to the one after the next.
pub(crate) fn play(numbers: &Numbers, entries: f64, grows: bool) -> Merged {
    let Numbers { unit, head, head_units, ratio, has_fences, .. } = *numbers;
    let capacity = |level: usize| head_units * libm::pow(ratio, level as f64 + 1.0);
    let units_of = |entries: f64| libm::ceil(entries / unit);
    let mut last = 0;
    while capacity(last) < units_of(entries) {
        last += 1;
    }
    // Entries of each level; the last one has all keys.
    let mut levels = alloc::vec![0.0; last + 1];
    levels[last] = entries;
    let (mut merged, mut updates, mut rounds) = (Merged::default(), 0.0, 0);
    let mut sums = alloc::vec![(0.0, 0.0); last + 1 + STACK];
    for _ in 0..MERGES_MOST {
        updates += head;
        let mut moving = touched(entries, head);
        let mut read = 0.0;
        for level in 0..=last {
            // Of random keys some are in both.
            let both = levels[level] + moving;
            let union =
                entries * (1.0 - (1.0 - moving / entries) * (1.0 - levels[level] / entries));
            let joined = if grows { both } else { union };
            let lower = levels[level + 1..].iter().find(|entries| **entries > 0.0);
            let fences = lower.filter(|_| has_fences).map_or(0.0, |lower| units_of(*lower));
            read += fences_read(levels[level], fences, unit, levels[level] > 0.0);
            let units = libm::ceil((both + fences) / (unit - if fences > 0.0 { 1.0 } else { 0.0 }));
            if level < last && units > capacity(level) {
                moving = joined;
                levels[level] = 0.0;
                continue;
            }
            levels[level] = if level == last && !grows { entries } else { joined };
            let written = units_of(levels[level] + fences);
            merged.read += read;
            merged.written += written + 1.0 + fences_above(written, unit);
            if level == last {
                rounds += 1;
            }
            break;
        }
        // The head grows from nothing to all of it.
        let beyond = numbers.beyond_heads(entries);
        merged.above += count_runs((&levels, entries), numbers, beyond, &mut sums);
        if rounds == 2 {
            break;
        }
    }
    let merges = updates / head;
    merged.read /= updates;
    merged.written /= updates;
    merged.above /= merges;
    let mean = |(units, share): &(f64, f64)| (units / merges, share / merges);
    merged.units = sums.iter().map(mean).collect();
    merged
}

/// Runs of fences above one another, at most.
const STACK: usize = 8;

/// Adds the units of the runs that a lookup comes to, and the share of lookups that come there, of
/// which `beyond` go beyond the head; returns the units of fences above the first.
fn count_runs(
    (levels, entries): (&[f64], f64),
    numbers: &Numbers,
    mut beyond: f64,
    sums: &mut [(f64, f64)],
) -> f64 {
    let mut above = 0.0;
    let mut is_first = true;
    for (level, held) in levels.iter().enumerate().filter(|(_, held)| **held > 0.0) {
        let mut units = libm::ceil(held / numbers.unit);
        let mut place = STACK + level;
        sums[place] = (sums[place].0 + units, sums[place].1 + beyond);
        place = STACK;
        while units > 1.0 && place > 0 && (is_first || !numbers.has_fences) {
            units = libm::ceil(units / numbers.unit);
            place -= 1;
            sums[place] = (sums[place].0 + units, sums[place].1 + beyond);
            above += units;
        }
        beyond *= 1.0 - (held / entries).min(1.0);
        is_first = false;
    }
    above
}

fn fences_read(entries: f64, fences: f64, unit: f64, is_there: bool) -> f64 {
    if is_there { libm::ceil((entries + fences) / unit) } else { 0.0 }
}
