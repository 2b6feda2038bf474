//! Opening a disk that is there.
//!
//! First a **survey** of the first page of each block finds the newest header and in which order
//! the blocks were begun. Blocks that the header names and that were not begun since are void.
//! Then the blocks are **loaded**, each once: its spare areas, or one page for each group. Their
//! pages are merged in the order of their sequences, and each is mapped in the place of the one
//! before. Blocks that were filled at the same time are held in memory together: as many as
//! there are frontiers.
//!
//! What a power cut may have torn: the last page of a block, which is checked in full here; a
//! block that was being erased, which is void.
//!
//! **Damage** costs what stands on the damaged page. A page whose spare area is damaged is told by
//! the echo behind it; a last page whose data is damaged counts if its successor in the order of
//! sequences is there, so that it can't have been torn; a block whose first page is damaged is told
//! by any other page. What is on a page of metadata that nothing else tells, and that was not torn
//! since something stands behind it, is counted in
//! [`Statistics::pages_damaged`](crate::Statistics::pages_damaged).

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use device::{Block, Cause, Error, Nand, Page, Result, SectorGeometry, Watched};

use super::blocks::{Blocks, Role};
use super::header::{self, Header};
use super::placement::Kind as DiskKind;
use super::shape::Shape;
use super::spare::{self, FORMATTING, Kind, Metadata};
use super::{Note, PageMap, Plan, closing};
use crate::Options;
use crate::reading::{can_read, intact, read_metadata, read_patiently, read_spare};
use crate::wear::Wear;

const CAUSE: Cause = Cause::Recovery;

impl<N: Nand> PageMap<N> {
    /// Opens the disk on `nand`. Its size is what it was made with; the options decide only how
    /// it works from now on. Nothing is written.
    ///
    /// # Errors
    /// [`Error::NotFormatted`] if the chip holds no disk of this layer and version, or the chip
    /// failed.
    pub fn open(nand: N, options: Options) -> Result<Self> {
        Self::open_kind(nand, DiskKind::PageMap, &options)
    }

    /// Opens the disk of `kind` on `nand`.
    pub(super) fn open_kind(nand: N, kind: DiskKind, options: &Options) -> Result<Self> {
        let geometry = nand.geometry();
        let page = vec![0; geometry.page_bytes() as usize];
        let mut scan = Scan { nand, kind, shape: Shape::new(geometry, 1)?, page };
        let survey = scan.survey()?;
        let shape = Shape::new(geometry, survey.header.frontiers)?;
        let plan = Plan { kind, shape, disk: survey.disk };
        let wear = Wear::of(geometry.blocks(), |block| survey.erases[block.0 as usize]);
        let blocks = Blocks::new(geometry.blocks());
        let mut disk = Self::assemble(Watched::new(scan.nand), plan, (blocks, wear), options);
        for (note, first) in disk.notes.iter_mut().zip(&survey.first) {
            note.sequence = first.unwrap_or(0);
        }
        let order = survey.order();
        let last = disk.merge(&order)?;
        disk.sort_blocks(&survey, &order)?;
        // A torn page may have had the next sequence, and no page has the one behind it. As the
        // last pages before it may be unreadable just now, as many more are left out as a block has
        // pages. A first page may be newer than all that was mapped, if nothing behind it counts.
        let begun = order.last().map_or(0, |(first, _)| *first);
        let left_out = u64::from(shape.geometry.pages_per_block()) + 2;
        disk.sequence = last.max(begun).max(survey.header.sequence) + left_out + 1;
        Ok(disk)
    }

    /// Maps the pages of all blocks, given in the order of their first pages, in the order of
    /// their sequences; returns the last one.
    fn merge(&mut self, order: &[(u64, Block)]) -> Result<u64> {
        let mut order = order.iter().copied().peekable();
        let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut open: Vec<Loaded> = Vec::new();
        let mut last = 0;
        let mut doubtful: Option<LoadedPage> = None;
        loop {
            let lowest = heap.peek().map(|Reverse((sequence, _))| *sequence);
            if let Some((_, block)) =
                order.next_if(|(first, _)| lowest.is_none_or(|lowest| *first <= lowest))
            {
                // A place whose block is used up is used again, with its memory.
                let place = open.iter().position(Loaded::is_used_up).unwrap_or(open.len());
                if place == open.len() {
                    open.push(Loaded::default());
                }
                self.load(block, &mut open[place])?;
                heap.extend(open[place].lowest().map(|sequence| Reverse((sequence, place))));
                continue;
            }
            let Some(Reverse((sequence, place))) = heap.pop() else {
                return Ok(last);
            };
            if let Some(before) = doubtful.take()
                && before.sequence + 1 == sequence
            {
                self.place(before);
            }
            last = sequence;
            match open[place].next() {
                Some(page) if page.may_be_torn => doubtful = Some(page),
                Some(page) => self.place(page),
                None => {}
            }
            heap.extend(open[place].lowest().map(|sequence| Reverse((sequence, place))));
        }
    }

