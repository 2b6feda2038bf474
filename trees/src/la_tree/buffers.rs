//! Buffers: what is known of each, its chain of fragments on flash, and its entries in the pool.
//!
//! When the pool is full, a page of fragments is made at once: of the fullest buffer first, then of
//! the next fullest, until the page is full (sections 4.2, 4.3). So no page of fragments waits half
//! full, and the links are known when it is programmed.
//!
//! Invariant: the entries of a buffer are, from the newest on, those in the pool and those of the
//! chain from `newest` on; `entries` and `bytes` count both.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::buffer_pool::{BufferId, BufferPool, PoolSize};
use super::chunks::Chunked;
use super::cost::{Ratio, SHORT_ABOVE, Subtree};
use super::counters::BufferCounters;
use super::layout::{FRAGMENT_HEADER_BYTES, Owner, PageShape};
use super::policy::{Decision, Estimate, Policy, Registers};
use super::storage::Storage;
use super::stream::{Form, GROUP, Pending};
use super::table::BufferRecord;
use device::{Cause, Page};
use index::Result;

mod fences;
mod packing;
mod reading;
mod spilling;

pub(super) use fences::{Fences, Wanted};
use packing::Made;
pub(super) use reading::Chain;

/// Buffers that are to be emptied and are listed by their numbers; of more, their records tell.
const LISTED_MOST: usize = 64;

/// The sizes of the parts that do not grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferSizes {
    pub(super) pool: PoolSize,
    /// The most bytes of an entry in a stream.
    pub(super) entry_most: usize,
    /// The fewest.
    pub(super) entry_least: usize,
    /// Fragments that may be known of without reading them.
    pub(super) fences: usize,
}

/// All buffers of a tree.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) form: Form,
    pub(super) pages: PageShape,
    pub(super) records: Chunked<BufferRecord>,
    /// What ADAPT remembers of each: it is not stored, and begins anew.
    registers: Chunked<Registers>,
    /// The first buffers that are to be emptied, and whether there are more.
    listed: Vec<u32>,
    are_more_listed: bool,
    pub(super) pool: BufferPool,
    /// The page of fragments that is being made; between two of them it is free for other pages.
    pub(super) page: Box<[u8]>,
    made: Vec<Made>,
    /// A fragment that was read.
    pub(super) read: Box<[u8]>,
    fences: Fences,
    next: Vec<Page>,
    pub(super) next_owner: u32,
    /// Entries in the buffers of inner subtrees, and of leaf subtrees.
    pub(super) pending: [u64; 2],
    /// Bytes of them.
    pub(super) pending_bytes: u64,
    /// Bytes of pages of fragments that were written, of the bytes of entries that came.
    pub(super) stored: Ratio,
    /// Fragments that lookups read, and that ranges did, of those that they came to.
    read_of: [Ratio; 2],
    pub(super) counters: BufferCounters,
}

