//! What the suite is played on.

use device::Nand;
use sim::{FaultKind, FaultPlan, SimulatedNand};

/// A chip on which faults can be made to happen.
pub trait Subject {
    /// The chip.
    type Chip: Nand;

    /// The chip, for an operation.
    fn chip(&mut self) -> &mut Self::Chip;

    /// Takes `plan` in place of the one before, and counts operations from 0 again. What earlier
    /// faults did to the medium stays.
    fn arm(&mut self, plan: &FaultPlan);

    /// Gives the power back after a cut.
    fn restore_power(&mut self);

    /// How often a fault of this kind has happened. Faults that can be seen are counted where they
    /// are seen: a read of a page that was torn may count as uncorrectable.
    fn count(&self, kind: FaultKind) -> u64;
}

impl Subject for SimulatedNand {
    type Chip = Self;

    fn chip(&mut self) -> &mut Self {
        self
    }

    fn arm(&mut self, plan: &FaultPlan) {
        SimulatedNand::arm(self, plan.clone());
    }

    fn restore_power(&mut self) {
        SimulatedNand::restore_power(self);
    }

    fn count(&self, kind: FaultKind) -> u64 {
        self.faults().count(kind)
    }
}

/// A chip on which nothing goes wrong.
pub struct Sound<N>(pub N);

impl<N: Nand> Subject for Sound<N> {
    type Chip = N;

    fn chip(&mut self) -> &mut N {
        &mut self.0
    }

    fn arm(&mut self, _plan: &FaultPlan) {}

    fn restore_power(&mut self) {}

    fn count(&self, _kind: FaultKind) -> u64 {
        0
    }
}
