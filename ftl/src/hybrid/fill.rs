//! Blocks that are filled in order, and merges.

use core::mem;

use device::{Block, Cause, Error, Nand, Page, Result};

use super::own::{self, Head, State};
use super::{Core, Place};
use crate::reading::readable;
use crate::spare::{self, DataCheck, Found, Kind, Metadata};

const CAUSE: Cause = Cause::Reclamation;

/// When a block counts that is filled in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// From its first page on.
    InOrder,
    /// When it is full.
    Merged,
}

/// Kinds of merges, by what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Merge {
    /// Nothing was copied.
    Switch,
    /// Users began, then places were copied.
    Partial,
    /// Places before the first that a user wrote were copied.
    Full,
}

/// A block that is filled in order.
///
/// Invariant: places below `next` are filled, later pages were never touched since the erase
/// unless the block is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) logical: u32,
    pub(crate) block: Block,
    /// The sequence of its first place.
    pub(crate) sequence: u64,
    pub(crate) next: u32,
    /// Places that a restart finds: they are named by a page of the log, where that is needed.
    pub(crate) durable: u32,
    pub(crate) role: Role,
    /// True if nothing more can be programmed in it.
    pub(crate) closed: bool,
    /// True if the chip refused a program in it.
    pub(crate) worn: bool,
    /// What its merge is so far.
    pub(crate) merge: Merge,
    /// The sequence at which it was written last.
    pub(crate) used: u64,
}

impl Filling {
    /// True if a user may write place `offset` after copying those before.
    pub(crate) const fn takes(&self, offset: u32) -> bool {
        !self.closed && self.next <= offset
    }

    /// True if place `offset` is the next one.
    pub(crate) const fn follows(&self, offset: u32) -> bool {
        !self.closed && self.next == offset
    }
}

/// Data for a page.
#[derive(Clone, Copy)]
pub(crate) struct Content<'d> {
    pub(crate) data: &'d [u8],
    /// The checksum of the data, where there is a spare area for it.
    pub(crate) check: Option<DataCheck>,
}

impl<N: Nand> Core<N> {
    /// The block that is being filled for `logical`.
    pub(crate) fn slot_of(&self, logical: u32) -> Option<usize> {
        self.fillings.iter().position(|filling| filling.logical == logical)
    }

    pub(crate) fn filling(&self, slot: usize) -> &Filling {
        &self.fillings[slot]
    }

    /// Begins to fill a block for `logical`, which has none; if all that may be filled at the same
    /// time are, the one that was written longest ago is finished.
    ///
    /// # Errors
    /// [`Error::Full`] if that would take the last free block, which merges need.
    pub(crate) fn start(&mut self, logical: u32) -> Result<usize> {
        loop {
            let blocks_free = self.blocks.free_count();
            if self.fillings.len() < self.shape.fillings() as usize && blocks_free >= 2 {
                break;
            }
            let slots = 0..self.fillings.len();
            match slots.min_by_key(|slot| self.fillings[*slot].used) {
                Some(oldest) => self.finish(oldest)?,
                None => return Err(Error::Full { blocks_free, blocks_needed: 2 }),
            }
        }
        let filling = self.begin(logical, Role::InOrder)?;
        self.fillings.push(filling);
        Ok(self.fillings.len() - 1)
    }

    /// Writes what a user wrote to the place `offset` of the block in `slot`, after copying the
    /// places before; returns false if the chip refused.
    pub(crate) fn write_at(
        &mut self,
        slot: usize,
        offset: u32,
        content: Content<'_>,
        cause: Cause,
    ) -> Result<bool> {
        let mut filling = self.fillings[slot];
        let written = self.write_after_copies(&mut filling, offset, content, cause);
        self.fillings[slot] = filling;
        if !written? {
            return Ok(false);
        }
        if filling.next == self.shape.sectors_per_block() {
            self.finish(slot)?;
        }
        Ok(true)
    }

    fn write_after_copies(
        &mut self,
        filling: &mut Filling,
        offset: u32,
        content: Content<'_>,
        cause: Cause,
    ) -> Result<bool> {
        if filling.next < offset {
            let merge = if filling.next == 0 { Merge::Full } else { Merge::Partial };
            filling.merge = filling.merge.max(merge);
        }
        while filling.next < offset {
            if !self.copy_next(filling, None)? {
                return Ok(false);
            }
        }
        if !self.fill(filling, content, cause)? {
            return Ok(false);
        }
        filling.used = self.sequence;
        self.sequence += 1;
        Ok(true)
    }

