//! How long the page file is on a disk that grows: as its pages, its undo log and its journal need.
//!
//! Every checkpoint chooses the layout anew, with some room for what comes. Where that is not
//! enough, the file grows between two checkpoints: images and journal are copied to where they
//! stand in the new layout, and a superblock of the same checkpoint says so. Where most pages are
//! free, it gets shorter (`shortening.rs`). Closing leaves the pages, and what names keep. There is
//! room on the disk before anything is promised; so a full disk refuses an update, and nothing that
//! was taken.
//!
//! Invariant: nothing that the superblock on the disk needs is overwritten before the next one
//! stands. What is copied therefore goes behind all that there is.

use device::{Cause, Sectors};

use super::PageFile;
use super::journal::SECTORS_LEAST;
use super::layout::Layout;
use super::superblock::Superblock;
use crate::Result;

/// By how many units a file grows at least, and the part of its pages by which it does.
const STEP_UNITS: u32 = 40;
const STEP_PART: u32 = 16;

/// By how many times the room of its journal, which every step writes anew, a file grows that has
/// as many pages.
const STEP_JOURNALS: u32 = 4;

/// The fewest sectors of a journal in a file that grows, and its part of the pages' bytes.
const JOURNAL_SECTORS: u64 = 48;
const JOURNAL_PART: u64 = 2;

/// The part of the most sectors of the journal that pages leave it.
const JOURNAL_LEAST_PART: u32 = 4;

