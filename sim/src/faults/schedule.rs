//! When something happens: a countdown that costs each operation one comparison.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Geometric};

use crate::faults::Cut;

/// The operations of a device since its plan was armed, and the first at which to look closer.
///
/// Invariant: at no operation before `next_event` does the plan do anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    operations: u64,
    changes: u64,
    next_event: u64,
}

/// What an operation does to the medium, as far as counting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    AsRead,
    AsChange,
}

impl Clock {
    /// A clock at which nothing ever happens.
    pub(crate) const fn idle() -> Self {
        Clock { operations: 0, changes: 0, next_event: u64::MAX }
    }

    /// Counts a read; true if something may happen at it.
    #[inline]
    pub(crate) fn read(&mut self) -> bool {
        self.operations += 1;
        self.operations >= self.next_event
    }

    /// Counts a change; true if something may happen at it.
    #[inline]
    pub(crate) fn change(&mut self) -> bool {
        self.changes += 1;
        self.read()
    }

    /// Takes back what was counted for an operation that did not reach the device.
    pub(crate) fn take_back(&mut self, counts: Counts) {
        self.operations -= 1;
        self.changes -= u64::from(counts == Counts::AsChange);
    }

    pub(crate) const fn operations(&self) -> u64 {
        self.operations
    }

    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Looks closer at operation `next` and not before.
    pub(crate) fn look_at(&mut self, next: u64) {
        self.next_event = next;
    }

    /// True if the operation that was just counted is the one at which the power goes.
    pub(crate) fn is_cut(&self, cut: Option<Cut>, counts: Counts) -> bool {
        match cut {
            Some(Cut::Operation(at)) => self.operations >= at,
            Some(Cut::Change(at)) => counts == Counts::AsChange && self.changes >= at,
            None => false,
        }
    }

    /// The first operation that `cut` can hit: the next changes may all come at once.
    pub(crate) fn earliest(&self, cut: Option<Cut>) -> u64 {
        match cut {
            Some(Cut::Operation(at)) => at,
            Some(Cut::Change(at)) => {
                self.operations.saturating_add(at.saturating_sub(self.changes).max(1))
            }
            None => u64::MAX,
        }
    }
}

/// Events that hit each operation with one probability, independently: the distance to the next
/// is drawn, not each operation.
///
/// Operations of several kinds share one clock of events at the highest of their rates; an
/// operation of a rarer kind that is hit then lets the event pass in proportion. So each kind has
/// its own rate exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateClock {
    rate: f64,
    next: u64,
}

impl RateClock {
    /// A clock of events at `rate` (0 to 1), which starts after operation `now`.
    pub(crate) fn new(rate: f64, now: u64, random: &mut ChaCha8Rng) -> Self {
        let mut clock = RateClock { rate: probability(rate), next: u64::MAX };
        clock.draw(now, random);
        clock
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    fn draw(&mut self, now: u64, random: &mut ChaCha8Rng) {
        self.next = match Geometric::new(self.rate) {
            Ok(distance) if self.rate > 0.0 => {
                now.saturating_add(1).saturating_add(distance.sample(random))
            }
            _ => u64::MAX,
        };
    }

    /// Which of two faults with these rates hits operation `now`, if any.
    pub(crate) fn hit(
        &mut self,
        now: u64,
        rates: [f64; 2],
        random: &mut ChaCha8Rng,
    ) -> Option<usize> {
        if now < self.next {
            return None;
        }
        self.draw(now, random);
        let place = random.random::<f64>() * self.rate;
        if place < rates[0] { Some(0) } else { (place < rates[0] + rates[1]).then_some(1) }
    }
}

/// A rate as a probability.
pub(crate) fn probability(rate: f64) -> f64 {
    if rate.is_nan() { 0.0 } else { rate.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::{Clock, Counts, RateClock};
    use crate::faults::Cut;

    #[test]
    fn events_come_at_their_rates() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut clock = RateClock::new(0.02, 0, &mut random);
        let (mut often, mut seldom) = ([0; 2], 0);
        for now in 1..=1_000_000 {
            // Every other operation is of a kind with lower rates.
            if now % 2 == 0 {
                if let Some(which) = clock.hit(now, [0.005, 0.015], &mut random) {
                    often[which] += 1;
                }
            } else if clock.hit(now, [0.001, 0.0], &mut random).is_some() {
                seldom += 1;
            }
        }
        assert!((2250..=2750).contains(&often[0]), "{often:?}");
        assert!((7100..=7900).contains(&often[1]), "{often:?}");
        assert!((420..=580).contains(&seldom), "{seldom}");
    }

    #[test]
    fn impossible_rates_are_taken_as_the_nearest_possible() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for never in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(RateClock::new(never, 5, &mut random).next(), u64::MAX);
        }
        for always in [1.0, 7.0, f64::INFINITY] {
            assert_eq!(RateClock::new(always, 5, &mut random).next(), 6);
        }
        assert!(RateClock::new(f64::MIN_POSITIVE, 5, &mut random).next() > 1 << 50);
    }

    #[test]
    fn a_cut_is_met_exactly_and_looked_for_seldom() {
        for (reads_between, at) in [(0, 1), (0, 100), (3, 100), (50, 1000)] {
            let mut clock = Clock::idle();
            let cut = Some(Cut::Change(at));
            clock.look_at(clock.earliest(cut));
            let mut looks = 0;
            'run: loop {
                for _ in 0..reads_between {
                    if clock.read() {
                        looks += 1;
                        assert!(!clock.is_cut(cut, Counts::AsRead));
                        clock.look_at(clock.earliest(cut));
                    }
                }
                if clock.change() {
                    looks += 1;
                    if clock.is_cut(cut, Counts::AsChange) {
                        break 'run;
                    }
                    clock.look_at(clock.earliest(cut));
                }
            }
            assert_eq!(clock.changes(), at);
            assert_eq!(clock.operations(), at * (1 + reads_between));
            assert!(looks < 500, "{looks} looks for {at} changes");
        }
    }
}
