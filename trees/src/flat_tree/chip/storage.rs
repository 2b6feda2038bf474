//! The page log under runs: a page that is being filled, and what lives in each block.
//!
//! Runs are written one behind the other into one page, which is programmed when it is full, or
//! before a checkpoint; until then it is read from memory. A block is given up as soon as no run
//! has a part of a page in it.
//!
//! Where the chip refuses a program the page goes elsewhere, with all that stands in it. Whoever
//! knows of runs there is told by [`Storage::moved`].

use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Geometry, Page};
use index::Result;
use store::{Error, PageKind, PageLog};

use super::held::{GROUP, Held};
use super::run::Extent;

/// The kind of the pages of runs.
const KIND: PageKind = PageKind::Tree(7);

/// Where runs stand.
pub(super) struct Storage<'d> {
    pub(super) log: PageLog<'d>,
    chip: Geometry,
    /// The page that is being filled.
    page: Vec<u8>,
    filled: usize,
    at: Option<Page>,
    /// Parts of runs in it.
    parts: u32,
    /// The block of the page that was programmed last.
    present: Option<Block>,
    next: Vec<Page>,
    /// Parts of runs in pages, of each block.
    live: Vec<u32>,
    /// All of them.
    parts_live: u64,
    /// Pages that the chip refused, and where they are now.
    moved: Vec<(Page, Page)>,
    /// What lookups read lately.
    pub(super) held: Held,
}

impl<'d> Storage<'d> {
    pub(super) fn new(log: PageLog<'d>) -> Self {
        let chip = log.geometry();
        Storage {
            chip,
            page: vec![0xFF; chip.page_bytes() as usize],
            filled: 0,
            at: None,
            parts: 0,
            present: None,
            next: Vec::with_capacity(1),
            live: vec![0; chip.blocks() as usize],
            parts_live: 0,
            moved: Vec::new(),
            held: Held::new(chip.pages(), log.content_bytes()),
            log,
        }
    }

    /// Bytes of memory beside the log's, without the table.
    pub(super) fn memory_on(chip: Geometry) -> u64 {
        u64::from(chip.page_bytes())
    }

    /// Bytes of the table of what lives in each block.
    pub(super) fn table_bytes_on(chip: Geometry) -> u64 {
        4 * u64::from(chip.blocks())
    }

    /// Bytes of a page.
    pub(super) fn content(&self) -> u32 {
        self.log.content_bytes() as u32
    }

    pub(super) fn pages_per_block(&self) -> u64 {
        self.chip.pages_per_block().into()
    }

    /// Parts of runs in pages: no fewer than pages that live.
    pub(super) fn parts_live(&self) -> u64 {
        self.parts_live
    }

    /// Nothing is in use, and nothing is being filled.
    pub(super) fn forget_all(&mut self) {
        self.live.fill(0);
        (self.at, self.present) = (None, None);
        (self.filled, self.parts, self.parts_live) = (0, 0, 0);
        self.moved.clear();
    }

    /// A run that the root record has is in use.
    pub(super) fn claim(&mut self, extents: impl Iterator<Item = Extent>) -> Result<()> {
        let what = "its runs take more pages of a block than it has";
        let damaged = Error::NotAnIndex { is_ours: true, what };
        for extent in extents {
            for page in extent.page..extent.page.saturating_add(extent.pages) {
                let block = self.chip.block_of(Page(page));
                let live = self.live.get_mut(block.0 as usize).ok_or(damaged)?;
                *live = live.checked_add(1).ok_or(damaged)?;
                self.parts_live += 1;
                self.log.claim_block(block)?;
            }
        }
        Ok(())
    }

    /// Bytes that are left in the page that is being filled.
    pub(super) fn room(&self) -> usize {
        match self.at {
            Some(_) => self.log.content_bytes() - self.filled,
            None => 0,
        }
    }

    /// Where the next unit goes: the page is programmed if `unit` bytes have no room there.
    pub(super) fn make_room(&mut self, unit: usize, cause: Cause) -> Result<(Page, usize)> {
        if self.at.is_some() && self.room() < unit {
            self.program(cause)?;
        }
        let page = match self.at {
            Some(page) => page,
            None => self.begin_page(cause)?,
        };
        Ok((page, self.filled))
    }

    fn begin_page(&mut self, cause: Cause) -> Result<Page> {
        self.erase_if_needed(cause)?;
        self.log.reserve(1, &mut self.next, cause)?;
        let full = Error::Full { pages: u64::from(self.log.usable_pages()) };
        let page = *self.next.first().ok_or(full)?;
        self.page.fill(0xFF);
        (self.at, self.filled, self.parts) = (Some(page), 0, 0);
        Ok(page)
    }

    fn erase_if_needed(&mut self, cause: Cause) -> Result<()> {
        if self.log.erases_at_once() && self.log.free_pages() == 0 {
            self.log.erase_released(cause)?;
        }
        Ok(())
    }

    /// A run has a part in the page that is being filled.
    pub(super) fn begin_part(&mut self) {
        if let Some(page) = self.at {
            self.parts += 1;
            self.add_parts(page, 1);
        }
    }

