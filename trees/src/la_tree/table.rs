//! The node table (section 4.3): where each node stands, for nodes never stay where they were.
//! Beside it the records of the buffers.
//!
//! Both are in memory, and go to pages that the root record names at a checkpoint (`settle`). On a
//! disk only nodes with buffers have a number here. A node without a buffer takes four bytes; the
//! table grows by [`CHUNK`] numbers at a time, so it never exists twice. Nodes with buffers have a
//! table of their own, whose numbers are those of their [`BufferRecord`]s.
//!
//! Invariant: a number that was released is handed out again before a new one is.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::layout::{Link, NodeId, Owner, Place};
use super::policy::Registers;
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
    chunks: Vec<Box<[u32]>>,
    /// Numbers that were ever handed out.
    high_water: u32,
    first_free: u32,
    free: u32,
}

impl NodeTable {
    pub(super) const fn new() -> Self {
        NodeTable { chunks: Vec::new(), high_water: 0, first_free: NO_NUMBER, free: 0 }
    }

    /// Nodes in the table.
    pub(super) const fn nodes(&self) -> u32 {
        self.high_water - self.free
    }

    /// Numbers that were ever handed out: all are below.
    pub(super) const fn high_water(&self) -> u32 {
        self.high_water
    }

    /// Bytes of memory that the table takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.chunks.len() * CHUNK * 4 + self.chunks.capacity() * size_of::<Box<[u32]>>()) as u64
    }

    /// The most bytes that a table of so many numbers takes.
    pub(super) fn bytes_most(numbers: u64) -> u64 {
        let chunks = numbers / CHUNK as u64 + 1;
        chunks * CHUNK as u64 * 4 + (2 * chunks + 4) * size_of::<Box<[u32]>>() as u64
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
        let number = self.high_water;
        if number >= NO_NUMBER {
            return None;
        }
        if number as usize == self.chunks.len() * CHUNK {
            self.chunks.push(vec![FREE | NO_NUMBER; CHUNK].into_boxed_slice());
        }
        self.high_water += 1;
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

    #[cfg(test)]
    /// True if a node has this number.
    pub(super) fn contains(&self, id: NodeId) -> bool {
        self.value(id.0).is_some_and(|value| value & FREE == 0)
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
    ///
    /// # Errors
    /// There can't be so many.
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

    /// Notes what was stored of `number`, with places below `places`.
    ///
    /// # Errors
    /// It is a place that does not exist.
    pub(super) fn fill(&mut self, number: u32, stored: u32, places: u32) -> Result<(), Damage> {
        let is_known = stored < places && self.move_to(NodeId(number), Place(stored));
        if !is_known && stored != FREE {
            return Err("the node table names a place that does not exist");
        }
        Ok(())
    }

    /// Releases the numbers that no place was noted for, so that the lowest is handed out first.
    pub(super) fn release_unwritten(&mut self) {
        for number in (0..self.high_water).rev() {
            let id = NodeId(number);
            if self.place(id).is_none() {
                let released = self.release(id);
                debug_assert!(released, "node {number} was in the table");
            }
        }
    }

    fn value(&self, number: u32) -> Option<u32> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?.get(number % CHUNK).copied()
    }

    fn entry(&mut self, number: u32) -> Option<&mut u32> {
        let number = number as usize;
        self.chunks.get_mut(number / CHUNK)?.get_mut(number % CHUNK)
    }
}

/// What is known of a buffer and of the subtree below it, without reading flash: the statistics of
/// section 3, the chain of fragments, and ADAPT's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferRecord {
    /// Whose its fragments are.
    pub(super) owner: Owner,
    /// The newest fragment on flash.
    pub(super) newest: Option<Link>,
    /// The newest fragment without an entry of the last batch Y: it and those before it are X.
    pub(super) below_batch: Option<Link>,
    /// Fragments on flash.
    pub(super) fragments: u32,
    /// Bytes of them, headers included.
    pub(super) stored_bytes: u32,
    /// B: entries in the buffer, those in the pool included.
    pub(super) entries: u32,
    /// Bytes of them, with one more an entry: so much room they take at most as streams.
    pub(super) bytes: u32,
    /// Entries of the last batch from above: Y.
    pub(super) batch: u32,
    /// True if Y came with its lowest key first.
    pub(super) batch_ascends: bool,
    /// S: nodes of the subtree.
    pub(super) nodes: u32,
    /// L: leaves among them.
    pub(super) leaves: u32,
    /// True if the fragments are also another buffer's, whose node was split from this one's: what
    /// of them lies outside of the node's keys is the other's.
    pub(super) shared: bool,
    /// True if it changed since it was stored.
    pub(super) is_dirty: bool,
    /// True if the node is less than a quarter full, and waits for buffers that are emptied; not
    /// stored.
    pub(super) is_lean: bool,
    /// What ADAPT remembers; not stored, for a checkpoint may begin anew.
    pub(super) registers: Registers,
}

