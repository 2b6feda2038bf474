//! The pages of the list, one behind the other, and the one that is being filled.

use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Geometry, Page};
use store::{LogicalPage, PageKind, PageLog};

use super::page::{Form, HEADER_BYTES, Header, Item, Root, check};
use index::Result;

/// How often a page is read that looks damaged: flips come and go.
const READS_MOST: u32 = 3;

/// Entries in the order in which they arrived.
pub(super) struct Archive<'d> {
    pub(super) log: PageLog<'d>,
    pub(super) form: Form,
    /// The newest page.
    newest: Option<Page>,
    /// Pages of the list.
    pub(super) pages: u64,
    /// Entries in them, and those in no page yet.
    pub(super) entries: u64,
    /// Entries that are in no page yet.
    pub(super) open: Vec<u8>,
    /// The most bytes of entries in a page.
    room: usize,
    /// False after an opening until the pages of a block that was left half full went to another
    /// one: see [`Archive::move_tail`].
    is_tail_moved: bool,
    /// A whole page: the one that was read last, or the one that is written.
    page: Vec<u8>,
    /// Addresses: of a page to be written, and of those that share a block.
    next: Vec<Page>,
    tail: Vec<Page>,
}

impl<'d> Archive<'d> {
    pub(super) fn new(log: PageLog<'d>, form: Form) -> Self {
        let chip = log.geometry();
        let room = log.content_bytes() - HEADER_BYTES;
        Archive {
            form,
            newest: None,
            pages: 0,
            entries: 0,
            open: Vec::with_capacity(room),
            room,
            is_tail_moved: true,
            page: vec![0xFF; chip.page_bytes() as usize],
            next: Vec::with_capacity(1),
            tail: Vec::with_capacity(chip.pages_per_block() as usize),
            log,
        }
    }

    /// Bytes of memory of the archive on `chip`, without the log's: two pages, and addresses; and
    /// what a checkpoint takes, whose record has the entries that are in no page yet, in three
    /// copies.
    pub(super) fn memory_bytes(chip: Geometry) -> u64 {
        let address = size_of::<Page>() as u64;
        5 * u64::from(chip.page_bytes()) + (u64::from(chip.pages_per_block()) + 1) * address
    }

    /// Entries of this many bytes that fit a page.
    pub(super) fn capacity(room: u32, bytes: usize) -> f64 {
        (room as usize).saturating_sub(HEADER_BYTES).checked_div(bytes).unwrap_or(0) as f64
    }

    /// Appends an entry that was checked.
    pub(super) fn append(&mut self, item: Item<'_>, cause: Cause) -> Result<()> {
        let bytes = self.form.bytes(item.key.len(), item.value.map(<[u8]>::len));
        if self.open.len() + bytes > self.room {
            self.write_open(cause)?;
        }
        self.form.append(item, &mut self.open);
        self.entries += 1;
        Ok(())
    }

    /// Pages that get full when entries of these lengths are appended.
    pub(super) fn pages_for(&self, lengths: impl Iterator<Item = usize>) -> u32 {
        let (mut used, mut pages) = (self.open.len(), 0);
        for bytes in lengths {
            if used + bytes > self.room {
                (used, pages) = (0, pages + 1);
            }
            used += bytes;
        }
        pages
    }

    /// Pages that have to be moved before the next one is written.
    pub(super) fn pages_to_move(&self) -> u32 {
        match self.newest {
            Some(newest) if !self.is_tail_moved => {
                let chip = self.log.geometry();
                newest.0 - chip.first_page(chip.block_of(newest)).0 + 1
            }
            _ => 0,
        }
    }

    /// Leaves the pages of a half full block where they are: there is no room to move them.
    pub(super) fn leave_tail(&mut self) {
        self.is_tail_moved = true;
    }

    fn write_open(&mut self, cause: Cause) -> Result<()> {
        self.move_tail(cause)?;
        let start = self.log.content_start() + HEADER_BYTES;
        let used = self.open.len();
        self.page[start..start + used].copy_from_slice(&self.open);
        self.page[start + used..].fill(0xFF);
        let header = Header { previous: self.newest, number: self.pages, used: used as u32 };
        self.newest = Some(self.write_page(&header, cause)?);
        self.pages += 1;
        self.open.clear();
        Ok(())
    }

    /// Writes the page whose entries stand in `self.page`.
    fn write_page(&mut self, header: &Header, cause: Cause) -> Result<Page> {
        loop {
            self.log.reserve(1, &mut self.next, cause)?;
            let page = self.next[0];
            let start = self.log.content_start();
            header.seal(page, &mut self.page[start..]);
            match self.log.program(page, &mut self.page, PageKind::Tree(0), cause) {
                Err(error) if error.is_refusal() => {}
                programmed => {
                    programmed?;
                    return Ok(page);
                }
            }
        }
    }

    /// After an opening, the block that was being filled is filled no further. So that no opening
    /// wastes the rest of a block, its pages go to the next one, and it is erased when a checkpoint
    /// was made.
    fn move_tail(&mut self, cause: Cause) -> Result<()> {
        let Some(newest) = self.newest.filter(|_| !self.is_tail_moved) else {
            return Ok(());
        };
        let chip = self.log.geometry();
        let block = chip.block_of(newest);
        self.log.reserve(1, &mut self.next, cause)?;
        // After a rollback the log may go on in the very same block.
        let goes_on = chip.block_of(self.next[0]) == block;
        if goes_on || self.log.free_pages() <= self.pages_to_move() {
            self.is_tail_moved = true;
            return Ok(());
        }
        self.tail.clear();
        let (mut at, mut number) = (Some(newest), self.pages);
        while let Some(page) = at.filter(|page| chip.block_of(*page) == block) {
            number = number.checked_sub(1).ok_or(misplaced(page))?;
            self.tail.push(page);
            at = self.read_header(page, number, cause)?.previous;
        }
        if self.tail.len() as u32 == chip.pages_per_block() {
            self.is_tail_moved = true;
            return Ok(());
        }
        for place in (0..self.tail.len()).rev() {
            let header = self.read_page(self.tail[place], number, cause)?.0;
            let previous = at;
            at = Some(self.write_page(&Header { previous, ..header }, cause)?);
            number += 1;
        }
        self.newest = at;
        self.log.release(block);
        self.is_tail_moved = true;
        Ok(())
    }

