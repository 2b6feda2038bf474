//! The buffers of a level: what they hold, how a lookup searches one, and what of one goes to
//! flash.

use super::plan::Plan;

/// Sizes of a buffer that lookups are taken to come at.
const SIZES: u32 = 64;

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
    /// Entries at which a buffer is emptied.
    pub(super) emptied: f64,
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

    /// Those of them that are in the pool, if `flash` is what goes to flash.
    pub(super) fn in_pool(&self, flash: &Fragments) -> f64 {
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
            let entries = self.emptied * part;
            let number = self.flash.of(entries);
            let in_pool = libm::exp(-(entries - number * each) / keys);
            let beside = libm::exp(-each / keys);
            read += in_pool * (1.0 - libm::pow(beside, number)) / (1.0 - beside);
            missed += libm::exp(-self.seen * part / keys);
        }
        (read / f64::from(SIZES), missed / f64::from(SIZES))
    }

    /// Entries that go to flash of a buffer until it is emptied.
    pub(super) fn stored(&self) -> f64 {
        let stored = self.flash.of(self.emptied) * self.flash.each;
        stored.min(self.emptied).max(self.beyond)
    }
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
