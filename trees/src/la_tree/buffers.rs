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
use store::PageKind;

use super::buffer_pool::{BufferId, BufferPool, PoolSize};
use super::cost::{Ratio, Subtree};
use super::counters::BufferCounters;
use super::emptying::Order;
use super::ground::Ground;
use super::layout::{FRAGMENT_HEADER_BYTES, Owner, PageShape};
use super::stream::{Form, Pending};
use super::table::{BufferRecord, Chunked};
use index::Result;

mod packing;
mod reading;

use packing::Made;

/// The pool is short of room if more than one in so many of the bytes that come leaves it.
const SHORT_ABOVE: u64 = 64;

/// The kind of pages of fragments.
pub(super) const FRAGMENTS: PageKind = PageKind::Tree(1);

/// The end of the list of buffers that are to be emptied, and the mark of one that is not in it.
const END: u32 = u32::MAX;
const NOT_LISTED: u32 = u32::MAX - 1;

/// The sizes of the parts that do not grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSizes {
    pub(super) pool: PoolSize,
    /// The most bytes of a buffer that is sorted as a whole.
    pub(super) whole_bytes: u32,
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
    next: Vec<Page>,
    /// The most bytes of a buffer that is sorted as a whole.
    whole_bytes: u32,
    pub(super) next_owner: u32,
    /// True while the chain that is loaded is let go.
    lets_go: bool,
    /// Entries in the buffers of inner subtrees, and of leaf subtrees.
    pub(super) pending: [u64; 2],
    /// Bytes of them.
    pub(super) pending_bytes: u64,
    /// Bytes of pages of fragments that were written, of the bytes of entries that came.
    pub(super) stored: Ratio,
    pub(super) counters: BufferCounters,
}

fn is_leaf(record: &BufferRecord) -> usize {
    usize::from(record.leaves > 0)
}

impl Buffers {
    /// The most fragments in a page.
    fn made_most(pages: &PageShape, entry_least: usize) -> usize {
        pages.room() as usize / (FRAGMENT_HEADER_BYTES + 1 + entry_least)
    }

    /// The most entries in a page.
    fn page_entries(pages: &PageShape, sizes: &BufferSizes) -> u32 {
        pages.room() / sizes.entry_least.max(1) as u32
    }

    /// The least memory of a pool: its lists, and room for a page's worth of entries.
    pub(super) fn pool_least(pages: &PageShape, sizes: &BufferSizes) -> u64 {
        let entries = pages.room() as usize + 4 * sizes.entry_most + 64;
        BufferPool::lists_bytes(Self::page_entries(pages, sizes)) + entries as u64
    }

    /// Bytes of memory beside the pool and the tables.
    pub(super) fn fixed_bytes(pages: &PageShape, sizes: &BufferSizes) -> u64 {
        let page = u64::from(pages.first() + pages.room());
        let made = Self::made_most(pages, sizes.entry_least) * size_of::<Made>();
        page + u64::from(pages.room()) + (made + sizes.entry_most + 48) as u64
    }

    pub(super) fn new(form: Form, pages: PageShape, sizes: &BufferSizes) -> Self {
        let room = pages.room() as usize;
        let page_entries = Self::page_entries(&pages, sizes);
        Buffers {
            form,
            pages,
            records: Chunked::new(),
            listed: Chunked::new(),
            first_listed: END,
            last_listed: END,
            pool: BufferPool::new(sizes.pool, form, page_entries, sizes.entry_most),
            page: vec![0xFF; pages.first() as usize + room].into_boxed_slice(),
            made: Vec::with_capacity(Self::made_most(&pages, sizes.entry_least)),
            read: vec![0; room].into_boxed_slice(),
            next: Vec::with_capacity(4),
            whole_bytes: sizes.whole_bytes,
            next_owner: 0,
            lets_go: false,
            pending: [0; 2],
            pending_bytes: 0,
            stored: Ratio::default(),
            counters: BufferCounters::default(),
        }
    }

    /// Bytes of what is known of each buffer.
    pub(super) fn table_bytes(&self) -> u64 {
        self.records.memory_bytes() + self.listed.memory_bytes() + self.pool.table_bytes()
    }