    fn add_parts(&mut self, page: Page, parts: u32) {
        let block = self.chip.block_of(page);
        if let Some(live) = self.live.get_mut(block.0 as usize) {
            *live += parts;
            self.parts_live += u64::from(parts);
        }
    }

    fn remove_parts(&mut self, page: Page, parts: u32) -> Result<()> {
        let what = "it gives back parts of pages that are not in use";
        let damaged = Error::NotAnIndex { is_ours: true, what };
        let block = self.chip.block_of(page);
        let live = self.live.get_mut(block.0 as usize).ok_or(damaged)?;
        *live = live.checked_sub(parts).ok_or(damaged)?;
        self.parts_live -= u64::from(parts);
        self.give_up_empty(block);
        Ok(())
    }

    /// Gives blocks up of which nothing is in use: those that only a named checkpoint kept, too,
    /// once it is forgotten.
    pub(super) fn give_up_all_empty(&mut self) {
        (0..self.chip.blocks()).for_each(|block| self.give_up_empty(Block(block)));
    }

    /// Gives `block` up if nothing of it is in use, and nothing more goes to it.
    fn give_up_empty(&mut self, block: Block) {
        if self.parts_in(block) == 0 && self.log.may_be_victim(block) {
            self.log.release(block);
        }
    }

    /// Parts of runs that live in `block`.
    pub(super) fn parts_in(&self, block: Block) -> u32 {
        self.live.get(block.0 as usize).copied().unwrap_or(0)
    }

    /// The bytes of the next unit.
    pub(super) fn slot(&mut self, unit: usize) -> &mut [u8] {
        let start = self.log.content_start() + self.filled;
        self.page.get_mut(start..start + unit).unwrap_or_default()
    }

    /// The next unit is whole.
    pub(super) fn end_unit(&mut self, unit: usize) {
        self.filled += unit;
    }

    /// Programs the page that is being filled, if something stands in it.
    pub(super) fn program(&mut self, cause: Cause) -> Result<()> {
        let Some(page) = self.at.filter(|_| self.filled > 0) else {
            return Ok(());
        };
        let bytes = core::mem::take(&mut self.page);
        let mut copy = bytes;
        let programmed = self.program_somewhere(page, &mut copy, cause);
        self.page = copy;
        let now = programmed?;
        let parts = self.parts;
        if now != page {
            self.moved.push((page, now));
            self.add_parts(now, parts);
            self.remove_parts(page, parts)?;
        }
        (self.at, self.filled, self.parts) = (None, 0, 0);
        self.note_block(now);
        Ok(())
    }