    fn place(&mut self, LoadedPage { sector, page, .. }: LoadedPage) {
        if u64::from(sector) < self.disk.sectors() {
            self.map.place(sector, page);
        }
    }

    /// Reads what the pages of `block` hold, in ascending order.
    fn load(&mut self, block: Block, loaded: &mut Loaded) -> Result<()> {
        loaded.at = 0;
        loaded.pages.clear();
        if self.shape.has_groups() {
            self.load_groups(block, loaded)
        } else {
            self.load_spares(block, loaded)
        }
    }

    fn load_spares(&mut self, block: Block, loaded: &mut Loaded) -> Result<()> {
        let first = self.shape.geometry.first_page(block).0;
        // The last page, and whether what it holds is not known.
        let (mut newest, mut is_dark) = (None, false);
        for page in (first..first + self.shape.geometry.pages_per_block()).map(Page) {
            let found = read_metadata(&mut self.nand, page)?;
            if found == spare::Found::Blank {
                break;
            }
            self.statistics.pages_damaged += u64::from(is_dark);
            is_dark = found == spare::Found::Damaged;
            newest = None;
            let last = loaded.pages.last().map_or(0, |last| last.sequence);
            if let spare::Found::Page(metadata) = found
                && metadata.sequence > last
            {
                let Metadata { sequence, kind, .. } = metadata;
                // A header says that the page before it was programmed in full.
                let sector = if kind == Kind::Data { metadata.sector } else { NO_SECTOR };
                newest = Some((page, metadata));
                loaded.pages.push(LoadedPage { sequence, sector, page, may_be_torn: false });
            }
        }
        if let Some((page, metadata)) = newest
            && metadata.kind == Kind::Data
            && let Some(last) = loaded.pages.last_mut()
        {
            last.may_be_torn = !intact(&mut self.nand, page, metadata, &mut self.buffers.own)?;
        }
        Ok(())
    }

    fn load_groups(&mut self, block: Block, loaded: &mut Loaded) -> Result<()> {
        let first = self.shape.geometry.first_page(block).0;
        let header = self.notes[block.0 as usize].sequence;
        let mut place = self.shape.geometry.pages_per_block() - 1;
        let (mut seal, mut behind) = (0, 0);
        while place > 1 {
            let page = Page(first + place);
            let own = &mut self.buffers.own;
            // Blank pages and data are told by a few bytes.
            let mark = can_read(&mut self.nand, page, &mut own[..4])? && own[..4] == closing::MAGIC;
            let whole = mark && can_read(&mut self.nand, page, own)?;
            let group = closing::decode(own, page, header).filter(|_| whole);
            let Some((base, members)) = group.filter(|(_, members)| members.len() < place as usize)
            else {
                // Directly before a group stands what closes another.
                self.statistics.pages_damaged += u64::from(place == behind);
                place -= 1;
                continue;
            };
            let start = place - members.len() as u32;
            let pages = (first + start..first + place).map(Page).zip(members);
            loaded.pages.extend(pages.map(|(page, member)| LoadedPage {
                sequence: base + u64::from(member.delta),
                sector: member.sector,
                page,
                may_be_torn: false,
            }));
            seal = seal.max(place);
            place = start - 1;
            behind = place;
        }
        loaded.pages.sort_unstable_by_key(|page| page.sequence);
        self.notes[block.0 as usize].seal = seal;
        Ok(())
    }

    /// Gives every good block its role: those that the header names are used first.
    fn sort_blocks(&mut self, survey: &Survey, order: &[(u64, Block)]) -> Result<()> {
        self.pinned = Some(survey.header_block);
        self.blocks.set(survey.header_block, Role::Pinned);
        for block in survey.listed.iter().copied() {
            if self.map.live_pages(block) == 0 {
                self.free_if_unused(block)?;
            }
        }
        self.covered = self.blocks.free_count();
        for (first, block) in order.iter().copied() {
            if self.map.live_pages(block) == 0 {
                self.free_if_unused(block)?;
            } else if self.blocks.role(block) == Role::Bad {
                self.close_block_of(block, first);
            }
        }
        for block in (0..self.shape.geometry.blocks()).map(Block) {
            self.free_if_unused(block)?;
        }
        for block in self.blocks.free() {
            self.notes[block.0 as usize] = Note::NONE;
        }
        Ok(())
    }

