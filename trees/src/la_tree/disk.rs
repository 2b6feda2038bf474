//! In place on a disk (end of section 4.3): nodes are pages of a page file, rewritten where they
//! stand.
//!
//! A child is named by its page. Only a node with a buffer is named by the buffer's number, for the
//! buffer's record is needed on every way through the node; a table beside the records says its
//! page. There is no table of other nodes, and no reclamation. What leaves the pool is packed into
//! pages of fragments as on raw flash; such a page is given back when no buffer has a fragment in
//! it any more.
//!
//! # What is different from raw flash
//! - A value too long for a leaf stands in pages of its own, as everywhere on disks. Such an entry
//!   does not wait in buffers: it goes to its leaf at once ([`operations`](super::operations)).
//! - Emptying rewrites many pages that the last checkpoint needs. Where the way back has no room
//!   for them, a buffer is emptied only in part, and the rest waits for the next checkpoint
//!   ([`census`](super::census)).
//! - From a large pool a buffer leaves as a whole and sorted, and a lookup knows which of its pages
//!   to read ([`write_run`](super::buffers::Buffers::write_run)).
//!
//! # Pages of fragments, of tables and of the pool
//! ```text
//!  0        4      5    6      7      8
//!  +--------+------+----+------+------+---------------------------
//!  | check- | what | 0  | no   | kind | fragments, or what tables
//!  | sum u32| u8   |    | level| u8   | and the pool have there
//!  +--------+------+----+------+------+---------------------------
//! ```
//!
//! The state at a checkpoint, the records of buffers and the pool, is written anew for a checkpoint
//! if anything changed since the last one, whose pages are given back then: so none of them has to
//! be kept. How many fragments of a page are in use is not stored: an opening counts them.
//!
//! Invariant: a page that is used for fragments or for the state at the last checkpoint is counted
//! in `live`; it is given back when that comes to 0.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;

use device::{Cause, Page};
use store::{LogicalPage, PageCheck, PageFile, PageKind, Recovery, Result};

use super::layout::FRAGMENTS;

/// Bytes of a page before what it holds.
pub(super) const PAGE_HEADER: usize = 8;

/// The number that marks such a page; nodes and the page file's own pages have others.
const KIND_TREE: u8 = 6;

/// Nodes have their level here.
const LEVEL: usize = 6;
const NO_LEVEL: u8 = u8::MAX;

const WHAT: usize = 4;
const KIND: usize = 7;

/// Marks a page of the state at the last checkpoint.
const STATE: u16 = 0x8000;

/// Bytes of a root record that only a tree on a disk has: its nodes u64, and the bytes of the
/// longest long value u32.
const TAIL: usize = 12;

/// A page file, and what is in use of it beside nodes.
pub(super) struct Disk<'d> {
    pub(super) file: PageFile<'d>,
    /// For each page, how many fragments in it belong to buffers.
    live: Box<[u16]>,
    /// The pages of the state at the last checkpoint.
    pub(super) state: Vec<Page>,
    /// Pages that `live` counts.
    pub(super) pages_live: u32,
    /// Nodes of the tree.
    pub(super) nodes: u64,
    /// Bytes of entries that went down to leaves since the last checkpoint.
    pub(super) gone_down: u64,
    /// Bytes in the longest long value that there ever was.
    pub(super) longest_value: u32,
}

struct TreePage;

impl PageCheck for TreePage {
    fn check(&self, page: &[u8]) -> core::result::Result<(), &'static str> {
        match self.is_kind(page) {
            true => Ok(()),
            false => Err("it is no page of fragments or tables"),
        }
    }

    fn is_kind(&self, page: &[u8]) -> bool {
        page[KIND] == KIND_TREE
    }
}

impl<'d> Disk<'d> {
    pub(super) fn new(file: PageFile<'d>) -> Self {
        let pages = file.pages_most() as usize;
        Disk {
            file,
            live: vec![0; pages].into_boxed_slice(),
            state: Vec::new(),
            pages_live: 0,
            nodes: 0,
            gone_down: 0,
            longest_value: 0,
        }
    }

    /// Bytes of the table of live fragments, and of the list of the state's pages.
    pub(super) fn table_bytes(&self) -> u64 {
        Self::table_bytes_of(self.live.len() as u64, self.state.capacity() as u64)
    }

    /// The same for so many pages of the file and of the state.
    pub(super) const fn table_bytes_of(pages: u64, state: u64) -> u64 {
        pages * size_of::<u16>() as u64 + state * size_of::<Page>() as u64
    }

    pub(super) fn reserve(&mut self, pages: u32, into: &mut Vec<Page>, cause: Cause) -> Result<()> {
        into.clear();
        for _ in 0..pages {
            into.push(Page(self.file.allocate(cause)?.0));
        }
        Ok(())
    }

    pub(super) fn program(&mut self, page: Page, content: &[u8], kind: PageKind) -> Result<()> {
        let what = match kind {
            PageKind::Tree(number) => number,
            PageKind::Journal | PageKind::Piece | PageKind::Checkpoint => u8::MAX,
        };
        let logical = LogicalPage(page.0);
        let into = self.file.fresh(logical)?;
        into[PAGE_HEADER..].copy_from_slice(&content[PAGE_HEADER..]);
        into[WHAT] = what;
        into[LEVEL] = NO_LEVEL;
        into[KIND] = KIND_TREE;
        if kind != FRAGMENTS {
            self.keep_state(page);
        }
        self.file.write_now(logical)
    }

