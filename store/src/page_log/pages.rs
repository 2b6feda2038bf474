//! Pages with tags: the chip, what each of its blocks is used for, and the order of its pages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use device::{Block, Cause, Geometry, Nand, Page, Watched};

use super::blocks::Blocks;
use super::stream::{Stream, StreamOf};
use super::tag::{self, Found, PageKind, Place, Tag};
use super::{Wear, content_start};
use crate::canary::{Canary, Mistake};
use crate::{Error, Result};

/// The chip by pages with tags.
pub(super) struct Pages<'d> {
    pub(super) nand: Watched<Box<dyn Nand + 'd>>,
    pub(super) geometry: Geometry,
    pub(super) blocks: Blocks,
    /// The sequence of the next page.
    pub(super) sequence: u64,
    /// The last page of the last checkpoint's record, which every tag names.
    pub(super) checkpoint: Option<Page>,
    pub(super) mistake: Mistake,
    /// The tree's last page, its bytes and its spare area, which a mistake keeps back.
    #[cfg(feature = "canaries")]
    pub(super) held: Option<(Page, Vec<u8>, Vec<u8>)>,
}

impl<'d> Pages<'d> {
    pub(super) fn new(nand: Box<dyn Nand + 'd>, mistake: Mistake) -> Self {
        let geometry = nand.geometry();
        Pages {
            nand: Watched::new(nand),
            geometry,
            blocks: Blocks::new(geometry.blocks()),
            sequence: 0,
            checkpoint: None,
            mistake,
            #[cfg(feature = "canaries")]
            held: None,
        }
    }

    /// Where the content of a page begins: behind the tag, unless that stands in the spare area.
    pub(super) fn content_start(&self) -> usize {
        content_start(self.geometry)
    }

    /// Bytes of a page that are its content.
    pub(super) fn content_bytes(&self) -> usize {
        self.geometry.page_bytes() as usize - self.content_start()
    }

    /// Pages of all blocks that are not bad.
    pub(super) fn usable_pages(&self) -> u32 {
        self.blocks.good() * self.geometry.pages_per_block()
    }

    /// The pages of `block`, in the order in which they were programmed.
    pub(super) fn pages_of(&self, block: Block) -> impl Iterator<Item = Page> + use<> {
        let first = self.geometry.first_page(block).0;
        (first..first + self.geometry.pages_per_block()).map(Page)
    }

    pub(super) fn wear(&self) -> Wear {
        let (least, most, all) = self.blocks.erase_spread();
        Wear { least, most, all, good_blocks: self.blocks.good(), bad_blocks: self.blocks.bad() }
    }