    /// Makes the block in `slot` the data block of its logical block, or one in which all places
    /// are copied if it can't be filled any more. The slot is free then.
    pub(crate) fn finish(&mut self, slot: usize) -> Result<()> {
        let mut filling = self.fillings[slot];
        if filling.next == 0 {
            self.fillings.swap_remove(slot);
            return self.discard(filling.block, filling.worn);
        }
        if filling.closed {
            return self.merge(filling.logical);
        }
        if filling.next < self.shape.sectors_per_block() {
            filling.merge = filling.merge.max(Merge::Partial);
        }
        let full = self.fill_rest(&mut filling, None);
        self.fillings[slot] = filling;
        if !full? {
            return self.merge(filling.logical);
        }
        self.fillings.swap_remove(slot);
        match filling.merge {
            Merge::Switch => self.statistics.switch_merges += 1,
            Merge::Partial => self.statistics.partial_merges += 1,
            Merge::Full => self.statistics.full_merges += 1,
        }
        Ok(())
    }

    /// Copies all places of `logical` to a new data block, the full merge. What was being filled
    /// for it is free then, and none of its sectors is in the log.
    pub(super) fn merge(&mut self, logical: u32) -> Result<()> {
        let slot = self.slot_of(logical);
        let from = slot.map(|slot| self.fillings[slot]);
        loop {
            let mut target = self.begin(logical, Role::Merged)?;
            match self.fill_rest(&mut target, from) {
                Ok(true) => break,
                Ok(false) => self.discard(target.block, target.worn)?,
                Err(error) => {
                    self.discard(target.block, target.worn)?;
                    return Err(error);
                }
            }
        }
        let sectors = self.shape.sectors_per_block();
        for sector in logical * sectors..(logical + 1) * sectors {
            self.log.remove(sector);
        }
        self.statistics.full_merges += 1;
        if let Some(slot) = slot {
            let done = self.fillings.swap_remove(slot);
            self.discard(done.block, done.worn)?;
        }
        Ok(())
    }

    /// Takes a block to be filled for `logical`.
    fn begin(&mut self, logical: u32, role: Role) -> Result<Filling> {
        loop {
            let block = self.take_block()?;
            let sequence = self.take_sequences(self.shape.geometry.pages_per_block());
            match self.program_block_header(block, logical, sequence, role) {
                Ok(()) => {
                    return Ok(Filling {
                        logical,
                        block,
                        sequence,
                        next: 0,
                        durable: 0,
                        role,
                        closed: false,
                        worn: false,
                        merge: Merge::Switch,
                        used: sequence,
                    });
                }
                Err(error) => self.give_up(block, error)?,
            }
        }
    }

    /// Without a spare area, says on the first page of `block` what it is.
    fn program_block_header(
        &mut self,
        block: Block,
        logical: u32,
        sequence: u64,
        role: Role,
    ) -> Result<()> {
        if !self.shape.has_own_pages() {
            return Ok(());
        }
        let kind = match role {
            Role::InOrder => own::Kind::InOrder,
            Role::Merged => own::Kind::Merged,
        };
        let head = Head { kind, sequence, base: 0, number: logical, flags: 0 };
        self.program_own(self.shape.geometry.first_page(block), head, CAUSE)
    }

    /// Programs a page of metadata; a state names all that is to be made durable.
    pub(super) fn program_own(&mut self, page: Page, head: Head, cause: Cause) -> Result<()> {
        let with_states = matches!(head.kind, own::Kind::Log | own::Kind::State);
        let count = if with_states && self.shape.has_own_pages() { self.fillings.len() } else { 0 };
        let flawed = &self.flawed;
        let states = self.fillings[..count].iter().map(|filling| State {
            block: filling.block,
            filled: filling.next,
            flawed: flawed[filling.block.0 as usize / 64] >> (filling.block.0 % 64) & 1 == 1,
            sequence: filling.sequence,
            logical: filling.logical,
        });
        let members = if head.kind == own::Kind::State { &self.log.members[..] } else { &[] };
        let mut bytes = mem::take(&mut self.buffers.own);
        own::encode(self.shape.kind.mark, head, (states, members), page, &mut bytes);
        let metadata = (self.shape.place == Place::Spare).then(|| Metadata {
            sector: 0,
            sequence: head.sequence,
            kind: Kind::LogHeader,
            data: DataCheck::of(&bytes),
        });
        let programmed = self.program(page, &bytes, metadata, cause);
        self.buffers.own = bytes;
        self.statistics.pages_of_metadata += u64::from(programmed.is_ok());
        programmed
    }

