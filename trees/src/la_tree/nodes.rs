//! Nodes: where they are found and read, how they are changed, made and given back.
//!
//! A node that was changed stays in the cache until it leaves it. Then it is copied to the page of
//! nodes that is being filled, where it can still be found ([`writing`]); when that page is full,
//! it is programmed, and the node table says where its nodes stand (section 4.3). So it is on raw
//! flash; on a disk every node is a page of the page file, which has it in its own cache
//! (`pages`).
//!
//! Invariant, on raw flash: the node that is valid is in the cache, or else in the page being
//! filled, or else where the table says.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use device::{Cause, Page};
use store::node::{self, Codec};
use store::{EntryShape, PageLog, Width};

use super::cache::{CacheSize, NodeCache};
use super::counters::NodeReads;
use super::layout::{self, NodeId, PageShape, Place, damaged, verify_node};
use super::storage::Storage;
use super::table::Table;
use crate::btree::{CHILD_BYTES, Codecs};
use index::Result;

mod changes;
mod pages;
mod writing;

use writing::Waiting;

/// The numbers of buffers are below this.
pub(super) const BUFFERS_MOST: u32 = 0x00FF_FFFF;

/// Marks the number of a node with a buffer.
const BUFFERED: u32 = 0x8000_0000;

impl NodeId {
    /// The number of the node with the buffer numbered `number`.
    pub(super) const fn of_buffer(number: u32) -> Self {
        NodeId(number | BUFFERED)
    }

    /// The number of the node's buffer, if it has one.
    #[inline]
    pub(super) const fn buffer(self) -> Option<u32> {
        if self.0 & BUFFERED == 0 { None } else { Some(self.0 & !BUFFERED) }
    }
}

/// The nodes of a tree.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) codecs: Codecs,
    pub(super) pages: PageShape,
    pub(super) cache: NodeCache,
    /// Nodes without buffers, and those with.
    pub(super) plain: Table,
    pub(super) buffered: Table,
    /// The page of nodes that is being filled, and the nodes in it.
    page: Box<[u8]>,
    waiting: Vec<Waiting>,
    /// As long as a node.
    pub(super) scratch: Box<[u8]>,
    next: Vec<Page>,
    /// Nodes that were read from flash, and pages of nodes that were programmed.
    pub(super) reads: NodeReads,
    pub(super) programmed: u64,
    /// Of these pages, those that the estimates know of.
    pub(super) observed: u64,
}

impl Nodes {
    /// Bytes of memory beside the cache and the tables.
    pub(super) fn fixed_bytes(pages: &PageShape) -> u64 {
        let waiting = (Self::waiting_most(pages) * size_of::<Waiting>()) as u64;
        Self::page_bytes(pages) as u64 + waiting + u64::from(pages.node_bytes()) + 16
    }

    /// The most nodes in the page that is being filled; in place there is none.
    fn waiting_most(pages: &PageShape) -> usize {
        if pages.is_in_place() { 0 } else { 2 * pages.nodes_per_page() as usize }
    }

    /// Bytes of the page of nodes that is being filled: in place there is none.
    fn page_bytes(pages: &PageShape) -> usize {
        if pages.is_in_place() { 0 } else { (pages.first() + pages.room()) as usize }
    }

    /// The nodes of a new tree; `None` if they can't hold four entries.
    pub(super) fn new(
        shape: EntryShape,
        pages: PageShape,
        cache: CacheSize,
        chunks: (u32, u32),
    ) -> Option<Self> {
        let bytes = pages.node_bytes();
        let leaf = layout::codec(bytes, shape.key, shape.value)?;
        let inner = layout::codec(bytes, shape.key, Width::Fixed(CHILD_BYTES))?;
        Some(Nodes {
            codecs: Codecs { shape, leaf, inner, is_one_of_many: false },
            pages,
            cache: NodeCache::new(cache, bytes as usize),
            plain: Table::new(chunks.0),
            buffered: Table::new(chunks.1),
            page: vec![0xFF; Self::page_bytes(&pages)].into_boxed_slice(),
            waiting: Vec::with_capacity(Self::waiting_most(&pages)),
            scratch: vec![0; bytes as usize].into_boxed_slice(),
            next: Vec::with_capacity(4),
            reads: NodeReads::default(),
            programmed: 0,
            observed: 0,
        })
    }

    /// The codec of nodes at `level`.
    #[inline]
    pub(super) const fn at(&self, level: u8) -> Codec {
        *self.codecs.at(level)
    }

    /// Nodes that there are.
    pub(super) fn count(&self, log: &Storage<'_>) -> u64 {
        if let Storage::Disk(disk) = log {
            return disk.nodes;
        }
        u64::from(self.plain.numbers.nodes()) + u64::from(self.buffered.numbers.nodes())
    }