    /// Reads bytes of `page` from its byte `start` on; false if more flipped than can be corrected.
    pub(super) fn read_part(
        &mut self,
        page: Page,
        start: usize,
        into: &mut [u8],
        cause: Cause,
    ) -> Result<bool> {
        match self.nand.read(page, start as u32, into, &mut [], cause) {
            Ok(_) => Ok(true),
            Err(device::Error::Uncorrectable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The tag of `page`; `None` if it has none that is whole.
    pub(super) fn tag(&mut self, page: Page, cause: Cause) -> Result<Option<Tag>> {
        match self.find_tag(page, cause)? {
            Found::Tag(tag) => Ok(Some(tag)),
            Found::Blank | Found::Damaged => Ok(None),
        }
    }

    pub(super) fn find_tag(&mut self, page: Page, cause: Cause) -> Result<Found> {
        let first = self.find_tag_at(page, Place::First, cause)?;
        if matches!(first, Found::Tag(_)) {
            return Ok(first);
        }
        // What stands twice is told by either; in the middle of another page is anything.
        let middle = self.find_tag_at(page, Place::Middle, cause)?;
        Ok(if matches!(middle, Found::Tag(_)) { middle } else { first })
    }

    fn find_tag_at(&mut self, page: Page, place: Place, cause: Cause) -> Result<Found> {
        let mut bytes = [0; tag::BYTES];
        let middle = self.geometry.page_bytes() / 2;
        let read = match place {
            Place::First if self.content_start() == 0 => {
                self.nand.read(page, 0, &mut [], &mut bytes, cause)
            }
            Place::First => self.nand.read(page, 0, &mut bytes, &mut [], cause),
            Place::Middle => self.nand.read(page, middle, &mut bytes, &mut [], cause),
        };
        match read {
            Ok(_) => Ok(Tag::decode(page, place, &bytes)),
            Err(device::Error::Uncorrectable { .. }) => Ok(Found::Damaged),
            Err(error) => Err(error.into()),
        }
    }

    /// The first tag in `block` that can be read; `None` if the block is blank from its first page
    /// on, or no page of it is whole.
    pub(super) fn first_tag(&mut self, block: Block) -> Result<Option<Tag>> {
        for page in self.pages_of(block) {
            match self.find_tag(page, Cause::Recovery)? {
                Found::Tag(tag) => return Ok(Some(tag)),
                Found::Blank => return Ok(None),
                Found::Damaged => {}
            }
        }
        Ok(None)
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
    fn tag_of(
        &self,
        sequence: u64,
        page: Page,
        kind: PageKind,
        place: Place,
    ) -> Result<[u8; tag::BYTES]> {
        let erases = self.blocks.erases(self.geometry.block_of(page));
        let tag = Tag { sequence, kind, erases, checkpoint: self.checkpoint };
        let none_left = Error::Full { pages: u64::from(self.usable_pages()) };
        tag.encode(page, place).ok_or(none_left)
    }

    /// The addresses of the next `pages` pages of `stream`, in their order, into `into`. Blocks
    /// that it takes leave so many free.
    pub(super) fn reserve(
        &mut self,
        stream: &mut Stream,
        (pages, left): (u32, u32),
        into: &mut Vec<Page>,
        cause: Cause,
    ) -> Result<()> {
        into.clear();
        let (mut ahead, mut place) = (0, stream.place);
        for _ in 0..pages {
            if place == self.geometry.pages_per_block() {
                (ahead, place) = (ahead + 1, 0);
            }
            if ahead == stream.ahead.len() {
                stream.ahead.push_back(self.take_block(stream.of, left, cause)?);
            }
            into.push(Page(self.geometry.first_page(stream.ahead[ahead]).0 + place));
            place += 1;
        }
        Ok(())
    }

    /// Programs `page`, the next one of `stream`.
    pub(super) fn program(
        &mut self,
        stream: &mut Stream,
        page: Page,
        bytes: &mut [u8],
        (kind, cause): (PageKind, Cause),
    ) -> Result<()> {
        let chip = self.geometry;
        let lowest = stream.next(chip);
        if lowest != Some(page) {
            let lowest = lowest.unwrap_or(Page(chip.pages()));
            return Err(device::Error::OutOfOrder { page, lowest }.into());
        }
        let tag = self.next_tag(page, kind, Place::First)?;
        let spare = self.place_tag(&tag, bytes);
        #[cfg(feature = "canaries")]
        if stream.of != StreamOf::Own && self.hold_back(page, (bytes, spare))? {
            self.sequence += 1;
            stream.step(chip);
            return Ok(());
        }
        let programmed = self.nand.program(page, 0, bytes, spare, cause);
        if matches!(programmed, Err(device::Error::ProgramRefused { .. })) {
            let (block, is_first) = (chip.block_of(page), stream.place == 0);
            self.blocks.set_refused(block);
            stream.leave_block();
            // All of the page may stand there nevertheless: so no other gets its sequence.
            self.sequence += 1;
            if is_first && stream.of == StreamOf::Own {
                // Nothing is in it, and no opening is to take it for a free one.
                self.retire(block)?;
            }
        }
        programmed?;
        self.sequence += 1;
        stream.step(chip);
        Ok(())
    }

    /// Puts a page's tag where it belongs: into its bytes, or into the spare area that is returned.
    fn place_tag<'t>(&self, tag: &'t [u8; tag::BYTES], bytes: &mut [u8]) -> &'t [u8] {
        if self.content_start() == 0 {
            return tag;
        }
        bytes[..tag::BYTES].copy_from_slice(tag);
        &[]
    }

    /// Programs a page of a block that is written in any order, with the sequence of the page
    /// before.
    pub(super) fn program_beside(
        &mut self,
        page: Page,
        bytes: &mut [u8],
        (kind, cause): (PageKind, Cause),
    ) -> Result<()> {
        let tag = self.tag_of(self.sequence - 1, page, kind, Place::First)?;
        let spare = self.place_tag(&tag, bytes);
        self.program_or_refuse(page, 0, (bytes, spare), cause)
    }

    /// Programs bytes of a page; where the chip refuses, its block is used no more.
    pub(super) fn program_or_refuse(
        &mut self,
        page: Page,
        offset: u32,
        (bytes, spare): (&[u8], &[u8]),
        cause: Cause,
    ) -> Result<()> {
        let programmed = self.nand.program(page, offset, bytes, spare, cause);
        if matches!(programmed, Err(device::Error::ProgramRefused { .. })) {
            self.blocks.set_refused(self.geometry.block_of(page));
        }
        Ok(programmed?)
    }

    /// Takes a free block, erased, for a stream, if more than `left` are.
    pub(super) fn take_block(&mut self, of: StreamOf, left: u32, cause: Cause) -> Result<Block> {
        loop {
            let is_left = self.blocks.free() > left;
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

    /// Erases what was released; returns how many blocks there were.
    pub(super) fn erase_released(&mut self, cause: Cause) -> Result<u32> {
        if self.mistake.is(Canary::PinnedPageReused) {
            self.blocks.unpin_all();
        }
        let (mut from, mut erased) = (0, 0);
        while let Some(block) = self.blocks.next_released(from) {
            from = block.0 + 1;
            if self.blocks.is_refused(block) {
                self.retire(block)?;
            } else {
                self.erase(block, cause)?;
                erased += 1;
            }
        }
        Ok(erased)
    }

    /// Erases a block; false if it is bad from now on.
    pub(super) fn erase(&mut self, block: Block, cause: Cause) -> Result<bool> {
        match self.nand.erase(block, cause) {
            Ok(()) => {
                self.blocks.set_erased(block);
                Ok(true)
            }
            Err(device::Error::EraseRefused { .. } | device::Error::BadBlock { .. }) => {
                self.retire(block)?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn retire(&mut self, block: Block) -> Result<()> {
        self.nand.mark_bad(block)?;
        self.blocks.set_bad(block);
        Ok(())
    }
}
