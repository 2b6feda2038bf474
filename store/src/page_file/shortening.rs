//! Getting shorter while in use: free pages at the end of a file that grows are given back.
//!
//! A file is **long** if less than half of its pages would do. Then the tree is told from where on
//! it should leave the pages, and each checkpoint sorts the free list, so that those before come
//! first. Once enough of the pages at the end are free, a checkpoint that nothing was let in before
//! leaves them out: they are on no list, and high water is lower. What is left has a quarter more
//! than is in use, so a file does not get longer and shorter in turn.
//!
//! Invariant: the list that the last checkpoint needs stays as it is. The sorted one goes to pages
//! that were free then, or have their image already; where that is not so, images have room.

use device::{Cause, Sectors as _};

use super::PageFile;
use super::free_list::{FreeList, circular, count, named_at, names_most, next};
use crate::{LogicalPage, Result};

/// By how many times the file is longer than would do when it is long.
const LONG: u32 = 2;

/// The part of the pages in use that are left free beside them, and the part of all pages that have
/// to be free at the end at least.
const SPARE_PART: u32 = 4;
const CUT_PART: u32 = 8;

/// Parts in which the pages at the end are counted.
const PARTS: usize = 64;

/// The most checkpoints between two looks that were in vain.
const PAUSE_MOST: u32 = 64;

/// How far it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shortening {
    /// The page from which on pages are to be free.
    tail: Option<LogicalPage>,
    /// Pages that are to be free beside those in use, and true if the next checkpoint may leave
    /// pages out.
    promised: u32,
    is_asked: bool,
    /// Checkpoints until the end is looked at again, and between two looks.
    wait: u32,
    pause: u32,
}

/// A list that is being made: its first page, its last one, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Sorted {
    head: Option<LogicalPage>,
    last: Option<LogicalPage>,
    pages: u32,
}

/// What is being sorted.
#[derive(Debug)]
struct Sorting {
    /// Pages before the tail, and the others.
    lists: [Sorted; 2],
    /// Pages that may be overwritten, to name those that must not be.
    spares: [Option<LogicalPage>; 2],
    tail: u32,
    /// Pages from this one on are on no list.
    cut: u32,
}

