//! Collection: moving what lives out of a block, so that it can be erased.

use core::mem;

use device::{Block, Cause, Error, Nand, Page, Result};

use super::PageMap;
use super::blocks::Role;
use super::closing;
use super::frontier::{Stream, Write};
use super::spare::{self, Found, Metadata};
use crate::reading::readable;

const CAUSE: Cause = Cause::Reclamation;

impl<N: Nand> PageMap<N> {
    /// Collects until a user's sector can be written and the reserve of free blocks is whole.
    ///
    /// # Errors
    /// [`Error::Full`] if no block is worth collecting and the last free block would be taken,
    /// which collection itself needs.
    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.has_room(Stream::Host) {
            return Ok(());
        }
        let reserve = self.shape.reserve();
        while self.blocks.free_count() < reserve && self.collect()? {}
        match self.blocks.free_count() {
            blocks_free @ 0..2 => Err(Error::Full { blocks_free, blocks_needed: 2 }),
            _ => Ok(()),
        }
    }

    /// Collects a block; returns false if none is worth it.
    fn collect(&mut self) -> Result<bool> {
        let worn = self.blocks.next_worn();
        let victim = if let Some(block) = worn {
            self.blocks.hold_worn(block);
            block
        } else {
            let worth_it = |live| live + self.shape.slack() < self.shape.data_pages();
            let Some((block, live)) = self.victims.choose().filter(|(_, live)| worth_it(*live))
            else {
                return Ok(false);
            };
            self.victims.remove(&mut self.blocks.links, block, live);
            self.blocks.set(block, Role::Held);
            block
        };
        self.statistics.collections += 1;
        let moved = self.move_live_pages(victim);
        match moved {
            Err(_) if worn.is_some() => self.blocks.wear_out(victim),
            Err(_) => self.close_block(victim),
            // What cannot be read stays until it is overwritten, and its block is held.
            Ok(()) if self.map.live_pages(victim) > 0 => {}
            Ok(()) if worn.is_some() => self.retire(victim)?,
            Ok(()) => self.release(victim),
        }
        moved.map(|()| true)
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
        self.statistics.blocks_retired += 1;
        self.nand.mark_bad(block)
    }

    /// Says that `block` holds nothing that lives.
    pub(super) fn release(&mut self, block: Block) {
        self.blocks.release(block, Role::Dirty);
        if let Some(note) = self.notes.get_mut(block.0 as usize) {
            note.sequence = self.sequence;
        }
    }

    fn move_live_pages(&mut self, victim: Block) -> Result<()> {
        if self.map.live_pages(victim) == 0 {
            return Ok(());
        }
        let mut data = mem::take(&mut self.buffers.moved);
        let moved = if self.shape.has_groups() {
            self.move_groups(victim, &mut data)
        } else {
            self.move_pages(victim, &mut data)
        };
        self.buffers.moved = data;
        moved
    }

    /// Moves the live pages of a block whose spare areas tell what they hold.
    fn move_pages(&mut self, victim: Block, data: &mut [u8]) -> Result<()> {
        let first = self.shape.geometry.first_page(victim).0;
        for page in (first..first + self.shape.geometry.pages_per_block()).map(Page) {
            if !self.map.is_live(page) {
                continue;
            }
            let mut spare = [0; spare::BYTES];
            if !readable(self.nand.read(page, 0, data, &mut spare, CAUSE))? {
                continue;
            }
            if let Found::Page(Metadata { sector, data: check, .. }) =
                Metadata::decode(&spare, page)
                && self.map.page_of(sector) == Some(page)
            {
                self.move_page(Write { sector, data, check: Some(check) })?;
            }
        }
        Ok(())
    }

    /// Moves the live pages of a block in which pages close groups: from the last group to the
    /// first, since each closing page tells how long its group is.
    fn move_groups(&mut self, victim: Block, data: &mut [u8]) -> Result<()> {
        let first = self.shape.geometry.first_page(victim).0;
        let note = self.notes[victim.0 as usize];
        let mut members = mem::take(&mut self.buffers.members);
        let mut seal = note.seal;
        let mut moved = Ok(());
        while seal > 0 && moved.is_ok() {
            members.clear();
            let page = Page(first + seal);
            match readable(self.nand.read(page, 0, data, &mut [], CAUSE)) {
                Ok(true) => {
                    let group = closing::decode(data, page, note.sequence);
                    members.extend(group.into_iter().flat_map(|(_, members)| members));
                }
                Ok(false) => {}
                Err(error) => moved = Err(error),
            }
            let length = members.len() as u32;
            if length == 0 || length >= seal {
                break;
            }
            seal -= length;
            moved = moved.and_then(|()| self.move_group(Page(first + seal), &members, data));
            seal -= 1;
        }
        self.buffers.members = members;
        moved
    }

    /// Moves the live pages of a group that begins at page `first`.
    fn move_group(
        &mut self,
        first: Page,
        members: &[closing::Member],
        data: &mut [u8],
    ) -> Result<()> {
        for (page, member) in (first.0..).map(Page).zip(members) {
            let sector = member.sector;
            if self.map.page_of(sector) == Some(page)
                && readable(self.nand.read(page, 0, data, &mut [], CAUSE))?
            {
                self.move_page(Write { sector, data, check: None })?;
            }
        }
        Ok(())
    }

    fn move_page(&mut self, write: Write<'_>) -> Result<()> {
        let page = self.append(Stream::Moved, write, CAUSE)?;
        self.map.place(write.sector, page);
        self.statistics.pages_moved += 1;
        Ok(())
    }
}
