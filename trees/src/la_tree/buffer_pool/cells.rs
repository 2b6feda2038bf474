//! The cells of a pool, in pieces: lists of pieces hold entries, and one list those that are free.
//!
//! Cells have one size. An entry takes as many as it needs, and where entries have one small size,
//! a cell has it, too.
//!
//! In a small pool, and on raw flash, a piece is one cell: most buffers have a few entries here,
//! and nothing is lost at their ends. The link to the first cell of a delete is marked. To find an
//! entry its list is walked.
//!
//! In a large pool on a disk, where a buffer has thousands of entries, cells that
//! follow each other are a piece of about [`PIECE_BYTES`] bytes with one link. Of each is known
//! the span of the keys that begin there, and of each cell a tag: a hash of the key of the entry
//! that begins there, and whether it is a delete. What comes in a batch is sorted, so most pieces
//! can't have a key; of others the tags are compared at once, and a cell is read only where the tag
//! is the key's. A tag and the share of span and link take less than a link for each cell does.
//!
//! Cells come and go in chunks, those in pieces never.
//!
//! Invariant: every piece is in exactly one list, and the cells of an entry follow each other.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

use store::Width;

use super::super::chunks::Chunks;
use super::super::stream::{Damage, Form, Pending, field_length};
use super::links::{Links, NO_CELL};
use super::size::{Kind, Layout, PoolSize};

mod heads;

use heads::{DELETE, NO_SPAN, NO_TAG, head_of, span_of};

/// Bytes of a cell where entries vary in size, or are large, and of one in a piece.
const CELL_BYTES: usize = 16;
const CELL_IN_PIECE: usize = 8;

/// The most bytes of a piece of several cells, and the most cells.
const PIECE_BYTES: usize = 512;
const PIECE_CELLS: usize = 64;

/// The largest entry of fixed size that a cell is made for.
const ENTRY_IN_CELL: usize = 32;

/// One piece in so many is kept free.
const SPARE_PART: usize = 64;

/// That an entry goes beyond the cells of its list.
const CUT: Damage = "an entry in the pool has no end";

/// The cells of a buffer: the first of its oldest entry, and the last of its newest.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl List {
    /// No cells.
    pub(super) const EMPTY: Self = List { first: NO_CELL, last: NO_CELL };
}

/// The cells.
#[derive(Debug)]
pub(in super::super) struct Cells {
    pub(super) form: Form,
    /// The pieces: their tags, where they have several cells, and the cells.
    pieces: Chunks<u8>,
    /// The spans of pieces that have several cells.
    spans: Chunks<u64>,
    cell_bytes: usize,
    chunk_pieces: usize,
    /// Bytes of a chunk.
    pub(in super::super) chunk_bytes: u64,
    links: Links,
    /// The first free piece, and how many there are.
    first_free: u32,
    /// A piece has two to the power of this cells.
    shift: u32,
    /// True if cells stand alone and are so few that their numbers take two bytes.
    pub(in super::super) is_small: bool,
    free: usize,
    /// An entry that is in several pieces, put together.
    whole: Box<[u8]>,
}

/// How cells are laid out in the memory of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    cell_bytes: usize,
    /// A piece has two to the power of this cells.
    shift: u32,
    /// Bytes of a piece and its span.
    piece_bytes: usize,
    layout: Layout,
}

impl Shape {
    /// The cells for entries of `form` in memory of such a size.
    pub(super) fn of(size: PoolSize, form: Form) -> Self {
        let fixed = form.fixed_bytes().filter(|bytes| *bytes <= ENTRY_IN_CELL);
        let single = fixed.map_or(CELL_BYTES, |bytes| bytes.max(1));
        let size = size.settled(single);
        let (mut cell_bytes, shift) = match size.kind {
            Kind::InPieces => {
                let cell_bytes = fixed.map_or(CELL_IN_PIECE, |bytes| bytes.max(1));
                (cell_bytes, (PIECE_BYTES / cell_bytes).min(PIECE_CELLS).ilog2())
            }
            _ => (single, 0),
        };
        let (layout, piece_bytes) = loop {
            let piece_bytes = span_of(shift) + head_of(shift) + (cell_bytes << shift);
            match size.lay_out(piece_bytes) {
                Some(layout) => break (layout, piece_bytes),
                None => cell_bytes *= 2,
            }
        };
        Shape { cell_bytes, shift, piece_bytes, layout }
    }

    /// True if cells stand alone and are so few that their numbers take two bytes.
    pub(super) const fn is_small(&self) -> bool {
        self.shift == 0 && self.layout.fit.link_bytes == 2
    }
}

