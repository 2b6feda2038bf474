//! Writing pages: frontiers, groups, headers, and chips that refuse.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use device::{Block, Cause, Error, Nand, Page, Result};

use super::blocks::Role;
use super::closing::{self, Member, Seal};
use super::header::Header;
use super::placement::{Stream, Warmth};
use super::shape::Shape;
use super::spare::{DataCheck, Kind, Metadata, Trail};
use super::{Note, PageMap};
use crate::Levelling;
use crate::wear::Wear;

/// A block that is being filled.
///
/// Invariant: pages of the block from `next` on were never touched since its erase; the members
/// of the open group are the pages directly before `next`.
pub(crate) struct Frontier {
    block: Option<Block>,
    next: u32,
    members: Vec<Member>,
    /// The sequence from which the members count.
    base: u64,
    /// Blocks that were free at this sequence may be erased although the group is open.
    since: u64,
    /// True if the open group may hold what users wrote.
    pub(crate) unflushed: bool,
    /// What the next spare area echoes.
    trail: Trail,
}

impl Frontier {
    pub(crate) fn new(shape: &Shape) -> Self {
        let members = Vec::with_capacity(shape.group() as usize);
        let trail = Trail::new(shape.geometry);
        Frontier { block: None, next: 0, members, base: 0, since: 0, unflushed: false, trail }
    }

    pub(crate) fn memory(&self) -> u64 {
        (self.members.capacity() * size_of::<Member>()) as u64
    }

    /// True if the open group takes no more before it is closed.
    fn group_is_full(&self, shape: &Shape, sequence: u64) -> bool {
        !self.members.is_empty()
            && (self.members.len() as u32 == shape.group()
                || self.next + 1 == shape.geometry.pages_per_block()
                || sequence - self.base > u64::from(u32::MAX))
    }
}

/// How often in a row a chip may refuse what a group holds.
const RESCUES: usize = 3;

/// A sector to be written.
#[derive(Clone, Copy)]
pub(crate) struct Write<'d> {
    pub(crate) sector: u32,
    pub(crate) data: &'d [u8],
    /// The checksum of the data, where there is a spare area for it.
    pub(crate) check: Option<DataCheck>,
}

/// Programs a header on the first page of `block`; returns how many blocks it names.
pub(crate) fn program_header<N: Nand>(
    nand: &mut N,
    shape: &Shape,
    block: Block,
    contents: (Header, impl Iterator<Item = Block>, &Wear),
    buffer: &mut [u8],
) -> Result<u32> {
    let (header, list, wear) = contents;
    let page = shape.geometry.first_page(block);
    let listed = header.encode(page, list, wear, buffer);
    let metadata = Metadata {
        sector: 0,
        sequence: header.sequence,
        kind: Kind::Header,
        data: DataCheck::of(buffer),
    };
    let spare = metadata.encode(page);
    let spare = if shape.has_groups() { &[] } else { &spare[..] };
    nand.program(page, 0, buffer, spare, Cause::Reclamation)?;
    Ok(listed)
}

impl<N: Nand> PageMap<N> {
    /// Writes a sector to the frontier of `stream`; returns the page, which is not mapped yet.
    pub(super) fn append(
        &mut self,
        stream: Stream,
        write: Write<'_>,
        cause: Cause,
    ) -> Result<Page> {
        loop {
            let page = self.room(stream, cause)?;
            let sequence = self.next_sequence();
            let metadata = write.check.map(|data| {
                Metadata { sector: write.sector, sequence, kind: Kind::Data, data }.encode(page)
            });
            let trail = &mut self.frontiers[stream.0 as usize].trail;
            let area = metadata.as_ref().map(|metadata| trail.area(page, metadata));
            let spare = area.as_ref().map_or(&[][..], |(area, length)| &area[..*length]);
            match self.nand.program(page, 0, write.data, spare, cause) {
                Ok(()) => {
                    if let Some(metadata) = metadata {
                        trail.programmed(page, metadata);
                    }
                    self.statistics.pages_programmed += 1;
                    self.advance(stream, write.sector, sequence);
                    return Ok(page);
                }
                Err(error) => self.abandon(stream, error)?,
            }
        }
    }

