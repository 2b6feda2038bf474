//! Memory in chunks of equal size, which can be given back one by one.
//!
//! A part of a tree whose memory never changes has one chunk, of whatever length. Tables grow by
//! chunks ([`Chunked`]) and never shrink.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes that a chunk takes beside its items.
pub(super) const CHUNK_OVERHEAD: u64 = size_of::<Box<[u8]>>() as u64;

/// Items of `width` values each.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Box<[T]>>,
    /// A chunk has two to the power of this items.
    shift: u32,
    width: usize,
}

impl<T: Copy> Chunks<T> {
    /// Room for `most` chunks of two to the power of `shift` items; none is there yet.
    pub(super) fn new(shift: u32, width: usize, most: usize) -> Self {
        Chunks { chunks: Vec::with_capacity(most), shift, width: width.max(1) }
    }

    /// Items that there are.
    pub(super) fn len(&self) -> usize {
        self.chunks
            .last()
            .map_or(0, |last| ((self.chunks.len() - 1) << self.shift) + last.len() / self.width)
    }

    /// The first item of the last chunk.
    pub(super) const fn last_chunk(&self) -> usize {
        self.chunks.len().saturating_sub(1) << self.shift
    }

    /// Adds a chunk of `items` items, all of whose values are `value`; a chunk behind which others
    /// follow is full.
    pub(super) fn add(&mut self, items: usize, value: T) {
        debug_assert!(items <= 1 << self.shift, "the items of a chunk are numbered");
        self.chunks.push(vec![value; items * self.width].into_boxed_slice());
    }

    /// Gives the last chunk back.
    pub(super) fn remove(&mut self) {
        self.chunks.pop();
    }

    #[inline]
    pub(super) fn get(&self, item: usize) -> Option<&[T]> {
        let at = (item & ((1 << self.shift) - 1)) * self.width;
        self.chunks.get(item >> self.shift)?.get(at..at + self.width)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, item: usize) -> Option<&mut [T]> {
        let at = (item & ((1 << self.shift) - 1)) * self.width;
        self.chunks.get_mut(item >> self.shift)?.get_mut(at..at + self.width)
    }

    /// Two different items at once; `None` if one of them does not exist.
    pub(super) fn two_mut(&mut self, one: usize, other: usize) -> Option<(&mut [T], &mut [T])> {
        let (mask, width) = ((1 << self.shift) - 1, self.width);
        let range = |item: usize| (item & mask) * width..((item & mask) + 1) * width;
        let chunks = [one >> self.shift, other >> self.shift];
        if chunks[0] == chunks[1] {
            let chunk = self.chunks.get_mut(chunks[0])?;
            let [one, other] = chunk.get_disjoint_mut([range(one), range(other)]).ok()?;
            return Some((one, other));
        }
        let [first, second] = self.chunks.get_disjoint_mut(chunks).ok()?;
        Some((first.get_mut(range(one))?, second.get_mut(range(other))?))
    }

    /// Bytes of memory taken, those of chunks that may come included.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.len() * self.width * size_of::<T>()) as u64
            + self.chunks.capacity() as u64 * CHUNK_OVERHEAD
    }
}

/// A table that grows by so many items at a time, and so never exists twice.
#[derive(Clone, Debug)]
pub(super) struct Chunked<T, const ITEMS: usize = 64> {
    chunks: Vec<Box<[T]>>,
    length: usize,
}

impl<T: Copy, const ITEMS: usize> Chunked<T, ITEMS> {
    pub(super) const fn new() -> Self {
        Chunked { chunks: Vec::new(), length: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Bytes of memory that the table takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let items = self.chunks.len() * ITEMS * size_of::<T>();
        (items + self.chunks.capacity() * size_of::<Box<[T]>>()) as u64
    }

    /// The most bytes that a table of so many items takes.
    pub(super) const fn bytes_most(items: u64) -> u64 {
        let chunks = items / ITEMS as u64 + 1;
        let items = chunks * (ITEMS * size_of::<T>()) as u64;
        items + (2 * chunks + 4) * size_of::<Box<[T]>>() as u64
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / ITEMS)?.get(at % ITEMS)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks.get_mut(at / ITEMS)?.get_mut(at % ITEMS)
    }

    /// Makes the table at least `length` items long; further items are `item`.
    pub(super) fn grow(&mut self, length: usize, item: T) {
        while self.chunks.len() * ITEMS < length {
            self.chunks.push(vec![item; ITEMS].into_boxed_slice());
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