impl Cells {
    /// Cells in memory of such a size, and `entry_most` bytes for the largest entry.
    pub(super) fn new(size: PoolSize, form: Form, entry_most: usize) -> Self {
        let Shape { cell_bytes, shift, piece_bytes, layout } = Shape::of(size, form);
        let Layout { fit, shift: chunk_shift, most, chunk_pieces, chunks } = layout;
        let mut cells = Cells {
            form,
            pieces: Chunks::new(chunk_shift, piece_bytes - span_of(shift), most),
            spans: Chunks::new(chunk_shift, NO_SPAN.len(), if shift > 0 { most } else { 0 }),
            cell_bytes,
            chunk_pieces,
            chunk_bytes: chunk_pieces as u64 * (piece_bytes as u64 + fit.link_bytes),
            links: Links::new(fit.link_bytes, chunk_shift, most),
            first_free: NO_CELL,
            shift,
            is_small: shift == 0 && fit.link_bytes == 2,
            free: 0,
            whole: vec![0; entry_most + cell_bytes].into_boxed_slice(),
        };
        for _ in 0..chunks {
            cells.grow();
        }
        cells
    }

    /// Pieces that there are, and those of them that are free.
    #[cfg(test)]
    pub(super) fn count(&self) -> (usize, usize) {
        (self.links.len(), self.free)
    }

    /// True if pieces have several cells, and tags.
    pub(in super::super) const fn has_tags(&self) -> bool {
        self.shift > 0
    }

