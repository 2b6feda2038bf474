//! The buffer pool (section 4.2): entries that are not on flash yet, so that few and large
//! fragments get there.
//!
//! When the pool is full, the buffer with the most entries in it goes to flash first ("highest-
//! packed buffer fragment"). Its oldest entries that fit the page being filled are taken; then the
//! next buffer's, until the page is full.
//!
//! Memory is cells of equal size. An entry takes as many as it needs, and where entries have one
//! small size, a cell has it, too: most buffers have a few entries here, and nothing is lost at
//! their ends. The cells of a buffer are a list; the link to the first cell of a delete is marked.
//! Buffers with the same number of entries are a list as well, so the fullest is found without a
//! search; all that have a page of deletes or more, or [`CLASSES_MOST`], count as equally full.
//!
//! Where memory is shared with the node cache, cells come and go in chunks: what is in the last
//! chunk moves to free cells of the others before it is given back.
//!
//! Invariant: every cell is in exactly one list, a buffer's or the free one; a buffer is in the
//! list of its number of entries, or in none if it has none.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::Range;

use super::chunks::{CHUNK_OVERHEAD, Chunks};
use super::stream::{Damage, Form, GROUP, Pending, Writer};
use super::table::Chunked;

mod links;

use links::{Fit, Links, NO_CELL};

/// Bytes of a cell where entries vary in size, or are large.
const CELL_BYTES: usize = 16;

/// The largest entry of fixed size that a cell is made for.
const ENTRY_IN_CELL: usize = 32;

/// The end of a list of buffers.
const NO_BUFFER: u32 = u32::MAX;

/// Lists of buffers grow to so many entries; buffers with more are in the last list.
const CLASSES_MOST: usize = 256;

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BufferId(pub(super) u32);

/// What a buffer has in the pool.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
    /// Bytes of the entries alone.
    bytes: u32,
    entries: u32,
    /// Neighbours in the list of buffers with as many entries.
    before: u32,
    after: u32,
}

const EMPTY: Slot = Slot {
    first: NO_CELL,
    last: NO_CELL,
    bytes: 0,
    entries: 0,
    before: NO_BUFFER,
    after: NO_BUFFER,
};

/// How much of a buffer was taken, as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: usize,
    pub(super) entries: u32,
}

/// The memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolSize {
    /// So many bytes, always.
    Fixed(u64),
    /// So many bytes now and so many at most, in chunks of about `unit` bytes.
    Shared { bytes: u64, most: u64, unit: u64 },
}

impl PoolSize {
    /// Bytes at the start.
    pub(super) const fn bytes(&self) -> u64 {
        match *self {
            PoolSize::Fixed(bytes) | PoolSize::Shared { bytes, .. } => bytes,
        }
    }

    /// Bytes at most.
    pub(super) const fn most(&self) -> u64 {
        match *self {
            PoolSize::Fixed(most) | PoolSize::Shared { most, .. } => most,
        }
    }

    /// The same size with `bytes` bytes less at the start.
    const fn less(self, bytes: u64) -> Self {
        match self {
            PoolSize::Fixed(all) => PoolSize::Fixed(all.saturating_sub(bytes)),
            PoolSize::Shared { bytes: all, most, unit } => {
                PoolSize::Shared { bytes: all.saturating_sub(bytes), most, unit }
            }
        }
    }

    /// How cells of `cell_bytes` bytes are laid out; `None` if they could not be numbered.
    fn lay_out(self, cell_bytes: usize) -> Option<Layout> {
        match self {
            PoolSize::Fixed(bytes) => {
                let fit = Links::fit(bytes.saturating_sub(3 * CHUNK_OVERHEAD), cell_bytes)?;
                let shift = fit.cells.max(1).next_power_of_two().ilog2();
                let chunks = fit.cells.min(1);
                Some(Layout { fit, shift, most: chunks, chunk_cells: fit.cells, chunks })
            }
            PoolSize::Shared { bytes, most, unit } => {
                let fit = Links::fit(most, cell_bytes)?;
                let each = cell_bytes as u64 + fit.link_bytes;
                let shift = (unit / each).max(1).ilog2();
                let chunk = each << shift;
                let parts = if fit.link_bytes > 2 { 3 } else { 2 };
                let most = most / chunk;
                let rest = bytes.saturating_sub(parts * most * CHUNK_OVERHEAD);
                let chunks = (rest / chunk).clamp(1, most.max(1)) as usize;
                let most = most.max(1) as usize;
                Some(Layout { fit, shift, most, chunk_cells: 1 << shift, chunks })
            }
        }
    }
}

