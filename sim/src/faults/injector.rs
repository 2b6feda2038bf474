//! Whether an operation goes wrong.

use device::Operation;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::faults::schedule::{Clock, Counts, RateClock, probability};
use crate::faults::{Failure, FaultPlan};

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing out of the order.
    Proceed,
    /// The power goes.
    Cut,
    /// The program or erase is refused.
    Refuse,
    /// The program or erase is not done.
    Drop,
    /// The read has flipped bits within the code.
    FlipFew,
    /// The read has more flipped bits than the code corrects.
    FlipMany,
}

/// How an operation counts.
pub(crate) const fn counts(operation: Operation) -> Counts {
    match operation {
        Operation::Read => Counts::AsRead,
        Operation::Program | Operation::Erase => Counts::AsChange,
    }
}

/// A plan at work. Its randomness is drawn only at events, in the order of the operations.
#[derive(Clone, Debug)]
pub(crate) struct Injector {
    pub(crate) plan: FaultPlan,
    pub(crate) random: ChaCha8Rng,
    events: RateClock,
}

impl Injector {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
        let of = |failures: [&Failure; 2]| failures.map(|failure| probability(failure.rate));
        let sum = |[first, second]: [f64; 2]| first + second;
        let reads = sum([plan.flips.corrected_rate, plan.flips.uncorrectable_rate].map(probability))
            * plan.flips.growth.most.max(1.0);
        let programs = sum(of([&plan.refused_program, &plan.silent_program]));
        let erases = sum(of([&plan.refused_erase, &plan.silent_erase]));
        let events = RateClock::new(reads.max(programs).max(erases), 0, &mut random);
        Injector { plan, random, events }
    }

    /// The first operation at which something may happen.
    pub(crate) fn next_event(&self, clock: &Clock) -> u64 {
        let plan = &self.plan;
        [&plan.refused_program, &plan.refused_erase, &plan.silent_program, &plan.silent_erase]
            .iter()
            .filter_map(|failure| failure.at_operation)
            .chain([self.events.next(), clock.earliest(plan.power_cut)])
            .min()
            .unwrap_or(u64::MAX)
    }

    /// What happens to the operation that was just counted; `stress` multiplies the rates of
    /// flips.
    pub(crate) fn verdict(&mut self, operation: Operation, clock: &Clock, stress: f64) -> Verdict {
        if clock.is_cut(self.plan.power_cut, counts(operation)) {
            self.plan.power_cut = None;
            return Verdict::Cut;
        }
        let now = clock.operations();
        let rates = self.rates(operation, stress);
        let hit = self.events.hit(now, rates, &mut self.random);
        let plan = &mut self.plan;
        let (refused, silent) = match operation {
            Operation::Read => {
                let flips = [Verdict::FlipFew, Verdict::FlipMany];
                return hit.map_or(Verdict::Proceed, |which| flips[which]);
            }
            Operation::Program => (&mut plan.refused_program, &mut plan.silent_program),
            Operation::Erase => (&mut plan.refused_erase, &mut plan.silent_erase),
        };
        if hit == Some(0) || take_if_due(refused, now) {
            Verdict::Refuse
        } else if hit == Some(1) || take_if_due(silent, now) {
            Verdict::Drop
        } else {
            Verdict::Proceed
        }
    }

    fn rates(&self, operation: Operation, stress: f64) -> [f64; 2] {
        let plan = &self.plan;
        match operation {
            Operation::Read => {
                let flips = &plan.flips;
                [flips.corrected_rate, flips.uncorrectable_rate]
                    .map(|rate| probability(rate) * stress)
            }
            Operation::Program => {
                [plan.refused_program.rate, plan.silent_program.rate].map(probability)
            }
            Operation::Erase => [plan.refused_erase.rate, plan.silent_erase.rate].map(probability),
        }
    }

    /// By how much `reads` and `erases` of a block multiply the rates of flips.
    pub(crate) fn stress(&self, reads: u32, erases: u32) -> f64 {
        let growth = &self.plan.flips.growth;
        let more = growth.per_read * f64::from(reads) + growth.per_erase * f64::from(erases);
        (1.0 + more.max(0.0)).min(growth.most.max(1.0))
    }

    /// How many bits flip in a read that was hit.
    pub(crate) fn bits(&mut self, verdict: Verdict) -> u16 {
        let code = self.plan.flips.ecc_bits.unwrap_or(0);
        match verdict {
            Verdict::FlipFew => self.random.random_range(1..=code.max(1)),
            Verdict::FlipMany => {
                let least = code.saturating_add(1);
                self.random.random_range(least..=least.saturating_mul(2))
            }
            _ => 0,
        }
    }

    /// True if the `erases`th erase wears a block out.
    pub(crate) fn wears_out(&mut self, erases: u32) -> bool {
        let Some(wear_out) = self.plan.wear_out else { return false };
        let beyond = erases.saturating_sub(wear_out.endurance);
        let span = wear_out.certain.saturating_sub(wear_out.endurance).max(1);
        beyond > 0 && self.random.random_range(0..span) < beyond
    }
}

/// True, once, if `failure` is planned for this operation or for one before it.
fn take_if_due(failure: &mut Failure, now: u64) -> bool {
    failure.at_operation.take_if(|at| *at <= now).is_some()
}
