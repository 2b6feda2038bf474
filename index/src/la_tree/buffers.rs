//! Buffers: what is known of each, its chain of fragments on flash, and its entries in the pool.
//!
//! When the pool is full, a page of fragments is made at once: of the fullest buffer first, then of
//! the next fullest, until the page is full (sections 4.2, 4.3). So no page of fragments waits half
//! full, and the links are known when it is programmed.
//!
//! A buffer that is too large for memory is X and Y: Y, the batch that came last, is sorted. No
//! fragment holds entries of both, so X is a part of the chain.
//!
//! Invariant: the entries of a buffer are, from the newest on, those in the pool and those of the
//! chain from `newest` on; `entries` and `bytes` count both.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Page};
use store::{PageKind, PageLog};

use super::buffer_pool::{BufferId, BufferPool};
use super::cost::{Ratio, Subtree};
use super::emptying::{Order, Sorter};
use super::layout::{FRAGMENT_HEADER_BYTES, Link, Owner, PageShape, open_fragment, seal_fragment};
use super::nodes::damaged;
use super::stream::{self, Form, Pending};
use super::table::{BufferRecord, Chunked};
use crate::Result;

/// The kind of pages of fragments.
pub(super) const FRAGMENTS: PageKind = PageKind::Tree(1);

/// The end of the list of buffers that are to be emptied, and the mark of one that is not in it.
const END: u32 = u32::MAX;
const NOT_LISTED: u32 = u32::MAX - 1;

/// A fragment in the page that is being made.
#[derive(Clone, Copy, Debug)]
struct Made {
    buffer: u32,
    offset: u16,
    bytes: u16,
    before: Option<Link>,
    /// True if all of it is X.
    is_below: bool,
    entries: u32,
}

/// The sizes of the parts that do not grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSizes {
    pub(super) pool_bytes: u64,
    /// The most bytes that a buffer has in the pool.
    pub(super) held_most: usize,
    /// The most bytes of an entry in a stream.
    pub(super) entry_most: usize,
    /// The fewest.
    pub(super) entry_least: usize,
}

/// All buffers of a tree.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) form: Form,
    pub(super) pages: PageShape,
    pub(super) records: Chunked<BufferRecord>,
    /// The next buffer in the list of those that are to be emptied.
    listed: Chunked<u32>,
    first_listed: u32,
    last_listed: u32,
    pub(super) pool: BufferPool,
    /// The page of fragments that is being made; between two of them it is free for other pages.
    pub(super) page: Box<[u8]>,
    made: Vec<Made>,
    /// A fragment that was read.
    pub(super) read: Box<[u8]>,
    /// What a buffer has in the pool.
    pub(super) scratch: Box<[u8]>,
    next: Vec<Page>,
    pub(super) next_owner: u32,
    /// Entries in the buffers of inner subtrees, and of leaf subtrees.
    pub(super) pending: [u64; 2],
    /// Deletes in all buffers.
    pub(super) packed: Ratio,
}

fn is_leaf(record: &BufferRecord) -> usize {
    usize::from(record.leaves > 0)
}

impl Buffers {
    /// The most fragments in a page.
    fn made_most(pages: &PageShape, entry_least: usize) -> usize {
        pages.room() as usize / (FRAGMENT_HEADER_BYTES + 1 + entry_least)
    }

    /// Bytes of memory beside the pool and the tables.
    pub(super) fn fixed_bytes(pages: &PageShape, sizes: &BufferSizes) -> u64 {
        let page = u64::from(pages.first() + pages.room());
        let made = Self::made_most(pages, sizes.entry_least) * size_of::<Made>();
        page + u64::from(pages.room()) + (made + sizes.held_most + 16) as u64
    }

    pub(super) fn new(form: Form, pages: PageShape, sizes: &BufferSizes) -> Self {
        let room = pages.room() as usize;
        let page_entries = (room / sizes.entry_least.max(1)) as u32;
        Buffers {
            form,
            pages,
            records: Chunked::new(),
            listed: Chunked::new(),
            first_listed: END,
            last_listed: END,
            pool: BufferPool::new(sizes.pool_bytes, form, page_entries),
            page: vec![0xFF; pages.first() as usize + room].into_boxed_slice(),
            made: Vec::with_capacity(Self::made_most(&pages, sizes.entry_least)),
            read: vec![0; room].into_boxed_slice(),
            scratch: vec![0; sizes.held_most].into_boxed_slice(),
            next: Vec::with_capacity(4),
            next_owner: 0,
            pending: [0; 2],
            packed: Ratio::default(),
        }
    }

