//! What the first and the last page of each block say.

use alloc::vec::Vec;

use device::{Block, Error, Nand, Page, Result};

use super::fill::Role;
use super::own::{self, Head};
use super::shape::Shape;
use crate::bytes::word;
use crate::reading::{can_read, intact, read_metadata};
use crate::spare::{self, FORMATTING, Found, Metadata};

/// What the first and the last page of a block say.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// Marked bad.
    Bad,
    /// Nothing that counts.
    Nothing,
    /// Something of which nothing says what it is.
    Dark,
    /// A block of the log, since this sequence.
    Log {
        sequence: u64,
        /// Its header, if that can be read.
        head: Option<Head>,
    },
    /// A block that is or was filled in order.
    Block(Begun),
}

impl Seen {
    fn log(head: Head) -> Self {
        Seen::Log { sequence: head.sequence, head: Some(head) }
    }
}

/// A block that is or was filled in order.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) logical: u32,
    pub(super) sequence: u64,
    pub(super) role: Role,
    pub(super) full: bool,
    /// True if its last page was programmed and is not whole.
    pub(super) dark_end: bool,
    /// True if it is known that one of its pages was lost.
    pub(super) flawed: bool,
}

/// A chip about which nothing is known.
pub(super) struct Scan<N> {
    pub(super) nand: N,
    pub(super) shape: Shape,
    pub(super) page: Vec<u8>,
    /// Another format version than this layer's that was seen.
    pub(super) other_version: Option<u8>,
}

impl<N: Nand> Scan<N> {
    /// Looks at every block.
    pub(super) fn survey(&mut self) -> Result<Vec<Seen>> {
        let blocks = self.shape.geometry.blocks();
        let mut survey = Vec::with_capacity(blocks as usize);
        for block in (0..blocks).map(Block) {
            survey.push(if self.nand.is_bad(block)? {
                Seen::Bad
            } else if self.shape.has_own_pages() {
                self.see_pages(block)?
            } else {
                self.see_spares(block)?
            });
        }
        Ok(survey)
    }

    /// The newest header of the log, and the block that it stands in.
    pub(super) fn newest_header(&mut self, survey: &[Seen]) -> Result<(Head, Block)> {
        let headers = (0..).map(Block).zip(survey).filter_map(|(block, seen)| match seen {
            Seen::Log { head, .. } => head.map(|head| (head, block)),
            _ => None,
        });
        let expected = u32::from_le_bytes(self.shape.kind.mark);
        match headers.max_by_key(|(head, _)| head.sequence) {
            Some((head, _)) if head.sequence == FORMATTING => {
                Err(Error::NotFormatted { expected, found: 0 })
            }
            Some((head, block)) => Ok((head, block)),
            None => Err(self.not_formatted(expected)),
        }
    }

    /// Says what stands at the beginning of a chip that holds no disk.
    fn not_formatted(&mut self, expected: u32) -> Error {
        if let Some(found) = self.other_version {
            let (expected, found) = (u32::from(own::VERSION), u32::from(found));
            return Error::NotFormatted { expected, found };
        }
        match self.read_page(Page(0)) {
            Ok(_) => Error::NotFormatted { expected, found: word(&self.page, 0) },
            Err(error) => error,
        }
    }

    /// Reads `page` in full; false if it cannot be read.
    fn read_page(&mut self, page: Page) -> Result<bool> {
        let whole = can_read(&mut self.nand, page, &mut self.page)?;
        if !whole {
            // It is not blank.
            self.page.fill(0);
        }
        Ok(whole)
    }

    /// The page of metadata on `page`, if it is one.
    pub(super) fn own_page(&mut self, page: Page) -> Result<Option<Head>> {
        if !self.read_page(page)? {
            return Ok(None);
        }
        match own::decode(self.shape.kind.mark, page, &self.page) {
            own::Found::Page(head) => Ok(Some(head)),
            own::Found::OtherVersion(version) => {
                self.other_version = Some(version);
                Ok(None)
            }
            own::Found::Nothing => Ok(None),
        }
    }

    fn see_pages(&mut self, block: Block) -> Result<Seen> {
        let Some(head) = self.own_page(self.shape.geometry.first_page(block))? else {
            let is_blank = self.page.iter().all(|byte| *byte == 0xFF);
            return if is_blank { Ok(Seen::Nothing) } else { self.see_without_header(block) };
        };
        let role = match head.kind {
            own::Kind::Log => return Ok(Seen::log(head)),
            own::Kind::InOrder => Role::InOrder,
            own::Kind::Merged => Role::Merged,
            _ => return Ok(Seen::Nothing),
        };
        let last = self
            .complete(block)?
            .filter(|last| (last.sequence, last.number) == (head.sequence, head.number));
        let dark_end = last.is_none() && self.page.iter().any(|byte| *byte != 0xFF);
        Ok(Seen::Block(Begun {
            logical: head.number,
            sequence: head.sequence,
            role,
            full: last.is_some(),
            dark_end,
            flawed: last.is_some_and(|last| last.flags != 0),
        }))
    }

    /// The last page of a block, if it says that the block is full.
    fn complete(&mut self, block: Block) -> Result<Option<Head>> {
        let head = self.own_page(self.shape.last_page(block))?;
        Ok(head.filter(|head| head.kind == own::Kind::Complete))
    }

