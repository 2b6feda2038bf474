//! Numbers of a few bytes each, in pieces: what the table stands in.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Sectors for which a piece of lists that is full gets room. It gives back what is beyond twice
/// as many.
pub(super) const SLACK: usize = 8;

pub(super) fn read_number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn write_number(into: &mut [u8], number: u32) {
    let bytes = number.to_le_bytes();
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into = byte);
}

/// Makes room for one more in `pieces`.
fn reserve<T>(pieces: &mut Vec<T>) {
    if pieces.len() == pieces.capacity() {
        pieces.reserve_exact(pieces.len() / 8 + 4);
    }
}

/// Numbers of a few bytes each, in pieces of one length, so that none is moved when more come.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) pieces: Vec<Box<[u8]>>,
    items: usize,
    pub(super) width: usize,
}

impl Numbers {
    pub(super) const fn new(items: usize, width: usize) -> Self {
        Numbers { pieces: Vec::new(), items, width }
    }

    pub(super) fn get(&self, item: usize) -> Option<u32> {
        let at = item % self.items * self.width;
        Some(read_number(self.pieces.get(item / self.items)?.get(at..at + self.width)?))
    }

    pub(super) fn set(&mut self, item: usize, number: u32) {
        let at = item % self.items * self.width;
        let piece = self.pieces.get_mut(item / self.items);
        if let Some(place) = piece.and_then(|piece| piece.get_mut(at..at + self.width)) {
            write_number(place, number);
        }
    }

    /// There is an item of this number; each byte of those that come is `byte`.
    pub(super) fn reach(&mut self, item: usize, byte: u8) {
        while self.pieces.len() <= item / self.items {
            reserve(&mut self.pieces);
            self.pieces.push(vec![byte; self.items * self.width].into_boxed_slice());
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let each = self.items * self.width;
        (self.pieces.len() * each + self.pieces.capacity() * size_of::<Box<[u8]>>()) as u64
    }
}

/// The lists of nodes, those of a piece one behind the other.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) width: usize,
    /// Bytes that the pieces have room for, now and at most so far.
    pub(super) held: u64,
    pub(super) held_most: u64,
}

impl Lists {
    /// No lists, of sectors whose numbers have so many bytes.
    pub(super) const fn new(width: usize) -> Self {
        Lists { pieces: Vec::new(), width, held: 0, held_most: 0 }
    }

    /// So many sectors at `place` of a piece.
    pub(super) fn get(&self, piece: usize, place: usize, length: usize) -> &[u8] {
        let range = place * self.width..(place + length) * self.width;
        self.pieces.get(piece).and_then(|bytes| bytes.get(range)).unwrap_or_default()
    }

    /// Puts a sector in at `place`, in front of what stands there.
    pub(super) fn insert(&mut self, piece: usize, place: usize, sector: u32) -> bool {
        let width = self.width;
        let Some(bytes) = self.pieces.get_mut(piece).filter(|it| it.len() >= place * width) else {
            return false;
        };
        let (before, end) = (bytes.capacity(), bytes.len());
        if before - end < width {
            bytes.reserve_exact(SLACK * width);
            self.held += (bytes.capacity() - before) as u64;
            self.held_most = self.held_most.max(self.held);
        }
        bytes.resize(end + width, 0);
        bytes.copy_within(place * width..end, (place + 1) * width);
        write_number(&mut bytes[place * width..(place + 1) * width], sector);
        true
    }

    /// Takes out the sector at `place`.
    pub(super) fn remove(&mut self, piece: usize, place: usize) {
        let width = self.width;
        let range = place * width..(place + 1) * width;
        let Some(bytes) = self.pieces.get_mut(piece).filter(|it| it.len() >= range.end) else {
            return;
        };
        bytes.drain(range);
        let before = bytes.capacity();
        if before - bytes.len() > 2 * SLACK * width {
            bytes.shrink_to(bytes.len() + SLACK * width);
            self.held -= before.saturating_sub(bytes.capacity()) as u64;
        }
    }

    pub(super) fn reach(&mut self, piece: usize) {
        while self.pieces.len() <= piece {
            reserve(&mut self.pieces);
            self.pieces.push(Vec::new());
        }
    }

    pub(super) fn own_bytes(&self) -> u64 {
        (self.pieces.capacity() * size_of::<Vec<u8>>()) as u64
    }
}
