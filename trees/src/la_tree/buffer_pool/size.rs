//! How much memory a pool has, and how its pieces are laid out in it.

use super::super::chunks::CHUNK_OVERHEAD;
use super::links::{Fit, Links};

/// The memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct PoolSize {
    /// Bytes at the start, and at most.
    pub(in super::super) bytes: u64,
    pub(in super::super) most: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// So many bytes, always.
    Fixed,
    /// So many bytes, always, for buffers that have many entries each, if there is room for many.
    InPieces,
    /// Chunks of about `unit` bytes come and go.
    Shared { unit: u64 },
}

impl PoolSize {
    pub(in super::super) const fn fixed(bytes: u64) -> Self {
        PoolSize { bytes, most: bytes, kind: Kind::Fixed }
    }

    pub(in super::super) const fn in_pieces(bytes: u64) -> Self {
        PoolSize { bytes, most: bytes, kind: Kind::InPieces }
    }

    pub(in super::super) const fn shared(bytes: u64, most: u64, unit: u64) -> Self {
        PoolSize { bytes, most, kind: Kind::Shared { unit } }
    }

    /// The same size with `bytes` bytes less at the start.
    pub(super) const fn less(self, bytes: u64) -> Self {
        PoolSize { bytes: self.bytes.saturating_sub(bytes), ..self }
    }

    /// The same size, in pieces of several cells only where so many cells of `cell_bytes` bytes
    /// have room that each would take a long link.
    pub(super) fn settled(self, cell_bytes: usize) -> Self {
        let is_small = Links::fit(self.bytes, cell_bytes).is_some_and(|fit| fit.link_bytes == 2);
        match self.kind {
            Kind::InPieces if is_small => PoolSize { kind: Kind::Fixed, ..self },
            _ => self,
        }
    }

    /// How pieces of `piece_bytes` bytes, which may be single cells, are laid out; `None` if they
    /// could not be numbered.
    pub(super) fn lay_out(self, piece_bytes: usize) -> Option<Layout> {
        let PoolSize { bytes, most, kind } = self;
        match kind {
            Kind::Fixed | Kind::InPieces => {
                // The pieces, the two parts of links, and the spans.
                let parts = if kind == Kind::InPieces { 4 } else { 3 };
                let fit = Links::fit(bytes.saturating_sub(parts * CHUNK_OVERHEAD), piece_bytes)?;
                let shift = fit.pieces.max(1).next_power_of_two().ilog2();
                let chunks = fit.pieces.min(1);
                Some(Layout { fit, shift, most: chunks, chunk_pieces: fit.pieces, chunks })
            }
            Kind::Shared { unit } => {
                let fit = Links::fit(most, piece_bytes)?;
                let each = piece_bytes as u64 + fit.link_bytes;
                let shift = (unit / each).max(1).ilog2();
                let chunk = each << shift;
                let parts = if fit.link_bytes > 2 { 3 } else { 2 };
                let most = most / chunk;
                let rest = bytes.saturating_sub(parts * most * CHUNK_OVERHEAD);
                let chunks = (rest / chunk).clamp(1, most.max(1)) as usize;
                let most = most.max(1) as usize;
                Some(Layout { fit, shift, most, chunk_pieces: 1 << shift, chunks })
            }
        }
    }
}

/// How pieces are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) fit: Fit,
    /// Chunks of two to the power of this pieces, and the most of them.
    pub(super) shift: u32,
    pub(super) most: usize,
    /// Pieces of a chunk, and chunks at the start.
    pub(super) chunk_pieces: usize,
    pub(super) chunks: usize,
}