/// How cells are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    fit: Fit,
    /// Chunks of two to the power of this cells, and the most of them.
    shift: u32,
    most: usize,
    /// Cells of a chunk, and chunks at the start.
    chunk_cells: usize,
    chunks: usize,
}

/// The pool.
#[derive(Debug)]
pub(super) struct BufferPool {
    form: Form,
    cells: Chunks<u8>,
    cell_bytes: usize,
    chunk_cells: usize,
    chunk_bytes: u64,
    links: Links,
    first_free: u32,
    free: usize,
    slots: Chunked<Slot>,
    /// The first buffer of each list; the last list also has all with more entries.
    classes: Box<[u32]>,
    /// No list above this one has a buffer.
    highest: usize,
    /// An entry that is in several cells, put together.
    whole: Box<[u8]>,
}

impl BufferPool {
    /// A pool of such a size, and `entry_most` bytes for the largest entry; buffers that have
    /// `page_entries` entries fill a page.
    pub(super) fn new(size: PoolSize, form: Form, page_entries: u32, entry_most: usize) -> Self {
        let classes = (page_entries as usize).clamp(1, CLASSES_MOST) + 1;
        let size = size.less(classes as u64 * 4);
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
        let mut pool = BufferPool {
            form,
            cells: Chunks::new(shift, cell_bytes, most),
            cell_bytes,
            chunk_cells,
            chunk_bytes: chunk_cells as u64 * (cell_bytes as u64 + fit.link_bytes),
            links: Links::new(fit.link_bytes, shift, most),
            first_free: NO_CELL,
            free: 0,
            slots: Chunked::new(),
            classes: vec![NO_BUFFER; classes].into_boxed_slice(),
            highest: 0,
            whole: vec![0; entry_most + cell_bytes].into_boxed_slice(),
        };
        for _ in 0..chunks {
            pool.grow();
        }
        pool
    }

    /// Bytes of the memory budget in use.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.cells.memory_bytes() + self.links.memory_bytes() + 4 * self.classes.len() as u64
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

    /// Gives the last chunk of cells back; as many others are free.
    pub(super) fn shrink(&mut self) {
        if !self.can_shrink() {
            return;
        }
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
        for buffer in 0..self.slots.len() as u32 {
            self.move_below(BufferId(buffer), limit);
        }
        self.cells.remove();
        self.links.remove();
        self.free -= self.chunk_cells;
    }