    /// Pages of the chunks of both tables.
    pub(super) fn chunk_pages(&self) -> u64 {
        (self.plain.chunks.len() + self.buffered.chunks.len()) as u64
    }

    pub(super) fn table_bytes(&self) -> u64 {
        self.plain.memory_bytes() + self.buffered.memory_bytes()
    }

    /// Numbers that nodes without buffers have, and with.
    pub(super) fn numbers(&self) -> (u64, u64) {
        let number = |table: &Table| u64::from(table.numbers.high_water());
        (number(&self.plain), number(&self.buffered))
    }

    fn table(&mut self, id: NodeId) -> (&mut Table, u32) {
        match id.buffer() {
            Some(number) => (&mut self.buffered, number),
            None => (&mut self.plain, id.0),
        }
    }

    /// A number that no node has.
    pub(super) fn number(&mut self, pages: u32, is_buffered: bool) -> Result<NodeId> {
        let table = if is_buffered { &mut self.buffered } else { &mut self.plain };
        let most = if is_buffered { BUFFERS_MOST } else { u32::MAX };
        let number = table.numbers.allocate().filter(|number| number.0 < most);
        let number = number.ok_or(store::Error::Full { pages: pages.into() })?;
        table.changed(number.0);
        Ok(if is_buffered { NodeId::of_buffer(number.0) } else { number })
    }

    /// Gives the number of `id` back.
    fn release(&mut self, id: NodeId) {
        let (table, number) = self.table(id);
        if table.numbers.release(NodeId(number)) {
            table.changed(number);
        }
    }

    /// Where the node stands on flash.
    pub(super) fn place(&self, id: NodeId) -> Option<Place> {
        match id.buffer() {
            Some(number) => self.buffered.numbers.place(NodeId(number)),
            None if self.pages.is_in_place() => Some(Place(id.0)),
            None => self.plain.numbers.place(id),
        }
    }

    /// Forgets all that is in memory, tables included.
    pub(super) fn forget(&mut self) {
        self.cache.clear_all();
        self.waiting.clear();
        self.plain = Table::new(self.plain.chunk_numbers);
        self.buffered = Table::new(self.buffered.chunk_numbers);
    }

