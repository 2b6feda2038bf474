//! Collection: moving what lives out of a block, so that it can be erased.

use core::mem;

use device::{Block, Cause, Error, Nand, Page, Result};

use super::PageMap;
use super::blocks::Role;
use super::closing;
use super::frontier::Write;
use super::placement::Stream;
use super::spare::{self, DataCheck, Found, Metadata};
use crate::Victim;
use crate::reading::{read_echo, readable};

pub(super) const CAUSE: Cause = Cause::Reclamation;

impl<N: Nand> PageMap<N> {
    /// Collects until a sector can be written to `stream` and the reserve of free blocks is whole.
    ///
    /// # Errors
    /// [`Error::Full`] if no block is worth collecting and the last free block would be taken,
    /// which collection itself needs.
    pub(super) fn make_room(&mut self, stream: Stream) -> Result<()> {
        if self.has_room(stream) {
            return Ok(());
        }
        self.restore_reserve()?;
        if self.level()? {
            self.restore_reserve()?;
        }
        match self.blocks.free_count() {
            blocks_free @ 0..2 => Err(Error::Full { blocks_free, blocks_needed: 2 }),
            _ => Ok(()),
        }
    }

    /// Collects until enough blocks are free, and none is worn: after a power cut nobody knows that
    /// a block refused a program unless it was marked, and it would be taken again.
    fn restore_reserve(&mut self) -> Result<()> {
        let reserve = self.shape.reserve();
        while (self.blocks.free_count() < reserve || self.blocks.next_worn().is_some())
            && self.collect()?
        {}
        Ok(())
    }

    /// Collects a block; returns false if none is worth it.
    fn collect(&mut self) -> Result<bool> {
        let block = match self.blocks.next_worn() {
            Some(worn) => worn,
            None => match self.choose_victim() {
                Some(block) => block,
                None => return Ok(false),
            },
        };
        self.statistics.collections += 1;
        let region = self.notes[block.0 as usize].region;
        self.empty(block, self.placement.of_collected(region))?;
        Ok(true)
    }

    fn choose_victim(&mut self) -> Option<Block> {
        let few = self.blocks.free_count() + u32::from(self.shape.frontiers) < self.shape.reserve();
        let victim = if few { Victim::Greedy } else { self.victim };
        let most = self.shape.data_pages() - self.shape.slack();
        self.candidates.choose(victim, most, self.sequence)
    }

    /// Moves all that lives in a closed or worn block to `stream`, after which it is free, or
    /// bad if it was worn.
    pub(super) fn empty(&mut self, block: Block, stream: Stream) -> Result<()> {
        let worn = self.blocks.role(block) == Role::Worn;
        if worn {
            self.blocks.hold_worn(block);
        } else {
            self.candidates.remove(&mut self.blocks.links, block);
            self.blocks.set(block, Role::Held);
        }
        let moved = self.move_live_pages(block, stream);
        match moved {
            Err(_) if worn => self.blocks.wear_out(block),
            Err(_) => self.close_block(block),
            // What cannot be read stays until it is overwritten, and its block is held.
            Ok(()) if self.map.live_pages(block) > 0 => {}
            Ok(()) if worn => self.retire(block)?,
            Ok(()) => self.release(block),
        }
        moved
    }

    /// Marks a block bad whose live pages were moved. A bad block is never read again after a
    /// restart; so the newer copies of its pages are made durable first.
    fn retire(&mut self, block: Block) -> Result<()> {
        let closed = self.close_all_groups(CAUSE);
        if closed.is_err() {
            self.blocks.wear_out(block);
            return closed;
        }
        self.blocks.set(block, Role::Bad);
        self.count_bad(block);
        self.nand.mark_bad(block)
    }

    /// Counts a block that went bad.
    pub(super) fn count_bad(&mut self, block: Block) {
        self.wear.retire(block);
        self.statistics.blocks_retired += 1;
        self.statistics.erases = Some(self.wear.summary());
    }

    /// Says that `block` holds nothing that lives.
    pub(super) fn release(&mut self, block: Block) {
        self.blocks.release(block, Role::Dirty);
        self.notes[block.0 as usize].sequence = self.sequence;
    }

