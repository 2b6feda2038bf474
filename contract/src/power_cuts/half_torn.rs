//! The meanest of torn programs: the spare area is whole, the data is not.

use device::{Block, Cause, Error, Geometry, Meter, Nand, Page, Result};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// A chip whose power is cut at a chosen program, of which the spare area is written and the data
/// is not, or not all of it.
pub(super) struct HalfTorn<'c> {
    pub(super) chip: &'c mut SimulatedNand,
    /// Programs until the one that is torn.
    pub(super) programs_left: Option<u64>,
    pub(super) random: ChaCha8Rng,
}

impl HalfTorn<'_> {
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

impl Nand for HalfTorn<'_> {
    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<u16> {
        self.chip.read(page, offset, into, spare, cause)
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        if !self.is_torn() {
            return self.chip.program(page, offset, data, spare, cause);
        }
        let torn = self.tear(data);
        self.chip.program(page, offset, &torn, spare, cause)?;
        self.chip.cut_power();
        Err(Error::PowerCut)
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.chip.erase(block, cause)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.chip.mark_bad(block)
    }

    fn meter(&self) -> Option<&Meter> {
        self.chip.meter()
    }
}