    /// True if the frontier of `stream` takes another sector without another block.
    pub(super) fn has_room(&self, stream: Stream) -> bool {
        let frontier = &self.frontiers[stream.0 as usize];
        let closings = u32::from(self.shape.has_groups())
            + u32::from(frontier.group_is_full(&self.shape, self.sequence));
        let pages = self.shape.geometry.pages_per_block();
        frontier.block.is_some() && frontier.next + closings < pages
    }

    /// Closes the open group of `stream`, if there is one.
    pub(super) fn close_group(&mut self, stream: Stream, cause: Cause) -> Result<()> {
        while !self.frontiers[stream.0 as usize].members.is_empty() {
            self.try_close_group(stream, cause)?;
        }
        Ok(())
    }

    /// All frontiers.
    pub(super) fn streams(&self) -> impl Iterator<Item = Stream> + use<N> {
        (0..self.shape.frontiers).map(Stream)
    }

    /// Closes the open groups of all streams.
    pub(super) fn close_all_groups(&mut self, cause: Cause) -> Result<()> {
        self.streams().try_for_each(|stream| self.close_group(stream, cause))
    }

    fn next_sequence(&mut self) -> u64 {
        let sequence = self.sequence;
        self.sequence += 1;
        sequence
    }

    /// The page that the next sector goes to; opens a block and closes a group where needed.
    fn room(&mut self, stream: Stream, cause: Cause) -> Result<Page> {
        // A group may be closed on the last page, but not begin there.
        let end = self.shape.geometry.pages_per_block() - u32::from(self.shape.has_groups());
        loop {
            let frontier = &self.frontiers[stream.0 as usize];
            let Some(block) = frontier.block else {
                self.open_block(stream)?;
                continue;
            };
            if frontier.group_is_full(&self.shape, self.sequence) {
                self.close_group(stream, cause)?;
            } else if frontier.next < end {
                return Ok(Page(self.shape.geometry.first_page(block).0 + frontier.next));
            } else {
                self.frontiers[stream.0 as usize].block = None;
                self.close_block(block);
            }
        }
    }

    /// Counts a page that was programmed at the frontier.
    fn advance(&mut self, stream: Stream, sector: u32, sequence: u64) {
        let frontier = &mut self.frontiers[stream.0 as usize];
        frontier.next += 1;
        if self.shape.has_groups() {
            if frontier.members.is_empty() {
                frontier.base = sequence;
                frontier.since = sequence;
            }
            let delta = (sequence - frontier.base) as u32;
            frontier.members.push(Member { sector, delta });
        }
    }

    /// Programs the page that closes the open group. If the chip refuses it, the group is open
    /// again in another block.
    fn try_close_group(&mut self, stream: Stream, cause: Cause) -> Result<()> {
        let frontier = &self.frontiers[stream.0 as usize];
        let Some(block) = frontier.block else {
            return Ok(());
        };
        let place = frontier.next;
        let page = Page(self.shape.geometry.first_page(block).0 + place);
        let header = self.notes[block.0 as usize].sequence;
        let seal = Seal { base: frontier.base, header, page };
        closing::encode(seal, &frontier.members, &mut self.buffers.own);
        match self.nand.program(page, 0, &self.buffers.own, &[], cause) {
            Ok(()) => {
                self.statistics.pages_programmed += 1;
                self.statistics.pages_of_metadata += 1;
                let frontier = &mut self.frontiers[stream.0 as usize];
                frontier.members.clear();
                frontier.next += 1;
                self.notes[block.0 as usize].seal = place;
                Ok(())
            }
            Err(error) => self.abandon(stream, error),
        }
    }

    /// Writes the first header of a new disk.
    pub(super) fn open_first_block(&mut self) -> Result<()> {
        self.open_block(Stream(0))
    }

    /// Makes a free block the frontier of `stream`.
    fn open_block(&mut self, stream: Stream) -> Result<()> {
        loop {
            let block = self.take_block(stream)?;
            self.notes[block.0 as usize] =
                Note { sequence: self.sequence, seal: 0, region: stream, worn: false };
            let frontier = &mut self.frontiers[stream.0 as usize];
            frontier.block = Some(block);
            frontier.next = 0;
            let dirty = self.blocks.next_free().filter(|(_, role)| *role == Role::Dirty);
            if self.shape.has_groups() {
                // So that the header can name the block that will be taken next.
                if let Some((next, _)) = dirty.filter(|(next, _)| self.freed(*next) <= self.guard) {
                    self.close_groups_before(next)?;
                }
            } else if self.pinned.is_some() && (self.covered > 0 || dirty.is_none()) {
                return Ok(());
            }
            match self.write_header(block) {
                Ok(()) => {
                    self.frontiers[stream.0 as usize].next = 1;
                    return Ok(());
                }
                Err(error) => self.abandon(stream, error)?,
            }
        }
    }