    /// Copies all places that are left and says that the block is full; returns false, and the
    /// block is closed, if the chip refused.
    fn fill_rest(&mut self, filling: &mut Filling, from: Option<Filling>) -> Result<bool> {
        while filling.next < self.shape.sectors_per_block() {
            if !self.copy_next(filling, from)? {
                return Ok(false);
            }
        }
        if self.shape.has_own_pages() {
            let head = Head {
                kind: own::Kind::Complete,
                sequence: filling.sequence,
                base: 0,
                number: filling.logical,
                flags: u16::from(self.is_flawed(filling.block)),
            };
            let programmed = self.program_own(self.shape.last_page(filling.block), head, CAUSE);
            if !close_on_error(filling, programmed)? {
                return Ok(false);
            }
        }
        let before = mem::replace(&mut self.data[filling.logical as usize], filling.block.0);
        if before != super::NONE {
            self.discard(Block(before), false)?;
        }
        Ok(true)
    }

    /// Copies the next place of `filling`, from the block `from` as far as that is filled.
    fn copy_next(&mut self, filling: &mut Filling, from: Option<Filling>) -> Result<bool> {
        let offset = filling.next;
        let sector = filling.logical * self.shape.sectors_per_block() + offset;
        let source = match from.filter(|from| offset < from.next) {
            Some(from) => Some(self.shape.page_at(from.block, offset)),
            None => self.page_before(sector),
        };
        let mut data = mem::take(&mut self.buffers.copy);
        let copied = self.fetch(sector, source, &mut data).and_then(|check| {
            let check = check.unwrap_or_else(|| self.mark_lost(filling, &mut data));
            self.fill(filling, Content { data: &data, check }, CAUSE)
        });
        self.buffers.copy = data;
        self.statistics.pages_moved += u64::from(matches!(copied, Ok(true)));
        copied
    }

    /// Reads what is to be copied, zeros where there is no `source`; returns the checksum that was
    /// stored with it, or `None` if it is lost.
    fn fetch(
        &mut self,
        sector: u32,
        source: Option<Page>,
        data: &mut [u8],
    ) -> Result<Option<Option<DataCheck>>> {
        let Some(page) = source else {
            data.fill(0);
            return Ok(Some(self.check_of(data)));
        };
        let mut bytes = [0; spare::BYTES];
        let has_spare = self.shape.place == Place::Spare;
        let spare = if has_spare { &mut bytes[..] } else { &mut [] };
        if !readable(self.read(page, 0, (data, spare), CAUSE))? || self.is_lost(page, data) {
            return Ok(None);
        }
        if !has_spare {
            return Ok(Some(None));
        }
        match Metadata::decode(&bytes, page) {
            Found::Page(metadata) if metadata.sector == sector => Ok(Some(Some(metadata.data))),
            _ => Ok(None),
        }
    }

    /// Whether `data`, which is all that `page` holds, says that it was lost.
    pub(super) fn is_lost(&self, page: Page, data: &[u8]) -> bool {
        self.is_flawed(self.shape.geometry.block_of(page))
            && own::decode_as(self.shape.kind.mark, own::Kind::Lost, page, data).is_some()
    }

    /// Fills `data` with what says that the next page of `filling` is lost.
    fn mark_lost(&mut self, filling: &Filling, data: &mut [u8]) -> Option<DataCheck> {
        let page = self.shape.page_at(filling.block, filling.next);
        let head = Head { kind: own::Kind::Lost, sequence: 0, base: 0, number: 0, flags: 0 };
        own::encode(self.shape.kind.mark, head, (core::iter::empty(), &[]), page, data);
        self.set_flawed(filling.block, true);
        self.statistics.pages_lost += 1;
        self.check_of(data)
    }

    /// Programs the next place of `filling`; returns false, and the block is closed, if the chip
    /// refused.
    fn fill(&mut self, filling: &mut Filling, content: Content<'_>, cause: Cause) -> Result<bool> {
        let page = self.shape.page_at(filling.block, filling.next);
        let sector = filling.logical * self.shape.sectors_per_block() + filling.next;
        let kind = match (filling.role, self.is_flawed(filling.block)) {
            (Role::InOrder, false) => Kind::InOrder,
            (Role::InOrder, true) => Kind::InOrderFlawed,
            (Role::Merged, false) => Kind::Merged,
            (Role::Merged, true) => Kind::MergedFlawed,
        };
        let sequence = filling.sequence + u64::from(filling.next);
        let metadata = content.check.map(|data| Metadata { sector, sequence, kind, data });
        let programmed = self.program(page, content.data, metadata, cause);
        if !close_on_error(filling, programmed)? {
            return Ok(false);
        }
        filling.next += 1;
        if filling.role == Role::InOrder {
            self.log.remove(sector);
        }
        Ok(true)
    }
}

/// Closes the block if a program in it failed; false if the chip refused it.
fn close_on_error(filling: &mut Filling, programmed: Result<()>) -> Result<bool> {
    match programmed {
        Ok(()) => Ok(true),
        Err(error) => {
            filling.closed = true;
            filling.worn |= matches!(error, Error::ProgramRefused { .. });
            if filling.worn { Ok(false) } else { Err(error) }
        }
    }
}