fn is_leaf(record: &BufferRecord) -> usize {
    usize::from(record.is_leaf())
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
        let made = made + Fences::bytes_of(sizes.fences, pages.node_bytes());
        page + u64::from(pages.room()) + (made + sizes.entry_most + 48 + 4 * LISTED_MOST) as u64
    }

    pub(super) fn new(form: Form, pages: PageShape, sizes: &BufferSizes) -> Self {
        let room = pages.room() as usize;
        let page_entries = Self::page_entries(&pages, sizes);
        Buffers {
            form,
            pages,
            records: Chunked::new(),
            registers: Chunked::new(),
            listed: Vec::with_capacity(LISTED_MOST),
            are_more_listed: false,
            pool: BufferPool::new(sizes.pool, form, page_entries, sizes.entry_most),
            page: vec![0xFF; pages.first() as usize + room].into_boxed_slice(),
            made: Vec::with_capacity(Self::made_most(&pages, sizes.entry_least)),
            read: vec![0; room].into_boxed_slice(),
            fences: Fences::new(sizes.fences, pages.node_bytes()),
            next: Vec::with_capacity(4),
            next_owner: 0,
            pending: [0; 2],
            pending_bytes: 0,
            stored: Ratio::default(),
            read_of: [Ratio::default(); 2],
            counters: BufferCounters::default(),
        }
    }

    /// Bytes of what is known of each buffer.
    pub(super) fn table_bytes(&self) -> u64 {
        self.records.memory_bytes() + self.registers.memory_bytes() + self.pool.table_bytes()
    }

    /// The most bytes that the table of the pool grows by with the buffers that there are: it knows
    /// one only when something waits in it, and then all before it.
    pub(super) fn bytes_to_come(&self) -> u64 {
        let all = BufferPool::table_bytes_most(self.pool.cells.is_small, self.records.len() as u64);
        all.saturating_sub(self.pool.table_bytes())
    }

    /// True if a pool of such a size has few cells.
    pub(super) fn has_small_pool(form: Form, pages: &PageShape, sizes: &BufferSizes) -> bool {
        BufferPool::is_small_with(sizes.pool, form, Self::page_entries(pages, sizes))
    }

    /// The most bytes of the tables of so many buffers, when something waits in each.
    pub(super) const fn table_bytes_most(is_small: bool, buffers: u64) -> u64 {
        Chunked::<BufferRecord>::bytes_most(buffers)
            + Chunked::<Registers>::bytes_most(buffers)
            + BufferPool::table_bytes_most(is_small, buffers)
    }

    /// Forgets every buffer.
    pub(super) fn forget(&mut self) {
        for number in 0..self.records.len() as u32 {
            self.pool.clear(BufferId(number));
        }
        self.records.clear();
        self.fences.clear();
        self.registers.clear();
        self.listed.clear();
        self.are_more_listed = false;
        self.pending = [0; 2];
        self.pending_bytes = 0;
    }

    /// The record of buffer `number`.
    pub(super) fn record(&self, number: u32) -> BufferRecord {
        let unknown = BufferRecord::new(Owner(0), 1, false);
        self.records.get(number as usize).copied().unwrap_or(unknown)
    }

    pub(super) fn record_mut(&mut self, number: u32) -> Option<&mut BufferRecord> {
        self.records.get_mut(number as usize)
    }

    /// Lets buffer `number` have `record`.
    pub(super) fn set_record(&mut self, number: u32, record: BufferRecord) {
        let length = number as usize + 1;
        self.records.grow(length, BufferRecord::new(Owner(0), 1, false));
        self.registers.grow(length, Registers::new());
        let Some(old) = self.records.get_mut(number as usize) else {
            return;
        };
        let pending = &mut self.pending[is_leaf(old)];
        *pending = pending.saturating_sub(u64::from(old.entries()));
        self.pending[is_leaf(&record)] += u64::from(record.entries());
        self.pending_bytes += u64::from(record.bytes);
        self.pending_bytes = self.pending_bytes.saturating_sub(u64::from(old.bytes));
        let is_listed = old.is_listed();
        *old = record;
        old.set_dirty(true);
        old.set_listed(is_listed);
    }

    /// A number for the owner of a chain, which none had before.
    fn owner(&mut self, log: &Storage<'_>) -> Result<Owner> {
        let full = store::Error::Full { pages: u64::from(log.usable_pages()) };
        let owner = Owner(self.next_owner);
        self.next_owner = self.next_owner.checked_add(1).ok_or(full)?;
        Ok(owner)
    }

    /// Buffer `number` is one of a new node from now on.
    pub(super) fn begin(&mut self, log: &Storage<'_>, number: u32, is_leaf: bool) -> Result<()> {
        let owner = self.owner(log)?;
        self.set_record(number, BufferRecord::new(owner, 1, is_leaf));
        Ok(())
    }

    /// Buffer `number` is no node's from now on.
    pub(super) fn end(&mut self, number: u32) {
        self.set_record(number, BufferRecord::new(Owner(0), 1, false));
        self.forget_registers(number);
    }

    /// The statistics of buffer `number`, for its costs.
    pub(super) fn subtree(&self, number: u32) -> Subtree {
        let record = self.record(number);
        Subtree {
            nodes: record.nodes(),
            leaves: record.leaves(),
            entries: record.entries(),
            bytes: record.bytes,
            fragments: record.fragments(),
            stored_bytes: self.stored_bytes(number, &record),
        }
    }

    /// Bytes of the fragments of a buffer, headers included: those of its entries that are not in
    /// the pool, and bytes of kinds, of which the last in a fragment is half empty.
    fn stored_bytes(&self, number: u32, record: &BufferRecord) -> u32 {
        let held = self.pool.held(BufferId(number));
        let in_pool = (held.bytes as u32).saturating_sub(held.entries.div_ceil(GROUP));
        let bytes = record.bytes.saturating_sub(record.entries()).saturating_sub(in_pool);
        let kinds = record.entries().saturating_sub(held.entries) / GROUP;
        let fragments = record.fragments();
        bytes + kinds + fragments * FRAGMENT_HEADER_BYTES as u32 + fragments / 2
    }

    /// Bytes of the fragments of all buffers.
    pub(super) fn fragment_bytes(&self) -> u64 {
        let each = |(number, record)| u64::from(self.stored_bytes(number, record));
        (0..).zip(self.records.iter()).filter(|(_, record)| record.fragments() > 0).map(each).sum()
    }

    /// Bytes of what buffers have in the pool, and `more` for each.
    pub(super) fn held_bytes(&self, more: u64) -> u64 {
        let held = |number| self.pool.held(BufferId(number));
        let all = (0..self.records.len() as u32).map(held).filter(|held| held.entries > 0);
        all.map(|held| held.bytes as u64 + more).sum()
    }

    /// Asks ADAPT about buffer `number`, which a lookup is to scan.
    pub(super) fn at_lookup(&mut self, policy: &Policy, number: u32, now: Estimate) -> Decision {
        let record = self.record(number);
        match self.registers.get_mut(number as usize).filter(|_| record.entries() > 0) {
            Some(registers) => {
                let decision = policy.at_lookup(registers, now);
                self.counters.registers[is_leaf(&record)] += u64::from(registers.is_new_group());
                decision
            }
            None => Decision::Keep,
        }
    }

    /// Asks whether buffer `number` is too large, after one or several entries came.
    pub(super) fn at_update(&mut self, policy: &Policy, number: u32) -> Decision {
        let bytes = self.record(number).bytes.into();
        match self.registers.get_mut(number as usize) {
            Some(registers) => policy.at_update(registers, bytes),
            None => Decision::Keep,
        }
    }

    /// ADAPT begins anew with buffer `number`.
    pub(super) fn forget_registers(&mut self, number: u32) {
        if let Some(registers) = self.registers.get_mut(number as usize) {
            *registers = Registers::new();
        }
    }

    /// Appends `entry` to buffer `number`; other entries may have to leave the pool for it.
    pub(super) fn append(
        &mut self,
        log: &mut Storage<'_>,
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
            record.add_entry(bytes as u32);
            self.pending[is_leaf(record)] += 1;
            self.pending_bytes += bytes as u64;
            self.stored.add(0, bytes as u64);
        }
        Ok(())
    }

    /// True if entries leave the pool for flash because it has no room for them.
    pub(super) fn is_pool_short(&self) -> bool {
        self.stored.times(SHORT_ABOVE) > 0
    }

    /// Writes all that buffer `number` has in the pool to flash.
    pub(super) fn evict(&mut self, log: &mut Storage<'_>, number: u32, cause: Cause) -> Result<()> {
        while self.pool.held(BufferId(number)).entries > 0 {
            self.write_page(log, Some(number), cause)?;
        }
        Ok(())
    }

    /// True if fragments are known, so that those of which nothing is wanted are not read.
    pub(super) const fn knows_fragments(&self) -> bool {
        self.fences.is_used()
    }

    /// Of a scan that costs so much, what a lookup, or a range, pays that passes by what is known.
    pub(super) fn paid_of(&self, scan: u64, is_range: bool) -> u64 {
        if self.fences.is_used() { self.read_of[usize::from(is_range)].times(scan) } else { scan }
    }

    /// Buffer `number` is empty from now on; its chain stays on flash.
    pub(super) fn begin_anew(&mut self, log: &Storage<'_>, number: u32) -> Result<()> {
        let record = self.record(number);
        self.pool.clear(BufferId(number));
        let owner = self.owner(log)?;
        self.set_record(number, BufferRecord::new(owner, record.nodes(), record.is_leaf()));
        self.forget_registers(number);
        Ok(())
    }

    /// Lists buffer `number` to be emptied.
    pub(super) fn list(&mut self, number: u32) {
        let Some(record) = self.records.get_mut(number as usize).filter(|it| !it.is_listed())
        else {
            return;
        };
        record.set_listed(true);
        if self.listed.len() < LISTED_MOST && !self.are_more_listed {
            self.listed.push(number);
        } else {
            self.are_more_listed = true;
        }
    }

    /// True if buffer `number` is listed to be emptied.
    pub(super) fn is_listed(&self, number: u32) -> bool {
        self.record(number).is_listed()
    }

    /// The first buffer that is listed to be emptied.
    pub(super) fn next_listed(&self) -> Option<u32> {
        self.listed.first().copied()
    }

    /// The first buffer that is listed to be emptied, taken from the list.
    pub(super) fn take_listed(&mut self) -> Option<u32> {
        let number = self.next_listed()?;
        self.listed.remove(0);
        if let Some(record) = self.record_mut(number) {
            record.set_listed(false);
        }
        if self.listed.is_empty() && self.are_more_listed {
            let listed = (0..).zip(self.records.iter()).filter(|(_, record)| record.is_listed());
            self.listed.extend(listed.map(|(number, _)| number).take(LISTED_MOST));
            self.are_more_listed = self.listed.len() == LISTED_MOST;
        }
        Some(number)
    }
}

#[cfg(test)]
pub(super) mod tests;
