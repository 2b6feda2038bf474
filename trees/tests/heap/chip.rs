//! A chip below the tree whose heap is measured.

use contract::nand::{Hook, Hooked, Program, Read};
use device::{Block, Cause, Medium, Nand, Result};
use sim::SimulatedNand;

use crate::heap::uncounted;

/// A chip whose own allocations don't count.
pub(crate) fn uncounted_chip(chip: &mut SimulatedNand) -> Medium<'_> {
    Medium::Nand(Box::new(Hooked { chip, hook: Uncounted }))
}

struct Uncounted;

impl<N: Nand> Hook<N> for Uncounted {
    fn read(&mut self, chip: &mut N, read: Read<'_>) -> Result<u16> {
        uncounted(|| read.on(chip))
    }

    fn program(&mut self, chip: &mut N, program: Program<'_>) -> Result<()> {
        uncounted(|| program.on(chip))
    }

    fn erase(&mut self, chip: &mut N, block: Block, cause: Cause) -> Result<()> {
        uncounted(|| chip.erase(block, cause))
    }
}
