//! The page log: pages of raw flash, programmed one after the other.
//!
//! A tree reserves the addresses of the pages that it is going to write, programs them in that
//! order, and reads any bytes of them. Every page has a [tag](tag::Tag), by which opening finds its
//! way without a fixed place on the chip. The log never calls the tree: when blocks get rare, the
//! tree asks for a [victim](PageLog::victim), moves what lives in it, and releases it.
//!
//! # Recovery
//! - A **checkpoint** is a record in the log (`record.rs`): the tree's root record, and the names
//!   of the checkpoints that are kept. What was released is erased after the next checkpoint only,
//!   so what the last one reaches stays as it is; pages of the tree that are newer are ignored.
//! - The **journal** (`journal.rs`) is pages that are newer than the checkpoint.
//! - Journal and records go to blocks of their own, those of the tree to others (`stream.rs`). So
//!   after a power cut the journal fills few blocks, and those that the tree began since the
//!   checkpoint are free at once: a replay finds as much room as there was.
//!
//! # Wear
//! The next block is the free one that was erased least often; that is dynamic levelling. Victims
//! come in the order of their numbers whatever they hold, or a whole generation at a time: so data
//! that never change move as well, and no further static levelling is needed.
//!
//! # Invariants
//! - Pages are programmed in the order of their sequences, and sequences never come again: not even
//!   that of a page that the chip refused, for all of it may stand there.
//! - A block is erased before its first page is programmed, unless this log erased it.
//! - After opening, no block that was begun before is continued: its last program may be torn.

mod blocks;
mod checkpoint;
mod gaps;
mod journal;
#[cfg(feature = "canaries")]
mod mistakes;
mod opening;
mod own_pages;
mod pages;
mod record;
mod recovery;
mod stale;
mod stream;
mod survey;
mod tag;
mod whole_blocks;

use alloc::vec::Vec;
use core::ops::Range;

use device::{Block, Cause, Geometry, Meter, Nand, NandCosts, Page};

use crate::{Error, Result};
use blocks::Blocks;
use checkpoint::Checkpoints;
use journal::Journal;
pub use opening::{PageLogDescription, PageLogOptions};
use own_pages::OwnPages;
use stream::Stream;
use tag::APART_KIND;
pub use tag::{PageKind, TREE_KINDS, Tag};

/// Pages of raw flash in the order in which they were programmed.
pub struct PageLog<'d> {
    options: PageLogOptions,
    /// Pages of the journal and of records of checkpoints, and below them the chip's.
    own: OwnPages<'d>,
    /// Where pages of the tree go.
    tree: Stream,
    /// Where those go that the tree writes apart from the others.
    apart: Stream,
    is_apart: bool,
    journal: Journal,
    checkpoints: Checkpoints,
    /// Bytes of the longest root record that the tree may come to write.
    root_bytes: u64,
    /// Blocks that a record with such a root record takes: asked for with every update.
    record_blocks: u32,
    /// True if a rollback gives back what no named checkpoint keeps.
    gives_back: bool,
    /// True if what told that something came after the checkpoint that was opened may be erased.
    may_be_untold: bool,
    /// The root record of the checkpoint before.
    #[cfg(feature = "canaries")]
    root_before: Vec<u8>,
}

/// How worn the chip is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Erases of the least worn block.
    pub least: u32,
    /// Erases of the most worn block.
    pub most: u32,
    /// Erases of all blocks that are not bad.
    pub all: u64,
    /// Blocks that are not bad.
    pub good_blocks: u32,
    /// Blocks that are bad.
    pub bad_blocks: u32,
}

