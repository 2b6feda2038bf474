//! A chip whose operations pass a hook: what a test does to a chip from outside is written once,
//! and forwarding is written here only.

use device::{Block, Cause, Geometry, Meter, Nand, Page, Result};

/// A read on its way to a chip; the arguments of [`Nand::read`].
pub struct Read<'r> {
    /// The page.
    pub page: Page,
    /// The first byte.
    pub offset: u32,
    /// Where its bytes go.
    pub into: &'r mut [u8],
    /// Where its spare area goes.
    pub spare: &'r mut [u8],
    /// Why.
    pub cause: Cause,
}

impl Read<'_> {
    /// Does it.
    ///
    /// # Errors
    /// Those of the chip.
    pub fn on(self, chip: &mut impl Nand) -> Result<u16> {
        chip.read(self.page, self.offset, self.into, self.spare, self.cause)
    }
}

/// A program on its way to a chip; the arguments of [`Nand::program`].
#[derive(Clone, Copy, Debug)]
pub struct Program<'p> {
    /// The page.
    pub page: Page,
    /// The first byte.
    pub offset: u32,
    /// Its bytes.
    pub data: &'p [u8],
    /// Its spare area.
    pub spare: &'p [u8],
    /// Why.
    pub cause: Cause,
}

impl Program<'_> {
    /// Does it.
    ///
    /// # Errors
    /// Those of the chip.
    pub fn on(self, chip: &mut impl Nand) -> Result<()> {
        chip.program(self.page, self.offset, self.data, self.spare, self.cause)
    }
}

/// What a test does with the operations on a chip. Each is handed on as it is, unless the hook
/// says something else.
pub trait Hook<N: Nand>: Send {
    /// Comes before every operation, questions and marks of bad blocks included.
    ///
    /// # Errors
    /// What the operation returns in place of being done.
    fn before(&mut self, chip: &mut N) -> Result<()> {
        let _ = chip;
        Ok(())
    }

    /// In place of [`Nand::read`].
    ///
    /// # Errors
    /// Those of the chip, and those that the hook makes.
    fn read(&mut self, chip: &mut N, read: Read<'_>) -> Result<u16> {
        read.on(chip)
    }

    /// In place of [`Nand::program`].
    ///
    /// # Errors
    /// Those of the chip, and those that the hook makes.
    fn program(&mut self, chip: &mut N, program: Program<'_>) -> Result<()> {
        program.on(chip)
    }

    /// In place of [`Nand::erase`].
    ///
    /// # Errors
    /// Those of the chip, and those that the hook makes.
    fn erase(&mut self, chip: &mut N, block: Block, cause: Cause) -> Result<()> {
        chip.erase(block, cause)
    }

    /// In place of [`Nand::meter`].
    fn meter<'n>(&self, chip: &'n N) -> Option<&'n Meter> {
        chip.meter()
    }
}

/// A chip and the hook that its operations pass.
pub struct Hooked<N, H> {
    /// The chip itself, past the hook.
    pub chip: N,
    /// The hook.
    pub hook: H,
}

impl<N: Nand, H: Hook<N>> Nand for Hooked<N, H> {
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
        self.hook.before(&mut self.chip)?;
        self.hook.read(&mut self.chip, Read { page, offset, into, spare, cause })
    }

    fn program(
        &mut self,
        page: Page,
        offset: u32,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<()> {
        self.hook.before(&mut self.chip)?;
        self.hook.program(&mut self.chip, Program { page, offset, data, spare, cause })
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.hook.before(&mut self.chip)?;
        self.hook.erase(&mut self.chip, block, cause)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.hook.before(&mut self.chip)?;
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.hook.before(&mut self.chip)?;
        self.chip.mark_bad(block)
    }

    fn meter(&self) -> Option<&Meter> {
        self.hook.meter(&self.chip)
    }
}