impl PageFile<'_> {
    /// The page from which on pages are to be free: whoever moves what they hold makes the file
    /// shorter.
    #[must_use]
    pub fn tail(&self) -> Option<LogicalPage> {
        self.shortening.tail
    }

    /// Pages that are to be free beside those in use.
    pub(super) fn pages_promised(&self) -> u32 {
        self.shortening.promised
    }

    /// True if less than half of the file would do, and it was not looked at in vain just now.
    pub(super) fn may_shorten(&self) -> bool {
        self.shortening.wait == 0 && self.is_long()
    }

    /// Asks that the next checkpoint, before which nothing is let in, makes the file shorter, with
    /// `promised` pages free beside those in use; false if no checkpoint is worth that.
    pub(super) fn ask_to_shorten(&mut self, promised: u64) -> bool {
        self.shortening.promised = u32::try_from(promised).unwrap_or(u32::MAX);
        self.shortening.is_asked = self.may_shorten();
        if !self.shortening.is_asked {
            self.shortening.promised = 0;
        }
        self.shortening.is_asked
    }

    /// Pages that would do: where the tail begins.
    fn pages_enough(&self) -> u32 {
        let (used, _) = self.pages_used();
        let spare = (used / SPARE_PART).max(self.step_least());
        used.saturating_add(spare).saturating_add(self.shortening.promised)
    }

    fn is_long(&self) -> bool {
        let grows = self.undo.is_some() && self.disk.sectors_held().is_some();
        grows && !self.checkpoints.are_kept() && self.pages_enough() <= self.high_water / LONG
    }

    /// True if there is room for the images that sorting makes beside those of any checkpoint:
    /// where pages share sectors, of those that name others.
    fn has_images_to_sort(&self) -> bool {
        let free = self.free.pages.saturating_add(self.freed.pages);
        let most = names_most(self.layout.page_bytes as usize) as u32;
        let own = self.checkpoint_changes();
        self.layout.pages_per_sector == 1
            || self.undo.as_ref().is_some_and(|undo| {
                free / most + 2 <= undo.images_left(own, (0, 0), self.high_water)
            })
    }

    /// Sorts the free lists into one before a checkpoint, which `may_cut`: then pages at the end
    /// that are free are left out. Returns how many pages there are from the checkpoint on.
    pub(super) fn shorten(&mut self, may_cut: bool) -> Result<u32> {
        let may_cut = may_cut && core::mem::take(&mut self.shortening.is_asked);
        self.shortening.wait = self.shortening.wait.saturating_sub(1);
        if !may_cut && self.shortening.tail.is_none() {
            return Ok(self.high_water);
        }
        if !self.is_long() {
            self.shortening = Shortening::default();
            return Ok(self.high_water);
        }
        let (tail, end) = (self.pages_enough(), self.high_water);
        let mut cut = end;
        if self.has_images_to_sort() {
            if may_cut {
                cut = self.free_from(tail)?;
            }
            self.sort_free(tail, cut)?;
            self.shortening.tail = (cut > tail).then_some(LogicalPage(tail));
        }
        if may_cut {
            let pause = if cut < end { 1 } else { 2 * self.shortening.pause };
            self.shortening.pause = pause.clamp(1, PAUSE_MOST);
            self.shortening.wait = self.shortening.pause;
        }
        Ok(cut)
    }

    /// The page from which on all are free, not before `tail`; high water if they are few.
    fn free_from(&mut self, tail: u32) -> Result<u32> {
        let end = self.high_water;
        let part = (end - tail).div_ceil(PARTS as u32).max(1);
        let mut free = [0u32; PARTS];
        self.each_free(Cause::Checkpoint, &mut |page| {
            let place = page.0.checked_sub(tail).map(|beyond| (beyond / part) as usize);
            if let Some(count) = place.and_then(|place| free.get_mut(place)) {
                *count += 1;
            }
        })?;
        let mut cut = end;
        for (number, count) in free.iter().enumerate().rev() {
            let first = tail.saturating_add(number as u32 * part);
            if first >= end {
                continue;
            }
            if *count != cut - first {
                break;
            }
            cut = first;
        }
        Ok(if end - cut >= end / CUT_PART { cut } else { end })
    }

    /// Makes one list of both, of pages before `tail` and then of those behind it; pages from `cut`
    /// on are on none.
    fn sort_free(&mut self, tail: u32, cut: u32) -> Result<()> {
        let mut sorting = Sorting { lists: Default::default(), spares: [None; 2], tail, cut };
        let mut left = self.high_water;
        for (list, were_free) in [(self.free, true), (self.freed, false)] {
            let mut source = list.head;
            while let Some(head) = source {
                let page = self.free_page(head)?;
                let names = count(page);
                source = next(page);
                left = left.checked_sub(1 + names as u32).ok_or(circular(head))?;
                for place in 0..names {
                    let named = named_at(self.free_page(head)?, place);
                    self.check_exists(named)?;
                    if were_free {
                        self.let_change(named);
                    }
                    self.sort_in(&mut sorting, named)?;
                }
                self.strike(head, Cause::Checkpoint)?;
                self.cache.forget(head);
                self.sort_in(&mut sorting, head)?;
            }
        }
        for spare in sorting.spares.into_iter().flatten() {
            self.put_in(&mut sorting, spare)?;
        }
        let [before, behind] = sorting.lists;
        if let Some(last) = before.last {
            self.link_free(last, behind.head)?;
        }
        let pages = before.pages + behind.pages;
        self.free = FreeList { head: before.head.or(behind.head), pages };
        (self.freed, self.freed_tail) = (FreeList::EMPTY, None);
        Ok(())
    }

    /// Keeps `page` for one that names others, or puts it into its list.
    fn sort_in(&mut self, sorting: &mut Sorting, page: LogicalPage) -> Result<()> {
        if page.0 >= sorting.cut {
            return Ok(());
        }
        let spare = sorting.spares.iter_mut().find(|spare| spare.is_none());
        match spare.filter(|_| !self.is_needed(page)) {
            Some(spare) => *spare = Some(page),
            None => self.put_in(sorting, page)?,
        }
        Ok(())
    }

    fn put_in(&mut self, sorting: &mut Sorting, page: LogicalPage) -> Result<()> {
        let Sorting { lists, spares, tail, .. } = sorting;
        let list = &mut lists[usize::from(page.0 >= *tail)];
        let is_named = match list.head {
            Some(head) => self.name_free(head, page)?,
            None => false,
        };
        if !is_named {
            let spare = spares.iter_mut().find(|spare| spare.is_some());
            let namer = spare.filter(|_| self.is_needed(page)).and_then(Option::take);
            let namer = namer.unwrap_or(page);
            self.begin_free(namer, list.head)?;
            list.head = Some(namer);
            list.last = list.last.or(Some(namer));
            if namer != page {
                list.pages += 1;
                self.name_free(namer, page)?;
            }
        }
        list.pages += 1;
        Ok(())
    }
}