    /// Bytes of the memory budget in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.pieces.memory_bytes() + self.spans.memory_bytes() + self.links.memory_bytes()
    }

    /// Chunks that there are.
    pub(in super::super) fn chunks(&self) -> usize {
        self.pieces.len() / self.chunk_pieces.max(1)
    }

    /// True if a chunk's worth of pieces is free, and chunks can be given back.
    pub(in super::super) const fn can_shrink(&self) -> bool {
        self.shift == 0 && self.free >= self.chunk_pieces
    }

    /// True if pieces have several cells, and less than one in [`SPARE_PART`] is free.
    pub(in super::super) fn is_nearly_full(&self) -> bool {
        self.shift > 0 && self.free < self.pieces.len() / SPARE_PART
    }

    /// Adds a chunk of free pieces.
    pub(in super::super) fn grow(&mut self) {
        let first = self.pieces.len();
        self.pieces.add(self.chunk_pieces, NO_TAG);
        if self.shift > 0 {
            self.spans.add(self.chunk_pieces, 0);
        }
        self.links.add(self.chunk_pieces, self.first_free);
        self.first_free = first as u32;
        self.free += self.chunk_pieces;
    }

    /// Takes the cells of the last chunk out of the free list; returns the first of the chunk.
    pub(super) fn withdraw_last_chunk(&mut self) -> u32 {
        let limit = self.pieces.last_chunk() as u32;
        let (mut cell, mut kept) = (self.first_free, NO_CELL);
        while cell != NO_CELL {
            let next = self.links.next(cell);
            if cell < limit {
                self.links.set(cell, kept, false);
                kept = cell;
            }
            cell = next;
        }
        self.first_free = kept;
        limit
    }

    /// Moves what stands in cells of `list`, which has some, from `limit` on to free cells below;
    /// returns the list as it is then.
    pub(super) fn move_below(&mut self, mut list: List, limit: u32) -> List {
        let (mut before, mut cell, last) = (NO_CELL, list.first, list.last);
        loop {
            let next = self.links.next(cell);
            let mut stays = cell;
            if cell >= limit {
                stays = self.first_free;
                self.first_free = self.links.next(stays);
                if let Some((from, to)) = self.pieces.two_mut(cell as usize, stays as usize) {
                    to.copy_from_slice(from);
                }
                self.links.set(stays, next, self.links.is_marked(cell));
                match before {
                    NO_CELL => list.first = stays,
                    before => self.links.lead(before, stays),
                }
                if cell == last {
                    list.last = stays;
                }
            }
            if cell == last {
                return list;
            }
            (before, cell) = (stays, next);
        }
    }

    /// Gives the last chunk back, of which no list has a cell any more.
    pub(super) fn remove_last_chunk(&mut self) {
        self.pieces.remove();
        self.links.remove();
        self.free -= self.chunk_pieces;
    }

    /// True if an entry of `bytes` bytes finds room at the end of `list`.
    pub(super) fn has_room(&self, list: &List, bytes: usize) -> bool {
        let all = (1 << self.shift) - 1;
        let rest = if list.last == NO_CELL { 0 } else { all - (list.last as usize & all) };
        let more = self.cells_of(bytes).saturating_sub(rest);
        self.free >= more.div_ceil(1 << self.shift)
    }

    /// Cells that an entry of `bytes` bytes takes.
    fn cells_of(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.cell_bytes).max(1)
    }

    /// Appends `entry`, for which there is room, to `list`.
    pub(super) fn append(&mut self, list: &mut List, entry: &Pending<'_>) {
        let is_delete = entry.value.is_none();
        self.add_cell(list, is_delete);
        self.note_key(list.last, entry.key, if is_delete { DELETE } else { 0 });
        let (form, mut used) = (self.form, 0);
        form.write(entry, &mut |mut piece| {
            while !piece.is_empty() {
                if used == self.cell_bytes {
                    self.add_cell(list, false);
                    used = 0;
                }
                let (now, later) = piece.split_at(piece.len().min(self.cell_bytes - used));
                let at = Place::of(list.last, self.shift, self.cell_bytes);
                if let Some(piece) = self.pieces.get_mut(at.piece) {
                    piece[at.byte + used..][..now.len()].copy_from_slice(now);
                }
                used += now.len();
                piece = later;
            }
        });
    }

    /// The cell in which the newest entry of `key` begins, among the `entries` entries of `list`.
    pub(super) fn newest(
        &mut self,
        list: &List,
        entries: u32,
        key: &[u8],
    ) -> Result<Option<u32>, Damage> {
        if self.shift > 0 && entries > 0 {
            return self.newest_in_pieces(list, key);
        }
        // Then a cell begins with the key.
        let in_one = self.form.fixed_bytes().is_some_and(|bytes| bytes <= self.cell_bytes);
        let (mut cell, mut newest) = (list.first, None);
        for _ in 0..entries {
            let (is_it, last) = if in_one {
                let found = self.pieces.get(cell as usize).and_then(|cell| cell.get(..key.len()));
                (found.is_some_and(|found| is_same(found, key)), cell)
            } else {
                self.is_of(cell, key)?
            };
            if is_it {
                newest = Some(cell);
            }
            cell = self.next(last);
        }
        Ok(newest)
    }

    /// Calls `each` with the entries of `list`, the oldest first, but for some whose keys have no
    /// prefix in `wanted`; where pieces are single cells, with all.
    pub(super) fn visit(
        &mut self,
        list: &List,
        wanted: &RangeInclusive<u64>,
        each: &mut dyn FnMut(&Pending<'_>),
    ) -> Result<(), Damage> {
        if self.shift > 0 && list.first != NO_CELL {
            return self.visit_pieces(list, wanted, each);
        }
        let mut at = list.first;
        while at != NO_CELL {
            let (entry, last) = self.entry(at)?;
            each(&entry);
            at = if last == list.last { NO_CELL } else { self.next(last) };
        }
        Ok(())
    }

    /// The entry that begins in `cell`, and the last of its cells.
    pub(super) fn entry(&mut self, cell: u32) -> Result<(Pending<'_>, u32), Damage> {
        let is_delete = self.is_delete(cell);
        let (cell_bytes, shift) = (self.cell_bytes, self.shift);
        let Cells { form, pieces, links, whole, .. } = self;
        // From the cell to the end of its piece.
        let run = |cell: u32| {
            let at = Place::of(cell, shift, cell_bytes);
            pieces.get(at.piece).and_then(|piece| piece.get(at.byte..)).ok_or(CUT)
        };
        if let Ok((entry, length)) = form.read(run(cell)?, is_delete) {
            let more = length.div_ceil(cell_bytes).saturating_sub(1);
            return Ok((entry, cell + more as u32));
        }
        let (mut at, mut length, mut cells_before) = (cell, 0, 0);
        loop {
            let piece = run(at)?;
            let bytes = piece.len().min(whole.len() - length);
            if bytes == 0 {
                return Err(CUT);
            }
            whole[length..length + bytes].copy_from_slice(&piece[..bytes]);
            length += bytes;
            if let Ok((_, used)) = form.read(&whole[..length], is_delete) {
                let last = at + (used.div_ceil(cell_bytes) - cells_before) as u32 - 1;
                return form.read(&whole[..length], is_delete).map(|(entry, _)| (entry, last));
            }
            cells_before += piece.len() / cell_bytes;
            at = links.next_cell(at | ((1 << shift) - 1), shift);
        }
    }

    /// True if the entry that begins in `cell`, which is a piece, has this key; and the last of its
    /// cells. Its value is passed by.
    fn is_of(&self, cell: u32, key: &[u8]) -> Result<(bool, u32), Damage> {
        let mut walk = Walk { cells: self, cell, byte: 0 };
        let is_same = match walk.length(self.form.shape.key)? {
            length if length == key.len() => walk.pass(key)?,
            length => walk.skip(length).map(|()| false)?,
        };
        if !self.is_delete(cell) {
            let length = walk.length(self.form.shape.value)?;
            walk.skip(length)?;
        }
        Ok((is_same, walk.cell))
    }

    fn is_delete(&self, cell: u32) -> bool {
        match self.tags(cell) {
            Some([]) | None => self.links.is_marked(cell),
            Some(tags) => tags[cell as usize & (tags.len() - 1)] & DELETE != 0,
        }
    }

    /// The cell of an entry that follows the one that ends in `cell`.
    #[inline]
    pub(super) fn next(&self, cell: u32) -> u32 {
        self.links.next_cell(cell, self.shift)
    }

    /// Takes the cells up to `last` off the front of `list`, and makes pieces free of which it has
    /// no cell left.
    pub(super) fn release(&mut self, list: &mut List, last: u32) {
        let next = if last == list.last { NO_CELL } else { self.next(last) };
        let (mut piece, end) = (list.first >> self.shift, last >> self.shift);
        // That the list goes on in.
        let kept = if next == NO_CELL { NO_CELL } else { next >> self.shift };
        while piece != kept {
            let following = self.links.next(piece);
            self.links.set(piece, self.first_free, false);
            self.first_free = piece;
            self.free += 1;
            if piece == end {
                break;
            }
            piece = following;
        }
        list.first = next;
        if next == NO_CELL {
            *list = List::EMPTY;
        }
    }

    /// Adds a free cell, of which there is one, to the end of a list.
    fn add_cell(&mut self, list: &mut List, is_delete: bool) {
        let after = list.last.wrapping_add(1);
        if list.last != NO_CELL && after & ((1 << self.shift) - 1) != 0 {
            list.last = after;
        } else {
            let piece = self.first_free;
            self.first_free = self.links.next(piece);
            self.free -= 1;
            self.links.set(piece, NO_CELL, is_delete && self.shift == 0);
            let cell = piece << self.shift;
            if list.first == NO_CELL {
                list.first = cell;
            } else {
                self.links.lead(list.last >> self.shift, piece);
            }
            list.last = cell;
        }
        self.note_none(list.last);
    }
}