    /// Node `id`, which is at `level`.
    #[inline]
    pub(super) fn node<'n>(
        &'n mut self,
        log: &'n mut Storage<'_>,
        id: NodeId,
        level: u8,
        cause: Cause,
    ) -> Result<&'n [u8]> {
        let log = match log {
            Storage::Disk(disk) => return self.page(disk, id, level, cause),
            Storage::Chip(log) => log,
        };
        let frame = self.frame(log, id, level, cause)?;
        Ok(self.cache.node(frame))
    }

    /// Chunks of tables that stand in old pages are to be written again.
    pub(super) fn forget_old_chunks(&mut self, log: &Storage<'_>) {
        for table in [&mut self.plain, &mut self.buffered] {
            for chunk in &mut table.chunks {
                *chunk = chunk.filter(|page| !log.is_old(*page));
            }
        }
    }

    /// Node `id`, whichever level it is at.
    pub(super) fn any<'n>(
        &'n mut self,
        log: &'n mut Storage<'_>,
        id: NodeId,
        cause: Cause,
    ) -> Result<&'n [u8]> {
        let log = match log {
            Storage::Disk(disk) => return self.page_any(disk, id, cause),
            Storage::Chip(log) => log,
        };
        let frame = self.frame_of_any(log, id, cause)?;
        Ok(self.cache.node(frame))
    }

    /// Two nodes of one level.
    pub(super) fn pair<'n>(
        &'n mut self,
        log: &'n mut Storage<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        cause: Cause,
    ) -> Result<(&'n [u8], &'n [u8])> {
        let log = match log {
            Storage::Disk(disk) => return self.pages_of_pair(disk, pair, level, cause),
            Storage::Chip(log) => log,
        };
        let (first, second) = self.frames(log, pair, level, cause)?;
        Ok((self.cache.node(first), self.cache.node(second)))
    }

    fn frames(
        &mut self,
        log: &mut PageLog<'_>,
        pair: (NodeId, NodeId),
        level: u8,
        cause: Cause,
    ) -> Result<(usize, usize)> {
        self.frame(log, pair.0, level, cause)?;
        let second = self.frame(log, pair.1, level, cause)?;
        Ok((self.frame(log, pair.0, level, cause)?, second))
    }

    /// A new node at `level`, empty.
    pub(super) fn create(
        &mut self,
        log: &mut Storage<'_>,
        is_buffered: bool,
        level: u8,
    ) -> Result<NodeId> {
        let log = match log {
            Storage::Disk(disk) => return self.create_page(disk, is_buffered, level),
            Storage::Chip(log) => log,
        };
        let frame = self.free_frame(log)?;
        let id = self.number(log.usable_pages(), is_buffered)?;
        self.cache.assign(frame, id);
        self.cache.set_dirty(frame, true);
        self.at(level).initialise(self.cache.node_mut(frame), level);
        Ok(id)
    }

    /// Gives the node back; it is no more.
    pub(super) fn free(&mut self, log: &mut Storage<'_>, id: NodeId) -> Result<()> {
        if let Storage::Disk(disk) = log {
            return self.free_page(disk, id);
        }
        if let Some(frame) = self.cache.find(id) {
            self.cache.clear(frame);
        }
        self.stop_waiting(id);
        self.release(id);
        Ok(())
    }

    /// Gives node `old` at `level` a number of its own without a buffer, and makes an empty node of
    /// the level above under its old number.
    pub(super) fn slide_under(
        &mut self,
        log: &mut Storage<'_>,
        old: NodeId,
        level: u8,
    ) -> Result<NodeId> {
        let log = match log {
            Storage::Disk(disk) => return self.slide_page_under(disk, old, level),
            Storage::Chip(log) => log,
        };
        self.frame(log, old, level, Cause::Update)?;
        let fresh = self.free_frame(log)?;
        let frame = self.frame(log, old, level, Cause::Update)?;
        let id = self.number(log.usable_pages(), false)?;
        self.stop_waiting(old);
        self.cache.rename(frame, id);
        self.cache.assign(fresh, old);
        self.cache.set_dirty(fresh, true);
        self.at(level + 1).initialise(self.cache.node_mut(fresh), level + 1);
        Ok(id)
    }

    /// The opposite: node `child` at `level` takes over the number of its parent, which is no more.
    pub(super) fn take_over(
        &mut self,
        log: &mut Storage<'_>,
        parent: NodeId,
        child: NodeId,
        level: u8,
    ) -> Result<()> {
        let log = match log {
            Storage::Disk(disk) => return self.page_takes_over(disk, parent, child),
            Storage::Chip(log) => log,
        };
        let frame = self.frame(log, child, level, Cause::Update)?;
        if let Some(old) = self.cache.find(parent) {
            self.cache.clear(old);
        }
        self.stop_waiting(parent);
        self.stop_waiting(child);
        self.cache.rename(frame, parent);
        self.release(child);
        Ok(())
    }

    /// The page that node `id` stands in, for reports.
    pub(super) fn page_of(&self, id: NodeId) -> Page {
        self.place(id).map_or(Page(0), |place| self.pages.locate(place).0)
    }

    /// The frame of node `id`, whichever level it is at.
    #[inline]
    fn frame_of_any(&mut self, log: &mut PageLog<'_>, id: NodeId, cause: Cause) -> Result<usize> {
        match self.cache.find(id) {
            Some(frame) => Ok(frame),
            None => self.load(log, id, cause),
        }
    }

    /// The frame of node `id`, which is at `level`.
    #[inline]
    fn frame(
        &mut self,
        log: &mut PageLog<'_>,
        id: NodeId,
        level: u8,
        cause: Cause,
    ) -> Result<usize> {
        let frame = self.frame_of_any(log, id, cause)?;
        let node = self.cache.node(frame);
        if node::level(node) != level {
            return Err(damaged(self.page_of(id), "a node is at another level"));
        }
        Ok(frame)
    }

    /// Reads node `id`, which is not in the cache, into a frame.
    fn load(&mut self, log: &mut PageLog<'_>, id: NodeId, cause: Cause) -> Result<usize> {
        let frame = self.free_frame(log)?;
        if let Some(slot) = self.slot_of(id) {
            let range = self.bytes_of(slot);
            let (used, rest) = self.cache.node_mut(frame).split_at_mut(range.len());
            device::copy(used, &self.page[range]);
            rest.fill(0);
        } else {
            let place = self.place(id);
            let place = place.ok_or(damaged(Page(0), "a node is named that does not exist"))?;
            let (page, offset, bytes) = self.pages.locate(place);
            let node = self.cache.node_mut(frame);
            let (used, rest) = node.split_at_mut(bytes);
            log.read(page, offset, used, cause)?;
            rest.fill(0);
            verify_node(id, place, used).map_err(|what| damaged(page, what))?;
            self.reads.count(node::level(node), bytes, cause == Cause::Lookup);
            let codec = self.codecs.at(node::level(node));
            codec
                .validate(node)
                .and_then(|()| match codec.kept_bytes(node) <= bytes {
                    true => Ok(()),
                    false => Err("a node has more entries than it was stored with"),
                })
                .map_err(|what| damaged(page, what))?;
        }
        self.cache.assign(frame, id);
        Ok(frame)
    }
}