    /// Programs `bytes` at `page`, which was reserved, or where the chip takes them.
    fn program_somewhere(&mut self, page: Page, bytes: &mut [u8], cause: Cause) -> Result<Page> {
        let mut page = page;
        loop {
            match self.log.program(page, bytes, KIND, cause) {
                Ok(()) => {
                    self.held.forget(page);
                    return Ok(page);
                }
                Err(error) if error.is_refusal() => {
                    self.erase_if_needed(cause)?;
                    self.log.reserve(1, &mut self.next, cause)?;
                    let full = Error::Full { pages: u64::from(self.log.usable_pages()) };
                    page = *self.next.first().ok_or(full)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A page of the block of `page` was programmed: the block before it may be empty.
    fn note_block(&mut self, page: Page) {
        let block = self.chip.block_of(page);
        if let Some(left) = self.present.replace(block).filter(|left| *left != block) {
            self.give_up_empty(left);
        }
        self.give_up_empty(block);
    }

    /// Copies `page` to the next page of the log, as it is, with `parts` parts of runs in it;
    /// returns where it is. The page that is being filled is programmed before.
    pub(super) fn copy_page(&mut self, page: Page, parts: u32) -> Result<Page> {
        let cause = Cause::Reclamation;
        self.program(cause)?;
        self.at = None;
        let start = self.log.content_start();
        self.erase_if_needed(cause)?;
        self.log.reserve(1, &mut self.next, cause)?;
        let full = Error::Full { pages: u64::from(self.log.usable_pages()) };
        let to = *self.next.first().ok_or(full)?;
        self.page.fill(0xFF);
        let mut bytes = core::mem::take(&mut self.page);
        let copied = match bytes.get_mut(start..) {
            Some(content) => self.log.read(page, 0, content, cause).map_err(Into::into),
            None => Ok(()),
        };
        let copied = copied.and_then(|()| self.program_somewhere(to, &mut bytes, cause));
        self.page = bytes;
        let to = copied?;
        self.add_parts(to, parts);
        self.remove_parts(page, parts)?;
        self.note_block(to);
        Ok(to)
    }

    /// A run is needed no more.
    pub(super) fn free(&mut self, extents: impl Iterator<Item = Extent>) -> Result<()> {
        for extent in extents {
            for page in extent.page..extent.page.saturating_add(extent.pages) {
                let page = self.now(Page(page));
                if self.at == Some(page) {
                    self.parts = self.parts.saturating_sub(1);
                }
                self.remove_parts(page, 1)?;
            }
        }
        Ok(())
    }

    /// Where what was to stand in `page` is.
    pub(super) fn now(&self, page: Page) -> Page {
        let moved = self.moved.iter().rev().find(|(from, _)| *from == page);
        moved.map_or(page, |(_, to)| *to)
    }

    /// Pages that the chip refused since this was last asked, and where they are now.
    pub(super) fn moved(&mut self) -> Vec<(Page, Page)> {
        core::mem::take(&mut self.moved)
    }

    /// True if something was moved that was not asked for yet.
    pub(super) fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Reads bytes of a page.
    pub(super) fn read(
        &mut self,
        page: u32,
        offset: u32,
        into: &mut [u8],
        cause: Cause,
    ) -> Result<()> {
        let page = self.now(Page(page));
        if self.at == Some(page) {
            let start = self.log.content_start() + offset as usize;
            if let Some(bytes) = self.page.get(start..start + into.len()) {
                into.copy_from_slice(bytes);
                return Ok(());
            }
        }
        Ok(self.log.read(page, offset, into, cause)?)
    }

    /// Reads a unit for a lookup: what was read lately is in memory. In the same page stand
    /// `before` units of its length before it, and `behind` from it on, that it may be read with.
    pub(super) fn read_for_lookup(
        &mut self,
        (page, offset): (u32, u32),
        (before, behind): (u32, u32),
        into: &mut [u8],
    ) -> Result<()> {
        let address = self.now(Page(page));
        if self.at == Some(address) || !self.held.takes(into.len()) {
            return self.read(page, offset, into, Cause::Lookup);
        }
        if self.held.copy(address, offset, into) {
            return Ok(());
        }
        let unit = into.len() as u32;
        let group = (offset - before * unit, (before + behind) * unit);
        if self.reads_group(unit, group.1) && self.read_group(address, group, (before, into)) {
            return Ok(());
        }
        self.log.read(address, offset, into, Cause::Lookup)?;
        self.held.hold(address, offset, (into, false));
        Ok(())
    }

    /// True if a unit is to be read with its neighbours, `all` bytes in all.
    fn reads_group(&mut self, unit: u32, all: u32) -> bool {
        if all <= unit || all > GROUP {
            return false;
        }
        let (alone, together) = self.read_costs(unit, all);
        self.held.reads_group(alone, together - alone)
    }

    /// Reads the units in `bytes` bytes of a page from `first` on, of which that at `place` is
    /// wanted; false if they can't be read: a neighbour may be damaged where the unit is not.
    fn read_group(
        &mut self,
        page: Page,
        (first, bytes): (u32, u32),
        (place, into): (u32, &mut [u8]),
    ) -> bool {
        let mut group = [0; GROUP as usize];
        let group = &mut group[..bytes as usize];
        if self.log.read(page, first, group, Cause::Lookup).is_err() {
            return false;
        }
        self.held.note_group();
        let unit = into.len();
        for (at, bytes) in (0..).zip(group.chunks(unit)) {
            self.held.hold(page, first + at * unit as u32, (bytes, at != place));
            if at == place {
                into.copy_from_slice(bytes);
            }
        }
        true
    }

    /// What reading so many bytes costs, and so many more of the same page.
    fn read_costs(&self, few: u32, many: u32) -> (u64, u64) {
        match self.log.costs() {
            Some(costs) => {
                let read = |bytes: u32| costs.read.time.at(bytes.into(), 1);
                (read(few), read(many).max(read(few)))
            }
            // Half of a read is the access, say.
            None => ((GROUP + few).into(), (GROUP + many).into()),
        }
    }

    /// What was read of a page is not what it should be: it is read again the next time.
    pub(super) fn doubt(&mut self, page: u32) {
        let address = self.now(Page(page));
        self.held.forget(address);
    }

    /// Pages that can be written before a checkpoint has to make room, without those that it keeps
    /// back.
    pub(super) fn free_pages(&self) -> u64 {
        self.free_to_move().saturating_sub(self.log.pages_kept_next().into())
    }

    /// Pages that moving can take: it is followed by a checkpoint, which gives back more.
    pub(super) fn free_to_move(&self) -> u64 {
        let log = &self.log;
        let released = if log.erases_at_once() { log.blocks_to_erase() } else { 0 };
        u64::from(log.free_pages()) + u64::from(released) * self.pages_per_block()
    }

    /// Pages that moving all out of `block` writes, with the one that is being filled.
    pub(super) fn pages_to_move(&self, block: Block) -> u64 {
        u64::from(self.parts_in(block)) + u64::from(self.at.is_some() && self.filled > 0)
    }

    /// The block in which fewest parts live, some though, that can be emptied.
    pub(super) fn emptiest(&self) -> Option<(Block, u32)> {
        let live = self.live.iter().enumerate().filter(|(_, live)| **live > 0);
        let live = live.map(|(block, live)| (Block(block as u32), *live));
        live.filter(|(block, _)| self.log.may_be_victim(*block)).min_by_key(|(_, live)| *live)
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.chip
    }
}
