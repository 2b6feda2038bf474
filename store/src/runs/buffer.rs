//! Memory that a disk can read into and write from without a copy.

use alloc::vec;
use alloc::vec::Vec;

/// Bytes that begin at a multiple of an alignment.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    pub(super) fn new(length: usize, alignment: u32) -> Self {
        let beside = (alignment as usize).max(1) - 1;
        let bytes = vec![0; length + beside];
        let start = bytes.as_ptr().align_offset(beside + 1).min(beside);
        Buffer { bytes, start, length }
    }

    pub(super) fn all(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    pub(super) fn all_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Bytes of memory that it takes.
    pub(super) const fn memory(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of memory that a buffer of `length` bytes takes.
    pub(super) const fn memory_of(length: usize, alignment: u32) -> u64 {
        let alignment = if alignment == 0 { 1 } else { alignment };
        length as u64 + alignment as u64 - 1
    }
}
