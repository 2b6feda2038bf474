//! Cutting requests into pieces that can be transferred as one.

use crate::aligned::is_aligned;

/// The most bytes of a piece that goes straight between the caller's memory and the file.
const STRAIGHT_MOST: usize = 1 << 20;

/// One transfer: `length` bytes from place `offset` of the file on.
#[derive(Debug)]
pub(crate) struct Piece<'b> {
    pub(crate) offset: u64,
    pub(crate) length: usize,
    pub(crate) way: Way<'b>,
}

/// Where the bytes of a piece come from or go to.
#[derive(Debug)]
pub(crate) enum Way<'b> {
    /// Into the caller's memory.
    Read(&'b mut [u8]),
    /// Into a bounce buffer; what follows its first bytes is copied to the caller's memory.
    ReadBounced { skip: usize, into: &'b mut [u8] },
    /// Out of the caller's memory.
    Write(&'b [u8]),
    /// Out of a bounce buffer, into which it is copied.
    WriteBounced(&'b [u8]),
}

impl Way<'_> {
    pub(super) const fn is_write(&self) -> bool {
        matches!(self, Way::Write(_) | Way::WriteBounced(_))
    }

    /// Fills the bounce buffer before the transfer.
    pub(super) fn prepare(&self, bounce: &mut [u8]) {
        if let Way::WriteBounced(from) = self {
            bounce[..from.len()].copy_from_slice(from);
        }
    }

    /// Copies out of the bounce buffer after the transfer.
    pub(super) fn conclude(&mut self, bounce: &[u8]) {
        if let Way::ReadBounced { skip, into } = self {
            into.copy_from_slice(&bounce[*skip..*skip + into.len()]);
        }
    }
}

/// What pieces have to look like; all three are powers of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cutter {
    /// What places in the file and lengths are multiples of.
    pub(super) unit: usize,
    /// What addresses in memory are multiples of.
    pub(super) memory: usize,
    /// Bytes of a bounce buffer.
    pub(super) bounce: usize,
}

impl Cutter {
    /// Cuts a read of `into.len()` bytes from byte `offset` of the file on.
    pub(crate) fn read<'b>(
        self,
        mut offset: u64,
        mut into: &'b mut [u8],
    ) -> impl Iterator<Item = Piece<'b>> {
        std::iter::from_fn(move || {
            let part = self.part(offset, into)?;
            let (now, later) = std::mem::take(&mut into).split_at_mut(part.bytes);
            into = later;
            let start = offset - part.skip as u64;
            offset += part.bytes as u64;
            let way = match part.straight {
                true => Way::Read(now),
                false => Way::ReadBounced { skip: part.skip, into: now },
            };
            let length = (part.skip + part.bytes).next_multiple_of(self.unit);
            Some(Piece { offset: start, length, way })
        })
    }

    /// Cuts a write of whole units at byte `offset` of the file.
    pub(crate) fn write<'b>(
        self,
        mut offset: u64,
        mut from: &'b [u8],
    ) -> impl Iterator<Item = Piece<'b>> {
        std::iter::from_fn(move || {
            let part = self.part(offset, from)?;
            let (now, later) = from.split_at(part.bytes);
            from = later;
            let start = offset;
            offset += part.bytes as u64;
            let way = if part.straight { Way::Write(now) } else { Way::WriteBounced(now) };
            Some(Piece { offset: start, length: part.bytes, way })
        })
    }

    /// The first piece of what is left of a request; nothing if nothing is left.
    fn part(self, offset: u64, memory: &[u8]) -> Option<Part> {
        if memory.is_empty() {
            return None;
        }
        let skip = (offset & (self.unit as u64 - 1)) as usize;
        let whole = memory.len() & !(self.unit - 1);
        if skip == 0 && whole > 0 && is_aligned(memory, self.memory) {
            return Some(Part { skip, bytes: whole.min(STRAIGHT_MOST), straight: true });
        }
        Some(Part { skip, bytes: memory.len().min(self.bounce - skip), straight: false })
    }
}

/// The first bytes of a request, and how they go.
struct Part {
    /// Bytes before them that must be transferred with them.
    skip: usize,
    bytes: usize,
    straight: bool,
}

#[cfg(test)]
mod tests {
    use super::{Cutter, STRAIGHT_MOST, Way};
    use crate::aligned::AlignedBuffer;

    const CUTTER: Cutter = Cutter { unit: 512, memory: 64, bounce: 4096 };

    /// Offset, length and straightness of the pieces of a read.
    fn cut(offset: u64, into: &mut [u8]) -> Vec<(u64, usize, bool)> {
        let pieces = CUTTER.read(offset, into);
        let row = |piece: super::Piece<'_>| {
            (piece.offset, piece.length, matches!(piece.way, Way::Read(_)))
        };
        pieces.map(row).collect()
    }

    #[test]
    fn an_aligned_request_is_one_straight_piece() {
        let mut buffer = AlignedBuffer::new(3 * STRAIGHT_MOST, 4096);
        let memory = buffer.as_mut();
        assert_eq!(cut(512, &mut memory[..8192]), [(512, 8192, true)]);
        let most = STRAIGHT_MOST;
        assert_eq!(
            cut(0, &mut memory[..2 * most + 512]),
            [(0, most, true), (most as u64, most, true), (2 * most as u64, 512, true)]
        );
    }

    #[test]
    fn the_end_of_a_request_that_is_no_whole_unit_is_bounced() {
        let mut buffer = AlignedBuffer::new(8192, 4096);
        assert_eq!(
            cut(1024, &mut buffer.as_mut()[..1025]),
            [(1024, 1024, true), (2048, 512, false)]
        );
        assert_eq!(cut(1024, &mut buffer.as_mut()[..7]), [(1024, 512, false)]);
        assert_eq!(cut(1024, &mut []), []);
    }

    #[test]
    fn a_request_at_a_crooked_place_or_address_is_bounced() {
        let mut buffer = AlignedBuffer::new(8192, 4096);
        assert_eq!(cut(1000, &mut buffer.as_mut()[..512]), [(512, 1024, false)]);
        assert_eq!(
            cut(1000, &mut buffer.as_mut()[1..5001]),
            [(512, 4096, false), (4608, 1536, false)]
        );
        let pieces: Vec<_> = CUTTER.write(512, &buffer.as_mut()[8..8 + 4608]).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|piece| matches!(piece.way, Way::WriteBounced(_))));
        assert_eq!((pieces[1].offset, pieces[1].length), (4608, 512));
    }
}