impl BufferRecord {
    /// Bytes of a record in what is stored.
    pub(super) const BYTES: usize = 4 * 8 + 2 * Link::BYTES + 1;

    /// The record of an empty buffer above a subtree of `nodes` nodes, `leaves` of them leaves.
    pub(super) const fn new(owner: Owner, nodes: u32, leaves: u32) -> Self {
        BufferRecord {
            owner,
            newest: None,
            below_batch: None,
            fragments: 0,
            stored_bytes: 0,
            entries: 0,
            bytes: 0,
            batch: 0,
            batch_ascends: true,
            nodes,
            leaves,
            shared: false,
            is_dirty: false,
            is_lean: false,
            registers: Registers::new(),
        }
    }

    /// Appends the record to `into`.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        for link in [self.newest, self.below_batch] {
            into.extend_from_slice(&Link::encode(link));
        }
        for number in [
            self.owner.0,
            self.fragments,
            self.stored_bytes,
            self.entries,
            self.bytes,
            self.batch,
            self.nodes,
            self.leaves,
        ] {
            into.extend_from_slice(&number.to_le_bytes());
        }
        into.push(u8::from(self.batch_ascends) | u8::from(self.shared) << 1);
    }

    /// Reads a record; also returns what follows it. Where its links lead is not checked.
    ///
    /// # Errors
    /// It is cut off, or its numbers contradict each other.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Damage> {
        const SHORT: Damage = "the record of a buffer is cut off";
        let (newest, rest) = bytes.split_first_chunk().ok_or(SHORT)?;
        let (below, rest) = rest.split_first_chunk().ok_or(SHORT)?;
        let mut numbers = [0; 8];
        let (stored, rest) = rest.split_at_checked(4 * numbers.len()).ok_or(SHORT)?;
        for (number, stored) in numbers.iter_mut().zip(stored.chunks_exact(4)) {
            *number = stored.first_chunk().map_or(0, |stored| u32::from_le_bytes(*stored));
        }
        let (flags, rest) = rest.split_first().ok_or(SHORT)?;
        let [owner, fragments, stored_bytes, entries, bytes, batch, nodes, leaves] = numbers;
        let record = BufferRecord {
            newest: Link::decode(*newest)?,
            below_batch: Link::decode(*below)?,
            fragments,
            stored_bytes,
            entries,
            bytes,
            batch,
            batch_ascends: flags & 1 != 0,
            shared: flags & 2 != 0,
            ..BufferRecord::new(Owner(owner), nodes, leaves)
        };
        if *flags > 3 || !record.is_consistent() {
            return Err("the record of a buffer contradicts itself");
        }
        Ok((record, rest))
    }

    fn is_consistent(&self) -> bool {
        self.newest.is_some() == (self.fragments > 0)
            && (self.fragments == 0) == (self.stored_bytes == 0)
            && (self.newest.is_some() || self.below_batch.is_none())
            && (self.newest.is_some() || !self.shared)
            && self.batch <= self.entries
            && self.entries <= self.bytes
            && self.nodes > 0
            && self.leaves <= self.nodes
    }
}

/// A table that grows without ever existing twice.
#[derive(Clone, Debug)]
pub(super) struct Chunked<T> {
    chunks: Vec<Box<[T]>>,
    length: usize,
}

impl<T: Copy> Chunked<T> {
    /// Items that the table grows by.
    const ITEMS: usize = 64;

    pub(super) const fn new() -> Self {
        Chunked { chunks: Vec::new(), length: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Bytes of memory that the table takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let items = self.chunks.len() * Self::ITEMS * size_of::<T>();
        (items + self.chunks.capacity() * size_of::<Box<[T]>>()) as u64
    }

    /// The most bytes that a table of so many items takes.
    pub(super) const fn bytes_most(items: u64) -> u64 {
        let chunks = items / Self::ITEMS as u64 + 1;
        let items = chunks * (Self::ITEMS * size_of::<T>()) as u64;
        items + (2 * chunks + 4) * size_of::<Box<[T]>>() as u64
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / Self::ITEMS)?.get(at % Self::ITEMS)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at / Self::ITEMS)?.get_mut(at % Self::ITEMS)
    }

    /// Makes the table at least `length` items long; further items are `item`.
    pub(super) fn grow(&mut self, length: usize, item: T) {
        while self.chunks.len() * Self::ITEMS < length {
            self.chunks.push(vec![item; Self::ITEMS].into_boxed_slice());
        }
        self.length = self.length.max(length);
    }

    /// Forgets all items.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.length = 0;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().take(self.length)
    }
}

#[cfg(test)]
mod tests;
