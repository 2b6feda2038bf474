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

use device::{Block, Nand, Result, Watched};

use super::fill::Role;
use super::load::{Entry, Loaded, Unfinished, full_blocks, log_queue};
use super::log::LogBlock;
use super::shape::{Kind, Shape};
use super::survey::{Begun, Scan, Seen};
use super::{Core, NONE};
use crate::blocks::{self, Blocks};

impl<N: Nand> Core<N> {
    /// Opens the disk on `nand`; see [`super::Hybrid::open`].
    pub(super) fn open(nand: N, kind: Kind) -> Result<Self> {
        let shape = Shape::new(nand.geometry(), kind, 1)?;
        let page = vec![0; shape.geometry.page_bytes() as usize];
        let mut scan = Scan { nand, shape, page, other_version: None };
        let mut survey = scan.survey()?;
        let (head, newest) = scan.newest_header(&survey)?;
        scan.shape = Shape::new(shape.geometry, kind, u32::from(head.flags))?;
        let disk = scan.shape.disk_of(head.number)?;
        let queue = log_queue(&survey, head, scan.shape.log_blocks() as usize);
        let mut found = Loaded {
            sequence: head.sequence,
            sectors: Vec::new(),
            fillings: Vec::new(),
            pages_damaged: 0,
        };
        for log in &queue {
            scan.load_log(*log, &mut found)?;
        }
        found.sequence = believe(&mut survey, &found, &scan.shape);
        let full = full_blocks(&survey, head.number as usize);
        if scan.shape.has_own_pages() {
            scan.check_named(&survey, &full, &mut found);
        } else {
            scan.find_fillings(&survey, &full, &mut found)?;
        }
        let Scan { nand, shape, .. } = scan;
        let blocks = Blocks::new(shape.geometry.blocks());
        let mut core = Self::assemble(Watched::new(nand), shape, disk, blocks);
        core.take_over(&survey, &full, queue, found);
        core.sort_blocks(&survey, newest);
        core.count_erases(0);
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
        self.statistics.pages_damaged = found.pages_damaged;
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
        // Some are left out: a torn page may have had one.
        self.sequence = found.sequence + u64::from(self.shape.geometry.pages_per_block());
    }

    /// Gives every good block its role. Merges that were interrupted are erased first: see
    /// [`believe`]. Those behind the newest block come next, so that a disk that is often opened
    /// uses all in turn.
    fn sort_blocks(&mut self, survey: &[Seen], newest: Block) {
        let data = self.data.iter().copied().filter(|block| *block != NONE);
        let filled = self.fillings.iter().map(|filling| filling.block.0);
        let log = self.log.queue.iter().map(|log| log.block.0);
        for block in data.chain(filled).chain(log).map(Block) {
            self.blocks.set(block, blocks::Role::Open);
        }
        let count = survey.len() as u32;
        let is_partial = |begun: &Begun| begun.role == Role::Merged && !begun.full;
        for partial in [true, false] {
            for block in (1..=count).map(|step| Block((newest.0 + step) % count)) {
                let wanted = match &survey[block.0 as usize] {
                    Seen::Bad => false,
                    Seen::Block(begun) => is_partial(begun) == partial,
                    Seen::Nothing | Seen::Dark | Seen::Log { .. } => !partial,
                };
                if wanted && self.blocks.role(block) == blocks::Role::Bad {
                    self.blocks.release(block, blocks::Role::Dirty);
                }
            }
        }
    }
}

/// Believes that a block was filled whose last page cannot be read; returns the highest sequence.
///
/// - A merge, if anything was begun after it. One that was interrupted is the newest there is: its
///   block is erased before anything else is programmed.
/// - A block that users filled, on a chip with a spare area, if sectors of its logical block came
///   after it, or another block was begun of which only one is filled at a time: it was finished
///   before that.
///
/// Without a spare area nothing tells what users filled from what a torn erase left of a block that
/// did not count.
fn believe(survey: &mut [Seen], found: &Loaded, shape: &Shape) -> u64 {
    let newest = survey.iter().fold(found.sequence, |newest, seen| match seen {
        Seen::Log { sequence, .. } => newest.max(*sequence),
        Seen::Block(begun) => newest.max(begun.sequence),
        Seen::Nothing | Seen::Dark | Seen::Bad => newest,
    });
    let pages = u64::from(shape.geometry.pages_per_block());
    for at in 0..survey.len() {
        let Seen::Block(begun) = survey[at] else { continue };
        if begun.full || !begun.dark_end {
            continue;
        }
        let others_came = newest >= begun.sequence + pages;
        let follows = |seen: &Seen| {
            matches!(seen, Seen::Block(other) if other.role == Role::InOrder
                && other.sequence > begun.sequence
                && (other.logical == begun.logical || shape.fillings() == 1))
        };
        let is_in_log = |entry: &Entry| {
            entry.sequence > begun.sequence && shape.split(entry.sector).0 == begun.logical
        };
        let full = match begun.role {
            Role::Merged => others_came,
            Role::InOrder if shape.has_own_pages() => false,
            Role::InOrder => survey.iter().any(follows) || found.sectors.iter().any(is_in_log),
        };
        survey[at] = Seen::Block(Begun { full, ..begun });
    }
    newest + pages
}
