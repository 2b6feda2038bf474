//! How many entries go into a batch, so that Ctrl-C is heeded in good time whatever the device.

use std::time::Duration;

/// The most entries in a batch.
pub(super) const MOST: usize = 4096;

/// The entries of the first batch: even a device that takes a few of them a second is done soon.
const FIRST: usize = 16;

/// What a batch should take at most. A batch costs a flush of the journal beside its entries: what
/// takes as long as this does not feel it.
const TIME: Duration = Duration::from_millis(250);

/// The entries of the next batch.
pub(super) struct Pace {
    entries: usize,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Pace { entries: FIRST }
    }

    pub(super) const fn entries(&self) -> usize {
        self.entries
    }

    /// Notes that a batch of so many `entries` took `time`. The next one is at most twice as long,
    /// and shorter if this one took too long. One that was cut short for another reason, and was
    /// in time, says nothing.
    pub(super) fn note(&mut self, entries: usize, time: Duration) {
        if entries < self.entries && time <= TIME {
            return;
        }
        let in_time = entries as u128 * TIME.as_nanos() / time.as_nanos().max(1);
        let in_time = usize::try_from(in_time).unwrap_or(MOST);
        self.entries = in_time.min(entries.saturating_mul(2)).clamp(1, MOST);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MOST, Pace};

    /// The batches in which 20,000 entries go, where each takes `entry`, and how long each took.
    fn batches(entry: Duration) -> Vec<(usize, Duration)> {
        let (mut pace, mut left, mut batches) = (Pace::new(), 20_000_usize, Vec::new());
        while left > 0 {
            let entries = pace.entries().min(left);
            let time = entry * entries as u32;
            batches.push((entries, time));
            pace.note(entries, time);
            left -= entries;
        }
        batches
    }

    #[test]
    fn a_slow_device_gets_short_batches_and_a_quick_one_long_ones() {
        let slow = batches(Duration::from_millis(150));
        assert!(slow.iter().all(|(_, time)| *time <= Duration::from_millis(2400)), "{slow:?}");
        assert!(slow[1..].iter().all(|(entries, _)| *entries == 1), "{slow:?}");
        let quick = batches(Duration::from_micros(15));
        assert!(quick.len() < 16 && quick.iter().any(|(entries, _)| *entries == MOST), "{quick:?}");
        let none = batches(Duration::ZERO);
        assert!(none.len() < 16, "{none:?}");
    }

    #[test]
    fn a_device_that_becomes_slow_is_noticed_at_once() {
        let mut pace = Pace::new();
        for _ in 0..10 {
            pace.note(pace.entries(), Duration::from_millis(1));
        }
        assert_eq!(pace.entries(), MOST);
        pace.note(7, Duration::from_millis(7));
        assert_eq!(pace.entries(), MOST);
        pace.note(MOST, Duration::from_secs(25));
        assert_eq!(pace.entries(), 40);
    }
}
