//! A chip on which programs and erases fail as [`device::Nand`] says they may.

use device::{Block, Cause, Error, Geometry, Meter, Nand, Page, Result};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use sim::SimulatedNand;

/// A simulated chip whose power is cut, or which refuses, at chosen operations.
pub(crate) struct Fragile {
    pub(crate) chip: SimulatedNand,
    pub(crate) random: ChaCha8Rng,
    /// Programs and erases until the power is cut in the middle of one.
    pub(crate) left: Option<u64>,
    /// Every one of so many programs and erases is refused, on average.
    pub(crate) refuse: Option<u32>,
    /// Programs and erases that were refused.
    pub(crate) refused: u64,
    dead: bool,
}

impl Fragile {
    pub(crate) fn new(chip: SimulatedNand, random: ChaCha8Rng) -> Self {
        Fragile { chip, random, left: None, refuse: None, refused: 0, dead: false }
    }

    /// Gives power for so many programs and erases.
    pub(crate) fn power(&mut self, operations: Option<u64>) {
        self.left = operations;
        self.dead = false;
    }

    /// Counts an operation; returns true if the power is cut in it.
    fn cut(&mut self) -> bool {
        match &mut self.left {
            Some(0) => self.dead = true,
            Some(left) => *left -= 1,
            None => {}
        }
        self.dead
    }

    fn refuses(&mut self) -> bool {
        let refuses = self.refuse.is_some_and(|one_in| self.random.random_range(0..one_in) == 0);
        self.refused += u64::from(refuses);
        refuses
    }

    fn check_power(&self) -> Result<()> {
        if self.dead { Err(Error::PowerCut) } else { Ok(()) }
    }

    /// What a torn operation makes of bytes.
    fn tear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut torn = bytes.to_vec();
        match self.random.random_range(0..6) {
            0 => {}
            1 => torn.fill(0xFF),
            2 => self.random.fill_bytes(&mut torn),
            3 => {
                let end = self.random.random_range(0..=bytes.len());
                torn[end..].fill(0xFF);
            }
            4 => torn.iter_mut().for_each(|byte| *byte |= self.random.random::<u8>()),
            _ => {
                for byte in &mut torn {
                    if self.random.random_range(0..8) == 0 {
                        *byte |= 1 << self.random.random_range(0..8);
                    }
                }
            }
        }
        torn
    }

    fn tear_program(&mut self, page: Page, offset: u32, data: &[u8], spare: &[u8]) -> Result<()> {
        let (data, spare) = (self.tear(data), self.tear(spare));
        self.chip.program(page, offset, &data, &spare, Cause::Update)
    }

    fn tear_erase(&mut self, block: Block) -> Result<()> {
        let geometry = self.chip.geometry();
        let first = geometry.first_page(block).0;
        let pages = (first..first + geometry.pages_per_block()).map(Page);
        let mut left = Vec::new();
        for page in pages {
            let mut data = vec![0; geometry.page_bytes() as usize];
            let mut spare = vec![0; geometry.spare_bytes() as usize];
            self.chip.read(page, 0, &mut data, &mut spare, Cause::Update)?;
            if self.random.random_range(0..3) > 0 {
                data = self.tear(&data);
            }
            if self.random.random_range(0..3) == 0 {
                spare = self.tear(&spare);
            }
            left.push((page, data, spare));
        }
        self.chip.erase(block, Cause::Update)?;
        for (page, data, spare) in left {
            if self.random.random_range(0..4) > 0 {
                self.chip.program(page, 0, &data, &spare, Cause::Update)?;
            }
        }
        Ok(())
    }
}

impl Nand for Fragile {
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
        self.check_power()?;
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
        self.check_power()?;
        if self.cut() {
            self.tear_program(page, offset, data, spare)?;
            return Err(Error::PowerCut);
        }
        if self.refuses() {
            self.tear_program(page, offset, data, spare)?;
            return Err(Error::ProgramRefused { page });
        }
        self.chip.program(page, offset, data, spare, cause)
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.check_power()?;
        if self.cut() {
            self.tear_erase(block)?;
            return Err(Error::PowerCut);
        }
        if self.refuses() {
            return Err(Error::EraseRefused { block });
        }
        self.chip.erase(block, cause)
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.check_power()?;
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        self.check_power()?;
        self.chip.mark_bad(block)
    }

    fn meter(&self) -> Option<&Meter> {
        self.chip.meter()
    }
}