    /// Frees a good block that has no role yet.
    fn free_if_unused(&mut self, block: Block) -> Result<()> {
        if self.blocks.role(block) == Role::Bad && !self.nand.is_bad(block)? {
            self.blocks.release(block, Role::Dirty);
        }
        Ok(())
    }
}

/// The sector of a page that has none.
const NO_SECTOR: u32 = u32::MAX;

/// A page with a sector.
#[derive(Clone, Copy)]
struct LoadedPage {
    sequence: u64,
    sector: u32,
    page: Page,
    /// True if what it holds is not what was programmed, and it is the last one of its block.
    may_be_torn: bool,
}

/// What the pages of a block hold, those before `at` done.
#[derive(Default)]
struct Loaded {
    pages: Vec<LoadedPage>,
    at: usize,
}

impl Loaded {
    fn lowest(&self) -> Option<u64> {
        self.pages.get(self.at).map(|page| page.sequence)
    }

    fn is_used_up(&self) -> bool {
        self.at == self.pages.len()
    }

    fn next(&mut self) -> Option<LoadedPage> {
        let page = self.pages.get(self.at).copied()?;
        self.at += 1;
        Some(page)
    }
}

/// What the first pages of the blocks tell.
struct Survey {
    disk: SectorGeometry,
    header: Header,
    header_block: Block,
    /// The blocks that the header names.
    listed: Vec<Block>,
    /// For each block the sequence of its first page, if it holds anything.
    first: Vec<Option<u64>>,
    /// For each good block its erases.
    erases: Vec<Option<u32>>,
}

impl Survey {
    /// The blocks that hold anything, in the order of their first pages.
    fn order(&self) -> Vec<(u64, Block)> {
        let blocks = (0..).map(Block).zip(&self.first);
        let mut order: Vec<(u64, Block)> =
            blocks.filter_map(|(block, first)| Some(((*first)?, block))).collect();
        order.sort_unstable();
        order
    }
}

/// A chip about which nothing is known.
struct Scan<N> {
    nand: N,
    kind: DiskKind,
    shape: Shape,
    page: Vec<u8>,
}

impl<N: Nand> Scan<N> {
    fn survey(&mut self) -> Result<Survey> {
        let mut first = vec![None; self.shape.geometry.blocks() as usize];
        let mut newest: Option<(Header, Block)> = None;
        let mut other_version = None;
        for (block, first) in (0..).map(Block).zip(&mut first) {
            if self.nand.is_bad(block)? {
                continue;
            }
            match self.header(block)? {
                header::Found::Header(header) => {
                    *first = Some(header.sequence);
                    if newest.is_none_or(|(newest, _)| newest.sequence < header.sequence) {
                        newest = Some((header, block));
                    }
                }
                header::Found::OtherVersion(version) => other_version = Some(version),
                header::Found::Nothing if self.shape.has_groups() => {
                    *first = self.sealed_sequence(block)?;
                }
                header::Found::Nothing => *first = self.first_sequence(block)?,
            }
        }
        match newest {
            None => Err(self.not_formatted(other_version)),
            Some((Header { sequence: FORMATTING, .. }, _)) => {
                Err(Error::NotFormatted { expected: self.mark(), found: 0 })
            }
            Some((header, block)) => self.finish_survey((header, block), first),
        }
    }

    /// Reads the header again for its list, and strikes out what it calls void.
    fn finish_survey(
        &mut self,
        (header, header_block): (Header, Block),
        mut first: Vec<Option<u64>>,
    ) -> Result<Survey> {
        let geometry = self.shape.geometry;
        let disk = SectorGeometry::new(geometry.page_bytes(), u64::from(header.sectors))?;
        if header.sectors > geometry.pages() {
            let (have, need) = (u64::from(geometry.pages()), u64::from(header.sectors));
            return Err(Error::TooSmall { have, need });
        }
        let page = geometry.first_page(header_block);
        read_patiently(&mut self.nand, page, 0, (&mut self.page, &mut []), CAUSE)?;
        let listed: Vec<Block> =
            Header::list(&self.page).filter(|block| block.0 < geometry.blocks()).collect();
        let mut erases = self.erases()?;
        for block in listed.iter().copied() {
            let at = block.0 as usize;
            if self.begun_since(block, header.sequence, first[at])? {
                erases[at] = erases[at].map(|erases| erases.saturating_add(1));
            } else {
                first[at] = None;
            }
        }
        Ok(Survey { disk, header, header_block, listed, first, erases })
    }

