//! The meanest of torn programs: the spare area is whole, the data is not.

use device::{Error, Result};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

use crate::nand::{Hook, Program};

/// Cuts the power of a chip at a chosen program, of which the spare area is written and the data
/// is not, or not all of it.
pub(super) struct HalfTorn {
    /// Programs until the one that is torn.
    pub(super) programs_left: Option<u64>,
    pub(super) random: ChaCha8Rng,
}

impl HalfTorn {
    /// Counts a program; true if it is the one.
    fn is_torn(&mut self) -> bool {
        match &mut self.programs_left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    /// The data with some bytes of it erased or damaged.
    fn tear(&mut self, data: &[u8]) -> Vec<u8> {
        let mut torn = data.to_vec();
        let from = self.random.random_range(0..=data.len());
        match self.random.random_range(0..3) {
            0 => torn[from..].fill(0xFF),
            1 => self.random.fill_bytes(&mut torn[from..]),
            _ => torn.iter_mut().step_by(7).for_each(|byte| *byte |= self.random.random::<u8>()),
        }
        torn
    }
}

impl Hook<&mut SimulatedNand> for HalfTorn {
    fn program(&mut self, chip: &mut &mut SimulatedNand, program: Program<'_>) -> Result<()> {
        if !self.is_torn() {
            return program.on(chip);
        }
        let torn = self.tear(program.data);
        Program { data: &torn, ..program }.on(chip)?;
        chip.cut_power();
        Err(Error::PowerCut)
    }
}
