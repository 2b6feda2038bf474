//! Opening a disk that is there.
//!
//! A **survey** reads the first and the last page of each block: what it is, since when, and
//! whether it is full. The newest header of the log tells what the disk is and which blocks the
//! log consists of; these are read: their spare areas, or their states. So is what was being
//! filled: with a spare area that is looked for page by page, without one the newest page of
//! metadata in the log names it.
//!
//! What a power cut may have torn: the last page of a block, which is checked in full here; a
//! block that was being erased, in which nothing counts any more.

use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Error, Nand, Page, Result};

use super::fill::{Filling, Merge, Role};
use super::log::LogBlock;
use super::own::{self, Head};
use super::shape::{Kind, Shape};
use super::{Core, NONE};
use crate::blocks::{self, Blocks};
use crate::bytes::word;
use crate::reading::{intact, read_spare, readable};
use crate::spare::{self, Found, Metadata};

const CAUSE: Cause = Cause::Recovery;

impl<N: Nand> Core<N> {
    /// Opens the disk on `nand`; see [`super::Hybrid::open`].
    pub(super) fn open(nand: N, kind: Kind) -> Result<Self> {
        let shape = Shape::new(nand.geometry(), kind, 1)?;
        let page = vec![0; shape.geometry.page_bytes() as usize];
        let mut scan = Scan { nand, shape, page, other_version: None };
        let survey = scan.survey()?;
        let (head, newest) = scan.newest_header(&survey)?;
        scan.shape = Shape::new(shape.geometry, kind, u32::from(head.flags))?;
        let disk = scan.shape.disk_of(head.number)?;
        let queue = log_queue(&survey, head, scan.shape.log_blocks() as usize);
        let mut found = Loaded { sequence: head.sequence, sectors: Vec::new(), fillings: vec![] };
        for log in &queue {
            scan.load_log(*log, &mut found)?;
        }
        let full = full_blocks(&survey, head.number as usize);
        if scan.shape.has_own_pages() {
            scan.check_named(&survey, &full, &mut found);
        } else {
            scan.find_fillings(&survey, &full, &mut found)?;
        }
        let Scan { nand, shape, .. } = scan;
        let blocks = Blocks::new(shape.geometry.blocks());
        let mut core = Self::assemble(nand, shape, disk, blocks);
        core.take_over(&survey, &full, queue, found);
        core.sort_blocks(&survey, newest);
        Ok(core)
    }

    /// Fills the tables with what was found.
    fn take_over(
        &mut self,
        survey: &[Seen],
        full: &[Option<(u64, Block)>],
        queue: Vec<LogBlock>,
        found: Loaded,
    ) {
        for (data, full) in self.data.iter_mut().zip(full) {
            *data = full.map_or(NONE, |(_, block)| block.0);
        }
        for (block, seen) in (0..).map(Block).zip(survey) {
            self.set_flawed(block, matches!(seen, Seen::Block(begun) if begun.flawed));
        }
        self.log.queue.extend(queue);
        for Unfinished { filling, flawed } in found.fillings {
            self.set_flawed(filling.block, flawed);
            self.fillings.push(filling);
        }
        for entry in found.sectors {
            let (logical, offset) = self.shape.split(entry.sector);
            let Some(full) = full.get(logical as usize) else {
                continue;
            };
            let in_order = self.fillings.iter().any(|filling| {
                filling.logical == logical
                    && filling.sequence > entry.sequence
                    && offset < filling.next
            });
            if !in_order && full.is_none_or(|(sequence, _)| sequence < entry.sequence) {
                self.log.place(entry.row, entry.place, entry.sector, entry.page);
            }
        }
        let pages = u64::from(self.shape.geometry.pages_per_block());
        let begun = survey.iter().map(|seen| match seen {
            Seen::Log(head) => head.sequence,
            Seen::Block(begun) => begun.sequence + pages,
            Seen::Nothing | Seen::Bad => 0,
        });
        // Some are left out: a torn page may have had one.
        self.sequence = begun.fold(found.sequence, u64::max) + pages;
    }

    /// Gives every good block its role. Those behind the newest one are used first, so that a
    /// disk that is often opened uses all in turn.
    fn sort_blocks(&mut self, survey: &[Seen], newest: Block) {
        let data = self.data.iter().copied().filter(|block| *block != NONE);
        let filled = self.fillings.iter().map(|filling| filling.block.0);
        let log = self.log.queue.iter().map(|log| log.block.0);
        for block in data.chain(filled).chain(log).map(Block) {
            self.blocks.set(block, blocks::Role::Open);
        }
        let count = survey.len() as u32;
        for block in (1..=count).map(|step| Block((newest.0 + step) % count)) {
            let bad = matches!(survey[block.0 as usize], Seen::Bad);
            if !bad && self.blocks.role(block) == blocks::Role::Bad {
                self.blocks.release(block, blocks::Role::Dirty);
            }
        }
    }
}

