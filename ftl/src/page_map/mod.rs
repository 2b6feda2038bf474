//! A page-mapped translation layer: any sector on any page.
//!
//! A sector is a page. Writes go to frontiers, blocks that are filled page by page: one for what
//! users write, one for what collection moves, one for what levelling moves; or, in DAC, one for
//! each region. A map in RAM tells where each sector is; when a
//! disk is opened it is rebuilt from metadata on the chip.
//!
//! | file | concern |
//! |---|---|
//! | `shape` | where metadata goes, how many sectors there are |
//! | `map` | sectors to pages, live pages |
//! | `blocks` | what each block is for |
//! | `frontier` | writing pages, closing groups, headers, chips that refuse |
//! | `placement` | which frontier a page goes to; DAC's regions |
//! | `victim` | which block to collect |
//! | `collect` | moving live pages away |
//! | `wear`, `level` | erases of each block (shared by all layers), and how they are spread |
//! | `scrub` | moving pages in which bits flip |
//! | `format`, `rebuild` | a new disk, and one that is there |
//! | `spare`, `closing`, `header` | bytes on flash |
//!
//! # Invariants
//! - **Sequence.** Every page programmed has a higher sequence than all before; of several pages
//!   with one sector the one with the highest counts. With a spare area each has the next one, but
//!   behind a program that failed or may have been torn one is left out: so a page whose successor
//!   there is was programmed in full.
//! - **Nothing durable is erased before its newer copy is.** With a spare area a page is durable
//!   when it is programmed. Without one it is when its group is closed; before a block is erased,
//!   the groups that may hold newer copies of its pages are closed.
//! - **A block is erased only just before it is used again, and only after a header said that it
//!   holds nothing** (see `header`). The one exception is a block that became free when none was
//!   left for a header, after several cuts in a row.
//! - **Only the last page of a block can be torn**, since a frontier is never continued after a
//!   failure or a restart. Opening trusts no last page that it has not checked in full.
//! - **No block is fixed.**
//!
//! A trim lasts until the disk is opened again; then the sector may have what it ever held.
//!
//! # Memory
//! 4 bytes a sector, a bit a page, 35 bytes a block (43 with cost-benefit), 8 bytes for each page
//! of one block, two pages, and without a spare area 8 bytes for each page of a group, once for
//! each frontier and once more.
//! [`PageMap::table_bytes`](device::Sectors::table_bytes) adds it up. Nothing is allocated after
//! opening, but a page and a group where the chip refuses a page that closes a group.

mod closing;
mod collect;
mod dac;
mod format;
mod frontier;
mod header;
mod level;
mod map;
mod placement;
mod rebuild;
mod scrub;
mod shape;
mod victim;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{
    Block, Cause, DiskCosts, Error, Meter, Nand, Request, Result, Sector, SectorGeometry, Sectors,
    Watched,
};

use crate::{Layer, Levelling, Options, Statistics, Victim, blocks, spare, wear};
use blocks::{Blocks, Role};
use closing::Member;
pub use dac::Dac;
pub(crate) use format::disk_on;
use frontier::{Frontier, Write};
use level::Hand;
use map::Map;
pub(crate) use placement::Kind;
use placement::{Held, Placement, Stream};
use scrub::Suspects;
use shape::Shape;
use spare::DataCheck;
use victim::Candidates;
use wear::Wear;

/// A disk out of a raw NAND chip, by page mapping.
pub struct PageMap<N> {
    nand: Watched<N>,
    kind: Kind,
    shape: Shape,
    disk: SectorGeometry,
    map: Map,
    blocks: Blocks,
    /// What else is to be known of each block.
    notes: Box<[Note]>,
    wear: Wear,
    levelling: Levelling,
    hand: Hand,
    candidates: Candidates,
    victim: Victim,
    placement: Placement,
    frontiers: Box<[Frontier]>,
    /// The block that the newest header stands in; `None` only while a disk is made.
    pinned: Option<Block>,
    /// How many free blocks, from the first on, the newest header names.
    covered: u32,
    /// Blocks freed after this sequence must not be erased yet.
    guard: u64,
    /// The sequence of the next page.
    sequence: u64,
    buffers: Buffers,
    /// Flipped bits from which on a page is moved; 0 for never.
    scrub_from: u16,
    suspects: Suspects,
    statistics: Statistics,
    /// Why the disk can only be read until it is opened again.
    broken: Option<Error>,
}

