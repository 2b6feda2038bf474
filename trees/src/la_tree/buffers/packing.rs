//! Making pages of fragments: the fullest buffers of the pool, packed.

use device::{Cause, Page};

use super::super::buffer_pool::BufferId;
use super::super::layout::{FRAGMENT_HEADER_BYTES, FRAGMENTS, Link, damaged, seal_fragment};
use super::super::storage::Storage;
use super::{Buffers, is_leaf};
use index::Result;

/// A buffer that does not fit what is left of a page is cut if that is at least such a part of it.
const PIECES_A_PAGE: usize = 4;

/// A fragment in the page that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    buffer: u32,
    offset: u16,
    bytes: u16,
    before: Option<Link>,
    entries: u32,
}

impl Made {
    const fn link(&self, page: Page) -> Link {
        Link { page, offset: self.offset, bytes: self.bytes }
    }
}

impl Buffers {
    /// Makes a page of fragments, of the buffer `first` before all others, and programs it.
    pub(in super::super) fn write_page(
        &mut self,
        log: &mut Storage<'_>,
        first: Option<u32>,
        cause: Cause,
    ) -> Result<()> {
        log.reserve(1, &mut self.next, cause)?;
        let mut page = self.next[0];
        self.fill_page(page, first)?;
        loop {
            self.seal_page(page);
            match log.program(page, &mut self.page, FRAGMENTS, cause) {
                Err(error) if error.is_refusal() => {
                    log.reserve(1, &mut self.next, cause)?;
                    let old = page;
                    page = self.next[0];
                    for made in &mut self.made {
                        made.before = made.before.map(|link| match link.page == old {
                            true => Link { page, ..link },
                            false => link,
                        });
                    }
                }
                programmed => break programmed?,
            }
        }
        // The end of a page that nothing fits costs as much as the rest of it.
        self.stored.add(u64::from(self.pages.room()), 0);
        for made in &self.made {
            let link = made.link(page);
            log.hold(page);
            if self.fences.is_used() {
                let (from, bytes) = (usize::from(made.offset), usize::from(made.bytes));
                let stream = &self.page[from + FRAGMENT_HEADER_BYTES..from + bytes];
                let noted = self.fences.note((link, made.before), self.form, stream);
                noted.map_err(|what| damaged(page, what))?;
            }
            if let Some(record) = self.records.get_mut(made.buffer as usize) {
                record.add_fragments(link, 1);
                self.counters.fragments[is_leaf(record)] += 1;
                self.counters.fragment_entries[is_leaf(record)] += u64::from(made.entries);
            }
        }
        Ok(())
    }

    /// Moves entries from the pool to the page, as far as there is room.
    fn fill_page(&mut self, page: Page, mut first: Option<u32>) -> Result<()> {
        self.made.clear();
        let (start, room) = (self.pages.first() as usize, self.pages.room() as usize);
        self.page.fill(0xFF);
        let mut at = 0;
        while at + FRAGMENT_HEADER_BYTES < room && self.made.len() < self.made.capacity() {
            let chosen = first.take().map(BufferId).or_else(|| self.choose(room - at));
            let Some(buffer) = chosen else {
                break;
            };
            let record = self.record(buffer.0);
            let offset = start + at;
            let into = &mut self.page[offset + FRAGMENT_HEADER_BYTES..start + room];
            let taken = self.pool.take(buffer, into);
            let taken = taken.map_err(|what| damaged(page, what))?;
            if taken.entries == 0 {
                break;
            }
            let bytes = FRAGMENT_HEADER_BYTES + taken.bytes;
            let last = self.made.iter().rev().find(|made| made.buffer == buffer.0);
            let newest = record.newest();
            let before = last.map_or(newest, |made| Some(made.link(page)));
            self.made.push(Made {
                buffer: buffer.0,
                offset: offset as u16,
                bytes: bytes as u16,
                before,
                entries: taken.entries,
            });
            at += bytes;
        }
        if self.made.is_empty() {
            return Err(damaged(page, "an entry does not fit a page of fragments"));
        }
        Ok(())
    }

    /// The buffer whose entries are to fill the `room` bytes that are left of the page: the
    /// fullest. At the page's end it is one that fits whole, and not a small one: a fragment more
    /// is read with each scan, which costs more than the end of a page.
    fn choose(&mut self, room: usize) -> Option<BufferId> {
        let fullest = self.pool.fullest()?;
        let held = self.pool.held(fullest);
        let is_piece = room * PIECES_A_PAGE >= self.pages.room() as usize;
        if is_piece || FRAGMENT_HEADER_BYTES + held.bytes <= room {
            return Some(fullest);
        }
        let entry = self.form.fixed_bytes()?;
        let room = room.checked_sub(FRAGMENT_HEADER_BYTES + 1)?;
        let most = (room * 8 / (entry * 8 + 1)) as u32;
        self.pool.fullest_within((held.entries / 2).max(1), most)
    }

    fn seal_page(&mut self, page: Page) {
        for place in 0..self.made.len() {
            let made = self.made[place];
            let owner = self.record(made.buffer).owner;
            let at = usize::from(made.offset);
            let bytes = &mut self.page[at..at + usize::from(made.bytes)];
            let sealed = seal_fragment(owner, (page, made.offset), made.before, bytes);
            debug_assert!(sealed.is_some() && made.entries > 0, "it fits a page");
        }
    }
}