    /// Bytes of what is known of each buffer.
    pub(super) fn table_bytes(&self) -> u64 {
        self.records.memory_bytes() + self.listed.memory_bytes() + self.pool.table_bytes()
    }

    /// Forgets every buffer.
    pub(super) fn forget(&mut self) {
        for number in 0..self.records.len() as u32 {
            self.pool.clear(BufferId(number));
        }
        self.records.clear();
        self.listed.clear();
        (self.first_listed, self.last_listed) = (END, END);
        self.pending = [0; 2];
    }

    /// The record of buffer `number`.
    pub(super) fn record(&self, number: u32) -> BufferRecord {
        let unknown = BufferRecord::new(Owner(0), 1, 0);
        self.records.get(number as usize).copied().unwrap_or(unknown)
    }

    pub(super) fn record_mut(&mut self, number: u32) -> Option<&mut BufferRecord> {
        self.records.get_mut(number as usize)
    }

    /// Lets buffer `number` have `record`.
    pub(super) fn set_record(&mut self, number: u32, record: BufferRecord) {
        let length = number as usize + 1;
        self.records.grow(length, BufferRecord::new(Owner(0), 1, 0));
        self.listed.grow(length, NOT_LISTED);
        let Some(old) = self.records.get_mut(number as usize) else {
            return;
        };
        self.pending[is_leaf(old)] -= u64::from(old.entries);
        self.pending[is_leaf(&record)] += u64::from(record.entries);
        *old = BufferRecord { is_dirty: true, ..record };
    }

    /// A number for the owner of a chain, which none had before.
    ///
    /// # Errors
    /// There are no more.
    pub(super) fn owner(&mut self, log: &PageLog<'_>) -> Result<Owner> {
        let full = store::Error::Full { pages: u64::from(log.usable_pages()) };
        let owner = Owner(self.next_owner);
        self.next_owner = self.next_owner.checked_add(1).ok_or(full)?;
        Ok(owner)
    }

    /// The statistics of buffer `number`, for its costs.
    pub(super) fn subtree(&self, number: u32) -> Subtree {
        let record = self.record(number);
        Subtree {
            nodes: record.nodes,
            leaves: record.leaves,
            entries: record.entries,
            bytes: record.bytes,
            fragments: record.fragments,
            stored_bytes: record.stored_bytes,
        }
    }

    /// Appends `entry` to buffer `number`; other entries may have to leave the pool for it.
    ///
    /// # Errors
    /// No page is free, or the chip failed.
    pub(super) fn append(
        &mut self,
        log: &mut PageLog<'_>,
        number: u32,
        entry: &Pending<'_>,
        cause: Cause,
    ) -> Result<()> {
        let bytes = self.form.bytes(entry) + 1;
        let buffer = BufferId(number);
        loop {
            let is_full = self.pool.held(buffer).bytes + bytes > self.scratch.len();
            if !is_full && self.pool.append(buffer, entry) {
                break;
            }
            self.write_page(log, is_full.then_some(number), cause)?;
        }
        if let Some(record) = self.records.get_mut(number as usize) {
            record.entries += 1;
            record.bytes += bytes as u32;
            record.is_dirty = true;
            self.pending[is_leaf(record)] += 1;
        }
        Ok(())
    }

    /// Appends an entry of the batch Y that comes from above; it is the `first` of it, or not.
    ///
    /// # Errors
    /// As [`Buffers::append`].
    pub(super) fn append_to_batch(
        &mut self,
        log: &mut PageLog<'_>,
        number: u32,
        entry: &Pending<'_>,
        first: Option<Order>,
        cause: Cause,
    ) -> Result<()> {
        if let (Some(order), Some(record)) = (first, self.records.get_mut(number as usize)) {
            record.batch = 0;
            record.batch_ascends = order == Order::Ascending;
            record.below_batch = record.newest;
        }
        self.append(log, number, entry, cause)?;
        if let Some(record) = self.records.get_mut(number as usize) {
            record.batch += 1;
        }
        Ok(())
    }