/// What the first and the last page of a block say.
#[derive(Clone, Copy)]
enum Seen {
    /// Marked bad.
    Bad,
    /// Nothing that counts.
    Nothing,
    /// A block of the log.
    Log(Head),
    /// A block that is or was filled in order.
    Block(Begun),
}

#[derive(Clone, Copy)]
struct Begun {
    logical: u32,
    sequence: u64,
    role: Role,
    full: bool,
    flawed: bool,
}

/// A sector in the log.
struct Entry {
    sector: u32,
    sequence: u64,
    row: usize,
    place: u32,
    page: Page,
}

/// A block that was being filled.
struct Unfinished {
    filling: Filling,
    flawed: bool,
}

/// What the log and the blocks that were being filled hold.
struct Loaded {
    /// The highest sequence seen.
    sequence: u64,
    /// In ascending order of their sequences.
    sectors: Vec<Entry>,
    fillings: Vec<Unfinished>,
}

impl Loaded {
    fn add(&mut self, sequence: u64, begun: Begun, block: Block, next: u32) {
        if next == 0 {
            return;
        }
        let filling = Filling {
            logical: begun.logical,
            block,
            sequence: begun.sequence,
            next,
            durable: next,
            role: Role::InOrder,
            closed: true,
            worn: false,
            merge: Merge::Partial,
            used: begun.sequence,
        };
        self.sequence = self.sequence.max(sequence);
        self.fillings.push(Unfinished { filling, flawed: begun.flawed });
    }
}

/// The full block of each logical block that counts, with its sequence.
fn full_blocks(survey: &[Seen], logical: usize) -> Vec<Option<(u64, Block)>> {
    let mut full = vec![None; logical];
    for (block, seen) in (0..).map(Block).zip(survey) {
        if let Seen::Block(begun) = seen
            && begun.full
            && let Some(newest) = full.get_mut(begun.logical as usize)
        {
            *newest = (*newest).max(Some((begun.sequence, block)));
        }
    }
    full
}

/// The blocks of the log that count, the oldest first.
fn log_queue(survey: &[Seen], newest: Head, most: usize) -> Vec<LogBlock> {
    let mut queue: Vec<(u64, Block)> = (0..)
        .map(Block)
        .zip(survey)
        .filter_map(|(block, seen)| match seen {
            Seen::Log(head) if head.sequence >= newest.base => Some((head.sequence, block)),
            _ => None,
        })
        .collect();
    queue.sort_unstable();
    // A chip that keeps its contract has no more.
    let surplus = queue.len().saturating_sub(most);
    let queue = queue.into_iter().skip(surplus).enumerate();
    queue
        .map(|(row, (sequence, block))| LogBlock { block, sequence, row, worn: false })
        .collect()
}

/// A chip about which nothing is known.
struct Scan<N> {
    nand: N,
    shape: Shape,
    page: Vec<u8>,
    other_version: Option<u8>,
}