impl<'d> PageLog<'d> {
    /// The shape of the chip.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.own.pages.geometry
    }

    const fn blocks(&self) -> &Blocks {
        &self.own.pages.blocks
    }

    /// The chip's books, if it keeps any.
    #[must_use]
    pub fn meter(&self) -> Option<&Meter> {
        self.own.pages.nand.meter()
    }

    /// What the chip's operations cost, if that is known.
    #[must_use]
    pub fn costs(&self) -> Option<&NandCosts> {
        self.own.pages.nand.costs()
    }

    /// Where the content of a page begins: behind the tag, unless that stands in the spare area.
    #[must_use]
    pub fn content_start(&self) -> usize {
        self.own.pages.content_start()
    }

    /// Bytes of a page that are its content.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        self.own.pages.content_bytes()
    }

    /// Bytes of a page on `chip` that are its content.
    #[must_use]
    pub fn content_bytes_on(chip: Geometry) -> u32 {
        chip.page_bytes() - content_start(chip) as u32
    }

    /// Bytes of memory that the log takes beside its table: see [`PageLog::least_memory`].
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        self.own.memory_bytes() + self.journal.memory_bytes()
    }

    /// Bytes of the table of blocks.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        Self::table_bytes_on(self.geometry())
    }

    /// Bytes of the table of blocks of such a chip.
    #[must_use]
    pub fn table_bytes_on(chip: Geometry) -> u64 {
        Blocks::memory_bytes(chip.blocks())
    }

    /// Bytes of memory that a log on such a chip takes beside its table of four bytes a block.
    #[must_use]
    pub fn least_memory(chip: Geometry, options: &PageLogOptions) -> u64 {
        u64::from(chip.page_bytes()) + Journal::memory_bytes_most(chip, options)
    }

    /// Blocks that a log on such a chip keeps back for its own pages, at most, if root records have
    /// up to `root_bytes` bytes: see [`PageLog::own_reserve`].
    #[must_use]
    pub fn own_reserve_on(chip: Geometry, options: &PageLogOptions, root_bytes: u64) -> u32 {
        let journal = Journal::pages_for(chip, options).div_ceil(chip.pages_per_block());
        let replay = u32::from(options.has_journal());
        journal.saturating_add(2 * record_blocks(chip, root_bytes)).saturating_add(replay)
    }

    /// Blocks that the log's own pages are in on such a chip, at most: see [`PageLog::own_most`].
    #[must_use]
    pub fn own_most_on(chip: Geometry, options: &PageLogOptions, root_bytes: u64) -> u32 {
        let blocks = own_most(chip, Journal::pages_for(chip, options), root_bytes);
        blocks.max(Self::own_reserve_on(chip, options, root_bytes))
    }

    /// The addresses of the next `pages` pages, in their order, into `into`; returns the sequence
    /// of the first. They stay the next until one is programmed.
    ///
    /// # Errors
    /// No block is free, or the chip failed.
    pub fn reserve(&mut self, pages: u32, into: &mut Vec<Page>, cause: Cause) -> Result<u64> {
        let left = self.kept_back(self.own_reserve());
        let stream = if self.is_apart { &mut self.apart } else { &mut self.tree };
        self.own.pages.reserve(stream, (pages, left), into, cause)?;
        Ok(self.own.pages.sequence)
    }

    /// From now on pages go to blocks apart from the others, or no longer.
    pub fn write_apart(&mut self, is_apart: bool) {
        self.is_apart = is_apart;
    }

    /// True if `block` holds pages that were written apart.
    #[must_use]
    pub fn holds_apart(&self, block: Block) -> bool {
        self.blocks().is_apart(block)
    }

    /// How many such blocks there are that are neither released nor kept by a named checkpoint.
    #[must_use]
    pub fn apart_blocks(&self) -> u32 {
        self.blocks().apart()
    }

    /// As [`PageLog::write_apart`] with false; and the next that go apart begin another block.
    pub fn end_apart(&mut self) {
        self.is_apart = false;
        self.apart.end();
    }

    /// Programs `bytes`, a whole page whose content begins at [`PageLog::content_start`], at
    /// `page`, the next of those that were reserved.
    ///
    /// # Errors
    /// If the chip refused ([`is_refusal`](crate::Error::is_refusal)), the page's block is used no
    /// more, and pages have to be reserved again. Or the chip failed.
    pub fn program(
        &mut self,
        page: Page,
        bytes: &mut [u8],
        kind: PageKind,
        cause: Cause,
    ) -> Result<()> {
        let (stream, kind) = match self.is_apart {
            true => (&mut self.apart, PageKind::Tree(APART_KIND)),
            false => (&mut self.tree, kind),
        };
        self.own.pages.program(stream, page, bytes, (kind, cause))
    }

    /// Reads bytes of the content of `page` from byte `offset` on.
    ///
    /// # Errors
    /// The bytes don't exist, more of them flipped than can be corrected, or the chip failed.
    pub fn read(&mut self, page: Page, offset: u32, into: &mut [u8], cause: Cause) -> Result<()> {
        let offset = offset + self.content_start() as u32;
        #[cfg(feature = "canaries")]
        if self.own.pages.read_held(page, offset as usize, into) {
            return Ok(());
        }
        self.own.pages.nand.read(page, offset, into, &mut [], cause)?;
        Ok(())
    }

    /// The tag of `page`; `None` if it has none that is whole.
    ///
    /// # Errors
    /// There is no such page, or the chip failed.
    pub fn tag(&mut self, page: Page, cause: Cause) -> Result<Option<Tag>> {
        self.own.pages.tag(page, cause)
    }

    /// The next block whose live pages the tree is to move, in the order of their numbers; one that
    /// refused a program comes first.
    pub fn victim(&mut self) -> Option<Block> {
        let (tree, apart) = (&self.tree, &self.apart);
        self.own.pages.blocks.victim(|block| tree.holds(block) || apart.holds(block))
    }

    /// True if the tree may empty `block`: it holds pages of it, is kept by no named checkpoint,
    /// and is not being filled.
    #[must_use]
    pub fn may_be_victim(&self, block: Block) -> bool {
        let is_filled = self.tree.holds(block) || self.apart.holds(block);
        self.blocks().may_be_victim(block) && !is_filled
    }

    /// Nothing in `block` is needed by what the tree is now.
    pub fn release(&mut self, block: Block) {
        self.own.pages.blocks.set_released(block);
        #[cfg(feature = "canaries")]
        self.own.pages.misuse_released(block);
    }

    /// True if what was released may be erased without a checkpoint, as soon as a newer state of
    /// the tree stands.
    #[must_use]
    pub fn erases_at_once(&self) -> bool {
        !self.options.is_durable()
    }

    /// Erases what was released; nothing of it may be needed by the state that an opening would
    /// find. Returns how many blocks there were.
    ///
    /// # Errors
    /// The chip failed.
    pub fn erase_released(&mut self, cause: Cause) -> Result<u32> {
        self.own.pages.erase_released(cause)
    }

    /// Keeps the block of `page` from becoming a victim and from being erased, until
    /// [`PageLog::unpin_all`].
    pub fn pin(&mut self, page: Page) {
        self.own.pages.blocks.set_pinned(self.geometry().block_of(page));
    }

    /// From now on a rollback gives back every block of the tree that is not pinned: the state that
    /// is gone back to needs none of them, for the tree pins all that named checkpoints reach.
    pub fn give_back_at_rollback(&mut self) {
        self.gives_back = true;
    }

    /// No block is pinned any more but those of the records of named checkpoints.
    ///
    /// # Errors
    /// The chip failed.
    pub fn unpin_all(&mut self) -> Result<()> {
        self.own.pages.blocks.unpin_all();
        self.checkpoints.pin(&mut self.own)
    }

    /// The root record of the checkpoint called `name`; the page in memory is overwritten, so no
    /// journal may be open.
    ///
    /// # Errors
    /// There is no such checkpoint, its record is damaged, or the chip failed.
    pub fn kept_root(&mut self, name: &str) -> Result<Vec<u8>> {
        Ok(self.checkpoints.read(&mut self.own, name)?.root)
    }

    /// A new generation begins: every block that is used now is old, and no page that is still to
    /// be written will be in one.
    pub fn begin_generation(&mut self) {
        self.tree.end();
        self.own.pages.blocks.set_all_old();
    }

    /// True if `page` is in an old block.
    #[must_use]
    pub fn is_old(&self, page: Page) -> bool {
        self.blocks().is_old(self.geometry().block_of(page))
    }

    /// Releases every old block.
    pub fn release_old(&mut self) {
        for block in (0..self.blocks().count()).map(Block) {
            if self.blocks().is_old(block) {
                self.release(block);
            }
        }
    }

    /// Makes every used block old whose first page was programmed before the page of `sequence`,
    /// and no other: what [`PageLog::begin_generation`] did at that time.
    ///
    /// # Errors
    /// The chip failed.
    pub fn mark_old(&mut self, sequence: u64) -> Result<()> {
        for block in (0..self.blocks().count()).map(Block) {
            if !self.blocks().is_of_tree(block) {
                continue;
            }
            let is_old = self.own.pages.first_tag(block)?.is_none_or(|tag| tag.sequence < sequence);
            self.own.pages.blocks.set_old(block, is_old);
        }
        Ok(())
    }

    /// The pages of `block`, in the order in which they were programmed.
    #[must_use]
    pub fn pages_of(&self, block: Block) -> Range<u32> {
        let first = self.geometry().first_page(block).0;
        first..first + self.geometry().pages_per_block()
    }

    /// The sequence of the next page.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.own.pages.sequence
    }

    /// Blocks that hold nothing and are not kept back for the log's own pages.
    #[must_use]
    pub fn free_blocks(&self) -> u32 {
        self.blocks().free().saturating_sub(self.kept_back(self.own_reserve()))
    }

    /// Of so many blocks for the log's own pages, those that it does not use yet.
    fn kept_back(&self, own_reserve: u32) -> u32 {
        own_reserve.saturating_sub(self.blocks().own())
    }

    /// Blocks that hold nothing as soon as a newer state stands.
    #[must_use]
    pub fn released_blocks(&self) -> u32 {
        self.blocks().released()
    }

    /// Blocks that the next checkpoint erases: what named checkpoints keep is none of them.
    #[must_use]
    pub fn blocks_to_erase(&self) -> u32 {
        match self.blocks().pinned() {
            0 => self.blocks().released(),
            _ => self.blocks().released() - self.blocks().only_kept(),
        }
    }

    /// Blocks that named checkpoints keep.
    #[must_use]
    pub fn pinned_blocks(&self) -> u32 {
        self.blocks().pinned()
    }

    /// Bytes of the blocks that named checkpoints keep.
    pub(super) fn kept_bytes(&self) -> u64 {
        u64::from(self.pinned_blocks()) * self.geometry().block_bytes()
    }

    /// Blocks that hold nothing but what named checkpoints keep.
    #[must_use]
    pub fn blocks_only_kept(&self) -> u32 {
        self.blocks().only_kept()
    }

    /// The refusal of what finds no room; `is_kept` if there would be more, but for the named
    /// checkpoints: then it says what these keep.
    #[must_use]
    pub fn no_room(&self, is_kept: bool) -> Error {
        match is_kept {
            true => Error::Kept { kept: self.kept_bytes() },
            false => Error::Full { pages: u64::from(self.usable_pages()) },
        }
    }

    /// Blocks that are not bad.
    #[must_use]
    pub fn good_blocks(&self) -> u32 {
        self.blocks().good()
    }

    /// Pages of all blocks that are not bad.
    #[must_use]
    pub fn usable_pages(&self) -> u32 {
        self.own.pages.usable_pages()
    }

    /// Pages of the tree that can be programmed before a block has to be made free.
    #[must_use]
    pub fn free_pages(&self) -> u32 {
        self.free_blocks() * self.geometry().pages_per_block() + self.tree.room(self.geometry())
    }

    /// Blocks that are kept back for the log's own pages: a journal, and two records of
    /// checkpoints; and for a replay, which finds as many free blocks as there were at the
    /// checkpoint, but can't go on with the one that was being filled.
    #[must_use]
    pub fn own_reserve(&self) -> u32 {
        let is_replayed = self.options.has_journal() && !self.journal.has_rest;
        let journal = self.journal.pages_most().div_ceil(self.geometry().pages_per_block());
        journal + 2 * self.record_blocks + u32::from(is_replayed)
    }

    /// Pages that the next checkpoint keeps back for a replay, as long as they are not: behind an
    /// opening.
    #[must_use]
    pub fn pages_kept_next(&self) -> u32 {
        let is_replayed = self.options.has_journal() && self.journal.has_rest;
        if is_replayed { self.geometry().pages_per_block() } else { 0 }
    }

    /// Blocks that the log's own pages are in, at most, with those that are kept back and not used.
    #[must_use]
    pub fn own_most(&self) -> u32 {
        let most = own_most(self.geometry(), self.journal.pages_most(), self.root_bytes);
        most.max(self.own_reserve())
    }

    /// From now on root records may have up to `bytes` bytes: blocks are kept back for them.
    pub fn expect_root(&mut self, bytes: u64) {
        self.root_bytes = self.root_bytes.max(bytes);
        self.record_blocks = record_blocks(self.geometry(), self.root_bytes);
    }

    /// Pages that the record of one checkpoint takes.
    fn record_pages(&self) -> u32 {
        let pages = record::pages_most(self.geometry(), self.root_bytes);
        u32::try_from(pages).unwrap_or(u32::MAX / 4)
    }

    /// Blocks that the record of one checkpoint takes.
    pub(crate) fn record_blocks(&self) -> u32 {
        self.record_blocks
    }
}

fn record_blocks(chip: Geometry, root_bytes: u64) -> u32 {
    let blocks = record::pages_most(chip, root_bytes).div_ceil(chip.pages_per_block().into());
    u32::try_from(blocks).unwrap_or(u32::MAX / 4)
}

/// Blocks that the log's own pages are in, at most: a record begins anywhere in a block, and with a
/// page that tells that something came, the journal follows; the next record begins another block
/// in a replay, behind such a page.
fn own_most(chip: Geometry, journal_pages: u32, root_bytes: u64) -> u32 {
    let block = u64::from(chip.pages_per_block());
    let record = record::pages_most(chip, root_bytes);
    let blocks =
        1 + (record + u64::from(journal_pages)).div_ceil(block) + (record + 1).div_ceil(block);
    u32::try_from(blocks).unwrap_or(u32::MAX / 4)
}

/// Where the content of a page begins.
pub(crate) fn content_start(chip: Geometry) -> usize {
    if chip.spare_bytes() as usize >= tag::BYTES { 0 } else { tag::BYTES }
}

#[cfg(test)]
mod tests;