    /// The erases of every good block by the header that was read.
    fn erases(&mut self) -> Result<Vec<Option<u32>>> {
        let blocks = (0..self.shape.geometry.blocks()).map(Block);
        blocks
            .map(|block| {
                let bad = self.nand.is_bad(block)?;
                Ok((!bad).then(|| Header::erases(&self.page, block)))
            })
            .collect()
    }

    /// Whether a block was erased and begun after the header with this sequence. What a torn
    /// erase left may look like it; so a page is checked in full, the first that is whole.
    fn begun_since(&mut self, block: Block, header: u64, first: Option<u64>) -> Result<bool> {
        if first.is_none_or(|first| first <= header) || self.nand.is_bad(block)? {
            return Ok(false);
        }
        if self.shape.has_groups() {
            return Ok(true);
        }
        let first = self.shape.geometry.first_page(block).0;
        for page in (first..first + self.shape.geometry.pages_per_block()).map(Page) {
            match read_spare(&mut self.nand, page)? {
                spare::Found::Blank => break,
                spare::Found::Page(metadata)
                    if metadata.sequence > header
                        && intact(&mut self.nand, page, metadata, &mut self.page)? =>
                {
                    return Ok(true);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// The header on the first page of `block`, if there is one.
    fn header(&mut self, block: Block) -> Result<header::Found> {
        let page = self.shape.geometry.first_page(block);
        if !self.shape.has_groups() {
            match read_metadata(&mut self.nand, page)? {
                spare::Found::Page(Metadata { kind: Kind::Header, .. }) => {}
                _ => return Ok(header::Found::Nothing),
            }
        }
        if !can_read(&mut self.nand, page, &mut self.page)? {
            // It is not blank.
            self.page.fill(0);
            return Ok(header::Found::Nothing);
        }
        Ok(Header::decode(&self.page, page, self.kind.mark()))
    }

    /// The lowest sequence in a block, which is that of its first page if anything tells it.
    fn first_sequence(&mut self, block: Block) -> Result<Option<u64>> {
        let first = self.shape.geometry.first_page(block).0;
        for page in (first..first + self.shape.geometry.pages_per_block()).map(Page) {
            match read_metadata(&mut self.nand, page)? {
                spare::Found::Blank => return Ok(None),
                spare::Found::Damaged => {}
                spare::Found::Page(metadata) => return Ok(Some(metadata.sequence)),
            }
        }
        Ok(None)
    }

    /// The sequence of the header of a block whose first page, which was read last, is none: as
    /// the newest of the pages says that close groups.
    fn sealed_sequence(&mut self, block: Block) -> Result<Option<u64>> {
        if self.page.iter().all(|byte| *byte == 0xFF) {
            return Ok(None);
        }
        let first = self.shape.geometry.first_page(block).0;
        let mut newest = None;
        for page in (first + 2..first + self.shape.geometry.pages_per_block()).map(Page) {
            let bytes = &mut self.page[..];
            if can_read(&mut self.nand, page, &mut bytes[..4])?
                && bytes[..4] == closing::MAGIC
                && can_read(&mut self.nand, page, bytes)?
            {
                newest = newest.max(closing::header(bytes, page));
            }
        }
        Ok(newest)
    }

    /// The mark of the disk as a number, for errors.
    const fn mark(&self) -> u32 {
        u32::from_le_bytes(self.kind.mark())
    }

    /// Says what stands at the beginning of a chip that holds no disk.
    fn not_formatted(&mut self, other_version: Option<u32>) -> Error {
        if let Some(found) = other_version {
            return Error::NotFormatted { expected: header::VERSION, found };
        }
        let mut mark = [0; 4];
        match self.nand.read(Page(0), 0, &mut mark, &mut [], CAUSE) {
            Ok(_) | Err(Error::Uncorrectable { .. }) => {
                Error::NotFormatted { expected: self.mark(), found: u32::from_le_bytes(mark) }
            }
            Err(error) => error,
        }
    }
}
