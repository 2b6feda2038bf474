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
/// Where the driver fails, nobody knows whether a program or an erase was done. What comes next
/// could stand beside it, with the same number, or be taken for what came before: so the chip is
/// changed no more until it is opened again, which finds what is there.
///
/// A block that is to be marked may be found unmarked after a power cut, as it may be without this
/// rule if the cut comes just before the mark.
pub struct Watched<N> {
    chip: N,
    /// The blocks that refused since the chip last did such a thing; of these, `count`. A bit each
    /// says whether it was an erase, and whether the block is to be marked bad when the chip works.
    refused: [Block; REFUSALS_MOST],
    erases: u8,
    marks: u8,
    count: u8,
    /// True if the driver failed at a program or an erase.
    is_unsure: bool,
}

impl<N: Nand> Watched<N> {
    /// Watches over `chip`.
    pub const fn new(chip: N) -> Self {
        let refused = [Block(0); REFUSALS_MOST];
        Watched { chip, refused, erases: 0, marks: 0, count: 0, is_unsure: false }
    }

    /// The chip.
    pub const fn chip(&self) -> &N {
        &self.chip
    }

    /// The chip without the watch.
    pub fn into_chip(self) -> N {
        self.chip
    }

    const fn check(&self) -> Result<()> {
        if self.is_unsure {
            return Err(Error::AfterFailedWrite);
        }
        if (self.count as usize) < REFUSALS_MOST {
            return Ok(());
        }
        Err(Error::Failing { refusals: REFUSALS_MOST as u32 })
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Result<()> {
        self.is_unsure = true;
        Err(error)
    }

    #[cold]
    fn refuse(&mut self, block: Block, was_erase: bool, error: Error) -> Result<()> {
        self.remember(block, was_erase);
        self.check().and(Err(error))
    }

    fn remember(&mut self, block: Block, was_erase: bool) {
        self.refused[usize::from(self.count)] = block;
        self.erases |= u8::from(was_erase) << self.count;
        self.count += 1;
    }

    /// The chip works: what it refused before was the blocks' own fault; where only erases are
    /// known to work, that of those that refused one.
    #[cold]
    fn settle(&mut self, only_erases: bool) -> Result<()> {
        let (refused, erases, marks, count) = (self.refused, self.erases, self.marks, self.count);
        (self.erases, self.marks, self.count) = (0, 0, 0);
        for (place, block) in refused.into_iter().enumerate().take(usize::from(count)) {
            let is = |bits: u8| bits >> place & 1 == 1;
            if only_erases && !is(erases) {
                self.marks |= u8::from(is(marks)) << self.count;
                self.remember(block, false);
            } else if is(marks) {
                self.chip.mark_bad(block)?;
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
            Ok(()) if self.count > 0 => self.settle(false),
            Err(error @ Error::ProgramRefused { page }) => {
                self.refuse(self.chip.geometry().block_of(page), false, error)
            }
            Err(error @ Error::Driver { .. }) => self.fail(error),
            done => done,
        }
    }

    fn erase(&mut self, block: Block, cause: Cause) -> Result<()> {
        self.check()?;
        match self.chip.erase(block, cause) {
            Ok(()) if self.count > 0 => self.settle(true),
            Err(error @ Error::EraseRefused { .. }) => self.refuse(block, true, error),
            Err(error @ Error::Driver { .. }) => self.fail(error),
            done => done,
        }
    }

    fn is_bad(&mut self, block: Block) -> Result<bool> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: Block) -> Result<()> {
        let refused = &self.refused[..usize::from(self.count)];
        match refused.iter().rposition(|known| *known == block) {
            Some(place) => {
                self.marks |= 1 << place;
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