/// What is to be known of a block.
#[derive(Clone, Copy)]
struct Note {
    /// In a free block the sequence at which it became free, in others that of its first page.
    sequence: u64,
    /// Where there are groups, the place of the last page that closes one; 0 if there is none.
    seal: u32,
    /// The frontier that it was filled for.
    region: Stream,
    /// True if it refused a program: it is to be emptied and marked bad.
    worn: bool,
}

impl Note {
    const NONE: Note = Note { sequence: 0, seal: 0, region: Stream(0), worn: false };
}

/// Scratch space.
struct Buffers {
    /// A page that is moved.
    moved: Box<[u8]>,
    /// A page of the layer's own.
    own: Box<[u8]>,
    /// A group that is collected.
    members: Vec<Member>,
}

/// What a disk is.
struct Plan {
    kind: Kind,
    shape: Shape,
    disk: SectorGeometry,
}

impl<N: Nand> PageMap<N> {
    /// The parts of a disk whose map is empty.
    fn assemble(
        nand: Watched<N>,
        Plan { kind, shape, disk }: Plan,
        (blocks, wear): (Blocks, Wear),
        options: &Options,
    ) -> Self {
        let geometry = shape.geometry;
        let page = || vec![0xFF; geometry.page_bytes() as usize].into_boxed_slice();
        let members = Vec::with_capacity(shape.group() as usize);
        let victim = options.victim().unwrap_or(kind.victim());
        let erases = Some(wear.summary());
        PageMap {
            nand,
            kind,
            shape,
            disk,
            map: Map::new(geometry, disk.sectors() as u32),
            blocks,
            notes: vec![Note::NONE; geometry.blocks() as usize].into_boxed_slice(),
            wear,
            levelling: options.levelling(),
            hand: Hand::default(),
            candidates: Candidates::new(victim, geometry.blocks(), geometry.pages_per_block()),
            victim,
            placement: kind.placement(options, shape.frontiers, disk.sectors()),
            frontiers: (0..shape.frontiers).map(|_| Frontier::new(&shape)).collect(),
            pinned: None,
            covered: 0,
            guard: u64::MAX,
            sequence: 1,
            buffers: Buffers { moved: page(), own: page(), members },
            scrub_from: options.scrub(),
            suspects: Suspects::default(),
            statistics: Statistics { erases, ..Statistics::default() },
            broken: None,
        }
    }

    /// What the disk did since it was made or opened.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The chip, whose content is the disk; what was not flushed may be lost.
    #[must_use]
    pub fn into_nand(self) -> N {
        self.nand.into_chip()
    }

    /// The chip.
    #[must_use]
    pub const fn nand(&self) -> &N {
        self.nand.chip()
    }

    /// Reads the part of `request` that lies on one sector after the other.
    fn read_one(&mut self, request: &mut Request<'_>, cause: Cause) -> Result<()> {
        let sector_bytes = self.disk.sector_bytes() as usize;
        let skipped = request.offset as usize / sector_bytes;
        let mut sector = request.first.0 as u32 + skipped as u32;
        let mut offset = request.offset as usize % sector_bytes;
        let mut into = &mut *request.into;
        while !into.is_empty() {
            let (piece, rest) = into.split_at_mut(into.len().min(sector_bytes - offset));
            match self.map.page_of(sector) {
                Some(page) => {
                    let bits = self.read_page(page, offset as u32, (piece, &mut []), cause)?;
                    self.suspect(sector, bits);
                }
                None => piece.fill(0),
            }
            (into, sector, offset) = (rest, sector + 1, 0);
        }
        Ok(())
    }

