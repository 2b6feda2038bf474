//! The node table (section 4.3): where each node stands, for nodes never stay where they were.
//! Beside it the records of the buffers.
//!
//! Both are in memory, and go to pages that the root record names at a checkpoint
//! (`checkpoint_state`). On a disk only nodes with buffers have a number here. A node without a
//! buffer takes four bytes; the table grows by [`CHUNK`] numbers at a time, so it never exists
//! twice. Nodes with buffers have a table of their own, whose numbers are those of their
//! [`BufferRecord`]s.
//!
//! Invariant: a number that was released is handed out again before a new one is.

use alloc::vec::Vec;
use core::ops::Range;

use device::Page;

use super::chunks::Chunked;
use super::layout::{Link, NodeId, Owner, Place};
use super::stream::Damage;

/// Numbers that the table grows by.
pub(super) const CHUNK: usize = 1024;

/// A node that is in memory only so far.
const UNWRITTEN: u32 = Place::MOST;

/// Marks a number that no node has; the other bits are the next such number.
const FREE: u32 = 0x8000_0000;

const NO_NUMBER: u32 = 0x7FFF_FFFF;

/// Where nodes stand.
#[derive(Clone, Debug)]
pub(super) struct NodeTable {
    /// Of each number that was ever handed out.
    places: Chunked<u32, CHUNK>,
    first_free: u32,
    free: u32,
}

impl NodeTable {
    pub(super) const fn new() -> Self {
        NodeTable { places: Chunked::new(), first_free: NO_NUMBER, free: 0 }
    }

    /// Nodes in the table.
    pub(super) const fn nodes(&self) -> u32 {
        self.high_water() - self.free
    }

    /// Numbers that were ever handed out: all are below.
    pub(super) const fn high_water(&self) -> u32 {
        self.places.len() as u32
    }

    /// Bytes of memory that the table takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.places.memory_bytes()
    }

    /// The most bytes that a table of so many numbers takes.
    pub(super) const fn bytes_most(numbers: u64) -> u64 {
        Chunked::<u32, CHUNK>::bytes_most(numbers)
    }

    /// A number for a new node; `None` if there is none left.
    pub(super) fn allocate(&mut self) -> Option<NodeId> {
        let number = self.first_free;
        if number != NO_NUMBER {
            self.first_free = *self.entry(number)? & !FREE;
            self.free -= 1;
            *self.entry(number)? = UNWRITTEN;
            return Some(NodeId(number));
        }
        let number = self.high_water();
        if number >= NO_NUMBER {
            return None;
        }
        self.places.grow(number as usize + 1, FREE | NO_NUMBER);
        *self.entry(number)? = UNWRITTEN;
        Some(NodeId(number))
    }

    /// Takes the number of a node that is no more; false if no node has it.
    #[must_use]
    pub(super) fn release(&mut self, id: NodeId) -> bool {
        let next = self.first_free;
        match self.entry(id.0) {
            Some(entry) if *entry & FREE == 0 => *entry = FREE | next,
            _ => return false,
        }
        self.first_free = id.0;
        self.free += 1;
        true
    }

    /// Where node `id` stands; `None` if it was not written yet, or there is no such node.
    pub(super) fn place(&self, id: NodeId) -> Option<Place> {
        self.value(id.0).filter(|value| *value < Place::MOST).map(Place)
    }

    /// Notes that node `id` stands at `place` now; false if there is no such node.
    #[must_use]
    pub(super) fn move_to(&mut self, id: NodeId, place: Place) -> bool {
        debug_assert!(place < Place(Place::MOST), "places are numbered below that");
        match self.entry(id.0) {
            Some(entry) if *entry & FREE == 0 => {
                *entry = place.0;
                true
            }
            _ => false,
        }
    }

    /// What is stored of `number`: its node's place, or that it has none.
    pub(super) fn stored(&self, number: u32) -> u32 {
        match self.value(number) {
            Some(value) if value < UNWRITTEN => value,
            _ => FREE,
        }
    }

    /// A table of which `numbers` were handed out, to be filled with what was
    /// [`stored`](NodeTable::stored) of each.
    pub(super) fn with_numbers(numbers: u32) -> Result<Self, Damage> {
        if numbers >= NO_NUMBER {
            return Err("the node table has more nodes than there can be");
        }
        let mut table = NodeTable::new();
        for _ in 0..numbers {
            table.allocate();
        }
        Ok(table)
    }

    /// Notes what was stored of `number`; `is_place` tells whether a node can be at a place.
    pub(super) fn fill(
        &mut self,
        number: u32,
        stored: u32,
        is_place: impl FnOnce(Place) -> bool,
    ) -> Result<(), Damage> {
        let is_known = stored < Place::MOST
            && is_place(Place(stored))
            && self.move_to(NodeId(number), Place(stored));
        if !is_known && stored != FREE {
            return Err("the node table names a place that does not exist");
        }
        Ok(())
    }

    /// Releases the numbers that no place was noted for, so that the lowest is handed out first.
    pub(super) fn release_unwritten(&mut self) {
        for number in (0..self.high_water()).rev() {
            let id = NodeId(number);
            if self.place(id).is_none() {
                let released = self.release(id);
                debug_assert!(released, "node {number} was in the table");
            }
        }
    }

    fn value(&self, number: u32) -> Option<u32> {
        self.places.get(number as usize).copied()
    }

    fn entry(&mut self, number: u32) -> Option<&mut u32> {
        self.places.get_mut(number as usize)
    }
}