    fn move_live_pages(&mut self, victim: Block, stream: Stream) -> Result<()> {
        if self.map.live_pages(victim) == 0 {
            return Ok(());
        }
        let mut data = mem::take(&mut self.buffers.moved);
        let moved = if self.shape.has_groups() {
            self.move_groups(victim, stream, &mut data)
        } else {
            self.move_pages(victim, stream, &mut data)
        };
        self.buffers.moved = data;
        moved
    }

    /// Moves the live pages of a block whose spare areas tell what they hold.
    fn move_pages(&mut self, victim: Block, stream: Stream, data: &mut [u8]) -> Result<()> {
        let first = self.shape.geometry.first_page(victim).0;
        for page in (first..first + self.shape.geometry.pages_per_block()).map(Page) {
            if !self.map.is_live(page) {
                continue;
            }
            match self.fetch(page, data)? {
                Some(Metadata { sector, data: check, .. }) => {
                    if self.map.page_of(sector) == Some(page) {
                        self.move_page(stream, Write { sector, data, check: Some(check) })?;
                    }
                }
                None => self.statistics.pages_lost += 1,
            }
        }
        Ok(())
    }

    /// Reads a page that has a spare area, to move it; returns its metadata, or `None` if it is
    /// lost.
    pub(super) fn fetch(&mut self, page: Page, data: &mut [u8]) -> Result<Option<Metadata>> {
        let mut spare = [0; spare::BYTES];
        if readable(self.read_page(page, 0, (data, &mut spare), CAUSE))?
            && let Found::Page(metadata) = Metadata::decode(&spare, page)
        {
            return Ok(Some(metadata));
        }
        // The data may be whole where the spare area isn't.
        let Found::Page(metadata) = read_echo(&mut self.nand, page, CAUSE)? else {
            return Ok(None);
        };
        let whole = readable(self.read_page(page, 0, (data, &mut []), CAUSE))?
            && DataCheck::of(data) == metadata.data;
        Ok(whole.then_some(metadata))
    }

    /// Moves the live pages of a block in which pages close groups: from the last group to the
    /// first, since each closing page tells how long its group is; where one is damaged, the next
    /// is looked for.
    fn move_groups(&mut self, victim: Block, stream: Stream, data: &mut [u8]) -> Result<()> {
        let first = self.shape.geometry.first_page(victim).0;
        let note = self.notes[victim.0 as usize];
        let mut members = mem::take(&mut self.buffers.members);
        let mut seal = note.seal;
        let mut moved = Ok(());
        while seal > 0 && moved.is_ok() {
            members.clear();
            let page = Page(first + seal);
            match readable(self.read_page(page, 0, (data, &mut []), CAUSE)) {
                Ok(true) => {
                    let group = closing::decode(data, page, note.sequence);
                    members.extend(group.into_iter().flat_map(|(_, members)| members));
                }
                Ok(false) => {}
                Err(error) => moved = Err(error),
            }
            let length = members.len() as u32;
            if 0 < length && length < seal {
                seal -= length;
                let group = (Page(first + seal), &members[..]);
                moved = moved.and_then(|()| self.move_group(group, stream, data));
            }
            seal -= 1;
        }
        self.buffers.members = members;
        moved
    }

    /// Moves the live pages of a group that begins at page `first`.
    fn move_group(
        &mut self,
        (first, members): (Page, &[closing::Member]),
        stream: Stream,
        data: &mut [u8],
    ) -> Result<()> {
        for (page, member) in (first.0..).map(Page).zip(members) {
            let sector = member.sector;
            if self.map.page_of(sector) != Some(page) {
                continue;
            }
            if readable(self.read_page(page, 0, (data, &mut []), CAUSE))? {
                self.move_page(stream, Write { sector, data, check: None })?;
            } else {
                self.statistics.pages_lost += 1;
            }
        }
        Ok(())
    }

    fn move_page(&mut self, stream: Stream, write: Write<'_>) -> Result<()> {
        let page = self.append(stream, write, CAUSE)?;
        self.map.place(write.sector, page);
        self.statistics.pages_moved += 1;
        Ok(())
    }
}