impl PageFile<'_> {
    /// True if so many pages are free, and what names need of them has room; a file that grows
    /// grows for them.
    ///
    /// # Errors
    /// The disk has no room, or failed.
    pub fn has_pages(&mut self, pages: u64) -> Result<bool> {
        while !self.has_pages_now(pages) {
            if !self.extend()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the file longer, with a journal that suits it; false if it can't be.
    ///
    /// # Errors
    /// The disk has no room (nothing changed), or failed.
    pub(super) fn extend(&mut self) -> Result<bool> {
        if self.disk.sectors_held().is_none() {
            return Ok(false);
        }
        match self.extend_by(self.step_beside(self.layout.pages)) {
            // There may be room for less.
            Err(_) if self.disk.failure().is_none() => self.extend_by(self.step_least()),
            extended => extended,
        }
    }

    /// Pages by which the file may become longer, beside an empty journal.
    #[must_use]
    pub fn pages_to_grow(&self) -> u32 {
        match self.disk.sectors_held() {
            Some(_) => self.layout.pages_most.saturating_sub(self.layout.pages),
            None => 0,
        }
    }

    /// Makes the file longer by `step` pages, or as many as are moved; false if it can't be.
    fn extend_by(&mut self, step: u32) -> Result<bool> {
        let moved = self.units_to_move();
        let unit = self.layout.pages_per_sector;
        let step = step.max(moved.saturating_mul(unit));
        let start = self.superblock.checkpoint.undo_start;
        // What was closed with names has its pages still, and may lack the journal alone.
        let lacks_journal = self.journal.is_some() && self.layout.journal_sectors == 0;
        let longer = match lacks_journal && self.is_wide(self.step_least(), start) {
            true => u64::from(self.layout.pages),
            false => u64::from(self.layout.pages) + u64::from(step),
        };
        // A journal in which something stands does not get shorter.
        let is_begun = self.journal.as_ref().is_some_and(|journal| journal.is_begun());
        let kept = if is_begun { self.layout.journal_sectors } else { 0 };
        let most = self.layout.beside(kept.max(self.layout.journal_least())).pages_most;
        let pages = self.pages_wanted(step, start).max(longer).min(u64::from(most));
        let pages = pages.max(u64::from(self.layout.pages));
        let journal = match self.journal {
            Some(_) => self.journal_wanted(self.high_water),
            None => 0,
        };
        let mut to = self.layout.with(pages, journal.max(kept));
        if to.units() - self.layout.units() < moved {
            // Images have nowhere to go; the journal alone may still grow.
            to = self.layout.with(u64::from(self.layout.pages), to.journal_sectors);
        }
        if to == self.layout {
            return Ok(false);
        }
        // With a shorter journal it may end sooner: not before the superblock says so.
        let end = to.end().0.max(self.layout.end().0);
        self.disk.resize(end, Cause::Checkpoint)?;
        self.move_to(to)?;
        Ok(true)
    }

    /// Goes on in the layout `to`, in the midst of an epoch.
    fn move_to(&mut self, to: Layout) -> Result<()> {
        if let Some(undo) = &mut self.undo
            && to.pages != self.layout.pages
        {
            undo.flush(&mut self.disk)?;
            undo.copy(&mut self.disk, (to, undo.base()), &mut self.sector)?;
            if let Some(journal) = &self.journal {
                let place = (to.journal(), to.journal_sectors);
                journal.copy(&mut self.disk, place, true, &mut self.sector)?;
            }
        }
        let mut next = self.superblock.clone();
        (next.pages, next.journal_sectors) = (to.pages, to.journal_sectors);
        // Without an undo log nothing lasts that was not closed, and what was closed is whole.
        if self.undo.is_some() {
            next.sequence += 1;
            next.write(&mut self.disk, &mut self.sector)?;
        }
        self.superblock = next;
        self.set_layout(to);
        Ok(())
    }

    /// Units that a move in the midst of an epoch copies: so many have to be beyond what there is.
    fn units_to_move(&self) -> u32 {
        let images = self.undo.as_ref().map_or(0, |undo| undo.units_taken());
        let is_begun = self.journal.as_ref().is_some_and(|journal| journal.is_begun());
        let journal = if is_begun || images > 0 { self.layout.journal_sectors } else { 0 };
        let bytes = u64::from(journal) * u64::from(self.layout.sector_bytes());
        images.saturating_add(self.layout.units_for(bytes))
    }

    /// The layout behind a checkpoint with so many pages, fewer than there were before it.
    pub(super) fn shorter_layout(&self, high_water: u32) -> Layout {
        let step = self.step_beside(high_water).max(self.pages_promised());
        let pages = self.pages_wanted_beside(high_water, step, 0).min(self.layout.pages.into());
        let journal = self.journal_wanted(high_water).min(self.layout.journal_sectors);
        self.layout.with(pages, journal)
    }

    /// The layout of the epoch after a checkpoint that is being made, and room on the disk for it;
    /// after the last one, of the pages alone. Images up to position `start` of the undo log are
    /// kept for named checkpoints.
    pub(super) fn choose_layout(&mut self, start: u32, is_last: bool) -> Layout {
        if self.disk.sectors_held().is_none() {
            return self.layout;
        }
        if is_last {
            let pages = if start > 0 { self.layout.pages } else { self.high_water };
            return self.layout.with(u64::from(pages), 0);
        }
        let step = self.step_beside(self.high_water);
        let enough = self.is_wide(step / 4, start);
        let mut pages = u64::from(self.layout.pages);
        let journal = self.journal_wanted(self.high_water).max(self.layout.journal_sectors);
        let moved = if start > 0 { self.units_to_move() } else { 0 };
        if !enough {
            let unit = self.layout.pages_per_sector;
            let longer = pages + u64::from(moved.saturating_mul(unit));
            pages = self.pages_wanted(step, start).max(longer);
        }
        let to = self.layout.with(pages, journal);
        let is_clear = to.pages == self.layout.pages || to.units() - self.layout.units() >= moved;
        // What there is no room for is missed by an update, and refused there.
        let has_room = is_clear && self.disk.resize(to.end().0, Cause::Checkpoint).is_ok();
        if has_room { to } else { self.layout }
    }

    /// Gives back what closing does, where nothing was changed since the last checkpoint. Another
    /// checkpoint would take room that names leave to forget them.
    pub(super) fn shut(&mut self) -> Result<()> {
        let to = self.choose_layout(self.superblock.checkpoint.undo_start, true);
        let mut next = self.superblock.clone();
        next.sequence += 1;
        (next.pages, next.journal_sectors) = (to.pages, to.journal_sectors);
        next.write(&mut self.disk, &mut self.sector)?;
        self.superblock = next;
        self.take_layout(to)
    }

    /// Copies the images that named checkpoints need to where they stand in the layout `to`, with
    /// the base of the superblock that comes `next`.
    pub(super) fn move_images(&mut self, to: Layout, next: &Superblock) -> Result<()> {
        let (is_kept, base) = (next.checkpoint.undo_start > 0, next.undo_base);
        match &self.undo {
            Some(undo) if is_kept && (to.pages != self.layout.pages || base != undo.base()) => {
                undo.copy(&mut self.disk, (to, base), &mut self.sector)
            }
            _ => Ok(()),
        }
    }

    /// Goes on in the layout that the superblock tells, after a checkpoint.
    pub(super) fn take_layout(&mut self, to: Layout) -> Result<()> {
        let has_moved = to.journal() != self.layout.journal();
        self.set_layout(to);
        if let Some(journal) = self.journal.as_ref().filter(|_| has_moved) {
            let place = (to.journal(), to.journal_sectors);
            journal.copy(&mut self.disk, place, false, &mut self.sector)?;
        }
        // What the file had behind that is given back.
        match self.disk.sectors_held() {
            Some(held) if held > to.end().0 => {
                Ok(self.disk.resize(to.end().0, Cause::Checkpoint)?)
            }
            _ => Ok(()),
        }
    }

    /// From now on pages lie as `layout` says.
    pub(super) fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
        if let Some(undo) = &mut self.undo {
            undo.set_layout(layout);
        }
        if let Some(journal) = &mut self.journal {
            journal.set_place(layout.journal(), layout.journal_sectors);
        }
    }

    /// True if nothing stands behind the pages, and what comes next has no room.
    pub(super) fn is_shut(&self) -> bool {
        let used = self.layout.units_of(self.high_water);
        let start = self.superblock.checkpoint.undo_start;
        let is_short = match self.checkpoints.are_kept() {
            // Images stay where they are, and so do pages.
            true => self.journal.is_some() || !self.is_wide(self.step_least(), start),
            false => self.layout.units() <= used,
        };
        self.disk.sectors_held().is_none() || (is_short && self.layout.journal_sectors == 0)
    }

    /// True if there is room for `more` pages that are free, as for [`PageFile::pages_wanted`].
    fn is_wide(&self, more: u32, start: u32) -> bool {
        self.pages_wanted(more, start) <= u64::from(self.layout.pages)
    }

    /// Pages that there has to be room for, with `more` that are free and all that the undo log may
    /// come to need behind position `start`.
    fn pages_wanted(&self, more: u32, start: u32) -> u64 {
        self.pages_wanted_beside(self.high_water, more, start)
    }

    /// The same where there are `pages` pages.
    fn pages_wanted_beside(&self, pages: u32, more: u32, start: u32) -> u64 {
        let own = self.checkpoint_pages(self.checkpoints.count());
        let free = more.saturating_sub(self.free.pages);
        let pages = pages.saturating_add(own).saturating_add(free);
        match &self.undo {
            Some(undo) => undo.pages_wanted(pages, start),
            None => u64::from(pages),
        }
    }

    /// By how many pages the file grows where there are `pages`.
    fn step_beside(&self, pages: u32) -> u32 {
        let sectors = u64::from(self.layout.journal_sectors.saturating_mul(STEP_JOURNALS));
        let journals = self.layout.units_for(sectors * u64::from(self.layout.sector_bytes()));
        let journals = journals.saturating_mul(self.layout.pages_per_sector);
        self.step_least().max(pages / STEP_PART).max(journals.min(pages))
    }

    /// By how many pages the file grows at least.
    pub(super) fn step_least(&self) -> u32 {
        STEP_UNITS * self.layout.pages_per_sector
    }

    /// Sectors of the journal that suits so many pages.
    fn journal_wanted(&self, pages: u32) -> u32 {
        let pages = u64::from(pages) * u64::from(self.layout.page_bytes);
        let sectors = (pages / JOURNAL_PART).div_ceil(u64::from(self.layout.sector_bytes()));
        u32::try_from(sectors.max(JOURNAL_SECTORS))
            .unwrap_or(u32::MAX)
            .min(self.layout.journal_most)
    }
}

impl Layout {
    /// The same on `disk`: where that grows, the journal makes room for pages.
    pub(super) fn on(self, disk: &dyn Sectors) -> Self {
        match disk.sectors_held() {
            None => self,
            Some(_) => self.beside(self.journal_least()),
        }
    }

    /// The fewest sectors of the journal in a file that is as long as it can be.
    fn journal_least(&self) -> u32 {
        (self.journal_most / JOURNAL_LEAST_PART).max(SECTORS_LEAST).min(self.journal_most)
    }
}
