//! What layers that map whole blocks have in common: block mapping and FAST.
//!
//! A **logical block** is a run of sectors as long as a block has places. Its content is in a
//! **data block**, each sector at its own place, so that the map has one entry a logical block. A
//! page cannot be programmed twice, so newer content goes elsewhere: to a block that is **filled
//! in order** and becomes the data block when it is full, or (FAST) to any page of a **log**, from
//! where it is merged back.
//!
//! | file | concern |
//! |---|---|
//! | `shape` | places of a block, what blocks are for |
//! | `own` | bytes on flash of pages that hold only metadata |
//! | `fill` | blocks that are filled in order, merges, lost pages |
//! | `log` | the log: headers, groups, flush, victims |
//! | `index` | where the sectors of the log are |
//! | `blocks` | free blocks, chips that refuse |
//! | `format` | a new disk |
//! | `survey`, `load`, `open` | a disk that is there: what each block is, what is new, the tables |
//! | `disk` | the trait [`Sectors`](device::Sectors) |
//!
//! # Merges
//! A **switch merge** costs nothing: users filled the block in order, it takes the place of the
//! data block. A **partial merge** copies the rest of a block that users began. A **full merge**
//! copies all places of a logical block (or those before the first that a user wrote) to a block
//! of its own. Each frees the old data block, which is erased when it is used again. A place that
//! was never written is filled with zeros.
//!
//! # Invariants
//! - **Sequence.** Whatever is begun has a higher sequence than all before; a block takes one for
//!   each of its pages. Of a logical block the full block with the highest sequence counts; what
//!   the log or a block that is being filled holds counts if its sequence is higher than that.
//! - **Nothing is freed before its newer copy is durable.** With a spare area a page is durable
//!   when it is programmed. Without one it is when its block is full, or when a page of the log
//!   names it.
//! - **A logical block has at most one block that is being filled.** A full merge goes to a block
//!   that counts only when it is full; the rest of the places wait in what they were in.
//! - **The log is a queue.** Its newest header tells the sequence of its oldest block. A block
//!   that leaves the log holds nothing that lives, and can be erased only after that header.
//! - **Only the last page of a block can be torn**, since no block is continued after a failure
//!   or a restart. Opening trusts no last page that it has not checked in full.
//! - **No block is fixed.** The first page of each tells its role.
//!
//! A torn erase may leave anything in a block: whatever it leaves is older than what counts.
//!
//! # Lost pages
//! A page that cannot be read any more when its block is merged leaves a mark in the new block,
//! and reading it fails until it is written again. The other places go on.
//!
//! What is lost without a word: if the last page of a block that users filled in order cannot be
//! read when the disk is opened, its sector (without a spare area the whole block) may be what it
//! was before, as after a power cut; nothing tells the two apart. The same holds for a header.
//!
//! A trim changes nothing: the sector keeps what it holds.

mod blocks;
mod disk;
mod fill;
mod format;
mod index;
mod load;
mod log;
mod open;
mod own;
mod shape;
mod survey;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Block, Cause, Error, Nand, Page, Result, SectorGeometry, Watched};

use crate::Statistics;
use crate::blocks::{Blocks, Role};
use crate::reading::read_patiently;
use crate::spare::{self, DataCheck, Metadata};
use crate::wear::Wear;
pub(crate) use disk::{Hybrid, Scheme};
pub(crate) use fill::Content;
use fill::Filling;
pub(crate) use format::disk_on;
use log::Log;
pub(crate) use shape::Kind;
use shape::{Place, Shape};

/// No block: geometry bounds blocks below it.
const NONE: u32 = u32::MAX;

/// The state of a disk, and what all schemes do with it.
///
/// Memory: 4 bytes a logical block; 13 bytes and a bit a block; 40 bytes for each block that may
/// be filled; 24 for each of the log; for each page of the log that may hold a sector 4 bytes and
/// 16 to 32 of the index; two pages; without a spare area 8 bytes for each page of a group.
pub struct Core<N> {
    nand: Watched<N>,
    pub(crate) shape: Shape,
    disk: SectorGeometry,
    blocks: Blocks,
    /// The data block of each logical block.
    data: Box<[u32]>,
    /// A bit a block: whether one of its pages was lost.
    flawed: Box<[u64]>,
    wear: Wear,
    fillings: Vec<Filling>,
    log: Log,
    /// The sequence of what is begun next.
    sequence: u64,
    buffers: Buffers,
    statistics: Statistics,
    /// Why the disk can only be read until it is opened again: a program failed of which nobody
    /// knows what it left.
    broken: Option<Error>,
}

/// Scratch space.
struct Buffers {
    /// A page that is copied.
    copy: Box<[u8]>,
    /// A page of metadata.
    own: Box<[u8]>,
}

