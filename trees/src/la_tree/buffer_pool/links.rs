//! The links between pieces: the next one, and a mark; two bytes each, or three in a large pool.

use super::super::chunks::Chunks;

/// The end of a list of pieces, and of cells.
pub(super) const NO_CELL: u32 = u32::MAX;

/// The most pieces with two bytes a link, and with three; one number stands for none.
const SHORT_MOST: u64 = 0x7FFF;
const LONG_MOST: u64 = 0x7F_FFFF;

/// The links of all pieces.
#[derive(Debug)]
pub(super) struct Links {
    /// The low 16 bits; without high bits the top one is the mark.
    low: Chunks<u16>,
    /// The mark, and seven bits more; empty in a small pool.
    high: Chunks<u8>,
    is_long: bool,
}

/// Pieces, and the bytes of the link of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) pieces: usize,
    pub(super) link_bytes: u64,
}

impl Links {
    /// How many pieces of `piece_bytes` bytes fit into `memory_bytes` with their links; `None` if
    /// they could not be numbered.
    pub(super) fn fit(memory_bytes: u64, piece_bytes: usize) -> Option<Fit> {
        let (short, long) =
            (memory_bytes / (piece_bytes as u64 + 2), memory_bytes / (piece_bytes as u64 + 3));
        let (pieces, link_bytes) =
            if long > SHORT_MOST { (long, 3) } else { (short.min(SHORT_MOST), 2) };
        (pieces <= LONG_MOST).then_some(Fit { pieces: pieces as usize, link_bytes })
    }

    /// No links yet, of `link_bytes` bytes each, in at most `most` chunks of two to the power of
    /// `shift`.
    pub(super) fn new(link_bytes: u64, shift: u32, most: usize) -> Self {
        let is_long = link_bytes > 2;
        let high = if is_long { most } else { 0 };
        Links { low: Chunks::new(shift, 1, most), high: Chunks::new(shift, 1, high), is_long }
    }

    /// Adds links of `pieces` pieces, each to the one behind it, the last one to `next`.
    pub(super) fn add(&mut self, pieces: usize, next: u32) {
        let first = self.low.len();
        self.low.add(pieces, 0);
        if self.is_long {
            self.high.add(pieces, 0);
        }
        for piece in first..first + pieces {
            let next = if piece + 1 == first + pieces { next } else { piece as u32 + 1 };
            self.set(piece as u32, next, false);
        }
    }

    /// Forgets the links of the last chunk of pieces.
    pub(super) fn remove(&mut self) {
        self.low.remove();
        if self.is_long {
            self.high.remove();
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.low.memory_bytes() + self.high.memory_bytes()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.low.len()
    }

    #[inline]
    fn raw(&self, piece: u32) -> u32 {
        let low = match self.low.get(piece as usize) {
            Some([low]) => u32::from(*low),
            _ => 0,
        };
        match self.high.get(piece as usize) {
            Some([high]) => u32::from(*high) << 16 | low,
            _ => (low & 0x8000) << 8 | low & 0x7FFF,
        }
    }

    /// The piece behind `piece`.
    #[inline]
    pub(super) fn next(&self, piece: u32) -> u32 {
        let next = self.raw(piece) & 0x7F_FFFF;
        let none = if self.is_long { LONG_MOST } else { SHORT_MOST };
        if u64::from(next) == none { NO_CELL } else { next }
    }

    /// The cell behind `cell`, where a piece has two to the power of `shift`.
    #[inline]
    pub(super) fn next_cell(&self, cell: u32, shift: u32) -> u32 {
        if (cell + 1) & ((1 << shift) - 1) != 0 {
            return cell + 1;
        }
        match self.next(cell >> shift) {
            NO_CELL => NO_CELL,
            piece => piece << shift,
        }
    }

    /// True if `piece` is marked.
    pub(super) fn is_marked(&self, piece: u32) -> bool {
        self.raw(piece) & 0x80_0000 != 0
    }

    /// Lets `next` follow `piece`, which is marked or not.
    pub(super) fn set(&mut self, piece: u32, next: u32, is_marked: bool) {
        let Some([low]) = self.low.get_mut(piece as usize) else {
            return;
        };
        match self.high.get_mut(piece as usize) {
            Some([high]) => {
                *low = next as u16;
                *high = (next >> 16) as u8 & 0x7F | u8::from(is_marked) << 7;
            }
            _ => *low = next as u16 & 0x7FFF | u16::from(is_marked) << 15,
        }
    }

    /// Lets `next` follow `piece`, which keeps its mark.
    pub(super) fn lead(&mut self, piece: u32, next: u32) {
        let is_marked = self.is_marked(piece);
        self.set(piece, next, is_marked);
    }
}