/// A table of numbers, and the pages where its chunks stand on flash.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) numbers: NodeTable,
    /// The page of each chunk; `None` for one that changed since.
    pub(super) chunks: Vec<Option<Page>>,
    pub(super) chunk_numbers: u32,
}

impl Table {
    pub(super) fn new(chunk_numbers: u32) -> Self {
        let chunk_numbers = chunk_numbers.max(1);
        Table { numbers: NodeTable::new(), chunks: Vec::new(), chunk_numbers }
    }

    /// Notes that what is stored of `number` changed.
    #[inline]
    pub(super) fn changed(&mut self, number: u32) {
        let chunk = (number / self.chunk_numbers) as usize;
        if chunk >= self.chunks.len() {
            if chunk >= self.chunks.capacity() {
                self.chunks.reserve_exact(chunk + 1 - self.chunks.len() + chunk / 8 + 8);
            }
            self.chunks.resize(chunk + 1, None);
        }
        self.chunks[chunk] = None;
    }

    /// Chunks that numbers are in.
    pub(super) const fn chunks_in_use(&self) -> u32 {
        self.numbers.high_water().div_ceil(self.chunk_numbers)
    }

    /// The numbers of a chunk.
    pub(super) fn range(&self, chunk: u32) -> Range<u32> {
        let first = chunk.saturating_mul(self.chunk_numbers);
        first..first.saturating_add(self.chunk_numbers).min(self.numbers.high_water())
    }

    /// The page of a chunk that did not change since it was stored.
    pub(super) fn page_of(&self, chunk: u32) -> Option<Page> {
        self.chunks.get(chunk as usize).copied().flatten()
    }

    /// Notes that a chunk is stored in `page`.
    pub(super) fn stored(&mut self, chunk: u32, page: Page) {
        // It may never have been marked, if all of it was there before an opening.
        self.changed(chunk.saturating_mul(self.chunk_numbers));
        if let Some(known) = self.chunks.get_mut(chunk as usize) {
            *known = Some(page);
        }
    }

    /// Appends how many numbers there are, and where the chunks stand.
    pub(super) fn encode(&self, record: &mut Vec<u8>) {
        record.extend_from_slice(&self.numbers.high_water().to_le_bytes());
        for chunk in 0..self.chunks_in_use() {
            let page = self.page_of(chunk).unwrap_or(Page(u32::MAX));
            record.extend_from_slice(&page.0.to_le_bytes());
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.numbers.memory_bytes() + (self.chunks.capacity() * size_of::<Option<Page>>()) as u64
    }

    /// The most bytes that it takes with so many numbers, of which a chunk has `chunk_numbers`.
    pub(super) fn bytes_most(numbers: u64, chunk_numbers: u32) -> u64 {
        let chunks = numbers / u64::from(chunk_numbers.max(1));
        let places = (chunks + chunks / 8 + 9) * size_of::<Option<Page>>() as u64;
        NodeTable::bytes_most(numbers) + places
    }
}

/// In a record's count of entries, what it says besides.
const LEAF: u32 = 1 << 31;
const DIRTY: u32 = 1 << 28;
const LISTED: u32 = 1 << 27;
const ENTRIES: u32 = LISTED - 1;

/// What is known of a buffer and of the subtree below it, without reading flash: the statistics of
/// section 3, and the chain of fragments.
///
/// There is one for each node with a buffer, so it has 24 bytes. What follows from others is not
/// there: L from S, and the bytes on flash from those of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferRecord {
    /// Whose its fragments are.
    pub(super) owner: Owner,
    /// The newest fragment on flash, or none.
    newest: Link,
    /// Bytes of the entries, with one more an entry: so much room they take at most as streams.
    pub(super) bytes: u32,
    /// B: entries in the buffer, those in the pool included; and flags.
    counted: u32,
    /// Fragments on flash; the greatest number stands for more.
    fragments: u16,
    /// S: nodes of the subtree; the greatest number stands for more.
    nodes: u16,
}

const _: () = assert!(size_of::<BufferRecord>() == 24, "there are as many as nodes with buffers");

impl BufferRecord {
    /// Bytes of a record in what is stored.
    pub(super) const BYTES: usize = 24;

    /// The record of an empty buffer above a subtree of `nodes` nodes, a leaf subtree or not.
    pub(super) fn new(owner: Owner, nodes: u32, is_leaf: bool) -> Self {
        BufferRecord {
            owner,
            newest: Link::NONE,
            bytes: 0,
            counted: if is_leaf { LEAF } else { 0 },
            fragments: 0,
            nodes: stored_u16(nodes),
        }
    }

    /// B.
    pub(super) const fn entries(&self) -> u32 {
        self.counted & ENTRIES
    }

