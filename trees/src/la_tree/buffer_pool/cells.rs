//! The cells of a pool: lists of them hold entries, and one list those that are free.
//!
//! Cells have one size. An entry takes as many as it needs, and where entries have one small size,
//! a cell has it, too: most buffers have a few entries here, and nothing is lost at their ends. The
//! link to the first cell of a delete is marked. Cells come and go in chunks.
//!
//! Invariant: every cell is in exactly one list.

use alloc::boxed::Box;
use alloc::vec;

use super::super::chunks::Chunks;
use super::super::stream::{Damage, Form, Pending};
use super::links::{Links, NO_CELL};
use super::size::{Layout, PoolSize};

/// Bytes of a cell where entries vary in size, or are large.
const CELL_BYTES: usize = 16;

/// The largest entry of fixed size that a cell is made for.
const ENTRY_IN_CELL: usize = 32;

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
pub(super) struct Cells {
    form: Form,
    cells: Chunks<u8>,
    cell_bytes: usize,
    chunk_cells: usize,
    chunk_bytes: u64,
    links: Links,
    first_free: u32,
    free: usize,
    /// An entry that is in several cells, put together.
    whole: Box<[u8]>,
}

impl Cells {
    /// Cells in memory of such a size, and `entry_most` bytes for the largest entry.
    pub(super) fn new(size: PoolSize, form: Form, entry_most: usize) -> Self {
        let mut cell_bytes = match form.fixed_bytes() {
            Some(bytes) if bytes <= ENTRY_IN_CELL => bytes.max(1),
            _ => CELL_BYTES,
        };
        let layout = loop {
            match size.lay_out(cell_bytes) {
                Some(layout) => break layout,
                None => cell_bytes *= 2,
            }
        };
        let Layout { fit, shift, most, chunk_cells, chunks } = layout;
        let mut cells = Cells {
            form,
            cells: Chunks::new(shift, cell_bytes, most),
            cell_bytes,
            chunk_cells,
            chunk_bytes: chunk_cells as u64 * (cell_bytes as u64 + fit.link_bytes),
            links: Links::new(fit.link_bytes, shift, most),
            first_free: NO_CELL,
            free: 0,
            whole: vec![0; entry_most + cell_bytes].into_boxed_slice(),
        };
        for _ in 0..chunks {
            cells.grow();
        }
        cells
    }

    /// Cells that there are, and those of them that are free.
    #[cfg(test)]
    pub(super) fn count(&self) -> (usize, usize) {
        (self.links.len(), self.free)
    }

    /// How entries are written in cells.
    pub(super) const fn form(&self) -> Form {
        self.form
    }

    /// Bytes of the memory budget in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.cells.memory_bytes() + self.links.memory_bytes()
    }

    /// Bytes of a chunk.
    pub(super) const fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Chunks that there are.
    pub(super) fn chunks(&self) -> usize {
        self.cells.len() / self.chunk_cells.max(1)
    }

    /// True if a chunk's worth of cells is free.
    pub(super) const fn can_shrink(&self) -> bool {
        self.free >= self.chunk_cells
    }

    /// Adds a chunk of free cells.
    pub(super) fn grow(&mut self) {
        let first = self.cells.len();
        self.cells.add(self.chunk_cells, 0);
        self.links.add(self.chunk_cells, self.first_free);
        self.first_free = first as u32;
        self.free += self.chunk_cells;
    }

    /// Takes the cells of the last chunk out of the free list; returns the first of the chunk.
    pub(super) fn withdraw_last_chunk(&mut self) -> u32 {
        let limit = self.cells.last_chunk() as u32;
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
                if let Some((from, to)) = self.cells.two_mut(cell as usize, stays as usize) {
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
        self.cells.remove();
        self.links.remove();
        self.free -= self.chunk_cells;
    }

    /// True if an entry of `bytes` bytes finds room.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.free >= bytes.div_ceil(self.cell_bytes).max(1)
    }

    /// Appends `entry`, for which there is room, to `list`.
    pub(super) fn append(&mut self, list: &mut List, entry: &Pending<'_>) {
        let is_delete = entry.value.is_none();
        self.add_cell(list, is_delete);
        let (form, mut used) = (self.form, 0);
        form.write(entry, &mut |mut piece| {
            while !piece.is_empty() {
                if used == self.cell_bytes {
                    self.add_cell(list, false);
                    used = 0;
                }
                let (now, later) = piece.split_at(piece.len().min(self.cell_bytes - used));
                if let Some(cell) = self.cells.get_mut(list.last as usize) {
                    cell[used..used + now.len()].copy_from_slice(now);
                }
                used += now.len();
                piece = later;
            }
        });
    }

    /// The cell in which the newest entry of `key` begins, among `entries` entries from `first` on.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn newest(
        &mut self,
        first: u32,
        entries: u32,
        key: &[u8],
    ) -> Result<Option<u32>, Damage> {
        // Then a cell begins with the key.
        let in_one = self.form.fixed_bytes().is_some_and(|bytes| bytes <= self.cell_bytes);
        let (mut cell, mut newest) = (first, None);
        for _ in 0..entries {
            let (is_it, last) = if in_one {
                let found = self.cells.get(cell as usize).and_then(|cell| cell.get(..key.len()));
                (found.is_some_and(|found| is_same(found, key)), cell)
            } else {
                let (entry, last) = self.entry(cell)?;
                (entry.key == key, last)
            };
            if is_it {
                newest = Some(cell);
            }
            cell = self.links.next(last);
        }
        Ok(newest)
    }

    /// The entry that begins in `cell`, and the last of its cells.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn entry(&mut self, cell: u32) -> Result<(Pending<'_>, u32), Damage> {
        const CUT: Damage = "an entry in the pool has no end";
        let Cells { form, cells, links, whole, .. } = self;
        let piece = |cell: u32| cells.get(cell as usize).ok_or(CUT);
        let is_delete = links.is_marked(cell);
        if form.read(piece(cell)?, is_delete).is_ok() {
            return form.read(piece(cell)?, is_delete).map(|(entry, _)| (entry, cell));
        }
        let (mut last, mut length) = (cell, 0);
        loop {
            let piece = piece(last)?;
            let into = whole.get_mut(length..length + piece.len()).ok_or(CUT)?;
            into.copy_from_slice(piece);
            length += piece.len();
            if form.read(&whole[..length], is_delete).is_ok() {
                break;
            }
            last = links.next(last);
        }
        form.read(&whole[..length], is_delete).map(|(entry, _)| (entry, last))
    }

    /// The cell of an entry that follows the one that ends in `cell`.
    pub(super) fn next(&self, cell: u32) -> u32 {
        self.links.next(cell)
    }

    /// Makes the cells of a list free.
    pub(super) fn release(&mut self, List { first, last }: List) {
        let mut cell = first;
        self.free += 1;
        while cell != last {
            cell = self.links.next(cell);
            self.free += 1;
        }
        self.links.set(last, self.first_free, false);
        self.first_free = first;
    }

    /// Adds a free cell, of which there is one, to the end of a list.
    fn add_cell(&mut self, list: &mut List, is_delete: bool) {
        let cell = self.first_free;
        self.first_free = self.links.next(cell);
        self.free -= 1;
        self.links.set(cell, NO_CELL, is_delete);
        if list.first == NO_CELL {
            list.first = cell;
        } else {
            self.links.lead(list.last, cell);
        }
        list.last = cell;
    }
}

/// True if `found` is `key`. Nearly none is, and what tells numbers apart stands at their end.
fn is_same(found: &[u8], key: &[u8]) -> bool {
    found.last_chunk::<4>() == key.last_chunk::<4>() && found == key
}
