//! The free list: pages given back, named in pages that are themselves free.
//!
//! ```text
//!  0        4       6    7      8       12
//!  +--------+-------+----+------+-------+---------+---------+----
//!  | check- | count | 0  | kind | next  | page    | page    |
//!  | sum    | u16   |    | u8   | u32   | u32     | u32     |
//!  +--------+-------+----+------+-------+---------+---------+----
//! ```
//!
//! The list costs no device access as long as its first page stays in the cache, and one read or
//! write for hundreds of pages otherwise. An empty first page is given out itself.

use device::Cause;

use super::{PageCheck, PageFile};
use crate::canary::Canary;
use crate::{Error, LogicalPage, Result, page_kind};

const COUNT: usize = 4;
const NEXT: usize = 8;
const NAMES: usize = 12;

/// Where the list begins, and how many pages are on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeList {
    /// Its first page.
    pub(super) head: Option<LogicalPage>,
    /// Free pages: those named, and those that name them.
    pub(super) pages: u32,
}

impl FreeList {
    pub(super) const EMPTY: FreeList = FreeList { head: None, pages: 0 };
}

struct FreePageCheck;

impl PageCheck for FreePageCheck {
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str> {
        if !self.is_kind(page) {
            return Err("it is no page of the free list");
        }
        if count(page) > names_most(page.len()) {
            return Err("it counts more free pages than it can name");
        }
        Ok(())
    }

    fn is_kind(&self, page: &[u8]) -> bool {
        page[page_kind::AT] == page_kind::FREE
    }
}

pub(super) fn names_most(page_bytes: usize) -> usize {
    (page_bytes - NAMES) / 4
}

pub(super) fn count(page: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([page[COUNT], page[COUNT + 1]]))
}

fn set_count(page: &mut [u8], count: usize) {
    page[COUNT..COUNT + 2].copy_from_slice(&(count as u16).to_le_bytes());
}

fn read(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// The page that comes behind this one of the list.
pub(super) fn next(page: &[u8]) -> Option<LogicalPage> {
    link(read(page, NEXT))
}

/// The free page that is named at `place`.
pub(super) fn named_at(page: &[u8], place: usize) -> LogicalPage {
    LogicalPage(read(page, NAMES + place * 4))
}

/// A link of the list: a page, or the number that marks its end.
pub(super) fn link(number: u32) -> Option<LogicalPage> {
    (number != u32::MAX).then_some(LogicalPage(number))
}

/// The number of a link.
pub(super) fn number(link: Option<LogicalPage>) -> u32 {
    link.map_or(u32::MAX, |page| page.0)
}

/// Which list a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// Pages that may be used again.
    Free,
    /// Pages that the last checkpoint needs.
    Freed,
}