    /// The header of a block of the log.
    fn log_header(&mut self, block: Block) -> Result<Option<Head>> {
        let first = self.shape.geometry.first_page(block).0;
        for page in (first..first + self.shape.log_headers()).map(Page) {
            if let Some(head) = self.own_page(page)?
                && head.kind == own::Kind::Log
            {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    /// What other pages say of a block whose first page is damaged.
    fn see_without_header(&mut self, block: Block) -> Result<Seen> {
        if let Some(last) = self.complete(block)? {
            return Ok(Seen::Block(Begun {
                logical: last.number,
                sequence: last.sequence,
                role: Role::Merged,
                full: true,
                dark_end: false,
                flawed: last.flags != 0,
            }));
        }
        if let Some(head) = self.log_header(block)? {
            return Ok(Seen::log(head));
        }
        let first = self.shape.geometry.first_page(block).0;
        for page in (first + 1..first + self.shape.geometry.pages_per_block()).map(Page) {
            let marked = can_read(&mut self.nand, page, &mut self.page[..4])?
                && self.page[..4] == self.shape.kind.mark;
            let head = if marked { self.own_page(page)? } else { None };
            if let Some(Head { kind: own::Kind::State, sequence, .. }) = head {
                return Ok(Seen::Log { sequence, head: None });
            }
        }
        Ok(Seen::Dark)
    }

    /// A block whose last page is whole is full. Others are told by their first page, or the first
    /// that can be read.
    fn see_spares(&mut self, block: Block) -> Result<Seen> {
        let last = self.shape.sectors_per_block() - 1;
        let end = self.spare_at(block, last)?;
        if let Found::Page(metadata) = end
            && let Some(begun) = self.begun(metadata, last)
            && self.intact(block, last, metadata)?
        {
            return Ok(Seen::Block(Begun { full: true, ..begun }));
        }
        let dark_end = end != Found::Blank;
        for offset in 0..last {
            match self.spare_at(block, offset)? {
                Found::Blank => return Ok(Seen::Nothing),
                Found::Damaged => {}
                Found::Page(metadata) => return self.see_first(block, offset, metadata, dark_end),
            }
        }
        Ok(Seen::Nothing)
    }

    /// What the first page that can be read, at place `offset`, says of a block that is not full.
    fn see_first(
        &mut self,
        block: Block,
        offset: u32,
        metadata: Metadata,
        dark_end: bool,
    ) -> Result<Seen> {
        let Metadata { kind, sequence, .. } = metadata;
        Ok(match kind {
            spare::Kind::LogHeader => match self.log_header(block)? {
                Some(head) => Seen::log(head),
                // It was not torn if anything stands behind it.
                None if self.spare_at(block, offset + 1)? != Found::Blank => {
                    Seen::Log { sequence, head: None }
                }
                None => Seen::Nothing,
            },
            // Behind a header that cannot be read.
            spare::Kind::Log => Seen::Log { sequence, head: None },
            _ => match self.begun(metadata, offset) {
                Some(begun) => Seen::Block(Begun { dark_end, ..begun }),
                None => Seen::Nothing,
            },
        })
    }

    fn spare_at(&mut self, block: Block, offset: u32) -> Result<Found> {
        read_metadata(&mut self.nand, self.shape.page_at(block, offset))
    }

    /// What the metadata at place `offset` says of a block that is filled in order.
    fn begun(&self, metadata: Metadata, offset: u32) -> Option<Begun> {
        let (role, flawed) = match metadata.kind {
            spare::Kind::InOrder => (Role::InOrder, false),
            spare::Kind::InOrderFlawed => (Role::InOrder, true),
            spare::Kind::Merged => (Role::Merged, false),
            spare::Kind::MergedFlawed => (Role::Merged, true),
            _ => return None,
        };
        let (logical, place) = self.shape.split(metadata.sector);
        let sequence = metadata.sequence.checked_sub(u64::from(offset))?;
        let begun = Begun { logical, sequence, role, full: false, dark_end: false, flawed };
        (place == offset).then_some(begun)
    }

    /// The metadata at place `offset` of a block, if it belongs to what was `begun` there.
    pub(super) fn in_order_at(
        &mut self,
        block: Block,
        offset: u32,
        begun: Begun,
    ) -> Result<Option<(Metadata, Begun)>> {
        let Found::Page(metadata) = self.spare_at(block, offset)? else {
            return Ok(None);
        };
        let place = self
            .begun(metadata, offset)
            .filter(|place| (place.logical, place.sequence) == (begun.logical, begun.sequence));
        Ok(place.map(|place| (metadata, place)))
    }

    /// Whether the page at place `offset` holds what was programmed with its metadata.
    pub(super) fn intact(&mut self, block: Block, offset: u32, metadata: Metadata) -> Result<bool> {
        let page = self.shape.page_at(block, offset);
        intact(&mut self.nand, page, metadata, &mut self.page)
    }
}

impl Begun {
    /// True if it is being filled and newer than the full block of its logical block.
    pub(super) fn counts_beside(&self, full: &[Option<(u64, Block)>]) -> bool {
        let newest = full.get(self.logical as usize);
        !self.full
            && self.role == Role::InOrder
            && newest.is_some_and(|full| full.is_none_or(|(sequence, _)| sequence < self.sequence))
    }
}