    /// Programs the newest header on the first page of `block`; the block that had it before
    /// becomes like any other.
    fn write_header(&mut self, block: Block) -> Result<()> {
        let sequence = self.next_sequence();
        let header = Header {
            mark: self.kind.mark(),
            sequence,
            sectors: self.disk.sectors() as u32,
            frontiers: self.shape.frontiers,
        };
        let open = self.frontiers.iter().filter(|frontier| !frontier.members.is_empty());
        let since = open.map(|frontier| frontier.since).fold(self.guard, u64::min);
        let (notes, has_groups) = (&self.notes, self.shape.has_groups());
        // What was freed later may have its newer copies in a group that can still be lost.
        let is_settled = |block: &Block| !has_groups || notes[block.0 as usize].sequence <= since;
        let settled = self.blocks.free().take_while(is_settled);
        self.covered = program_header(
            &mut self.nand,
            &self.shape,
            block,
            (header, settled, &self.wear),
            &mut self.buffers.own,
        )?;
        self.statistics.pages_programmed += 1;
        self.statistics.pages_of_metadata += 1;
        self.notes[block.0 as usize].sequence = sequence;
        if let Some(before) = self.pinned.replace(block)
            && self.blocks.role(before) == Role::Pinned
        {
            self.close_block(before);
        }
        Ok(())
    }

    /// Takes a free block for `stream`, erased.
    fn take_block(&mut self, stream: Stream) -> Result<Block> {
        loop {
            let block = self.choose_free(stream)?;
            if self.close_group_while_it_can_be_rescued(block)? {
                continue;
            }
            if self.blocks.role(block) == Role::Dirty {
                if self.close_groups_before(block)? {
                    continue;
                }
                if !self.erase(block)? {
                    self.blocks.take(block, Role::Bad);
                    self.covered = self.covered.saturating_sub(1);
                    self.count_bad(block);
                    self.nand.mark_bad(block)?;
                    continue;
                }
            }
            self.blocks.take(block, Role::Open);
            self.covered = self.covered.saturating_sub(1);
            return Ok(block);
        }
    }

    /// Closes the oldest open group if few blocks beside `taken` became free before it; returns
    /// whether it did, after which everything may have changed.
    ///
    /// The chip may refuse the page that closes a group. What the group holds is written to other
    /// blocks then, and only those may be erased for it that became free before the group began.
    fn close_group_while_it_can_be_rescued(&mut self, taken: Block) -> Result<bool> {
        let frontiers = self.streams().zip(&*self.frontiers);
        let open = frontiers.filter(|(_, frontier)| !frontier.members.is_empty());
        let oldest = open.map(|(stream, frontier)| (frontier.since, stream)).min_by_key(|it| it.0);
        let Some((since, stream)) = oldest.filter(|_| self.guard == u64::MAX) else {
            return Ok(false);
        };
        let older = self.blocks.free().take_while(|block| self.freed(*block) <= since);
        if older.filter(|block| *block != taken).take(RESCUES).count() == RESCUES {
            return Ok(false);
        }
        self.close_group(stream, Cause::Reclamation)?;
        Ok(true)
    }

    /// The free block that `stream` takes next: of those that the newest header names, the one
    /// that levelling wants; if it names none, the one that was freed first.
    fn choose_free(&self, stream: Stream) -> Result<Block> {
        let blocks_free = self.blocks.free_count();
        let (first, _) =
            self.blocks.next_free().ok_or(Error::Full { blocks_free, blocks_needed: 1 })?;
        let wear = |block: &Block| self.wear.erases(*block);
        let named = self.named_free();
        let chosen = match (self.levelling, self.placement.warmth(stream)) {
            (Levelling::None, _) | (_, Warmth::Mean) => None,
            (_, Warmth::Hot) => named.min_by_key(wear),
            (_, Warmth::Cold) => named.max_by_key(wear),
        };
        Ok(chosen.unwrap_or(first))
    }

