//! The log: a queue of blocks, each with a header, which holds what the disk is. A queue of one
//! block has it twice, so that no single page holds what nothing else tells.
//!
//! In FAST it takes sectors too, in the order in which they are written. Without a spare area a
//! page of metadata, a **state**, follows each group of them; flush writes one early. A state also
//! names the blocks that are being filled and how far they are, and so makes them durable. A block
//! that is full is followed by another with a new header; if the queue is as long as it may be,
//! the oldest block is the victim: every logical block that has a sector there is merged.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Error, Nand, Page, Result};

use super::fill::Content;
use super::index::Index;
use super::own::{self, Head, Member};
use super::{Core, NONE, Shape};
use crate::spare::{Kind, Metadata, Trail};

const CAUSE: Cause = Cause::Reclamation;

/// A block of the log.
#[derive(Clone, Copy)]
pub(crate) struct LogBlock {
    pub(crate) block: Block,
    /// The sequence of its header.
    pub(crate) sequence: u64,
    /// Which row of the table says what its pages hold.
    pub(crate) row: usize,
    /// True if the chip refused a program in it.
    pub(crate) worn: bool,
}

/// The log.
///
/// Invariant: rows of `queue` are all numbers below its length. While the log is open, pages of
/// the newest block from `next` on were never touched since its erase. The members are the
/// sectors on the pages directly before `next`.
pub(crate) struct Log {
    /// The oldest block comes first.
    pub(crate) queue: Vec<LogBlock>,
    /// A row a block, a sector a page.
    sectors: Box<[u32]>,
    index: Index,
    pages_per_block: u32,
    open: bool,
    pub(crate) next: u32,
    /// Sectors since the last state.
    pub(crate) members: Vec<Member>,
    base: u64,
    /// What the next spare area echoes.
    pub(super) trail: Trail,
}

impl Log {
    pub(crate) fn new(shape: &Shape) -> Self {
        Log {
            queue: Vec::with_capacity(shape.log_blocks() as usize),
            sectors: vec![NONE; shape.log_pages() as usize].into_boxed_slice(),
            index: Index::new(shape.log_pages()),
            pages_per_block: shape.geometry.pages_per_block(),
            open: false,
            next: 0,
            members: Vec::with_capacity(shape.group() as usize),
            base: 0,
            trail: Trail::new(shape.geometry),
        }
    }

    /// Where in the log `sector` is.
    #[inline]
    pub(crate) fn page_of(&self, sector: u32) -> Option<Page> {
        self.index.get(sector)
    }

    /// Says that `sector` is elsewhere.
    pub(crate) fn remove(&mut self, sector: u32) {
        self.index.remove(sector);
    }

    /// Says that place `place` of the block with this row, `page`, holds `sector`.
    pub(crate) fn place(&mut self, row: usize, place: u32, sector: u32, page: Page) {
        self.sectors[row * self.pages_per_block as usize + place as usize] = sector;
        self.index.insert(sector, page);
    }

    /// The sectors on the pages of the block with this row.
    fn clear_row(&mut self, row: usize) {
        let pages = self.pages_per_block as usize;
        if let Some(sectors) = self.sectors.get_mut(row * pages..(row + 1) * pages) {
            sectors.fill(NONE);
        }
    }

    /// The sector on a page, if it is the newest of that sector.
    fn live(&self, row: usize, place: u32, page: Page) -> Option<u32> {
        let at = row * self.pages_per_block as usize + place as usize;
        let sector = self.sectors.get(at).copied().filter(|sector| *sector != NONE)?;
        (self.index.get(sector) == Some(page)).then_some(sector)
    }

    /// Bytes of memory that the tables take.
    pub(crate) fn memory(&self) -> u64 {
        let queue = self.queue.capacity() * size_of::<LogBlock>();
        let members = self.members.capacity() * size_of::<Member>();
        (size_of_val(&*self.sectors) + queue + members) as u64 + self.index.memory()
    }
}

impl<N: Nand> Core<N> {
    /// Writes a sector to the log.
    pub(crate) fn append(&mut self, sector: u32, content: Content<'_>, cause: Cause) -> Result<()> {
        loop {
            let (log, page) = self.log_room(cause)?;
            let sequence = self.take_sequences(1);
            let metadata =
                content.check.map(|data| Metadata { sector, sequence, kind: Kind::Log, data });
            if let Err(error) = self.program(page, content.data, metadata, cause) {
                self.close_log(error)?;
                continue;
            }
            self.log.place(log.row, self.log.next, sector, page);
            self.log.next += 1;
            if self.shape.has_own_pages() {
                if self.log.members.is_empty() {
                    self.log.base = sequence;
                }
                let delta = (sequence - self.log.base) as u32;
                self.log.members.push(Member { sector, delta });
            }
            return Ok(());
        }
    }

    /// Makes durable what users wrote.
    pub(crate) fn flush(&mut self, cause: Cause) -> Result<()> {
        if !self.shape.has_own_pages() {
            return Ok(());
        }
        loop {
            self.close_group(cause)?;
            if self.fillings.iter().all(|filling| filling.durable == filling.next) {
                return Ok(());
            }
            if self.log.open && self.log.next < self.log.pages_per_block {
                self.write_state(cause)?;
            } else {
                self.rotate()?;
            }
        }
    }