impl<N: Nand> Core<N> {
    /// The parts of a disk that holds nothing.
    fn assemble(nand: Watched<N>, shape: Shape, disk: SectorGeometry, blocks: Blocks) -> Self {
        let page = || vec![0xFF; shape.geometry.page_bytes() as usize].into_boxed_slice();
        let logical = disk.sectors() / u64::from(shape.sectors_per_block());
        let words = shape.geometry.blocks().div_ceil(64) as usize;
        Core {
            nand,
            shape,
            disk,
            blocks,
            data: vec![NONE; logical as usize].into_boxed_slice(),
            flawed: vec![0; words].into_boxed_slice(),
            wear: Wear::new(shape.geometry.blocks()),
            fillings: Vec::with_capacity(shape.fillings() as usize),
            log: Log::new(&shape),
            sequence: 1,
            buffers: Buffers { copy: page(), own: page() },
            statistics: Statistics::default(),
            broken: None,
        }
    }

    /// Counts erases from now on; every good block had so many.
    fn count_erases(&mut self, before: u32) {
        let is_good = |block| self.blocks.role(block) != Role::Bad;
        let blocks = self.shape.geometry.blocks();
        self.wear = Wear::of(blocks, |block| is_good(block).then_some(before));
        self.statistics.erases = Some(self.wear.summary());
    }

    /// Where `sector` is, if it has content.
    #[inline]
    fn page_of(&self, sector: u32) -> Option<Page> {
        let (logical, offset) = self.shape.split(sector);
        let filling = self.fillings.iter().find(|filling| filling.logical == logical);
        match filling.filter(|filling| offset < filling.next) {
            Some(filling) => Some(self.shape.page_at(filling.block, offset)),
            None => self.page_before(sector),
        }
    }

    /// Where `sector` is, or was before a block was begun to be filled.
    fn page_before(&self, sector: u32) -> Option<Page> {
        self.log.page_of(sector).or_else(|| {
            let (logical, offset) = self.shape.split(sector);
            let block = self.data[logical as usize];
            (block != NONE).then(|| self.shape.page_at(Block(block), offset))
        })
    }

    /// Takes the next `count` sequences; returns the first.
    fn take_sequences(&mut self, count: u32) -> u64 {
        let first = self.sequence;
        self.sequence += u64::from(count);
        first
    }

    /// The checksum of a page's data, where there is a spare area for it.
    pub(crate) fn check_of(&self, data: &[u8]) -> Option<DataCheck> {
        (self.shape.place == Place::Spare).then(|| DataCheck::of(data))
    }

    fn read(
        &mut self,
        page: Page,
        offset: u32,
        (into, spare): (&mut [u8], &mut [u8]),
        cause: Cause,
    ) -> Result<u16> {
        let corrected = read_patiently(&mut self.nand, page, offset, (into, spare), cause)?;
        self.statistics.bits_corrected += u64::from(corrected);
        Ok(corrected)
    }

    fn program(
        &mut self,
        page: Page,
        data: &[u8],
        metadata: Option<Metadata>,
        cause: Cause,
    ) -> Result<()> {
        let own = metadata.map(|metadata| metadata.encode(page));
        // What stands in a block that is filled in order is told by its place.
        let is_log = |it: &Metadata| matches!(it.kind, spare::Kind::Log | spare::Kind::LogHeader);
        let in_log = metadata.as_ref().is_some_and(is_log);
        let area = own.as_ref().map(|own| self.log.trail.area(page, own));
        let programmed = area.as_ref().map_or(&[][..], |(area, length)| {
            if in_log { &area[..*length] } else { &area[..spare::BYTES] }
        });
        match self.nand.program(page, 0, data, programmed, cause) {
            Ok(()) => {
                self.statistics.pages_programmed += 1;
                if let Some(own) = own.filter(|_| in_log) {
                    self.log.trail.programmed(page, own);
                }
            }
            Err(error @ Error::ProgramRefused { .. }) => return Err(error),
            Err(error) => {
                self.broken = Some(error);
                return Err(error);
            }
        }
        Ok(())
    }

    const fn is_flawed(&self, block: Block) -> bool {
        self.flawed[block.0 as usize / 64] >> (block.0 % 64) & 1 == 1
    }

    const fn set_flawed(&mut self, block: Block, flawed: bool) {
        let word = &mut self.flawed[block.0 as usize / 64];
        *word = *word & !(1 << (block.0 % 64)) | (flawed as u64) << (block.0 % 64);
    }

    /// Bytes of memory that the tables take.
    fn memory(&self) -> u64 {
        let tables = size_of_val(&*self.data) + size_of_val(&*self.flawed);
        let buffers = size_of_val(&*self.buffers.copy) + size_of_val(&*self.buffers.own);
        let fillings = self.fillings.capacity() * size_of::<Filling>();
        (tables + buffers + fillings) as u64
            + self.blocks.memory()
            + self.wear.memory()
            + self.log.memory()
    }
}
