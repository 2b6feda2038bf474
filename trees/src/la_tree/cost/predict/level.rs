//! The buffers of a level: what they hold, how a lookup searches one, and what of one goes to
//! flash.

use super::plan::Plan;

/// Sizes of a buffer that lookups are taken to come at.
const SIZES: u32 = 64;

/// With more batches than this to a buffer it does not matter that their number is a whole one.
const BATCHES_MOST: f64 = 30.0;

/// The standard deviation of how full nodes are, which are half full at least, to their average.
const UNEVEN: f64 = 0.19;

/// The buffers of a level. Sizes are in entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    pub(super) level: usize,
    pub(super) count: f64,
    /// The lowest level of the subtrees, S, and L where these are leaves.
    pub(super) lowest: usize,
    pub(super) nodes: f64,
    pub(super) leaves: f64,
    /// Entries that come to one for an update of the tree.
    pub(super) rate: f64,
    /// Lookups that come to one for an entry that does.
    pub(super) lookups: f64,
    /// Entries that come at once.
    pub(super) batch: f64,
    /// Entries above which it is too large.
    pub(super) limit: f64,
    /// Entries at which a buffer is emptied.
    pub(super) emptied: f64,
    /// The chance that it comes to have so many entries that some go to flash, and at how many it
    /// is emptied then.
    pub(super) reach: f64,
    pub(super) longest: f64,
    /// The most entries that a lookup finds in one; it may be any number below.
    pub(super) seen: f64,
    /// What of it goes to flash before.
    pub(super) flash: Fragments,
    /// Entries that go to flash at the latest when it is emptied.
    pub(super) beyond: f64,
    /// Entries that go on when it is emptied.
    pub(super) passed: f64,
}

impl Buffers {
    /// Entries that a lookup finds in a buffer.
    pub(super) fn held(&self) -> f64 {
        self.seen / 2.0
    }

    /// What comes of a buffer before it has `most` entries, if it is not emptied for lookups.
    pub(super) fn outgrown(&self, most: f64) -> Grown {
        let &Buffers { limit, batch, count, .. } = self;
        if !self.is_of_few_batches() {
            let emptied = limit + batch.max(1.0) / 2.0;
            return Grown { reach: f64::from(u8::from(most <= emptied)), emptied, seen: 0.0 };
        }
        // Keys fall at random, and but for the two halves of what was one node, nodes differ.
        let uneven = UNEVEN * (1.0 - 2.0 / count).max(0.0);
        let chance = batch * (1.0 - 1.0 / count);
        let (mut batches, mut within, mut number, mut seen) = (0.0, 1.0, 0.0, 0.0);
        let most = self.batches_of(most).min(2.0 * BATCHES_MOST);
        while number < most && within > 1e-6 {
            batches += within;
            seen += within * number * batch;
            number += 1.0;
            let spread = number * batch * uneven;
            let deviation = libm::sqrt(number * chance + spread * spread);
            let above = (number * batch - limit) / deviation.max(f64::MIN_POSITIVE);
            within = libm::erfc(above / core::f64::consts::SQRT_2) / 2.0;
        }
        let emptied = (batches - number * within) * batch / (1.0 - within).max(f64::MIN_POSITIVE);
        Grown { reach: within, emptied, seen }
    }

    /// Batches after which it has about so many entries.
    fn batches_of(&self, entries: f64) -> f64 {
        libm::round(entries / self.batch).max(1.0)
    }

    /// Entries that it has when it comes to about so many.
    pub(super) fn in_batches(&self, entries: f64) -> f64 {
        if self.is_of_few_batches() { self.batches_of(entries) * self.batch } else { entries }
    }

    fn is_of_few_batches(&self) -> bool {
        self.count > 1.0 && self.batch * BATCHES_MOST >= self.limit
    }

    /// Those of them that are in the pool, if `flash` is what goes to flash.
    pub(super) fn in_pool(&self, flash: &Fragments, is_in_place: bool) -> f64 {
        if is_in_place && self.is_of_few_batches() {
            return self.outgrown(flash.first).seen * self.batch / self.emptied;
        }
        // One that was put to the pool may send the fragment to flash.
        let most = flash.fullest - f64::midpoint(flash.each, 1.0);
        self.held().min(most.max(0.0))
    }

    /// Fragments that a lookup reads, which does not go on when it finds its key, one of `keys`;
    /// and the chance that it does not find it.
    pub(super) fn searched(&self, keys: f64) -> (f64, f64) {
        let (keys, each) = (keys.max(1.0), self.flash.each);
        let (mut read, mut missed) = (0.0, 0.0);
        for step in 0..SIZES {
            let part = (f64::from(step) + 0.5) / f64::from(SIZES);
            // Batches differ, and so do fragments: one more of them may be there before the last.
            let entries = self.longest * part;
            let number = self.flash.of(entries);
            let in_pool = libm::exp(-(entries - number * each) / keys);
            let beside = libm::exp(-each / keys);
            read += in_pool * (1.0 - libm::pow(beside, number)) / (1.0 - beside);
            missed += libm::exp(-self.seen * part / keys);
        }
        let on_flash = self.reach * self.longest / self.emptied;
        (on_flash * read / f64::from(SIZES), missed / f64::from(SIZES))
    }

    /// Fragments of a buffer that is emptied.
    pub(super) fn fragments(&self) -> f64 {
        self.reach * self.flash.of(self.longest)
    }

    /// Entries that go to flash of a buffer until it is emptied.
    pub(super) fn stored(&self) -> f64 {
        let stored = self.fragments() * self.flash.each;
        stored.min(self.emptied).max(self.beyond)
    }
}

/// What batches do to a buffer until it has so many entries, or is emptied as too large.
pub(super) struct Grown {
    /// The chance that it comes to have them.
    pub(super) reach: f64,
    /// Otherwise, at how many it is emptied.
    pub(super) emptied: f64,
    /// The sum of what lookups find, if one comes before each batch.
    seen: f64,
}

/// What a buffer has on flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragments {
    /// Entries at which the first of it leaves the pool, and those of a fragment.
    pub(super) first: f64,
    pub(super) each: f64,
    /// Entries of the buffer in the pool at most, but for a short time.
    pub(super) fullest: f64,
}

impl Fragments {
    /// All is in the pool.
    pub(super) fn none(plan: &Plan) -> Self {
        let never = f64::INFINITY;
        Fragments { first: never, each: plan.page_entries(), fullest: never }
    }

    /// Fragments of a buffer of `entries` entries.
    pub(super) fn of(&self, entries: f64) -> f64 {
        if entries < self.first {
            0.0
        } else {
            1.0 + libm::floor((entries - self.first) / self.each)
        }
    }
}

/// Entries that go to flash for an update.
pub(super) fn stored(buffers: &[Buffers]) -> f64 {
    let stored = |all: &Buffers| all.rate * all.count * all.stored() / all.emptied;
    buffers.iter().map(stored).sum::<f64>().max(1e-6)
}
