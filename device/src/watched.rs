//! A chip that refuses everything is told from one whose blocks wear out.

use crate::{Block, Cause, Error, Geometry, Meter, Nand, NandCosts, Page, Result};

/// How often in a row a chip may refuse before it counts as failing.
const REFUSALS_MOST: usize = 4;

/// A chip whose refusals are counted: every layer that marks blocks bad works through it.
///
/// One block that refuses is worn, and is marked bad once the chip has done elsewhere what it
/// refused there. A chip that refuses again and again, and does nothing in between, is
/// [failing](Error::Failing): it is programmed and erased no more, and none of these blocks is
/// marked. So all of them are there if it works again when it is next opened.
///
/// A program that works shows that programs and erases do. An erase that works shows nothing of
/// programs.
///
/// A block that is to be marked may be found unmarked after a power cut, as it may be without this
/// rule if the cut comes just before the mark.
pub struct Watched<N> {
    chip: N,
    /// Refused since the chip last did such a thing, the first ones of so many.
    refused: [Refusal; REFUSALS_MOST],
    count: usize,
}

#[derive(Clone, Copy)]
struct Refusal {
    block: Block,
    was_erase: bool,
    /// True if it is to be marked bad when the chip works.
    to_mark: bool,
}

impl<N: Nand> Watched<N> {
    /// Watches over `chip`.
    pub const fn new(chip: N) -> Self {
        let none = Refusal { block: Block(0), was_erase: false, to_mark: false };
        Watched { chip, refused: [none; REFUSALS_MOST], count: 0 }
    }

    /// The chip.
    pub const fn chip(&self) -> &N {
        &self.chip
    }

    /// The chip, which nobody watches any more.
    pub fn into_chip(self) -> N {
        self.chip
    }

    const fn check(&self) -> Result<()> {
        if self.count < REFUSALS_MOST {
            return Ok(());
        }
        Err(Error::Failing { refusals: REFUSALS_MOST as u32 })
    }

    #[cold]
    fn refuse(&mut self, block: Block, was_erase: bool, error: Error) -> Result<()> {
        self.refused[self.count] = Refusal { block, was_erase, to_mark: false };
        self.count += 1;
        self.check().and(Err(error))
    }

    /// The chip works: what it refused before was the blocks' own fault.
    #[cold]
    fn settle(&mut self, worked: impl Fn(&Refusal) -> bool) -> Result<()> {
        let (refused, count) = (self.refused, self.count);
        self.count = 0;
        for refusal in &refused[..count] {
            if !worked(refusal) {
                self.refused[self.count] = *refusal;
                self.count += 1;
            } else if refusal.to_mark {
                self.chip.mark_bad(refusal.block)?;
            }
        }
        Ok(())
    }
}

impl<N: Nand> Nand for Watched<N> {
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
        self.check()?;
        match self.chip.program(page, offset, data, spare, cause) {
            Ok(()) if self.count > 0 => self.settle(|_| true),
            Err(error @ Error::ProgramRefused { page }) => {
                self.refuse(self.chip.geometry().block_of(page), false, error)
            }
            done => done,
        }
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.check()?;
        match self.chip.erase(block, cause) {
            Ok(()) if self.count > 0 => self.settle(|refusal| refusal.was_erase),
            Err(error @ Error::EraseRefused { .. }) => self.refuse(block, true, error),
            done => done,
        }
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        let refused = &mut self.refused[..self.count];
        match refused.iter_mut().rev().find(|refusal| refusal.block == block) {
            Some(refusal) => {
                refusal.to_mark = true;
                Ok(())
            }
            None => self.chip.mark_bad(block),
        }
    }

    fn meter(&self) -> Option<&Meter> {
        self.chip.meter()
    }

    fn costs(&self) -> Option<&NandCosts> {
        self.chip.costs()
    }
}