    /// Moves what `buffer` has in cells from `limit` on to free cells below.
    fn move_below(&mut self, buffer: BufferId, limit: u32) {
        let mut slot = self.slot(buffer);
        if slot.entries == 0 {
            return;
        }
        let (mut before, mut cell, last) = (NO_CELL, slot.first, slot.last);
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
                    NO_CELL => slot.first = stays,
                    before => self.links.lead(before, stays),
                }
                if cell == last {
                    slot.last = stays;
                }
            }
            if cell == last {
                break;
            }
            (before, cell) = (stays, next);
        }
        self.set_slot(buffer, slot);
    }

    /// Bytes of what is known of each buffer, which come beside the budget.
    pub(super) fn table_bytes(&self) -> u64 {
        self.slots.memory_bytes()
    }

    /// The most bytes of the table with so many buffers more.
    pub(super) fn table_bytes_with(&self, more: u64) -> u64 {
        self.slots.bytes_with(more)
    }

    /// Bytes, as a stream, and entries that `buffer` has in the pool.
    pub(super) fn held(&self, buffer: BufferId) -> Taken {
        let slot = self.slot(buffer);
        let kinds = slot.entries.div_ceil(GROUP);
        Taken { bytes: (slot.bytes + kinds) as usize, entries: slot.entries }
    }

    /// True if an entry of `bytes` bytes finds room.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.free >= bytes.div_ceil(self.cell_bytes).max(1)
    }

    /// True if so many entries of up to `bytes` bytes find room.
    pub(super) fn has_room_for(&self, entries: u32, bytes: usize) -> bool {
        (entries as usize)
            .checked_mul(bytes.div_ceil(self.cell_bytes).max(1))
            .is_some_and(|cells| cells <= self.free)
    }

    /// Appends `entry` to `buffer`; false, and nothing changed, if there is no room for it.
    #[must_use]
    pub(super) fn append(&mut self, buffer: BufferId, entry: &Pending<'_>) -> bool {
        let bytes = self.form.bytes(entry);
        if !self.has_room(bytes) {
            return false;
        }
        self.slots.grow(buffer.0 as usize + 1, EMPTY);
        self.unlist(buffer);
        let mut slot = self.slot(buffer);
        let is_delete = entry.value.is_none();
        self.add_cell(&mut slot, is_delete);
        let (form, mut used) = (self.form, 0);
        form.write(entry, &mut |mut piece| {
            while !piece.is_empty() {
                if used == self.cell_bytes {
                    self.add_cell(&mut slot, false);
                    used = 0;
                }
                let (now, later) = piece.split_at(piece.len().min(self.cell_bytes - used));
                if let Some(cell) = self.cells.get_mut(slot.last as usize) {
                    cell[used..used + now.len()].copy_from_slice(now);
                }
                used += now.len();
                piece = later;
            }
        });
        slot.bytes += bytes as u32;
        slot.entries += 1;
        self.set_slot(buffer, slot);
        self.list(buffer);
        true
    }

    /// The buffer with the most entries in the pool; `None` if the pool is empty.
    pub(super) fn fullest(&mut self) -> Option<BufferId> {
        while self.highest > 0 && self.classes[self.highest] == NO_BUFFER {
            self.highest -= 1;
        }
        let first = self.classes[self.highest];
        (first != NO_BUFFER).then_some(BufferId(first))
    }

    /// A buffer with the most entries of those that have at most `most`, if one has `least`.
    pub(super) fn fullest_within(&self, least: u32, most: u32) -> Option<BufferId> {
        let top = self.highest.min(most as usize);
        let first = (least as usize..=top).rev().map(|class| self.classes[class]);
        first.into_iter().find(|first| *first != NO_BUFFER).map(BufferId)
    }

    /// Calls `each` with every entry that `buffer` has here, the oldest first.
    ///
    /// # Errors
    /// The pool's memory is damaged, or `each` refused an entry.
    pub(super) fn visit(
        &mut self,
        buffer: BufferId,
        each: &mut dyn FnMut(&Pending<'_>) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let slot = self.slot(buffer);
        let mut cell = slot.first;
        for _ in 0..slot.entries {
            let (entry, last) =
                entry_at(&self.cells, &self.links, &mut self.whole, self.form, cell)?;
            each(&entry)?;
            cell = self.links.next(last);
        }
        Ok(())
    }

    /// Hands the newest entry of `key` that `buffer` has here to `found`.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn find<T>(
        &mut self,
        buffer: BufferId,
        key: &[u8],
        found: &mut dyn FnMut(&Pending<'_>) -> T,
    ) -> Result<Option<T>, Damage> {
        let slot = self.slot(buffer);
        // Then a cell begins with the key.
        let in_one = self.form.fixed_bytes().is_some_and(|bytes| bytes <= self.cell_bytes);
        let (mut cell, mut newest) = (slot.first, None);
        for _ in 0..slot.entries {
            let (is_it, last) = if in_one {
                (self.cells.get(cell as usize).is_some_and(|cell| cell.starts_with(key)), cell)
            } else {
                let (entry, last) =
                    entry_at(&self.cells, &self.links, &mut self.whole, self.form, cell)?;
                (entry.key == key, last)
            };
            if is_it {
                newest = Some(cell);
            }
            cell = self.links.next(last);
        }
        let Some(cell) = newest else {
            return Ok(None);
        };
        let (entry, _) = entry_at(&self.cells, &self.links, &mut self.whole, self.form, cell)?;
        Ok(Some(found(&entry)))
    }

    /// Copies the entries of `buffer` in `range`, counted from the oldest one, as a stream to the
    /// start of `into`, as many as fit.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn copy(
        &mut self,
        buffer: BufferId,
        range: Range<u32>,
        into: &mut [u8],
    ) -> Result<Taken, Damage> {
        let mut writer = Writer::new(self.form, into);
        let (mut place, mut has_room) = (0, true);
        self.visit(buffer, &mut |entry| {
            let is_wanted = has_room && range.contains(&place);
            has_room = has_room && (!is_wanted || writer.push(entry));
            place += 1;
            Ok(())
        })?;
        Ok(Taken { bytes: writer.bytes(), entries: writer.entries() })
    }

    /// Takes the oldest entries of `buffer`, `most` at most, that fit into `into` out of the
    /// pool as a stream at the start of `into`.
    ///
    /// # Errors
    /// The pool's memory is damaged.
    pub(super) fn take(
        &mut self,
        buffer: BufferId,
        most: u32,
        into: &mut [u8],
    ) -> Result<Taken, Damage> {
        let mut slot = self.slot(buffer);
        if slot.entries == 0 {
            return Ok(Taken { bytes: 0, entries: 0 });
        }
        self.unlist(buffer);
        let mut writer = Writer::new(self.form, into);
        let mut taken = Ok(());
        while slot.entries > 0 && writer.entries() < most {
            let read = entry_at(&self.cells, &self.links, &mut self.whole, self.form, slot.first);
            let last = match read {
                Ok((entry, last)) if writer.push(&entry) => {
                    slot.bytes -= self.form.bytes(&entry) as u32;
                    last
                }
                Ok(_) => break,
                Err(damage) => {
                    taken = Err(damage);
                    break;
                }
            };
            slot.entries -= 1;
            let next = self.links.next(last);
            self.release(slot.first, last);
            slot.first = next;
        }
        if slot.entries == 0 {
            slot = EMPTY;
        }
        self.set_slot(buffer, slot);
        if slot.entries > 0 {
            self.list(buffer);
        }
        taken.map(|()| Taken { bytes: writer.bytes(), entries: writer.entries() })
    }

    /// Forgets what `buffer` has in the pool.
    pub(super) fn clear(&mut self, buffer: BufferId) {
        let slot = self.slot(buffer);
        if slot.entries == 0 {
            return;
        }
        self.unlist(buffer);
        self.release(slot.first, slot.last);
        self.set_slot(buffer, EMPTY);
    }

    /// Makes the cells of a list from `first` to `last` free.
    fn release(&mut self, first: u32, last: u32) {
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
    fn add_cell(&mut self, slot: &mut Slot, is_delete: bool) {
        let cell = self.first_free;
        self.first_free = self.links.next(cell);
        self.free -= 1;
        self.links.set(cell, NO_CELL, is_delete);
        if slot.first == NO_CELL {
            slot.first = cell;
        } else {
            self.links.lead(slot.last, cell);
        }
        slot.last = cell;
    }

    fn slot(&self, buffer: BufferId) -> Slot {
        self.slots.get(buffer.0 as usize).copied().unwrap_or(EMPTY)
    }

    fn set_slot(&mut self, buffer: BufferId, slot: Slot) {
        if let Some(held) = self.slots.get_mut(buffer.0 as usize) {
            *held = slot;
        }
    }

    fn class(&self, entries: u32) -> usize {
        (entries as usize).min(self.classes.len() - 1)
    }

    fn list(&mut self, buffer: BufferId) {
        let mut slot = self.slot(buffer);
        let class = self.class(slot.entries);
        slot.before = NO_BUFFER;
        slot.after = self.classes[class];
        if let Some(after) = self.slots.get_mut(slot.after as usize) {
            after.before = buffer.0;
        }
        self.classes[class] = buffer.0;
        self.set_slot(buffer, slot);
        self.highest = self.highest.max(class);
    }

    fn unlist(&mut self, buffer: BufferId) {
        let slot = self.slot(buffer);
        if slot.entries == 0 {
            return;
        }
        match self.slots.get_mut(slot.before as usize) {
            Some(before) => before.after = slot.after,
            None => {
                let class = self.class(slot.entries);
                self.classes[class] = slot.after;
            }
        }
        if let Some(after) = self.slots.get_mut(slot.after as usize) {
            after.before = slot.before;
        }
    }
}

/// The entry that begins in `cell`, and the last of its cells.
fn entry_at<'p>(
    cells: &'p Chunks<u8>,
    links: &Links,
    whole: &'p mut [u8],
    form: Form,
    cell: u32,
) -> Result<(Pending<'p>, u32), Damage> {
    const CUT: Damage = "an entry in the pool has no end";
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

#[cfg(test)]
mod tests;