/// A walk over the bytes of an entry, in pieces of one cell.
struct Walk<'c> {
    cells: &'c Cells,
    cell: u32,
    /// Where it is in the cell, or behind it.
    byte: usize,
}

impl Walk<'_> {
    /// The length of a field, which the walk has come to.
    fn length(&mut self, width: Width) -> Result<usize, Damage> {
        field_length(width, &mut || {
            self.skip(1)?;
            let cell = self.cells.pieces.get(self.cell as usize);
            cell.and_then(|cell| cell.get(self.byte - 1)).copied().ok_or(CUT)
        })
    }

    fn skip(&mut self, length: usize) -> Result<(), Damage> {
        self.byte += length;
        while self.byte > self.cells.cell_bytes {
            self.cell = self.cells.links.next(self.cell);
            if self.cell == NO_CELL {
                return Err(CUT);
            }
            self.byte -= self.cells.cell_bytes;
        }
        Ok(())
    }

    /// Passes by as many bytes as `key` has; true if they are the same.
    fn pass(&mut self, key: &[u8]) -> Result<bool, Damage> {
        let (mut rest, mut is_same) = (key, true);
        while !rest.is_empty() {
            // The next cell, if this one ends here.
            self.skip(1)?;
            let cell = self.cells.pieces.get(self.cell as usize).ok_or(CUT)?;
            let found = cell.get(self.byte - 1..).ok_or(CUT)?;
            let (wanted, behind) = rest.split_at(rest.len().min(found.len()));
            is_same = is_same && found.starts_with(wanted);
            self.byte += wanted.len() - 1;
            rest = behind;
        }
        Ok(is_same)
    }
}

/// Where a cell stands: its piece, and its first byte in there.
#[derive(Clone, Copy)]
struct Place {
    piece: usize,
    byte: usize,
}

impl Place {
    fn of(cell: u32, shift: u32, cell_bytes: usize) -> Self {
        let in_piece = cell as usize & ((1 << shift) - 1);
        let byte = head_of(shift) + in_piece * cell_bytes;
        Place { piece: (cell >> shift) as usize, byte }
    }
}

/// True if `found` is `key`. Nearly none is, and what tells numbers apart stands at their end.
fn is_same(found: &[u8], key: &[u8]) -> bool {
    found.last_chunk::<4>() == key.last_chunk::<4>() && found == key
}