impl PageFile<'_> {
    /// Takes a page from the free list, if there is one.
    pub(super) fn take_free(&mut self, cause: Cause) -> Result<Option<LogicalPage>> {
        let Some(head) = self.free.head else {
            return Ok(None);
        };
        let page = self.page_mut(head, cause, &FreePageCheck)?;
        let names = count(page);
        let taken = if names == 0 {
            self.free.head = next(page);
            self.strike(head, cause)?;
            self.cache.forget(head);
            head
        } else {
            set_count(page, names - 1);
            named_at(page, names - 1)
        };
        self.check_exists(taken)?;
        self.free.pages = self.free.pages.saturating_sub(1);
        Ok(Some(taken))
    }

    /// Puts `freed` on the free list; or, if the last checkpoint needs what it holds, on the list
    /// of pages that the next checkpoint makes free.
    pub(super) fn add_free(&mut self, freed: LogicalPage, cause: Cause) -> Result<()> {
        let which = if self.is_needed(freed) { List::Freed } else { List::Free };
        let named = match self.list(which).head {
            Some(head) => name(self.page_mut(head, cause, &FreePageCheck)?, freed),
            None => false,
        };
        if named {
            if self.undo.is_none() || self.mistake.is(Canary::TrimBeforeCheckpoint) {
                self.trim(freed, cause)?;
            }
        } else {
            let next = self.list(which).head;
            self.begin_free(freed, next)?;
            self.list(which).head = Some(freed);
            if which == List::Freed {
                self.freed_tail.get_or_insert(freed);
            }
        }
        self.list(which).pages += 1;
        Ok(())
    }

    /// A page of the free list, at a checkpoint.
    pub(super) fn free_page(&mut self, page: LogicalPage) -> Result<&[u8]> {
        self.page(page, Cause::Checkpoint, &FreePageCheck)
    }

    /// Makes `page` one of the free list that names none, before `next`.
    pub(super) fn begin_free(
        &mut self,
        page: LogicalPage,
        next: Option<LogicalPage>,
    ) -> Result<()> {
        let page = self.fresh(page)?;
        page[page_kind::AT] = page_kind::FREE;
        page[NEXT..NAMES].copy_from_slice(&number(next).to_le_bytes());
        Ok(())
    }

    /// Lets `next` come behind `page` in the list.
    pub(super) fn link_free(&mut self, page: LogicalPage, next: Option<LogicalPage>) -> Result<()> {
        let page = self.page_mut(page, Cause::Checkpoint, &FreePageCheck)?;
        page[NEXT..NAMES].copy_from_slice(&number(next).to_le_bytes());
        Ok(())
    }

    /// Names `freed` in a page of the list; false if that is full.
    pub(super) fn name_free(&mut self, page: LogicalPage, freed: LogicalPage) -> Result<bool> {
        Ok(name(self.page_mut(page, Cause::Checkpoint, &FreePageCheck)?, freed))
    }

    fn list(&mut self, which: List) -> &mut FreeList {
        match which {
            List::Free => &mut self.free,
            List::Freed => &mut self.freed,
        }
    }

    /// Makes the pages that waited for a checkpoint free: their list goes before the other, or
    /// into its first page. So two pages of the list that follow each other name as many pages as
    /// one can, and few are changed to take many.
    pub(super) fn join_freed(&mut self) -> Result<()> {
        if let Some(tail) = self.freed_tail.take() {
            if self.freed.head == Some(tail) && self.move_names(tail)? {
                self.free.pages += self.freed.pages;
                self.freed = FreeList::EMPTY;
                return Ok(());
            }
            self.link_free(tail, self.free.head)?;
            self.free.head = self.freed.head;
            self.free.pages += self.freed.pages;
            self.freed = FreeList::EMPTY;
        }
        Ok(())
    }

    /// Lets the first page of the free list name `freed` and what that names; false if there is no
    /// room for it.
    fn move_names(&mut self, freed: LogicalPage) -> Result<bool> {
        let Some(head) = self.free.head else {
            return Ok(false);
        };
        let (one, other) = self.two_pages((head, freed), Cause::Checkpoint, &FreePageCheck)?;
        let (held, more) = (count(one), count(other));
        if held + more + 1 > names_most(one.len()) {
            return Ok(false);
        }
        let (into, from) = self.two_pages_mut((head, freed), Cause::Checkpoint, &FreePageCheck)?;
        let at = NAMES + held * 4;
        into[at..at + more * 4].copy_from_slice(&from[NAMES..NAMES + more * 4]);
        set_count(into, held + more);
        name(into, freed);
        self.strike(freed, Cause::Checkpoint)?;
        self.cache.forget(freed);
        Ok(true)
    }

    /// The sum of the marks of the pages that `list` names, as they stand on the device.
    pub(super) fn marks_of_named(&mut self, list: FreeList, cause: Cause) -> Result<u64> {
        let (mut sum, mut next, mut left) = (0u64, list.head, self.high_water);
        while let Some(head) = next {
            let mut place = 0;
            loop {
                let page = self.page(head, cause, &FreePageCheck)?;
                next = self::next(page);
                if place == count(page) {
                    break;
                }
                let named = named_at(page, place);
                self.check_exists(named)?;
                sum = sum.wrapping_add(self.marks([named], cause)?);
                place += 1;
            }
            left = left.checked_sub(1 + place as u32).ok_or(circular(head))?;
        }
        Ok(sum)
    }

    /// Counts the pages of the free lists by walking them.
    ///
    /// # Errors
    /// A page of them is damaged, or they go in a circle.
    pub fn count_free(&mut self, cause: Cause) -> Result<u32> {
        self.each_free(cause, &mut |_| ())
    }

    /// Tells each page of the free lists; returns how many there are.
    ///
    /// # Errors
    /// As [`PageFile::count_free`].
    pub fn each_free(&mut self, cause: Cause, tell: &mut dyn FnMut(LogicalPage)) -> Result<u32> {
        let mut counted = 0u32;
        for list in [self.free, self.freed] {
            let mut next = list.head;
            while let Some(head) = next {
                let page = self.page(head, cause, &FreePageCheck)?;
                counted = counted.saturating_add(1 + count(page) as u32);
                tell(head);
                (0..count(page)).for_each(|at| tell(named_at(page, at)));
                next = self::next(page);
                if counted > self.high_water {
                    return Err(circular(head));
                }
            }
        }
        Ok(counted)
    }
}

pub(super) fn circular(page: LogicalPage) -> Error {
    Error::DamagedPage { page, what: "the free list is circular" }
}

/// Names `freed` in a page of the free list; false if that is full.
fn name(page: &mut [u8], freed: LogicalPage) -> bool {
    let names = count(page);
    if names == names_most(page.len()) {
        return false;
    }
    let at = NAMES + names * 4;
    page[at..at + 4].copy_from_slice(&freed.0.to_le_bytes());
    set_count(page, names + 1);
    true
}