    fn write_one(&mut self, sector: u32, data: &[u8], cause: Cause) -> Result<()> {
        let before = if self.placement.looks_back() { self.held(sector) } else { None };
        let stream = self.placement.of_write(before);
        self.make_room(stream)?;
        // Groups need no checksum of the data: see `closing`.
        let check = (!self.shape.has_groups()).then(|| DataCheck::of(data));
        let page = self.append(stream, Write { sector, data, check }, cause)?;
        self.frontiers[stream.0 as usize].unflushed = true;
        if let Some(died) = self.map.place(sector, page) {
            self.page_died(self.shape.geometry.block_of(died));
        }
        self.statistics.sectors_written += 1;
        Ok(())
    }

    /// What is known of the block that holds `sector`.
    fn held(&self, sector: u32) -> Option<Held> {
        let block = self.shape.geometry.block_of(self.map.page_of(sector)?);
        let Note { sequence, region, .. } = self.notes[block.0 as usize];
        Some(Held { region, age: self.sequence - sequence })
    }

    /// Keeps the lists right after a page of `block` died.
    fn page_died(&mut self, block: Block) {
        let live = self.map.live_pages(block);
        match self.blocks.role(block) {
            Role::Closed => {
                self.candidates.page_died(&mut self.blocks.links, block, live, self.sequence);
            }
            Role::Held if live == 0 => self.release(block),
            _ => {}
        }
    }

    const fn check_working(&self) -> Result<()> {
        match self.broken {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl<N: Nand> Layer for PageMap<N> {
    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl<N: Nand> Sectors for PageMap<N> {
    fn geometry(&self) -> SectorGeometry {
        self.disk
    }

    fn read(&mut self, requests: &mut [Request<'_>], cause: Cause) -> Result<()> {
        for request in requests.iter() {
            self.disk.check_bytes(request.first, request.offset, request.into.len())?;
        }
        requests.iter_mut().try_for_each(|request| self.read_one(request, cause))?;
        self.scrub()
    }

    fn write(&mut self, first: Sector, from: &[u8], cause: Cause) -> Result<()> {
        self.disk.check_run(first, from.len())?;
        self.check_working()?;
        for (sector, data) in (first.0 as u32..).zip(from.chunks(self.disk.sector_bytes() as usize))
        {
            self.write_one(sector, data, cause)?;
        }
        Ok(())
    }

    fn trim(&mut self, first: Sector, count: u64, _cause: Cause) -> Result<()> {
        let sectors = self.disk.sectors();
        if first.0.checked_add(count).is_none_or(|end| end > sectors) {
            return Err(Error::NoSuchSector { sector: Sector(first.0.max(sectors)), sectors });
        }
        for sector in first.0 as u32..(first.0 + count) as u32 {
            if let Some(died) = self.map.remove(sector) {
                self.page_died(self.shape.geometry.block_of(died));
            }
        }
        Ok(())
    }

    fn flush(&mut self, cause: Cause) -> Result<()> {
        self.check_working()?;
        for stream in self.streams() {
            if self.frontiers[stream.0 as usize].unflushed {
                self.close_group(stream, cause)?;
                self.frontiers[stream.0 as usize].unflushed = false;
            }
        }
        Ok(())
    }

    fn table_bytes(&self) -> u64 {
        let buffers = &self.buffers;
        let own = size_of_val(&*buffers.moved) + size_of_val(&*buffers.own);
        let members = buffers.members.capacity() * size_of::<Member>();
        let groups: u64 = self.frontiers.iter().map(Frontier::memory).sum();
        let blocks = self.blocks.memory() + self.candidates.memory() + self.wear.memory();
        let tables = self.map.memory() + blocks;
        tables + groups + (own + members + size_of_val(&*self.notes)) as u64
    }

    fn meter(&self) -> Option<&Meter> {
        self.nand.meter()
    }

    /// Those of the chip: what collection adds depends on what is written.
    fn costs(&self) -> Option<DiskCosts> {
        self.nand.costs().map(DiskCosts::from)
    }
}