    /// Writes all that buffer `number` has in the pool to flash.
    ///
    /// # Errors
    /// As [`Buffers::append`].
    pub(super) fn evict(&mut self, log: &mut PageLog<'_>, number: u32, cause: Cause) -> Result<()> {
        while self.pool.held(BufferId(number)).entries > 0 {
            self.write_page(log, Some(number), cause)?;
        }
        Ok(())
    }

    /// Makes a page of fragments, of the buffer `first` before all others, and programs it.
    fn write_page(
        &mut self,
        log: &mut PageLog<'_>,
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
        for made in &self.made {
            let link = Link { page, offset: made.offset, bytes: made.bytes };
            if let Some(record) = self.records.get_mut(made.buffer as usize) {
                record.newest = Some(link);
                record.is_dirty = true;
                record.fragments += 1;
                record.stored_bytes += u32::from(made.bytes);
                if made.is_below {
                    record.below_batch = Some(link);
                }
            }
            let stream = u64::from(made.bytes) - FRAGMENT_HEADER_BYTES as u64;
            // The estimates count a byte more an entry than its own bytes.
            self.packed.add(u64::from(made.bytes), stream);
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
            let buffer = first.take().map(BufferId).or_else(|| self.pool.fullest());
            let Some(buffer) = buffer else {
                break;
            };
            let record = self.record(buffer.0);
            let held = self.pool.held(buffer);
            let of_batch = record.batch.min(held.entries);
            let below = held.entries - of_batch;
            let most = if below > 0 { below } else { u32::MAX };
            let offset = start + at;
            let into = &mut self.page[offset + FRAGMENT_HEADER_BYTES..start + room];
            let taken = self.pool.take(buffer, most, into, &mut self.scratch);
            let taken = taken.map_err(|what| damaged(page, what))?;
            if taken.entries == 0 {
                break;
            }
            let bytes = FRAGMENT_HEADER_BYTES + taken.bytes;
            let last = self.made.iter().rev().find(|made| made.buffer == buffer.0);
            let before = last.map_or(record.newest, |made| {
                Some(Link { page, offset: made.offset, bytes: made.bytes })
            });
            self.made.push(Made {
                buffer: buffer.0,
                offset: offset as u16,
                bytes: bytes as u16,
                before,
                is_below: below > 0,
                entries: taken.entries,
            });
            at += bytes;
        }
        if self.made.is_empty() {
            return Err(damaged(page, "an entry does not fit a page of fragments"));
        }
        Ok(())
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

    /// Reads the fragment at `link`: the bytes of its stream in [`Buffers::read`], and the link to
    /// the one before it.
    ///
    /// # Errors
    /// It is damaged, or the chip failed.
    pub(super) fn read_fragment(
        &mut self,
        log: &mut PageLog<'_>,
        owner: Owner,
        link: Link,
        cause: Cause,
    ) -> Result<(core::ops::Range<usize>, Option<Link>)> {
        let pages = log.geometry().pages();
        self.pages.check_link(link, pages).map_err(|what| damaged(link.page, what))?;
        let bytes = &mut self.read[..usize::from(link.bytes)];
        log.read(link.page, u32::from(link.offset) - self.pages.first(), bytes, cause)?;
        let opened = open_fragment(owner, link, bytes);
        let (before, _) = opened.map_err(|what| damaged(link.page, what))?;
        // Fragments are written one after the other, so a chain can't run in a circle; a chain of
        // made-up links is as long as its record says.
        Ok((FRAGMENT_HEADER_BYTES..usize::from(link.bytes), before))
    }

    /// Searches buffer `number` for the newest entry of `key`, which `found` gets.
    ///
    /// # Errors
    /// The buffer is damaged, or the chip failed.
    pub(super) fn find<T>(
        &mut self,
        log: &mut PageLog<'_>,
        number: u32,
        key: &[u8],
        found: &mut dyn FnMut(&Pending<'_>) -> T,
    ) -> Result<Option<T>> {
        let held = self.pool.copy(BufferId(number), &mut self.scratch);
        let entry = stream::find(self.form, &self.scratch[..held], key);
        if let Some(entry) = entry.map_err(|what| damaged(Page(0), what))? {
            return Ok(Some(found(&entry)));
        }
        let record = self.record(number);
        let mut next = record.newest;
        let mut left = record.fragments;
        while let Some(link) = next.filter(|_| left > 0) {
            let (stream, before) = self.read_fragment(log, record.owner, link, Cause::Lookup)?;
            let entry = stream::find(self.form, &self.read[stream], key);
            if let Some(entry) = entry.map_err(|what| damaged(link.page, what))? {
                return Ok(Some(found(&entry)));
            }
            next = before;
            left -= 1;
        }
        Ok(None)
    }

    /// Hands every stream of buffer `number` to `take`, from the newest to the oldest.
    ///
    /// # Errors
    /// As [`Buffers::find`].
    pub(super) fn scan(
        &mut self,
        log: &mut PageLog<'_>,
        number: u32,
        take: &mut dyn FnMut(Form, &[u8]) -> stream::Checked,
    ) -> Result<()> {
        let held = self.pool.copy(BufferId(number), &mut self.scratch);
        if held > 0 {
            take(self.form, &self.scratch[..held]).map_err(|what| damaged(Page(0), what))?;
        }
        let record = self.record(number);
        let mut next = record.newest;
        let mut left = record.fragments;
        while let Some(link) = next.filter(|_| left > 0) {
            let (stream, before) = self.read_fragment(log, record.owner, link, Cause::Lookup)?;
            take(self.form, &self.read[stream]).map_err(|what| damaged(link.page, what))?;
            next = before;
            left -= 1;
        }
        Ok(())
    }

    /// Loads what of buffer `number` is in the pool, which has to be the newest.
    ///
    /// # Errors
    /// The buffer is damaged.
    pub(super) fn load_held(&self, number: u32, sorter: &mut Sorter) -> Result<()> {
        let held = self.pool.held(BufferId(number)).bytes;
        if held == 0 {
            return Ok(());
        }
        let full = "a buffer has more entries than its record says";
        let room = sorter.room(held).ok_or(damaged(Page(0), full))?;
        self.pool.copy(BufferId(number), room);
        sorter.load(held).map_err(|what| damaged(Page(0), what))?;
        Ok(())
    }

    /// Loads the chain of `owner` from `from` on.
    ///
    /// # Errors
    /// The buffer is damaged, or the chip failed.
    pub(super) fn load_chain(
        &mut self,
        log: &mut PageLog<'_>,
        owner: Owner,
        from: Option<Link>,
        sorter: &mut Sorter,
        cause: Cause,
    ) -> Result<()> {
        let mut next = from;
        while let Some(link) = next {
            let (stream, before) = self.read_fragment(log, owner, link, cause)?;
            let full = "a buffer has more entries than its record says";
            let room = sorter.room(stream.len()).ok_or(damaged(link.page, full))?;
            room.copy_from_slice(&self.read[stream.clone()]);
            sorter.load(stream.len()).map_err(|what| damaged(link.page, what))?;
            next = before;
        }
        Ok(())
    }

    /// Buffer `number` is empty from now on; its chain stays on flash.
    ///
    /// # Errors
    /// There are no more numbers for owners.
    pub(super) fn begin_anew(&mut self, log: &PageLog<'_>, number: u32) -> Result<()> {
        let record = self.record(number);
        self.pool.clear(BufferId(number));
        let owner = self.owner(log)?;
        self.set_record(number, BufferRecord::new(owner, record.nodes, record.leaves));
        Ok(())
    }

    /// Lists buffer `number` to be emptied.
    pub(super) fn list(&mut self, number: u32) {
        match self.listed.get_mut(number as usize) {
            Some(next) if *next == NOT_LISTED => *next = END,
            _ => return,
        }
        match self.listed.get_mut(self.last_listed as usize) {
            Some(last) => *last = number,
            None => self.first_listed = number,
        }
        self.last_listed = number;
    }

    /// True if buffer `number` is listed to be emptied.
    pub(super) fn is_listed(&self, number: u32) -> bool {
        self.listed.get(number as usize).is_some_and(|next| *next != NOT_LISTED)
    }

    /// The first buffer that is listed to be emptied, taken from the list.
    pub(super) fn take_listed(&mut self) -> Option<u32> {
        let number = self.first_listed;
        let next = self.listed.get_mut(number as usize)?;
        self.first_listed = *next;
        *next = NOT_LISTED;
        if self.first_listed == END {
            self.last_listed = END;
        }
        Some(number)
    }
}