    pub(super) fn read(
        &mut self,
        page: Page,
        offset: u32,
        into: &mut [u8],
        cause: Cause,
    ) -> Result<()> {
        let logical = LogicalPage(page.0);
        let bytes = self.file.page(logical, cause, &TreePage)?;
        let from = PAGE_HEADER + offset as usize;
        let what = "it is read beyond its end";
        let damaged = store::Error::DamagedPage { page: logical, what };
        let bytes = bytes.get(from..from + into.len()).ok_or(damaged)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    /// Pages with fragments, but for those among the state's.
    pub(super) fn pages_of_fragments(&self) -> u32 {
        self.pages_live.saturating_sub(self.state.len() as u32)
    }

    fn change(&mut self, page: Page, change: impl FnOnce(u16) -> u16) -> bool {
        let Some(live) = self.live.get_mut(page.0 as usize) else {
            return false;
        };
        let before = *live;
        *live = change(before);
        self.pages_live += u32::from(before == 0 && *live != 0);
        let is_dead = before != 0 && *live == 0;
        self.pages_live -= u32::from(is_dead);
        is_dead
    }

    /// Notes that `page` is one of the state at the last checkpoint.
    fn keep_state(&mut self, page: Page) {
        self.state.push(page);
        self.change(page, |live| live | STATE);
    }

    pub(super) fn hold(&mut self, page: Page) {
        self.change(page, |live| live + u16::from(live & !STATE < !STATE));
    }

    pub(super) fn let_go(&mut self, page: Page, cause: Cause) -> Result<()> {
        let one = |live: u16| live - u16::from(live & !STATE > 0);
        match self.change(page, one) {
            true => self.file.free(LogicalPage(page.0), cause),
            false => Ok(()),
        }
    }

    /// Gives back the pages of the state at the last checkpoint, but those with live fragments.
    pub(super) fn drop_state(&mut self, cause: Cause) -> Result<()> {
        for place in 0..self.state.len() {
            let page = self.state[place];
            if self.change(page, |live| live & !STATE) {
                self.file.free(LogicalPage(page.0), cause)?;
            }
        }
        self.state.clear();
        Ok(())
    }

    /// Gives back every page of fragments.
    pub(super) fn drop_fragments(&mut self, cause: Cause) -> Result<()> {
        for number in 0..self.live.len() as u32 {
            let page = Page(number);
            if self.live[number as usize] != 0 && self.change(page, |live| live & STATE) {
                self.file.free(LogicalPage(number), cause)?;
            }
        }
        Ok(())
    }

    /// Lets the file grow; false if it can't.
    pub(super) fn extend(&mut self) -> index::Result<bool> {
        Ok(Recovery::extend(&mut self.file)?)
    }

    /// Gives back the pages of the last state, before the next is written.
    pub(super) fn begin_state(&mut self) -> Result<()> {
        self.gone_down = 0;
        self.drop_state(Cause::Checkpoint)
    }

    /// Appends the list of the pages of the state behind the first `pages` to a root record.
    pub(super) fn encode_state_from(&self, pages: usize, record: &mut Vec<u8>) {
        let list = self.state.get(pages..).unwrap_or_default();
        record.extend_from_slice(&(list.len() as u32).to_le_bytes());
        list.iter().for_each(|page| record.extend_from_slice(&page.0.to_le_bytes()));
    }

    /// Appends what only a tree on a disk has to its root record.
    pub(super) fn encode_tail(&self, record: &mut Vec<u8>) {
        record.extend_from_slice(&self.nodes.to_le_bytes());
        record.extend_from_slice(&self.longest_value.to_le_bytes());
    }

    /// Begins with what a root record says of a tree of so many entries and leaves: its tail, and
    /// the pages of the state. False if that can't be.
    pub(super) fn take_state(
        &mut self,
        tail: &[u8],
        (entries, leaves): (u64, u64),
        pages: impl Iterator<Item = Page>,
    ) -> bool {
        let (Some((nodes, longest)), TAIL) = (tail.split_first_chunk(), tail.len()) else {
            return false;
        };
        self.live.fill(0);
        self.state.clear();
        (self.pages_live, self.gone_down) = (0, 0);
        self.nodes = u64::from_le_bytes(*nodes);
        self.longest_value = longest.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let (all, bytes) = (u64::from(self.file.pages_most()), u64::from(self.file.page_bytes()));
        let is_possible = self.nodes <= all && leaves <= all && entries <= all * bytes;
        if is_possible {
            pages.for_each(|page| self.keep_state(page));
        }
        is_possible
    }

    /// Compares the pages that the tree has, `pages` of them nodes and long values, with those in
    /// use.
    pub(super) fn check(
        &mut self,
        pages: u64,
        finding: &mut dyn FnMut(&dyn Display),
    ) -> index::Result<()> {
        let (used, _) = self.file.pages_used();
        let own = used.saturating_sub(self.file.record_pages());
        let has = pages + u64::from(self.pages_live);
        if has != u64::from(own) {
            finding(&format_args!("{own} pages are in use, but the tree has {has}"));
        }
        match self.file.check_pages(finding) {
            Ok(()) => Ok(()),
            Err(error) => index::Error::Store(error).report_damage(finding),
        }
    }
}

#[cfg(test)]
mod tests;