    /// The block and the page that the next sector goes to.
    fn log_room(&mut self, cause: Cause) -> Result<(LogBlock, Page)> {
        // A state may stand on the last page, but a group may not begin there.
        let end = self.shape.geometry.pages_per_block() - u32::from(self.shape.has_own_pages());
        loop {
            match self.log.queue.last().copied().filter(|_| self.log.open) {
                Some(_) if self.group_is_full() => self.close_group(cause)?,
                Some(newest) if self.log.next < end => {
                    let first = self.shape.geometry.first_page(newest.block).0;
                    return Ok((newest, Page(first + self.log.next)));
                }
                _ => self.rotate()?,
            }
        }
    }

    fn group_is_full(&self) -> bool {
        let log = &self.log;
        !log.members.is_empty()
            && (log.members.len() as u32 == self.shape.group()
                || log.next + 1 == log.pages_per_block
                || self.sequence - log.base > u64::from(u32::MAX))
    }

    /// Makes the members durable: by a state, or, where the block can't take one any more, by
    /// merging them.
    fn close_group(&mut self, cause: Cause) -> Result<()> {
        while !self.log.members.is_empty() {
            if self.log.open {
                self.write_state(cause)?;
                continue;
            }
            if let Some(newest) = self.log.queue.last().copied() {
                let first = self.log.next - self.log.members.len() as u32;
                self.empty(newest, first..self.log.next)?;
            }
            self.log.members.clear();
        }
        Ok(())
    }

    /// Programs a state; if the chip refuses, the log is closed.
    fn write_state(&mut self, cause: Cause) -> Result<()> {
        let Some(newest) = self.log.queue.last().copied() else {
            return Ok(());
        };
        let page = Page(self.shape.geometry.first_page(newest.block).0 + self.log.next);
        let (sequence, base) = (newest.sequence, self.log.base);
        let head = Head { kind: own::Kind::State, sequence, base, number: 0, flags: 0 };
        if let Err(error) = self.program_own(page, head, cause) {
            return self.close_log(error);
        }
        self.log.members.clear();
        self.log.next += 1;
        self.count_durable();
        Ok(())
    }

    fn count_durable(&mut self) {
        for filling in &mut self.fillings {
            filling.durable = filling.next;
        }
    }

    /// Closes the newest block, in which a program failed with `error`. Succeeds if the chip
    /// refused, so that it can be tried again elsewhere.
    fn close_log(&mut self, error: Error) -> Result<()> {
        self.log.open = false;
        match (error, self.log.queue.last_mut()) {
            (Error::ProgramRefused { .. }, Some(newest)) => {
                newest.worn = true;
                Ok(())
            }
            (error, _) => Err(error),
        }
    }

    /// Opens the next block of the log; if the queue is full, its oldest block is emptied before
    /// and freed after that.
    pub(super) fn rotate(&mut self) -> Result<()> {
        self.close_group(CAUSE)?;
        let victim =
            (self.log.queue.len() == self.shape.log_blocks() as usize).then(|| self.log.queue[0]);
        if let Some(victim) = victim {
            self.empty(victim, 1..self.log.pages_per_block)?;
        }
        let (block, sequence) = self.begin_log_block(victim.is_some())?;
        let row = victim.map_or(self.log.queue.len(), |victim| victim.row);
        if victim.is_some() {
            self.log.queue.remove(0);
        }
        self.log.clear_row(row);
        self.log.queue.push(LogBlock { block, sequence, row, worn: false });
        self.log.open = true;
        self.log.next = self.shape.log_headers();
        self.count_durable();
        if let Some(victim) = victim {
            self.statistics.collections += 1;
            self.discard(victim.block, victim.worn)?;
        }
        Ok(())
    }

    /// Takes a block and programs the header of the log, without its oldest block if that is done.
    fn begin_log_block(&mut self, oldest_is_done: bool) -> Result<(Block, u64)> {
        loop {
            let block = self.take_block()?;
            let sequence = self.take_sequences(1);
            let oldest = self.log.queue.get(usize::from(oldest_is_done));
            let head = Head {
                kind: own::Kind::Log,
                sequence,
                base: oldest.map_or(sequence, |oldest| oldest.sequence),
                number: self.data.len() as u32,
                flags: self.shape.logs as u16,
            };
            let first = self.shape.geometry.first_page(block).0;
            let headers = (first..first + self.shape.log_headers()).map(Page);
            let mut programmed = Ok(());
            for page in headers {
                programmed = programmed.and_then(|()| self.program_own(page, head, CAUSE));
            }
            match programmed {
                Ok(()) => return Ok((block, sequence)),
                Err(error) => self.give_up(block, error)?,
            }
        }
    }

    /// Merges every logical block that has its newest sector on these places of a block.
    fn empty(&mut self, log: LogBlock, places: core::ops::Range<u32>) -> Result<()> {
        let first = self.shape.geometry.first_page(log.block).0;
        for place in places {
            while let Some(sector) = self.log.live(log.row, place, Page(first + place)) {
                let logical = self.shape.split(sector).0;
                match self.slot_of(logical) {
                    Some(slot) => self.finish(slot)?,
                    None => self.merge(logical)?,
                }
            }
        }
        Ok(())
    }
}