    /// Reads `page`, which has this number, into `self.page`; returns its header and where its
    /// entries end.
    fn read_page(&mut self, page: Page, number: u64, cause: Cause) -> Result<(Header, usize)> {
        let start = self.log.content_start();
        let mut reads = 1;
        let (header, end) = loop {
            let content = &mut self.page[start..];
            let read = self.log.read(page, 0, content, cause);
            match read.and_then(|()| check(page, content)) {
                Err(error) if error.is_damage() && reads < READS_MOST => reads += 1,
                checked => break checked?,
            }
        };
        if header.number != number || header.previous.is_some() != (number > 0) {
            return Err(misplaced(page).into());
        }
        Ok((header, start + end))
    }

    /// Reads only the header of `page`, which its checksum does not cover alone.
    fn read_header(&mut self, page: Page, number: u64, cause: Cause) -> Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        self.log.geometry().check_page(page)?;
        self.log.read(page, 0, &mut bytes, cause)?;
        let header = Header::decode(&bytes);
        if header.number != number || header.previous.is_some() != (number > 0) {
            return Err(misplaced(page).into());
        }
        Ok(header)
    }

    /// Where a walk over all entries begins.
    pub(super) fn walk(&self) -> Walk {
        Walk { page: self.newest, left: self.pages, is_open_met: false }
    }

    /// The entries of the next page, from the newest page back; those in no page yet come first.
    pub(super) fn step(&mut self, walk: &mut Walk, cause: Cause) -> Result<Option<&[u8]>> {
        if !walk.is_open_met {
            walk.is_open_met = true;
            return Ok(Some(&self.open));
        }
        let Some(page) = walk.page else {
            return Ok(None);
        };
        walk.left = walk.left.checked_sub(1).ok_or(misplaced(page))?;
        let (header, end) = self.read_page(page, walk.left, cause)?;
        walk.page = header.previous;
        let start = self.log.content_start() + HEADER_BYTES;
        Ok(Some(&self.page[start..end]))
    }

    /// Pins every page from `newest` back, which is the last of `pages`.
    fn pin_pages(&mut self, newest: Option<Page>, pages: u64) -> Result<()> {
        let (mut at, mut left) = (newest, pages);
        while let Some(page) = at {
            left = left.checked_sub(1).ok_or(misplaced(page))?;
            at = self.read_header(page, left, Cause::Recovery)?.previous;
            self.log.pin(page);
        }
        Ok(())
    }

    /// Pins what named checkpoints reach, and releases what neither they nor the list reach: what a
    /// rollback left behind.
    pub(super) fn pin_savepoints(&mut self) -> Result<()> {
        self.log.unpin_all()?;
        self.pin_named()?;
        self.pin_pages(self.newest, self.pages)?;
        while let Some(block) = self.log.victim() {
            self.log.release(block);
        }
        self.log.unpin_all()?;
        self.pin_named()
    }

    fn pin_named(&mut self) -> Result<()> {
        use store::Recovery;
        for place in 0..self.log.checkpoints().len() {
            let name = self.log.checkpoints().get(place).map(|kept| kept.name.clone());
            let record = self.log.kept_root(&name.unwrap_or_default())?;
            let root = Root::decode(&record)?;
            self.pin_pages(root.newest, root.pages)?;
        }
        Ok(())
    }

    pub(super) fn root_record(&self) -> Vec<u8> {
        let Archive { newest, pages, entries, .. } = *self;
        Root { shape: self.form.shape, newest, pages, entries, open: &self.open }.encode()
    }

    pub(super) fn restore(&mut self, record: &[u8]) -> Result<()> {
        let root = Root::decode(record)?;
        let damaged =
            store::Error::NotAnIndex { is_ours: true, what: "its root record is damaged" };
        if root.shape != self.form.shape || root.open.len() > self.room {
            return Err(damaged.into());
        }
        if let Some(newest) = root.newest {
            self.log.geometry().check_page(newest)?;
        }
        (self.newest, self.pages, self.entries) = (root.newest, root.pages, root.entries);
        self.open.clear();
        self.open.extend_from_slice(root.open);
        self.is_tail_moved = false;
        Ok(())
    }
}

/// Where a walk from the newest entry to the oldest stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    pub(super) page: Option<Page>,
    left: u64,
    is_open_met: bool,
}

fn damaged(page: Page, what: &'static str) -> store::Error {
    store::Error::DamagedPage { page: LogicalPage(page.0), what }
}

fn misplaced(page: Page) -> store::Error {
    damaged(page, "it is another page of the list than the one that is looked for")
}

/// What is wrong with an entry of `page`, or with one that is in no page yet.
pub(super) fn damaged_at(page: Option<Page>, what: &'static str) -> store::Error {
    page.map_or(store::Error::NotAnIndex { is_ours: true, what }, |page| damaged(page, what))
}
