//! Programming: the next pages of the tree, and of the log itself.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use device::{Block, Cause, Geometry, Nand, Page};

use super::tag::{self, Place};
use super::{PageKind, PageLog, StreamOf, Tag};
use crate::{Error, Result};

/// Blocks that are being filled, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    ahead: VecDeque<Block>,
    /// The next page of the first of them.
    place: u32,
}

impl Stream {
    pub(super) fn holds(&self, block: Block) -> bool {
        self.ahead.contains(&block)
    }

    /// The block that the next page is in, if that is known.
    pub(super) fn present(&self) -> Option<Block> {
        self.ahead.front().copied()
    }

    /// Pages that can be programmed without a further block.
    pub(super) fn room(&self, chip: Geometry) -> u32 {
        self.ahead.len() as u32 * chip.pages_per_block() - self.place
    }

    fn next(&self, chip: Geometry) -> Option<Page> {
        self.present().map(|block| Page(chip.first_page(block).0 + self.place))
    }

    /// The next page is in another block, unless so many have room in this one.
    pub(super) fn leave_unless(&mut self, pages: usize, chip: Geometry) {
        let left = chip.pages_per_block() - self.place;
        if self.place > 0 && (left as usize) < pages {
            self.leave_block();
        }
    }

    fn leave_block(&mut self) {
        self.ahead.pop_front();
        self.place = 0;
    }

    fn step(&mut self, chip: Geometry) {
        self.place += 1;
        if self.place == chip.pages_per_block() {
            self.leave_block();
        }
    }
}

impl PageLog<'_> {
    fn stream(&mut self, of: StreamOf) -> &mut Stream {
        match of {
            StreamOf::Tree => &mut self.tree,
            StreamOf::Apart => &mut self.apart,
            StreamOf::Own => &mut self.own,
        }
    }

    /// The addresses of the next `pages` pages of a stream, in their order, into `into`.
    pub(super) fn reserve_in(
        &mut self,
        of: StreamOf,
        pages: u32,
        into: &mut Vec<Page>,
        cause: Cause,
    ) -> Result<()> {
        into.clear();
        let (mut ahead, mut place) = (0, self.stream(of).place);
        for _ in 0..pages {
            if place == self.geometry.pages_per_block() {
                (ahead, place) = (ahead + 1, 0);
            }
            if ahead == self.stream(of).ahead.len() {
                let taken = self.take_block(of, cause)?;
                self.stream(of).ahead.push_back(taken);
            }
            let block = self.stream(of).ahead[ahead];
            let first = self.geometry.first_page(block);
            into.push(Page(first.0 + place));
            place += 1;
        }
        Ok(())
    }

    /// The tag of the next page to be programmed.
    pub(super) fn next_tag(
        &self,
        page: Page,
        kind: PageKind,
        place: Place,
    ) -> Result<[u8; tag::BYTES]> {
        self.tag_of(self.sequence, page, kind, place)
    }

    /// A tag of `page` with a `sequence`.
    pub(super) fn tag_of(
        &self,
        sequence: u64,
        page: Page,
        kind: PageKind,
        place: Place,
    ) -> Result<[u8; tag::BYTES]> {
        let tag = Tag {
            sequence,
            kind,
            erases: self.blocks.erases(self.geometry.block_of(page)),
            checkpoint: self.checkpoints.page(),
        };
        let none_left = Error::Full { pages: u64::from(self.usable_pages()) };
        tag.encode(page, place).ok_or(none_left)
    }

    /// Programs the next page of a stream.
    pub(super) fn program_in(
        &mut self,
        of: StreamOf,
        page: Page,
        bytes: &mut [u8],
        (kind, cause): (PageKind, Cause),
    ) -> Result<()> {
        let chip = self.geometry;
        let lowest = self.stream(of).next(chip);
        if lowest != Some(page) {
            let lowest = lowest.unwrap_or(Page(chip.pages()));
            return Err(device::Error::OutOfOrder { page, lowest }.into());
        }
        let block = chip.block_of(page);
        let tag = self.next_tag(page, kind, Place::First)?;
        let mut spare = &tag[..];
        if self.content_start() > 0 {
            spare = &[];
            bytes[..tag::BYTES].copy_from_slice(&tag);
        }
        #[cfg(feature = "canaries")]
        if of != StreamOf::Own && self.hold_back(page, (bytes, spare), cause)? {
            self.sequence += 1;
            self.stream(of).step(chip);
            return Ok(());
        }
        let programmed = self.nand.program(page, 0, bytes, spare, cause);
        if matches!(programmed, Err(device::Error::ProgramRefused { .. })) {
            let is_first = self.stream(of).place == 0;
            self.blocks.set_refused(block);
            self.stream(of).leave_block();
            // All of the page may stand there nevertheless: so no other gets its sequence.
            self.sequence += 1;
            if is_first && of == StreamOf::Own {
                // Nothing is in it, and no opening is to take it for a free one.
                self.retire(block)?;
            }
        }
        programmed?;
        self.sequence += 1;
        self.stream(of).step(chip);
        Ok(())
    }

    /// Takes a free block for a stream, erased.
    pub(super) fn take_block(&mut self, of: StreamOf, cause: Cause) -> Result<Block> {
        let is_tree = of != StreamOf::Own;
        loop {
            let is_left = !is_tree || self.free_blocks() > 0;
            let Some(block) = self.blocks.least_worn_free().filter(|_| is_left) else {
                return Err(Error::Full { pages: u64::from(self.usable_pages()) });
            };
            if self.blocks.is_blank(block) || self.erase(block, cause)? {
                self.blocks.set_used(block);
                match of {
                    StreamOf::Tree => {}
                    StreamOf::Apart => self.blocks.set_apart(block),
                    StreamOf::Own => self.blocks.set_own(block),
                }
                return Ok(block);
            }
        }
    }
}