    /// The most bytes that the table of the pool grows by with the buffers that there are: it knows
    /// one only when something waits in it, and then all before it.
    pub(super) fn bytes_to_come(&self) -> u64 {
        let all = BufferPool::table_bytes_most(self.records.len() as u64);
        all.saturating_sub(self.pool.table_bytes())
    }

    /// The most bytes of the tables of so many buffers, when something waits in each.
    pub(super) const fn table_bytes_most(buffers: u64) -> u64 {
        Chunked::<BufferRecord>::bytes_most(buffers)
            + Chunked::<u32>::bytes_most(buffers)
            + BufferPool::table_bytes_most(buffers)
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
        self.pending_bytes = 0;
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
        let pending = &mut self.pending[is_leaf(old)];
        *pending = pending.saturating_sub(u64::from(old.entries));
        self.pending[is_leaf(&record)] += u64::from(record.entries);
        self.pending_bytes += u64::from(record.bytes);
        self.pending_bytes = self.pending_bytes.saturating_sub(u64::from(old.bytes));
        *old = BufferRecord { is_dirty: true, ..record };
    }

    /// A number for the owner of a chain, which none had before.
    ///
    /// # Errors
    /// There are no more.
    pub(super) fn owner(&mut self, log: &Ground<'_>) -> Result<Owner> {
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

    /// Appends `entry`, which is of no batch, to buffer `number`; other entries may have to leave
    /// the pool for it.
    ///
    /// # Errors
    /// No page is free, or the chip failed.
    pub(super) fn append(
        &mut self,
        log: &mut Ground<'_>,
        number: u32,
        entry: &Pending<'_>,
        cause: Cause,
    ) -> Result<()> {
        // A buffer that became the root's may have got batches before: all of them is X now.
        if let Some(record) = self.record_mut(number).filter(|record| record.batch > 0) {
            record.batch = 0;
            record.below_batch = record.newest;
        }
        self.push(log, number, entry, cause)
    }

    fn push(
        &mut self,
        log: &mut Ground<'_>,
        number: u32,
        entry: &Pending<'_>,
        cause: Cause,
    ) -> Result<()> {
        let bytes = self.form.bytes(entry) + 1;
        let buffer = BufferId(number);
        while !self.pool.append(buffer, entry) {
            self.write_page(log, None, cause)?;
        }
        if let Some(record) = self.records.get_mut(number as usize) {
            record.entries = record.entries.saturating_add(1);
            record.bytes = record.bytes.saturating_add(bytes as u32);
            record.is_dirty = true;
            self.pending[is_leaf(record)] += 1;
            self.pending_bytes += bytes as u64;
            self.stored.add(0, bytes as u64);
        }
        Ok(())
    }

    /// Appends an entry of the batch Y that comes from above; it is the `first` of it, or not.
    ///
    /// # Errors
    /// As [`Buffers::append`].
    pub(super) fn append_to_batch(
        &mut self,
        log: &mut Ground<'_>,
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
        self.push(log, number, entry, cause)?;
        if let Some(record) = self.records.get_mut(number as usize) {
            record.batch += 1;
        }
        Ok(())
    }

    /// True if entries leave the pool for flash because it has no room for them.
    pub(super) fn is_pool_short(&self) -> bool {
        self.stored.times(SHORT_ABOVE) > 0
    }

    /// Writes all that buffer `number` has in the pool to flash.
    ///
    /// # Errors
    /// As [`Buffers::append`].
    pub(super) fn evict(&mut self, log: &mut Ground<'_>, number: u32, cause: Cause) -> Result<()> {
        while self.pool.held(BufferId(number)).entries > 0 {
            self.write_page(log, Some(number), cause)?;
        }
        Ok(())
    }

    /// Buffer `number` is empty from now on; its chain stays on flash.
    ///
    /// # Errors
    /// There are no more numbers for owners.
    pub(super) fn begin_anew(&mut self, log: &Ground<'_>, number: u32) -> Result<()> {
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

    /// The first buffer that is listed to be emptied.
    pub(super) fn next_listed(&self) -> Option<u32> {
        Some(self.first_listed).filter(|number| *number != END)
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
