//! A page-mapped translation layer: any sector on any page.
//!
//! A sector is a page. Writes go to frontiers, blocks that are filled page by page: one for what
//! users write, one for what collection moves. A map in RAM tells where each sector is; when a
//! disk is opened it is rebuilt from metadata on the chip.
//!
//! | file | concern |
//! |---|---|
//! | `shape` | where metadata goes, how many sectors there are |
//! | `map` | sectors to pages, live pages |
//! | `blocks` | what each block is for |
//! | `frontier` | writing pages, closing groups, headers, chips that refuse |
//! | `victim` | which block to collect: the policy |
//! | `collect` | moving live pages away |
//! | `format`, `rebuild` | a new disk, and one that is there |
//! | `spare`, `closing`, `header` | bytes on flash |
//!
//! # Invariants
//! - **Sequence.** Every page programmed has a higher sequence than all before; of several pages
//!   with one sector the one with the highest counts.
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
//! 4 bytes a sector, a bit a page, 13 bytes a block (29 without a spare area), 8 bytes for each
//! page of one block, two pages, and without a spare area 24 bytes for each page of a group.
//! [`PageMap::table_bytes`](device::Sectors::table_bytes) adds it up. Nothing is allocated after
//! opening.

mod closing;
mod collect;
mod format;
mod frontier;
mod header;
mod map;
mod rebuild;
mod shape;
mod victim;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Error, Meter, Nand, Request, Result, Sector, SectorGeometry, Sectors};

use crate::{Layer, Statistics, blocks, spare};
use blocks::{Blocks, Role};
use closing::Member;
use frontier::{Frontier, Stream, Write};
use map::Map;
use shape::{STREAMS, Shape};
use spare::DataCheck;
use victim::Greedy;

/// A disk out of a raw NAND chip, by page mapping with greedy collection.
pub struct PageMap<N> {
    nand: N,
    shape: Shape,
    disk: SectorGeometry,
    map: Map,
    blocks: Blocks,
    victims: Greedy,
    frontiers: [Frontier; STREAMS as usize],
    /// The block that the newest header stands in; `None` only while a disk is made.
    pinned: Option<Block>,
    /// How many free blocks, from the first on, the newest header names.
    covered: u32,
    /// Blocks freed after this sequence must not be erased yet.
    guard: u64,
    /// The sequence of the next page.
    sequence: u64,
    /// For each block, where there are groups: what else is to be known of it.
    notes: Box<[Note]>,
    buffers: Buffers,
    statistics: Statistics,
    /// Why the disk can only be read until it is opened again.
    broken: Option<Error>,
}

/// What is to be known of a block where there are groups.
#[derive(Clone, Copy, Default)]
struct Note {
    /// In a free block the sequence at which it became free, in others that of its header.
    sequence: u64,
    /// The place of the last page that closes a group; 0 if there is none.
    seal: u32,
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

impl<N: Nand> PageMap<N> {
    /// The parts of a disk whose map is empty.
    fn assemble(nand: N, shape: Shape, disk: SectorGeometry, blocks: Blocks) -> Self {
        let geometry = shape.geometry;
        let page = || vec![0xFF; geometry.page_bytes() as usize].into_boxed_slice();
        let notes = if shape.has_groups() { geometry.blocks() as usize } else { 0 };
        let members = Vec::with_capacity(shape.group() as usize);
        PageMap {
            nand,
            shape,
            disk,
            map: Map::new(geometry, disk.sectors() as u32),
            blocks,
            victims: Greedy::new(geometry.pages_per_block()),
            frontiers: [Frontier::new(shape.group()), Frontier::new(shape.group())],
            pinned: None,
            covered: 0,
            guard: u64::MAX,
            sequence: 1,
            notes: vec![Note::default(); notes].into_boxed_slice(),
            buffers: Buffers { moved: page(), own: page(), members },
            statistics: Statistics::default(),
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
        self.nand
    }

    /// The chip.
    #[must_use]
    pub const fn nand(&self) -> &N {
        &self.nand
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
                    self.nand.read(page, offset as u32, piece, &mut [], cause)?;
                }
                None => piece.fill(0),
            }
            (into, sector, offset) = (rest, sector + 1, 0);
        }
        Ok(())
    }

    fn write_one(&mut self, sector: u32, data: &[u8], cause: Cause) -> Result<()> {
        self.make_room()?;
        // Groups need no checksum of the data: see `closing`.
        let check = (!self.shape.has_groups()).then(|| DataCheck::of(data));
        let page = self.append(Stream::Host, Write { sector, data, check }, cause)?;
        if let Some(died) = self.map.place(sector, page) {
            self.page_died(self.shape.geometry.block_of(died));
        }
        self.statistics.sectors_written += 1;
        Ok(())
    }

    /// Keeps the lists right after a page of `block` died.
    fn page_died(&mut self, block: Block) {
        let live = self.map.live_pages(block);
        match self.blocks.role(block) {
            Role::Closed => self.victims.page_died(&mut self.blocks.links, block, live),
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
        requests.iter_mut().try_for_each(|request| self.read_one(request, cause))
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
        self.close_group(Stream::Host, cause)
    }

    fn table_bytes(&self) -> u64 {
        let buffers = &self.buffers;
        let own = size_of_val(&*buffers.moved) + size_of_val(&*buffers.own);
        let members = buffers.members.capacity() * size_of::<Member>();
        let groups: u64 = self.frontiers.iter().map(Frontier::memory).sum();
        let tables = self.map.memory() + self.blocks.memory() + self.victims.memory();
        tables + groups + (own + members + size_of_val(&*self.notes)) as u64
    }

    fn meter(&self) -> Option<&Meter> {
        self.nand.meter()
    }
}