    /// True if its subtree is a leaf subtree.
    pub(super) const fn is_leaf(&self) -> bool {
        self.counted & LEAF != 0
    }

    /// True if it is listed to be emptied.
    pub(super) const fn is_listed(&self) -> bool {
        self.counted & LISTED != 0
    }

    pub(super) const fn set_listed(&mut self, is_listed: bool) {
        self.set(LISTED, is_listed);
    }

    /// True if it changed since it was stored.
    pub(super) const fn is_dirty(&self) -> bool {
        self.counted & DIRTY != 0
    }

    const fn set(&mut self, flag: u32, is_set: bool) {
        self.counted = self.counted & !flag | if is_set { flag } else { 0 };
    }

    pub(super) const fn set_dirty(&mut self, is_dirty: bool) {
        self.set(DIRTY, is_dirty);
    }

    /// The newest fragment on flash.
    pub(super) fn newest(&self) -> Option<Link> {
        self.newest.known()
    }

    /// True if it has fragments on flash.
    pub(super) fn is_chained(&self) -> bool {
        self.newest != Link::NONE
    }

    /// The most fragments that its chain has.
    pub(super) fn fragments_most(&self) -> u32 {
        if self.fragments == u16::MAX { u32::MAX } else { self.fragments.into() }
    }

    /// Fragments, or the greatest number that is counted.
    pub(super) fn fragments(&self) -> u32 {
        self.fragments.into()
    }

    /// Adds `fragments` fragments, of which `newest` is the newest of the chain.
    pub(super) fn add_fragments(&mut self, newest: Link, fragments: u32) {
        self.newest = newest;
        self.fragments = stored_u16(fragments.saturating_add(self.fragments.into()));
        self.set_dirty(true);
    }

    /// Adds an entry that takes at most `bytes` bytes in a stream.
    pub(super) fn add_entry(&mut self, bytes: u32) {
        let entries = self.entries().saturating_add(1).min(ENTRIES);
        self.counted = self.counted & !ENTRIES | entries;
        self.bytes = self.bytes.saturating_add(bytes);
        self.set_dirty(true);
    }

    /// Removes `entries` entries of `bytes` bytes.
    pub(super) fn remove_entries(&mut self, entries: u32, bytes: u32) {
        let left = self.entries().saturating_sub(entries);
        self.counted = self.counted & !ENTRIES | left;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.set_dirty(true);
    }

    /// S.
    pub(super) fn nodes(&self) -> u32 {
        self.nodes.into()
    }

    /// L, which is exact where leaf subtrees have two levels or one.
    pub(super) fn leaves(&self) -> u32 {
        if self.is_leaf() { self.nodes().saturating_sub(1).max(1) } else { 0 }
    }

    /// True if the subtree has `nodes` nodes, as far as they are counted.
    pub(super) fn has_nodes(&self, nodes: u32, is_leaf: bool) -> bool {
        self.is_leaf() == is_leaf && (self.nodes == u16::MAX || self.nodes() == nodes)
    }

    /// Adds `nodes` nodes to the subtree.
    pub(super) fn add_nodes(&mut self, nodes: i32) {
        if self.nodes < u16::MAX {
            self.nodes = stored_u16(self.nodes().saturating_add_signed(nodes).max(1));
        }
        self.set_dirty(true);
    }

    /// The same above a subtree of `nodes` nodes, a leaf subtree or not.
    pub(super) fn above(mut self, nodes: u32, is_leaf: bool) -> Self {
        self.nodes = stored_u16(nodes);
        self.set(LEAF, is_leaf);
        self
    }

    /// Appends the record to `into`.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&Link::encode(self.newest()));
        for number in [self.owner.0, self.bytes, self.counted & (LEAF | ENTRIES)] {
            into.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.fragments, self.nodes] {
            into.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads a record; also returns what follows it. Where its link leads is not checked.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Damage> {
        let cut: Damage = "the record of a buffer is cut off";
        let (newest, rest) = bytes.split_first_chunk().ok_or(cut)?;
        let (numbers, rest) = rest.split_first_chunk::<16>().ok_or(cut)?;
        let [o0, o1, o2, o3, b0, b1, b2, b3, c0, c1, c2, c3, f0, f1, n0, n1] = *numbers;
        let record = BufferRecord {
            owner: Owner(u32::from_le_bytes([o0, o1, o2, o3])),
            newest: Link::decode(*newest)?.unwrap_or(Link::NONE),
            bytes: u32::from_le_bytes([b0, b1, b2, b3]),
            counted: u32::from_le_bytes([c0, c1, c2, c3]),
            fragments: u16::from_le_bytes([f0, f1]),
            nodes: u16::from_le_bytes([n0, n1]),
        };
        if record.counted & !(LEAF | ENTRIES) != 0 || !record.is_consistent() {
            return Err("the record of a buffer contradicts itself");
        }
        Ok((record, rest))
    }

    fn is_consistent(&self) -> bool {
        self.is_chained() == (self.fragments > 0)
            && u32::from(self.fragments) <= self.entries()
            && self.entries() <= self.bytes
            && self.nodes > 0
    }
}

/// `number`, or the greatest that is counted.
fn stored_u16(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