    /// The free blocks that the newest header names, and that may be erased now.
    pub(super) fn named_free(&self) -> impl Iterator<Item = Block> {
        let named = self.blocks.free().take(self.covered as usize);
        named.filter(|block| self.freed(*block) <= self.guard)
    }

    /// Erases a block; returns false if the chip refused.
    fn erase(&mut self, block: Block) -> Result<bool> {
        match self.nand.erase(block, Cause::Reclamation) {
            Ok(()) => {
                self.statistics.blocks_erased += 1;
                self.wear.erased(block);
                self.statistics.erases = Some(self.wear.summary());
                Ok(true)
            }
            Err(Error::EraseRefused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The sequence at which the free `block` became free; 0 where that does not matter.
    fn freed(&self, block: Block) -> u64 {
        if self.shape.has_groups() { self.notes[block.0 as usize].sequence } else { 0 }
    }

    /// Closes a group that may hold the newer copy of a page of the free `block`; returns true if
    /// there was one, after which everything may have changed.
    fn close_groups_before(&mut self, block: Block) -> Result<bool> {
        let freed = self.freed(block);
        if freed > self.guard {
            return Err(Error::Full { blocks_free: 0, blocks_needed: 1 });
        }
        for stream in self.streams() {
            let frontier = &self.frontiers[stream.0 as usize];
            if !frontier.members.is_empty() && frontier.since < freed {
                self.close_group(stream, Cause::Reclamation)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Says that nothing more will be programmed in `block`.
    pub(super) fn close_block(&mut self, block: Block) {
        self.close_block_of(block, self.sequence);
    }

    /// The same, of a block in which nothing changed since `time`.
    pub(super) fn close_block_of(&mut self, block: Block, time: u64) {
        if self.pinned == Some(block) {
            self.blocks.set(block, Role::Pinned);
            return;
        }
        if self.notes[block.0 as usize].worn {
            self.blocks.wear_out(block);
            return;
        }
        self.blocks.set(block, Role::Closed);
        let live = self.map.live_pages(block);
        self.candidates.insert(&mut self.blocks.links, block, live, time);
    }

    /// Gives up the frontier of `stream`, on which a program failed with `error`: whatever that
    /// left, the block is never continued. Succeeds if the chip refused the program, so that it
    /// can be tried again elsewhere.
    fn abandon(&mut self, stream: Stream, error: Error) -> Result<()> {
        // No page has the sequence behind that of a page that may be torn.
        self.sequence += 1;
        let frontier = &mut self.frontiers[stream.0 as usize];
        let Some(block) = frontier.block.take() else {
            return Err(error);
        };
        let members = mem::take(&mut frontier.members);
        frontier.members.reserve_exact(members.capacity());
        let pending = (frontier.next - members.len() as u32, frontier.since);
        let refused = matches!(error, Error::ProgramRefused { .. });
        self.notes[block.0 as usize].worn = refused;
        self.close_block(block);
        if !members.is_empty() {
            let first = Page(self.shape.geometry.first_page(block).0 + pending.0);
            let before = self.guard;
            self.guard = before.min(pending.1);
            let rescued = self.rescue(stream, first, pending.1, &members);
            self.guard = before;
            if let Err(error) = rescued {
                // Pages that flush can never make durable any more.
                self.broken = Some(error);
                return rescued;
            }
        }
        if refused { Ok(()) } else { Err(error) }
    }

    /// Writes the pages of a group that cannot be closed, from `first` on, once more. Until they
    /// are closed, what they replace stays, as does what was replaced since `since`.
    fn rescue(
        &mut self,
        stream: Stream,
        first: Page,
        since: u64,
        members: &[Member],
    ) -> Result<()> {
        let mut data = vec![0; self.shape.geometry.page_bytes() as usize];
        for (page, member) in (first.0..).map(Page).zip(members) {
            if self.map.page_of(member.sector) == Some(page) {
                self.read_page(page, 0, (&mut data, &mut []), Cause::Reclamation)?;
                let write = Write { sector: member.sector, data: &data, check: None };
                let copy = self.append(stream, write, Cause::Reclamation)?;
                if let Some(died) = self.map.place(member.sector, copy) {
                    self.page_died(self.shape.geometry.block_of(died));
                }
                self.statistics.pages_moved += 1;
            }
        }
        for frontier in &mut self.frontiers {
            frontier.since = frontier.since.min(since);
        }
        Ok(())
    }
}