impl<N: Nand> Scan<N> {
    fn survey(&mut self) -> Result<Vec<Seen>> {
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

    fn newest_header(&mut self, survey: &[Seen]) -> Result<(Head, Block)> {
        let headers = (0..).map(Block).zip(survey).filter_map(|(block, seen)| match seen {
            Seen::Log(head) => Some((*head, block)),
            _ => None,
        });
        let expected = u32::from_le_bytes(self.shape.kind.mark);
        match headers.max_by_key(|(head, _)| head.sequence) {
            Some((head, _)) if head.sequence == own::FORMATTING => {
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
        match readable(self.nand.read(Page(0), 0, &mut self.page, &mut [], CAUSE)) {
            Ok(_) => Error::NotFormatted { expected, found: word(&self.page, 0) },
            Err(error) => error,
        }
    }

    /// Reads `page` in full, which may be a page of metadata.
    fn own_page(&mut self, page: Page) -> Result<Option<Head>> {
        if !readable(self.nand.read(page, 0, &mut self.page, &mut [], CAUSE))? {
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
            return Ok(Seen::Nothing);
        };
        let role = match head.kind {
            own::Kind::Log => return Ok(Seen::Log(head)),
            own::Kind::InOrder => Role::InOrder,
            own::Kind::Merged => Role::Merged,
            _ => return Ok(Seen::Nothing),
        };
        let last = self.own_page(self.shape.last_page(block))?.filter(|last| {
            last.kind == own::Kind::Complete
                && (last.sequence, last.number) == (head.sequence, head.number)
        });
        Ok(Seen::Block(Begun {
            logical: head.number,
            sequence: head.sequence,
            role,
            full: last.is_some(),
            flawed: last.is_some_and(|last| last.flags != 0),
        }))
    }

    fn see_spares(&mut self, block: Block) -> Result<Seen> {
        for offset in 0..self.shape.sectors_per_block() {
            let page = self.shape.page_at(block, offset);
            match read_spare(&mut self.nand, page)? {
                Found::Blank => return Ok(Seen::Nothing),
                Found::Damaged => {}
                Found::Page(Metadata { kind: spare::Kind::LogHeader, .. }) if offset == 0 => {
                    let head = self.own_page(page)?;
                    let log = head.filter(|head| head.kind == own::Kind::Log);
                    return Ok(log.map_or(Seen::Nothing, Seen::Log));
                }
                Found::Page(metadata) => {
                    let Some(begun) = self.begun(metadata, offset) else {
                        return Ok(Seen::Nothing);
                    };
                    return self.see_last(block, begun).map(Seen::Block);
                }
            }
        }
        Ok(Seen::Nothing)
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
        (place == offset).then_some(Begun { logical, sequence, role, full: false, flawed })
    }

    /// Finds out whether a block is full: whether its last page is what was programmed.
    fn see_last(&mut self, block: Block, begun: Begun) -> Result<Begun> {
        let offset = self.shape.sectors_per_block() - 1;
        let last = self.in_order_at(block, offset, begun)?;
        Ok(match last {
            Some((metadata, last)) if self.intact(block, offset, metadata)? => {
                Begun { full: true, flawed: last.flawed, ..begun }
            }
            _ => begun,
        })
    }

    /// The metadata at place `offset` of a block, if it belongs to what was `begun` there.
    fn in_order_at(
        &mut self,
        block: Block,
        offset: u32,
        begun: Begun,
    ) -> Result<Option<(Metadata, Begun)>> {
        let Found::Page(metadata) =
            read_spare(&mut self.nand, self.shape.page_at(block, offset))?
        else {
            return Ok(None);
        };
        let place = self.begun(metadata, offset).filter(|place| {
            (place.logical, place.sequence) == (begun.logical, begun.sequence)
        });
        Ok(place.map(|place| (metadata, place)))
    }

    fn intact(&mut self, block: Block, offset: u32, metadata: Metadata) -> Result<bool> {
        let page = self.shape.page_at(block, offset);
        intact(&mut self.nand, page, metadata, &mut self.page)
    }

    /// Looks for blocks that were being filled: of each logical block the newest, if it is newer
    /// than the full one.
    fn find_fillings(
        &mut self,
        survey: &[Seen],
        full: &[Option<(u64, Block)>],
        found: &mut Loaded,
    ) -> Result<()> {
        let mut begun: Vec<(u32, u64, Block)> = (0..)
            .map(Block)
            .zip(survey)
            .filter_map(|(block, seen)| match seen {
                Seen::Block(begun) if begun.counts_beside(full) => {
                    Some((begun.logical, begun.sequence, block))
                }
                _ => None,
            })
            .collect();
        begun.sort_unstable_by(|one, other| other.cmp(one));
        begun.dedup_by_key(|(logical, ..)| *logical);
        for (_, sequence, block) in begun {
            if let Seen::Block(begun) = survey[block.0 as usize] {
                let (next, flawed) = self.filled(block, begun)?;
                found.add(sequence, Begun { flawed, ..begun }, block, next);
            }
        }
        Ok(())
    }

    /// How many places of a block are filled, and whether one of them was lost.
    fn filled(&mut self, block: Block, begun: Begun) -> Result<(u32, bool)> {
        let mut last = None;
        let mut before = begun.flawed;
        let mut flawed = begun.flawed;
        for offset in 0..self.shape.sectors_per_block() {
            if let Some((metadata, place)) = self.in_order_at(block, offset, begun)? {
                last = Some((offset, metadata));
                (before, flawed) = (flawed, place.flawed);
            }
        }
        match last {
            Some((offset, metadata)) if self.intact(block, offset, metadata)? => {
                Ok((offset + 1, flawed))
            }
            Some((offset, _)) => Ok((offset, before)),
            None => Ok((0, false)),
        }
    }

    /// Keeps what the log says of blocks that were being filled if it still holds.
    fn check_named(&self, survey: &[Seen], full: &[Option<(u64, Block)>], found: &mut Loaded) {
        let named = core::mem::take(&mut found.fillings);
        for Unfinished { filling, flawed } in named {
            if let Some(Seen::Block(begun)) = survey.get(filling.block.0 as usize)
                && begun.sequence == filling.sequence
                && begun.counts_beside(full)
            {
                let next = filling.next.min(self.shape.sectors_per_block());
                found.add(begun.sequence, Begun { flawed, ..*begun }, filling.block, next);
            }
        }
    }

    fn load_log(&mut self, log: LogBlock, found: &mut Loaded) -> Result<()> {
        if self.shape.has_own_pages() {
            self.load_states(log, found)
        } else if self.shape.kind.sectors_in_log {
            self.load_spares(log, found)
        } else {
            Ok(())
        }
    }

    fn load_spares(&mut self, log: LogBlock, found: &mut Loaded) -> Result<()> {
        let first = self.shape.geometry.first_page(log.block).0;
        let mut suspect = None;
        for place in 1..self.shape.geometry.pages_per_block() {
            let page = Page(first + place);
            match read_spare(&mut self.nand, page)? {
                Found::Blank => break,
                Found::Damaged => suspect = None,
                Found::Page(metadata) if metadata.kind == spare::Kind::Log => {
                    let Metadata { sector, sequence, .. } = metadata;
                    suspect = Some((page, metadata));
                    found.sectors.push(Entry { sector, sequence, row: log.row, place, page });
                    found.sequence = found.sequence.max(sequence);
                }
                Found::Page(_) => {}
            }
        }
        if let Some((page, metadata)) = suspect
            && !intact(&mut self.nand, page, metadata, &mut self.page)?
        {
            found.sectors.pop();
        }
        Ok(())
    }

    /// Reads the states of a block of the log, from the last to the first. What the last one says
    /// of the blocks being filled replaces what older ones said.
    fn load_states(&mut self, log: LogBlock, found: &mut Loaded) -> Result<()> {
        let first = self.shape.geometry.first_page(log.block).0;
        let older = found.sectors.len();
        let mut place = self.shape.geometry.pages_per_block() - 1;
        let mut newest = true;
        loop {
            let page = Page(first + place);
            let mark = self.shape.kind.mark;
            let own = &mut self.page[..4];
            // Blank pages and data are told by a few bytes.
            let marked = readable(self.nand.read(page, 0, own, &mut [], CAUSE))? && *own == mark;
            let head = if marked { self.own_page(page)? } else { None };
            let head = head.filter(|head| head.sequence == log.sequence);
            if let Some(head) = head {
                if newest {
                    self.name_fillings(found);
                    newest = false;
                }
                place = self.load_group(head, (log.row, first, place), found);
            }
            if place == 0 {
                break;
            }
            place -= 1;
        }
        found.sectors[older..].sort_unstable_by_key(|entry| entry.sequence);
        Ok(())
    }

    /// Notes the blocks that the page just read says are being filled.
    fn name_fillings(&self, found: &mut Loaded) {
        found.fillings.clear();
        for state in own::states(&self.page) {
            let begun = Begun {
                logical: 0,
                sequence: state.sequence,
                role: Role::InOrder,
                full: false,
                flawed: state.flawed,
            };
            found.add(state.sequence, begun, state.block, state.filled);
        }
    }

    /// Notes the members of the state just read, which stands on `place`; returns the place of
    /// the first.
    fn load_group(
        &self,
        head: Head,
        (row, first, place): (usize, u32, u32),
        found: &mut Loaded,
    ) -> u32 {
        let members = own::members(&self.page);
        if head.kind != own::Kind::State || members.len() >= place as usize {
            return place;
        }
        let start = place - members.len() as u32;
        for (place, member) in (start..).zip(members) {
            let sequence = head.base + u64::from(member.delta);
            let (sector, page) = (member.sector, Page(first + place));
            found.sectors.push(Entry { sector, sequence, row, place, page });
            found.sequence = found.sequence.max(sequence);
        }
        start
    }
}

impl Begun {
    /// True if it is being filled and newer than the full block of its logical block.
    fn counts_beside(&self, full: &[Option<(u64, Block)>]) -> bool {
        let newest = full.get(self.logical as usize);
        !self.full
            && self.role == Role::InOrder
            && newest.is_some_and(|full| full.is_none_or(|(sequence, _)| sequence < self.sequence))
    }
}
